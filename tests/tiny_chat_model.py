"""A language model of a few thousand random weights with a chat template: any text in, mostly nonsense out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

TEMPLATE = (
    "{%- for message in messages -%}<{{ message['role'] }}>{{ message['content'] }}<end>{%- endfor -%}"
    "{%- if add_generation_prompt -%}<assistant>{%- endif -%}"
)
SPECIAL = ("<pad>", "<end>", "<system>", "<user>", "<assistant>")


def tiny_tokenizer() -> Any:
    """A token for each byte, and one for each role and end."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({text: k for k, text in enumerate([*SPECIAL, *alphabet])}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIAL))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<end>", chat_template=TEMPLATE
    )


def tiny_model(seed: int = 0, context: int = 4096, hidden_size: int = 32) -> Any:
    """Random weights; large ones, so that its tokens depend on what it reads. Two heads share `hidden_size`."""
    config = Qwen2Config(
        vocab_size=len(SPECIAL) + 256,
        hidden_size=hidden_size,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        intermediate_size=32,
        max_position_embeddings=context,
        initializer_range=0.5,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen2ForCausalLM(config)


@contextmanager
def one_thread() -> Iterator[None]:
    """Threads of so small a model do little but wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def save(directory: Path, hidden_size: int = 32) -> Path:
    """The model and its tokenizer as a directory that `from_pretrained` loads."""
    tiny_model(hidden_size=hidden_size).save_pretrained(directory)
    tiny_tokenizer().save_pretrained(directory)
    return directory
