"""The rounds of real runs beside each other: what the seats did while they learnt, as a record and as one picture.

    python experiments/real_curves.py RUN... -o experiments/results/real-curves.json --picture curves.png

A run is named after its directory, and runs whose names differ in the seed alone are one arm. The picture has means
over an arm's seeds, and running means over three rounds; the arms of `NAMED` have colours, all others are grey. The
record has every round. Rounds that were played again count once.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from codea1_env.terminal import Parser

ROUND = (
    "coder_reward", "valid_tests", "killing_tests", "trivial_tests", "vacuous_tests", "test_diversity", "unreadable",
    "book", "replayed",
)  # fmt: skip
"""What is kept of the arena's record of a round. Runs without a tester have the first alone."""
SEAT = ("length", "truncated", "tokens", "learnt_tokens")
"""What is kept of a seat's record."""
SHOWN = {
    "coder_reward": "coder's reward",
    "valid_tests": "share of tests that are valid",
    "killing_tests": "share of tests that kill",
    "trivial_tests": "share of tests that tell no program from another",
    "test_diversity": "share of different tests in a group",
    "coder_length": "tokens of a program",
}
NAMED = {
    "preset": "Code-A1",
    "frozen-preset": "frozen tester",
    "self-play-preset": "self-play",
    "golden-preset": "golden tests",
    "derived-preset": "tests of the reference",
}
"""Arms that the picture names: those of 28 rounds on one core."""
SEED = re.compile(r"-seed\d+$")

Rounds = Mapping[str, Sequence[float | None]]
"""By measure, a value for each round. None: the round has none."""


def main() -> None:
    parser = Parser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="a run's directory")
    parser.add_argument("-o", "--output", type=Path, required=True, help="a file for the record, JSON")
    parser.add_argument("--picture", type=Path, help="a file for the picture, PNG or SVG")
    options = parser.parse_args()
    try:
        record = {run.name: rounds_of(run / "metrics.jsonl") for run in options.runs}
        options.output.write_text(json.dumps(record, separators=(",", ":")) + "\n")
        if options.picture is not None:
            picture(record).savefig(options.picture, dpi=90)
    except (KeyError, ValueError) as error:
        raise SystemExit(f"error: RUN must have whole metrics, got {error!r}") from None
    except OSError as error:
        raise SystemExit(f"error: {error}") from None


def rounds_of(file: Path) -> dict[str, list[float | None]]:
    """What a run's metrics say, round by round."""
    found: dict[int, dict[str, float]] = {}
    for line in file.read_text().splitlines():
        record = json.loads(line)
        if record["kind"] == "round":
            kept = {name: record[name] for name in ROUND if record.get(name) is not None}
        elif record["kind"] == "seat":
            kept = {f"{record['seat']}_{name}": record[name] for name in SEAT if record.get(name) is not None}
        else:
            continue
        found.setdefault(record["round"], {}).update(kept)
    names = dict.fromkeys(name for values in found.values() for name in values)
    return {name: [_rounded(found[index].get(name)) for index in sorted(found)] for name in names}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def picture(record: Mapping[str, Rounds]) -> Any:
    """One panel a measure, one line an arm."""
    try:
        import matplotlib.figure
    except ImportError as error:
        raise SystemExit("error: --picture needs the extra `train`: pip install '.[train]'") from error
    figure = matplotlib.figure.Figure(figsize=(11, 6), layout="constrained")
    arms = sorted({SEED.sub("", name) for name in record}, key=[*NAMED].__contains__)  # those with a colour on top
    looks = {arm: {"color": f"C{place}", "label": label} for place, (arm, label) in enumerate(NAMED.items())}
    for axis, (measure, title) in zip(figure.subplots(2, 3).flat, SHOWN.items(), strict=True):
        for arm in arms:
            runs = [rounds.get(measure, ()) for name, rounds in record.items() if SEED.sub("", name) == arm]
            values = np.array([_mean(np.array(each, float)) for each in itertools.zip_longest(*runs)])
            look = looks.get(arm, {"color": "0.85", "label": "other arms", "linewidth": 1})
            axis.plot(range(1, len(values) + 1), running_mean(values), **look)
        axis.set_title(title, fontsize=10)
        axis.set_ylim(bottom=0)
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.grid(alpha=0.3)
    lines = {line.get_label(): line for line in reversed(axis.lines)}
    figure.legend(handles=lines.values(), loc="outside upper center", ncols=6)
    figure.supxlabel("rounds (means over seeds, running means over three rounds)", fontsize=10)
    return figure


def running_mean(values: np.ndarray) -> np.ndarray:
    """Over three rounds, of two at the ends; rounds without a value do not count."""
    return np.array([_mean(values[max(0, place - 1) : place + 2]) for place in range(len(values))])


def _mean(values: np.ndarray) -> float:
    present = values[~np.isnan(values)]
    return float(present.mean()) if len(present) else float("nan")


if __name__ == "__main__":
    main()
