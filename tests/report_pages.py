"""Directories of runs as recipes leave them, without their models."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from codea1_env.configuration.presets import SMOKE
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.reading.test_case import TestCase

HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\x1b[31m\u202e<svg/onload=x>"
ROUND = {"coder_reward": 0.5, "tester_reward": 0.25, "book": 3, "seconds_scoring": 0.5, "seconds_judging": 0.3}


def line(kind: str, rounds_done: int, values: Mapping[str, Any], seat: str = "") -> str:
    return json.dumps({"kind": kind, "seat": seat, "round": rounds_done} | dict(values)) + "\n"


def write_run(directory: Path, *, rounds: int = 3, name: str = "smoke", reward: float = 0.5, **config: Any) -> Path:
    """A run's directory as a recipe leaves it, without its models."""
    directory.mkdir(parents=True)
    preset = dataclasses.replace(SMOKE, name=name, rounds=rounds).to_dict()
    start = {"started": "2026-01-02", "versions": {"python": "3.12"}, "platform": "Linux"}
    whole = {"seed": 4, "engine": "local", "preset": preset, "starts": [start]} | config
    (directory / "config.yaml").write_text(yaml.safe_dump(whole))
    lines = line("evaluation", 0, {"hidden_pass_rate": 0.1}, "coder")
    for number in range(1, rounds + 1):
        lines += line("round", number, ROUND | {"coder_reward": reward * number / rounds})
        lines += line("seat", number, {"seconds_generating": 2.0, "seconds_learning": 1.0, "kl": None}, "coder")
    lines += line("evaluation", rounds, {"hidden_pass_rate": 0.6, "regression_rate": 0.2}, "coder")
    (directory / "metrics.jsonl").write_text(lines)
    rows = [{"name": "coder: hidden pass rate", "base": 0.1, "trained": 0.6, "low": 0.4, "high": 0.7}]
    (directory / "summary.json").write_text(json.dumps({"rows": rows, "cost": {"seconds": {"training": 160}}}))
    book = MistakeBook()
    book.record("q", (), [TestCase("f(1)", "2"), TestCase("f(1)", "2"), TestCase("f(2)", "3")])
    book.save(directory / "book.jsonl")
    return directory


def write_hostile_run(directory: Path) -> Path:
    """A run that says hostile things wherever a run can say something."""
    run = write_run(directory, name=HOSTILE, engine=HOSTILE, seed=HOSTILE)
    (run / "failure.txt").write_text(HOSTILE)
    rows = [{"name": HOSTILE, "base": 0, "trained": 1, "low": 0, "high": 1}]
    (run / "summary.json").write_text(json.dumps({"rows": rows, "cost": {"seconds": {HOSTILE: 1}}}))
    book = MistakeBook()
    book.record(HOSTILE, (), [TestCase("f(1)", "2")])
    book.save(run / "book.jsonl")
    with (run / "metrics.jsonl").open("a") as file:
        file.write(line("seat", 1, {"seconds_learning": 1.0, HOSTILE: 1.0}, HOSTILE))
        file.write(line("evaluation", 1, {HOSTILE: 1.0}, HOSTILE))
    return run
