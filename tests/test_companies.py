"""What a call comes to is the same alone and in every company, for programs that keep something or only look so.

Each program is asked for up to twenty calls: each alone, and then two to twenty of them in orders made by chance,
beside all other programs. `test_independence.py` has programs whose every answer tells of the calls before; here many
answers do not: only some orders and some companies show that something was kept.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from attacks.independence import KEEPING_PROGRAMS, ONLY_LOOKING_PROGRAMS, Program
from attacks.samples import some_of_each_kind

from codea1_env.judging.execution import Execution
from codea1_env.judging.schedule import turn
from codea1_env.problems.problem import Problem
from codea1_env.sandbox import LocalSandbox
from codea1_env.sandbox.protocol import Outcome, Sandbox

PROBLEM = Problem("companies", "Return anything.", "solve", time_limit_s=2.0, memory_mb=512)
PROGRAMS = (*KEEPING_PROGRAMS, *ONLY_LOOKING_PROGRAMS)
SAMPLE = [*some_of_each_kind(KEEPING_PROGRAMS, step=8), *some_of_each_kind(ONLY_LOOKING_PROGRAMS, step=8)]
ARGUMENTS = [(x, [x % 3, x, 7]) for x in range(20)]
CALLS = [json.dumps([arguments, []]).encode() for arguments in ARGUMENTS]
KINDS = (
    "primers tables counters functions classes modules builtins contexts caches iterators registries descriptors chance"
)


def companies(seed: int, count: int) -> Iterator[list[int]]:
    """Places of calls in orders made by chance, two to twenty of them, few more often than many."""
    chance = random.Random(seed)
    for _ in range(count):
        yield chance.sample(range(len(CALLS)), min(chance.randint(2, 20), chance.randint(2, 20), chance.randint(2, 20)))


def outcomes(sandbox: Sandbox, places: Sequence[int], sources: Sequence[str]) -> list[list[Outcome]]:
    """Of every program, what these calls come to, asked in this order and without a memory of others."""
    turns = [turn(PROBLEM, source, [CALLS[place] for place in places]).job() for source in sources]
    results = Execution(sandbox, 0).run(turns)
    assert all(result.loaded for result in results)
    return [list(result.outcomes) for result in results]


Alone = list[dict[int, Outcome]]


def alone_of(sandbox: Sandbox, programs: Sequence[Program], seed: int, count: int) -> Alone:
    """By program and place of the call, for the calls of these companies."""
    sources = [program.source for program in programs]
    asked = sorted({place for places in companies(seed, count) for place in places})
    columns = {place: outcomes(sandbox, [place], sources) for place in asked}
    return [{place: column[number][0] for place, column in columns.items()} for number in range(len(sources))]


def differing(
    one: Sandbox, sandbox: Sandbox, seed: int, count: int, programs: Sequence[Program] = PROGRAMS
) -> dict[str, str]:
    """By name of the program, one company on `sandbox` in which a call came to something else than alone on `one`."""
    alone = alone_of(one, programs, seed, count)
    found = {}
    for places in companies(seed, count):
        order = random.Random(repr(places)).sample(range(len(programs)), len(programs))
        for number, row in zip(order, outcomes(sandbox, places, [programs[i].source for i in order]), strict=True):
            expected = [alone[number][place] for place in places]
            if row != expected:
                found[programs[number].name] = f"{places}: {row} instead of {expected}"
    return found


def test_the_corpus_is_broad() -> None:
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS)
    assert len(KEEPING_PROGRAMS) >= 80
    assert len(ONLY_LOOKING_PROGRAMS) >= 20
    assert {program.kind for program in KEEPING_PROGRAMS} >= set(KINDS.split())
    assert sum(map(len, companies(8, 16))) == 121
    assert set(range(len(CALLS))) == {place for places in companies(8, 16) for place in places}


_IN_ONE_PROCESS = """
import dataclasses, decimal, enum, io, json, os, pathlib, random, statistics, sys, types, typing
import numpy, numpy.random  # once, and not in each process
def answers(source, calls):
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        random.seed(0)
        module = sys.modules["solution"] = types.ModuleType("solution")
        exec(source, vars(module))
        found = []
        for x, row in json.loads(json.dumps(calls)):
            try:
                found.append(repr(vars(module)["solve"](x, row)))
            except Exception as error:
                found.append(f"{type(error).__name__}: {error}")
        os.write(writing, repr(found).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as text:
        answer = text.read()
    os.waitpid(pid, 0)
    return answer and eval(answer)
sources, calls, orders = json.load(sys.stdin)
def differ(source):
    alone = {}
    for order in orders:
        for i in order:
            if i not in alone:
                alone[i] = answers(source, [calls[i]])[0]
        if answers(source, [calls[i] for i in order]) != [alone[i] for i in order]:
            return True
    return False
print(json.dumps([differ(source) for source in sources]))
"""


_KEEPS_BEFORE = {
    "interned_name_of_a_path": (3, 13),
    "attribute_of_what_paths_share": (3, 13),
    "text_of_a_path_asked_by_a_function": (3, 13),
    "imported_into_the_space_of_a_class": (3, 13),
    "lock_of_a_cached_property": (3, 12),
    "stored_in_a_part_of_an_alias": (3, 12),
}
"""Programs that keep nothing from a version of Python on."""


@pytest.mark.slow
def test_the_corpus_keeps_state_in_a_plain_interpreter() -> None:
    """Programs that kept none would make the tests below say nothing; and honest ones that did would be a mistake."""
    orders = list(companies(3, 12))
    programs = [program for program in PROGRAMS if program.kind != "addresses"]  # no two processes agree on these
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", _IN_ONE_PROCESS],
        input=json.dumps([[program.source for program in programs], ARGUMENTS, orders]),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    for program, differs in zip(programs, json.loads(done.stdout), strict=True):
        keeps = program in KEEPING_PROGRAMS and sys.version_info < _KEEPS_BEFORE.get(program.name, (4,))
        assert differs == keeps, program.name


def test_no_call_comes_to_something_else_in_company(sandbox: Sandbox) -> None:
    assert differing(sandbox, sandbox, seed=0, count=3, programs=SAMPLE) == {}


@pytest.mark.slow
@pytest.mark.longest
def test_no_call_comes_to_something_else_in_sixteen_companies(sandbox: Sandbox) -> None:
    with LocalSandbox(2) as two:
        assert differing(sandbox, two, seed=8, count=16) == {}


@pytest.mark.slow
def test_nor_without_namespaces() -> None:
    with LocalSandbox(without=("namespaces",)) as made:  # where memory is elsewhere, so addresses are others
        programs = [*some_of_each_kind(KEEPING_PROGRAMS), *some_of_each_kind(ONLY_LOOKING_PROGRAMS)]
        assert differing(made, made, seed=2, count=4, programs=programs) == {}


METHOD = Problem("method", "Return anything.", "Solution().solve", kind="method", time_limit_s=2.0, memory_mb=512)
RAISES = ("RecursionError", "Exception(message)")
WITH_COUNTERS = [
    json.dumps([[{"k": ["Counter", [["a", x]]]}, x], []], separators=(",", ":")).encode() for x in range(20)
]
WITH_CODE = [
    json.dumps([[{"e": text}, x], []], separators=(",", ":")).encode()
    for x, text in enumerate(
        ["len", "lambda a: a", "abs", "max", "int", "sorted", "lambda a, b=[]: b"] * 2 + ["str"] * 6
    )
]
OTHERS = {
    "what the first object does as it is made": (
        METHOD,
        CALLS,
        "class Solution:\n    n = 0\n    def __init__(self):\n        self.k = Solution.n\n        Solution.n = 1\n"
        "    def __getattr__(self, name):\n        return lambda x, row: self.k",
    ),
    "a method that is an object's own": (
        METHOD,
        CALLS,
        "N = [0]\nclass Solution:\n    def __init__(self):\n        self.mine = N[0]\n        N[0] = 1\n"
        "        self.solve = lambda x, row: self.mine",
    ),
    "the stack's end as an answer": (
        replace(PROBLEM, raises=RAISES),
        CALLS,
        "def go(n):\n    return 0 if n == 0 else 1 + go(n - 1)\ndef solve(x, row):\n    return go(880 + 6 * x)",
    ),
    "the class of an argument": (
        PROBLEM,
        WITH_COUNTERS,
        "def solve(x, row):\n    kind = type(x)\n    before = hasattr(x, 'kept')\n    kind.kept = 1\n    return before",
    ),
    "code among the arguments, in a set": (
        PROBLEM,
        WITH_CODE,
        "def solve(f, row):\n    return [g.__name__ for g in {f, len, abs, max}]",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_nor_where_methods_exceptions_and_other_arguments_are(sandbox: Sandbox, name: str) -> None:
    problem, calls, source = OTHERS[name]

    def answers(places: Sequence[int]) -> list[Outcome]:
        [result] = Execution(sandbox, 0).run([turn(problem, source, [calls[place] for place in places]).job()])
        assert result.loaded
        return [*result.outcomes]

    expected = [answers([place])[0] for place in range(len(calls))]
    for places in companies(5, 12):
        assert answers(places) == [expected[place] for place in places], places
