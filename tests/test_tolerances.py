"""What values may be off by: one object, read from numbers and by types, from a problem or a run, to verdicts."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

import codea1_env
from codea1_env import (
    Arena,
    ConfigurationError,
    LocalSandbox,
    Match,
    Problem,
    ProblemFormatError,
    RewardConfig,
    TestCase,
)
from codea1_env.cli import main
from codea1_env.judging.checking import compares
from codea1_env.judging.equality import same_output, same_value
from codea1_env.problems.tolerances import EXACT, Tolerance, Tolerances, within
from codea1_env.records.recording import Recorder, read_recording, replay

ABSOLUTE: dict[str, Any] = {"float": {"absolute": 1e-3}}
RELATIVE: dict[str, Any] = {"float": {"relative": 1e-3}}
PROBLEM = Problem("p", "2 x", "f", "def f(x):\n    return 2.0 * x\n")
CODES = tuple(f"def f(x):\n    return 2.0 * x {off}\n" for off in ("", "+ 5e-4", "* 1.0005"))
SUITE = "assert f(1000) == 2000.0\nassert f(0.001) == 0.002"


OPENED: list[LocalSandbox] = []


@pytest.fixture(scope="module", autouse=True)
def _opened(sandbox: LocalSandbox) -> None:
    """`verdicts` has one sandbox."""
    OPENED[:] = [sandbox]


def verdicts(problem: Problem, config: RewardConfig | None = None, **arguments: Any) -> list[list[str]]:
    """Of each program on `f(1000)` and `f(0.001)`: off by 5e-4, and off by a share of 5e-4."""
    (score,) = Arena(OPENED[0], config, **arguments).play([Match(problem, CODES, ((SUITE,),) * 3)])
    return [[str(test.verdict) for test in row[0].duel.tests] for row in score.suites]


P, F = "pass", "fail"
BY_TYPE = [
    (0, [[P, P], [F, F], [F, F]]),
    (ABSOLUTE, [[P, P], [P, P], [F, P]]),
    (RELATIVE, [[P, P], [P, F], [P, P]]),
    (1e-3, [[P, P], [P, P], [P, P]]),
    ({"float": {"absolute": 1e-3, "relative": 1e-3}}, [[P, P], [P, P], [P, P]]),
    ({"float": 1e-3}, [[P, P], [P, P], [P, P]]),
]


@pytest.mark.parametrize(("allowed", "expected"), BY_TYPE)
def test_relative_and_absolute_decide_by_themselves_wherever_they_are_said(allowed: Any, expected: list[Any]) -> None:
    line = json.loads(PROBLEM.to_json())
    problem = Problem.from_dict(line | {"compare": allowed})
    assert problem.tolerances == Tolerances.of(allowed)
    assert verdicts(problem) == expected
    assert verdicts(PROBLEM, RewardConfig(compare=allowed)) == expected
    assert verdicts(PROBLEM, tolerance=allowed) == expected
    if not isinstance(allowed, dict):
        assert verdicts(dataclasses.replace(PROBLEM, tolerance=allowed)) == expected


def test_what_any_of_them_allows_is_right() -> None:
    problem = dataclasses.replace(PROBLEM, compare=ABSOLUTE)
    assert verdicts(problem, RewardConfig(compare=RELATIVE)) == BY_TYPE[3][1]
    assert verdicts(problem, tolerance=RELATIVE) == BY_TYPE[3][1]
    assert verdicts(problem, RewardConfig(compare=within(1e-9))) == BY_TYPE[1][1]


def test_a_match_is_recorded_with_what_counted_and_replayed_alike() -> None:
    problem = dataclasses.replace(PROBLEM, compare=ABSOLUTE)
    with Recorder("games.jsonl") as recorder:
        verdicts(problem, tolerance=RELATIVE, on_score=recorder.write)
        verdicts(problem, RewardConfig(compare=RELATIVE), on_score=recorder.write)
        verdicts(problem, on_score=recorder.write)
    recorded = list(read_recording(Path("games.jsonl").read_bytes().splitlines()))
    assert [each.match.problem.tolerances for each in recorded] == [within(1e-3), within(1e-3), Tolerances.of(ABSOLUTE)]
    assert [each.config.compare for each in recorded] == [EXACT, Tolerances.of(RELATIVE), EXACT]
    with LocalSandbox() as sandbox:
        assert all(each.is_same for each in replay(recorded, sandbox))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_command_reads_it_from_a_line_and_from_an_option() -> None:
    line = {"problem_id": "p", "question": "?", "entry_point": "f", "reference_solution": PROBLEM.reference_solution,
            "codes": CODES, "suites": [[SUITE]] * 3}  # fmt: skip
    Path("in.jsonl").write_text("".join(json.dumps(line | more) + "\n" for more in ({}, {"compare": ABSOLUTE})))

    def rewards(*options: str) -> list[list[float]]:
        assert main(["score", "in.jsonl", "-o", "out.jsonl", *options]) == 0
        return [
            [code["reward"] for code in json.loads(row)["codes"]] for row in Path("out.jsonl").read_text().splitlines()
        ]

    assert rewards() == [[1.0, 0.0, 0.0], [1.0, 1.0, 0.5]]
    assert rewards("--compare", json.dumps(RELATIVE)) == [[1.0, 0.5, 1.0], [1.0, 1.0, 1.0]]
    assert rewards("--compare", "1e-3") == [[1.0] * 3] * 2
    for wrong in ("1", "-1", "null", "[1]", "much", '{"int": 1}', '{"float": {"near": 1}}', "NaN"):
        assert main(["score", "in.jsonl", "-o", "out.jsonl", "--compare", wrong]) == 2


def test_an_environment_and_a_preset_take_it() -> None:
    config = RewardConfig(compare=ABSOLUTE)  # type: ignore[arg-type]  # as files have it
    game = codea1_env.parallel_env([PROBLEM], rewards=config)
    game.reset(seed=0)
    game.step({"coder_0": CODES[1], "tester_0": ""})
    _, rewards, *_ = game.step({"coder_0": "", "tester_0": SUITE})
    game.close()
    assert rewards["coder_0"] == 1.0
    from codea1_env.configuration.presets import SMOKE, preset_from_dict

    for given_, read in ((ABSOLUTE, Tolerances.of(ABSOLUTE)), (1e-6, within(1e-6))):
        preset = preset_from_dict({"reward": {"compare": given_}}, SMOKE)
        assert preset.reward.compare == read
        assert preset_from_dict(json.loads(json.dumps(preset.to_dict())), SMOKE) == preset
    with pytest.raises(ConfigurationError, match="reward: compare must be in"):
        preset_from_dict({"reward": {"compare": "1e-6"}}, SMOKE)


def test_problems_as_they_were_have_the_text_and_the_hash_that_they_had() -> None:
    near = Problem("p", "q", "f", tolerance=1e-6)
    assert near.content_hash == "152f12eca31616b5f6f88565877724e53e184d8627cfaa2638587bf229c75cd9"
    assert Problem("p", "q", "f").content_hash == "ce45834027abc2b7e2f6fad6c05fff626ad387d7f0d214f52639662a9faa216d"
    assert near == Problem.from_dict({**json.loads(near.to_json())}) == Problem("p", "q", "f", compare=1e-6)  # type: ignore[arg-type]
    for allowed in (ABSOLUTE, RELATIVE, {"float": {"absolute": 0.1, "relative": 0.2}}):
        problem = Problem("p", "q", "f", compare=Tolerances.of(allowed))
        assert Problem.from_json(problem.to_json()) == problem != near
        assert hash(problem) == hash(Problem.from_json(problem.to_json()))


WRONG = [
    *(1, -1e-9, True, "1e-6", math.nan, math.inf, [], [1e-6]),
    *({"float": None}, {"float": 1}, {"int": 0.1}, {1: 0.1}, {"float": [0.1]}),
    *({"float": {"relative": 1}}, {"float": {"absolute": "0"}}, {"float": {"abs": 0.1}}),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_none_is_refused_with_what_it_must_be(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"\Acompare(\.float)?(\.\w+)? must be .*, got "):
        RewardConfig(compare=wrong)
    with pytest.raises(ConfigurationError, match=r"\Atolerance(\.float)?(\.\w+)? must be .*, got "):
        Arena(LocalSandbox(), tolerance=wrong)
    with pytest.raises(ProblemFormatError, match=r"\Acompare(\.float)?(\.\w+)? must be .*, got "):
        Problem("p", "q", "f", compare=wrong)
    if isinstance(wrong, float | int):
        with pytest.raises(ConfigurationError, match=r"relative must be in \[0, 1\)"):
            Tolerance(wrong)


def test_a_problem_says_it_once() -> None:
    with pytest.raises(ProblemFormatError, match="tolerance must be left out beside compare"):
        Problem("p", "q", "f", tolerance=1e-6, compare=Tolerances.of(ABSOLUTE))


@given(st.floats(), st.floats(), st.floats(0, 0.99), st.floats(0, 0.99))
def test_two_floats_are_near_as_math_says(left: float, right: float, relative: float, absolute: float) -> None:
    allowed = Tolerances(Tolerance(relative, absolute))
    texts = [json.dumps(each) if math.isfinite(each) else json.dumps({"f": str(each)}) for each in (left, right)]
    values = [text.encode() for text in texts]
    near = math.isclose(left, right, rel_tol=relative, abs_tol=absolute) or (left != left and right != right)
    assert same_value(*values, allowed) is near
    assert same_value(*[b'{"t":[[%b]]}' % value for value in values], allowed) is near


@pytest.mark.parametrize(
    ("allowed", "small", "large"),
    [(EXACT, F, F), (Tolerances.of(ABSOLUTE), P, F), (Tolerances.of(RELATIVE), F, P), (within(1e-3), P, P)],
)
def test_every_comparison_goes_by_it(allowed: Tolerances, small: str, large: str) -> None:
    for right, got, expected in (("0.002", "0.0025", small), ("2000.5", "2001.5", large)):
        pairs = [(f"[{right}, 7.5]", f"[7.5, {got}]", "unordered"), (f'[{right}, "x"]', f'["x", {got}]', "unordered"),
                 (f"[{right}, 7.5]", got, "any-of")]  # fmt: skip
        for one, other, checker in pairs:
            assert compares(checker, one.encode(), other.encode(), allowed) is (expected == P)
        printed = [json.dumps(f"n {each}\n").encode() for each in (right, got)]
        assert same_output(*printed, allowed) is (expected == P)
        assert not same_value(b'{"s":[%b]}' % right.encode(), b'{"s":[%b]}' % got.encode(), allowed)


def test_a_relation_and_a_stated_value_go_by_it() -> None:
    suite = "def test():\n    for x in [1000]:\n        assert f(x) in [2000.5, 1.0]\n\nassert f(0.001) == 0.0025"
    for allowed, statuses in ((ABSOLUTE, ["wrong_relation", "kept"]), (RELATIVE, ["kept", "wrong_expected"])):
        with Arena(LocalSandbox(), RewardConfig(fidelity="wide", compare=allowed)) as arena:
            (score,) = arena.play([Match(PROBLEM, CODES[:1], ((suite,),))])
        assert [str(test.status) for test in score.suites[0][0].duel.tests] == statuses


def test_fixed_tests_are_graded_by_it() -> None:
    with Arena(LocalSandbox(), RewardConfig(compare=ABSOLUTE)) as arena:  # type: ignore[arg-type]
        grades = arena.grade(PROBLEM, CODES, [TestCase("f(1000)", "2000.0"), TestCase("f(0.001)", "0.002")])
    assert [grade.share for grade in grades] == [1.0, 1.0, 0.5]
