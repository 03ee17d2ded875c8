"""`codea1 data choose`: the questions of a problem file that a model answers rightly now and then, drawn once.

A question that a model always or never solves teaches it nothing: a group's rewards are then all the same.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

from codea1_env.cli.common import DONE, FAILED, Commands, add_command, claim, require_file, require_place, say
from codea1_env.cli.players import HELP, add_models, as_coder, prompts_of, require_player, sampling_of
from codea1_env.errors import ConfigurationError
from codea1_env.evaluation.evaluate import EvaluationPlan, evaluate, journal_header
from codea1_env.evaluation.journal import EvaluationJournal
from codea1_env.players.player import Sampling
from codea1_env.problems.jsonl import read_problems, write_problems
from codea1_env.sandbox import BACKENDS, open_sandbox
from codea1_env.terminal import Progress

_SET = "questions"
_EXAMPLES = f"""\
players:
{HELP}
examples:
  codea1 data choose mbpp.jsonl --player hf:BASE -n 8 --between 0.1 0.9 --max-tokens 200 -o chosen.jsonl
  codea1 data choose mbpp.jsonl --player hf:BASE --prompts evalplus --limit 100 -o chosen.jsonl

A program is right if it passes all golden and hidden tests. The journal, OUT.jsonl.journal.jsonl, has every answer and
score; a run that was killed goes on with the same command. The output holds the chosen questions as they are, in the
order of the file, and its digest is printed.
"""


def add_choose(actions: Commands) -> None:
    """Add the action."""
    choose = add_command(
        actions,
        "choose",
        summary="the questions that a model solves sometimes, as a problem file",
        description="Ask a coder each question n times, and keep the questions that it answers rightly between these "
        "shares of the time.",
        examples=_EXAMPLES,
    )
    choose.add_argument("file", metavar="FILE.jsonl", type=Path, help="a problem file, with tests")
    choose.add_argument("--player", metavar="PLAYER", required=True, help="a coder, as below")
    choose.add_argument("-n", "--n", dest="samples", metavar="N", type=int, default=8, help="programs for each "
                        "question, >= 1 (default: 8)")  # fmt: skip
    choose.add_argument("--between", metavar=("LOW", "HIGH"), nargs=2, type=float, default=(0.1, 0.9), help="share of "
                        "right programs, ends included, in [0, 1] (default: 0.1 0.9)")  # fmt: skip
    choose.add_argument("-o", "--output", metavar="OUT.jsonl", type=Path, required=True, help="where they go")
    choose.add_argument("--limit", metavar="N", type=int, help="ask the first N questions only (default: all)")
    choose.add_argument("--seed", type=int, default=0, help="of the answers (default: 0)")
    choose.add_argument("--batch", metavar="N", type=int, default=8, help="questions at a time, >= 1: what is lost at "
                        "most when the run is killed (default: 8)")  # fmt: skip
    choose.add_argument("--sandbox", choices=BACKENDS, default="local", help="where programs run (default: local)")
    choose.add_argument("--workers", metavar="W", type=int, default=1, help="processes of the sandbox (default: 1)")
    add_models(choose, Sampling())
    choose.set_defaults(run=_choose, suite_size=1)  # of suites, which nobody is asked for


def _choose(options: argparse.Namespace) -> int:
    low, high = options.between
    if not 0 <= low <= high <= 1:
        raise ConfigurationError(f"--between must be two numbers in [0, 1], the lower one first, got {low:g} {high:g}")
    for name, flag in (("workers", "workers"), ("batch", "batch"), ("limit", "limit")):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise ConfigurationError(f"--{flag} must be at least 1, got {value}")
    plan = EvaluationPlan("coder", options.samples, 1, sampling_of(options), options.seed)
    journal_path = options.output.with_name(f"{options.output.name}.journal.jsonl")
    require_file("FILE.jsonl", options.file)
    require_place("--output", options.output, options.file)
    require_place("the journal of --output", journal_path, options.file)
    require_player(options.player, "coder")
    prompts = prompts_of(options, [options.player])
    problems = read_problems(options.file)[: options.limit]
    with (
        claim(("--output", options.output), ("the journal of --output", journal_path)),
        open_sandbox(options.sandbox, options.workers) as sandbox,
    ):
        player, sets = as_coder(options.player, options), {_SET: problems}
        journal = EvaluationJournal(journal_path, journal_header(player, sets, plan, prompts))
        try:
            with Progress(sys.stderr, "questions", len(problems) - len(journal.scores)) as progress:
                report = evaluate(
                    player,
                    sets,
                    plan,
                    sandbox,
                    journal,
                    prompts=prompts,
                    batch=options.batch,
                    advance=progress.advance,
                )
        finally:
            journal.close()
        passed: dict[str, int] = report["sets"][_SET]["passed"]
        shares = {name: count / options.samples for name, count in passed.items()}
        chosen = [problem for problem in problems if low <= shares.get(problem.problem_id, -1.0) <= high]
        below, above = sum(share < low for share in shares.values()), sum(share > high for share in shares.values())
        counted = (
            f"{len(chosen)} of {len(problems)} questions are right in {low:g} to {high:g} of {options.samples} "
            f"answers; {below} less often, {above} more often, {len(problems) - len(shares)} have no tests"
        )
        if not chosen:
            say(f"{counted}: nothing is written; choose other bounds")
            return FAILED
        write_problems(options.output, chosen)
    say(f"wrote {options.output}: {counted}")
    print(f"sha256 {hashlib.sha256(options.output.read_bytes()).hexdigest()}")
    return DONE
