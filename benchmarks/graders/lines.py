"""What the graders here share: lines in, lines out, and nothing that a program prints gets in between.

Right values reach a program only by what the grader itself is handed: one that runs programs in its own process, or in
a fork of it, shows them all frames above, so no frame here keeps a request. Stands alone: each grader runs in an
environment of its own, without codea1.
"""

import json
import os
import sys


class NotGraded(Exception):
    """The grader does not grade such a request."""


def serve(handed, passes):
    """Answer every line of standard input with what `passes(*handed(request))` says.

    `handed` turns a request into what the grader's interface takes and returns before that is called, or raises
    NotGraded; `passes` calls the interface.
    """
    answers, questions = os.dup2(1, 250), os.fdopen(os.dup2(0, 251), "rb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.set_inheritable(250, False)
    os.set_inheritable(251, False)
    started = os.getpid()
    while questions.peek(1):
        try:
            answer = {"passed": passes(*handed(json.loads(questions.readline())))}
        except NotGraded:
            answer = {"passed": None}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
            print(answer["error"], file=sys.stderr)
        if os.getpid() != started:  # a program's fork has come back here: it does not answer for the grader
            os._exit(0)
        os.write(answers, json.dumps(answer).encode() + b"\n")


def cases_of(request):
    """The tests as data. Raises NotGraded where a test is dishonest, and no data."""
    if not request["cases"]:
        raise NotGraded
    return request["cases"]


def by_lines(request):
    """The tests as LiveCodeBench and APPS have them, call-based: an input is its arguments, a line of JSON each."""
    cases = cases_of(request)
    return {
        "inputs": ["\n".join(json.dumps(each) for each in case["arguments"]) for case in cases],
        "outputs": [json.dumps(case["expected"]) for case in cases],
        "fn_name": request["entry_point"],
    }


def as_unittest(tests):
    """A script with a class of unittest, of which each test is a method."""
    methods = "".join(f"    def test_{n}(self):\n        {test}\n" for n, test in enumerate(tests))
    return f"import unittest\nclass TestCases(unittest.TestCase):\n{methods}"


def all_true(results, count):
    """Whether a list of results has `count` of them and each is True."""
    return len(results) == count and all(each is True for each in results)
