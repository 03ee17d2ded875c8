"""The command `codea1 data choose`: the questions of a file that a model solves sometimes.

A question that a model always or never solves teaches it nothing: a group's rewards are then all the same. Asking is
an evaluation, whose journal goes on where it was.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

from codea1_env.cli import common
from codea1_env.cli.players import HELP, add_models, as_coder, prompts_of, require_player, sampling_of
from codea1_env.errors import ConfigurationError
from codea1_env.evaluation.evaluate import EvaluationPlan, evaluate, journal_header
from codea1_env.evaluation.journal import EvaluationJournal
from codea1_env.players.player import Sampling
from codea1_env.problems.jsonl import write_problems
from codea1_env.sandbox import open_sandbox
from codea1_env.terminal import Progress

_SET = "questions"
"""What the evaluation calls the file."""
_CHOOSE_EPILOG = f"""\
players:
{HELP}
examples:
  codea1 data choose mbpp.jsonl --player hf:BASE -n 8 --between 0.1 0.9 --max-tokens 200 -o chosen.jsonl
  codea1 data choose mbpp.jsonl --player hf:BASE --prompts evalplus --limit 100 -o chosen.jsonl

A program is right if it passes all golden and hidden tests. The journal, OUT.jsonl.journal.jsonl, has every answer and
score. After an interruption the same command continues from it. The output holds the chosen questions unchanged, in the
order of the file. The command prints its digest.
"""


def add_choose(actions: common.Commands) -> None:
    choose = common.add_command(
        actions,
        "choose",
        summary="the questions that a model solves sometimes, as a problem file",
        description="Ask a coder each question n times. Keep the questions whose share of right answers is between "
        "LOW and HIGH.",
        examples=_CHOOSE_EPILOG,
    )
    choose.add_argument("file", metavar="FILE.jsonl", type=Path, help="a problem file, with tests")
    choose.add_argument("--player", metavar="PLAYER", required=True, help="a coder, see below")
    choose.add_argument("-n", "--n", dest="samples", metavar="N", type=int, default=8, help="programs for each "
                        "question, >= 1 (default: 8)")  # fmt: skip
    choose.add_argument("--between", metavar=("LOW", "HIGH"), nargs=2, type=float, default=(0.1, 0.9), help="share of "
                        "right programs, ends included, in [0, 1] (default: 0.1 0.9)")  # fmt: skip
    choose.add_argument("-o", "--output", metavar="OUT.jsonl", type=Path, required=True, help="the file to write")
    choose.add_argument("--limit", metavar="N", type=int, help="ask only the first N questions (default: all)")
    choose.add_argument("--seed", type=int, default=0, help="seed of the answers (default: 0)")
    choose.add_argument("--batch", metavar="N", type=int, default=8, help="questions at a time, >= 1; an interruption "
                        "loses at most these (default: 8)")  # fmt: skip
    common.add_sandbox(choose)
    choose.set_defaults(run=_choose, suite_size=1, stop_at_tests=False)
    add_models(choose, Sampling(), suites=False)


def _choose(options: argparse.Namespace) -> int:
    common.require_at_least_one(options, "workers", "batch", "limit", samples="n")
    low, high = options.between
    if not 0 <= low <= high <= 1:
        raise ConfigurationError(f"--between must be two numbers in [0, 1], the lower one first, got {low:g} {high:g}")
    plan = EvaluationPlan("coder", options.samples, 1, sampling_of(options), options.seed)
    common.require_place("--output", options.output, options.file)
    journal = options.output.with_name(f"{options.output.name}.journal.jsonl")
    common.require_place("the journal of --output", journal, options.file)
    require_player(options.player, "coder")
    prompts = prompts_of(options, [options.player])
    problems = common.problems_in("FILE.jsonl", options.file)[: options.limit]
    player, sets = as_coder(options.player, options), {_SET: problems}
    with (
        common.claim(("--output", options.output), ("the journal of --output", journal)),
        open_sandbox(options.sandbox, options.workers) as sandbox,
        Progress(sys.stderr, "questions", len(problems)) as progress,
        EvaluationJournal(journal, journal_header(player, sets, plan, prompts)) as answered,
    ):
        report = evaluate(
            player,
            sets,
            plan,
            sandbox,
            answered,
            prompts=prompts,
            batch=options.batch,
            advance=progress.advance,
        )
        passed: dict[str, int] = report["sets"][_SET]["passed"]
        shares = {name: count / plan.samples for name, count in passed.items()}
        chosen = [each for each in problems if low <= shares.get(each.problem_id, -1.0) <= high]
        below, above = (sum(share < low for share in shares.values()), sum(share > high for share in shares.values()))
        failed = len(report.get("failed", {}).get(_SET, ()))
        counted = (
            f"{len(chosen)} of {len(problems)} questions have a share of right answers from {low:g} to {high:g}; "
            f"{below} have less, {above} have more, {len(problems) - len(shares) - failed} have no tests"
        )
        if failed:
            counted += f"; the sandbox failed on {failed}, which the same command tries again"
        if not chosen:
            common.say(f"{counted}: nothing is written; choose other bounds")
            return common.FAILED
        write_problems(options.output, chosen)
    common.say(f"wrote {options.output}: {counted}")
    print(f"sha256 {hashlib.sha256(options.output.read_bytes()).hexdigest()}")
    return common.FAILED if failed else common.DONE
