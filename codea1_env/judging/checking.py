"""Whether values are right where a problem has a checker (`problems/checkers.py`): asks it, in the sandbox.

Runs after all candidates of a batch have ended, as references do, in processes whose zygote forks no candidate. Values
come as data and were made by untrusted programs: a checker that raises, hangs or returns anything but True has not
accepted the value. Remembers what it was told. Does not promise that a checker is right.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from codea1_env.judging.bounded_cache import BoundedCache
from codea1_env.judging.oracle import is_plain
from codea1_env.judging.repeats import names_of
from codea1_env.judging.schedule import limits_of
from codea1_env.problems.checkers import CHECK
from codea1_env.problems.problem import Problem
from codea1_env.reading.signatures import placed
from codea1_env.sandbox.protocol import CallsJob, Outcome, OutcomeKind, Sandbox
from codea1_env.sandbox.worlds import world_of

_TRUE = b"true"


@dataclass(frozen=True, slots=True)
class Check:
    """One value that a checker is asked about."""

    problem: Problem
    """With a checker that is a program."""
    arguments: bytes
    value: bytes
    """What a candidate returned or a test states. Untrusted."""
    right: bytes
    """What the reference returned, or a golden test says."""


class Checkers:
    """Asks checkers through a sandbox. Not thread-safe."""

    def __init__(self, sandbox: Sandbox, cache_bytes: int) -> None:
        """`cache_bytes` bounds the answers that are remembered; 0: none are."""
        self._sandbox = sandbox
        self._remembered: BoundedCache[bytes, bool] = BoundedCache(cache_bytes)

    def accepted(self, checks: Sequence[Check]) -> list[bool]:
        """Whether each value is right, in one sandbox run. Raises SandboxError."""
        problems = {id(check.problem): check.problem for check in checks}
        named = {key: problem.content_hash.encode("ascii") for key, problem in problems.items()}
        keys = [_key(check, named[id(check.problem)]) for check in checks]
        known = {key: answer for key in keys if (answer := self._remembered.get(key)) is not None}
        new = {key: check for key, check in zip(keys, checks, strict=True) if key not in known}
        for key, check in new.items():
            if not is_plain(check.value):
                known[key] = False
        groups: dict[int, list[bytes]] = {}
        for key, check in new.items():
            if key not in known:
                groups.setdefault(id(check.problem), []).append(key)
        jobs = [_job(problems[place], [_call(new[key]) for key in members]) for place, members in groups.items()]
        for members, result in zip(groups.values(), self._sandbox.run(jobs) if jobs else [], strict=True):
            failure = result.load_failure or Outcome(OutcomeKind.CRASH)
            for key, outcome in zip(
                members, result.outcomes if result.loaded else [failure] * len(members), strict=True
            ):
                known[key] = outcome.kind is OutcomeKind.VALUE and outcome.value == _TRUE
                if outcome.kind is not OutcomeKind.CRASH:  # which may have been somebody else's doing
                    self._remembered.put(key, known[key], len(key))
        return [known[key] for key in keys]


def _job(problem: Problem, calls: Sequence[bytes]) -> CallsJob:
    """Every value has its whole time limit, whatever the others take."""
    return CallsJob(
        problem.checker,
        CHECK,
        tuple(calls),
        limits_of(problem, room=len(calls) + 10),
        packages=problem.packages,
        is_checker=True,
        world=world_of(problem.checker),
    )


def _call(check: Check) -> bytes:
    """The checker's arguments on the wire."""
    positional, named = json.loads(placed(check.arguments, names_of(check.problem)))
    given = [*positional, {"d": named}] if named else positional
    call = [[given, json.loads(check.value), json.loads(check.right)], []]
    return json.dumps(call, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def _key(check: Check, problem: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=32)
    parts = (problem, check.arguments, check.value, check.right)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.digest()
