"""The body of a chat completion -> the answers in it, or PlayerGarbled that says what is wrong.

Does not guess: a completion without text is refused, unless the length limit left no room for any.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codea1_env.errors import PlayerGarbled


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer."""

    text: str
    truncated: bool
    """Whether it hit the length limit."""
    version: str
    """Model and configuration as the server names them; empty if it does not."""


@dataclass(frozen=True, slots=True)
class Completions:
    """The answers to one request."""

    found: list[Completion]
    """At least one, in the server's order."""
    tokens: int
    """Tokens of prompt and answers together, as the server counts them; 0 if it does not."""


def read_completions(body: bytes) -> Completions:
    """Read the body of a response. Raises PlayerGarbled."""
    try:
        record = json.loads(body)
    except (ValueError, RecursionError):
        raise _garbled("JSON", body[:200].decode("utf-8", "replace")) from None
    choices = record.get("choices") if isinstance(record, dict) else None
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, dict) for choice in choices):
        raise _garbled("a completion with choices", record)
    if all(type(choice.get("index")) is int for choice in choices):
        choices.sort(key=lambda choice: int(choice["index"]))
    parts = [record.get(name) for name in ("model", "system_fingerprint")]
    version = "/".join(part for part in parts if isinstance(part, str) and part)
    usage = record.get("usage")
    tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
    counted = tokens if type(tokens) is int and 0 < tokens < 1 << 40 else 0
    return Completions([_completion(choice, version) for choice in choices], counted)


def _completion(choice: Mapping[str, Any], version: str) -> Completion:
    message = choice.get("message")
    if not isinstance(message, dict):
        raise _garbled("a message in every choice", choice)
    truncated = choice.get("finish_reason") == "length"
    text = message.get("content")
    if text is None:
        text = message.get("refusal")  # a model's own words, too
    if text is None and truncated:  # all of it went into reasoning that is not shown
        text = ""
    if not isinstance(text, str):
        raise _garbled("text in every message", choice)
    return Completion(text, truncated, version)


def _garbled(must: str, got: object) -> PlayerGarbled:
    return PlayerGarbled(f"must answer with {must}, got {got!r:.300}")
