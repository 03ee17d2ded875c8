"""Tables and the picture of `matrix_study.py`'s results: means with bootstrap intervals. Does not run anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from codea1_env.terminal import markdown_table

DRAWS = 10_000
"""Draws of the seeds with replacement behind every interval."""
ORDER = ("base", "golden tests", "frozen tester", "co-trained", "co-trained, black box", "finished tester")
HIDDEN = "hidden, held out"
LEARNERS = ("no book", "one learner", "no reference", "one learner, no reference")
NAMES = {"no book": "two learners, reference", "one learner": "one learner, reference",
         "no reference": "two learners, no reference"}  # fmt: skip
BOOKS = ("no book", "co-trained")


def tables(record: dict[str, Any]) -> str:
    """Markdown."""
    head = (
        f"{record['questions']} questions, {record['programs']} programs, {record['tests']} tests; "
        f"{len(record['seeds'])} seeds; {record['seconds']['runs']:.0f} s"
    )
    parts = [head]
    columns = ("hidden, held out", "hidden, trained on", "right, held out", "valid", "kills")
    parts.append(_table("ordering", record, ORDER, columns, against="frozen tester", on="hidden, held out"))
    parts.append(_table("collusion", record, LEARNERS, ("R_C", "hidden, trained on", "collusion gap",
                        "hidden, held out", "valid"), against="no book", on="collusion gap"))  # fmt: skip
    columns = ("regressions", "hidden, trained on", "hidden, held out", "valid", "kills", "book")
    parts.append(_table("book", record, BOOKS, columns, against="co-trained", on="regressions"))
    for name in ("moved by f_hist, all suites valid", "moved by f_hist, one suite empty"):
        parts.append(f"Groups {name}: {_shown(_values(record, 'co-trained', name))}.")
    return "\n\n".join(parts) + "\n"


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 2.5th and 97.5th percentile of the mean over seeds that are drawn with replacement."""
    array = np.asarray(values, dtype=float)
    means = array[np.random.default_rng(0).integers(len(array), size=(DRAWS, len(array)))].mean(1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def _shown(values: Sequence[float], sign: str = "") -> str:
    low, high = interval(values)
    return f"{np.mean(values):{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"


def _values(record: dict[str, Any], arm: str, name: str) -> np.ndarray:
    return np.array([seed[arm].get(name, np.nan) for seed in record["seeds"]])


def _table(
    title: str, record: dict[str, Any], arms: Sequence[str], columns: Sequence[str], against: str, on: str
) -> str:
    """`against`: the arm that every other is compared with, seed by seed, in the column `on`."""
    name = NAMES.get(against, against) if title == "collusion" else against
    rows = []
    for arm in arms:
        cells = [
            "" if np.isnan(values).any() else _shown(values)
            for values in (_values(record, arm, column) for column in columns)
        ]
        difference = _values(record, arm, on) - _values(record, against, on)
        cells.append("" if arm == against or np.isnan(difference).any() else _shown(difference, "+"))
        shown = NAMES.get(arm, arm) if title == "collusion" else arm
        rows.append([shown, *cells])
    return markdown_table([title, *columns, f"{on}: minus {name}"], rows)


def draw(record: dict[str, Any], file: Path) -> None:
    """A row for every arm: its seeds, their mean and interval, less those of the frozen tester."""
    import matplotlib.figure

    figure = matplotlib.figure.Figure(figsize=(6.4, 3.4), layout="constrained")
    axis = figure.add_subplot()
    arms = [arm for arm in reversed(ORDER) if arm != "frozen tester"]
    for place, arm in enumerate(arms):
        values = _values(record, arm, HIDDEN) - _values(record, "frozen tester", HIDDEN)
        axis.plot(values, [place] * len(values), ".", color="0.7")
        axis.plot(interval(values), [place] * 2, color="C0", linewidth=3)
        axis.plot([values.mean()], [place], "o", color="C0")
    axis.axvline(0.0, color="0.5", linewidth=0.8)
    axis.set_yticks(range(len(arms)), arms)
    axis.set_xlabel(f"{HIDDEN}, less frozen tester: mean, 95 % interval, seeds")
    figure.savefig(file, dpi=100)
