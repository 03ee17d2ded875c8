"""A causal language model of transformers in either seat, sampled with a source of randomness for every answer.

Needs the extra `train`. An answer depends on its request, its number among the `n`, the seed and the sampling, and not
on the other requests: each answer has noise of its own, and the padding is masked. In another batch the model's numbers
differ by rounding, which can change a draw that depends on the last digits; `rows_at_once=1` rules that out.

If `load` loads a model of the Qwen2 or Llama family that the engine of `language_models/` computes, or an adapter
beside one, it answers through that engine. This engine draws differently from transformers' own model. Prompts that
begin alike share their numbers there, so results can differ by rounding even with one row at a time.

The text of a program is part of a tester's prompt: if it spells the template's control tokens, they are read as the
template's.

Does not promise the same answers on other devices, precisions or versions of torch, and ignores the model's own
generation defaults (repetition penalty, top-k and the like): only `Sampling` counts.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codea1_env.checks import require_least
from codea1_env.errors import ConfigurationError, PlayerError
from codea1_env.extras import extra
from codea1_env.language_models import loading, lora
from codea1_env.language_models.continuous import ContinuousEngine
from codea1_env.language_models.directories import base_of, require_model, unfit
from codea1_env.language_models.rollouts import AnswerEnd, RolloutRequest
from codea1_env.players.chat import Prompt, chat_messages, prompt_text, said_text
from codea1_env.players.player import DEFAULT_SAMPLING, Request, Response, Sampling, TesterRequest, generator_for
from codea1_env.players.templates import Begun, begun, end_of_block

with extra("train", "HuggingFacePlayer needs"):
    import torch
    import transformers
    from jinja2 import TemplateError


@dataclass(slots=True)
class _GrowingAnswer:
    """One answer while it grows."""

    prompt: list[int]
    noise: torch.Generator
    begun: Begun
    """What the answer begins with is the last part of the prompt."""
    ending: AnswerEnd
    tokens: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    is_ended: bool = False


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
        require_least("rows_at_once", rows_at_once)
        if not tokenizer.chat_template:
            raise ConfigurationError(
                f"the tokenizer of {name} must have a chat template, got none; set tokenizer.chat_template"
            )
        self.name = name
        self.version = _version(model, tokenizer)
        self._model = model
        self._tokenizer = tokenizer
        self._prompt = prompt
        self._rows_at_once = rows_at_once
        self._keeps_tokens = keeps_tokens
        ends = model.generation_config.eos_token_id
        self._engine: ContinuousEngine | None = None
        self._adapter = ""
        self._positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        self._ends = {tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])} - {None}
        parameters = inspect.signature(model.forward).parameters
        # Without it the logits of whole prompts are kept: gigabytes for a large vocabulary.
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in parameters else {}
        self._kept = "cache" if "cache" in parameters else "past_key_values"  # since transformers 5.24, and before

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
            rows_at_once=rows_at_once or 16,
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
        require_least("n", n)
        if self._engine is not None:
            return self._answers(self._engine, requests, n, sampling, seed)
        rows: list[_GrowingAnswer] = []
        for request in requests:
            asked = begun(self._prompt(request))
            prompt = self._prompt_ids(request, sampling)
            for k in range(n):
                noise = torch.Generator(self._model.device)
                noise.manual_seed(generator_for(seed, request, k).getrandbits(63))
                stops = asked.is_in_fence or sampling.stop_at_fence
                rows.append(
                    _GrowingAnswer(
                        prompt, noise, asked, AnswerEnd(asked.answer, at_fence=stops, tests=_tests(request, sampling))
                    )
                )
        was_training = self._model.training
        self._model.eval()
        try:
            for start in range(0, len(rows), self._rows_at_once):
                self._sample(rows[start : start + self._rows_at_once], sampling)
        finally:
            self._model.train(was_training)
        responses = [self._response(r.begun, r.tokens, r.log_probs, r.is_ended, sampling) for r in rows]
        return [responses[start : start + n] for start in range(0, len(responses), n)]

    def _answers(
        self, engine: ContinuousEngine, requests: Sequence[Request], n: int, sampling: Sampling, seed: int
    ) -> list[list[Response]]:
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
        return [
            [self._response(begin, a.tokens, a.log_probs, a.finish != "length", sampling) for a in answers]
            for begin, answers in zip(begins, engine.sample(asked, sampling), strict=True)
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

    @torch.inference_mode()
    def _sample(self, rows: list[_GrowingAnswer], sampling: Sampling) -> None:
        device = self._model.device
        longest = max(len(row.prompt) for row in rows)
        gaps = [longest - len(row.prompt) for row in rows]
        # Any token will do where the mask is 0.
        ids = torch.tensor([[0] * gap + row.prompt for gap, row in zip(gaps, rows, strict=True)], device=device)
        mask = torch.tensor([[0] * gap + [1] * (longest - gap) for gap in gaps], device=device)
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)  # (rows, tokens)
        cache = None
        for _ in range(sampling.max_tokens):
            out = self._model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions,
                use_cache=True,
                **{self._kept: cache},
                **self._last_only,
            )
            log_probs = _log_probs(out.logits[:, -1].float(), sampling)  # (rows, vocabulary)
            if log_probs.isnan().any():
                raise PlayerError(f"the model {self.name} must give numbers, got NaN")
            tokens = _draw(log_probs, rows) if sampling.temperature else log_probs.argmax(dim=1)
            chosen = log_probs.gather(1, tokens[:, None])[:, 0]
            for row, token, log_prob in zip(rows, tokens.tolist(), chosen.tolist(), strict=True):
                if not row.is_ended:
                    row.tokens.append(token)
                    row.log_probs.append(log_prob)
                    row.is_ended = token in self._ends or self._is_reached(row)
            if all(row.is_ended for row in rows):
                return
            cache = getattr(out, self._kept)
            ids, positions = tokens[:, None], positions[:, -1:] + 1
            mask = torch.cat([mask, mask.new_ones(len(rows), 1)], dim=1)

    def _is_reached(self, row: _GrowingAnswer) -> bool:
        """Whether the answer ends with its last token."""
        last = self._decoded(row.tokens[-1:])
        if not any(mark in last for mark in row.ending.marks):
            return False
        return row.ending.is_reached(self._decoded(row.tokens))

    def _decoded(self, tokens: Sequence[int]) -> str:
        said: str = self._tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return said

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


def _log_probs(logits: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """Of the distribution to draw from: (rows, vocabulary)."""
    if sampling.temperature:
        # From the largest down: dividing by a tiny temperature then gives zero and minus infinity, never NaN.
        logits = (logits - logits.max(dim=1, keepdim=True).values) / sampling.temperature
    log_probs = logits.log_softmax(dim=1)
    if sampling.temperature and sampling.top_p < 1:
        ordered, order = log_probs.sort(dim=1, descending=True, stable=True)
        before = ordered.exp().cumsum(dim=1) - ordered.exp()  # the likeliest token is always kept
        ordered = ordered.masked_fill(before >= sampling.top_p, float("-inf"))
        log_probs = torch.empty_like(ordered).scatter_(1, order, ordered).log_softmax(dim=1)
    return log_probs


def _draw(log_probs: torch.Tensor, rows: Sequence[_GrowingAnswer]) -> torch.Tensor:
    """A token a row, by the race of exponential clocks: where two batches round differently, hardly ever another."""
    clocks = torch.stack(
        [torch.empty_like(one).exponential_(generator=row.noise) for one, row in zip(log_probs, rows, strict=True)]
    )
    return (log_probs - clocks.log()).argmax(dim=1)


def _version(model: Any, tokenizer: Any) -> str:
    """Changes with the weights, the template and the libraries; reads every weight, about a second a gigabyte."""
    digest = loading.weights_digest(model, tokenizer)
    return f"{digest}/transformers-{transformers.__version__}/torch-{torch.__version__}"
