"""Directories for candidates to write in where there are no namespaces: made before a process, emptied after it.

Whatever lies in one is deleted without following anything, however deep it is. Its size is looked at from here, now and
then: no limit of the kernel holds for a directory. Where there are namespaces, each candidate has a file system of its
own instead (`inside/widening.py`).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile

MOST_BYTES = 64 << 20
"""Of all its files, as far as they are looked at; the kernel holds each file below a quarter of it."""
MOST_FILES = 4096


class Scratch:
    """A directory that programs never see, and in it one that the running program has."""

    def __init__(self) -> None:
        self._around = tempfile.mkdtemp(prefix="codea1-scratch-")
        self.path = os.path.join(self._around, "own")
        """Of the program's."""

    def renew(self) -> None:
        """An empty one, which no process has had. Raises OSError."""
        self.clear()
        os.mkdir(self.path, 0o700)

    def clear(self) -> None:
        top = os.open(self._around, os.O_RDONLY | os.O_DIRECTORY)
        try:
            count = 0
            while names := os.listdir(top):
                for name in names:
                    for inner in _directories_left(name, top):  # up to the top, where no path is too long
                        count += 1
                        os.rename(inner, f"{count}-{os.urandom(4).hex()}", src_dir_fd=top, dst_dir_fd=top)
                    os.rmdir(name, dir_fd=top)
        finally:
            os.close(top)

    def is_overfull(self) -> bool:
        """Whether there is more in it than may be."""
        size, count, waiting = 0, 0, [self.path]
        while waiting:
            with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    count += 1
                    with contextlib.suppress(OSError):
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                        else:
                            size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if size > MOST_BYTES or count > MOST_FILES:
                        return True
        return False

    def close(self) -> None:
        """Delete everything. May be called again."""
        if os.path.isdir(self._around):
            self.clear()
            shutil.rmtree(self._around)


def _directories_left(name: str, top: int) -> list[str]:
    """Delete the files in the directory `name` below `top`; the paths of the directories in it."""
    os.chmod(name, 0o700, dir_fd=top)
    inside = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
    try:
        left = []
        for entry in os.listdir(inside):
            try:
                os.unlink(entry, dir_fd=inside)
            except IsADirectoryError:
                os.chmod(entry, 0o700, dir_fd=inside)  # else an ordinary user could not move it
                left.append(f"{name}/{entry}")
        return left
    finally:
        os.close(inside)
