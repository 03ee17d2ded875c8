"""Baseline: the Test LLM by supervised learning on suites that the arena validated; no reinforcement, no opponent.

    python baselines/sft.py                 the mini preset: two CPU cores, minutes
    python baselines/sft.py --preset smoke  seconds, nothing is learnt
    python baselines/sft.py --resume runs/sft-seed0

Once, the base tester writes M suites against programs of the base coder, for the questions of all rounds; the arena
keeps the tests that count, with the reference's values. Then every round is a supervised step on as many suites as the
tester of agents/train_grpo.py learns from.
"""

from codea1_env.configuration.arguments import exit_status, parse_arguments


def main() -> int:
    arguments = parse_arguments(__doc__, recipe="sft")

    # Only now: these imports load torch, and a wrong argument must not wait for them.
    from codea1_env.training.advantages import equal_advantages
    from codea1_env.training.losses import likelihood
    from codea1_env.training.recipe import recipe
    from codea1_env.training.round.written_tests import Demonstrations

    with recipe(arguments, trains=("tester",), measures={"coder": None, "tester": "tester"}) as run:
        tester = run.policy("tester", beta=0.0)  # there is no divergence from the base in the loss

        # The suites are written and validated before the first round; a resumed run writes the same ones.
        suites = Demonstrations(run.written(run.all_chosen()), run.prompts, run.directory / "tester")
        count = run.shape.questions * run.shape.attacked * run.shape.suites

        for index in run.rounds():  # goes on where a checkpoint ended
            batch = suites.batch(index, count)

            # The tester takes a supervised step on them.
            for update in tester.updates(batch, equal_advantages(batch)):
                tester.backward(update, likelihood)  # the negative log-likelihood, and its gradient
                tester.step()  # clipping, optimizer, schedule

            run.end(index, {"kept_suites": suites.share})  # metrics, evaluation, checkpoint
    print(run)
    return 0


if __name__ == "__main__":
    raise SystemExit(exit_status(main))
