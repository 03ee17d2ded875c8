"""`codea1 serve` under load, on this machine alone: is anything lost, answered twice or answered wrong, does it grow?

    python benchmarks/serve.py [--minutes 10] [--clients 50] [--in-flight 1000] [--workers 2] [--kill]

Each client keeps its share of the requests in flight, over connections of its own. No two requests are alike: each
program returns a number of its own, so that an answer to another request is seen. With --kill the server, its zygotes
and its guards are killed in turn, every few seconds: clients see errors then, and send again.

The table says requests, errors by status, seconds to an answer (p50, p99), and the memory of the server's processes in
each fifth of the time. Exit code 1 where an answer is wrong or is another request's, where one is lost without an
error, where errors come without --kill, where memory in the last fifth is over that in the third by more than 10 % and
16 MiB, or where the server does not come back.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from codea1_env.extras import for_script

with for_script("serve,dev"):
    import httpx
    import psutil

TOLERATED_MIB, TOLERATED_SHARE = 16.0, 0.1
KINDS = ("right", "wrong", "error", "late")
_LATE_OF = 200
"""One in so many programs never ends: it takes a worker for its time limit."""
_LIMIT_S = 0.2


@dataclass
class Tally:
    """What clients saw."""

    answered: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)
    """(seconds since the beginning, MiB of all the server's processes, shared pages once)."""
    kills: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)
    """Of each error without a status, what it was."""


def request(number: int) -> tuple[dict[str, object], dict[str, object]]:
    """A request, and what must come back. `number` is in both, so that answers cannot be exchanged."""
    kind = "late" if number % _LATE_OF == 0 else KINDS[number % 3]
    body = {
        "right": f"return x + {number}",
        "wrong": f"return x + {number} - (x > 1)",
        "error": f"return [][{number}] if x != 2 else x + {number}",
        "late": "while True: pass",
    }[kind]
    tests = [[f"f({x})", str(x + number)] for x in (1, 2, 3, 4)]
    # As many tests again as the number says: the answer has that many verdicts.
    tests += [["f(2)", str(2 + number)]] * (number % 5)
    asked = {"program": f"def f(x):\n    {body}\n", "tests": tests, "time_limit_s": _LIMIT_S}
    passes = {"right": lambda x: True, "wrong": lambda x: x == 1, "error": lambda x: x == 2, "late": lambda x: False}
    verdicts = [passes[kind](x) for x in (1, 2, 3, 4)] + [passes[kind](2)] * (number % 5)
    return asked, {"passes": verdicts}


async def client(url: str, numbers: itertools.count[int], share: int, until: float, tally: Tally) -> None:
    """Keeps `share` requests in flight until then."""
    # Idle connections are the server's to close: httpx, where its loop is late, closes one that it has just written to.
    limits = httpx.Limits(max_connections=share, max_keepalive_connections=share, keepalive_expiry=None)
    # Without certificates, which take a fifth of a second each: 50 clients that read them keep each other's connections
    # idle for ten seconds, and on loaded cores for longer than the server keeps one.
    async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits, trust_env=False, verify=False) as http:

        async def one() -> None:
            while time.monotonic() < until:
                number = next(numbers)
                asked, expected = request(number)
                began = time.monotonic()
                try:
                    answer = await http.post("/v1/verify", json=asked)
                except httpx.TransportError as error:
                    tally.errors[type(error).__name__] += 1
                    tally.told.append(f"{error!r} after {time.monotonic() - began:.2f} s: {causes(error)}")
                    await asyncio.sleep(0.2)
                    continue
                if answer.status_code != 200:
                    tally.errors[str(answer.status_code)] += 1
                    await asyncio.sleep(float(answer.headers.get("Retry-After", "0.2")))
                    continue
                tally.answered += 1
                tally.seconds.append(time.monotonic() - began)
                passes = [verdict == "pass" for verdict in answer.json()["verdicts"]]
                if passes != expected["passes"]:
                    tally.mistakes.append(f"request {number}: {answer.text[:200]}")

        await asyncio.gather(*(one() for _ in range(share)))


def causes(error: BaseException) -> str:
    """What it came from, down to the system's error."""
    chain = []
    while (error := error.__cause__ or error.__context__) is not None:
        chain.append(repr(error))
    return " < ".join(chain)


def below(process: psutil.Process) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        return [process, *process.children(recursive=True)]
    return []


def memory_mib(process: psutil.Process) -> float:
    """Of the server's processes together; what a fork shares counts once."""
    total = 0.0
    for each in below(process):
        with contextlib.suppress(psutil.Error, OSError):
            total += each.memory_full_info().pss / 2**20
    return total


async def watch(process: psutil.Process, began: float, until: float, tally: Tally) -> None:
    while time.monotonic() < until:
        tally.memory.append((time.monotonic() - began, await asyncio.to_thread(memory_mib, process)))
        await asyncio.sleep(max(1.0, (until - began) / 200))


async def kill(process: psutil.Process, until: float, tally: Tally) -> None:
    """Every few seconds kill -9 to the server, or to one of the processes that it judges with."""
    dice = random.Random(0)
    while time.monotonic() + 8 < until:
        await asyncio.sleep(4)
        servers = [each for each in process.children() if "spawn_main" in " ".join(each.cmdline())]
        inner = [each for server in servers for each in server.children(recursive=True)]
        name, among = [("server", servers), ("zygote or guard", inner)][tally.kills.total() % 2]
        with contextlib.suppress(psutil.Error, OSError, IndexError):
            os.kill(dice.choice(among).pid, signal.SIGKILL)
            tally.kills[name] += 1


async def load(options: argparse.Namespace, url: str, process: psutil.Process) -> Tally:
    tally, began = Tally(), time.monotonic()
    until = began + 60 * options.minutes
    numbers = itertools.count(1)
    share = options.in_flight // options.clients
    work = [client(url, numbers, share, until, tally) for _ in range(options.clients)]
    work.append(watch(process, began, until, tally))
    if options.kill:
        work.append(kill(process, until, tally))
    await asyncio.gather(*work)
    asked = next(numbers) - 1
    if asked != tally.answered + tally.errors.total():
        tally.mistakes.append(f"{asked} were asked, {tally.answered + tally.errors.total()} answered or failed")
    return tally


def report(options: argparse.Namespace, tally: Tally) -> list[str]:
    """Prints the table; what is not as it should be."""
    wrong = list(tally.mistakes[:5])
    length = max(1, len(tally.memory) // 5)
    fifths = [statistics.median(mib for _, mib in tally.memory[k * length :][:length]) for k in range(5)]
    begun, last = fifths[2], fifths[-1]
    if last > begun * (1 + TOLERATED_SHARE) and last > begun + TOLERATED_MIB and not options.kill:
        wrong.append(f"memory must stay, grew from {begun:.0f} to {last:.0f} MiB")
    if tally.errors and not options.kill:
        wrong.append(f"no request must fail, got {dict(tally.errors)}")
        wrong += tally.told[:5]
    if options.kill and not (tally.errors and tally.kills):
        wrong.append("clients must have seen errors, got none")
    cuts = statistics.quantiles(tally.seconds, n=100) if len(tally.seconds) > 1 else [0.0] * 99
    print("| clients | in flight | workers | minutes | answers | p50 s | p99 s | errors | killed | MiB in each fifth |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    print(
        f"| {options.clients} | {options.in_flight} | {options.workers} | {options.minutes:g} | {tally.answered:,} "
        f"| {cuts[49]:.2f} | {cuts[98]:.2f} | {dict(tally.errors) or 0} "
        f"| {dict(tally.kills) or 0} | {', '.join(f'{mib:.0f}' for mib in fifths)} |"
    )
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--in-flight", type=int, default=1000, help="requests at a time, of all clients together")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kill", action="store_true")
    options = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "codea1_env.cli", "serve", "--port", str(port), "--workers", str(options.workers)]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        is_up(url)
        tally = asyncio.run(load(options, url, psutil.Process(server.pid)))
        wrong = report(options, tally)
        if not is_up(url):
            wrong.append("the server must be back, got no answer")
    finally:
        server.terminate()
        server.wait(120)
    for each in wrong:
        print(each, file=sys.stderr)
    return int(bool(wrong))


def is_up(url: str) -> bool:
    """Whether it answers within a minute."""
    for _ in range(300):
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{url}/health", timeout=60, trust_env=False).status_code == 200:
                return True
        time.sleep(0.2)
    return False


if __name__ == "__main__":
    raise SystemExit(main())
