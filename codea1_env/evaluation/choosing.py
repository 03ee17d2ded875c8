"""The questions of a problem file that a coder answers rightly now and then, drawn once.

A question that a model always or never solves teaches it nothing: a group's rewards are then all the same. Asking is
an evaluation, whose journal goes on where it was. Does not print, and does not know commands: see `cli/data/`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from codea1_env.errors import ConfigurationError
from codea1_env.evaluation.evaluate import EvaluationPlan, evaluate, journal_header
from codea1_env.evaluation.journal import EvaluationJournal
from codea1_env.players.player import Player
from codea1_env.players.templates import Prompts
from codea1_env.problems.problem import Problem
from codea1_env.sandbox.protocol import Sandbox

_SET = "questions"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What became of a file's questions."""

    problems: tuple[Problem, ...]
    """Those between the bounds, in order."""
    below: int
    """Right less often."""
    above: int
    """Right more often."""
    untested: int
    """Without tests, and not asked."""
    failed: int
    """Those on which the sandbox failed; the next start tries them again."""


def choose_questions(
    player: Player,
    problems: Sequence[Problem],
    plan: EvaluationPlan,
    between: tuple[float, float],
    sandbox: Sandbox,
    journal_path: Path,
    *,
    prompts: Prompts | None = None,
    batch: int = 8,
    advance: Callable[[int], None] = lambda count: None,
) -> Chosen:
    """Ask each question `plan.samples` times. `between`: share of right programs, ends included.

    Raises what `evaluate` raises, and ConfigurationError for a journal of another plan.
    """
    low, high = between
    if not 0 <= low <= high <= 1:
        raise ConfigurationError(f"between must be two numbers in [0, 1], the lower one first, got {low:g} {high:g}")
    sets = {_SET: problems}
    journal = EvaluationJournal(journal_path, journal_header(player, sets, plan, prompts))
    try:
        report = evaluate(player, sets, plan, sandbox, journal, prompts=prompts, batch=batch, advance=advance)
    finally:
        journal.close()
    passed: dict[str, int] = report["sets"][_SET]["passed"]
    failed = len(report.get("failed", {}).get(_SET, ()))
    shares = {name: count / plan.samples for name, count in passed.items()}
    return Chosen(
        tuple(problem for problem in problems if low <= shares.get(problem.problem_id, -1.0) <= high),
        below=sum(share < low for share in shares.values()),
        above=sum(share > high for share in shares.values()),
        untested=len(problems) - len(shares) - failed,
        failed=failed,
    )
