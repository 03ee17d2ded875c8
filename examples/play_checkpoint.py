"""Load a trained mini checkpoint and let it play one duel against itself: its coder answers, its tester attacks.

python examples/play_checkpoint.py runs/mini-seed0
"""

import sys
from pathlib import Path

from codea1_env.extras import for_script

with for_script("train"):
    from codea1_env.arena.arena import Arena
    from codea1_env.arena.match import Match
    from codea1_env.configuration.arguments import exit_status, read_configuration
    from codea1_env.players.player import CoderRequest, TesterRequest
    from codea1_env.problems.families.miniature import miniature_problems
    from codea1_env.records.addresses import CONFIG_FILE
    from codea1_env.rewards.code_a1 import RewardConfig
    from codea1_env.sandbox import open_sandbox
    from codea1_env.training.models.sampling import as_trained, load_model


def main(run: Path) -> int:
    preset, _ = read_configuration(run / CONFIG_FILE)
    problem = miniature_problems("held_out", 1, seed=7)[0]
    print(problem.question, "\n")

    coder = load_model(run / "coder/final", preset).sampler(as_trained(preset, "coder", seed=0))
    program = coder.coder([CoderRequest(problem)], samples=1)[0][0]
    print(program, "\n")

    tester = load_model(run / "tester/final", preset).sampler(as_trained(preset, "tester", seed=0))
    suite = tester.tester([TesterRequest(problem, program)], samples=1)[0][0]

    with open_sandbox() as sandbox:
        arena = Arena(sandbox, RewardConfig(suite_size=preset.reward.suite_size))
        score = arena.play([Match(problem, (program,), ((suite,),))])[0]
        grade = arena.grade(problem, [program], problem.hidden_tests)[0]

    for test in score.suites[0][0].duel.tests:
        verdict = test.verdict.value if test.verdict else "not run"
        print(f"{test.source:50} {test.status.value:15} {verdict}")
    print(f"\ncoder's reward {score.codes[0].reward:.2f}, tester's reward {score.suites[0][0].reward:.2f}")
    print(f"hidden tests passed: {grade.share:.0%}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python examples/play_checkpoint.py RUN, the directory that a trainer wrote")
    raise SystemExit(exit_status(lambda: main(Path(sys.argv[1]))))
