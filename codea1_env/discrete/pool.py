"""A pool: one question with programs and tests to choose from, and what every program does on every test.

Frozen; validates itself; the JSON form round-trips exactly. Does not judge anything: see `build.py`, which only takes
programs and tests whose verdicts do not depend on the company they are in, so that a suite of any of the tests can be
paid from what each test came to alone.
"""

from __future__ import annotations

import functools
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from codea1_env.checks import json_object, require
from codea1_env.errors import FormatError, about
from codea1_env.rewards.duel import Status
from codea1_env.whole_files import whole_file

_require = partial(require, error=FormatError)

SCHEMA = 1
MAX_TEST = 1000
"""Characters of a test, at most."""
RUN_STATUSES = frozenset((Status.KEPT, Status.WRONG_EXPECTED))
"""Statuses of tests that programs are run on (the latter with the reference's value)."""
_STATUSES = RUN_STATUSES | {Status.RAISES, Status.FLAKY, Status.REJECTED}
_FIELDS = ("problem_id", "question", "entry_point", "programs", "tests", "executes", "fails")
_OPTIONAL = ("source", "license")

Suite = tuple[int, ...]
"""What a tester picked from a pool's tests, in order."""


@dataclass(frozen=True, slots=True)
class Pool:
    """One question's choices and their outcomes. Raises FormatError for fields that do not fit together."""

    problem_id: str
    """Unique among the pools of a game."""
    question: str
    """What both players would read."""
    entry_point: str
    programs: tuple[str, ...]
    """Distinct sources; `read_program` reads each as it is."""
    tests: tuple[str, ...]
    """Distinct asserts, each one printable line of at most 1000 characters."""
    statuses: tuple[Status, ...]
    """What becomes of each test that stands alone: kept, wrong_expected, raises, flaky or rejected."""
    calls: tuple[int, ...]
    """Tests with equal numbers make the same call: the later one in a suite is a duplicate."""
    executes: tuple[bool, ...]
    """Whether each program loads and defines the entry point."""
    fails: tuple[tuple[bool, ...], ...]
    """`fails[p][t]`: program p does not pass test t, run with the reference's value. False where t is not run."""
    source: str = ""
    """Where the problem comes from."""
    license: str = ""

    def __post_init__(self) -> None:
        for name in ("problem_id", "question", "entry_point", "source", "license"):
            _require(isinstance(getattr(self, name), str), name, "be a string", getattr(self, name))
        _require(bool(self.problem_id), "problem_id", "be a non-empty string", self.problem_id)
        for name in ("programs", "tests"):
            texts = getattr(self, name)
            is_texts = isinstance(texts, tuple) and all(isinstance(text, str) for text in texts)
            _require(is_texts and bool(texts), name, "be a tuple of at least one string", texts)
            twice = [text for text, count in Counter(texts).items() if count > 1]
            _require(not twice, name, "be distinct", twice)
        for test in self.tests:
            fits = test.startswith("assert") and test.isprintable() and len(test) <= MAX_TEST
            _require(fits, "a test", f"be a printable line of at most {MAX_TEST} characters with an assert", test)
        for source in self.programs:
            is_text = not any("\ud800" <= character <= "\udfff" for character in source)
            _require(is_text, "a program", "be text that UTF-8 can hold", source)
        for name, wanted in (("statuses", self.tests), ("calls", self.tests), ("executes", self.programs)):
            values = getattr(self, name)
            fits = isinstance(values, tuple) and len(values) == len(wanted)
            _require(fits, name, f"be a tuple of {len(wanted)}", values)
        are_known = all(isinstance(each, Status) and each in _STATUSES for each in self.statuses)
        _require(are_known, "statuses", f"be of {sorted(_STATUSES)}", self.statuses)
        _require(all(type(call) is int for call in self.calls), "calls", "be ints", self.calls)
        _require(all(type(flag) is bool for flag in self.executes), "executes", "be bools", self.executes)
        self._check_outcomes()

    def _check_outcomes(self) -> None:
        size = f"hold {len(self.programs)} rows of {len(self.tests)} bools"
        is_table = isinstance(self.fails, tuple) and len(self.fails) == len(self.programs)
        is_table = is_table and all(
            isinstance(row, tuple) and len(row) == len(self.tests) and all(type(flag) is bool for flag in row)
            for row in self.fails
        )
        _require(is_table, "fails", size, self.fails)
        is_run = [status in RUN_STATUSES for status in self.statuses]
        for row, executes in zip(self.fails, self.executes, strict=True):
            none_else = not any(failed and not run for failed, run in zip(row, is_run, strict=True))
            _require(none_else, "fails", "be False for a test that is not run", row)
            _require(executes or list(row) == is_run, "fails", "be True throughout for what does not execute", row)
        outcomes: dict[int, tuple[bool, tuple[bool, ...]]] = {}
        for place, call in enumerate(self.calls):
            outcome = (is_run[place], tuple(row[place] for row in self.fails))
            same = outcomes.setdefault(call, outcome) == outcome
            _require(same, "tests of one call", "come to the same on every program", self.tests[place])

    @property
    def is_run(self) -> npt.NDArray[np.bool_]:
        """Which tests programs are run on. A new array, (tests,)."""
        return np.array([status in RUN_STATUSES for status in self.statuses])

    @property
    def kills(self) -> npt.NDArray[np.bool_]:
        """Which program fails which test. A new array, (programs, tests)."""
        return np.array(self.fails)

    def select(self, programs: Sequence[int], tests: Sequence[int]) -> Pool:
        """The pool of these programs and tests, in this order."""
        return replace(
            self,
            programs=tuple(self.programs[p] for p in programs),
            tests=tuple(self.tests[t] for t in tests),
            statuses=tuple(self.statuses[t] for t in tests),
            calls=tuple(self.calls[t] for t in tests),
            executes=tuple(self.executes[p] for p in programs),
            fails=tuple(tuple(self.fails[p][t] for t in tests) for p in programs),
        )

    def to_json(self) -> str:
        """One line of JSON; `from_json` gives back an equal pool."""
        record = {
            "schema": SCHEMA,
            **{name: getattr(self, name) for name in ("problem_id", "question", "entry_point", *_OPTIONAL)},
            "programs": self.programs,
            "tests": [list(test) for test in zip(self.tests, self.statuses, self.calls, strict=True)],
            "executes": _digits(self.executes),
            "fails": [_digits(row) for row in self.fails],
        }
        return json.dumps(record, ensure_ascii=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str | bytes) -> Pool:
        """Read what `to_json` wrote. Raises FormatError naming the field, what it must be and what it was."""
        record = json_object(line, "a pool", FormatError)
        _require(record.get("schema") == SCHEMA, "schema", f"be {SCHEMA}", record.get("schema"))
        missing = [name for name in _FIELDS if name not in record]
        if missing:
            must = f"have the fields {', '.join(_FIELDS)}"
            raise FormatError(f"a pool must {must}, got one without {', '.join(missing)}")
        tests = record["tests"]
        is_tests = isinstance(tests, list) and all(isinstance(test, list) and len(test) == 3 for test in tests)
        _require(is_tests, "tests", "be a list of [text, status, call]", tests)
        for name in ("programs", "fails"):
            _require(isinstance(record[name], list), name, "be a list", record[name])
        return cls(
            programs=tuple(record["programs"]),
            tests=tuple(test[0] for test in tests),
            statuses=tuple(_status(test[1]) for test in tests),
            calls=tuple(test[2] for test in tests),
            executes=_flags(record["executes"], "executes"),
            fails=tuple(_flags(row, "a row of fails") for row in record["fails"]),
            **{name: record[name] for name in ("problem_id", "question", "entry_point")},
            **{name: record[name] for name in _OPTIONAL if name in record},
        )


def _digits(flags: Sequence[bool]) -> str:
    return "".join("1" if flag else "0" for flag in flags)


def _flags(digits: Any, field: str) -> tuple[bool, ...]:
    _require(isinstance(digits, str) and set(digits) <= {"0", "1"}, field, "be a string of 0 and 1", digits)
    return tuple(digit == "1" for digit in digits)


def _status(value: Any) -> Status:
    known = {str(status): status for status in sorted(_STATUSES)}
    _require(isinstance(value, str) and value in known, "a test's status", f"be one of {', '.join(known)}", value)
    return known[value]


@functools.cache
def bundled_pools() -> tuple[Pool, ...]:
    """A pool for each bundled problem: its reference and mutants; golden tests, perturbed ones, right and wrong.

    The same tuple at every call. Made by `codea1 pools build`; hidden tests are not in them.
    """
    resource = resources.files("codea1_env.discrete").joinpath("bundled.jsonl")
    with resource.open("rb") as lines:
        return _parsed(lines, "bundled.jsonl")


def read_pools(path: str | os.PathLike[str]) -> tuple[Pool, ...]:
    """All pools of a file, in order. Raises FormatError with path, line, field, what it must be and what it was."""
    with open(path, "rb") as lines:
        return _parsed(lines, os.fspath(path))


def write_pools(path: str | os.PathLike[str], pools: Iterable[Pool]) -> None:
    """Write a file of pools, whole or not at all. Equal pools, equal bytes."""
    with whole_file(path) as file:
        for pool in pools:
            file.write(pool.to_json().encode("ascii") + b"\n")


def _parsed(lines: Iterable[bytes], name: str) -> tuple[Pool, ...]:
    pools: dict[str, Pool] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        with about(f"{name}:{number}"):
            pool = Pool.from_json(line)
        if pool.problem_id in pools:
            raise FormatError(f"{name}:{number}: problem_id must be unique in its file, got {pool.problem_id!r} again")
        pools[pool.problem_id] = pool
    return tuple(pools.values())
