"""Where the policies of a run live: in this process, or in processes of their own under Ray. The loop is the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from codea1_env.configuration.presets import Preset
from codea1_env.language_models.loading import load_tokenizer
from codea1_env.training.models.sampling import load_model
from codea1_env.training.models.shared_base import shared_base
from codea1_env.training.policies.policy import Policy
from codea1_env.training.run.run_dir import Run
from codea1_env.training.samples import SeatRun


class Backend(Protocol):
    """Opens policies and saved models."""

    tokenizer: Any
    """The base's."""

    def policy(self, run: SeatRun) -> Policy:
        """The policy that learns in a seat."""

    def model(self, role: str, directory: Path) -> Any:
        """A saved model: a `Model`, which can be let go. `role`: coder or tester, whose place it has."""


class LocalBackend:
    """Everything in this process."""

    def __init__(self, preset: Preset, base: Path) -> None:
        self._preset = preset
        is_packed = preset.trainer == "packed"
        self.tokenizer = shared_base(base, preset).model.tokenizer if is_packed else load_tokenizer(base)

    def policy(self, run: SeatRun) -> Policy:
        return open_policy(run)

    def model(self, role: str, directory: Path) -> Any:
        device = "cuda" if self._preset.placement.of(role).gpus_per_node else "cpu"
        return load_model(directory, self._preset, device)


def open_policy(run: SeatRun) -> Policy:
    """The policy that `trainer` names, in this process."""
    if run.preset.trainer == "packed":
        from codea1_env.training.policies.packed import PackedPolicy

        return PackedPolicy(run)
    from codea1_env.training.policies.trl_policy import TrlPolicy  # only now: the packed policy needs no TRL trainer

    return TrlPolicy(run)


@contextmanager
def open_backend(run: Run, base: Path) -> Iterator[Backend]:
    """As `--engine` says; at the end its processes are gone."""
    if run.engine == "ray":
        from codea1_env.training.policies.remote import open_ray_backend  # only now: it needs the extra `ray`

        with open_ray_backend(run, base) as backend:
            yield backend
        return
    yield LocalBackend(run.preset, base)
