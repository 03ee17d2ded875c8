"""Which programs of a question train the tester, and what each test of a suite earns by itself. Pure.

Does not know who plays or what is sampled.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from codea1_env.arena.match import SuiteScore
from codea1_env.configuration.options import Options
from codea1_env.reading.parsing import parses
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.tester_rewards import per_test_rewards
from codea1_env.training.samples import RowLabel, Span


@dataclass(frozen=True, slots=True)
class RoundRules:
    """What decides beside the rewards. Plain data: it travels with the suites to where they are scored."""

    options: Options = field(default_factory=Options)
    seed: int = 0
    """Of the draws of `selection: random`."""
    hidden_rounds: int = 0
    """Rounds between those whose programs are tried on hidden tests, too, to report it; 0: never."""
    credit: str = "suite"
    """`algorithm.credit`: whether rows say what each test earns."""

    def put_to_tester(self, programs: Sequence[str], count: int) -> list[int]:
        """Places of the programs of one question that suites are written against, in their order.

        All of them, or with `selection: ahead` the first `count` different ones that can be parsed. Where there are too
        few of these, equal ones come next, whose suites earn much the same, and then those that cannot be parsed, whose
        suites earn nothing.
        """
        places = list(range(len(programs)))
        if self.options.selection != "ahead":
            return places
        broken = [not (program and parses(program)) for program in programs]
        repeated = [program in programs[:place] for place, program in enumerate(programs)]
        return sorted(sorted(places, key=lambda place: (broken[place], repeated[place]))[:count])

    def select(
        self,
        round_index: int,
        problem_id: str,
        programs: Sequence[float | None],
        loads: Sequence[bool | None],
        suites: Sequence[Sequence[float | None]],
        count: int,
    ) -> list[int]:
        """Places of the `count` programs of one question that train the tester, in their order.

        `programs`: R_C of each. `loads`: whether each executes. `suites[i]`: R_T of the suites against program
        i, none where it was not put to the tester. Groups without a score come last.
        """
        places = list(range(len(suites)))
        unscored = {place for place in places if None in suites[place]}
        if self.options.selection == "ahead":
            return [place for place in places if suites[place]]
        if self.options.selection == "spread":
            return select_attacked(suites, count)
        if self.options.selection == "hardest":
            earned = [-1.0 if reward is None else reward for reward in programs]
            places.sort(key=lambda place: (place in unscored, -earned[place], place))
        elif self.options.selection == "first":
            places.sort(key=lambda place: (place in unscored, not loads[place], place))
        elif self.options.selection == "random":
            random.Random(f"selection {self.seed} {round_index} {problem_id}").shuffle(places)
            places.sort(key=lambda place: place in unscored)
        return sorted(places[:count])

    def tries_hidden_tests(self, round_index: int) -> bool:
        """Whether this round, counted from 0, is one whose programs are tried on hidden tests."""
        return self.hidden_rounds > 0 and (round_index + 1) % self.hidden_rounds == 0

    def with_tests(self, label: RowLabel, suite: SuiteScore, response: str, config: RewardConfig) -> RowLabel:
        """The label with what each test of the suite earns and where it stands, for credit: test.

        A test whose place is not known counts in the group's mean and lends its advantage to no token.
        """
        if self.credit != "test":
            return label
        config = config.with_suite_size(suite.terms.suite_size if suite.terms else None)
        earned = per_test_rewards(suite.duel, config, suite.group, response) or ()
        spans: list[Span] = []
        for test in earned:
            end = spans[-1][1] if spans else 0
            spans.append((test.span.start, test.span.end) if test.span else (end, end))
        return dataclasses.replace(label, spans=tuple(spans), test_rewards=tuple(test.reward for test in earned))


def select_attacked(rewards: Sequence[Sequence[float | None]], count: int) -> list[int]:
    """The `count` programs of one question whose suites' rewards spread most (population standard deviation).

    Equal spreads: the earlier program first. Groups without a score come last.
    """
    spreads = [-1.0 if None in group else float(np.std(np.asarray(group, dtype=float))) for group in rewards]
    order = sorted(range(len(spreads)), key=lambda place: (-spreads[place], place))
    return sorted(order[:count])
