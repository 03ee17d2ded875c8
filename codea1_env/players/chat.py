"""A request as the chat messages that an instruct model reads; a repair is the next turn of the coder's conversation.

Does not know models or servers: see `hugging_face.py` and `openai_compatible.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from codea1_env.players.player import Request, TesterRequest
from codea1_env.players.prompts import DEFAULT, find_prompts
from codea1_env.players.templates import Begun, Messages, Prompts, begun

Prompt = Callable[[Request], Messages]
"""What turns a request into messages; a player's constructor takes another one than `chat_messages`. Where the last
message is the assistant's, the player continues it, and its answer has that beginning."""


def chat_messages(request: Request, suite_size: int = 8, prompts: Prompts | None = None) -> Messages:
    """The messages of a request. `suite_size` is K, the number of asserts that a tester is asked for, at least 1,
    where the problem does not say. `prompts` is a design; None is the default design."""
    design = prompts or find_prompts(DEFAULT)
    if isinstance(request, TesterRequest):
        return design.for_tester(request.problem, request.program, suite_size=suite_size)
    if request.program:
        return design.for_repair(request.problem, request.program, request.feedback)
    return design.for_coder(request.problem)


def prompt_text(tokenizer: Any, messages: Messages) -> str:
    """A prompt as a model of transformers gets it, up to the place where the model continues; it includes the beginning
    of its answer."""
    asked = begun(messages)
    text: str = tokenizer.apply_chat_template(asked.messages, tokenize=False, add_generation_prompt=True)
    return text + asked.answer


def said_text(tokenizer: Any, tokens: Sequence[int], asked: Begun) -> str:
    """What a model's tokens say behind the beginning of its answer. By themselves they may say less: the decoders of
    SentencePiece strip a space from what begins a text."""
    before = tokenizer("a", add_special_tokens=False)["input_ids"] if asked.answer else []
    known, whole = (
        tokenizer.decode(part, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        for part in (before, [*before, *tokens])
    )
    text: str = whole[len(known) :]
    return text
