"""The classes that a reward configuration may name, and the data they receive: `TesterReward` pays suites,
`CoderReward` pays programs, and `Accept` decides which programs may run.

Built-in ones are in `tester_rewards.py` and `coder_rewards.py`. Does not check what a subclass returns; its callers do.
"""

from __future__ import annotations

import abc
import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from codea1_env.rewards.duel import Duel, JudgedReplay, Verdict
from codea1_env.rewards.terms import RewardParts, SuiteTerms, weighed

if TYPE_CHECKING:
    from codea1_env.rewards.code_a1 import RewardConfig


@dataclass(frozen=True, slots=True)
class Group:
    """The results of one suite's tests on all N solutions of its question; empty if the suite ran only on its own
    solution."""

    verdicts: tuple[tuple[Verdict | None, ...], ...] = ()
    """`[solution][test]`, with the tests of the suite's duel; None if a test does not count and was not run."""
    as_written: tuple[tuple[bool, ...], ...] = ()
    """`[solution][test]`: whether the solution passes the test with the value that it states (`runs_stated`)."""
    right: tuple[bool, ...] = ()
    """`[solution]`: whether it passes all golden tests of the question (`runs_golden`)."""
    best: int | None = None
    """The first of the solutions that load and have the highest reward (`asks_best`); None if no solution loads."""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """The results of one solution, for its own reward."""

    executes: bool
    replays: Sequence[JudgedReplay]
    suites: Sequence[Sequence[Verdict | None]]
    """Verdicts on the valid tests of every suite that judges it: its own, or all of its question."""


class TesterReward(abc.ABC):
    """Decides what a suite and its tests are paid. For a reward of your own, write a subclass and name it
    `module:Class`.

    The class attributes say what must be run. They hold for every match that is scored: what is run on a program
    follows from the texts and the configuration, never from a verdict. One object serves a whole run and keeps nothing.
    Parameters of `__init__` after the configuration are `RewardConfig.tester_reward_args`.
    """

    runs_union: ClassVar[bool] = False
    """Every suite runs on all solutions of its question, and `Group.verdicts` is set. The next three settings need
    it."""
    runs_stated: ClassVar[bool] = False
    """Tests also run as written, even with a wrong value: `Group.as_written`."""
    runs_golden: ClassVar[bool] = False
    """The question's golden tests run on every solution: `Group.right`. Every problem must have some."""
    asks_best: ClassVar[bool] = False
    """The question's best solution is named: `Group.best`."""
    coder_reward: ClassVar[str] = "code-a1"
    """The coder reward to use if the configuration names none."""
    weighs_validity: ClassVar[bool] = False
    """Whether `suite` returns terms that say how validity is weighed: reward = alpha validity + (1 - alpha) adversarial
    - penalty."""

    def __init__(self, config: RewardConfig) -> None:
        self.config = config

    @abc.abstractmethod
    def suite(self, duel: Duel, terms: SuiteTerms, group: Group) -> SuiteTerms:
        """The reward of a suite: any finite number; the built-in rewards stay in [-1, 1]. `terms` are those of Code-A1;
        return them with `reward` replaced, and with `validity`, `adversarial` and `alpha` if the method has its own."""

    def tests(self, duel: Duel, terms: SuiteTerms, group: Group) -> Sequence[float]:
        """The reward of each assert of `duel.tests`; K of them earn their mean. `terms` are those that `suite`
        returned. Unless a subclass says otherwise, each assert has the suite's reward."""
        return [terms.reward] * len(duel.tests)

    def parts(self, terms: SuiteTerms) -> RewardParts:
        """The parts of a suite's reward: for validity, and for everything else. By default all of it is for everything
        else."""
        if not self.weighs_validity:
            return RewardParts(0.0, terms.reward)
        return weighed(terms.alpha, terms.validity, terms.adversarial)

    def effective_alpha(self, terms: SuiteTerms) -> float | None:
        """The weight of validity that is left after normalisation in groups; None if the reward has no such weight."""
        return terms.alpha if self.weighs_validity else None


class CoderReward(abc.ABC):
    """Decides what a program is paid. For a reward of your own, write a subclass and name it `module:Class`.

    One object serves a whole run and keeps nothing. Parameters of `__init__` after the configuration are
    `RewardConfig.coder_reward_args`.
    """

    judges_by_union: ClassVar[bool] = False
    """A program is paid by all suites of its question, whatever `RewardConfig.coder_tests` says."""

    def __init__(self, config: RewardConfig) -> None:
        self.config = config

    @abc.abstractmethod
    def program(self, result: ProgramResult) -> float:
        """The reward of a program: any finite number; the built-in rewards stay in [-1, 1]."""


class Accept(abc.ABC):
    """Decides from a program's text alone, before anything runs, whether it may run. Write a subclass and name it
    `module:Class`.

    A refused program is paid as one that does not execute. The same text must always get the same answer. Parameters of
    `__init__` after the configuration are `RewardConfig.accept_args`.
    """

    def __init__(self, config: RewardConfig) -> None:
        self.config = config

    @abc.abstractmethod
    def refuses(self, program: str, tree: ast.Module | None) -> str | None:
        """The rule by which the program may not run, in a few words that name it in records and metrics; None: it may.
        `tree`: the parsed program; None if it cannot be parsed here, as a very long or deep program that runs."""
