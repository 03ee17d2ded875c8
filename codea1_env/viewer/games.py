"""A match as the page has it: plain JSON data with every text cut to what a reader can use. Pure.

    game     number, id, from, question, entry, reference, config, replays: [[call, expected]], programs
    program  source, executes, refused, denied, reward, replays: [verdict] where it has no suites, suites
    suite    reward, terms, error, replays: [verdict], tests
    test     [source, status, reason, call, stated, expected, verdict, returned, pay, verdicts]

`verdicts`: one for each program of the question, or null where the suite met only the program it was written against.

Knows no file and does not execute anything: what a match without a score came to is unknown. What it is given is
trusted as far as `require_score` has looked.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from codea1_env.checks import is_number, require
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
_require = partial(require, error=FormatError)
_VERDICTS = frozenset((None, "pass", "fail", "error", "timeout", "crash"))


def recorded_game(recorded: RecordedMatch, origin: str, score: Mapping[str, Any] | None) -> Json:
    """A match of a recording. `score`: of `matches.detailed_score`; None: what its tests came to is not known."""
    match, problem, known = recorded.match, recorded.match.problem, recorded.rewards
    if score is None:
        rows = [zip(*each, strict=True) for each in zip(match.suites, known.suites, strict=True)]
        suites = [[_unjudged(text, reward, recorded) for text, reward in row] for row in rows]
        codes: list[Json] = [{"executes": None, "reward": reward} for reward in known.codes]
    else:
        suites, codes = [list(map(_suite, row)) for row in score["suites"]], score["codes"]
    sources = [recorded.config.program(problem, response).source for response in match.codes]
    texts = problem.problem_id, problem.question, problem.reference_solution
    replays = [(case.call, case.expected) for case in recorded.replays]
    return _game(texts, origin, dataclasses.asdict(recorded.config), replays, zip(sources, codes, suites, strict=True))


def scored_game(score: Mapping[str, Any]) -> Json:
    """A line of `codea1 score`; without `--details` it has neither question nor programs. Raises FormatError."""
    require_score(score)
    packed = [code.get("program") for code in score["codes"]]
    sources = [None if each is None else unpacked(each, 1, "program") for each in packed]
    suites = [list(map(_suite, row)) for row in score["suites"]]
    first = next((row[0]["replays"] for row in score["suites"] if row), ())
    texts = score["problem_id"], score.get("question"), score.get("reference_solution")
    replays = [(each["call"], each["expected"]) for each in first]
    return _game(texts, "", score.get("config"), replays, zip(sources, score["codes"], suites, strict=True))


def require_score(score: Mapping[str, Any], codes: int | None = None) -> None:
    """Raises FormatError (must, got) for what is no score, or one of another number of `codes`."""
    try:
        count = len(score["codes"])
        _require(isinstance(score["problem_id"], str), "problem_id", "be a string", score["problem_id"])
        _require(codes in (None, count), "a score", f"have {codes} codes, as many as its match", count)
        for code, row in zip(score["codes"], score["suites"], strict=True):
            _require_number(code["reward"])
            executes, refused, denied = code["executes"], code.get("refused", ""), code.get("denied", [])
            _require(isinstance(executes, bool | None), "executes", "be true, false or null", executes)
            _require(isinstance(refused, str), "refused", "be a string", refused)
            are_notes = isinstance(denied, list) and all(isinstance(note, str) for note in denied)
            _require(are_notes, "denied", "be a list of strings", denied)
            replays = code.get("replays", [])
            are_known = isinstance(replays, list) and not set(replays) - _VERDICTS
            _require(are_known, "replays of a code", "be known verdicts", replays)
            for suite in row:
                _require_suite(suite, count)
        for name in ("question", "entry_point", "reference_solution"):
            _require(isinstance(score.get(name), str | None), name, "be a string", score.get(name))
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
        _require(set(suite["terms"]) == _TERMS, "terms", f"be {sorted(_TERMS)}", sorted(suite["terms"]))
        for name, value in suite["terms"].items():
            _require_number(value, or_truth=True)
            _require(value is not None or name in MAY_LACK, f"the term {name}", "be a number", value)
        reward, size = suite["reward"], suite["terms"]["suite_size"]
        must = "have a reward, and a suite_size, a whole number of at least 1"
        is_sized = reward is not None and type(size) is int and size >= 1
        _require(is_sized, "a suite with terms", must, (reward, size))
    for test in suite["tests"]:
        for name in _TEST_TEXTS:
            _require(isinstance(test.get(name), str | None), f"{name} of a test", "be a string or null", test.get(name))
        came_to = test["status"], test["verdict"]
        is_known = came_to[0] in _STATUSES and came_to[1] in _VERDICTS
        _require(is_known, "status and verdict of a test", "be known ones", came_to)
        _require_number(test.get("pay"))
        verdicts = test.get("verdicts", [None] * codes)
        are_known = isinstance(verdicts, list) and len(verdicts) == codes and not set(verdicts) - _VERDICTS
        _require(are_known, "verdicts of a test", f"be {codes} known ones", verdicts)
    for reason, count in suite.get("ignored", {}).items():
        is_count = isinstance(reason, str) and type(count) is int
        _require(is_count, "ignored", "be counts by reason", suite["ignored"])
    for replay in suite["replays"]:
        is_case = isinstance(replay["call"], str) and isinstance(replay["expected"], str)
        _require(is_case, "a replay", "have a call and an expected value", replay)
        _require(replay["verdict"] in _VERDICTS, "the verdict of a replay", "be a known one", replay["verdict"])


_LARGEST = 1 << 53
"""Of whole numbers that the page can count with."""


def _require_number(value: object, *, or_truth: bool = False) -> None:
    is_large = isinstance(value, int) and abs(value) > _LARGEST
    is_right = value is None or (or_truth and isinstance(value, bool)) or (is_number(value) and not is_large)
    _require(is_right, "a reward or term", "be a number or null", value)


def _game(
    texts: tuple[str, str | None, str | None],
    origin: str,
    config: Mapping[str, Any] | None,
    replays: Sequence[tuple[str, str]],
    programs: Iterable[tuple[str | None, Mapping[str, Any], Sequence[Json]]],
) -> Json:
    """`texts`: id, question and reference. `replays`: call and expected value. `programs`: source, code and suites."""
    problem_id, question, reference = texts
    return {
        "id": cut(problem_id, MOST_ID),
        "from": origin,
        "question": cut(question or "", MOST_SOURCE),
        "reference": cut(reference, MOST_SOURCE),
        "config": config,
        "replays": [[cut(text, MOST_TEST) for text in case] for case in replays],
        "programs": [
            {
                "source": cut(source, MOST_SOURCE),
                "executes": code["executes"],
                "refused": cut(code.get("refused", ""), MOST_TEST),
                "denied": cut(", ".join(code.get("denied", ())), MOST_TEST),
                "reward": code["reward"],
                "replays": code.get("replays", []),
                "suites": suites,
            }
            for source, code, suites in programs
        ],
    }


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


def _unjudged(response: str, reward: float | None, recorded: RecordedMatch) -> Json:
    """A suite of which the recording has the text and the reward, no more."""
    suite = read_suite(response, recorded.match.problem.entry_point, fidelity=recorded.config.fidelity)
    rows = [
        [cut(test.source, MOST_TEST), UNKNOWN, test.reason, cut(test.call, MOST_TEST), cut(test.claim, MOST_TEST),
         None, None, None, None, None]
        for test in suite.tests
    ]  # fmt: skip
    ignored = {str(reason): count for reason, count in suite.unread}
    return {"reward": reward, "terms": None, "error": "", "replays": [], "ignored": ignored, "tests": rows}
