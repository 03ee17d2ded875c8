"""The policy that TRL trains: the bits of its own loop, own advantages and losses, seats that rest, random streams."""

import ast
import contextlib
import dataclasses
import random
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import training_runs as runs
from datasets import Dataset
from test_training_resume import NEEDS_PEFT, PARTS
from transformers import AutoModelForCausalLM, AutoTokenizer, set_seed
from trl import GRPOConfig, GRPOTrainer

from codea1_env.configuration.algorithm import Algorithm
from codea1_env.configuration.batches import seat_rows
from codea1_env.configuration.model_sections import LoraPreset
from codea1_env.configuration.presets import Preset, load_preset
from codea1_env.errors import ConfigurationError, PlayerError
from codea1_env.players.templates import begun
from codea1_env.training import advantages
from codea1_env.training.losses import LossBatch, likelihood, own_loss, value_of
from codea1_env.training.policies import trl_policy
from codea1_env.training.policies.arguments import grpo_arguments
from codea1_env.training.policies.trl_policy import PRIVATE, OwnStreams, SeatTrainer, TrlPolicy, adapter_config
from codea1_env.training.process import prepare_process
from codea1_env.training.samples import Prompt, Row, RowLabel, Sample, SeatRun, token_offsets


def preset(weight_decay: float = 0.0, grpo: Any = {}, **sections: Any) -> Preset:  # noqa: B006  # it stays as it is
    return runs.without_evaluations(grpo={"weight_decay": weight_decay, **grpo}, **sections)


default = runs.finished_run(rounds=1, preset=preset())


def pay(completion_ids: Sequence[Sequence[int]], **_: Any) -> list[float]:
    """Something that differs within most groups."""
    return [sum(tokens) % 7 / 7 for tokens in completion_ids]


@pytest.mark.parametrize(
    ("scale", "updates", "rank"), [("batch", 2, 0), ("none", 1, 0), pytest.param("group", 1, 4, marks=NEEDS_PEFT)]
)
def test_rounds_have_the_bits_of_trls_own_loop(scale: str, updates: int, rank: int, base: Path, tmp_path: Path) -> None:
    """A stock trainer with TRL's `scale_rewards`: its own adapters, sampling, advantages, loss, optimizer and schedule,
    and, where there is one update, its own way with what is cut off."""
    prepare_process()
    masked = {"mask_truncated_completions": updates == 1}
    parts = preset(grpo=masked, algorithm={"scale": scale}, rounds=3, round={"updates": updates}, lora={"rank": rank})
    shape = parts.round
    run, tokenizer = SeatRun(parts, base, tmp_path / "coder", 3), AutoTokenizer.from_pretrained(base)
    texts = [f"Write a function that adds {number}." for number in range(3 * shape.questions)]

    arguments, questions = grpo_arguments(run, seat_rows(parts, "coder")), Dataset.from_dict({"prompt": texts})
    arguments.scale_rewards, arguments.save_strategy, arguments.logging_strategy = scale, "no", "no"
    arguments.mask_truncated_completions, arguments.seed = updates == 1, 3
    set_seed(3)
    how = {"processing_class": tokenizer, "peft_config": adapter_config(parts.lora)}
    stock = GRPOTrainer(str(base), pay, arguments, questions, **how)
    before = [parameter.detach().clone() for parameter in stock.model.parameters()]
    stock.train()

    driven = TrlPolicy(run)
    for index in range(3):
        driven.begin(index)
        asked = texts[index * shape.questions : (index + 1) * shape.questions]
        prompts = [Prompt(tuple(tokenizer(text)["input_ids"]), begun([])) for text in asked]
        drawn = driven.sample(prompts, shape.programs)
        ends = {sample.tokens[-1] == tokenizer.eos_token_id for group in drawn for sample in group}
        runs.learn(driven, [
            Row(sample, reward, RowLabel(text, text, "coder"))
            for text, group in zip(asked, drawn, strict=True)
            for sample, reward in zip(group, pay([sample.tokens for sample in group]), strict=True)
        ])  # fmt: skip
    pairs = list(zip(stock.model.parameters(), driven._trainer.model.parameters(), strict=True))
    assert all(torch.equal(one, other) for one, other in pairs)
    assert not all(torch.equal(one, other) for one, other in zip(before, stock.model.parameters(), strict=True))
    assert ends == {True, False}, "nothing is cut off, or everything"


def test_the_private_methods_of_trl_that_are_used_are_listed_and_there() -> None:
    """TRL moved: what it has no more has another name there now, and is to be called by it in trl_policy.py."""
    gone = [name for name in PRIVATE if not hasattr(GRPOTrainer, name)]
    assert gone == [], "TRL has these methods no more"
    tree = ast.walk(ast.parse(Path(trl_policy.__file__).read_text()))
    named = {getattr(node, "attr", getattr(node, "name", "")) or "" for node in tree}
    used = {name for name in named if name.startswith("_") and not name.endswith("__") and hasattr(GRPOTrainer, name)}
    assert used == set(PRIVATE)


OWN = """
def dapo(batch):
    ratio, limits = (batch.logps - batch.old_logps).exp(), batch.arguments
    clipped = ratio.clamp(1 - limits.epsilon, 1 + limits.epsilon_high)
    gain = (ratio.clamp(max=limits.delta) * batch.advantages).minimum(clipped * batch.advantages)
    return ((limits.beta * batch.kl - gain) * batch.mask).sum() / batch.tokens
def nan(batch): return batch.logps.sum() * float("nan")
"""


@pytest.fixture
def own(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """A section `algorithm` with names of a module of one's own, in a folder of its own."""
    (tmp_path / "code").mkdir()
    module = f"own_{tmp_path.name}"  # one name a test: Python remembers modules
    (tmp_path / "code" / f"{module}.py").write_text(PARTS + OWN)

    found = {"path": [str(tmp_path / "code")]}
    return lambda **names: found | {field: f"{module}:{name}" for field, name in names.items()}


def test_an_own_loss_can_be_trls(own: Callable[..., dict[str, Any]], default: Path, base: Path, tmp_path: Path) -> None:
    """The same loss written down anew, with steps on old samples and accumulated gradients: but for the last bits.
    8 rows of a seat in one pass, or in several: the same samples, and the same sum over tokens."""
    parts = preset(memory={"coder_rows_per_device": 2, "tester_rows_per_device": 1})
    twice = runs.tiny(parts, round={"updates": 2})
    for name, told in (("parts", parts), ("trl", twice), ("own", runs.tiny(twice, algorithm=own(loss_type="dapo")))):
        runs.play_duel(tmp_path / name, base, rounds=1, preset=told)
    for seat in runs.SEATS:
        moved = runs.distance(base, tmp_path / "trl" / seat / "final")
        assert moved > 0
        assert runs.distance(tmp_path / "own" / seat / "final", tmp_path / "trl" / seat / "final") < 0.02 * moved
        first = runs.distance(base, default / seat / "checkpoint-1")  # the order of a sum is the processor's
        assert runs.distance(default / seat / "checkpoint-1", tmp_path / "parts" / seat / "final") < 0.1 * first
        assert runs.distance(default / seat / "checkpoint-1", base) > 1e-4, "an update that moves nothing shows nothing"


def test_an_estimator_of_ones_own_returns_a_finite_number_for_every_row_with_a_score() -> None:
    """Of a row without a score it may return anything."""

    def answered(answer: Callable[[Any], Any], *rewards: float | None, credit: Any = "suite") -> advantages.Advantages:
        wrong = type("Wrong", (advantages.Grpo,), {"advantages": lambda self, rewards, rows: answer(rewards)})
        label = RowLabel("g", "q", "tester", spans=((0, 1),), test_rewards=(0.25,))
        rows = [Row(Sample((0,), (0,), "x"), reward, label) for reward in rewards]
        return advantages.advantages_of(wrong(Algorithm(credit=credit)), rows)

    must = "advantage: Wrong.advantages must return a "
    for answer, got in ((lambda rewards: rewards[:-1], r"a tensor of \(1,\)"), (torch.Tensor.tolist, r"\[1.0, 0.0\]")):
        with pytest.raises(ConfigurationError, match=rf"{must}tensor .*, \(2,\), got {got}$"):
            answered(answer, 1.0, 0.0)
    for number in (float("inf"), float("-inf"), float("nan")):
        spoilt = partial(lambda value, rewards: rewards.where(rewards.abs() > 0.25, value), number)  # and NaN
        assert answered(spoilt, None, 0.5).rows.tolist() == [0.0, 0.5]
        for credit, reward in (("suite", 0.25), ("test", 0.5)):
            with pytest.raises(ConfigurationError, match=f"{must}finite .*, got {number} in row "):
                answered(spoilt, None, reward, credit=credit)


def test_a_loss_of_ones_own_returns_one_number_with_a_gradient(own: Callable[..., dict[str, Any]]) -> None:
    some = torch.ones(2, 3)
    batch = LossBatch(some.clone().requires_grad_(), some, None, -some, some, None, torch.tensor(6.0), None)
    wrong: dict[str, Callable[[LossBatch], Any]] = {
        r"a tensor of \(2,\) with a gradient": lambda batch: batch.logps.sum(dim=1),
        r"a tensor of \(\) without a gradient": lambda batch: batch.logps.sum().detach(),
        "1.0": lambda batch: 1.0,
    }
    for got, loss in wrong.items():
        with pytest.raises(ConfigurationError, match=rf"loss_type must return a tensor of one number, .*, got {got}$"):
            value_of(loss, batch)
    for name in ("Scaled", "scaled"):  # arguments reach it: 0.5 * 6 / 6
        given = own_loss(Algorithm(**own(loss_type=name), loss_args={"scale": 0.5}))
        assert given is not None
        assert value_of(given, batch).item() == 0.5


def test_a_loss_that_is_not_finite_ends_the_run(own: Callable[..., dict[str, Any]], base: Path, tmp_path: Path) -> None:
    with pytest.raises(PlayerError, match=r"must be finite, got a norm of nan, so the step was not taken"):
        runs.play_duel(tmp_path / "run", base, rounds=1, preset=preset(algorithm=own(loss_type="nan")))
    assert not [*(tmp_path / "run").glob("*/checkpoint-*"), *(tmp_path / "run").glob("*/final")]


def test_a_resting_seat_keeps_its_weights_and_its_moments_whatever_the_weight_decay(base: Path, tmp_path: Path) -> None:
    in_turn = preset(weight_decay=0.5, options={"schedule": "alternating"})
    runs.play_duel(tmp_path / "run", base, rounds=3, preset=in_turn)
    for seat, learns in (("coder", (True, False, True)), ("tester", (False, True, False))):
        before = base
        for index, is_learning in enumerate(learns):
            checkpoint = tmp_path / "run" / seat / f"checkpoint-{index + 1}"
            assert runs.same_weights(checkpoint, before) is not is_learning
            if not is_learning:  # a seat that has never learnt has no moments
                assert moments(checkpoint) == (moments(before) if before != base else [])
                assert bool(moments(checkpoint)) == (before != base)
            before = checkpoint


def moments(checkpoint: Path) -> list[Any]:
    state = torch.load(checkpoint / "optimizer.pt")["state"]
    return [(place, name, state[place][name].tolist()) for place in state for name in state[place]]


def test_it_learns_by_the_advantages_that_it_is_given_and_from_nothing_without_a_score(base, tmp_path: Path) -> None:
    """Every second row has no score, and is masked: the loss is a mean over the others' tokens."""
    prepare_process()
    policy = TrlPolicy(SeatRun(preset(), base, tmp_path / "coder", 3))
    policy.begin(0)
    batch = [
        Row(Sample((5, 6), (9, *[8] * place), ""), None if place % 2 else float(place), RowLabel("g", "q", "coder"))
        for place in range(seat_rows(preset(), "coder").learnt)
    ]
    told = dataclasses.replace(policy.advantages(batch), rows=torch.arange(len(batch)) / 8)
    ((part,),) = policy.updates(batch, told)
    places = part["completion_mask"].sum(dim=1) - 1  # shuffled
    assert torch.equal(part["advantages"], places / 8)
    learnt = part["tool_mask"] * part["completion_mask"]
    assert torch.equal(learnt.sum(dim=1), (places + 1) * (places % 2 == 0))
    assert part["num_items_in_batch"] == learnt.sum()


def test_the_papers_presets_take_vllms_samples_as_own(default, base: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Samples come with log-probabilities that are far off, as an engine's could be. TRL's default drops them all."""
    papers = {name: value for name, value in load_preset("1.5b").grpo.of("coder").items() if name.startswith("vllm_")}
    trls = {name: GRPOConfig.__dataclass_fields__[name].default for name in papers}
    score = SeatTrainer._generate_and_score_completions

    def sampled_elsewhere(trainer: Any, rows: Any) -> Any:
        """As if vLLM had sampled, and had found every token very unlikely."""
        trainer._given["logprobs"] = [[-20.0] * len(tokens) for tokens in trainer._given["completion_ids"]]
        trainer.use_vllm, trainer._last_loaded_step = True, trainer.state.global_step
        trainer.vllm_importance_sampling_correction = trainer._corrects
        return score(trainer, rows)

    monkeypatch.setattr(SeatTrainer, "_generate_and_score_completions", sampled_elsewhere)
    for name, values in (("paper", papers), ("trl", trls)):
        runs.play_duel(tmp_path / name, base, rounds=1, preset=preset(grpo=values))
    for seat in runs.SEATS:
        moved = runs.distance(base, default / seat / "checkpoint-1")
        assert moved > 0
        assert runs.distance(default / seat / "checkpoint-1", tmp_path / "paper" / seat / "final") < 0.1 * moved
        assert runs.same_weights(tmp_path / "trl" / seat / "final", base)
        assert runs.records(tmp_path / "paper", "seat", seat)[0]["sampling_gap"] > 1, "it is measured all the same"


def test_a_seat_whose_sampler_is_vllm_learns_from_what_nobody_sampled(base: Path, tmp_path: Path) -> None:
    """Of the base, as it was: the mean over tokens, by transformers."""
    prepare_process()
    policy = TrlPolicy(SeatRun(preset(grpo={"beta": 0.0}), base, tmp_path / "tester", 3))
    policy._trainer.use_vllm, policy._trainer._last_loaded_step = True, 0
    policy.begin(0)
    row = Row(Sample((5, 6), (7, 8, 1), "", None), 1.0, RowLabel("g", "q", "tester"))
    batch = [row] * seat_rows(preset(), "tester").learnt
    (update,) = policy.updates(batch, advantages.equal_advantages(batch))
    policy.backward(update, likelihood)
    with torch.no_grad():
        logits = AutoModelForCausalLM.from_pretrained(base)(torch.tensor([[5, 6, 7, 8]])).logits[0, 1:]
    expected = torch.nn.functional.cross_entropy(logits, torch.tensor([7, 8, 1]))
    assert policy.measured()["loss"] == pytest.approx(float(expected), rel=1e-4)


def test_offsets_of_tokens_cover_the_text_as_it_is_decoded(base: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(base)
    for text in ("assert solve([3, -4]) == -1\nassert solve([]) == 0", "", "f(1)", "  x\n\n y"):
        tokens = [*tokenizer(text)["input_ids"], tokenizer.eos_token_id]
        offsets = token_offsets(tokenizer, tokens)
        decoded = tokenizer.decode(tokens, skip_special_tokens=True)
        assert "".join(decoded[start:end] for start, end in offsets) == decoded == text
        for (start, end), token in zip(offsets, tokens, strict=True):
            assert decoded[start:end] == tokenizer.decode([token], skip_special_tokens=True)
    # A character of several tokens belongs to the last one.
    of_bytes = SimpleNamespace(decode=lambda tokens, **_: bytes(tokens).decode(errors="replace"))
    offsets = token_offsets(of_bytes, list("aé€b".encode()))
    assert offsets == [(0, 1), (1, 1), (1, 2), (2, 2), (2, 2), (2, 3), (3, 4)]


def test_adapters_name_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)  # an import of it fails
    with pytest.raises(ImportError, match=r"lora.rank above 0\) need the extra `lora`: pip install"):
        adapter_config(LoraPreset(rank=4))


def draw() -> tuple[float, float, float]:
    return random.random(), float(np.random.random()), float(torch.rand(()))


def draws(streams: OwnStreams, count: int) -> list[tuple[float, float, float]]:
    with streams.active():
        return [draw() for _ in range(count)]


@pytest.mark.parametrize("fails", [False, True])
def test_a_policy_draws_the_same_whenever_others_draw_and_leaves_the_callers_streams(fails: bool) -> None:
    one, other, found = OwnStreams(11), OwnStreams(22), dict[str, list[Any]]()
    for name in ("alone", "beside"):
        for seed in (random.seed, np.random.seed, torch.manual_seed):
            seed(5)
        found[name] = [draw()]
        if name == "beside":
            with contextlib.suppress(LookupError), one.active():
                first = draw()
                if fails:
                    raise LookupError
            others = draws(other, 3)
        found[name].append(draw())
    assert found["beside"] == found["alone"]
    assert [first, *draws(one, 2)] == draws(OwnStreams(11), 3) != others == draws(OwnStreams(22), 3)
