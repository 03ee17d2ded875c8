"""Tables of the shift game: means over bases and seeds with intervals, and Code-A1 minus every arm. Runs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codea1_env.bench.estimates import Estimate, by_base, mean_by_base, new_run, shown
from codea1_env.terminal import markdown_table

MAIN = "code_a1"
LOOKS = {MAIN: (0, 30, 60, 90, 120), "frozen_trained": (0, 60, 120), "frozen_early": (60, 120), "frozen": (60, 120)}
"""After which rounds the diagnostics show an arm."""
Cells = Sequence[Mapping[str, Any]]


def kept(cell: Mapping[str, Any], every: int) -> dict[str, Any]:
    """A cell as results.json has it: the coder's way whole, and of the looks, one in `every` rounds, those shown."""
    arms = {}
    for name, arm in cell["arms"].items():
        looks = {str(rounds): arm["looks"][rounds // every] for rounds in LOOKS.get(name, ())}
        arms[name] = arm | {"looks": looks, "curve": [round(look["hidden"], 4) for look in arm["looks"]]}
    return {**cell, "arms": arms}


def values_of(cells: Cells, setting: str, arm: str, measure: str) -> dict[tuple[int, int], float]:
    """Base and seed to value."""
    return {
        (c["base"], c["seed"]): c["arms"][arm][measure] for c in cells if c["setting"] == setting and arm in c["arms"]
    }


def differences_of(cells: Cells, setting: str, arm: str, measure: str) -> dict[tuple[int, int], float]:
    """Code-A1 minus the arm, at the places that both have."""
    main, other = values_of(cells, setting, MAIN, measure), values_of(cells, setting, arm, measure)
    return {place: main[place] - other[place] for place in main if place in other}


def contrast(cells: Cells, arm: str, measure: str) -> Estimate:
    """`code_a1` minus the arm at strength 1, minus the same at strength 0, paired by base and seed."""
    at_1, at_0 = (differences_of(cells, setting, arm, measure) for setting in ("strength 1", "strength 0"))
    return mean_by_base(by_base({place: at_1[place] - at_0[place] for place in at_1 if place in at_0}))


def expected_of(cells: Cells, setting: str, arm: str, measure: str) -> Estimate:
    """Where 95 % of new runs lie."""
    return new_run(by_base(values_of(cells, setting, arm, measure)))


def tables(cells: Cells) -> str:
    """Markdown: a section a setting, then what is left and who could find it."""
    parts = []
    for setting in dict.fromkeys(sorted((c["setting"] for c in cells), key=lambda name: ("," in name, name))):
        arms = dict.fromkeys(arm for c in cells if c["setting"] == setting for arm in c["arms"])
        rows = []
        for arm in arms:
            own = [shown(mean_by_base(by_base(values_of(cells, setting, arm, name)))) for name in ("hidden", "area")]
            minus = [
                shown(mean_by_base(by_base(differences_of(cells, setting, arm, name))), "+")
                for name in ("hidden", "area")
            ]
            rows.append([f"`{arm}`", *own, *(minus if arm != MAIN else ["", ""])])
        table = markdown_table(("arm", "hidden", "area", "Code-A1 minus it: hidden", "area"), rows)
        parts += [f"### {setting[0].upper()}{setting[1:]}", table, _left(cells, setting)]
    if {"strength 0", "strength 1"} <= {c["setting"] for c in cells}:
        others = [arm for arm in LOOKS if arm != MAIN]
        rows = [
            [f"`{arm}`", *(shown(contrast(cells, arm, name), "+") for name in ("hidden", "area"))] for arm in others
        ]
        head = ("Code-A1 minus the arm, at strength 1 minus at strength 0", "hidden", "area")
        parts += ["### Strength 1 minus strength 0", markdown_table(head, rows)]
    return "\n\n".join(parts) + "\n"


def _left(cells: Cells, setting: str) -> str:
    """Means over runs, on the way."""
    chosen = [c for c in cells if c["setting"] == setting]
    rows = []
    for arm, looks in LOOKS.items():
        for look in looks:
            seen = [c["arms"][arm]["looks"][str(look)] for c in chosen]
            slips, kills = (
                ", ".join(f"{sum(each[name][place] for each in seen) / len(seen):.2f}" for place in range(3))
                for name in ("slips", "kills")
            )
            right = sum(each["hidden"] for each in seen) / len(seen)
            rows.append((f"`{arm}`", look, f"{right:.3f}", slips, kills))
    return markdown_table(("arm", "rounds", "right", "slips at 1, 2, 3", "a test kills a slip at 1, 2, 3"), rows)
