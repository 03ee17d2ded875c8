"""Our advantages inside TRL's trainer, for real: tiny models, the real arena, few rounds."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

import torch
from training_runs import TINY, play_duel, records, same_weights, weights
from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from codea1_env.errors import ConfigurationError, PlayerError
from codea1_env.training import advantages
from codea1_env.training.config.algorithm import Algorithm, located
from codea1_env.training.config.options import Options
from codea1_env.training.config.presets import Preset, load_preset
from codea1_env.training.credit import token_offsets
from codea1_env.training.grpo import trainer as seat_trainer
from codea1_env.training.grpo.trainer import SeatTrainer
from codea1_env.training.losses import LossBatch, own_loss, value_of
from codea1_env.training.row_labels import RowLabel

SEATS = ("coder", "tester")
ALGORITHM = Algorithm()


def preset(weight_decay: float = 0.0, algorithm: Algorithm = ALGORITHM, **options: Any) -> Preset:
    return dataclasses.replace(
        TINY,
        grpo=TINY.grpo.changed({"weight_decay": weight_decay}),
        evaluation=dataclasses.replace(TINY.evaluation, every_rounds=0),
        options=Options(**options),
        algorithm=algorithm,
    )


@pytest.fixture(scope="module")
def default(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rounds of the default algorithm."""
    directory = tmp_path_factory.mktemp("runs") / "default"
    play_duel(directory, base, rounds=2, preset=preset())
    return directory


def distance(one: Path, other: Path) -> float:
    a, b = weights(one), weights(other)
    return max(float((a[name] - b[name]).abs().max()) for name in a)


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_advantages_have_the_bits_of_trls_own(
    scale: str, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stock trainer with TRL's `scale_rewards` and no estimator ends in the same weights."""
    play_duel(tmp_path / "ours", base, rounds=1, preset=preset(algorithm=Algorithm(scale=scale)))
    monkeypatch.setattr(SeatTrainer, "__init__", with_scale_rewards(scale, SeatTrainer.__init__))
    monkeypatch.setattr(SeatTrainer, "_generate_and_score_completions", GRPOTrainer._generate_and_score_completions)
    play_duel(tmp_path / "stock", base, rounds=1, preset=preset())
    for seat in SEATS:
        assert same_weights(tmp_path / "ours" / seat / "final", tmp_path / "stock" / seat / "final")
        assert not same_weights(tmp_path / "ours" / seat / "final", base)


def with_scale_rewards(scale: str, build: Any) -> Any:
    def build_so(self: Any, *args: Any, **options: Any) -> None:
        options["args"].scale_rewards = scale
        build(self, *args, **options)

    return build_so


def test_the_estimator_runs_for_the_defaults_too(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is changed in `advantages.py` changes what is learnt: without advantages only the KL term is left."""
    monkeypatch.setattr(advantages.Grpo, "advantages", lambda self, rewards, rows: torch.zeros_like(rewards))
    play_duel(tmp_path / "run", base, rounds=1, preset=preset())
    for seat in SEATS:
        assert same_weights(tmp_path / "run" / seat / "final", base)


OWN = """
from codea1_env.training.advantages import Estimator

class Counting(Estimator):
    rounds = 0

    def advantages(self, rewards, rows):
        self.rounds += 1
        return rewards / self.rounds

    def state(self):
        return {"rounds": self.rounds}

    def restore(self, state):
        self.rounds = state["rounds"]

def dapo(batch):
    ratio, limits = (batch.logps - batch.old_logps).exp(), batch.arguments
    clipped = ratio.clamp(1 - limits.epsilon, 1 + limits.epsilon_high)
    gain = (ratio.clamp(max=limits.delta) * batch.advantages).minimum(clipped * batch.advantages)
    return ((limits.beta * batch.kl - gain) * batch.mask).sum() / batch.tokens

class Nothing:
    def __call__(self, batch):
        return 0.0 * batch.logps.sum()

def nan(batch):
    return batch.logps.sum() * float("nan")

def by_row(batch):
    return batch.logps.sum(dim=1)

def number(batch):
    return 1.0

def constant(batch):
    return batch.logps.sum().detach()

class Open(Estimator):
    pass

class Short(Counting):
    def advantages(self, rewards, rows):
        return rewards[:-1]

class Listed(Counting):
    def advantages(self, rewards, rows):
        return rewards.tolist()

class Kept(Counting):
    def state(self):
        return {"seen": {1, 2}}
"""


@pytest.fixture
def own(tmp_path: Path) -> Callable[..., Algorithm]:
    """Names of a module of one's own, in a folder of its own."""
    (tmp_path / "code").mkdir()
    module = f"own_{tmp_path.name}"  # one name a test: Python remembers modules
    (tmp_path / "code" / f"{module}.py").write_text(OWN)

    def algorithm(**names: str) -> Algorithm:
        given = {field: f"{module}:{name}" for field, name in names.items()}
        return Algorithm(path=(str(tmp_path / "code"),), **given)

    return algorithm


@pytest.mark.parametrize("updates", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_loss_of_ones_own_can_be_trls(
    updates: int, own: Callable[..., Algorithm], base: Path, tmp_path: Path
) -> None:
    """The same loss written down anew, with steps on old samples and accumulated gradients: but for the last bits."""
    parts = preset()
    memory = dataclasses.replace(parts.memory, coder_rows_per_device=2, tester_rows_per_device=1)
    parts = dataclasses.replace(parts, memory=memory, round=dataclasses.replace(parts.round, updates=updates))
    play_duel(tmp_path / "trl", base, rounds=1, preset=parts)
    algorithm = own(loss_type="dapo")
    play_duel(tmp_path / "own", base, rounds=1, preset=dataclasses.replace(parts, algorithm=algorithm))
    for seat in SEATS:
        moved = distance(base, tmp_path / "trl" / seat / "final")
        assert moved > 0
        assert distance(tmp_path / "own" / seat / "final", tmp_path / "trl" / seat / "final") < 0.02 * moved


def test_a_loss_of_ones_own_is_all_that_is_learnt_from(
    own: Callable[..., Algorithm], base: Path, tmp_path: Path
) -> None:
    play_duel(tmp_path / "run", base, rounds=1, preset=preset(algorithm=own(loss_type="Nothing")))
    for seat in SEATS:
        assert same_weights(tmp_path / "run" / seat / "final", base)


def test_what_an_estimator_of_ones_own_remembers_is_resumed(
    own: Callable[..., Algorithm], base: Path, tmp_path: Path
) -> None:
    counting = preset(algorithm=own(advantage="Counting"))
    play_duel(tmp_path / "whole", base, rounds=2, preset=counting)
    play_duel(tmp_path / "resumed", base, rounds=1, preset=counting)
    play_duel(tmp_path / "resumed", base, rounds=2, preset=counting, resume=True)
    for seat in SEATS:
        assert same_weights(tmp_path / "whole" / seat / "final", tmp_path / "resumed" / seat / "final")
        state = tmp_path / "resumed" / seat / "checkpoint-2" / seat_trainer.STATE
        assert json.loads(state.read_text()) == {"rounds": 2}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"advantage": "dapo"}, "advantage must name a subclass of Estimator, got "),
        ({"advantage": "Nothing"}, "advantage must name a subclass of Estimator, got "),
        ({"advantage": "Open"}, "advantage must name a class that defines advantages, got 'own_.*:Open'"),
        ({"advantage": "Kept"}, r"advantage: Kept.state must return what JSON can hold, got {'seen': .*Object of type"),
        ({"advantage": "Gone"}, "advantage must name a subclass of Estimator, got 'own_.*:Gone'"),
        ({"loss_type": "Counting.rounds"}, "loss_type must be one of .* or module:Name"),
        ({"loss_type": "__name__"}, "loss_type must name a function or a class of callables"),
    ],
)
def test_code_of_ones_own_that_is_no_such_thing_is_refused(
    names: dict[str, str], message: str, own: Callable[..., Algorithm]
) -> None:
    def build() -> None:
        algorithm = own(**names)
        advantages.estimator_of(algorithm)
        own_loss(algorithm)

    with pytest.raises(ConfigurationError, match=message):
        build()


@pytest.mark.parametrize(("name", "got"), [("Short", r"a tensor of \(3,\)"), ("Listed", r"\[1.0, 0.0, 0.5, 1.0\]")])
def test_an_estimator_of_ones_own_has_one_advantage_for_each_row(
    name: str, got: str, own: Callable[..., Algorithm]
) -> None:
    estimator, rows = advantages.estimator_of(own(advantage=name)), [RowLabel("g", "q", "coder")] * 4
    with pytest.raises(ConfigurationError, match=rf"advantage: {name}.advantages must return .*, \(4,\), got {got}$"):
        advantages.numbers_of(estimator, torch.tensor([1.0, 0.0, 0.5, 1.0]), rows)


@pytest.mark.parametrize("wrong", [float("inf"), float("-inf")])
def test_an_estimator_of_ones_own_returns_finite_numbers(wrong: float) -> None:
    class Wrong(advantages.Grpo):
        def advantages(self, rewards: torch.Tensor, rows: Any) -> torch.Tensor:
            return torch.tensor([float("nan"), wrong])

    rows = [RowLabel("g", "q", "coder")] * 2
    with pytest.raises(ConfigurationError, match=rf"Wrong.advantages must return finite .*, got {wrong} in row 1$"):
        advantages.numbers_of(Wrong(Algorithm()), torch.tensor([1.0, 0.0]), rows)


@pytest.mark.parametrize(
    ("name", "got"),
    [
        ("by_row", r"a tensor of \(2,\) with a gradient"),
        ("constant", r"a tensor of \(\) without a gradient"),
        ("number", "1.0"),
    ],
)
def test_a_loss_of_ones_own_is_a_number_with_a_gradient(name: str, got: str, own: Callable[..., Algorithm]) -> None:
    loss, some = own_loss(own(loss_type=name)), torch.ones(2, 3)
    assert loss is not None
    batch = LossBatch(some.clone().requires_grad_(), some, None, some, some, None, torch.tensor(6.0), None)
    with pytest.raises(ConfigurationError, match=rf"loss_type must come to a tensor of one number, .*, got {got}$"):
        value_of(loss, batch)


def test_a_loss_that_is_not_finite_ends_the_run_before_its_step_and_nothing_is_saved(
    own: Callable[..., Algorithm], base: Path, tmp_path: Path
) -> None:
    with pytest.raises(PlayerError, match=r"must be finite, got a norm of nan, so the step was not taken"):
        play_duel(tmp_path / "run", base, rounds=1, preset=preset(algorithm=own(loss_type="nan")))
    assert not [*(tmp_path / "run").glob("*/checkpoint-*"), *(tmp_path / "run").glob("*/final")]


def test_a_module_that_is_nowhere_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=rf"in {tmp_path}\), got 'no_such_module:A'"):
        located(Algorithm(advantage="no_such_module:A"), tmp_path)


@pytest.mark.parametrize(
    "algorithm",
    [
        Algorithm(advantage="rae", scale="none", rate=0.05),
        pytest.param(Algorithm(credit="test"), marks=pytest.mark.slow),
        pytest.param(Algorithm(advantage="question", zero_variance="drop"), marks=pytest.mark.slow),
        pytest.param(Algorithm(scale="none", loss_type="dr_grpo"), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_resumed_run_with_another_algorithm_equals_an_uninterrupted_one(
    algorithm: Algorithm, default: Path, base: Path, tmp_path: Path
) -> None:
    play_duel(tmp_path / "whole", base, rounds=2, preset=preset(algorithm=algorithm))
    assert not same_weights(tmp_path / "whole" / "tester" / "final", default / "tester" / "final"), "no effect"
    play_duel(tmp_path / "resumed", base, rounds=1, preset=preset(algorithm=algorithm))
    play_duel(tmp_path / "resumed", base, rounds=2, preset=preset(algorithm=algorithm), resume=True)
    for seat in SEATS:
        assert same_weights(tmp_path / "whole" / seat / "final", tmp_path / "resumed" / seat / "final")
        state = Path(seat) / "checkpoint-2" / seat_trainer.STATE
        assert (tmp_path / "whole" / state).read_bytes() == (tmp_path / "resumed" / state).read_bytes()


def test_a_resting_seat_keeps_its_weights_and_its_moments_whatever_the_weight_decay(base: Path, tmp_path: Path) -> None:
    play_duel(tmp_path / "run", base, rounds=3, preset=preset(weight_decay=0.5, schedule="alternating"))
    coder, tester = tmp_path / "run" / "coder", tmp_path / "run" / "tester"
    assert not same_weights(coder / "checkpoint-1", base)
    assert same_weights(coder / "checkpoint-2", coder / "checkpoint-1")
    assert same_moments(coder / "checkpoint-2", coder / "checkpoint-1")
    assert not same_weights(coder / "checkpoint-3", coder / "checkpoint-2")
    assert same_weights(tester / "checkpoint-1", base)
    assert not moments(tester / "checkpoint-1"), "a seat that has never learnt has no moments"
    assert not same_weights(tester / "checkpoint-2", base)
    assert same_weights(tester / "checkpoint-3", tester / "checkpoint-2")
    assert same_moments(tester / "checkpoint-3", tester / "checkpoint-2")


def test_a_round_that_teaches_nothing_moves_nothing_whatever_the_weight_decay(base: Path, tmp_path: Path) -> None:
    """The coder is paid the same for everything; the tester learns as ever."""
    dropping = preset(weight_decay=0.5, algorithm=Algorithm(zero_variance="drop"))
    play_duel(tmp_path / "run", base, rounds=1, preset=dropping, wrappers={"coder": paid_alike})
    assert same_weights(tmp_path / "run" / "coder" / "final", base)
    assert not same_weights(tmp_path / "run" / "tester" / "final", base)


def test_a_program_without_a_score_is_left_out_of_the_loss_with_its_divergence(base: Path, tmp_path: Path) -> None:
    """Every second program has no score: half of the rows are masked; the loss is a mean over the others' tokens."""
    seen: list[Any] = []

    def watched(seat: str, trainer: Any) -> None:
        compute = trainer._compute_loss
        if seat == "coder":
            trainer._compute_loss = lambda model, inputs: [seen.append(inputs), compute(model, inputs)][1]

    play_duel(tmp_path / "run", base, rounds=1, preset=preset(), wrappers={"coder": half_paid}, on_built=watched)
    (batch,) = seen
    left_out = (batch["tool_mask"] == 0).all(dim=1)
    assert left_out.sum() == len(left_out) / 2 == 4
    assert batch["num_items_in_batch"] == batch["completion_mask"][~left_out].sum()


def half_paid(score: Any) -> Any:
    return lambda *arguments: [None if row % 2 else reward for row, reward in enumerate(score(*arguments))]


def test_the_papers_presets_take_vllms_samples_as_the_models_own(base: Path, tmp_path: Path) -> None:
    """Samples come with log-probabilities that are far off, as an engine's could be. TRL's default drops them all."""
    papers = {name: value for name, value in load_preset("1.5b").grpo.of("coder").items() if name.startswith("vllm_")}
    trls = {name: GRPOConfig.__dataclass_fields__[name].default for name in papers}
    parts = preset()
    play_duel(tmp_path / "own", base, rounds=1, preset=parts)
    for name, values in (("paper", papers), ("trl", trls)):
        told = dataclasses.replace(parts, grpo=parts.grpo.changed(values))
        play_duel(tmp_path / name, base, rounds=1, preset=told, on_built=sampled_elsewhere)
    for seat in SEATS:
        moved = distance(base, tmp_path / "own" / seat / "final")
        assert moved > 0
        assert distance(tmp_path / "own" / seat / "final", tmp_path / "paper" / seat / "final") < 0.1 * moved
        assert same_weights(tmp_path / "trl" / seat / "final", base)
        assert records(tmp_path / "paper", "seat", seat)[0]["sampling_gap"] > 1, "it is measured all the same"


def sampled_elsewhere(seat: str, trainer: Any) -> None:
    """As if vLLM had sampled, and had found every token very unlikely."""
    generate = trainer._generate

    def sampled(prompts: Any) -> Any:
        trainer.use_vllm = False
        found = list(generate(prompts))
        found[4] = [[-20.0] * len(tokens) for tokens in found[1]]
        trainer.use_vllm = True
        return tuple(found)

    trainer._generate = sampled


def paid_alike(score: Any) -> Any:
    return lambda *arguments: [0.5 for _ in score(*arguments)]


def moments(checkpoint: Path) -> dict[int, dict[str, torch.Tensor]]:
    found: dict[int, dict[str, torch.Tensor]] = torch.load(checkpoint / "optimizer.pt")["state"]
    return found


def same_moments(one: Path, other: Path) -> bool:
    a, b = moments(one), moments(other)
    return a.keys() == b.keys() and all(torch.equal(a[i][name], b[i][name]) for i in a for name in a[i]) and bool(a)


def test_rows_that_are_dropped_leave_the_loss_and_its_mean() -> None:
    """Rows of 2 and 3 tokens; the second is dropped: 2 tokens are left."""
    batch = {"completion_mask": torch.tensor([[1, 1, 0], [1, 1, 1]]), "num_items_in_batch": torch.tensor(5)}
    trainer = SeatTrainer.__new__(SeatTrainer)
    trainer.accelerator = Alone()
    trainer._mask(torch.tensor([False, True]), batch)
    assert batch["tool_mask"].tolist() == [[1, 1, 1], [0, 0, 0]]
    assert batch["num_items_in_batch"] == 2
    batch["tool_mask"][0, 0] = 0
    trainer._mask(torch.tensor([False, True]), batch)
    assert batch["num_items_in_batch"] == 1, "what was masked before stays masked"


class Alone:
    """One process gathers its own."""

    def gather(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor


@pytest.mark.parametrize("text", ["assert solve([3, -4]) == -1\nassert solve([]) == 0", "", "f(1)", "  x\n\n y"])
def test_offsets_of_tokens_cover_the_text_as_it_is_decoded(text: str, base: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(base)
    tokens = [*tokenizer(text)["input_ids"], tokenizer.eos_token_id]
    offsets = token_offsets(tokenizer, tokens)
    assert len(offsets) == len(tokens)
    decoded = tokenizer.decode(tokens, skip_special_tokens=True)
    assert "".join(decoded[start:end] for start, end in offsets) == decoded == text
    for (start, end), token in zip(offsets, tokens, strict=True):
        assert decoded[start:end] == tokenizer.decode([token], skip_special_tokens=True)


def test_a_character_of_several_tokens_belongs_to_the_last_one() -> None:
    offsets = token_offsets(Bytes(), list("aé€b".encode()))
    assert offsets == [(0, 1), (1, 1), (1, 2), (2, 2), (2, 2), (2, 3), (3, 4)]


class Bytes:
    """A tokenizer whose tokens are bytes."""

    def decode(self, tokens: list[int], **_: Any) -> str:
        return bytes(tokens).decode(errors="replace")


def test_each_test_of_a_suite_has_its_own_advantage() -> None:
    """Two suites of one group: tests 1, 0 | 1, no score. Mean 1/2 over the scored tests, without a scale."""
    spans = ((0, 2), (3, 5))
    rows = [
        RowLabel("g", "q", "tester", spans, (1.0, 0.0)),
        RowLabel("g", "q", "tester", spans, (1.0, 1.0)),
        RowLabel("g", "q", "tester"),
    ]
    trainer = SeatTrainer.__new__(SeatTrainer)
    trainer.estimator = advantages.estimator_of(Algorithm(scale="none"))
    trainer._gathered_rewards = torch.tensor([0.5, torch.nan, 0.5])
    assert trainer._test_advantages(rows) == [[0.5, -0.5], [0.0, 0.0], []]
