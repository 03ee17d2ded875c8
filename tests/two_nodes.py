"""Two Ray nodes with addresses, processes and a /tmp/ray of their own, in namespaces here. Not a test module."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

HEAD, SECOND = "10.77.0.1", "10.77.0.2"
TRIES = 3
"""Ray gives up 30 seconds after it has begun to start, which a busy machine may need."""
RAY = [sys.executable, "-m", "ray.scripts.scripts"]
_ALONE = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]


class Impossible(Exception):
    """Such namespaces cannot be made here; says why."""


class Host:
    """What stands for a machine: it sees its own network, processes and /tmp/ray, and shares all other files."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        # Its first process: all of them end with it, as they do when a machine is switched off.
        script = f"mount --bind {folder} /tmp/ray && ip link set lo up && echo ready && exec cat"
        self._first = subprocess.Popen(
            [*_ALONE, "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )  # and with this process, whose end closes the pipe
        assert self._first.stdout is not None
        assert self._first.stderr is not None
        if self._first.stdout.readline() != b"ready\n":
            raise Impossible(self._first.stderr.read().decode().strip())
        self.process = int(Path(f"/proc/{self._first.pid}/task/{self._first.pid}/children").read_text())

    def inside(self, command: Sequence[str]) -> list[str]:
        """The command as it is run there."""
        return ["nsenter", "--target", str(self.process), "--net", "--mount", "--pid", *command]

    def start_ray(self, options: Sequence[str], env: Mapping[str, str]) -> None:
        """Make it a node of a cluster."""
        for attempt in range(1, TRIES + 1):
            done = subprocess.run(self.inside([*RAY, "start", *options]), capture_output=True, env=env, check=False)
            if done.returncode == 0:
                return
            said = (done.stdout + done.stderr).decode()
            assert attempt < TRIES, said
            assert "timed out during startup" in said, said
            subprocess.run(self.inside([*RAY, "stop", "--force"]), capture_output=True, env=env, check=False)

    def ip(self, command: str) -> None:
        """With this host's network, and the processes of the machine, which may be named."""
        inside = ["nsenter", "--target", str(self.process), "--net", "ip", *command.split()]
        done = subprocess.run(inside, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Impossible(f"{' '.join(inside)}: {done.stdout}{done.stderr}")

    def runs(self, name: str) -> bool:
        """Whether a process that calls itself so is there now."""
        mine = os.readlink(f"/proc/{self.process}/ns/net")
        for process in filter(str.isdecimal, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                is_there = os.readlink(f"/proc/{process}/ns/net") == mine
                if is_there and Path(f"/proc/{process}/cmdline").read_bytes().startswith(name.encode()):
                    return True
        return False

    def has_address(self, address: str) -> None:
        self.ip(f"address add {address}/24 dev eth0")
        self.ip("link set eth0 up")
        self.ip("route add default dev eth0")

    def kill(self) -> None:
        """Switch it off."""
        self._first.kill()
        self._first.communicate()


class TwoNodes:
    """A cluster of two such hosts, of `cpus` each; what runs on the first joins it by itself."""

    def __init__(self, folder: Path, cpus: tuple[int, int], env: Mapping[str, str]) -> None:
        self._folder, self._cpus, self._starts = folder, cpus, 0
        usual = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        self.env = {**usual, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", **env}
        self.hosts: list[Host] = []

    def start(self) -> None:
        Path("/tmp/ray").mkdir(exist_ok=True)  # to be hidden by each host's own
        self.head = self._host()
        self.head.ip("link add eth0 type bridge")  # a network with one machine so far
        self.head.has_address(HEAD)
        self.head.start_ray(["--head", "--port=6379", "--include-dashboard=false", *self._usual(HEAD, 0)], self.env)
        self.start_second()

    def start_second(self) -> None:
        """Once more, where the one before was killed."""
        self.second = self._host()
        cable = f"cable{self._starts}"
        self.head.ip(f"link add {cable} type veth peer name eth0 netns {self.second.process}")
        self.head.ip(f"link set {cable} master eth0 up")
        self.second.has_address(SECOND)
        self.second.start_ray([f"--address={HEAD}:6379", *self._usual(SECOND, 1)], self.env)

    def popen(self, *command: str, env: Mapping[str, str] | None = None, **how: Any) -> subprocess.Popen[str]:
        """On the first host."""
        return subprocess.Popen(
            self.head.inside(command), env={**self.env, **(env or {})}, stderr=subprocess.PIPE, text=True, **how
        )

    def close(self) -> None:
        for host in self.hosts:
            host.kill()

    def _host(self) -> Host:
        self._starts += 1
        self.hosts.append(Host(self._folder / f"ray-{self._starts}"))
        return self.hosts[-1]

    def _usual(self, address: str, place: int) -> list[str]:
        return ["--disable-usage-stats", "--num-cpus", str(self._cpus[place]), "--node-ip-address", address]


@contextlib.contextmanager
def two_nodes(folder: Path, cpus: tuple[int, int], env: Mapping[str, str]) -> Iterator[TwoNodes]:
    nodes = TwoNodes(folder, cpus, env)
    try:
        nodes.start()
        yield nodes
    finally:
        nodes.close()


def until(condition: Any, seconds: float = 900.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(condition())
