"""Baseline: the Code LLM alone, rewarded by the share of each question's golden tests that it passes.

    python baselines/golden_tests.py                 the mini preset: two CPU cores, minutes
    python baselines/golden_tests.py --preset smoke  seconds, nothing is learnt
    python baselines/golden_tests.py --resume runs/golden-seed0

Every round, the coder answers each question N times; the arena grades each program on the question's golden tests; the
coder takes a GRPO step. No tester, no suites, no Mistake Book. Otherwise as agents/train_grpo.py: compare the two.
"""

from codea1_env.training.config.arguments import exit_status, parse_arguments


def main() -> int:
    arguments = parse_arguments(__doc__, recipe="golden")

    # Only now: these imports load torch, and a wrong argument must not wait for them.
    from codea1_env.training.engine.recipe import recipe
    from codea1_env.training.grpo.seats import coder_trainer
    from codea1_env.training.round.rounds import golden_rewards

    with recipe(arguments, trains=("coder",), measures={"coder": "coder"}, golden_tests=True) as run:
        asked = run.asked

        # The coder's round: TRL samples N programs a question, calls this, and updates on the rewards.
        pay = golden_rewards(run.arena, run.log, run.preset.evaluation.hidden_rounds)

        run.train({"coder": lambda seat, hooks: coder_trainer(seat, hooks, pay, asked)})
    print(run)
    return 0


if __name__ == "__main__":
    raise SystemExit(exit_status(main))
