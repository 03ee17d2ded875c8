"""Where processes are: children of this one, or actors on the nodes of a Ray cluster, which is joined, or started and
ended.

    processes_on("local", 2, make)      make() is called in each process, and is asked `answer(*arguments)` there

A child begins as a new Python, with this one's `sys.path` and nothing else of it; an actor looks for modules in these
folders, too. Does not decide who works on what: see `processes.py`.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import codea1_env
from codea1_env.class_paths import as_own, look_in, own_exits
from codea1_env.closing import interrupts_later
from codea1_env.errors import SandboxError
from codea1_env.extras import extra
from codea1_env.sandbox.processes import Greeting, Lost, Member, Processes, Served, Unit

_log = logging.getLogger(__name__)


def processes_on(
    place: str, count: int, make: Callable[[], Served], address: str | None = None, cores: int = 1, version: str = ""
) -> Processes:
    """`place`: "ray", a cluster, joined or started at the first work (`address` as for `RaySandbox`, `cores` of each
    process there); anything else: this machine. `make` and what it makes are of importable code. `version`: what it
    must be of; empty: what the first one is of. Raises ImportError."""
    expected = _told_version(version) if version else ""
    return _OnRay(count, make, expected, address, cores) if place == "ray" else _Here(count, make, expected, cores)


def _told_version(version: str) -> str:
    return f"codea1 {codea1_env.__version__}, {version}"


def _served(make: Callable[[], Served]) -> tuple[Served | None, Greeting | Exception]:
    """In a process: the object, and what to say first."""
    try:
        with own_exits():
            held = make()
        return held, Greeting(_told_version(held.version), "this machine")
    except Exception as error:
        return None, as_own(error)


def _answered(held: Served, arguments: tuple[Any, ...]) -> Any:
    try:
        with own_exits():
            return held.answer(*arguments)
    except Exception as error:
        return as_own(error)  # a traceback does not go through a pipe


class _Child(Member):
    """A child of this process, which has nothing of its threads, locks and modules. A pipe each, not an executor's
    queues: those need named semaphores, which outlive a process group that is killed."""

    def __init__(self, make: Callable[[], Served], core: int | None) -> None:
        """`core`: the only one that it and what it starts may use; None: any."""
        super().__init__()
        self.connection, theirs = Pipe()
        pinned = "" if core is None else f"import os; os.sched_setaffinity(0, [{core}]); "
        begin = f"from {__name__} import serve; serve({theirs.fileno()}, {os.getpid()})"
        code = f"{pinned}import sys; sys.path[:] = {sys.path!r}; {begin}"
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", code], stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),)
            )
        self.give((make,))

    def give(self, arguments: tuple[Any, ...]) -> None:
        with suppress(OSError):  # it has died: `take` meets that
            self.connection.send(arguments)

    def take(self) -> Any:
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            raise Lost(f"process {self._process.pid} has ended") from None

    def close(self) -> None:
        self.connection.close()
        self._process.wait()

    def kill(self) -> None:
        self._process.kill()
        self.close()


class _Here(Processes):
    """On this machine.

    Where there are as many as cores, each has a core of its own. A process and its sandbox take turns. On two cores
    the one that is woken is often put where another arena works, while its own core idles: that is 14 % of the time.
    """

    def __init__(self, count: int, make: Callable[[], Served], version: str, cores: int) -> None:
        super().__init__(count, version)
        self._make = make
        mine = sorted(os.sched_getaffinity(0))
        self._cores = mine if cores == 1 and len(mine) <= count and count > 1 else []

    def _started(self, place: int) -> Member:
        return _Child(self._make, self._cores[place % len(self._cores)] if self._cores else None)

    def _answering(self, members: Sequence[_Child]) -> Sequence[_Child]:
        by_connection = {member.connection: member for member in members}
        ready = wait(list(by_connection), timeout=1.0)
        return [by_connection[connection] for connection in ready if isinstance(connection, Connection)]

    @contextmanager
    def _starting(self) -> Iterator[None]:
        """Ctrl-C is this process's to handle, and they inherit that it is blocked."""
        with interrupts_later():
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                yield
            except OSError as error:
                raise SandboxError(
                    f"worker processes must start, got: {error} (fewer of them, or see ulimit -n and -u)"
                ) from error
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve(descriptor: int, parent: int) -> None:
    """In a child: make what is served, and answer until nothing comes any more."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    held = None
    with Connection(descriptor) as connection, suppress(EOFError, ConnectionError):  # the parent wants no more
        (make,) = connection.recv()
        held, greeting = _served(make)
        connection.send(greeting)
        asked: SimpleQueue[tuple[Any, ...] | None] = SimpleQueue()
        threading.Thread(target=_listen, args=(connection, asked), daemon=True).start()
        while held is not None and (arguments := asked.get()) is not None:
            connection.send(_answered(held, arguments))
    if held is not None:
        held.close()


def _end_with(parent: int) -> None:
    """The parent's death is this process's, busy or not; that of the thread that started it, as the kernel would have
    it (PR_SET_PDEATHSIG), is not."""
    with suppress(OSError):  # a kernel without such descriptors
        poll = select.poll()
        poll.register(os.pidfd_open(parent), select.POLLIN)
        while os.getppid() == parent:
            poll.poll()
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGKILL)


def _listen(connection: Connection, asked: SimpleQueue[tuple[Any, ...] | None]) -> None:
    """Take what comes while the process works: a parent that gives is never kept waiting by one that answers. At the
    end, None."""
    try:
        with suppress(EOFError, OSError):
            while True:
                asked.put(connection.recv())
    finally:
        asked.put(None)


class Hosted:
    """The actor that stands for a process on a node."""

    def __init__(self, make: Callable[[], Served], folders: Sequence[str]) -> None:
        """`folders`: where code of one's own is looked for, too."""
        look_in(folders)
        self._held, self._greeting = _served(make)

    def greet(self) -> Greeting | Exception:
        if isinstance(self._greeting, Exception):
            return self._greeting
        return Greeting(self._greeting.version, f"node {load_ray().util.get_node_ip_address()}")

    def answer(self, arguments: tuple[Any, ...]) -> Any:
        assert self._held is not None, "asked only after it has greeted"
        return _answered(self._held, arguments)


class _Remote(Member):
    """A process on a node of a cluster."""

    where = "the cluster"

    def __init__(self, ray: Any, make: Callable[[], Served], cores: int) -> None:
        super().__init__()
        self._ray = ray
        kind = ray.remote(num_cpus=cores, max_restarts=0, scheduling_strategy="SPREAD")(Hosted)
        self._handle = kind.remote(make, [os.getcwd(), *filter(None, sys.path)])
        self.references = deque([self._handle.greet.remote()])

    def give(self, arguments: tuple[Any, ...]) -> None:
        self.references.append(self._handle.answer.remote(arguments))

    def take(self) -> Any:
        errors = self._ray.exceptions
        lost = (errors.RayActorError, errors.ObjectLostError, errors.WorkerCrashedError, errors.OutOfMemoryError)
        try:
            return self._ray.get(self.references.popleft())
        except lost as error:
            raise Lost(type(error).__name__) from error

    def kill(self) -> None:
        if self._ray.is_initialized():
            self._ray.kill(self._handle)  # a node that is only unreachable may still be running it

    close = kill


class _OnRay(Processes):
    """On the nodes of a cluster, spread over them."""

    def __init__(self, count: int, make: Callable[[], Served], version: str, address: str | None, cores: int) -> None:
        super().__init__(count, version)
        self._make, self._ray, self._address, self._cores = make, load_ray(), address, cores
        self._cluster: ExitStack | None = None

    def work(self, units: Iterable[Unit]) -> None:
        try:
            super().work(units)
        except self._ray.exceptions.RayError as error:
            raise SandboxError(f"the Ray cluster must do its work, got {type(error).__name__}: {error}") from error

    def close(self) -> None:
        super().close()
        if self._cluster is not None and os.getpid() == self._owner:
            self._cluster.close()

    @contextmanager
    def _starting(self) -> Iterator[None]:
        if self._cluster is None:
            self._cluster = ExitStack()
            try:
                self._cluster.enter_context(joined(self._address, self.count * self._cores))
            except (ConnectionError, ValueError, RuntimeError) as error:
                self._cluster = None
                raise SandboxError(f"the Ray cluster must be reachable, got: {error}") from error
        yield

    def _started(self, place: int) -> Member:
        return _Remote(self._ray, self._make, self._cores)

    def _answering(self, members: Sequence[_Remote]) -> Sequence[_Remote]:
        by_reference = {member.references[0]: member for member in members}
        ready, _ = self._ray.wait(list(by_reference), num_returns=1, timeout=1.0)
        return [by_reference[reference] for reference in ready]

    def _why_lonely(self) -> str:
        free = self._ray.available_resources().get("CPU", 0)
        return f"{free:g} free CPUs on the cluster for {self.count} processes of {self._cores}"


def load_ray() -> Any:
    """The library. Raises ImportError, which names the extra."""
    with extra("ray", "the Ray backend needs"):
        import ray
    return ray


@contextmanager
def joined(address: str | None, workers: int) -> Iterator[str]:
    """The address of a cluster, joined or started here; left, or ended, at the end unless this process had joined it.

    `address` as for `RaySandbox`.
    """
    ray = load_ray()
    is_ours = not ray.is_initialized()
    try:
        if is_ours:
            _join(ray, address, workers)
        yield str(ray.get_runtime_context().gcs_address)
    finally:
        if is_ours:
            with interrupts_later():  # interrupted while it starts or stops, Ray crashes or leaves its processes
                ray.shutdown()


def running() -> str | None:
    """The address of the cluster that this user's `ray start` has left running on this machine, if there is one."""
    folder = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp"  # as Ray chooses it
    note = Path(folder, "ray", "ray_current_cluster")
    with suppress(OSError, ValueError):
        if note.stat().st_uid != os.getuid():
            return None
        address = note.read_text().strip()
        host, _, port = address.rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), timeout=2).close()  # the note outlives a killed cluster
        return address
    return None


def _join(ray: Any, address: str | None, workers: int) -> None:
    chosen = address or os.environ.get("RAY_ADDRESS") or running() or "local"
    is_own, began = chosen == "local", time.monotonic()
    # A cluster of our own has a slot per worker whatever the number of cores, as the local backend has.
    own = {"num_cpus": max(workers, os.cpu_count() or 1), "include_dashboard": False}
    with interrupts_later():
        ray.init(address=chosen, log_to_driver=False, logging_level=logging.ERROR, **(own if is_own else {}))
    took_s = time.monotonic() - began
    if is_own:
        instead = "a command joins a running one (`ray start --head`) instead"
        _log.warning("starting a Ray cluster took %.1f s; %s", took_s, instead)
    else:
        _log.warning("joined the Ray cluster at %s in %.1f s", chosen, took_s)
