"""The process that `torture.py` puts under load: batches of known jobs while something of its sandbox is killed.

    python benchmarks/torture_load.py {zygote,container,node} KILLS SEED {0,1}

The last number asks for a light load. Prints one JSON object at the end: kills, wrong outcomes, what is left in this
process. Does not look at what outlives it and does not notice that it hangs: `torture.py` does both.
"""

from __future__ import annotations

import argparse
import dataclasses
import faulthandler
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from known_answers import Known, cheap_hostile, endless, fix_hash_seed, honest, working

from codea1_env.errors import SandboxError
from codea1_env.extras import for_script
from codea1_env.sandbox import Job, Sandbox, open_sandbox
from codea1_env.terminal import Parser

with for_script("dev"):
    import psutil

WORKERS = 2
KILLS_PER_BATCH = {"zygote": 4, "container": 2, "node": 1}


@dataclasses.dataclass(frozen=True, slots=True)
class Killer:
    """How to kill a part of the sandbox."""

    kill: Callable[[random.Random], str]
    """Kills something; what it was, "" where there was nothing to kill just now. Called in a thread."""
    prepare: Callable[[], None] = lambda: None
    """Called before every batch."""


def load(dice: random.Random, light: bool) -> list[Known]:
    """Some seconds of work: honest, hostile and without end, each about a third of the time."""
    if light:
        known = [*honest()[::4], *working(10), *cheap_hostile(), *endless(0.3, strikes=2)]
    else:
        known = [*honest(), *working(40), *cheap_hostile() * 3, *endless(0.3, strikes=3) * 2]
    known += [dataclasses.replace(one, job=dataclasses.replace(one.job, hash_seed=1)) for one in working(10)]
    dice.shuffle(known)
    return known


def kill_zygote(dice: random.Random) -> str:
    """SIGKILL to a zygote, to its guard, to both, or to the candidate that runs."""
    try:
        guards = [child for child in psutil.Process().children() if "zygote.py" in " ".join(child.cmdline())]
        zygotes = [child for guard in guards for child in guard.children()]
        if not zygotes:
            return ""
        zygote = dice.choice(zygotes)
        victims = {"zygote": [zygote], "guard": [zygote.parent()], "zygote and guard": [zygote, zygote.parent()]}
        victims["candidate"] = zygote.children()
        what = dice.choice(sorted(victims))
        for process in victims[what]:
            if process is not None and process.pid != os.getpid():  # an orphan's parent may be this very process
                process.kill()
        return what if victims[what] else ""
    except psutil.NoSuchProcess:
        return ""


@contextmanager
def docker_killer() -> Iterator[Killer]:
    """`docker kill`, or SIGKILL to a container's init, driver, guard or zygote."""
    from codea1_env.sandbox.docker.engine import OWNER_LABEL, connect, owner_identity, require_docker

    client, errors = connect(), require_docker().errors
    label = f"{OWNER_LABEL}={owner_identity(os.getpid())}"

    def kill(dice: random.Random) -> str:
        running = client.containers(filters={"label": label, "status": "running"})
        if not running:
            return ""
        container = dice.choice(sorted(each["Id"] for each in running))
        what = dice.choice(["docker kill", "init", "driver", "guard", "zygote"])
        try:
            if what == "docker kill":
                client.kill(container)
            else:
                process = psutil.Process(client.inspect_container(container)["State"]["Pid"])
                for _ in range(["init", "driver", "guard", "zygote"].index(what)):
                    process = dice.choice(process.children())
                process.kill()
        except (errors.APIError, psutil.NoSuchProcess, IndexError):  # it ended, or starts just now
            return ""
        return what

    try:
        yield Killer(kill)
    finally:
        client.close()


@contextmanager
def cluster_killer() -> Iterator[Killer]:
    """A Ray cluster of two nodes on this machine; the second one is killed and replaced."""
    import logging

    import ray
    from ray.cluster_utils import Cluster

    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    head = {"num_cpus": 1, "include_dashboard": False, "temp_dir": f"{tempfile.gettempdir()}/ray"}
    nodes = Cluster(initialize_head=True, head_node_args=head)
    ray.init(address=nodes.address, log_to_driver=False, logging_level=logging.ERROR)
    victims: list[Any] = []

    def prepare() -> None:
        if not victims:
            victims.append(nodes.add_node(num_cpus=1))
            nodes.wait_for_nodes()

    def kill(dice: random.Random) -> str:
        if not victims:
            return ""
        nodes.remove_node(victims.pop(), allow_graceful=False)
        return "node"

    prepare()
    try:
        yield Killer(kill, prepare)
    finally:
        ray.shutdown()
        nodes.shutdown()


@contextmanager
def zygote_killer() -> Iterator[Killer]:
    yield Killer(kill_zygote)


KILLERS = {"zygote": zygote_killer, "container": docker_killer, "node": cluster_killer}
BACKENDS = {"zygote": "local", "container": "docker", "node": "ray"}


def holdings() -> dict[str, int]:
    """What this process holds, by kind."""
    own = psutil.Process()
    found = Counter[str]()
    for link in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{link}")
        except FileNotFoundError:  # the descriptor that lists the directory
            continue
        found["memory file" if target.startswith("/memfd:codea1") else "descriptor"] += 1
    return {**found, "thread": threading.active_count(), "child process": len(own.children())}


def grown(before: dict[str, int], after: dict[str, int], when: str) -> list[str]:
    names = sorted({*before, *after})
    more = {name: after.get(name, 0) - before.get(name, 0) for name in names}
    return [f"{count} {name}(s) {when}" for name, count in more.items() if count > 0]


def disturbed(
    sandbox: Sandbox, jobs: Sequence[Job], moments: Sequence[float], dice: random.Random, killer: Killer
) -> tuple[list[Any], list[str]]:
    """Results of one batch, and what was killed meanwhile: once at each of the `moments` (seconds)."""
    killed: list[str] = []
    over = threading.Event()
    began = time.monotonic()

    def work() -> None:
        for moment in moments:
            over.wait(max(0.0, began + moment - time.monotonic()))
            while not over.is_set():
                if what := killer.kill(dice):
                    killed.append(what)
                    break
                over.wait(0.01)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        return sandbox.run(jobs), killed
    finally:
        over.set()
        thread.join()


def mistakes(known: Sequence[Known], calm: Sequence[Any], results: Sequence[Any]) -> list[str]:
    return [
        f"{one.kind}: must be {right}, got {result}"[:500]
        for one, right, result in zip(known, calm, results, strict=True)
        if result != right
    ]


def torment(target: str, kills: int, dice: random.Random, light: bool) -> dict[str, object]:
    known = load(dice, light)
    jobs = [one.job for one in known]
    killed: Counter[str] = Counter()
    wrong: list[str] = []
    left: list[str] = []
    slowest_s = 0.0
    outside = holdings()
    with KILLERS[target]() as killer:
        nothing = holdings()
        with open_sandbox(BACKENDS[target], WORKERS) as sandbox:
            calm = sandbox.run(jobs)
            wrong += [
                f"undisturbed: {m.kind}: {c}"[:500] for m, c in zip(known, calm, strict=True) if not m.is_right(c)
            ]
            began = time.monotonic()
            wrong += mistakes(known, calm, sandbox.run(jobs))
            calm_s = time.monotonic() - began
            quiet = holdings()
            while killed.total() < kills and not wrong:
                killer.prepare()
                moments = sorted(dice.uniform(0, calm_s) for _ in range(KILLS_PER_BATCH[target]))
                began = time.monotonic()
                try:
                    results, now = disturbed(sandbox, jobs, moments[: kills - killed.total()], dice, killer)
                    wrong += mistakes(known, calm, results)
                    killed.update(now)
                except SandboxError as error:
                    wrong.append(f"SandboxError: {error}")
                slowest_s = max(slowest_s, time.monotonic() - began)
                print(f"{killed.total()} kills, {len(wrong)} wrong, {slowest_s:.1f} s", file=sys.stderr, flush=True)
            killer.prepare()
            wrong += mistakes(known, calm, sandbox.run(jobs))  # and everything is in its place again
            if target != "node":  # Ray's own threads and descriptors come and go
                left += grown(quiet, holdings(), "more after the kills")
        if target != "node":
            left += grown(nothing, holdings(), "after close")
    if target != "node":
        left += grown(outside, holdings(), "at the end")
    return {"kills": dict(killed), "wrong": wrong, "left": left, "calm_s": calm_s, "slowest_s": slowest_s}


def main() -> None:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=KILLERS)
    parser.add_argument("kills", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("light", type=int, choices=(0, 1))
    options = parser.parse_args()
    fix_hash_seed()
    faulthandler.register(signal.SIGUSR1, all_threads=True)  # where it hangs, if it does
    print(json.dumps(torment(options.target, options.kills, random.Random(options.seed), options.light == 1)))


if __name__ == "__main__":
    main()
