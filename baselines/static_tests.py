"""Baseline: static supervision. A tester writes suites once; they become the golden tests of a fresh Code LLM.

    python baselines/static_tests.py --tester runs/mini-seed0   that run's trained tester writes; else the base
    python baselines/static_tests.py --preset smoke             seconds, nothing is learnt
    python baselines/static_tests.py --resume runs/static-seed0

Once, for every problem, the tester writes M suites against programs of the base coder; the tests that count become the
problem's golden tests, with the reference's values. Then as baselines/golden_tests.py: `diff` the two.
"""

from codea1_env.configuration.arguments import exit_status, parse_arguments


def main() -> int:
    arguments = parse_arguments(__doc__, recipe="static", takes_tester=True)

    # Only now: these imports load torch, and a wrong argument must not wait for them.
    from codea1_env.training.recipe import recipe
    from codea1_env.training.round.written_tests import as_golden_tests

    with recipe(arguments, trains=("coder",), measures={"coder": "coder"}) as run:
        coder = run.policy("coder")
        tested = as_golden_tests(run.written(run.problems), run.problems, run.directory / "coder")

        for index in run.rounds():  # goes on where a checkpoint ended
            questions = [tested[problem.problem_id] for problem in run.choose(index)]

            # The coder answers each question N times.
            programs = run.read(questions, coder.sample(run.prompts.coder(questions), run.shape.programs))

            # The arena runs the tests that the tester wrote on every program.
            score = run.grade(index, programs)

            # The coder takes a GRPO step on what it earned.
            batch = score.batches[0]
            advantages = coder.advantages(batch)  # against the group's mean: training/advantages.py
            for update in coder.updates(batch, advantages):
                coder.backward(update)  # the clipped loss, and its gradient
                coder.step()  # clipping, optimizer, schedule

            run.end(index)  # metrics, evaluation, checkpoint
    print(run)
    return 0


if __name__ == "__main__":
    raise SystemExit(exit_status(main))
