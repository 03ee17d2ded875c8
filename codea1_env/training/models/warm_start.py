"""The base model of a procedural family: trained from nothing on imperfect programs and suites, cached by content.

One model learns both tasks and both seats start from it. Does not promise the same weights on other hardware or
other versions of torch: the cache key names the versions, not the machine.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import math
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.configuration.presets import Preset
from codea1_env.errors import Codea1Error
from codea1_env.extras import extra
from codea1_env.problems.families import bands, miniature, miniature_operations, shift
from codea1_env.training.models import corpora, mimetic, tiny
from codea1_env.training.models.corpora import SupervisedExample, band_pieces, examples, family_of, shift_of
from codea1_env.training.models.tiny import NUMBERS, build_model, build_tokenizer

with extra("train", "training needs"):
    import tokenizers
    import torch
    import transformers
    from tqdm import tqdm

_log = logging.getLogger(__name__)

WARM_UP_STEPS = 50
SORTED_STEPS = 20
"""Examples of this many steps are sorted by length together, so that a batch holds little padding."""
TOKENIZER_TEXTS = 4_000
COPY_LENGTHS = (6, 16)
"""Tokens that the exercise in copying repeats: from the first, less than the second."""


@dataclass(frozen=True, slots=True)
class _Encoded:
    tokens: list[int]
    """Prompt and answer, the end token included."""
    prompt: int
    """Tokens of the prompt, on which there is no loss."""


def base_model(preset: Preset, cache: Path) -> Path:
    """Directory of the warm-started base model and its tokenizer, built on first use.

    Built aside and moved into place whole: an interrupted build leaves nothing that could be taken for a model.
    """
    target = cache / f"base-{_content_hash(preset)[:16]}"
    if (target / "config.json").exists():
        return target
    try:
        cache.mkdir(parents=True, exist_ok=True)
        workshop = Path(tempfile.mkdtemp(prefix="building-", dir=cache))
    except OSError as error:
        raise Codea1Error(
            f"base models must be kept in a folder that can be written, got {cache}: {error.strerror}; name another in "
            "CODEA1_CACHE"
        ) from error
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)  # sums in one order, so that the weights repeat; and no faster with two
        _build(preset, workshop)
        try:
            os.replace(workshop, target)
        except OSError:
            # Another run finished the same model first; the two are equal.
            if not (target / "config.json").exists():
                raise
    finally:
        torch.set_num_threads(threads)
        shutil.rmtree(workshop, ignore_errors=True)
    return target


def _content_hash(preset: Preset) -> str:
    """Changes with anything that the base model depends on."""
    family = family_of(preset)
    problems = {"bands": (bands,), "shift": (bands, shift)}.get(family, (miniature, miniature_operations))
    files = [*(module.__file__ for module in (*problems, corpora, mimetic, tiny)), __file__]
    parts = {
        "family": family,
        "model": dataclasses.asdict(preset.model),
        "warm_start": dataclasses.asdict(preset.warm_start),
        "suite_size": preset.reward.suite_size,
        "versions": [torch.__version__, transformers.__version__, tokenizers.__version__],
        "sources": [hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in files if file],
    }
    # The tester learns from what it will be shown, or from both.
    if preset.options.access != "white-box" and not preset.warm_start.blind_share:
        parts["access"] = preset.options.access
    if family == "shift":
        parts["shift"] = shift_of(preset)
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _build(preset: Preset, directory: Path) -> None:
    warm = preset.warm_start
    corpus = list(examples(preset, max(warm.steps * warm.examples_per_step, 500)))
    texts = (example.messages[-1]["content"] + "\n" + example.answer for example in corpus[:TOKENIZER_TEXTS])
    pieces = NUMBERS if family_of(preset) == "miniature" else band_pieces()
    tokenizer = build_tokenizer(texts, preset.model.vocabulary, pieces)
    model = build_model(preset.model, tokenizer, warm.seed)
    if warm.steps:
        encoded = [_encode(example, tokenizer) for example in corpus]
        learnt = encoded[: warm.steps * warm.examples_per_step]  # the tokenizer may have needed more
        _fit(model, [*_copy_batches(encoded, preset), *_batches(learnt, preset)], preset)
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)


def _encode(example: SupervisedExample, tokenizer: Any) -> _Encoded:
    prompt = tokenizer.apply_chat_template(example.messages, tokenize=False)
    before = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    answer = tokenizer(example.answer, add_special_tokens=False)["input_ids"]
    return _Encoded([*before, *answer, tokenizer.eos_token_id], len(before))


def _fit(model: Any, batches: Sequence[list[_Encoded]], preset: Preset) -> None:
    """Next-token training on the answers, mean over tokens."""
    warm = preset.warm_start
    optimizer = torch.optim.AdamW(model.parameters(), lr=warm.rate, betas=(0.9, 0.98), weight_decay=0.01)
    pad = int(model.config.pad_token_id)
    model.train()
    often_s = 0.1 if sys.stderr.isatty() else 10.0  # in a log every step would stay
    bar = tqdm(enumerate(batches), total=len(batches), desc="warm start", unit="step", mininterval=often_s)
    for step, batch in bar:
        for group in optimizer.param_groups:
            group["lr"] = warm.rate * _rate_share(step, warm.copy_steps, warm.steps)
        loss = _answer_loss(model, batch, pad)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 25 == 0:
            bar.set_postfix(loss=f"{loss.item():.3f}", refresh=False)
    _log.info("warm start: loss %.3f after %d steps", loss.item(), len(batches))
    model.eval()


def _rate_share(step: int, copy_steps: int, steps: int) -> float:
    """At its peak while copying, then along a cosine."""
    cosine = 0.5 * (1 + math.cos(math.pi * max(0, step - copy_steps) / steps))
    return min(1.0, (step + 1) / WARM_UP_STEPS) * max(0.02, cosine)


def _batches(encoded: Sequence[_Encoded], preset: Preset) -> Iterator[list[_Encoded]]:
    """Every example once, in batches of similar length, in random order within each stretch of steps."""
    size, rng = preset.warm_start.examples_per_step, random.Random(f"warm start order {preset.warm_start.seed}")
    stretch = size * SORTED_STEPS
    for start in range(0, len(encoded), stretch):
        ordered = sorted(encoded[start : start + stretch], key=lambda example: len(example.tokens))
        batches = [ordered[i : i + size] for i in range(0, len(ordered), size)]
        rng.shuffle(batches)
        yield from batches


def _copy_batches(encoded: Sequence[_Encoded], preset: Preset) -> Iterator[list[_Encoded]]:
    """Tokens of the corpus in random order, three times over; the first time is the prompt."""
    warm = preset.warm_start
    rng = random.Random(f"warm start copying {warm.seed}")
    known = sorted({token for example in encoded[:TOKENIZER_TEXTS] for token in example.tokens})
    for _ in range(warm.copy_steps):
        length = rng.randrange(*COPY_LENGTHS)
        rows = [rng.choices(known, k=length) for _ in range(warm.examples_per_step)]
        yield [_Encoded(row * 3, length) for row in rows]


def _answer_loss(model: Any, batch: Sequence[_Encoded], pad: int) -> torch.Tensor:
    longest = max(len(example.tokens) for example in batch)
    tokens = torch.full((len(batch), longest), pad)
    wanted = torch.zeros((len(batch), longest), dtype=torch.bool)
    for row, example in enumerate(batch):
        tokens[row, : len(example.tokens)] = torch.tensor(example.tokens)
        wanted[row, example.prompt : len(example.tokens)] = True
    # Padding is on the right and attention is causal: no mask is needed. Only the answers meet the output layer.
    hidden = model.model(tokens[:, :-1]).last_hidden_state[wanted[:, 1:]]
    return torch.nn.functional.cross_entropy(model.lm_head(hidden), tokens[:, 1:][wanted[:, 1:]])
