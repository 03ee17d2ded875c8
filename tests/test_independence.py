"""The verdict on a call is the same alone, in company, in any order, after any program, with any cache and backend.

Over programs that keep state by every means that we know of, programs that keep none, programs made by chance, and
recorded ones. `test_cooperating.py` has what programs can tell each other.
"""

from __future__ import annotations

import ast
import gzip
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from attacks.independence import (
    CALLS,
    PROBLEM,
    PURE_PROGRAMS,
    STATEFUL_PROGRAMS,
    alone,
    differences,
    in_company,
)
from attacks.samples import some_of_each_kind
from hypothesis import Phase, given, settings, strategies as st

from codea1_env.judging.judge import Expectation, Judge, Trial
from codea1_env.problems.problem import Problem
from codea1_env.reading.grammar import read_case
from codea1_env.reading.test_case import TestCase
from codea1_env.sandbox import LocalSandbox
from codea1_env.sandbox.protocol import Sandbox

RECORDED = Path(__file__).resolve().parents[2] / "shared" / "data" / "recorded-humaneval-codegen16b.jsonl.gz"
SAMPLED_PROBLEMS, SAMPLED_PROGRAMS = 25, 10
SOURCES = [program.source for program in (*STATEFUL_PROGRAMS, *PURE_PROGRAMS)]
SAMPLE = [
    program.source for corpus in (STATEFUL_PROGRAMS, PURE_PROGRAMS) for program in some_of_each_kind(corpus, step=8)
]


def test_the_corpus_is_broad() -> None:
    assert len({program.name for program in STATEFUL_PROGRAMS}) == len(STATEFUL_PROGRAMS) >= 140
    assert len({program.name for program in PURE_PROGRAMS}) == len(PURE_PROGRAMS) >= 20


_IN_ONE_PROCESS = """
import io, json, os, random, sys, tempfile, types
def answers(source, calls):
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        tempfile.tempdir = tempfile.mkdtemp(dir=folder)
        os.chdir(tempfile.tempdir)
        sys.stderr = io.StringIO()
        random.seed(0)
        if "numpy" in source:
            import numpy
            numpy.random.seed(0)
        module = sys.modules["solution"] = types.ModuleType("solution")
        module.__loader__ = type("Loader", (), {})
        exec(source, vars(module))
        found = [repr(vars(module)["solve"](x)) for x in calls]
        os.write(writing, found[-1].encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as text:
        answer = text.read()
    os.waitpid(pid, 0)
    return answer
sources = json.load(sys.stdin)
with tempfile.TemporaryDirectory() as folder:
    print(json.dumps([[answers(source, calls) for calls in ([1], [1], [0, 1], [2, 0, 1])] for source in sources]))
"""


@pytest.mark.slow
def test_the_corpus_keeps_state_in_a_plain_interpreter() -> None:
    """Programs that kept none would make the tests below say nothing; and pure ones that did would be a mistake."""
    done = subprocess.run(
        [sys.executable, "-c", _IN_ONE_PROCESS],
        input=json.dumps(SOURCES),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    for program, (first, again, *later) in zip(
        (*STATEFUL_PROGRAMS, *PURE_PROGRAMS), json.loads(done.stdout), strict=True
    ):
        assert first, program.name
        assert first == again, f"{program.name} does not answer the same twice when alone"
        assert all((answer != first) == (program in STATEFUL_PROGRAMS) for answer in later), program.name


@pytest.mark.parametrize("sources", [SAMPLE, pytest.param(SOURCES, marks=pytest.mark.slow)], ids=["sample", "all"])
def test_no_program_gains_or_loses_by_what_is_kept(sandbox: Sandbox, sources: list[str]) -> None:
    assert differences(sandbox, sources) == {}


@pytest.mark.slow
def test_nor_on_two_workers() -> None:
    with LocalSandbox(2) as two:
        assert differences(two, SOURCES, seed=1) == {}


def test_two_workers_answer_as_one(sandbox: Sandbox) -> None:
    with LocalSandbox(2) as two:
        assert in_company(Judge(two), SAMPLE) == alone(sandbox, SAMPLE)


def test_any_other_program_may_have_run_before(sandbox: Sandbox) -> None:
    """Two programs in one batch: the second is what it is alone, with either of them first."""
    chance = random.Random(3)
    expected = dict(zip(SAMPLE, alone(sandbox, SAMPLE), strict=True))
    for _ in range(20):
        pair = chance.sample(SAMPLE, 2)
        for sources in (pair, pair[::-1]):
            assert in_company(Judge(sandbox), sources) == [expected[source] for source in sources]


def test_without_namespaces() -> None:
    with LocalSandbox(without=("namespaces",)) as made:
        assert differences(made, SAMPLE, judged=False) == {}


@pytest.mark.slow
def test_in_containers(engine: Any) -> None:
    from codea1_env.sandbox.docker.backend import DockerSandbox

    with DockerSandbox() as made:
        assert differences(made, SOURCES, judged=False) == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("default::ResourceWarning", "ignore::DeprecationWarning:ray")
def test_on_two_ray_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="the Ray backend needs the extra `ray`")
    from codea1_env.sandbox import RaySandbox

    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    with RaySandbox(workers=2, address="local") as made:
        assert differences(made, SOURCES, judged=False) == {}


@pytest.mark.slow
@pytest.mark.parametrize("without", [(), ("namespaces",)], ids=["namespaces", "no_namespaces"])
def test_as_an_ordinary_user(without: tuple[str, ...]) -> None:
    if os.geteuid() != 0:
        pytest.skip("the tests must run as root to become another user; the others have run as an ordinary one")
    done = subprocess.run(
        [sys.executable, "-m", "attacks.independence"],
        input=json.dumps({"without": without}),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])},
    )
    found = json.loads(done.stdout)
    if "skip" in found:
        pytest.skip(found["skip"])
    assert found == {}


# Programs made by chance: lines of a module, each of which may or may not keep something, and lines of `solve` that use
# what the module has. They need not work: what goes wrong is an answer as well.
_NUMBERS = (
    "x",
    "n",
    "3",
    "LIMIT",
    "len(ROW)",
    "len(MEMO)",
    "helper(x)",
    "kept(n)",
    "twice(x)",
    "next(NUMBERS)",
    "Box.n",
    "box.add(x)",
    "sum(ROW)",
    "MEMO.get(x, 0)",
    "(lambda a: a + n)(x)",
    "max(n, x)",
    "n // 2",
    "fresh(n)",
    "count()",
)
_MODULE = (
    "LIMIT = 5",
    "ROW = [1, 2, 3]",
    "MEMO = {}",
    "NUMBERS = iter(range(100))",
    "def helper(a, b=2):\n    return a * b - 1",
    "def kept(a, seen=[]):\n    seen.append(a)\n    return len(seen)",
    "import functools\n@functools.lru_cache(maxsize=None)\ndef twice(a):\n    return 2 * a",
    "class Box:\n    n = 0\n    rows = []\n    def __init__(self):\n        self.own = []\n"
    "    def add(self, a):\n        self.own.append(a)\n        return len(self.own)\nbox = Box()",
    "def fresh(a):\n    rows = [a]\n    rows.append(a)\n    return len(rows)",
    "def make():\n    total = 0\n    def count():\n        nonlocal total\n        total += 1\n        return total\n"
    "    return count\ncount = make()",
)
_LINES = (
    "n += {0}",
    "n = {0} - {1}",
    "ROW.append({0})",
    "MEMO[x] = {0}",
    "n += 1 if x in MEMO else 0",
    "Box.n += 1",
    "global LIMIT; LIMIT = {0}",
    "n = [a + {0} for a in range(3)][x % 3]",
    "for a in ROW: n += a",
    "rows = [{0}, {1}]; n += rows.pop()",
    "mine = ROW; mine[0] = {0}",
    "solve.n = getattr(solve, 'n', 0) + 1; n += solve.n",
    "own = Box(); n += own.add({0})",
    "n = helper({0}) if n else {1}",
    "Box.rows += [{0}]; n += len(Box.rows)",
    "n += sum(a for a in (x, {0}))",
    "box = Box(); box.n = {0}; n += box.n",
    "for n, a in enumerate(sorted(ROW)): pass",
    "text = f'{{n}}{{x}}'; n += len(text)",
    "n = dict(a={0}).get('a', 0)",
    "def inner(a): return a + {0}\n    n = inner(n)",
    "n += {{x: 1}}.setdefault({0}, 2)",
    "row = list(ROW); row.append({0}); n += len(row)",
)


@st.composite
def programs(draw: st.DrawFn) -> str:
    module = draw(st.lists(st.sampled_from(_MODULE), unique=True, min_size=3))
    lines = []
    for template in draw(st.lists(st.sampled_from(_LINES), min_size=1, max_size=6)):
        lines.append(template.format(draw(st.sampled_from(_NUMBERS)), draw(st.sampled_from(_NUMBERS))))
    declared = sorted({line.split(";")[0] for line in lines if line.startswith("global")})
    body = [*declared, "n = 0", *(line.split("; ", 1)[-1] if line.startswith("global") else line for line in lines)]
    return "\n".join(module) + "\ndef solve(x):\n    " + "\n    ".join([*body, "return n"]) + "\n"


# Without shrinking: the programs are small, and each try is a dozen passes of the sandbox.
@settings(deadline=None, max_examples=3, phases=(Phase.explicit, Phase.generate))
@given(sources=st.lists(programs(), min_size=4, max_size=10), seed=st.integers(0, 99))
def test_programs_made_by_chance(sandbox: Sandbox, sources: list[str], seed: int) -> None:
    assert differences(sandbox, sources, seed) == {}


@given(source=programs())
def test_programs_made_by_chance_are_programs(source: str) -> None:
    ast.parse(source)


@pytest.mark.slow
@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded HumanEval programs are not here")
def test_recorded_programs() -> None:
    """Calls alone and in company come to the same verdicts, for programs that neither hang nor crash."""
    chance = random.Random(7)
    with gzip.open(RECORDED, "rt") as file:
        records = [json.loads(line) for line in file]
    with LocalSandbox(2) as two:
        for record in chance.sample(records, SAMPLED_PROBLEMS):
            problem = Problem(record["task_id"], record["question"], record["entry_point"], time_limit_s=0.5)
            calls = _calls_of(record)
            sources = chance.sample(record["codes"], SAMPLED_PROGRAMS)
            separate = [
                Judge(two, execution_cache_mb=0).try_programs([_trial(problem, source, [call]) for source in sources])
                for call in calls
            ]
            shared = Judge(two).try_programs([_trial(problem, source, calls) for source in sources])
            backwards = Judge(two).try_programs([_trial(problem, source, calls[::-1]) for source in sources])
            for i, source in enumerate(sources):
                expected = [str(column[i].verdicts[0]) for column in separate]
                if {"timeout", "crash"} & set(expected):
                    continue
                texts = [column[i].returned[0] for column in separate]
                assert list(map(str, shared[i].verdicts)) == expected, source
                assert list(map(str, backwards[i].verdicts[::-1])) == expected, source
                assert _steady(shared[i].returned) == _steady(texts), source


def _trial(problem: Problem, source: str, calls: list[bytes]) -> Trial:
    return Trial(problem, source, tuple(Expectation(call, b'"nothing is right"') for call in calls))


def _steady(texts: Any) -> list[str]:
    return [text if " at 0x" not in text else "" for text in texts]


def _calls_of(record: dict[str, Any]) -> list[bytes]:
    """Of the problem's own test, the calls with plain arguments; at most six."""
    calls = []
    for node in ast.walk(ast.parse(record["check"])):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "candidate":
            node.func.id = record["entry_point"]
            test = read_case(TestCase(ast.unparse(node), "0"), record["entry_point"])
            if not test.reason and test.arguments is not None and test.arguments not in calls:
                calls.append(test.arguments)
    return calls[:6]


def test_the_questions_differ() -> None:
    """Calls that were the same would be asked once, and nothing be in company."""
    assert len(set(CALLS)) == 3
    assert PROBLEM.entry_point == "solve"


def test_memory_that_a_call_leaves_in_a_cycle_fails_no_other(sandbox: Sandbox) -> None:
    source = "def solve(x):\n    a = [bytearray(200 << 20)]\n    a.append(a)\n    return 1\n"
    assert in_company(Judge(sandbox), [source]) == [(b"1", b"1", b"1")]


_DEEP = """
def text(x):
    return str(x)
def down(n):
    return down(n - 1) if n else text(n)
def solve(x):
    for i in range(100 * (1 - x)):
        text(i)
    return down(DEPTH * x)
"""


def test_code_that_has_run_before_gets_no_deeper(sandbox: Sandbox) -> None:
    sources = [_DEEP.replace("DEPTH", str(depth)) for depth in range(970, 1000)]
    calls = CALLS[:2]
    expected = alone(sandbox, sources, calls)
    assert {row and row[1] for row in expected} == {b'"0"', None}
    assert in_company(Judge(sandbox), sources, calls) == expected
