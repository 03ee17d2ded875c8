"""The local sandbox by its protocol: what is charged to which call, what outlives what, and what a program can see.

With all layers that this machine has; `make test-attacks` runs it again with namespaces switched off.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import platform
import resource
import signal
import struct
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from codea1_env.errors import ConfigurationError, SandboxError, SandboxUnsafe
from codea1_env.judging.scripts import script_job
from codea1_env.problems.kinds import program_job
from codea1_env.sandbox import (
    CallsJob,
    ExpressionsJob,
    JobResult,
    Limits,
    LocalSandbox,
    Outcome,
    OutcomeKind,
    open_sandbox,
    zygotes,
)
from codea1_env.sandbox.scheduling import Scheduling
from codea1_env.sandbox.scratch import Scratch
from codea1_env.sandbox.worlds import World
from codea1_env.sandbox.zygotes import JOB_BYTES, REGION_BYTES, hidden_directories

sys.path.insert(0, os.path.dirname(zygotes.__file__) + "/inside")
import syscalls

sys.path.pop(0)

SHORT = Limits(time_limit_s=0.3, budget_s=3.0, memory_mb=256)
MODES = ((), pytest.param(("namespaces",), marks=pytest.mark.slow))
IDENTITY = "def f(x):\n    return x\n"


@pytest.fixture(scope="module", params=MODES, ids=["namespaces", "no_namespaces"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[LocalSandbox]:
    with LocalSandbox(without=request.param) as shared:
        yield shared


def call(*positional: object, **named: object) -> bytes:
    return json.dumps([positional, list(named.items())]).encode()


def run(sandbox: LocalSandbox, source: str, arguments: Sequence[object], limits: Limits = SHORT) -> JobResult:
    """One job that calls `f` with each argument."""
    (result,) = sandbox.run([CallsJob(source, "f", tuple(call(x) for x in arguments), limits, is_shared=True)])
    return result


def answers(sandbox: LocalSandbox, source: str, arguments: Sequence[object], limits: Limits = SHORT) -> list[object]:
    """The values that `f` returns, each a plain JSON one; any other outcome by its kind."""
    result = run(sandbox, source, arguments, limits)
    assert result.loaded, result.load_failure
    return [json.loads(o.value) if o.kind is OutcomeKind.VALUE else o.kind for o in result.outcomes]


def descendants() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


# Values and errors


def test_calls_take_positional_and_named_arguments_and_answer_in_order(sandbox: LocalSandbox) -> None:
    calls = (call(5), call(5, 6, 7, d=8), call(5, b=6))
    job = CallsJob("def f(a, b=1, *c, d=2):\n    return [a, b, *c, d]\n", "f", calls)
    (result,) = sandbox.run([job])
    assert result.load_failure is None
    assert [outcome.value for outcome in result.outcomes] == [b"[5,1,2]", b"[5,6,7,8]", b"[5,6,2]"]


def test_every_call_gets_arguments_of_its_own(sandbox: LocalSandbox) -> None:
    assert answers(sandbox, "def f(x):\n    x.append(1)\n    return x\n", [[0], [0]]) == [[0, 1], [0, 1]]


BASES = ["ValueError", "Exception", "BaseException"]
ODD_ERRORS = {
    "a text that raises": ("class E(ValueError):\n    def __str__(self):\n        raise E\n", ["E", *BASES], None),
    "a text of another kind": (
        "class E(ValueError):\n    def __str__(self):\n        return self\n",
        ["E", *BASES],
        None,
    ),
    "a long text": ("class E(ValueError):\n    def __str__(self):\n        return 'x' * 10**6\n", ["E", *BASES], None),
    "other classes": (
        "class M(type):\n    __mro__ = (ValueError, object)\nclass E(Exception, metaclass=M): pass\n",
        ["E", *BASES[1:]],
        "1",
    ),
    "names in turn": (
        "class M(type):\n    names = ['ValueError', 'E'] * 2\n    __name__ = property(lambda c: c.names.pop())\n"
        "class E(Exception, metaclass=M): pass\n",
        ["E", *BASES[1:]],
        "1",
    ),
    "a name of lines": ("E = type('A\\n[]', (ValueError,), {})\n", ["A\n[]", *BASES], "1"),
    "a long name": ("E = type(5000 * 'E', (ValueError,), {})\n", [64 * "E", *BASES], "1"),
    "a name of Python's own": ("class ValueError(Exception): pass\nE = ValueError\n", BASES[1:], "1"),
}


@pytest.mark.parametrize("name", ODD_ERRORS)
def test_an_exception_is_told_by_its_classes_and_a_short_text(name: str, sandbox: LocalSandbox) -> None:
    source, *told = ODD_ERRORS[name]
    (outcome,) = run(sandbox, source + "def f(x):\n    raise E(x)\n", [1]).outcomes
    assert outcome.kind is OutcomeKind.ERROR
    assert json.loads(outcome.value)["t"] == told
    assert "\n" not in outcome.error


def test_what_a_look_at_a_value_raises_is_not_told(sandbox: LocalSandbox) -> None:
    source = "class A:\n    def __str__(self):\n        raise SystemExit\ndef f(x):\n    return A()\n"
    assert run(sandbox, source, [1]).outcomes == (Outcome(OutcomeKind.ERROR, b"", "SystemExit"),)


def test_an_exception_is_the_outcome_of_its_call_alone(sandbox: LocalSandbox) -> None:
    result = run(sandbox, "def f(x):\n    return 1 // x\n", [1, 0, -1])
    kinds = b'["ZeroDivisionError","ArithmeticError","Exception","BaseException"]'
    said = b'{"t":[' + kinds + b',"integer division or modulo by zero"]}'
    assert result.outcomes == (
        Outcome(OutcomeKind.VALUE, b"1"),
        Outcome(OutcomeKind.ERROR, said, "ZeroDivisionError"),
        Outcome(OutcomeKind.VALUE, b"-1"),
    )


def test_a_system_exit_in_a_call_is_an_error_and_the_next_call_still_runs(sandbox: LocalSandbox) -> None:
    source = "import sys\ndef f(x):\n    sys.exit(0) if x else None\n    return x\n"
    assert answers(sandbox, source, [0, 1, 0]) == [0, OutcomeKind.ERROR, 0]


@pytest.mark.parametrize(
    ("source", "kind", "error"),
    [
        ("def f(x: return", OutcomeKind.ERROR, "SyntaxError"),
        ("raise ValueError", OutcomeKind.ERROR, "ValueError"),
        ("import sys\nsys.exit()", OutcomeKind.ERROR, "SystemExit"),
        ("g = 1", OutcomeKind.ERROR, "NoEntryPoint"),
        ("f = 1", OutcomeKind.ERROR, "NoEntryPoint"),
        ("import numpy_is_not_here", OutcomeKind.ERROR, "ModuleNotFoundError"),
        ("f = '\ud800'", OutcomeKind.ERROR, "UnicodeEncodeError"),
        ("import os\nos._exit(0)", OutcomeKind.CRASH, ""),
        ("import ctypes\nctypes.string_at(1)", OutcomeKind.CRASH, ""),
        ("while True: pass", OutcomeKind.TIMEOUT, ""),
        ("import time\ntime.sleep(60)", OutcomeKind.TIMEOUT, ""),
        ("x = [0] * 10**10", OutcomeKind.ERROR, "MemoryError"),
    ],
)
def test_a_program_that_does_not_load_says_why_and_runs_no_call(
    sandbox: LocalSandbox, source: str, kind: OutcomeKind, error: str
) -> None:
    assert run(sandbox, source, [1, 2]) == JobResult((), Outcome(kind, error=error))


def test_an_absurdly_long_program_is_not_tried(sandbox: LocalSandbox) -> None:
    result = run(sandbox, IDENTITY + "#" * (5 << 20), [1])
    assert (result.loaded, result.load_failure) == (False, Outcome(OutcomeKind.ERROR, error="SourceTooLong"))


def test_a_job_without_calls_still_tells_whether_the_program_loads(sandbox: LocalSandbox) -> None:
    assert sandbox.run([CallsJob(IDENTITY, "f", ()), CallsJob("", "f", ())]) == [
        JobResult(),
        JobResult((), Outcome(OutcomeKind.ERROR, error="NoEntryPoint")),
    ]
    assert sandbox.run([]) == []


def test_what_is_no_plain_data_is_opaque(sandbox: LocalSandbox) -> None:
    kinds = "import math\ndef f(x):\n    return [f, math, len, print][x]\n"
    for value in answers(sandbox, kinds, range(4)):
        assert isinstance(value, dict)
        assert list(value) == ["o"]


def test_a_value_over_the_cap_is_opaque_even_when_the_process_forges_it(sandbox: LocalSandbox) -> None:
    limits = Limits(time_limit_s=0.3, value_bytes=1000)
    assert answers(sandbox, "def f(x):\n    return 'a' * x\n", [900, 1100], limits) == ["a" * 900, {"o": "too large"}]
    forged = (
        "import values\nvalues.encode = lambda value, room: b'\"' + b'a' * value + b'\"'\ndef f(x):\n    return x\n"
    )
    assert answers(sandbox, forged, [900, 1100], limits) == ["a" * 900, {"o": "too large"}]


# Time, crashes, strikes and budget


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [
        ("while True: pass", OutcomeKind.TIMEOUT),
        ("__import__('time').sleep(60)", OutcomeKind.TIMEOUT),
        ("__import__('re').match('(a+)+$', 'a' * 60 + 'b')", OutcomeKind.TIMEOUT),
        ("__import__('os')._exit(0)", OutcomeKind.CRASH),
        ("__import__('ctypes').string_at(1)", OutcomeKind.CRASH),
        ("[0] * 10**10", OutcomeKind.MEMORY),
    ],
)
def test_trouble_in_a_call_is_charged_to_that_call_and_to_no_other(
    sandbox: LocalSandbox, trouble: str, kind: OutcomeKind
) -> None:
    source = f"def f(x):\n    if x == 2:\n        {trouble}\n    return x\n"
    assert answers(sandbox, source, range(5)) == [0, 1, kind, 3, 4]


def test_trouble_in_a_job_is_charged_to_no_other_job(sandbox: LocalSandbox) -> None:
    bad = ("while True: pass", "import os\nos._exit(0)", "def f(x):\n    import os\n    os._exit(0)")
    jobs = [
        CallsJob(source, "f", (call(1),), SHORT) for source in (bad[0], IDENTITY, bad[1], IDENTITY, bad[2], IDENTITY)
    ]
    results = sandbox.run(jobs)
    assert [result.loaded for result in results] == [False, True, False, True, True, True]
    assert all(result.outcomes == (Outcome(OutcomeKind.VALUE, b"1"),) for result in results[1::2])


@pytest.mark.parametrize(("strikes", "rest"), [(3, [OutcomeKind.CRASH] * 3), (4, [3, 4, 5])])
def test_after_its_strikes_the_rest_of_a_job_is_charged_the_last_one(
    sandbox: LocalSandbox, strikes: int, rest: list[object]
) -> None:
    source = "import os\ndef f(x):\n    if x < 3:\n        os._exit(0)\n    return x\n"
    limits = Limits(time_limit_s=0.3, strikes=strikes)
    assert answers(sandbox, source, range(6), limits) == [OutcomeKind.CRASH] * 3 + rest


def test_what_was_not_tried_is_told_from_what_was(sandbox: LocalSandbox) -> None:
    source = "import os\ndef f(x):\n    if x % 2:\n        os._exit(0)\n    return x\n"
    outcomes = run(sandbox, source, range(8), SHORT).outcomes
    assert [outcome.tried for outcome in outcomes] == [True] * 6 + [False] * 2


_BURN = """
import time
def f(x):
    end = time.process_time() + x
    while time.process_time() < end:
        pass
    return 1
"""


def test_a_spent_budget_turns_what_is_left_into_time_outs(sandbox: LocalSandbox) -> None:
    found = answers(sandbox, _BURN, [0.2] * 8, Limits(time_limit_s=0.3, budget_s=0.7))
    passed = found.index(OutcomeKind.TIMEOUT)
    assert 1 <= passed <= 3
    assert found == [1] * passed + [OutcomeKind.TIMEOUT] * (8 - passed)


def test_a_call_that_is_cut_short_by_what_others_spent_was_not_tried(sandbox: LocalSandbox) -> None:
    """The third has 0.1 of the 0.3 seconds that it wants, and that it may have."""
    outcomes = run(sandbox, _BURN, [0.3, 0.3, 0.3, 0], Limits(time_limit_s=0.5, budget_s=0.7)).outcomes
    assert [(outcome.kind.value, outcome.tried) for outcome in outcomes[2:]] == [("timeout", False)] * 2
    hanging = run(sandbox, _BURN, [60, 60, 0], Limits(time_limit_s=0.2, budget_s=0.3)).outcomes
    assert [(outcome.kind.value, outcome.tried) for outcome in hanging] == [
        ("timeout", True), ("timeout", False), ("timeout", False),
    ]  # fmt: skip


def test_every_call_has_the_cpu_time_that_it_took(sandbox: LocalSandbox) -> None:
    first, second, third = run(sandbox, _BURN, [0, 0.15, 60], Limits(time_limit_s=0.4, budget_s=4)).outcomes
    assert (second.cpu_ns >= 1.5e8, third.cpu_ns >= 3.6e8, first.cpu_ns < second.cpu_ns) == (True, True, True)


def test_a_call_that_claims_ages_is_late_and_its_time_is_the_kernels(sandbox: LocalSandbox) -> None:
    forge = "import candidate\ndef f(x):\n    candidate._cpu_ns = lambda: (1 << 64) - 1\n    raise KeyError\n"
    assert run(sandbox, forge, [1]).outcomes == (Outcome(OutcomeKind.TIMEOUT),)
    assert run(sandbox, forge, [1]).outcomes[0].cpu_ns < 10**10


def test_a_program_that_hides_its_cpu_time_still_has_no_more_than_its_budget(sandbox: LocalSandbox) -> None:
    """It claims that every call took no time, and leaves after each, so that every process is a new one."""
    hide = "import candidate\nstart = candidate._cpu_ns()\ncandidate._cpu_ns = lambda: start\n"
    source = _BURN.replace("def f", hide + "import os\ndef f").replace("return 1", "os._exit(0)")
    limits = Limits(time_limit_s=0.3, budget_s=0.5, strikes=100)
    found = answers(sandbox, source, [0.2] * 6, limits)
    assert found[0] is OutcomeKind.CRASH
    assert found[3:] == [OutcomeKind.TIMEOUT] * 3


def test_a_program_that_hides_its_cpu_time_is_charged_with_it(sandbox: LocalSandbox) -> None:
    """It claims that nothing took any time; or that loading took most of it, and leaves without an answer."""
    hide = "import candidate\nstart = candidate._cpu_ns()\ncandidate._cpu_ns = lambda: start"
    shift = f"{hide} + 280000000\nimport os"
    sources = (hide + _BURN, shift + _BURN.replace("return 1", "os._exit(0)"))
    for result in sandbox.run([CallsJob(source, "f", (call(0.2),), Limits(0.3, 3)) for source in sources]):
        assert result.outcomes[0].cpu_ns >= 1.9e8


def test_many_short_calls_are_not_charged_for_each_other(sandbox: LocalSandbox) -> None:
    assert answers(sandbox, _BURN, [0.1] * 5, Limits(time_limit_s=0.3, budget_s=3)) == [1] * 5


def test_a_call_that_runs_out_of_memory_leaves_the_next_one_its_own(sandbox: LocalSandbox) -> None:
    source = "def f(x):\n    return len(bytearray(x << 20))\n"
    assert answers(sandbox, source, [1, 1000, 1]) == [1 << 20, OutcomeKind.MEMORY, 1 << 20]


# Size


def test_values_that_together_overflow_the_region_all_arrive(sandbox: LocalSandbox) -> None:
    size, count = (1 << 20) - 100, 20
    assert size * count > 2 * REGION_BYTES
    limits = Limits(time_limit_s=2, budget_s=20)
    found = answers(sandbox, f"def f(x):\n    return str(x) * {size}\n", [x % 10 for x in range(count)], limits)
    assert found == [str(x % 10) * size for x in range(count)]


def test_a_job_too_large_for_one_hand_over_is_split(sandbox: LocalSandbox) -> None:
    arguments = [letter * (7 << 20) for letter in "abc"]
    assert sum(map(len, arguments)) > JOB_BYTES
    limits = Limits(time_limit_s=5, budget_s=50)
    assert answers(sandbox, "def f(x):\n    return [x[0], len(x)]\n", arguments, limits) == [
        [x, 7 << 20] for x in "abc"
    ]


def test_thousands_of_calls_keep_their_order(sandbox: LocalSandbox) -> None:
    assert answers(sandbox, IDENTITY, range(5000), Limits()) == list(range(5000))


def test_results_come_in_the_order_of_the_jobs_whatever_the_number_of_workers() -> None:
    slow = "import time\ndef f(x):\n    time.sleep(x)\n    return x\n"
    jobs = [CallsJob(slow, "f", (call(x / 100),), SHORT) for x in (9, 1, 5, 0, 7, 2)]
    with LocalSandbox(workers=3) as several, LocalSandbox() as one:
        results = several.run(jobs)
        assert results == one.run(jobs)
    assert [json.loads(result.outcomes[0].value) for result in results] == [0.09, 0.01, 0.05, 0.0, 0.07, 0.02]


# The other kinds of job


_GREETER = """
import sys
name = input()
seen = globals().setdefault("seen", [])
seen.append(name)
print(seen)
if name == "out":
    sys.exit()
if name == "bad":
    sys.exit(3)
if name == "crash":
    import os
    os.abort()
print(sys.stdin.read(), end="!")
"""


def test_a_whole_program_is_a_process_for_each_standard_input(sandbox: LocalSandbox) -> None:
    source = _GREETER
    (result,) = sandbox.run([program_job(source, ("a\nrest", "out", "bad", "crash", "", "é\ud83d"), SHORT)])
    assert result.loaded
    values = [
        json.loads(outcome.value) if outcome.kind is OutcomeKind.VALUE else outcome.kind for outcome in result.outcomes
    ]
    assert values[0] == "['a']\nrest!"
    assert values[1] == "['out']\n"
    assert values[2:4] == [OutcomeKind.ERROR, OutcomeKind.CRASH]
    assert [outcome.error for outcome in result.outcomes[2:5]] == ["SystemExit", "", "EOFError"]


def test_a_stdio_program_has_its_main_guard_run_and_its_stderr_ignored(sandbox: LocalSandbox) -> None:
    source = (
        "import sys\nprint('noise', file=sys.stderr)\nif __name__ == '__main__':\n    print(sum(map(int, sys.stdin)))\n"
    )
    (result,) = sandbox.run([program_job(source, ("1\n2\n3",), SHORT)])
    assert [json.loads(outcome.value) for outcome in result.outcomes] == ["6\n"]


def test_a_script_runs_beside_the_program(sandbox: LocalSandbox) -> None:
    script = "def check(candidate):\n    assert candidate(2) == 3\ncheck(f)\n"
    jobs = [script_job(source, script, SHORT) for source in ("def f(x): return x + 1", "def f(x): return 5", "f = ")]
    right, wrong, broken = sandbox.run(jobs)
    assert right.outcomes == (Outcome(OutcomeKind.VALUE, b'[["script","passed",""]]'),)
    assert wrong.outcomes == (Outcome(OutcomeKind.VALUE, b'[["script","failed","AssertionError: "]]'),)
    assert (broken.loaded, broken.load_failure) == (False, Outcome(OutcomeKind.ERROR, error="SyntaxError"))


def test_expressions_have_the_pure_builtins_and_nothing_else(sandbox: LocalSandbox) -> None:
    texts = ("sorted({3, 1, 2})", "sum([x * x for x in range(4)])", "open('/etc/passwd')", "__import__('os')", "1 / 0")
    (result,) = sandbox.run([ExpressionsJob(texts)])
    assert [outcome.value for outcome in result.outcomes[:2]] == [b"[1,2,3]", b"14"]
    assert [outcome.error for outcome in result.outcomes[2:]] == ["NameError", "ImportError", "ZeroDivisionError"]


@pytest.mark.parametrize("bomb", ["10 ** 10 ** 10", "'a' * 10 ** 12", "[0] * 10 ** 9", "sum(range(10 ** 12))"])
def test_an_expression_bomb_harms_only_itself(sandbox: LocalSandbox, bomb: str) -> None:
    before, trouble, after = sandbox.run([ExpressionsJob(("1", bomb, "2"))])[0].outcomes
    assert (before.value, after.value) == (b"1", b"2")
    assert trouble.kind in (OutcomeKind.TIMEOUT, OutcomeKind.MEMORY, OutcomeKind.CRASH)


def test_the_hash_seed_decides_hashes_and_random_numbers(sandbox: LocalSandbox) -> None:
    source = "import random\ndef f(x):\n    return [hash('codea1'), random.random()]\n"
    jobs = [CallsJob(source, "f", (call(0),), SHORT, hash_seed=seed) for seed in (0, 1, 0, 1)]
    first, second, third, fourth = [result.outcomes[0].value for result in sandbox.run(jobs)]
    assert first == third
    assert second == fourth
    hashes, numbers = zip(json.loads(first), json.loads(second), strict=True)
    assert len(set(hashes)) == len(set(numbers)) == 2


# What a program can see


def test_no_environment_variable_of_the_host_is_visible(sandbox: LocalSandbox) -> None:
    assert os.environ
    assert answers(sandbox, "import os\ndef f(x):\n    return sorted(os.environ)\n", [0]) == [["LC_ALL", "PATH"]]


def test_no_file_outside_the_standard_library_can_be_read(sandbox: LocalSandbox) -> None:
    source = "import os\ndef f(path):\n    return os.listdir(path) if os.path.isdir(path) else open(path).read(1)\n"
    standard = sysconfig.get_path("stdlib")
    paths = [
        "/",
        "/etc",
        "/etc/hosts",
        "/tmp",
        "/proc/self/environ",
        "/proc/1/cmdline",
        "/sys",
        "/root",
        "/home",
        __file__,
    ]
    found = answers(sandbox, source, [f"{standard}/ast.py", *paths])
    assert isinstance(found[0], str)
    rootless = found[2:] if isinstance(found[1], list) else found[1:]
    assert set(rootless) == {OutcomeKind.ERROR}
    if isinstance(found[1], list):  # the empty root of our own
        assert set(found[1]) <= {"dev", "lib", "lib64", "root", "home", "opt", "usr", standard.split("/")[1]}


def test_no_installed_package_can_be_read(sandbox: LocalSandbox) -> None:
    """This package may be installed there, and with it the bundled problems' reference solutions."""
    readable = zygotes.python_directories()
    hidden = hidden_directories(readable, "/nowhere")
    assert any(path.endswith("site-packages") for path in hidden)
    source = (
        "import os\ndef f(top):\n    found = []\n    for path, _, names in os.walk(top):\n        for name in names:\n"
        "            try:\n                open(os.path.join(path, name), 'rb').close()\n"
        "                found.append(name)\n            except OSError:\n                pass\n    return found[:5]\n"
    )
    installed = [path for path in hidden if os.path.isdir(path)]
    assert answers(sandbox, source, installed, Limits(time_limit_s=5, budget_s=50)) == [[] for _ in installed]


def test_a_package_below_a_hidden_directory_is_hidden_with_it() -> None:
    readable = zygotes.python_directories()
    (site, *_) = [path for path in hidden_directories(readable, "/nowhere") if path.endswith("site-packages")]
    assert hidden_directories(readable, f"{site}/codea1_env") == hidden_directories(readable, site)


def test_nothing_can_be_written_anywhere(sandbox: LocalSandbox) -> None:
    source = (
        "def f(path):\n    with open(path, 'w') as file:\n        file.write('x')\n        file.flush()\n    return 0\n"
    )
    folders = ["/", "/tmp/", "/dev/shm/", "/dev/", "/usr/lib/", f"{sysconfig.get_path('stdlib')}/", ""]
    paths = [f"{folder}written-by-a-candidate" for folder in folders]
    assert set(answers(sandbox, source, paths)) == {OutcomeKind.ERROR}
    assert not any(os.path.exists(path) for path in paths)


def test_no_socket_process_or_thread_can_be_made(sandbox: LocalSandbox) -> None:
    source = (
        "import os, socket, subprocess, threading, signal\n"
        "ways = [socket.socket, lambda: socket.socket(socket.AF_UNIX), socket.socketpair, os.fork, os.pipe,\n"
        "        lambda: subprocess.run(['/bin/true']), threading.Thread(target=print).start,\n"
        "        lambda: os.kill(os.getppid(), 0), lambda: os.kill(-1, 0), lambda: os.memfd_create('x'),\n"
        "        os.setsid, lambda: os.chdir('/'), lambda: os.pidfd_open(os.getppid()),\n"
        "        lambda: signal.pthread_kill(1, 0) if False else os.killpg(0, 0)]\n"
        "def f(i):\n    ways[i]()\n"
    )
    assert set(answers(sandbox, source, range(14))) == {OutcomeKind.ERROR}


# Marks on purpose in pieces: the searching program's own source must not hold what it looks for.
_MARK = "carried-by-an-earlier-program-7c41"
_SCAN = """
import ctypes, gc, sys
libc = ctypes.CDLL(None, use_errno=True)
def mapped(address):
    # access(2) fails with EFAULT (14) where there is no memory, and otherwise in another way
    libc.access(ctypes.c_void_p(address), 0)
    return ctypes.get_errno() != 14
def neighbourhood(address):
    page = 4096
    address -= address % page
    low = high = address
    while mapped(low - page) and address - low < 1 << 26:
        low -= page
    while mapped(high) and high - address < 1 << 26:
        high += page
    return low, high
def f(parts):
    mark = "".join(parts).encode()
    libc.sbrk.restype = ctypes.c_void_p
    places = [id(mark), id(sys.modules), id(f), id([]), libc.sbrk(0) - 4096, ctypes.addressof(ctypes.c_int()), id(0)]
    frame = sys._getframe()
    while frame:
        if "region" in frame.f_locals:
            places.append(ctypes.addressof(ctypes.c_char.from_buffer(frame.f_locals["region"])))
        frame = frame.f_back
    seen, count = {}, 0
    for place in places:
        if not any(low <= place < high for low, high in seen.items()):
            low, high = neighbourhood(place)
            seen[low] = high
    for low, high in seen.items():
        while low < high:
            size = min(high - low, 1 << 20)
            count += ctypes.string_at(low, min(size + 64, high - low)).count(mark)
            low += size
    return [count, sum(high - low for low, high in seen.items())]
"""


def test_an_earlier_programs_code_and_values_are_nowhere_in_memory(sandbox: LocalSandbox) -> None:
    """Raw memory, page by page: heap, arenas and the shared mapping; the scan finds a mark of its own as a control."""
    carrier = f"secret = {_MARK!r}\ndef f(x):\n    return [secret, x] * 50\n"
    limits = Limits(time_limit_s=5, budget_s=20)
    earlier = [CallsJob(carrier, "f", (call(f"{_MARK} again"),) * 20, limits) for _ in range(3)]
    parts = (call([_MARK[:9], _MARK[9:]]), call(["".join(["ast"]), ".py"]))
    *_, result = sandbox.run([*earlier, CallsJob(_SCAN, "f", parts, limits, is_shared=True)])
    (own, scanned), (control, _) = [json.loads(outcome.value) for outcome in result.outcomes]
    assert scanned > 4 << 20
    assert control > 1
    # The scan joins and encodes the mark itself; the carriers held it some hundred times.
    assert own <= 3


_READ_DESCRIPTORS = """
import os
def f(parts):
    mark, found, size = "".join(parts).encode(), 0, 0
    for handle in range(64):
        try:
            content = os.pread(handle, 1 << 24, 0)
        except OSError:
            continue
        found += content.count(mark)
        size += len(content)
    return [found, size]
"""


def test_no_descriptor_leads_to_an_earlier_job(sandbox: LocalSandbox) -> None:
    carrier = CallsJob(f"secret = {_MARK!r}\n" + IDENTITY, "f", (call(_MARK * 1000),) * 20)
    (_, result) = sandbox.run([carrier, CallsJob(_READ_DESCRIPTORS, "f", (call([_MARK[:9], _MARK[9:]]),), SHORT)])
    assert json.loads(result.outcomes[0].value) == [0, 0]


# Fail closed


@pytest.mark.parametrize(
    ("without", "waive"),
    [({"seccomp"}, {"seccomp"}), ({"namespaces", "landlock"}, {"filesystem"}), ({"root", "landlock"}, {"filesystem"})],
)
def test_a_missing_layer_is_refused_unless_waived_by_name(without: set[str], waive: set[str]) -> None:
    before = descendants()
    with LocalSandbox(without=without) as strict:
        with pytest.raises(SandboxUnsafe, match="must"):
            strict.run([CallsJob(IDENTITY, "f", (call(1),))])
        with pytest.raises(SandboxUnsafe):
            _ = strict.guarantees
    assert descendants() == before
    (other,) = {"seccomp", "filesystem"} - waive
    with LocalSandbox(without=without, waive={other}) as wrong, pytest.raises(SandboxUnsafe):
        wrong.run([CallsJob(IDENTITY, "f", (call(1),))])
    with LocalSandbox(without=without, waive=waive) as waived:
        assert answers(waived, IDENTITY, [1]) == [1]


@pytest.mark.parametrize("layer", ["rlimits", "no_new_privileges"])
def test_some_layers_cannot_be_waived(layer: str) -> None:
    with LocalSandbox(without={layer}, waive={"seccomp", "filesystem"}) as sandbox, pytest.raises(SandboxUnsafe):
        sandbox.run([CallsJob(IDENTITY, "f", (call(1),))])
    with pytest.raises(ConfigurationError, match="seccomp or filesystem"):
        LocalSandbox(waive={layer})


def test_the_guarantees_name_what_was_switched_off(sandbox: LocalSandbox) -> None:
    guarantees = sandbox.guarantees
    assert {"seccomp", "rlimits", "no_new_privileges"} <= {name for name, held in guarantees.items() if held is True}
    assert guarantees["root"] is True or guarantees["landlock"] is True
    with LocalSandbox(without={"namespaces"}) as other:
        assert other.guarantees["namespaces"] == "switched off"
        assert other.guarantees["root"] != True  # noqa: E712  # a reason, which is a text


def test_an_unknown_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with LocalSandbox() as sandbox, pytest.raises(SandboxUnsafe, match="riscv64"):
        sandbox.run([CallsJob(IDENTITY, "f", (call(1),))])
    with pytest.raises(KeyError):
        syscalls.build_filter("riscv64")


def decision(program: bytes, number: int, audit: int, arguments: Sequence[int] = (0,) * 6) -> int:
    """What the kernel would make of a system call: a small interpreter of the five instructions the filter uses."""
    frame = struct.pack("<iIQ6Q", number, audit, 0, *arguments)
    steps = list(struct.iter_unpack("HBBI", program))
    at = value = 0
    while True:
        code, if_true, if_false, operand = steps[at]
        at += 1
        if code == 0x06:
            return operand
        if code == 0x20:
            (value,) = struct.unpack_from("<I", frame, operand)
        elif code == 0x05:
            at += operand
        elif code in (0x15, 0x35):
            at += if_true if (value == operand if code == 0x15 else value >= operand) else if_false
        else:
            raise AssertionError(f"instruction {code:#x}")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_allows_the_listed_system_calls_and_no_other(machine: str) -> None:
    program, audit, allowed = (
        syscalls.build_filter(machine),
        syscalls.AUDIT[machine],
        syscalls.CALLS[machine]["allowed"],
    )
    allow, kill, eperm, enosys = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
    restricted = {
        "fcntl": (1, 1030, 8), "ioctl": (1, 0x5401, 0x5412), "prlimit64": (0, 0, 1), "clock_gettime": (0, 11, 12),
        "clock_getres": (0, 0, 0xFFFFFFFA), "clock_nanosleep": (0, 1, 0xFFFFFFFA), "madvise": (2, 8, 21),
        "futex": (1, 393, 0), "sched_getaffinity": (0, 0, 7),
    }  # fmt: skip
    plain = {number for name, number in allowed.items() if name not in restricted}
    got = {number: decision(program, number, audit) for number in range(1024)}
    assert {number for number, verdict in got.items() if verdict == allow} - {
        allowed[name] for name in restricted
    } == plain
    assert {verdict for number, verdict in got.items() if number not in allowed.values()} == {eperm, enosys}
    assert got[435] == enosys
    for name, (index, good, bad) in restricted.items():
        for value, verdict in ((good, allow), (bad, eperm)):
            arguments = [0] * 6
            arguments[index] = value
            assert decision(program, allowed[name], audit, arguments) == verdict
    for limit, new, verdict in ((0, 0, allow), (0, 1, eperm), (0, 1 << 40, eperm), (4, 1, allow), (16, 1, eperm)):
        assert decision(program, allowed["prlimit64"], audit, [0, limit, new, 0, 0, 0]) == verdict
    assert decision(program, 0, audit ^ 1) == kill
    assert decision(program, 0x40000000 + 1, audit) == kill


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filters_of_a_zygote_and_of_its_candidate_together_are_the_one_filter(machine: str) -> None:
    """The kernel takes the answer of the stricter one: to kill, then an error, then to allow."""
    table = syscalls.CALLS[machine]
    audit, whole, rest = syscalls.AUDIT[machine], syscalls.build_filter(machine), syscalls.build_rest(machine)
    starting = syscalls.build_filter(machine, starting=True)
    strictness = (0x80000000, 0x00050026, 0x00050001, 0x7FFF0000)
    words = [0, 1, 2, 3, 4, 8, 11, 12, 14, 15, 16, 17, 21, 128, 393, 1030, 0x5401, 0x5412, 0x3D0F00, 1 << 32, 1 << 40]
    looked_into = {(table["allowed"] | table["starting"]).get(name) for name in syscalls._RESTRICTED}
    for number in (*range(512), 0x40000001):
        arguments = itertools.product(words, words, (0, 1, 1 << 40)) if number in looked_into else [(0, 0, 0)]
        for first, second, third in arguments:
            alone, *both = [
                decision(program, number, audit, [first, second, third, 0, 0, 0]) for program in (whole, starting, rest)
            ]
            assert alone == min(both, key=strictness.index), (number, first, second, third)
    assert all(decision(starting, number, audit ^ 1) == 0x80000000 for number in range(512))
    assert len(rest) < len(whole) / 4


def test_no_dangerous_system_call_is_on_the_list() -> None:
    forbidden = {
        "fork", "vfork", "clone", "clone3", "execve", "execveat", "kill", "tkill", "tgkill", "ptrace", "socket",
        "connect", "process_vm_readv", "process_vm_writev", "mount", "unshare", "setns", "bpf", "io_uring_setup",
        "perf_event_open", "userfaultfd", "memfd_create", "ftruncate", "prctl", "setrlimit", "chmod", "unlink",
        "rename", "link", "symlink", "mkdir", "truncate", "sendto", "sendmsg", "pidfd_open", "keyctl", "chdir",
        "membarrier",
    }  # fmt: skip
    for table in syscalls.CALLS.values():
        assert not forbidden & set(table["allowed"])


@pytest.mark.parametrize(
    "limits",
    [
        {"time_limit_s": 0}, {"time_limit_s": 3601}, {"budget_s": 0}, {"budget_s": 36001}, {"memory_mb": 63},
        {"strikes": 0}, {"value_bytes": 63}, {"value_bytes": (1 << 22) + 1}, {"time_limit_s": float("nan")},
    ],
)  # fmt: skip
def test_limits_outside_their_range_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match="must be"):
        Limits(**limits)  # type: ignore[arg-type]


def test_a_sandbox_is_opened_by_name() -> None:
    with open_sandbox("local", workers=1) as sandbox:
        assert answers(sandbox, IDENTITY, [1]) == [1]
        assert sandbox.version.startswith("local-")
    for name in ("elsewhere", None, ["local"], np.array(["local", "ray"])):
        with pytest.raises(ConfigurationError, match="must be one of local"):
            open_sandbox(name)
    for name in ("time_limit_s", "budget_s", "memory_mb", "strikes", "value_bytes"):
        with pytest.raises(ConfigurationError, match=f"{name} must be "):
            Limits(**{name: "2"})
    for wrong in (0, 1025, "2"):
        with pytest.raises(ConfigurationError, match=f"workers must be a whole number in .1, 1024., got {wrong!r}"):
            LocalSandbox(workers=wrong)  # type: ignore[arg-type]


# Life and death of processes


@pytest.mark.parametrize("without", MODES, ids=["namespaces", "no_namespaces"])
def test_close_leaves_no_process_and_is_final(without: tuple[str, ...]) -> None:
    before = descendants()
    sandbox = LocalSandbox(workers=2, without=without)
    assert descendants() == before
    sandbox.run([CallsJob("import os\nos._exit(0)", "f", (call(1),), hash_seed=seed) for seed in (0, 1, 0)])
    assert len(descendants()) > len(before)
    sandbox.close()
    sandbox.close()
    assert descendants() == before
    with pytest.raises(SandboxError, match="closed"):
        sandbox.run([])
    with pytest.raises(SandboxError, match="closed"):
        _ = sandbox.guarantees
    assert descendants() == before


def _zygotes(before: Sequence[psutil.Process]) -> list[psutil.Process]:
    """The processes of a sandbox started since, innermost last."""
    return [process for process in descendants() if process not in before]


@pytest.mark.parametrize("without", MODES, ids=["namespaces", "no_namespaces"])
def test_a_zygote_killed_while_idle_is_replaced(without: tuple[str, ...]) -> None:
    before = descendants()
    with LocalSandbox(without=without) as sandbox:
        for _ in range(3):
            assert answers(sandbox, IDENTITY, [1]) == [1]
            guard, zygote = _zygotes(before)
            zygote.kill()
            psutil.wait_procs([guard], timeout=30)
        assert answers(sandbox, IDENTITY, [2]) == [2]
    assert descendants() == before


@pytest.mark.parametrize("without", MODES, ids=["namespaces", "no_namespaces"])
def test_a_job_whose_zygote_is_killed_runs_again(without: tuple[str, ...]) -> None:
    before = descendants()
    found: list[object] = []
    with LocalSandbox(without=without) as sandbox:
        assert answers(sandbox, IDENTITY, [1]) == [1]  # its start, which forks as well, is over
        thread = threading.Thread(
            target=lambda: found.extend(answers(sandbox, _BURN, [0.4, 0], Limits(time_limit_s=20, budget_s=200)))
        )
        thread.start()
        while len(processes := _zygotes(before)) < 3:
            thread.join(0.01)
        processes[1].kill()
        thread.join()
        assert found == [1, 1]
        assert processes[1] not in descendants()
    assert descendants() == before


def test_a_candidate_that_cannot_be_isolated_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here somebody removes its directory before it is in it."""
    renew, removed = Scratch.renew, []

    def late(scratch: Scratch) -> None:
        renew(scratch)
        if len(removed) < 2:
            removed.append(scratch.path)
            os.rmdir(scratch.path)

    monkeypatch.setattr(Scratch, "renew", late)
    job = CallsJob(IDENTITY, "f", (call(1),), SHORT, world=World(scratch=True))
    with LocalSandbox(without=("namespaces",)) as sandbox:
        assert sandbox.run([job])[0].outcomes[0].value == b"1"
    assert len(removed) == 2


def test_a_candidate_that_pretends_so_is_a_crash(sandbox: LocalSandbox) -> None:
    """It takes its records back, where they are in its memory, and leaves."""
    source = """
import os, sys
frame = sys._getframe()
while frame is not None:
    for found in list(frame.f_locals.values()):
        region = getattr(found, "_region", found)
        if isinstance(region, memoryview):
            region[:16] = bytes(16)
            os._exit(0)
    frame = frame.f_back
"""
    assert run(sandbox, source, [1]).load_failure == Outcome(OutcomeKind.CRASH)


def test_sandbox_processes_that_wait_end_where_memory_may_be_short() -> None:
    """The kernel ends a candidate when they and it want more than there is: it is to have their memory, then."""
    jobs = [CallsJob(IDENTITY, "f", (call(1),), SHORT, hash_seed=seed) for seed in (1, 2, 0)]
    slow = CallsJob(_BURN, "f", (call(0.4),), Limits(time_limit_s=20, budget_s=200))
    found: list[JobResult] = []
    with LocalSandbox() as sandbox:
        sandbox.run(jobs)
        *_, used = sandbox._workers[0].values()
        thread = threading.Thread(target=lambda: found.extend(sandbox.run([slow])))
        thread.start()
        while not (candidates := used._candidates()):
            thread.join(0.01)
        os.kill(candidates[0], signal.SIGKILL)
        thread.join()
        assert [outcome.kind for result in found for outcome in result.outcomes] == [OutcomeKind.VALUE]
        assert [*sandbox._workers[0].values()] == [used]
        assert [result.outcomes[0].value for result in sandbox.run(jobs)] == [b"1"] * 3


_ENDINGS = (
    "def f():\n    return 1\n",
    "def f():\n    return len(bytearray(64 << 20))\n" + "# long\n" * 40_000,
    "import ctypes\ndef f():\n    ctypes.string_at(0)\n",
    "import os\ndef f():\n    os._exit(9)\n",
    "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 20,) * 2)\ndef f():\n    return 'a' * 10**7\n",
    "import time\ndef f():\n    time.sleep(0.3)\n",
    "import time\ndef f():\n    time.sleep(60)\n",
    "def f():\n    while True:\n        pass\n",
    "a syntax error\n",
    "def f():\n    return 2\n",
)


def _memory_at_rest(zygote: psutil.Process) -> dict[int, bytes]:
    """All that a zygote could have changed, by its address, as it waits to be told to fork.

    What it notes of a candidate it wipes after it has said how that one ended, and before it waits.
    """
    while zygote.children() or zygote.status() != psutil.STATUS_SLEEPING:
        time.sleep(0.01)
    found = {}
    with open(f"/proc/{zygote.pid}/mem", "rb", buffering=0) as memory, open(f"/proc/{zygote.pid}/maps") as maps:
        for place, kind, *_ in map(str.split, maps):
            start, end = (int(text, 16) for text in place.split("-"))
            if "w" in kind and "p" in kind:
                memory.seek(start)
                found[start] = memory.read(end - start)
    return found


def _changed_words(before: dict[int, bytes], after: dict[int, bytes]) -> list[str]:
    """But for where the kernel notes which core a process runs on: twice, in two halves of a word."""
    assert before.keys() == after.keys()
    changed = []
    for start, old in before.items():
        if old != after[start]:
            for at in range(0, len(old), 8):
                words = [memory[at : at + 8] for memory in (old, after[start])]
                if words[0] != words[1] and not all(word[:4] == word[4:] < b"\xff\1\0\0" for word in words):
                    changed.append(f"{start + at:x}: {words[0].hex()} {words[1].hex()}")
    return changed


@pytest.mark.parametrize("packages", [(), ("numpy",)], ids=["plain", "numpy"])
@pytest.mark.parametrize("without", MODES, ids=["namespaces", "no_namespaces"])
def test_no_byte_of_what_candidates_are_copies_of_changes(without: tuple[str, ...], packages: tuple[str, ...]) -> None:
    """Whatever a candidate did, how long it took, how it ended and how many there were: the next one cannot tell."""
    before = descendants()
    with LocalSandbox(without=without) as sandbox:

        def try_all() -> None:
            for source in _ENDINGS:
                sandbox.run([CallsJob(source, "f", (call(), call()), SHORT, packages=packages)])

        if packages:
            pytest.importorskip("numpy")
        sandbox.run([CallsJob(_ENDINGS[0], "f", (call(),), SHORT, packages=packages)])
        _, zygote = _zygotes(before)
        try:
            first = _memory_at_rest(zygote)
        except PermissionError:
            pytest.skip("the memory of a process that hides it is root's to read")
        try_all()
        assert _zygotes(before)[1] == zygote
        assert _changed_words(first, _memory_at_rest(zygote)) == []


def test_no_candidate_can_tell_how_many_processes_earlier_ones_took(sandbox: LocalSandbox) -> None:
    """Three crashes end a turn of eight calls, and every change of a dictionary, in whatever process, was counted."""
    writer = "import os\ndef f(x):\n    if x:\n        os._exit(1)\n"
    reader = "import ctypes\nn = ctypes.c_uint64.from_address(id({1: 1}) + 24).value\ndef f():\n    return n\n"
    found = []
    for crashes in (0, 1, 1, 0, 1):
        sandbox.run([CallsJob(writer, "f", tuple(call(crashes) for _ in range(8)), SHORT)])
        found += sandbox.run([CallsJob(reader, "f", (call(),), SHORT)])[0].outcomes
    assert len(set(found)) == 1
    assert found[0].kind is OutcomeKind.VALUE


def test_time_ends_where_the_kernel_does_not_tell_which_process_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """All waiting counts as sleep there, and a process can only be ended with the one that it was forked from."""

    def refuse(guard: int) -> list[int]:
        raise FileNotFoundError(guard)

    monkeypatch.setattr(zygotes, "candidates_below", refuse)
    monkeypatch.setattr(zygotes, "scheduling_below", lambda guard: Scheduling(True, None))
    with LocalSandbox() as sandbox:
        (result,) = sandbox.run([CallsJob(_BURN, "f", (call(0), call(60), call(0)), SHORT)])
        kinds = [outcome.kind for outcome in result.outcomes]
        assert kinds == [OutcomeKind.VALUE, OutcomeKind.TIMEOUT, OutcomeKind.VALUE]


def _kill_zygotes(before: Sequence[psutil.Process], most: int, over: threading.Event) -> None:
    """Kill a sandbox's zygote once its candidate has run for a while, `most` times."""
    killed: set[psutil.Process] = set()
    while len(killed) < most and not over.wait(0.02):
        with contextlib.suppress(psutil.NoSuchProcess):
            processes = _zygotes(before)
            if len(processes) == 3 and processes[1] not in killed and processes[2].cpu_times().user > 0.05:
                processes[1].kill()
                killed.add(processes[1])


@pytest.mark.parametrize("without", MODES, ids=["namespaces", "no_namespaces"])
def test_a_job_whose_zygotes_keep_being_killed_ends(without: tuple[str, ...]) -> None:
    """Twice, and it still ends as it ends undisturbed; every time, and it is a crash, never a loop."""
    before = descendants()
    with LocalSandbox(without=without) as sandbox:
        for most, right in ((2, [1, OutcomeKind.TIMEOUT]), (1000, OutcomeKind.CRASH)):
            assert answers(sandbox, IDENTITY, [1]) == [1]
            over = threading.Event()
            killer = threading.Thread(target=_kill_zygotes, args=(before, most, over))
            killer.start()
            try:
                if right is OutcomeKind.CRASH:
                    assert run(sandbox, _BURN, [0.2, 600]).load_failure == Outcome(OutcomeKind.CRASH)
                else:
                    assert answers(sandbox, _BURN, [0.2, 600]) == right
            finally:
                over.set()
                killer.join()
        assert answers(sandbox, IDENTITY, [1]) == [1]
    assert descendants() == before


@pytest.mark.parametrize(
    ("without", "number"),
    [
        ((), signal.SIGKILL),
        ((), signal.SIGINT),
        *(pytest.param((), each, marks=pytest.mark.slow) for each in (signal.SIGTERM, signal.SIGUSR1)),
        pytest.param(("namespaces",), signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_a_candidate_that_somebody_else_kills_runs_again(without: tuple[str, ...], number: signal.Signals) -> None:
    before = descendants()
    found: list[object] = []
    with LocalSandbox(without=without) as sandbox:
        assert answers(sandbox, IDENTITY, [1]) == [1]
        thread = threading.Thread(target=lambda: found.extend(answers(sandbox, _BURN, [0.2, 600, 0])))
        thread.start()
        killed: set[psutil.Process] = set()
        while len(killed) < 2 and thread.is_alive():
            thread.join(0.02)
            with contextlib.suppress(psutil.NoSuchProcess):
                processes = _zygotes(before)
                if len(processes) == 3 and processes[2] not in killed and processes[2].cpu_times().user > 0.05:
                    processes[2].send_signal(number)
                    killed.add(processes[2])
        thread.join()
    assert found == [1, OutcomeKind.TIMEOUT, 1]


def test_a_candidate_cannot_have_itself_killed_by_a_limit_of_its_own(sandbox: LocalSandbox) -> None:
    """It would look as though something from outside had ended it, and run again."""
    source = f"{_BURN}\nimport resource\ng = f\ndef f(x):\n    resource.setrlimit(0, (0, 0))\n    return g(x)\n"
    assert answers(sandbox, source, [5, 5], Limits(time_limit_s=10, budget_s=50)) == [OutcomeKind.ERROR] * 2
    lower = "import resource\ndef f(x):\n    resource.setrlimit(x, (0, 0))\n    return resource.getrlimit(x)[0]\n"
    assert answers(sandbox, lower, [4]) == [0]


_PARENT = """
import sys, threading, time
from codea1_env.sandbox import CallsJob, Limits, LocalSandbox
sandbox = LocalSandbox(without=[name for name in sys.argv[1:] if name])
jobs = [CallsJob("def f():\\n    {trouble}", "f", (b"[[],[]]",), Limits(time_limit_s=600, budget_s=6000))]
{body}
"""


def _started(body: str, without: str, trouble: str) -> subprocess.Popen[bytes]:
    """A process of ours whose sandbox runs one endless candidate."""
    text = _PARENT.format(body=body, trouble=trouble)
    return subprocess.Popen([sys.executable, "-c", text, without], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _finished(body: str, trouble: str) -> tuple[bytes, bytes]:
    """What such a process writes to both its streams."""
    with _started(body, "", trouble) as parent:
        return parent.communicate()


def _family(parent: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Of such a process, once all are there."""
    family: list[psutil.Process] = []
    while len(family) < 3 and parent.poll() is None:
        time.sleep(0.02)
        family = psutil.Process(parent.pid).children(recursive=True)
    assert len(family) == 3, "a guard, its zygote and the candidate"
    return family


@pytest.mark.parametrize("without", ["", pytest.param("namespaces", marks=pytest.mark.slow)])
@pytest.mark.parametrize("trouble", ["while True: pass", "import time; time.sleep(600)"])
def test_a_killed_parent_leaves_nothing_behind(without: str, trouble: str) -> None:
    with _started("sandbox.run(jobs)", without, trouble) as parent:
        family = _family(parent)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        _, alive = psutil.wait_procs(family, timeout=30)
        assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


def test_a_fork_of_the_owner_can_neither_use_nor_close_the_sandbox() -> None:
    body = """
import os
from codea1_env.errors import SandboxError
sandbox.run([CallsJob("def f(): return 1", "f", (b"[[],[]]",))])
pid = os.fork()
if pid == 0:
    try:
        sandbox.run([])
    except SandboxError:
        sandbox.close()
        os._exit(7)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(sandbox.run([CallsJob("def f(): return 2", "f", (b"[[],[]]",))])[0].outcomes[0].value.decode())
sandbox.close()
"""
    output, errors = _finished(body, "pass")
    assert (output.split(), errors) == ([b"7", b"2"], b"")


def test_an_interrupted_run_stops_its_candidates_and_the_sandbox_goes_on() -> None:
    body = """
import os, signal
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    sandbox.run(jobs)
except KeyboardInterrupt:
    import psutil
    print(len(psutil.Process().children(recursive=True)))
print(sandbox.run([CallsJob("def f(): return 2", "f", (b"[[],[]]",))])[0].outcomes[0].value.decode())
sandbox.close()
"""
    output, errors = _finished(body, "while True: pass")
    assert (output.split(), errors) == ([b"0", b"2"], b"")


def test_an_interrupt_that_the_parent_takes_for_itself_does_not_reach_the_sandbox() -> None:
    """Ctrl-C goes to the whole process group; a trainer that ends its round first goes on with the answers."""
    body = """
import os, psutil, signal
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
sandbox.run([CallsJob("def f(): return 1", "f", (b"[[],[]]",))])
family = psutil.Process().children(recursive=True)
threading.Timer(0.5, lambda: os.killpg(0, signal.SIGINT)).start()
slow = "def f():\\n    import time\\n    time.sleep(1)\\n    return 2"
(result,) = sandbox.run([CallsJob(slow, "f", (b"[[],[]]",), jobs[0].limits)])
print(len(seen), [o.value.decode() for o in result.outcomes], psutil.Process().children(recursive=True) == family)
sandbox.close()
"""
    text = _PARENT.format(body=body, trouble="pass")
    done = subprocess.run([sys.executable, "-c", text, ""], capture_output=True, start_new_session=True, check=False)
    assert (done.stdout.decode().strip(), done.stderr) == ("1 ['2'] True", b"")


def test_a_parent_that_was_stopped_for_long_finds_a_time_out() -> None:
    """Ctrl-Z, then fg: meanwhile the candidate has met the limit of its own process."""
    body = """
jobs = [CallsJob("def f():\\n    while True: pass", "f", (b"[[],[]]",), Limits(time_limit_s=0.2, budget_s=0.3))]
sandbox.run([CallsJob("def f(): return 1", "f", (b"[[],[]]",))])
print("ready", flush=True)
print(sandbox.run(jobs)[0].outcomes[0].kind.value)
"""
    with _started(body, "", "pass") as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        family = _family(parent)
        parent.send_signal(signal.SIGSTOP)
        psutil.wait_procs(family[2:], timeout=60)
        parent.send_signal(signal.SIGCONT)
        output, errors = parent.communicate()
    assert (output, errors) == (b"timeout\n", b"")


def test_too_few_descriptors_are_an_infrastructure_failure_and_cost_none() -> None:
    """One more in every round, until there are enough."""
    jobs = [CallsJob(IDENTITY, "f", (call(1),), SHORT)]
    opened = len(os.listdir("/proc/self/fd"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    refusals = 0
    for most in range(4, soft):
        with LocalSandbox() as sandbox:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            try:
                assert sandbox.run(jobs)[0].outcomes[0].value == b"1"
                break
            except SandboxError:
                refusals += 1
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert len(os.listdir("/proc/self/fd")) == opened
    assert refusals > 3


@pytest.mark.parametrize("without", [(), ("namespaces",)], ids=["namespaces", "none"])
def test_an_interrupt_waits_for_no_candidate(monkeypatch: pytest.MonkeyPatch, without: tuple[str, ...]) -> None:
    wait, late = subprocess.Popen.wait, []

    def watched(process: Any, timeout: float | None = None) -> Any:
        try:
            return wait(process, timeout and 60)
        except subprocess.TimeoutExpired:
            late.append(process)
            raise

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "wait", watched)
    monkeypatch.setattr(LocalSandbox, "_check", interrupted)
    job = CallsJob("import time\ndef f(): time.sleep(600)", "f", (call(),), Limits(1000, 1000))
    before = descendants()
    with LocalSandbox(2, without=without) as sandbox, pytest.raises(KeyboardInterrupt):
        sandbox.run([job, job])
    assert not late
    assert descendants() == before


def test_a_sandbox_that_nobody_closes_leaves_nothing_behind(tmp_path: Path) -> None:
    """Without namespaces, where a directory to write in is one of the machine's."""
    body = """
import os
from codea1_env.sandbox import CallsJob, LocalSandbox
from codea1_env.sandbox.worlds import World
jobs = [CallsJob("def f(): return 1", "f", (b"[[],[]]",), world=World(scratch=writes)) for writes in (False, True)]
opened = len(os.listdir("/proc/self/fd"))
sandbox = LocalSandbox(without=("namespaces",))
sandbox.run(jobs)
del sandbox
assert len(os.listdir("/proc/self/fd")) == opened
sandbox = LocalSandbox(without=("namespaces",))
sandbox.run(jobs)
if not os.fork():  # which has none of its processes
    raise SystemExit
os.wait()
assert sandbox.run(jobs)[1].outcomes[0].value == b"1"
raise KeyboardInterrupt
"""
    done = subprocess.run(
        [sys.executable, "-c", body], capture_output=True, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert done.stderr.rstrip().endswith("\nKeyboardInterrupt"), done.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("limit", "allowed", "says"),
    [("RLIMIT_AS", 1 << 30, "memory_mb"), ("RLIMIT_DATA", 1 << 30, "memory_mb"), ("RLIMIT_CPU", 60, "CPU")],
)
def test_a_limit_of_the_parents_own_is_never_a_verdict(limit: str, allowed: int, says: str) -> None:
    body = f"""
import resource
from codea1_env.errors import SandboxError
resource.setrlimit(resource.{limit}, ({allowed}, {allowed}))
small = Limits(time_limit_s=1, budget_s=10, memory_mb=512)
print(sandbox.run([CallsJob("def f(): return 1", "f", (b"[[],[]]",), small)])[0].outcomes[0].value.decode())
try:
    sandbox.run([CallsJob("def f(): return 1", "f", (b"[[],[]]",), Limits(time_limit_s=60, memory_mb=2048))])
except SandboxError as error:
    print(error)
"""
    output, errors = _finished(body, "pass")
    assert (output[:2], errors) == (b"1\n", b"")
    assert f"{says} " in output.decode()
    assert "must be at most" in output.decode()


def test_a_limit_of_the_parents_own_leaves_room_for_what_is_not_the_programs() -> None:
    """A program that is promised so much has the interpreter's memory and its threads' stacks beside it."""
    body = """
import resource
from codea1_env.errors import SandboxError
from codea1_env.sandbox.worlds import World
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
for memory_mb, threads in ((800, False), (800, True), (1000, False)):
    limits, world = Limits(time_limit_s=5, budget_s=10, memory_mb=memory_mb), World(threads=threads)
    try:
        sandbox.run([CallsJob("def f(): return 1", "f", (b"[[],[]]",), limits, world=world)])
        print("runs")
    except SandboxError as error:
        print("refused" if "memory_mb must be at most" in str(error) else error)
"""
    output, errors = _finished(body, "pass")
    assert (output.split(), errors) == ([b"runs", b"refused", b"refused"], b"")


def test_children_are_waited_for_whatever_is_inherited() -> None:
    body = """
import signal
sandbox.close()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
job = CallsJob("def f(): return 1", "f", (b"[[],[]]",), Limits(time_limit_s=5, memory_mb=512))
print(LocalSandbox().run([job])[0].outcomes[0].value.decode())
"""
    output, errors = _finished(body, "pass")
    assert (output, errors) == (b"1\n", b"")


def test_a_stack_too_small_for_candidates_is_refused_and_a_soft_limit_is_none() -> None:
    body = """
import resource
from codea1_env.errors import SandboxError
job = CallsJob("def f(): return bytearray(300 << 20)[0]", "f", (b"[[],[]]",), Limits(time_limit_s=5, memory_mb=512))
resource.setrlimit(resource.RLIMIT_DATA, (100 << 20, resource.getrlimit(resource.RLIMIT_DATA)[1]))
print(sandbox.run([job])[0].outcomes[0].value.decode())
sandbox.close()
resource.setrlimit(resource.RLIMIT_STACK, (32 << 20, 32 << 20))
try:
    LocalSandbox().run([job])
except SandboxError as error:
    print(error)
"""
    output, errors = _finished(body, "pass")
    assert errors == b""
    assert output.decode().splitlines() == [
        "0", "MiB of stack must be at most 32 under this process's ulimit -s, got 64"
    ]  # fmt: skip


def test_two_threads_may_share_a_sandbox(sandbox: LocalSandbox) -> None:
    found: dict[int, list[object]] = {}

    def work(number: int) -> None:
        found[number] = answers(sandbox, f"def f(x):\n    return [x, {number}]\n", range(20))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [[x, number] for x in range(20)] for number in range(4)}


_ADDRESSES = """
class Made: pass
def f(x):
    return [repr(Made()), id([]), id((x, "a")), hash(None), repr(f)]
"""


@pytest.mark.parametrize("without", MODES, ids=["namespaces", "no_namespaces"])
def test_objects_are_at_the_same_addresses_in_a_sandbox_that_is_started_again(without: tuple[str, ...]) -> None:
    """However many files this process has open then: what lost its zygote goes on in another one."""
    seen = set()
    for more in (0, 1, 12, 120, 300):
        handles = [os.open("/dev/null", os.O_RDONLY) for _ in range(more)]
        try:
            with LocalSandbox(without=without) as made:
                (result,) = made.run([CallsJob(_ADDRESSES, "f", (b"[[1],[]]",))])
        finally:
            for handle in handles:
                os.close(handle)
        seen.add(result.outcomes[0].value)
    assert len(seen) == 1
