"""Tables of the shift game: means over bases and seeds with intervals, and Code-A1 minus every arm. Runs nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from codea1_env.evaluation.estimates import Estimate, mean_by_base, new_run

MAIN, LOOKS = "code_a1", (0, 3, 6, 9, 12)
"""Which looks the diagnostics show: every third."""
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
    return mean_by_base(by_base({place: main[place] - other[place] for place in main}))


def expected_of(cells: Cells, setting: str, arm: str, measure: str) -> Estimate:
    """Where 95 % of new runs lie."""
    return new_run(by_base(values_of(cells, setting, arm, measure)))


def tables(cells: Cells) -> str:
    """Markdown: a section a setting, then what is left and who could find it."""
    parts = []
    for setting in dict.fromkeys(sorted((c["setting"] for c in cells), key=lambda name: ("," in name, name))):
        arms = list(next(c["arms"] for c in cells if c["setting"] == setting))
        lines = ["| arm | hidden | area | Code-A1 minus it: hidden | area |", "|---|---|---|---|---|"]
        for arm in arms:
            own = [shown(mean_by_base(by_base(values_of(cells, setting, arm, name)))) for name in ("hidden", "area")]
            minus = [shown(against_main(cells, setting, arm, name), "+") for name in ("hidden", "area")]
            lines.append(f"| `{arm}` | {' | '.join(own)} | {' | '.join(minus if arm != MAIN else ['', ''])} |")
        parts += [f"### {setting[0].upper()}{setting[1:]}", "\n".join(lines), _left(cells, setting)]
    return "\n\n".join(parts) + "\n"


def _left(cells: Cells, setting: str) -> str:
    """Means over runs of two arms, on the way."""
    chosen = [c for c in cells if c["setting"] == setting]
    lines = ["| arm | rounds | right | slips at 1, 2, 3 | a test kills a slip at 1, 2, 3 |", "|---|---|---|---|---|"]
    for arm in (MAIN, "frozen_trained", "frozen_early"):
        for look in LOOKS:
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
    return f"{value:{sign}.3f}{ends}"
