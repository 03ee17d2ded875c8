"""What came out of experiments/fineprint.py: tables with intervals, a picture, and all cells in one file.

    python experiments/fineprint_table.py OUT                    tables of OUT/cells/
    python experiments/fineprint_table.py OUT --gather FILE.json --picture FILE.png
    python experiments/fineprint_table.py experiments/results/fineprint.json

Intervals are of 95 %, by bootstrap: questions are drawn, and seeds where an arm has several.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from codea1_env.bench.table import draw_bars
from codea1_env.evaluation.metrics import Interval
from codea1_env.terminal import Parser, markdown_table

Cells = dict[str, dict[str, Any]]
Table = np.ndarray
"""Percent, (seeds, questions)."""

ARMS = {
    "base": "base",
    "golden": "golden tests",
    "frozen": "frozen tester",
    "code-a1": "Code-A1",
    "code-a1-paper": "Code-A1, alpha 0.5",
    "self-play": "self-play",
}
"""In the order of the tables."""
MEASURES = {
    "coder: passes all hidden tests": ("coder", "fineprint", "hidden"),
    "coder: passes golden tests": ("coder", "fineprint", "golden"),
    "coder: passes all hidden tests on words": ("coder", "fineprint_words", "hidden"),
    "tester: right tests": ("tester", "mutants", "valid"),
    "tester: right tests that break a mutant": ("tester", "mutants", "kills"),
    "tester: tests that break it, values corrected": ("tester", "mutants", "input_kills"),
    "tester: right tests that break a program of the base": ("tester", "base_programs", "kills"),
}
DRAWS = 2000


def main() -> None:
    parser = Parser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("source", metavar="OUT", type=Path, help="a directory with cells/, or a gathered file")
    parser.add_argument("--gather", metavar="FILE.json", type=Path, help="write all cells to one file")
    parser.add_argument("--picture", metavar="FILE", type=Path, help="draw both seats, as .png or .svg")
    options = parser.parse_args()
    cells = read_cells(options.source)
    if options.gather:
        rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(cell)}" for name, cell in cells.items())
        options.gather.write_text(f"{{\n{rows}\n}}\n")
    if options.picture:
        draw(cells, options.picture)
    print("\n\n".join([arms_table(cells), pairs_table(cells), clauses_table(cells), curve_table(cells)]))


def read_cells(source: Path) -> Cells:
    """Every cell by its name. Raises SystemExit where there is none."""
    if source.is_file():
        found: Cells = json.loads(source.read_text())
    else:
        found = {file.stem: json.loads(file.read_text()) for file in sorted(source.glob("cells/*.json"))}
    if not found:
        raise SystemExit(f"OUT must hold cells, got none in {source}")
    return found


def by_arm(cells: Cells) -> dict[str, list[dict[str, Any]]]:
    """The final cells of each arm, seed after seed; an arm of other rounds is one of its own."""
    arms: dict[str, list[dict[str, Any]]] = {}
    for cell in cells.values():
        if not cell.get("checkpoint"):
            title = ARMS[cell["arm"]] + (f", {cell['rounds']} rounds" if cell["rounds"] else "")
            arms.setdefault(title, []).append(cell)
    order = list(ARMS.values())
    return dict(sorted(arms.items(), key=lambda item: (order.index(item[0].split(", ")[0]), item[0])))


def table_of(cells: Sequence[Mapping[str, Any]], path: Sequence[str]) -> Table | None:
    """What was measured under these names; None where nothing was."""
    rows = []
    for cell in cells:
        value: Any = cell
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None:
            rows.append([100 * each for each in value])
    return np.array(rows) if rows else None


def interval(table: Table, minus: Table | None = None) -> Interval:
    """Mean with the ends of its interval; of the difference from the mean over seeds of `minus`, question by question,
    where there is one. Both draw their own seeds."""
    rng = np.random.default_rng(0)
    means = np.empty(DRAWS)
    for draw_index in range(DRAWS):
        questions = rng.integers(table.shape[1], size=table.shape[1])
        drawn = table[rng.integers(len(table), size=len(table))][:, questions].mean()
        if minus is not None:
            drawn -= minus[rng.integers(len(minus), size=len(minus))][:, questions].mean()
        means[draw_index] = drawn
    low, high = np.percentile(means, [2.5, 97.5])
    mean = table.mean() - (0.0 if minus is None else minus.mean())
    return Interval(float(low), float(mean), float(high))


def arms_table(cells: Cells) -> str:
    """Every measure of every arm."""
    arms = by_arm(cells)
    seeds = [
        f"{arm}, {len(of_arm)} seed{'s' * (len(of_arm) > 1)}" if arm != "base" else arm for arm, of_arm in arms.items()
    ]
    rows = []
    for title, path in MEASURES.items():
        tables = [table_of(of_arm, path) for of_arm in arms.values()]
        rows.append([title, *("" if t is None else f"{interval(t):.1f}" for t in tables)])
    return markdown_table(["", *seeds], rows)


def pairs_table(cells: Cells) -> str:
    """Code-A1 minus each other arm, and each seed of an arm by itself."""
    arms = by_arm(cells)
    ours = arms.get(ARMS["code-a1"])
    rows = []
    names = (
        "coder: passes all hidden tests",
        "coder: passes all hidden tests on words",
        "tester: right tests that break a mutant",
    )
    for arm, of_arm in arms.items() if ours else ():
        if of_arm is ours:
            continue
        pairs = [(table_of(ours or [], MEASURES[name]), table_of(of_arm, MEASURES[name])) for name in names]
        rows.append([arm, *("" if a is None or b is None else f"{interval(a, b):+.1f}" for a, b in pairs)])
    head = ("Code-A1 minus", "all hidden tests", "on words", "right tests that break a mutant")
    return markdown_table(head, rows)


def clauses_table(cells: Cells) -> str:
    """Share of programs that pass all hidden tests of a clause, in percent, and of how many questions."""
    arms = by_arm(cells)
    counts = {name: len(found) for name, found in next(iter(cells.values()))["coder"]["fineprint"]["clauses"].items()}
    rows = []
    for name, count in sorted(counts.items()):
        tables = [table_of(of_arm, ("coder", "fineprint", "clauses", name)) for of_arm in arms.values()]
        rows.append([name, count, *("" if t is None else f"{t.mean():.0f}" for t in tables)])
    return markdown_table(["clause", "questions", *arms], rows)


def curve_table(cells: Cells) -> str:
    """The coder at checkpoints of one seed, all hidden tests and golden tests, in percent."""
    curves = curves_of(cells)
    rounds = sorted({count for curve in curves.values() for count in curve})
    rows = [
        [arm, *("/".join(f"{value:.0f}" for value in curve[n]) if n in curve else "" for n in rounds)]
        for arm, curve in curves.items()
    ]
    return markdown_table(["rounds", *map(str, rounds)], rows)


def curves_of(cells: Cells) -> dict[str, dict[int, tuple[float, float]]]:
    """By arm and rounds done: hidden and golden pass rate."""
    curves: dict[str, dict[int, tuple[float, float]]] = {}
    for cell in cells.values():
        if cell.get("checkpoint"):
            result = cell["coder"]["fineprint"]
            point = 100 * float(np.mean(result["hidden"])), 100 * float(np.mean(result["golden"]))
            curves.setdefault(ARMS[cell["arm"]], {})[cell["checkpoint"]] = point
    return curves


PICTURE = {
    "coder: programs that pass, %": {
        "golden tests": MEASURES["coder: passes golden tests"],
        "all hidden tests": MEASURES["coder: passes all hidden tests"],
    },
    "tester: right tests that break, %": {
        "a mutant": MEASURES["tester: right tests that break a mutant"],
        "a program of the base": MEASURES["tester: right tests that break a program of the base"],
    },
}
"""By seat, what its panel shows."""


def draw(cells: Cells, file: Path) -> None:
    """Both seats: bars with intervals, the arms beside each other."""
    arms = by_arm(cells)
    panels = {
        title: {
            name: {arm: interval(found) for arm, each in arms.items() if (found := table_of(each, path)) is not None}
            for name, path in measures.items()
        }
        for title, measures in PICTURE.items()
    }
    draw_bars("questions with fine print", list(arms), panels, file)


if __name__ == "__main__":
    main()
