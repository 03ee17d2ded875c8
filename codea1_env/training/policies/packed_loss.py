"""What a step of the packed trainer makes small: TRL's clipped losses token by token, or a loss of one's own by groups.

The old log-probabilities are the sampler's; the divergence term, of weight `grpo.beta`, is from the base alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from codea1_env.extras import extra
from codea1_env.training.losses import Loss, LossBatch, divergence, value_of

with extra("train", "training needs"):
    import torch
    from torch import Tensor
    from torch.nn.utils.rnn import pad_sequence


@dataclass(frozen=True, slots=True)
class PackedRow:
    """One response with its advantage."""

    tokens: Sequence[int]
    old: Sequence[float]
    """Log-probabilities, by the sampler; empty for a response that no model sampled."""
    advantage: float
    base: Sequence[float] = ()
    """Log-probabilities, by the base; empty where `grpo.beta` is 0."""


@dataclass(frozen=True, slots=True)
class StepShape:
    """Of one optimizer step, what losses are divided by."""

    rows: int
    tokens: float
    """That count."""
    longest: int
    """Tokens that a response may have."""
    passes: int = 1
    """Of the learner, each over a group or a part of one, as many tokens as it takes at once."""


def divisor(loss_type: str, row: PackedRow, step: StepShape) -> float:
    """Of the loss of one of the row's tokens: the `PACKED_LOSSES` differ in this alone."""
    if loss_type == "grpo":
        return len(row.tokens) * step.rows
    if loss_type == "dr_grpo":
        return step.rows * step.longest
    return step.tokens  # dapo, bnpo: the mean over tokens


class Clipped:
    """Of one group: the clipped surrogate, summed over tokens."""

    by_token = True

    def __init__(self, group: Sequence[PackedRow], loss_type: str, step: StepShape, arguments: Any) -> None:
        """`arguments`: epsilon, epsilon_high, delta, beta and use_bias_correction_kl of a GRPOConfig."""
        self.total = 0.0
        """Of the calls so far."""
        self._group = group
        self._weights = [1.0 / divisor(loss_type, row, step) for row in group]
        self._low = arguments.epsilon
        self._high = arguments.epsilon if arguments.epsilon_high is None else arguments.epsilon_high
        self._delta = arguments.delta
        self._beta, self._is_corrected = arguments.beta, arguments.use_bias_correction_kl

    def __call__(self, rows: Sequence[int], log_probs: Tensor, start: int) -> Tensor:
        here = slice(start, start + len(log_probs))
        old = _flat([self._group[row].old for row in rows])[here]
        advantages = self._spread(rows, [row.advantage for row in self._group])[here]
        ratio = (log_probs - old).exp()
        clipped = ratio.clamp(1 - self._low, 1 + self._high)
        if self._delta is not None:
            ratio = ratio.clamp(max=self._delta)
        losses = -torch.min(ratio * advantages, clipped * advantages)
        if self._beta:
            away = divergence(log_probs, _flat([self._group[row].base for row in rows])[here])
            losses = losses + self._beta * (away * (log_probs - old).exp() if self._is_corrected else away)
        loss = (losses * self._spread(rows, self._weights)[here]).sum()
        self.total += loss.detach().item()
        return loss

    def _spread(self, rows: Sequence[int], values: Sequence[float]) -> Tensor:
        """One value a row to one a token."""
        return torch.tensor([values[row] for row in rows for _ in self._group[row].tokens])


def _flat(rows: Sequence[Sequence[float]]) -> Tensor:
    return torch.tensor([value for row in rows for value in row])


def _padded(rows: Sequence[Sequence[float]]) -> Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True)


class Own:
    """Of one group: a loss that the configuration names. Sees the rows of one pass at once, and learns the mean over
    the passes of the step, as with TRL's accumulation of gradients."""

    by_token = False

    def __init__(self, group: Sequence[PackedRow], loss: Loss, step: StepShape, arguments: Any) -> None:
        self.total = 0.0
        self._group, self._loss, self._step, self._arguments = group, loss, step, arguments

    def __call__(self, rows: Sequence[int], log_probs: Tensor, start: int) -> Tensor:
        chosen = [self._group[row] for row in rows]
        parts = log_probs.split_with_sizes([len(row.tokens) for row in chosen])
        value = value_of(
            self._loss,
            LossBatch(
                logps=pad_sequence(list(parts), batch_first=True),
                old_logps=_padded([row.old for row in chosen]),
                ref_logps=_padded([row.base for row in chosen]) if chosen[0].base else None,
                advantages=torch.tensor([[row.advantage] for row in chosen]),
                mask=pad_sequence([torch.ones(len(row.tokens)) for row in chosen], batch_first=True),
                sampling_ratio=None,
                tokens=torch.tensor(self._step.tokens / self._step.passes),
                arguments=self._arguments,
            ),
        )
        loss: Tensor = value / self._step.passes
        self.total += loss.detach().item()
        return loss
