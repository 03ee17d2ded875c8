"""What a suite is paid, by the rewards of several methods, and how the pay is shared among its tests. Pure.

    code-a1   the method itself: `rewards.suite_terms`
    utrl      a solution counts as caught where it fails at least one valid test; validity with a clipped denominator
    cure      a test is right where all right solutions pass it, and is paid by the wrong solutions that it tells
    skill     a public, simpler write-up of Code-A1: every test by itself, on the best solution of the group

All but the first look at every solution of the question, so they need a `Group`. Per test, rewards are such that a
suite of exactly K asserts earns their mean. Does not promise that rewards of two methods can be compared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codea1_env.duel import Duel, JudgedReplay, Status, Verdict
from codea1_env.errors import ConfigurationError
from codea1_env.rewards import RewardConfig, SuiteTerms, attacking, is_valid, share_passed, suite_terms
from codea1_env.spans import Span, test_spans

_UTRL_CAUGHT, _UTRL_VALID = 0.85, 0.05
_UTRL_WHOLE = _UTRL_CAUGHT + _UTRL_VALID  # the other 0.1 are paid for tags of reasoning, which are not asked for here
_SKILL_VALID, _SKILL_DIFFICULT, _SKILL_INVALID_TEST, _SKILL_INVALID_CODE = 0.6, 0.4, -0.5, -1.0
_NO_TEST = frozenset((Status.DUPLICATE, Status.REJECTED))


@dataclass(frozen=True, slots=True)
class Group:
    """What the tests of one suite came to on all N solutions of its question."""

    verdicts: tuple[tuple[Verdict | None, ...], ...]
    """`[solution][test]`, tests as in the suite's duel; None where a test does not count and was not run."""
    as_written: tuple[tuple[bool, ...], ...] = ()
    """`[solution][test]`: whether the solution passes the test with the value that it states (`cure`, `skill`)."""
    right: tuple[bool, ...] = ()
    """`[solution]`: it passes all golden tests of the question (`cure`)."""
    best: int | None = None
    """The solution that tests are tried on by `skill`: the first of those with the highest reward; None: none loads."""


@dataclass(frozen=True, slots=True)
class TestReward:
    """One assert's part of its suite's reward."""

    __test__ = False  # pytest: not a test class

    reward: float
    span: Span | None
    """Where the assert stands in the response; None where that is not known."""


def suite_reward(duel: Duel, config: RewardConfig, group: Group | None = None) -> SuiteTerms | None:
    """The tester's reward for one suite and its parts; None where infrastructure failed.

    Beyond `code-a1`, the terms `alpha`, `validity`, `adversarial` and `reward` are the method's own, and the others
    stay. `adversarial` is what is paid beside validity: the share of solutions caught, the share of tests that the best
    solution fails as written, or, for `cure`, which knows no such sum, the reward itself.

    utrl (arXiv 2508.21107 and its released code): with D the share of solutions that fail at least one kept test and
    V = kept / max(tau, asserts without repeats), (0.85 D + 0.05 V) / 0.9. A corrected test is not valid.

    cure (arXiv 2506.03136, the reward of a unit test, with the released code's scale): 0 where no solution is right.
    A test that all right solutions pass earns the share of wrong solutions that fail it; any other loses the share of
    wrong solutions that pass it (both 1 where no solution is wrong). There a response is one test; here a suite earns
    the sum over its first K asserts, over K, and a repeated call earns 0.

    skill (the write-up "code-a1-adversarial-rl-code"): -0.5 for an assert that is no test (rejected, repeated,
    missing), else 0.6 [the oracle agrees with it] + 0.4 [the best solution fails it as written]; mean over K. That a
    wrong test earns 0.4 is the write-up's. 0 where no solution loads.
    """
    terms = suite_terms(duel, config)
    if terms is None or config.tester_reward == "code-a1":
        return terms
    group = _required(group, duel, config)
    size = config.suite_size
    counted = duel.tests[:size]
    if config.tester_reward == "utrl":
        caught = _share(any(solution) for solution in _fails_kept(duel, group))
        validity = _utrl_validity(duel, config)
        reward = (_UTRL_CAUGHT * caught + _UTRL_VALID * validity) / _UTRL_WHOLE
        return _with(terms, _UTRL_VALID / _UTRL_WHOLE, validity, caught, reward)
    parts = _parts(duel, config, group)
    kept = sum(test.status is Status.KEPT for test in counted) / size
    if config.tester_reward == "cure":
        reward = sum(parts) / size
        return _with(terms, terms.alpha, kept, reward, reward)
    if group.best is None:
        return _with(terms, _SKILL_VALID, kept, 0.0, 0.0)
    missing = size - len(counted)
    difficult = sum(
        not passes and test.status not in _NO_TEST
        for test, passes in zip(counted, group.as_written[group.best], strict=False)
    )
    reward = (sum(parts) + missing * _SKILL_INVALID_TEST) / size
    return _with(terms, _SKILL_VALID, kept, difficult / size, reward)


def per_test_rewards(
    duel: Duel, config: RewardConfig, group: Group | None = None, response: str = ""
) -> tuple[TestReward, ...] | None:
    """One reward for every assert of `duel.tests`, for advantages within a suite; None where infrastructure failed.

    Their mean is the suite's reward where it has exactly K asserts. What is paid or charged for the suite as a whole
    (fewer asserts than K, what unprintable characters cost, the replayed tests' share) is the same for each. code-a1:
    alpha [kept] + (1 - alpha) [counts, and the solution fails it]. utrl: every caught solution pays the tests that
    catch it in equal parts. An assert beyond the first K earns 0, but for `paper` fidelity's validity, where it counts.

    `response`: the tester's, to find the asserts in; "": without spans.
    """
    terms = suite_terms(duel, config)
    if terms is None:
        return None
    if config.tester_reward == "code-a1":
        rewards = _code_a1_parts(duel, config, terms)
    else:
        rewards = _parts(duel, config, _required(group, duel, config))
    spans = test_spans(response, [test.source for test in duel.tests]) if response else [None] * len(duel.tests)
    return tuple(TestReward(reward, span) for reward, span in zip(rewards, spans, strict=True))


def union_reward(
    solution: int,
    executes: bool,
    replays: Sequence[JudgedReplay],
    suites: Sequence[tuple[Duel, Group]],
    config: RewardConfig,
) -> float:
    """R_C of one solution by all suites of its question (`coder_tests="union"`), like `rewards.coder_reward`.

    Under `skill`: -1 where it does not load, else the share of all valid and replayed tests that it passes.
    """
    passed_replays = sum(replay.verdict is Verdict.PASS for replay in replays)
    p_hist = passed_replays / len(replays) if replays else None
    passed, shares, total = 0, [], 0
    for duel, group in suites:
        answers = zip(duel.tests, group.verdicts[solution], strict=True)
        verdicts = [verdict for test, verdict in answers if is_valid(test, config)]
        passes = sum(verdict is Verdict.PASS for verdict in verdicts)
        shares.append(share_passed(p_hist, passes / len(verdicts) if verdicts else None))
        passed, total = passed + passes, total + len(verdicts)
    if config.tester_reward == "skill":
        return (passed + passed_replays) / max(total + len(replays), 1) if executes else _SKILL_INVALID_CODE
    return sum(shares) / len(shares) if shares else 0.0


def best_solution(executes: Sequence[bool], rewards: Sequence[float]) -> int | None:
    """The first of the solutions that load and have the highest reward; None where none loads."""
    loading = [index for index, loads in enumerate(executes) if loads]
    return max(loading, key=rewards.__getitem__) if loading else None


def booked_quality(duel: Duel, group: Group | None, test: int) -> float:
    """How much a valid test is worth keeping: 0.6 + 0.4 [it fails], on the best solution where `skill` names one, else
    on the solution it was written against. It is kept with the oracle's value, so it is always valid."""
    if group is not None and group.best is not None:
        verdict = group.verdicts[group.best][test]
    else:
        verdict = duel.tests[test].verdict
    return _SKILL_VALID + _SKILL_DIFFICULT * (verdict is not Verdict.PASS)


def _parts(duel: Duel, config: RewardConfig, group: Group) -> list[float]:
    """What every assert earns by itself, K to a suite."""
    size = config.suite_size
    if config.tester_reward == "utrl":
        validity = size * _UTRL_VALID / _UTRL_WHOLE / max(config.utrl_tau, _distinct(duel))
        parts = [validity * (test.status is Status.KEPT) for test in duel.tests]
        fails = _fails_kept(duel, group)
        for solution in fails:
            catching = sum(solution)
            for index, caught in enumerate(solution):
                parts[index] += size * _UTRL_CAUGHT / _UTRL_WHOLE / len(fails) / catching if caught else 0.0
        return parts
    part = _cure_part if config.tester_reward == "cure" else _skill_part
    return [part(duel, group, index) if index < size else 0.0 for index in range(len(duel.tests))]


def _cure_part(duel: Duel, group: Group, index: int) -> float:
    right = [answers[index] for answers, is_right in zip(group.as_written, group.right, strict=True) if is_right]
    wrong = [answers[index] for answers, is_right in zip(group.as_written, group.right, strict=True) if not is_right]
    if not right or duel.tests[index].status is Status.DUPLICATE:
        return 0.0
    passing = sum(wrong) / len(wrong) if wrong else None
    if all(right):
        return 1.0 if passing is None else 1 - passing
    return -1.0 if passing is None else -passing


def _skill_part(duel: Duel, group: Group, index: int) -> float:
    status = duel.tests[index].status
    if group.best is None:
        return 0.0
    if status in _NO_TEST:
        return _SKILL_INVALID_TEST
    return _SKILL_VALID * (status is Status.KEPT) + _SKILL_DIFFICULT * (not group.as_written[group.best][index])


def _code_a1_parts(duel: Duel, config: RewardConfig, terms: SuiteTerms) -> list[float]:
    parts = []
    places = set(attacking(duel, config))
    for index, test in enumerate(duel.tests):
        is_first = index < config.suite_size
        fails = index in places and test.verdict is not Verdict.PASS
        if terms.f_hist is None:
            adversarial = float(fails)
        else:
            adversarial = (fails - terms.f_hist + 1) / 2 if terms.v and is_first else 0.0
        earned = config.alpha * (test.status is Status.KEPT) + (1 - config.alpha) * adversarial
        parts.append((earned if terms.executes else 0.0) - terms.nonprintable)
    return parts


def _utrl_validity(duel: Duel, config: RewardConfig) -> float:
    return sum(test.status is Status.KEPT for test in duel.tests) / max(config.utrl_tau, _distinct(duel))


def _distinct(duel: Duel) -> int:
    return sum(test.status not in (Status.DUPLICATE, Status.SURPLUS) for test in duel.tests)


def _fails_kept(duel: Duel, group: Group) -> list[list[bool]]:
    """`[solution][test]`: the test is valid as written, and the solution fails it."""
    return [
        [
            test.status is Status.KEPT and verdict is not Verdict.PASS
            for test, verdict in zip(duel.tests, row, strict=True)
        ]
        for row in group.verdicts
    ]


def _share(flags: Iterable[bool]) -> float:
    found = list(flags)
    return sum(found) / len(found) if found else 0.0


def _with(terms: SuiteTerms, alpha: float, validity: float, adversarial: float, reward: float) -> SuiteTerms:
    return dataclasses.replace(terms, alpha=alpha, validity=validity, adversarial=adversarial, reward=reward)


def _required(group: Group | None, duel: Duel, config: RewardConfig) -> Group:
    if group is None:
        raise ConfigurationError(
            f"tester_reward {config.tester_reward!r} must be given what the suite came to on every solution of "
            f"{duel.problem_id!r} (SuiteScore.group), got None"
        )
    return group
