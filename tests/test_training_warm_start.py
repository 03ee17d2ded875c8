"""The base model: its tokenizer, its corpus, its cache."""

import dataclasses
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from training_runs import TINY, same_weights
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from codea1_env import ConfigurationError
from codea1_env.configuration.model_sections import shape_of
from codea1_env.configuration.presets import MINI, load_preset, preset_from_dict
from codea1_env.language_models.directories import default_cache
from codea1_env.problems.families.miniature import miniature_compositions
from codea1_env.training.models import base, tiny  # its `tester_messages` would pass for a test
from codea1_env.training.models.corpora import BASIC, EDGE, band_pieces, examples
from codea1_env.training.models.tiny import build_model, build_tokenizer, coder_messages
from codea1_env.training.models.warm_start import base_model

CORPUS = list(examples(MINI, 400))
FEW = {"steps": 3, "examples_per_step": 4, "problems": 20}
FEW_STEPS = preset_from_dict({"warm_start": FEW}, TINY)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return base_model(FEW_STEPS, tmp_path_factory.mktemp("cache"))


def test_every_way_of_loading_the_tokenizer_gives_the_same_tokens_and_a_number_is_one(saved: Path) -> None:
    """`AutoTokenizer` puts Qwen2's pre-tokenizer into whatever it loads for a Qwen2 model: ours must be that one."""
    require_same_tokens(saved, CORPUS[:100])
    texts = [example.messages[-1]["content"] + "\n" + example.answer for example in CORPUS]
    tokenizer = build_tokenizer(texts, MINI.model.vocabulary)
    assert len(tokenizer) <= MINI.model.vocabulary
    assert tokens_in(tokenizer, "assert solve([3, -4, 0]) == -1") == "assert| solve|([|3|, -4|, 0|])| ==| -1".split("|")


def require_same_tokens(directory: Path, corpus: Iterable[Any]) -> None:
    automatic, plain = AutoTokenizer.from_pretrained(directory), PreTrainedTokenizerFast.from_pretrained(directory)
    for example in corpus:
        text = automatic.apply_chat_template(example.messages, tokenize=False) + example.answer
        assert automatic(text)["input_ids"] == plain(text)["input_ids"]
        answer = automatic(example.answer)["input_ids"]
        assert automatic.decode(answer) == plain.decode(answer) == example.answer


def tokens_in(tokenizer: Any, text: str) -> list[str]:
    return [tokenizer.decode([token]) for token in tokenizer(text)["input_ids"]]


def test_the_chat_template_marks_the_task_and_the_answer(saved: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(saved)
    for messages, text in (
        (coder_messages("f(xs): return it."), "<code>f(xs): return it.<ans>"),
        (tiny.tester_messages("Q", "def f(xs):\n    return xs\n"), "<test>Q\ndef f(xs):\n    return xs<ans>"),
        ([*coder_messages("Q"), {"role": "assistant", "content": "A"}], "<code>Q<ans>A<eos>"),
    ):
        assert tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True) == text


def test_the_corpus_is_seeded_asks_training_questions_only_and_holds_both_tasks_in_the_stated_shares() -> None:
    assert [e.answer for e in CORPUS[:50]] == [e.answer for e in examples(MINI, 50)]
    asked = {c.question for c in miniature_compositions("train", MINI.warm_start.problems, MINI.warm_start.seed)}
    assert {example.messages[-1]["content"].split("\n")[0] for example in CORPUS} <= asked
    programs, suites = ([e.answer for e in CORPUS if e.messages[0]["content"] == task] for task in ("code", "test"))
    assert len(programs) + len(suites) == len(CORPUS)
    assert abs(len(programs) / len(CORPUS) - MINI.warm_start.code_share) < 0.1
    assert all(answer.startswith("def ") for answer in programs)
    for answer in suites:
        assert len(answer.split("\n")) == MINI.reward.suite_size
        assert all(line.startswith("assert ") and " == " in line for line in answer.split("\n"))


def test_equal_seeds_give_equal_models_and_leave_the_global_streams_alone(saved: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(saved)
    before = torch.get_rng_state().tolist(), random.getstate()
    one, same, other = (build_model(TINY.model, tokenizer, seed) for seed in (1, 1, 2))
    assert before == (torch.get_rng_state().tolist(), random.getstate())
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert MINI.model.hidden // MINI.model.heads >= 32
    counted = dataclasses.replace(shape_of(TINY.model), vocabulary=one.config.vocab_size)
    assert counted.parameters == sum(parameter.numel() for parameter in one.parameters())


def test_the_cache_is_keyed_by_what_makes_a_model(saved: Path, of_bands: Path, tmp_path: Path, caplog: Any) -> None:
    cache = saved.parent
    written = (saved / "model.safetensors").stat().st_mtime_ns
    assert base_model(dataclasses.replace(FEW_STEPS, rounds=9), cache) == saved
    assert (saved / "model.safetensors").stat().st_mtime_ns == written, "not built again"
    warmer = dataclasses.replace(FEW_STEPS, warm_start=dataclasses.replace(FEW_STEPS.warm_start, seed=1))
    other = base_model(warmer, cache)
    assert other != saved
    assert not same_weights(other, saved)
    caplog.set_level("INFO")
    rebuilt = base_model(FEW_STEPS, tmp_path / "elsewhere")
    assert "after 3 steps" in caplog.text
    assert rebuilt.name == saved.name != of_bands.name
    assert same_weights(rebuilt, saved)
    assert sorted(path.name for path in cache.iterdir()) == sorted([saved.name, other.name]), "no half-built model"
    blind = dataclasses.replace(FEW_BAND_STEPS, options=dataclasses.replace(BANDS.options, access="black-box"))
    assert base_model(blind, of_bands.parent) == of_bands, "for both"
    for file, damage, why in (
        ("tokenizer_config.json", Path.unlink, "a vocab_size of at least its tokenizer's"),  # transformers makes one up
        ("model.safetensors", lambda file: file.write_bytes(b"half"), "whole files of weights"),
        ("chat_template.jinja", lambda file: file.write_text(""), "a chat template"),
    ):
        damage(rebuilt / file)
        with pytest.raises(ConfigurationError, match=f"built anew once it is deleted, must have {why}"):
            base.base_model(FEW_STEPS, tmp_path / "elsewhere")
    assert default_cache({"CODEA1_CACHE": "/somewhere"}) == Path("/somewhere")
    assert default_cache({}) == Path.home() / ".cache" / "codea1"


BANDS = load_preset("bands")
FEW_BAND_STEPS = preset_from_dict({"warm_start": FEW | {"copy_steps": 2}}, BANDS)


@pytest.fixture(scope="module")
def of_bands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return base_model(FEW_BAND_STEPS, tmp_path_factory.mktemp("bands"))


def test_a_number_of_the_bands_family_is_the_same_token_wherever_it_stands(of_bands: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(of_bands)
    for tokens in (
        "fee(x): |up to |11| gives |7|; otherwise |90|.",
        "def f(x):|\n    if x <= |11|: return |7|\n    return |90",
        f"{EDGE}|\nassert rank(|11|) == |7",
    ):
        assert tokens_in(tokenizer, tokens.replace("|", "")) == tokens.split("|")
    corpus = list(examples(BANDS, 60))
    require_same_tokens(of_bands, corpus)
    for example in corpus:
        assert len(tokenizer(example.answer)["input_ids"]) < BANDS.grpo.tokens("tester")
    assert set(band_pieces()) <= set(tokenizer.get_vocab())


def test_the_corpus_of_bands_practises_first_and_then_takes_up_its_habits() -> None:
    warm, corpus = BANDS.warm_start, list(examples(BANDS, 4_000))
    ends = int(warm.practice_share * len(corpus))
    parts = {"practice": corpus[:ends], "habits": corpus[ends:]}
    suites = {name: [e for e in part if e.messages[0]["content"] == "test"] for name, part in parts.items()}
    edges = {name: sum(e.answer.startswith(EDGE) for e in part) / len(part) for name, part in suites.items()}
    assert edges == pytest.approx({"practice": warm.practice_edge_share, "habits": warm.edge_share}, abs=0.05)
    for part in suites.values():
        assert all(e.answer.split("\n")[0] in (EDGE, BASIC) for e in part)
        shown = [e.messages[1]["content"] for e in part if "def " in e.messages[1]["content"]]
        assert 1 - len(shown) / len(part) == pytest.approx(warm.blind_share, abs=0.06)
        buggy = sum("==" in program for program in shown) / len(shown)
        assert buggy == pytest.approx(0.5, abs=0.07), "as ever"
    written = {name: [e.answer for e in part if e.messages[0]["content"] == "code"] for name, part in parts.items()}
    invented = {name: sum("==" in program for program in part) / len(part) for name, part in written.items()}
    rates = {"practice": 0.5 * warm.practice_bug_rate, "habits": 0.5 * warm.bug_rate}
    assert invented == pytest.approx(rates, abs=0.08)


def test_a_mimetic_model_copies_before_it_has_learnt_anything() -> None:
    tokenizer = build_tokenizer((), BANDS.model.vocabulary, band_pieces())
    found = {}
    for mimetic in (True, False):
        model = build_model(dataclasses.replace(BANDS.model, mimetic=mimetic), tokenizer, 0)
        rows = torch.randint(5, len(tokenizer), (32, 20), generator=torch.Generator().manual_seed(0)).repeat(1, 2)
        with torch.no_grad():
            best = model(rows).logits[:, 20:-1].topk(5).indices  # where the second time over is foretold
        found[mimetic] = (best == rows[:, 21:, None]).any(-1).float().mean().item()
    assert found[True] > 4 * found[False], found
