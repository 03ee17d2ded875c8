"""Baseline: static supervision. A tester writes suites once; they become the golden tests of a fresh Code LLM.

    python baselines/static_tests.py --tester runs/mini-seed0   that run's trained tester writes; else the base
    python baselines/static_tests.py --preset smoke             seconds, nothing is learnt
    python baselines/static_tests.py --resume runs/static-seed0

Once, for every problem, the tester writes M suites against programs of the base coder; the tests that count become the
problem's golden tests, with the reference's values. Then as baselines/golden_tests.py: compare the two.
"""

from codea1_env.training.config.arguments import exit_status, parse_arguments


def main() -> int:
    arguments = parse_arguments(__doc__, recipe="static", takes_tester=True)

    # Only now: these imports load torch, and a wrong argument must not wait for them.
    from codea1_env.training.baselines.written_tests import written_golden_tests
    from codea1_env.training.engine.recipe import recipe
    from codea1_env.training.grpo.seats import coder_trainer
    from codea1_env.training.round.rounds import golden_rewards

    with recipe(arguments, trains=("coder",), measures={"coder": "coder"}) as run:
        asked, arena, tester, problems = run.asked, run.arena, run.tester, run.problems

        # The coder's round: TRL samples N programs a question, calls this, and updates on the rewards.
        pay = golden_rewards(arena, run.log, run.preset.evaluation.hidden_rounds)

        # Before the first round, the tester writes the tests that are passed or failed in all of them.
        def coder(seat, hooks):
            written = {problem.problem_id: problem for problem in written_golden_tests(seat, arena, tester, problems)}
            return coder_trainer(seat, hooks, pay, [written[problem.problem_id] for problem in asked])

        run.train({"coder": coder})
    print(run)
    return 0


if __name__ == "__main__":
    raise SystemExit(exit_status(main))
