"""The command `codea1 data card`: a problem file's card, in the form of the Hugging Face hub."""

from __future__ import annotations

import argparse
from pathlib import Path

from codea1_env.cli.common import DONE, Commands, add_command, problems_in, require_place, say
from codea1_env.problems.data_card import data_card
from codea1_env.whole_files import write_whole

_EPILOG = """\
examples:
  codea1 data card problems.jsonl -o README.md

On the hub, a data set is a repository with the problem file and this README.md.
"""


def add_card(actions: Commands) -> None:
    """Add the action and its arguments."""
    card = add_command(
        actions,
        "card",
        summary="a problem file's card, as the Hugging Face hub shows one",
        description="Write what a problem file holds and where it comes from as README.md of a data set on the hub.",
        examples=_EPILOG,
    )
    card.add_argument("file", metavar="FILE.jsonl", type=Path, help="a problem file")
    card.add_argument("-o", "--output", metavar="README.md", type=Path, help="the file to write (default: print it)")
    card.set_defaults(run=_card)


def _card(options: argparse.Namespace) -> int:
    text = data_card(problems_in("FILE.jsonl", options.file), options.file.name)
    if options.output is None:
        print(text, end="")
        return DONE
    require_place("--output", options.output, options.file)
    write_whole(options.output, text)
    say(f"wrote {options.output}")
    return DONE
