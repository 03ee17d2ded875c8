"""Files that are there whole or not at all: written beside their place, put on the disk, then renamed into it."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` when the block has ended without an error.

    After a crash, a full disk or an error the file at `path` is the old one or the new one, whole. Raises OSError, and
    then leaves nothing beside it; FileExistsError where something is there that is no file, such as a device, which a
    rename would remove.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        raise FileExistsError(errno.EEXIST, "must be a file, or nothing yet, to be written", str(target))
    # Beside the target, because a rename is atomic only within one file system.
    aside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with aside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise
    _sync_directory(target.parent)


def _sync_directory(directory: Path) -> None:
    """Put the rename on the disk. Not every file system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
