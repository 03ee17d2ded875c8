"""The rules by which a Mistake Book keeps and replays tests: the released rule with a field for each change, or a
user's policy.

A policy is two pure operations on one question's tests, `replayed` and `visited`; `book.py` holds the tests and
the files. The defaults are the released code's. Whatever is drawn at random is drawn from the configured seed, the
question and the number of its visits: the same book draws the same tests, in whatever process. Does not look at what a
test says.
"""

from __future__ import annotations

import abc
import functools
import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from codea1_env.checks import is_number, require, require_bool, require_choice, require_whole
from codea1_env.class_paths import PartArguments, arguments_of, is_class_path, load_class, made
from codea1_env.reading.test_case import TestCase

Eviction: TypeAlias = Literal["fifo", "least_frequent"]
ReplayRule: TypeAlias = Literal["frequent", "sampled", "best"]

BOOK_POLICIES: Mapping[str, str] = {"counting": "codea1_env.mistake_book.policies:Counting"}
"""The built-in policies by name. Your own is named `module:Class`."""
_FAINT = 0.5
"""A frequency that age has brought below this is gone: half a failure."""
_QUALITY = 1.0
"""Of a test that nobody rated: it is valid, and a solution failed it."""


@dataclass(frozen=True, slots=True)
class BookConfig:
    """The choices in the Mistake Book. Raises ConfigurationError for a value outside its range."""

    capacity: int = 0
    """Most tests kept of one question, >= 0; 0: no bound (released code)."""
    eviction: Eviction = "fifo"
    """The test that leaves if a question has more: with `fifo`, the one that entered first; with `least_frequent`, the
    one with the least frequency, and of several the one that entered first (a new test may leave at once)."""
    failed_replays: bool = False
    """Whether a replayed test that a solution fails increments, too (released code: only new tests do)."""
    retire: bool = True
    """Whether a test leaves when passes have used up its frequency. If not, passes bring the frequency down to 1 at the
    lowest."""
    decay: float = 1.0
    """The factor by which every frequency of a question is multiplied at each of its visits, in (0, 1]; a test below
    1/2 leaves. 1: no ageing (released code)."""
    admission: float | None = None
    """None: new tests that a solution fails enter (released code). A number in [0, 1): every new valid test with a
    higher quality enters, failed or not; quality is 0.6 + 0.4 [a solution fails it] (`rewards/tester_rewards.py`,
    `skill`)."""
    replay: ReplayRule = "frequent"
    """`frequent`: highest frequency first (released code). `sampled`: drawn in proportion to quality. `best`: highest
    quality first. Ties: the test that entered first."""
    seed: int = 0
    """Seed of the tests that `sampled` draws, >= 0."""

    policy: str = "counting"
    """`counting`: the rule that the fields above make. `module:Class`: a subclass of `BookPolicy` of your own, which
    may read them."""
    policy_args: Mapping[str, Any] = field(default_factory=PartArguments)
    """Arguments of a policy of your own, beside the configuration."""

    def __post_init__(self) -> None:
        for name in ("capacity", "seed"):
            require_whole(name, getattr(self, name), 0)
        for name in ("failed_replays", "retire"):
            require_bool(name, getattr(self, name))
        require_choice("eviction", self.eviction, ("fifo", "least_frequent"))
        require_choice("replay", self.replay, ("frequent", "sampled", "best"))
        require(is_number(self.decay) and 0 < self.decay <= 1, "decay", "be in (0, 1]", self.decay)
        is_threshold = self.admission is None or (is_number(self.admission) and 0 <= self.admission < 1)
        require(is_threshold, "admission", "be None or in [0, 1)", self.admission)
        is_named = isinstance(self.policy, str) and self.policy in BOOK_POLICIES
        must = "be 'counting' or 'module:Class' of one of your own"
        require(is_named or is_class_path(self.policy), "policy", must, self.policy)
        object.__setattr__(self, "policy_args", arguments_of("policy", self.policy, self.policy_args))

    @property
    def rule(self) -> BookPolicy:
        """The object that keeps and replays. Raises ConfigurationError if `policy` names no such class."""
        return _made(self)

    @property
    def rates(self) -> bool:
        """Whether tests must come with their quality."""
        return self.rule.rates


@dataclass(frozen=True, slots=True)
class RatedTest:
    """A new valid test and how much it is worth keeping."""

    case: TestCase
    quality: float
    """In [0, 1]."""


@dataclass(frozen=True, slots=True)
class Visit:
    """The report of one match on its question. Multiplicity counts."""

    passes: Iterable[TestCase]
    """Replayed tests that passed, once per solution."""
    failures: Iterable[TestCase]
    """New tests that failed, once per suite."""
    failed_replays: Iterable[TestCase] = ()
    """Replayed tests that failed, once per solution."""
    rated: Iterable[RatedTest] = ()
    """Every new valid test, once per suite; only where the book rates."""


@dataclass(slots=True)
class Shelf:
    """One question's tests, in the order in which they entered."""

    frequencies: dict[TestCase, float] = field(default_factory=dict)
    """Above 0; whole numbers unless the book ages. Your own policy may count something else. A test is in the book if
    it has an entry."""
    qualities: dict[TestCase, float] = field(default_factory=dict)
    """Qualities of rated tests. Your own policy may keep another number here."""
    visits: int = 0
    """Number of visits to the question since its first test entered. Only some policies count it."""

    def copy(self) -> Shelf:
        """An equal shelf that changes on its own."""
        return Shelf(dict(self.frequencies), dict(self.qualities), self.visits)


class BookPolicy(abc.ABC):
    """Decides which of a question's tests a book keeps and which it replays. Write a subclass and name it
    `module:Class`.

    One object serves all questions and keeps no state: whatever must last is on the shelf, which is saved as a whole.
    Parameters of `__init__` after the configuration are `BookConfig.policy_args`.
    """

    rates: bool = False
    """Whether `Visit.rated` is needed: every new valid test with its quality."""
    whole_frequencies: bool = False
    """Whether frequencies are whole numbers; if so, a file with another number is refused."""
    most_quality: float = math.inf
    """The highest quality; a file with a higher one is refused."""

    def __init__(self, config: BookConfig) -> None:
        self.config = config

    @abc.abstractmethod
    def replayed(self, shelf: Shelf, limit: int, problem_id: str) -> tuple[TestCase, ...]:
        """The tests to replay, at most `limit`, all of them on the shelf. The shelf does not change, so another call
        gives the same tests."""

    @abc.abstractmethod
    def visited(self, shelf: Shelf, visit: Visit) -> None:
        """Apply one visit to the shelf in place. A test that is no longer in `frequencies` has left; its quality is
        removed automatically."""


class Counting(BookPolicy):
    """The released rule, with what the fields of `BookConfig` change."""

    most_quality = 1.0

    def __init__(self, config: BookConfig) -> None:
        super().__init__(config)
        self.rates = config.admission is not None
        self.whole_frequencies = config.decay == 1

    def replayed(self, shelf: Shelf, limit: int, problem_id: str) -> tuple[TestCase, ...]:
        if self.config.replay == "frequent":
            return tuple(sorted(shelf.frequencies, key=shelf.frequencies.__getitem__, reverse=True)[:limit])
        qualities = {case: shelf.qualities.get(case, _QUALITY) for case in shelf.frequencies}
        if self.config.replay == "best":
            return tuple(sorted(qualities, key=qualities.__getitem__, reverse=True)[:limit])
        name = f"book {self.config.seed} {shelf.visits} {problem_id}"
        return _drawn(qualities, limit, random.Random(name.encode("utf-8", "surrogatepass")))

    def visited(self, shelf: Shelf, visit: Visit) -> None:
        """Age the tests, then decrement, then increment, and then drop the tests that are too many."""
        config, frequencies = self.config, shelf.frequencies
        if config.decay < 1:
            for case in list(frequencies):
                frequencies[case] *= config.decay
                if frequencies[case] < _FAINT:
                    del frequencies[case]
        for case in visit.passes:
            if case in frequencies:
                left = frequencies[case] - 1
                if not config.retire:
                    frequencies[case] = max(left, min(frequencies[case], 1))
                elif left > 0:
                    frequencies[case] = left
                else:
                    del frequencies[case]
        if config.failed_replays:
            for case in visit.failed_replays:
                if case in frequencies:
                    frequencies[case] += 1
        for case in _admitted(shelf, visit, config):
            frequencies[case] = frequencies.get(case, 0) + 1
        while config.capacity and len(frequencies) > config.capacity:
            del frequencies[_first_to_go(frequencies, config)]
        if config.replay == "sampled":
            shelf.visits += 1


@functools.lru_cache(maxsize=256)
def _made(config: BookConfig) -> BookPolicy:
    path = BOOK_POLICIES.get(config.policy, config.policy)
    kind = load_class(path, BookPolicy, "policy")  # type: ignore[type-abstract]  # load_class refuses those
    policy = made(kind, config, name="policy_args", arguments=config.policy_args)
    for name in ("rates", "whole_frequencies"):
        require_bool(f"{path}.{name}", getattr(policy, name))
    most = policy.most_quality
    require(most == math.inf or (is_number(most) and most > 0), f"{path}.most_quality", "be a number above 0", most)
    return policy


def _admitted(shelf: Shelf, visit: Visit, config: BookConfig) -> Iterable[TestCase]:
    if config.admission is None:
        return visit.failures
    good = [test for test in visit.rated if test.quality > config.admission]
    shelf.qualities.update((test.case, test.quality) for test in good)
    return [test.case for test in good]


def _first_to_go(frequencies: dict[TestCase, float], config: BookConfig) -> TestCase:
    if config.eviction == "fifo":
        return next(iter(frequencies))
    return min(frequencies, key=frequencies.__getitem__)


def _drawn(qualities: dict[TestCase, float], limit: int, generator: random.Random) -> tuple[TestCase, ...]:
    """Tests drawn one after the other in proportion to what is left, none twice."""
    left = dict(qualities)
    drawn: list[TestCase] = []
    while left and len(drawn) < limit:
        (case,) = generator.choices(list(left), weights=list(left.values()))
        drawn.append(case)
        del left[case]
    return tuple(drawn)
