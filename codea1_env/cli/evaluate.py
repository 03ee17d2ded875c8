"""The command `codea1 eval`: one player measured in one seat on sets of problems, as the paper's tables are.

Exit codes: 0 done, 1 a player gave no answer or the sandbox failed (the same command goes on) or nothing could be
measured, 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from codea1_env.checks import json_object
from codea1_env.cli import players
from codea1_env.cli.common import DONE, FAILED, add_sandbox, require_at_least_one, require_file, say, say_going_on
from codea1_env.errors import ConfigurationError, FormatError
from codea1_env.evaluation.disagreement import as_rows
from codea1_env.evaluation.evaluate import PAPER_SAMPLES, PAPER_SAMPLING, EvaluationPlan, evaluate, journal_header
from codea1_env.evaluation.journal import EvaluationJournal
from codea1_env.evaluation.suite_quality import SUITE_SIZE
from codea1_env.evaluation.wrong_programs import read_programs
from codea1_env.judging.problems.importing import import_drafts
from codea1_env.players.chat import Prompt
from codea1_env.players.player import Player, Request
from codea1_env.players.prompts import DEFAULT
from codea1_env.players.templates import Messages, Prompts
from codea1_env.problems import Problem, bundled_problems, read_problems
from codea1_env.problems.families.miniature import miniature_problems
from codea1_env.problems.jsonl import write_problems
from codea1_env.problems.sources import SOURCES, Source, find_source
from codea1_env.problems.sources.draft import Row
from codea1_env.problems.sources.functions import BIG_CODE_BENCH, BIG_CODE_BENCH_HARD, BIG_CODE_BENCH_INSTRUCT
from codea1_env.problems.sources.rows import rows_of_source
from codea1_env.sandbox import open_sandbox
from codea1_env.sandbox.protocol import Sandbox
from codea1_env.terminal import Progress, markdown_table, printable
from codea1_env.whole_files import LOCK, RunLock, write_whole

DESCRIPTION = (
    "Measure one player in one seat. A coder writes n programs for each question, which run on all its tests "
    "(avg@n, pass@k). A tester sees each function and writes n suites for it. Correct tests, killed mutants, and "
    "the lines and branches that run are counted as UnLeakedTestBench and the paper define them "
    "(docs/evaluation.md). With --against a tester writes n suites against each wrong program of a file, and the "
    "share of programs that they expose is counted. After an interruption the same command continues."
)
EXAMPLES = f"""\
players:
{players.HELP}  testers   search (inputs that kill mutants of the program that it is shown; states what that \
program returns)

examples:
  codea1 eval --player hf:Qwen/Qwen2.5-Coder-1.5B-Instruct --problems humanevalplus --problems mbppplus -o eval-1.5b
  codea1 eval --player openai:http://localhost:8000/v1#m --problems bigcodebench -o eval-bcb
  codea1 eval --seat tester --player vllm:./tester --problems unleakedtestbench=ULT.jsonl -o eval-tester
  codea1 eval --seat tester --player fuzz --problems questions.jsonl --against programs.jsonl -o eval-bugs

The directory gets results.json, table.md, the journal of all answers and scores, and the problems as they were used.
"""
EVALPLUS = "evalplus"
"""The design whose published figures are of trimmed answers."""
_SHOWN = 5
"""Problems that are left out, where all are."""
_ALIASES = {"kodcode": "kodcode-v1"}
_OWN = ("bundled", "miniature")
_HELD_OUT = 150
"""Problems of the miniature family that the preset mini measures on; their seed there is 0, too."""


def add_eval(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_eval)
    parser.add_argument("--player", metavar="PLAYER", required=True, help="the player to measure, see below")
    parser.add_argument(
        "--seat", choices=("coder", "tester"), default="coder", help="the seat that it plays (default: coder)"
    )
    parser.add_argument("--problems", metavar="SET", action="append", required=True, help="a problem file; bundled; "
                        "miniature (the held-out problems of the preset mini); "
                        f"one of {', '.join(SOURCES)} from the hub (extra `data`), or NAME=PATH from a local file of "
                        "its rows; may be given several times")  # fmt: skip
    parser.add_argument("--n", dest="samples", metavar="N", type=int, default=PAPER_SAMPLES, help="answers to each "
                        f"request, >= 1 (paper and default: {PAPER_SAMPLES})")  # fmt: skip
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, help="the directory of the results; an unfinished "
                        "run in it continues (default: eval-SEAT-PLAYER, here)")  # fmt: skip
    parser.add_argument("--limit", metavar="N", type=int, help="the first N problems of each set (default: all)")
    parser.add_argument("--suite-size", metavar="K", type=int, default=SUITE_SIZE, help="tests of a suite that count, "
                        f">= 1 (paper and default: {SUITE_SIZE})")  # fmt: skip
    parser.add_argument("--fidelity", choices=("strict", "wide"), default="strict", help="how a tester's suites are "
                        "read, see docs/suites.md (default: strict)")  # fmt: skip
    parser.add_argument("--against", metavar="FILE", type=Path, help="programs to attack: lines with problem_id "
                        "and codes, the journal of another codea1 eval, or a problem file with mutants. The tester "
                        "must break those that fail the questions' tests; seat tester")  # fmt: skip
    parser.add_argument("--access", choices=("white-box", "black-box"), default="white-box", help="whether the tester "
                        "sees the wrong program; with --against (default: white-box)")  # fmt: skip
    parser.add_argument("--judge", choices=("sealed", "scripts"), help="sealed: tests are data, and no program can "
                        "forge a verdict. scripts: each set's own test scripts run in the program's process, as "
                        "others evaluate; seat coder (default: scripts for bigcodebench, else sealed)")  # fmt: skip
    parser.add_argument("--split", choices=("complete", "instruct"), default="complete", help="for bigcodebench: the "
                        "question as a signature with a docstring, or in words (default: complete)")  # fmt: skip
    parser.add_argument("--subset", metavar="full|hard|FILE", default="full", help="for bigcodebench: all 1,140 tasks; "
                        "the 148 hard ones; or those in this file, one task_id per line (default: full)")  # fmt: skip
    parser.add_argument("--select-by", metavar="PLAYER", help="a tester (any below except search) that chooses one of "
                        "each question's n programs. The table compares its choice with the mean of "
                        "the n, a majority by outputs and a random one; seat coder, --n >= 2")  # fmt: skip
    parser.add_argument("--trim", action=argparse.BooleanOptionalAction, help="also run each program reduced to "
                        "its entry point and what that needs, as EvalPlus and BigCodeBench do, and report both rates; "
                        f"seat coder (default: with --prompts {EVALPLUS} and with --judge scripts)")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="seed of answers, inputs and intervals (default: 0)")
    parser.add_argument("--batch", metavar="N", type=int, default=8, help="problems at a time, >= 1; an interruption "
                        "loses at most these (default: 8)")  # fmt: skip
    add_sandbox(parser)
    parser.add_argument("--json", action="store_true", help="print results.json instead of the table")
    players.add_models(parser, PAPER_SAMPLING)


def _eval(options: argparse.Namespace) -> int:
    plan = _plan(options)
    named = _named(options.problems)
    players.require_player(options.player, options.seat, runs_programs=True)
    against = _against(options)
    if options.select_by is not None:
        players.require_player(options.select_by, "tester")
    prompts = players.prompts_of(options, [options.player, *filter(None, [options.select_by])])
    with _directory(options.output), open_sandbox(options.sandbox, options.workers) as sandbox:
        sets = {name: _problems(name, spec, options, sandbox) for name, spec in named.items()}
        _require_programs(options, sets, against)
        report = _measured(options, plan, sets, prompts, against, sandbox)
        for name in sets:
            if unusable := _unusable(_file_of(name, options).with_suffix(".report.jsonl")):
                report["sets"][name]["unusable"] = unusable
        text, table = json.dumps(report, indent=1), as_table(report)
        for file, content in (("results.json", text), ("table.md", table)):
            write_whole(options.output / file, content + "\n")
    say(f"wrote {options.output}")
    is_measured = any(record["problems"] for record in report["sets"].values())
    if options.json or is_measured:
        print(text if options.json else table)
    if is_measured:
        return FAILED if say_failed(report) else DONE
    say_failed(report)
    why = [f"{each}: {why}" for record in report["sets"].values() for each, why in record["left_out"].items()]
    more = f"; {len(why) - _SHOWN} more, see results.json" if len(why) > _SHOWN else ""
    say(printable(f"nothing was measured, every problem is left out: {'; '.join(why[:_SHOWN])}{more}", is_line=True))
    return FAILED


@contextmanager
def _directory(output: Path) -> Iterator[None]:
    """No other run writes to the results' directory meanwhile. One that is made here is gone after an error that comes
    before anything of use is in it."""
    made = [each for each in (output, *output.parents) if not each.exists()]
    try:
        output.mkdir(parents=True, exist_ok=True)
        lock = RunLock(output, alone=True)
    except OSError as error:
        raise OSError(f"--output must be where a directory can be made, got {output}: {error.strerror}") from error
    try:
        yield
    except BaseException:
        if made and {each.name for each in output.iterdir()} <= {LOCK}:
            (output / LOCK).unlink(missing_ok=True)
            with suppress(OSError):  # somebody else may have put something there
                for each in made:
                    each.rmdir()
        raise
    finally:
        lock.release()


def say_failed(report: Mapping[str, Any]) -> int:
    """On how many problems the sandbox failed, which is said."""
    reasons = [why for failed in report.get("failed", {}).values() for why in failed.values()]
    if reasons:
        say(f"codea1: the sandbox failed on {len(reasons)} problems, first: {reasons[0]}; the same command tries again")
    return len(reasons)


def _plan(options: argparse.Namespace) -> EvaluationPlan:
    """What is measured; `options.output` gets its default. Raises ConfigurationError for what is of no use."""
    require_at_least_one(options, "workers", "batch", "limit", "suite_size", samples="n")
    names = [spec.partition("=")[0] for spec in options.problems]
    if options.judge is None:
        options.judge = "scripts" if options.seat == "coder" and {*names} == {BIG_CODE_BENCH.name} else "sealed"
    for flag, usual in (("split", "complete"), ("subset", "full")):
        if getattr(options, flag) != usual and BIG_CODE_BENCH.name not in names:
            raise ConfigurationError(f"--{flag} must come with --problems bigcodebench, got {', '.join(names)}")
    if options.subset not in ("full", "hard"):
        require_file("--subset", Path(options.subset))
    if options.output is None:
        options.output = Path(f"eval-{options.seat}-{re.sub('[^A-Za-z0-9._]+', '-', options.player).strip('-.')}"[:200])
    sampling = players.sampling_of(options)
    if options.trim and options.seat != "coder":
        raise ConfigurationError(f"--trim must come with --seat coder, got --seat {options.seat}")
    # What is published of these sets is of trimmed programs.
    is_published = options.seat == "coder" and (options.prompts == EVALPLUS or options.judge == "scripts")
    plan = EvaluationPlan(
        options.seat,
        options.samples,
        options.suite_size,
        sampling,
        options.seed,
        fidelity=options.fidelity,
        access=options.access,
        judge=options.judge,
        trim=bool(is_published if options.trim is None else options.trim),
    )
    if options.output == Path("-"):
        raise ConfigurationError("--output must be a directory, got -; give the path of a directory")
    if options.output.exists() and not options.output.is_dir():
        raise ConfigurationError(f"--output must be a directory or not exist, got {options.output}")
    if options.select_by is not None and (options.seat != "coder" or options.samples < 2):
        raise ConfigurationError(
            "--select-by must come with --seat coder and --n of at least 2, to choose from, got --seat "
            f"{options.seat} --n {options.samples}"
        )
    if options.seat == "coder" and options.select_by is None:
        _require_no_suites(options)
    return plan


def _require_no_suites(options: argparse.Namespace) -> None:
    given = {
        "--suite-size": options.suite_size != SUITE_SIZE,
        "--fidelity": options.fidelity != "strict",
        "--stop-at-tests": options.stop_at_tests,
    }
    for flag in (flag for flag, is_given in given.items() if is_given):
        raise ConfigurationError(f"{flag} must come with --seat tester or --select-by, got a coder alone")


def _measured(
    options: argparse.Namespace,
    plan: EvaluationPlan,
    sets: Mapping[str, Sequence[Problem]],
    prompts: Prompts,
    against: Mapping[str, Sequence[str]] | None,
    sandbox: Sandbox,
) -> dict[str, Any]:
    """The report of all sets; what the directory's journal has is not asked again."""
    if options.seat == "coder":
        player = players.as_coder(options.player, options)
    else:
        player = players.as_tester(options.player, options, _tester_prompt(options, prompts), sandbox)
    tester = _selector(options, player)
    header = journal_header(player, sets, plan, prompts, tester, against)
    with EvaluationJournal(options.output / "journal.jsonl", header) as journal:
        say_going_on(journal)
        left = sum(len(problems) for problems in sets.values()) - len(journal.scores)
        with Progress(sys.stderr, "problems", left) as progress:
            return evaluate(
                player,
                sets,
                plan,
                sandbox,
                journal,
                prompts=prompts,
                select_by=tester,
                against=against,
                batch=options.batch,
                advance=progress.advance,
            )


def _selector(options: argparse.Namespace, coder: Player) -> Player | None:
    """The tester that chooses; the coder's own model where both are the same one."""
    if options.select_by is None:
        return None
    is_same = ":" in options.select_by and options.select_by == options.player
    return coder if is_same else players.as_tester(options.select_by, options)


def _tester_prompt(options: argparse.Namespace, prompts: Prompts) -> Prompt:
    """Against wrong programs a tester is asked for what breaks one, else for unit tests of a function that is right."""

    def messages(request: Request) -> Messages:
        if options.against is None:
            return prompts.for_unit_tests(request.problem, request.program, suite_size=options.suite_size)
        return prompts.for_tester(
            request.problem, request.program, suite_size=options.suite_size, access=options.access
        )

    return messages


def _against(options: argparse.Namespace) -> dict[str, list[str]] | None:
    if options.against is None:
        if options.access != "white-box":
            raise ConfigurationError(f"--access {options.access} must come with --against, got none")
        return None
    if options.seat != "tester":
        raise ConfigurationError(f"--against must come with --seat tester, got --seat {options.seat}")
    if options.player == players.SEARCH and options.access != "white-box":
        raise ConfigurationError(f"--player {players.SEARCH} must see the programs, got --access {options.access}")
    require_file("--against", options.against)
    return read_programs(options.against)


def _require_programs(
    options: argparse.Namespace, sets: Mapping[str, Sequence[Problem]], against: Mapping[str, Sequence[str]] | None
) -> None:
    asked = [problem.problem_id for problems in sets.values() for problem in problems]
    if against is not None and not any(against.get(problem_id) for problem_id in asked):
        raise ConfigurationError(
            f"--against must have programs for a question of --problems, got none in {options.against}: its problem_id "
            f"are {', '.join(map(repr, list(against)[:3])) or 'none'}, theirs {', '.join(map(repr, asked[:3]))}"
        )


def _named(specs: Sequence[str]) -> dict[str, str]:
    """What each set is called, and how it was given."""
    sets: dict[str, str] = {}
    for spec in specs:
        name = spec.partition("=")[0]
        if not (spec in _OWN or _ALIASES.get(name, name) in SOURCES):
            if not Path(spec).is_file():
                known = ", ".join(SOURCES)
                raise ConfigurationError(
                    f"--problems must be a problem file, {', '.join(_OWN)} or one of {known}, got {spec!r}"
                )
            name = Path(spec).stem
        if name in sets:
            raise ConfigurationError(f"--problems must have different names, got {name!r} twice")
        sets[name] = spec
    return sets


def _problems(name: str, spec: str, options: argparse.Namespace, sandbox: Sandbox) -> Sequence[Problem]:
    """The problems of a set; a public one is imported once for each directory."""
    source = find_source(_ALIASES.get(name, name)) if name in (*SOURCES, *_ALIASES) else None
    if source is BIG_CODE_BENCH and options.split == "instruct":
        source = BIG_CODE_BENCH_INSTRUCT
    if spec == "bundled":
        problems: Sequence[Problem] = bundled_problems()
    elif spec == "miniature":
        problems = miniature_problems("held_out", options.limit or _HELD_OUT, 0)
    elif source is not None and (spec == name or spec.startswith(f"{name}=")):
        problems = _kept(source, spec, _file_of(name, options), sandbox, options)
    else:
        problems = read_problems(spec)
    if not problems:
        raise ConfigurationError(f"--problems {spec} must hold a usable problem, got none")
    return problems[: options.limit]


def _file_of(name: str, options: argparse.Namespace) -> Path:
    parts = [name, *[f"first-{options.limit}"] * bool(options.limit), *["scripts"] * (options.judge == "scripts")]
    if name == BIG_CODE_BENCH.name:
        parts += [part for part in (options.split, Path(options.subset).stem) if part not in ("complete", "full")]
    return Path(options.output / "problems" / f"{'-'.join(parts)}.jsonl")


def _kept(source: Source, spec: str, kept: Path, sandbox: Sandbox, options: argparse.Namespace) -> Sequence[Problem]:
    """The problems of a public set, imported where they are not there yet. Raises ConfigurationError where they came
    from another file; one that is gone is not missed."""
    path = Path(spec.partition("=")[2])
    told = kept.with_suffix(".origin.json")
    origin = {"file": str(path), "sha256": _digest(path)}
    if source.hub_id == BIG_CODE_BENCH.hub_id and options.subset not in ("full", "hard"):
        origin["subset"] = _digest(Path(options.subset))
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        try:
            write_whole(told, json.dumps(origin) + "\n")
            return _imported(source, spec.partition("=")[2], kept, sandbox, options)
        except BaseException:  # a part of an import is no set
            for file in (told, kept.with_suffix(".report.jsonl")):
                file.unlink(missing_ok=True)
            with suppress(OSError):  # other sets may be there
                kept.parent.rmdir()
            raise
    known = json_object(told.read_bytes(), str(told), FormatError) if told.exists() else origin
    parts = ("sha256" if origin["sha256"] else "file", *(["subset"] if "subset" in known else []))
    if any(known.get(part) != origin.get(part) for part in parts):
        raise ConfigurationError(
            f"--problems {spec} must be what {kept} was imported from, {known.get('file')}, got another file, content "
            "or --subset; choose another --output"
        )
    return read_problems(kept)


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _imported(
    source: Source, path: str, kept: Path, sandbox: Sandbox, options: argparse.Namespace
) -> Sequence[Problem]:
    """The set's usable problems, which are kept if there are any; what became of every row stands beside them."""
    rows = rows_of_source(source, path or None)
    if options.subset != "full" and source.hub_id == BIG_CODE_BENCH.hub_id:
        rows = iter(_of_subset(rows, options.subset))
    drafts = source.drafts(rows, with_scripts=options.judge == "scripts")
    problems, limit = list[Problem](), options.limit
    with open(kept.with_suffix(".report.jsonl"), "w", encoding="ascii") as report:
        for imported in import_drafts(drafts, sandbox):
            report.write(imported.to_json() + "\n")
            if imported.problem is not None:
                problems.append(imported.problem)
            if limit is not None and len(problems) >= limit:
                break
    if problems:
        write_problems(kept, problems)
    say(f"{source.name}: {len(problems)} problems, see {kept.with_suffix('.report.jsonl')} for the rest")
    return problems


def _of_subset(rows: Iterable[Row], subset: str) -> list[Row]:
    """The hard ones, or those that the file names. Raises ConfigurationError where the rows have not all of them."""
    if subset == "hard":
        named = BIG_CODE_BENCH_HARD
    else:
        named = tuple(dict.fromkeys(Path(subset).read_text(encoding="utf-8", errors="replace").split()))
    found = {str(row.get("task_id")): row for row in rows}
    missing = [name for name in named if name not in found]
    if missing or not named:
        got = f"{len(missing)} that it does not have, {missing[0]!r} first" if missing else "none"
        raise ConfigurationError(
            f"--subset {subset} must name tasks of the set, got {got}; name those that it has in a file, a task_id a "
            "line, and give it as --subset FILE"
        )
    return [found[name] for name in named]


def _unusable(file: Path) -> dict[str, str]:
    """Rows of an imported set that are no problem here, and why: they are counted apart."""
    if not file.exists():
        return {}
    rows = [json_object(line, str(file), FormatError) for line in file.read_bytes().splitlines()]
    return {str(row.get("problem_id")): str(row.get("why_not")) for row in rows if row.get("status") == "unusable"}


def as_table(report: Mapping[str, Any]) -> str:
    """Percent with 95 % intervals over problems, a row for each set; with several sets their means at the end."""
    sets = report["sets"]
    names = list(dict.fromkeys(name for record in sets.values() for name in record["measures"]))
    titles = [name.replace("@k", f"@{report['suite_size']}") for name in names]
    sampled = _sampled(report["sampling"])
    if "recorded" in report and "select_by" in report:
        sampled = f"recorded at {_sampled(report['recorded']['sampling'])}, suites at {sampled}"
    chosen = f", chosen by {report['select_by']}" if "select_by" in report else ""
    asked = f", prompts {report['prompts']}" if report["prompts"] != DEFAULT else ""
    asked += f", suites read {report['fidelity']}" if "fidelity" in report else ""
    if "against" in report:
        asked += f", against wrong programs, {report.get('access', 'white-box')}"
    rows: list[list[object]] = []
    for name, record in sets.items():
        cells = [_cell(record["measures"].get(measure)) for measure in names]
        cut = "-" if record["truncated"] is None else f"{100 * record['truncated']:.1f}"
        rows.append([name, record["problems"], len(record["left_out"]), *cells, cut])
    if len(sets) > 1:
        found = [[record["measures"].get(measure) for record in sets.values()] for measure in names]
        means = ["-" if None in row else f"{100 * sum(each['mean'] for each in row) / len(row):.2f}" for row in found]
        rows.append(["mean", "", "", *means, ""])
    lines = [
        f"{report['player']} as {report['seat']}{chosen}: n = {report['samples']}, {sampled}, "
        f"seed {report['seed']}{asked}",
        "",
        markdown_table(["set", "problems", "left out", *titles, "cut off"], rows),
    ]
    if "trust" in report:
        lines += ["", f"The judge is {report['trust']}."]
    for name, record in sets.items():
        if "unusable" in record:
            lines += ["", f"{len(record['unusable'])} tasks of {name} cannot be judged here and are counted nowhere."]
        if "disagree" in record:
            columns = [f"{name}: passes by", "why not by the other judge", "programs", "first"]
            lines += ["", markdown_table(columns, as_rows(record["disagree"]))]
    silent = {name: record["silent"] for name, record in sets.items() if "silent" in record}
    if silent:
        counts = ", ".join(f"{count} of {name}" for name, count in silent.items())
        lines += ["", f"Answers that had no content and counted as empty: {counts}."]
    return "\n".join(lines)


def _sampled(sampling: Mapping[str, Any]) -> str:
    return (
        f"temperature {sampling['temperature']:g}, top-p {sampling['top_p']:g}, at most {sampling['max_tokens']} tokens"
    )


def _cell(interval: Mapping[str, float] | None) -> str:
    if interval is None:
        return "-"
    low, mean, high = (100 * interval[part] for part in ("low", "mean", "high"))
    return f"{mean:.2f} [{low:.1f}, {high:.1f}]"
