"""Tables and pictures of `matrix_study.py`'s results: means with bootstrap intervals. Does not run anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from codea1_env.terminal import markdown_table

DRAWS = 10_000
"""Draws of the seeds with replacement behind every interval."""
ORDER = ("base", "golden tests", "frozen tester", "co-trained", "co-trained, black box", "finished tester",
         "all played calls")  # fmt: skip
LEARNERS = ("no book", "one learner", "no reference", "one learner, no reference")
NAMES = {"no book": "two learners, reference", "one learner": "one learner, reference",
         "no reference": "two learners, no reference"}  # fmt: skip
ALPHAS = ("alpha 0", "alpha 0.25", "co-trained", "alpha 0.75", "alpha 1")
FOLLOWED = ("co-trained", "frozen tester", "co-trained, black box")
"""Arms whose exploitability is looked at."""
BOOKS = ("no book", "co-trained", "f_hist unpaid", "question baseline")


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
    parts.append(_table("alpha", record, ALPHAS, ("valid", "kills", "hidden, held out"), "co-trained", "kills"))
    columns = ("regressions", "hidden, trained on", "hidden, held out", "valid", "kills", "book")
    parts.append(_table("book", record, BOOKS, columns, against="co-trained", on="regressions"))
    for name in ("moved by f_hist, all suites valid", "moved by f_hist, one suite empty"):
        parts.append(f"Groups {name}: {_shown(_values(record, 'co-trained', name))}.")
    parts.append(_payoff_table(record))
    curves = {name: _curve(record, name, "exploitability") for name in FOLLOWED}
    ends = [(name, _shown(curve[:, 0]), _shown(curve[:, -1])) for name, curve in curves.items()]
    parts.append(markdown_table(("exploitability", "first", "last"), ends))
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
    return np.array([seed[arm]["numbers"].get(name, np.nan) for seed in record["seeds"]])


def _curve(record: dict[str, Any], arm: str, name: str) -> np.ndarray:
    """(seeds, looks)."""
    return np.array([seed[arm]["curves"][name] for seed in record["seeds"]])


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


def _payoffs(record: dict[str, Any], seat: str) -> tuple[list[str], list[str], np.ndarray]:
    """Coders, testers and the means over seeds, (coders, testers)."""
    keys = [key.split("|") for key in record["seeds"][0]["payoffs"]["numbers"] if key.count("|") == 2]
    coders, testers = (list(dict.fromkeys(key[place] for key in keys)) for place in (1, 2))
    means = [[_values(record, "payoffs", f"{seat}|{c}|{t}").mean() for t in testers] for c in coders]
    return coders, testers, np.array(means)


def _payoff_table(record: dict[str, Any]) -> str:
    coders, testers, coder_means = _payoffs(record, "R_C")
    tester_means = _payoffs(record, "R_T")[2]
    rows = [
        [name, *(f"{a:.2f} / {b:.2f}" for a, b in zip(row, other, strict=True))]
        for name, row, other in zip(coders, coder_means, tester_means, strict=True)
    ]
    solved = [_values(record, "payoffs", f"{seat}|equilibrium").mean() for seat in ("R_C", "R_T")]
    table = markdown_table(["coder, R_C / R_T against", *testers], rows)
    return f"{table}\n\nIn equilibrium: {solved[0]:.2f} / {solved[1]:.2f}."


def figures(record: dict[str, Any], folder: Path) -> None:
    """One small PNG for every claim. Raises ImportError where matplotlib is missing."""
    try:
        import matplotlib.figure
    except ImportError as error:
        raise ImportError("the pictures need the extra `train`: pip install '.[train]'") from error

    def drawn(name: str, draw: Any) -> None:
        figure = matplotlib.figure.Figure(figsize=(6.4, 3.4), layout="constrained")
        draw(figure.add_subplot())
        figure.savefig(folder / f"matrix-{name}.png", dpi=100)

    drawn("ordering", lambda axis: _dots(axis, record, ORDER, "hidden, held out", against="frozen tester"))
    drawn("collusion", lambda axis: _dots(axis, record, LEARNERS, "collusion gap", NAMES))
    drawn("alpha", lambda axis: _trade_off(axis, record))
    drawn("forgetting", lambda axis: _curves(axis, record, BOOKS, "hidden, trained on", 20))
    drawn("exploitability", lambda axis: _curves(axis, record, FOLLOWED, "exploitability", 40))
    drawn("payoffs", lambda axis: _heat(axis, record))


def _dots(
    axis: Any,
    record: dict[str, Any],
    arms: Sequence[str],
    name: str,
    names: Mapping[str, str] | None = None,
    against: str = "",
) -> None:
    """A row for every arm: its seeds, their mean and interval, less those of the arm `against`."""
    shown = [arm for arm in reversed(arms) if arm != against]
    for place, arm in enumerate(shown):
        values = _values(record, arm, name) - (_values(record, against, name) if against else 0.0)
        axis.plot(values, [place] * len(values), ".", color="0.7")
        axis.plot(interval(values), [place] * 2, color="C0", linewidth=3)
        axis.plot([values.mean()], [place], "o", color="C0")
    axis.axvline(0.0, color="0.5", linewidth=0.8)
    axis.set_yticks(range(len(shown)), [(names or {}).get(arm, arm) for arm in shown])
    axis.set_xlabel(f"{name}{f', less {against}' if against else ''}: mean, 95 % interval, seeds")


def _trade_off(axis: Any, record: dict[str, Any]) -> None:
    alphas = [0.0, 0.25, 0.5, 0.75, 1.0]
    for name in ("valid", "kills", "hidden, held out"):
        values = [_values(record, arm, name) for arm in ALPHAS]
        axis.plot(alphas, [one.mean() for one in values], "o-", label=name)
        axis.fill_between(alphas, *zip(*map(interval, values), strict=True), alpha=0.2)
    axis.set_xlabel("alpha")
    axis.legend()


def _curves(axis: Any, record: dict[str, Any], arms: Sequence[str], name: str, every: int) -> None:
    for arm in arms:
        curves = _curve(record, arm, name)
        rounds = np.arange(curves.shape[1]) * every
        axis.plot(rounds, curves.mean(0), label=arm)
        axis.fill_between(rounds, *zip(*map(interval, curves.T), strict=True), alpha=0.2)
    axis.set_xlabel("rounds")
    axis.set_ylabel(name)
    axis.legend()


def _heat(axis: Any, record: dict[str, Any]) -> None:
    coders, testers, means = _payoffs(record, "R_C")
    axis.imshow(means, cmap="viridis", vmin=0, vmax=1, aspect="auto")
    for (row, column), value in np.ndenumerate(means):
        axis.text(column, row, f"{value:.2f}", ha="center", va="center", color="white" if value < 0.6 else "black")
    axis.set_yticks(range(len(coders)), coders)
    axis.set_xticks(range(len(testers)), testers)
    axis.set_title("R_C on held-out questions: coders (rows) against testers", fontsize=9)
