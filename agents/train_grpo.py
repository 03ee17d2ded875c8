"""Both players co-evolve: a Code LLM and a Test LLM improve against each other by GRPO, one command.

    python agents/train_grpo.py                      the mini preset: two CPU cores, minutes
    python agents/train_grpo.py --preset smoke       seconds, nothing is learnt
    python agents/train_grpo.py --engine ray         each seat in processes of its own; the same weights
    python agents/train_grpo.py --resume runs/mini-seed0

Every round, the coder answers each question N times; the tester, who sees question and program, attacks each program
with M suites; the arena runs them and pays both; the Mistake Book remembers what failed; each seat takes a GRPO step.
"""

from codea1_env.training.config.arguments import exit_status, parse_arguments


def main() -> int:
    arguments = parse_arguments(__doc__)

    # Only now: these imports load torch, and a wrong argument must not wait for them.
    from codea1_env.training.engine.recipe import recipe
    from codea1_env.training.grpo.seats import coder_trainer, tester_trainer
    from codea1_env.training.round.rounds import attacks_of

    with recipe(arguments, trains=("coder", "tester"), measures={"coder": "coder", "tester": "tester"}) as run:
        asked, meeting, fidelity = run.asked, run.meeting(), run.preset.reward.fidelity

        # The coder's round: TRL samples N programs a question, calls this, and updates on the rewards.
        def pay(round_index, problems, responses):
            programs = attacks_of(problems, responses, fidelity)
            return meeting.submit_codes(round_index, programs)  # waits until they are attacked and scored

        # The tester's round: TRL calls this, and updates on the suites that the score selects.
        def attack(turn):
            programs = turn.programs(meeting)  # waits until the coder has written them
            suites = turn.sample(programs)  # M against each
            return turn.score(meeting, programs, suites)  # in the arena: both seats are paid, the book learns

        run.train(
            {
                "coder": lambda seat, hooks: coder_trainer(seat, hooks, pay, asked),
                "tester": lambda seat, hooks: tester_trainer(seat, hooks, attack),
            }
        )
    print(run)
    return 0


if __name__ == "__main__":
    raise SystemExit(exit_status(main))
