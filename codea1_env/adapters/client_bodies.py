"""What clients send over HTTP, bounded, and what they are told: shared by the servers of the game and of the judge.

Does not know either of them, nor FastAPI.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

_MOST_IGNORED = 8
"""Times as much as may be sent is read before a client is cut off."""


class BodyTooLong(Exception):
    """A body of more bytes than are read."""


async def read_body(parts: AsyncIterator[bytes], most_bytes: int) -> bytes:
    """The whole body. Raises BodyTooLong once the rest has come: a client that is still writing would see no answer."""
    body, size = bytearray(), 0
    async for part in parts:
        size += len(part)
        if size <= most_bytes:
            body += part
        elif size > _MOST_IGNORED * most_bytes:
            break
    if size > most_bytes:
        raise BodyTooLong(f"a body must have at most {most_bytes} bytes, got more")
    return bytes(body)


def readable(text: str) -> str:
    """The text with what cannot be encoded spelt out."""
    return text.encode("utf-8", "backslashreplace").decode()


def is_writable(text: str) -> bool:
    """Whether a program can be given it as bytes: in UTF-8, other bytes as Python escapes them."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True
