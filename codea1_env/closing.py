"""What is closed at the end of a `with`: sandboxes, arenas and recorders have it from here."""

from __future__ import annotations

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
