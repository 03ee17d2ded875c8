"""A match as the page has it: plain JSON data with every text cut to what a reader can use. Pure.

    game     number, id, from, question, entry, reference, config, replays: [[call, expected]], programs
    program  source, executes, refused, denied, reward, suites
    suite    reward, terms, error, replays: [verdict], tests
    test     [source, status, reason, call, stated, expected, verdict, returned, pay, verdicts]

`verdicts`: one for each program of the question, or null where the suite met only the program it was written against.

Knows no file and does not execute anything: what a match without a score came to is unknown. What it is given is
trusted as far as `require_score` has looked.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from codea1_env.checks import is_number
from codea1_env.errors import Codea1Error, FormatError
from codea1_env.judging.returned import cut
from codea1_env.mistake_book.files import unpacked
from codea1_env.reading.responses import read_suite
from codea1_env.records.recording import RecordedMatch
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Status
from codea1_env.rewards.terms import MAY_LACK, SuiteTerms

Json = dict[str, Any]

MOST_SOURCE = 1 << 16
"""Characters of a question, a program or a reference on the page."""
MOST_TEST = 1 << 12
"""Characters of each text of a test."""
MOST_ID = 400
"""Characters of a question's name."""
UNKNOWN = "unknown"
"""The status of an assert in a file without verdicts."""
_TERMS = frozenset(field.name for field in dataclasses.fields(SuiteTerms))
_TEST_TEXTS = ("source", "status", "reason", "call", "stated", "expected", "verdict", "returned")
_STATUSES = frozenset(Status)
_VERDICTS = frozenset((None, "pass", "fail", "error", "timeout", "crash"))


def recorded_game(recorded: RecordedMatch, origin: str, score: Mapping[str, Any] | None) -> Json:
    """A match of a recording. `score`: of `matches.detailed_score`; None: what its tests came to is not known."""
    match, entry_point = recorded.match, recorded.match.problem.entry_point
    programs = []
    for place, response in enumerate(match.codes):
        source = recorded.config.program(match.problem, response).source
        if score is None:
            suites = [
                _unjudged(text, reward, entry_point, recorded)
                for text, reward in zip(match.suites[place], recorded.rewards.suites[place], strict=True)
            ]
            code = {"executes": None, "reward": recorded.rewards.codes[place]}
        else:
            suites = [_suite(suite) for suite in score["suites"][place]]
            code = score["codes"][place]
        programs.append(_program(source, code, suites))
    config = dataclasses.asdict(recorded.config)
    replays = [[cut(case.call, MOST_TEST), cut(case.expected, MOST_TEST)] for case in recorded.replays]
    problem = match.problem
    return _game(problem.problem_id, origin, problem.question, problem.reference_solution, config, replays, programs)


def scored_game(score: Mapping[str, Any], origin: str) -> Json:
    """A line of `codea1 score`; without `--details` it has neither question nor programs. Raises FormatError."""
    require_score(score)
    programs = []
    for code, row in zip(score["codes"], score["suites"], strict=True):
        packed = code.get("program")
        source = None if packed is None else unpacked(packed, 1, "program")
        programs.append(_program(source, code, [_suite(suite) for suite in row]))
    first = next((row[0]["replays"] for row in score["suites"] if row), ())
    replays = [[cut(each["call"], MOST_TEST), cut(each["expected"], MOST_TEST)] for each in first]
    config = score.get("config")
    question, reference = score.get("question", ""), score.get("reference_solution")
    return _game(score["problem_id"], origin, question, reference, config, replays, programs)


def require_score(score: Mapping[str, Any], codes: int | None = None) -> None:
    """Raises FormatError (must, got) for what is no score, or one of another number of `codes`."""
    try:
        if not isinstance(score["problem_id"], str):
            raise FormatError(f"problem_id must be a string, got {score['problem_id']!r:.200}")
        if codes is not None and codes != len(score["codes"]):
            raise FormatError(f"a score must have {codes} codes, as many as its match, got {len(score['codes'])}")
        for code, row in zip(score["codes"], score["suites"], strict=True):
            _require_number(code["reward"])
            if not isinstance(code["executes"], bool | None):
                raise FormatError(f"executes must be true, false or null, got {code['executes']!r:.200}")
            if not isinstance(code.get("refused", ""), str):
                raise FormatError(f"refused must be a string, got {code['refused']!r:.200}")
            denied = code.get("denied", [])
            if not isinstance(denied, list) or not all(isinstance(note, str) for note in denied):
                raise FormatError(f"denied must be a list of strings, got {denied!r:.200}")
            for suite in row:
                _require_suite(suite, len(score["codes"]))
        for name in ("question", "entry_point", "reference_solution"):
            if not isinstance(score.get(name), str | None):
                raise FormatError(f"{name} must be a string, got {score[name]!r:.200}")
        if score.get("config") is not None:
            RewardConfig(**score["config"])
    except FormatError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, Codea1Error) as error:
        got = f"without {error}" if isinstance(error, KeyError) else f"with {error!r}"
        raise FormatError(f"a score must be as `codea1 score` writes it, got one {got}") from None


def _require_suite(suite: Mapping[str, Any], codes: int) -> None:
    _require_number(suite["reward"])
    if suite["terms"] is not None:
        if set(suite["terms"]) != _TERMS:
            raise FormatError(f"terms must be {sorted(_TERMS)}, got {sorted(suite['terms'])!r:.400}")
        for name, value in suite["terms"].items():
            _require_number(value, or_truth=True)
            if value is None and name not in MAY_LACK:
                raise FormatError(f"the term {name} must be a number, got null")
        if suite["reward"] is None or type(size := suite["terms"]["suite_size"]) is not int or size < 1:
            got = f"{suite['reward']!r} and {suite['terms']['suite_size']!r}"
            raise FormatError(
                f"a suite with terms must have a reward, and a suite_size, a whole number of at least 1, got {got}"
            )
    for test in suite["tests"]:
        for name in _TEST_TEXTS:
            if not isinstance(test.get(name), str | None):
                raise FormatError(f"{name} of a test must be a string or null, got {test[name]!r:.200}")
        if test["status"] not in _STATUSES or test["verdict"] not in _VERDICTS:
            got = f"{test['status']!r:.80} and {test['verdict']!r:.80}"
            raise FormatError(f"status and verdict of a test must be known ones, got {got}")
        _require_number(test.get("pay"))
        verdicts = test.get("verdicts", [None] * codes)
        if not isinstance(verdicts, list) or len(verdicts) != codes or set(verdicts) - _VERDICTS:
            raise FormatError(f"verdicts of a test must be {codes} known ones, got {verdicts!r:.200}")
    for reason, count in suite.get("ignored", {}).items():
        if not isinstance(reason, str) or type(count) is not int:
            raise FormatError(f"ignored must be counts by reason, got {suite['ignored']!r:.200}")
    for replay in suite["replays"]:
        if not isinstance(replay["call"], str) or not isinstance(replay["expected"], str):
            raise FormatError(f"a replay must have a call and an expected value, got {replay!r:.200}")
        if replay["verdict"] not in _VERDICTS:
            raise FormatError(f"the verdict of a replay must be a known one, got {replay['verdict']!r:.200}")


_LARGEST = 1 << 53
"""Of whole numbers that the page can count with."""


def _require_number(value: object, *, or_truth: bool = False) -> None:
    is_large = isinstance(value, int) and abs(value) > _LARGEST
    if value is not None and (is_large or not is_number(value)) and not (or_truth and isinstance(value, bool)):
        raise FormatError(f"a reward or term must be a number or null, got {value!r:.200}")


def _game(
    problem_id: str,
    origin: str,
    question: str | None,
    reference: str | None,
    config: Mapping[str, Any] | None,
    replays: Sequence[Sequence[str]],
    programs: Sequence[Json],
) -> Json:
    return {
        "id": cut(problem_id, MOST_ID),
        "from": origin,
        "question": cut(question or "", MOST_SOURCE),
        "reference": cut(reference, MOST_SOURCE),
        "config": config,
        "replays": replays,
        "programs": programs,
    }


def _program(source: str | None, code: Mapping[str, Any], suites: Sequence[Json]) -> Json:
    refused, denied = cut(code.get("refused", ""), MOST_TEST), cut(", ".join(code.get("denied", ())), MOST_TEST)
    known = {"executes": code["executes"], "refused": refused, "denied": denied, "reward": code["reward"]}
    return {"source": cut(source, MOST_SOURCE), **known, "suites": suites}


def _suite(suite: Mapping[str, Any]) -> Json:
    return {
        "reward": suite["reward"],
        "terms": suite["terms"],
        "error": cut(suite.get("error", ""), MOST_TEST),
        "replays": [replay["verdict"] for replay in suite["replays"]],
        "ignored": dict(suite.get("ignored", {})),
        "tests": [
            [*(cut(test.get(name), MOST_TEST) for name in _TEST_TEXTS), test.get("pay"), test.get("verdicts")]
            for test in suite["tests"]
        ],
    }


def _unjudged(response: str, reward: float | None, entry_point: str, recorded: RecordedMatch) -> Json:
    """A suite of which the recording has the text and the reward, no more."""
    suite = read_suite(response, entry_point, fidelity=recorded.config.fidelity)
    rows = [
        [cut(test.source, MOST_TEST), UNKNOWN, test.reason, cut(test.call, MOST_TEST), cut(test.claim, MOST_TEST),
         None, None, None, None, None]
        for test in suite.tests
    ]  # fmt: skip
    ignored = {str(reason): count for reason, count in suite.unread}
    return {"reward": reward, "terms": None, "error": "", "replays": [], "ignored": ignored, "tests": rows}
