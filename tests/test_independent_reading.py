"""Strict rewards, worked out a second time without the library, on programs and asserts that a model really wrote.

The second reading has a parser of its own (whole suites only, literals only), runs each program in a plain process, and
has the formulas written out. The asserts of a question are drawn anew into suites, with repetitions. What it does not
read (`_Unread`), and programs that take long, are left out on both sides.
"""

from __future__ import annotations

import ast
import functools
import gzip
import itertools
import json
import math
import random
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.problems.problem import Problem
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox import LocalSandbox

RECORDED = Path(__file__).resolve().parents[2] / "shared" / "data" / "recorded-humaneval-codegen16b.jsonl.gz"
K, QUESTIONS, PROGRAMS, SUITES = 8, 6, 6, 3
# Runs the calls of a program in order, each at most a second, and prints what each came to: [true, value] or [false].
RUNNER = """
import ast, json, resource, signal, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
asked = json.loads(sys.stdin.read())
out, sys.stdout = sys.stdout, open("/dev/null", "w")
class Late(BaseException): pass
def late(*_): raise Late
signal.signal(signal.SIGALRM, late)
space = {"__name__": "solution"}
found = None
try:
    signal.alarm(2)
    exec(compile(asked["source"], "program", "exec"), space)
    function = space[asked["name"]]
    found = []
    for text in asked["calls"]:
        positional, named = ast.literal_eval(text)
        try:
            signal.alarm(1)
            value = function(*positional, **named)
            signal.alarm(0)
            written = repr(value)
            found.append([True, written] if ast.literal_eval(written) == value else [False])
        except Exception:
            found.append([False])
except Late:
    found = "late"
except BaseException:
    pass
signal.alarm(0)
out.write(json.dumps(found))
"""


class _Unread(Exception):
    """The second reading does not go that far."""


def _asserts(responses: list[str], name: str) -> list[str]:
    """The lines that are asserts by themselves: any of them make up a suite that parses as a whole."""
    lines = []
    for line in "\n".join(responses).split("\n"):
        text = " ".join(line.split("\t")).strip()
        if not text.startswith("assert"):
            continue
        try:
            body = ast.parse(text).body
        except (SyntaxError, ValueError):
            continue
        if len(body) != 1 or not isinstance(body[0], ast.Assert):
            continue
        try:
            _read(text, name)
        except _Unread:
            continue
        lines.append(text)
    return lines


def _read(line: str, name: str) -> tuple[str, Any] | None:
    """The call's arguments as text and the stated value; None for an assert that is no test."""
    statement = ast.parse(line).body[0]
    assert isinstance(statement, ast.Assert)
    test = statement.test
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    sides = [test.left, test.comparators[0]]
    calls = [isinstance(side, ast.Call) and isinstance(side.func, ast.Name) and side.func.id == name for side in sides]
    if calls.count(True) != 1:
        return None
    call, value = sides if calls[0] else reversed(sides)
    assert isinstance(call, ast.Call)
    is_singleton = isinstance(sides[1], ast.Constant) and sides[1].value in (None, True, False)
    if not (isinstance(test.ops[0], ast.Eq) or (isinstance(test.ops[0], ast.Is) and calls[0] and is_singleton)):
        return None
    if any(isinstance(node, ast.Constant) and isinstance(node.value, float) for node in ast.walk(test)):
        raise _Unread(line)
    names = [node for node in ast.walk(test) if isinstance(node, ast.Name) and node is not call.func]
    if names:
        raise _Unread(line)
    try:
        positional = [ast.literal_eval(argument) for argument in call.args]
        named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
        return repr((positional, named)), ast.literal_eval(value)
    except ValueError as error:
        raise _Unread(line) from error


def _run(source: str, name: str, calls: list[str]) -> Any:
    """Per call [True, text of the value] or [False]; None for a program that does not execute."""
    asked = json.dumps({"source": source, "name": name, "calls": calls})
    done = subprocess.run(
        [sys.executable, "-I", "-c", RUNNER], input=asked, capture_output=True, text=True, timeout=60, check=False
    )
    if not done.stdout:
        raise _Unread("it died")
    found = json.loads(done.stdout)
    if found == "late":
        raise _Unread("it is slow")
    return found


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        raise _Unread("whether floats are equal is another test's")
    if isinstance(one, list | tuple) and type(one) is type(other) and len(one) == len(other):
        return all(_equal(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)


def _expected(problem: Problem, program: str, suite: list[str]) -> tuple[bool, int, int, int, float]:
    """executes, v, invalid, passed and R_T of one suite against one program, without replay."""
    name = problem.entry_point
    read = [_read(line, name) for line in suite[:K]]
    calls = list(dict.fromkeys(test[0] for test in read if test))
    right = dict(zip(calls, _run(str(problem.reference_solution), name, calls), strict=True))
    answers = _run(program, name, calls)
    got = dict(zip(calls, answers, strict=True)) if answers is not None else {}
    seen: set[str] = set()
    v = invalid = passed = failed = 0
    for test in read:
        if test is None or test[0] in seen or not right[test[0]][0]:
            invalid += 1
            seen |= {test[0]} if test else set()
            continue
        call, stated = test
        seen.add(call)
        truth = ast.literal_eval(right[call][1])
        v += 1
        invalid += not _equal(truth, stated)
        passes = call in got and got[call][0] and _equal(truth, ast.literal_eval(got[call][1]))
        passed, failed = passed + passes, failed + (not passes)
    validity = max(0.0, min(v / K, 1 - invalid / K, 1.0))
    reward = (validity + failed / K) / 2 if answers is not None else 0.0
    return answers is not None, v, invalid, passed, reward


@functools.cache
def _sample() -> list[tuple[dict[str, Any], list[str]]]:
    """Questions, each with the asserts that the model wrote about it."""
    with gzip.open(RECORDED, "rt") as lines, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a model writes is full of invalid escapes
        records = [json.loads(line) for line in lines]
        random.Random("independent reading").shuffle(records)
        pools = ((record, _asserts(record["suites"], record["entry_point"])) for record in records)
        return list(itertools.islice(((record, pool) for record, pool in pools if len(pool) >= 2 * K), QUESTIONS))


@pytest.mark.skipif(not RECORDED.exists(), reason=f"the recorded outputs are not at {RECORDED}")
@pytest.mark.parametrize("question", range(QUESTIONS))
def test_a_second_reading_of_the_strict_rules_pays_the_same(question: int) -> None:
    record, pool = _sample()[question]
    name = record["entry_point"]
    problem = Problem(record["task_id"], record["question"], name, record["reference_solution"], time_limit_s=2.0)
    chance = random.Random(record["task_id"])
    suites = [chance.choices(pool, k=chance.randint(1, K + 2)) for _ in range(SUITES)]
    codes = chance.sample(record["codes"], PROGRAMS)
    match = Match(problem, tuple(codes), tuple(tuple("\n".join(lines) for lines in suites) for _ in codes))
    with LocalSandbox() as sandbox:
        (score,) = Arena(sandbox, RewardConfig(), MistakeBook()).play([match])
    compared = 0
    for code, row in zip(score.codes, score.suites, strict=True):
        for lines, suite in zip(suites, row, strict=True):
            try:
                expected = _expected(problem, code.program, lines)
            except _Unread:
                continue
            assert suite.terms is not None
            found = (code.executes, suite.terms.v, suite.terms.invalid, suite.terms.passed)
            assert found == expected[:4], lines
            assert math.isclose(suite.reward or 0.0, expected[4], abs_tol=1e-12)
            compared += 1
    assert compared, "a question of which nothing is compared proves nothing"
