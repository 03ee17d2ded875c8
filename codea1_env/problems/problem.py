"""One problem: a question, the function it asks for, and what decides whether an answer is right.

Does not promise that the reference solution is correct or that it runs: nothing is executed here.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import keyword
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from codea1_env.checks import is_choice, is_number, json_object, require
from codea1_env.errors import ProblemFormatError
from codea1_env.problems.checkers import COMPARISONS, OF_TEXTS, TOKENS, is_checker
from codea1_env.problems.kinds import KINDS, METHOD, RAISES, Kind
from codea1_env.problems.time_limits import LONGEST_S, TimeLimit
from codea1_env.problems.tolerances import CLOSE, Tolerances
from codea1_env.reading.test_case import TestCase
from codea1_env.sandbox.protocol import MEMORY_MB, TIME_LIMIT_S
from codea1_env.sandbox.worlds import PACKAGES

_require = partial(require, error=ProblemFormatError)

LANGUAGES = ("python",)
_TEXTS = (
    "problem_id", "question", "entry_point", "starter_code", "imports", "source", "difficulty", "license",
    "test_script",
)  # fmt: skip
_CASES, _STRINGS = ("golden_tests", "hidden_tests"), ("mutants", "packages", "raises")
_LATER_FIELDS = (
    "time_limit", "suite_size", "tolerance", "compare", "packages", "kind", "checker", "raises", "test_script",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Problem:
    """A programming problem. Frozen; validates itself; the JSON form round-trips exactly."""

    problem_id: str
    """Unique name; the Mistake Book is keyed by it."""
    question: str
    """The text that both players read."""
    entry_point: str
    """The name that tests call: a function or class that a solution must define, `Solution().method`, or, for a
    program, any name; in the form that Python gives to names (NFKC)."""
    reference_solution: str | None = None
    """Source of a correct solution, the oracle of test validity. None: no test can be validated."""
    golden_tests: tuple[TestCase, ...] = ()
    """The problem's own (usually few, usually weak) tests: the reward of the golden-test baseline."""
    hidden_tests: tuple[TestCase, ...] = ()
    """Held-out tests for evaluation. Never a reward, never shown."""
    test_script: str = ""
    """A test script that runs beside a solution in one process (unittest, pytest or plain asserts), for evaluation by
    `--judge scripts` (`judging/scripts.py`): a solution can forge its outcome. Never shown."""
    mutants: tuple[str, ...] = ()
    """Sources of plausible wrong solutions, for evaluating testers. Never shown to the coder."""
    starter_code: str = ""
    """Given to the coder with the question, e.g. a signature."""
    imports: str = ""
    """Import statements put before every solution of this problem, the reference included."""
    language: str = "python"
    source: str = ""
    """Where the problem comes from, e.g. a data set's name and revision."""
    difficulty: str = ""
    license: str = ""
    time_limit_s: float = TIME_LIMIT_S
    """Seconds of CPU time for loading a solution and for each call, > 0."""
    time_limit: TimeLimit | None = None
    """Instead of `time_limit_s`: a limit relative to the reference's time on the problem's golden and hidden tests:
    {times_reference: 5, at_least: 1} (`problems/time_limits.py`)."""
    memory_mb: int = MEMORY_MB
    """MiB of address space of a solution's process, >= 64, beyond what its packages take."""
    suite_size: int | None = None
    """K, the asserts that a suite for this problem should hold, >= 1. None: the run's (`RewardConfig.suite_size`)."""
    tolerance: float = 0.0
    """Relative and absolute tolerance, in [0, 1), within which a float that a solution returns or prints, and one that
    a tester states, is right; 0 is exact. A checker that is a program decides without it."""
    compare: Tolerances | None = None
    """Instead of `tolerance`: tolerances by type (`problems/tolerances.py`): {float: {relative: 1e-9, absolute:
    1e-6}}."""
    packages: tuple[str, ...] = ()
    """Third-party packages that the sandbox must have for it, from `sandbox.worlds.PACKAGES`. Others can be imported
    where they are installed."""
    kind: Kind = "function"
    """What a solution is and how it is called (`problems/kinds.py`)."""
    checker: str = ""
    """What decides whether a value is right: a program, or the name of a comparison (`problems/checkers.py`). If it is
    empty, a value is right if it equals the reference's, and the output of a program if its lines do. Programs take the
    names `tokens` and `decimals` only."""
    raises: tuple[str, ...] = ()
    """Names of the exceptions that are answers: a call that raises ValueError has the value {'raises': 'ValueError'},
    and with 'ValueError(message)' also its 'message'. Every other exception is a failure. Not for programs."""

    def __post_init__(self) -> None:
        for name in _TEXTS:
            _require(isinstance(getattr(self, name), str), name, "be a string", getattr(self, name))
        _require(bool(self.problem_id), "problem_id", "be a non-empty string", self.problem_id)
        _require(is_choice(self.kind, KINDS), "kind", f"be one of {', '.join(KINDS)}", self.kind)
        match = METHOD.fullmatch(self.entry_point) if self.kind == "method" else None
        names = match.groups() if match else (self.entry_point,)
        is_name = all(name.isidentifier() and not keyword.iskeyword(name) for name in names)
        of_method = "be Class().method" if self.kind == "method" else "be a Python function name"
        _require(is_name and bool(match) == (self.kind == "method"), "entry_point", of_method, self.entry_point)
        read = unicodedata.normalize("NFKC", self.entry_point)
        _require(read == self.entry_point, "entry_point", f"be as Python reads it (NFKC), {read!r}", self.entry_point)
        reference = self.reference_solution
        _require(
            reference is None or isinstance(reference, str), "reference_solution", "be a string or null", reference
        )
        for name in (*_CASES, *_STRINGS):
            kind, shown = (TestCase, "TestCase") if name in _CASES else (str, "strings")
            value = getattr(self, name)
            is_tuple = isinstance(value, tuple) and all(isinstance(each, kind) for each in value)
            _require(is_tuple, name, f"be a tuple of {shown}", value)
        _require(is_choice(self.language, LANGUAGES), "language", f"be one of {LANGUAGES}", self.language)
        is_limit = is_number(self.time_limit_s) and 0 < self.time_limit_s <= LONGEST_S
        _require(is_limit, "time_limit_s", f"be in (0, {LONGEST_S:g}] s", self.time_limit_s)
        if self.time_limit is not None:
            object.__setattr__(self, "time_limit", TimeLimit.of(self.time_limit, "time_limit", ProblemFormatError))
            is_alone = self.time_limit_s == TIME_LIMIT_S
            _require(is_alone, "time_limit_s", "be left out beside time_limit, which decides it", self.time_limit_s)
        memory, size = self.memory_mb, self.suite_size
        _require(type(memory) is int and 64 <= memory <= 1 << 20, "memory_mb", "be in [64, 1048576] MiB", memory)
        must = "be null, for the run's, or a whole number of at least 1"
        _require(size is None or (type(size) is int and size >= 1), "suite_size", must, size)
        _require(is_number(self.tolerance) and 0 <= self.tolerance < 1, "tolerance", "be in [0, 1)", self.tolerance)
        if self.compare is not None:
            allowed = Tolerances.of(self.compare, "compare", ProblemFormatError)
            _require(not self.tolerance, "tolerance", "be left out beside compare, which says more", self.tolerance)
            is_number_alone = not isinstance(allowed.plain, dict)  # then there is one way to say it
            object.__setattr__(self, "tolerance", allowed.plain if is_number_alone else 0.0)
            object.__setattr__(self, "compare", None if is_number_alone else allowed)
        are_known = set(self.packages) <= set(PACKAGES) and len(set(self.packages)) == len(self.packages)
        _require(are_known, "packages", f"be a tuple of different names among {', '.join(PACKAGES)}", self.packages)
        is_checked = isinstance(self.checker, str) and (not self.checker or is_checker(self.checker))
        named = f"be {', '.join(COMPARISONS)} or a program with check(arguments, returned, reference)"
        _require(is_checked, "checker", named, self.checker)
        of_texts = f"be empty, {', '.join(OF_TEXTS)} or a program where the kind is program, whose output is a text"
        is_of_values = self.checker in COMPARISONS and self.checker not in OF_TEXTS
        _require(self.kind != "program" or not is_of_values, "checker", of_texts, self.checker)
        raised = [RAISES.fullmatch(name) for name in self.raises]
        are_different = None not in raised and len({each["name"] for each in raised if each}) == len(raised)
        must = "be a tuple of different names of exceptions, each with (message) or without, and () for a program"
        _require(are_different and not (raised and self.kind == "program"), "raises", must, self.raises)

    def suite_size_or(self, usual: int) -> int:
        """K of this problem, or `usual`, the run's, if the problem has none."""
        return usual if self.suite_size is None else self.suite_size

    @property
    def tolerances(self) -> Tolerances:
        """The allowed error of a value, from whichever field has it. With the checker `tokens` and neither field: a
        millionth."""
        said = Tolerances.of(self.tolerance) if self.compare is None else self.compare
        return CLOSE if self.checker == TOKENS and not said else said

    @property
    def has_checker(self) -> bool:
        """A program decides whether a value is right."""
        return bool(self.checker) and self.checker not in COMPARISONS

    @property
    def content_hash(self) -> str:
        """Hex SHA-256 of every field as written. Equal hashes mean equal problems. Equal problems have equal hashes if
        their numbers have equal types: limits of 2 and 2.0 differ."""
        return hashlib.sha256(self.to_json().encode("utf-8", "surrogatepass")).hexdigest()

    def to_json(self) -> str:
        """One line of JSON, from which `from_json` makes an equal problem."""
        record = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for name in _CASES:
            record[name] = [[case.call, case.expected] for case in record[name]]
        record["time_limit"] = None if self.time_limit is None else self.time_limit.plain
        record["compare"] = None if self.compare is None else self.compare.plain
        for name in _LATER_FIELDS:
            if record[name] in (0, (), "function", "", None):  # as in files from before there were any
                del record[name]
        return json.dumps(record, ensure_ascii=True, sort_keys=True)

    @classmethod
    def from_json(cls, line: str) -> Problem:
        """Read what `to_json` wrote; fields with defaults may be absent.

        Raises ProblemFormatError naming the field, what it must be and what it was.
        """
        return cls.from_dict(json_object(line, "a problem", ProblemFormatError))

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Problem:
        """Build from plain JSON data: test cases are `[call, expected]` pairs. Raises ProblemFormatError."""
        known = {field.name: field for field in dataclasses.fields(cls)}
        _require(isinstance(record, Mapping), "a problem", f"be an object with {sorted(known)}", record)
        unknown = sorted(set(record) - set(known))
        _require(not unknown, "the fields", f"be among {sorted(known)}", unknown)
        required = [name for name, field in known.items() if field.default is dataclasses.MISSING]
        missing = [name for name in required if name not in record]
        _require(not missing, "the fields", f"include {required}", sorted(record))
        values = dict(record)
        for name in _CASES:
            if name in values:
                values[name] = tuple(_test_case(case, f"{name}[{i}]") for i, case in enumerate(_list(values, name)))
        for name in _STRINGS:
            if name in values:
                values[name] = tuple(_list(values, name))
        return cls(**values)


def _list(record: Mapping[str, Any], name: str) -> list[Any]:
    value = record[name]
    _require(isinstance(value, list), name, "be a list", value)
    return list(value)


def _test_case(pair: object, where: str) -> TestCase:
    is_pair = isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)
    _require(is_pair, where, "be a pair of strings [call, expected]", pair)
    assert isinstance(pair, list)
    return TestCase(*pair)
