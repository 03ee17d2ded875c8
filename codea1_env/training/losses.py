"""Your own loss instead of TRL's: `algorithm: {loss_type: "module:Name"}`, for both seats.

    def reinforce(batch: LossBatch):
        return -(batch.advantages * batch.logps * batch.mask).sum() / batch.tokens

`Name` is a function of a `LossBatch`, or a class whose objects are. TRL's own losses do not use this.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from codea1_env.class_paths import is_class_path, load_name, made, require_taken
from codea1_env.configuration.algorithm import Algorithm
from codea1_env.errors import ConfigurationError, PlayerError
from codea1_env.extras import extra

with extra("train", "training needs"):
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class LossBatch:
    """The rows of one forward and backward pass of one rank. Shapes: (rows, tokens), tokens of responses only."""

    logps: Tensor
    """Log-probabilities of the sampled tokens under the model as it is, with their gradient."""
    old_logps: Tensor
    """The same before the round's first step, without gradient."""
    ref_logps: Tensor | None
    """Under the base model; None where `grpo.beta` is 0, and then no base model is held."""
    advantages: Tensor
    """(rows, 1); (rows, tokens) under `credit: test`."""
    mask: Tensor
    """1 where a token counts: 0 for padding and for rows that are left out."""
    sampling_ratio: Tensor | None
    """Old probability over the one that vLLM sampled with, clipped as TRL does; None where `generate` sampled."""
    tokens: Tensor
    """Divide a sum over tokens by it for the mean over all tokens of the optimizer step, on all ranks and passes."""
    arguments: Any
    """The GRPOConfig: `beta`, `epsilon`, `epsilon_high`, ..., for a loss that looks at them."""

    @property
    def kl(self) -> Tensor:
        """Estimate (k3) of the divergence from the base model, token by token; 0 where `grpo.beta` is 0."""
        if self.ref_logps is None:
            return self.logps.new_zeros(self.logps.shape)
        return divergence(self.logps, self.ref_logps)


def divergence(logps: Tensor, ref_logps: Tensor) -> Tensor:
    """Divergence from the base model for each token, in nats: the k3 estimate, which is never negative. All shapes are
    equal."""
    gap = ref_logps - logps
    return gap.exp() - gap - 1


Loss = Callable[[LossBatch], Tensor]
"""Maps a batch to a scalar with a gradient. With accumulated gradients, the mean over the passes is learnt."""


def own_loss(algorithm: Algorithm) -> Loss | None:
    """The loss of one's own that the configuration names; None where it is TRL's. Raises ConfigurationError."""
    name = algorithm.loss_type
    if not is_class_path(name):
        return None
    loaded: Any = load_name(name, "algorithm.loss_type", algorithm.path)
    loss: Any = loaded
    if isinstance(loaded, type):
        loss = made(loaded, name="algorithm.loss_args", arguments=algorithm.loss_args)
    elif callable(loaded):
        require_taken(loaded, "a LossBatch", name="algorithm.loss_args", arguments=algorithm.loss_args)
        loss = functools.partial(loaded, **algorithm.loss_args)
    if not callable(loss):
        raise ConfigurationError(f"algorithm.loss_type must name a function or a class of callables, got {name}")
    return cast(Loss, loss)


def likelihood(batch: LossBatch) -> Tensor:
    """The negative log-likelihood, a mean over tokens: of what is learnt as it is."""
    return -(batch.logps * batch.mask).sum() / batch.tokens


def value_of(loss: Loss, batch: LossBatch) -> Tensor:
    """What a loss comes to. Raises ConfigurationError for anything but a scalar with a gradient."""
    value: object = loss(batch)
    if isinstance(value, Tensor) and value.dim() == 0 and value.requires_grad:
        return value
    got = f"{value!r:.80}"
    if isinstance(value, Tensor):
        got = f"a tensor of {tuple(value.shape)} {'with' if value.requires_grad else 'without'} a gradient"
    raise ConfigurationError(
        f"algorithm.loss_type must return a tensor of one number, (), with a gradient to batch.logps, got {got}"
    )


def require_finite(norm: Any, seat: str) -> None:
    """Raise PlayerError for a gradient that would make a model useless. `norm`: its norm, before it is clipped."""
    if not math.isfinite(float(norm)):
        raise PlayerError(
            f"the gradient of the {seat} must be finite, got a norm of {float(norm)}, so the step was not taken; "
            "correct a loss of your own, or lower grpo.learning_rate, and --resume the run from its last checkpoint"
        )
