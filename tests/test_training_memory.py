"""What a device holds at a time, and adapters: neither changes what a run is, one only how it is computed."""

import dataclasses
import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

import torch
from training_runs import SEATS, TINY, distance, play_duel, same_weights, weights, without_evaluations
from transformers import AutoModelForCausalLM

from codea1_env.configuration.model_sections import LoraPreset
from codea1_env.configuration.model_shapes import shape_of
from codea1_env.configuration.run_sections import MemoryPreset
from codea1_env.training.models.lora import adapter_config

QUIET = without_evaluations()


def test_rows_a_device_takes_at_once_change_an_update_by_rounding_only(base: Path, tmp_path: Path) -> None:
    """8 rows of a seat in one pass, or in 4 passes of 2: the same samples, and the same sum over tokens."""
    play_duel(tmp_path / "whole", base, rounds=1, preset=QUIET)
    small = dataclasses.replace(QUIET, memory=MemoryPreset(coder_rows_per_device=2, tester_rows_per_device=2))
    play_duel(tmp_path / "parts", base, rounds=1, preset=small)
    for seat in SEATS:
        assert distance(tmp_path / "whole" / seat / "final", tmp_path / "parts" / seat / "final") <= 1e-5
        assert distance(tmp_path / "whole" / seat / "final", base) > 1e-4, "an update that moves nothing shows nothing"


def test_weights_are_counted_as_the_model_has_them(base: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(base)
    counted = dataclasses.replace(shape_of(TINY.model), vocabulary=model.config.vocab_size)
    assert counted.parameters == sum(parameter.numel() for parameter in model.parameters())


def test_no_adapters_are_made_unless_asked_for() -> None:
    assert adapter_config(LoraPreset()) is None


@pytest.mark.skipif(importlib.util.find_spec("peft") is not None, reason="the extra `lora` is installed")
def test_adapters_without_their_extra_are_refused_by_its_name() -> None:
    with pytest.raises(ImportError, match=r"lora.rank above 0\) need the extra `lora`: pip install"):
        adapter_config(LoraPreset(rank=4))


@pytest.mark.skipif(importlib.util.find_spec("peft") is None, reason="the extra `lora` is not installed")
def test_a_run_with_adapters_leaves_whole_models_that_differ_where_the_adapters_are(base: Path, tmp_path: Path) -> None:
    adapted = dataclasses.replace(QUIET, lora=LoraPreset(rank=4, alpha=8.0, target="q_proj,down_proj"))
    play_duel(tmp_path / "run", base, rounds=2, preset=adapted)
    play_duel(tmp_path / "again", base, rounds=1, preset=adapted)
    play_duel(tmp_path / "again", base, rounds=2, preset=adapted, resume=True)
    before = weights(base)
    for seat in SEATS:
        final = tmp_path / "run" / seat / "final"
        assert not list(final.glob("adapter*"))
        after = weights(final)
        changed = {name for name in after if not torch.equal(after[name], before[name])}
        assert changed
        assert all("q_proj.weight" in name or "down_proj.weight" in name for name in changed)
        assert same_weights(final, tmp_path / "again" / seat / "final"), "resumed in the middle"
        model = AutoModelForCausalLM.from_pretrained(final)
        assert sum(p.numel() for p in model.parameters()) == sum(tensor.numel() for tensor in before.values())
