"""Both players co-evolve: a Code LLM and a Test LLM improve against each other by GRPO, one command.

    python agents/train_grpo.py                      the mini preset: two CPU cores, minutes
    python agents/train_grpo.py --preset smoke       seconds, nothing is learnt
    python agents/train_grpo.py --engine ray         each seat in its own processes; the same weights
    python agents/train_grpo.py --resume runs/mini-seed0

The loop below is the whole method. What each line calls can be read in one step: `run` is in
codea1_env/training/loop.py, a policy in codea1_env/training/policies/policy.py.
"""

from codea1_env.configuration.arguments import exit_status, parse_arguments


def main() -> int:
    arguments = parse_arguments(__doc__)

    # Only now: this import loads torch, and a wrong argument must not wait for it.
    from codea1_env.training.recipe import recipe

    with recipe(arguments, trains=("coder", "tester"), measures={"coder": "coder", "tester": "tester"}) as run:
        coder, testers = run.policy("coder"), run.testers()

        for index in run.rounds():  # goes on where a checkpoint ended
            questions = run.choose(index)

            # The coder answers each question N times.
            programs = run.read(questions, coder.sample(run.prompts.coder(questions), run.shape.programs))

            # The tester sees question and program, and attacks each program with M suites.
            shown = run.shown(index, programs)
            suites = [tester.sample(run.prompts.tester(shown), run.shape.suites) for tester in testers]

            # The arena runs every suite on its program and pays both sides; the Mistake Book remembers what failed.
            score = run.play(index, programs, suites)

            # Each seat takes a GRPO step on what it earned.
            for policy, batch in zip((coder, *testers), score.batches, strict=True):
                advantages = policy.advantages(batch)  # against the group's mean: training/advantages.py
                for update in policy.updates(batch, advantages):
                    policy.backward(update)  # the clipped loss, and its gradient
                    policy.step()  # clipping, optimizer, schedule

            run.end(index)  # metrics, evaluation, checkpoint
    print(run)
    return 0


if __name__ == "__main__":
    raise SystemExit(exit_status(main))
