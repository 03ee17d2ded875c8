"""The study's tables, from what its cells left: every number with how many runs it is from.

Does not decide what is shown by what came out: all arms are in every table, missing cells as gaps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from codea1_env.evaluation.estimates import (
    Estimate,
    mean_with_t,
    paired_difference,
    probability_of_improvement,
    stratified_interquartile_mean,
)

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
Scores = dict[str, dict[str, dict[int, dict[str, float]]]]
"""Preset, arm, seed, measure."""


def scores_of(cells: Sequence[Mapping[str, Any]]) -> Scores:
    """The measures and diagnostics of finished cells by preset, arm and seed."""
    found: Scores = {}
    for cell in cells:
        numbers = cell["measures"] | cell.get("diagnostics", {})
        found.setdefault(cell["preset"], {}).setdefault(cell["arm"], {})[cell["seed"]] = numbers
    return found


def estimates(scores: Scores) -> Any:
    """For results.json: per preset and arm, every measure; `code_a1` less the arm in the primary one."""
    found = {
        "arms": {
            preset: {
                arm: {
                    name: asdict(mean_with_t(values))
                    for name in (*SHOWN, *DIAGNOSED)
                    if (values := list(column(runs, name).values()))
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


def column(runs: Mapping[int, Mapping[str, float]], measure: str) -> dict[int, float]:
    """Seed to value, of the runs that have the measure."""
    return {seed: values[measure] for seed, values in sorted(runs.items()) if measure in values}


def against_main(arms: Mapping[str, Mapping[int, Mapping[str, float]]], arm: str) -> dict[str, Any]:
    """`code_a1` less the arm, on the seeds that both have, in the primary measure."""
    main, other = column(arms[MAIN], PRIMARY), column(arms[arm], PRIMARY)
    seeds = sorted(main.keys() & other.keys())
    if not seeds:
        return {}
    ours, theirs = [main[seed] for seed in seeds], [other[seed] for seed in seeds]
    better = probability_of_improvement(ours, theirs)
    return {
        "seeds": seeds,
        "paired": asdict(paired_difference(ours, theirs)),
        "probability_of_improvement": asdict(better),
    }


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
        parts += ["### Diagnostics", "", *_arm_table(arms, order, DIAGNOSED), ""]
    together = over_presets(scores) if len(scores) > 1 else {}
    if together:
        parts += ["## All presets: interquartile mean of the hidden pass rate, stratified bootstrap", ""]
        parts += ["| arm | estimate |", "|---|---|"]
        parts += [f"| `{arm}` | {_shown(Estimate(**together[arm]))} |" for arm in order if arm in together] + [""]
    if missing:
        parts += ["## Missing cells", "", *(f"- {name}: {reason}" for name, reason in sorted(missing.items())), ""]
    parts += ["## Provenance", "", *(f"- {key}: {value}" for key, value in provenance.items()), ""]
    return "\n".join(parts)


def _arm_table(
    arms: Mapping[str, Mapping[int, Mapping[str, float]]], order: Sequence[str], shown: Mapping[str, str]
) -> list[str]:
    lines = [
        "Mean over seeds [95 % interval, Student's t over seeds] (seeds).",
        "",
        f"| arm | {' | '.join(shown.values())} |",
        "|---" * (len(shown) + 1) + "|",
    ]
    for arm in (arm for arm in order if arm in arms):
        columns = [list(column(arms[arm], name).values()) for name in shown]
        if not any(columns):
            continue
        lines.append(f"| `{arm}` | {' | '.join(_shown(mean_with_t(c)) if c else '' for c in columns)} |")
    return lines


def _difference_table(arms: Mapping[str, Mapping[int, Mapping[str, float]]], order: Sequence[str]) -> list[str]:
    if MAIN not in arms:
        return []
    lines = [
        "`code_a1` less the arm, coder's hidden pass rate, paired by seed; P: how likely a run of `code_a1` is better.",
        "",
        "| arm | difference | P [bootstrap] |",
        "|---|---|---|",
    ]
    for arm in (arm for arm in order if arm in arms and arm != MAIN):
        found = against_main(arms, arm)
        if found:
            better = Estimate(**found["probability_of_improvement"])
            lines.append(f"| `{arm}` | {_shown(Estimate(**found['paired']), signed=True)} | {_shown(better)} |")
    return lines


def _shown(estimate: Estimate, *, signed: bool = False) -> str:
    form = "+.3f" if signed else ".3f"
    value, low, high = (round(number, 3) + 0.0 for number in (estimate.value, estimate.low, estimate.high))  # no -0.000
    ends = "" if math.isnan(low) else f" [{low:{form}}, {high:{form}}]"
    return f"{value:{form}}{ends} ({estimate.runs})"
