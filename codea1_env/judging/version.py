"""The version of the judge: a number that moves when a verdict of the recorded corpora does, with a list of what moved.

The corpora are in `tests/judged/`, and a test holds the number to them. Results of two versions are compared where the
list says that nothing which concerns them has moved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from codea1_env.errors import ConfigurationError

FIRST = 1
"""The version of files that say none."""
ANY = "any"
"""The subject of results on whatever problems: every move concerns them."""


@dataclass(frozen=True, slots=True)
class Move:
    """What a version judges otherwise than the one before it."""

    version: int
    subjects: frozenset[str]
    """The corpora in which a verdict moved, by the names of `tests/judged/`."""
    what: str
    """In a sentence."""


MOVES: tuple[Move, ...] = ()
"""In order; one for each version after the first."""
VERSION = FIRST + len(MOVES)


def moved(one: int, other: int, subject: str) -> list[Move]:
    """What concerns `subject` between two versions. Raises ConfigurationError for a version that is not known here."""
    low, high = sorted((one, other))
    if not FIRST <= low <= high <= VERSION:
        got = high if high > VERSION else low
        raise ConfigurationError(
            f"the judge of a result must be a version from {FIRST} to {VERSION}, got {got}; "
            "read it with the codea1 that made it, or a newer one"
        )
    between = [move for move in MOVES if low < move.version <= high]
    return [move for move in between if subject == ANY or subject in move.subjects]


def require_comparable(versions: Iterable[int], subject: str, what: str) -> None:
    """Raise ConfigurationError, in one line, where results of these versions do not compare. `what`: the results."""
    known = sorted(set(versions)) or [VERSION]
    if found := moved(known[0], known[-1], subject):
        told = "; ".join(f"{move.version}: {move.what}" for move in found)
        raise ConfigurationError(
            f"{what} must be of one judge, got versions {known}, between which verdicts moved: {told}"
        )


def require_current(judge: int, subject: str, what: str) -> None:
    """Likewise of one result and what this judge finds."""
    require_comparable((judge, VERSION), subject, what)
