"""Resumed runs come to the bits of runs that nobody disturbed, whatever they learn by: the past, parts of one's own."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import training_runs as runs
import yaml

from codea1_env.training.models.shared_base import shared_base
from codea1_env.training.round.past_opponents import BOOK, RECORDS, SNAPSHOTS, snapshot

PARTS = """
from codea1_env.training import advantages
from codea1_env.training.round import questions
class Above(advantages.Estimator):
    def __init__(self, algorithm, bar):
        super().__init__(algorithm)
        self.bar, self.rounds = bar, 0
    def advantages(self, rewards, rows):
        self.rounds += 1
        return rewards - self.bar
    def state(self): return {"bar": self.bar, "rounds": self.rounds}
    def restore(self, state): self.rounds = state["rounds"]
class Scaled:
    def __init__(self, scale): self.scale = scale
    def __call__(self, batch): return -self.scale * (batch.advantages * batch.logps * batch.mask).sum() / batch.tokens
def scaled(batch, scale): return Scaled(scale)(batch)
class Backwards(questions.Chooser):
    def __init__(self, problems, seed, stride):
        super().__init__(problems, seed)
        self.stride, self.asked, self.passed = stride, 0, {}
    def choose(self, round_index, count):
        self.asked += count
        return [-self.stride * place % len(self.problems) for place in range(self.asked - count, self.asked)]
    def learn(self, passed): self.passed |= passed
    def state(self): return {"asked": self.asked, "passed": self.passed}
    def restore(self, state): self.asked, self.passed = state["asked"], state["passed"]
"""
OWN = {
    "advantage": "own_parts:Above", "advantage_args": {"bar": 0.25},
    "loss_type": "own_parts:Scaled", "loss_args": {"scale": 0.5},
    "optimizer": "torch.optim:SGD", "optimizer_args": {"momentum": 0.9},
    "questions": "own_parts:Backwards", "questions_args": {"stride": 3},
}  # fmt: skip
ALONE = {"seats": ("player",), "round": {"suites": 3}}  # groups of 4 and of 3
VOTED = {"reward": {"oracle": "majority"}}
TWICE = {"round": {"updates": 2}}
ADAPTERS = {"lora": runs.PACKED["lora"] | {"target": "q_proj,down_proj"}}
BY_TEST = {"credit": "test", "loss_type": "dr_grpo", "scale": "none"}
BY_SEAT = {"advantage": "rae", "scale": "none", "rate": 0.05, "questions": "pass_rate"}
BY_QUESTION = {"advantage": "question", "zero_variance": "drop", "questions": "pass_rate"}
PAST = {
    "options": {"opponents": "prioritised", "opponent_every": 1, "tester_book": 2},
    "problems": {"train": 2},  # every question comes back in every round
}
NEEDS_PEFT = pytest.mark.skipif(importlib.util.find_spec("peft") is None, reason="the extra `lora` is not installed")
RUNS: dict[str, dict[str, Any]] = {
    "own and past, trl": {"algorithm": OWN, **TWICE, **PAST},
    "own and past, packed": {"algorithm": OWN, **TWICE, **PAST, **runs.PACKED},
    "alone, trl": {**ALONE, "algorithm": BY_SEAT, "options": {"access": "black-box", "schedule": "alternating"}},
    "alone, packed": {**ALONE, **runs.PACKED, "algorithm": BY_QUESTION, **VOTED, "grpo": {"beta": 0.1}},
    "adapters": {**ADAPTERS, "algorithm": BY_TEST},
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=NEEDS_PEFT if name == "adapters" else ()) for name in RUNS])
def test_a_resumed_run_equals_an_uninterrupted_one(name: str, base: Path, tmp_path: Path, monkeypatch: Any) -> None:
    seats, preset = made(RUNS[name], tmp_path)
    if preset.trainer == "packed":
        monkeypatch.setitem(sys.modules, "peft", None)  # an import of it fails: the extra `train` does not bring it
    how = {"rounds": 2 if name == "adapters" else 3, "arenas": 2 if name == "own and past, packed" else 1}
    whole = runs.assert_resumes(base, tmp_path, preset=preset, seats=seats, **how)
    assert [*seats] == sorted(path.parent.name for path in whole.glob("*/final"))
    for look in LOOKS[name.split(",")[0]]:
        look(whole, base, preset)


def made(sections: dict[str, Any], folder: Path) -> tuple[tuple[str, ...], Any]:
    """The seats, and the preset, whose own parts are in this folder."""
    (folder / "own_parts.py").write_text(PARTS)
    given = {name: value for name, value in sections.items() if name != "seats"}
    algorithm = given.get("algorithm", {}) | {"path": [str(folder)]}
    return sections.get("seats", runs.SEATS), runs.without_evaluations(**given | {"algorithm": algorithm})


def look_at_parts(whole: Path, base: Path, preset: Any) -> None:
    own = {OWN[part] for part in ("advantage", "loss_type", "optimizer", "questions")}
    assert yaml.safe_load((whole.with_name("parts") / "config.yaml").read_text())["starts"][1]["own_code"].keys() == own
    for seat in runs.SEATS:
        checkpoint = runs.last_checkpoint(whole / seat)
        assert json.loads((checkpoint / "advantage.json").read_text()) == {"bar": 0.25, "rounds": 3}
        assert {group["momentum"] for group in runs.param_groups(checkpoint)} == {0.9}
    asked = json.loads((runs.last_checkpoint(whole / "coder") / "questions.json").read_text())
    assert asked["asked"] == 3 * preset.round.questions
    assert 0 < len(asked["passed"]) <= preset.problems.train


def look_at_past(whole: Path, base: Path, preset: Any) -> None:
    updates = preset.round.updates
    (fared,) = whole.glob(f"*/checkpoint-{3 * updates}/{RECORDS}")
    assert (fared.parent / BOOK).is_file()
    assert set(json.loads(fared.read_text())["coder"]) - {"0"}, "only the base was drawn: this run shows nothing"
    assert all("past_coder_reward" in record and record["tokens"] > 0 for record in runs.records(whole, "round"))
    for final in whole.glob("*/final"):
        assert runs.same_weights(snapshot(final.parent, 2), final.parent / f"checkpoint-{2 * updates}")
    if preset.trainer == "packed":
        assert not [name for name in shared_base(base, preset).adapters if SNAPSHOTS in name], "each was let go"


def look_at_one_player(whole: Path, base: Path, preset: Any) -> None:
    """Both roles were played and paid, in batches of groups of unequal size."""
    rounds = runs.records(whole, "round")
    assert all(record["unscored"] == 0 for record in rounds)
    assert all(any(record[f"{role}_reward"] > 0 for record in rounds) for role in runs.SEATS)
    assert rounds[-1]["book"] > 0, "no program failed a test: this run shows nothing"
    assert any("oracle_error" in record for record in rounds) == (preset.reward.oracle == "majority")
    zero_shares = {round(record["frac_reward_zero_std"], 6) for record in runs.records(whole, "seat", "player")}
    assert zero_shares <= {round((4 * c + 3 * t) / 14, 6) for c in range(3) for t in range(3)}, "2 * 4 + 2 * 3 rows"
    state = json.loads((runs.last_checkpoint(whole / "player") / "advantage.json").read_text())
    assert state["means"].keys() == set(runs.SEATS) if preset.trainer == "trl" else state["means"]
    passed = json.loads((runs.last_checkpoint(whole / "player") / "questions.json").read_text())["passed"]
    assert 0 <= min(passed.values()) <= max(passed.values()) <= 1


def look_at_adapters(whole: Path, base: Path, preset: Any) -> None:
    """Finals are whole models, which differ where the adapters are."""
    before = runs.weights(base)
    for seat in runs.SEATS:
        assert not list((whole / seat / "final").glob("adapter*"))
        after = runs.weights(whole / seat / "final")
        assert after.keys() == before.keys()
        changed = {".".join(name.split(".")[-2:]) for name in after if not torch.equal(after[name], before[name])}
        assert set() < changed <= {"q_proj.weight", "down_proj.weight"}


LOOKS: dict[str, Any] = {"own and past": (look_at_parts, look_at_past), "alone": (look_at_one_player,)}
LOOKS["adapters"] = (look_at_adapters,)


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "kills", "rounds"), [("local", "2", "6"), ("ray", "1", "3")])
def test_a_run_killed_at_random_is_the_same(bases: Path, tmp_path: Path, engine: str, kills: str, rounds: str) -> None:
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    told = f"--engine {engine} --updates 2 --kills {kills} --rounds {rounds} --output {tmp_path / 'runs'}"
    command, own = [sys.executable, "benchmarks/resume_torture.py", *told.split()], {"CODEA1_CACHE": str(bases)}
    done = subprocess.run(command, cwd=runs.ROOT, env=os.environ | own, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the same, bit for bit" in done.stdout
