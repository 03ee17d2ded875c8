"""What a user's own typed code does with the package; read by mypy --strict against the installed wheel, never run."""

from typing import assert_type

import codea1_env
from codea1_env import Arena, LocalSandbox, Match, MatchScore, MistakeBook, Problem, RewardConfig, TestCase, discrete
from codea1_env.players import CoderRequest, OracleCoder, Player
from codea1_env.problems.problem import Problem as SameProblem

problem = Problem("q", "Add.", "add", "def add(a, b):\n    return a + b\n", (TestCase("add(1, 2)", "3"),))
assert_type(problem, SameProblem)
assert_type(codea1_env.__version__, str)
assert_type(codea1_env.read_suite("assert add(1, 2) == 3", "add").ignored, int)


def play(player: Player) -> list[float | None]:
    code = player.respond([CoderRequest(problem)])[0][0].text
    with Arena(LocalSandbox(workers=1), RewardConfig(alpha=0.25), MistakeBook()) as arena:
        scores = arena.play([Match(problem, (code,), (("assert add(1, 2) == 3",),))])
    assert_type(scores, list[MatchScore])
    return [code.reward for code in scores[0].codes]


assert_type(play(OracleCoder()), list[float | None])
assert_type(discrete.bundled_pools(), tuple[discrete.Pool, ...])
problem.question = "Subtract."  # type: ignore[misc]
RewardConfig(alpha="much")  # type: ignore[arg-type]
