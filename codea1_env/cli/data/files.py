"""`codea1 data`: a public problem set as a problem file, every reference run on its own tests on the way; and what the
problems of a file can be used for.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from codea1_env.checks import require
from codea1_env.cli import common
from codea1_env.cli.data.card import add_card
from codea1_env.cli.data.choose import add_choose
from codea1_env.cli.data.family import add_family
from codea1_env.errors import ConfigurationError, FormatError
from codea1_env.evaluation.kill_matrix import with_mutants
from codea1_env.judging.problems.importing import Imported, import_drafts
from codea1_env.judging.problems.usability import check_problems
from codea1_env.problems.contamination import Contamination
from codea1_env.problems.jsonl import iter_problems, read_problems, write_problems
from codea1_env.problems.problem import Problem
from codea1_env.problems.sources import SOURCES, Draft, Source, Unreadable, find_source
from codea1_env.problems.sources.draft import Row
from codea1_env.problems.sources.evalplus import is_file_row
from codea1_env.problems.sources.functions import FIELDS, NAMED_FIELDS, generic_source
from codea1_env.problems.sources.rows import local_rows, rows_of_source
from codea1_env.sandbox import open_sandbox
from codea1_env.terminal import Parser, Progress, printable
from codea1_env.whole_files import whole_file

ROWS = "rows"
_OF_PROGRAMS = tuple(source.name for source in SOURCES.values() if source.programs_as)
_EPILOG = """\
examples:
  codea1 data import humanevalplus -o humanevalplus.jsonl
  codea1 data import mbppplus downloaded.parquet -o mbppplus.jsonl
  codea1 data import humanevalplus ~/.cache/evalplus/HumanEvalPlus.jsonl -o humanevalplus.jsonl
  codea1 data import rows mine.jsonl --fields question=prompt,reference_solution=code -o mine-problems.jsonl
  codea1 data import apps apps.jsonl --as-programs --against humanevalplus.jsonl -o programs.jsonl
  codea1 data import kodcode-v1 --difficulty hard --limit 1000 -o kodcode.jsonl --workers 2
  codea1 data import codea1 kodcode_hard_dual_model_training_data_mix.parquet -o kodcode.jsonl

The report, OUT.jsonl.report.jsonl, has a line for each row. It says whether all, some or none of the row's tests are
test cases that the reference passes, or that the row is unusable. It lists the tests that the reference failed, and
counts those that were left out, by reason. Unusable rows are only in the report. If no row is usable, OUT does not
change and the exit code is 1.

A test case is one call with plain arguments and the value that it must equal. Any other test could only be judged by
trusting the candidate's process. A question about a whole program becomes a function from input text to output text.
With --as-programs it stays a script; a test is an input and its output, compared as by the set's own grader. The
problems of a set without references (livecodebench) are unchecked, and games about them need another oracle.
"""

_CHECK_EPILOG = """\
A problem can be used in the coder's seat, the tester's seat or both. The oracles of each seat are in parentheses, as in
RewardConfig(oracle=...): the reference, golden tests, or the agreement of solutions (majority, dual). Reasons against
other uses follow the semicolon. The exit code is 1 if no problem can be used in any seat. `codea1 data import` makes a
problem file from the rows of a public set, such as EvalPlus' own files of HumanEval+ and MBPP+.

examples:
  codea1 data check mine.jsonl
  codea1 data check mine.jsonl --workers 2 | grep 'not usable'
"""


def add_data(parser: Parser) -> None:
    names = ", ".join(f"{source.name} ({source.license})" for source in SOURCES.values())
    actions = common.add_actions(parser)
    _add_check(actions)
    add_choose(actions)
    add_family(actions)
    add_card(actions)
    load = common.add_command(
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
    load.add_argument("-o", "--output", metavar="OUT.jsonl", type=Path, required=True, help="the file to write")
    load.add_argument("--scripts", action="store_true", help="also keep each question's test script, for codea1 "
                      "eval --judge scripts (bigcodebench always does: its tests can seldom be read)")  # fmt: skip
    load.add_argument("--split", help="the split of the data set on the hub (default: the set's own)")
    load.add_argument("--revision", help="the revision of the data set on the hub (default: the latest)")
    load.add_argument("--difficulty", help="keep only rows of this difficulty, such as hard (case does not matter)")
    load.add_argument("--against", metavar="FILE.jsonl", type=Path, action="append", default=[], help="a problem "
                      "file for evaluation: rows that share a question or a reference with it are left out and "
                      "reported; may be given several times")  # fmt: skip
    load.add_argument("--allow-contaminated", action="store_true", help="keep rows that share a question, a "
                      "reference or an id with HumanEval+, MBPP+ or UnLeakedTestBench (default: leave them out and "
                      "report them; sets for evaluation keep them)")  # fmt: skip
    load.add_argument("--as-programs", action="store_true", help=f"for {', '.join(_OF_PROGRAMS)}: questions about "
                      "whole programs stay programs, with a script as the reference (default: they become functions "
                      "from text to text, which get no --mutants)")  # fmt: skip
    load.add_argument("--fields", metavar="KEY=FIELD,...", help=f"for {ROWS}: which field of a row is the question, "
                      "reference_solution, tests (a script or a list of asserts), golden_tests (pairs of call and "
                      "value), mutants (wrong programs), entry_point, problem_id, difficulty (default: those names; a "
                      "row without an id gets one from its entry point and a digest); a problem's "
                      f"{', '.join(NAMED_FIELDS)} are read only if they are named here")  # fmt: skip
    load.add_argument("--license", dest="licence", metavar="NAME", help=f"for {ROWS}: each problem's licence")
    load.add_argument("--mutants", metavar="N", type=int, default=0, help="wrong programs for each problem that has "
                      "none, so that testers can be measured: up to N changes of its reference by one token, each of "
                      "which gives another value on a test or a similar input; 0 to 64 (default: 0)")  # fmt: skip
    load.add_argument("--limit", metavar="N", type=int, help="stop after N rows, >= 1 (default: all)")
    common.add_sandbox(load, "references")
    load.set_defaults(run=_import)


def _add_check(actions: common.Commands) -> None:
    check = common.add_command(
        actions,
        "check",
        summary="what each problem of a file can be used for",
        description="Run every reference of a problem file on the problem's own tests. Say for each problem which "
        "seats can play it, and with which oracle.",
        examples=_CHECK_EPILOG,
    )
    check.add_argument("file", metavar="FILE.jsonl", type=Path, help="a problem file")
    common.add_sandbox(check, "references")
    check.set_defaults(run=_check)


def _check(options: argparse.Namespace) -> int:
    common.require_file("FILE.jsonl", options.file)
    common.require_at_least_one(options, "workers")
    _require_no_rows_of_evalplus(options.file)
    counts: Counter[str] = Counter()
    progress = Progress(sys.stderr, "problems", None)
    with open_sandbox(options.sandbox, options.workers) as sandbox, progress:
        for checked in check_problems(iter_problems(options.file), sandbox):
            print(printable(str(checked), is_line=True))
            by_script = not checked.is_usable and bool(checked.problem.test_script)
            counts.update(chain(["problems"], ["usable"] * checked.is_usable, ["by script"] * by_script))
            counts.update(f"{seat}" for seat in ("coder", "tester") if getattr(checked, seat))
            counts.update(f"by {oracle}" for oracle in ("reference", "golden") if checked.serves(oracle))
            counts.update(["without mutants"] * (bool(checked.tester) and not checked.problem.mutants))
            progress.advance()
    if not counts:
        raise ConfigurationError(f"FILE.jsonl must hold a problem, got none in {options.file}")
    lacking = f"{counts['without mutants']} measure no tester, because they have no mutants"
    scripts = f"; {counts['by script']} more are judged by their test scripts alone, unsealed" * bool(
        counts["by script"]
    )
    common.say(
        f"{counts['usable']} of {counts['problems']} problems are usable: {counts['coder']} in the coder's seat, "
        f"{counts['tester']} in the tester's; {counts['by reference']} with the reference as the oracle, "
        f"{counts['by golden']} with golden tests; {lacking}{scripts}"
    )
    return common.DONE if counts["usable"] or scripts else common.FAILED


def _require_no_rows_of_evalplus(path: Path) -> None:
    try:
        row = next(local_rows(path), {})
    except (ConfigurationError, FormatError):
        return  # what is wrong with it, who reads it says
    if is_file_row(row):
        name = "mbppplus" if str(row.get("task_id")).startswith("Mbpp") else "humanevalplus"
        raise ConfigurationError(
            f"FILE.jsonl must be a problem file, got EvalPlus' own file {path}; make one with "
            f"`codea1 data import {name} {path} -o {name}.jsonl`"
        )


def _import(options: argparse.Namespace) -> int:
    source = _source(options)
    report = options.output.with_name(f"{options.output.name}.report.jsonl")
    common.require_at_least_one(options, "limit", "workers")
    for path in options.against:
        common.require_file("--against", path)
    require(0 <= options.mutants <= 64, "--mutants", "be in [0, 64]", options.mutants)
    common.require_place("--output", options.output, *options.against)
    common.require_place("the report of --output", report, *options.against)
    for path in (options.output, report):
        if options.path is not None and path.resolve().is_relative_to(options.path.resolve()):
            raise ConfigurationError(f"--output and its report must not be in the input {options.path}, got {path}")
    if options.path is not None and (options.split or options.revision):
        raise ConfigurationError("--split and --revision must be left out with a local PATH")
    evaluation = Contamination(
        (problem for path in options.against for problem in read_problems(path)),
        known_sets=not (source.is_for_evaluation or options.allow_contaminated),
    )
    counts = _RowCounts(options.limit)
    with (
        common.claim(("--output", options.output), ("the report of --output", report)),
        open_sandbox(options.sandbox, options.workers) as sandbox,
        whole_file(report) as lines,
        counts.progress,
    ):

        def problems() -> Iterator[Problem]:
            for imported in import_drafts(_drafts(source, options, evaluation), sandbox):
                lines.write(imported.to_json().encode("ascii") + b"\n")
                counts.count(imported)
                if imported.problem is not None:
                    yield with_mutants(sandbox, imported.problem, options.mutants)

        made = problems()
        first = next(made, None)
        if not counts.rows:
            raise ConfigurationError(f"the input must hold a row, got none in {options.path or source.name}")
        if first is not None:  # else a file of an earlier run stays: a typing error must not empty it
            write_problems(options.output, chain([first], made))
    terms = f" ({source.license})" if source.license else ""
    written = f"{options.output}{terms} and {report}" if counts.usable else f"{report} only, for no row is usable"
    common.say(f"wrote {written}: {counts.summary()}")
    return common.DONE if counts.usable else common.FAILED


def _source(options: argparse.Namespace) -> Source:
    if options.as_programs and options.name not in _OF_PROGRAMS:
        raise ConfigurationError(f"--as-programs must come with one of {', '.join(_OF_PROGRAMS)}, got {options.name}")
    if options.name != ROWS:
        if options.fields or options.licence:
            raise ConfigurationError(f"--fields and --license must come with {ROWS}, got {options.name}")
        source = find_source(options.name)
        return replace(source, programs_as="program") if options.as_programs else source
    if options.path is None:
        raise ConfigurationError(f"{ROWS} must come with a local PATH, got none")
    fields: dict[str, str] = {}
    known = (*FIELDS, *NAMED_FIELDS)
    for pair in (options.fields or "").split(","):
        key, equals, field = pair.partition("=")
        if pair and not (equals and key in known and field):
            raise ConfigurationError(
                f"--fields must be KEY=FIELD pairs with KEY among {', '.join(known)}, got {pair!r}"
            )
        fields |= {key: field} if pair else {}
    return generic_source(fields, options.licence or "")


def _telling(rows: Iterable[Row], options: argparse.Namespace) -> Iterator[Row]:
    """The same rows. Says at the first that has them which fields of a problem are there and were not asked for."""
    named = {pair.partition("=")[2] for pair in (options.fields or "").split(",")}
    is_told = False
    for row in rows:
        unread = [] if is_told else [f"{name}={name}" for name in NAMED_FIELDS if row.get(name) and name not in named]
        if unread:
            listed = ",".join(unread)
            common.say(f"a row has fields that a problem may have and that are not read; --fields {listed} reads them")
            is_told = True
        yield row


def _drafts(source: Source, options: argparse.Namespace, evaluation: Contamination) -> Iterator[Draft | Unreadable]:
    rows = rows_of_source(source, options.path, split=options.split, revision=options.revision)
    rows = _telling(rows, options) if options.name == ROWS else rows
    chosen = _of_difficulty(source.drafts(rows, with_scripts=options.scripts), options.difficulty)
    for draft in islice(chosen, options.limit):
        why = evaluation.of(draft.problem) if isinstance(draft, Draft) else ""
        yield Unreadable(draft.problem.problem_id, why) if why and isinstance(draft, Draft) else draft


def _of_difficulty(drafts: Iterable[Draft | Unreadable], wanted: str | None) -> Iterator[Draft | Unreadable]:
    """Raises ConfigurationError at the end where no row is of that difficulty."""
    others: dict[str, None] = {}
    is_found = wanted is None
    for draft in drafts:
        if wanted is not None and isinstance(draft, Draft) and draft.problem.difficulty.casefold() != wanted.casefold():
            others[draft.problem.difficulty] = None
            continue
        is_found |= isinstance(draft, Draft)
        yield draft
    if is_found or not others:
        return
    named = [name for name in others if name]
    require(bool(named), "--difficulty", "be left out for rows that state none", wanted)
    raise ConfigurationError(f"--difficulty must be one that the rows have: {', '.join(named)}; got {wanted!r}")


class _RowCounts:
    """What has become of the rows so far; on stderr."""

    def __init__(self, rows: int | None) -> None:
        """`rows`: how many there will be at most, where that is known."""
        self._counts: Counter[str] = Counter()
        self.progress = Progress(sys.stderr, "rows", rows)

    def count(self, imported: Imported) -> None:
        problem, failed = imported.problem, len(imported.failed)
        tests = len(problem.golden_tests) + len(problem.hidden_tests) if problem is not None else 0
        self._counts.update({imported.status: 1, "rows": 1, "tests": tests, "failed": failed})
        self._counts["left out"] += len(imported.left_out)
        told = f"the reference fails {failed} of its tests" if failed else ""
        if told := told if problem is not None else f"unusable: {imported.why_not}":
            self.progress.say(printable(f"{imported.problem_id}: {told}", is_line=True))
        self.progress.note = self.summary()
        self.progress.advance()

    @property
    def rows(self) -> int:
        return self._counts["rows"]

    @property
    def usable(self) -> int:
        return self.rows - self._counts["unusable"]

    def summary(self) -> str:
        rows = ", ".join(f"{self._counts[status]} {status}" for status in ("all", "some", "none", "unusable"))
        rows += f", {self._counts['unchecked']} unchecked" if self._counts["unchecked"] else ""
        return (
            f"{self._counts['rows']} rows ({rows}), {self._counts['tests']} tests, {self._counts['failed']} failed by "
            f"their reference, {self._counts['left out']} left out"
        )
