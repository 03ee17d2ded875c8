"""The only place that talks to Docker: one container with its attached streams, and the clearing of what others left.

Needs the extra `docker`. Does not know jobs: see `backend.py`. A container is trusted with nothing but its own streams.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import socket
import struct
import time
from collections.abc import Mapping
from typing import Any

from codea1_env.errors import SandboxError, SandboxUnsafe
from codea1_env.extras import extra
from codea1_env.sandbox.frames import FAILED, HEADER, HELLO, MAX_NOTICE_BYTES, UNSAFE, Broken, Frame, read_head
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


class Container:
    """One running container with the driver in it, and the frames that go in and out."""

    def __init__(self, client: Any, image: str, options: Mapping[str, object], memory_mb: int, runtime: str | None):
        """Start it and wait until the driver is ready. `options` are the driver's.

        Raises Broken, SandboxUnsafe (from inside), and what the `docker` package raises.
        """
        self.memory_mb = memory_mb
        self.jobs = 0
        self._client = client
        self._inbox = bytearray()
        self._multiplexed = bytearray()
        self._received = memoryview(bytearray(1 << 18))  # one for all: a new one each time frays the heap
        self._stderr = b""
        host_config = client.create_host_config(
            network_mode="none",
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            pids_limit=_PIDS,
            mem_limit=memory_mb << 20,
            memswap_limit=memory_mb << 20,
            init=True,
            auto_remove=True,
            ipc_mode="none",  # no /dev/shm
            tmpfs={"/tmp": "rw,noexec,nosuid,nodev,size=64m"},  # where candidates have their directories
            log_config={"Type": "none"},  # what candidates cause to be written is nobody's to keep
            runtime=runtime,
        )
        self.container_id = client.create_container(
            image,
            command=[json.dumps(options)],
            user="65534:65534",
            stdin_open=True,  # until this side closes it, or dies: the driver ends with it
            labels={OWNER_LABEL: owner_identity(os.getpid())},
            host_config=host_config,
        )["Id"]
        self._stream: Any = None
        try:
            streams = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            self._stream = client.attach_socket(self.container_id, params=streams)
            self._socket: socket.socket = getattr(self._stream, "_sock", self._stream)
            client.start(self.container_id)
            self.layers = self._read_layers()
        except BaseException:
            self.close()
            raise

    def _read_layers(self) -> Mapping[str, bool | str]:
        frame = self.receive(MAX_NOTICE_BYTES, 0, _STARTUP_TIMEOUT_S)
        head = read_head(frame) if frame.kind == HELLO else None
        layers = head.get("layers") if isinstance(head, dict) else None
        if not isinstance(layers, dict) or not all(isinstance(value, bool | str) for value in layers.values()):
            raise Broken("the driver must begin with its layers")
        return {**layers, **self._own_layers()}

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

    def is_alive(self) -> bool:
        """Between jobs: whether it has not ended meanwhile."""
        try:
            while select.select([self._socket], [], [], 0)[0] and len(self._inbox) < MAX_NOTICE_BYTES:
                self._fill()  # signs of life
        except (Broken, OSError, ValueError):
            return False
        return len(self._inbox) < MAX_NOTICE_BYTES

    def send(self, frame: bytes) -> None:
        """Raises Broken."""
        try:
            self._socket.settimeout(_SEND_TIMEOUT_S)
            self._socket.sendall(frame)
        except OSError as error:
            raise self._broken(f"took no input: {error}") from None

    def receive(self, max_head: int, max_body: int, timeout_s: float) -> Frame:
        """The next frame. Longer ones, silence and a driver's own complaint end in an exception."""
        deadline = time.monotonic() + timeout_s
        kind, head, body = HEADER.unpack(self._take(HEADER.size, deadline))
        if kind in (UNSAFE, FAILED):
            max_head, max_body = MAX_NOTICE_BYTES, 0
        if head > max_head or body > max_body:
            raise self._broken(f"sent a frame of {head} + {body} bytes, at most {max_head} + {max_body} were due")
        frame = Frame(kind, self._take(head, deadline), self._take(body, deadline))
        if kind == UNSAFE:
            raise SandboxUnsafe(f"in the container: {_printable(read_head(frame))}")
        if kind == FAILED:
            raise self._broken(f"gave up: {_printable(read_head(frame))}")
        return frame

    def _take(self, size: int, deadline: float) -> bytes:
        while len(self._inbox) < size:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise self._broken("was silent for too long")
            self._socket.settimeout(left_s)
            try:
                self._fill()
            except OSError as error:
                raise self._broken(f"was silent for too long: {error}") from None
        taken = bytes(self._inbox[:size])
        del self._inbox[:size]
        return taken

    def _fill(self) -> None:
        """Take in what the engine has for us, parted into standard output and standard error."""
        taken = self._socket.recv_into(self._received)
        if not taken:
            raise self._broken("has ended")
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

    def _broken(self, what: str) -> Broken:
        said = f"; it said: {_printable(self._stderr.decode('utf-8', 'replace'))}" if self._stderr else ""
        return Broken(f"the container {what}{said}")

    def close(self) -> None:
        """End and remove it. Idempotent."""
        self.sever()
        if self._stream is not None:
            response = getattr(self._stream, "_response", None)  # where the docker package keeps it
            if response is not None:
                response.close()
            self._stream.close()
            self._socket.close()
            self._stream = None
        remove(self._client, self.container_id)

    def sever(self) -> None:
        """End the conversation only; whoever waits for a frame gets Broken."""
        if self._stream is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)


def _printable(text: object) -> str:
    return "".join(character if character.isprintable() else " " for character in str(text))[-_STDERR_BYTES:]
