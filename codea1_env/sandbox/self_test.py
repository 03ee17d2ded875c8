"""Eleven attacks of our own on a sandbox of this machine, each judged by what it did, not by what it says.

Harmless where the sandbox holds. Where it does not, they change only what the test itself has put there (a file, a
listening socket, a variable, a process) and the sandbox's own process, and read files that this user may read. Does not
replace the attack corpus in `tests/`: eleven attacks that fail show that the layers are in force, not that all
attacks do.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from codea1_env.sandbox import CallsJob, JobResult, Limits, Outcome, OutcomeKind, Sandbox, SandboxError, SandboxUnsafe

_LIMITS = Limits(time_limit_s=0.5, budget_s=2.0, memory_mb=256)
_VARIABLE = "CODEA1_SELF_TEST"
_FORGED = '"forged"'
_HONEST = CallsJob("def f(x):\n    return x + 1", "f", (b"[[41],[]]",), _LIMITS)
_HONEST_VALUE = b"42"


@dataclass(frozen=True, slots=True)
class AttackResult:
    """What one attack came to."""

    name: str
    tries: str
    succeeded: bool
    detail: str
    """What was seen, for a reader."""


@dataclass(frozen=True, slots=True)
class _Canaries:
    """What the attacks go for. Nothing of the user's own is touched."""

    secret: str
    file: Path
    """Which holds it."""
    written: Path
    """Which is not there."""
    listener: socket.socket
    process: subprocess.Popen[bytes]


@dataclass(frozen=True, slots=True)
class _Attack:
    name: str
    tries: str
    """To do what; completes the sentence "it tries to"."""
    source: str
    """A program that defines `attack`."""
    judge: Callable[[_Canaries, JobResult], str]
    """Why it succeeded; "" where it did not."""
    arguments: Callable[[_Canaries], Sequence[Sequence[object]]] = lambda canaries: [[]]
    """Positional arguments of every call."""
    is_apart: bool = False
    """Every call has a process of its own, one after the other, for what the program imports."""


def run_attacks(sandbox: Sandbox) -> list[AttackResult]:
    """All of them, one after another. Raises SandboxError where the sandbox cannot run at all."""
    with _canaries() as canaries:
        return [_run(attack, canaries, sandbox) for attack in _ATTACKS]


def _run(attack: _Attack, canaries: _Canaries, sandbox: Sandbox) -> AttackResult:
    calls = tuple(json.dumps([list(words), []]).encode() for words in attack.arguments(canaries))
    job = CallsJob(attack.source, "attack", calls, _LIMITS, is_shared=not attack.is_apart)
    try:
        hostile, honest = sandbox.run([job, _HONEST])
    except SandboxUnsafe:
        raise
    except SandboxError as error:
        sandbox.run([_HONEST])  # raises again where nothing can run at all
        return AttackResult(attack.name, attack.tries, True, f"it broke the sandbox: {error}")
    why = attack.judge(canaries, hostile)
    if not why and [outcome.value for outcome in honest.outcomes] != [_HONEST_VALUE]:
        why = f"the next program, an honest one, got {_told(honest)}"
    return AttackResult(attack.name, attack.tries, bool(why), why or _told(hostile))


@contextlib.contextmanager
def _canaries() -> Iterator[_Canaries]:
    secret = secrets.token_hex(16)
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    os.environ[_VARIABLE] = secret
    try:
        with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            file, written = Path(folder, "secret.txt"), Path(folder, "written.txt")
            file.write_text(secret)
            yield _Canaries(secret, file, written, listener, process)
    finally:
        del os.environ[_VARIABLE]
        process.kill()
        process.communicate()


def _told(result: JobResult) -> str:
    if result.load_failure is not None:
        return f"no loaded program ({_word(result.load_failure)})"
    return ", ".join(map(_word, result.outcomes))


def _word(outcome: Outcome) -> str:
    if outcome.kind is OutcomeKind.VALUE:
        return f"the value {outcome.value[:60].decode('ascii', 'replace')}"
    return f"{outcome.kind.value} {outcome.error}".strip()


def _values(result: JobResult) -> list[bytes]:
    return [outcome.value for outcome in result.outcomes if outcome.kind is OutcomeKind.VALUE]


def _has_returned(what: str) -> Callable[[_Canaries, JobResult], str]:
    """Of a program that returns only where it succeeds."""
    return lambda canaries, result: what if _values(result) else ""


def _has_found(what: str) -> Callable[[_Canaries, JobResult], str]:
    """Of a program that returns a list of what it found."""

    def judge(canaries: _Canaries, result: JobResult) -> str:
        found = [value for value in _values(result) if value != b"[]"]
        return f"{what} {found[-1][:120].decode('ascii', 'replace')}" if found else ""

    return judge


def _has_connected(canaries: _Canaries, result: JobResult) -> str:
    try:
        canaries.listener.accept()[0].close()
    except BlockingIOError:
        return ""
    return "it opened a TCP connection to this machine"


def _has_killed(canaries: _Canaries, result: JobResult) -> str:
    with contextlib.suppress(subprocess.TimeoutExpired):
        canaries.process.wait(0.2)
        return "it killed a process outside the sandbox"
    return "" if _values(result) else "it killed the sandbox's own process"


def _has_written(canaries: _Canaries, result: JobResult) -> str:
    if canaries.written.exists():
        return "it made a file"
    return "" if canaries.file.read_text() == canaries.secret else "it changed a file"


def _has_forged(canaries: _Canaries, result: JobResult) -> str:
    if len(result.outcomes) > 2:
        return f"its records made {len(result.outcomes)} answers of 2 calls"
    expected = json.dumps(canaries.secret[::-1]).encode()  # in place of a right answer: nothing inside can know it
    return "a forged record held the right value" if expected in _values(result) else ""


def _has_outlived(canaries: _Canaries, result: JobResult) -> str:
    ended = [outcome.kind for outcome in result.outcomes] == [OutcomeKind.TIMEOUT]
    return "" if ended else f"it was not stopped for time: {_told(result)}"


# Each program defines `attack`; they are only ever run in a sandbox.
_ATTACKS = (
    _Attack(
        "read a file",
        "return the text of a file of this user and of /etc/passwd",
        """
def attack(path):
    found = []
    for name in (path, "/etc/passwd", "/etc/hostname"):
        try:
            found.append(open(name).read()[:200])
        except OSError:
            pass
    return found
""",
        _has_found("it read a file outside the standard library:"),
        lambda canaries: [[str(canaries.file)]],
    ),
    _Attack(
        "read the environment",
        "find this process's variables in its own environment and in every /proc/PID/environ",
        """
import os
def attack():
    found = [name for name in os.environ if name not in ("PATH", "LC_ALL", "LC_CTYPE", "PYTHONHASHSEED")]
    processes = {str(os.getppid())}
    try:
        processes.update(name for name in os.listdir("/proc") if name.isdigit())
    except OSError:
        pass
    for process in processes - {str(os.getpid())}:
        try:
            if open(f"/proc/{process}/environ", "rb").read(1):
                found.append("the environment of process " + process)
        except OSError:
            pass
    return found
""",
        _has_found("it saw"),
    ),
    _Attack(
        "use the network",
        "connect to a TCP port that listens on this machine",
        """
import socket
def attack(port):
    connection = socket.create_connection(("127.0.0.1", port), 0.3)
    connection.sendall(b"x")
    return True
""",
        _has_connected,
        lambda canaries: [[canaries.listener.getsockname()[1]]],
    ),
    _Attack(
        "start a process",
        "fork",
        """
import os
def attack():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    return pid
""",
        _has_returned("it started a process"),
    ),
    _Attack(
        "kill the parent",
        "send SIGKILL to its parent and to a process outside the sandbox",
        """
import os
import signal
def attack(victim):
    said = []
    for pid in (victim, os.getppid()):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError as error:
            said.append(type(error).__name__)
    return said
""",
        _has_killed,
        lambda canaries: [[canaries.process.pid]],
    ),
    _Attack(
        "write a file",
        "make a file and empty another, both of this user",
        """
def attack(secret, new):
    for path in (secret, new):
        try:
            with open(path, "w") as file:
                file.write("x")
        except OSError:
            pass
""",
        _has_written,
        lambda canaries: [[str(canaries.file), str(canaries.written)]],
    ),
    _Attack(
        "leave with exit code 0",
        "pass a test by os._exit(0) and by sys.exit(0)",
        """
import os
import sys
def attack(how):
    sys.exit(0) if how else os._exit(0)
""",
        _has_returned("leaving with exit code 0 was taken for an answer"),
        lambda canaries: [[0], [1]],
    ),
    _Attack(
        "forge a record",
        "write its own answers, and too many, into the memory where results are collected; each counts as a returned "
        "value",
        """
import os
import struct
import sys
def attack(claim):
    frame = sys._getframe()
    while frame is not None:
        for found in list(frame.f_locals.values()):
            region = getattr(found, "_region", found)
            if isinstance(region, memoryview):
                payload = claim.encode()
                answer = struct.pack("<IBQ", len(payload), ord("V"), 0) + payload
                records = struct.pack("<IBQ", 0, ord("L"), 0) + answer * 5 + struct.pack("<IBQ", 2**31, ord("V"), 0)
                region[16 : 16 + len(records)] = records
                region[:16] = struct.pack("<IIQ", len(records), 7, 0)
                os._exit(0)
        frame = frame.f_back
""",
        _has_forged,
        lambda canaries: [[_FORGED], [_FORGED]],
    ),
    _Attack(
        "never end",
        "loop forever, ignoring exceptions and signals",
        """
import signal
signal.signal(signal.SIGALRM, signal.SIG_IGN)
def attack():
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
""",
        _has_outlived,
    ),
    _Attack(
        "exhaust memory",
        "allocate twice its memory",
        """
def attack(limit):
    blocks = []
    while len(blocks) < 2 * limit:
        blocks.append(bytearray(1 << 20))
    return len(blocks)
""",
        _has_returned(f"it was given more than {_LIMITS.memory_mb} MiB"),
        lambda canaries: [[_LIMITS.memory_mb]],
    ),
    _Attack(
        "remember",
        "leave bits for a later program, in the offsets of open files and in what its parent knows of it",
        """
import os
import sys
def attack(mark):
    found = []
    for handle in range(64):
        try:
            if os.lseek(handle, 0, os.SEEK_CUR) > 0:
                found.append(f"the offset of descriptor {handle}")
            os.lseek(handle, mark, os.SEEK_SET)
        except OSError:
            pass
    frame = sys._getframe()
    while frame is not None:
        found += [name for name, value in frame.f_locals.items() if hasattr(value, "ru_maxrss")]
        frame = frame.f_back
    return found
""",
        _has_found("a later candidate found"),
        lambda canaries: [[1 + 4 * k] for k in range(3)],
        is_apart=True,
    ),
)
