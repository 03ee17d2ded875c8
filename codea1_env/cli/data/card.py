"""The command `codea1 data card`: a problem file's card as a data set: README.md in the form of the Hugging Face hub.

It counts what the file holds and says where it comes from. What a licence permits, it does not say.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import yaml

from codea1_env.cli.common import DONE, Commands, add_command, problems_in, require_place, say
from codea1_env.problems.problem import Problem
from codea1_env.terminal import markdown_table
from codea1_env.whole_files import write_whole

_EPILOG = """\
examples:
  codea1 data card problems.jsonl -o README.md

On the hub, a data set is a repository with the problem file and this README.md.
"""


def add_card(actions: Commands) -> None:
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


_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_FORM = """\
Programming problems for a coder and a tester, one a line, as codea1 reads them: `question`, `entry_point`,
`reference_solution`, `golden_tests` and `hidden_tests` as pairs of a call and its value, and more where a problem has
it. Rewards may use golden tests; hidden ones are for measuring.
"""


def data_card(problems: Sequence[Problem], file: str) -> str:
    """Front matter and text for a data set whose one file, of these problems, is `file`."""
    licences = Counter(problem.license or "not stated" for problem in problems)
    only = next(iter(licences)) if len(licences) == 1 else ""
    head = {
        "license": only.lower() if only and only != "not stated" and "(" not in only else "other",
        "task_categories": ["text-generation"],
        "tags": ["code", "unit-tests", "code-a1"],
        "size_categories": [next((size for most, size in _SIZES if len(problems) < most), "n>1M")],
        "configs": [{"config_name": "default", "data_files": file}],
    }
    tests = {
        "golden tests": sum(len(problem.golden_tests) for problem in problems),
        "hidden tests": sum(len(problem.hidden_tests) for problem in problems),
        "wrong programs (`mutants`)": sum(len(problem.mutants) for problem in problems),
        "problems with a reference": sum(problem.reference_solution is not None for problem in problems),
    }
    rows = [
        ("problems", str(len(problems))),
        ("from", _counted(Counter(problem.source or "not stated" for problem in problems))),
        ("licence", _counted(licences)),
        ("kinds", _counted(Counter(problem.kind for problem in problems))),
        ("difficulty", _counted(Counter(problem.difficulty or "not stated" for problem in problems))),
        *((name, str(count)) for name, count in tests.items()),
    ]
    return "\n".join(
        [
            f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n",
            f"# {file.removesuffix('.jsonl')}\n",
            f"{_FORM}\n",
            markdown_table(("", ""), rows),
            "",
        ]
    )


def _counted(found: Counter[str]) -> str:
    """The commonest ones with their numbers; of one alone, no number."""
    if len(found) == 1:
        return next(iter(found))
    shown = [f"{name} {count}" for name, count in found.most_common(8)]
    return ", ".join([*shown, f"{len(found) - 8} more"] if len(found) > 8 else shown)
