"""The file of an entry: who and what it was, what it spent, and cells with a number for each held-out question.

`digest` is over all the rest, so that a slip of an editor is seen; a cell that somebody changed on purpose is found by
measuring again (`check.py`). Does not load a model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codea1_env.checks import is_number, json_object, require
from codea1_env.errors import FormatError
from codea1_env.evaluation.metrics import Interval, mean_interval
from codea1_env.whole_files import write_whole

SCHEMA = 1
FIELDS: Mapping[str, type] = {
    "name": str,
    "who": str,
    "what": str,
    "track": dict,
    "seed": int,
    "parts": dict,
    "used": dict,
    "allowed": dict,
    "start": dict,
    "judge": int,
    "base": str,
    "weights": dict,
    "cells": list,
}
"""What a file holds, besides `codea1_bench` and `digest`."""
TRACK_FIELDS = ("budget", "family", "questions", "digest")
MOST_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class Cell:
    """One measure of one seat on one set of questions."""

    set: str
    seat: str
    measure: str
    by_question: tuple[float, ...]
    """In [0, 1], in the order of the questions."""

    @property
    def interval(self) -> Interval:
        """The mean, and where it would lie with other questions: 95 %, by bootstrap."""
        found = mean_interval(self.by_question)
        assert found is not None  # a cell has questions
        return found

    @property
    def ends(self) -> dict[str, float]:
        """The interval, as a file has it."""
        found = self.interval
        return {name: round(getattr(found, name), 4) for name in ("mean", "low", "high")}

    @property
    def key(self) -> tuple[str, str, str]:
        return self.set, self.seat, self.measure

    @property
    def title(self) -> str:
        return f"{self.set}, {self.seat}: {self.measure}"


@dataclass(frozen=True, slots=True)
class BenchFile:
    """A file that was read."""

    path: Path
    record: Mapping[str, Any]
    cells: tuple[Cell, ...]
    is_whole: bool
    """Whether nothing was changed since it was written, as far as a digest without a secret tells."""


def digest_of(record: Mapping[str, Any]) -> str:
    """Of everything but the digest."""
    kept = {name: value for name, value in record.items() if name != "digest"}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def write_bench(path: Path, about: Mapping[str, Any], cells: Sequence[Cell]) -> None:
    """Write it whole. Raises OSError."""
    record = {"codea1_bench": SCHEMA, **about, "cells": [asdict(cell) | cell.ends for cell in cells]}
    record["digest"] = digest_of(json.loads(json.dumps(record)))
    rows = ",\n".join(f" {json.dumps(name)}: {_row(value)}" for name, value in record.items())
    write_whole(path, f"{{\n{rows}\n}}\n")


def _row(value: object) -> str:
    if not isinstance(value, list):
        return json.dumps(value)
    return "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]"


def read_bench(path: Path) -> BenchFile:
    """Raises FormatError for a file that is none, and ConfigurationError where there is no file."""
    require(path.is_file(), "FILE", "be a file of codea1 bench", path)
    if path.stat().st_size > MOST_BYTES:
        raise FormatError(f"{path} must have at most {MOST_BYTES} bytes, got {path.stat().st_size}")
    record = json_object(path.read_bytes(), str(path), FormatError)
    require("codea1_bench" in record, str(path), "be a file that `codea1 bench run` wrote", record, FormatError)
    schema = record["codea1_bench"]
    require(schema == SCHEMA, f"{path}: codea1_bench", f"be {SCHEMA}", schema, FormatError)
    is_whole = record.get("digest") == digest_of(record)
    record = dict[str, Any](judge=1, allowed={}) | record  # files that say no judge are of the first
    for name, kind in FIELDS.items():
        require(type(record.get(name)) is kind, f"{path}: {name}", f"be of type {kind.__name__}", record.get(name),
                FormatError)  # fmt: skip
    for name in TRACK_FIELDS:
        value = record["track"].get(name)
        is_right = type(value) is (int if name == "questions" else str)
        require(is_right, f"{path}: track.{name}", "be what the run wrote", value, FormatError)
    for name in ("used", "allowed"):
        are_numbers = all(map(is_number, record[name].values()))
        require(are_numbers, f"{path}: {name}", "be numbers by name", record[name], FormatError)
    code = record["parts"].get("code", {})
    is_code = isinstance(code, dict) and all(isinstance(each, dict) for each in code.values())
    require(is_code, f"{path}: parts.code", "be a file and its digest by name", code, FormatError)
    cells = tuple(_cell(each, path) for each in record["cells"])
    keys = [cell.key for cell in cells]
    require(len(set(keys)) == len(keys), f"{path}: cells", "be one of each set, seat and measure", keys, FormatError)
    return BenchFile(path, record, cells, is_whole)


def _cell(each: object, path: Path) -> Cell:
    names = ("set", "seat", "measure")
    told: dict[str, Any] = each if isinstance(each, dict) else {}
    values: Any = told.get("by_question")
    is_cell = all(isinstance(told.get(name), str) for name in names) and isinstance(values, list) and bool(values)
    is_cell = is_cell and all(is_number(value) and 0 <= value <= 1 for value in values)
    is_cell = is_cell and all(is_number(told.get(end)) for end in ("mean", "low", "high"))
    require(is_cell, f"{path}: a cell", "have set, seat, measure, by_question in [0, 1], mean, low and high", each,
            FormatError)  # fmt: skip
    cell = Cell(told["set"], told["seat"], told["measure"], tuple(map(float, told["by_question"])))
    for end, must in cell.ends.items():
        require(abs(told[end] - must) < 1e-4, f"{path}: {cell.title}: {end}", f"be that of by_question, {must}",
                told[end], FormatError)  # fmt: skip
    return cell
