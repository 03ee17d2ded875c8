"""Ways of grading that many projects have, in a few lines each: semantics.py NAME. Written from what they do, not
from their code.

`asserts`: program and asserts executed in the grader's own process. `script`: in one file, the exit code decides.
`pytest`: a test file beside the program, pytest's exit code. `unittest`: its summary on standard error. `marker`: a
word on standard output. `values`: the program's values are printed by a driver and compared as text. `pool`: a pool of
worker processes that execute program and test, as in self-play that proposes its own tasks. `released`: a test at a
time, program, call and value in one namespace, a mark on standard output.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile

from lines import as_unittest, cases_of, serve

MARK = "__PASS__"


def with_tests(request):
    return request["program"], request["tests"], request["entry_point"], request["time_limit_s"]


def with_cases(request):
    return request["program"], cases_of(request), request["entry_point"], request["time_limit_s"]


def run(files, words, time_limit_s, stdin=""):
    """What a process in a directory of its own with `files` came to; None after the time."""
    seconds = time_limit_s + 3  # an interpreter starts on a machine that may be busy
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        try:
            return subprocess.run(
                [sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=seconds, input=stdin
            )
        except (subprocess.TimeoutExpired, UnicodeDecodeError):
            return None


def asserts(program, tests, entry_point, time_limit_s):
    return execute("\n".join([program, *tests]))


def execute(text):
    try:
        exec(text, {})
    except Exception:
        return False
    return True


def script(program, tests, entry_point, time_limit_s):
    done = run({"run.py": "\n".join([program, *tests])}, ["run.py"], time_limit_s)
    return done is not None and done.returncode == 0


def pytest(program, tests, entry_point, time_limit_s):
    functions = "".join(f"def test_{n}():\n    {test}\n" for n, test in enumerate(tests))
    files = {"solution.py": program, "test_solution.py": f"from solution import *\n{functions}"}
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_solution.py"]
    done = run(files, words, time_limit_s + 1)  # which takes longer to start
    return done is not None and done.returncode == 0


def unittest(program, tests, entry_point, time_limit_s):
    test_file = f"from solution import {entry_point}\n{as_unittest(tests)}"
    files = {"solution.py": program, "test_solution.py": test_file}
    done = run(files, ["-m", "unittest"], time_limit_s)
    return done is not None and done.stderr.strip().endswith("OK")


def marker(program, tests, entry_point, time_limit_s):
    text = "\n".join([program, *tests, "print('All tests passed')"])
    done = run({"run.py": text}, ["run.py"], time_limit_s)
    return done is not None and "All tests passed" in done.stdout


def values(program, cases, entry_point, time_limit_s):
    driver = (
        "import json, sys\nfrom solution import *\n"
        f"for arguments in json.load(sys.stdin):\n    print(json.dumps({entry_point}(*arguments)))\n"
    )
    given = json.dumps([case["arguments"] for case in cases])
    done = run({"solution.py": program, "driver.py": driver}, ["driver.py"], time_limit_s, given)
    wanted = [json.dumps(case["expected"]) for case in cases]
    return done is not None and done.stdout.split("\n")[:-1] == wanted


class Pool:
    """Its workers are spawned: a fork would show them the frames of the first request."""

    workers = None

    def __call__(self, program, tests, entry_point, time_limit_s):
        if Pool.workers is None:
            Pool.workers = multiprocessing.get_context("spawn").Pool(1)
            Pool.workers.apply(execute, ("",))  # it has begun, which the limit does not count
        waiting = Pool.workers.apply_async(execute, ("\n".join([program, *tests]),))
        try:
            return waiting.get(time_limit_s + 1)
        except multiprocessing.TimeoutError:
            Pool.workers.terminate()
            Pool.workers = None
            return False


def released(program, cases, entry_point, time_limit_s):
    passed = []
    for case in cases:
        call = f"{entry_point}({', '.join(map(repr, case['arguments']))})"
        text = (
            "import json, sys\ngiven = json.loads(sys.stdin.read())\nexpected = eval(given['value'])\n"
            f"exec(given['program'])\nif eval(given['call']) == expected:\n    print({MARK!r})\n"
        )
        given = json.dumps({"program": program, "call": call, "value": repr(case["expected"])})
        done = run({"run.py": text}, ["run.py"], time_limit_s, given)
        passed.append(done is not None and MARK in done.stdout)
    return all(passed)


BY_TESTS = {
    "asserts": asserts,
    "script": script,
    "pytest": pytest,
    "unittest": unittest,
    "marker": marker,
    "pool": Pool(),
}
BY_CASES = {"values": values, "released": released}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=[*BY_CASES, *BY_TESTS])
    name = parser.parse_args().name
    if name in BY_CASES:
        serve(with_cases, BY_CASES[name])
    else:
        serve(with_tests, BY_TESTS[name])
