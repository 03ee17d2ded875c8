"""What a run's records go to beside metrics.jsonl: TensorBoard files, and the trackers that TRL's `report_to` names.

Those are driven by transformers' own callbacks, in the one process that writes the metrics, with the run's names: both
seats and the arena are one run there, and the same under both engines. transformers puts `train/` before every name.
Does not log in to anything: that is the tracker's, by its own environment variables. A tracker that fails while the run
goes on is left out, with a warning: every number is on disk.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra

with extra("train", "training needs"):
    from transformers import TrainerControl, TrainerState, TrainingArguments
    from transformers.integrations import get_reporting_integration_callbacks

_log = logging.getLogger(__name__)

BOARD = "tensorboard"
"""Also its folder in a run's directory."""


class Trackers:
    """Everything that `report_to` names, for one run."""

    def __init__(
        self, names: Sequence[str], directory: Path, configuration: Mapping[str, Any], rounds_done: int
    ) -> None:
        """`configuration`: shown beside the curves. Raises ConfigurationError where a tracker cannot begin."""
        self._driven = [DrivenTracker(name, directory, configuration) for name in names if name != BOARD]
        self._board: Any = None  # after those, for it writes into the run's directory
        if BOARD in names:
            with extra("train", "TensorBoard files need"):
                from torch.utils.tensorboard import SummaryWriter  # only where it is asked for
            self._told = threading.excepthook
            threading.excepthook = self._not_of_the_board  # stays where the next line fails: its thread may be later
            self._board = SummaryWriter(str(directory / BOARD), purge_step=rounds_done)

    def log(self, name: str, rounds_done: int, values: Mapping[str, float]) -> None:
        """The numbers of one record. `name`: KIND or KIND/SEAT. Not from two threads at once."""
        if self._board is not None:
            for key, value in values.items():
                self._board.add_scalar(f"{name}/{key}", value, rounds_done)
        finite = {f"{name}/{key}": value for key, value in values.items() if math.isfinite(value)}
        for driven in self._driven:
            driven.log(rounds_done, finite)

    def _not_of_the_board(self, failed: threading.ExceptHookArgs) -> None:
        """What its thread fails with, as where there is no room, its next call raises here, too: said once."""
        if not type(failed.thread).__module__.startswith("tensorboard."):
            self._told(failed)

    def close(self) -> None:
        if self._board is not None:
            try:
                self._board.close()
            finally:
                threading.excepthook = self._told
        for driven in self._driven:
            driven.close()


class DrivenTracker:
    """One of transformers' reporting callbacks, told of a training that is this run."""

    def __init__(self, name: str, directory: Path, configuration: Mapping[str, Any]) -> None:
        """`name`: as in TRL's `report_to`. Raises ConfigurationError where it cannot begin."""
        self._name = name
        self._state, self._control = TrainerState(), TrainerControl()
        self._arguments = _RunArguments(directory, configuration)
        self._is_up = True
        try:
            (kind,) = get_reporting_integration_callbacks([name])
            self._callback: Any = kind()
            self._tell(self._callback.on_train_begin)
        except Exception as error:
            raise ConfigurationError(
                f"report_to: {name} must be ready to take a run, got {type(error).__name__}: {error}; see its own "
                "documentation, or leave it out"
            ) from error

    def log(self, rounds_done: int, values: Mapping[str, float]) -> None:
        """Numbers by their names."""
        self._state.global_step = rounds_done
        self._try(lambda: self._tell(self._callback.on_log, logs=dict(values)))

    def close(self) -> None:
        """Idempotent."""
        self._try(lambda: self._tell(self._callback.on_train_end))
        self._is_up = False

    def _tell(self, event: Callable[..., Any], **more: Any) -> None:
        event(self._arguments, self._state, self._control, model=None, **more)

    def _try(self, step: Callable[[], None]) -> None:
        if not self._is_up:
            return
        try:
            step()
        except Exception as error:
            self._is_up = False
            _log.warning("%s failed, and the run continues without it: %r", self._name, error)


class _RunArguments(TrainingArguments):  # type: ignore[misc]  # the base class has no types
    """What the callbacks ask a trainer's arguments for; their configuration is the run's."""

    def __init__(self, directory: Path, configuration: Mapping[str, Any]) -> None:
        super().__init__(
            output_dir=str(directory),
            run_name=directory.resolve().name,
            project="codea1",
            trackio_static_space_id=False,
            report_to=[],
            use_cpu=True,
        )
        self._configuration = dict(configuration)

    def to_dict(self) -> dict[str, Any]:
        return self._configuration
