"""Baseline: only the Code LLM learns; a tester that never changes writes the suites. The Mistake Book works.

    python baselines/frozen_tester.py                           the mini preset: two CPU cores, minutes
    python baselines/frozen_tester.py --preset smoke            seconds, nothing is learnt
    python baselines/frozen_tester.py --tester runs/mini-seed0  against that run's trained tester; else against the base

Every round, the coder answers each question N times; the frozen tester attacks each program with M suites; the arena
runs them and pays the coder, who takes a GRPO step. Otherwise as agents/train_grpo.py: compare the two.
"""

from codea1_env.training.config.arguments import exit_status, parse_arguments


def main() -> int:
    arguments = parse_arguments(__doc__, recipe="frozen", takes_tester=True)

    # Only now: these imports load torch, and a wrong argument must not wait for them.
    from codea1_env.training.baselines.frozen_tester import FrozenTester
    from codea1_env.training.engine.recipe import recipe
    from codea1_env.training.grpo.seats import coder_trainer
    from codea1_env.training.round.rounds import attacks_of

    with recipe(arguments, trains=("coder", "tester"), measures={"coder": "coder"}) as run:
        asked, meeting, tester, fidelity = run.asked, run.meeting(), run.tester, run.preset.reward.fidelity

        # The coder's round: TRL samples N programs a question, calls this, and updates on the rewards.
        def pay(round_index, problems, responses):
            programs = attacks_of(problems, responses, fidelity)
            return meeting.submit_codes(round_index, programs)  # waits until they are attacked and scored

        # The tester attacks every round, and is never updated.
        run.train(
            {
                "coder": lambda seat, hooks: coder_trainer(seat, hooks, pay, asked),
                "tester": lambda seat, hooks: FrozenTester(seat, hooks, meeting, tester),
            }
        )
    print(run)
    return 0


if __name__ == "__main__":
    raise SystemExit(exit_status(main))
