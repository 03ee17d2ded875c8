"""The card of a problem file as a data set: README.md in the form of the Hugging Face hub.

It counts what the file holds and says where it comes from. What a licence permits, it does not say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import yaml

from codea1_env.problems.problem import Problem
from codea1_env.terminal import markdown_table

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
