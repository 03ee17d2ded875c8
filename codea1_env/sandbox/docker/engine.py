"""The only place that talks to Docker: one container with its attached streams, and the clearing of what others left.

Needs the extra `docker`. Does not know who works on what: see `backend.py`. Does not trust a container: one that is
silent, too slow or says what no driver would is lost, with all that it had in hand.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from codea1_env.errors import SandboxError, SandboxUnsafe
from codea1_env.extras import extra
from codea1_env.sandbox.frames import (
    ALIVE,
    FAILED,
    HEADER,
    HELLO,
    MAX_NOTICE_BYTES,
    RESULT,
    UNSAFE,
    Broken,
    largest_result,
    pack_job,
    read_head,
    read_result,
)
from codea1_env.sandbox.local import WALL_PER_BUDGET
from codea1_env.sandbox.processes import Greeting, Lost, Member
from codea1_env.sandbox.protocol import Job, JobResult
from codea1_env.sandbox.scheduling import stat_of

OWNER_LABEL = "codea1.owner"
"""Which process a container belongs to: `owner_identity()`."""
SOURCES_LABEL = "codea1.sources"
"""Which version of the code inside an image holds: `image.sources_digest()`."""
PACKAGES_LABEL = "codea1.packages"
"""The third-party packages that an image has, separated by commas."""

_PIDS = 128
_STARTUP_TIMEOUT_S = 120.0
_SEND_TIMEOUT_S = 60.0
_SILENCE_S = 60.0
"""The driver gives a sign of life every 5 s: a container that says nothing for so long is frozen or lost."""
_MOST_READS = 64
"""In a row, of one that never stops to talk."""
_CALL_TIMEOUT_S = 60
_STDERR_BYTES = 2000
_STREAM_HEADER = struct.Struct(">BxxxI")  # how Docker multiplexes standard output (1) and error (2)


def require_docker() -> Any:
    """The `docker` package. Raises ImportError naming the extra."""
    with extra("docker", "the Docker sandbox needs"):
        return importlib.import_module("docker")


def connect() -> Any:
    """A client of the engine that DOCKER_HOST names. Raises SandboxError where none answers."""
    docker = require_docker()
    options = docker.utils.kwargs_from_env()
    where = options.get("base_url", docker.constants.DEFAULT_UNIX_SOCKET.replace("http+", ""))
    try:
        if where.startswith("unix://"):  # the package leaks its socket where nobody listens
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(where.removeprefix("unix://"))
        client = docker.APIClient(version="auto", timeout=_CALL_TIMEOUT_S, **options)
    except (docker.errors.DockerException, OSError) as error:
        raise SandboxError(
            f"a Docker engine must answer at {where}, got: {error}; start one (dockerd) or set DOCKER_HOST"
        ) from error
    # Else the package keeps a connection open for every URL that it has used, and every container has URLs of its own.
    client.headers["Connection"] = "close"
    return client


def owner_identity(pid: int) -> str:
    """Names a process for as long as it lives: boot, PID namespace, PID, start time. Raises OSError when it is gone."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read().strip()
    return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}/{pid}/{stat_of(str(pid))[19]}"


def _is_abandoned(owner: str, state: str) -> bool:
    """Whether the owner of a container is known to be gone.

    One on another machine or before a reboot cannot be asked: then only a container that has ended counts.
    """
    *place, pid, _ = ["", "", *owner.split("/")]
    if place[2:] != owner_identity(os.getpid()).split("/")[:2] or not pid.isdecimal():
        return state in ("exited", "dead")
    try:
        return owner_identity(int(pid)) != owner
    except OSError:
        return True


def remove_abandoned(client: Any) -> None:
    """Remove the containers whose owner process is gone (killed, most likely)."""
    for container in client.containers(all=True, filters={"label": OWNER_LABEL}):
        if _is_abandoned(container["Labels"][OWNER_LABEL], container["State"]):
            remove(client, container["Id"])


def remove(client: Any, container: str) -> None:
    """Kill and remove a container; returns when it is gone. Raises SandboxError when the engine cannot."""
    errors = require_docker().errors
    try:
        client.remove_container(container, force=True, v=True)
    except errors.NotFound:
        return  # it ended and was removed by the engine
    except (errors.DockerException, OSError) as error:
        if getattr(error, "status_code", None) != 409:
            raise SandboxError(f"a container must be removable, got: {error}") from error
        with contextlib.suppress(errors.NotFound):  # the engine is at it
            client.wait(container, timeout=_CALL_TIMEOUT_S, condition="removed")


class Container(Member):
    """One running container with the driver in it: chunks of jobs go in, results come out, each checked as it comes."""

    where = "the Docker engine"

    def __init__(self, client: Any, image: str, options: Mapping[str, object], memory_mb: int, runtime: str | None):
        """Start it. `options` are the driver's. Raises nothing of the engine's: `take` tells what went wrong."""
        super().__init__()
        self.memory_mb, self.jobs, self.container_id = memory_mb, 0, ""
        self.layers: Mapping[str, bool | str] = {}
        self._client, self._image = client, image
        self._chunks: deque[Sequence[Job]] = deque()
        self._results: list[JobResult] = []
        """Of the first chunk, as far as they have come."""
        self._answers: deque[Any] = deque()
        self._failure: Exception | None = None
        self._heard_at = time.monotonic()
        self._due_at = self._heard_at + _STARTUP_TIMEOUT_S
        """When the driver must have greeted, or the first job have ended, whatever it says meanwhile."""
        self._inbox, self._multiplexed, self._stderr = bytearray(), bytearray(), b""
        self._received = memoryview(bytearray(1 << 18))  # one for all: a new one each time frays the heap
        self._stream: Any = None
        try:
            self._start(options, runtime)
        except (require_docker().errors.DockerException, OSError) as error:
            self._failure = Lost(str(error))
        except BaseException:
            self.close()
            raise

    def _start(self, options: Mapping[str, object], runtime: str | None) -> None:
        host_config = self._client.create_host_config(
            network_mode="none",
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            pids_limit=_PIDS,
            mem_limit=self.memory_mb << 20,
            memswap_limit=self.memory_mb << 20,
            init=True,
            auto_remove=True,
            ipc_mode="none",  # no /dev/shm
            tmpfs={"/tmp": "rw,noexec,nosuid,nodev,size=64m"},  # where candidates have their directories
            log_config={"Type": "none"},  # what candidates cause to be written is nobody's to keep
            runtime=runtime,
        )
        self.container_id = self._client.create_container(
            self._image,
            command=[json.dumps(options)],
            user="65534:65534",
            stdin_open=True,  # until this side closes it, or dies: the driver ends with it
            labels={OWNER_LABEL: owner_identity(os.getpid())},
            host_config=host_config,
        )["Id"]
        streams = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        self._stream = self._client.attach_socket(self.container_id, params=streams)
        self.socket: socket.socket = getattr(self._stream, "_sock", self._stream)
        self._client.start(self.container_id)

    def give(self, arguments: tuple[Any, ...]) -> None:
        (jobs,) = arguments
        self.jobs += len(jobs)
        self._heard_at = time.monotonic()
        if not self._chunks:
            self._due_at = self._heard_at + _longest_s(jobs[0])
        self._chunks.append(jobs)
        try:
            self.socket.settimeout(_SEND_TIMEOUT_S)
            self.socket.sendall(b"".join(map(pack_job, jobs)))
        except TimeoutError:
            self._failure = Lost(f"container {self.container_id[:12]}: took no input for {_SEND_TIMEOUT_S:g} s")
        except OSError:  # it has ended: `take` meets that
            pass

    def take(self) -> Any:
        """First of all a greeting, then for each chunk ([results], layers). Raises SandboxUnsafe, too."""
        if not self._answers and self._failure is not None:
            raise self._failure
        return self._answers.popleft()

    def has_news(self) -> bool:
        """Hear what it has said meanwhile; whether `take` has something to return or to raise."""
        try:
            for _ in range(_MOST_READS):
                if self._failure is not None or not self._fill():
                    break
                while (frame := self._frame()) is not None:
                    self._understand(*frame)
            now = time.monotonic()
            is_silent = self._chunks and now > self._heard_at + _SILENCE_S
            if is_silent or (now > self._due_at and (self._chunks or not self.layers)):
                raise Broken("was silent, or busy with one job, for too long")
        except SandboxUnsafe as error:
            self._failure = error
        except (Broken, require_docker().errors.DockerException, OSError) as error:
            said = f"; it said: {_printable(self._stderr.decode('utf-8', 'replace'))}" if self._stderr else ""
            self._failure = Lost(f"container {self.container_id[:12]}: {error}{said}")
        return bool(self._answers) or self._failure is not None

    def _fill(self) -> bool:
        """Take in what the engine has for us now, parted into standard output and standard error; whether it had."""
        try:
            self.socket.settimeout(0)
            taken = self.socket.recv_into(self._received)
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        if not taken:
            raise Broken("has ended")
        self._heard_at = time.monotonic()
        self._multiplexed += self._received[:taken]
        while len(self._multiplexed) >= _STREAM_HEADER.size:
            stream, size = _STREAM_HEADER.unpack_from(self._multiplexed)
            end = _STREAM_HEADER.size + size
            if len(self._multiplexed) < end:
                break
            content = self._multiplexed[_STREAM_HEADER.size : end]
            del self._multiplexed[:end]
            if stream == 1:
                self._inbox += content
            else:
                self._stderr = (self._stderr + content)[-_STDERR_BYTES:]
        return True

    def _frame(self) -> tuple[bytes, bytes, bytes] | None:
        """Kind, head and body of the next frame, once it is there. Raises Broken for one longer than what is due."""
        if len(self._inbox) < HEADER.size:
            return None
        kind, head, body = HEADER.unpack_from(self._inbox)
        is_result = kind == RESULT and self._chunks
        most = largest_result(self._chunks[0][len(self._results)]) if is_result else (MAX_NOTICE_BYTES, 0)
        if head > most[0] or body > most[1]:
            raise Broken(f"sent a frame of {head} + {body} bytes, at most {most[0]} + {most[1]} were due")
        start, end = HEADER.size + head, HEADER.size + head + body
        if len(self._inbox) < end:
            return None
        frame = kind, bytes(self._inbox[HEADER.size : start]), bytes(self._inbox[start:end])
        del self._inbox[:end]
        return frame

    def _understand(self, kind: bytes, head: bytes, body: bytes) -> None:
        if kind == RESULT and self._chunks and self.layers:
            jobs = self._chunks[0]
            self._results.append(read_result(head, body, jobs[len(self._results)]))
            if len(self._results) == len(jobs):
                self._answers.append((self._results, self.layers))
                self._chunks.popleft()
                self._results = []
            if self._chunks:
                self._due_at = time.monotonic() + _longest_s(self._chunks[0][len(self._results)])
        elif kind == HELLO and not self.layers:
            self.layers = {**_layers_of(read_head(head)), **self._own_layers()}
            self._answers.append(Greeting(self._image, f"container {self.container_id[:12]}"))
        elif kind == UNSAFE:
            raise SandboxUnsafe(f"in the container: {_printable(read_head(head))}")
        elif kind == FAILED:
            raise Broken(f"gave up: {_printable(read_head(head))}")
        elif kind != ALIVE:
            raise Broken("must say hello, then answer jobs")

    def _own_layers(self) -> Mapping[str, bool | str]:
        """What the engine says that it has put around the container, as far as the engine can."""
        config = self._client.inspect_container(self.container_id)["HostConfig"]
        engine = self._client.info()

        def supported(flag: str) -> bool | str:
            return bool(engine.get(flag)) or f"the engine says that it has no {flag}"

        return {
            "container_network": config["NetworkMode"] == "none",
            "container_read_only": config["ReadonlyRootfs"] is True,
            "container_capabilities": config["CapDrop"] == ["ALL"],
            "container_no_new_privileges": "no-new-privileges" in config["SecurityOpt"],
            "container_pids": supported("PidsLimit"),
            "container_memory": supported("MemoryLimit"),
            "container_swap": supported("SwapLimit"),
            "container_runtime": config["Runtime"],
        }

    def close(self) -> None:
        """End and remove it. What an engine cannot remove now, the next start of a sandbox removes."""
        if self._stream is not None:
            response = getattr(self._stream, "_response", None)  # where the docker package keeps it
            if response is not None:
                response.close()
            self._stream.close()
            self.socket.close()
            self._stream = None
        with contextlib.suppress(SandboxError, OSError):
            if self.container_id:
                remove(self._client, self.container_id)

    kill = close


def _longest_s(job: Job) -> float:
    """Seconds after which a job must have ended, whatever its container says meanwhile."""
    return (job.limits.strikes + 1) * WALL_PER_BUDGET * job.limits.budget_s + _SILENCE_S


def _layers_of(head: Any) -> Mapping[str, bool | str]:
    layers = head.get("layers") if isinstance(head, dict) else None
    if not isinstance(layers, dict) or not all(isinstance(value, bool | str) for value in layers.values()):
        raise Broken("must begin with its layers")
    return layers


def _printable(text: object) -> str:
    return "".join(character if character.isprintable() else " " for character in str(text))[-_STDERR_BYTES:]
