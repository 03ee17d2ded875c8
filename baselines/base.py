"""Baseline: no training. Measures the base model in both seats, on the problems that every other run is measured on.

    python baselines/base.py                 the mini preset: two CPU cores, a minute
    python baselines/base.py --preset smoke  seconds

The table has the columns of the other recipes; nothing was learnt, so its differences are zero. There are no
checkpoints: a resumed run measures again.
"""

from codea1_env.configuration.arguments import exit_status, parse_arguments


def main() -> int:
    arguments = parse_arguments(__doc__, recipe="base")

    # Only now: these imports load torch, and a wrong argument must not wait for them.
    from codea1_env.training.recipe import recipe

    with recipe(arguments, trains=("coder", "tester"), measures={"coder": None, "tester": None}) as run:
        pass  # nothing is trained
    print(run)
    return 0


if __name__ == "__main__":
    raise SystemExit(exit_status(main))
