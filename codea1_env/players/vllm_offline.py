"""A model that vLLM runs in this process, in either seat. Needs vLLM, which is installed by itself (docs/cluster.md).

Each request has a seed of its own. If the prompt begins an answer inside a fenced block, the answer ends with the
block; other answers do not stop at a fence. Does not promise the same answers in another batch, on other devices or
with another version of vLLM, and ignores the model's own generation defaults: only `Sampling` counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codea1_env.checks import require_whole
from codea1_env.errors import ConfigurationError
from codea1_env.players.chat import Prompt, chat_messages
from codea1_env.players.player import DEFAULT_SAMPLING, Request, Response, Sampling, generator_for
from codea1_env.players.templates import CLOSED, Messages, begun

try:
    import vllm
    from vllm.platforms import current_platform

    try:
        from vllm import exceptions as vllm_exceptions
    except ImportError:  # an older version
        vllm_exceptions = None
except ImportError as error:  # pragma: no cover - depends on the installation
    raise ImportError("VLLMPlayer needs vLLM: pip install vllm; for a CPU see docs/cluster.md") from error

# What a prompt that is too long raises: a ValueError in older versions, later an exception of vLLM's own.
_REFUSALS = (ValueError, *([vllm_exceptions.VLLMValidationError] if vllm_exceptions else []))


class VLLMPlayer:
    """Answers both seats' requests; vLLM decides how many run at a time."""

    def __init__(self, engine: Any, *, name: str, version: str = "", prompt: Prompt = chat_messages) -> None:
        """`engine`: a `vllm.LLM`. `prompt`: turns a request into the messages of a conversation."""
        self.name = name
        self.version = version
        self._engine = engine
        self._prompt = prompt

    @classmethod
    def load(cls, source: str | Path, *, name: str = "", prompt: Prompt = chat_messages, **engine: Any) -> VLLMPlayer:
        """Load a directory or a repository of the hub. `engine`: arguments of `vllm.LLM`, e.g. tensor_parallel_size."""
        if current_platform.is_cpu():  # a prompt read in parts is stepped back over, which no seed on a CPU can do
            engine = {"enable_chunked_prefill": False, **engine}
        made = vllm.LLM(model=str(source), generation_config="vllm", **engine)
        return cls(made, name=name or str(source), version=f"{source} vllm {vllm.__version__}", prompt=prompt)

    def respond(
        self, requests: Sequence[Request], n: int = 1, sampling: Sampling = DEFAULT_SAMPLING, seed: int = 0
    ) -> list[list[Response]]:
        """`n` responses to each request; with greedy sampling they are the same response n times.

        Raises ConfigurationError for n < 1 and for a prompt that leaves no room for an answer. If a prompt leaves room
        for fewer than `max_tokens`, its answer has as many tokens as fit.
        """
        require_whole("n", n)
        count = n if sampling.temperature else 1  # vLLM refuses several greedy answers
        messages = [self._prompt(request) for request in requests]
        begins = [begun(each) for each in messages]
        asked = [
            vllm.SamplingParams(
                n=count,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                max_tokens=sampling.max_tokens,
                seed=generator_for(seed, request, 0).getrandbits(31),
                stop=[CLOSED] if begin.is_in_fence else None,
                include_stop_str_in_output=True,
            )
            for request, begin in zip(requests, begins, strict=True)
        ]
        responses: list[list[Response]] = [[] for _ in requests]
        for continues in (False, True):  # vLLM is told once for all conversations of a call
            places = [place for place, begin in enumerate(begins) if bool(begin.answer) == continues]
            answered = self._answered(
                [messages[place] for place in places], [asked[place] for place in places], continues
            )
            for place, each in zip(places, answered, strict=True):
                whole = begins[place].whole
                responses[place] = [
                    Response(whole(answer.text), answer.finish_reason == "length", self.name, self.version)
                    for answer in each.outputs
                ] * (n // count)
        return responses

    def _answered(self, messages: Sequence[Messages], asked: Sequence[Any], continues: bool) -> Sequence[Any]:
        if not messages:
            return []
        how = {"add_generation_prompt": False, "continue_final_message": True} if continues else {}
        try:
            answered: Sequence[Any] = self._engine.chat(list(messages), list(asked), use_tqdm=False, **how)
        except _REFUSALS as error:
            raise ConfigurationError(f"{self.name} must have room for prompt and answer, got: {error}") from error
        return answered
