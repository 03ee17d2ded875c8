"""Whether a model can be taken at all, told from its files before anything heavy is imported.

A directory in Hugging Face format, or a .gguf file, with a chat template, and of the Qwen2 or the Llama family where
our own engine reads it. A .gguf file's header says names and values, and which tensors there are; it is read without
the package `gguf`. Does not promise that the weights are those that the model needs: loading finds that out.
"""

from __future__ import annotations

import importlib.util
import json
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from codea1_env.errors import ConfigurationError

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""How values are packed, by their kind."""
_TEXT, _LIST = 8, 9
MOST_DIMENSIONS = 4
"""Of a tensor, in this format."""


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """Of one file."""

    values: Mapping[str, Any]
    tensors: frozenset[str]

    @property
    def family(self) -> Any:
        """The architecture; the names of its sizes begin with it."""
        return self.values.get("general.architecture")

    def size(self, name: str, default: int | None = None) -> int:
        """A number of the architecture. Raises KeyError where there is none."""
        value = self.values.get(f"{self.family}.{name}", default)
        if not isinstance(value, int):
            raise KeyError(f"{self.family}.{name}")
        return value


@lru_cache(maxsize=4)
def read_gguf_header(file: Path, what: str) -> GgufHeader:
    """`what`: how the user gave the file. Raises ConfigurationError, in one line."""
    try:
        with file.open("rb") as opened:
            if opened.read(4) != b"GGUF":
                is_named = file.suffix == ".gguf"
                why = "which does not begin like one; fetch it again" if is_named else "which is neither"
                raise ConfigurationError(f"{what} must be a directory or a .gguf file, got {file}, {why}")
            _, tensors, count = _unpacked(opened, "IQQ")
            values = {_text(opened): _value(opened, *_unpacked(opened, "I")) for _ in range(count)}
            return GgufHeader(values, frozenset(_tensor(opened) for _ in range(tensors)))
    except ConfigurationError:
        raise
    except (OSError, struct.error, ValueError, KeyError, OverflowError, MemoryError, RecursionError) as error:
        raise ConfigurationError(f"{what} must have a whole header, got {file}: {error!r:.200}") from None


def _unpacked(opened: BinaryIO, kinds: str) -> tuple[Any, ...]:
    layout = struct.Struct(f"<{kinds}")
    return layout.unpack(opened.read(layout.size))


def _text(opened: BinaryIO) -> str:
    (length,) = _unpacked(opened, "Q")
    words = opened.read(length)
    if len(words) < length:
        raise ValueError("it ends within a text")
    return words.decode("utf-8", "replace")


def _value(opened: BinaryIO, kind: int) -> Any:
    if kind == _TEXT:
        return _text(opened)
    if kind != _LIST:
        return _unpacked(opened, _NUMBERS[kind])[0]
    of, length = _unpacked(opened, "IQ")
    if of in _NUMBERS:
        opened.seek(length * struct.calcsize(_NUMBERS[of]), 1)
    else:
        for _ in range(length):
            _value(opened, of)
    return length


def _tensor(opened: BinaryIO) -> str:
    """The name; sizes, kind and place are passed over."""
    name = _text(opened)
    (dimensions,) = _unpacked(opened, "I")
    _unpacked(opened, "Q" * min(dimensions, MOST_DIMENSIONS) + "IQ")
    return name


ADAPTER = "adapter_config.json"
"""Of an adapter of the packed trainer; it names the base."""
BASE = "base.json"
"""Beside an adapter: where its base is, or the base's repository, and the base's digest."""
FAMILIES = ("qwen2", "llama")
"""Architectures, as `model_type` of config.json and `general.architecture` of a .gguf file name them."""
ROTARY = ("default", "linear", "llama3", "yarn")
"""Kinds of rotary positions whose angles do not depend on the length of the text."""


def default_cache(environment: Mapping[str, str]) -> Path:
    """Where base models are kept, and runs that have an address: CODEA1_CACHE, or `.cache/codea1` at home."""
    return Path(environment.get("CODEA1_CACHE") or Path.home() / ".cache" / "codea1")


def is_place(name: str) -> bool:
    """Whether a model is named by where it lies on this machine, and not as a repository of the hub."""
    return Path(name).exists() or name.endswith(".gguf") or name.startswith((".", "/", "~"))


def base_of(source: Path) -> str | None:
    """Where the base of an adapter is; None where `source` is no adapter beside a base, but has weights of its own.
    Raises ConfigurationError for an adapter that does not say."""
    if not (source / ADAPTER).is_file() or has_weights(source):
        return None
    base = _read(source / ADAPTER, "the adapter").get("base_model_name_or_path")
    if not base or not isinstance(base, str):
        raise ConfigurationError(f"{source / ADAPTER} must name its base in base_model_name_or_path, got {base!r}")
    if not is_place(base) and (source / BASE).is_file():  # runs once wrote a place as seen from where they began
        return str(_read(source / BASE, "the adapter").get("base", base))
    return base


def require_model(source: Path, what: str = "the model", *, is_plan: bool = False) -> None:
    """Raise ConfigurationError, in one line, for what `load` could not take. `what`: how the user gave it. `is_plan`:
    the weights may come later."""
    require_chat_model(source, what, is_plan=is_plan)
    if source.is_dir() and (reason := unfit(_read(source / "config.json", what))):
        raise ConfigurationError(f"{what} {reason}")


def require_chat_model(source: Path, what: str = "the model", *, is_plan: bool = False) -> None:
    """Likewise for what no reader could take, of whatever family a directory is."""
    if source.is_file():
        _require_gguf(source, what)
        return
    if not source.is_dir():
        raise ConfigurationError(f"{what} must be a directory or a .gguf file, got {source}: there is none")
    if not (source / "config.json").is_file():
        raise ConfigurationError(f"{what} must hold a config.json, got none in {source}")
    config = _read(source / "config.json", what)
    if not _has_template(source, what):
        raise ConfigurationError(f"{what} must have a chat template (take an instruct model), got none in {source}")
    require_weights(source, config, what, is_plan=is_plan)


def unfit(config: Mapping[str, Any]) -> str:
    """Why our own engine does not compute what a model with this config.json computes, as must and got; empty where it
    does."""
    family = config.get("model_type")
    if family not in FAMILIES:
        return f"must be of the families {' or '.join(FAMILIES)}, got {family!r}"
    quantised = config.get("quantization_config")
    if isinstance(quantised, Mapping) and quantised.get("quant_method") == "gguf":  # widened when it was read
        config = {**config, "quantization_config": None}
    for name in ("use_sliding_window", "quantization_config", "mlp_bias"):
        if config.get(name):
            return f"must have no {name}, got {config[name]!r}"
    if config.get("is_causal") is False:
        return "must be causal, got is_causal false"
    rotary = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = rotary.get("rope_type", rotary.get("type", "default")) if isinstance(rotary, Mapping) else rotary
    if kind not in ROTARY:
        return f"must have rotary positions of a kind in {ROTARY}, got {kind!r}"
    act = config.get("hidden_act", "silu")
    return "" if act == "silu" else f"must have hidden_act silu, got {act!r}"


def _has_template(source: Path, what: str) -> bool:
    if (source / "chat_template.jinja").is_file():  # goes before all others, even if it is empty
        return bool((source / "chat_template.jinja").read_bytes().strip())
    if (source / "chat_template.json").is_file():
        return True
    file = source / "tokenizer_config.json"
    return file.is_file() and bool(_read(file, what).get("chat_template"))


def _read(file: Path, what: str) -> Mapping[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{what} must have a readable {file.name}, got {file}: {error}") from None
    if not isinstance(content, dict):
        raise ConfigurationError(f"{what} must have a mapping in {file.name}, got {content!r:.80}")
    return content


def positions_of(source: Path) -> tuple[int, str]:
    """The most tokens that a model takes, sys.maxsize where its files do not say, and what they call it. Raises
    ConfigurationError."""
    if source.is_dir():
        entry, values = "max_position_embeddings", _read(source / "config.json", "the model")
    else:
        header = read_gguf_header(source, "the model")
        entry, values = f"{header.family}.context_length", header.values
    positions = values.get(entry)
    return positions if isinstance(positions, int) else sys.maxsize, entry


def require_gguf_reader(source: Path) -> None:
    """Raise ConfigurationError where transformers could not read a .gguf file, for want of a package."""
    if importlib.util.find_spec("gguf") is None:
        raise ConfigurationError(f"{source} needs the extra `gguf`, got none: pip install '.[gguf]' in the clone")


def _require_gguf(source: Path, what: str) -> None:
    header = read_gguf_header(source, what)
    if header.family not in FAMILIES:
        raise ConfigurationError(
            f"{what} must be of the families {' or '.join(FAMILIES)}, got {header.family!r} in {source}"
        )
    if "tokenizer.chat_template" not in header.values:
        raise ConfigurationError(f"{what} must have a chat template (take an instruct model), got none in {source}")
    # What transformers' reader leaves out without a word, so that other numbers would come of it.
    scaling = header.values.get(f"{header.family}.rope.scaling.type", "none")
    if scaling != "none" or "rope_freqs.weight" in header.tensors:
        got = f"of the kind {scaling!r}" if scaling != "none" else "by rope_freqs.weight"
        raise ConfigurationError(
            f"{what} must have rotary positions without scaling in a .gguf file, got scaling {got} in {source}; take "
            "its directory in Hugging Face format"
        )
    if header.family == "llama" and any(name.startswith("blk.") and name.endswith(".bias") for name in header.tensors):
        raise ConfigurationError(
            f"{what} must be without biases in a .gguf file of the Llama family, got some in {source}; take its "
            "directory in Hugging Face format"
        )


WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
"""The one file of a model, or what names its files."""
OTHERS = ("pytorch_model.bin", "pytorch_model.bin.index.json")
LONGEST_HEADER = 100 << 20
"""Bytes; safetensors reads no longer one."""


def has_weights(source: Path) -> bool:
    """Whether a directory has a configuration and weights of a whole model, as it seems from the files' names."""
    return (source / "config.json").is_file() and any((source / name).is_file() for name in (WHOLE, INDEX, *OTHERS))


def require_weights(source: Path, config: Mapping[str, Any], what: str, *, is_plan: bool = False) -> None:
    """Raise ConfigurationError, in one line, where they are not there or broken. `config`: the model's config.json.
    `what`: how the user gave the model. `is_plan`: they may come later."""
    named = config.get("transformers_weights") or WHOLE
    if (source / str(named)).is_file():
        files = [source / str(named)]
    elif (source / INDEX).is_file():
        files = _indexed(source / INDEX, what)
    elif is_plan or any((source / name).is_file() for name in OTHERS):
        return
    else:
        raise ConfigurationError(f"{what} must hold its weights, {named} or {INDEX}, got neither in {source}")
    for file in files:
        if file.suffix == ".safetensors":
            _require_whole(file, what)


def _indexed(index: Path, what: str) -> list[Path]:
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        return [index.parent / name for name in names]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigurationError(f"{what} must have an index of its weights, got {index}: {error!r:.200}") from None


def _require_whole(file: Path, what: str) -> None:
    """A length of 8 bytes, a header of that length in JSON, and as many bytes of numbers as it says."""
    try:
        size = file.stat().st_size
        with file.open("rb") as opened:
            (length,) = struct.unpack("<Q", opened.read(8))
            header: Any = json.loads(opened.read(min(length, size, LONGEST_HEADER)))
        ends = (tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__")
        said = 8 + length + max(ends, default=0)
    except (OSError, struct.error, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        why = getattr(error, "strerror", None) or "its header cannot be read"
        raise ConfigurationError(f"{what} must have whole files of weights, got {file}: {why}") from None
    if size != said:
        raise ConfigurationError(
            f"{what} must have whole files of weights, got {file} of {size} bytes, whose header says {said}"
        )
