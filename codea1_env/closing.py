"""What is closed at the end of a `with`: sandboxes, arenas and recorders have it from here. And Ctrl-C, put off while
something must not be left half done; other signals and threads are not its concern."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self


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
    """A Ctrl-C that comes meanwhile takes effect at the end. In the main thread only: no other one gets any."""
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
        if seen:
            signal.raise_signal(signal.SIGINT)
