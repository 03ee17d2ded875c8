"""Files that are there whole or not at all, and files and directories that one run at a time writes.

`whole_file` writes beside the place, puts the content on the disk and renames it. `claimed` keeps other runs away from
a place for as long as a run works on what goes there; `RunLock` is what every process of a run holds on its directory.
None promises anything about programs that are not codea1's, nor, on a file system without flock, about two runs with
one place.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from codea1_env.errors import ConfigurationError

LOCK = "lock"
"""The file in a run's directory that its processes hold."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""What a file system says that has no flock."""


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` when the block has ended without an error.

    After a crash, a full disk or an error the file at `path` is the old one or the new one, whole; of two that are
    written at a time, the later one. A symbolic link stays, and the file that it names is replaced. Raises OSError,
    which names the file where the disk is full, and then leaves nothing beside it; FileExistsError where something is
    there that is no file, such as a device, which a rename would remove.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise FileExistsError(errno.EEXIST, "must be a file or nothing, got something else; move it away", str(path))
    # Beside the target, because a rename is atomic only within one file system.
    aside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with aside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            aside.unlink()
        if isinstance(error, OSError) and error.errno in _FULL:
            raise no_room(path, error, "it is as it was") from error
        raise
    with contextlib.suppress(OSError):  # the rename: not every file system can
        sync(target.parent)


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write all of it or nothing, as `whole_file` does. Text in UTF-8."""
    with whole_file(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


def append_whole(file: io.FileIO, content: bytes, state: str) -> None:
    """All of it at the end of an unbuffered file, or nothing. `state`: for the error, what became of the file. Raises
    OSError, which names it."""
    start = os.fstat(file.fileno()).st_size
    left = memoryview(content)
    try:
        while left:
            left = left[file.write(left) :]
    except BaseException as error:  # an interrupt, too, behind which somebody may go on
        with contextlib.suppress(OSError):
            file.truncate(start)
        if isinstance(error, OSError):
            raise no_room(str(file.name), error, state) from error
        raise


def no_room(path: str | os.PathLike[str], error: OSError, state: str) -> OSError:
    """The error that names the file: the system's own, of a write, does not. `state`: what became of the file."""
    return OSError(f"{os.fspath(path)} must be writable, got: {error.strerror}; {state}; make room and repeat")


@contextlib.contextmanager
def claimed(name: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """Nobody else holds `path` under a claim meanwhile. `name`: of the argument that says where.

    Raises ConfigurationError at once where another run does, and OSError where nothing can be written beside `path`. A
    run that was killed holds nothing: the lock ends with its process, and the empty file that it leaves is no obstacle.
    """
    lock = Path(os.path.realpath(path))
    lock = lock.with_name(f".{lock.name}.lock")
    try:
        descriptor = _locked(lock)
    except OSError as error:
        raise OSError(f"{name} must be where a file can be written, got {path}: {error.strerror}") from error
    if descriptor is None:
        raise ConfigurationError(
            f"{name} must not be in use by another run, got {path}, which is; wait for that run or name another file"
        )
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            lock.unlink()  # while it is held: whoever opened it meanwhile sees that it is gone, and makes another
        os.close(descriptor)


def _locked(lock: Path) -> int | None:
    """A descriptor that holds the lock until it is closed; None where another one does."""
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not _holds(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB):
                os.close(descriptor)
                return None
            if os.path.samestat(os.fstat(descriptor), lock.stat()):
                return descriptor
        except FileNotFoundError:  # its last holder has just removed it
            pass
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _holds(descriptor: int, kind: int) -> bool:
    """Whether it has the lock now, as it does where the file system has none. `kind`: of `fcntl.flock`."""
    try:
        fcntl.flock(descriptor, kind)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True


def sync(path: Path) -> None:
    """Put a file or a directory on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


WAIT_S = 30.0


class RunLock:
    """The lock on one run's directory, held until `release`."""

    def __init__(self, directory: Path, *, alone: bool) -> None:
        """`alone`: nobody else may hold it. Raises ConfigurationError where it is not to be had within WAIT_S."""
        self._descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        deadline = time.monotonic() + WAIT_S
        while not _holds(self._descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB):
            if time.monotonic() > deadline:
                self.release()
                raise ConfigurationError(
                    f"the run must not be in use by another process, got {directory}, which is; wait for it or end it"
                )
            time.sleep(0.1)

    def share(self) -> None:
        """From now on others who write for this run may hold it, too."""
        _holds(self._descriptor, fcntl.LOCK_SH)

    def release(self) -> None:
        """Idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
