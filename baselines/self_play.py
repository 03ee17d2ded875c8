"""Baseline: one model in both seats. It attacks its own programs, and one GRPO step learns from both roles.

    python baselines/self_play.py                    the mini preset: two CPU cores, minutes
    python baselines/self_play.py --preset smoke     seconds, nothing is learnt
    python baselines/self_play.py --resume runs/self-play-seed0

The method's released code has none; this is the definition (docs/training.md):

1. The model answers each question N times as coder and attacks each program with M suites as tester, with the same
   weights. Rewards are those of the duel, the Mistake Book included.
2. A batch holds all programs and the suites of the selected programs. Its loss is one mean over the tokens of both
   roles: the role that writes more tokens has more of it.
3. Advantages are normalised in groups, the N programs of a question and the M suites of a program. None crosses a role.

The learning rate is the coder's; the longest response is the longer of the roles' limits. `diff` it with
agents/train_grpo.py.
"""

from codea1_env.configuration.arguments import exit_status, parse_arguments


def main() -> int:
    arguments = parse_arguments(__doc__, recipe="self-play")

    # Only now: this import loads torch, and a wrong argument must not wait for it.
    from codea1_env.training.recipe import recipe

    with recipe(arguments, trains=("player",), measures={"coder": "player", "tester": "player"}) as run:
        player = run.policy("player")

        for index in run.rounds():  # goes on where a checkpoint ended
            questions = run.choose(index)

            # The player answers each question N times.
            programs = run.read(questions, player.sample(run.prompts.coder(questions), run.shape.programs))

            # It sees question and program, and attacks each program with M suites.
            shown = run.shown(index, programs)
            suites = player.sample(run.prompts.tester(shown), run.shape.suites)

            # The arena runs every suite on its program and pays both roles; the Mistake Book remembers what failed.
            score = run.play(index, programs, [suites])

            # One GRPO step on what both roles earned.
            batch = [row for role in score.batches for row in role]
            advantages = player.advantages(batch)  # against the group's mean: training/advantages.py
            for update in player.updates(batch, advantages):
                player.backward(update)  # the clipped loss, and its gradient
                player.step()  # clipping, optimizer, schedule

            run.end(index)  # metrics, evaluation, checkpoint
    print(run)
    return 0


if __name__ == "__main__":
    raise SystemExit(exit_status(main))
