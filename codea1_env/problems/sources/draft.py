"""What a loader makes of one row: a draft of a problem, or why there is none. And what loaders share.

Nothing is executed here.
"""

from __future__ import annotations

import ast
import contextlib
import decimal
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from codea1_env.problems.check_functions import MAX_SCRIPT, Extracted, LeftOut
from codea1_env.problems.problem import Problem
from codea1_env.reading.parsing import Unparsable, parse, source_of

Row = Mapping[str, Any]
MAX_TEXT = 1 << 16
"""Characters of an input or an output; longer ones are left out."""
_DIGITS = 640
"""Of a whole number: what Python reads whatever its limit is set to."""
_CALLED = re.compile(r"\b([^\W\d]\w*+)[ \t]*+\(")
CUSTOMARY_IMPORTS = """import bisect
import collections
import datetime
import functools
import heapq
import itertools
import math
import operator
import random
import re
import string
from bisect import bisect, bisect_left, bisect_right, insort
from collections import Counter, OrderedDict, defaultdict, deque
from functools import cache, cmp_to_key, lru_cache, partial, reduce
from heapq import heapify, heappop, heappush, heappushpop, heapreplace, merge, nlargest, nsmallest
from itertools import (
    accumulate, chain, combinations, combinations_with_replacement, count, cycle, groupby, islice, pairwise,
    permutations, product, repeat, starmap, takewhile, zip_longest
)
from math import atan2, ceil, comb, cos, dist, exp, factorial, floor, fsum, gcd, hypot, inf, isqrt, lcm, log, log2
from math import log10, nan, perm, pi, prod, sin, sqrt, tan
from operator import add, and_, itemgetter, mul, or_, sub, xor
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits, punctuation
from typing import Any, Callable, DefaultDict, Deque, Dict, FrozenSet, Iterable, Iterator, List, Optional, Set, Tuple
from typing import Union
"""
"""What programs of such sets take for granted."""


@dataclass(frozen=True, slots=True)
class Draft:
    """One row as a problem that nobody has run."""

    problem: Problem
    unvalued: tuple[Extracted, ...] = ()
    """Scripts with hidden tests whose values a reference function of theirs is still to compute."""
    left_out: tuple[LeftOut, ...] = ()
    are_tests_trusted: bool = True
    """Whether a reference that passes none of the tests is a bad reference; otherwise they are bad tests."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row that is no problem."""

    problem_id: str
    reason: str


class RowError(Exception):
    """The row cannot become a problem; the argument says what it must have and what it has."""


@dataclass(frozen=True, slots=True)
class Source:
    """One problem set."""

    name: str
    """As the command line calls it."""
    hub_id: str
    split: str
    """Empty for a set that is not on the hub."""
    license: str
    read_row: Callable[[RowFields, Source], Draft]
    """Raises RowError, ProblemFormatError."""
    is_for_evaluation: bool = False
    """It is not trained on, and so not compared with the sets that must not be."""
    rows_of_directory: Callable[[Path], Iterator[Row]] | None = None
    """Of a set that is a directory of its own form: reads it."""
    script_of: Callable[[RowFields], str] | None = None
    """The row's tests as a script to run beside a solution, for `--judge scripts`. None: it has none."""
    has_scripts_only: bool = False
    """Most of its tests can be judged by their scripts alone, so problems always keep them."""
    programs_as: Literal["", "function", "program"] = ""
    """What its questions about whole programs come in as: functions from text to text, or problems of the kind
    `program`. Empty for a set that has no choice."""

    def draft(
        self,
        *programs: ParsedProgram,
        golden: Extracted | None = None,
        hidden: Extracted | None = None,
        **fields: Any,
    ) -> Draft:
        """The draft of a problem of this set. Unless `fields` say otherwise, the last of `programs` is its reference,
        whose imports it has, and of the test scripts that were read it has golden and hidden tests and the tolerance.
        What of them is still to be computed or was left out goes along."""
        read = [each for each in (golden, hidden) if each is not None]
        known: dict[str, Any] = {
            "golden_tests": tuple(golden.tests) if golden else (),
            "hidden_tests": tuple(hidden.tests) if hidden else (),
            "tolerance": max((each.tolerance for each in read), default=0.0),
            "packages": packages_of(*(program.module for program in programs)),
        }
        if programs:
            known |= {"reference_solution": programs[-1].source, "imports": programs[-1].imports}
        known |= fields
        known["imports"] = _without(known.get("imports", ""), known["entry_point"])
        problem = Problem(source=self.hub_id, license=self.license, **known)
        unvalued = tuple(each for each in read if each.unvalued)
        return Draft(problem, unvalued, tuple(left for each in read for left in each.left_out))

    def drafts(self, rows: Iterable[Row], *, with_scripts: bool = False) -> Iterator[Draft | Unreadable]:
        """One for each row, in order; `with_scripts` keeps the tests as they stand, too (`Problem.test_script`)."""
        for number, row in enumerate(map(RowFields, rows), start=1):
            try:
                draft = self.read_row(row, self)
                if self.script_of is not None and (with_scripts or self.has_scripts_only):
                    draft = replace(draft, problem=replace(draft.problem, test_script=self.script_of(row)))
                yield draft
            except (RowError, ValueError, Unparsable) as error:  # the second also of a number too long to be written
                names = [row.get(key) for key in ("task_id", "question_id", "conversation_id", "problem_id", "name")]
                name = next((name for name in names if name not in (None, "")), f"row {number}")
                yield Unreadable(name if isinstance(name, str) else shown(name), str(error))


def shown(value: object) -> str:
    """The beginning of a value, for messages."""
    try:
        return str(value)[:100]
    except (ValueError, RecursionError):  # a whole number that Python does not write, or lists in lists
        return f"a {type(value).__name__}"


class RowFields(dict[str, Any]):
    """A row, as loaders read it."""

    def text(self, *names: str) -> str:
        """The first of these fields that is there: data sets rename them between revisions. Raises RowError."""
        for name in names:
            if isinstance(self.get(name), str):
                return str(self[name])
        named = " or ".join(names)
        if other := next((name for name in names if self.get(name) is not None), None):
            raise RowError(f"a row must have the text {named}, got {shown(self[other])} in {other}")
        raise RowError(f"a row must have the text {named}, got the fields {', '.join(sorted(map(str, self)))}")

    def said(self, name: str) -> str:
        """A field that may be left out; empty where it is no text."""
        value = self.get(name)
        return value if isinstance(value, str) else ""

    def texts(self, name: str) -> list[str]:
        """A list of texts, or what stands for none. Raises RowError."""
        texts = spelt(self.get(name))
        if texts is None:
            return []
        if not isinstance(texts, list | tuple) or not all(isinstance(each, str) for each in texts):
            raise RowError(f"{name} must be a list of texts, got {shown(texts)!r}")
        return list(texts)


class ParsedProgram:
    """A program of a row."""

    def __init__(self, source: str, what: str = "the solution") -> None:
        """`what`: its name in errors. Raises RowError where it does not parse."""
        try:
            self.module = parse(source)
        except Unparsable as error:
            raise RowError(f"{what} must be Python, got text that does not parse: {error}") from None
        self.source, self._what = source, what
        self.functions = {node.name: node for node in self.module.body if isinstance(node, ast.FunctionDef)}
        """The top-level ones by name, in order."""

    def require(self, name: str) -> None:
        """Raise RowError unless it defines a top-level function of this name."""
        if name not in self.functions:
            raise RowError(f"{self._what} must define {name}, got {', '.join(self.functions) or 'no function'}")

    def starter(self, name: str) -> str:
        """The first line of a top-level function."""
        return f"def {name}({self.arguments(name)}):"

    def arguments(self, name: str) -> str:
        """What stands between the parentheses there."""
        return source_of(self.functions[name].args)

    @property
    def imports(self) -> str:
        """The top-level import statements, in order."""
        imports = [source_of(node) for node in self.module.body if isinstance(node, ast.Import | ast.ImportFrom)]
        return "\n".join(dict.fromkeys(line for line in imports if not line.startswith("from __future__")))


def is_generator(function: ast.FunctionDef) -> bool:
    """Whether calling it makes a generator: it yields, and not only in functions of its own."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
    return False


class Listed(ast.NodeTransformer):
    """`list(f(...))` of a generator as `f(...)`, which is how problems of that kind have it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(ast.Name("list"), [ast.Call(ast.Name(name)) as inner], []) if name == self._name:
                return inner
        return self.generic_visit(node)


def _without(imports: str, name: str) -> str:
    """The statements, but what they import under the name that a solution must define: the library's would stand for it
    where it does not."""
    if not re.search(rf"\b{re.escape(name)}\b", imports):
        return imports
    module = parse(imports)
    for node in module.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            node.names = [each for each in node.names if (each.asname or each.name.partition(".")[0]) != name]
    return "\n".join(source_of(node) for node in module.body if getattr(node, "names", True))


def packages_of(*modules: ast.Module) -> tuple[str, ...]:
    """Those that any of the programs imports of the third-party packages that this package brings along. Others may be
    missing where the problem is played: there it is one whose reference does not load, and no run ends by it."""
    names: set[str] = set()
    for node in (node for module in modules for node in ast.walk(module)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return ("numpy",) if "numpy" in names else ()


def called_names(scripts: Sequence[str]) -> list[str]:
    """The plain names that the scripts call, each as often as scripts call it."""
    names: list[str] = []
    for script in scripts:
        try:
            calls = [node.func for node in ast.walk(parse(script, MAX_SCRIPT)) if isinstance(node, ast.Call)]
            names += dict.fromkeys(function.id for function in calls if isinstance(function, ast.Name))
        except Unparsable:  # some of its asserts may still be read
            names += dict.fromkeys(_CALLED.findall(script))
    return names


def plain_value(given: str) -> Any:
    """What a text spells in JSON, or in Python's literals. Raises ValueError."""
    with contextlib.suppress(ValueError, RecursionError):
        return json_value(given)
    try:
        (statement,) = parse(given.strip(), MAX_SCRIPT).body
        return ast.literal_eval(statement.value)  # type: ignore[attr-defined]  # as is checked here
    except Unparsable as error:
        raise ValueError(f"text that does not parse: {error}") from None
    except (ValueError, AttributeError, TypeError, RecursionError, MemoryError):
        raise ValueError(f"{given[:100]!r}") from None


def json_value(given: str) -> Any:
    """Of a text. Raises ValueError, RecursionError."""
    return json.loads(given, parse_int=_whole_number)


def _whole_number(digits: str) -> object:
    """A whole number of JSON's. Python reads no more than some thousand digits at once, `decimal` does; what is longer
    than a test may be is no plain data."""
    if len(digits) <= _DIGITS:
        return int(digits)
    return int(decimal.Decimal(digits)) if len(digits) <= MAX_TEXT else object()


def spelt(given: object) -> object:
    """The list or record that a text spells, as tables without lists have them; anything else as it is."""
    if isinstance(given, str) and given.lstrip()[:1] in ("[", "{"):
        with contextlib.suppress(ValueError):
            if isinstance(value := plain_value(given), list | dict):
                return value
    return given
