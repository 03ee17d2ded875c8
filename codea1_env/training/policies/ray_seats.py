"""A seat's actor under Ray: one rank of its policy, and saved models beside it.

torch is imported there when its place in the seat is known, since that decides which devices it sees. Does not decide
anything about the run.
"""

from __future__ import annotations

import os
import socket
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray

from codea1_env.class_paths import look_in
from codea1_env.errors import SeatFailed
from codea1_env.whole_files import RunLock

if TYPE_CHECKING:
    from codea1_env.configuration.presets import Preset
    from codea1_env.training.samples import Prompt, SamplerSettings, SeatRun

WORLD = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Environment of a rank. A seat of one rank must have none of it: its trainer would wait for others."""


@dataclass(frozen=True, slots=True)
class RankPlace:
    """Where an actor runs."""

    node: str
    """Ray's id of its machine."""
    process: int
    host: str
    free_port: int
    gpus: tuple[str, ...]
    """Ids of its GPUs on that machine."""


class SeatActor:
    """One rank of one seat. What it is asked it does in order; a failure is returned, and everything after it fails."""

    def __init__(self, seat: str, preset: Preset) -> None:
        self._seat, self._preset = seat, preset
        self._policy: Any = None
        self._models: dict[str, Any] = {}
        self._updates: Sequence[Any] = ()
        self._failed: SeatFailed | None = None

    def place(self) -> RankPlace:
        with socket.socket() as free:
            free.bind(("", 0))
            port = free.getsockname()[1]
        context = ray.get_runtime_context()
        gpus = tuple(map(str, context.get_accelerator_ids().get("GPU", ())))
        return RankPlace(context.get_node_id(), os.getpid(), ray.util.get_node_ip_address(), port, gpus)

    def join(self, environment: Mapping[str, str], directory: Path) -> None:
        """Take the place in the seat that `environment` says; only then load what trains. `directory`: the run's."""
        for name in WORLD:
            os.environ.pop(name, None)
        os.environ.update(environment)
        # Held to the end: should the first process be killed, nobody goes on with the run before this one has ended.
        self._lock = RunLock(directory, alone=False)
        from codea1_env.training.process import prepare_process

        prepare_process(self._preset.threads)
        _accept_numbered_cpus()
        look_in(self._preset.algorithm.path)

    def open(self, run: SeatRun) -> SeatFailed | None:
        """Make the policy."""
        from codea1_env.training.policies.backend import open_policy

        def make() -> None:
            self._policy = open_policy(run)

        failed: SeatFailed | None = self._tried(make)
        return failed

    def call(self, method: str, *arguments: Any) -> Any:
        """A method of the policy, or SeatFailed. Updates stay here, and are named by their place."""

        def work() -> Any:
            if method == "updates":
                self._updates = self._policy.updates(*arguments)
                return None
            if method == "backward":
                place, loss = arguments
                return self._policy.backward(self._updates[place], loss)
            return getattr(self._policy, method)(*arguments)

        return self._tried(work)

    def answer(self, directory: Path | None, prompts: Sequence[Prompt], n: int, how: SamplerSettings) -> Any:
        """Of a saved model, or of the policy as it is; or SeatFailed."""
        from codea1_env.training.models.sampling import load_model

        def work() -> Any:
            if directory is None:
                return self._policy.answer(prompts, n, how)
            if str(directory) not in self._models:
                device = "cuda" if self._preset.placement.of(self._seat).gpus_per_node else "cpu"
                self._models[str(directory)] = load_model(directory, self._preset, device)
            return self._models[str(directory)].answer(prompts, n, how)

        return self._tried(work)

    def let_go(self, directory: Path) -> None:
        if model := self._models.pop(str(directory), None):
            model.let_go()

    def _tried(self, work: Any) -> Any:
        if self._failed is not None:
            return self._failed
        try:
            return work()
        except BaseException as error:  # carried to the recipe, which raises it
            self._failed = failure(f"the {self._seat}", error)
            return self._failed


def failure(who: str, error: BaseException) -> SeatFailed:
    """One line of what went wrong; the traceback is its note."""
    failed = SeatFailed(f"{who} failed: {type(error).__name__}: {' '.join(str(error).split())[:1000]}")
    failed.add_note("".join(traceback.format_exception(error)))
    return failed


def _accept_numbered_cpus() -> None:
    """Let checkpoints be read where ranks share a CPU: accelerate calls it cpu:0, which torch does not know. Once."""
    import torch

    torch.serialization.register_package(
        5, lambda storage: None, lambda storage, location: storage if location.startswith("cpu:") else None
    )
