"""Which mutants of a reference behave otherwise, and on which inputs: kill matrices over a pool of inputs.

The pool of a problem: the calls of its golden and hidden tests, and the same calls with their arguments changed a
little, replaced by the reference's own constants or put at boundary values; with fewer than eight tests also calls with
guessed arguments of all types. An input counts where the reference, asked under two hash seeds, returns the same plain
value within a small part of a call's time; whether it lies in the domain that the question states is not known. A
mutant is killed by an input on which it returns another value, raises, or takes more than four times as long as that.
References that are slower have their whole time, and so have their mutants.

A mutant that no input kills is dropped as equivalent, and counted; so is one that does not load. Mutants that mostly
run for ever are not made (`reading/programs/mutants.py`). Everything runs in the sandbox.

Does not prove equivalence: a mutant is called so because the pool did not tell it apart. After three inputs on which it
hangs a mutant is not tried on the others, which count as killing it.
"""

from __future__ import annotations

import ast
import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from codea1_env.errors import UnusableReference
from codea1_env.judging.bounded_cache import BoundedCache, bytes_of
from codea1_env.judging.judge import Expectation, Judge, Trial, TrialResult
from codea1_env.judging.repeats import call_keys, names_of
from codea1_env.judging.schedule import with_imports
from codea1_env.players.perturb import Change, boundary, changed_call, perturbed
from codea1_env.problems.kinds import adapted
from codea1_env.problems.problem import Problem
from codea1_env.problems.sources.pairs import wrapped_program
from codea1_env.reading.grammar import read_case
from codea1_env.reading.parsing import Unparsable, parse, parses
from codea1_env.reading.programs.mutants import Mutant, mutants
from codea1_env.reading.signatures import parameters
from codea1_env.reading.test_case import TestCase
from codea1_env.rewards.duel import Verdict
from codea1_env.sandbox.inside.looks import alone_because
from codea1_env.sandbox.protocol import Sandbox

POOL_SIZE = 64
"""Inputs in a pool, at most."""
_ALONE_SIZE = 24
"""The same where the reference may keep state: every call that fails is then run again, in a process of its own."""
CACHE_MB = 64
"""MiB of kill matrices that are remembered unless told otherwise."""
_FEW = 8
"""Tests below which arguments are guessed, too: of most functions of UnLeakedTestBench no right test is known."""
_GUESSES = (
    "0 1 2 7 -1 0.5 True None '' 'a' 'abc' 'a1,b2' '2024-01-31' b'ab' [] [1] [3,1,2] [1.5,-2.0] ['a','b'] "
    "[[1,2],[3,4]] () (1,2) {} {'a':1} {'a':'b'} {1}"
).split()
_TRIES = 2
"""Changed calls that are tried for each place of the pool: many are not for the reference."""
_REFERENCE_SHARE, _MUTANT_SHARE = 0.005, 0.02
"""Of a call's time limit. Where a mutant hangs, nearly all the time that it costs is this."""


@dataclass(frozen=True, slots=True)
class Input:
    """One call of the pool."""

    call: str
    """Canonical source."""
    expectation: Expectation
    """The call as data, and what the reference returns."""


@dataclass(frozen=True, slots=True, eq=False)
class KillMatrix:
    """What became of a reference's mutants."""

    problem_id: str
    mutants: tuple[Mutant, ...]
    """Those that some input kills."""
    inputs: tuple[Input, ...]
    kills: npt.NDArray[np.bool_]
    """(mutants, inputs)"""
    equivalent: tuple[Mutant, ...] = ()
    """Killed by no input of the pool: dropped."""
    unloadable: tuple[Mutant, ...] = ()
    """Do not load, so that any test kills them: dropped."""

    @property
    def made(self) -> int:
        """Mutants before any was dropped."""
        return len(self.mutants) + len(self.equivalent) + len(self.unloadable)


class KillMatrices:
    """Makes the kill matrices of problems, and remembers them. Not thread-safe."""

    def __init__(self, judge: Judge, *, seed: int = 0, cache_mb: int = CACHE_MB) -> None:
        """`seed`: draws the changed calls. `cache_mb`: 0 remembers nothing."""
        self._judge = judge
        self._seed = seed
        self._remembered: BoundedCache[str, KillMatrix] = BoundedCache(bytes_of("cache_mb", cache_mb))

    def of(self, problems: Sequence[Problem]) -> list[KillMatrix]:
        """One for each problem, in order.

        Raises UnusableReference for a problem whose reference is missing or does not load, SandboxError where the
        sandbox fails.
        """
        keys = [problem.content_hash for problem in problems]
        matrices = {key: matrix for key in keys if (matrix := self._remembered.get(key)) is not None}
        new = {key: problem for key, problem in zip(keys, problems, strict=True) if key not in matrices}
        for key, matrix in zip(new, self._made(list(new.values())), strict=True):
            matrices[key] = matrix
            self._remembered.put(key, matrix, _size(matrix))
        return [matrices[key] for key in keys]

    def _made(self, problems: Sequence[Problem]) -> list[KillMatrix]:
        pools = input_pools(self._judge, problems, self._seed)
        changed = [mutants(problem.reference_solution or "") for problem in problems]
        trials = []
        for problem, (inputs, is_slow), row in zip(problems, pools, changed, strict=True):
            share = 1.0 if is_slow else _MUTANT_SHARE
            tried = dataclasses.replace(problem, time_limit_s=share * problem.time_limit_s)
            expectations = tuple(each.expectation for each in inputs)
            trials += [Trial(tried, mutant.source, expectations) for mutant in row]
        results = iter(self._judge.try_programs(trials))
        return [
            _matrix(problem, inputs, row, [next(results) for _ in row])
            for problem, (inputs, _), row in zip(problems, pools, changed, strict=True)
        ]


InputPool = tuple[tuple[Input, ...], bool]
"""The inputs that a problem's mutants are tried on, and whether the reference needs more than a small part of its time
limit."""


def input_pools(judge: Judge, problems: Sequence[Problem], seed: int = 0) -> list[InputPool]:
    """The pool of each problem, at most POOL_SIZE inputs, no call twice: first its tests' calls, then changed ones.

    Of more tests than half the pool has room for, such hidden ones are taken as lie evenly among them. Raises
    UnusableReference.
    """
    sizes = [_ALONE_SIZE if _runs_alone(problem) else POOL_SIZE for problem in problems]
    wanted = [_calls(problem, most, seed) for problem, most in zip(problems, sizes, strict=True)]
    fast = [dataclasses.replace(problem, time_limit_s=_REFERENCE_SHARE * problem.time_limit_s) for problem in problems]
    pools = _answered(judge, fast, wanted)
    slow = [place for place, pool in enumerate(pools) if not pool]
    again = _answered(judge, [problems[place] for place in slow], [wanted[place][: sizes[place]] for place in slow])
    filled = [((pool or ())[:most], False) for pool, most in zip(pools, sizes, strict=True)]
    for place, pool in zip(slow, again, strict=True):
        if pool is None:
            raise UnusableReference(
                f"the reference_solution of problem {problems[place].problem_id!r} must be there, load and define "
                f"{problems[place].entry_point!r}, got one that does not"
            )
        filled[place] = pool, True
    return filled


def _calls(problem: Problem, size: int, seed: int) -> list[str]:
    """Sources of calls, the problem's own first."""
    golden, hidden = ([case.call for case in cases] for cases in (problem.golden_tests, problem.hidden_tests))
    room = min(max(size // 2 - len(golden), 0), len(hidden))
    own = [*golden, *(hidden[place * len(hidden) // room] for place in range(room))]
    generator = random.Random(f"pool {seed} {problem.problem_id}")
    guessed = _guessed(problem, generator, size // 4 if own else size) if len(own) < _FEW else []
    bases = [*own, *guessed]
    # Of boundary values many are outside the domain.
    changes = (perturbed, _own_constants(problem), perturbed, boundary)
    changed: list[str] = []
    for place in range(_TRIES * size if bases else 0):
        change = changes[place % 4]
        base = generator.choice(changed) if changed and place % 2 else generator.choice(own or guessed)
        changed.append(changed_call(base, change, generator))
    return list(dict.fromkeys([*bases, *changed]))


def _own_constants(problem: Problem) -> Change:
    """Puts the reference's own constants into arguments, ints off by one as well: what its conditions compare with."""
    try:
        module = parse(problem.reference_solution or "")
    except Unparsable:
        return perturbed
    known: dict[type, list[Any]] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Constant):
            known.setdefault(type(node.value), []).append(node.value)

    def change(node: ast.expr, generator: random.Random) -> ast.expr:
        if isinstance(node, ast.List | ast.Tuple) and node.elts:
            place = generator.randrange(len(node.elts))
            return type(node)([*node.elts[:place], change(node.elts[place], generator), *node.elts[place + 1 :]])
        options = known.get(type(node.value)) if isinstance(node, ast.Constant) else None
        if not options:
            return perturbed(node, generator)
        value = generator.choice(options)
        return ast.Constant(value + generator.choice((-1, 0, 1)) if type(value) is int else value)

    return change


def _guessed(problem: Problem, generator: random.Random, count: int) -> list[str]:
    """Calls with arguments of whatever types; none where the parameters are not plain to see."""
    places = len(parameters(problem.reference_solution or "", problem.entry_point))
    rows = [[generator.choice(_GUESSES) for _ in range(places)] for _ in range(count if places else 0)]
    return [f"{problem.entry_point}({', '.join(row)})" for row in rows]


def _answered(
    judge: Judge, problems: Sequence[Problem], wanted: Sequence[Sequence[str]]
) -> list[tuple[Input, ...] | None]:
    """The calls to which each reference has an answer; None where the reference does not load."""
    read = [
        [test for call in calls if not (test := read_case(TestCase(call, "None"), problem.entry_point)).reason]
        for problem, calls in zip(problems, wanted, strict=True)
    ]
    asked = []
    for problem, tests, stated in zip(problems, read, judge.evaluate(read), strict=True):
        able = [(test, e.arguments) for test, e in zip(tests, stated, strict=True) if isinstance(e, Expectation)]
        keys = call_keys(problem, [arguments for _, arguments in able], names_of(problem))
        different: dict[bytes, tuple[str, bytes]] = {}
        for (test, arguments), key in zip(able, keys, strict=True):
            different.setdefault(key, (test.call or "", arguments))
        asked.append(list(different.values()))
    pools: list[tuple[Input, ...] | None] = []
    for problem, calls in zip(problems, asked, strict=True):
        try:
            (values,) = judge.reference_values([(problem, [arguments for _, arguments in calls])])
        except UnusableReference:
            pools.append(None)
            continue
        pools.append(
            tuple(
                Input(call, Expectation(arguments, value.value))
                for (call, arguments), value in zip(calls, values, strict=True)
                if not value.failure
            )
        )
    return pools


def _runs_alone(problem: Problem) -> bool:
    return bool(alone_because(adapted(problem, with_imports(problem, problem.reference_solution or "")).source))


def _matrix(
    problem: Problem, inputs: tuple[Input, ...], row: Sequence[Mutant], results: Sequence[TrialResult]
) -> KillMatrix:
    verdicts = [[verdict is not Verdict.PASS for verdict in result.verdicts] for result in results]
    killed = [any(each) for each in verdicts]
    kills = np.array(verdicts, dtype=bool).reshape(len(row), len(inputs))  # also where there are none
    loaded = [result.executes for result in results]
    kept = [place for place in range(len(row)) if loaded[place] and killed[place]]
    return KillMatrix(
        problem.problem_id,
        tuple(row[place] for place in kept),
        inputs,
        kills[kept],
        tuple(row[place] for place in range(len(row)) if loaded[place] and not killed[place]),
        tuple(row[place] for place in range(len(row)) if not loaded[place]),
    )


def _size(matrix: KillMatrix) -> int:
    sources = sum(len(each.source) for each in (*matrix.mutants, *matrix.equivalent, *matrix.unloadable))
    data = sum(len(i.call) + len(i.expectation.arguments) + len(i.expectation.value) for i in matrix.inputs)
    return sources + data + 400 * (matrix.made + len(matrix.inputs)) + matrix.kills.size


def with_mutants(sandbox: Sandbox, problem: Problem, count: int) -> Problem:
    """The problem with at most `count` mutants, where it came without and its reference has some. Raises SandboxError.

    They are programs one change away from the reference, which some input tells from it. Of mutants that the same
    inputs kill one is taken, and those first that few inputs kill. A reference that wraps a whole program as a function
    gets none.
    """
    reference = problem.reference_solution
    if not count or problem.mutants or reference is None:
        return problem
    if parses(reference) and wrapped_program(parse(reference)) is not None:
        return problem
    try:
        (matrix,) = KillMatrices(Judge(sandbox), cache_mb=0).of([problem])
    except UnusableReference:
        return problem
    different: dict[bytes, tuple[int, str]] = {}
    for mutant, row in zip(matrix.mutants, matrix.kills, strict=True):
        different.setdefault(row.tobytes(), (int(row.sum()), mutant.source))
    chosen = sorted(different.values())[:count]
    return dataclasses.replace(problem, mutants=tuple(source for _, source in chosen))
