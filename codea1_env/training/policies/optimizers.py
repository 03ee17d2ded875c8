"""The optimizer that a configuration names: AdamW with the arguments of the section grpo, or a class of one's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from codea1_env.class_paths import is_class_path, load_class, require_taken
from codea1_env.configuration.algorithm import Algorithm
from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra

with extra("train", "training needs"):
    import torch


def own_optimizer(algorithm: Algorithm, parameters: Iterable[Any], rate: float) -> torch.optim.Optimizer | None:
    """The optimizer of one's own; None where it is AdamW. Raises ConfigurationError."""
    name = algorithm.optimizer
    if not is_class_path(name):
        return None
    kind = load_class(name, torch.optim.Optimizer, "algorithm.optimizer", algorithm.path)
    given, arguments = list(parameters), {"lr": rate, **algorithm.optimizer_args}
    require_taken(kind, given, name="algorithm.optimizer_args", arguments=arguments)
    try:
        return kind(given, **arguments)
    except (TypeError, ValueError) as error:
        if kind.__module__.partition(".")[0] != "torch":  # an error of one's own has a traceback
            raise
        raise ConfigurationError(
            f"algorithm.optimizer_args must be what {name} takes, got {dict(algorithm.optimizer_args)}: {error}"
        ) from None


def require_optimizer(algorithm: Algorithm) -> None:
    """Raise ConfigurationError where the optimizer cannot be made, or is one of torch's that cannot step."""
    parameter = torch.nn.Parameter(torch.zeros(1, 1))
    optimizer = own_optimizer(algorithm, [parameter], rate=1e-6)
    if optimizer is None or not type(optimizer).__module__.startswith("torch."):
        return
    parameter.grad = torch.zeros_like(parameter)
    try:
        optimizer.step()
    except (TypeError, RuntimeError) as error:
        must = "must step by a dense gradient, without a closure"
        raise ConfigurationError(f"algorithm.optimizer {must}, got {algorithm.optimizer}: {error}") from None
