"""The operations that the miniature family is composed of: filters, maps and aggregates over a list of integers.

Each has a phrase for the question, correct Python expressions, and the natural bugs that a hurried programmer writes.
Tables have one a line: kind, phrase, right expressions, bugs, and `gross`, `signed` or the condition of an edge. K and
L in them stand for numbers.

Does not promise that every bug is visible in every composition: some are harmless beside some other operations.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListOperation:
    """One filter, map or aggregate."""

    kind: str
    """Its type: operations that differ in a constant only share one. Held-out problems hold out triples of types."""
    phrase: str
    """Its part of the question; an aggregate's has `{}` where the description of the list goes."""
    correct: tuple[str, ...]
    """Equivalent right expressions: of `x` for filters and maps (empty for the filter that keeps all), else of `ys`."""
    bugs: tuple[str, ...] = ()
    """Wrong expressions of the same form, the most natural one first."""
    constants: tuple[int, ...] = ()
    """Numbers at which its behaviour changes: where edge inputs aim and typical ones do not go."""
    gross: bool = False
    """Its bugs show on almost any input, so that a warm start should hold fewer of them."""
    signed: bool = False
    """Even a hurried tester tries negative numbers on it."""
    edge: str = "False"
    """Condition on `ys` under which an aggregate is at an edge, which a hurried tester does not think of."""


def _operations(table: str, *constants: tuple[int, ...]) -> list[ListOperation]:
    """Those of a table; of one with letters, all its lines with the first numbers, then with the next."""
    operations = []
    for numbers in constants or ((),):
        told = table
        for letter, number in zip("KL", numbers, strict=False):
            told = told.replace(letter, str(number))
        for line in told.strip().splitlines():
            kind, phrase, right, wrong, *more = (part.strip() for part in line.split("|"))
            bugs = tuple(wrong.split(" ; ")) if wrong else ()
            edge = "".join(each for each in more if each not in ("gross", "signed")) or "False"
            gross, signed = "gross" in more, "signed" in more
            correct = tuple(right.split(" ; "))
            operations.append(ListOperation(kind, phrase, correct, bugs, numbers, gross, signed, edge))
    return operations


_SIGNS = """
all | | |
positive | that are positive | x > 0 | x >= 0 ; x != 0 | signed
negative | that are negative | x < 0 | x <= 0 ; x > 0 | signed
not_negative | that are not negative | x >= 0 | x > 0 | signed
even | that are even | x % 2 == 0 | x > 0 and x % 2 == 0 ; x % 2 == 1
odd | that are odd | x % 2 == 1 | x > 0 and x % 2 == 1 ; x % 2 == 0
"""
_DIVISORS = "divisible | divisible by K | x % K == 0 | x > 0 and x % K == 0 ; x // K == 0"
_MAGNITUDES = """
near | of magnitude at most K | abs(x) <= K | x <= K ; abs(x) < K
far | of magnitude over K | abs(x) > K | x > K ; abs(x) >= K
"""
_COMPARISONS = """
greater | greater than K | x > K | x >= K ; x < K
at_least | that are at least K | x >= K | x > K ; x <= K
less | less than K | x < K | x <= K ; x > K
at_most | that are at most K | x <= K | x < K ; x >= K
"""
_RANGES = "between | from K to L inclusive | K <= x <= L | K < x < L ; K <= x < L ; K < x <= L"
FILTERS = (
    *_operations(_SIGNS),
    *_operations(_DIVISORS, (3,), (4,), (5,)),
    *_operations(_MAGNITUDES, (2,), (3,), (4,), (5,)),
    *_operations(_COMPARISONS, (1,), (2,), (3,), (4,), (5,), (6,)),
    *_operations(_RANGES, (1, 4), (1, 5), (2, 5), (2, 6), (2, 7), (3, 6), (3, 7), (4, 8)),
)

_PLAIN_MAPS = """
same | numbers | x |
square | squares of the numbers | x * x | x * 2 | gross
double | doubles of the numbers | x * 2 | x * x | gross
absolute | absolute values of the numbers | abs(x) | x ; -x
negate | negations of the numbers | -x | x ; -abs(x) | gross
halve | halves rounded toward zero of the numbers | int(x / 2) | x // 2 ; x / 2
"""
MAPS = (
    *_operations(_PLAIN_MAPS),
    *_operations("add | numbers plus K | x + K | x - K | gross", (1,), (2,), (3,)),
    *_operations("distance | distances to K of the numbers | abs(x - K) | x - K ; K - x | gross", (2,), (3,), (4,)),
    *_operations("cap | values capped at K of the numbers | min(x, K) | max(x, K) | gross", (5,), (6,)),
)

_SCALARS = """
sum | the sum of the {} | sum(ys) | len(ys) ; sum(ys) if ys else 1 | gross
count | how many there are of the {} | len(ys) | sum(ys) ; len(set(ys)) | gross
count_distinct | how many distinct ones among the {} | len(set(ys)) | len(ys) ; sum(ys)
sum_distinct | the sum of the distinct ones among the {} | sum(set(ys)) | sum(ys) ; len(set(ys))
"""
_ENOUGH = """
enough | whether there are at least K of the {} | len(ys) >= K | len(ys) > K ; len(set(ys)) >= K | len(ys) == K
"""
_LISTS = """
list | the list of the {} | ys | ys[::-1] ; sorted(ys) | gross
ascending | the {} in ascending order | sorted(ys) | sorted(set(ys)) ; ys
descending | the {} in descending order | sorted(ys, reverse=True) ; sorted(ys)[::-1] | sorted(set(ys))[::-1] ; ys[::-1]
ascending_distinct | the distinct {} in ascending order | sorted(set(ys)) | sorted(ys) ; list(set(ys))
"""


def _guarded(
    kind: str, phrase: str, result: str, none: int, bugs: tuple[str, ...], edge: str = "not ys", *also: str
) -> ListOperation:
    """An aggregate that has a `result` of its own, `none`, for the empty list. `also`: further right expressions."""
    right = (f"{result} if ys else {none}", *also)
    return ListOperation(kind, f"the {phrase} the {{}} or {none} if none", right, (result, *bugs), edge=edge)


_REVERSED = "len(ys) - 1 - ys[::-1].index(max(ys))"
_GUARDED = (
    _guarded("largest", "largest of", "max(ys)", 0, ("max(ys + [0])", "min(ys)"), "not ys or max(ys) == 0",
             "max(ys, default=0)"),
    _guarded("smallest", "smallest of", "min(ys)", 0, ("min(ys + [9])", "max(ys)"), "not ys or min(ys) == 0",
             "min(ys, default=0)"),
    _guarded("first", "first of", "ys[0]", -1, ("ys[0] if ys else 0", "ys[-1]")),
    _guarded("last", "last of", "ys[-1]", -1, ("ys[-1] if ys else 0", "ys[0]")),
    _guarded("range", "largest minus the smallest of", "max(ys) - min(ys)", 0, ("ys[-1] - ys[0]",), "len(ys) < 2"),
    _guarded("first_largest", "first position of the largest among", "ys.index(max(ys))", -1,
             (_REVERSED, "ys.index(min(ys))")),
)  # fmt: skip
AGGREGATES = (*_operations(_SCALARS), *_operations(_ENOUGH, (2,), (3,)), *_GUARDED, *_operations(_LISTS))
