"""A request as the chat messages that an instruct model reads; a repair is the next turn of the coder's conversation.

Does not know tokenizers or servers: see `hugging_face.py` and `openai_compatible.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from codea1_env.players.player import Request, TesterRequest
from codea1_env.players.prompts import Messages, fenced, for_coder, for_tester

Prompt = Callable[[Request], Messages]
"""What turns a request into messages; a player's constructor takes another one than `chat_messages`."""


def chat_messages(request: Request, suite_size: int = 8) -> Messages:
    """`suite_size`: K, the asserts that a tester is asked for, at least 1."""
    if isinstance(request, TesterRequest):
        return for_tester(request.problem, request.program, suite_size=suite_size)
    messages = for_coder(request.problem)
    if request.program:
        messages.append({"role": "assistant", "content": fenced(request.program)})
        messages.append({"role": "user", "content": _repair(request.problem.entry_point, request.feedback)})
    return messages


def _repair(entry_point: str, feedback: str) -> str:
    failed = f"fails these tests:\n\n{fenced(feedback)}" if feedback.strip() else "fails tests."
    return (
        f"Your program {failed}\n\nCorrect it so that it does what the task demands, not only what these tests show. "
        f"Answer with the whole program, `{entry_point}` and its helpers, in one fenced block that opens with "
        "```python."
    )
