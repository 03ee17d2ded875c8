"""Records the corpus by which the judge's version is kept: `PYTHONPATH=tests python -m judged.record`.

A recording that is there keeps its games and gets the verdicts of today. That is refused where they moved and
`judging/version.py` does not list the subject under a new version. A new subject is a function in SUBJECTS.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match, MatchScore
from codea1_env.judging.version import VERSION, moved
from codea1_env.problems import Problem, bundled_problems, problems_of_every_kind
from codea1_env.problems.families import FAMILIES
from codea1_env.records.recording import RecordedMatch, Recorder, read_recording, score_again
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox import LocalSandbox, Sandbox

HERE = Path(__file__).parent
VERDICTS = HERE / "verdicts.json"
"""By subject: one text a match, as `verdicts_of` makes them."""
STRICT = RewardConfig(suite_size=5, replay_limit=0)
WIDE = """\
import pytest

@pytest.mark.parametrize("case, value", [({first}, {value}), ({second}, {other})])
def test_cases(case, value):
    assert case == value

class TestMore:
    def test_one(self):
        found = {first}
        assert found == {value}
        assert found != {other}
"""


def games(problems: Sequence[Problem], suites: Callable[[Problem], tuple[str, ...]]) -> list[Match]:
    """Reference, two mutants and a program that does not load, each against the same suites."""
    found = []
    for problem in problems:
        programs = (problem.reference_solution or "", *problem.mutants[:2], f"def {problem.entry_point}(:")
        found.append(Match(problem, programs, (suites(problem),) * len(programs)))
    return found


def asserts(problem: Problem) -> tuple[str, ...]:
    """Right ones, and ones whose values are another test's or that are none."""
    tests = (*problem.golden_tests, *problem.hidden_tests)
    right = "\n".join(map(str, (*tests[:2], *tests[-3:])))
    shifted = [f"assert {one.call} == {two.expected}" for one, two in itertools.pairwise(tests[:3])]
    return right, "\n".join([*shifted, f"assert {tests[0].call}", "assert True", str(tests[-1])])


def wide_suites(problem: Problem) -> tuple[str, ...]:
    one, two = (problem.golden_tests + problem.hidden_tests)[:2]
    filled = WIDE.format(first=one.call, value=one.expected, second=two.call, other=two.expected)
    return filled, f"for each in range(2):\n    assert {one.call} == {one.expected}\n"


def of_family(name: str) -> list[Match]:
    return games(FAMILIES[name].draw("held_out", 4, 0, 0.0), asserts)


SUBJECTS: Mapping[str, tuple[RewardConfig, Callable[[], list[Match]]]] = {
    "bundled": (STRICT, lambda: games(bundled_problems()[:12], asserts)),
    "kinds": (STRICT, lambda: games(problems_of_every_kind(), asserts)),
    **{name: (STRICT, lambda name=name: of_family(name)) for name in FAMILIES},  # type: ignore[misc]
    "wide": (
        dataclasses.replace(STRICT, fidelity="wide"),
        lambda: games([p for p in bundled_problems() if len(p.golden_tests + p.hidden_tests) > 1][12:20], wide_suites),
    ),
    "paper": (dataclasses.replace(STRICT, fidelity="paper"), lambda: games(bundled_problems()[20:28], asserts)),
}


def verdicts_of(score: MatchScore) -> str:
    """Who executes; then by suite each test's status and verdict."""
    executes = ",".join(str(code.executes) for code in score.codes)
    suites = [
        ",".join(f"{test.status.value}:{test.verdict.value if test.verdict else '-'}" for test in suite.duel.tests)
        for row in score.suites
        for suite in row
    ]
    return " | ".join([executes, *suites])


def recorded(subject: str) -> list[RecordedMatch]:
    with (HERE / f"{subject}.jsonl").open("rb") as lines:
        return list(read_recording(lines))


def judged_now(matches: Sequence[RecordedMatch], sandbox: Sandbox) -> list[str]:
    return [verdicts_of(score_again(each, sandbox)) for each in matches]


def main() -> int:
    known: dict[str, list[str]] = json.loads(VERDICTS.read_text()) if VERDICTS.exists() else {}
    found: dict[str, list[str]] = {}
    with LocalSandbox(workers=1) as sandbox:
        for subject, (config, make) in SUBJECTS.items():
            file = HERE / f"{subject}.jsonl"
            then = recorded(subject) if file.exists() else []
            matches = [each.match for each in then] or make()
            scores = Arena(sandbox, config).play(matches, update_book=False)
            found[subject] = list(map(verdicts_of, scores))
            if then and found[subject] != known[subject] and not moved(then[0].judge, VERSION, subject):
                print(f"{subject}: verdicts moved; list it in judging/version.py under a new version", file=sys.stderr)
                return 1
            file.unlink(missing_ok=True)
            with Recorder(file, scores=False) as recorder:
                recorder.write(matches, scores, config)
    VERDICTS.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
