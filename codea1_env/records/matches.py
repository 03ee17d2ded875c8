"""Recorded outputs of any LLMs as JSON lines: one line in (question, programs, suites), one line out (every reward).

    in   problem_id, question, entry_point, reference_solution, codes: [response], suites: [[response, ...] per code]
    out  problem_id, codes: [{executes, reward}], suites: [[{reward, validity, adversarial, tests, terms, replays,
                      ignored}]]

A code that was not allowed to run says by which rule, `refused` (`RewardConfig.accept`); one that the sandbox denied
something says what, `denied`; one without suites says what replays came to, `replays`.

A response is a text or chat messages, as `reading/messages.py` says.

`ignored` says by reason how many pieces of a response were not read (`suites.Ignored`); a test that was read and counts
for nothing says so by its own `status` and `reason`.

With details, for `codea1 view`, the output says more: question, entry_point, reference_solution and config; each code's
program; of each test what the program returned where it failed, and the test's own part of the reward, `pay`.

A line may have the other fields of a `Problem` that have a part in verdicts; keys of any other name are passed over.
Without a `reference_solution` a line can be scored only where the oracle is another one.

`schema` is 1: these fields are frozen, optional ones may be added. Does not keep files open or decide the order of
work: see `score_stream.py`. Does not promise the same bytes twice with details: what a program that answers by chance
returned is among them.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

from codea1_env.arena.match import Match, MatchScore, SuiteScore
from codea1_env.checks import json_object, require
from codea1_env.errors import FormatError
from codea1_env.judging.version import VERSION
from codea1_env.mistake_book.files import packed
from codea1_env.problems.problem import Problem
from codea1_env.reading.messages import answer_texts
from codea1_env.records.journal import json_line
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.terms import SuiteTerms
from codea1_env.rewards.tester_rewards import per_test_rewards

_require = partial(require, error=FormatError)

SCHEMA = 1
_OF_TEST = ("source", "status", "reason", "call", "stated", "expected", "verdict")
_FIELDS = ("problem_id", "question", "entry_point", "codes", "suites")
_NO_PART_IN_VERDICTS = ("mutants", "language", "source", "difficulty", "license")
_PROBLEM_FIELDS = tuple(field.name for field in dataclasses.fields(Problem) if field.name not in _NO_PART_IN_VERDICTS)


def read_match(line: bytes) -> Match:
    """One input line. Raises FormatError (must, got) for anything that is not as stated above."""
    record = json_object(line, "the line", FormatError)
    schema = record.get("schema", SCHEMA)
    _require(schema == SCHEMA, "schema", f"be {SCHEMA}", schema)
    missing = [name for name in _FIELDS if name not in record]
    if missing:
        raise FormatError(f"the line must have the fields {', '.join(_FIELDS)}, got one without {', '.join(missing)}")
    codes, suites = record["codes"], record["suites"]
    problem = Problem.from_dict({name: record[name] for name in _PROBLEM_FIELDS if name in record})
    _require(isinstance(codes, list), "codes", "be a list of answers", codes)
    is_rows = isinstance(suites, list) and all(isinstance(row, list) for row in suites)
    _require(is_rows, "suites", "be a list of lists of answers", suites)
    _require(len(suites) == len(codes), "suites", f"have a list for each of the {len(codes)} codes", len(suites))
    rows = [answer_texts(row, f"suites[{place}]", FormatError) for place, row in enumerate(suites)]
    return Match(problem, tuple(answer_texts(codes, "codes", FormatError)), tuple(map(tuple, rows)))


def problem_id_of(line: bytes) -> str | None:
    """The question that a line is about; None where the line is no match at all."""
    try:
        return read_match(line).problem.problem_id
    except FormatError:
        return None


def write_score(score: MatchScore) -> bytes:
    """One output line, newline included. The same score gives the same bytes."""
    return json_line(_score(score))


def write_detailed_score(score: MatchScore, problem: Problem, config: RewardConfig) -> bytes:
    """The output line with details, for a reader who has nothing else. `config`: the score was paid by it."""
    record = detailed_score(score, problem, config)
    for code, scored in zip(record["codes"], score.codes, strict=True):
        code["program"] = packed(scored.program)
    known = {name: getattr(problem, name) for name in ("question", "entry_point", "reference_solution")}
    return json_line(record | known | {"config": dataclasses.asdict(config)})


def detailed_score(score: MatchScore, problem: Problem, config: RewardConfig) -> dict[str, Any]:
    """The score as plain data: the fields of an output line, and for each test `returned`, `pay` and, where all
    programs of the question met it, `verdicts`, one for each program."""
    config = config.with_suite_size(problem.suite_size)
    record = _score(score)
    for row, scored_row in zip(record["suites"], score.suites, strict=True):
        for suite, scored in zip(row, scored_row, strict=True):
            pays = per_test_rewards(scored.duel, config, scored.group) if scored.terms else None
            for place, (test, judged) in enumerate(zip(suite["tests"], scored.duel.tests, strict=True)):
                test["returned"] = judged.returned
                test["pay"] = pays[place].reward if pays else None
                if scored.group is not None:
                    test["verdicts"] = [verdicts[place] for verdicts in scored.group.verdicts]
    return record


def write_error(number: int, message: str) -> bytes:
    """The output line that stands for input line `number` (from 1) where it could not be scored."""
    return json_line({"line": number, "error": message})


def _score(score: MatchScore) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "judge": VERSION,
        "problem_id": score.problem_id,
        "codes": [
            {"executes": code.executes, "reward": code.reward}
            | ({"refused": code.refused} if code.refused else {})
            | ({"denied": list(code.denied)} if code.denied else {})
            | ({"replays": [each.verdict for each in code.replays]} if code.replays and not row else {})
            for code, row in zip(score.codes, score.suites, strict=True)
        ],
        "suites": [[_suite(suite) for suite in row] for row in score.suites],
    }


def _suite(suite: SuiteScore) -> dict[str, Any]:
    terms, duel = suite.terms, suite.duel
    record: dict[str, Any] = {
        "reward": suite.reward,
        "validity": terms.validity if terms else None,
        "adversarial": terms.adversarial if terms else None,
        "tests": [{name: getattr(test, name) for name in _OF_TEST} for test in duel.tests],
        "terms": {name: getattr(terms, name) for name in SuiteTerms.__slots__} if terms else None,
        "replays": [
            {"call": replay.case.call, "expected": replay.case.expected, "verdict": replay.verdict}
            for replay in duel.replays
        ],
        "ignored": {str(reason): count for reason, count in duel.ignored},
    }
    if duel.infrastructure_error:
        record["error"] = duel.infrastructure_error
    return record
