"""The policy for small models: a duel of tiny models, resumed to the bit, and held against TRL's own loss."""

import json
import shutil
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import training_runs as runs

import codea1_env
from codea1_env.configuration.arguments import parse_arguments
from codea1_env.configuration.presets import Preset
from codea1_env.errors import ConfigurationError
from codea1_env.language_models.learner import Learner
from codea1_env.language_models.rollouts import Completion
from codea1_env.players.player import CoderRequest
from codea1_env.problems.families.miniature import miniature_problems
from codea1_env.training.models.chat import Prompter, chat_of
from codea1_env.training.models.sampling import load_model
from codea1_env.training.models.shared_base import shared_base
from codea1_env.training.policies.packed import PackedPolicy
from codea1_env.training.policies.packed_loss import Clipped, PackedRow, StepShape
from codea1_env.training.process import prepare_process
from codea1_env.training.samples import Batch, Row, RowLabel, SamplerSettings, SeatRun

PRESET = runs.without_evaluations(**runs.PACKED, grpo={"beta": 0.0, "learning_rate": 1e-2})
ASKED = miniature_problems("train", 2, 0)


def changed(**sections: Any) -> Preset:
    return runs.tiny(PRESET, **sections)


whole = runs.finished_run(rounds=1, preset=PRESET)


@pytest.mark.parametrize("preset", [PRESET, runs.without_evaluations()], ids=["packed", "trl"])
def test_a_resumed_run_has_its_schedule_and_the_rate_of_now(preset: Preset, base: Path, tmp_path: Path) -> None:
    """A rate that has fallen to 0 at the end of a run would make the next step one that learns nothing."""
    for rounds, rate in ((1, 1e-2), (3, 1e-3)):
        grpo = {"learning_rate": rate, "weight_decay": rate, "lr_scheduler_type": "linear", "warmup_steps": 0}
        runs.play_duel(tmp_path, base, rounds=rounds, preset=runs.tiny(preset, grpo=grpo), resume=rounds > 1)
    for seat in runs.SEATS:
        rates = [line["learning_rate"] for line in runs.records(tmp_path, "seat", seat)]
        assert rates == pytest.approx([1e-2, 2 / 3 * 1e-3, 1 / 3 * 1e-3])
        assert runs.param_groups(runs.last_checkpoint(tmp_path / seat))[0]["weight_decay"] == 1e-3


def coder_of(base: Path, directory: Path, preset: Preset, earned: Sequence[float | None]) -> tuple[PackedPolicy, Batch]:
    """A coder, and what it wrote in its first round, which earned this, row by row, and none behind it."""
    prepare_process()
    policy = PackedPolicy(SeatRun(preset, base, directory / "coder", 0))
    policy.begin(0)
    drawn = policy.sample(Prompter(chat_of(preset), policy.tokenizer).coder(ASKED), preset.round.programs)
    rows = [(problem.problem_id, one) for problem, group in zip(ASKED, drawn, strict=True) for one in group]
    labelled = zip_longest(rows, earned)
    return policy, [Row(one, reward, RowLabel(name, name, "coder")) for (name, one), reward in labelled]


def test_a_loss_of_ones_own_is_the_mean_over_passes(base: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Its loss is 1 in every pass, and so is the step's: of 2 passes, and of one for each row."""
    (tmp_path / "flat.py").write_text("def loss(batch):\n    return 1 + 0 * batch.logps.sum()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    own = changed(rounds=1, algorithm={"loss_type": "flat:loss"})
    for name, tokens in (("whole", 100_000), ("row by row", 1)):
        policy, batch = coder_of(base, tmp_path / name, own, [0.0, 1.0] * 4)
        adapters = policy.model.shared.adapters
        policy._learner = Learner(policy.model.shared.model.base, adapters[policy.model.adapter], tokens)
        runs.learn(policy, batch)
        assert policy.metrics()["loss"] == pytest.approx(1.0), name


def test_an_own_engine_samples_in_the_place_of_the_built_in_one(base: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """It draws by the same uniforms, and so what is drawn is the same."""
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.syspath_prepend(str(tmp_path))
    _, built_in = coder_of(base, tmp_path, changed(), [])
    _, own = coder_of(base, tmp_path, changed(algorithm={"rollouts": "mine:Counting"}), [])
    import mine

    assert mine.Counting.calls == 1
    assert [row.sample.tokens for row in own] == [row.sample.tokens for row in built_in]


MINE = """
from codea1_env.language_models.over_generate import GenerateEngine
class Counting(GenerateEngine):
    calls = 0
    def sample(self, requests, sampling):
        Counting.calls += 1
        return super().sample(requests, sampling)
"""


def test_the_divergence_from_the_base_begins_at_zero(whole: Path, base: Path, tmp_path: Path) -> None:
    runs.play_duel(tmp_path, base, rounds=2, preset=changed(grpo={"beta": 5.0}))
    for seat in runs.SEATS:
        assert not any("kl" in line for line in runs.records(whole, "seat", seat)), "nobody asked the base"
        divergences = [line["kl"] for line in runs.records(tmp_path, "seat", seat)]
        assert divergences[0] == pytest.approx(0.0, abs=1e-6)
        assert divergences[1] > 1e-4


def test_suites_are_written_against_the_programs_alone_that_the_tester_learns_from(base: Path, tmp_path: Path) -> None:
    """2 questions, 4 programs, 4 suites against one of them: 8 rows, of which all are learnt from."""
    ahead = changed(options={"selection": "ahead"}, reward={"coder_tests": "union"}, keep_duels=1)
    for seats in (runs.SEATS, ("player",)):
        run = tmp_path / seats[0]
        runs.play_duel(run, base, rounds=1, preset=ahead, seats=seats)
        assert [line["not_attacked"] for line in runs.records(run, "round")] == [0]
        kept = (run / "duels" / "round-1.jsonl").read_text().splitlines()
        (game,) = [line["match"] for line in map(json.loads, kept) if "match" in line]
        assert sorted(map(len, game["suites"])) == [0, 0, 0, 4]
        assert all(code["reward"] is not None for code in game["score"]["codes"])


def test_what_a_seat_left_is_sampled_with_its_adapter_and_beside_no_other_base(whole, base, tmp_path: Path) -> None:
    final, asked = whole / "coder" / "final", [CoderRequest(problem) for problem in ASKED]
    how = SamplerSettings(20, 1.0, seed=3)
    one, same, other = (load_model(each, PRESET).sampler(how).coder(asked, 3) for each in (final, final, base))
    assert one == same != other
    record = shutil.copytree(final, tmp_path / "final") / "base.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "digest": "0" * 16}))
    with pytest.raises(ConfigurationError, match="must have the digest 0000000000000000, got"):
        load_model(record.parent, PRESET)


def test_two_updates_a_round_are_both_in_its_metrics(base: Path, tmp_path: Path) -> None:
    """The gap between sampler and learner is that of the first one, since only there both are the same policy."""
    two = changed(rounds=1, round={"updates": 2, "questions": 2, "programs": 4})
    for name, earned in (("both", [0.0, 1.0] * 4), ("the first alone", [0.0, 1.0] * 2 + [1.0] * 4)):
        policy, batch = coder_of(base, tmp_path / name, two, earned)
        runs.learn(policy, batch)
        logs = policy.metrics()
        assert logs["sampling_gap"] < 1e-3, "without what the first update has changed"
        assert all(logs[each] > 0 for each in ("grad_norm", "entropy", "learning_rate"))


@pytest.mark.parametrize("zero_variance", ["keep", "drop"])
def test_what_has_no_score_is_in_no_loss_and_no_token_count(base: Path, tmp_path: Path, zero_variance: Any) -> None:
    preset = changed(rounds=1, grpo={"beta": 1.0}, algorithm={"zero_variance": zero_variance})
    policy, batch = coder_of(base, tmp_path, preset, [None, 0.0, 1.0, 0.5])
    (update,) = policy.updates(batch, policy.advantages(batch))
    ((_, members),) = update.groups
    assert (len(members), update.step.tokens) == (3, sum(len(row.tokens) for row in members))


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_what_is_cut_off_is_what_the_engine_says(base: Path, tmp_path: Path, finish: Any, monkeypatch: Any) -> None:
    preset = changed(rounds=1, grpo={"mask_truncated_completions": True, "beta": 1.0})

    def sample(requests: Any, sampling: Any) -> list[list[Completion]]:
        one = Completion((5,) * sampling.max_tokens, (-1.0,) * sampling.max_tokens, finish)
        return [[one] * request.samples for request in requests]

    monkeypatch.setattr(shared_base(base, preset).engine, "sample", sample)
    policy, batch = coder_of(base, tmp_path, preset, [0.0, 1.0, 1.0, 1.0])
    (update,) = policy.updates(batch, policy.advantages(batch))
    assert sum(len(members) for _, members in update.groups) == (4 if finish == "stop" else 0)
    assert policy.metrics()["truncated"] == (finish == "length")


@pytest.mark.parametrize(("beta", "is_corrected"), [(0.0, False), (0.3, False), (0.3, True)])
@pytest.mark.parametrize("loss_type", ["dapo", "bnpo", "grpo", "dr_grpo"])
def test_the_losses_are_trls(loss_type: str, beta: float, is_corrected: bool) -> None:
    """TRL's own `_compute_loss` on the same rows, with a model that says what it is told."""
    from trl import GRPOConfig, GRPOTrainer

    prepare_process()
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

    pad = partial(torch.nn.utils.rnn.pad_sequence, batch_first=True)
    padded, mask = pad(now).requires_grad_(), pad([torch.ones(n) for n in lengths])
    stand_in: Any = SimpleNamespace(
        args=arguments, beta=beta, epsilon_low=0.2, epsilon_high=0.28, loss_type=loss_type,
        importance_sampling_level="token", max_completion_length=9, top_entropy_quantile=1.0, use_vllm=False,
        off_policy_mask_threshold=None, current_gradient_accumulation_steps=1,
        model=SimpleNamespace(training=True), vllm_importance_sampling_correction=False, aux_loss_enabled=False,
        _entropy_bonus_enabled=False,
        accelerator=SimpleNamespace(num_processes=1, gather=lambda it: it, reduce=lambda it, *_, **__: it), tools=None,
        _metrics={"train": defaultdict(list)},
        _get_per_token_logps_and_entropies=lambda *_, **__: (padded, torch.zeros_like(padded), None),
    )  # fmt: skip
    inputs = {
        "prompt_ids": torch.zeros(3, 1, dtype=torch.long), "prompt_mask": torch.ones(3, 1, dtype=torch.long),
        "completion_ids": torch.zeros(3, 7, dtype=torch.long), "completion_mask": mask.long(),
        "advantages": torch.tensor(advantages), "num_items_in_batch": mask.sum(),
        "old_per_token_logps": pad(old), "ref_per_token_logps": pad(bases),
    }  # fmt: skip
    theirs = GRPOTrainer._compute_loss(stand_in, None, inputs)
    (gradient,) = torch.autograd.grad(theirs, padded)

    rows = zip(tokens, old, advantages, bases, strict=True)
    group = [PackedRow(own, before.tolist(), advantage, by_base.tolist()) for own, before, advantage, by_base in rows]
    objective = Clipped(group, loss_type, StepShape(rows=3, tokens=sum(lengths), longest=9), arguments)
    flat = torch.cat(now).requires_grad_()
    parts = [objective(range(3), flat[start : start + 4], start) for start in range(0, len(flat), 4)]
    ours = torch.stack(parts).sum()
    assert ours.detach().item() == pytest.approx(theirs.detach().item(), rel=1e-5)
    (own_gradient,) = torch.autograd.grad(ours, flat)
    assert torch.allclose(own_gradient, gradient[mask.bool()], atol=1e-6)


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_tester_of_another_family_is_refused(more: list[str], base: Path, tmp_path: Path, capsys: Any) -> None:
    config = shutil.copytree(base, tmp_path / "tester") / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "model_type": "qwen3"}))
    problems = str(Path(codea1_env.__file__).parent / "problems" / "bundled.jsonl")
    models = ["--preset", "0.5b", "--tester", str(tmp_path / "tester")]
    more = [*more, "--problems", problems, "--output", str(tmp_path / "run")]
    with pytest.raises(SystemExit):
        parse_arguments("", [*models, *more], "frozen", takes_tester=True)
    assert "--tester must be of the families qwen2 or llama, got 'qwen3'" in capsys.readouterr().err


def test_a_policy_asks_for_an_end_with_the_last_paid_test(base: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """In training, and where it is measured or plays as it is. Not unless the preset says so: test_suite_sizes.py."""
    asked = list[int]()

    def sample(requests: Any, sampling: Any) -> list[list[Completion]]:
        asked.extend(request.tests for request in requests)
        return [[Completion((0,), (0.0,), "end")] * request.samples for request in requests]

    policy, _ = coder_of(base, tmp_path, PRESET, [])
    monkeypatch.setattr(policy.model.shared.engine, "sample", sample)
    prompter = Prompter(chat_of(changed(stop_at_tests=True)), policy.tokenizer)
    prompts = [*prompter.coder(ASKED[:1]), *prompter.tester([(ASKED[0], "def f(x): return x")])]
    policy.draw(prompts, 2)
    policy.answer(prompts, 2, SamplerSettings(8, 1.0, seed=0))
    assert asked == [0, PRESET.reward.suite_size] * 2
