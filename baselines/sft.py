"""Baseline: the Test LLM by supervised learning on suites that the arena validated; no reinforcement, no opponent.

    python baselines/sft.py                 the mini preset: two CPU cores, minutes
    python baselines/sft.py --preset smoke  seconds, nothing is learnt
    python baselines/sft.py --resume runs/sft-seed0

Once, the base tester writes M suites against programs of the base coder, for the questions of all rounds; the arena
keeps the tests that count, with the reference's values. Then every round is a supervised step on as many suites as the
tester of agents/train_grpo.py learns from. Otherwise as there: compare the two.
"""

from codea1_env.training.config.arguments import exit_status, parse_arguments


def main() -> int:
    arguments = parse_arguments(__doc__, recipe="sft")

    # Only now: these imports load torch, and a wrong argument must not wait for them.
    from codea1_env.training.baselines.sft import supervised_tester
    from codea1_env.training.engine.recipe import recipe

    with recipe(arguments, trains=("tester",), measures={"coder": None, "tester": "tester"}) as run:
        asked, arena, log = run.asked, run.arena, run.log

        # The suites are written and validated before the first round; each round is a supervised step on them.
        run.train({"tester": lambda seat, hooks: supervised_tester(seat, hooks, arena, asked, log)})
    print(run)
    return 0


if __name__ == "__main__":
    raise SystemExit(exit_status(main))
