"""What clients ask, read from JSON that nobody vouches for.

    score    a line of `codea1 score`: a question, programs, suites
    verify   a program or a model's answer, and tests: those of a problem that the server knows, or the request's own

Raises FormatError (must, got) for everything else. Does not run anything.
"""

from __future__ import annotations

import builtins
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codea1_env.adapters.client_bodies import is_writable
from codea1_env.checks import is_number, require
from codea1_env.errors import FormatError
from codea1_env.problems.check_functions import extract, reasons
from codea1_env.problems.problem import Problem
from codea1_env.problems.sources.draft import called_names
from codea1_env.reading.messages import answer_text
from codea1_env.reading.test_case import TestCase

_KEYS = frozenset((
    "program", "response", "problem_id", "tests", "which", "entry_point", "kind", "time_limit_s", "memory_mb",
    "tolerance", "checker",
))  # fmt: skip
_OWN = ("time_limit_s", "memory_mb", "tolerance", "checker", "kind")
"""What a request may say of a problem of its own."""
WHICH = ("golden", "hidden", "all")


@dataclass(frozen=True, slots=True)
class Verify:
    """A program to be run on tests."""

    problem: Problem
    response: str
    tests: tuple[TestCase, ...]
    left_out: Mapping[str, int]
    """Of the request's own tests, how many cannot be read, by reason."""


def read_verify(given: object, problems: Mapping[str, Problem], most_seconds: float) -> Verify:
    """One request. `problems`: those that the server knows; `most_seconds`: the longest time limit that it grants."""
    _require(isinstance(given, Mapping), "a request", "be an object", given)
    assert isinstance(given, Mapping)
    unknown = sorted(set(map(str, given)) - _KEYS)
    _require(not unknown, "the fields", f"be among {', '.join(sorted(_KEYS))}", ", ".join(unknown))
    answers = [name for name in ("program", "response") if given.get(name) is not None]
    _require(len(answers) == 1, "a request", "have a program or a response, and not both", answers or "neither")
    if answers == ["program"]:
        response = given["program"]
        _require(isinstance(response, str), "program", "be a text", response)
        response = f"```python\n{response}\n```" if "```" not in response else response
    else:
        response = answer_text(given["response"], "response", FormatError)
    if given.get("problem_id") is not None:
        return _known(given, problems, response)
    return _own(given, response, most_seconds)


def _known(given: Mapping[str, Any], problems: Mapping[str, Problem], response: str) -> Verify:
    beside = [name for name in (*_OWN, "tests", "entry_point") if given.get(name) is not None]
    _require(not beside, "problem_id", "come without " + " and ".join(beside), given["problem_id"])
    name = given["problem_id"]
    _require(isinstance(name, str) and name in problems, "problem_id", "name one in the server's --problems", name)
    problem, which = problems[name], "all" if given.get("which") is None else given["which"]
    _require(which in WHICH, "which", f"be one of {', '.join(WHICH)}", which)
    golden = problem.golden_tests if which != "hidden" else ()
    hidden = problem.hidden_tests if which != "golden" else ()
    _require(bool(golden or hidden), "problem_id", f"name a problem with such tests ({which})", name)
    return Verify(problem, response, (*golden, *hidden), {})


def _own(given: Mapping[str, Any], response: str, most_seconds: float) -> Verify:
    tests: Any = given.get("tests")
    _require(tests is not None, "a request", "have a problem_id or tests", "neither")
    _require(given.get("which") is None, "which", "come with a problem_id", given.get("which"))
    said = {name: given[name] for name in _OWN if given.get(name) is not None}
    if isinstance(tests, Mapping):
        return _stdio(tests, given, said, response, most_seconds)
    entry_point = given.get("entry_point")
    _require(entry_point is None or isinstance(entry_point, str), "entry_point", "be a text", entry_point)
    pairs = isinstance(tests, list) and bool(tests) and all(isinstance(each, list) for each in tests)
    if pairs:
        are_texts = all(len(each) == 2 and all(isinstance(text, str) for text in each) for each in tests)
        _require(are_texts, "tests", "be pairs of texts [call, value]", tests)
        cases = tuple(TestCase(*each) for each in tests)
        name = entry_point or _called([case.call for case in cases])
        return Verify(_problem(name, said, most_seconds), response, cases, {})
    is_script = isinstance(tests, str) or (isinstance(tests, list) and all(isinstance(each, str) for each in tests))
    _require(is_script and bool(tests), "tests", "be a script of asserts, a list of them, or pairs", tests)
    scripts: list[str] = [tests] if isinstance(tests, str) else [str(each) for each in tests or ()]
    name = entry_point or _called(scripts)
    found = extract("\n".join(scripts), name)
    left_out = reasons(found.left_out)
    _require(bool(found.tests), "tests", f"state what a call of {name} returns", left_out or "no assert")
    problem = _problem(name, {"tolerance": found.tolerance} | said, most_seconds)
    return Verify(problem, response, tuple(found.tests), left_out)


def _stdio(
    tests: Mapping[str, Any], given: Mapping[str, Any], said: dict[str, Any], response: str, most_seconds: float
) -> Verify:
    """Inputs and outputs of a whole program."""
    inputs, outputs = tests.get("inputs"), tests.get("outputs")
    are_lists = isinstance(inputs, list) and isinstance(outputs, list) and len(inputs) == len(outputs) > 0
    are_texts = are_lists and all(isinstance(text, str) for text in [*inputs, *outputs])  # type: ignore[misc]
    are_known = are_texts and set(tests) == {"inputs", "outputs"} and all(map(is_writable, inputs or ()))
    _require(are_known, "tests", "be {inputs, outputs}, equally many texts in UTF-8", tests)
    name = given.get("entry_point") or "main"
    _require(isinstance(name, str), "entry_point", "be a text", name)
    assert isinstance(inputs, list)
    assert isinstance(outputs, list)
    cases = tuple(TestCase(f"{name}({text!r})", repr(out)) for text, out in zip(inputs, outputs, strict=True))
    return Verify(_problem(name, {"kind": "program"} | said, most_seconds), response, cases, {})


def _called(scripts: list[str]) -> str:
    """The function that most tests call."""
    names = called_names([line for script in scripts for line in script.splitlines()])
    counts = Counter(name for name in names if not hasattr(builtins, name))
    _require(bool(counts), "tests", "call the function that is tested, or name it as entry_point", scripts)
    return max(counts, key=counts.__getitem__)


def _problem(entry_point: str, said: Mapping[str, Any], most_seconds: float) -> Problem:
    """A problem that holds for one request. Its id says what it is: two requests that ask the same share what is
    remembered."""
    seconds = said.get("time_limit_s", min(1.0, most_seconds))
    granted = is_number(seconds) and 0 < seconds <= most_seconds
    _require(granted, "time_limit_s", f"be in (0, {most_seconds:g}] s", seconds)
    known = json.dumps([entry_point, dict(sorted(said.items()))], sort_keys=True, default=str)
    problem_id = f"request-{hashlib.sha256(known.encode()).hexdigest()[:12]}"
    whole = {"problem_id": problem_id, "question": "", "entry_point": entry_point, **said, "time_limit_s": seconds}
    return Problem.from_dict(whole)


def require_within(problem: Problem, most_seconds: float) -> None:
    """Raise FormatError where a problem wants more time than the server grants."""
    granted = problem.time_limit is None and problem.time_limit_s <= most_seconds
    got = problem.time_limit_s if problem.time_limit is None else problem.time_limit.plain
    _require(granted, "time_limit_s", f"be in (0, {most_seconds:g}] s", got)


def _require(holds: bool, name: str, must: str, got: object) -> None:
    require(holds, name, must, got if isinstance(got, str) else json.dumps(got, default=str)[:200], FormatError)
