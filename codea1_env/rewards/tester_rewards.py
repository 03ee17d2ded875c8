"""Rewards of a suite by several methods, and their shares for single tests. Pure.

    code-a1   the method itself: `terms.py`
    utrl      a solution counts as caught where it fails at least one valid test; validity with a clipped denominator
    cure      a test is right where all right solutions pass it, and is paid by the wrong solutions that it tells
    skill     a public, simpler write-up of Code-A1: every test by itself, on the best solution of the group

Each reward is one object; all but the first look at every solution of the question. The rewards of single tests are
such that a suite of exactly K asserts earns their mean. Does not promise that rewards of two methods can be compared.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from codea1_env.checks import is_number, is_several, plain_number, require
from codea1_env.errors import ConfigurationError
from codea1_env.reading.spans import Span, test_spans
from codea1_env.rewards.code_a1 import RewardConfig, is_valid, suite_terms
from codea1_env.rewards.duel import Duel, Status, Verdict
from codea1_env.rewards.interfaces import Group, TesterReward
from codea1_env.rewards.terms import (
    MAY_LACK,
    RewardParts,
    SuiteTerms,
    adversarial_share,
    attacking,
    effective_alpha,
    paid,
    weighed,
)

_NO_TEST = frozenset((Status.DUPLICATE, Status.REJECTED, Status.VACUOUS))


class CodeA1(TesterReward):
    """alpha R_val + (1 - alpha) R_adv, on the solution that the suite was written against (`rewards.suite_terms`)."""

    weighs_validity = True

    def suite(self, duel: Duel, terms: SuiteTerms, group: Group) -> SuiteTerms:
        return terms

    def tests(self, duel: Duel, terms: SuiteTerms, group: Group) -> Sequence[float]:
        """alpha [kept] + (1 - alpha) [counts, and the solution fails it]. What is paid or charged for the suite as a
        whole (fewer asserts than K, unprintable characters, the replayed tests' share) is the same for each."""
        rewards = []
        valid = [is_valid(test, self.config) for test in duel.tests]
        places = attacking(valid, self.config.suite_size, self.config.fidelity)
        for index, test in enumerate(duel.tests):
            is_first = index < self.config.suite_size
            fails = index in places and test.verdict is not Verdict.PASS
            adversarial = adversarial_share(float(fails), terms.f_hist, terms.v if is_first else 0)
            earned = weighed(terms.alpha, float(test.status is Status.KEPT), adversarial).total
            rewards.append(paid(terms.executes, earned, terms.nonprintable))
        return rewards

    def parts(self, terms: SuiteTerms) -> RewardParts:
        return super().parts(terms) if terms.executes else RewardParts(0.0, 0.0)

    def effective_alpha(self, terms: SuiteTerms) -> float:
        return effective_alpha(terms.alpha, terms.f_hist is not None)


class UTRL(TesterReward):
    """arXiv 2508.21107 and its released code: with D the share of solutions that fail at least one kept test and
    V = kept / max(tau, asserts without repeats), (0.85 D + 0.05 V) / 0.9. A corrected test is not valid.

    There the other 0.1 is paid for tags of reasoning, which are not asked for here.
    """

    runs_union = True
    weighs_validity = True
    _CAUGHT, _VALID = 0.85, 0.05
    _WHOLE = _CAUGHT + _VALID

    def suite(self, duel: Duel, terms: SuiteTerms, group: Group) -> SuiteTerms:
        fails = _fails_kept(duel, group)
        caught = sum(map(any, fails)) / len(fails) if fails else 0.0
        validity = sum(test.status is Status.KEPT for test in duel.tests) / self._distinct(duel)
        reward = (self._CAUGHT * caught + self._VALID * validity) / self._WHOLE
        return _with(terms, self._VALID / self._WHOLE, validity, caught, reward)

    def tests(self, duel: Duel, terms: SuiteTerms, group: Group) -> Sequence[float]:
        """Every caught solution pays the tests that catch it in equal parts."""
        size = self.config.suite_size
        validity = size * self._VALID / self._WHOLE / self._distinct(duel)
        rewards = [validity * (test.status is Status.KEPT) for test in duel.tests]
        fails = _fails_kept(duel, group)
        for solution in fails:
            catching = sum(solution)
            for index, caught in enumerate(solution):
                rewards[index] += size * self._CAUGHT / self._WHOLE / len(fails) / catching if caught else 0.0
        return rewards

    def _distinct(self, duel: Duel) -> int:
        distinct = sum(test.status not in (Status.DUPLICATE, Status.SURPLUS) for test in duel.tests)
        return max(self.config.utrl_tau, distinct)


class _TestByTest(TesterReward):
    """Pays each of the first K asserts by itself, and the others nothing."""

    def tests(self, duel: Duel, terms: SuiteTerms, group: Group) -> Sequence[float]:
        size = self.config.suite_size
        return [self._test(duel, group, index) if index < size else 0.0 for index in range(len(duel.tests))]

    @abc.abstractmethod
    def _test(self, duel: Duel, group: Group, index: int) -> float:
        """What one assert earns."""


class CURE(_TestByTest):
    """arXiv 2506.03136, the reward of a unit test, with the released code's scale: 0 where no solution is right.

    A test that all right solutions pass earns the share of wrong solutions that fail it; any other loses the share of
    wrong solutions that pass it (both 1 where no solution is wrong). There a response is one test; here a suite earns
    the sum over its first K asserts, over K, and a repeated call earns 0. No part of it is paid for validity.
    """

    runs_union = runs_stated = runs_golden = True

    def suite(self, duel: Duel, terms: SuiteTerms, group: Group) -> SuiteTerms:
        reward = sum(self.tests(duel, terms, group)) / self.config.suite_size
        return _with(terms, terms.alpha, _share_kept(duel, self.config), reward, reward)

    def _test(self, duel: Duel, group: Group, index: int) -> float:
        passes = [(answers[index], right) for answers, right in zip(group.as_written, group.right, strict=True)]
        right = [passing for passing, is_right in passes if is_right]
        wrong = [passing for passing, is_right in passes if not is_right]
        if not right or duel.tests[index].status is Status.DUPLICATE:
            return 0.0
        fooled = sum(wrong) / len(wrong) if wrong else None
        if all(right):
            return 1.0 if fooled is None else 1 - fooled
        return -1.0 if fooled is None else -fooled


class Skill(_TestByTest):
    """The write-up "code-a1-adversarial-rl-code": -0.5 for an assert that is no test (rejected, repeated, missing),
    else 0.6 [the oracle agrees with it] + 0.4 [the best solution fails it as written]; mean over K. 0 where none loads.

    A wrong test earns 0.4 in the write-up, too.
    """

    runs_union = runs_stated = asks_best = True
    coder_reward = "skill"
    weighs_validity = True
    _VALID, _DIFFICULT, _INVALID_TEST = 0.6, 0.4, -0.5

    def suite(self, duel: Duel, terms: SuiteTerms, group: Group) -> SuiteTerms:
        size = self.config.suite_size
        kept = _share_kept(duel, self.config)
        if group.best is None:
            return _with(terms, 0.0, kept, 0.0, 0.0)  # nor is anything paid for validity
        counted = duel.tests[:size]
        difficult = sum(
            not passes and test.status not in _NO_TEST
            for test, passes in zip(counted, group.as_written[group.best], strict=False)
        )
        missing = size - len(counted)
        reward = (sum(self.tests(duel, terms, group)) + missing * self._INVALID_TEST) / size
        return _with(terms, self._VALID, kept, difficult / size, reward)

    @classmethod
    def quality(cls, is_kept: bool, is_failed: bool) -> float:
        """The quality of one test: 0.6 [the oracle agrees with it] + 0.4 [a solution fails it]."""
        return cls._VALID * is_kept + cls._DIFFICULT * is_failed

    def _test(self, duel: Duel, group: Group, index: int) -> float:
        status = duel.tests[index].status
        if group.best is None:
            return 0.0
        if status in _NO_TEST:
            return self._INVALID_TEST
        return self.quality(status is Status.KEPT, not group.as_written[group.best][index])


@dataclass(frozen=True, slots=True)
class TestReward:
    """One assert's part of its suite's reward."""

    __test__ = False  # pytest: not a test class

    reward: float
    span: Span | None
    """The place of the assert in the response; None if that is not known."""


def suite_reward(duel: Duel, config: RewardConfig, group: Group | None = None) -> SuiteTerms | None:
    """The tester's reward for one suite and its parts; None if infrastructure failed.

    For rewards other than `code-a1`, the terms `alpha`, `validity`, `adversarial` and `reward` are the method's own,
    and the others stay. `adversarial` is the part that is paid beside validity: the share of solutions caught, the
    share of tests that the best solution fails as written, or, for `cure`, which has no such sum, the reward itself.

    Raises ConfigurationError without the group that the reward needs, and if a number of one's own reward is none.
    """
    terms = suite_terms(duel, config)
    if terms is None:
        return None
    pays = config.reward
    earned = pays.suite(duel, terms, _required(group, duel, config))
    name, must = f"what tester_reward {config.tester_reward!r}", "be terms with a finite reward and finite parts"
    require(isinstance(earned, SuiteTerms), f"{name} pays a suite", must, earned)
    if earned is not terms:
        earned = dataclasses.replace(
            earned, **{each: plain_number(getattr(earned, each)) for each in SuiteTerms.__slots__}
        )
        others = {each: value for each in SuiteTerms.__slots__ if not _is_term(each, value := getattr(earned, each))}
        require(not others, f"{name} pays a suite", must, others)
    parts, alpha = pays.parts(earned), plain_number(pays.effective_alpha(earned))
    are_parts = isinstance(parts, RewardParts) and all(map(is_number, map(plain_number, parts)))
    require(are_parts, f"{name} says of the parts of a reward", "be RewardParts of finite numbers", parts)
    require(alpha is None or is_number(alpha), f"{name} says of alpha", "be None or a finite number", alpha)
    return earned


def _is_term(name: str, value: object) -> bool:
    """Whether a term of that name may have this value."""
    return type(value) is bool if name == "executes" else is_number(value) or (value is None and name in MAY_LACK)


def per_test_rewards(
    duel: Duel, config: RewardConfig, group: Group | None = None, response: str = ""
) -> tuple[TestReward, ...] | None:
    """One reward for every assert of `duel.tests`, for advantages within a suite; None if infrastructure failed.

    Their mean is the suite's reward if it has exactly K asserts (`TesterReward.tests`). An assert beyond the first K
    earns 0, except in the validity of `paper` fidelity, where it counts.

    `response` is the tester's, in which the asserts are located; with "" the rewards have no spans.
    """
    terms = suite_reward(duel, config, group)
    if terms is None:
        return None
    given = config.reward.tests(duel, terms, _required(group, duel, config))
    rewards = [plain_number(each) for each in given] if is_several(given) else []
    is_paid = len(rewards) == len(duel.tests) and all(map(is_number, rewards)) and is_several(given)
    must = f"be {len(duel.tests)} numbers, one for each"
    require(is_paid, f"what tester_reward {config.tester_reward!r} pays the tests", must, rewards or given)
    spans = test_spans(response, [test.source for test in duel.tests]) if response else [None] * len(duel.tests)
    return tuple(TestReward(reward, span) for reward, span in zip(rewards, spans, strict=True))


def booked_quality(duel: Duel, group: Group | None, test: int) -> float:
    """How much a valid test is worth keeping: 0.6 + 0.4 [it fails], on the best solution if one is named (`skill`),
    else on the solution it was written against. It is kept with the oracle's value, so it is always valid."""
    if group is not None and group.best is not None:
        verdict = group.verdicts[group.best][test]
    else:
        verdict = duel.tests[test].verdict
    return Skill.quality(True, verdict is not Verdict.PASS)


def _share_kept(duel: Duel, config: RewardConfig) -> float:
    return sum(test.status is Status.KEPT for test in duel.tests[: config.suite_size]) / config.suite_size


def _fails_kept(duel: Duel, group: Group) -> list[list[bool]]:
    """`[solution][test]`: the test is valid as written, and the solution fails it."""
    return [
        [
            test.status is Status.KEPT and verdict is not Verdict.PASS
            for test, verdict in zip(duel.tests, row, strict=True)
        ]
        for row in group.verdicts
    ]


def _with(terms: SuiteTerms, alpha: float, validity: float, adversarial: float, reward: float) -> SuiteTerms:
    return dataclasses.replace(terms, alpha=alpha, validity=validity, adversarial=adversarial, reward=reward)


def _required(group: Group | None, duel: Duel, config: RewardConfig) -> Group:
    if group is None and config.reward.runs_union:
        raise ConfigurationError(
            f"tester_reward {config.tester_reward!r} must get the results of the suite on every solution of "
            f"{duel.problem_id!r} (SuiteScore.group), got None"
        )
    return group or Group()
