"""The bands family in numbers, before any model plays it: how often a scripted tester's test kills each kind of bug.

    python benchmarks/bands.py                      how often scripted tests kill, seconds
    python benchmarks/bands.py --problems 400 --seed 1

Training questions, never held-out ones: the family was designed on these. A test is one input with the right value. The
testers: any input; a threshold of the question; a number that the program compares with; all of these numbers at once;
the golden suite; all 100 inputs. Shares but the golden suite's are of mutants that pass the golden tests, since only
these are given to testers.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass, field

from codea1_env.problems.families.bands import BUG_KINDS, DOMAIN, BandQuestion, Rules, band_questions
from codea1_env.terminal import Parser

COLUMNS = (
    "random input",
    "constant of the question",
    "constant of the program",
    "all constants of the program",
    "golden suite",
    "all inputs",
)


@dataclass(slots=True)
class Kills:
    """Of one kind of bug, mutant by mutant."""

    golden: list[bool] = field(default_factory=list)
    """Whether the golden tests kill it; of every mutant."""
    others: list[tuple[float, float, float, bool, bool]] = field(default_factory=list)
    """The other columns, in order without the golden one; of mutants that pass the golden tests."""

    def shares(self) -> list[float]:
        columns = [sum(column) / len(column) for column in zip(*self.others, strict=True)]
        return [*columns[:4], sum(self.golden) / len(self.golden), columns[4]]


def main() -> int:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=1_000, help="training questions, at least 1. Default: 1000")
    parser.add_argument("--seed", type=int, default=0, help="of the questions and their bugs. Default: 0")
    given = parser.parse_args()
    if given.problems < 1:
        parser.error(f"--problems must be at least 1, got {given.problems}")
    rng = random.Random(f"properties of bands {given.seed}")
    kills = {kind: Kills() for kind in BUG_KINDS}
    for question in band_questions("train", given.problems, given.seed):
        golden = question.golden_inputs(rng, 0.0)
        for kind, rules in question.mutants(rng).items():
            observe(question, rules, golden, kills[kind])
    everything = Kills([x for k in kills.values() for x in k.golden], [x for k in kills.values() for x in k.others])
    print(f"| killed by, a test | {' | '.join([*BUG_KINDS, 'all'])} |", "|---|---|---|---|---|", sep="\n")
    columns = [found.shares() for found in (*kills.values(), everything)]
    for place, name in enumerate(COLUMNS):
        print(f"| {name} | {' | '.join(f'{shares[place]:.3f}' for shares in columns)} |")
    print(f"\n{given.problems} questions; mutants that pass the golden tests: {len(everything.others)}")
    return 0


def observe(question: BandQuestion, rules: Rules, golden: tuple[int, ...], kills: Kills) -> None:
    """Add one mutant."""
    right, wrong = question.table(question.rules), question.table(rules)
    breaking = {x for x in range(DOMAIN) if right[x] != wrong[x]}
    killed_by_golden = any(x in breaking for x in golden)
    kills.golden.append(killed_by_golden)
    if killed_by_golden:
        return
    named = [rule.threshold for rule in rules]
    asked = question.thresholds
    kills.others.append(
        (
            len(breaking) / DOMAIN,
            sum(x in breaking for x in asked) / len(asked),
            sum(x in breaking for x in named) / len(named),
            any(x in breaking for x in named),
            bool(breaking),
        )
    )


if __name__ == "__main__":
    raise SystemExit(main())
