"""What a finished run of the study is read for: measures, diagnostics, compute, and its way there."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codea1_env.configuration.batches import seat_rows
from codea1_env.configuration.placement import role_of
from codea1_env.configuration.presets import Preset
from codea1_env.records.metrics_file import read_metrics

MEASURES = {
    "coder: hidden pass rate": "hidden",
    "coder: golden pass rate": "golden",
    "tester: valid tests": "valid",
    "tester: valid tests that kill": "kills",
    "tester: inputs that kill": "input_kills",
    "tester: suites all valid": "all_valid",
    "tester: suites that kill": "killed",
}
"""Rows of a run's summary.json and what they are called here."""
MEAN_DIAGNOSTICS = (
    "effective_alpha", "validity_signal", "trivial_tests", "duplicate_tests", "book_hit_rate", "replays_failed",
)  # fmt: skip
LAST_ROUNDS = 10
"""Over which the reward at the end of training is a mean."""


def measures_of(run: Path) -> dict[str, float]:
    """The numbers of a finished run: after training, and the coder's reward in its last rounds."""
    rows = json.loads((run / "summary.json").read_text(encoding="utf-8"))["rows"]
    found = {MEASURES[row["name"]]: float(row["trained"]) for row in rows if row["name"] in MEASURES}
    rounds = [r for r in read_metrics(run) if r["kind"] == "round" and r.get("coder_reward") is not None]
    reward = _mean(rounds[-LAST_ROUNDS:], "coder_reward")
    return found | ({} if reward is None else {"last_reward": reward})


def diagnostics_of(run: Path) -> dict[str, float]:
    """Why a finished run came out as it did: means over its rounds; entropies and groups over the last ones.

    `regressions` are those of the last evaluation on the way.
    """
    records = read_metrics(run)
    rounds = [record for record in records if record["kind"] == "round"]
    found = {name: _mean(rounds, name) for name in MEAN_DIAGNOSTICS}
    found["coder_zero_groups"] = _mean(rounds[-LAST_ROUNDS:], "coder_zero_groups")
    for seat in ("coder", "tester"):
        trained = [record for record in records if (record["kind"], record["seat"]) == ("seat", seat)]
        found[f"{seat}_entropy"] = _mean(trained[-LAST_ROUNDS:], "entropy")
    looks = [r for r in records if (r["kind"], r["seat"]) == ("evaluation", "coder")]
    found["regressions"] = _mean(looks[-1:], "regression_rate")
    return {name: value for name, value in found.items() if value is not None}


def compute_of(run: Path, preset: Preset) -> dict[str, float]:
    """What a finished run sampled and learnt from, all rounds together.

    Tokens are of the responses that were learnt from: nobody counts those of the others. What is written once, before
    the first round, and what past opponents add are not in it; nothing is known of supervised learning.
    """
    if any(record.get("accuracy") is not None for record in read_metrics(run)):
        return {}
    found = dict.fromkeys(("programs", "suites", "learnt", "tokens", "steps"), 0.0)
    for record in (record for record in read_metrics(run) if record["kind"] == "seat"):
        rows = seat_rows(preset, record["seat"])
        programs = 0 if role_of(record["seat"]) == "tester" else preset.round.questions * preset.round.programs
        found["programs"] += programs
        found["suites"] += rows.sampled - programs
        if record.get("length") is not None:  # a seat that does not learn has only its seconds
            found["learnt"] += rows.learnt
            found["tokens"] += rows.learnt * record["length"]
            found["steps"] += rows.updates
    return found


def curve_of(run: Path) -> dict[int, float]:
    """Rounds done to the coder's hidden pass rate, of the evaluations on the way."""
    looks = [r for r in read_metrics(run) if (r["kind"], r["seat"]) == ("evaluation", "coder")]
    return {record["round"]: record["hidden_pass_rate"] for record in looks}


def _mean(records: Sequence[Mapping[str, Any]], name: str) -> float | None:
    values = [record[name] for record in records if record.get(name) is not None]
    return statistics.fmean(values) if values else None
