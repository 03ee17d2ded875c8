"""The choice of rewards (`RewardConfig`), the interface of an object that pays them (`TesterReward`), a duel's terms.

The formulas are in `terms.py` and the four rewards in `tester_rewards.py`. All functions are pure. Does not promise a
reward if infrastructure failed: then neither the duel nor its program has one.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from codea1_env.checks import is_number, require, require_bool, require_choice, require_whole
from codea1_env.class_paths import is_class_path, load_class
from codea1_env.reading.grammar import Fidelity
from codea1_env.rewards.duel import Duel, JudgedReplay, JudgedTest, Status, Verdict
from codea1_env.rewards.terms import (
    Parts,
    SuiteTerms,
    attacking,
    count,
    mean_share,
    share_failed,
    share_passed,
    terms_of,
    weighed,
)

CoderTests: TypeAlias = Literal["own", "union"]
OracleMode: TypeAlias = Literal["reference", "golden", "majority", "dual"]

TESTER_REWARDS: Mapping[str, str] = {
    "code-a1": "codea1_env.rewards.tester_rewards:CodeA1",
    "utrl": "codea1_env.rewards.tester_rewards:UTRL",
    "cure": "codea1_env.rewards.tester_rewards:CURE",
    "skill": "codea1_env.rewards.tester_rewards:Skill",
}
"""The tester rewards that come along, by name; one of your own is named by its `module:Class`."""
_NEED_UNION = ("runs_stated", "runs_golden", "asks_best", "judges_by_union")


@dataclass(frozen=True, slots=True)
class RewardConfig:
    """The choices in the reward. Raises ConfigurationError for a value outside its range."""

    alpha: float = 0.5
    """Weight of validity against the adversarial part of the tester's reward, in [0, 1] (paper: 0.5)."""
    suite_size: int = 8
    """K, the asserts that a suite should hold, >= 1 (paper: 8)."""
    replay_limit: int = 8
    """Most Mistake Book tests replayed on a solution, >= 0; 0 turns the book's replay off (released code: 8)."""
    fidelity: Fidelity = "strict"
    """`strict`: the first K asserts count, `==` only. `wide`: likewise, and tests may stand in functions, methods and
    loops and claim relations (`docs/suites.md`). `paper`: programs and suites are read and asserts are counted as in
    the released code (`docs/deviations.md`)."""
    correct_outputs: bool = True
    """Run a test that states a wrong value with the reference's value instead, as the released code does. A relation
    has no such value, so a wrong relation counts for nothing."""
    tester_reward: str = "code-a1"
    """What a suite is paid: `code-a1`, `utrl`, `cure` or `skill` (`tester_rewards.py`), or `module:Class`, a subclass
    of `TesterReward` of your own. It is imported when rewards are paid (`reward`), not when a configuration is read or
    shown."""
    coder_tests: CoderTests = "own"
    """`own`: a solution is judged by the suites written against it (paper). `union`: by all suites of its question."""
    utrl_tau: int = 12
    """Least denominator of the validity of `utrl`, >= 1 (released code of UTRL: 12)."""
    oracle: OracleMode = "reference"
    """What decides which value a call must return: see `judging/expected_values.py`. Without the reference (paper),
    `golden`: the question's golden tests; `majority`: most of its solutions; `dual`: the consensus of solutions and
    tests."""

    def __post_init__(self) -> None:
        require(is_number(self.alpha) and 0 <= self.alpha <= 1, "alpha", "be in [0, 1]", self.alpha)
        for name, least in (("suite_size", 1), ("replay_limit", 0), ("utrl_tau", 1)):
            require_whole(name, getattr(self, name), least)
        require_choice("fidelity", self.fidelity, ("strict", "wide", "paper"))
        require_choice("coder_tests", self.coder_tests, ("own", "union"))
        require_choice("oracle", self.oracle, ("reference", "golden", "majority", "dual"))
        is_named = isinstance(self.tester_reward, str) and self.tester_reward in TESTER_REWARDS
        must = f"be {', '.join(map(repr, TESTER_REWARDS))} or 'module:Class' of one of your own"
        require(is_named or is_class_path(self.tester_reward), "tester_reward", must, self.tester_reward)
        require_bool("correct_outputs", self.correct_outputs)

    @property
    def reward(self) -> TesterReward:
        """The object that pays. Raises ConfigurationError if `tester_reward` names no such class."""
        return _made(self)

    @property
    def runs_union(self) -> bool:
        """Whether every suite of a question runs on all its solutions."""
        return self.coder_tests == "union" or self.reward.runs_union

    @property
    def runs_stated(self) -> bool:
        """Whether tests also run as they are written, even if they state a wrong value."""
        return self.reward.runs_stated

    @property
    def runs_golden(self) -> bool:
        """The question's golden tests run on every solution."""
        return self.reward.runs_golden

    @property
    def needs_golden(self) -> bool:
        """Every question must have golden tests: they run on every solution, or they are the oracle."""
        return self.runs_golden or self.oracle == "golden"

    @property
    def judges_by_union(self) -> bool:
        """Whether a solution is paid by all suites of its question, not by those written against it alone."""
        return self.coder_tests == "union" or self.reward.judges_by_union

    @property
    def by_reference(self) -> RewardConfig:
        """The configuration that measures seats with the same numbers: the reference decides, and each suite runs on
        its own program."""
        return dataclasses.replace(self, oracle="reference", tester_reward="code-a1", coder_tests="own")


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
    """Decides what a suite, its tests and a program are paid. For a reward of your own, write a subclass and name it
    `module:Class`.

    The class attributes say what must be run. They hold for every match that is scored: what is run on a program
    follows from the texts and the configuration, never from a verdict. One object serves a whole run and keeps nothing.
    """

    runs_union: ClassVar[bool] = False
    """Every suite runs on all solutions of its question, and `Group.verdicts` is there. The following need it."""
    runs_stated: ClassVar[bool] = False
    """Tests run as written, too, also where they state a wrong value: `Group.as_written`."""
    runs_golden: ClassVar[bool] = False
    """The question's golden tests run on every solution: `Group.right`. Every problem must have some."""
    asks_best: ClassVar[bool] = False
    """The question's best solution is named: `Group.best`."""
    judges_by_union: ClassVar[bool] = False
    """A solution is paid by all suites of its question, whatever `RewardConfig.coder_tests` says."""
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

    def program(self, result: ProgramResult) -> float:
        """The reward of a solution: any finite number, and unless a subclass says otherwise the mean, over its suites,
        of the share of their tests that it passes."""
        f_hist = share_failed(result.replays)
        p_hist = None if f_hist is None else 1 - f_hist
        return mean_share(
            share_passed(p_hist, sum(verdict is Verdict.PASS for verdict in suite) / len(suite) if suite else None)
            for suite in result.suites
        )

    def parts(self, terms: SuiteTerms) -> Parts:
        """The parts of a suite's reward that are paid for validity and beside it. If the reward does not say, all is
        beside it."""
        if not self.weighs_validity:
            return Parts(0.0, terms.reward)
        return weighed(terms.alpha, terms.validity, terms.adversarial)

    def effective_alpha(self, terms: SuiteTerms) -> float | None:
        """The weight of validity that is left after normalisation in groups; None if the reward has no such weight."""
        return terms.alpha if self.weighs_validity else None


@functools.lru_cache(maxsize=256)
def _made(config: RewardConfig) -> TesterReward:
    path = TESTER_REWARDS.get(config.tester_reward, config.tester_reward)
    kind = load_class(path, TesterReward, "tester_reward")  # type: ignore[type-abstract]  # load_class refuses those
    for name in ("runs_union", "weighs_validity", *_NEED_UNION):
        require_bool(f"{path}.{name}", getattr(kind, name))
    rest = [name for name in _NEED_UNION if getattr(kind, name)]
    require(kind.runs_union or not rest, f"{path}.runs_union", f"be True with {', '.join(rest)}", False)
    return kind(config)


def suite_terms(duel: Duel, config: RewardConfig) -> SuiteTerms | None:
    """The tester's reward for one suite, and its parts, by Code-A1. None if infrastructure failed.

    Paper, equations of R_T^val, R_T^adv and R_T = alpha R_T^val + (1 - alpha) R_T^adv; where the paper and its code
    differ, the code, as `RewardConfig.fidelity` says:

        R_val = clip(min(v / K, 1 - invalid / K), 0, 1)
        f_new = (valid tests among the first K asserts that the solution fails) / K     (paper: first K valid tests)
        R_T   = [solution executes] (alpha R_val + (1 - alpha) R_adv) - (share of non-printable characters)
    """
    if duel.infrastructure_error or duel.executes is None:
        return None
    valid = [is_valid(test, config) for test in duel.tests]
    return terms_of(
        count(duel.tests, valid, attacking(valid, config.suite_size, config.fidelity)),
        executes=duel.executes,
        size=config.suite_size,
        alpha=config.alpha,
        f_hist=share_failed(duel.replays),
        nonprintable=duel.nonprintable,
    )


def coder_reward(terms: Sequence[SuiteTerms | None]) -> float | None:
    """R_C: the mean, over the suites written against one solution, of the share of tests that it passes.

    A suite's share is the mean of `p_new` and `p_hist` if both exist, otherwise the one that exists, and 0 with neither
    (released code; the paper's figure pools the tests instead). The reward is None if a suite has no terms, and 0
    without suites.
    """
    known = [suite for suite in terms if suite is not None]
    if len(known) < len(terms):
        return None
    return mean_share(share_passed(suite.p_hist, suite.p_new) for suite in known)


def is_valid(test: JudgedTest, config: RewardConfig) -> bool:
    """Whether the test counts in v and is run on the solution."""
    return test.status is Status.KEPT or (config.correct_outputs and test.status is Status.WRONG_EXPECTED)
