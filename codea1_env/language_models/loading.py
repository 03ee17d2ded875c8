"""A model of the Qwen2 or Llama family, ready to be sampled and learnt from: weights, tokenizer, what ends an answer.

Reads whatever transformers reads of these families, and a .gguf file by transformers' own reader (extra `gguf`). The
weights of transformers' model are let go of once they are packed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra
from codea1_env.language_models.base import Base, has_bfloat16
from codea1_env.language_models.directories import ADAPTER, BASE, is_place, require_gguf_reader, require_model

with extra("train", "language models on CPUs need"):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig
    from transformers.utils.logging import disable_progress_bar

CONTEXT = 32_768
"""Positions at most: more than a CPU has time for."""
_log = logging.getLogger(__name__)
_SAID = 300
"""Characters of another library's words."""


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """One base with all that is needed to ask it."""

    base: Base
    tokenizer: Any
    ends: frozenset[int]
    """Tokens that end an answer."""
    source: str
    digest: str
    """Of weights and chat template; in hexadecimal. The same for the same weights in another file."""


def load(source: Path, *, dtype: str = "bfloat16", device: str = "cpu", what: str = "the model") -> LanguageModel:
    """`source`: a directory in Hugging Face format or a .gguf file. `what`: how the user gave it, for errors.
    `dtype`: to compute in; `bfloat16` is float32 on devices that do not have it. `device`: cpu or cuda.

    Raises ConfigurationError for one that is not there or not whole, of another architecture, or without a chat
    template.
    """
    require_model(source, what)
    tokenizer = load_tokenizer(source, what)
    model = load_weights(source, what, tokenizer, dtype="auto")
    if is_adapted(model):
        raise ConfigurationError(
            f"{what} must be a model or an adapter beside its base, got a model with an adapter of transformers' in it "
            f"({ADAPTER}) in {source}; merge them, or put the adapter into a directory of its own"
        )
    return ready(model, tokenizer, source=str(source), dtype=dtype, device=device)


def load_tokenizer(source: str | Path, what: str = "the model", **told: Any) -> Any:
    """Of a directory, a repository or a .gguf file; its chat template has been tried, if it has one. `told`: what else
    transformers is told, and in `load_weights`. Raises ConfigurationError, in one line."""
    with _in_one_line(what, "a config.json, tokenizer and chat template", source):
        tokenizer = AutoTokenizer.from_pretrained(**place(source), **told)
        if tokenizer.chat_template:
            messages = [{"role": "user", "content": "a question"}]
            tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        if not tokenizer("a question", add_special_tokens=False)["input_ids"]:  # as it is made up where there is none
            raise ValueError("no words in it")
    return tokenizer


def load_weights(source: str | Path, what: str, tokenizer: Any, **told: Any) -> Any:
    """A model of transformers, none of whose weights is made up. Raises ConfigurationError, in one line."""
    if not sys.stderr.isatty():
        disable_progress_bar()  # of transformers: files of standard error have no use for it
    log = logging.getLogger("transformers.modeling_utils")
    log.addFilter(_is_no_table)
    try:
        with _in_one_line(what, "weights", source):
            model, found = AutoModelForCausalLM.from_pretrained(
                **place(source), **told, output_loading_info=True, ignore_mismatched_sizes=True
            )
    finally:
        log.removeFilter(_is_no_table)
    for name, stored, wanted in found["mismatched_keys"]:
        raise ConfigurationError(
            f"{what} must have weights of the sizes in its config.json, got {name} of {tuple(stored)} and not "
            f"{tuple(wanted)} in {source}"
        )
    if lacking := sorted(found["missing_keys"]):
        raise ConfigurationError(
            f"{what} must have all weights that its config.json asks for, got {source} without {lacking[0]} "
            f"({len(lacking)} missing)"
        )
    added, template = tokenizer.get_added_vocab(), str(tokenizer.chat_template)
    known = tokenizer.get_vocab().items()  # with added ones that transformers makes up and no prompt has
    used = (token for text, token in known if text not in added or text in template)
    largest = max([*used, tokenizer.eos_token_id or 0])
    size = model.get_input_embeddings().num_embeddings
    if largest >= size:
        raise ConfigurationError(
            f"{what} must have a vocab_size of at least its tokenizer's, {largest + 1}, got {size} in {source}"
        )
    return model


def is_adapted(model: Any) -> bool:
    """Whether transformers found an adapter beside the weights, and put it into the model."""
    return bool(getattr(model, "_hf_peft_config_loaded", False))


def ends_of(model: Any, tokenizer: Any) -> set[int]:
    """The tokens that end an answer."""
    ends = model.generation_config.eos_token_id
    return {tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])} - {None}


@contextmanager
def without_defaults(model: Any) -> Iterator[None]:
    """`generate` without what the authors of a model recommend, such as a penalty or a least length: it would bend what
    is measured, and log-probabilities would not be those of what was drawn. What ends an answer stays."""
    config = model.generation_config
    recommended = vars(config).copy()
    kept = {name: recommended[name] for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    # In place, since a model with adapters hands the same object on.
    vars(config).clear()
    vars(config).update(vars(GenerationConfig(**kept)))
    try:
        yield
    finally:
        vars(config).clear()
        vars(config).update(recommended)


def _is_no_table(record: logging.LogRecord) -> bool:
    """Transformers tells what is missing in a table, and we in a line."""
    return not re.search("LOAD REPORT.*(MISSING|MISMATCH)", record.getMessage(), re.DOTALL)


@contextmanager
def _in_one_line(what: str, part: str, source: str | Path) -> Iterator[None]:
    """Every exception of the readers, which raise whatever comes: their files are somebody's."""
    try:
        yield
    except (ConfigurationError, ImportError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        said = " ".join(str(error).split())
        raise ConfigurationError(
            f"{what} must have {part} that can be read, got {source}: {type(error).__name__}: {said:.{_SAID}}"
        ) from error


def place(source: str | Path) -> dict[str, Any]:
    """How transformers is told of it."""
    if not Path(source).is_file():
        return {"pretrained_model_name_or_path": source}
    source = Path(source)
    require_gguf_reader(source)
    return {"pretrained_model_name_or_path": source.parent, "gguf_file": source.name}


def ready(model: Any, tokenizer: Any, *, source: str, dtype: str = "bfloat16", device: str = "cpu") -> LanguageModel:
    """From a model of transformers, which is not changed."""
    known = ends_of(model, tokenizer)
    place = torch.device(device)
    if dtype == "bfloat16" and not has_bfloat16(place):
        dtype = "float32"
    context = min(CONTEXT, model.config.max_position_embeddings)
    base = Base(model, getattr(torch, dtype), context, place)
    return LanguageModel(base, tokenizer, frozenset(known), source, weights_digest(model, tokenizer))


def weights_digest(model: Any, tokenizer: Any) -> str:
    """Reads every weight: about a second a gigabyte."""
    digest = hashlib.blake2b(f"{tokenizer.chat_template}".encode(), digest_size=8)
    for name, weights in sorted(model.state_dict().items()):
        digest.update(f"{name} {weights.dtype} {tuple(weights.shape)}".encode())
        digest.update(weights.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def require_digest(model: LanguageModel, adapter: Path) -> None:
    """Raise ConfigurationError where the adapter in that directory was trained beside another base. One whose base is a
    repository goes with other weights of that model, too, and warns."""
    if not (adapter / BASE).is_file():
        return  # of another trainer, which does not say
    base, digest = base_and_digest(adapter)
    if digest == model.digest:
        return
    if is_place(base):
        raise ConfigurationError(
            f"the base of {adapter} must have the digest {digest}, got {model.digest} in {model.source}"
        )
    _log.warning(
        "the base of %s has the digest %s, and the adapter learnt beside weights of %s with the digest %s: its answers "
        "are not those that were measured",
        adapter,
        model.digest,
        base,
        digest,
    )


def base_and_digest(adapter: Path) -> tuple[str, str]:
    """What is noted beside an adapter. Raises ConfigurationError where that cannot be read."""
    file = adapter / BASE
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        return str(record["base"]), str(record["digest"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ConfigurationError(f"{file} must name `base` and `digest` of an adapter's base, got {error!r}") from None
