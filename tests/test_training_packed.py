"""The trainer for small models on CPUs: a duel of tiny models, resumed to the bit, and held against TRL's own step."""

import dataclasses
import json
import math
import shutil
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

import torch
from safetensors.torch import load_file
from training_runs import SEATS, TINY, last_checkpoint, play_alone, play_duel, records, without_seconds

import codea1_env
from codea1_env.errors import ConfigurationError
from codea1_env.language_models.learner import Learner
from codea1_env.language_models.rollouts import Completion
from codea1_env.players.player import CoderRequest, TesterRequest
from codea1_env.problems.families.miniature import miniature_problems
from codea1_env.training.baselines.sft import Untrained
from codea1_env.training.config.arguments import parse_arguments
from codea1_env.training.config.model_sections import LoraPreset, PretrainedModel
from codea1_env.training.config.options import Options
from codea1_env.training.config.placement import Placement, SeatPlacement
from codea1_env.training.config.presets import Preset, load_preset
from codea1_env.training.grpo.packed import GAP
from codea1_env.training.grpo.packed_loss import Clipped, PackedRow, StepShape
from codea1_env.training.grpo.past_opponents import RECORDS, SNAPSHOTS, snapshot
from codea1_env.training.grpo.seats import coder_trainer, train
from codea1_env.training.models.chat import chat_of
from codea1_env.training.models.sampling import load_model
from codea1_env.training.models.shared_base import shared_base
from codea1_env.training.run.callbacks import SeatHooks, SeatRun
from codea1_env.training.run.resuming import as_configured
from codea1_env.training.run.run_dir import BOOK

PACKED = dataclasses.replace(
    TINY,
    trainer="packed",
    lora=LoraPreset(rank=4, alpha=8.0),
    grpo=TINY.grpo.changed({"beta": 0.0, "learning_rate": 1e-2}),
)


@pytest.fixture(scope="module")
def whole(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three rounds in one go."""
    directory = tmp_path_factory.mktemp("runs") / "whole"
    play_duel(directory, base, rounds=3, preset=PACKED)
    return directory


def adapter(directory: Path) -> dict[str, torch.Tensor]:
    return load_file(directory / "adapter_model.safetensors")


def untimed(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in record.items() if k != "tokens_per_second"} for record in without_seconds(found)]


def assert_same_bits(one: Path, other: Path) -> None:
    """Adapters, optimizers, the book, and metrics but for times."""
    for seat in SEATS:
        mine, others = adapter(one / seat / "final"), adapter(other / seat / "final")
        assert all(torch.equal(mine[name], others[name]) for name in mine)
        states = (last_checkpoint(run / seat) / "trainer.pt" for run in (one, other))
        assert len({state.read_bytes() for state in states}) == 1
        assert untimed(records(one, "seat", seat)) == untimed(records(other, "seat", seat))
    assert without_seconds(records(one, "round")) == without_seconds(records(other, "round"))
    assert (one / BOOK).read_bytes() == (other / BOOK).read_bytes()


def test_both_seats_learn_beside_one_base(whole: Path, base: Path) -> None:
    for seat in SEATS:
        final = adapter(whole / seat / "final")
        assert any(float(tensor.abs().max()) > 0 for name, tensor in final.items() if "lora_B" in name)
        record = json.loads((whole / seat / "final" / "base.json").read_text())
        assert Path(record["base"]) == base.resolve()
        assert not (whole / seat / "final" / "model.safetensors").exists()
        for line in records(whole, "seat", seat):
            assert line["tokens"] > 0
            assert math.isfinite(line["loss"])
            assert line["frac_reward_zero_std"] == 1 or line["sampling_gap"] < 1e-3
        assert any("sampling_gap" in line for line in records(whole, "seat", seat)), "no round had a gradient"


def test_a_resumed_run_comes_to_the_same_bits_without_peft(
    whole: Path, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)  # an import of it fails: the extra `train` does not bring it
    play_duel(tmp_path, base, rounds=2, preset=PACKED)
    play_duel(tmp_path, base, rounds=3, preset=PACKED, resume=True)
    assert_same_bits(whole, tmp_path)


@pytest.mark.parametrize("trainer", ["packed", "trl"])
def test_a_resumed_run_learns_at_the_rate_that_its_configuration_has_now(
    trainer: Any, base: Path, tmp_path: Path
) -> None:
    """As the error of a gradient that is not finite advises. The schedule is constant: the rate is what is set."""
    preset = PACKED if trainer == "packed" else dataclasses.replace(TINY, trainer="trl")
    for rounds, rate in ((1, 1e-2), (2, 1e-3)):
        grpo = preset.grpo.changed({"learning_rate": rate, "lr_scheduler_type": "constant", "warmup_steps": 0})
        play_duel(tmp_path, base, rounds=rounds, preset=dataclasses.replace(preset, grpo=grpo), resume=rounds > 1)
    for seat in SEATS:
        assert [line["learning_rate"] for line in records(tmp_path, "seat", seat)] == [1e-2, 1e-3]


@pytest.mark.parametrize("trainer", ["packed", "trl"])
def test_a_run_with_more_rounds_goes_on_where_its_schedule_would_be(trainer: Any, base: Path, tmp_path: Path) -> None:
    """A rate that has fallen to 0 at the end of a run would make the next step one that learns nothing."""
    preset = PACKED if trainer == "packed" else dataclasses.replace(TINY, trainer="trl")
    grpo = preset.grpo.changed({"learning_rate": 1e-2, "lr_scheduler_type": "linear", "warmup_steps": 0})
    for rounds in (1, 3):
        changed_rounds = dataclasses.replace(preset, rounds=rounds, grpo=grpo)
        play_duel(tmp_path, base, rounds=rounds, preset=changed_rounds, resume=rounds > 1)
    for seat in SEATS:
        rates = [line["learning_rate"] for line in records(tmp_path, "seat", seat)]
        assert rates == pytest.approx([1e-2, 2 / 3 * 1e-2, 1 / 3 * 1e-2])


def test_rates_that_were_not_edited_are_left_alone() -> None:
    weight = torch.nn.Parameter(torch.zeros(1))
    arguments = SimpleNamespace(learning_rate=0.1, weight_decay=0.2, adam_beta1=0.9, adam_beta2=0.99, adam_epsilon=1e-8)
    optimizer = torch.optim.AdamW([weight], 0.1, (0.9, 0.99), 1e-8, 0.2)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.7**step)
    weight.grad = torch.ones(1)
    optimizer.step()
    schedule.step()
    before = (optimizer.state_dict()["param_groups"], schedule.state_dict())
    as_configured(optimizer, schedule, arguments)
    assert (optimizer.state_dict()["param_groups"], schedule.state_dict()) == before
    as_configured(optimizer, schedule, SimpleNamespace(**{**vars(arguments), "learning_rate": 1.0, "weight_decay": 0}))
    (group,) = optimizer.param_groups
    assert (group["lr"], group["weight_decay"]) == (pytest.approx(0.7), 0)
    optimizer.step()
    schedule.step()
    assert schedule.get_last_lr() == [pytest.approx(0.49)]


def test_a_loss_of_ones_own_is_the_mean_over_passes_however_many_a_group_takes(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two groups that earned the same, whose loss is 1 in every pass: the step's loss is 1, where the passes are
    2 and where there is one for each row."""
    (tmp_path / "flat.py").write_text("def loss(batch):\n    return 1 + 0 * batch.logps.sum()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    own = changed(rounds=1, algorithm=dataclasses.replace(PACKED.algorithm, loss_type="flat:loss"))
    for name, tokens in (("whole", 100_000), ("row by row", 1)):
        trainer = coder_of(base, tmp_path / name, own, [0.0, 1.0] * 4)
        trainer._learner = Learner(
            trainer.model.shared.model.base, trainer.model.shared.adapters[trainer.model.adapter], tokens
        )
        trainer.train()
        assert trainer._logs["loss"] == pytest.approx(1.0), name


def test_an_engine_of_ones_own_samples_in_the_place_of_the_built_in_one(
    whole: Path, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It draws by the same uniforms, and so the first round is the same."""
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.syspath_prepend(str(tmp_path))
    own = changed(algorithm=dataclasses.replace(PACKED.algorithm, rollouts="mine:Counting"))
    play_duel(tmp_path / "run", base, rounds=1, preset=own)
    import mine

    assert mine.calls >= 2, "each seat once a round"
    for seat in SEATS:
        first, other = (untimed(records(run, "seat", seat))[0] for run in (whole, tmp_path / "run"))
        assert first.keys() == other.keys()
        for name in ("tokens", "prompt_tokens", "length", "reward"):
            assert first[name] == other[name]
    assert without_seconds(records(whole, "round"))[0] == without_seconds(records(tmp_path / "run", "round"))[0]
    for name in ("mine:Nothing", "json:loads"):
        wrong = dataclasses.replace(PACKED.algorithm, rollouts=name)
        with pytest.raises(ConfigurationError, match=r"algorithm\.rollouts must name a subclass of RolloutEngine, got"):
            load_model(base, changed(algorithm=wrong))


MINE = """
from codea1_env.language_models.over_generate import GenerateEngine

calls = 0


class Counting(GenerateEngine):
    def sample(self, requests, sampling):
        global calls
        calls += 1
        return super().sample(requests, sampling)
"""


def test_past_opponents_are_adapters_beside_the_base_and_a_resumed_run_plays_the_same_ones(
    base: Path, tmp_path: Path
) -> None:
    past = Options(opponents="prioritised", opponent_every=1)
    preset = changed(options=past, problems=dataclasses.replace(PACKED.problems, train=2))
    play_duel(tmp_path / "whole", base, rounds=4, preset=preset)
    play_duel(tmp_path / "resumed", base, rounds=2, preset=preset)
    play_duel(tmp_path / "resumed", base, rounds=4, preset=preset, resume=True)
    assert_same_bits(tmp_path / "whole", tmp_path / "resumed")
    assert all("past_coder_reward" in record for record in records(tmp_path / "whole", "round"))
    for seat in SEATS:
        kept = snapshot(tmp_path / "whole" / seat, 2)
        checkpoint = tmp_path / "whole" / seat / "checkpoint-2"
        assert (kept / "adapter_model.safetensors").read_bytes() == (
            checkpoint / "adapter_model.safetensors"
        ).read_bytes()
    fared = json.loads((tmp_path / "whole" / "tester" / "checkpoint-4" / RECORDS).read_text())
    assert set(fared["coder"]) - {"0"}, "only the base was drawn: no adapter of the past has played"
    assert not [name for name in shared_base(base, preset).adapters if SNAPSHOTS in name]


def test_the_divergence_from_the_base_begins_at_zero_and_holds_the_adapters_back(
    whole: Path, base: Path, tmp_path: Path
) -> None:
    """With a large weight the seats stay nearer to the base than without; the first step does not know it yet."""
    held = changed(grpo=PACKED.grpo.changed({"beta": 5.0}))
    play_duel(tmp_path / "held", base, rounds=3, preset=held)
    for seat in SEATS:
        assert not any("kl" in line for line in records(whole, "seat", seat)), "nobody asked the base"
        divergences = [line["kl"] for line in records(tmp_path / "held", "seat", seat)]
        assert divergences[0] == pytest.approx(0.0, abs=1e-6)
        assert divergences[-1] > 1e-4
        assert distance(tmp_path / "held" / seat / "final") < distance(whole / seat / "final")
    play_duel(tmp_path / "resumed", base, rounds=1, preset=held)
    play_duel(tmp_path / "resumed", base, rounds=3, preset=held, resume=True)
    assert_same_bits(tmp_path / "held", tmp_path / "resumed")


def distance(directory: Path) -> float:
    """Of the weights that are added to the base's: the sum of the products' squares."""
    found = adapter(directory)
    names = [name for name in found if "lora_A" in name]
    return sum(float((found[name.replace("lora_A", "lora_B")] @ found[name]).square().sum()) for name in names)


def test_self_play_learns_with_one_adapter(base: Path, tmp_path: Path) -> None:
    play_alone(tmp_path, base, rounds=2, preset=PACKED)
    assert len(records(tmp_path, "seat", "player")) == 2
    assert (tmp_path / "player" / "final" / "base.json").is_file()


def test_suites_are_written_against_the_programs_alone_that_the_tester_learns_from(base: Path, tmp_path: Path) -> None:
    """2 questions, 4 programs, 4 suites against one of them: 8 rows, of which all are learnt from."""
    ahead = changed(
        options=Options(selection="ahead"), reward=dataclasses.replace(PACKED.reward, coder_tests="union"), keep_duels=1
    )
    play_duel(tmp_path / "duel", base, rounds=2, preset=ahead)
    assert [line["not_attacked"] for line in records(tmp_path / "duel", "round")] == [0, 0]
    kept = (tmp_path / "duel" / "duels" / "round-1.jsonl").read_text().splitlines()
    (game,) = [line["match"] for line in map(json.loads, kept) if "match" in line]
    assert sorted(map(len, game["suites"])) == [0, 0, 0, 4]
    assert all(code["reward"] is not None for code in game["score"]["codes"])
    play_alone(tmp_path / "alone", base, rounds=1, preset=ahead)
    assert (tmp_path / "alone" / "player" / "final" / "base.json").is_file()


def test_what_a_seat_left_is_sampled_with_its_adapter(whole: Path, base: Path) -> None:
    sampling = {"chat": chat_of(PACKED), "tokens": 20, "temperature": 1.0, "seed": 3}
    asked = [SimpleNamespace(problem=problem, program="") for problem in miniature_problems("held_out", 3, 0)]
    trained: Any = load_model(whole / "coder" / "final", PACKED).sampler(PACKED, **sampling)
    plain: Any = load_model(base, PACKED).sampler(PACKED, **sampling)
    assert trained.coder(asked, 4) == trained.coder(asked, 4)
    assert trained.coder(asked, 4)[1:] == trained.coder(asked, 4)[1:]
    assert trained.coder(asked, 4) != plain.coder(asked, 4)


@pytest.mark.parametrize("preset", [TINY, PACKED], ids=["trl", "packed"])
def test_greedy_answers_are_the_same_however_many_are_asked_for(preset: Preset, base: Path) -> None:
    sampler: Any = load_model(base, preset).sampler(preset, chat=chat_of(preset), tokens=20, temperature=0.0, seed=3)
    asked = [SimpleNamespace(problem=problem, program="") for problem in miniature_problems("held_out", 2, 0)]
    answers = sampler.coder(asked, 3)
    assert [len(row) for row in answers] == [3, 3]
    assert [row for row in answers for _ in row] == [[row[0]] * 3 for row in answers for _ in row]
    assert answers[0] != answers[1]


def coder_of(base: Path, directory: Path, preset: Preset, earned: Sequence[float | None]) -> Any:
    """The trainer of a coder who is paid this, row by row, and none behind it."""
    asked = miniature_problems("train", preset.round.questions * preset.rounds, 0)
    hooks = SeatHooks(lambda *_: None, lambda *_: None, lambda *_: None, lambda _: False)

    def pay(round_index: int, problems: Any, texts: Sequence[str]) -> list[float | None]:
        return [*earned, *[None] * (len(texts) - len(earned))]

    return coder_trainer(SeatRun(preset, base, directory / "coder", 0), hooks, pay, asked)


def test_two_updates_a_round_are_both_in_its_metrics(base: Path, tmp_path: Path) -> None:
    """The gap between sampler and learner is that of the first one, since only there both are the same policy."""
    two = changed(rounds=1, round=dataclasses.replace(PACKED.round, updates=2, questions=2, programs=4))
    for name, earned in (("both", [0.0, 1.0] * 4), ("the first alone", [0.0, 1.0] * 2 + [1.0] * 4)):
        trainer = coder_of(base, tmp_path / name, two, earned)
        trainer.train()
        logs = trainer._logs
        assert logs[GAP] < 1e-3, "without what the first update has changed"
        assert logs["grad_norm"] > 0
        assert logs["entropy"] > 0
        assert logs["learning_rate"] > 0


@pytest.mark.parametrize("zero_variance", ["keep", "drop"])
def test_what_has_no_score_is_in_no_loss_and_its_tokens_are_not_counted(
    base: Path, tmp_path: Path, zero_variance: str
) -> None:
    algorithm = dataclasses.replace(PACKED.algorithm, zero_variance=zero_variance)
    preset = changed(rounds=1, grpo=PACKED.grpo.changed({"beta": 1.0}), algorithm=algorithm)
    groups, step = coder_of(base, tmp_path, preset, [None, 0.0, 1.0, 0.5]).lesson()
    ((_, members),) = groups
    assert len(members) == 3
    assert step.tokens == sum(len(row.tokens) for row in members)


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_what_ends_with_its_last_token_is_cut_off_where_the_engine_says_so(
    base: Path, tmp_path: Path, finish: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = changed(rounds=1, grpo=PACKED.grpo.changed({"mask_truncated_completions": True, "beta": 1.0}))
    trainer = coder_of(base, tmp_path, preset, [0.0, 1.0, 1.0, 1.0])

    def sample(requests: Any, sampling: Any) -> list[list[Completion]]:
        one = Completion((5,) * sampling.max_tokens, (-1.0,) * sampling.max_tokens, finish)
        return [[one] * request.samples for request in requests]

    monkeypatch.setattr(trainer.model.shared.engine, "sample", sample)
    groups, _ = trainer.lesson()
    assert sum(len(members) for _, members in groups) == (4 if finish == "stop" else 0)


def test_an_adapter_of_another_base_is_refused(whole: Path, base: Path, tmp_path: Path) -> None:
    final = tmp_path / "final"
    final.mkdir()
    for file in (whole / "coder" / "final").iterdir():
        (final / file.name).write_bytes(file.read_bytes())
    record = json.loads((final / "base.json").read_text())
    (final / "base.json").write_text(json.dumps({**record, "digest": "0" * 16}))
    with pytest.raises(ConfigurationError, match="must have the digest 0000000000000000, got"):
        load_model(final, PACKED)


@pytest.mark.parametrize(("beta", "is_corrected"), [(0.0, False), (0.3, False), (0.3, True)])
@pytest.mark.parametrize("loss_type", ["dapo", "bnpo", "grpo", "dr_grpo"])
def test_the_losses_are_trls(loss_type: str, beta: float, is_corrected: bool) -> None:
    """TRL's own `_compute_loss` on the same rows, with a model that says what it is told."""
    from trl import GRPOConfig, GRPOTrainer

    arguments = GRPOConfig(
        output_dir="unused", loss_type=loss_type, beta=beta, epsilon=0.2, epsilon_high=0.28, delta=1.5,
        max_completion_length=9, use_cpu=True, bf16=False, use_bias_correction_kl=is_corrected,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(0)
    lengths, advantages = [5, 2, 7], [1.0, -0.5, -0.7]
    now = [torch.randn(length, generator=generator) - 2 for length in lengths]
    old = [values + 0.4 * torch.randn(len(values), generator=generator) for values in now]
    bases = [values + torch.randn(len(values), generator=generator) for values in now]
    tokens = [list(range(length)) for length in lengths]

    padded = torch.nn.utils.rnn.pad_sequence(now, batch_first=True).requires_grad_()
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones(n) for n in lengths], batch_first=True)
    stand_in: Any = SimpleNamespace(
        args=arguments, beta=beta, epsilon_low=0.2, epsilon_high=0.28, loss_type=loss_type,
        importance_sampling_level="token", max_completion_length=9, top_entropy_quantile=1.0, use_vllm=False,
        off_policy_mask_threshold=None, current_gradient_accumulation_steps=1,
        model=SimpleNamespace(training=True), vllm_importance_sampling_correction=False, aux_loss_enabled=False,
        _entropy_bonus_enabled=False,
        accelerator=SimpleNamespace(num_processes=1, gather=unchanged, reduce=unchanged), tools=None,
        _metrics={"train": defaultdict(list)},
        _get_per_token_logps_and_entropies=lambda *_, **__: (padded, torch.zeros_like(padded), None),
    )  # fmt: skip
    inputs = {
        "prompt_ids": torch.zeros(3, 1, dtype=torch.long), "prompt_mask": torch.ones(3, 1, dtype=torch.long),
        "completion_ids": torch.zeros(3, 7, dtype=torch.long), "completion_mask": mask.long(),
        "advantages": torch.tensor(advantages), "num_items_in_batch": mask.sum(),
        "old_per_token_logps": torch.nn.utils.rnn.pad_sequence(old, batch_first=True),
        "ref_per_token_logps": torch.nn.utils.rnn.pad_sequence(bases, batch_first=True),
    }  # fmt: skip
    theirs = GRPOTrainer._compute_loss(stand_in, None, inputs)
    (gradient,) = torch.autograd.grad(theirs, padded)

    group = [
        PackedRow(own, before.tolist(), advantage, by_base.tolist())
        for own, before, advantage, by_base in zip(tokens, old, advantages, bases, strict=True)
    ]
    objective = Clipped(group, loss_type, StepShape(rows=3, tokens=sum(lengths), longest=9), arguments)
    flat = torch.cat(now).requires_grad_()
    parts = [objective(range(3), flat[start : start + 4], start) for start in range(0, len(flat), 4)]
    ours = torch.stack(parts).sum()
    assert ours.detach().item() == pytest.approx(theirs.detach().item(), rel=1e-5)
    (own_gradient,) = torch.autograd.grad(ours, flat)
    assert torch.allclose(own_gradient, gradient[mask.bool()], atol=1e-6)


def unchanged(values: Any, *_: Any, **__: Any) -> Any:
    return values


def changed(**sections: Any) -> Preset:
    return dataclasses.replace(PACKED, **sections)


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_tester_of_another_family_is_refused_under_its_own_name(
    more: list[str], base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tester = tmp_path / "tester"
    shutil.copytree(base, tester)
    config = json.loads((tester / "config.json").read_text())
    (tester / "config.json").write_text(json.dumps({**config, "model_type": "qwen3"}))
    problems = str(Path(codea1_env.__file__).parent / "problems" / "bundled.jsonl")
    arguments = ["--preset", "0.5b", "--problems", problems, "--tester", str(tester), "--output", str(tmp_path / "run")]
    with pytest.raises(SystemExit):
        parse_arguments("", [*arguments, *more], "frozen", takes_tester=True)
    assert "--tester must be of the families qwen2 or llama, got 'qwen3'" in capsys.readouterr().err


def test_what_the_trainer_cannot_do_is_refused() -> None:
    for sections, message in (
        (
            {"grpo": PACKED.grpo.changed({"top_p": 0.9})},
            r"grpo.top_p must be 1 \(coder\) with trainer: packed, got 0.9",
        ),
        ({"lora": LoraPreset()}, r"lora.rank must be at least 1 \(adapters only\)"),
        ({"lora": LoraPreset(rank=4, target="q_proj")}, "lora must be without dropout and target all-linear"),
        ({"algorithm": dataclasses.replace(PACKED.algorithm, loss_type="cispo")}, "algorithm.loss_type must be one of"),
        ({"algorithm": dataclasses.replace(PACKED.algorithm, credit="test")}, "algorithm.credit must be suite"),
        (
            {"round": dataclasses.replace(PACKED.round, updates=4)},
            r"round.updates must be at most round.questions \(2\) with trainer: packed, got 4; or set trainer: trl",
        ),
        (
            {"memory": dataclasses.replace(PACKED.memory, gradient_checkpointing=True)},
            "memory.gradient_checkpointing must be false with trainer: packed, got true",
        ),
        (
            {"memory": dataclasses.replace(PACKED.memory, coder_rows_per_device=4)},
            "memory.coder_rows_per_device must be 0 with trainer: packed, got 4",
        ),
        (
            {"model": PretrainedModel("some/model", context=2048)},
            "round.coder_prompt_tokens and tester_prompt_tokens must be at least 1 with trainer: packed, got 0 and 0",
        ),
        (
            {"placement": Placement(coder=SeatPlacement(ranks=2))},
            "placement.coder must be one rank on the CPU without vLLM",
        ),
    ):
        with pytest.raises(ConfigurationError, match=message):
            changed(**sections)
    for name in ("stop_at_fence", "stop_at_tests"):
        with pytest.raises(ConfigurationError, match=f"{name} must be false with trainer: trl, got true"):
            dataclasses.replace(TINY, **{name: True})
    own = dataclasses.replace(TINY.algorithm, rollouts="generate")
    with pytest.raises(ConfigurationError, match=r"rollouts must be continuous with trainer: trl, .* got generate"):
        dataclasses.replace(TINY, algorithm=own)
    with pytest.raises(ConfigurationError, match=r"stop_at_tests must be false with reward.fidelity: paper"):
        changed(stop_at_tests=True, reward=dataclasses.replace(PACKED.reward, fidelity="paper"))


def test_a_testers_answers_end_with_their_last_paid_test_where_the_preset_says_so(whole: Path, base: Path) -> None:
    asked: list[tuple[str, list[int]]] = []

    class Engine:
        prompt_tokens = 0

        def sample(self, requests: Any, sampling: Any) -> list[list[Completion]]:
            asked[-1][1].extend(request.tests for request in requests)
            return [[Completion((0,), (0.0,), "end")] * request.samples for request in requests]

    (problem,) = miniature_problems("held_out", 1, 0)
    requests = {"coder": CoderRequest(problem), "tester": TesterRequest(problem, "def f(x): return x")}
    for stops in (False, True):
        preset = dataclasses.replace(PACKED, stop_at_tests=stops)
        loaded = load_model(whole / "tester" / "final", preset)
        model = dataclasses.replace(loaded.model, shared=dataclasses.replace(loaded.model.shared, engine=Engine()))
        for seat, request in requests.items():
            asked.append((seat, []))
            sampler = dataclasses.replace(loaded, model=model).as_trained(preset, seat, seed=0)
            getattr(sampler, seat)([request], 2)
    tests = PACKED.reward.suite_size
    assert asked == [("coder", [0]), ("tester", [0]), ("coder", [0]), ("tester", [tests])]


def test_a_base_that_learns_nothing_is_saved(base: Path, tmp_path: Path) -> None:
    """As the baseline `sft` does where no suite counts."""
    loaded = load_model(base, PACKED)
    train(Untrained(loaded.model, loaded.tokenizer), SeatRun(PACKED, base, tmp_path, seed=0))
    assert load_model(tmp_path / "final", PACKED).model.shared is loaded.model.shared


@pytest.mark.parametrize("name", ["0.5b", "0.5b-smoke"])
def test_the_presets_of_real_models_ask_for_what_the_trainer_can_do(name: str) -> None:
    preset = load_preset(name)
    assert (preset.trainer, preset.stop_at_fence, preset.name) == ("packed", True, name)
