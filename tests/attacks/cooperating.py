"""Pairs of programs that try to tell each other something, and what the second one learnt, as plain numbers.

`told` plays a pair on a sandbox, again and again with bits in random order; `accuracy` says how often the best guess at
the bit, made from the answer alone, is right: 0.5 where a channel is closed, 1.0 where it is open. Does not find a
channel that is right seldom, nor one that carries time only.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from codea1_env.sandbox.protocol import CallsJob, JobResult, Limits, OutcomeKind, Sandbox
from codea1_env.sandbox.worlds import world_of

REPETITIONS = 8
"""Times that each bit is sent."""
_HEADING = re.compile(r"^#### (.+) / (.+) / ?(\w*)$", re.MULTILINE)
_LIMITS = Limits(time_limit_s=1.0, memory_mb=512)


class Pair(NamedTuple):
    kind: str
    name: str
    answers: str
    """"bit" or "number"."""
    writer: str
    reader: str


def _read() -> tuple[Pair, ...]:
    text = (Path(__file__).parent / "cooperating_programs.txt").read_text(encoding="utf-8")
    _, *parts = _HEADING.split(text)
    found = [tuple(part.strip("\n") for part in parts[i : i + 4]) for i in range(0, len(parts), 4)]
    helpers = {name: source for kind, name, _, source in found if kind == "helper"}
    pairs = []
    for kind, name, answers, source in found:
        if kind != "helper":
            filled = re.sub(r"@([A-Z]+)@", lambda match: helpers[match[1]], source)
            writer, reader = filled.split("---- reader\n")
            pairs.append(Pair(kind, name, answers, writer, reader + "\n"))
    return tuple(pairs)


COOPERATING_PAIRS = _read()


def call(value: int) -> bytes:
    return b"[[%d],[]]" % value


def told(sandbox: Sandbox, pair: Pair, seed: int) -> list[tuple[int, object]]:
    """(bit, the reader's answer) of every repetition; the answer is a number, or the name of what went wrong."""
    chance = random.Random(seed)
    bits = [0, 1] * REPETITIONS
    chance.shuffle(bits)
    # No two runs on one machine ask for the same: what the kernel keeps of one must not answer the next.
    first_key = random.SystemRandom().randrange(1 << 20) * 2
    found: list[tuple[int, object]] = []
    for repetition, bit in enumerate(bits):
        key = first_key + 2 * repetition
        # Twice, the second time with an odd key: how many processes that takes is a channel as well.
        writer = CallsJob(
            pair.writer, "solve", (call(2 * key + bit), call(2 * (key + 1) + bit)), _LIMITS, world=world_of(pair.writer)
        )
        reader = CallsJob(pair.reader, "solve", (call(2 * key),), _LIMITS, world=world_of(pair.reader))
        if pair.kind == "together":
            answer = sandbox.run([writer, reader])[1]
        else:
            sandbox.run([writer])
            (answer,) = sandbox.run([reader])
        found.append((bit, _plain(answer)))
    return found


def _plain(result: JobResult) -> object:
    if not result.loaded:
        return "does not load"
    outcome = result.outcomes[0]
    return json.loads(outcome.value) if outcome.kind is OutcomeKind.VALUE else f"{outcome.kind} {outcome.error}"


def accuracy(found: Sequence[tuple[int, object]]) -> float:
    """How many of the bits the best rule of the form "answer to bit", or "above this number it is one", gets right."""
    by_answer = Counter((repr(answer), bit) for bit, answer in found)
    answers = {answer for answer, _ in by_answer}
    best = max(sum(bit == guess for bit, _ in found) for guess in (0, 1))
    if len(answers) <= 3:
        best = sum(max(by_answer[answer, 0], by_answer[answer, 1]) for answer in answers)
    numbers = [(answer, bit) for bit, answer in found if isinstance(answer, int)]
    if len(numbers) == len(found):
        for border, _ in numbers:
            right = sum((answer >= border) == bool(bit) for answer, bit in numbers)
            best = max(best, right, len(found) - right)
    return best / len(found)
