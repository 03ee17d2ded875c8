"""`codea1 data`: a public problem set as a problem file, every reference run on its own tests on the way; and the
questions of a file that a model solves sometimes.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from codea1_env.cli.common import (
    DONE,
    FAILED,
    Commands,
    Parser,
    add_actions,
    add_command,
    claim,
    require_file,
    require_place,
    say,
)
from codea1_env.cli.players import HELP, add_models, as_coder, prompts_of, require_player, sampling_of
from codea1_env.errors import ConfigurationError
from codea1_env.evaluation.choosing import choose_questions
from codea1_env.evaluation.evaluate import EvaluationPlan
from codea1_env.judging.importing import Imported, import_drafts
from codea1_env.players.player import Sampling
from codea1_env.problems.contamination import Contamination
from codea1_env.problems.jsonl import read_problems, write_problems
from codea1_env.problems.problem import Problem
from codea1_env.problems.sources import SOURCES, Draft, Source, Unreadable, find_source
from codea1_env.problems.sources.functions import FIELDS, generic_source
from codea1_env.problems.sources.rows import hub_rows, local_rows
from codea1_env.sandbox import BACKENDS, open_sandbox
from codea1_env.terminal import Progress
from codea1_env.whole_files import whole_file

ROWS = "rows"
_EPILOG = """\
examples:
  codea1 data import humanevalplus -o humanevalplus.jsonl
  codea1 data import mbppplus downloaded.parquet -o mbppplus.jsonl
  codea1 data import rows mine.jsonl --fields question=prompt,reference_solution=code -o mine-problems.jsonl
  codea1 data import apps apps.parquet --against humanevalplus.jsonl -o apps.jsonl
  codea1 data import kodcode-v1 --difficulty hard --limit 1000 -o kodcode.jsonl --workers 2

The report, OUT.jsonl.report.jsonl, has a line for each row: its status (all, some or none of its tests are test cases
that the reference passes, or unusable), which tests the reference failed, and how many were left out for which reason.
Unusable rows are in the report only. A test case is one call with plain arguments and the value that it must equal;
what needs more cannot be judged without trusting the candidate's process. A question about a whole program becomes one
about a function from standard input to standard output, both as text. A set without references (livecodebench) gives
problems that nobody has checked: games about them need an oracle that is no reference.
"""

_CHOOSE_EPILOG = f"""\
players:
{HELP}
examples:
  codea1 data choose mbpp.jsonl --player hf:BASE -n 8 --between 0.1 0.9 --max-tokens 200 -o chosen.jsonl
  codea1 data choose mbpp.jsonl --player hf:BASE --prompts evalplus --limit 100 -o chosen.jsonl

A program is right if it passes all golden and hidden tests. The journal, OUT.jsonl.journal.jsonl, has every answer and
score; a run that was killed goes on with the same command. The output holds the chosen questions as they are, in the
order of the file, and its digest is printed.
"""


def add_data(parser: Parser) -> None:
    """Add the command's actions."""
    names = ", ".join(f"{source.name} ({source.license})" for source in SOURCES.values())
    actions = add_actions(parser)
    _add_choose(actions)
    load = add_command(
        actions,
        "import",
        summary="a public problem set as a problem file",
        description=f"Make a problem file of a public problem set: {names}.",
        examples=_EPILOG,
    )
    load.add_argument("name", metavar="NAME", choices=(*SOURCES, ROWS), help=f"one of {', '.join(SOURCES)}; or {ROWS}: "
                      "any local file with a question, a reference and tests in each row")  # fmt: skip
    load.add_argument("path", metavar="PATH", nargs="?", type=Path, help="a local .parquet, .jsonl or .jsonl.gz file, "
                      "or a directory of them (default: the data set on the hub)")  # fmt: skip
    load.add_argument("-o", "--output", metavar="OUT.jsonl", type=Path, required=True, help="where the problems go")
    load.add_argument("--split", help="of the data set on the hub (default: the set's own)")
    load.add_argument("--revision", help="of the data set on the hub (default: the latest)")
    load.add_argument("--difficulty", help="keep the rows of this difficulty only, e.g. hard (KodCode)")
    load.add_argument("--against", metavar="FILE.jsonl", type=Path, action="append", default=[], help="a problem file "
                      "for evaluation: what shares a question or a reference with it is left out and reported; may be "
                      "given several times")  # fmt: skip
    load.add_argument("--fields", metavar="KEY=FIELD,...", help=f"for {ROWS}: which field of a row is the question, "
                      "reference_solution, tests (a script or a list of asserts), entry_point, problem_id, difficulty "
                      "(default: those names)")  # fmt: skip
    load.add_argument("--license", dest="licence", metavar="NAME", help=f"for {ROWS}: carried along in each problem")
    load.add_argument("--limit", metavar="N", type=int, help="stop after N rows, >= 1 (default: all)")
    load.add_argument("--sandbox", choices=BACKENDS, default="local", help="where references run (default: local)")
    load.add_argument("--workers", metavar="W", type=int, default=1, help="processes of the sandbox (default: 1)")
    load.set_defaults(run=_import)


def _import(options: argparse.Namespace) -> int:
    source = _source(options)
    report = options.output.with_name(f"{options.output.name}.report.jsonl")
    if options.limit is not None and options.limit < 1:
        raise ConfigurationError(f"--limit must be at least 1, got {options.limit}")
    require_place("--output", options.output, *options.against)
    require_place("the report of --output", report, *options.against)
    for path in (options.output, report):
        if options.path is not None and path.resolve().is_relative_to(options.path.resolve()):
            raise ConfigurationError(f"--output and its report must not be in the input {options.path}, got {path}")
    if options.path is not None and (options.split or options.revision):
        raise ConfigurationError("--split and --revision must be left out with a local PATH")
    evaluation = Contamination(problem for path in options.against for problem in read_problems(path))
    counts = _Counts(options.limit)
    with (
        claim(("--output", options.output), ("the report of --output", report)),
        open_sandbox(options.sandbox, options.workers) as sandbox,
        whole_file(report) as lines,
        counts.progress,
    ):

        def problems() -> Iterator[Problem]:
            for imported in import_drafts(_drafts(source, options, evaluation), sandbox):
                lines.write(imported.to_json().encode("ascii") + b"\n")
                counts.count(imported)
                if imported.problem is not None:
                    yield imported.problem

        write_problems(options.output, problems())
    say(f"wrote {options.output} ({source.license}) and {report}: {counts.summary()}")
    return 0


def _add_choose(actions: Commands) -> None:
    """Add the action and its arguments."""
    choose = add_command(
        actions,
        "choose",
        summary="the questions that a model solves sometimes, as a problem file",
        description="Ask a coder each question n times, and keep the questions that it answers rightly between these "
        "shares of the time.",
        examples=_CHOOSE_EPILOG,
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
    choose.set_defaults(run=_choose, suite_size=1)  # nobody is asked for suites


def _choose(options: argparse.Namespace) -> int:
    for name in ("workers", "batch", "limit"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise ConfigurationError(f"--{name} must be at least 1, got {value}")
    low, high = options.between
    if not 0 <= low <= high <= 1:
        raise ConfigurationError(f"--between must be two numbers in [0, 1], the lower one first, got {low:g} {high:g}")
    plan = EvaluationPlan("coder", options.samples, 1, sampling_of(options), options.seed)
    journal = options.output.with_name(f"{options.output.name}.journal.jsonl")
    require_file("FILE.jsonl", options.file)
    require_place("--output", options.output, options.file)
    require_place("the journal of --output", journal, options.file)
    require_player(options.player, "coder")
    prompts = prompts_of(options, [options.player])
    problems = read_problems(options.file)[: options.limit]
    with (
        claim(("--output", options.output), ("the journal of --output", journal)),
        open_sandbox(options.sandbox, options.workers) as sandbox,
        Progress(sys.stderr, "questions", len(problems)) as progress,
    ):
        chosen = choose_questions(
            as_coder(options.player, options),
            problems,
            plan,
            (low, high),
            sandbox,
            journal,
            prompts=prompts,
            batch=options.batch,
            advance=progress.advance,
        )
        counted = (
            f"{len(chosen.problems)} of {len(problems)} questions are right in {low:g} to {high:g} of "
            f"{options.samples} answers; {chosen.below} less often, {chosen.above} more often, {chosen.untested} have "
            "no tests"
        )
        if not chosen.problems:
            say(f"{counted}: nothing is written; choose other bounds")
            return FAILED
        write_problems(options.output, chosen.problems)
    say(f"wrote {options.output}: {counted}")
    print(f"sha256 {hashlib.sha256(options.output.read_bytes()).hexdigest()}")
    return DONE


def _source(options: argparse.Namespace) -> Source:
    if options.name != ROWS:
        if options.fields or options.licence:
            raise ConfigurationError(f"--fields and --license must come with {ROWS}, got {options.name}")
        return find_source(options.name)
    if options.path is None:
        raise ConfigurationError(f"{ROWS} must come with a local PATH, got none")
    fields: dict[str, str] = {}
    for pair in (options.fields or "").split(","):
        key, equals, field = pair.partition("=")
        if pair and not (equals and key in FIELDS and field):
            raise ConfigurationError(
                f"--fields must be KEY=FIELD pairs with KEY among {', '.join(FIELDS)}, got {pair!r}"
            )
        fields |= {key: field} if pair else {}
    return generic_source(fields, options.licence or "")


def _drafts(source: Source, options: argparse.Namespace, evaluation: Contamination) -> Iterator[Draft | Unreadable]:
    if options.path is not None:
        rows = local_rows(options.path)
    else:
        rows = hub_rows(source.hub_id, options.split or source.split, options.revision)
    chosen = (
        draft
        for draft in source.drafts(rows)
        if not options.difficulty or isinstance(draft, Unreadable) or draft.problem.difficulty == options.difficulty
    )
    return (_uncontaminated(draft, evaluation) for draft in islice(chosen, options.limit))


def _uncontaminated(draft: Draft | Unreadable, evaluation: Contamination) -> Draft | Unreadable:
    why = evaluation.of(draft.problem) if isinstance(draft, Draft) else ""
    return Unreadable(draft.problem.problem_id, why) if why and isinstance(draft, Draft) else draft


class _Counts:
    """What has become of the rows so far; on stderr."""

    def __init__(self, rows: int | None) -> None:
        """`rows`: how many there will be at most, where that is known."""
        self._counts: Counter[str] = Counter()
        self._tests = self._failed = self._left_out = 0
        self.progress = Progress(sys.stderr, "rows", rows)

    def count(self, imported: Imported) -> None:
        self._counts[imported.status] += 1
        self._failed += len(imported.failed)
        self._left_out += len(imported.left_out)
        if imported.problem is None:
            self.progress.say(f"{imported.problem_id}: unusable: {imported.why_not}")
        else:
            self._tests += len(imported.problem.golden_tests) + len(imported.problem.hidden_tests)
            if imported.failed:
                self.progress.say(f"{imported.problem_id}: the reference fails {len(imported.failed)} of its tests")
        self.progress.note = self.summary()
        self.progress.advance()

    def summary(self) -> str:
        rows = ", ".join(f"{self._counts[status]} {status}" for status in ("all", "some", "none", "unusable"))
        rows += f", {self._counts['unchecked']} unchecked" if self._counts["unchecked"] else ""
        return (
            f"{sum(self._counts.values())} rows ({rows}), {self._tests} tests, {self._failed} failed by their "
            f"reference, {self._left_out} left out"
        )
