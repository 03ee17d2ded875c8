"""Baseline: only the Code LLM learns; a tester that never changes writes the suites. The Mistake Book works.

    python baselines/frozen_tester.py                           the mini preset: two CPU cores, minutes
    python baselines/frozen_tester.py --preset smoke            seconds, nothing is learnt
    python baselines/frozen_tester.py --tester runs/mini-seed0  that run's trained tester instead of the base

The same as agents/train_grpo.py, except that the tester takes no step: `diff` the two.
"""

from codea1_env.configuration.arguments import exit_status, parse_arguments


def main() -> int:
    arguments = parse_arguments(__doc__, recipe="frozen", takes_tester=True)

    # Only now: this import loads torch, and a wrong argument must not wait for it.
    from codea1_env.training.recipe import recipe

    with recipe(arguments, trains=("coder",), measures={"coder": "coder"}) as run:
        coder, tester = run.policy("coder"), run.frozen("tester", run.tester)

        for index in run.rounds():  # goes on where a checkpoint ended
            questions = run.choose(index)

            # The coder answers each question N times.
            programs = run.read(questions, coder.sample(run.prompts.coder(questions), run.shape.programs))

            # The tester sees question and program, and attacks each program with M suites.
            shown = run.shown(index, programs)
            suites = tester.sample(run.prompts.tester(shown), run.shape.suites)

            # The arena runs every suite on its program and pays the coder; the Mistake Book remembers what failed.
            score = run.play(index, programs, [suites])

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
