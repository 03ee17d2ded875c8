"""What a run was configured to do otherwise than the paper, and than other runs: field by field, as plain text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codea1_env.configuration.presets import load_preset
from codea1_env.report.runs_read import RunRead

PAPER = "1.5b"
"""The preset of the paper's run; its larger pairs differ in the model alone."""
NOT_COMPARED = (
    "name",
    "differences",
    "placement",
    "memory",
    "warm_start",
    "patience_s",
    "arenas",
    "save_rounds",
    "keep_checkpoints",
)
"""Names, places and devices are no part of the method."""
OF_ANOTHER_KIND = ("problems", "model")
"""Sections that may have other fields altogether."""
MISSING = "-"


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One field; a dash where a side has none of that name."""

    field: str
    paper: str
    run: str


def differences_from_paper(run: RunRead) -> list[FieldDifference]:
    """Every field of the method whose value is not that of the paper's preset, in the presets' order.

    A run of an older version lacks fields that came later: they are as the paper's.
    """
    paper, own = _flat(load_preset(PAPER, None).to_dict()), _flat(run.preset)
    return [
        FieldDifference(name, paper.get(name, MISSING), own.get(name, MISSING))
        for name in dict.fromkeys([*paper, *own])
        if name.split(".")[0] not in NOT_COMPARED
        and (name in own or name.split(".")[0] in OF_ANOTHER_KIND)
        and paper.get(name) != own.get(name)
    ]


def stated_differences(run: RunRead) -> list[str]:
    """What the preset says of itself."""
    differences = run.preset.get("differences")
    return [str(sentence) for sentence in differences] if isinstance(differences, list) else []


def differences_between(runs: Sequence[RunRead]) -> list[list[str]]:
    """One row for every field that is not the same in all runs, seed and engine included: its name, then each value."""
    flat = [{"seed": _shown(run.config.get("seed")), "engine": _shown(run.config.get("engine"))} for run in runs]
    flat = [top | _flat(run.preset) for top, run in zip(flat, runs, strict=True)]
    names = dict.fromkeys(name for fields in flat for name in fields if not name.startswith("differences"))
    rows = [[name, *(fields.get(name, MISSING) for fields in flat)] for name in names]
    return [row for row in rows if len(set(row[1:])) > 1]


def _flat(section: Mapping[Any, Any], prefix: str = "") -> dict[str, str]:
    fields: dict[str, str] = {}
    for name, value in section.items():
        if isinstance(value, Mapping):
            fields |= _flat(value, f"{prefix}{name}.")
        else:
            fields[f"{prefix}{name}"] = _shown(value)
    return fields


def _shown(value: Any) -> str:
    if isinstance(value, float) and abs(value) < 1e15 and value == int(value):
        value = int(value)  # 8.0 and 8 are one setting
    return value if isinstance(value, str) else json.dumps(value, default=str)
