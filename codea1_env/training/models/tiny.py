"""A tokenizer and a small Qwen2-architecture model for the procedural families, and the messages that they understand.

Does not promise to read text beyond printable ASCII and newlines: the tokenizer drops what it has no token for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from codea1_env.configuration.model_sections import ModelPreset
from codea1_env.extras import extra
from codea1_env.training.models.mimetic import start_mimetic

with extra("train", "training needs"):
    import torch
    from tokenizers import AddedToken, Tokenizer, models, trainers
    from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen2Tokenizer

PAD, END = "<pad>", "<eos>"
SPECIAL_TOKENS = (PAD, END, "<code>", "<test>", "<ans>")

# Numbers with what stands before them, one token each: suites shrink from 71 to 46 tokens. They are added tokens, not a
# pre-tokenizer of our own, because `AutoTokenizer` replaces the pre-tokenizer of any Qwen2 model by Qwen2's.
NUMBERS = tuple(f"{before}{digit}" for before in (", ", ", -", " ", " -", "-") for digit in range(10))
NUMBER = re.compile(r"[, -]*[0-9]")

# A system message names the task; the answer starts after the user's message, so no generation prompt is needed.
CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message['role'] == 'system' -%}{{ '<' + message['content'] + '>' }}"
    "{%- elif message['role'] == 'user' -%}{{ message['content'] + '<ans>' }}"
    "{%- else -%}{{ message['content'] + '<eos>' }}"
    "{%- endif -%}{%- endfor -%}"
)

Messages = list[dict[str, str]]


def coder_messages(question: str) -> Messages:
    """Rendered as `<code>QUESTION<ans>`."""
    return [{"role": "system", "content": "code"}, {"role": "user", "content": question}]


def tester_messages(question: str, program: str) -> Messages:
    """Rendered as `<test>QUESTION, newline, PROGRAM<ans>`."""
    return [{"role": "system", "content": "test"}, {"role": "user", "content": f"{question}\n{program.strip()}"}]


def build_tokenizer(texts: Iterable[str], vocabulary: int, pieces: Sequence[str] = NUMBERS) -> Any:
    """A byte-pair tokenizer of at most `vocabulary` tokens, trained on `texts`, with the chat template above.

    `pieces`: texts that are one token each, of a family's own; the miniature's are its numbers.
    """
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = Qwen2Tokenizer().backend_tokenizer.pre_tokenizer
    printable = [chr(code) for code in range(33, 127)]
    space_and_newline = ["\u0120", "\u010a"]  # as the byte-level alphabet spells them
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - len(pieces),
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=printable + space_and_newline,
        show_progress=False,
    )
    whole = NUMBER if pieces is NUMBERS else _any_of(pieces)
    trained.train_from_iterator((whole.sub("0", text) for text in texts), trainer)
    model = json.loads(trained.to_str())["model"]
    tokenizer = Qwen2Tokenizer(
        vocab=model["vocab"],
        merges=[tuple(pair) for pair in model["merges"]],
        unk_token=PAD,
        pad_token=PAD,
        eos_token=END,
        extra_special_tokens=list(SPECIAL_TOKENS[2:]),
        padding_side="left",
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )
    # A single character is a token already.
    tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece in pieces if len(piece) > 1])
    return tokenizer


def _any_of(pieces: Sequence[str]) -> re.Pattern[str]:
    longest_first = sorted(pieces, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)))


def build_model(shape: ModelPreset, tokenizer: Any, seed: int) -> Any:
    """A model with random weights; the same for the same arguments. Leaves torch's generator as it was."""
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_value_heads,
        intermediate_size=shape.feed_forward,
        max_position_embeddings=shape.context,
        initializer_range=shape.initial_spread,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        attn_implementation="sdpa",
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen2ForCausalLM(config)
        if shape.mimetic:
            start_mimetic(model)
        return model
