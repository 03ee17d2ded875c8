"""Tables of the shift game: means over bases and seeds with intervals, and Code-A1 minus every arm. Runs nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from codea1_env.evaluation.estimates import Estimate, mean_by_base, new_run

MAIN = "code_a1"
LOOKS = {MAIN: (0, 3, 6, 9, 12), "frozen_trained": (0, 6, 12), "frozen_early": (6, 12), "frozen": (6, 12)}
"""Which looks the diagnostics show, of ten rounds each."""
Cells = Sequence[Mapping[str, Any]]


def values_of(cells: Cells, setting: str, arm: str, measure: str) -> dict[tuple[int, int], float]:
    """Base and seed to value."""
    return {
        (c["base"], c["seed"]): c["arms"][arm][measure] for c in cells if c["setting"] == setting and arm in c["arms"]
    }


def by_base(values: Mapping[tuple[int, int], float]) -> list[list[float]]:
    return [[value for (base, _), value in values.items() if base == each] for each in sorted({b for b, _ in values})]


def against_main(cells: Cells, setting: str, arm: str, measure: str) -> Estimate:
    """Code-A1 minus the arm, paired by base and seed."""
    main, other = values_of(cells, setting, MAIN, measure), values_of(cells, setting, arm, measure)
    return mean_by_base(by_base({place: main[place] - other[place] for place in main if place in other}))


def contrast(cells: Cells, measure: str) -> Estimate:
    """`code_a1` minus `frozen_trained` at strength 1, minus the same at strength 0, paired by base and seed."""
    differences = []
    for setting in ("strength 1", "strength 0"):
        main, other = (values_of(cells, setting, arm, measure) for arm in (MAIN, "frozen_trained"))
        differences.append({place: main[place] - other[place] for place in main})
    at_1, at_0 = differences
    return mean_by_base(by_base({place: at_1[place] - at_0[place] for place in at_1 if place in at_0}))


def expected_of(cells: Cells, setting: str, arm: str, measure: str) -> Estimate:
    """Where 95 % of new runs lie."""
    return new_run(by_base(values_of(cells, setting, arm, measure)))


def tables(cells: Cells) -> str:
    """Markdown: a section a setting, then what is left and who could find it."""
    parts = []
    for setting in dict.fromkeys(sorted((c["setting"] for c in cells), key=lambda name: ("," in name, name))):
        arms = dict.fromkeys(arm for c in cells if c["setting"] == setting for arm in c["arms"])
        lines = ["| arm | hidden | area | Code-A1 minus it: hidden | area |", "|---|---|---|---|---|"]
        for arm in arms:
            own = [shown(mean_by_base(by_base(values_of(cells, setting, arm, name)))) for name in ("hidden", "area")]
            minus = [shown(against_main(cells, setting, arm, name), "+") for name in ("hidden", "area")]
            lines.append(f"| `{arm}` | {' | '.join(own)} | {' | '.join(minus if arm != MAIN else ['', ''])} |")
        parts += [f"### {setting[0].upper()}{setting[1:]}", "\n".join(lines), _left(cells, setting)]
    if any(c["setting"] == "strength 0" for c in cells):
        both = " and ".join(f"{name} {shown(contrast(cells, name), '+')}" for name in ("hidden", "area"))
        parts.append(f"`code_a1` minus `frozen_trained`, at strength 1 minus at strength 0: {both}.")
    return "\n\n".join(parts) + "\n"


def _left(cells: Cells, setting: str) -> str:
    """Means over runs, on the way."""
    chosen = [c for c in cells if c["setting"] == setting]
    lines = ["| arm | rounds | right | slips at 1, 2, 3 | a test kills a slip at 1, 2, 3 |", "|---|---|---|---|---|"]
    for arm, looks in LOOKS.items():
        for look in looks:
            seen = [c["arms"][arm]["looks"][look] for c in chosen]
            slips, kills = (
                ", ".join(f"{sum(each[name][place] for each in seen) / len(seen):.2f}" for place in range(3))
                for name in ("slips", "kills")
            )
            right = sum(each["hidden"] for each in seen) / len(seen)
            lines.append(f"| `{arm}` | {10 * look} | {right:.3f} | {slips} | {kills} |")
    return "\n".join(lines)


def shown(estimate: Estimate, sign: str = "") -> str:
    value, low, high = (round(number, 3) + 0.0 for number in (estimate.value, estimate.low, estimate.high))
    ends = "" if math.isnan(low) else f" [{low:{sign}.3f}, {high:{sign}.3f}]"
    return f"{value:{sign}.3f}{ends} ({estimate.runs})"
