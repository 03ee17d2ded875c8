"""The choice of rewards (`RewardConfig`), and a duel's terms.

The formulas are in `terms.py`, the objects that pay in `tester_rewards.py` and `coder_rewards.py`. All functions are
pure. Does not promise a reward if infrastructure failed: then neither the duel nor its program has one.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from codea1_env.checks import is_number, require, require_bool, require_choice, require_whole
from codea1_env.class_paths import PartArguments, arguments_of, is_class_path, load_class, made
from codea1_env.problems.problem import Problem
from codea1_env.problems.time_limits import TimeLimit
from codea1_env.problems.tolerances import EXACT, Tolerances
from codea1_env.reading.grammar import Fidelity
from codea1_env.reading.responses import Program, read_program
from codea1_env.rewards.duel import Duel, JudgedTest, Status
from codea1_env.rewards.interfaces import Accept, CoderReward, TesterReward
from codea1_env.rewards.terms import SuiteTerms, attacking, count, mean_share, share_failed, share_passed, terms_of

CoderTests: TypeAlias = Literal["own", "union"]
OracleMode: TypeAlias = Literal["reference", "golden", "majority", "dual"]

TESTER_REWARDS: Mapping[str, str] = {
    "code-a1": "codea1_env.rewards.tester_rewards:CodeA1",
    "utrl": "codea1_env.rewards.tester_rewards:UTRL",
    "cure": "codea1_env.rewards.tester_rewards:CURE",
    "skill": "codea1_env.rewards.tester_rewards:Skill",
}
"""The built-in tester rewards by name. Your own is named `module:Class`."""
CODER_REWARDS: Mapping[str, str] = {
    "code-a1": "codea1_env.rewards.coder_rewards:CodeA1",
    "skill": "codea1_env.rewards.coder_rewards:Skill",
}
"""The built-in coder rewards by name."""
_NEED_UNION = ("runs_stated", "runs_golden", "asks_best")


@dataclass(frozen=True, slots=True)
class RewardConfig:
    """The choices in the reward. Raises ConfigurationError for a value outside its range."""

    alpha: float = 0.5
    """Weight of validity against the adversarial part of the tester's reward, in [0, 1] (paper: 0.5)."""
    suite_size: int = 8
    """K, the asserts that a suite should hold, >= 1 (paper: 8). A problem that says its own counts by that."""
    replay_limit: int = 8
    """Most Mistake Book tests replayed on a solution, >= 0; 0 turns the book's replay off (released code: 8)."""
    fidelity: Fidelity = "strict"
    """`strict`: the first K asserts count, `==` only. `wide`: likewise, and tests may stand in functions, methods and
    loops and claim relations (`docs/suites.md`). `paper`: programs and suites are read and asserts are counted as in
    the released code (`docs/deviations.md`)."""
    trim: bool = False
    """Reduce a program to its entry point and what that needs before anybody sees or runs it, as EvalPlus does: its own
    examples and asserts go (`reading/programs/reach.py`). Whole scripts stay as they are. In a run's file:
    {reading: {trim: true}}."""
    correct_outputs: bool = True
    """Run a test that states a wrong value with the reference's value instead, as the released code does. A relation
    has no such value, so a wrong relation counts for nothing."""
    tester_reward: str = "code-a1"
    """The reward of a suite: `code-a1`, `utrl`, `cure` or `skill` (`tester_rewards.py`), or `module:Class`, a subclass
    of `TesterReward` of your own. It is imported when rewards are paid (`reward`), not when a configuration is read or
    shown."""
    tester_reward_args: Mapping[str, Any] = field(default_factory=PartArguments)
    """Arguments of a tester reward of your own, beside the configuration."""
    coder_reward: str | None = None
    """The reward of a program: `code-a1` or `skill` (`coder_rewards.py`), or `module:Class`, a subclass of
    `CoderReward` of your own. None: `skill` with the tester reward `skill`, else `code-a1`."""
    coder_reward_args: Mapping[str, Any] = field(default_factory=PartArguments)
    """Arguments of a coder reward of your own, beside the configuration."""
    accept: str | None = None
    """Decides from a program's text alone whether it may run: `module:Class`, a subclass of `Accept` of your own. None:
    every program may."""
    accept_args: Mapping[str, Any] = field(default_factory=PartArguments)
    """Its arguments, beside the configuration."""
    compare: Tolerances = EXACT
    """Allowed error of values in all problems: a number, or a mapping by type, {float: {relative: 1e-9, absolute:
    1e-6}} (`problems/tolerances.py`). A problem's own tolerance applies as well."""
    time_limit: TimeLimit | None = None
    """The time limit of a problem that has none of its own, relative to its reference's time: {times_reference: 5,
    at_least: 1} (`problems/time_limits.py`). None: 1 s."""
    memory_mb: int | None = None
    """MiB that a program may use if its problem has no `memory_mb`, 64 to 1048576. None: 1024."""
    allow_unsealed: bool = False
    """Whether the golden tests' reward takes a question's test script where it has one: the share of its tests that
    pass. Programs and scripts share a process, so that a program can forge what it is paid
    (`judging/scripts.py`)."""
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
        require_bool("correct_outputs", self.correct_outputs)
        require_bool("trim", self.trim)
        require_bool("allow_unsealed", self.allow_unsealed)
        require(not (self.trim and self.fidelity == "paper"), "trim", "be False with fidelity='paper'", self.trim)
        object.__setattr__(self, "compare", Tolerances.of(self.compare, "compare"))
        if self.time_limit is not None:
            object.__setattr__(self, "time_limit", TimeLimit.of(self.time_limit))
        is_size = self.memory_mb is None or (type(self.memory_mb) is int and 64 <= self.memory_mb <= 1 << 20)
        require(is_size, "memory_mb", "be an int in [64, 1048576] MiB", self.memory_mb)
        for part, known in (("tester_reward", TESTER_REWARDS), ("coder_reward", CODER_REWARDS), ("accept", {})):
            name = getattr(self, part)
            must = f"be {', '.join(map(repr, known or [None]))} or 'module:Class' of one of your own"
            is_named = (isinstance(name, str) and name in known) or (name is None and part != "tester_reward")
            require(is_named or is_class_path(name), part, must, name)
            object.__setattr__(self, f"{part}_args", arguments_of(part, name, getattr(self, f"{part}_args")))

    @property
    def reward(self) -> TesterReward:
        """The object that pays suites. Raises ConfigurationError if `tester_reward` names no such class."""
        return _tester_reward(self)

    @property
    def program_reward(self) -> CoderReward:
        """Likewise the one that pays programs."""
        return _coder_reward(self)

    @property
    def accept_stage(self) -> Accept | None:
        """Likewise what says which programs may run; None: all."""
        return _accept(self)

    def require_parts(self) -> None:
        """Raise ConfigurationError if a part of the user's own cannot be loaded."""
        _ = self.reward, self.program_reward, self.accept_stage

    @property
    def own(self) -> dict[str, str]:
        """The user's own parts that it names: `module:Class` by option."""
        return {part: path for part in PARTS if is_class_path(path := getattr(self, part))}

    @property
    def runs_union(self) -> bool:
        """Whether every suite of a question runs on all its solutions."""
        return self.judges_by_union or self.reward.runs_union

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
        return self.coder_tests == "union" or self.program_reward.judges_by_union

    def program(self, problem: Problem, response: str) -> Program:
        """The program in a coder's response, as these choices read it."""
        is_trimmed = self.trim and problem.kind != "program"
        return read_program(response, problem.entry_point, fidelity=self.fidelity, trim=is_trimmed)

    def with_suite_size(self, size: int | None) -> RewardConfig:
        """The same choices with this K, as for a problem with its own `suite_size`; None: unchanged."""
        return self if size in (None, self.suite_size) else dataclasses.replace(self, suite_size=size)

    def with_alpha(self, alpha: float | None) -> RewardConfig:
        """The same choices with this weight of validity; None: unchanged."""
        if alpha is None or (is_number(alpha) and alpha == self.alpha):
            return self
        return dataclasses.replace(self, alpha=alpha)

    @property
    def by_reference(self) -> RewardConfig:
        """The configuration that measures seats with the same numbers: the reference decides, and each suite runs on
        its own program."""
        usual = {name: getattr(RewardConfig(), name) for part in PARTS for name in (part, f"{part}_args")}
        return dataclasses.replace(self, **usual, oracle="reference", coder_tests="own")


PARTS: Mapping[str, type] = {"tester_reward": TesterReward, "coder_reward": CoderReward, "accept": Accept}
"""The options that name a class, and what it must be a subclass of."""


@functools.lru_cache(maxsize=256)
def _tester_reward(config: RewardConfig) -> TesterReward:
    path = TESTER_REWARDS.get(config.tester_reward, config.tester_reward)
    kind = load_class(path, TesterReward, "tester_reward")  # type: ignore[type-abstract]  # load_class refuses those
    for name in ("runs_union", "weighs_validity", *_NEED_UNION):
        require_bool(f"{path}.{name}", getattr(kind, name))
    rest = [name for name in _NEED_UNION if getattr(kind, name)]
    require(kind.runs_union or not rest, f"{path}.runs_union", f"be True with {', '.join(rest)}", False)
    return made(kind, config, name="tester_reward_args", arguments=config.tester_reward_args)


@functools.lru_cache(maxsize=256)
def _coder_reward(config: RewardConfig) -> CoderReward:
    named = config.coder_reward or config.reward.coder_reward
    must = "name a coder reward, built in or module:Class"
    require(named in tuple(CODER_REWARDS) or is_class_path(named), "coder_reward of the tester reward", must, named)
    path = CODER_REWARDS.get(named, named)
    kind = load_class(path, CoderReward, "coder_reward")  # type: ignore[type-abstract]  # load_class refuses those
    require_bool(f"{path}.judges_by_union", kind.judges_by_union)
    return made(kind, config, name="coder_reward_args", arguments=config.coder_reward_args)


@functools.lru_cache(maxsize=256)
def _accept(config: RewardConfig) -> Accept | None:
    if config.accept is None:
        return None
    kind = load_class(config.accept, Accept, "accept")  # type: ignore[type-abstract]  # load_class refuses those
    return made(kind, config, name="accept_args", arguments=config.accept_args)


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
