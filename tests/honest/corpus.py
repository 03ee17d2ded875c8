"""The corpus of honest programs: the text files beside this one, a file for each kind.

A program begins at a line `#### name / entry_point`, where `/ option=value` may follow, and goes on to the next. Below
it stands the program; lines of `---- part` begin what else there is:

    imports     what the problem puts before every program
    answer      the response that holds the program, where it is more than the program's text
    tests       asserts, or functions of pytest, as plain Python runs them
    suite       the response that holds the tests, where it is more than their text
    input       of a script: what it reads; `output` follows: what it must print
    wrong       a program that is subtly wrong; there may be several

Options: `kind` and `raises` as a problem has them, `nodes` (`ListNode`, `TreeNode`) for methods that take or return
them, `time` (seconds of CPU time of a call), `tolerance`, `text` (`crlf`, `bom`: how the program's text is written).
Does not run anything.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PLACE = Path(__file__).parent
PAGE = PLACE.parents[1] / "docs" / "sandbox.md"
"""What shows the table, between two marks."""
_HEADING = re.compile(r"^#### (.+)$", re.MULTILINE)
_PART = re.compile(r"^---- (\w+)\n", re.MULTILINE)
_ALONE = re.compile(r"not yet \((\w+)\)")
_IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]+(\w+)", re.MULTILINE)
_PARTS = ("imports", "answer", "tests", "suite", "input", "output", "wrong")
_OPTIONS = ("kind", "raises", "nodes", "time", "tolerance", "text")
PACKAGES = (
    "dateutil", "more_itertools", "networkx", "numpy", "pandas", "pytz", "regex", "scipy", "sklearn",
    "sortedcontainers", "statsmodels", "sympy",
)  # fmt: skip
"""What programs of the corpus import beside the standard library."""


@dataclass(frozen=True, slots=True)
class Honest:
    """One program and its tests."""

    kind: str
    """The file's name."""
    name: str
    entry_point: str
    options: dict[str, str]
    program: str
    answer: str
    imports: str
    tests: str
    suite: str
    runs: tuple[tuple[str, str], ...]
    """Of a script: (input, output)."""
    wrong: tuple[str, ...]

    @property
    def packages(self) -> tuple[str, ...]:
        """What it imports beside the standard library."""
        named = set(_IMPORT.findall(f"{self.imports}\n{self.program}\n{self.tests}"))
        return tuple(name for name in PACKAGES if name in named)

    @property
    def missing(self) -> tuple[str, ...]:
        """Packages that it imports and this interpreter does not have."""
        return tuple(name for name in self.packages if importlib.util.find_spec(name) is None)


def read_corpus() -> tuple[Honest, ...]:
    """Every program, in the order of the files. Raises ValueError for one that is not as stated above."""
    found = [program for path in sorted(PLACE.glob("*.txt")) for program in _read(path)]
    names = [(program.kind, program.name) for program in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"names must differ within a kind, got twice: {twice}")
    return tuple(found)


def _read(path: Path) -> Iterator[Honest]:
    if path.name == "differing.txt":
        return
    _, *parts = _HEADING.split(path.read_bytes().decode("utf-8"))
    for heading, body in zip(parts[::2], parts[1::2], strict=True):
        name, entry_point, *said = heading.split(" / ")
        options = dict(option.split("=", 1) for option in said)
        program, *rest = _PART.split(body.lstrip("\n"))
        sections = list(zip(rest[::2], rest[1::2], strict=True))
        unknown = {key for key, _ in sections}.difference(_PARTS) | options.keys() - set(_OPTIONS)
        if unknown:
            raise ValueError(f"{path.name}, {name}: parts must be {_PARTS}, options {_OPTIONS}, got {sorted(unknown)}")
        program, *wrong = [
            _written(text, options) for text in (program, *(text for key, text in sections if key == "wrong"))
        ]
        one = {key: text.rstrip("\n") + "\n" for key, text in sections if key not in ("input", "output", "wrong")}
        inputs, outputs = ([text for key, text in sections if key == each] for each in ("input", "output"))
        runs = tuple((_closed(given), _closed(printed)) for given, printed in zip(inputs, outputs, strict=True))
        tests = one.get("tests", "")
        if bool(tests) == bool(runs):
            raise ValueError(f"{path.name}, {name}: it must have tests, or inputs with outputs, and not both")
        answer = one.get("answer", program)
        suite = one.get("suite", tests)
        imports = one.get("imports", "")
        yield Honest(
            path.stem, name, entry_point, options, program, answer, imports, tests, suite, runs, tuple(wrong)
        )  # fmt: skip


def _closed(text: str) -> str:
    """An input or output as a file has it: nothing but the last line's end after the last line."""
    return text.rstrip("\n") + "\n" if text.strip("\n") else ""


def _written(text: str, options: dict[str, str]) -> str:
    text = text.strip("\n") + "\n"
    if options.get("text") == "crlf":
        return text.replace("\n", "\r\n")
    return "\ufeff" + text if options.get("text") == "bom" else text


def read_differing(backend: str = "local") -> dict[tuple[str, str], str]:
    """Of the programs that plain Python and the judge differ on, why: `kind / name: reason` a line. A reason that
    begins `not yet (BACKEND)` counts on that backend alone."""
    found = {}
    for line in (PLACE / "differing.txt").read_text(encoding="utf-8").splitlines():
        if " / " in line and not line.startswith("#"):
            named, reason = line.split(": ", 1)
            kind, name = named.split(" / ")
            alone = _ALONE.match(reason)
            if alone is None or alone[1] == backend:
                found[kind, name] = reason
    return found


def page_table() -> str:
    """The table of `docs/sandbox.md`, by kind: how many programs there are, and on how many plain Python and the judge
    agree, as far as `differing.txt` is true, which `test_honest.py` holds."""
    corpus, differing = read_corpus(), read_differing()
    lines = [
        "| kind | right programs | subtly wrong ones | right ones judged as in plain Python |",
        "|---|---:|---:|---:|",
    ]
    sums = [0, 0, 0]
    for path in sorted(PLACE.glob("*.txt")):
        of_kind = [honest for honest in corpus if honest.kind == path.stem]
        if of_kind:
            what = path.read_text(encoding="utf-8").partition("\n\n")[0].replace("\n", " ").rstrip(".")
            agreed = sum((honest.kind, honest.name) not in differing for honest in of_kind)
            counts = [len(of_kind), sum(len(honest.wrong) for honest in of_kind), agreed]
            sums = [total + count for total, count in zip(sums, counts, strict=True)]
            lines.append("| " + " | ".join([what, *map(str, counts)]) + " |")
    return "\n".join([*lines, "| " + " | ".join(["all", *map(str, sums)]) + " |"]) + "\n"
