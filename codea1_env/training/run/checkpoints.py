"""Checkpoints of the seats: when one is complete, which round all seats have, and which ones may go.

A checkpoint is complete when `complete.json`, written last, lists every file of it as it is on disk. Everything is on
disk, not only on its way there, before that file is. Does not promise to notice a change inside a file of more than
DIGEST_BYTES: of those only the size is compared.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from codea1_env.errors import FormatError
from codea1_env.records.addresses import COMPLETE
from codea1_env.whole_files import sync, write_whole

DIGEST_BYTES = 64 << 20

_log = logging.getLogger(__name__)


class UnusableCheckpoint(FormatError):
    """A checkpoint is half-written, or something of it is lost or changed."""


def mark_complete(checkpoint: Path, rounds: int) -> None:
    """Say that everything of a checkpoint of `rounds` rounds is there."""
    files = sorted(path for path in checkpoint.rglob("*") if path.is_file() and path != checkpoint / COMPLETE)
    for path in [*files, *(path for path in checkpoint.rglob("*") if path.is_dir()), checkpoint, checkpoint.parent]:
        sync(path)
    record = {"rounds": rounds, "files": {str(path.relative_to(checkpoint)): _content(path) for path in files}}
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
    (checkpoint / COMPLETE).unlink(missing_ok=True)
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
