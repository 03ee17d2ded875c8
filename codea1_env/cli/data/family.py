"""The command `codea1 data family`: problems of a procedural family, as a problem file."""

from __future__ import annotations

import argparse
from pathlib import Path

from codea1_env.checks import require, require_whole
from codea1_env.cli.common import DONE, Commands, add_command, claim, require_at_least_one, require_place, say
from codea1_env.problems.families import FAMILIES, SPLITS
from codea1_env.problems.jsonl import write_problems

_ABOUT = "\n".join(f"  {name:16} {family.about}" for name, family in FAMILIES.items())
_EPILOG = f"""\
families:
{_ABOUT}
examples:
  codea1 data family fineprint --split train --count 400 -o train.jsonl
  codea1 data family fineprint --split held_out --count 150 -o held_out.jsonl

Equal arguments give equal problems, and a larger count begins with the problems of a smaller one. No question of one
split is in the other, whatever the seed.
"""


def add_family(actions: Commands) -> None:
    family = add_command(
        actions,
        "family",
        summary="problems of a procedural family, as a problem file",
        description="Make problems of a procedural family: question, reference, golden tests, hidden tests, mutants.",
        examples=_EPILOG,
    )
    family.add_argument("name", metavar="FAMILY", choices=tuple(FAMILIES), help=f"one of {', '.join(FAMILIES)}")
    family.add_argument(
        "--split",
        choices=SPLITS,
        default="train",
        help="which questions: those to train on, or those held out (default: train)",
    )
    family.add_argument("--count", metavar="N", type=int, default=100, help="problems, >= 1 (default: 100)")
    family.add_argument("--seed", type=int, default=0, help="seed of the questions (default: 0)")
    family.add_argument("--golden-edge", metavar="P", type=float, default=0.0, help="probability that a golden test "
                        "looks at an edge, in [0, 1] (default: 0, as hurried people write them)")  # fmt: skip
    family.add_argument("-o", "--output", metavar="OUT.jsonl", type=Path, required=True, help="the file to write")
    family.set_defaults(run=_family)


def _family(options: argparse.Namespace) -> int:
    require_at_least_one(options, "count")
    require_whole("--seed", options.seed, 0)
    require(0 <= options.golden_edge <= 1, "--golden-edge", "be in [0, 1]", options.golden_edge)
    require_place("--output", options.output)
    with claim(("--output", options.output)):
        problems = FAMILIES[options.name].draw(options.split, options.count, options.seed, options.golden_edge)
        write_problems(options.output, problems)
    say(f"wrote {len(problems)} problems to {options.output}")
    return DONE
