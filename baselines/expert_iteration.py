"""Baseline: expert iteration. The Code LLM keeps its programs that pass all golden tests, and is fine-tuned on them.

    python baselines/expert_iteration.py                 the mini preset: two CPU cores, minutes
    python baselines/expert_iteration.py --preset smoke  seconds, nothing is learnt
    python baselines/expert_iteration.py --resume runs/expert-seed0

Every round, the coder answers each question N times; the arena runs the question's golden tests; the coder takes a
supervised step on the programs that pass all of them (ReST-EM, arXiv 2312.06585, with a step for each batch). As
baselines/golden_tests.py, but for what is learnt: `diff` the two.
"""

import dataclasses

from codea1_env.configuration.arguments import exit_status, parse_arguments


def main() -> int:
    arguments = parse_arguments(__doc__, recipe="expert")

    # Only now: these imports load torch, and a wrong argument must not wait for them.
    from codea1_env.training.advantages import equal_advantages
    from codea1_env.training.losses import likelihood
    from codea1_env.training.recipe import recipe

    with recipe(arguments, trains=("coder",), measures={"coder": "coder"}) as run:
        coder = run.policy("coder", beta=0.0)  # there is no divergence from the base in the loss

        for index in run.rounds():  # goes on where a checkpoint ended
            questions = run.choose(index)

            # The coder answers each question N times.
            programs = run.read(questions, coder.sample(run.prompts.coder(questions), run.shape.programs))

            # The arena runs the question's golden tests on every program; those that pass all of them are kept.
            score = run.grade(index, programs)
            batch = [dataclasses.replace(row, learns=row.reward == 1.0) for row in score.batches[0]]

            # The coder takes a supervised step on them; where there is none, it stays as it is.
            for update in coder.updates(batch, equal_advantages(batch)):
                coder.backward(update, likelihood)  # the negative log-likelihood, and its gradient
                coder.step()  # clipping, optimizer, schedule

            run.end(index)  # metrics, evaluation, checkpoint
    print(run)
    return 0


if __name__ == "__main__":
    raise SystemExit(exit_status(main))
