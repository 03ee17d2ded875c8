"""A causal language model of transformers in either seat, sampled with a source of randomness for every answer.

Needs the extra `train`. An answer depends on its request, its number among the `n`, the seed and the sampling, and not
on the other requests: each answer has a stream of its own, and the padding is masked. In another batch the model's
numbers differ by rounding, which can change a draw that depends on the last digits; `rows_at_once=1` rules that out.

If `load` loads a model of the Qwen2 or Llama family that the engine of `language_models/` computes, or an adapter
beside one, it answers through that engine, else through transformers' `generate`. Prompts that begin alike share their
numbers in the engine, so results can differ by rounding even with one row at a time.

The text of a program is part of a tester's prompt: if it spells the template's control tokens, they are read as the
template's.

Does not promise the same answers on other devices, precisions or versions of torch, and ignores the model's own
generation defaults (repetition penalty, top-k and the like): only `Sampling` counts.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from codea1_env.checks import require_whole
from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra
from codea1_env.language_models import loading, lora
from codea1_env.language_models.continuous import ContinuousEngine
from codea1_env.language_models.directories import base_of, require_model, unfit
from codea1_env.language_models.over_generate import TransformersEngine
from codea1_env.language_models.rollouts import RolloutEngine, RolloutRequest
from codea1_env.players.chat import Prompt, chat_messages, prompt_text, said_text
from codea1_env.players.player import DEFAULT_SAMPLING, Request, Response, Sampling, TesterRequest, generator_for
from codea1_env.players.templates import Begun, begun, end_of_block
from codea1_env.problems.sources.hub import hub_or_cache

with extra("train", "HuggingFacePlayer needs"):
    import torch
    import transformers
    from jinja2 import TemplateError

_ALONE = threading.Lock()
"""Held while a model samples, which cannot be done for two callers at once. Of all players, for a copy has no other."""


class HuggingFacePlayer:
    """Answers both seats' requests, `rows_at_once` answers in a batch, padded on the left."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str = "hugging-face",
        prompt: Prompt = chat_messages,
        rows_at_once: int = 16,
        keeps_tokens: bool = False,
    ) -> None:
        """`tokenizer` must have a chat template. `prompt`: turns a request into the messages of a conversation.

        `keeps_tokens`: responses carry `token_ids`, the one that ends the answer included, and `log_probs`: under the
        distribution that was drawn from, after temperature and top-p; for temperature 0 under the model's own.
        """
        require_whole("rows_at_once", rows_at_once)
        if not tokenizer.chat_template:
            raise ConfigurationError(
                f"the tokenizer of {name} must have a chat template, got none; set tokenizer.chat_template"
            )
        self.name = name
        self.version = _version(model, tokenizer)
        self._model = model
        self._tokenizer = tokenizer
        self._prompt = prompt
        self._keeps_tokens = keeps_tokens
        ends = loading.ends_of(model, tokenizer)
        self._engine: RolloutEngine = TransformersEngine(model, tokenizer, ends, rows_at_once)
        self._adapter = ""
        self._positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)

    @classmethod
    def load(
        cls,
        source: str | Path,
        *,
        device: str = "",
        dtype: str = "auto",
        revision: str = "main",
        name: str = "",
        prompt: Prompt = chat_messages,
        rows_at_once: int | None = None,
        keeps_tokens: bool = False,
    ) -> HuggingFacePlayer:
        """Load a directory, a repository of the hub, a .gguf file or an adapter of the packed trainer.

        `device`: "" means the GPU if there is one, else the CPU. `rows_at_once`: None means as many as the engine takes
        (64 in float32 on a CPU, 128 in bfloat16, 256 on a GPU), and 16 without the engine. Code that comes with a model
        is not run. Raises ConfigurationError, in one line, if there is no such model, or not all of it.
        """
        place = device or ("cuda" if torch.cuda.is_available() else "cpu")
        base = base_of(Path(source))
        where, what = base or source, f"the model of {name or source}"
        if Path(where).suffix == ".gguf":
            require_model(Path(where), what)
        told = {} if Path(where).is_file() else {"revision": revision}
        with nullcontext() if Path(where).exists() else hub_or_cache():
            tokenizer = loading.load_tokenizer(where, what, **told)
            model = loading.load_weights(where, what, tokenizer, dtype=dtype, **told)
        why_slow = unfit(model.config.to_dict())
        if loading.is_adapted(model):  # whatever it is of PEFT's, transformers computes it
            why_slow = why_slow or "must be a base alone, got one with an adapter in it"
        if base and why_slow:
            raise ConfigurationError(f"the base of the adapter {source} {why_slow}")
        player = cls(
            model.to(place),
            tokenizer,
            name=name or str(source),
            prompt=prompt,
            rows_at_once=16 if rows_at_once is None else rows_at_once,
            keeps_tokens=keeps_tokens,
        )
        if not why_slow:
            player._use_engine(Path(source) if base else None, rows_at_once or 0)
        return player

    def _use_engine(self, adapter: Path | None, rows_at_once: int) -> None:
        """Answer by the engine from now on, and let go of transformers' model. `rows_at_once`: as its `slots`."""
        dtype = "bfloat16" if self._model.dtype is torch.bfloat16 else "float32"
        device = str(self._model.device)
        ready = loading.ready(self._model, self._tokenizer, source=self.name, dtype=dtype, device=device)
        adapters = {}
        if adapter is not None:
            loading.require_digest(ready, adapter)
            adapters = {"seat": lora.Adapter.load(adapter, ready.base.shape, device)}
            self._adapter, self.version = "seat", f"{lora.digest_of(adapter)}+{self.version}"
        self._engine = ContinuousEngine(ready, adapters, rows_at_once)
        self._model = None

    def respond(
        self, requests: Sequence[Request], n: int = 1, sampling: Sampling = DEFAULT_SAMPLING, seed: int = 0
    ) -> list[list[Response]]:
        """`n` responses to each request.

        Raises ConfigurationError for n < 1 and for a prompt that leaves no room for `max_tokens`, and PlayerError if
        the model computes NaN.
        """
        require_whole("n", n)
        begins = [begun(self._prompt(request)) for request in requests]
        asked = [
            RolloutRequest(
                tuple(self._prompt_ids(request, sampling)),
                n,
                (generator_for(seed, request, 0).getrandbits(63),),
                self._adapter,
                begin.answer,
                _tests(request, sampling),
            )
            for request, begin in zip(requests, begins, strict=True)
        ]
        with _ALONE:
            sampled = self._engine.sample(asked, sampling)
        return [
            [self._response(begin, a.tokens, a.log_probs, a.finish != "length", sampling) for a in answers]
            for begin, answers in zip(begins, sampled, strict=True)
        ]

    def _prompt_ids(self, request: Request, sampling: Sampling) -> list[int]:
        problem_id = request.problem.problem_id
        try:
            text = prompt_text(self._tokenizer, self._prompt(request))
        except TemplateError as error:
            raise ConfigurationError(
                f"the chat template of {self.name} must take the prompt's messages, got: {error}; give another prompt="
            ) from error
        text = text.encode("utf-8", "replace").decode()  # a program may hold lone surrogates; tokenizers take none
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        room = self._positions
        if not ids:
            raise ConfigurationError(f"the prompt for {problem_id!r} must have a token, got none")
        if room is not None and len(ids) + sampling.max_tokens > room:
            raise ConfigurationError(
                f"prompt and max_tokens must fit into the {room} positions of {self.name}, got {len(ids)} + "
                f"{sampling.max_tokens} for problem {problem_id!r}; lower max_tokens"
            )
        return ids

    def _response(
        self, begin: Begun, tokens: Sequence[int], log_probs: Sequence[float], is_ended: bool, sampling: Sampling
    ) -> Response:
        text = begin.answer + said_text(self._tokenizer, tokens, begin)
        return Response(
            text[: end_of_block(text)] if begin.is_in_fence or sampling.stop_at_fence else text,
            not is_ended,
            self.name,
            self.version,
            tuple(tokens) if self._keeps_tokens else None,
            tuple(log_probs) if self._keeps_tokens else None,
        )


def _tests(request: Request, sampling: Sampling) -> int:
    """That the answer ends with."""
    stops = sampling.stop_at_tests and isinstance(request, TesterRequest)
    return request.problem.suite_size_or(sampling.stop_at_tests) if stops else 0


def _version(model: Any, tokenizer: Any) -> str:
    """Changes with the weights, the template and the libraries; reads every weight, about a second a gigabyte."""
    digest = loading.weights_digest(model, tokenizer)
    return f"{digest}/transformers-{transformers.__version__}/torch-{torch.__version__}"
