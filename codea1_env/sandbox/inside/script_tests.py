"""A test script in the candidate's own process: what each of its tests comes to.

unittest's classes and, where a script has none, functions and classes named as pytest names them; pytest runs those
where it can be imported. A script without tests is one test, `script`: it runs to its end or it does not. Tests that
the program itself brings along are none of the script's.

Does not promise anything: program and tests share one process, so that a program may forge every outcome. That is what
`unsealed` means. What is cheap is done: outcomes are collected in objects that no module holds a name of, and the
trusted side counts the tests itself (`judging/scripts.py`).
"""

import contextlib
import inspect
import io
import signal
import sys
import types
import unittest
from collections.abc import Callable, Iterator
from typing import Any

PASSED, FAILED, SKIPPED, TIMEOUT, NOT_RUN = "passed", "failed", "skipped", "timeout", "not run"
_DETAIL = 200
"""Characters of what is said about a test that failed."""

Row = list[str]
"""Name of a test, its outcome, and why."""


class _OutOfTime(BaseException):
    """Raised in a test when the script's time is over."""


def run_script(namespace: dict[str, Any], name: str, script: str, seconds: float) -> list[Row]:
    """Execute the script in a program's `namespace`, the module `name`, and run its tests for so many CPU seconds."""
    rows: list[Row] = []
    programs = dict(namespace)
    with _clock(seconds):
        try:
            exec(compile(script, f"<{name}>", "exec", dont_inherit=True), namespace)
            found = {key: value for key, value in namespace.items() if programs.get(key, rows) is not value}
            for tests in (_unittests, _pytests, _functions):
                if tests(found, name, script, rows):
                    return rows
            rows.append(["script", PASSED, ""])
        except BaseException as error:  # SystemExit, too, as a test's may be
            rows.append(["script", *_came_to(error)])
    return rows


@contextlib.contextmanager
def _clock(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: types.FrameType | None) -> None:
        raise _OutOfTime

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _came_to(error: BaseException) -> tuple[str, str]:
    if isinstance(error, _OutOfTime):
        return TIMEOUT, ""
    return FAILED, f"{type(error).__name__}: {error}"[:_DETAIL]


def _unittests(namespace: dict[str, Any], name: str, script: str, rows: list[Row]) -> bool:
    cases = [
        value
        for value in dict.fromkeys(value for value in namespace.values() if isinstance(value, type))
        if issubclass(value, unittest.TestCase) and value.__module__ == name
    ]
    loader = unittest.TestLoader()
    suites = [loader.loadTestsFromTestCase(case) for case in cases]
    if not any(suite.countTestCases() for suite in suites):
        return False
    result = _Collected(name, rows)
    for suite in suites:
        asked = [_name(test, name) for test in suite]
        if not result.shouldStop:
            suite.run(result)
        told = {row[0] for row in rows}
        why = next((row[2] for row in rows if row[0].startswith("setUp")), "")
        rows += [[test, NOT_RUN, why] for test in asked if test not in told]
    return True


def _name(test: Any, module: str) -> str:
    return str(test.id()).removeprefix(f"{module}.")


class _Collected(unittest.TestResult):
    """A row for each test; the worst of its subtests counts."""

    def __init__(self, module: str, rows: list[Row]) -> None:
        super().__init__()
        self._module, self._rows = module, rows

    def _add(self, test: Any, outcome: str, why: str = "") -> None:
        name = _name(test, self._module)
        if outcome != PASSED:  # a failed subtest, and a failed tearDown, come beside or before what the test came to
            self._rows[:] = [row for row in self._rows if row[0] != name]
        elif any(row[0] == name for row in self._rows):
            return
        self._rows.append([name, outcome, why])

    def addError(self, test: Any, err: Any) -> None:
        outcome, why = _came_to(err[1])
        self._add(test, outcome, why)
        if outcome == TIMEOUT:
            self.stop()

    addFailure = addError

    def addSuccess(self, test: Any, err: Any = None) -> None:
        self._add(test, PASSED)

    addExpectedFailure = addSuccess

    def addSkip(self, test: Any, reason: str) -> None:
        self._add(test, SKIPPED, str(reason)[:_DETAIL])

    def addUnexpectedSuccess(self, test: Any) -> None:
        self._add(test, FAILED, "it was expected to fail")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self.addError(test, err)


def _pytests(namespace: dict[str, Any], name: str, script: str, rows: list[Row]) -> bool:
    """Whether pytest is there and found tests. It collects from the module as it stands, without a file."""
    if not _test_functions(namespace) and not _test_classes(namespace, name):
        return False
    try:
        import pytest
    except ImportError:
        return False
    module = sys.modules[name]

    class _Module(pytest.Module):
        def _getobj(self) -> types.ModuleType:
            return module

    class _Plugin:
        def pytest_pycollect_makemodule(self, module_path: Any, parent: Any) -> Any:
            return _Module.from_parent(parent, path=module_path)

        def pytest_pycollect_makeitem(self, collector: Any, name: str, obj: Any) -> Any:
            return [] if isinstance(collector, _Module) and name not in namespace else None

        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.when == "call" or report.outcome != PASSED:
                test = report.nodeid.partition("::")[2].replace("::", ".")
                rows[:] = [row for row in rows if row[0] != test]
                why = "" if report.outcome == PASSED else str(getattr(report.longrepr, "reprcrash", report.longrepr))
                rows.append([test, report.outcome, why[:_DETAIL]])

    file = "test_script.py"
    with open(file, "w") as written:
        written.write(script)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--rootdir=.", file], [_Plugin()])
    return bool(rows)


def _test_functions(namespace: dict[str, Any]) -> dict[str, Callable[..., object]]:
    return {name: value for name, value in namespace.items() if name.startswith("test") and inspect.isfunction(value)}


def _test_classes(namespace: dict[str, Any], name: str) -> dict[str, type]:
    return {
        key: value
        for key, value in namespace.items()
        if key.startswith("Test") and isinstance(value, type) and value.__module__ == name
    }


def _functions(namespace: dict[str, Any], name: str, script: str, rows: list[Row]) -> bool:
    """Without pytest: functions that want no argument, one after another; methods of a new object each."""
    found = _test_functions(namespace)
    for kind, value in _test_classes(namespace, name).items():
        found |= {f"{kind}.{key}": _method(value, key) for key in vars(value) if key.startswith("test")}
    for test, function in found.items():
        if any(row[1] == TIMEOUT for row in rows):
            rows.append([test, NOT_RUN, ""])
            continue
        try:
            made = function()
            waits = inspect.isgenerator(made) or inspect.iscoroutine(made) or inspect.isasyncgen(made)
            rows.append([test, FAILED, "a call runs nothing of it"] if waits else [test, PASSED, ""])
        except BaseException as error:
            rows.append([test, *_came_to(error)])
    return bool(found)


def _method(kind: type, name: str) -> Callable[[], object]:
    return lambda: getattr(kind(), name)()
