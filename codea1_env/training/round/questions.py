"""Which questions a round asks: an object that a configuration can name, `algorithm: {questions: "module:Class"}`.

Its choice depends on the run's seed, the round, and what rounds before showed. What it remembers is in every
checkpoint.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from codea1_env.class_paths import load_class, made, state_text
from codea1_env.configuration.algorithm import Algorithm
from codea1_env.errors import ConfigurationError
from codea1_env.problems.problem import Problem

UNKNOWN = 0.5
"""Taken for the pass rate of a question that was not asked yet: it comes first."""


class Chooser(ABC):
    """Chooses the questions of each round. Subclass it, and name the class in `algorithm.questions`."""

    def __init__(self, problems: Sequence[Problem], seed: int) -> None:
        """`problems`: those that can be asked. Your own class may take more arguments: `questions_args`."""
        self.problems, self.seed = problems, seed

    @abstractmethod
    def choose(self, round_index: int, count: int) -> list[int]:
        """The indices of `count` different problems. `round_index` counts from 0. Called once a round."""

    def learn(self, passed: Mapping[str, float]) -> None:  # noqa: B027  # it need not care
        """Receives the result of the round: by problem_id, the mean reward of the coder's programs, in [0, 1]."""

    def state(self) -> dict[str, Any]:
        """Its memory as JSON data, for a checkpoint."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:  # noqa: B027  # there may be nothing to restore
        """Continue from the state of a checkpoint."""


class Shuffled(Chooser):
    """Every question once, in random order, then again. None comes twice in a round.

    A longer run begins with the shorter one's questions, so that a run can be extended.
    """

    def __init__(self, problems: Sequence[Problem], seed: int) -> None:
        super().__init__(problems, seed)
        self._asked: list[int] = []

    def choose(self, round_index: int, count: int) -> list[int]:
        if len(self._asked) < (round_index + 1) * count:
            self._asked = schedule(len(self.problems), 2 * (round_index + 1), count, self.seed)
        return self._asked[round_index * count : (round_index + 1) * count]


class PassRate(Chooser):
    """A curriculum: questions of which the coder passes some and fails some come first, those that it always passes or
    always fails come last; equals in random order. What counts is p (1 - p) of the latest visit."""

    def __init__(self, problems: Sequence[Problem], seed: int, least: float = 0.05) -> None:
        """`least`: added to every question's weight, so that none is forgotten."""
        super().__init__(problems, seed)
        self.least = least
        self.passed: dict[str, float] = {}

    def choose(self, round_index: int, count: int) -> list[int]:
        rng = random.Random(f"pass rate {self.seed} {round_index}")
        rates = [self.passed.get(problem.problem_id, UNKNOWN) for problem in self.problems]
        # The keys of a weighted draw without replacement: u ** (1 / weight), the largest ones are drawn.
        keys = [rng.random() ** (1 / (self.least + rate * (1 - rate))) for rate in rates]
        return sorted(range(len(keys)), key=lambda place: -keys[place])[:count]

    def learn(self, passed: Mapping[str, float]) -> None:
        self.passed |= {name: min(1.0, max(0.0, rate)) for name, rate in passed.items()}

    def state(self) -> dict[str, Any]:
        return {"passed": self.passed}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.passed = dict(state.get("passed", {}))  # none of a run that had another chooser


BUILT_IN: Mapping[str, type[Chooser]] = {"shuffled": Shuffled, "pass_rate": PassRate}


def chooser_of(algorithm: Algorithm, problems: Sequence[Problem], seed: int) -> Chooser:
    """The chooser that the configuration names. Raises ConfigurationError where it is none, or could not be saved."""
    name = algorithm.questions
    known = BUILT_IN.get(name)
    kind = known or load_class(name, Chooser, "algorithm.questions", algorithm.path)  # type: ignore[type-abstract]
    chooser = made(kind, problems, seed, name="algorithm.questions_args", arguments=algorithm.questions_args)
    state_text(chooser, "algorithm.questions")  # now, and not at the first checkpoint, after hours
    return chooser


def chosen(chooser: Chooser, round_index: int, count: int) -> list[Problem]:
    """The round's questions. Raises ConfigurationError for anything but `count` different places."""
    places: Any = chooser.choose(round_index, count)
    size = len(chooser.problems)
    is_list = isinstance(places, list | tuple) and all(type(place) is int and 0 <= place < size for place in places)
    if not is_list or len(set(places)) != count or len(places) != count:
        raise ConfigurationError(
            f"algorithm.questions: {type(chooser).__name__}.choose must return {count} different places in "
            f"[0, {size}), got {places!r:.200}"
        )
    return [chooser.problems[place] for place in places]


def schedule(problems: int, rounds: int, questions: int, seed: int) -> list[int]:
    """Places of the problems asked, `questions` a round: every problem once, in random order, then again."""
    assert questions <= problems
    rng = random.Random(f"schedule {seed}")
    asked: list[int] = []
    drawn: list[int] = []
    begun = 0  # of `drawn`, so many are asked
    while len(asked) < rounds * questions:
        if len(drawn) - begun < questions:
            # What is left over is asked first; in the new pass it comes last, so that the round does not repeat it.
            left, new = drawn[begun:], rng.sample(range(problems), problems)
            known = set(left)
            drawn = left + [p for p in new if p not in known] + [p for p in new if p in known]
            begun = 0
        asked += drawn[begun : begun + questions]
        begun += questions
    return asked
