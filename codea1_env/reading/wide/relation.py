"""What a relational test claims, as data: one term of a small pure language over the returned value and constants.

    assert len(f([1, 2])) == 2            call f([1, 2]), relation `len(r) == c`, constants (2,)
    assert abs(f(3) - 0.5) < 1e-6         call f(3), relation `abs(r - c) < c`, constants (0.5, 1e-06)

The language has comparisons, `and`, `or`, `not`, arithmetic on numbers, indexing, slices and the functions below. It
has one loop over a value's items (`each`: a comprehension, with none within it), no names and no function of its own.
Each term makes a value that is no larger than its parts, so a relation of a given size does a bounded amount of work
(`judging/relations/truth.py` alone evaluates it). Does not know how a test is written (`wide/relational_tests.py`), and
does not promise that a relation says anything about a program (`judging/relations/status.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MAX_TERMS = 64
"""Of one relation, constants and returned values included."""

COMPARISONS = frozenset("eq ne lt le gt ge in notin is isnot".split())
"""Operators that compare two values. `is` compares with None, True or False alone."""
FUNCTIONS = frozenset(
    """len sorted reversed list tuple set frozenset dict iter next abs round sum min max any all int float str bool
    repr Counter bytes enumerate isnan isinf isfinite""".split()
)
"""Python's functions that a relation may call, each with one value; `round` may take the digits as well."""
METHODS: Mapping[str, int] = {
    "lower": 0, "upper": 0, "strip": 0, "keys": 0, "values": 0, "items": 0, "isdigit": 0, "startswith": 1,
    "endswith": 1, "count": 1, "split": 0, "tolist": 0, "isoformat": 0, "weekday": 0, "isoweekday": 0,
    "total_seconds": 0, "date": 0, "most_common": 1, "_asdict": 0,
}  # fmt: skip
"""Methods of strings, lists, dicts, arrays and times that a relation may call, with how many constants each takes."""
TYPES = frozenset(
    """int float complex str bytes bool list tuple dict set frozenset NoneType Fraction Decimal date datetime time
    timedelta range deque Counter OrderedDict array ndarray Series DataFrame Index map filter zip reversed enumerate
    generator""".split()
)
"""What `isinstance(f(x), T)` and `type(f(x)) is T` may name."""
_TRUTHS = COMPARISONS | frozenset(
    """not bool isinstance hastype isclose same_items any all looked isnan isinf isfinite array_equal equal_everywhere
    equal_arrays allclose same_table""".split()
)


@dataclass(frozen=True, slots=True)
class Relation:
    """One term and all that is below it. Equal relations ask the same of a value and of constants."""

    operator: str
    """`returned`, `constant`, or the operator's name as in the tables above."""
    parts: tuple[Relation, ...] = ()
    place: int = 0
    """Of a constant, in the test's constants."""
    raising: tuple[str, ...] = ()
    """Of a whole relation that is about the exception which a call raises (`wide/claims.py`): the classes that it
    may be of. `returned` stands for what `judging/raised.py` says of it."""

    def walk(self) -> Iterator[Relation]:
        """The term and every term below it."""
        yield self
        for part in self.parts:
            yield from part.walk()

    @property
    def is_truth(self) -> bool:
        """Its value is always True or False."""
        if self.operator in ("and", "or"):
            return all(part.is_truth for part in self.parts)
        return self.operator in _TRUTHS


RETURNED_VALUE = Relation("returned")
LOOKED = Relation("looked", (RETURNED_VALUE,))
"""What a look (`wide/looking.py`) made of the returned value is True."""
ELEMENT = Relation("element")
"""In the second and third part of `each`: one of the items of its first part, in turn."""
