"""What a Mistake Book costs when it is large: bytes in memory and on disk, CPU-seconds to make, replay, save and load.

    python benchmarks/mistake_book.py 100000            100,000 questions with 8 tests each
    python benchmarks/mistake_book.py 1000000 --tests 8

Prints one line of a table. The tests are of the length that public problem sets have, see `--characters`.
"""

import argparse
import os
import random
import resource
import tempfile
import time
from pathlib import Path

from codea1_env.mistake_book.book import MistakeBook
from codea1_env.mistake_book.parts import parts_for
from codea1_env.reading.test_case import TestCase
from codea1_env.terminal import Parser

VISITED = 256
"""Questions of a round."""


def case_of(rng: random.Random, characters: int) -> TestCase:
    """A call of about so many characters, and a short value."""
    numbers = ", ".join(str(rng.randrange(-99, 100)) for _ in range(max(1, (characters - 20) // 4)))
    return TestCase(f"solve([{numbers}], {rng.randrange(10**6)})", str(rng.randrange(10**4)))


def resident_mb() -> float:
    """MiB of this process, now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=int, help="questions with tests in the book")
    parser.add_argument(
        "--tests", type=int, default=8, help="tests of each question (default: 8, all that are replayed)"
    )
    parser.add_argument("--characters", type=int, default=60, help="length of a test's call, about (default: 60)")
    given = parser.parse_args()

    rng, book = random.Random(0), MistakeBook()
    before, clock = resident_mb(), time.process_time
    recorded = 0.0
    for number in range(given.questions):
        cases = [case_of(rng, given.characters) for _ in range(given.tests)]
        start = clock()
        book.record(f"KodCode_{number}", [], cases)
        recorded += clock() - start
    memory = resident_mb() - before

    chosen = [f"KodCode_{rng.randrange(given.questions)}" for _ in range(VISITED)]
    start = clock()
    replays = [book.replay(name, 8) for name in chosen]
    for name, cases in zip(chosen, replays, strict=True):
        book.record(name, cases[:4], cases[4:])
    visit = clock() - start

    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "book.jsonl"
        start = clock()
        book.save(file)
        saved, size = clock() - start, file.stat().st_size
        start = clock()
        loaded = MistakeBook.load(file)
        read = clock() - start
        parts, place = MistakeBook.load(file, parts=max(2, parts_for(given.questions))), Path(directory) / "book"
        parts.save(place)
        start = clock()
        parts = MistakeBook.load(place)
        for name, cases in zip(chosen, replays, strict=True):
            parts.record(name, [], cases)
        touched = clock() - start
        start = clock()
        parts.save(place)
        saved_again = clock() - start
    assert len(loaded) == len(book)

    entries = len(book)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        "| questions | tests | in memory, MiB | a test, bytes | on disk, MiB | a test, bytes | make, s | a round, ms |"
    )
    print(
        f"| {given.questions:,} | {entries:,} | {memory:,.0f} | {memory * 2**20 / entries:,.0f} | {size / 2**20:,.0f} "
        f"| {size / entries:,.0f} | {recorded:.1f} | {visit * 1e3:.1f} |"
    )
    print(f"saved in {saved:.1f} s, loaded in {read:.1f} s; peak {peak:,.0f} MiB, with the loaded copies")
    print(
        f"in {parts.parts:,} parts: opened and a round recorded in {touched:.2f} s, saved again in {saved_again:.2f} s"
    )


if __name__ == "__main__":
    main()
