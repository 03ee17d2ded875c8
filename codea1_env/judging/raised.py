"""What a test that expects an exception may say of the one that came out of a call, as data.

    {'raises': 'ValueError', 'message': 'x is negative'}      `raises` is the first of its classes that the test names

The process of a program says of every exception that leaves a call which classes it is of and what its text is: nothing
that is asked of a program tells that an exception is expected. What it says is untrusted and compared as data. Where
the problem makes exceptions values (`Problem.raises`), the value says it.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from codea1_env.judging.oracle import ReferenceValue
from codea1_env.problems.kinds import exceptions_of
from codea1_env.problems.problem import Problem
from codea1_env.reading.literals import Tree, encode
from codea1_env.sandbox.protocol import Outcome, OutcomeKind

NOTHING_RAISED = "<no such exception>"


class _Told(NamedTuple):
    kinds: list[str]
    """Names of its classes, its own first."""
    message: str | None
    """None where the problem says that it does not count, or the process tells none: it is long, or raises."""

    def among(self, names: Collection[str]) -> str:
        """The first of its classes that is among these; empty where none is."""
        return next((kind for kind in self.kinds if kind in names), "")

    def encoded(self, names: Collection[str]) -> bytes:
        said: list[Tree] = [["raises", self.among(names)], ["message", self.message]]
        return encode({"d": said[: 1 if self.message is None else 2]})


def raised_outcome(problem: Problem, outcome: Outcome, names: Collection[str]) -> Outcome:
    """What a call came to, as who expects an exception of one of these names sees it."""
    said = outcome.value if outcome.kind in (OutcomeKind.ERROR, OutcomeKind.VALUE) else b""
    raised = _of(problem, said, is_error=outcome.kind is OutcomeKind.ERROR)
    if raised is not None and raised.among(names):
        return replace(outcome, kind=OutcomeKind.VALUE, value=raised.encoded(names), error="")
    is_value = outcome.kind is OutcomeKind.VALUE
    return replace(outcome, kind=OutcomeKind.ERROR, value=b"", error=NOTHING_RAISED) if is_value else outcome


def raised_reference(problem: Problem, reference: ReferenceValue, names: Collection[str]) -> ReferenceValue:
    """Likewise, what the right exception is. One that nobody describes is no answer."""
    said = reference.raised if reference.failure else reference.value
    raised = _of(problem, said, is_error=bool(reference.failure))
    known = exceptions_of(problem)
    if raised is None or not raised.among(known):
        return ReferenceValue(b"", reference.failure or NOTHING_RAISED)
    if not known[raised.among(known)]:
        raised = raised._replace(message=None)
    return ReferenceValue(raised.encoded(names))


def _of(problem: Problem, said: bytes, *, is_error: bool) -> _Told | None:
    """What a process says of an exception; None where it is no such thing."""
    try:
        tree = json.loads(said) if said else None
    except (ValueError, RecursionError):  # programs can write what they like
        return None
    match tree:
        case {"t": [[*kinds], str() | None as message]} if is_error:
            return _Told([kind for kind in kinds if isinstance(kind, str)], message)
        case {"d": [["raises", str(name)], *more]} if not is_error and problem.raises:
            kind = getattr(builtins, name, Exception)  # a class of the program's own derives from that
            kinds = [name, *(each.__name__ for each in getattr(kind, "__mro__", ()))]
            text = more[0][1] if more and isinstance(more[0], list) and len(more[0]) == 2 else None
            return _Told(kinds, text if isinstance(text, str) else None)
    return None
