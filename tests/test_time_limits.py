"""A time limit in multiples of the reference's time: found out from the problem alone, before any candidate runs."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codea1_env import (
    Arena,
    ConfigurationError,
    LocalSandbox,
    Match,
    Problem,
    ProblemFormatError,
    RewardConfig,
    TestCase as Case,
)
from codea1_env.cli import main
from codea1_env.discrete.build import pools_of_problems
from codea1_env.envs.arguments import checked_problems
from codea1_env.errors import UnusableReference
from codea1_env.evaluation.evaluate import EvaluationPlan, evaluate, journal_header
from codea1_env.evaluation.journal import EvaluationJournal
from codea1_env.evaluation.search_tester import SearchTester
from codea1_env.judging import oracle
from codea1_env.judging.judge import Judge, Trial
from codea1_env.judging.problems.usability import check_problems
from codea1_env.players import OracleCoder
from codea1_env.players.player import TesterRequest
from codea1_env.problems.jsonl import read_problems, write_problems
from codea1_env.problems.time_limits import TimeLimit
from codea1_env.records.recording import Recorder, keep_leading, read_recording, replay
from codea1_env.sandbox.protocol import CallsJob, Job, JobResult

REFERENCE = "def f(x):\n    return x + 1\n"
RULE: dict[str, Any] = {"times_reference": 5, "at_least": 1}
PROBLEM = Problem(
    "p",
    "f(x): x + 1",
    "f",
    REFERENCE,
    golden_tests=(Case("f(0)", "1"), Case("f(9)", "10")),
    hidden_tests=(Case("f(5)", "6"),),
)
CODES = (REFERENCE, "def f(x):\n    return 0\n")
SUITE = "assert f(1) == 2"


def ruled(problem_id: str = "p", **rule: Any) -> Problem:
    return dataclasses.replace(PROBLEM, problem_id=problem_id, time_limit=rule or RULE)


def spinning(seconds: float) -> str:
    """A right program that takes that much CPU time for a call."""
    loop = f"    end = time.process_time() + {seconds}\n    while time.process_time() < end:\n        pass\n"
    return f"import time\ndef f(x):\n{loop}    return x + 1\n"


def match(problem: Problem, codes: tuple[str, ...] = CODES) -> Match:
    return Match(problem, codes, ((SUITE,),) * len(codes))


OPENED: list[LocalSandbox] = []


@pytest.fixture(scope="module", autouse=True)
def _opened(sandbox: LocalSandbox) -> None:
    """Whose clock is another's: one for all."""
    OPENED[:] = [sandbox]


class Clocked(contextlib.AbstractContextManager[Any]):
    """A sandbox in which references that are measured take a given time: `seconds` by place of the call."""

    def __init__(self, *seconds: float) -> None:
        self.version, self.seconds = OPENED[0].version, seconds
        self.batches: list[list[CallsJob]] = []

    def close(self) -> None:
        """It stays open for the next."""

    def __exit__(self, *ended: object) -> None:
        self.close()

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        results = OPENED[0].run(jobs)
        self.batches.append([job for job in jobs if isinstance(job, CallsJob)])
        return [
            dataclasses.replace(result, outcomes=tuple(
                dataclasses.replace(outcome, cpu_ns=round(seconds * 1e9))
                for outcome, seconds in zip(result.outcomes, self.seconds, strict=True)
            ))
            if is_measured(job) else result
            for job, result in zip(jobs, results, strict=True)
        ]  # fmt: skip

    @property
    def measured(self) -> list[CallsJob]:
        return [job for batch in self.batches for job in batch if is_measured(job)]

    @property
    def limits(self) -> set[float]:
        """Of everything else that ran."""
        return {job.limits.time_limit_s for batch in self.batches for job in batch if not is_measured(job)}


def is_measured(job: Job) -> bool:
    return isinstance(job, CallsJob) and job.limits.time_limit_s == oracle.MOST_S


@pytest.mark.parametrize(
    ("rule", "seconds", "limit"),
    [
        (RULE, (0.1, 0.3, 0.4), 2.0),  # the slowest counts, hidden tests' too
        (RULE, (0.4, 0.3, 0.1), 2.0),
        (RULE, (0.1, 0.1, 0.1), 1.0),
        ({"times_reference": 2}, (0.4, 0.1, 0.1), 1.0),  # at_least: 1 s
        ({"times_reference": 1.5, "at_least": 0.25}, (0.1, 0.5, 0.5), 0.75),
        ({"times_reference": 1000}, (30, 1, 1), 3600.0),
    ],
)
def test_the_limit_is_that_of_the_rule_for_who_ever_runs(rule: Any, seconds: Any, limit: float) -> None:
    for problem, config in ((ruled(**rule), RewardConfig()), (PROBLEM, RewardConfig(time_limit=rule))):
        sandbox = Clocked(*seconds)
        with Arena(sandbox, config) as arena:
            (score,) = arena.play([match(problem)])
            assert sandbox.limits == {limit}
            assert [code.reward for code in score.codes] == [1.0, 0.0]
            assert [grade.all_passed for grade in arena.grade(problem, CODES, problem.hidden_tests)] == [True, False]
            assert sandbox.limits == {limit}
            assert len(sandbox.measured) == 1, "it is remembered"


def test_it_is_found_out_before_any_candidate_runs_and_whatever_they_are() -> None:
    """Once for each problem of a batch, on its own tests; the calls of suites and programs are not in it."""
    measured = ruled(times_reference=5, at_least=0.1)
    other = dataclasses.replace(measured, problem_id="q", golden_tests=(Case("f(7)", "8"), *PROBLEM.golden_tests))
    other = dataclasses.replace(other, hidden_tests=())
    asked = []
    for codes in (CODES, ("def f(x):\n    while True: pass\n", "import os\nos._exit(0)", "(")):
        sandbox = Clocked(0.01, 0.02, 0.03)
        with Arena(sandbox) as arena:
            brief = dataclasses.replace(PROBLEM, time_limit_s=0.1)
            arena.play([match(measured, codes), match(other, codes), match(brief, codes)])
            arena.play([match(measured, CODES[1:])])
        ran = [batch for batch in sandbox.batches if batch]
        assert [is_measured(job) for job in ran[0]] == [True, True]
        assert sandbox.measured == ran[0]
        assert {job.source for job in ran[0]} == {ran[0][0].source}
        assert [len(job.calls) for job in ran[0]] == [3, 3]
        asked.append(ran[0])
    assert asked[0] == asked[1]


def test_a_problem_that_says_its_own_limit_has_it() -> None:
    config = RewardConfig(time_limit=TimeLimit(5))
    sandbox = Clocked(0.1, 0.1, 0.4)
    with Arena(sandbox, config) as arena:
        arena.play([match(dataclasses.replace(PROBLEM, time_limit_s=4.0))])
        assert (sandbox.limits, sandbox.measured) == ({4.0}, [])
        arena.play([match(ruled("own", times_reference=10))])
        assert sandbox.limits == {4.0}
        assert len(sandbox.measured) == 1


def test_a_real_reference_that_is_slow_has_the_time_that_it_takes() -> None:
    slow = spinning(0.15)
    problem = dataclasses.replace(ruled(times_reference=5, at_least=0.01), reference_solution=slow)
    with Arena(LocalSandbox()) as arena:
        (score,) = arena.play([match(problem, (slow, *CODES))])
        assert [code.reward for code in score.codes] == [1.0, 1.0, 0.0]
        (score,) = arena.play([match(dataclasses.replace(ruled(times_reference=1, at_least=0.05)), (slow, *CODES))])
        assert [code.reward for code in score.codes] == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("problem", [ruled(), PROBLEM])
def test_a_recording_keeps_the_limit_that_counted(problem: Problem, tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    config = RewardConfig(time_limit=TimeLimit.of(RULE))
    for number, seconds in enumerate((0.4, 0.01), 1):  # 0.01: the limit is the usual one, and is one all the same
        with Recorder(path) as recorder, Arena(Clocked(*[seconds] * 3), config, on_score=recorder.write) as arena:
            arena.play([match(problem)])
        assert keep_leading(path, [match(problem)] * number, config) == number
    recorded = list(read_recording(path.read_bytes().splitlines()))
    assert [(each.match.problem.time_limit_s, each.match.problem.time_limit) for each in recorded] == [
        (2.0, None),
        (1.0, None),
    ]
    for each, limit in zip(recorded, (2.0, 1.0), strict=True):
        with Clocked(9, 9, 9) as sandbox:
            assert all(one.is_same for one in replay([each], sandbox))
            assert (sandbox.limits, sandbox.measured) == ({limit}, [])
    assert keep_leading(path, [match(dataclasses.replace(problem, question="another"))], config) == 0


LACKING = [
    ({"reference_solution": None}, "no reference_solution"),
    ({"golden_tests": (), "hidden_tests": ()}, "no golden or hidden test"),
    ({"golden_tests": (Case("f(open(1))", "1"),), "hidden_tests": ()}, "no golden or hidden test that can be read"),
]


@pytest.mark.parametrize(("fields", "got"), LACKING)
def test_without_a_reference_or_tests_it_is_refused(fields: Any, got: str, capsys: Any, tmp_path: Path) -> None:
    why = rf"problem 'p' must have a reference_solution and a .* test .*, got {got}; give it a time_limit_s instead"
    problem = dataclasses.replace(PROBLEM, **fields)
    for one, config in (
        (dataclasses.replace(ruled(), **fields), None),
        (problem, RewardConfig(time_limit=TimeLimit(5))),
    ):
        sandbox = Clocked()
        with Arena(sandbox, config) as arena:
            with pytest.raises(UnusableReference, match=why):
                arena.play([match(one)])
            with pytest.raises(UnusableReference, match=why):
                arena.grade(one, CODES, PROBLEM.hidden_tests)
            assert not sandbox.limits, "before any candidate ran"
    path = tmp_path / "own.jsonl"
    write_problems(path, [dataclasses.replace(ruled(), **fields), ruled("q")])
    assert main(["data", "check", str(path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert got in said[0]
    assert "p: not usable" in said[0]
    assert "q: coder (reference, golden, majority, dual), tester" in said[1]


def test_a_reference_that_does_not_return_or_load_is_refused(
    monkeypatch: pytest.MonkeyPatch, sandbox: LocalSandbox
) -> None:
    monkeypatch.setattr(oracle, "MOST_S", 0.2)
    for body, why in (
        ("while True: pass", "return within 0.2 s .* got a timeout"),
        ("import os; os._exit(0)", "crash"),
    ):
        problem = dataclasses.replace(ruled(), reference_solution=f"def f(x):\n    {body}\n")
        with pytest.raises(UnusableReference, match=why):
            Arena(sandbox).play([match(problem)])
    with pytest.raises(UnusableReference, match="must load and define 'f'"):
        Arena(sandbox).play([match(dataclasses.replace(ruled(), reference_solution="def g(: pass"))])


def test_an_environment_refuses_it_before_a_game_begins() -> None:
    lacking = dataclasses.replace(PROBLEM, golden_tests=(), hidden_tests=())
    with pytest.raises(UnusableReference, match="got no golden or hidden test"):
        checked_problems([lacking], 1 << 16, RewardConfig(time_limit=TimeLimit(5)))
    assert checked_problems([lacking, ruled("q")], 1 << 16, RewardConfig())


def test_whoever_runs_programs_without_an_arena_goes_by_it(tmp_path: Path) -> None:
    plan = EvaluationPlan("coder", samples=1)
    lacking = dataclasses.replace(ruled("lacking"), reference_solution=None)
    with Clocked(0.4, 0.1, 0.1) as sandbox:
        player, sets = OracleCoder(), {"own": [ruled(), lacking]}
        journal = EvaluationJournal(tmp_path / "journal", journal_header(player, sets, plan))
        report = evaluate(player, sets, plan, sandbox, journal)["sets"]["own"]
        journal.close()
        assert report["passed"] == {"p": 1}
        assert "no reference_solution" in report["left_out"]["lacking"]
        assert sandbox.limits == {2.0}
    with Clocked(0.4, 0.1, 0.1) as sandbox:
        (checked,) = check_problems([ruled()], sandbox)
        assert (checked.problem, sandbox.limits) == (ruled(), {2.0})
    with Clocked(0.4, 0.1, 0.1) as sandbox:
        first, second = pools_of_problems([ruled(), lacking], sandbox)
        assert first.pool is not None
        assert "no reference_solution" in second.why_not
        assert sandbox.limits == {2.0}
    with Clocked() as sandbox:  # it knows no reference, and takes the program under attack for one
        assert "assert f(" in SearchTester(sandbox).respond([TesterRequest(ruled(), CODES[0])])[0][0].text
        assert not sandbox.measured
        with pytest.raises(ConfigurationError, match=r"time_limit of problem 'p' must be found out .* before"):
            Judge(sandbox).try_programs([Trial(ruled(), REFERENCE, ())])


def test_the_command_reads_it_from_a_line_and_from_an_option(tmp_path: Path, capsys: Any) -> None:
    spins = spinning(0.2)
    line = {"problem_id": "p", "question": "?", "entry_point": "f", "reference_solution": REFERENCE,
            "codes": [spins], "suites": [[SUITE]]}  # fmt: skip
    short = {"times_reference": 1, "at_least": 0.05}
    lines = [
        line,
        line | {"hidden_tests": [["f(1)", "2"]]},
        line | {"golden_tests": [["f(1)", "2"]], "time_limit_s": 2},
    ]
    given, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"

    def scored(lines: list[Any], *options: str) -> list[Any]:
        given.write_text("".join(json.dumps(each) + "\n" for each in lines))
        main(["score", str(given), "-o", str(out), *options])
        rows = [json.loads(row) for row in out.read_text().splitlines()]
        return [row["codes"][0]["reward"] if "codes" in row else row["error"] for row in rows]

    assert scored(lines) == [1.0, 1.0, 1.0]
    error, *rewards = scored(lines, "--time-limit", json.dumps(short))
    assert "must have a reference_solution and a golden or hidden test" in error
    assert rewards == [0.0, 1.0]
    assert scored([lines[0], lines[1] | {"time_limit": short}]) == [1.0, 0.0]
    for wrong in ("5", "much", "[5]", "{}", '{"times_reference": 0}', '{"times_reference": 5, "least": 1}'):
        assert main(["score", str(given), "-o", str(out), "--time-limit", wrong]) == 2
        assert "time_limit" in capsys.readouterr().err


def test_files_keep_it_and_problems_without_it_are_as_they_were(tmp_path: Path) -> None:
    assert Problem("p", "q", "f").content_hash == "ce45834027abc2b7e2f6fad6c05fff626ad387d7f0d214f52639662a9faa216d"
    for rule in (RULE, {"times_reference": 2.5}, {"times_reference": 1, "at_least": 3600}):
        problem = ruled(**rule)
        assert Problem.from_json(problem.to_json()) == problem != PROBLEM
        assert json.loads(problem.to_json())["time_limit"] == {"at_least": 1.0, **rule}
        write_problems(tmp_path / "own.jsonl", [problem])
        assert read_problems(tmp_path / "own.jsonl") == [problem]
    pytest.importorskip("torch")
    from codea1_env.configuration.presets import SMOKE, preset_from_dict

    preset = preset_from_dict({"reward": {"time_limit": RULE}}, SMOKE)
    assert preset.reward.time_limit == TimeLimit(5, 1)
    assert preset_from_dict(json.loads(json.dumps(preset.to_dict())), SMOKE) == preset


WRONG: list[Any] = [
    *(5, "5", [], True, {}, {"at_least": 1}, {"times_reference": 5, "most": 9}),
    *({"times_reference": wrong} for wrong in (0, 0.5, 1001, True, "5", None, float("nan"), float("inf"))),
    *({"times_reference": 5, "at_least": wrong} for wrong in (0, -1, 3601, True, "1", None)),
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_what_is_no_rule_is_refused_with_what_it_must_be(wrong: Any) -> None:
    said = r"\Atime_limit(\.\w+)? must be .*, got "
    with pytest.raises(ProblemFormatError, match=said):
        Problem.from_dict({"problem_id": "p", "question": "q", "entry_point": "f", "time_limit": wrong})
    with pytest.raises(ConfigurationError, match=said):
        RewardConfig(time_limit=wrong)


def test_a_limit_in_seconds_beside_it_is_refused() -> None:
    with pytest.raises(ProblemFormatError, match=r"time_limit_s must be left out beside time_limit, .* got 2"):
        dataclasses.replace(ruled(), time_limit_s=2.0)


def test_a_run_leaves_out_problems_that_have_no_limit_by_its_rule(tmp_path: Path, caplog: Any) -> None:
    pytest.importorskip("torch")
    from codea1_env.configuration.presets import SMOKE
    from codea1_env.configuration.problem_sets import load_problem_sets
    from codea1_env.configuration.run_sections import ProblemFiles

    path = tmp_path / "own.jsonl"
    bare = dataclasses.replace(PROBLEM, problem_id="bare", golden_tests=(), hidden_tests=())
    plain = dataclasses.replace(bare, problem_id="plain", time_limit_s=2.0)
    write_problems(path, [bare, plain, *(dataclasses.replace(PROBLEM, problem_id=str(number)) for number in range(9))])
    files = ProblemFiles(str(path), held_out_limit=1)
    for rule, first in ((None, "bare"), (TimeLimit(5), "plain")):
        preset = dataclasses.replace(SMOKE, problems=files, reward=RewardConfig(time_limit=rule))
        assert load_problem_sets(preset, 0).train[0].problem_id == first
    assert "bare cannot be judged: problem 'bare' must have" in caplog.text


GREEDY = "def f(x):\n    held = bytearray(300 << 20)\n    return x + 1\n"


def test_the_memory_of_a_run_is_that_of_problems_that_say_none(tmp_path: Path, capsys: Any) -> None:
    own = dataclasses.replace(PROBLEM, problem_id="own", memory_mb=512)
    own_lines = [match(one, (GREEDY,)) for one in (PROBLEM, own)]
    for usual, rewards in ((None, [1.0, 1.0]), (128, [0.0, 1.0]), (2048, [1.0, 1.0])):
        config, recorded = RewardConfig(memory_mb=usual), tmp_path / f"{usual}.jsonl"
        with LocalSandbox() as sandbox, Recorder(recorded) as recorder:
            arena = Arena(sandbox, config, on_score=recorder.write)
            scores = arena.play(own_lines)
            assert [score.codes[0].reward for score in scores] == rewards
            assert arena.grade(PROBLEM, [GREEDY], [Case("f(1)", "2")])[0].share == rewards[0]
        with open(recorded, "rb") as file:
            kept = list(read_recording(file))
        assert [each.match.problem.memory_mb for each in kept] == [usual or PROBLEM.memory_mb, 512]
        assert keep_leading(recorded, own_lines, config) == 2
    line = {"problem_id": "p", "question": "?", "entry_point": "f", "reference_solution": REFERENCE,
            "codes": [GREEDY], "suites": [[SUITE]]}  # fmt: skip
    given, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    given.write_text(json.dumps(line) + "\n" + json.dumps(line | {"memory_mb": 512}) + "\n")
    assert main(["score", str(given), "-o", str(out), "--memory-mb", "128"]) == 0
    assert [json.loads(row)["codes"][0]["reward"] for row in out.read_text().splitlines()] == [0.0, 1.0]
    for wrong in ("12", "1048577"):
        assert main(["score", str(given), "-o", str(out), "--memory-mb", wrong]) == 2
        assert f"memory_mb must be an int in [64, 1048576] MiB, got {wrong}" in capsys.readouterr().err


def test_a_reference_is_checked_under_the_memory_of_the_run() -> None:
    greedy = dataclasses.replace(PROBLEM, reference_solution=GREEDY)
    with LocalSandbox() as sandbox:
        (enough,) = check_problems([greedy], sandbox)
        (little,) = check_problems([greedy], sandbox, memory_mb=128)
    assert (enough.right, little.right) == (3, 0)
    assert little.problem == greedy
