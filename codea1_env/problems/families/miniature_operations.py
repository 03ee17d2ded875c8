"""The operations that the miniature family is composed of: filters, maps and aggregates over a list of integers.

Each has a phrase for the question, correct Python expressions, and the natural bugs that a hurried programmer writes.
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


def _comparisons() -> list[ListOperation]:
    operations = []
    for k in range(1, 7):
        operations += [
            ListOperation("greater", f"greater than {k}", (f"x > {k}",), (f"x >= {k}", f"x < {k}"), (k,)),
            ListOperation("at_least", f"that are at least {k}", (f"x >= {k}",), (f"x > {k}", f"x <= {k}"), (k,)),
            ListOperation("less", f"less than {k}", (f"x < {k}",), (f"x <= {k}", f"x > {k}"), (k,)),
            ListOperation("at_most", f"that are at most {k}", (f"x <= {k}",), (f"x < {k}", f"x >= {k}"), (k,)),
        ]
    for low, high in ((1, 4), (1, 5), (2, 5), (2, 6), (2, 7), (3, 6), (3, 7), (4, 8)):
        bugs = (f"{low} < x < {high}", f"{low} <= x < {high}", f"{low} < x <= {high}")
        right = (f"{low} <= x <= {high}",)
        operations.append(ListOperation("between", f"from {low} to {high} inclusive", right, bugs, (low, high)))
    return operations


def _signs_and_divisors() -> list[ListOperation]:
    operations = [
        ListOperation("positive", "that are positive", ("x > 0",), ("x >= 0", "x != 0"), signed=True),
        ListOperation("negative", "that are negative", ("x < 0",), ("x <= 0", "x > 0"), signed=True),
        ListOperation("not_negative", "that are not negative", ("x >= 0",), ("x > 0",), signed=True),
        ListOperation("even", "that are even", ("x % 2 == 0",), ("x > 0 and x % 2 == 0", "x % 2 == 1")),
        ListOperation("odd", "that are odd", ("x % 2 == 1",), ("x > 0 and x % 2 == 1", "x % 2 == 0")),
    ]
    for k in (3, 4, 5):
        bugs = (f"x > 0 and x % {k} == 0", f"x // {k} == 0")
        operations.append(ListOperation("divisible", f"divisible by {k}", (f"x % {k} == 0",), bugs, (k,)))
    for k in (2, 3, 4, 5):
        within, beyond = f"abs(x) <= {k}", f"abs(x) > {k}"
        operations += [
            ListOperation("near", f"of magnitude at most {k}", (within,), (f"x <= {k}", f"abs(x) < {k}"), (k,)),
            ListOperation("far", f"of magnitude over {k}", (beyond,), (f"x > {k}", f"abs(x) >= {k}"), (k,)),
        ]
    return operations


def _maps() -> list[ListOperation]:
    operations = [
        ListOperation("same", "numbers", ("x",)),
        ListOperation("square", "squares of the numbers", ("x * x",), ("x * 2",), gross=True),
        ListOperation("double", "doubles of the numbers", ("x * 2",), ("x * x",), gross=True),
        ListOperation("absolute", "absolute values of the numbers", ("abs(x)",), ("x", "-x")),
        ListOperation("negate", "negations of the numbers", ("-x",), ("x", "-abs(x)"), gross=True),
        ListOperation("halve", "halves rounded toward zero of the numbers", ("int(x / 2)",), ("x // 2", "x / 2")),
    ]
    for k in (1, 2, 3):
        operations.append(ListOperation("add", f"numbers plus {k}", (f"x + {k}",), (f"x - {k}",), (k,), gross=True))
    for k in (2, 3, 4):
        bugs = (f"x - {k}", f"{k} - x")
        right = (f"abs(x - {k})",)
        operations.append(ListOperation("distance", f"distances to {k} of the numbers", right, bugs, (k,), gross=True))
    for k in (5, 6):
        phrase = f"values capped at {k} of the numbers"
        operations.append(ListOperation("cap", phrase, (f"min(x, {k})",), (f"max(x, {k})",), (k,), gross=True))
    return operations


def _scalars() -> list[ListOperation]:
    """Aggregates of the whole list that are defined for an empty one without a guard."""
    operations = [
        ListOperation("sum", "the sum of the {}", ("sum(ys)",), ("len(ys)", "sum(ys) if ys else 1"), gross=True),
        ListOperation("count", "how many there are of the {}", ("len(ys)",), ("sum(ys)", "len(set(ys))"), gross=True),
        ListOperation(
            "count_distinct", "how many distinct ones among the {}", ("len(set(ys))",), ("len(ys)", "sum(ys)")
        ),
        ListOperation(
            "sum_distinct", "the sum of the distinct ones among the {}", ("sum(set(ys))",), ("sum(ys)", "len(set(ys))")
        ),
    ]
    for n in (2, 3):
        bugs = (f"len(ys) > {n}", f"len(set(ys)) >= {n}")
        phrase = f"whether there are at least {n} of the {{}}"
        operations.append(ListOperation("enough", phrase, (f"len(ys) >= {n}",), bugs, edge=f"len(ys) == {n}"))
    return operations


def _guarded() -> list[ListOperation]:
    """Aggregates that need a guard for the empty list."""
    return [
        ListOperation(
            "largest",
            "the largest of the {} or 0 if none",
            ("max(ys) if ys else 0", "max(ys, default=0)"),
            ("max(ys)", "max(ys + [0])", "min(ys)"),
            edge="not ys or max(ys) == 0",
        ),
        ListOperation(
            "smallest",
            "the smallest of the {} or 0 if none",
            ("min(ys) if ys else 0", "min(ys, default=0)"),
            ("min(ys)", "min(ys + [9])", "max(ys)"),
            edge="not ys or min(ys) == 0",
        ),
        ListOperation(
            "first",
            "the first of the {} or -1 if none",
            ("ys[0] if ys else -1",),
            ("ys[0]", "ys[0] if ys else 0", "ys[-1]"),
            edge="not ys",
        ),
        ListOperation(
            "last",
            "the last of the {} or -1 if none",
            ("ys[-1] if ys else -1",),
            ("ys[-1]", "ys[-1] if ys else 0", "ys[0]"),
            edge="not ys",
        ),
        ListOperation(
            "range",
            "the largest minus the smallest of the {} or 0 if none",
            ("max(ys) - min(ys) if ys else 0",),
            ("max(ys) - min(ys)", "ys[-1] - ys[0]"),
            edge="len(ys) < 2",
        ),
        ListOperation(
            "first_largest",
            "the first position of the largest among the {} or -1 if none",
            ("ys.index(max(ys)) if ys else -1",),
            ("ys.index(max(ys))", "len(ys) - 1 - ys[::-1].index(max(ys))", "ys.index(min(ys))"),
            edge="not ys",
        ),
    ]


def _lists() -> list[ListOperation]:
    return [
        ListOperation("list", "the list of the {}", ("ys",), ("ys[::-1]", "sorted(ys)"), gross=True),
        ListOperation("ascending", "the {} in ascending order", ("sorted(ys)",), ("sorted(set(ys))", "ys")),
        ListOperation(
            "descending",
            "the {} in descending order",
            ("sorted(ys, reverse=True)", "sorted(ys)[::-1]"),
            ("sorted(set(ys))[::-1]", "ys[::-1]"),
        ),
        ListOperation(
            "ascending_distinct",
            "the distinct {} in ascending order",
            ("sorted(set(ys))",),
            ("sorted(ys)", "list(set(ys))"),
        ),
    ]


FILTERS: tuple[ListOperation, ...] = (ListOperation("all", "", ("",)), *_signs_and_divisors(), *_comparisons())
MAPS: tuple[ListOperation, ...] = tuple(_maps())
AGGREGATES: tuple[ListOperation, ...] = (*_scalars(), *_guarded(), *_lists())
