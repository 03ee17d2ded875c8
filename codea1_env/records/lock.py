"""One run's directory has one run: an advisory lock that every process which writes there holds.

A process that was killed lets go; the actors of a run whose first process was killed follow within seconds, and until
they have ended, nobody goes on with the run. Does not promise anything on file systems without flock.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from codea1_env.errors import ConfigurationError
from codea1_env.whole_files import LOCK

WAIT_S = 30.0


class RunLock:
    """The lock on one run's directory, held until `release`."""

    def __init__(self, directory: Path, *, alone: bool) -> None:
        """`alone`: nobody else may hold it. Raises ConfigurationError where it is not to be had within WAIT_S."""
        self._descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        deadline = time.monotonic() + WAIT_S
        while not self._try(fcntl.LOCK_EX if alone else fcntl.LOCK_SH):
            if time.monotonic() > deadline:
                self.release()
                raise ConfigurationError(
                    f"the run must not be in use by another process, got {directory}, which is; wait for it or end it"
                )
            time.sleep(0.1)

    def share(self) -> None:
        """From now on others who write for this run may hold it, too."""
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def release(self) -> None:
        """Idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _try(self, kind: int) -> bool:
        try:
            fcntl.flock(self._descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
