"""Rewards of a round -> advantages. One estimator always runs, for every seat and every configuration: edit it here.

    grpo        a = r - mean of the group, divided as TRL does:
      scale group     / (sample standard deviation of the group + 1e-4)
      scale batch     / (sample standard deviation of the batch + 1e-4)
      scale none      not divided: the leave-one-out baseline of RLOO, times (N - 1) / N
    question    a = r - running mean of the question and the seat
    rae         a = r - running mean of the seat
      scale group, batch    / (root mean square of the differences in the group, the batch + 1e-4)

The group's mean removes whatever is equal in the whole group, above all the Mistake Book's share f_hist. A running mean
keeps it. Its differences are divided by their own root mean square, because a group of equal rewards has a spread of 0
and may still differ from earlier rewards. Rows without a running mean yet are compared with their group.

Equal groups in order get the bits that TRL's own advantages have: 32-bit arithmetic on the device of the rewards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codea1_env.class_paths import load_class, made, state_text
from codea1_env.configuration.algorithm import Algorithm
from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra
from codea1_env.training.samples import Batch, RowLabel

with extra("train", "training needs"):
    import torch
    from torch import Tensor

EPSILON = 1e-4
"""Added to what advantages are divided by. TRL's."""
NO_SIGNAL = 1e-3
"""An advantage up to this size is rounding: the last bit of a reward of 1, divided by EPSILON. Where nothing is
divided, EPSILON times that."""


class Estimator(ABC):
    """Makes the advantages of one seat's trainer. Subclass it, and name the class in `algorithm.advantage`."""

    def __init__(self, algorithm: Algorithm) -> None:
        """`algorithm`: the section of the configuration. Your own class may take more arguments: `advantage_args`."""
        self.algorithm = algorithm

    @abstractmethod
    def advantages(self, rewards: Tensor, rows: Sequence[RowLabel]) -> Tensor:
        """Rewards (rows,) to advantages (rows,). Called once a round, with the rows of all ranks, in the process
        that the user started.

        A reward of NaN means no score: the row must not count, and its advantage is set to 0. For every other row,
        anything but a finite number is refused.
        """

    def state(self) -> dict[str, Any]:
        """Its memory as JSON data, for a checkpoint."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:  # noqa: B027  # there may be nothing to restore
        """Continue from the state of a checkpoint."""


class Grpo(Estimator):
    """Against the mean of the group."""

    def advantages(self, rewards: Tensor, rows: Sequence[RowLabel]) -> Tensor:
        advantages = torch.zeros_like(rewards)
        for members in groups_of([row.group for row in rows]):
            values = rewards[members]  # (groups, size)
            differences = values - values.nanmean(dim=1, keepdim=True)
            if self.algorithm.scale == "group":
                differences = differences / (sample_deviation(values).nan_to_num(nan=0.0) + EPSILON)  # of one row: 0
            advantages[members] = differences
        if self.algorithm.scale == "batch":
            advantages = advantages / (sample_deviation(rewards[None])[0].nan_to_num(nan=0.0) + EPSILON)
        return advantages


class RunningMean(Estimator):
    """Against a running mean that rows share with those of rounds before."""

    def __init__(self, algorithm: Algorithm) -> None:
        super().__init__(algorithm)
        self.means: dict[str, float] = {}

    @abstractmethod
    def key(self, row: RowLabel) -> str:
        """Rows with equal keys share a mean."""

    def advantages(self, rewards: Tensor, rows: Sequence[RowLabel]) -> Tensor:
        keys = [self.key(row) for row in rows]
        groups = groups_of([row.group for row in rows])
        baseline = torch.zeros_like(rewards)
        for members in groups:
            baseline[members] = rewards[members].nanmean(dim=1, keepdim=True).expand(members.shape)
        known = [row for row, key in enumerate(keys) if key in self.means]
        baseline[known] = rewards.new_tensor([self.means[keys[row]] for row in known])
        advantages = rewards - baseline
        if self.algorithm.scale == "batch":
            advantages = advantages / (root_mean_square(advantages[None])[0] + EPSILON)
        elif self.algorithm.scale == "group":
            for members in groups:
                advantages[members] = advantages[members] / (root_mean_square(advantages[members]) + EPSILON)
        self._learn(rewards, keys)
        return advantages

    def _learn(self, rewards: Tensor, keys: Sequence[str]) -> None:
        for members in groups_of(keys):
            for row, mean in zip(members[:, 0].tolist(), rewards[members].nanmean(dim=1).tolist(), strict=True):
                if mean == mean:  # a key all of whose rows have no score stays as it was
                    before = self.means.get(keys[row], mean)
                    self.means[keys[row]] = mean + (1 - self.algorithm.rate) * (before - mean)

    def state(self) -> dict[str, Any]:
        return {"means": dict(self.means)}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.means = dict(state.get("means", {}))  # none of a run that had another estimator


class QuestionMean(RunningMean):
    """Against a running mean of the question, of each seat its own."""

    def key(self, row: RowLabel) -> str:
        return f"{row.seat} {row.question}"


class SeatMean(RunningMean):
    """Against a running mean of the seat: role-conditioned advantage estimation."""

    def key(self, row: RowLabel) -> str:
        return row.seat


BUILT_IN: Mapping[str, type[Estimator]] = {"grpo": Grpo, "question": QuestionMean, "rae": SeatMean}


def estimator_of(algorithm: Algorithm) -> Estimator:
    """The estimator that the configuration names. Raises ConfigurationError where it is none, or could not be saved."""
    name = algorithm.advantage
    known = BUILT_IN.get(name)
    kind = known or load_class(name, Estimator, "algorithm.advantage", algorithm.path)  # type: ignore[type-abstract]
    arguments = algorithm.advantage_args
    estimator = made(kind, algorithm, name="algorithm.advantage_args", arguments=arguments)
    state_text(estimator, "algorithm.advantage")  # now, and not at the first checkpoint, after hours
    return estimator


def numbers_of(estimator: Estimator, rewards: Tensor, rows: Sequence[RowLabel]) -> Tensor:
    """The advantages, 0 where there is no reward. Raises ConfigurationError unless there is one for each row."""
    found: object = estimator.advantages(rewards, rows)
    if not isinstance(found, Tensor) or found.shape != rewards.shape:
        got = f"a tensor of {tuple(found.shape)}" if isinstance(found, Tensor) else f"{found!r:.80}"
        raise ConfigurationError(
            f"algorithm.advantage: {type(estimator).__name__}.advantages must return a tensor of as many numbers as "
            f"there are rewards, {tuple(rewards.shape)}, got {got}"
        )
    wrong = ~found.isfinite() & ~rewards.isnan().to(found.device)
    if wrong.any():
        raise ConfigurationError(
            f"algorithm.advantage: {type(estimator).__name__}.advantages must return a finite number for every row "
            f"with a reward, got {found[wrong][0].item()} in row {int(wrong.nonzero()[0])}"
        )
    return found.to(rewards).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)


def groups_of(names: Sequence[Hashable]) -> list[Tensor]:
    """The places of the rows of each group, (groups, size): one tensor for each size of group, in order."""
    places: dict[Hashable, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    by_size: dict[int, list[list[int]]] = {}
    for members in places.values():
        by_size.setdefault(len(members), []).append(members)
    return [torch.tensor(members) for members in by_size.values()]


def sample_deviation(values: Tensor) -> Tensor:
    """(groups, size) to (groups, 1), of the numbers in each group; not a number where there are fewer than two."""
    count = (~values.isnan()).sum(dim=1, keepdim=True)
    differences = values - values.nanmean(dim=1, keepdim=True)
    return ((differences**2).nanmean(dim=1, keepdim=True) * (count / (count - 1))).sqrt()


def root_mean_square(values: Tensor) -> Tensor:
    """(groups, size) to (groups, 1), of the numbers in each group."""
    return (values**2).nanmean(dim=1, keepdim=True).sqrt()


def without_signal(advantages: Tensor, rows: Sequence[RowLabel], least: float = NO_SIGNAL) -> Tensor:
    """(rows,): whether a row is in a group in which no row has an advantage."""
    silent = torch.zeros(len(rows), dtype=torch.bool)
    for members in groups_of([row.group for row in rows]):
        silent[members] = (advantages.cpu()[members].abs() <= least).all(dim=1, keepdim=True).expand(members.shape)
    return silent


@dataclass(frozen=True, slots=True)
class Advantages:
    """Of a batch, one entry a row."""

    rows: Tensor
    """(rows,)."""
    tests: tuple[tuple[float, ...], ...]
    """Of each row's tests, under credit: test; else empty."""
    silent: Tensor
    """(rows,): whether no row of the group has an advantage."""
    learnt: Tensor
    """(rows,): whether the row is in the loss."""
    rests: bool = False
    """Whether the optimizer must not move: it is another seat's turn, or nothing is in the loss."""

    def part(self, rows: slice) -> Advantages:
        """Those of some rows."""
        return Advantages(self.rows[rows], self.tests[rows], self.silent[rows], self.learnt[rows], self.rests)


def advantages_of(estimator: Estimator, batch: Batch) -> Advantages:
    """What an estimator makes of a batch, and which rows are learnt from."""
    algorithm, labels = estimator.algorithm, [row.label for row in batch]
    rewards = torch.tensor([float("nan") if row.reward is None else row.reward for row in batch])
    found = numbers_of(estimator, rewards, labels)
    tests: tuple[tuple[float, ...], ...] = ()
    loudest = found.abs()
    if algorithm.credit == "test":
        tests = _test_advantages(estimator, rewards, labels)
        # A suite with one good and one bad test teaches, though all suites of its group earn the same.
        loudest = torch.tensor([max(map(abs, [row, *own])) for row, own in zip(found.tolist(), tests, strict=True)])
    silent = without_signal(loudest, labels, NO_SIGNAL * (EPSILON if algorithm.scale == "none" else 1))
    plays = torch.tensor([row.learns for row in batch])
    learnt = plays & ~rewards.isnan()  # no score: nor is the divergence learnt from
    if algorithm.zero_variance == "drop":
        learnt &= ~silent
    rests = not bool(plays.any()) or (algorithm.zero_variance == "drop" and not bool(learnt.any()))
    return Advantages(found, tests, silent, learnt, rests)


def equal_advantages(batch: Batch) -> Advantages:
    """1 for every row: of what is learnt as it is, because somebody chose it."""
    learnt = torch.tensor([row.learns for row in batch])
    rows = torch.ones(len(batch))
    return Advantages(rows, (), torch.zeros(len(batch), dtype=torch.bool), learnt, not bool(learnt.any()))


def described(batch: Batch, found: Advantages) -> dict[str, float]:
    """The batch for the metrics."""
    rewards = torch.tensor([float("nan") if row.reward is None else row.reward for row in batch])
    deviations = [sample_deviation(rewards[members]) for members in groups_of([row.label.group for row in batch])]
    return {
        "reward": float(rewards.nanmean()),
        "reward_std": float(torch.cat(deviations).nanmean()),
        "frac_reward_zero_std": float(found.silent.float().mean()),
    }


def _test_advantages(
    estimator: Estimator, rewards: Tensor, labels: Sequence[RowLabel]
) -> tuple[tuple[float, ...], ...]:
    """Of every test of every row, among all tests of the row's group."""
    scored = [
        () if reward != reward else row.test_rewards for row, reward in zip(labels, rewards.tolist(), strict=True)
    ]
    earned = torch.tensor([reward for row in scored for reward in row])
    owners = [row for row, tests in zip(labels, scored, strict=True) for _ in tests]
    advantages = iter(numbers_of(estimator, earned, owners).tolist())
    return tuple(
        tuple(next(advantages) for _ in tests) or (0.0,) * len(row.spans)
        for row, tests in zip(labels, scored, strict=True)
    )
