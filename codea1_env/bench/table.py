"""Entries beside each other: a column each, a row a measure, and what a table of so few runs cannot say.

Runs of one entry with other seeds are one column. With one seed an interval is over questions; over seeds there is one
from three on, Student's t. Does not train or measure, and does not say which entry is best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from codea1_env.bench.files import BenchFile, read_bench
from codea1_env.errors import Codea1Error, ConfigurationError
from codea1_env.evaluation.metrics import Interval, mean_interval
from codea1_env.extras import extra
from codea1_env.judging.version import require_comparable
from codea1_env.terminal import markdown_table
from codea1_env.whole_files import whole_file

FEWEST = 3
"""Seeds from which there is an interval over them."""
REFERENCE = "base"
"""What the second table subtracts."""
TITLES = {
    "hidden": "passes all hidden tests",
    "golden": "passes golden tests",
    "valid": "right tests",
    "kills": "right tests that break a mutant",
    "input_kills": "tests that break it, values corrected",
    "killed": "suites that break it",
}
COSTS = {
    "tokens": "tokens sampled in training",
    "environment_s": "environment, s",
    "cpu_s": "CPU of all of it, s",  # unknown of a run that was resumed
}
Key = tuple[str, str, str]
"""Of a row: set, seat, measure."""


@dataclass(frozen=True, slots=True)
class Column:
    """One entry with all its seeds."""

    name: str
    files: tuple[BenchFile, ...]

    @property
    def title(self) -> str:
        count = len(self.files)
        if self.name == REFERENCE:  # no seed trains it
            return self.name
        return f"{self.name}, {'one seed' if count == 1 else f'{count} seeds'}"

    def values(self, key: Key) -> np.ndarray | None:
        """(seeds, questions); None where a run has no such cell."""
        rows = [cell.by_question for file in self.files for cell in file.cells if cell.key == key]
        return np.array(rows) if len(rows) == len(self.files) else None


@dataclass(frozen=True, slots=True)
class TableSection:
    """The entries of one track."""

    track: str
    columns: tuple[Column, ...]

    @property
    def rows(self) -> list[Key]:
        """In the order of the files."""
        return list(dict.fromkeys(cell.key for each in self.columns for file in each.files for cell in file.cells))


def read_folders(*folders: Path) -> list[TableSection]:
    """Every file in them, by track. Raises ConfigurationError for a folder without one, for two tracks of one name, and
    for files of judges that do not compare."""
    files: list[BenchFile] = []
    for folder in folders:
        found = sorted(folder.glob("*.json"))
        if not found:
            raise ConfigurationError(f"FOLDER must hold files of codea1 bench, got none in {folder}")
        files += map(read_bench, found)
    tracks: dict[str, list[BenchFile]] = {}
    for file in files:
        told = file.record["track"]
        tracks.setdefault(f"{told['budget']}, {told['family']}", []).append(file)
    return [
        TableSection(name, tuple(_columns(name, members))) for name, members in sorted(tracks.items(), reverse=True)
    ]


def _columns(track: str, files: Sequence[BenchFile]) -> list[Column]:
    digests = {file.record["track"]["digest"] for file in files}
    if len(digests) > 1:
        told = ", ".join(file.path.name for file in files)
        raise ConfigurationError(f"files of {track} must be of one track, got {len(digests)} of that name: {told}")
    sizes = {(cell.key, len(cell.by_question)) for file in files for cell in file.cells}
    if len(sizes) > len({key for key, _ in sizes}):
        raise ConfigurationError(f"files of {track} must have as many questions a cell, got different numbers")
    require_comparable(
        (file.record["judge"] for file in files), files[0].record["track"]["family"], f"files of {track}"
    )
    found: dict[tuple[str, str, str], dict[int, BenchFile]] = {}
    for file in files:
        same = found.setdefault((file.record["name"], file.record["who"], _method(file)), {})
        if file.record["seed"] in same:
            other = same[file.record["seed"]].path
            raise ConfigurationError(f"an entry must have one file a seed, got {other} and {file.path}")
        same[file.record["seed"]] = file
    columns = [
        Column(name, tuple(of_seed[seed] for seed in sorted(of_seed))) for (name, _, _), of_seed in found.items()
    ]
    return sorted(columns, key=lambda column: (column.name != REFERENCE, column.name))


def _method(file: BenchFile) -> str:
    """What must be the same for two runs to be of one entry."""
    parts = file.record["parts"]
    digests = {name: code.get("sha256") for name, code in parts.get("code", {}).items()}
    return repr((parts.get("changes"), sorted(digests.items())))


def estimate(values: np.ndarray, minus: np.ndarray | None = None) -> Interval | None:
    """Mean in percent and interval of (seeds, questions): over questions with one seed, over seeds from FEWEST on, and
    None with fewer. `minus`: what is subtracted, question by question, as the mean over its seeds."""
    table = 100.0 * (values if minus is None else values - minus.mean(axis=0))
    if len(table) == 1:
        return mean_interval(table[0].tolist())
    if len(table) < FEWEST:
        return None
    from codea1_env.bench.estimates import mean_with_t  # the extra `solve`, which a table of one seed needs not

    found = mean_with_t(table.mean(axis=1).tolist())
    return Interval(found.low, found.value, found.high)


def shown(values: np.ndarray | None, minus: np.ndarray | None = None) -> str:
    """For a table; empty where there is nothing."""
    if values is None:
        return ""
    sign = "" if minus is None else "+"
    found = estimate(values, minus)
    if found is None:
        mean = 100.0 * (values.mean() - (0.0 if minus is None else minus.mean()))
        return f"{mean:{sign}.1f} (too few)"
    return f"{found:{sign}.1f}"


def as_markdown(section: TableSection) -> str:
    """Both tables of a track, and what they cannot say."""
    columns = section.columns
    rows = [_row(key, [shown(column.values(key)) for column in columns]) for key in section.rows]
    rows += [_cost(columns, name, title) for name, title in COSTS.items()]
    lines = [f"### {section.track}", "", markdown_table(["", *(column.title for column in columns)], rows)]
    reference = next((column for column in columns if column.name == REFERENCE), None)
    if reference is not None and len(columns) > 1:
        others = [column for column in columns if column is not reference]
        minus = [
            _row(key, ["" if base is None else shown(column.values(key), base) for column in others])
            for key in section.rows
            for base in [reference.values(key)]
        ]
        told = [row for row in minus if any(row[1:])]
        lines += ["", markdown_table(["minus the base", *(column.title for column in others)], told)]
    return "\n".join([*lines, "", *(f"- {note}" for note in notes(section))])


def _row(key: Key, cells: Sequence[str]) -> list[str]:
    name, seat, measure = key
    return [f"{name}, {seat}: {TITLES.get(measure, measure)}", *cells]


def _cost(columns: Sequence[Column], name: str, title: str) -> list[str]:
    spent = [[float(file.record["used"].get(name, np.nan)) for file in each.files] for each in columns]
    return [title, *("" if np.isnan(each).any() else f"{np.mean(each):,.0f}" for each in spent)]


def notes(section: TableSection) -> list[str]:
    """What a reader must know before comparing two columns."""
    counts = {len(column.files) for column in section.columns if column.name != REFERENCE}
    found = [
        "In percent of held-out questions, with intervals of 95 %; none is corrected for the number of comparisons."
    ]
    if 1 in counts:
        found.append("One seed: the interval is over questions. It says nothing of how another seed would come out.")
    if any(1 < count < FEWEST for count in counts):
        found.append(f"Too few: with fewer than {FEWEST} seeds, and more than one, there is no interval over seeds.")
    if any(count >= FEWEST for count in counts):
        found.append(f"From {FEWEST} seeds on, the interval is Student's over seeds.")
    for column in section.columns:
        found += [
            f"{column.name}, seed {file.record['seed']}: {each}" for file in column.files for each in faults(file)
        ]
    return found


def faults(file: BenchFile) -> list[str]:
    """What keeps a file from counting beside the others."""
    used, allowed = file.record["used"], file.record["allowed"]
    found = [] if file.is_whole else ["the file was changed since it was written"]
    limit = allowed.get("environment_s", 0)
    if limit and used.get("environment_s", 0) > limit:
        found.append(f"over the budget, {used['environment_s']:.0f} of {limit:.0f} s of the environment")
    return found


def draw(section: TableSection, file: Path) -> None:
    """Both seats as bars with intervals. Raises MissingExtra without matplotlib."""
    panels: dict[str, dict[str, Mapping[str, Interval]]] = {}
    for key in section.rows:
        bars = {c.name: found for c in section.columns if (v := c.values(key)) is not None and (found := _bar(v))}
        panels.setdefault(f"{key[1]}, {key[0]}", {})[TITLES.get(key[2], key[2])] = bars
    if not panels:
        raise Codea1Error(f"{section.track} must have cells, got none")
    draw_bars(section.track, [column.name for column in section.columns], panels, file)


def _bar(values: np.ndarray) -> Interval:
    mean = 100.0 * float(values.mean())
    return estimate(values) or Interval(mean, mean, mean)


COLOURS = ("#1f5f8b", "#9db4c8", "#c78f3e", "#e3c9a0")

Panel = Mapping[str, Mapping[str, Interval]]
"""By measure and entry."""


def draw_bars(title: str, entries: Sequence[str], panels: Mapping[str, Panel], file: Path) -> None:
    """Write the picture, as .png or .svg. Raises MissingExtra and OSError."""
    with extra("train", "the picture needs"):
        import matplotlib.figure
    figure = matplotlib.figure.Figure(figsize=(11, 3.4 * len(panels)), layout="constrained")
    figure.suptitle(title, parse_math=False)
    for axis, (name, panel) in zip(figure.subplots(len(panels), 1, squeeze=False).flat, panels.items(), strict=True):
        width = 0.8 / len(panel)
        for place, (measure, bars) in enumerate(panel.items()):
            across = [entries.index(each) + (place - (len(panel) - 1) / 2) * width for each in bars]
            means = [found.mean for found in bars.values()]
            ends = [[f.mean - f.low for f in bars.values()], [f.high - f.mean for f in bars.values()]]
            colour = COLOURS[place % len(COLOURS)]
            drawn = axis.bar(across, means, width * 0.95, yerr=ends, label=measure, color=colour, ecolor="#555555")
            axis.bar_label(drawn, fmt="%.0f", padding=2, fontsize="small")
        axis.set_title(name, loc="left", parse_math=False)
        axis.set_ylabel("%")
        axis.set_xticks(range(len(entries)), list(entries))
        axis.set_xlim(-0.6, len(entries) - 0.4)  # also where the last one has no bar
        axis.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=4, fontsize="small")
        axis.spines[["top", "right"]].set_visible(False)
    with whole_file(file) as written:
        figure.savefig(written, dpi=100, format=file.suffix.removeprefix("."))
