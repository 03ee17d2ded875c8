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
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from codea1_env.arena.arena import Arena
from codea1_env.arena.failures import apart
from codea1_env.checks import require, require_bool, require_choice, require_whole
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
_Reported = tuple[dict[str, Interval | None], dict[str, Any]]
"""The measures of a set, and what else is reported of it."""


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
            require_whole(name, getattr(self, name), least)
        if self.sampling.stop_at_tests:
            require_whole("stop_at_tests", self.sampling.stop_at_tests, self.suite_size)


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
    require_whole("batch", batch)
    require_players({"player": player, **({} if select_by is None else {"select_by": select_by})})
    if against is not None and plan.seat != "tester":
        raise ConfigurationError("against must come with the seat tester, got the seat coder")
    measure: _Measure = _Tester(sandbox, plan)
    if plan.seat == "coder":
        kind = {"sealed": _Coder, "scripts": _ByScripts}[plan.judge]
        measure = kind(sandbox, plan, journal, player, is_selecting=select_by is not None)
    if against is not None:
        measure = _Breaker(sandbox, plan, journal, against)
    evaluation = _EvaluationRun(player, plan, sandbox, journal, measure, select_by)
    for name, problems in sets.items():
        waiting = [
            dataclasses.replace(problem, suite_size=None)  # the plan's K is the measure's, the same for all
            for problem in problems
            if (name, problem.problem_id) not in journal.scores
        ]
        for start in range(0, len(waiting), batch):
            taken = waiting[start : start + batch]
            evaluation.score(name, taken)
            advance(len(taken))
    said: dict[str, Any] = {"prompts": (prompts or find_prompts(DEFAULT)).name}
    said |= {"select_by": select_by.name} if select_by is not None else {}
    if against is not None:
        said["against"] = programs_digest(against)
    if isinstance(player, RecordedPlayer) and player.asked:
        said["recorded"] = dict(player.asked)
        if select_by is None:  # nobody is asked now
            said |= {name: player.asked[name] for name in ("sampling", "prompts")}
    if failed := {name: why for name, why in evaluation.failed.items() if why}:
        said["failed"] = failed
    head = {"schema": SCHEMA, "judge": VERSION, "player": player.name, "version": player.version}
    trust = {"trust": UNSEALED} if plan.judge == "scripts" else {}
    records = {name: evaluation.record(name, problems) for name, problems in sets.items()}
    return {**head, **_plain_plan(plan), **trust, "sets": records, **said}


class _EvaluationRun:
    """The way from a problem to its score, and what all measures report alike. Everything goes into the journal."""

    def __init__(
        self,
        player: Player,
        plan: EvaluationPlan,
        sandbox: Sandbox,
        journal: EvaluationJournal,
        measure: _Measure,
        select_by: Player | None,
    ) -> None:
        self._player, self._plan, self._sandbox, self._journal = player, plan, sandbox, journal
        self._measure, self._select_by = measure, select_by
        judge = Judge(sandbox, execution_cache_mb=0)
        self._limits = RunLimits(judge, OwnTests(judge))
        self.failed: defaultdict[str, dict[str, str]] = defaultdict(dict)
        """Why the sandbox failed, by set and problem."""

    def score(self, name: str, problems: Sequence[Problem]) -> None:
        measurable = self._measurable(name, problems)
        answered = self._answers(name, measurable)
        results = apart(self._sandbox, partial(self._measure.scores, name), answered)
        for problem, result in zip(measurable, results, strict=True):
            if isinstance(result, SandboxError):
                self.failed[name][problem.problem_id] = str(result)
            else:
                self._journal.note("score", name, problem, **result)

    def _measurable(self, name: str, problems: Sequence[Problem]) -> list[Problem]:
        """Those that can be measured, with time limits in seconds; why others cannot is noted."""

        def why_not(pieces: Sequence[Problem]) -> list[str]:
            try:
                return [self._measure.why_not(name, *self._limits.settled(pieces))]
            except UnusableReference as error:
                return [str(error)]

        kept = []
        for problem in problems:
            (why,) = apart(self._sandbox, why_not, [problem])
            if isinstance(why, SandboxError):
                self.failed[name][problem.problem_id] = str(why)
            elif why:
                self._journal.note("score", name, problem, left_out=why)
            else:
                kept.append(self._limits.known(problem))
        return kept

    def _answers(self, name: str, problems: Sequence[Problem]) -> list[_Answered]:
        """What is not in the journal yet is asked for, and goes there."""
        journal = self._journal
        asked = [
            (problem, self._measure.requests(name, problem))
            for problem in problems
            if (name, problem.problem_id) not in journal.answers
        ]
        self._ask(self._player, asked, self._plan.samples, "answers", name)
        texts = [journal.answers[name, problem.problem_id]["texts"] for problem in problems]
        if self._select_by is not None:
            asked = [
                (problem, [TesterRequest(problem, program) for program in different_programs(problem, answers)])
                for problem, answers in zip(problems, texts, strict=True)
                if (name, problem.problem_id) not in journal.suites
            ]
            self._ask(self._select_by, asked, 1, "suites", name)
        suites = [journal.suites.get((name, problem.problem_id), {}).get("texts", ()) for problem in problems]
        return list(zip(problems, texts, suites, strict=True))

    def _ask(
        self, player: Player, asked: Sequence[tuple[Problem, Sequence[Request]]], samples: int, kind: str, name: str
    ) -> None:
        """All requests at once; each problem's answers are noted under `kind`."""
        requests = [request for _, row in asked for request in row]
        answered = iter(responses_of(player, requests, samples, self._plan.sampling, self._plan.seed))
        for problem, row in asked:
            group = [response for _ in row for response in next(answered)]
            silent = sum(response.is_silent for response in group)
            texts, truncated = [response.text for response in group], sum(response.truncated for response in group)
            also = {"silent": silent} if silent else {}
            self._journal.note(kind, name, problem, texts=texts, truncated=truncated, **also)

    def record(self, name: str, problems: Sequence[Problem]) -> dict[str, Any]:
        failed = self.failed[name]
        known = [problem.problem_id for problem in problems if problem.problem_id not in failed]
        scores = [self._journal.scores[name, problem_id] for problem_id in known]
        kept = [score for score in scores if "left_out" not in score]
        answers = [self._journal.answers[name, score["problem_id"]] for score in kept]
        left_out = {score["problem_id"]: score["left_out"] for score in scores if "left_out" in score}
        record: dict[str, Any] = {
            "problems": len(kept),
            "left_out": left_out | {problem_id: f"the sandbox failed: {why}" for problem_id, why in failed.items()},
            "truncated": _truncated(answers)[1],
        }
        if self._select_by is not None:
            answers += [self._journal.suites[name, score["problem_id"]] for score in kept]
        if silent := sum(each.get("silent", 0) for each in answers):
            record["silent"] = silent
        measures, of_measure = self._measure.report(name, kept)
        plain = {measure: interval and dataclasses.asdict(interval) for measure, interval in measures.items()}
        return {**record, **of_measure, "measures": plain}


def _truncated(answers: Sequence[Mapping[str, Any]]) -> tuple[int, float | None]:
    """How many texts there are, and the share of those that were cut off; None without any."""
    texts = sum(len(each["texts"]) for each in answers)
    return texts, sum(each["truncated"] for each in answers) / texts if texts else None


class _Coder:
    """Programs on all tests of their questions."""

    def __init__(
        self, sandbox: Sandbox, plan: EvaluationPlan, journal: EvaluationJournal, player: Player, *, is_selecting: bool
    ) -> None:
        self._plan, self._journal, self._player, self._is_selecting = plan, journal, player, is_selecting
        self._arena = Arena(sandbox, execution_cache_mb=0, on_failure="raise")
        self._judge = Judge(sandbox, execution_cache_mb=0)

    def why_not(self, name: str, problem: Problem) -> str:
        lacked = self._player.lacks(problem) if isinstance(self._player, OracleCoder | MutantCoder) else ""
        return lacked or _why_no_tests(self._arena, problem)

    def requests(self, name: str, problem: Problem) -> list[Request]:
        return [CoderRequest(problem)]

    def scores(self, name: str, answered: Sequence[_Answered]) -> list[dict[str, Any]]:
        """`passed` and `executes` of every program, trimmed too, and which one was chosen. Raises SandboxError."""
        rows = self._judged(answered, trim=False)
        further = self._further(answered, rows)
        scores = [self._came_to(row) | more for row, more in zip(rows, further, strict=True)]
        if self._plan.trim:
            for score, row in zip(scores, self._trimmed(answered, rows), strict=True):
                score |= self._came_to(row, "_trimmed")
        return scores

    def _judged(self, answered: Sequence[_Answered], *, trim: bool) -> list[list[Any]]:
        """A grade of every program; of a subclass, what its judge says."""
        items = [(problem, texts, (*problem.golden_tests, *problem.hidden_tests)) for problem, texts, _ in answered]
        return list(self._arena.grade_many(items, trim=trim))

    def _came_to(self, row: Sequence[Any], suffix: str = "") -> dict[str, Any]:
        passed, executes = [grade.all_passed for grade in row], [grade.executes for grade in row]
        return {f"passed{suffix}": passed, f"executes{suffix}": executes}

    def _further(self, answered: Sequence[_Answered], rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
        further: list[dict[str, Any]] = [{} for _ in rows]
        for (problem, _, _), row, more in zip(answered, rows, further, strict=True):
            if any(grade.denied for grade in row):
                more["denied"] = [list(grade.denied) for grade in row]
            if unread := self._arena.unread_tests(problem):
                more["tests_left_out"] = reasons(unread)
        if self._is_selecting:
            choices = choose(self._judge, answered, self._plan.suite_size, self._plan.fidelity)
            for (problem, _, _), more, choice in zip(answered, further, choices, strict=True):
                drawn = random.Random(f"{self._plan.seed} {problem.problem_id}").randrange(len(choice.votes))
                more |= {**dataclasses.asdict(choice), "random": drawn}
        return further

    def _trimmed(self, answered: Sequence[_Answered], rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """What becomes of trimmed programs. One of which nothing is left out comes to what it came to; it does not run
        again."""
        changed = [[text for text in texts if _is_trimmed(problem, text)] for problem, texts, _ in answered]
        asked = [(problem, texts, ()) for (problem, _, _), texts in zip(answered, changed, strict=True) if texts]
        new = iter(self._judged(asked, trim=True))
        known = [dict(zip(texts, next(new) if texts else (), strict=True)) for texts in changed]
        return [
            [trimmed.get(text, one) for text, one in zip(texts, row, strict=True)]
            for (_, texts, _), row, trimmed in zip(answered, rows, known, strict=True)
        ]

    def report(self, name: str, scores: Sequence[Mapping[str, Any]]) -> _Reported:
        record: dict[str, Any] = {"passed": {score["problem_id"]: sum(score["passed"]) for score in scores}}
        measures = self._rates(scores)
        denied = [score.get("denied", [[]] * len(score["passed"])) for score in scores]
        if notes := Counter(note for programs in denied for program in programs for note in program):
            measures["denied"] = mean_interval([sum(map(bool, each)) / len(each) for each in denied], self._plan.seed)
            record["denied"] = dict(notes.most_common())
        if self._plan.trim:
            measures |= {f"{rate} trimmed": each for rate, each in self._rates(scores, "_trimmed").items()}
            record["passed_trimmed"] = {score["problem_id"]: sum(score["passed_trimmed"]) for score in scores}
        for field in ("disagree", "tests_left_out"):
            if found := {score["problem_id"]: score[field] for score in scores if field in score}:
                record[field] = found
        if self._is_selecting:
            measures |= selection_measures(scores, self._plan.seed)
            written = [self._journal.suites[name, score["problem_id"]] for score in scores]
            tests = [score["tests"] for score in scores]
            record["suites"], record["suites_truncated"] = _truncated(written)
            record["tests_a_question"] = sum(tests) / len(tests) if tests else None
            record["without_tests"] = tests.count(0)
        return measures, record

    def _rates(self, scores: Sequence[Mapping[str, Any]], suffix: str = "") -> dict[str, Interval | None]:
        plan, ks = self._plan, [k for k in _KS if k <= self._plan.samples]
        measures = program_measures([score[f"passed{suffix}"] for score in scores], plan.samples, ks, plan.seed)
        executes = [score[f"executes{suffix}"] for score in scores]
        measures["executes"] = mean_interval([sum(each) / len(each) for each in executes], plan.seed)
        return measures


def _is_trimmed(problem: Problem, text: str) -> bool:
    """Whether trimming leaves anything of an answer's program out."""
    return RewardConfig(trim=True).program(problem, text) != RewardConfig().program(problem, text)


class _ByScripts(_Coder):
    """Programs under their questions' test scripts, and what the sealed judge says where it has tests, too."""

    def why_not(self, name: str, problem: Problem) -> str:
        return "" if problem.test_script else "it has no test script"

    def _judged(self, answered: Sequence[_Answered], *, trim: bool) -> list[list[Any]]:
        config = RewardConfig(trim=trim)
        asked = [(problem, config.program(problem, text).source) for problem, texts, _ in answered for text in texts]
        verdicts = iter(judge_scripts(self._arena.sandbox, asked))
        return [[next(verdicts) for _ in texts] for _, texts, _ in answered]

    def _came_to(self, row: Sequence[ScriptVerdict], suffix: str = "") -> dict[str, Any]:
        passed, executes = [verdict.passed for verdict in row], [bool(verdict.tests) for verdict in row]
        return {f"passed{suffix}": passed, f"executes{suffix}": executes}

    def _further(self, answered: Sequence[_Answered], rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
        """As the sealed judge's; `why`: what a program that failed came to; `disagree`: the programs on
        which the sealed judge says something else."""
        has_tests = [not _why_no_tests(self._arena, problem) for problem, _, _ in answered]
        asked = [each for each, has in zip(answered, has_tests, strict=True) if has]
        graded = iter(super()._judged(asked, trim=False))
        sealed = [next(graded) if has else [] for has in has_tests]
        further = super()._further(answered, sealed)
        for (problem, _, _), row, grades, more in zip(answered, rows, sealed, further, strict=True):
            found = [disagreement(problem, grade, one) for grade, one in zip(grades, row, strict=bool(grades))]
            disagree = [each for each in found if each is not None]
            more["why"] = [verdict.told[:300] for verdict in row if not verdict.passed]
            more |= {"disagree": disagree} if disagree else {}
        return further


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
        self._seed = plan.seed

    def why_not(self, name: str, problem: Problem) -> str:
        self._meter.measure([(problem, ())])  # its mutants: they are remembered
        return ""

    def requests(self, name: str, problem: Problem) -> list[Request]:
        return [TesterRequest(problem, problem.reference_solution or "")]

    def scores(self, name: str, answered: Sequence[_Answered]) -> list[dict[str, Any]]:
        """`suites`: the fields of every `SuiteResult`; what became of the mutants. Raises SandboxError."""
        return [
            {
                "suites": [list(dataclasses.astuple(suite)) for suite in suites],
                "mutants": matrix.made,
                "equivalent": len(matrix.equivalent),
                "unloadable": len(matrix.unloadable),
            }
            for suites, matrix in self._meter.measure([(problem, texts) for problem, texts, _ in answered])
        ]

    def report(self, name: str, scores: Sequence[Mapping[str, Any]]) -> _Reported:
        suites = [[SuiteResult(*fields) for fields in score["suites"]] for score in scores]
        counts = {part: sum(score[part] for score in scores) for part in ("mutants", "equivalent", "unloadable")}
        return suite_measures(suites, self._seed), counts


class _Breaker:
    """Suites on wrong programs of their questions."""

    def __init__(
        self, sandbox: Sandbox, plan: EvaluationPlan, journal: EvaluationJournal, against: Mapping[str, Sequence[str]]
    ) -> None:
        self._sandbox, self._plan, self._journal, self._against = sandbox, plan, journal, against
        self._arena = Arena(sandbox, execution_cache_mb=0)
        self._judge = Judge(sandbox, execution_cache_mb=0)

    def why_not(self, name: str, problem: Problem) -> str:
        responses = self._against.get(problem.problem_id, ())
        if not responses:
            return "no program for it was given"
        if why := self._why_no_oracle(problem) or _why_no_tests(self._arena, problem):
            return why
        if (name, problem.problem_id) not in self._journal.programs:
            examined = examine(self._sandbox, problem, responses)
            self._journal.note("programs", name, problem, **dataclasses.asdict(examined))
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
        n, size, fidelity = self._plan.samples, self._plan.suite_size, self._plan.fidelity
        asked = [
            (problem, [row[place * n % len(row) :][:n] for place in range(len(sources))])
            for (problem, row, _), sources in zip(answered, programs, strict=True)
        ]  # of a black-box tester all programs have the same suites
        exposed = exposures(self._judge, asked, programs, size, fidelity)
        suites = [
            (problem, texts, self._journal.programs[name, problem.problem_id]["ranked"])
            for problem, texts, _ in answered
        ]
        ranked = fidelities(self._judge, suites, size, fidelity)
        return [{"exposures": each, "fidelities": row} for each, row in zip(exposed, ranked, strict=True)]

    def _wrong(self, name: str, problem: Problem) -> list[str]:
        return list(self._journal.programs[name, problem.problem_id]["wrong"])

    def report(self, name: str, scores: Sequence[Mapping[str, Any]]) -> _Reported:
        """Counts are of the programs of all questions, also of those where none is wrong."""
        seed = self._plan.seed
        measures = exposure_measures([score["exposures"] for score in scores], self._plan.suite_size, seed)
        rows = [score["fidelities"] for score in scores if score["fidelities"]]
        measures["fidelity"] = mean_interval([sum(row) / len(row) for row in rows], seed)
        known = [record for (of_set, _), record in self._journal.programs.items() if of_set == name]
        counts = {part: sum(each[part] for each in known) for part in ("right", "timeouts", "unloadable")}
        return measures, {"wrong": sum(len(each["wrong"]) for each in known), **counts}


_Measure = _Coder | _Tester | _Breaker


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
