"""Both seats of the matrix study: softmax policies over the texts of a pool, paid by the library, taught by REINFORCE.

A program is drawn with a probability proportional to exp(theta . features); a suite is K draws without replacement by
the same rule, where a white-box tester adds a term in the program's features times the test's. The parameters are
shared by all questions. Rewards are `codea1_env.rewards`' own, one table entry for every count that they depend on;
advantages are `codea1_env.training.advantages`'. One gradient step a round on fresh samples, so that clipping has
nothing to do; no divergence penalty.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import torch
from matrix_pools import Flags, Floats, Ints, Questions

from codea1_env import MistakeBook, RewardConfig, TestCase
from codea1_env.configuration.algorithm import Algorithm
from codea1_env.rewards.code_a1 import coder_reward, suite_terms
from codea1_env.rewards.duel import Duel, JudgedReplay, JudgedTest, Status, Verdict
from codea1_env.training.advantages import estimator_of
from codea1_env.training.samples import RowLabel

N, M, K = 8, 4, 4
"""Programs of a question, suites of a program, tests of a suite: as in the mini preset. An arm may have another K."""
REPLAYS = 8
"""Most replayed tests."""
QUESTIONS = 8
"""Of a round."""
CODER_RATE, TESTER_RATE = 2.0, 2.0


@dataclass(frozen=True, slots=True)
class Arm:
    """One method. The defaults are Code-A1's."""

    name: str
    coder_paid_by: str = "tests"
    """tests: the tester's suites; golden: the golden tests."""
    tester_learns: bool = True
    starts_from: str = ""
    """The arm whose final tester plays here."""
    book: bool = True
    alpha: float = 0.5
    paid_for_both: bool = False
    """One learner in both seats: each choice earns what both seats are paid for it."""
    reference: bool = True
    """Without it a test is valid where more than half of the question's N programs pass it as it is written."""
    white_box: bool = True
    tests: int = K
    """Of a suite."""
    coder_rate: float = CODER_RATE
    tester_rate: float = TESTER_RATE


@dataclass(slots=True)
class Policies:
    """Parameters of both seats."""

    coder: Floats
    """(D,)."""
    tester: Floats
    """(F,)."""
    attack: Floats
    """The white-box term, (S, F)."""

    @classmethod
    def untrained(cls, questions: Questions) -> Policies:
        """All programs are equally likely, and all suites."""
        depth, seen, width = (questions.program_features, questions.shapes, questions.test_features)
        return cls(np.zeros(depth.shape[2]), np.zeros(width.shape[2]), np.zeros((seen.shape[2], width.shape[2])))

    def program_logits(self, questions: Questions, chosen: Ints) -> Floats:
        """(B, P) for B questions; no program, -inf."""
        logits = questions.program_features[chosen] @ self.coder
        return np.where(questions.programs[chosen], logits, -np.inf)

    def test_logits(self, questions: Questions, chosen: Ints, programs: Ints) -> Floats:
        """(B, N, T) for the programs (B, N) under attack."""
        seen = questions.shapes[chosen[:, None], programs] @ self.attack + self.tester  # (B, N, F)
        logits = seen @ questions.test_features[chosen].swapaxes(1, 2)
        return np.where(questions.tests[chosen][:, None], logits, -np.inf)


def softmax(logits: Floats) -> Floats:
    """Over the last axis."""
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


def draws(logits: Floats, count: int, generator: np.random.Generator) -> Ints:
    """(..., count) different places by repeated softmax draws: the largest of logits with Gumbel noise, in order."""
    noisy = logits + generator.gumbel(size=logits.shape)
    return np.argsort(-noisy, axis=-1)[..., :count]


def program_draws(logits: Floats, generator: np.random.Generator) -> Ints:
    """(B, N) places, with replacement."""
    return draws(np.repeat(logits[:, None], N, axis=1), 1, generator)[..., 0]


def suite_draws(logits: Floats, count: int, generator: np.random.Generator, tests: int = K) -> Ints:
    """(B, N, count, tests) places."""
    return draws(np.repeat(logits[:, :, None], count, axis=2), tests, generator)


@functools.cache
def reward_tables(alpha: float, tests: int = K) -> tuple[Floats, Floats]:
    """R_T, and the share of a suite that the coder is paid, by [executes, kept, wrong, kills, replays, failed replays].

    A suite of so many tests: `kept` state the right value, `wrong` another one, the rest are invalid; the program fails
    `kills` of the first two kinds. What cannot be is nan.
    """
    config = RewardConfig(alpha=alpha, suite_size=tests, replay_limit=REPLAYS)
    tester = np.full((2, tests + 1, tests + 1, tests + 1, REPLAYS + 1, REPLAYS + 1), np.nan)
    coder = tester.copy()
    for place in np.ndindex(tester.shape):
        executes, kept, wrong, kills, replays, failed = place
        most = kept + wrong
        possible = kills <= most <= tests and failed <= replays
        if not possible or (not executes and (kills, failed) != (most, replays)):
            continue
        statuses = [Status.KEPT] * kept + [Status.WRONG_EXPECTED] * wrong + [Status.REJECTED] * (tests - most)
        verdicts = [Verdict.FAIL] * kills + [Verdict.PASS] * (most - kills) + [None] * (tests - most)
        judged = [_judged(status, verdict) for status, verdict in zip(statuses, verdicts, strict=True)]
        played = [Verdict.FAIL] * failed + [Verdict.PASS] * (replays - failed)
        again = tuple(JudgedReplay(TestCase("", ""), verdict) for verdict in played)
        terms = suite_terms(Duel("", "", bool(executes), 0.0, tuple(judged), again), config)
        share = coder_reward([terms])
        assert terms is not None
        assert share is not None
        tester[place], coder[place] = terms.reward, share
    return tester, coder


def _judged(status: Status, verdict: Verdict | None) -> JudgedTest:
    return JudgedTest("", status, "", None, None, None, verdict)


@dataclass(frozen=True, slots=True)
class Paid:
    """What B questions' suites came to, (B, N, M) each."""

    tester: Floats
    without_history: Floats
    """R_T with f_hist = 0."""
    shares: Floats
    """Of R_C: R_C is their mean over M."""
    valid: Floats
    """Tests that state the right value, none twice, over K."""
    counted: Ints
    """v: tests with right and corrected values."""
    kills: Floats
    """Of those, the ones that the program fails, over K."""
    failed: Flags
    """Whether the program fails the test, which counts: (B, N, M, K)."""


def pay(questions: Questions, arm: Arm, chosen: Ints, programs: Ints, suites: Ints, replays: list[list[int]]) -> Paid:
    """Score suites (B, N, M, K) written against programs (B, N) of the questions `chosen` (B,)."""
    at = chosen[:, None, None, None]
    under = programs[:, :, None, None]
    calls = questions.calls[at, suites]
    repeats = np.zeros(suites.shape, bool)
    for later in range(1, suites.shape[-1]):
        repeats[..., later] = (calls[..., :later] == calls[..., later, None]).any(-1)
    if arm.reference:
        kept, counts, fails = (
            questions.kept[at, suites],
            questions.run[at, suites],
            questions.fails[at, under, suites],
        )
    else:
        agreed = questions.written[chosen[:, None], programs].sum(1) > programs.shape[1] / 2  # (B, T)
        kept = agreed[np.arange(len(chosen))[:, None, None, None], suites]
        counts, fails = kept, ~questions.written[at, under, suites]
    kept, counts = kept & ~repeats, counts & ~repeats
    executes = questions.executes[chosen[:, None], programs]
    failed = counts & (fails | ~executes[:, :, None, None])
    replayed, replays_failed = _replayed(questions, chosen, programs, replays)
    kinds = (
        executes[:, :, None].astype(int),
        kept.sum(-1),
        (counts & ~kept).sum(-1),
        failed.sum(-1),
        replayed[:, None, None],
    )
    tester, coder = reward_tables(arm.alpha, suites.shape[-1])
    none_failed = np.where(executes[:, :, None], 0, replayed[:, None, None])
    return Paid(
        tester[(*kinds, replays_failed[:, :, None])],
        tester[(*kinds, none_failed)],
        coder[(*kinds, replays_failed[:, :, None])],
        kinds[1] / suites.shape[-1],
        kinds[1] + kinds[2],
        kinds[3] / suites.shape[-1],
        failed,
    )


def _replayed(questions: Questions, chosen: Ints, programs: Ints, replays: list[list[int]]) -> tuple[Ints, Ints]:
    """How many tests are replayed, (B,), and how many of them each program fails, (B, N)."""
    count = np.array([len(places) for places in replays])
    rows = zip(chosen, programs, replays, strict=True)
    return count, np.array([_fails_on(questions, place, row, tests).sum(1) for place, row, tests in rows])


def _fails_on(questions: Questions, question: int, programs: Ints, tests: list[int]) -> Flags:
    return questions.fails[question][np.ix_(programs, tests)] if tests else np.zeros((len(programs), 0), bool)


class Game:
    """One run of one arm."""

    def __init__(self, questions: Questions, arm: Arm, train: Ints, seed: int, policies: Policies) -> None:
        self.questions, self.arm, self.train, self.policies = questions, arm, train, policies
        self.generator = np.random.default_rng([seed, 1])
        self.book = MistakeBook()
        self.estimator = estimator_of(Algorithm())
        self.waiting: list[int] = []
        self.coder_rewards: list[float] = []
        """Mean R_C of each round."""
        self.moved: dict[str, list[bool]] = {"all suites valid": [], "one suite empty": []}
        """For the tester's groups whether f_hist has changed an advantage by more than 1e-3; `empty`: without a test
        that counts, where the reward has no f_hist."""

    def round(self) -> None:
        """Play one round and learn from it."""
        if len(self.waiting) < QUESTIONS:
            self.waiting += self.generator.permutation(self.train).tolist()
        chosen, self.waiting = np.array(self.waiting[:QUESTIONS]), self.waiting[QUESTIONS:]
        logits = self.policies.program_logits(self.questions, chosen)
        programs = program_draws(logits, self.generator)
        if self.arm.coder_paid_by != "tests":
            rewards = self._share_of(self.questions.golden, chosen, programs)
            self.coder_rewards.append(float(rewards.mean()))
        else:
            rewards = self._duels(chosen, programs)
        self._teach_coder(chosen, programs, rewards, softmax(logits))

    def _duels(self, chosen: Ints, programs: Ints) -> Floats:
        """The coder's rewards, (B, N); the tester learns, the book is kept."""
        test_logits = self.policies.test_logits(self.questions, chosen, programs)
        suites = suite_draws(test_logits, M, self.generator, self.arm.tests)
        names = [self.questions.ids[place] for place in chosen]
        replays = [[int(case.call) for case in self.book.replay(name, REPLAYS)] for name in names]
        paid = pay(self.questions, self.arm, chosen, programs, suites, replays)
        earned = paid.tester + paid.shares if self.arm.paid_for_both else paid.tester
        if self.arm.tester_learns:
            self._teach_tester(chosen, programs, suites, earned, paid, test_logits)
        if self.arm.book:
            for row, place in enumerate(chosen):
                self._remember(int(place), programs[row], suites[row], paid.failed[row], replays[row])
        rewards = paid.shares.mean(2)
        self.coder_rewards.append(float(rewards.mean()))
        return rewards + paid.tester.mean(2) if self.arm.paid_for_both else rewards

    def _remember(self, question: int, programs: Ints, suites: Ints, failed: Flags, replays: list[int]) -> None:
        passed = ~_fails_on(self.questions, question, programs, replays)
        passes = [_case(replays[column]) for column in np.nonzero(passed)[1]]
        failures = [_case(place) for place in self.questions.calls[question][suites[failed]]]
        self.book.record(self.questions.ids[question], passes, failures)

    def _share_of(self, tests: Flags, chosen: Ints, programs: Ints) -> Floats:
        passes = ~self.questions.fails[chosen[:, None], programs] & tests[chosen][:, None]
        return passes.sum(2) / tests[chosen].sum(1)[:, None]

    def _advantages(self, seat: str, rewards: Floats, chosen: Ints) -> Floats:
        """(B, n) rewards of B groups."""
        groups = np.repeat(np.arange(len(rewards)), rewards.shape[1]).tolist()
        rows = [RowLabel(str(group), self.questions.ids[chosen[group]], seat) for group in groups]
        found: Floats = self.estimator.advantages(torch.from_numpy(rewards.ravel()), rows).numpy()
        return found.reshape(rewards.shape)

    def _teach_coder(self, chosen: Ints, programs: Ints, rewards: Floats, shares: Floats) -> None:
        advantages = self._advantages("coder", rewards, chosen)
        pull = -advantages.sum(1)[:, None] * shares  # (B, P)
        np.add.at(pull, (np.arange(len(chosen))[:, None], programs), advantages)
        features = self.questions.program_features[chosen]
        self.policies.coder += self.arm.coder_rate * np.einsum("bp,bpd->d", pull, features) / advantages.size

    def _teach_tester(
        self, chosen: Ints, programs: Ints, suites: Ints, earned: Floats, paid: Paid, logits: Floats
    ) -> None:
        """From the suites against one program of each question: the one whose suites differ most in reward."""
        rows = np.arange(len(chosen))
        attacked = earned.std(2).argmax(1)
        advantages = self._advantages("tester", earned[rows, attacked], chosen)
        if self.arm.book and not self.arm.paid_for_both:
            other = self._advantages("tester", paid.without_history[rows, attacked], chosen)
            whole = (paid.counted[rows, attacked] > 0).all(1)
            for moved, is_whole in zip(np.abs(other - advantages).max(1) > 1e-3, whole, strict=True):
                self.moved["all suites valid" if is_whole else "one suite empty"].append(bool(moved))
        picked, remaining = suites[rows, attacked], np.repeat(logits[rows, attacked][:, None], M, axis=1)
        pull = np.zeros(remaining.shape)  # (B, M, T)
        for turn in range(self.arm.tests):
            place = picked[..., turn, None]
            pull -= advantages[..., None] * softmax(remaining)
            np.put_along_axis(pull, place, np.take_along_axis(pull, place, -1) + advantages[..., None], -1)
            np.put_along_axis(remaining, place, -np.inf, -1)
        toward = np.einsum("bt,btf->bf", pull.sum(1), self.questions.test_features[chosen]) / advantages.size
        self.policies.tester += self.arm.tester_rate * toward.sum(0)
        if self.arm.white_box:
            seen = self.questions.shapes[chosen, programs[rows, attacked]]
            self.policies.attack += self.arm.tester_rate * np.einsum("bs,bf->sf", seen, toward)


def _case(place: int) -> TestCase:
    return TestCase(str(place), "")
