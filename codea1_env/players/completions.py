"""The body of a chat completion -> the answers in it, or PlayerGarbled that says what is wrong.

A message without content is an empty answer if its model ended it, and is marked (`ServedAnswer.is_silent`).
Reasoning is not taken for the answer. Any other message without text is refused.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codea1_env.errors import ConfigurationError, PlayerGarbled, PlayerRefused
from codea1_env.reading.messages import answer_text

_ENDS = ("stop", "length", "tool_calls", "function_call", "content_filter", "eos_token", "stop_sequence", "end_turn")
"""A model's own ends, and those that a server always sets for it. Not `error` or `abort`: those answers are none."""
_REASONING = ("reasoning_content", "reasoning")


@dataclass(frozen=True, slots=True)
class ServedAnswer:
    """One answer."""

    text: str
    truncated: bool
    """Whether it hit the length limit."""
    version: str
    """Model and configuration as the server names them; empty if it does not."""
    is_silent: bool = False
    """Whether the message had no content though the length limit left room: reasoning, a tool's call or a refusal."""


@dataclass(frozen=True, slots=True)
class ServedAnswers:
    """The answers to one request."""

    found: list[ServedAnswer]
    """At least one, in the server's order."""
    tokens: int
    """Tokens of prompt and answers together, as the server counts them; 0 if it does not."""


class Silence:
    """Counts the answers of a server that had no content. A copy that goes to another process counts from none."""

    _FEW = 8

    def __init__(self, url: str) -> None:
        self._url = url
        self._silent = self._answers = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Silence, (self._url,)

    def note(self, found: Sequence[ServedAnswer]) -> None:
        """Count these answers. Raises PlayerRefused at the eighth silent one or a later one, where more than half of
        all answers so far were silent: then the server and its settings are measured, and not the model."""
        added = sum(each.is_silent for each in found)
        with self._lock:
            self._answers += len(found)
            self._silent += added
            silent, answers = self._silent, self._answers
        if added and silent >= self._FEW and 2 * silent > answers:
            raise PlayerRefused(
                f"{self._url} must answer with content, got none in {silent} of {answers} answers (content: null, or "
                "only reasoning, a tool's call or a refusal); turn the model's thinking or the server's reasoning "
                "parser off"
            )


def read_completions(body: bytes) -> ServedAnswers:
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
    return ServedAnswers([_completion(choice, version) for choice in choices], counted)


def _completion(choice: Mapping[str, Any], version: str) -> ServedAnswer:
    message = choice.get("message")
    if not isinstance(message, dict):
        raise _garbled("a message in every choice", choice)
    finish = choice.get("finish_reason")
    try:
        text = answer_text({"role": "assistant", **message}, "the message")
    except ConfigurationError:
        raise _garbled("a message whose content is text", choice) from None
    has_content = bool(text.strip()) and message.get("refusal") != text
    is_null = not isinstance(message.get("content"), str) and not has_content
    if is_null and not (finish in _ENDS or text):  # an error of the server's, say
        raise _garbled("a message with text, or one that its model ended", choice)
    thought = any(isinstance(message.get(name), str) and message[name].strip() for name in _REASONING)
    is_silent = finish != "length" and (is_null or (thought and not has_content))
    return ServedAnswer(text, finish == "length", version, is_silent)


def _garbled(must: str, got: object) -> PlayerGarbled:
    return PlayerGarbled(f"must answer with {must}, got {got!r:.300}")
