"""Baseline: the Code LLM alone, rewarded by the share of each question's golden tests that it passes.

    python baselines/golden_tests.py                 the mini preset: two CPU cores, minutes
    python baselines/golden_tests.py --preset smoke  seconds, nothing is learnt
    python baselines/golden_tests.py --resume runs/golden-seed0

As agents/train_grpo.py without tester, suites and Mistake Book: `diff` the two.
"""

from codea1_env.configuration.arguments import exit_status, parse_arguments


def main() -> int:
    arguments = parse_arguments(__doc__, recipe="golden")

    # Only now: this import loads torch, and a wrong argument must not wait for it.
    from codea1_env.training.recipe import recipe

    with recipe(arguments, trains=("coder",), measures={"coder": "coder"}) as run:
        coder = run.policy("coder")

        for index in run.rounds():  # goes on where a checkpoint ended
            questions = run.choose(index)

            # The coder answers each question N times.
            programs = run.read(questions, coder.sample(run.prompts.coder(questions), run.shape.programs))

            # The arena runs the question's golden tests on every program.
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
