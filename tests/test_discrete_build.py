"""How pools are made: what goes in, what is left out and said, and that a rebuild gives the same bytes."""

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from double_question import FailingSandbox

from codea1_env.cli import main
from codea1_env.discrete import bundled_pools, read_pools
from codea1_env.discrete.build import Built, pools_of_problems, pools_of_records
from codea1_env.errors import ConfigurationError
from codea1_env.problems import Problem, TestCase, bundled_problems, write_problems
from codea1_env.rewards.duel import Status
from codea1_env.sandbox import LocalSandbox

REFERENCE = "def double(x):\n    return 2 * x\n"
SQUARE = "def double(x):\n    return x * x\n"
ADDS = "def double(x):\n    return x + x\n"
KEEPS = "import os\ndef double(x):\n    return 2 * x if os.sep else 0\n"
SLOW = "def double(x):\n    while x > 2:\n        pass\n    return 4\n"
NEVER = "def double(x):\n    while True:\n        pass\n"
BROKEN = "def double(x:\n"
DOUBLE = Problem(
    problem_id="double",
    question="Write `double(x)`, which returns twice the integer x.",
    entry_point="double",
    reference_solution=REFERENCE,
    golden_tests=(TestCase("double(2)", "4"),),
    mutants=(SQUARE,),
    time_limit_s=0.1,
)
SUITE = """\
base = 3
assert double(2) == 4
assert double(x=2) == 4
assert double(base) == 7
assert double('a') == 'aa'
assert double(None) == 0
assert True
assert double(5) == (
    10)
assert double(5) == 10, 'again'
"""


def line(codes: Sequence[str], suites: Sequence[Sequence[str]], **changes: Any) -> bytes:
    record = {
        "problem_id": "double",
        "question": DOUBLE.question,
        "entry_point": "double",
        "reference_solution": REFERENCE,
        "time_limit_s": 0.1,
        "codes": codes,
        "suites": suites,
    }
    return json.dumps(record | changes).encode() + b"\n"


def only(results: Iterator[Built | str]) -> Built:
    (built,) = results
    assert isinstance(built, Built)
    return built


class TestFromProblems:
    def test_a_rebuild_gives_the_bundled_bytes(self, sandbox: LocalSandbox) -> None:
        chosen = bundled_problems()[5:7]
        rebuilt = [built.pool for built in pools_of_problems(chosen, sandbox)]
        assert [pool.to_json() for pool in rebuilt if pool] == [pool.to_json() for pool in bundled_pools()[5:7]]

    @pytest.mark.slow
    def test_a_rebuild_of_all_gives_the_bundled_file(self, tmp_path: Path) -> None:
        assert main(["pools", "build", "-o", str(tmp_path / "pools.jsonl")]) == 0
        assert read_pools(tmp_path / "pools.jsonl") == bundled_pools()

    def test_reference_mutants_and_tests_right_and_wrong_are_in_it(self, sandbox: LocalSandbox) -> None:
        built = only(pools_of_problems([DOUBLE], sandbox, tests=10))
        assert built.pool is not None
        assert set(built.pool.programs) == {REFERENCE, SQUARE}
        assert "assert double(2) == 4" in built.pool.tests
        assert len(built.pool.tests) <= 10
        assert {Status.KEPT, Status.WRONG_EXPECTED} <= set(built.pool.statuses)
        assert built.pool.kills[built.pool.programs.index(SQUARE)].any()

    def test_another_seed_gives_another_pool(self, sandbox: LocalSandbox) -> None:
        one, other = (only(pools_of_problems([bundled_problems()[5]], sandbox, seed=seed)) for seed in (0, 1))
        assert one.pool != other.pool

    def test_a_problem_without_a_working_reference_gives_none_and_says_so(self, sandbox: LocalSandbox) -> None:
        broken = Problem("broken", "?", "double", BROKEN, DOUBLE.golden_tests)
        missing = Problem("missing", "?", "double", None, DOUBLE.golden_tests)
        for built in pools_of_problems([broken, missing], sandbox):
            assert built.pool is None
            assert "reference_solution" in built.why_not

    def test_a_problem_without_tests_gives_none_and_says_so(self, sandbox: LocalSandbox) -> None:
        built = only(pools_of_problems([Problem("bare", "?", "double", REFERENCE)], sandbox))
        assert built.pool is None
        assert "at least one test" in built.why_not

    def test_a_problem_with_a_k_of_its_own_gives_none_and_says_so(self, sandbox: LocalSandbox) -> None:
        """In the game of texts it would be paid by that K, and all pools of a game are paid by one."""
        (built,) = pools_of_problems([dataclasses.replace(DOUBLE, suite_size=2)], sandbox)
        assert built.pool is None
        assert built.why_not == "suite_size must be left out (pools have the game's, RewardConfig.suite_size), got 2"

    def test_a_number_of_tests_below_1_is_refused(self, sandbox: LocalSandbox) -> None:
        with pytest.raises(ConfigurationError, match="tests must be at least 1, got 0"):
            list(pools_of_problems([DOUBLE], sandbox, tests=0))


class TestFromRecords:
    def test_programs_and_tests_are_taken_once_and_run_all_against_all(self, sandbox: LocalSandbox) -> None:
        fenced = f"Here it is:\n```python\n{SQUARE}```\n"
        built = only(pools_of_records([line([fenced, ADDS, SQUARE], [[SUITE], [SUITE, ""], []])], sandbox))
        assert built.pool is not None
        assert built.pool.programs == (SQUARE, ADDS)
        found = dict(zip(built.pool.tests, built.pool.statuses, strict=True))
        assert found == {
            "assert double(2) == 4": Status.KEPT,
            "assert double(x=2) == 4": Status.KEPT,
            "assert double(3) == 7": Status.WRONG_EXPECTED,
            "assert double('a') == 'aa'": Status.KEPT,
            "assert double(None) == 0": Status.RAISES,
            "assert True": Status.REJECTED,
            "assert double(5) == 10": Status.KEPT,
        }
        # x * x is right on 2, wrong on 3 and 5, and raises on 'a'
        assert built.pool.fails[0] == (False, False, True, True, False, False, True)
        assert not any(built.pool.fails[1])
        calls = dict(zip(built.pool.tests, built.pool.calls, strict=True))
        assert calls["assert double(2) == 4"] == calls["assert double(x=2) == 4"]  # one call, by the signature
        assert len(set(calls.values())) == 6

    def test_lines_of_one_question_are_put_together_up_to_the_limits(self, sandbox: LocalSandbox) -> None:
        lines = [line([SQUARE], [["assert double(1) == 2"]]), b"\n", line([ADDS, REFERENCE], [[SUITE], [SUITE]])]
        built = only(pools_of_records(lines, sandbox, programs=2, tests=3))
        assert built.pool is not None
        assert built.pool.programs == (SQUARE, ADDS)
        assert built.pool.tests == ("assert double(1) == 2", "assert double(2) == 4", "assert double(x=2) == 4")

    def test_of_one_call_only_what_comes_to_the_same_is_in_it(self, sandbox: LocalSandbox) -> None:
        """`y * 2` passes double(2), and has no x."""
        suite = "assert double(2) == 4\nassert double(x=2) == 4\nassert double(x=3) == 6"
        renamed = "def double(y):\n    return y * 2\n"
        built = only(pools_of_records([line([ADDS, renamed], [[suite], [suite]])], sandbox))
        assert built.pool is not None
        assert built.pool.tests == ("assert double(2) == 4", "assert double(x=3) == 6")
        assert built.pool.kills.tolist() == [[False, False], [False, True]]
        assert built.left_out == ("a test of an earlier one's call, on which a program does otherwise",)

    def test_a_text_that_is_a_program_and_a_test_is_both(self, sandbox: LocalSandbox) -> None:
        (test,) = suite = ["assert double(2) == 4"]
        pool = only(pools_of_records([line([SQUARE, test], [suite, suite])], sandbox)).pool
        assert pool is not None
        assert (pool.programs, pool.tests) == ((SQUARE, test), (test,))

    def test_programs_whose_verdicts_depend_on_company_are_left_out_and_counted(self, sandbox: LocalSandbox) -> None:
        """SLOW hangs on ten of the eleven tests: as many as end a turn."""
        tests = "".join(f"assert double({x}) == {2 * x}\n" for x in range(2, 13))
        codes = [SQUARE, KEEPS, SLOW, NEVER, BROKEN, ""]
        built = only(pools_of_records([line(codes, [[tests]] * len(codes))], sandbox))
        assert built.pool is not None
        assert built.pool.programs == (SQUARE, NEVER, BROKEN, "")
        assert built.pool.executes == (True, True, False, False)
        assert built.pool.kills[1:].all()
        assert len(built.left_out) == 2
        assert any("run alone" in reason for reason in built.left_out)
        assert any("hangs" in reason for reason in built.left_out)

    def test_tests_that_would_spoil_others_are_left_out_and_counted(self, sandbox: LocalSandbox) -> None:
        suite = f"assert double(2) == (\nassert double(3) == 6\nassert double('{'a' * 2000}') == 1\n"
        built = only(pools_of_records([line([SQUARE], [[suite]])], sandbox))
        assert built.pool is not None
        assert built.pool.tests == ("assert double(3) == 6",)
        assert len(built.left_out) == 2

    def test_lines_that_cannot_be_read_are_named_and_the_others_taken(self, sandbox: LocalSandbox) -> None:
        other = line([ADDS], [[SUITE]], reference_solution=SQUARE)
        results = list(pools_of_records([b"nonsense\n", line([SQUARE], [[SUITE]]), other], sandbox))
        assert [str(result)[:7] for result in results[:2]] == ["line 1:", "line 3:"]
        built = only(iter(results[2:]))
        assert built.pool is not None
        assert built.pool.programs == (SQUARE,)

    def test_limits_below_1_are_refused(self, sandbox: LocalSandbox) -> None:
        for limits in ({"programs": 0}, {"tests": 0}):
            with pytest.raises(ConfigurationError, match="must be at least 1, got 0"):
                list(pools_of_records([], sandbox, **limits))


class TestCommand:
    def test_recorded_outputs_become_pools_by_one_command(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        recorded, pools = tmp_path / "recorded.jsonl", tmp_path / "pools.jsonl"
        recorded.write_bytes(line([SQUARE, KEEPS], [[SUITE], [SUITE]]))
        assert main(["pools", "from-recorded", str(recorded), "-o", str(pools)]) == 0
        assert [pool.problem_id for pool in read_pools(pools)] == ["double"]
        shown = capsys.readouterr().err
        assert "double: left out, 1 times: a program whose calls must each run alone" in shown
        assert "1 pools, 1 programs, 7 tests" in shown

    def test_ones_own_problems_become_pools_and_a_bad_line_is_an_exit_code(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        problems, pools = tmp_path / "problems.jsonl", tmp_path / "pools.jsonl"
        write_problems(problems, [DOUBLE, Problem("bare", "?", "double", REFERENCE)])
        assert main(["pools", "build", str(problems), "-o", str(pools), "--tests", "4"]) == 1
        assert [len(pool.tests) <= 4 for pool in read_pools(pools)] == [True]
        assert "bare: no pool" in capsys.readouterr().err

    @pytest.mark.parametrize("command", ["pools build", "data family fineprint"])
    def test_a_seed_below_nought_would_be_the_one_above(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
    ) -> None:
        assert main([*command.split(), "--seed", "-1", "-o", str(tmp_path / "out.jsonl")]) == 2
        assert "--seed must be at least 0, got -1" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []

    def test_infrastructure_that_fails_makes_no_pool_and_no_file(
        self, sandbox: LocalSandbox, tmp_path: Path, monkeypatch: Any
    ) -> None:
        monkeypatch.setattr("codea1_env.cli.pools.open_sandbox", lambda backend, workers: FailingSandbox(sandbox))
        pools = tmp_path / "pools.jsonl"
        assert main(["pools", "build", "-o", str(pools)]) == 1
        assert list(tmp_path.iterdir()) == []

    def test_where_there_is_no_pool_an_earlier_file_stays(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        recorded, pools = tmp_path / "recorded.jsonl", tmp_path / "pools.jsonl"
        pools.write_text("an earlier one")
        for content, status, says in (
            (b"", 2, "the input must have a question to make a pool of, got none"),
            (b"{}\n", 1, f"wrote nothing to {pools}: 0 pools"),
        ):
            recorded.write_bytes(content)
            assert main(["pools", "from-recorded", str(recorded), "-o", str(pools)]) == status
            assert says in capsys.readouterr().err
            assert pools.read_text() == "an earlier one"

    @pytest.mark.parametrize("arguments", [["build"], ["from-recorded", "IN"]])
    def test_files_that_cannot_be_are_refused_before_any_work(self, tmp_path: Path, arguments: list[str]) -> None:
        (tmp_path / "IN").write_bytes(line([SQUARE], [[SUITE]]))
        paths = [str(tmp_path / "IN") if part == "IN" else part for part in arguments]
        assert main(["pools", *paths, "-o", str(tmp_path / "none" / "pools.jsonl")]) == 2
        assert main(["pools", *paths, "-o", str(tmp_path)]) == 2
        assert main(["pools", "from-recorded", str(tmp_path / "absent"), "-o", str(tmp_path / "out")]) == 2
        assert main(["pools", "from-recorded", str(tmp_path / "IN"), "-o", str(tmp_path / "IN")]) == 2
        assert main(["pools", *paths, "-o", str(tmp_path / "out"), "--tests", "0"]) == 2
        assert not (tmp_path / "out").exists()


def test_a_problem_whose_reference_fails_a_golden_test_gives_no_pool_and_says_so(sandbox: LocalSandbox) -> None:
    tests = (TestCase("f(1)", "1"), TestCase("f(2)", "[2]"))
    problem = Problem("p", "Q", "f", "def f(x):\n    return [x]\n", tests, mutants=("def f(x):\n    return x\n",))
    built = only(pools_of_problems([problem], sandbox))
    assert built.pool is None
    assert built.why_not == "the reference must pass the golden tests, got ['assert f(1) == 1']"
