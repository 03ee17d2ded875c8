"""Runs in an interpreter of its own, plain Python: nothing of the package is imported here.

Reads jobs as JSON from the standard input, writes `pass` or what went wrong for each. A program that is tested by
asserts or by pytest runs in a fork of this process, a script in an interpreter of its own.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import traceback
import types
from pathlib import Path

import pytest

os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
TIME_LIMIT_S = 60
_ALONE = ["-q", "-c", os.devnull, "-p", "no:cacheprovider", "--rootdir", ".", "--confcutdir", "."]
"""Options of pytest, which collects every directory above the suite unless it is cut there: all that lies in /tmp."""
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")


def outcome(job: dict) -> str:
    """What came of one job: {program, imports, tests, entry_point, kind, nodes, runs}."""
    with tempfile.TemporaryDirectory() as place:
        if job["runs"]:
            return _script(job, Path(place))
        return _forked(job, Path(place))


def _script(job: dict, place: Path) -> str:
    path = place / "program.py"
    path.write_bytes((job["imports"] + job["program"]).encode())
    for given, printed in job["runs"]:
        try:
            done = subprocess.run(
                [sys.executable, str(path)], input=given.encode(), capture_output=True, cwd=place, timeout=TIME_LIMIT_S
            )
        except subprocess.TimeoutExpired:
            return "timeout"
        if done.returncode:
            return f"exit code {done.returncode}: {done.stderr.decode()[-200:]}"
        if not _are_same(done.stdout.decode().split(), printed.split()):
            return f"fail: {done.stdout.decode()[:80]!r}"
    return "pass"


def _are_same(printed: list[str], right: list[str]) -> bool:
    """Token by token; numbers with a point within 1e-6, as the judges of contests have it."""
    if len(printed) != len(right):
        return False
    for one, other in zip(printed, right, strict=True):
        is_float = all(map(_NUMBER.fullmatch, (one, other))) and "." in one + other
        if one != other and not (is_float and math.isclose(float(one), float(other), rel_tol=1e-6, abs_tol=1e-6)):
            return False
    return True


def _forked(job: dict, place: Path) -> str:
    said = place / "said"
    child = os.fork()
    if not child:
        try:
            signal.alarm(TIME_LIMIT_S)
            (place / "work").mkdir()
            os.chdir(place / "work")
            silent = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(silent, descriptor)
            said.write_text(_tested(job))
        except BaseException:
            said.write_text("error: " + traceback.format_exc(limit=-1)[-300:])
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return said.read_text() if said.exists() else "crash"


def _tested(job: dict) -> str:
    tests = job["tests"]
    if re.search(r"^\s*(?:def test|class \w*Test)", tests, re.MULTILINE):
        Path("solution.py").write_bytes((job["imports"] + job["program"]).encode())
        head = "" if "solution" in tests else "from solution import *\n"
        Path("test_suite.py").write_text(head + tests)
        sys.path.insert(0, os.getcwd())
        code = pytest.main([*_ALONE, "test_suite.py"])
        return "pass" if code == 0 else f"fail: pytest ends with {code}"
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    try:
        exec(compile(job["imports"], "imports.py", "exec", dont_inherit=True), module.__dict__)
        exec(compile(job["program"].encode(), "solution.py", "exec", dont_inherit=True), module.__dict__)
    except BaseException as error:
        return f"does not load: {type(error).__name__}: {error}"
    space = {**vars(module), "__name__": "tests"}
    space.setdefault("pytest", pytest)
    _adapt(job, space)
    try:
        exec(compile(tests, "tests.py", "exec", dont_inherit=True), space)
    except AssertionError as error:
        line = traceback.extract_tb(error.__traceback__)[-1].lineno
        return f"fail: {tests.splitlines()[(line or 1) - 1][:80]}"
    return "pass"


def _adapt(job: dict, space: dict) -> None:
    """What stands between a test and a program that is not called as it is."""
    name = job["entry_point"]
    if job["kind"] == "class":
        space[name] = _sequence_of(space[name])
    elif job["kind"] == "generator":
        made = space[name]
        space[name] = lambda *given, **named: list(made(*given, **named))
    elif job["kind"] == "coroutine":
        started = space[name]
        space[name] = lambda *given, **named: asyncio.run(started(*given, **named))
    elif job["nodes"]:
        method = name.partition(".")[2]
        space["Solution"] = _of_nodes(space["Solution"], method, space, job["nodes"])


def _sequence_of(owner):
    def play(names, arguments):
        made = owner(*arguments[0])
        return [None, *(getattr(made, name)(*given) for name, given in zip(names[1:], arguments[1:], strict=True))]

    return play


def _of_nodes(owner, method, space, nodes):
    returns = str(getattr(owner, method).__annotations__.get("return", ""))

    def made(value):
        if not isinstance(value, list):
            return value
        if nodes == "ListNode":
            head = None
            for item in reversed(value):
                head = space["ListNode"](item, head)
            return head
        items = iter(value)
        first = next(items, None)
        if first is None:
            return None
        root = space["TreeNode"](first)
        waiting = [root]
        for parent in waiting:
            for side in ("left", "right"):
                item = next(items, None)
                if item is not None:
                    child = space["TreeNode"](item)
                    setattr(parent, side, child)
                    waiting.append(child)
        return root

    def plain(value):
        if nodes not in returns:
            return value
        found = []
        if nodes == "ListNode":
            while value:
                found.append(value.val)
                value = value.next
            return found
        level = [value]
        for node in level:
            found.append(node and node.val)
            level += [node.left, node.right] if node else []
        while found and found[-1] is None:
            found.pop()
        return found

    called = staticmethod(lambda *given: plain(getattr(owner(), method)(*map(made, given))))
    return type("Solution", (), {method: called})


if __name__ == "__main__":
    jobs = json.load(sys.stdin)
    # Once, and not in every fork; nor does a fork look for garbage among all that.
    for package in sorted({name for job in jobs for name in job["packages"]}):
        importlib.import_module(package)
    gc.freeze()
    results = [outcome(job) for job in jobs]
    sys.stdout.write(json.dumps(results))
