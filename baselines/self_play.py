"""Baseline: one model in both seats. It attacks its own programs, and one GRPO step learns from both roles.

    python baselines/self_play.py                    the mini preset: two CPU cores, minutes
    python baselines/self_play.py --preset smoke     seconds, nothing is learnt
    python baselines/self_play.py --resume runs/self-play-seed0

Every round, the model answers each question N times and attacks each program with M suites, seeing question and program
(options.access: black-box hides the program); the arena runs them and pays both roles; the Mistake Book remembers what
failed. The definition is in docs/self-play.md. Otherwise as agents/train_grpo.py: compare the two.
"""

from codea1_env.training.config.arguments import exit_status, parse_arguments


def main() -> int:
    arguments = parse_arguments(__doc__, recipe="self-play")

    # Only now: these imports load torch, and a wrong argument must not wait for them.
    from codea1_env.training.engine.recipe import recipe
    from codea1_env.training.grpo.self_play import self_play_trainer

    with recipe(arguments, trains=("player",), measures={"coder": "player", "tester": "player"}) as run:
        asked, arena, log = run.asked, run.arena, run.log

        # One trainer; its batch holds both roles' groups.
        run.train({"player": lambda seat, hooks: self_play_trainer(seat, hooks, arena, log, asked)})
    print(run)
    return 0


if __name__ == "__main__":
    raise SystemExit(exit_status(main))
