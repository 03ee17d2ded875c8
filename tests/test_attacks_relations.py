"""The corpus of hostile suites, read wide, through the arena and every sandbox: nothing crashes, hangs or is paid."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from attacks.backends import BACKENDS, opened
from attacks.hostile_relations import ALWAYS_TRUE, BUT_ONE, LONG, MILLION_ROWS, REACHING, SHADOWED, UNREAD

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match, SuiteScore
from codea1_env.problems.problem import Problem
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Status
from codea1_env.sandbox import Sandbox

IDENTITY = Problem(
    "identity", "Return x.", "solve", reference_solution="def solve(x):\n    return x\n", time_limit_s=0.3
)
RAISES = "def solve(x):\n    raise ValueError\n"
ADDS = "def solve(x):\n    return x + 1\n"
HONEST = "assert solve([77]) == [77]"
INVALID = {Status.REJECTED, Status.VACUOUS, Status.WRONG_RELATION, Status.RAISES}


@pytest.fixture(scope="module", params=BACKENDS)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    yield from opened(request.param, request)


@pytest.fixture(scope="module")
def arena(sandbox: Sandbox) -> Arena:
    return Arena(sandbox, RewardConfig(fidelity="wide"))


def play(arena: Arena, suite: str, *programs: str) -> list[SuiteScore]:
    (score,) = arena.play([Match(IDENTITY, programs, ((suite,),) * len(programs))], update_book=False)
    return [row[0] for row in score.suites]


def require_worthless(arena: Arena, hostile: str) -> None:
    """No test of it is valid, whatever the program does, and an honest test beside it is what it is without it."""
    (alone,) = play(arena, hostile, RAISES)
    assert {test.status for test in alone.duel.tests} <= INVALID
    assert {test.verdict for test in alone.duel.tests} <= {None}
    assert alone.reward == 0
    first, second = play(arena, f"{HONEST}\n\n{hostile}", RAISES, ADDS)
    for score in (first, second):
        assert [test.status for test in score.duel.tests if test.verdict is not None] == [Status.KEPT]
        assert score.terms is not None
        assert score.terms.f_new == 1 / 8


@pytest.mark.parametrize("hostile", ALWAYS_TRUE)
def test_what_is_always_true_is_vacuous(arena: Arena, hostile: str) -> None:
    require_worthless(arena, hostile)
    (score,) = play(arena, hostile, RAISES)
    assert [test.status for test in score.duel.tests] == [Status.VACUOUS]


@pytest.mark.parametrize("hostile", BUT_ONE)
@pytest.mark.parametrize("number", [0, 1, 7, -3, 10**20])
def test_what_names_one_wrong_answer_is_vacuous(arena: Arena, hostile: str, number: int) -> None:
    (score,) = play(arena, hostile.replace("{}", f"({number})"), ADDS)
    assert [test.status for test in score.duel.tests] == [Status.VACUOUS]
    assert score.reward == 0


@pytest.mark.parametrize("hostile", LONG, ids=lambda hostile: hostile[:60])
def test_what_would_take_hours_is_worthless_in_seconds(arena: Arena, hostile: str) -> None:
    began = time.monotonic()
    require_worthless(arena, hostile)
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("hostile", REACHING)
def test_what_looks_for_more_than_data_makes_no_test(arena: Arena, hostile: str) -> None:
    require_worthless(arena, hostile)


@pytest.mark.parametrize("hostile", SHADOWED)
def test_a_name_with_another_meaning_makes_no_test(arena: Arena, hostile: str) -> None:
    require_worthless(arena, hostile)


@pytest.mark.parametrize("hostile", UNREAD)
def test_what_may_never_run_is_no_test(arena: Arena, hostile: str) -> None:
    require_worthless(arena, hostile)


def test_a_loop_of_a_million_rows_is_its_first_k_tests(arena: Arena) -> None:
    (score,) = play(arena, MILLION_ROWS, "def solve(x):\n    return x\n")
    statuses = [test.status for test in score.duel.tests]
    assert len(statuses) == 64
    assert set(statuses[8:]) == {Status.SURPLUS}
    assert dict(score.duel.ignored) == {"rows": 1}


def test_of_tables_upon_tables_the_first_k_tests_are_judged(arena: Arena) -> None:
    """64 ** 9 rows in all."""
    tables = "\n".join(f"@pytest.mark.parametrize('x{n}', {list(range(64))})" for n in range(9))
    suite = f"{tables}\ndef test_it({', '.join(f'x{n}' for n in range(9))}):\n    assert solve(x0) == x0\n"
    (score,) = play(arena, suite, "def solve(x):\n    return x\n")
    assert [test.status for test in score.duel.tests[:9]] == [Status.KEPT] * 8 + [Status.SURPLUS]


def test_values_that_nest_deeply_are_related_in_seconds(arena: Arena) -> None:
    deep = "[" * 40 + "1" + "]" * 40
    began = time.monotonic()
    (score,) = play(arena, f"assert sorted(solve([{deep}, {deep}])) != [1]", RAISES)
    assert [test.status for test in score.duel.tests] == [Status.VACUOUS]
    assert time.monotonic() - began < 60


def test_the_corpus_is_broad() -> None:
    tables = (ALWAYS_TRUE, BUT_ONE, LONG, SHADOWED, UNREAD)
    assert sum(map(len, tables)) == len({hostile for rows in tables for hostile in rows}) >= 80


WRITES = """
from pathlib import Path
def solve(x):
    for name in "ab":
        Path(name + ".txt").write_text("3")
"""
LISTS_WHAT_IT_LIKES = """
import sys
class Name:
    def __radd__(self, folder):
        return {}
def solve(x):
    frame = sys._getframe()
    while frame:
        if "_walk" in frame.f_globals:
            frame.f_globals["_walk"] = lambda *_: [(".", [Name()], [])]
        frame = frame.f_back
"""


@pytest.mark.parametrize("name", ["1", "None", "1.5", "b'a.txt'", "(1, 2)", "'\\ud800'", "object()", "'a.txt'"])
def test_a_directory_that_a_program_makes_up_is_no_answer_and_ends_no_run(arena: Arena, name: str) -> None:
    suite = "import os\n" + "\n".join(
        f"def test_{place}():\n    solve({place})\n    assert {claim}"
        for place, claim in enumerate(
            (
                "sorted(os.listdir('.')) == ['a.txt', 'b.txt']",
                "open('a.txt').read() == '3'",
                "os.path.getsize('a.txt') == 1",
                "os.path.isfile('a.txt')",
            )
        )
    )
    writes = Problem("writes", "Write it.", "solve", reference_solution=WRITES, time_limit_s=0.3)
    programs = (LISTS_WHAT_IT_LIKES.format(name), WRITES)
    (score,) = arena.play([Match(writes, programs, ((suite,),) * 2)], update_book=False)
    rows = [[str(test.verdict) for test in row[0].duel.tests] for row in score.suites]
    assert not {"pass", "None"} & {*rows[0]}
    assert rows[1] == ["pass"] * 4
