"""The end of a run: the table *base against trained, both seats*, its record, and the curves.

Does not measure anything: it shows what the evaluations found.
"""

from __future__ import annotations

import resource
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codea1_env.extras import extra
from codea1_env.training.run.held_out import MeasuredSeats, paired_interval

CODER_ROWS = {
    "hidden": "coder: hidden pass rate",
    "golden": "coder: golden pass rate",
    "executes": "coder: executes",
}
TESTER_ROWS = {
    "valid": "tester: valid tests",
    "kills": "tester: valid tests that kill",
    "input_kills": "tester: inputs that kill",
    "all_valid": "tester: suites all valid",
    "killed": "tester: suites that kill",
    "killed_by_any": "tester: mutants killed by any suite",
    "empty_inputs": "tester: empty inputs",
    "input_length": "tester: input length",
}


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One line of the final table."""

    name: str
    base: float
    trained: float
    low: float
    """Lower end of the 95 % interval of the difference, paired over held-out problems."""
    high: float
    base_by_problem: tuple[float, ...] = ()
    """One entry per held-out problem, so that runs can be compared with each other; `base` is their mean."""
    trained_by_problem: tuple[float, ...] = ()


def compare(base: MeasuredSeats, trained: MeasuredSeats) -> list[ResultRow]:
    seats: list[tuple[Mapping[str, str], object, object]] = [(CODER_ROWS, base.coder, trained.coder)]
    if base.tester and trained.tester:
        seats.append((TESTER_ROWS, base.tester, trained.tester))
    return [
        _row(title, getattr(before, name), getattr(after, name))
        for titles, before, after in seats
        for name, title in titles.items()
        if getattr(before, name)  # no held-out problem may have golden tests, or mutants
    ]


def as_table(rows: Sequence[ResultRow]) -> str:
    """Plain text, aligned; differences with their intervals. Of rows that are 0 before and after, their number only: a
    run of the smoke presets has nothing to compare."""
    told = [row for row in rows if any((row.base, row.trained, row.low, row.high))]
    if not told:
        return "held-out problems: every measure is 0 before and after training, so there is nothing to compare"
    lines = [f"{'held-out problems':36} {'base':>7} {'trained':>8} {'difference (95 % interval)':>30}"]
    for row in told:
        difference = f"{row.trained - row.base:+.3f}  [{row.low:+.3f}, {row.high:+.3f}]"
        lines.append(f"{row.name:36} {row.base:7.3f} {row.trained:8.3f} {difference:>30}")
    if len(told) < len(rows):
        left_out = ", ".join(row.name for row in rows if row not in told)
        lines.append(f"0 before and after training: {left_out}")
    return "\n".join(lines)


CLAUSE = "clause_"
"""How the names of measures by clause begin, in both seats' evaluations."""
BY_ROUND = {
    "coder": {"hidden_pass_rate": "all hidden tests", "golden_pass_rate": "golden tests"},
    "tester": {"validity": "right tests", "kill_rate": "right tests that break"},
}


def by_clause(records: Sequence[Mapping[str, Any]]) -> str:
    """Both seats' evaluations at the start, in the middle and at the end of a run, clause by clause, in plain text;
    empty where problems have no clauses. `records`: the run's metrics."""
    shown = []
    for seat, names in BY_ROUND.items():
        rounds = {r["round"]: r for r in records if r["kind"] == "evaluation" and r["seat"] == seat}
        done = sorted(rounds)
        chosen = sorted({done[0], done[len(done) // 2], done[-1]}) if done else []
        clauses = sorted({name for record in rounds.values() for name in record if name.startswith(CLAUSE)})
        if not clauses:
            continue
        shown.append(f"{seat + ', by clause':36}" + "".join(f" {f'round {count}':>9}" for count in chosen))
        for name in (*names, *clauses):
            values = [rounds[count].get(name) for count in chosen]
            title = names.get(name) or "  " + name.removeprefix(CLAUSE)
            shown.append(f"{title:36}" + "".join(f" {'-' if v is None else f'{v:.3f}':>9}" for v in values))
    return "\n".join(shown)


PARTS = ("generating", "learning", "waiting", "scoring", "parsing", "judging", "rewarding")
"""What a round's time is split into: the first three for each seat, the last three are what scoring consists of."""


@dataclass(frozen=True, slots=True)
class RunCost:
    """What a run took."""

    seconds: Mapping[str, float]
    """By part of the run: training of all its starts, the others of the last one."""
    seconds_a_round: Mapping[str, float]
    """Median over rounds, by seat (empty: the arena) and part, e.g. `coder waiting`."""
    peak_memory_mb: float
    """MiB, of this process, which the last start is; the sandbox's are apart."""

    def shares(self) -> dict[str, float]:
        """Of a round: the environment's share (parse, sandbox, rewards), and each seat's in which it waited.

        Where both seats take turns on one device, a seat that waits leaves the device to the other one.
        """
        totals = {seat: sum(self._parts(seat).values()) for seat in self._seats()}
        rounds = {seat: total for seat, total in totals.items() if total > 0}
        if not rounds:
            return {}
        shares = {f"{seat} waiting": self._parts(seat).get("waiting", 0.0) / total for seat, total in rounds.items()}
        if "scoring" in self.seconds_a_round:
            shares["environment"] = self.seconds_a_round["scoring"] / max(rounds.values())
        return shares

    def _seats(self) -> list[str]:
        return sorted({name.split()[0] for name in self.seconds_a_round if " " in name})

    def _parts(self, seat: str) -> dict[str, float]:
        names = {part: f"{seat} {part}" for part in ("generating", "waiting", "learning")}
        return {part: self.seconds_a_round[name] for part, name in names.items() if name in self.seconds_a_round}

    def __str__(self) -> str:
        lines = ["seconds: " + ", ".join(f"{name} {value:.0f}" for name, value in self.seconds.items())]
        for seat in self._seats():
            parts = self._parts(seat)
            split = " + ".join(f"{name} {value:.2f}" for name, value in parts.items())
            lines.append(f"a round of the {seat}: {sum(parts.values()):.2f} s = {split}")
        shares = self.shares()
        if "environment" in shares:
            within = ("parsing", "judging", "rewarding")
            split = ", ".join(f"{n} {self.seconds_a_round[n]:.3f}" for n in within if n in self.seconds_a_round)
            scoring = f"{self.seconds_a_round['scoring']:.3f} s" + (f": {split}" if split else "")
            lines.append(f"the environment's share of a round: {shares['environment']:.1%} ({scoring})")
        return "\n".join([*lines, f"peak memory: {self.peak_memory_mb:.0f} MiB"])


def cost(seconds: Mapping[str, float], records: Sequence[Mapping[str, Any]], rounds_before: int = 0) -> RunCost:
    """From what the recipe timed and what the rounds logged. `rounds_before`: those of earlier starts of the run, whose
    training was timed there and is on record by round only."""
    seconds = dict(seconds)
    if "training" in seconds:
        seconds["training"] += _seconds_of(record for record in records if record["round"] <= rounds_before)
    split: dict[str, list[float]] = {}
    for record in records:
        for part in PARTS:
            if record.get(f"seconds_{part}") is not None:
                split.setdefault(f"{record['seat']} {part}".strip(), []).append(record[f"seconds_{part}"])
    medians = {name: statistics.median(values) for name, values in split.items()}
    return RunCost(seconds, medians, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def _seconds_of(records: Iterable[Mapping[str, Any]]) -> float:
    """Of rounds: each took as long as its slowest seat, which waits for the other."""
    rounds: dict[int, float] = {}
    for record in records:
        if record["kind"] == "seat":
            parts = [record.get(f"seconds_{part}") or 0.0 for part in ("generating", "waiting", "learning")]
            rounds[record["round"]] = max(sum(parts), rounds.get(record["round"], 0.0))
    return sum(rounds.values())


def as_record(rows: Sequence[ResultRow], spent: RunCost) -> dict[str, Any]:
    """For summary.json."""
    return {"rows": [asdict(row) for row in rows], "cost": asdict(spent) | {"shares": spent.shares()}}


def plot_curves(records: Sequence[Mapping[str, Any]], file: Path) -> None:
    """A picture of a run's metrics: evaluations of both seats, rewards, and where the time goes."""
    with extra("train", "the curves need"):
        import matplotlib.figure
    figure = matplotlib.figure.Figure(figsize=(11, 7), layout="constrained")
    axes = figure.subplots(2, 2)
    panels = (
        ("coder, held-out problems", "evaluation", "coder", ("hidden_pass_rate", "golden_pass_rate", "executes")),
        ("tester, held-out mutants", "evaluation", "tester", ("validity", "kill_rate", "input_kill_rate")),
        (
            "rewards and tests, per round",
            "round",
            "",
            ("coder_reward", "tester_reward", "valid_tests", "killing_tests"),
        ),
        ("Mistake Book, per round", "round", "", ("book",)),
    )
    for axis, (title, kind, seat, names) in zip(axes.flat, panels, strict=True):
        chosen = [record for record in records if record["kind"] == kind and record["seat"] == seat]
        for name in names:
            points = [(r["round"], r[name]) for r in chosen if r.get(name) is not None]
            if points:
                axis.plot(*zip(*points, strict=True), marker="o" if kind == "evaluation" else "", label=name)
        axis.set_title(title)
        axis.set_xlabel("rounds done")
        if axis.get_legend_handles_labels()[0]:
            axis.legend()
    figure.savefig(file, dpi=110)


def _row(name: str, base: Sequence[float], trained: Sequence[float]) -> ResultRow:
    interval = paired_interval(base, trained)
    base_mean = sum(base) / len(base)
    means = (base_mean, base_mean + interval.mean)
    return ResultRow(name, *means, interval.low, interval.high, tuple(base), tuple(trained))
