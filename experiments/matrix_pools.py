"""Pools of the discrete game as arrays: what `matrix_study.py` plays on.

Every question's calls are split in two: half are played, half are hidden and only measure. Features are read off the
texts of programs and tests, never off what they came to, and mean the same for every question: what a policy learns on
one question moves its choices on all others. Does not learn and does not pay.
"""

from __future__ import annotations

import ast
import hashlib
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from codea1_env import LocalSandbox, Problem, Verdict, read_suite
from codea1_env.discrete import Pool
from codea1_env.discrete.pool import RUN_STATUSES
from codea1_env.judging.judge import Expectation, Judge, Trial
from codea1_env.rewards.duel import Status

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

LEAST_PROGRAMS, LEAST_CALLS = 4, 8
"""A question takes part with so many programs and so many different calls that programs are run on."""
GOLDEN = 3
"""Golden tests of a question: the first of its played calls, in an order by chance."""
_BUCKETS = 100
"""Features for pairs of neighbouring words of a program; half as many for words of a test."""
_WORD = re.compile(r"[A-Za-z_]+|\d+|[^\sA-Za-z_\d]")
_NODES = (
    ast.FunctionDef, ast.Return, ast.For, ast.While, ast.If, ast.IfExp, ast.ListComp, ast.GeneratorExp, ast.Call,
    ast.Compare, ast.BoolOp, ast.BinOp, ast.AugAssign, ast.Assign, ast.Subscript, ast.Slice, ast.Constant, ast.Raise,
    ast.Try, ast.Import, ast.Lambda, ast.Pass, ast.UnaryOp, ast.Break,
)  # fmt: skip
_LITERALS = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.UnaryOp, ast.Call, ast.Name)


@dataclass(frozen=True, slots=True)
class Questions:
    """All questions of one seed's split: Q questions, P programs, T played tests, H hidden calls, padded with 0."""

    ids: tuple[str, ...]
    pools: tuple[Pool, ...]
    """Each with its played tests only: what the arrays hold."""
    programs: Flags
    """Which places hold a program, (Q, P)."""
    executes: Flags
    """(Q, P)."""
    tests: Flags
    """Which places hold a test, (Q, T)."""
    kept: Flags
    """Tests that state the reference's value, (Q, T)."""
    run: Flags
    """Tests that programs are run on: those, and such with a wrong value, (Q, T)."""
    calls: Ints
    """The first played test with the same call, (Q, T)."""
    golden: Flags
    """Golden tests, (Q, T)."""
    fails: Flags
    """Whether a program fails a test, run with the reference's value, (Q, P, T)."""
    written: Flags
    """Whether it passes the test as it is written, (Q, P, T)."""
    hidden: Flags
    """Whether it passes a hidden call, (Q, P, H)."""
    hidden_calls: Flags
    """Which places hold a hidden call, (Q, H)."""
    program_features: Floats
    """(Q, P, D)."""
    shapes: Floats
    """Of these the first S, the counts: what a white-box tester sees of a program, (Q, P, S)."""
    test_features: Floats
    """(Q, T, F)."""

    @property
    def pass_rates(self) -> Floats:
        """The share of a question's hidden calls that a program passes, (Q, P)."""
        return self.hidden.sum(2) / self.hidden_calls.sum(1)[:, None]


@dataclass(frozen=True, slots=True)
class Source:
    """Pools that take part, and what does not depend on a seed."""

    pools: tuple[Pool, ...]
    written: tuple[Flags, ...]
    """Whether programs pass tests as they are written, (programs, tests) each."""
    programs: tuple[Floats, ...]
    """Features, (programs, D) each."""
    tests: tuple[Floats, ...]
    """Features, (tests, F) each."""


def source_of(pools: Sequence[Pool], outcomes: Callable[[Sequence[Pool]], Sequence[Flags]]) -> Source:
    """`outcomes`: whether programs pass tests as they are written, for the pools that take part."""
    pools = tuple(pool for pool in pools if takes_part(pool))
    written = outcomes(pools)
    programs = standardised([[program_counts(text) for text in pool.programs] for pool in pools])
    tests = standardised([[test_counts(text) for text in pool.tests] for pool in pools])
    words = [[hashed(text, _BUCKETS, 2) for text in pool.programs] for pool in pools]
    literals = [[hashed(text, _BUCKETS // 2, 1) for text in pool.tests] for pool in pools]
    join = [np.hstack([counts, np.array(more)]) for counts, more in zip(programs, words, strict=True)]
    join_tests = [np.hstack([counts, np.array(more)]) for counts, more in zip(tests, literals, strict=True)]
    return Source(pools, tuple(written), tuple(join), tuple(join_tests))


def takes_part(pool: Pool) -> bool:
    """Enough programs and calls, and neither all outcomes passes nor all failures."""
    is_run = pool.is_run
    outcomes = pool.kills[:, is_run]
    calls = {call for call, run in zip(pool.calls, is_run, strict=True) if run}
    return len(pool.programs) >= LEAST_PROGRAMS and len(calls) >= LEAST_CALLS and 0 < outcomes.mean() < 1


def questions_of(source: Source, seed: int) -> Questions:
    """One seed's split of every question's calls."""
    parts = [_split(pool, np.random.default_rng([seed, zlib.crc32(pool.problem_id.encode())])) for pool in source.pools]
    played = [part[0] for part in parts]
    pools = [pool.select(range(len(pool.programs)), places) for pool, places in zip(source.pools, played, strict=True)]
    firsts = [[pool.calls.index(call) for call in pool.calls] for pool in pools]
    is_run = [pool.is_run for pool in pools]
    hidden = [
        np.array([[not row[place] for place in places] for row in pool.fails])
        for pool, (_, places) in zip(source.pools, parts, strict=True)
    ]
    features = [one[places] for one, places in zip(source.tests, played, strict=True)]
    return Questions(
        tuple(pool.problem_id for pool in pools),
        tuple(pools),
        programs=padded([np.ones(len(pool.programs), bool) for pool in pools]),
        executes=padded([np.array(pool.executes) for pool in pools]),
        tests=padded([np.ones(len(pool.tests), bool) for pool in pools]),
        kept=padded([np.array([status is Status.KEPT for status in pool.statuses]) for pool in pools]),
        run=padded(is_run),
        calls=padded([np.array(places) for places in firsts]),
        golden=padded([_golden(places, runs) for places, runs in zip(firsts, is_run, strict=True)]),
        fails=padded([pool.kills for pool in pools]),
        written=padded([one[:, places] for one, places in zip(source.written, played, strict=True)]),
        hidden=padded(hidden),
        hidden_calls=padded([np.ones(one.shape[1], bool) for one in hidden]),
        program_features=padded(list(source.programs)),
        shapes=padded([one[:, : len(_NODES) + 2] for one in source.programs]),
        test_features=padded(features),
    )


def _split(pool: Pool, generator: np.random.Generator) -> tuple[list[int], list[int]]:
    """Places of the tests that are played, those of the first calls first; one place for every hidden call."""
    calls: dict[int, list[int]] = {}
    for place, call in enumerate(pool.calls):
        calls.setdefault(call, []).append(place)
    run = [call for call in calls if pool.statuses[calls[call][0]] in RUN_STATUSES]
    order = [run[place] for place in generator.permutation(len(run))]
    hidden, shown = order[: len(order) // 2], order[len(order) // 2 :]
    played = [place for call in shown for place in calls[call]]
    played += [place for place, status in enumerate(pool.statuses) if status not in RUN_STATUSES]
    return played, [calls[call][0] for call in hidden]


def _golden(firsts: Sequence[int], runs: Flags) -> Flags:
    chosen = list(dict.fromkeys(place for place, run in zip(firsts, runs, strict=True) if run))[:GOLDEN]
    return np.isin(np.arange(len(firsts)), chosen)


def padded(arrays: Sequence[NDArray]) -> NDArray:
    """One array with a first axis for the questions."""
    shape = np.max([array.shape for array in arrays], axis=0)
    result = np.zeros((len(arrays), *shape), arrays[0].dtype)
    for place, array in enumerate(arrays):
        result[(place, *map(slice, array.shape))] = array
    return result


def written_outcomes(pools: Sequence[Pool], cache: Path) -> list[Flags]:
    """(programs, tests) for each pool: a program passes a test as it is written, wrong values included.

    Runs them, unless the file `cache` says what they came to.
    """
    key = hashlib.sha256("\n".join(pool.to_json() for pool in pools).encode()).hexdigest()
    if cache.exists():
        with np.load(cache) as saved:
            if str(saved["key"]) == key:
                return [saved[f"pool{place}"] for place in range(len(pools))]
    with LocalSandbox(workers=2) as sandbox:
        judge = Judge(sandbox)
        found = [_written(judge, pool) for pool in pools]
    np.savez_compressed(cache, key=key, **{f"pool{place}": flags for place, flags in enumerate(found)})
    return found


def _written(judge: Judge, pool: Pool) -> Flags:
    problem = Problem(pool.problem_id, pool.question, pool.entry_point)
    tests = [read_suite(text, pool.entry_point).tests[0] for text in pool.tests]
    accepted = [place for place, test in enumerate(tests) if not test.reason]
    (stated,) = judge.evaluate([[tests[place] for place in accepted]])
    asked = [(place, one) for place, one in zip(accepted, stated, strict=True) if isinstance(one, Expectation)]
    expectations = tuple(Expectation(one.arguments, one.value) for _, one in asked)
    flags = np.zeros((len(pool.programs), len(pool.tests)), bool)
    results = judge.try_programs([Trial(problem, source, expectations) for source in pool.programs])
    for row, result in zip(flags, results, strict=True):
        for (place, _), verdict in zip(asked, result.verdicts, strict=True):
            row[place] = verdict is Verdict.PASS
    return flags


def program_counts(text: str) -> list[float]:
    """Kinds of syntax, lines and whether there is any syntax at all."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        nodes = []
    return [*(sum(isinstance(node, kind) for node in nodes) for kind in _NODES), text.count("\n"), float(not nodes)]


def test_counts(text: str) -> list[float]:
    """Kinds of values on both sides, their sizes, and whether they are empty, zero, negative or the same."""
    try:
        tree = ast.parse(text).body[0]
        call, stated = tree.test.left, tree.test.comparators[0]  # type: ignore[attr-defined]
        arguments = list(call.args)  # type: ignore[attr-defined]
    except (SyntaxError, ValueError, AttributeError, IndexError, RecursionError, MemoryError):
        return [1.0] + [0.0] * (len(_LITERALS) + 13)
    nodes = [node for argument in arguments for node in ast.walk(argument)]
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    numbers = [abs(value) for value in constants if isinstance(value, int | float)]
    strings = [value for value in constants if isinstance(value, str)]
    empty = [node for node in nodes if isinstance(node, ast.List | ast.Tuple) and not node.elts]
    return [
        0.0,
        *(float(sum(isinstance(node, kind) for node in nodes)) for kind in _LITERALS),
        float(len(arguments)),
        float(len(numbers)),
        float(len(strings)),
        float(len(empty)),
        float(sum(value == 0 for value in numbers)),
        float(max([min(value, 1e6) for value in numbers], default=0.0)),
        float(max(map(len, strings), default=0)),
        float("" in strings),
        float(isinstance(stated, ast.Constant) and isinstance(stated.value, bool)),
        float(isinstance(stated, ast.List | ast.Tuple | ast.Dict)),
        float(isinstance(stated, ast.Constant) and isinstance(stated.value, str)),
        float(any(ast.dump(argument) == ast.dump(stated) for argument in arguments)),
        float(len(text)),
    ]


def standardised(counts: Sequence[Sequence[Sequence[float]]]) -> list[Floats]:
    """Logarithms of counts with mean 0 and deviation 1 over all texts of all questions; a row's length is about 1."""
    logs = [np.log1p(np.array(rows, dtype=float)) for rows in counts]
    everything = np.concatenate(logs)
    deviations = everything.std(0)
    scale = np.where(deviations > 0, deviations, 1.0) * np.sqrt(everything.shape[1])
    return [(rows - everything.mean(0)) / scale for rows in logs]


def hashed(text: str, buckets: int, span: int) -> Floats:
    """How often runs of `span` words fall into each bucket, (buckets,), length 1."""
    words = _WORD.findall(text)
    counts = np.zeros(buckets)
    for start in range(len(words) - span + 1):
        counts[zlib.crc32(" ".join(words[start : start + span]).encode("utf-8", "replace")) % buckets] += 1
    return counts / max(float(np.linalg.norm(counts)), 1.0)
