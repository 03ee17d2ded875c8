"""A request as the chat messages that an instruct model reads; a repair is the next turn of the coder's conversation.

Does not know models or servers: see `hugging_face.py` and `openai_compatible.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codea1_env.players.player import Request, TesterRequest
from codea1_env.players.prompts import DEFAULT, find_prompts
from codea1_env.players.templates import Messages, Prompts, begun

Prompt = Callable[[Request], Messages]
"""What turns a request into messages; a player's constructor takes another one than `chat_messages`. Where the last
message is the assistant's, the player continues it, and its answer has that beginning."""


def chat_messages(request: Request, suite_size: int = 8, prompts: Prompts | None = None) -> Messages:
    """The messages of a request. `suite_size` is K, the number of asserts that a tester is asked for, at least 1.
    `prompts` is a design; None is the default design."""
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
