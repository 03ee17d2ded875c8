"""What questions of the fine-print family are made of: operations and clauses, on numbers and on words.

An operation is what a question asks for. A clause is a sentence on where that bends: the line of Python that honours
it, a line that honours it almost, and inputs that it is about. The lines act on the parameter by its name, one after
the other. Plain tables and nothing else: `fineprint.py` makes problems of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

Value = int | str
Plain = Callable[[int], list[Value]]
"""So many different values that no clause of the question is about."""
Touch = Callable[[random.Random, Plain], list[Value]]
"""An input that the clause is about."""


@dataclass(frozen=True, slots=True)
class FineprintOperation:
    """What a question asks for."""

    name: str
    wordings: tuple[str, ...]
    """Behind "a function solve(xs) that"."""
    expression: str


@dataclass(frozen=True, slots=True)
class Clause:
    """A sentence of fine print."""

    name: str
    wordings: tuple[str, ...]
    """Whole sentences."""
    line: str
    """Python that honours it: an assignment to the parameter."""
    bent: str
    """Python that honours it almost, as a hurried reader would."""
    touch: Touch


@dataclass(frozen=True, slots=True)
class Material:
    """A kind of data, and the questions that can be asked about it."""

    name: str
    parameter: str
    values: tuple[Value, ...]
    """What ordinary inputs are made of."""
    operations: tuple[FineprintOperation, ...]
    clauses: tuple[Clause, ...]


def _operations(table: str) -> tuple[FineprintOperation, ...]:
    """One a line: its name, its wordings with slashes between them, and the expression."""
    rows = [[part.strip() for part in line.split("|")] for line in table.strip().splitlines()]
    return tuple(FineprintOperation(name, tuple(said.split(" / ")), expression) for name, said, expression in rows)


def _having(make: Callable[[random.Random], Value]) -> Touch:
    """One to three values of a kind at random places among plain ones."""

    def touch(rng: random.Random, plain: Plain) -> list[Value]:
        values = plain(rng.randint(2, 4)) + [make(rng) for _ in range(rng.randint(1, 3))]
        return rng.sample(values, len(values))

    return touch


def _longer(least: int) -> Touch:
    return lambda rng, plain: plain(rng.randint(least, least + 3))


def _repeating(rng: random.Random, plain: Plain) -> list[Value]:
    values = plain(rng.randint(3, 4))
    values += rng.sample(values, 2)
    return rng.sample(values, len(values))


def _stopped(make: Callable[[random.Random], Value]) -> Touch:
    """A value of a kind with plain ones on both sides."""
    return lambda rng, plain: [*(values := plain(5))[: (cut := rng.randint(1, 3))], make(rng), *values[cut:]]


def _clauses(table: str, **touches: Touch) -> tuple[Clause, ...]:
    """Three lines each: name and wordings, the line, the line that bends it. `touches`: by name."""
    lines = [line.strip() for line in table.strip().splitlines()]
    rows = [(*said.split(" | "), *both) for said, *both in zip(lines[::3], lines[1::3], lines[2::3], strict=True)]
    return tuple(Clause(name, tuple(said.split(" / ")), line, bent, touches[name]) for name, said, line, bent in rows)


def _negative(rng: random.Random) -> int:
    return -rng.randint(1, 40)


NUMBERS = Material(
    "numbers",
    "xs",
    tuple(range(10, 50)),
    _operations("""
    total | returns the sum of the numbers in xs / adds up the numbers in xs | sum(xs)
    largest | returns the largest number in xs | max(xs)
    smallest | returns the smallest number in xs | min(xs)
    spread | returns the difference between the largest and the smallest number in xs | max(xs) - min(xs)
    ordered | returns the numbers in xs sorted from small to large, as a list | sorted(xs)
    descending | returns the numbers in xs sorted from large to small, as a list | sorted(xs, reverse=True)
    backwards | returns the numbers in xs in reverse order, as a list | xs[::-1]
    squares | returns the sum of the squares of the numbers in xs | sum(x * x for x in xs)
    doubled | returns a list with every number in xs doubled | [2 * x for x in xs]
    increased | returns a list with 1 added to every number in xs | [x + 1 for x in xs]
    halved | returns a list with every number in xs halved, rounded down | [x // 2 for x in xs]
    tenfold | returns a list with every number in xs multiplied by 10 | [10 * x for x in xs]
    commas | returns the numbers in xs joined by commas, as a string | ','.join(str(x) for x in xs)
    spaces | returns the numbers in xs joined by spaces, as a string | ' '.join(str(x) for x in xs)
    last | returns the last number in xs | xs[-1]
    count | returns how many numbers there are in xs | len(xs)
    over | returns how many numbers in xs are greater than 20 | sum(x > 20 for x in xs)
    different | returns how many different numbers there are in xs | len(set(xs))
    running | returns the list of the running totals of the numbers in xs | [sum(xs[: i + 1]) for i in range(len(xs))]
    """),
    _clauses(
        """
    odd | Ignore odd numbers. / Leave out odd numbers.
        xs = [x for x in xs if x % 2 == 0]
        xs = [x for x in xs if x % 2 == 0 or x < 0]
    even | Ignore even numbers. / Leave out even numbers.
        xs = [x for x in xs if x % 2]
        xs = [x for x in xs if x % 2 or x == 0]
    small | Ignore numbers less than 10. / Leave out numbers below 10.
        xs = [x for x in xs if x >= 10]
        xs = [x for x in xs if x > 10]
    large | Ignore numbers greater than 50. / Leave out numbers above 50.
        xs = [x for x in xs if x <= 50]
        xs = [x for x in xs if x < 50]
    negative | Ignore negative numbers. / Leave out negative numbers.
        xs = [x for x in xs if x >= 0]
        xs = [x for x in xs if x > 0]
    cap | Treat any number above 50 as 50. / Replace any number above 50 by 50.
        xs = [min(x, 50) for x in xs]
        xs = [x for x in xs if x <= 50]
    floor | Treat any number below 10 as 10. / Replace any number below 10 by 10.
        xs = [max(x, 10) for x in xs]
        xs = [x for x in xs if x >= 10]
    nothing | Count negative numbers as 0. / Replace negative numbers by 0.
        xs = [max(x, 0) for x in xs]
        xs = [x for x in xs if x >= 0]
    absolute | Use the absolute value of each number. / Use the absolute values of the numbers.
        xs = [abs(x) for x in xs]
        xs = [x for x in xs if x >= 0]
    first | Use only the first five numbers. / Only the first five numbers count.
        xs = xs[:5]
        xs = xs[:4]
    last | Use only the last five numbers. / Only the last five numbers count.
        xs = xs[-5:]
        xs = xs[5:] or xs
    repeated | If a number occurs more than once, keep only its first occurrence. / Ignore repeats of a number.
        xs = list(dict.fromkeys(xs))
        xs = [x for x in xs if xs.count(x) == 1]
    stop | Stop at the first negative number. / Stop as soon as a number is negative.
        xs = xs[: next((i for i, x in enumerate(xs) if x < 0), len(xs))]
        xs = [x for x in xs if x >= 0]
    threes | Ignore multiples of 3. / Leave out numbers that 3 divides.
        xs = [x for x in xs if x % 3]
        xs = [x for x in xs if x % 3 or x == 0]
    thirteen | Ignore the number 13. / The number 13 does not count.
        xs = [x for x in xs if x != 13]
        xs = [x for i, x in enumerate(xs) if x != 13 or 13 in xs[:i]]
    """,
        odd=_having(lambda rng: rng.choice((-1, 1)) * (2 * rng.randint(0, 24) + 1)),
        even=_having(lambda rng: rng.choice((0, 2 * rng.randint(-12, 24)))),
        small=_having(lambda rng: rng.choice((9, 10, rng.randint(0, 9)))),
        large=_having(lambda rng: rng.choice((50, 51, rng.randint(51, 99)))),
        negative=_having(lambda rng: rng.choice((0, _negative(rng), _negative(rng)))),
        cap=_having(lambda rng: rng.randint(51, 99)),
        floor=_having(lambda rng: rng.randint(-20, 9)),
        nothing=_having(_negative),
        absolute=_having(_negative),
        first=_longer(5),
        last=_longer(6),
        repeated=_repeating,
        stop=_stopped(_negative),
        threes=_having(lambda rng: 3 * rng.randint(0, 16)),
        thirteen=_having(lambda rng: 13),
    ),
)

WORDS = Material(
    "words",
    "words",
    tuple("apple bread cloud dance field green house juice light mouse night ocean paper queen river stone".split()),
    _operations("""
    spaces | returns the words in words joined by spaces, as a string | ' '.join(words)
    hyphens | returns the words in words joined by hyphens, as a string | '-'.join(words)
    ordered | returns the words in words in alphabetical order, as a list | sorted(words)
    backwards | returns the words in words in reverse order, as a list | words[::-1]
    letters | returns the total length of the words in words | sum(len(word) for word in words)
    lengths | returns the list of the lengths of the words in words | [len(word) for word in words]
    initials | returns the first letters of the words in words, as a string | ''.join(word[0] for word in words)
    last | returns the last word in words | words[-1]
    longest | returns the length of the longest word in words | max(len(word) for word in words)
    count | returns how many words there are in words | len(words)
    """),
    _clauses(
        """
    short | Ignore words with fewer than three letters.
        words = [word for word in words if len(word) >= 3]
        words = [word for word in words if len(word) > 3]
    long | Ignore words with more than six letters.
        words = [word for word in words if len(word) <= 6]
        words = [word for word in words if len(word) < 6]
    first | Use only the first four words.
        words = words[:4]
        words = words[:3]
    end | Use only the last four words.
        words = words[-4:]
        words = words[4:] or words
    repeated | If a word occurs more than once, keep only its first occurrence.
        words = list(dict.fromkeys(words))
        words = [word for word in words if words.count(word) == 1]
    names | Ignore words that start with a capital letter.
        words = [word for word in words if not word[0].isupper()]
        words = [word for word in words if not word.isupper()]
    digits | Ignore words that contain a digit.
        words = [word for word in words if not any(c.isdigit() for c in word)]
        words = [word for word in words if not word.isdigit()]
    lower | Treat all words as lower case.
        words = [word.lower() for word in words]
        words = [word for word in words if word == word.lower()]
    cut | Use only the first five letters of each word.
        words = [word[:5] for word in words]
        words = [word for word in words if len(word) <= 5]
    stop | Stop at the word 'end'.
        words = words[: words.index('end')] if 'end' in words else words
        words = [word for word in words if word != 'end']
    """,
        short=_having(lambda rng: rng.choice(("a", "at", "by", "cat", "sun", "to"))),
        long=_having(lambda rng: rng.choice(("autumn", "library", "mountain", "silver", "umbrella"))),
        first=_longer(4),
        end=_longer(5),
        repeated=_repeating,
        names=_having(lambda rng: rng.choice(("Anna", "Berlin", "Carl", "Egypt", "NASA"))),
        digits=_having(lambda rng: rng.choice(("2nd", "b2b", "mp3", "42", "route66"))),
        lower=_having(lambda rng: rng.choice(("Apple", "CLOUD", "Green", "Light", "River"))),
        cut=_having(lambda rng: rng.choice(("autumn", "library", "mountain", "silver", "umbrella"))),
        stop=_stopped(lambda rng: "end"),
    ),
)
"""Nothing is trained or chosen on it: it shows what carries over to another kind of data."""
