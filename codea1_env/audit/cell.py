"""Where a grader is kept while it is audited: Linux namespaces with processes, files and a network of its own.

The grader and all that it starts see the system's libraries and the directories that they are given, read-only, an
empty home, an empty /tmp and a loopback of their own. The warden, process 1 in there, looks at what they leave and ends
with all of them. Fails closed: without namespaces there is no cell. Does not bound memory, nor protect against bugs in
the kernel.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from codea1_env.audit.warden import keep, read_line
from codea1_env.closing import interrupts_later
from codea1_env.errors import SandboxUnsafe

_STARTS_S = 30.0
_ENDS_S = 10.0
_INSIDE = str(Path(__file__).parents[1] / "sandbox" / "inside")


class CellEnded(Exception):
    """The grader's process has ended."""


class CellSilent(Exception):
    """The grader did not answer in time."""


class GraderCell:
    """One grader in a cell of its own. `begin` is called in there, with standard streams as its lines come and go."""

    def __init__(self, begin: Callable[[], None], readable: Sequence[str], path: str) -> None:
        """Raises SandboxUnsafe where the kernel refuses namespaces."""
        questions, self._questions = os.pipe()
        self._answers, answers = os.pipe()
        self._control, control = socket.socketpair()
        self._told = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the cell
        self._rest = b""
        # In the child it never takes effect: the Ctrl-C of a process group ends the audit, which ends the cell.
        with interrupts_later(), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads: the child starts none
            self._pid = os.fork()
            if not self._pid:
                self._control.close()  # this side's ends: a fork that kept them would never see them close
                os.close(self._questions)
                os.close(self._answers)
                _become_cell(begin, readable, path, (questions, answers, self._told.fileno()), control)
        for handle in (questions, answers):
            os.close(handle)
        control.close()
        self._closed = False
        self._control.settimeout(_STARTS_S)
        try:
            said = read_line(self._control)
        except TimeoutError:
            said = b""
        if said != b"ready":
            self.close()
            reason = said.decode("utf-8", "replace") or "no word from it"
            raise SandboxUnsafe(
                "an audited grader must be kept in namespaces of its own (user, mount, PID, network), got: "
                f"{reason}; run where an ordinary user may make them, or as root of a virtual machine"
            )

    def ask(self, line: str, wait_s: float) -> bytes:
        """One line there, one line back. Raises CellEnded or CellSilent."""
        end = time.monotonic() + wait_s
        rest = memoryview(line.encode() + b"\n")
        poll = select.poll()
        poll.register(self._answers, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        while b"\n" not in self._rest:
            if rest:
                _, writable, _ = select.select([], [self._questions], [], max(0.0, end - time.monotonic()))
                try:
                    rest = rest[os.write(self._questions, rest[:4096]) :] if writable else rest
                except BrokenPipeError:
                    raise CellEnded from None
            left_s = end - time.monotonic()
            if left_s <= 0:
                raise CellSilent
            ready = dict(poll.poll(0 if rest else left_s * 1000))
            if self._answers in ready:
                chunk = os.read(self._answers, 1 << 16)
                if not chunk:
                    raise CellEnded
                self._rest += chunk
                if len(self._rest) > 1 << 20:
                    break
            elif self._control.fileno() in ready:  # the warden says that the grader has ended
                raise CellEnded
        answer, _, self._rest = self._rest.partition(b"\n")
        return answer

    def waiting(self) -> bool:
        """Whether the grader said something that it was not asked."""
        if not self._rest and select.select([self._answers], [], [], 0)[0]:
            self._rest = os.read(self._answers, 1 << 16)  # empty where it has closed them: `ask` tells of that
        return bool(self._rest)

    def look(self) -> Mapping[str, bool]:
        """What is left since the last look, by the names of effects; it is cleared away. Raises CellEnded."""
        try:
            self._control.sendall(b"look\n")
            said = read_line(self._control)
            if said == b"ended":
                said = read_line(self._control)
        except OSError as error:
            raise CellEnded from error
        if not said:
            raise CellEnded
        effects: Mapping[str, bool] = json.loads(said)
        return effects

    def last_words(self) -> str:
        """The end of what was said on standard error."""
        size = os.fstat(self._told.fileno()).st_size
        said = os.pread(self._told.fileno(), 2000, max(0, size - 2000)).decode("utf-8", "replace").strip()
        return said.splitlines()[-1][-300:] if said else ""

    def close(self) -> None:
        """End everything in there. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._control.close()
        # The warden leaves, the kernel ends all that is in its namespace, and then the child that waits for it ends.
        with os.fdopen(os.pidfd_open(self._pid)) as child:
            if not select.select([child], [], [], _ENDS_S)[0]:
                os.kill(self._pid, signal.SIGKILL)  # the warden, whose parent it is, goes with it
        os.waitpid(self._pid, 0)
        for handle in (self._questions, self._answers):
            os.close(handle)
        self._told.close()


def _become_cell(
    begin: Callable[[], None],
    readable: Sequence[str],
    path: str,
    streams: tuple[int, int, int],
    control: socket.socket,
) -> NoReturn:
    """In the first child: never returns."""
    try:
        sys.path.insert(0, _INSIDE)
        import isolation

        sys.path.pop(0)
        isolation.enter_namespaces()
        isolation.die_with_parent()
        warden = os.fork()
        if warden:
            control.close()
            for handle in streams:
                os.close(handle)
            os.waitpid(warden, 0)
            os._exit(0)
        isolation.die_with_parent()
        keep(isolation, begin, readable, path, streams, control)
    except Exception as error:
        with contextlib.suppress(OSError):  # nobody listens any more
            control.sendall(f"{type(error).__name__}: {error}".replace("\n", " ").encode() + b"\n")
    finally:
        os._exit(1)
