"""The two seats of the duel, each with a trainer of its own: a `trl.GRPOTrainer` (`trainer.py`).

The trainer is TRL's, or, for small models on CPUs, that of `packed.py`, which has the same face.

The coder has a plain reward function that hands its programs over and waits for their rewards. The tester has a rollout
function that takes the programs, samples suites and returns the selected ones. Neither knows the other.

Does not promise to work with any TRL but the pinned one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codea1_env.class_paths import is_class_path
from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra
from codea1_env.language_models.loading import load_tokenizer
from codea1_env.language_models.rollouts import Finish
from codea1_env.players.chat import said_text
from codea1_env.players.templates import Messages, begun
from codea1_env.problems.problem import Problem
from codea1_env.training.config.batches import SeatRows, seat_rows
from codea1_env.training.config.placement import SEATS, trainer_arguments
from codea1_env.training.config.presets import Preset
from codea1_env.training.grpo.past_opponents import PastOpponents
from codea1_env.training.grpo.sampled import SampledResponse
from codea1_env.training.grpo.trainer import open_trainer
from codea1_env.training.models.chat import Chat, chat_of, tokens_of
from codea1_env.training.models.lora import adapter_config, merged
from codea1_env.training.round.exchange import Exchange
from codea1_env.training.round.rounds import Attack, Rewards, RoundScore, in_places, put_to_tester
from codea1_env.training.round.rules import RoundRules
from codea1_env.training.row_labels import RowLabel
from codea1_env.training.run.callbacks import RoundClock, SeatCallback, SeatHooks, SeatRun
from codea1_env.training.run.ranks import from_first, gathered, own_share

with extra("train", "training needs"):
    import torch
    from datasets import Dataset
    from transformers import Trainer, get_scheduler
    from trl import GRPOConfig

Score = Callable[[int, Sequence[Problem], Sequence[str]], Rewards]
"""(round, problems, responses), one row each in group order, to one reward a row."""


def coder_trainer(run: SeatRun, hooks: SeatHooks, score: Score, asked: Sequence[Problem]) -> Any:
    """The coder's trainer. `asked`: the problems of all rounds in order, `questions` a round."""
    by_id = {problem.problem_id: problem for problem in asked}
    clock, chat = RoundClock(), chat_of(run.preset)
    prompts = [chat.coder(problem) for problem in asked]
    begins = {problem.problem_id: begun(messages) for problem, messages in zip(asked, prompts, strict=True)}
    rows: dict[str, list[Any]] = {"prompt": prompts, "problem_id": [problem.problem_id for problem in asked]}

    def duel(completions: Any, problem_id: list[str], trainer_state: Any, **_: Any) -> Rewards:
        clock.hand_over()
        responses = [
            begins[name].whole(messages[0]["content"]) for name, messages in zip(problem_id, completions, strict=True)
        ]
        round_index = trainer_state.global_step // run.preset.round.updates
        rows = gathered(list(zip(problem_id, responses, strict=True)))
        problems, texts = [by_id[name] for name, _ in rows], [text for _, text in rows]
        rewards = own_share(from_first(lambda: score(round_index, problems, texts)))
        clock.resume()
        return rewards

    arguments = grpo_arguments(run, "coder", seat_rows(run.preset, "coder"))
    parts = trainer_parts(run, arguments, rows, duel, rollout=None)
    return open_trainer(run, "coder", program_label, SeatCallback(run, hooks, clock), **parts)


class TesterTurn:
    """The tester's side of one round, on every rank: what a recipe calls, in this order."""

    def __init__(self, run: SeatRun, trainer: Any, clock: RoundClock, past: PastOpponents) -> None:
        self.round_index = trainer.state.global_step // run.preset.round.updates
        """From 0."""
        self.suites: list[list[SampledSuite]] = []
        """Against each program, those of the past at the end, with the tokens that are learnt from."""
        self._run, self._trainer, self._clock, self._past = run, trainer, clock, past
        self._old: tuple[Attack, ...] = ()

    def programs(self, meeting: Exchange) -> tuple[Attack, ...]:
        """The round's programs, once the coder has written them, N a question."""
        attacks = from_first(lambda: meeting.take_attacks(self.round_index))
        self._clock.start()  # the wait for the coder is not ours
        return attacks

    def sample(self, attacks: Sequence[Attack]) -> list[list[str | None]]:
        """M suites against each program that is put to the tester, as text, and as many against the past's."""
        shape, chat = self._run.preset.round, chat_of(self._run.preset)
        self._old = self._past.attacks(self.round_index, [attack.problem for attack in attacks[:: shape.programs]])
        places = put_to_tester(attacks, shape.programs, shape.attacked, rules_of(self._run))
        share = own_share((*(attacks[place] for place in places), *self._old))
        rows = gathered(sample_suites(self._trainer, share, shape.suites, chat, shape.tester_prompt_tokens))
        self.suites = in_places(rows, places, len(attacks))
        return texts_of(self.suites)

    def score(self, meeting: Exchange, attacks: Sequence[Attack], suites: Sequence[Sequence[str | None]]) -> RoundScore:
        """What both seats earn; the coder is told, too. The tester learns from `RoundScore.tester`."""
        played = self._past.play(self.round_index, attacks, self._old, suites[len(attacks) :])
        self._clock.hand_over()
        own, rules = suites[: len(attacks)], rules_of(self._run)
        score = from_first(lambda: meeting.submit_suites(self.round_index, own, rules, played))
        self._past.learn(self.round_index, score)
        self._clock.resume()
        return score


def tester_trainer(run: SeatRun, hooks: SeatHooks, play: Callable[[TesterTurn], RoundScore]) -> Any:
    """The tester's trainer. `play`: a round of it, from the coder's programs to the score."""
    clock, shape = RoundClock(), run.preset.round
    past = PastOpponents(run, coder=run.output.parent / "coder", tester=run.output)

    def attack(prompts: Sequence[Any], trainer: Any) -> dict[str, list[Any]]:
        turn = TesterTurn(run, trainer, clock, past)
        score = play(turn)
        selected = own_share(score.tester)
        assert len(selected) == len(prompts), "the placeholder data set has one row per selected suite"
        return batch_of([BatchRow(turn.suites[row.attack][row.suite], row.reward, row.label) for row in selected])

    arguments = grpo_arguments(run, "tester", seat_rows(run.preset, "tester"))
    # The true prompts are only known in the round: these rows say how many there will be.
    placeholders = {"prompt": ["(a program of this round)"] * (shape.questions * shape.attacked * run.preset.rounds)}
    parts = trainer_parts(run, arguments, placeholders, arena_reward, rollout=attack)
    return open_trainer(run, "tester", suite_label, SeatCallback(run, hooks, clock), keep=past.save, **parts)


def arena_reward(completions: Any, arena_reward: Rewards, **_: Any) -> Rewards:
    """TRL's reward function where rows bring their rewards along."""
    return arena_reward


def rules_of(run: SeatRun) -> RoundRules:
    """What decides in a run's rounds beside the rewards."""
    preset = run.preset
    return RoundRules(preset.options, run.seed, preset.evaluation.hidden_rounds, preset.algorithm.credit)


@dataclass(frozen=True, slots=True)
class SampledSuite:
    """One response of the tester, with the tokens that it trains on."""

    prompt: list[int]
    response: list[int]
    text: str | None
    """None: the prompt was too long, the row only keeps its place."""
    logprobs: list[float] | None = None
    finish: Finish | None = None
    """Both as in `SampledResponse`."""


def sample_suites(
    trainer: Any, attacks: Sequence[Attack], suites: int, chat: Chat, longest: int = 0
) -> list[list[SampledSuite]]:
    """`suites` samples per attack; none where the prompt is over `longest` tokens (0: no limit)."""
    asking = [chat.tester(attack.problem, attack.program) for attack in attacks]
    return sample_texts(trainer, asking, suites, longest, chat.stop_at_tests)


def sample_texts(
    trainer: Any, conversations: Sequence[Messages], samples: int, longest: int = 0, tests: int = 0
) -> list[list[SampledSuite]]:
    """`samples` responses to each conversation; none where the prompt is over `longest` tokens (0: no limit). `tests`:
    that a response ends with (0: it goes on).

    Such a prompt is replaced by a short one whose samples are thrown away: every rank must sample as many rows.
    """
    tokenizer = trainer.processing_class
    prompts: list[list[int]] = []
    for messages in conversations:
        prompt = tokens_of(tokenizer, messages)
        prompts += [prompt if not longest or len(prompt) <= longest else []] * samples
    instead = [tokenizer.eos_token_id or 0]  # not every tokenizer names an end: any token will do
    begins = [begin for begin in map(begun, conversations) for _ in range(samples)]
    responses: list[SampledResponse] = trainer.sample(
        [prompt or instead for prompt in prompts], samples, [begin.answer for begin in begins], tests
    )
    texts = [said_text(tokenizer, a.tokens, begin) for a, begin in zip(responses, begins, strict=True)]
    rows = [
        SampledSuite(
            prompt or instead,
            response.tokens,
            begin.whole(text) if prompt else None,
            response.logprobs,
            response.finish,
        )
        for prompt, response, begin, text in zip(prompts, responses, begins, texts, strict=True)
    ]
    return [rows[start : start + samples] for start in range(0, len(rows), samples)]


def texts_of(sampled: Sequence[Sequence[SampledSuite]]) -> list[list[str | None]]:
    """What the arena is given: one row a program."""
    return [[suite.text for suite in group] for group in sampled]


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One row of a batch that brings its reward along."""

    sampled: SampledSuite
    """A program or a suite, with its tokens."""
    reward: float | None
    label: RowLabel
    learns: bool = True
    """Its role learns in this round."""


def batch_of(rows: Sequence[BatchRow]) -> dict[str, list[Any]]:
    """What TRL trains on. Rows without a score, and those of a role that rests, are masked out of the loss."""
    logprobs = [row.sampled.logprobs for row in rows if row.sampled.logprobs is not None]
    batch: dict[str, Any] = {
        "prompt_ids": [row.sampled.prompt for row in rows],
        "completion_ids": [row.sampled.response for row in rows],
        "logprobs": logprobs or None,  # all of one engine, or none
        "arena_reward": [row.reward for row in rows],
        "label": [row.label for row in rows],
    }
    if finishes := [row.sampled.finish for row in rows if row.sampled.finish is not None]:
        batch["finish"] = finishes
    kept = [row.learns and row.reward is not None for row in rows]
    if not all(kept):
        batch["env_mask"] = [[int(keep)] * len(row.sampled.response) for row, keep in zip(rows, kept, strict=True)]
    return batch


def program_label(row: Mapping[str, Any]) -> RowLabel:
    """The programs of a question are a group; no question comes twice in a round."""
    return RowLabel(group=row["problem_id"], question=row["problem_id"], seat="coder")


def suite_label(row: Mapping[str, Any]) -> RowLabel:
    """What the arena said of a suite."""
    label: RowLabel = row["label"]
    return label


def train(trainer: Any, run: SeatRun) -> None:
    """All rounds, or those after the checkpoint; leaves the final model and tokenizer in `output/final`.

    The trainer packed leaves an adapter there, and which base it lies beside.
    """
    model = trainer.model
    if run.resume_from and isinstance(trainer, Trainer) and getattr(model.config, "tie_word_embeddings", False):
        # Weights that are others' are not in a checkpoint: transformers ties them, and does not warn that they miss.
        model._keys_to_ignore_on_save = list(model._tied_weights_keys or ())
    trainer.train(resume_from_checkpoint=str(run.resume_from) if run.resume_from else None)
    final = run.output / "final"
    if isinstance(trainer, Trainer) and not run.preset.lora.rank:
        trainer.save_model(str(final))  # with its tokenizer, and by rank 0 where there are several
    else:
        merged(trainer.model).save_pretrained(final)
        trainer.processing_class.save_pretrained(final)


def grpo_arguments(run: SeatRun, seat: str, rows: SeatRows) -> Any:
    """TRL's configuration of what `told_arguments` returns. Raises ConfigurationError."""
    try:
        return GRPOConfig(**told_arguments(run, seat, rows))
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"grpo must be what TRL takes for the {seat}, got: {error}") from error


def told_arguments(run: SeatRun, seat: str, rows: SeatRows) -> dict[str, Any]:
    """The section `grpo`, and what the run decides. Raises ConfigurationError where both say something.

    `seat`: coder, tester or player.
    """
    preset, memory = run.preset, run.preset.memory
    placed = preset.placement.of(run.output.name)
    told = trainer_arguments(placed)
    told["bf16"] |= memory.bfloat16
    if placed.vllm == "colocate":
        told["vllm_max_model_length"] = preset.model.context  # or vLLM keeps room for the longest that the model could
    told["gradient_checkpointing"] |= memory.gradient_checkpointing and placed.strategy != "fsdp2"  # it has its own
    # Frozen under adapters, weights may be rounded; trained ones may not: steps of 1e-6 would be lost.
    dtype = "bfloat16" if told["bf16"] and preset.lora.rank else "float32"
    told |= {
        "output_dir": str(run.output),
        "seed": run.seed,
        "max_steps": preset.rounds * preset.round.updates,
        "per_device_train_batch_size": rows.per_device,
        "gradient_accumulation_steps": rows.accumulation,
        "steps_per_generation": rows.updates * rows.accumulation,
        "num_generations": rows.group,
        "shuffle_dataset": False,  # the schedule of questions is drawn beforehand, so that a resumed run follows it
        "model_init_kwargs": {"dtype": dtype, "attn_implementation": "sdpa"},
        "logging_steps": preset.round.updates,
        "save_strategy": "steps",
        "save_steps": preset.save_rounds * preset.round.updates,
        "save_total_limit": None,  # the run deletes old ones itself: the Trainer knows nothing of the other seat's
        "report_to": [],
        "disable_tqdm": True,
    }
    if not is_class_path(preset.algorithm.loss_type):
        told["loss_type"] = preset.algorithm.loss_type
    given = preset.grpo.of(seat)
    both = sorted(given.keys() & told.keys())
    if both:
        raise ConfigurationError(f"grpo: {both[0]} must be left to the run, which sets it, got {given[both[0]]!r}")
    return given | told


def require_schedules(preset: Preset) -> None:
    """Raise ConfigurationError where a seat's `lr_scheduler_type` cannot be built with its `lr_scheduler_kwargs`."""
    for seat in SEATS:
        given = preset.grpo.of(seat)
        kind, rest = given["lr_scheduler_type"], given.get("lr_scheduler_kwargs")
        optimizer = torch.optim.SGD([torch.zeros(1)], lr=given["learning_rate"])
        try:
            get_scheduler(kind, optimizer, given["warmup_steps"], preset.rounds * preset.round.updates, rest)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"grpo.lr_scheduler_kwargs must be what {kind} takes ({seat}), got {rest!r}: {error}"
            ) from None


def trainer_parts(
    run: SeatRun, arguments: Any, rows: dict[str, list[Any]], reward: Any, *, rollout: Any
) -> dict[str, Any]:
    """Arguments of GRPOTrainer."""
    return {
        "model": str(run.base),
        "args": arguments,
        "train_dataset": Dataset.from_dict(rows),
        "processing_class": load_tokenizer(run.base),
        "reward_funcs": reward,
        "rollout_func": rollout,
        "peft_config": adapter_config(run.preset.lora) if run.preset.trainer == "trl" else None,
    }
