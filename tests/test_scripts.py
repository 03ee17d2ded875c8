"""Programs under test scripts, as BigCodeBench has them: outcomes per test, limits, no network, own folders."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from report_pages import write_run

from codea1_env import Arena, ConfigurationError, LocalSandbox, Problem, TestCase as Case, read_problems
from codea1_env.arena.match import Grade
from codea1_env.cli import main
from codea1_env.configuration.presets import SMOKE
from codea1_env.configuration.problem_sets import load_problem_sets
from codea1_env.configuration.run_sections import ProblemFiles
from codea1_env.evaluation.disagreement import as_rows, disagreement
from codea1_env.evaluation.evaluate import EvaluationPlan
from codea1_env.judging.problems.importing import import_drafts
from codea1_env.judging.scripts import CALLS, UNSEALED_REWARDS, ScriptTest, ScriptVerdict, expected_tests, judge_scripts
from codea1_env.problems.jsonl import write_problems
from codea1_env.problems.sources import find_source
from codea1_env.report.duels import kept_duels
from codea1_env.report.page import RunOnPage, page as made_page
from codea1_env.report.runs_read import read_run
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Verdict
from codea1_env.training.round.rounds import ReadProgram, grade_round
from codea1_env.training.round.rules import RoundRules
from codea1_env.training.samples import Sample

FORM = "import unittest\nfrom unittest.mock import patch, mock_open\nclass TestCases(unittest.TestCase):\n"
ADDS = "    def test_one(self):\n        self.assertEqual(task_func(1), 2)\n"
RIGHT = "def task_func(x):\n    return x + 1\n"


def asked(script: str, **fields: Any) -> Problem:
    """`time_limit_s`: of the whole script."""
    limit_s = fields.pop("time_limit_s", 5.0) / CALLS
    return Problem("p", "q", "task_func", test_script=script, time_limit_s=limit_s, **fields)


def judged(sandbox: LocalSandbox, script: str, program: str = RIGHT, **fields: Any) -> ScriptVerdict:
    (verdict,) = judge_scripts(sandbox, [(asked(script, **fields), program)])
    return verdict


def outcomes(verdict: ScriptVerdict) -> dict[str, str]:
    return {test.name: test.outcome for test in verdict.tests}


HONEST = {
    "plain asserts": (RIGHT, "assert task_func(1) == 2\n"),
    "a check": (RIGHT, "def check(candidate):\n    assert candidate(1) == 2\n\ncheck(task_func)\n"),
    "pytest functions": (
        RIGHT,
        "import pytest\nfrom solution import task_func\n@pytest.fixture\ndef two():\n    return 2\n"
        "@pytest.mark.parametrize('x', [1, 5])\ndef test_it(x, two):\n    assert task_func(x) == x - 1 + two\n"
        "def test_raises():\n    with pytest.raises(TypeError):\n        task_func('a')\n",
    ),
    "a mock": (
        "import requests\ndef task_func(url):\n    return requests.get(url, timeout=5).status_code\n",
        FORM + "    @patch('requests.get')\n    def test_one(self, get):\n        get.return_value.status_code = 204\n"
        "        self.assertEqual(task_func('http://a.b'), 204)\n        get.assert_called_once()\n",
    ),
    "a name of the program is patched": (
        "import random\ndef draw():\n    return random.random()\ndef task_func():\n    return draw() + 1\n",
        FORM + "    @patch(f'{__name__}.draw', return_value=3)\n    def test_one(self, draw):\n"
        "        self.assertEqual(task_func(), 4)\n",
    ),
    "files in a directory of its own": (
        "import csv, os\ndef task_func(folder, rows):\n    path = os.path.join(folder, 'out.csv')\n"
        "    with open(path, 'w', newline='') as file:\n        csv.writer(file).writerows(rows)\n    return path\n",
        "import tempfile, shutil, os, unittest\nclass TestCases(unittest.TestCase):\n    def setUp(self):\n"
        "        self.folder = tempfile.mkdtemp()\n    def tearDown(self):\n        shutil.rmtree(self.folder)\n"
        "    def test_one(self):\n        path = task_func(self.folder, [[1, 2]])\n"
        "        self.assertEqual(open(path).read().strip(), '1,2')\n        self.assertTrue(os.path.exists(path))\n",
    ),
    "a plot": (
        "import matplotlib.pyplot as plt\ndef task_func(xs):\n    fig, ax = plt.subplots()\n    ax.plot(xs)\n"
        "    ax.set_title('T')\n    return ax\n",
        FORM + "    def test_one(self):\n        ax = task_func([1, 2, 3])\n"
        "        self.assertEqual(ax.get_title(), 'T')\n        self.assertEqual(len(ax.lines), 1)\n",
    ),
    "a table": (
        "import pandas as pd\ndef task_func(rows):\n    table = pd.DataFrame(rows, columns=['a', 'b'])\n"
        "    return table.groupby('a').sum()\n",
        "import pandas as pd\n" + FORM + "    def test_one(self):\n        got = task_func([[1, 2], [1, 3]])\n"
        "        pd.testing.assert_frame_equal(got, pd.DataFrame({'b': [5]}, index=pd.Index([1], name='a')))\n",
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_right_programs_pass_and_wrong_ones_fail(sandbox: LocalSandbox, name: str) -> None:
    program, script = HONEST[name]
    for package in ("requests", "matplotlib", "pandas"):
        if package in program:
            pytest.importorskip(package)
    verdict = judged(sandbox, script, program, time_limit_s=20.0, memory_mb=4096)
    assert verdict.passed, verdict
    assert {test.outcome for test in verdict.tests} == {"passed"}
    assert expected_tests(script) <= {test.name.partition("[")[0] for test in verdict.tests}
    wrong = judged(sandbox, script, "def task_func(*a, **k):\n    return None\n", memory_mb=4096)
    assert not wrong.passed


@pytest.mark.parametrize(
    "script", [FORM + ADDS, "def test_one():\n    assert task_func(1) == 2\n", "assert task_func(1) == 2\n"]
)
def test_tests_that_a_program_brings_along_are_none_of_the_scripts(sandbox: LocalSandbox, script: str) -> None:
    mine = (
        "import unittest\nclass TestMine(unittest.TestCase):\n    def test_me(self):\n        self.fail()\n"
        "class TestPlain:\n    def __init__(self, x):\n        pass\n    def test_me(self, x):\n        pass\n"
        "def test(x):\n    return task_func(x)\ndef test_me():\n    assert task_func(1) == 3\n"
    )
    verdict = judged(sandbox, script, RIGHT + mine)
    assert verdict.passed, verdict
    assert len(verdict.tests) == 1
    passing = "def test_me():\n    pass\n"
    assert not judged(sandbox, script, RIGHT.replace("+ 1", "- 1") + passing).passed


@pytest.mark.parametrize("test", ["def test_one():\n    yield\n", "async def test_one():\n    pass\n"])
@pytest.mark.parametrize("hidden", ["", "import sys\nsys.modules['pytest'] = None\n"])
def test_a_test_of_which_nothing_runs_has_not_passed(sandbox: LocalSandbox, test: str, hidden: str) -> None:
    """`hidden`: as where pytest is not installed."""
    verdict = judged(sandbox, f"{hidden}{test}    assert task_func(1) == 2\n")
    assert outcomes(verdict) == {"test_one": "failed"}, verdict


def test_every_test_has_an_outcome_of_its_own(sandbox: LocalSandbox) -> None:
    script = FORM + (
        ADDS + "    def test_two(self):\n        for i in range(3):\n            with self.subTest(i):\n"
        "                self.assertEqual(task_func(i), i + 1 + (i == 1))\n"
        "    @unittest.skip('later')\n    def test_three(self):\n        pass\n"
        "    @unittest.expectedFailure\n    def test_four(self):\n        self.fail()\n"
        "    def test_x_late(self):\n        while True:\n            pass\n"
        "    def test_y_never(self):\n        pass\n"
        "class Other(TestCases):\n    def test_x_late(self):\n        pass\n"
    )
    verdict = judged(sandbox, script, time_limit_s=1.0)
    assert outcomes(verdict) == {
        "TestCases.test_four": "passed",
        "TestCases.test_x_late": "timeout",
        "TestCases.test_y_never": "not run",
        "TestCases.test_one": "passed",
        "TestCases.test_three": "skipped",
        "TestCases.test_two": "failed",
        **{f"Other.test_{name}": "not run" for name in ("four", "one", "three", "two", "x_late", "y_never")},
    }
    assert not verdict.passed
    assert "test_x_late" in verdict.told or "test_two" in verdict.told
    broken = judged(sandbox, FORM + "    @classmethod\n    def setUpClass(cls):\n        1 / 0\n" + ADDS)
    assert outcomes(broken)["TestCases.test_one"] == "not run"
    assert not broken.passed
    only_skipped = judged(sandbox, FORM + "    @unittest.skip('no')\n    def test_a(self):\n        pass\n")
    assert not only_skipped.passed


def test_a_script_has_the_time_of_twenty_calls_and_at_most_a_minute_unless_one_call_has_more() -> None:
    jobs: list[Any] = []

    class Kept:
        def run(self, given: list[Any]) -> list[Any]:
            jobs.extend(given)
            return []

    for limit_s in (0.5, 1.0, 10.0, 60.0, 90.0):
        problem = dataclasses.replace(asked(ADDS), time_limit_s=limit_s)
        with pytest.raises(ValueError, match="zip"):
            judge_scripts(Kept(), [(problem, RIGHT)])  # type: ignore[arg-type]
    assert [(job.limits.time_limit_s, job.limits.budget_s) for job in jobs] == [
        (10, 10), (20, 20), (60, 60), (60, 60), (90, 90)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        ("def task_func(x", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
        ("import os\nos._exit(0)", "crash"),
        ("import ctypes\ndef task_func(x):\n    ctypes.string_at(0)", "crash"),
        ("def task_func(x):\n    return [0] * 10 ** 11", ""),
        ("import subprocess\ndef task_func(x):\n    subprocess.run(['python3', '-c', 'while True: pass'])", "timeout"),
        ("import socket\ndef task_func(x):\n    socket.create_connection(('127.0.0.1', 80), 1)", ""),
        ("import urllib.request\ndef task_func(x):\n    urllib.request.urlopen('http://1.1.1.1', timeout=1)", ""),
        ("import time\ndef task_func(x):\n    time.sleep(99)", "timeout"),
        ("def task_func(x):\n    open('/etc/passwd').read()\n    return x + 1", ""),
        ("def task_func(x):\n    open('/tmp/../escaped', 'w')\n    return x + 1", ""),
    ],
)
def test_what_ends_badly_has_no_outcome_that_passes(sandbox: LocalSandbox, program: str, failure: str) -> None:
    verdict = judged(sandbox, FORM + ADDS, program, time_limit_s=1.0, memory_mb=512)
    assert not verdict.passed
    assert verdict.failure == failure
    assert judged(sandbox, FORM + ADDS).passed  # whatever the last one did


PROCESSES = {
    "a command and its output": "import subprocess\ndef task_func(x):\n"
    "    return int(subprocess.run(['sh', '-c', f'echo {x} | wc -w'], capture_output=True, check=True).stdout) + 1\n",
    "an archive": "import subprocess\ndef task_func(x):\n    open('a.log', 'w').write('1')\n"
    "    subprocess.check_call(['tar', '-czf', 'a.tgz', 'a.log'])\n    return x + 1\n",
    "a script that is made executable": "import os, subprocess\ndef task_func(x):\n"
    "    with open('a.sh', 'w') as file:\n        file.write('#!/bin/sh\\nexit 2\\n')\n"
    "    os.chmod('a.sh', 0o755)\n    return subprocess.call(['./a.sh'])\n",
    "this interpreter with what is installed here": "import subprocess, sys\ndef task_func(x):\n"
    "    return subprocess.call([sys.executable, '-c', 'import pytest; raise SystemExit(2)'])\n",
    "a pool": "import multiprocessing\ndef task_func(x):\n    with multiprocessing.Pool() as pool:\n"
    "        return sum(pool.map(abs, [-x, x]))\n",
    "a lock, a queue and a number in shared memory": "import multiprocessing as m\ndef task_func(x):\n"
    "    lock, queue, number = m.Lock(), m.Queue(), m.Value('i', x)\n    def work():\n        with lock:\n"
    "            number.value += 1\n        queue.put(True)\n    child = m.Process(target=work)\n"
    "    child.start()\n    queue.get()\n    child.join()\n    return number.value\n",
    "a pool of futures": "from concurrent.futures import ProcessPoolExecutor\ndef task_func(x):\n"
    "    with ProcessPoolExecutor() as pool:\n        return list(pool.map(abs, [-x]))[0] + x\n",
}
BOMB = "import os\nwhile True:\n    os.fork()\n"
FAMILY = """
import os, signal
children = []
try:
    while len(children) < 2_000:
        if not (child := os.fork()):
            signal.pause()
        children.append(child)
except BlockingIOError:
    pass
def task_func(x):
    return len(children)
"""
ESCAPES = {
    "namespaces": "import ctypes\ndef task_func(x):\n    return 2 + ctypes.CDLL(None).unshare(0x10000000)\n",
    "the devices' modes": "import os\ndef task_func(x):\n    os.chmod('/dev/null', 0o600)\n    return 2\n",
    "somebody else's process": f"import os\ndef task_func(x):\n    os.kill({os.getpid()}, 0)\n    return 2\n",
    "a file of somebody else's": "import subprocess\ndef task_func(x):\n"
    "    return 2 + subprocess.call(['touch', '/usr/bin/codea1-was-here'])\n",
}


def require_processes(sandbox: LocalSandbox) -> None:
    said = sandbox.guarantees["processes"]
    if said is not True:
        pytest.skip(f"no processes here: {said}")


@pytest.mark.parametrize("name", PROCESSES)
def test_programs_beside_scripts_start_processes_and_sealed_ones_do_not(sandbox: LocalSandbox, name: str) -> None:
    require_processes(sandbox)
    verdict = judged(sandbox, FORM + ADDS, PROCESSES[name], time_limit_s=20.0, memory_mb=2048)
    assert verdict.passed, verdict
    (grade,) = Arena(sandbox).grade(asked(""), [PROCESSES[name]], [Case("task_func(1)", "2")])
    assert not grade.all_passed


def test_a_sealed_program_is_told_that_it_has_no_processes(sandbox: LocalSandbox) -> None:
    program = PROCESSES["a script that is made executable"]
    (grade,) = Arena(sandbox).grade(asked(""), [program], [Case("task_func(1)", "2")])
    assert (grade.all_passed, grade.denied) == (False, ("process",))


@pytest.mark.parametrize("name", ESCAPES)
def test_processes_reach_nothing_outside(sandbox: LocalSandbox, name: str) -> None:
    assert not judged(sandbox, FORM + ADDS, ESCAPES[name]).passed


def test_processes_end_with_their_program_and_are_bounded(sandbox: LocalSandbox) -> None:
    require_processes(sandbox)
    number = f"9{os.getpid()}"
    left = (
        f"import subprocess\nsubprocess.Popen(['setsid', 'sleep', '{number}'])\ndef task_func(x):\n    return x + 1\n"
    )
    assert judged(sandbox, FORM + ADDS, left).passed
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # whoever it was has ended meanwhile
            lines.append(path.read_bytes())
    assert not any(number.encode() in line for line in lines)
    verdict = judged(sandbox, FORM + ADDS, BOMB + RIGHT, time_limit_s=1.0, memory_mb=512)
    assert not verdict.passed
    assert verdict.failure in ("timeout", "BlockingIOError")
    assert judged(sandbox, FORM + ADDS).passed


def test_a_program_has_no_more_processes_than_it_may(sandbox: LocalSandbox) -> None:
    require_processes(sandbox)
    if os.getuid() == 0 and tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < (6, 14):
        pytest.skip("the kernel counts no processes of root's, and bounds no namespace's")
    few = FORM + "    def test_one(self):\n        self.assertIn(task_func(1), range(100, 500))\n"
    for _ in range(3):  # the numbers begin anew
        verdict = judged(sandbox, few, FAMILY, memory_mb=512)
        assert verdict.passed, verdict


def test_a_program_can_forge_an_outcome_and_none_can_leave_a_test_out(sandbox: LocalSandbox) -> None:
    """What `unsealed` means. Sealed verdicts are in test_attacks.py."""
    forged = "import unittest\nunittest.TestCase.assertEqual = lambda *a, **k: None\ndef task_func(x):\n    return 0\n"
    assert judged(sandbox, FORM + ADDS, forged).passed
    leaves = "import unittest\nunittest.TestLoader.getTestCaseNames = lambda *a: []\ndef task_func(x):\n    return 0\n"
    verdict = judged(sandbox, FORM + ADDS, leaves)
    assert not verdict.passed
    runs_none = "import unittest\nunittest.TestSuite.run = lambda *a, **k: None\ndef task_func(x):\n    return 0\n"
    assert not judged(sandbox, FORM + ADDS, runs_none).passed


SCRIPTED = FORM + ADDS + "    def test_two(self):\n        self.assertEqual(task_func(2), 3)\n"


def test_a_reward_takes_a_script_only_where_it_is_allowed_and_pays_the_share_that_passes() -> None:
    skips = "import unittest\ndef task_func(x):\n    raise unittest.SkipTest('no')\n"
    programs = [RIGHT, "def task_func(x):\n    return 2\n", "def task_func(x", "import os\nos._exit(0)\n", skips]
    with Arena(LocalSandbox(), config=RewardConfig(allow_unsealed=True)) as arena:
        (grades,) = arena.grade_scripts(iter([(asked(SCRIPTED), programs)]))  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match="test_script must be there for 'p'"):
            arena.grade_scripts([(asked(""), programs)])
    told = [(grade.share, grade.all_passed, grade.executes) for grade in grades]
    assert told == [(1, True, True), (0.5, False, True), *[(0, False, False)] * 2, (0, False, True)]
    with (
        Arena(LocalSandbox()) as arena,
        pytest.raises(ConfigurationError, match="allow_unsealed must be True to grade by test scr"),
    ):
        arena.grade_scripts([(asked(SCRIPTED), programs)])


def test_a_run_takes_scripts_only_where_it_is_allowed_and_says_so_wherever_it_is_shown(tmp_path: Path) -> None:
    own = [
        dataclasses.replace(asked(SCRIPTED), problem_id=str(number), reference_solution=RIGHT) for number in range(9)
    ]
    held_out = [dataclasses.replace(asked(""), hidden_tests=(Case("task_func(1)", "2"),), reference_solution=RIGHT)]
    for name, problems in (("train", own), ("held_out", held_out)):
        write_problems(tmp_path / f"{name}.jsonl", problems)
    files = ProblemFiles(str(tmp_path / "train.jsonl"), str(tmp_path / "held_out.jsonl"))
    sealed = dataclasses.replace(SMOKE, problems=files)
    allowed = dataclasses.replace(sealed, reward=dataclasses.replace(SMOKE.reward, allow_unsealed=True))
    with pytest.raises(ConfigurationError, match="with golden tests that can be judged, got 0 of 9"):
        load_problem_sets(sealed, 0, golden_tests=True)
    with pytest.raises(ConfigurationError, match=r"reward\.allow_unsealed must be false but for the golden tests'"):
        load_problem_sets(allowed, 0)
    (first, *_) = load_problem_sets(allowed, 0, golden_tests=True).train
    with Arena(LocalSandbox(), config=allowed.reward) as arena:
        score = grade_round(arena, [ReadProgram(first, RIGHT, RIGHT, Sample((0,), (0,), RIGHT))], RoundRules(), 0)
    assert (score.metrics["coder_reward"], score.metrics["unsealed"]) == (1, 1)
    run = read_run(write_run(tmp_path / "run", preset=allowed.to_dict()), "run")
    page = made_page([RunOnPage(run, kept_duels(run.directory), "")], "now")
    assert page.count("run (unsealed)") >= 3
    assert UNSEALED_REWARDS in page


def test_tests_are_counted_from_the_text() -> None:
    script = "class A(unittest.TestCase):\n    def test_a(self): ...\n    def helper(self): ...\n"
    script += "class B(A):\n    def test_b(self): ...\n"
    assert expected_tests(script) == {"A.test_a", "B.test_a", "B.test_b"}
    assert expected_tests("def test_x(): ...\nclass TestY:\n    def test_z(self): ...\ndef other(): ...") == {
        "test_x",
        "TestY.test_z",
    }
    assert expected_tests("class A(A): ...\nassert f(1) == 1") == expected_tests("def f(") == frozenset()


ROW = {
    "task_id": "BigCodeBench/7",
    "entry_point": "task_func",
    "prompt": 'import json\nLIMIT = 3\n\ndef task_func(x):\n    """Add one, at most LIMIT."""\n',
    "instruction": "Add one to x, at most 3.",
    "canonical_solution": "    return min(x + 1, LIMIT)\n",
    "test": FORM
    + "    @patch('json.dumps')\n    def test_one(self, dumps):\n        self.assertEqual(task_func(1), 2)\n"
    "    def test_two(self):\n        self.assertEqual(task_func(9), LIMIT)\n",
}
BROKEN = {**ROW, "task_id": "BigCodeBench/8", "canonical_solution": "    return x\n"}


def test_a_row_is_a_problem_where_its_reference_passes_its_script(sandbox: LocalSandbox) -> None:
    found = list(import_drafts(find_source("bigcodebench").drafts([ROW, BROKEN]), sandbox))
    assert [each.status for each in found] == ["all", "unusable"]
    assert found[1].script is not None
    assert (
        "test script: 0 of 2 tests passed, TestCases.test_one first: failed AssertionError: 1 != 2" in found[1].why_not
    )
    problem = found[0].problem
    assert problem is not None
    assert (problem.question, problem.imports) == (ROW["prompt"], "import json\nLIMIT = 3")
    (words,) = find_source("bigcodebench-instruct").drafts([ROW])
    assert getattr(words, "problem").question == ROW["instruction"]  # noqa: B009
    assert Problem.from_json(problem.to_json()) == problem
    (mbpp,) = import_drafts(
        find_source("mbpp").drafts(
            [{"task_id": 1, "text": "Add one.", "code": RIGHT, "test_list": ["assert task_func(1) == 2"]}],
            with_scripts=True,
        ),
        sandbox,
    )
    assert mbpp.problem is not None
    assert "assert task_func(1) == 2" in mbpp.problem.test_script
    assert len(mbpp.problem.golden_tests) == 1


def test_the_commands_evaluate_by_scripts_and_say_that_it_is_unsealed(tmp_path: Path, capsys: Any) -> None:
    rows = tmp_path / "bcb.jsonl.gz"
    rows.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in (ROW, BROKEN)).encode()))
    problems = tmp_path / "problems.jsonl"
    assert main(["data", "import", "bigcodebench", str(rows), "-o", str(problems)]) == 0
    assert "1 all, 0 some, 0 none, 1 unusable" in capsys.readouterr().err
    assert [problem.problem_id for problem in read_problems(problems)] == ["BigCodeBench/7"]
    common = ["--player", "oracle", "--n", "2"]
    assert main(["data", "check", str(problems)]) == 0
    assert "coder (by its test script, unsealed: --judge scripts)" in capsys.readouterr().out
    bare = tmp_path / "bare.jsonl"
    write_problems(bare, [asked(SCRIPTED, reference_solution="import requests_of_nobody\n")])
    assert main(["data", "check", str(bare)]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("p: coder (by its test script")
    assert "; 1 more are judged by their test scripts alone, unsealed" in told.err
    out = tmp_path / "eval"
    assert main(["eval", *common, "--problems", f"bigcodebench={rows}", "-o", str(out)]) == 0
    report = json.loads((out / "results.json").read_text())
    assert report["trust"].startswith("unsealed")
    assert report["sets"]["bigcodebench"]["passed"] == {"BigCodeBench/7": 2}
    assert list(report["sets"]["bigcodebench"]["unusable"]) == ["BigCodeBench/8"]
    shown = (out / "table.md").read_text()
    assert "The judge is unsealed" in shown
    assert "1 tasks of bigcodebench cannot be judged here" in shown
    capsys.readouterr()
    sealed = ["eval", *common, "--problems", str(problems), "--judge", "sealed", "-o", str(tmp_path / "sealed")]
    assert main(sealed) == 1
    assert "BigCodeBench/7: it has no tests" in capsys.readouterr().err
    for arguments, said in (
        (["--problems", "bundled", "--split", "instruct"], "--split must come with --problems bigcodebench"),
        (
            ["--problems", f"bigcodebench={rows}", "--subset", "hard"],
            "--subset hard must name tasks of the set, got 148 that it does not have, 'BigCodeBench/13' first; ",
        ),
        (["--problems", f"bigcodebench={rows}", "--subset", str(rows)], f"--subset {rows} must name tasks of the set"),
    ):
        assert main(["eval", *common, *arguments, "-o", str(tmp_path / "no")]) == 2
        assert said in capsys.readouterr().err
    named = tmp_path / "few.txt"
    named.write_text("BigCodeBench/7\n")
    subset = ["--problems", f"bigcodebench={rows}", "--subset", str(named)]
    for split, question in (("complete", ROW["prompt"]), ("instruct", ROW["instruction"])):
        assert main(["eval", *common, *subset, "--split", split, "-o", str(tmp_path / split)]) == 0
        (kept,) = (tmp_path / split / "problems").glob("*few.jsonl")
        assert [problem.question for problem in read_problems(kept)] == [question]
        assert "cannot be judged here" not in (tmp_path / split / "table.md").read_text()
    named.write_text("BigCodeBench/8\n")  # by the same name, and in the same directory
    assert main(["eval", *common, *subset, "-o", str(tmp_path / "complete")]) == 2
    assert "got another file, content or --subset; choose another --output" in capsys.readouterr().err
    all_tasks = tmp_path / "all.jsonl"
    all_tasks.write_text("".join(json.dumps({**ROW, "task_id": f"BigCodeBench/{n}"}) + "\n" for n in range(1140)))
    for name, start in (("hard", "BigCodeBench/13"), ("full", "BigCodeBench/0")):
        asked_for = ["--problems", f"bigcodebench={all_tasks}", "--subset", name, "--limit", "1"]
        assert main(["eval", *common, *asked_for, "-o", str(tmp_path / name)]) == 0
        assert list(json.loads((tmp_path / name / "results.json").read_text())["sets"]["bigcodebench"]["passed"]) == [
            start
        ]
    with pytest.raises(ConfigurationError, match="judge must be sealed in the seat tester"):
        EvaluationPlan("tester", judge="scripts")


def test_an_example_that_raises_costs_a_program_nothing_once_it_is_trimmed(tmp_path: Path) -> None:
    problems = [asked(FORM + ADDS), dataclasses.replace(asked(FORM + ADDS), problem_id="q")]
    write_problems(tmp_path / "own.jsonl", problems)
    lines = [
        {
            "problem_id": each.problem_id,
            "question": each.question,
            "entry_point": "task_func",
            "suites": [[]],
            "codes": [code],
        }
        for each, code in zip(problems, (f"{RIGHT}print(task_func('a'))\n", RIGHT.replace("1", "2")), strict=True)
    ]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    told = ["eval", "--player", f"recorded:{tmp_path / 'answers.jsonl'}", "--problems", str(tmp_path / "own.jsonl")]
    assert main([*told, "--judge", "scripts", "--n", "1", "-o", str(tmp_path / "out")]) == 0
    found = json.loads((tmp_path / "out" / "results.json").read_text())["sets"]["own"]
    assert found["passed"] == {"p": 0, "q": 0}
    assert found["passed_trimmed"] == {"p": 1, "q": 0}


MBPPPLUS = {
    "task_id": 9001,
    "prompt": "Write a function to double every element.",
    "code": "def double_all(xs):\n    return [2 * x for x in xs]\n",
    "test_imports": [],
    "test_list": ["assert double_all([1]) == [2]", "assert double_all([0, 3]) == [0, 6]"],
    "test": "def assertion(out, exp, atol):\n    assert out == exp, f'out: {out}, exp: {exp}'\n\n"
    "inputs = [[[1, 2]], [[]], [[-4]]]\nresults = [[2, 4], [], [-8]]\n"
    "for inp, exp in zip(inputs, results):\n    assertion(double_all(*inp), exp, 0)\n",
}
"""A row of ours in the form of MBPP+."""
KINDS = {
    "right": "def double_all(xs):\n    return [x + x for x in xs]\n",
    "wrong on a hidden test": "def double_all(xs):\n    return [2 * abs(x) for x in xs]\n",
    "right once": "done = []\ndef double_all(xs):\n    done.append(xs)\n"
    "    return [2 * x for x in xs] if len(done) < 2 else 0\n",
    "equal to everything": "class Any(list):\n    def __eq__(self, other):\n        return True\n"
    "def double_all(xs):\n    return Any()\n",
    "no function": "def double(xs):\n    return xs\n",
}
PASSES = {
    "scripts": {"right", "equal to everything"},
    "sealed": {"right", "right once"},
}
"""By judge; where they differ, `REASONS` says why."""
REASONS = {
    "right once": ("sealed", "a test fails: AssertionError"),
    "equal to everything": ("scripts", "another value"),
}


@pytest.mark.parametrize("judge", PASSES)
def test_mbppplus_is_judged_whole_by_its_scripts_and_by_data_and_the_difference_is_a_table_by_reason(
    tmp_path: Path, judge: str
) -> None:
    rows = [{**MBPPPLUS, "task_id": 9001 + i} for i in range(2)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    line = {"question": MBPPPLUS["prompt"], "entry_point": "double_all", "codes": list(KINDS.values())}
    line |= {"suites": [[] for _ in KINDS]}
    lines = [line | {"problem_id": f"Mbpp/{9001 + i}"} for i in range(2)]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    told = ["eval", "--player", f"recorded:{tmp_path / 'answers.jsonl'}", "--n", str(len(KINDS)), "--no-trim"]
    told += ["--problems", f"mbppplus={tmp_path / 'rows.jsonl'}", "--judge", judge, "-o", str(tmp_path / "out")]
    assert main(told) == 0
    found = json.loads((tmp_path / "out" / "results.json").read_text())["sets"]["mbppplus"]
    assert found["passed"] == dict.fromkeys(("Mbpp/9001", "Mbpp/9002"), len(PASSES[judge]))
    if judge == "scripts":
        reasons = [(each["passes"], each["why"]) for each in found["disagree"]["Mbpp/9002"]]
        assert reasons == [REASONS[name] for name in KINDS if name in REASONS]
        table = (tmp_path / "out" / "table.md").read_text()
        for passes, why in REASONS.values():
            assert f"| {passes} | {why} | 2 | Mbpp/9001 |" in table


@pytest.mark.parametrize(
    ("executes", "verdicts", "denied", "why"),
    [
        (True, (Verdict.PASS, Verdict.TIMEOUT), (), "time"),
        (True, (None, Verdict.ERROR), (), "raises, or returns what is no data"),
        (True, (Verdict.CRASH, Verdict.FAIL), (), "crash"),
        (True, (Verdict.PASS, Verdict.ERROR), ("network", "file"), "the sandbox denies it: file, network"),
        (False, (Verdict.ERROR, Verdict.ERROR), (), "does not load"),
    ],
)
def test_what_a_script_alone_passes_fails_the_sealed_judge_for_a_reason(
    executes: bool, verdicts: tuple[Verdict | None, ...], denied: tuple[str, ...], why: str
) -> None:
    problem = asked(ADDS, golden_tests=(Case("task_func(1)", "2"),), hidden_tests=(Case("task_func(2)", "3"),))
    found = disagreement(problem, Grade(executes, verdicts, denied), ScriptVerdict((ScriptTest("a", "passed"),)))
    assert found is not None
    assert (found["passes"], found["why"]) == ("scripts", why)


@pytest.mark.parametrize(
    ("verdict", "why"),
    [
        (ScriptVerdict(failure="timeout"), "time"),
        (ScriptVerdict((ScriptTest("a", "passed"), ScriptTest("b", "timeout"))), "time"),
        (ScriptVerdict(failure="ModuleNotFoundError"), "does not run: ModuleNotFoundError"),
        (ScriptVerdict((ScriptTest("a", "failed", "x.py:3: ValueError: no"),)), "a test fails: ValueError"),
        (ScriptVerdict((ScriptTest("a", "failed", "no | name"),)), "a test fails"),
        (ScriptVerdict((ScriptTest("a", "not run"),)), "its class does not set up"),
        (ScriptVerdict((ScriptTest("a", "skipped"),)), "no test ran"),
        (
            ScriptVerdict((ScriptTest("a", "passed"),), "1 tests of the script have no outcome"),
            "tests without an outcome",
        ),
    ],
)
def test_what_the_sealed_judge_alone_passes_fails_the_script_for_a_reason(verdict: ScriptVerdict, why: str) -> None:
    right = Grade(True, (Verdict.PASS,))
    found = disagreement(asked(ADDS, golden_tests=(Case("task_func(1)", "2"),)), right, verdict)
    assert found is not None
    assert (found["passes"], found["why"]) == ("sealed", why)
    assert disagreement(asked(ADDS), right, ScriptVerdict((ScriptTest("a", "passed"),))) is None


def test_programs_on_which_the_judges_differ_are_counted_by_reason_in_journals_of_earlier_versions_too() -> None:
    one = {"passes": "scripts", "why": "another value", "told": ""}
    rows = as_rows({"a": [one, "sealed passes; script: no"], "b": [one, "script passes; script: "]})
    earlier = "an earlier version has not said"
    assert rows == [["scripts", "another value", 2, "a"], ["scripts", earlier, 1, "b"], ["sealed", earlier, 1, "a"]]
