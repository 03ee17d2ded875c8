"""The study's tables, from what its cells left: every number with how many runs it is from.

Does not decide what is shown by what came out: all arms are in every table, missing cells as gaps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any, NamedTuple

from codea1_env.bench.estimates import (
    Estimate,
    by_base,
    mean_by_base,
    of_share,
    probability_of_improvement,
    shown,
    stratified_interquartile_mean,
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
        "over_presets": over_presets(scores),
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
    better = probability_of_improvement([main[place] for place in places], [other[place] for place in places])
    return {
        "bases": [place.base for place in places],
        "seeds": [place.seed for place in places],
        "paired": asdict(found),
        "probability_of_improvement": asdict(better),
    }


def paired(arms: Mapping[str, Runs], first: str, second: str, measure: str) -> Estimate | None:
    """The first arm minus the second, on the bases and seeds that both have; None where there are none."""
    one, other = (column(arms.get(arm, {}), measure) for arm in (first, second))
    differences = {place: one[place] - other[place] for place in sorted(one.keys() & other.keys())}
    return mean_by_base(by_base(differences)) if differences else None


def over_presets(scores: Scores) -> dict[str, Any]:
    """Per arm that every preset has: the stratified interquartile mean of the primary measure."""
    common = set.intersection(*(set(arms) for arms in scores.values())) if scores else set()
    found = {}
    for arm in sorted(common):
        strata = [list(column(arms[arm], PRIMARY).values()) for arms in scores.values()]
        if all(strata):
            found[arm] = asdict(stratified_interquartile_mean(strata))
    return found


def as_markdown(scores: Scores, order: Sequence[str], provenance: Mapping[str, Any], missing: Mapping[str, str]) -> str:
    """table.md: one section a preset, then what is missing, then where it comes from."""
    parts = ["# Study: results", ""]
    for preset, arms in scores.items():
        parts += [f"## {preset}", "", *_arm_table(arms, order, SHOWN), "", *_difference_table(arms, order), ""]
        parts += _pair_table(arms)
        parts += ["### Diagnostics", "", *_arm_table(arms, order, DIAGNOSED), ""]
        parts += _compute_table(arms, order)
    together = over_presets(scores) if len(scores) > 1 else {}
    if together:
        parts += ["## All presets: interquartile mean of the hidden pass rate, stratified bootstrap", ""]
        rows = [(f"`{arm}`", shown(Estimate(**together[arm]))) for arm in order if arm in together]
        parts += [markdown_table(("arm", "estimate"), rows), ""]
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
    paired = "base and seed" if _bases(arms) > 1 else "seed"
    said = (
        f"`code_a1` minus the arm, coder's hidden pass rate, paired by {paired}; P: how likely a run of `code_a1` is "
        "better."
    )
    rows = []
    for arm in (arm for arm in order if arm in arms and arm != MAIN):
        found = against_main(arms, arm)
        if found:
            better = Estimate(**found["probability_of_improvement"])
            likely = shown(better) if better.runs > 1 else "one seed"
            rows.append((f"`{arm}`", shown(Estimate(**found["paired"]), "+"), likely))
    return [said, "", markdown_table(("arm", "difference", "P [bootstrap]"), rows)]


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
