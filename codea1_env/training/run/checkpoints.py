"""Checkpoints of the seats: when one is complete, which round all seats have, which ones may go, and whether a run's
configuration goes with those that it would go on from: config.yaml may be edited in between.

A checkpoint is complete when `complete.json`, written last, lists every file of it as it is on disk. Everything is on
disk, not only on its way there, before that file is. Does not promise to notice a change inside a file of more than
DIGEST_BYTES: of those only the size is compared.

What would be another training or a traceback is refused: steps, trainer, adapter, past opponents. Learning rates and
the like may change, and then those of the configuration count (`as_configured`).
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from codea1_env.configuration.presets import Preset
from codea1_env.errors import ConfigurationError, FormatError
from codea1_env.language_models.directories import ADAPTER
from codea1_env.records.addresses import COMPLETE
from codea1_env.whole_files import sync, write_whole

DIGEST_BYTES = 64 << 20

_log = logging.getLogger(__name__)


class UnusableCheckpoint(FormatError):
    """A checkpoint is half-written, or something of it is lost or changed."""


def mark_complete(checkpoint: Path, rounds: int, optimizer: str) -> None:
    """Say that everything of a checkpoint of `rounds` rounds is there, the state of that optimizer, too."""
    files = sorted(path for path in checkpoint.rglob("*") if path.is_file() and path != checkpoint / COMPLETE)
    for path in [*files, *(path for path in checkpoint.rglob("*") if path.is_dir()), checkpoint, checkpoint.parent]:
        sync(path)
    contents = {str(path.relative_to(checkpoint)): _content(path) for path in files}
    record = {"rounds": rounds, "optimizer": optimizer, "files": contents}
    write_whole(checkpoint / COMPLETE, json.dumps(record, indent=1) + "\n")


def rounds_of(checkpoint: Path) -> int:
    """Rounds done in a complete checkpoint. Raises UnusableCheckpoint, which says what is wrong with another one."""
    record = _marker(checkpoint)
    for name, content in record["files"].items():
        path = checkpoint / name
        if not path.is_file():
            raise UnusableCheckpoint(f"{checkpoint} must hold {name}, got no such file")
        actual = _content(path)
        if actual != content:
            raise UnusableCheckpoint(f"{path} must be as it was saved, {content}, got {actual}")
    return int(record["rounds"])


def latest_common(outputs: Mapping[str, Path]) -> dict[str, Path]:
    """Each seat's checkpoint of the latest round that is complete for all seats; empty where there is none.

    `outputs`: by seat, where its checkpoints are. What is not usable is left out and named in the log.
    """
    marked = {seat: _marked(output) for seat, output in outputs.items()}
    for rounds in sorted(_common(marked.values()), reverse=True):
        chosen = {seat: checkpoints[rounds] for seat, checkpoints in marked.items()}
        try:
            for checkpoint in chosen.values():
                rounds_of(checkpoint)
            if len(steps := {step_of(checkpoint) for checkpoint in chosen.values()}) > 1:
                raise UnusableCheckpoint(
                    f"all seats must have as many steps, got {' and '.join(map(str, sorted(steps)))}"
                )
        except UnusableCheckpoint as error:
            _log.warning("a checkpoint of round %d is left out: %s", rounds, error)
            continue
        return chosen
    return {}


def forget_old(own: Path, outputs: Iterable[Path], keep: int) -> None:
    """Delete a seat's checkpoints from before the last `keep` rounds that are complete for all seats."""
    marked = {output: _marked(output, quietly=True) for output in outputs}
    common = sorted(_common(marked.values()))
    if len(common) < keep:
        return
    oldest_kept = step_of(marked[own][common[-keep]])
    for checkpoint in own.glob("checkpoint-*"):
        if step_of(checkpoint) < oldest_kept:
            delete(checkpoint)


def delete(checkpoint: Path) -> None:
    """Never leaves something that could be taken for complete."""
    if not checkpoint.is_dir():
        checkpoint.unlink()  # a file in its place was never one
        return
    if (checkpoint / COMPLETE).is_file():
        (checkpoint / COMPLETE).unlink()
    shutil.rmtree(checkpoint)


def _common(marked: Iterable[Mapping[int, Path]]) -> set[int]:
    return set.intersection(*(set(checkpoints) for checkpoints in marked))


def _marked(directory: Path, *, quietly: bool = False) -> dict[int, Path]:
    """Checkpoints by the rounds that their markers name; their files are not looked at."""
    checkpoints = {}
    for checkpoint in sorted(directory.glob("checkpoint-*"), key=step_of):
        try:
            checkpoints[int(_marker(checkpoint)["rounds"])] = checkpoint
        except UnusableCheckpoint as error:
            if not quietly:
                _log.warning("a checkpoint is left out: %s", error)
    return checkpoints


def _marker(checkpoint: Path) -> dict[str, Any]:
    try:
        record = json.loads((checkpoint / COMPLETE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UnusableCheckpoint(
            f"{checkpoint} must hold {COMPLETE}, got none: it was not written to its end"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise UnusableCheckpoint(f"{checkpoint / COMPLETE} must be readable JSON, got {error}") from None
    is_whole = isinstance(record, dict) and isinstance(record.get("rounds"), int) and record["rounds"] > 0
    if not is_whole or not isinstance(record.get("files"), dict) or not record["files"]:
        raise UnusableCheckpoint(f"{checkpoint / COMPLETE} must name rounds and files, got {record!r:.200}")
    return dict(record)


def _content(path: Path) -> dict[str, Any]:
    size = path.stat().st_size
    if size > DIGEST_BYTES:
        return {"bytes": size}
    return {"bytes": size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def step_of(checkpoint: Path) -> int:
    """Optimizer steps, of its name; -1 for another name."""
    number = checkpoint.name.removeprefix("checkpoint-")
    return int(number) if number.isdecimal() else -1


STATE = "trainer.pt"
"""The packed trainer's optimizer and schedule, in every checkpoint of it."""
OPPONENTS = "opponents.json"
"""How past opponents fared: in the checkpoints of the seat that plays them."""


def require_fitting(preset: Preset, checkpoints: Mapping[str, Path], rounds: int) -> None:
    """Raise ConfigurationError where the seats' checkpoints of so many rounds are another configuration's."""
    for checkpoint in checkpoints.values():
        _require(checkpoint, "round.updates", step_of(checkpoint) / rounds, preset.round.updates)
        optimizer = preset.algorithm.optimizer
        _require(checkpoint, "algorithm.optimizer", _marker(checkpoint).get("optimizer", optimizer), optimizer)
        _require(checkpoint, "trainer", "packed" if (checkpoint / STATE).exists() else "trl", preset.trainer)
        if (checkpoint / ADAPTER).exists():
            saved = json.loads((checkpoint / ADAPTER).read_text(encoding="utf-8"))
            _require(checkpoint, "lora.rank", saved["r"], preset.lora.rank)
            _require(checkpoint, "lora.alpha", saved["lora_alpha"], preset.lora.alpha)
    options, duel = preset.options, len(checkpoints) > 1
    keeper = checkpoints.get("player") or (checkpoints.get("tester") if duel else None)
    if keeper and not (keeper / OPPONENTS).exists():
        _require(keeper, "options.opponents", "latest", options.opponents)
        _require(keeper, "options.tester_book", 0, options.tester_book)


def as_configured(optimizer: Any, schedule: Any, arguments: Any, *, is_own: bool = False) -> None:
    """Give what a checkpoint brought the learning rate, weight decay, betas and epsilon of the configuration, and the
    place on its schedule; where nothing was edited, nothing changes. `arguments`: a GRPOConfig. `is_own`: of an
    optimizer of one's own, the rate alone."""
    rate = arguments.learning_rate
    inner = getattr(schedule, "scheduler", schedule)  # accelerate wraps it
    # A schedule that falls to 0 has got there at the end of a run: one with more rounds goes on where it would be.
    shares = [share(inner.last_epoch) for share in getattr(inner, "lr_lambdas", ())]
    for place, group in enumerate(optimizer.param_groups):
        was = group.get("initial_lr", rate)
        if shares:
            group.update(initial_lr=rate, lr=rate * shares[place])
        elif was != rate:
            group.update(initial_lr=rate, lr=group["lr"] * (rate / was) if was else rate)
        if is_own:
            continue
        if place == 0:  # the others are norms and biases, which do not decay
            group["weight_decay"] = arguments.weight_decay
        group.update(betas=(arguments.adam_beta1, arguments.adam_beta2), eps=arguments.adam_epsilon)
    if hasattr(inner, "base_lrs"):
        inner.base_lrs = [rate] * len(inner.base_lrs)
        inner._last_lr = [group["lr"] for group in optimizer.param_groups]  # what is logged before the next step


def _require(checkpoint: Path, name: str, was: object, got: object) -> None:
    if got != was:
        shown = f"{was:g}" if isinstance(was, float) else was
        raise ConfigurationError(
            f"{name} of a resumed run must be {shown}, as in {checkpoint}, got {got}; put it back in config.yaml, or "
            "begin a new run with another --output"
        )
