"""What is closed at the end of a `with`: sandboxes, arenas and recorders have it from here. And Ctrl-C, put off while
something must not be left half done; other signals and threads are not its concern. And a child that ends with us."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

_LIBC = ctypes.CDLL(None)


class Closing:
    """Its `close` is called at the end of the block, whatever happens in it."""

    def close(self) -> None:
        """Idempotent."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def interrupts_later() -> Iterator[None]:
    """A Ctrl-C or SIGTERM that comes meanwhile takes effect at the end. In the main thread only: no other gets any."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if seen and seen[0] == signal.SIGINT:
            signal.raise_signal(signal.SIGINT)
        elif seen:
            raise KeyboardInterrupt(seen[0])


def end_with(parent: int) -> None:
    """The `preexec_fn` of a trainer that the main thread of process `parent` starts: if that is killed, so is the
    trainer, or the next command would find its run in use."""
    _LIBC.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:  # killed before that
        os._exit(1)
