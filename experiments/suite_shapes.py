"""What of real suites each reading takes: a table of shapes accepted and rejected, with counts.

    python experiments/suite_shapes.py FILE.jsonl[.gz] ... [--judge] [--every N]

A line is an object with `entry_point` and its responses: `suites` or `responses` (lists of texts), `response`, `check`
or `test` (one text). With --judge, lines that have a `reference_solution` are judged, too: what became of the tests.
A *real test* is accepted, or parses, calls the function and names nothing beside it but builtins and modules: all
others say nothing, in whatever reading. Prints Markdown. Does not run a model, and does not change what it reads.
"""

from __future__ import annotations

import ast
import builtins
import gzip
import itertools
import json
import sys
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codea1_env import LocalSandbox, Problem, RewardConfig
from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.reading.grammar import Fidelity
from codea1_env.reading.responses import read_suite
from codea1_env.reading.wide.relation import Relation
from codea1_env.terminal import Parser, markdown_table

READINGS: tuple[Fidelity, ...] = ("strict", "wide")
_KNOWN = frozenset(dir(builtins)) | {"math", "pytest", "np", "numpy", "self", "unittest"}
_FIELDS = ("suites", "responses", "response", "check", "test")


@dataclass
class Found:
    """What one reading made of all suites."""

    suites: int = 0
    with_tests: int = 0
    accepted: Counter[str] = field(default_factory=Counter)
    """By shape: `f(x) == value`, or the relation."""
    rejected: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    """What became of relational tests, where there is a reference."""
    real: int = 0
    """Real tests, accepted and rejected."""

    def add(self, response: str, entry_point: str, reading: Fidelity) -> None:
        """Read one response."""
        suite = read_suite(response, entry_point, fidelity=reading)
        tests = [test for test in suite.tests if not test.reason]
        self.suites += 1
        self.with_tests += bool(tests)
        self.accepted.update(_shape(test.relation) if test.relation else "r == c (equality)" for test in tests)
        self.rejected.update(test.reason for test in suite.tests if test.reason)
        self.real += sum(not test.reason or _is_real(test.source, entry_point) for test in suite.tests)
        self.unread.update({str(name): count for name, count in suite.unread})

    @property
    def asserts(self) -> int:
        """Accepted and rejected."""
        return self.accepted.total() + self.rejected.total()


def _shape(term: Relation) -> str:
    """A relation for people: `r` is the returned value, `c` a constant."""
    if term.operator in ("returned", "constant"):
        return term.operator[0]
    return f"{term.operator}({', '.join(map(_shape, term.parts))})"


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = Parser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.jsonl[.gz]", help="responses, an object a line")
    parser.add_argument("--judge", action="store_true", help="run references: what became of the relational tests")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take every N-th response (default: all)")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", SyntaxWarning)  # what models write is full of invalid escapes
    for path in options.files:
        records = list(_records(path))
        found = {reading: Found() for reading in READINGS}
        for record in records:
            for response in _responses(record)[:: options.every]:
                for reading in READINGS:
                    found[reading].add(response, record["entry_point"], reading)
        if options.judge:
            found["wide"].statuses = _judged(records, options.every)
        print(_table(path.name, found))


def _records(path: Path) -> Iterator[dict[str, Any]]:
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt") as lines:
        for line in lines:
            record = json.loads(line)
            if record.get("entry_point", "").isidentifier():
                yield record


def _responses(record: dict[str, Any]) -> list[str]:
    given = next((record[name] for name in _FIELDS if name in record), [])
    return [given] if isinstance(given, str) else list(given)


def _is_real(source: str, entry_point: str) -> bool:
    """Whether a rejected assert calls the function and names nothing that nothing defines."""
    try:
        nodes = list(ast.walk(ast.parse(textwrap.dedent(source))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    calls = any(isinstance(node, ast.Call) and ast.unparse(node.func) == entry_point for node in nodes)
    return calls and {node.id for node in nodes if isinstance(node, ast.Name)} <= _KNOWN | {entry_point}


def _judged(records: Sequence[dict[str, Any]], every: int) -> Counter[str]:
    """What became of relational tests among the first K, against the reference itself."""
    statuses: Counter[str] = Counter()
    with LocalSandbox() as sandbox:
        arena = Arena(sandbox, RewardConfig(fidelity="wide", suite_size=1000))
        for number, record in enumerate(records):
            if "reference_solution" not in record:
                continue
            name, reference = record["entry_point"], record["reference_solution"]
            problem = Problem(str(number), "-", name, reference_solution=reference, time_limit_s=0.5)
            suites = [
                text
                for text in _responses(record)[::every]
                if any(test.relation for test in read_suite(text, name, fidelity="wide").tests)
            ]
            if suites:
                (score,) = arena.play([Match(problem, (reference,), (tuple(suites),))], update_book=False)
                shapes = {
                    (place, at): test.relation
                    for place, text in enumerate(suites)
                    for at, test in enumerate(read_suite(text, name, fidelity="wide").tests)
                }
                for place, suite in enumerate(score.suites[0]):
                    judged = enumerate(suite.duel.tests)
                    statuses.update(test.status.value for at, test in judged if shapes[place, at] is not None)
    return statuses


def _table(name: str, found: dict[Fidelity, Found]) -> str:
    strict, wide = found["strict"], found["wide"]
    rows: list[tuple[str, str, str]] = [
        ("suites", f"{strict.suites:,}", f"{wide.suites:,}"),
        ("suites with a test", f"{strict.with_tests:,}", f"{wide.with_tests:,}"),
        ("asserts met", f"{strict.asserts:,}", f"{wide.asserts:,}"),
        ("accepted", *(f"{each.accepted.total():,}" for each in (strict, wide))),
        ("accepted, of those met", *(_share(each.accepted.total(), each.asserts) for each in (strict, wide))),
        ("accepted, of the real tests", *(_share(each.accepted.total(), wide.real) for each in (strict, wide))),
        ("of these relations", "0", f"{wide.accepted.total() - wide.accepted['r == c (equality)']:,}"),
    ]
    for title, of in (("accepted", "accepted"), ("rejected", "rejected"), ("not read", "unread")):
        counts: list[Counter[str]] = [getattr(each, of) for each in (strict, wide)]
        names = sorted(set(itertools.chain(*counts)), key=lambda each: (-counts[1][each] - counts[0][each], each))
        rows += [(f"{title}: `{each}`", f"{counts[0][each]:,}", f"{counts[1][each]:,}") for each in names]
    rows += [(f"relations judged: `{each}`", "", f"{count:,}") for each, count in wide.statuses.most_common()]
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return f"\n{name}\n\n{markdown_table(('', 'strict', 'wide'), cells)}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


if __name__ == "__main__":
    sys.exit(main())
