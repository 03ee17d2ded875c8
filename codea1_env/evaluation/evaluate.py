"""One player measured on sets of problems, in either seat, so that a run that was killed goes on where it was.

    coder    n programs for each question, run on all its tests: avg@n, pass@k, the share that executes; the same
             figures of trimmed programs; and what becomes of them where a tester chooses one of n (`rankings.py`). By
             the sealed judge, or by test scripts, which a program can forge
    tester   n suites for each function, which it sees, measured on the function and its mutants (`suite_quality.py`);
             or n suites against wrong programs, of which some are exposed (`wrong_programs.py`)

Everything goes into a journal, a line at a time and onto the disk before it is relied on: the plan, a problem's
answers, and what they came to. Answers that are in it are not asked for again, nor are scores computed again; another
plan is refused. What cannot be measured (no tests, no reference that works) is left out by name, and so is what the
sandbox fails by itself, which the next start tries again; where the player or the whole sandbox fails, that is an
error. None of these is ever a score.

Does not print, and does not know commands: see `cli/evaluate.py`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from codea1_env.arena.arena import Arena
from codea1_env.arena.failures import apart
from codea1_env.arena.match import Grade
from codea1_env.checks import require, require_bool, require_choice, require_least
from codea1_env.errors import ConfigurationError, SandboxError, UnusableReference
from codea1_env.evaluation.disagreement import disagreement
from codea1_env.evaluation.journal import EvaluationJournal
from codea1_env.evaluation.metrics import Interval, SuiteResult, mean_interval, program_measures, suite_measures
from codea1_env.evaluation.rankings import choose, different_programs, fidelities, selection_measures
from codea1_env.evaluation.suite_quality import SUITE_SIZE, SuiteMeter
from codea1_env.evaluation.wrong_programs import examine, exposure_measures, exposures
from codea1_env.judging.judge import Judge, Trial
from codea1_env.judging.problems.limits import RunLimits
from codea1_env.judging.problems.own_tests import OwnTests, told
from codea1_env.judging.scripts import UNSEALED, ScriptVerdict, judge_scripts
from codea1_env.judging.version import VERSION
from codea1_env.players.player import (
    CoderRequest,
    Player,
    Request,
    Sampling,
    TesterRequest,
    require_players,
    responses_of,
)
from codea1_env.players.prompts import DEFAULT, find_prompts, text_digest
from codea1_env.players.recorded import RecordedPlayer
from codea1_env.players.scripted import MutantCoder, OracleCoder
from codea1_env.players.templates import Access, Prompts
from codea1_env.problems.check_functions import reasons
from codea1_env.problems.problem import Problem
from codea1_env.records.journal import SCHEMA
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox.protocol import Sandbox

PAPER_SAMPLING = Sampling(temperature=0.7, top_p=0.95, max_tokens=2048)
"""How the paper samples to measure (Code-A1, evaluation: avg@32)."""
PAPER_SAMPLES = 32
_KS = (8, 16, 32)
"""k of pass@k beside avg@n, as far as there are so many samples (released code, BigCodeBench)."""

Seat = Literal["coder", "tester"]
_Answered = tuple[Problem, Sequence[str], Sequence[str]]
"""A problem, the player's answers, and the suites of the tester that chooses among them."""
_Judged = TypeVar("_Judged")
_Failed = dict[str, dict[str, str]]
"""Why the sandbox failed, by set and problem."""


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """What is measured. A journal is of one plan."""

    seat: Seat
    samples: int = PAPER_SAMPLES
    """n: answers to each request, >= 1."""
    suite_size: int = SUITE_SIZE
    """k: tests of a suite that count, >= 1 (paper: 5)."""
    sampling: Sampling = PAPER_SAMPLING
    seed: int = 0
    """Of answers, pools of inputs and intervals, >= 0."""
    fidelity: Literal["strict", "wide"] = "strict"
    """How a tester's suites are read (`docs/suites.md`)."""
    access: Access = "white-box"
    """Whether a tester sees the wrong program that it is to break."""
    judge: Literal["sealed", "scripts"] = "sealed"
    """What decides whether a coder's program passes: the sealed judge, on the tests that are data, or the problems'
    test scripts, beside the programs in one process (`judging/scripts.py`). Those results say `unsealed`."""
    trim: bool = False
    """Whether a coder's programs run trimmed, too (`reading/programs/reach.py`)."""

    def __post_init__(self) -> None:
        require_choice("seat", self.seat, ("coder", "tester"))
        require_choice("fidelity", self.fidelity, ("strict", "wide"))
        require_choice("access", self.access, ("white-box", "black-box"))
        require_choice("judge", self.judge, ("sealed", "scripts"))
        if self.judge == "scripts" and self.seat != "coder":
            raise ConfigurationError(f"judge must be sealed in the seat {self.seat}, got scripts")
        require_bool("trim", self.trim)
        require(not (self.trim and self.seat == "tester"), "trim", "be False with the seat tester", self.trim)
        for name, least in (("samples", 1), ("suite_size", 1), ("seed", 0)):
            require_least(name, getattr(self, name), least)
        if self.sampling.stop_at_tests:
            require_least("stop_at_tests", self.sampling.stop_at_tests, self.suite_size)


def journal_header(
    player: Player,
    sets: Mapping[str, Sequence[Problem]],
    plan: EvaluationPlan,
    prompts: Prompts | None = None,
    select_by: Player | None = None,
    against: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """What must be the same for a run to go on. `prompts`: what the players are asked; None is the default design."""
    digests = {
        name: hashlib.sha256("".join(problem.content_hash for problem in problems).encode()).hexdigest()
        for name, problems in sets.items()
    }
    asked: dict[str, Any] = (
        {} if prompts is None or prompts == find_prompts(DEFAULT) else {"prompts": text_digest(prompts)}
    )
    if select_by is not None:
        asked["select_by"] = f"{select_by.name} {select_by.version}"
    if against is not None:
        asked |= {"against": programs_digest(against), "ranked": True}
    return {"player": player.name, "version": player.version, **_plain_plan(plan), "problems": digests, **asked}


def programs_digest(against: Mapping[str, Sequence[str]]) -> str:
    """Of a coder's responses by question."""
    return hashlib.sha256(json.dumps(dict(against), sort_keys=True).encode()).hexdigest()[:16]


def evaluate(
    player: Player,
    sets: Mapping[str, Sequence[Problem]],
    plan: EvaluationPlan,
    sandbox: Sandbox,
    journal: EvaluationJournal,
    *,
    prompts: Prompts | None = None,
    select_by: Player | None = None,
    against: Mapping[str, Sequence[str]] | None = None,
    batch: int = 8,
    advance: Callable[[int], None] = lambda count: None,
) -> dict[str, Any]:
    """The report, plain data: of every set the measures with their intervals, and what was left out and why.

    `prompts`: what the player is asked, for the report. `select_by`: a tester that chooses one of the coder's programs
    for each question, sampled as the coder is. `against`: a coder's responses by question; the tester is to break the
    wrong ones among them. `batch`: problems that are asked about and scored at a time;
    `advance` is told of each such number. `failed` in the report: by set, on which problems the sandbox failed and why.
    Raises PlayerError where the player gives no answer, SandboxError where the sandbox fails on everything; the journal
    then holds what was done.
    """
    require_least("batch", batch)
    require_players({"player": player, **({} if select_by is None else {"select_by": select_by})})
    if against is not None and plan.seat != "tester":
        raise ConfigurationError("against must come with the seat tester, got the seat coder")
    measure: _Measure = _Tester(sandbox, plan)
    if plan.seat == "coder":
        measure = {"sealed": _Coder, "scripts": _ByScripts}[plan.judge](sandbox, plan, player, select_by)
    if against is not None:
        measure = _Breaker(sandbox, plan, against, journal)
    failed: _Failed = {name: {} for name in sets}
    judge = Judge(sandbox, execution_cache_mb=0)
    limits = RunLimits(judge, OwnTests(judge))
    for name, problems in sets.items():
        waiting = [
            dataclasses.replace(problem, suite_size=None)  # the plan's K is the measure's, the same for all
            for problem in problems
            if (name, problem.problem_id) not in journal.scores
        ]
        for start in range(0, len(waiting), batch):
            taken = waiting[start : start + batch]
            chunk = _measurable(measure, taken, name, journal, sandbox, failed[name], limits)
            answered = _answers(chunk, name, measure, player, select_by, plan, journal)
            results = apart(sandbox, partial(measure.scores, name), answered)
            for problem, result in zip(chunk, results, strict=True):
                if isinstance(result, SandboxError):
                    failed[name][problem.problem_id] = str(result)
                else:
                    journal.append({"kind": "score", "set": name, "problem_id": problem.problem_id, **result})
            advance(len(taken))
    said: dict[str, Any] = {"prompts": (prompts or find_prompts(DEFAULT)).name}
    said |= {"select_by": select_by.name} if select_by is not None else {}
    if against is not None:
        said["against"] = programs_digest(against)
    if isinstance(player, RecordedPlayer) and player.asked:
        said["recorded"] = dict(player.asked)
        if select_by is None:  # nobody is asked now
            said |= {name: player.asked[name] for name in ("sampling", "prompts")}
    if any(failed.values()):
        said["failed"] = {name: reasons for name, reasons in failed.items() if reasons}
    report = _report(
        player, sets, plan, journal, failed, is_breaking=against is not None, is_selecting=select_by is not None
    )
    return {**report, **said}


def _answers(
    problems: Sequence[Problem],
    name: str,
    measure: _Measure,
    player: Player,
    select_by: Player | None,
    plan: EvaluationPlan,
    journal: EvaluationJournal,
) -> list[_Answered]:
    """Of some problems of the set `name`: what is not in the journal yet is asked for, and goes there."""
    unasked = [problem for problem in problems if (name, problem.problem_id) not in journal.answers]
    asked = [(problem, measure.requests(name, problem)) for problem in unasked]
    _ask(player, asked, plan.samples, plan, journal, ("answers", name))
    texts = [journal.answers[name, problem.problem_id]["texts"] for problem in problems]
    if select_by is not None:
        asked = [
            (problem, [TesterRequest(problem, program) for program in different_programs(problem, answers)])
            for problem, answers in zip(problems, texts, strict=True)
            if (name, problem.problem_id) not in journal.suites
        ]
        _ask(select_by, asked, 1, plan, journal, ("suites", name))
    suites = [journal.suites.get((name, problem.problem_id), {}).get("texts", ()) for problem in problems]
    return list(zip(problems, texts, suites, strict=True))


def _measurable(
    measure: _Measure,
    problems: Sequence[Problem],
    name: str,
    journal: EvaluationJournal,
    sandbox: Sandbox,
    failed: dict[str, str],
    limits: RunLimits,
) -> list[Problem]:
    """Those that can be measured, with time limits in seconds; why others cannot goes into the journal, or into
    `failed`."""

    def why_not(pieces: Sequence[Problem]) -> list[str]:
        try:
            return [measure.why_not(name, *limits.settled(pieces))]
        except UnusableReference as error:
            return [str(error)]

    kept = []
    for problem in problems:
        (why,) = apart(sandbox, why_not, [problem])
        if isinstance(why, SandboxError):
            failed[problem.problem_id] = str(why)
        elif why:
            journal.append({"kind": "score", "set": name, "problem_id": problem.problem_id, "left_out": why})
        else:
            kept.append(limits.known(problem))
    return kept


def _ask(
    player: Player,
    asked: Sequence[tuple[Problem, Sequence[Request]]],
    samples: int,
    plan: EvaluationPlan,
    journal: EvaluationJournal,
    place: tuple[str, str],
) -> None:
    """All requests at once; each problem's answers go into the journal. `place`: the kind of record, the set."""
    requests = [request for _, row in asked for request in row]
    answered = iter(responses_of(player, requests, samples, plan.sampling, plan.seed))
    for problem, row in asked:
        group = [response for _ in row for response in next(answered)]
        silent = sum(response.is_silent for response in group)
        journal.append({
            "kind": place[0], "set": place[1], "problem_id": problem.problem_id,
            "texts": [response.text for response in group],
            "truncated": sum(response.truncated for response in group),
            **({"silent": silent} if silent else {}),
        })  # fmt: skip


class _Coder:
    """Programs on all tests of their questions."""

    def __init__(self, sandbox: Sandbox, plan: EvaluationPlan, player: Player, select_by: Player | None) -> None:
        self._player = player
        self._arena = Arena(sandbox, execution_cache_mb=0, on_failure="raise")
        self._judge = Judge(sandbox, execution_cache_mb=0)
        self._plan = plan
        self._is_selecting = select_by is not None

    def why_not(self, name: str, problem: Problem) -> str:
        lacked = self._player.lacks(problem) if isinstance(self._player, OracleCoder | MutantCoder) else ""
        return lacked or _why_no_tests(self._arena, problem)

    def requests(self, name: str, problem: Problem) -> list[Request]:
        return [CoderRequest(problem)]

    def scores(self, name: str, answered: Sequence[_Answered]) -> list[dict[str, Any]]:
        """`passed` and `executes` of every program, trimmed too, and which one was chosen. Raises SandboxError."""
        graded = self._graded(answered, trim=False)
        scores = self._scored(answered, graded)
        if self._plan.trim:
            for score, grades in zip(scores, _trimmed(answered, graded, partial(self._graded, trim=True)), strict=True):
                score["passed_trimmed"] = [grade.all_passed for grade in grades]
                score["executes_trimmed"] = [grade.executes for grade in grades]
        return scores

    def _scored(self, answered: Sequence[_Answered], graded: Sequence[Sequence[Grade]]) -> list[dict[str, Any]]:
        scores: list[dict[str, Any]] = [
            {"passed": [grade.all_passed for grade in grades], "executes": [grade.executes for grade in grades]}
            | ({"denied": [list(grade.denied) for grade in grades]} if any(grade.denied for grade in grades) else {})
            for grades in graded
        ]
        for (problem, _, _), score in zip(answered, scores, strict=True):
            if unread := self._arena.unread_tests(problem):
                score["tests_left_out"] = reasons(unread)
        if self._is_selecting:
            choices = choose(self._judge, answered, self._plan.suite_size, self._plan.fidelity)
            for (problem, _, _), score, choice in zip(answered, scores, choices, strict=True):
                drawn = random.Random(f"{self._plan.seed} {problem.problem_id}").randrange(len(choice.votes))
                score |= {**dataclasses.asdict(choice), "random": drawn}
        return scores

    def _graded(self, answered: Sequence[_Answered], *, trim: bool) -> list[list[Grade]]:
        items = [(problem, texts, (*problem.golden_tests, *problem.hidden_tests)) for problem, texts, _ in answered]
        return self._arena.grade_many(items, trim=trim)


def _trimmed(
    answered: Sequence[_Answered],
    rows: Sequence[Sequence[_Judged]],
    judge_trimmed: Callable[[Sequence[_Answered]], Sequence[Sequence[_Judged]]],
) -> list[list[_Judged]]:
    """What becomes of trimmed programs. One of which nothing is left out comes to what it came to; it does not run
    again."""
    changed = [[text for text in texts if _is_trimmed(problem, text)] for problem, texts, _ in answered]
    asked = [(problem, texts, ()) for (problem, _, _), texts in zip(answered, changed, strict=True) if texts]
    new = iter(judge_trimmed(asked))
    known = [dict(zip(texts, next(new) if texts else (), strict=True)) for texts in changed]
    return [
        [trimmed.get(text, one) for text, one in zip(texts, row, strict=True)]
        for (_, texts, _), row, trimmed in zip(answered, rows, known, strict=True)
    ]


def _is_trimmed(problem: Problem, text: str) -> bool:
    """Whether trimming leaves anything of an answer's program out."""
    return RewardConfig(trim=True).program(problem, text) != RewardConfig().program(problem, text)


class _ByScripts(_Coder):
    """Programs under their questions' test scripts, and what the sealed judge says where it has tests, too."""

    def why_not(self, name: str, problem: Problem) -> str:
        return "" if problem.test_script else "it has no test script"

    def scores(self, name: str, answered: Sequence[_Answered]) -> list[dict[str, Any]]:
        """As the sealed judge's, by scripts; `why`: what a program that failed came to; `disagree`: the programs on
        which the sealed judge says something else. Raises SandboxError."""
        rows = self._verdicts(answered, trim=False)
        trimmed = _trimmed(answered, rows, partial(self._verdicts, trim=True)) if self._plan.trim else rows
        asked = [each for each in answered if not _why_no_tests(self._arena, each[0])]
        graded = self._graded(asked, trim=False)
        sealed = iter(zip(self._scored(asked, graded), graded, strict=True))
        scores = []
        for (problem, _, _), row, other in zip(answered, rows, trimmed, strict=True):
            score, grades = ({}, []) if _why_no_tests(self._arena, problem) else next(sealed)
            found = [disagreement(problem, grade, one) for grade, one in zip(grades, row, strict=bool(grades))]
            disagree = [each for each in found if each is not None]
            passed = [verdict.passed for verdict in row]
            score |= {"passed": passed, "executes": [bool(verdict.tests) for verdict in row]}
            if self._plan.trim:
                score["passed_trimmed"] = [verdict.passed for verdict in other]
                score["executes_trimmed"] = [bool(verdict.tests) for verdict in other]
            score["why"] = [verdict.told[:300] for verdict in row if not verdict.passed]
            scores.append(score | ({"disagree": disagree} if disagree else {}))
        return scores

    def _verdicts(self, answered: Sequence[_Answered], *, trim: bool) -> list[list[ScriptVerdict]]:
        config = RewardConfig(trim=trim)
        asked = [(problem, config.program(problem, text).source) for problem, texts, _ in answered for text in texts]
        verdicts = iter(judge_scripts(self._arena.sandbox, asked))
        return [[next(verdicts) for _ in texts] for _, texts, _ in answered]


def _why_no_tests(arena: Arena, problem: Problem) -> str:
    """Why no program can be run on the problem's tests; empty: there is one that can be read."""
    tests = len(problem.golden_tests) + len(problem.hidden_tests)
    if not tests:
        return "it has no tests"
    unread = arena.unread_tests(problem)
    return told(unread) if len(unread) == tests else ""


class _Tester:
    """Suites on the functions that they were written for."""

    def __init__(self, sandbox: Sandbox, plan: EvaluationPlan) -> None:
        self._meter = SuiteMeter(sandbox, suite_size=plan.suite_size, fidelity=plan.fidelity, seed=plan.seed)

    def why_not(self, name: str, problem: Problem) -> str:
        try:
            self._meter.measure([(problem, ())])  # its mutants: they are remembered
        except UnusableReference as error:
            return str(error)
        return ""

    def requests(self, name: str, problem: Problem) -> list[Request]:
        return [TesterRequest(problem, problem.reference_solution or "")]

    def scores(self, name: str, answered: Sequence[_Answered]) -> list[dict[str, Any]]:
        """`suites`: the fields of every `SuiteResult`; what became of the mutants. Raises SandboxError."""
        return [
            {
                "suites": [list(dataclasses.astuple(suite)) for suite in measured.suites],
                "mutants": measured.matrix.made,
                "equivalent": len(measured.matrix.equivalent),
                "unloadable": len(measured.matrix.unloadable),
            }
            for measured in self._meter.measure([(problem, texts) for problem, texts, _ in answered])
        ]


class _Breaker:
    """Suites on wrong programs of their questions."""

    def __init__(
        self,
        sandbox: Sandbox,
        plan: EvaluationPlan,
        against: Mapping[str, Sequence[str]],
        journal: EvaluationJournal,
    ) -> None:
        self._sandbox, self._plan, self._against, self._journal = sandbox, plan, against, journal
        self._arena = Arena(sandbox, execution_cache_mb=0)
        self._judge = Judge(sandbox, execution_cache_mb=0)

    def why_not(self, name: str, problem: Problem) -> str:
        responses = self._against.get(problem.problem_id, ())
        if not responses:
            return "no program for it was given"
        if why := self._why_no_oracle(problem) or _why_no_tests(self._arena, problem):
            return why
        if (name, problem.problem_id) not in self._journal.programs:
            (examined,) = examine(self._sandbox, [(problem, responses)])
            record = {"kind": "programs", "set": name, "problem_id": problem.problem_id}
            self._journal.append({**record, **dataclasses.asdict(examined)})
        return "" if self._wrong(name, problem) else "no program that was given is wrong"

    def _why_no_oracle(self, problem: Problem) -> str:
        """Why the reference cannot say whether a suite's values are right; empty: it can."""
        if problem.reference_solution is None:
            return "it has no reference_solution"
        (tried,) = self._judge.try_programs([Trial(problem, problem.reference_solution, ())])
        return "" if tried.executes else f"its reference_solution must load and define {problem.entry_point!r}"

    def requests(self, name: str, problem: Problem) -> list[Request]:
        sources = self._wrong(name, problem) if self._plan.access == "white-box" else [""]
        return [TesterRequest(problem, source) for source in sources]

    def scores(self, name: str, answered: Sequence[_Answered]) -> list[dict[str, Any]]:
        """`exposures`: a record for each program's suites; `fidelities`: of each suite. Raises SandboxError."""
        programs = [self._wrong(name, problem) for problem, _, _ in answered]
        n = self._plan.samples
        asked = [
            (problem, [row[place * n % len(row) :][:n] for place in range(len(sources))])
            for (problem, row, _), sources in zip(answered, programs, strict=True)
        ]  # of a black-box tester all programs have the same suites
        exposed = exposures(self._judge, asked, programs, self._plan.suite_size, self._plan.fidelity)
        suites = [(problem, texts, self._examined(name, problem)["ranked"]) for problem, texts, _ in answered]
        ranked = fidelities(self._judge, suites, self._plan.suite_size, self._plan.fidelity)
        return [{"exposures": each, "fidelities": row} for each, row in zip(exposed, ranked, strict=True)]

    def _wrong(self, name: str, problem: Problem) -> list[str]:
        wrong: list[str] = list(self._examined(name, problem)["wrong"])
        return wrong

    def _examined(self, name: str, problem: Problem) -> Mapping[str, Any]:
        return self._journal.programs[name, problem.problem_id]


_Measure = _Coder | _Tester | _Breaker


def _report(
    player: Player,
    sets: Mapping[str, Sequence[Problem]],
    plan: EvaluationPlan,
    journal: EvaluationJournal,
    failed: _Failed,
    *,
    is_breaking: bool,
    is_selecting: bool,
) -> dict[str, Any]:
    records: dict[str, Any] = {}
    for name, problems in sets.items():
        known = [problem for problem in problems if problem.problem_id not in failed[name]]
        scores = [journal.scores[name, problem.problem_id] for problem in known]
        kept = [score for score in scores if "left_out" not in score]
        answers = [journal.answers[name, score["problem_id"]] for score in kept]
        written = sum(len(each["texts"]) for each in answers)
        record: dict[str, Any] = {
            "problems": len(kept),
            "left_out": {score["problem_id"]: score["left_out"] for score in scores if "left_out" in score}
            | {problem_id: f"the sandbox failed: {why}" for problem_id, why in failed[name].items()},
            "truncated": sum(each["truncated"] for each in answers) / written if written else None,
        }
        asked = [*answers, *(journal.suites[name, each["problem_id"]] for each in kept if is_selecting)]
        if silent := sum(each.get("silent", 0) for each in asked):
            record["silent"] = silent
        if plan.seat == "coder":
            ks = [k for k in _KS if k <= plan.samples]
            measures = program_measures([score["passed"] for score in kept], plan.samples, ks, plan.seed)
            measures["executes"] = mean_interval([sum(s["executes"]) / len(s["executes"]) for s in kept], plan.seed)
            denied = [s.get("denied", [[]] * len(s["passed"])) for s in kept]
            if notes := Counter(note for programs in denied for program in programs for note in program):
                measures["denied"] = mean_interval([sum(map(bool, each)) / len(each) for each in denied], plan.seed)
                record["denied"] = dict(notes.most_common())
            record["passed"] = {score["problem_id"]: sum(score["passed"]) for score in kept}
            if disagree := {score["problem_id"]: score["disagree"] for score in kept if "disagree" in score}:
                record["disagree"] = disagree
            if plan.trim:
                measures |= _trimmed_measures(kept, plan, ks)
                record["passed_trimmed"] = {score["problem_id"]: sum(score["passed_trimmed"]) for score in kept}
            if unread := {score["problem_id"]: score["tests_left_out"] for score in kept if "tests_left_out" in score}:
                record["tests_left_out"] = unread
            if is_selecting:
                measures |= selection_measures(kept, plan.seed)
                record |= _selection_record(name, kept, journal)
        elif is_breaking:
            measures = exposure_measures([score["exposures"] for score in kept], plan.suite_size, plan.seed)
            rows = [score["fidelities"] for score in kept if score["fidelities"]]
            measures["fidelity"] = mean_interval([sum(row) / len(row) for row in rows], plan.seed)
            record |= _programs_record(name, problems, journal)
        else:
            suites = [[SuiteResult(*fields) for fields in score["suites"]] for score in kept]
            measures = suite_measures(suites, plan.seed)
            record |= {part: sum(score[part] for score in kept) for part in ("mutants", "equivalent", "unloadable")}
        record["measures"] = {measure: _plain(interval) for measure, interval in measures.items()}
        records[name] = record
    head = {"schema": SCHEMA, "judge": VERSION, "player": player.name, "version": player.version}
    trust = {"trust": UNSEALED} if plan.judge == "scripts" else {}
    return {**head, **_plain_plan(plan), **trust, "sets": records}


def _trimmed_measures(
    scores: Sequence[Mapping[str, Any]], plan: EvaluationPlan, ks: Sequence[int]
) -> dict[str, Interval | None]:
    """The figures of the same answers, their programs trimmed."""
    measures = program_measures([score["passed_trimmed"] for score in scores], plan.samples, ks, plan.seed)
    executes = [score["executes_trimmed"] for score in scores]
    measures["executes"] = mean_interval([sum(each) / len(each) for each in executes], plan.seed)
    return {f"{name} trimmed": measure for name, measure in measures.items()}


def _programs_record(name: str, problems: Sequence[Problem], journal: EvaluationJournal) -> dict[str, int]:
    """Programs of all questions, also of those where none is wrong."""
    keys = [(name, problem.problem_id) for problem in problems if (name, problem.problem_id) in journal.programs]
    known = [journal.programs[key] for key in keys]
    counts = {part: sum(each[part] for each in known) for part in ("right", "timeouts", "unloadable")}
    return {"wrong": sum(len(each["wrong"]) for each in known), **counts}


def _selection_record(name: str, scores: Sequence[Mapping[str, Any]], journal: EvaluationJournal) -> dict[str, Any]:
    written = [journal.suites[name, score["problem_id"]] for score in scores]
    suites = sum(len(each["texts"]) for each in written)
    return {
        "suites": suites,
        "suites_truncated": sum(each["truncated"] for each in written) / suites if suites else None,
        "tests_a_question": sum(score["tests"] for score in scores) / len(scores) if scores else None,
        "without_tests": sum(not score["tests"] for score in scores),
    }


def _plain_plan(plan: EvaluationPlan) -> dict[str, Any]:
    """As journals and reports have it: `stop_at_fence`, `stop_at_tests`, `fidelity`, `access` and `trim` only where
    they were asked for, as journals of before."""
    usual = {"fidelity": "strict", "access": "white-box", "judge": "sealed", "trim": False}
    plain = {
        name: value for name, value in dataclasses.asdict(plan).items() if name not in usual or value != usual[name]
    }
    for name in ("stop_at_fence", "stop_at_tests"):
        if not plain["sampling"][name]:
            del plain["sampling"][name]
    return plain


def _plain(interval: Interval | None) -> dict[str, float] | None:
    return None if interval is None else dataclasses.asdict(interval)
