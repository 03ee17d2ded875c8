"""A language model of a few thousand weights that calls tools: a few whole calls, each of which is one token to it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

ROLES = ("<system>", "<user>", "<assistant>", "<tool>")
TEMPLATE = (
    "{%- for message in messages -%}<{{ message['role'] }}>{{ message['content'] }}"
    "{%- for call in message.tool_calls or [] -%}<call>{{ call.function | tojson }}</call>{%- endfor -%}"
    "<end>{%- endfor -%}{%- if add_generation_prompt -%}<assistant>{%- endif -%}"
)
PARSER = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<assistant>",
    "fields": {
        "tool_calls": {
            "open": "<call>",
            "close_pattern": "</call>",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close_pattern": "<end>", "content": "text"},
    },
}


def call(name: str, **arguments: object) -> str:
    """The text of a tool call."""
    return f"<call>{json.dumps({'name': name, 'arguments': arguments})}</call>"


def tool_tokenizer(calls: Sequence[str]) -> Any:
    """A token for each byte, role and call."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<pad>", "<end>", *ROLES]
    tokenizer = Tokenizer(models.BPE({text: k for k, text in enumerate([*special, *alphabet])}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(special)
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in calls])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<end>",
        chat_template=TEMPLATE,
        response_template=PARSER,
    )


def save(directory: Path, chances: Mapping[str, float]) -> Path:
    """A model that answers with one of the calls, or, where its text is empty, with none; as a directory to load.

    `chances`: how often it is to choose each, in any conversation.
    """
    tokenizer = tool_tokenizer([text for text in chances if text])
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        intermediate_size=16,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Qwen2ForCausalLM(config)
        teach(model, tokenizer, chances)
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def teach(model: Any, tokenizer: Any, chances: Mapping[str, float]) -> None:
    """Short of a dialogue: after <assistant> one of the calls as often as told, after a call the end."""
    start, end = tokenizer.convert_tokens_to_ids(["<assistant>", "<end>"])
    first = [tokenizer.convert_tokens_to_ids(text) if text else end for text in chances]
    wanted = torch.zeros(len(tokenizer))
    wanted[first] = torch.tensor(list(chances.values()))
    after = torch.zeros(len(tokenizer))
    after[end] = 1.0
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    bytes_ = torch.arange(len(ROLES) + 2, len(ROLES) + 2 + 256)
    for _ in range(150):
        before = bytes_[torch.randint(256, (len(first), 12))]
        asked = torch.full((len(first), 1), start)
        logits = model(torch.cat([before, asked, torch.tensor(first)[:, None]], dim=1)).logits
        loss = torch.nn.functional.cross_entropy(logits[:, -2], wanted.expand(len(first), -1))
        loss = loss + torch.nn.functional.cross_entropy(logits[:, -1], after.expand(len(first), -1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
