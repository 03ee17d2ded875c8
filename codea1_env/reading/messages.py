"""The text of an answer, in whatever form a chat API or a trainer gives it: the one reader of all adapters and files.

    answer    a text; a message; a list of messages, of which the last one of the assistant counts; a list of parts
    message   a mapping with `role` and `content`: a text, a list of parts, or None, where the model said nothing
    part      a mapping: with `text` or `refusal`, joined to the others; a thought or a tool's call, left out

A message's `reasoning` is no part of its text. Objects that have `model_dump`, as those of the `openai` package, are
read as the mapping that it gives. Everything else is refused: it is never read as an empty answer. So is None itself,
for an answer that is not there is not an answer without text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codea1_env.checks import require
from codea1_env.errors import Codea1Error, ConfigurationError

_OF_MESSAGES = ("role", "content", "parts")
_TEXTS = (None, "text", "output_text", "input_text", "refusal")
_THOUGHTS_AND_CALLS = (
    *("thinking", "redacted_thinking", "reasoning", "reasoning_text", "reasoning_content", "summary_text", "thought"),
    *("tool_use", "tool_call", "tool_calls", "function_call", "server_tool_use", "tool_result"),
)
_MUST = "be a text or an assistant's chat message, whose content is a text or a list of text parts"
_SHOWN = 200
"""Characters of another form that an error shows."""


def answer_text(given: object, name: str, error: type[Codea1Error] = ConfigurationError) -> str:
    """The text of an answer, "" of a message without content. Raises `error`, which says `name`, for another form."""
    if isinstance(given, str):
        return given
    items = [_plain(each) for each in given] if _is_list(given) else [_plain(given)]  # type: ignore[attr-defined]
    _check(bool(items) and all(isinstance(each, Mapping) for each in items), name, given, error)
    messages = [each for each in items if not _is_aside(each) and not each.keys().isdisjoint(_OF_MESSAGES)]
    if not messages:
        return _joined(items, name, error)
    said = [each for each in messages if each.get("role", "assistant") in ("assistant", "model")]
    _check(bool(said), name, given, error)
    content = said[-1].get("content", said[-1].get("parts"))
    if content is None:
        refusal = said[-1].get("refusal")
        return refusal if isinstance(refusal, str) else ""  # a model's own words, too
    if isinstance(content, str):
        return content
    _check(_is_list(content), name, given, error)
    return _joined([_plain(each) for each in content], name, error)


def answer_texts(given: object, name: str, error: type[Codea1Error] = ConfigurationError) -> list[str]:
    """The texts of several answers. Raises `error` for what is no list, and for an answer of another form."""
    require(_is_list(given), name, "be a list of answers", given, error)
    answers: Sequence[object] = given  # type: ignore[assignment]  # it is a list
    return [answer_text(each, f"{name}[{place}]", error) for place, each in enumerate(answers)]


def _joined(parts: Sequence[Any], name: str, error: type[Codea1Error]) -> str:
    texts = []
    for part in parts:
        _check(isinstance(part, Mapping), name, part, error)
        if _is_aside(part):
            continue
        kind = part.get("type")
        text = part.get("refusal" if kind == "refusal" else "text")
        if isinstance(text, Mapping):
            text = text.get("value")  # of the Assistants API
        _check(isinstance(text, str) and kind in _TEXTS, name, part, error)
        texts.append(text)
    return "".join(texts)


def _is_aside(item: Mapping[str, Any]) -> bool:
    """Whether it is a thought or a call, and no part of what was said."""
    return item.get("type") in _THOUGHTS_AND_CALLS or item.get("thought") is True  # the latter of Gemini


def _is_list(given: object) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, str | bytes | bytearray)


def _plain(given: object) -> Any:
    dump = None if isinstance(given, type) else getattr(given, "model_dump", None)
    return dump() if callable(dump) else given


def _check(condition: bool, name: str, got: object, error: type[Codea1Error]) -> None:
    if not condition:
        raise error(f"{name} must {_MUST}, got {repr(got)[:_SHOWN]}; give the answer's text itself")
