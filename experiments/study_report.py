"""The study's tables, from what its cells left: every number with how many runs it is from.

Does not decide what is shown by what came out: all arms are in every table, missing cells as gaps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from codea1_env.bench.estimates import (
    Estimate,
    by_base,
    mean_by_base,
    of_share,
    shown,
)
from codea1_env.terminal import markdown_table

MAIN = "code_a1"
PRIMARY = "hidden"
SHOWN = {
    "hidden": "coder: hidden",
    "golden": "coder: golden",
    "input_kills": "tester: inputs that kill",
    "valid": "tester: valid",
    "all_valid": "tester: suites all valid",
    "killed": "tester: suites that kill",
    "last_reward": "coder's reward, last rounds",
}
DIAGNOSED = {
    "regressions": "regressions",
    "effective_alpha": "effective alpha",
    "validity_signal": "validity's share of the tester's signal",
    "coder_zero_groups": "coder's groups that teach nothing",
    "trivial_tests": "trivial tests",
    "duplicate_tests": "duplicate tests",
    "book_hit_rate": "questions with replays",
    "replays_failed": "replays failed",
    "coder_entropy": "coder's entropy, nats",
    "tester_entropy": "tester's entropy, nats",
}
"""docs/metrics.md has what each is; `study_numbers.diagnostics_of`, over which rounds."""
UNBOUNDED = ("coder_entropy", "tester_entropy")
"""The others of SHOWN and DIAGNOSED are shares, in [0, 1], and so are the rewards of the coder."""
COMPUTE = {
    "programs": "programs sampled",
    "suites": "suites sampled",
    "learnt": "responses learnt from",
    "tokens": "tokens learnt from",
    "steps": "optimizer steps",
}
"""`study_numbers.compute_of` says how it is counted."""
PAIRS = (
    ("few_questions", "few_questions_no_book", "hidden"),
    ("few_questions", "few_questions_no_book", "regressions"),
    ("alpha_0.0", "alpha_1.0", "input_kills"),
    ("alpha_1.0", "alpha_0.0", "valid"),
    ("code_a1", "base", "input_kills"),
    ("code_a1", "base", "valid"),
)
"""Comparisons of two arms that claims are about: the first minus the second, and in which measure."""


class Place(NamedTuple):
    """Of a run among those of its arm."""

    base: int
    seed: int


Runs = Mapping[Place, Mapping[str, float]]
"""Of one arm: place, measure."""
Scores = dict[str, dict[str, dict[Place, dict[str, float]]]]
"""Preset, arm, place, measure."""


def scores_of(cells: Sequence[Mapping[str, Any]]) -> Scores:
    """The measures and diagnostics of finished cells by preset, arm and place."""
    found: Scores = {}
    for cell in cells:
        numbers = cell["measures"] | cell.get("diagnostics", {}) | cell.get("compute", {})
        runs = found.setdefault(cell["preset"], {}).setdefault(cell["arm"], {})
        runs[Place(cell.get("base", 0), cell["seed"])] = numbers
    return found


def estimates(scores: Scores) -> Any:
    """For results.json: per preset and arm, every measure; `code_a1` minus the arm in the primary one."""
    found = {
        "arms": {
            preset: {
                arm: {
                    name: asdict(mean_of(name, values))
                    for name in (*SHOWN, *DIAGNOSED)
                    if (values := by_base(column(runs, name)))
                }
                for arm, runs in arms.items()
            }
            for preset, arms in scores.items()
        },
        "differences": {
            preset: {arm: against_main(arms, arm) for arm in arms if arm != MAIN and MAIN in arms}
            for preset, arms in scores.items()
        },
    }
    return _without_nan(found)


def _without_nan(value: Any) -> Any:
    """Plain data for JSON, which has no nan: null stands for it."""
    if isinstance(value, dict):
        return {key: _without_nan(each) for key, each in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def column(runs: Runs, measure: str) -> dict[Place, float]:
    """Place to value, of the runs that have the measure."""
    return {place: values[measure] for place, values in sorted(runs.items()) if measure in values}


def mean_of(measure: str, values: Sequence[Sequence[float]]) -> Estimate:
    """Of a measure's values by base."""
    found = mean_by_base(values)
    return found if measure in UNBOUNDED else of_share(found)


def against_main(arms: Mapping[str, Runs], arm: str) -> dict[str, Any]:
    """`code_a1` minus the arm, on the bases and seeds that both have, in the primary measure."""
    main, other = column(arms[MAIN], PRIMARY), column(arms[arm], PRIMARY)
    places, found = sorted(main.keys() & other.keys()), paired(arms, MAIN, arm, PRIMARY)
    if found is None:
        return {}
    return {
        "bases": [place.base for place in places],
        "seeds": [place.seed for place in places],
        "paired": asdict(found),
    }


def paired(arms: Mapping[str, Runs], first: str, second: str, measure: str) -> Estimate | None:
    """The first arm minus the second, on the bases and seeds that both have; None where there are none."""
    one, other = (column(arms.get(arm, {}), measure) for arm in (first, second))
    differences = {place: one[place] - other[place] for place in sorted(one.keys() & other.keys())}
    return mean_by_base(by_base(differences)) if differences else None


def as_markdown(scores: Scores, order: Sequence[str], provenance: Mapping[str, Any], missing: Mapping[str, str]) -> str:
    """table.md: one section a preset, then what is missing, then where it comes from."""
    parts = ["# Study: results", ""]
    for preset, arms in scores.items():
        parts += [f"## {preset}", "", *_arm_table(arms, order, SHOWN), "", *_difference_table(arms, order), ""]
        parts += _pair_table(arms)
        parts += ["### Diagnostics", "", *_arm_table(arms, order, DIAGNOSED), ""]
        parts += _compute_table(arms, order)
    if missing:
        parts += ["## Missing cells", "", *(f"- {name}: {reason}" for name, reason in sorted(missing.items())), ""]
    parts += ["## Provenance", "", *(f"- {key}: {value}" for key, value in provenance.items()), ""]
    return "\n".join(parts)


def _arm_table(arms: Mapping[str, Runs], order: Sequence[str], names: Mapping[str, str]) -> list[str]:
    over_bases = (
        "Each cell: mean over bases of the mean over seeds [95 % interval, Student's t over the bases' means] (runs)."
    )
    rows = []
    for arm in (arm for arm in order if arm in arms):
        columns = {name: by_base(column(arms[arm], name)) for name in names}
        if not any(columns.values()):
            continue
        rows.append([f"`{arm}`", *(shown(mean_of(name, v)) if v else "" for name, v in columns.items())])
    over_seeds = "Each cell: mean over seeds [95 % interval, Student's t over seeds] (number of seeds)."
    said = over_bases if _bases(arms) > 1 else over_seeds
    return [said, "", markdown_table(["arm", *names.values()], rows)]


def _bases(arms: Mapping[str, Runs]) -> int:
    return len({place.base for runs in arms.values() for place in runs})


def _difference_table(arms: Mapping[str, Runs], order: Sequence[str]) -> list[str]:
    if MAIN not in arms:
        return []
    unit = "base and seed" if _bases(arms) > 1 else "seed"
    said = f"`code_a1` minus the arm, coder's hidden pass rate, paired by {unit}."
    rows = []
    for arm in (arm for arm in order if arm in arms and arm != MAIN):
        if found := paired(arms, MAIN, arm, PRIMARY):
            rows.append((f"`{arm}`", shown(found, "+")))
    return [said, "", markdown_table(("arm", "difference"), rows)]


def _pair_table(arms: Mapping[str, Runs]) -> list[str]:
    """Of those of `PAIRS` that have runs."""
    names = SHOWN | DIAGNOSED
    rows = [
        (f"`{first}` minus `{second}`", names[measure], shown(found, "+"))
        for first, second, measure in PAIRS
        if (found := paired(arms, first, second, measure))
    ]
    table = markdown_table(("arms", "measure", "difference"), rows)
    return ["Other differences, paired alike.", "", table, ""] if rows else []


def _compute_table(arms: Mapping[str, Runs], order: Sequence[str]) -> list[str]:
    """Means over runs, where runs say it."""
    rows = []
    for arm in (arm for arm in order if arm in arms):
        columns = [list(column(arms[arm], name).values()) for name in COMPUTE]
        if all(columns):
            rows.append([f"`{arm}`", *(f"{fmean(values):,.0f}" for values in columns), len(columns[0])])
    if not rows:
        return []
    table = markdown_table(["arm", *COMPUTE.values(), "runs"], rows)
    return ["### Compute of a run", "", "Means over runs.", "", table, ""]


def draw(arms: Mapping[str, Runs], order: Sequence[str], file: Path) -> None:
    """The primary measure, a row an arm: its seeds, their mean and its interval."""
    import matplotlib.figure

    names = [arm for arm in order if arm in arms and column(arms[arm], PRIMARY)]
    figure = matplotlib.figure.Figure(figsize=(8, 1.2 + 0.3 * len(names)), layout="constrained")
    axis = figure.subplots()
    for place, arm in enumerate(reversed(names)):
        values = column(arms[arm], PRIMARY)
        found = mean_of(PRIMARY, by_base(values))
        axis.plot(list(values.values()), [place] * found.runs, "o", color="tab:grey", alpha=0.6)
        axis.plot([found.value], [place], "D", color="tab:blue")
        if not math.isnan(found.low):
            axis.plot([found.low, found.high], [place, place], color="tab:blue")
    axis.set_yticks(range(len(names)), list(reversed(names)))
    axis.grid(axis="x", alpha=0.3)
    axis.set_title(f"{SHOWN[PRIMARY]} (dots: runs; line: 95 %)")
    figure.savefig(file, dpi=90)
