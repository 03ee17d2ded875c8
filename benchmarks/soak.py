"""A million jobs, every outcome checked, and whether anything grows meanwhile: memory, processes, descriptors, files.

    python benchmarks/soak.py [--jobs 1000000] [--backend local] [--workers 2] [--seed 0]

Of 10,000 jobs, 10 loop or sleep until they are stopped, 200 leave, crash, fork, kill, hoard memory or shout, and the
rest are honest; no two programs have the same text. Samples of this process and of the sandbox's processes (for docker
and ray: of this process only, theirs live elsewhere) make the table. Exit code 1 where an outcome is wrong, where
memory in the last tenth is over that in the first by more than 2 % and 2 MiB, or where anything else has grown.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from codea1_env.extras import for_script
from codea1_env.terminal import Parser

with for_script("dev"):
    import psutil
    from known_answers import Known, cheap_hostile, endless, fix_hash_seed, honest

    from codea1_env.sandbox import BACKENDS, Job, open_sandbox

DECK, BATCH = 10_000, 500
CHEAP_PER_DECK, ENDLESS_PER_DECK = 200, 10
TIME_LIMIT_S = 0.1
"""Of what never ends: each such job burns about two of these."""
TOLERATED_MIB, TOLERATED_SHARE = 2.0, 0.02


@dataclass(frozen=True, slots=True)
class Sample:
    """What there is at one moment, between two batches."""

    jobs: int
    """Done so far."""
    parent_mib: float
    """Resident memory of this process."""
    zygotes_mib: float
    """Resident memory of the sandbox's processes together; pages that they share count in each."""
    memory_files_mib: float
    """Size on the kernel's books of the memory files that jobs and records travel in."""
    descriptors: int
    """Of this process."""
    zygote_descriptors: int
    processes: int
    """Below this one, zombies included."""
    threads: int
    """Of this process."""
    files: int
    """In the directory for temporary files, which is this run's own."""


_COLUMNS = [field.name for field in dataclasses.fields(Sample)]
MEMORY = ("parent_mib", "zygotes_mib", "memory_files_mib")
COUNTS = ("descriptors", "zygote_descriptors", "processes", "threads", "files")


def deck(dice: random.Random) -> list[Known]:
    """10,000 jobs in random order."""
    cheap, late, plain = cheap_hostile(), endless(TIME_LIMIT_S), honest()
    chosen = [cheap[i % len(cheap)] for i in range(CHEAP_PER_DECK)]
    chosen += [late[i % len(late)] for i in range(ENDLESS_PER_DECK)]
    chosen += [plain[i % len(plain)] for i in range(DECK - len(chosen))]
    dice.shuffle(chosen)
    return chosen


def batches(cards: Sequence[Known], jobs: int) -> Iterator[tuple[list[Known], list[Job]]]:
    """The deck again and again; every job's program differs from all others by a comment."""
    for start in range(0, jobs, BATCH):
        numbers = range(start, min(start + BATCH, jobs))
        known = [cards[number % len(cards)] for number in numbers]
        texts = [f"{one.job.source}\n# {number}\n" for one, number in zip(known, numbers, strict=True)]
        yield known, [dataclasses.replace(one.job, source=text) for one, text in zip(known, texts, strict=True)]


def sample(jobs: int, temporary: Path) -> Sample:
    """Look at this process and at all below it."""
    own = psutil.Process()
    below = own.children(recursive=True)
    zygotes = [process for process in below if "zygote.py" in " ".join(_command(process))]
    return Sample(
        jobs,
        own.memory_info().rss / (1 << 20),
        sum(process.memory_info().rss for process in zygotes) / (1 << 20),
        sum(os.stat(link).st_blocks * 512 for link in _memory_files()) / (1 << 20),
        own.num_fds(),
        sum(map(_descriptors, zygotes)),
        len(below),
        own.num_threads(),
        sum(1 for _ in temporary.rglob("*")),
    )


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def _descriptors(process: psutil.Process) -> int:
    try:
        return process.num_fds()
    except psutil.AccessDenied:  # a zygote hides from everybody but root
        return 0


def _memory_files() -> list[str]:
    found = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            if os.readlink(link).startswith("/memfd:codea1"):
                found.append(str(link))
        except FileNotFoundError:  # the descriptor that lists the directory
            continue
    return found


def _show(one: Sample, rate: float, jobs: int) -> None:
    row = [f"{round(getattr(one, name), 2):>{len(name)}}" for name in _COLUMNS]
    print("  ".join([*row, f"{rate:6.0f}", f"{(jobs - one.jobs) / rate:6.0f}"]), flush=True)


def growth(samples: Sequence[Sample]) -> dict[str, str]:
    """{what: how much} for whatever has grown between the first and the last tenth of the samples (their medians)."""
    tenth = max(1, len(samples) // 10)
    grown = {}
    for name in (*MEMORY, *COUNTS):
        first, last = (
            statistics.median(getattr(one, name) for one in part) for part in (samples[:tenth], samples[-tenth:])
        )
        tolerated = max(TOLERATED_MIB, TOLERATED_SHARE * first) if name in MEMORY else 0
        print(f"{name:20} {first:9.2f} -> {last:9.2f}  ({last - first:+.2f})")
        if last - first > tolerated:
            grown[name] = f"{first:.2f} to {last:.2f}"
    return grown


def main() -> int:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--backend", choices=BACKENDS, default="local")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=100, help="how many to take over the run (default: 100)")
    options = parser.parse_args()
    fix_hash_seed()
    cards = deck(random.Random(options.seed))
    kinds = Counter(card.kind for card in cards)
    print(f"of {DECK} jobs: " + ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    wrong: Counter[str] = Counter()
    samples: list[Sample] = []
    step = max(BATCH, options.jobs // options.samples)
    with tempfile.TemporaryDirectory(prefix="codea1-soak-") as temporary:
        os.environ["TMPDIR"] = tempfile.tempdir = temporary
        with open_sandbox(options.backend, options.workers) as sandbox:
            sandbox.run([card.job for card in cards[:BATCH]])  # everything is started and loaded
            print("  ".join((*_COLUMNS, "jobs/s", "s left")), flush=True)
            began, done = time.monotonic(), 0
            for known, jobs in batches(cards, options.jobs):
                results = sandbox.run(jobs)
                for one, job, result in zip(known, jobs, results, strict=True):
                    if not one.is_right(result):
                        wrong[one.kind] += 1
                        print(f"WRONG: {one.kind}: {job}\nmust be {one.right}\ngot     {result}"[:2000], flush=True)
                done += len(jobs)
                if done % step < BATCH or done == options.jobs:
                    samples.append(sample(done, Path(temporary)))
                    rate = done / (time.monotonic() - began)
                    _show(samples[-1], rate, options.jobs)
            elapsed = time.monotonic() - began
        tempfile.tempdir = None
    left = len(psutil.Process().children(recursive=True)) if options.backend != "ray" else 0
    grown = growth(samples)
    print(
        f"{options.jobs} jobs on {options.backend}, {options.workers} workers, {elapsed:.0f} s, "
        f"{1000 * elapsed / options.jobs:.2f} ms a job: {wrong.total()} wrong outcomes {dict(wrong)}, "
        f"{left} processes left, grown: {grown or 'nothing'}"
    )
    return 1 if wrong or grown or left else 0


if __name__ == "__main__":
    sys.exit(main())
