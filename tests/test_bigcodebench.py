"""BigCodeBench's own references under its own test scripts: `make test-bigcodebench BIGCODEBENCH=FILE`.

Each must come to what experiments/results/bigcodebench.json says that it comes to with the versions of
constraints-bigcodebench.txt: those that are not listed there pass.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from codea1_env import LocalSandbox, Problem
from codea1_env.judging.scripts import judge_scripts
from codea1_env.problems.sources import find_source
from codea1_env.problems.sources.draft import RowFields
from codea1_env.problems.sources.functions import BIG_CODE_BENCH_HARD
from codea1_env.problems.sources.rows import local_rows

ROOT = Path(__file__).parent.parent
ROWS = Path(os.environ.get("CODEA1_BIGCODEBENCH") or ROOT.parent / "shared" / "data" / "bigcodebench.jsonl.gz")
LISTED = json.loads((ROOT / "experiments" / "results" / "bigcodebench.json").read_text())
AT_ONCE = 20
"""References of one pass: what a later one meets is not what earlier ones left."""


def references() -> Iterator[Problem]:
    for draft in find_source("bigcodebench").drafts(local_rows(ROWS)):
        yield draft.problem  # type: ignore[union-attr]


def listed() -> set[str]:
    """The tasks whose references do not pass with the newest versions."""
    older, neither = (table["rows"] for table in LISTED["sections"][0]["tables"])
    return {f"BigCodeBench/{number}" for (row,) in older for number in row.split(", ")} | {row[0] for row in neither}


@pytest.mark.bigcodebench
@pytest.mark.skipif(not ROWS.is_file(), reason="no BigCodeBench: make test-bigcodebench BIGCODEBENCH=FILE")
def test_the_hard_subset_is_what_its_makers_say() -> None:
    """148 tasks with more than two libraries and long solutions; of the other rules the rows say nothing."""
    rows = {row["task_id"]: row for row in local_rows(ROWS)}
    hard = [rows[name] for name in BIG_CODE_BENCH_HARD]
    assert len({row["task_id"] for row in hard}) == 148
    assert all(len(RowFields(row).texts("libs")) > 2 and len(row["canonical_solution"]) > 426 for row in hard)


@pytest.mark.bigcodebench
@pytest.mark.skipif(not ROWS.is_file(), reason="no BigCodeBench: make test-bigcodebench BIGCODEBENCH=FILE")
def test_references_pass_their_own_scripts() -> None:
    for package in ("pandas", "sklearn", "matplotlib", "pyfakefs"):
        pytest.importorskip(package, reason="the extra bigcodebench: make test-bigcodebench")
    problems, failed = list(references()), dict[str, str]()
    with LocalSandbox(os.cpu_count() or 1) as sandbox:
        for start in range(0, len(problems), AT_ONCE):
            taken = problems[start : start + AT_ONCE]
            verdicts = judge_scripts(sandbox, [(problem, problem.reference_solution or "") for problem in taken])
            for problem, verdict in zip(taken, verdicts, strict=True):
                if not verdict.passed:
                    failed[problem.problem_id] = verdict.told
            print(f"{start + len(taken)} of {len(problems)}, {len(failed)} do not pass", flush=True)
    assert not {name: why for name, why in failed.items() if name not in listed()}
    assert len(listed()) == 1_140 - 1_055, "docs/evaluation.md says how many pass"
