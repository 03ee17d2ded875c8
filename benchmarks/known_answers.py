"""Programs whose right outcome is known without a sandbox, honest and hostile: what `soak.py` and `torture.py` run.

Honest ones are the bundled problems' references and mutants on the bundled tests' calls: their answers come from plain
execution here (they are ours), under the sandbox's hash seed (`fix_hash_seed`). Hostile ones have their outcome written
beside them. Does not hold attacks that read or forge: for those see `tests/attacks`.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from codea1_env.judging.equality import same_value
from codea1_env.problems import Problem, bundled_problems
from codea1_env.sandbox import CallsJob, JobResult, Limits, Outcome, OutcomeKind
from codea1_env.sandbox.inside.values import encode

HONEST_LIMITS = Limits(time_limit_s=5.0, budget_s=50.0, memory_mb=512)
"""Far from what an honest program here takes, so that load on the machine decides nothing."""
_PLAIN_LIMIT_S = 1
_TOO_LARGE = b'{"o":"too large"}'


@dataclass(frozen=True, slots=True)
class Known:
    """One job and what it must come to."""

    kind: str
    """"honest", or what the program tries."""
    job: CallsJob
    right: JobResult

    def is_right(self, got: JobResult) -> bool:
        """Whether `got` is the right outcome; equal values may be written in another order."""
        return (
            got.load_failure == self.right.load_failure
            and len(got.outcomes) == len(self.right.outcomes)
            and all(map(_same, self.right.outcomes, got.outcomes))
        )


def _same(right: Outcome, got: Outcome) -> bool:
    if (right.kind, right.error) != (got.kind, got.error):
        return False
    if right.kind is OutcomeKind.ERROR:
        return True  # its text may be another in another version of Python
    return right.value == got.value or same_value(right.value, got.value)


def fix_hash_seed() -> None:
    """Start this program again with the hash seed that jobs have: a mutant returns whichever of a set comes first."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})


class _TooSlow(BaseException):
    """Not an Exception: no program's `except` may catch it."""


def honest() -> list[Known]:
    """Every reference and every mutant that ends by itself, on all calls of its problem's tests."""
    return [known for problem in bundled_problems() for known in _of_problem(problem)]


def _of_problem(problem: Problem) -> Iterator[Known]:
    arguments = [_arguments(case.call) for case in (*problem.golden_tests, *problem.hidden_tests)]
    calls = tuple(encode_call(positional, named) for positional, named in arguments)
    for source in filter(None, (problem.reference_solution, *problem.mutants)):
        outcomes = _plainly(source, problem.entry_point, arguments)
        if outcomes is not None:
            job = CallsJob(source, problem.entry_point, calls, HONEST_LIMITS)
            yield Known("honest", job, JobResult(outcomes))


def _arguments(call: str) -> tuple[list[object], dict[str, object]]:
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    positional = [eval(ast.unparse(argument)) for argument in node.args]
    return positional, {str(item.arg): eval(ast.unparse(item.value)) for item in node.keywords}


def encode_call(positional: Sequence[object], named: dict[str, object]) -> bytes:
    """One call's arguments as `CallsJob.calls` wants them."""
    values = b",".join(encode(value) for value in positional)
    pairs = b",".join(b"[%s,%s]" % (encode(name), encode(value)) for name, value in named.items())
    return b"[[%s],[%s]]" % (values, pairs)


def _plainly(
    source: str, entry_point: str, arguments: Sequence[tuple[list[object], dict[str, object]]]
) -> tuple[Outcome, ...] | None:
    """What the calls come to in this very process; None where they take too long."""

    def stop(*_: object) -> None:
        raise _TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(_PLAIN_LIMIT_S)
    try:
        namespace: dict[str, object] = {"__name__": "solution"}
        exec(compile(source, "<program>", "exec"), namespace)
        return tuple(_outcome(namespace[entry_point], *copy.deepcopy(one)) for one in arguments)
    except _TooSlow:
        return None
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _outcome(function: object, positional: list[object], named: dict[str, object]) -> Outcome:
    assert callable(function)
    try:
        return Outcome(OutcomeKind.VALUE, encode(function(*positional, **named)))
    except Exception as error:
        return Outcome(OutcomeKind.ERROR, error=type(error).__name__)


def _hostile(kind: str, source: str, *right: OutcomeKind | bytes | str, limits: Limits) -> Known:
    """`f(0)`, `f(1)`, ...: a value as its encoding, an error by its name."""
    calls = tuple(b"[[%d],[]]" % number for number in range(len(right)))
    outcomes = tuple(
        Outcome(one)
        if isinstance(one, OutcomeKind)
        else Outcome(OutcomeKind.VALUE, one)
        if isinstance(one, bytes)
        else Outcome(OutcomeKind.ERROR, error=one)
        for one in right
    )
    return Known(kind, CallsJob(source, "f", calls, limits), JobResult(outcomes))


def cheap_hostile() -> list[Known]:
    """Each takes a few milliseconds at most: programs that leave, crash, fork, hog or shout, in some of their calls."""
    quick = Limits(time_limit_s=5.0, budget_s=50.0, memory_mb=256)
    crash, memory = OutcomeKind.CRASH, OutcomeKind.MEMORY
    leave = "import os\ndef f(x):\n    if x == 1:\n        os._exit(0)\n    return x"
    fall = "import ctypes\ndef f(x):\n    return ctypes.string_at(0) if x == 1 else x"
    fork = "import os\ndef f(x):\n    while x:\n        os.fork()\n    return x"
    kill = "import os\ndef f(x):\n    os.kill(-1 if x else os.getppid(), 9)"
    hoard = "def f(x):\n    hoard = []\n    while x == 1:\n        hoard.append(bytearray(1 << 22))\n    return x"
    shout = (
        "import os\ndef f(x):\n    print('x' * 100_000)\n    os.write(1, b'y' * 100_000)\n    return 'z' * (x << 21)"
    )
    close = (
        "import os\ndef f(x):\n    for handle in range(64):\n        try: os.close(handle)\n"
        "        except OSError: pass\n    return x"
    )
    write = (
        "def f(x):\n    try:\n        with open('/tmp/x' if x else '/dev/shm/x', 'w') as file:\n"
        "            file.write('x')\n    except OSError:\n        return x"
    )
    recurse = "def f(x):\n    return f(x) if x == 1 else x"
    leave_three = "import os\ndef f(x):\n    os._exit(x) if x < 3 else 0\n    return x"
    failed = Known(
        "does not load",
        CallsJob("import os\nos._exit(1)", "f", (b"[[0],[]]",), quick),
        JobResult((), Outcome(crash)),
    )
    return [
        failed,
        _hostile("leaves", leave, b"0", crash, b"2", limits=quick),
        _hostile("leaves until struck out", leave_three, crash, crash, crash, crash, limits=quick),
        _hostile("segmentation fault", fall, b"0", crash, b"2", limits=quick),
        _hostile("forks", fork, b"0", "PermissionError", "PermissionError", limits=quick),
        _hostile("kills", kill, "PermissionError", "PermissionError", limits=quick),
        _hostile("hoards memory", hoard, b"0", memory, b"2", limits=dataclasses.replace(quick, memory_mb=96)),
        _hostile("huge outputs", shout, b'""', _TOO_LARGE, limits=quick),
        _hostile("closes descriptors", close, b"0", b"1", limits=quick),
        _hostile("recurses", recurse, b"0", "RecursionError", b"2", limits=quick),
        _hostile("writes files", write, b"0", b"1", limits=quick),
    ]


def working(count: int) -> list[Known]:
    """Honest programs of some tens of milliseconds, every one with another answer."""
    source = "def f(n, x):\n    for _ in range(n):\n        x = (x * 16807) % 2147483647\n    return x"
    steps = 300_000
    return [
        Known(
            "honest",
            CallsJob(f"{source}  # {seed}", "f", (encode_call([steps, seed], {}),), HONEST_LIMITS),
            JobResult((Outcome(OutcomeKind.VALUE, encode(seed * pow(16807, steps, 2147483647) % 2147483647)),)),
        )
        for seed in range(1, count + 1)
    ]


def endless(time_limit_s: float, strikes: int = 1) -> list[Known]:
    """Loops and sleeps that never end, in their second call."""
    limits = Limits(time_limit_s=time_limit_s, budget_s=50.0, memory_mb=256, strikes=strikes)
    late = OutcomeKind.TIMEOUT
    return [
        _hostile("loops", "def f(x):\n    while x: pass\n    return 7", b"7", late, late, limits=limits),
        _hostile(
            "sleeps", "import time\ndef f(x):\n    time.sleep(600 * x)\n    return 7", b"7", late, late, limits=limits
        ),
    ]
