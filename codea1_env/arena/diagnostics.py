"""Scored duels -> what a round says beside its rewards: is there anything to learn from, and is it real? And programs
that answer without computing, told by their text: constant ones, and ones that hold the golden tests.

Pure: numpy and the standard library. Paid or charged for by nobody. What infrastructure kept from being scored is left
out; what cannot be said of a round (no group that teaches, no assert) is not a number. Does not promise that a share
means much in a small round, nor that a high one is a fault: good programs make tests look trivial, and a table of
values holds values, too.
"""

from __future__ import annotations

import ast
import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from codea1_env.arena.match import MatchScore, SuiteScore
from codea1_env.problems.problem import Problem
from codea1_env.reading.parsing import Unparsable, parse
from codea1_env.reading.pure_expressions import Reason
from codea1_env.reading.test_case import TestCase
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import JudgedTest, Status, Verdict
from codea1_env.rewards.terms import RewardParts, SuiteTerms

SAME = 1e-8
"""Rewards that differ by no more are equal: what is left is rounding."""
VACUOUS = frozenset((Reason.NOT_A_COMPARISON, Reason.NOT_ENTRY_POINT, Reason.SELF_COMPARISON))
"""Why an assert claims nothing of the program: it compares no call of the entry point with a value."""


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """One round, or any other batch of matches. A tester's group: the suites against one program; a coder's: the
    programs of one question. A group teaches where its rewards differ. Surplus asserts are nowhere counted."""

    effective_alpha: float
    """Weight of validity that is left after normalisation in groups, in [0, 1]: the mean over the tester's groups that
    teach of alpha' = 2 alpha / (1 + alpha) where tests were replayed, alpha where none were.

    With replay, R_T = alpha R_val + (1 - alpha) (f_new - f_hist + 1) / 2, and f_hist and 1 are the same for a whole
    group. An advantage, (R - mean) / deviation, does not change when R is shifted or scaled, so it is that of
    alpha' R_val + (1 - alpha') f_new with alpha' = alpha / (alpha + (1 - alpha) / 2). (Suites without a valid test
    aside, which have no f_hist to cancel.) Other rewards: their weight of validity; `cure` has none: not a number."""
    validity_signal: float
    """Share of the tester's advantages that is due to validity: over its groups that teach, the mean of

        sum_i alpha (V_i - mean V) (R_i - mean R) / sum_i (R_i - mean R)^2

    with V = R_val and R = R_T of suite i. The adversarial part and the penalty make the rest to 1. 1: aiming pays
    nothing. Below 0 or above 1 where the parts pull against each other."""
    paid_validity: float
    """Mean part of R_T that is paid for validity, alpha R_val, in [0, 1]; nothing where the program does not load."""
    paid_adversarial: float
    """Mean part of R_T that is paid beside it, (1 - alpha) R_adv, in [-1, 1]; of `cure`, which knows no parts, all."""
    paid_penalty: float
    """What is taken off: R_T is the sum of the first two minus this one. The share of non-printable characters, in
    [0, 1]; under `skill` what invalid tests cost."""
    coder_zero_groups: float
    """Share of questions all of whose programs earn the same, in [0, 1]: they teach the coder nothing."""
    tester_zero_groups: float
    """Share of programs all of whose suites earn the same, in [0, 1], selected for training or not."""
    trivial_tests: float
    """Share of the asserts against programs that load which tell no program from another, in [0, 1]: vacuous ones, and
    those whose call is passed by every loading program of the question that it met. By default a suite meets its own
    program alone, and equal calls of different suites are taken together; `coder_tests: union` lets all meet all."""
    vacuous_tests: float
    """Share of the asserts that claim nothing of the program, or next to nothing (`judging/relations/status.py`), in
    [0, 1]: `assert True`, `assert f(1) == f(1)`, `assert len(f(1)) >= 0`."""
    duplicate_tests: float
    """Share of the asserts that repeat a call of their own suite, in [0, 1]."""
    test_diversity: float
    """Distinct calls over all calls in the suites of a question, in (0, 1], mean over questions; a condition counts as
    a call of its own. Low: the tester writes the same tests whatever program it is shown."""
    book_hit_rate: float
    """Share of questions for which the Mistake Book had a test to replay, in [0, 1]."""

    def as_metrics(self) -> dict[str, float]:
        """By field name."""
        return dataclasses.asdict(self)


def diagnose(scores: Sequence[MatchScore], config: RewardConfig) -> Diagnostics:
    """The diagnostics of scored matches. `config`: what they were scored by."""
    rows = [[suite for suite in row if suite.terms is not None] for score in scores for row in score.suites]
    teaching = [row for row in rows if row and not _is_flat([suite.reward for suite in row])]
    tests = [test for row in rows for suite in row for test in _counted(suite)]
    terms = [suite.terms for row in rows for suite in row if suite.terms is not None]
    parts = [_parts(each, config) for each in terms]
    return Diagnostics(
        effective_alpha=mean(_weight_left(row, config) for row in teaching),
        validity_signal=mean(_validity_share(row, config) for row in teaching),
        paid_validity=mean(part.validity for part in parts),
        paid_adversarial=mean(part.adversarial for part in parts),
        paid_penalty=mean(part.total - each.reward for part, each in zip(parts, terms, strict=True)),
        coder_zero_groups=zero_groups([[code.reward for code in score.codes] for score in scores]),
        tester_zero_groups=zero_groups([[suite.reward for suite in row] for row in rows]),
        trivial_tests=mean(share for score in scores for share in _trivial(score)),
        vacuous_tests=mean(_is_vacuous(test) for test in tests),
        duplicate_tests=mean(test.status is Status.DUPLICATE for test in tests),
        test_diversity=mean(_diversity(score) for score in scores),
        book_hit_rate=mean(_replayed(score) for score in scores),
    )


def zero_groups(groups: Iterable[Sequence[float | None]]) -> float:
    """Share of groups whose rewards are all equal, in [0, 1]. A reward of None has no say; a group of nothing else is
    left out; nan where all are."""
    scored = [[reward for reward in group if reward is not None] for group in groups]
    return mean(_is_flat(group) for group in scored if group)


def collusion_gap(rewards: Sequence[float | None], hidden: Sequence[float | None]) -> float:
    """Mean of R_C minus the share of its question's hidden tests that a program passes, in [-1, 1]; nan if no
    program has both.

    Tests that aim make it negative. It grows where the coder is paid more and more for programs that get no better:
    both seats have found tests that suit them.
    """
    pairs = zip(rewards, hidden, strict=True)
    return mean(reward - share for reward, share in pairs if reward is not None and share is not None)


def _is_flat(rewards: Sequence[float | None]) -> bool:
    values = [reward for reward in rewards if reward is not None]
    return max(values) - min(values) <= SAME


def _parts(terms: SuiteTerms, config: RewardConfig) -> RewardParts:
    return config.with_suite_size(terms.suite_size).reward.parts(terms)


def _weight_left(row: Sequence[SuiteScore], config: RewardConfig) -> float | None:
    terms = row[0].terms
    assert terms is not None  # only scored suites come here
    return config.with_suite_size(terms.suite_size).reward.effective_alpha(terms)


def _validity_share(row: Sequence[SuiteScore], config: RewardConfig) -> float | None:
    if not config.reward.weighs_validity:
        return None
    parts = [_parts(suite.terms, config) for suite in row if suite.terms is not None]
    validity = np.array([part.validity for part in parts])  # (suites,)
    reward = np.array([suite.reward for suite in row], dtype=float)
    validity, reward = validity - validity.mean(), reward - reward.mean()
    return float(validity @ reward / (reward @ reward))


def _counted(suite: SuiteScore) -> Iterator[JudgedTest]:
    return (test for test in suite.duel.tests if test.status is not Status.SURPLUS)


def _is_vacuous(test: JudgedTest) -> bool:
    return test.status is Status.VACUOUS or (test.status is Status.REJECTED and test.reason in VACUOUS)


def _trivial(score: MatchScore) -> list[bool]:
    """Of every assert against a program that loads: whether it tells no program from another."""
    loads = [code.executes is True for code in score.codes]
    rows = [row for row, is_loading in zip(score.suites, loads, strict=True) if is_loading]
    suites = [suite for row in rows for suite in row if suite.terms is not None]
    telling = {
        test.call
        for suite in suites
        for place, test in enumerate(suite.duel.tests)
        if any(verdict not in (None, Verdict.PASS) for verdict in _verdicts(suite, place, loads))
    }
    return [
        _is_vacuous(test) or (test.verdict is not None and test.call not in telling)
        for suite in suites
        for test in _counted(suite)
    ]


def _verdicts(suite: SuiteScore, place: int, loads: Sequence[bool]) -> list[Verdict | None]:
    """What one test came to on the loading programs that it met."""
    if suite.group is None:
        return [suite.duel.tests[place].verdict]
    return [row[place] for row, is_loading in zip(suite.group.verdicts, loads, strict=True) if is_loading]


def _diversity(score: MatchScore) -> float | None:
    suites = [suite for row in score.suites for suite in row if suite.terms is not None]
    calls = [test.call for suite in suites for test in _counted(suite) if test.call is not None]
    return len(set(calls)) / len(calls) if calls else None


def _replayed(score: MatchScore) -> bool | None:
    suites = [suite for row in score.suites for suite in row if suite.terms is not None]
    return any(suite.duel.replays for suite in suites) if suites else None


def mean(values: Iterable[float | None]) -> float:
    """Of what can be said; nan where nothing can."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")


def shares_of(name: str, noted: Sequence[Collection[str]]) -> dict[str, float]:
    """Share of the programs, or suites, of which something is noted, and by note; nan where there are none."""
    counts = Counter(note for notes in noted for note in {*notes})
    named = {f"{name}_{note}": count / len(noted) for note, count in sorted(counts.items())}
    return {name: mean([float(bool(notes)) for notes in noted])} | named


LEAST_HELD = 2
"""Golden tests whose arguments and value a program's code holds that is called hard-coded."""
_MOST_NODES = 2000
_LITERALS = (ast.Constant, ast.UnaryOp, ast.List, ast.Tuple, ast.Dict, ast.Set)
_INPUTS = frozenset(("input", "stdin", "open"))


def hollow_metrics(programs: Sequence[tuple[Problem, str]]) -> dict[str, float]:
    """Shares of the programs, in [0, 1]; not a number without any."""
    return {
        "constant_programs": mean([float(is_constant(problem, source)) for problem, source in programs]),
        "hard_coded_programs": mean([float(is_hard_coded(problem, source)) for problem, source in programs]),
    }


def is_constant(problem: Problem, source: str) -> bool:
    """Whether what is called never names what it is given; False for a class, and for what cannot be read."""
    try:
        module = parse(source)
    except Unparsable:
        return False
    if problem.kind == "program":
        return not any(name in _INPUTS for name in _names(module))
    called = problem.entry_point.rpartition(".")[2]
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == called:
            given = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)} - {"self"}
            return bool(given) and not any(name in given for part in node.body for name in _names(part))
    return False


def is_hard_coded(problem: Problem, source: str) -> bool:
    """Whether the code, its asserts and docstrings aside, holds the arguments and the value of LEAST_HELD golden
    tests."""
    wanted = [parts for test in problem.golden_tests if (parts := _test_parts(test))]
    if len(wanted) < LEAST_HELD:
        return False
    try:
        held = set(_literals(parse(source)))
    except Unparsable:
        return False
    return sum(parts <= held for parts in wanted) >= LEAST_HELD


def _test_parts(test: TestCase) -> set[str]:
    """The literals of a test, arguments and value; empty where they are no literals, or numbers with more digits than
    Python writes, or no argument is telling."""
    try:
        call, value = ast.parse(test.call, mode="eval").body, ast.literal_eval(test.expected)
        assert isinstance(call, ast.Call)
        asked = (*call.args, *(keyword.value for keyword in call.keywords))
        given = {repr(ast.literal_eval(each)) for each in asked}
        telling = [each for each in given if len(each) > 1]  # single digits stand in every program
        return given | {repr(value)} if telling else set()
    except (ValueError, SyntaxError, AssertionError, TypeError, MemoryError, RecursionError):
        return set()


def _literals(module: ast.Module) -> Iterator[str]:
    for node in islice(_code(module), _MOST_NODES):
        if isinstance(node, _LITERALS):
            try:
                yield repr(ast.literal_eval(node))
            except (ValueError, TypeError, MemoryError, RecursionError):
                continue


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that compute something."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_text and not isinstance(node, ast.Assert):
            yield node
            waiting += ast.iter_child_nodes(node)


def _names(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Attribute):
            yield inner.attr
