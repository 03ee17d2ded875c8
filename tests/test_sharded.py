"""Arenas by question: whatever number of processes scores, and whoever of them is lost, the bytes are those of one."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match, MatchScore
from codea1_env.arena.sharded import ShardedArena
from codea1_env.cli import main
from codea1_env.errors import ConfigurationError, SandboxError, UnusableReference
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.mistake_book.parts import part_of, parts_for
from codea1_env.problems import TestCase
from codea1_env.problems.problem import Problem
from codea1_env.problems.time_limits import TimeLimit
from codea1_env.records.matches import write_score
from codea1_env.records.recording import Recorder
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox import LocalSandbox, places
from codea1_env.sandbox.places import processes_on
from codea1_env.sandbox.processes import Unit

PROGRAMS = (
    "def f(x):\n    return x + x",
    "def f(x):\n    return 0 if x == 3 else x * 2",
    "def f(x):\n    import os\n    os._exit(1)",
    "def f(x:",
)


def problem(number: int, **changes: Any) -> Problem:
    tests = (TestCase("f(1)", "2"), TestCase("f(3)", "6"))
    return Problem(
        f"q{number}", "Twice x.", "f", reference_solution="def f(x):\n    return 2 * x", golden_tests=tests, **changes
    )


def match(number: int, **changes: Any) -> Match:
    suites = (f"assert f({number}) == {2 * number}\nassert f(3) == 6", "assert f(3) == 7\nassert f([")
    return Match(problem(number, **changes), PROGRAMS, (suites,) * len(PROGRAMS))


def questions(count: int) -> list[Match]:
    """Every third one twice in the batch."""
    return [match(number) for number in range(count)] + [match(number) for number in range(0, count, 3)]


@pytest.fixture(scope="module")
def three() -> Iterator[ShardedArena]:
    with ShardedArena(3, on_failure="apart") as arena:
        yield arena


@pytest.fixture(scope="module")
def one() -> Iterator[Arena]:
    with Arena(LocalSandbox(), on_failure="apart") as arena:
        yield arena


def written(scores: Sequence[MatchScore]) -> bytes:
    return b"".join(map(write_score, scores))


def test_scores_records_grades_and_book_are_those_of_one_arena(one: Arena, three: ShardedArena, tmp_path: Path) -> None:
    matches, came = questions(10), {}
    for name, arena in (("one", one), ("three", three)):
        arena.book = MistakeBook()
        with Recorder(tmp_path / f"{name}.recording") as recorder:
            arena._on_score = recorder.write
            scores = [arena.play(matches) for _ in range(2)]  # the second time with replays
            arena._on_score = None
        books = [MistakeBook() for _ in matches[:4]]
        books[1].record("q1", [], [TestCase("f(7)", "14"), TestCase("f([", "1")])
        scores.append(arena.play(matches[:4], update_book=False, books=books))
        arena.book.save(tmp_path / name)
        grades = arena.grade_many([(each.problem, each.codes, each.problem.golden_tests) for each in matches])
        came[name] = (written(scores[0]), written(scores[1]), written(scores[2]), grades)
    assert came["one"] == came["three"]
    assert b'"replays":[{' in came["one"][1]
    assert (tmp_path / "one").read_bytes() == (tmp_path / "three").read_bytes()
    assert (tmp_path / "one.recording").read_bytes() == (tmp_path / "three.recording").read_bytes()
    assert three.seconds.keys() == one.seconds.keys()


def test_a_time_limit_that_one_arena_found_out_is_that_of_all() -> None:
    config = RewardConfig(time_limit=TimeLimit.of({"times_reference": 5.0, "at_least": 0.5}))
    recorded: list[float] = []
    with ShardedArena(2, config, on_score=lambda ms, *_: recorded.extend(m.problem.time_limit_s for m in ms)) as arena:
        arena.play([match(number) for number in range(3)])
        arena.play([match(number) for number in range(3)])
    assert recorded[:3] == recorded[3:]
    assert all(limit >= 0.5 for limit in recorded)


def test_an_error_of_one_question_is_that_of_one_arena_and_the_arenas_go_on(one: Arena, three: ShardedArena) -> None:
    bad = dataclasses.replace(match(5), problem=dataclasses.replace(problem(5), reference_solution="def f(:"))
    for arena in (one, three):
        with pytest.raises(UnusableReference, match="q5"):
            arena.play([match(1), bad, match(2)])
    assert written(three.play(questions(3))) == written(one.play(questions(3)))


def killed_in_the_middle(arena: ShardedArena, work: Callable[[], Any]) -> Any:
    """What comes of the work, while the process of one arena is killed."""

    def kill() -> None:
        while not any(member.units for member in arena._processes._members):
            time.sleep(0.001)
        victim = next(member for member in arena._processes._members if member.units)
        os.kill(victim._process.pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    came = work()
    thread.join()
    return came


def test_a_killed_arena_costs_no_score(one: Arena, caplog: pytest.LogCaptureFixture) -> None:
    slow = [
        dataclasses.replace(each, codes=("import time\ndef f(x):\n    time.sleep(0.1)\n    return 2 * x",) * 4)
        for each in questions(4)
    ]
    with ShardedArena(2) as arena:
        came = killed_in_the_middle(arena, lambda: written(arena.play(slow, update_book=False)))
        assert "a process on this machine is lost, scoring" in caplog.text
        one.book = MistakeBook()
        assert came == written(one.play(slow, update_book=False))
        assert written(arena.play(slow, update_book=False)) == came


class Deadly:
    """Ends every process that takes it up."""

    version = "deadly"

    def answer(self, number: int) -> int:
        if number == 1:
            os._exit(1)
        return number

    def close(self) -> None:
        """Nothing."""


def test_arenas_outlive_the_thread_that_started_them(one: Arena) -> None:
    played, processes = questions(2), []
    with ShardedArena(2) as arena:
        for _ in range(2):
            with ThreadPoolExecutor(1) as thread:
                came = thread.submit(arena.play, played, update_book=False).result()
            assert written(came) == written(one.play(played, update_book=False))
            processes.append([each._process.pid for each in arena._processes._members])
    assert processes[0] == processes[1]


def test_what_ends_its_process_again_and_again_is_an_infrastructure_error() -> None:
    units = [Unit((number,), number, f"doing {number}") for number in range(3)]
    with processes_on("local", 2, Deadly) as processes:

        def work() -> None:
            while True:
                processes.work(units)

        with pytest.raises(SandboxError, match="4 died doing 1"):
            work()


def test_an_arena_is_closed_once_and_takes_sensible_arguments() -> None:
    for arguments in ({"arenas": 0}, {"arenas": 1025}, {"workers": 0}, {"workers": 1025}, {"sandbox": "nowhere"}):
        with pytest.raises(ConfigurationError, match=f"{next(iter(arguments))} must"):
            ShardedArena(**arguments)
    arena = ShardedArena(2)
    arena.start()
    children = [member._process for member in arena._processes._members]
    arena.close()
    arena.close()
    assert [child.returncode for child in children] == [0, 0]
    with pytest.raises(ConfigurationError, match="must be open"):
        arena.play([match(1)])


# The book in parts


def test_the_part_of_a_question_is_the_same_for_ever_and_parts_are_even() -> None:
    assert [part_of(name, 256) for name in ("", "q1", "é", "\ud800")] == [20, 82, 83, 180]
    counts = [0] * 8
    for number in range(8000):
        counts[part_of(f"q{number}", 8)] += 1
    assert all(900 < count < 1100 for count in counts)
    assert [parts_for(count) for count in (1, 4096, 4097, 10_000_000)] == [1, 1, 64, 65536]


def visited(book: MistakeBook, first: int, last: int) -> MistakeBook:
    for number in range(first, last):
        case = TestCase(f"f({number})", str(number % 7))
        book.record(f"q{number}", [], [case, case, TestCase("f(0)", "0")])
        if number % 5 == 0:
            book.record(f"q{number}", [case, case, TestCase("f(0)", "0")], [])
    return book


def test_a_book_in_parts_is_the_book_in_one(tmp_path: Path) -> None:
    one, parts = visited(MistakeBook(), 0, 60), visited(MistakeBook(parts=8), 0, 60)
    assert one == parts
    assert len(one) == len(parts) == 2 * 48
    assert sorted(one.questions()) == sorted(parts.questions())
    one.save(tmp_path / "one")
    parts.save(tmp_path / "parts")
    loaded = MistakeBook.load(tmp_path / "parts")
    assert (loaded.parts, len(loaded)) == (8, len(one))
    assert loaded == one == MistakeBook.load(tmp_path / "one", parts=4) == MistakeBook.load(tmp_path / "parts", parts=1)
    assert loaded.replay("q1", 8) == one.replay("q1", 8)
    assert visited(loaded, 50, 70).copy() == visited(one, 50, 70)
    MistakeBook.load(tmp_path / "parts", parts=1).save(tmp_path / "joined")
    assert sorted((tmp_path / "joined").read_bytes().splitlines()) == sorted(
        (tmp_path / "one").read_bytes().splitlines()
    )


def test_a_save_writes_the_parts_that_changed_and_a_load_reads_those_that_are_asked_for(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    visited(MistakeBook(parts=8), 0, 60).save(first)
    before = {path.name: path.stat().st_ino for path in first.iterdir()}
    book = MistakeBook.load(first)
    book.record("q1", [], [TestCase("f(9)", "18")])
    book.save(second)
    after = {path.name: path.stat().st_ino for path in second.iterdir()}
    new = after.keys() - before.keys()
    assert len(new) == 1
    assert new.pop().startswith(f"{part_of('q1', 8):05}-")
    assert all(after[name] == before[name] for name in (after.keys() & before.keys()) - {"index.json"})  # links
    book.save(second)
    assert {path.name for path in second.iterdir()} == after.keys()

    lazy = MistakeBook.load(second)
    asked = part_of("q2", 8)
    for path in second.glob("*.jsonl"):
        if int(path.name[:5]) != asked:
            path.unlink()
    assert lazy.frequencies("q2") == book.frequencies("q2")
    other = next(f"q{number}" for number in range(60) if part_of(f"q{number}", 8) != asked)
    with pytest.raises(OSError, match=r"No such file.*jsonl"):
        lazy.replay(other, 8)


def test_a_save_that_fails_leaves_the_book_that_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from codea1_env.mistake_book import parts

    place, write = tmp_path / "book", parts.write_whole
    book = visited(MistakeBook(parts=4), 0, 20)
    book.save(place)
    was = book.copy()
    visited(book, 0, 40)

    def full(path: Path, content: Any) -> None:
        if path.name == "index.json":
            raise OSError(28, "No space left on device")
        write(path, content)

    monkeypatch.setattr(parts, "write_whole", full)
    with pytest.raises(OSError, match="No space"):
        book.save(place)
    monkeypatch.undo()
    assert MistakeBook.load(place) == was
    book.save(place)
    assert MistakeBook.load(place) == book
    listed = {name for _, name, _ in json.loads((place / "index.json").read_text())["files"]}
    assert {path.name for path in place.iterdir()} == listed | {"index.json"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"parts": 1}, "parts must be a whole number from 2"),
        ({"files": [[0, "../other", 1]]}, "files must be a list of"),
        ({"files": [[0, "00000-0123456789abcdef.jsonl", 1]] * 2}, "files must have each part once"),
        ({"kind": "other"}, "the header must be"),
    ],
)
def test_a_damaged_index_is_named(tmp_path: Path, change: dict[str, object], says: str) -> None:
    visited(MistakeBook(parts=4), 0, 9).save(tmp_path)
    index = json.loads((tmp_path / "index.json").read_text())
    (tmp_path / "index.json").write_text(json.dumps(index | change) + "\n")
    with pytest.raises(ValueError, match=says):
        MistakeBook.load(tmp_path)


def test_a_part_with_other_tests_than_the_index_says_is_named(tmp_path: Path) -> None:
    visited(MistakeBook(parts=4), 0, 9).save(tmp_path)
    part = next(iter(tmp_path.glob("0*.jsonl")))
    part.write_bytes(b"".join(part.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(ValueError, match=f"{part.name}: must hold the"):
        MistakeBook.load(tmp_path).questions()


# codea1 score


def recorded(count: int) -> str:
    def line(number: int) -> dict[str, object]:
        each = match(number % 5)
        question = {"problem_id": each.problem.problem_id, "question": "", "entry_point": "f"}
        question["reference_solution"] = str(each.problem.reference_solution)
        return question | {"codes": each.codes[:2], "suites": each.suites[:2]}

    return "".join(json.dumps(line(number)) + "\n" for number in range(count)) + "broken\n"


def test_the_output_and_the_book_do_not_depend_on_the_number_of_arenas_or_workers(tmp_path: Path) -> None:
    (tmp_path / "in").write_text(recorded(12))
    (tmp_path / "book-parts").mkdir()
    for arenas in ((), ("--workers", "3"), ("--arenas", "2", "--workers", "4", "parts")):
        name = "-".join(arenas)
        book = tmp_path / ("book-parts" if "parts" in arenas else f"book{name}")
        options = [each for each in arenas if each != "parts"]
        arguments = ["score", str(tmp_path / "in"), "-o", str(tmp_path / f"out{name}"), "--book", str(book)]
        assert main([*arguments, *options]) == 1
    outputs = {path.read_bytes() for path in tmp_path.glob("out*")}
    assert len(outputs) == 1
    assert b'"replays":[{' in outputs.pop()
    files = {path.read_bytes() for path in tmp_path.glob("book*") if path.is_file()}
    assert len(files) == 1
    assert MistakeBook.load(tmp_path / "book-parts") == MistakeBook.load(tmp_path / "book")
    assert MistakeBook.load(tmp_path / "book-parts").parts == 256
    assert not list(tmp_path.glob(".*"))
    assert main([*arguments[:2], "-o", str(tmp_path / "no"), "--arenas", "1025"]) == 2
    assert main([*arguments[:2], "-o", str(tmp_path / "no"), "--book", str(tmp_path)]) == 2


def test_scoring_that_was_killed_goes_on_with_another_number_of_arenas(tmp_path: Path) -> None:
    (tmp_path / "in").write_text(recorded(24))
    arguments = ["score", str(tmp_path / "in"), "--book"]
    assert main([*arguments, str(tmp_path / "whole-book"), "-o", str(tmp_path / "whole")]) == 1
    rest = [*arguments, str(tmp_path / "book"), "-o", str(tmp_path / "out")]
    (tmp_path / "book").mkdir()
    process = subprocess.Popen([sys.executable, "-m", "codea1_env.cli", *rest, "--arenas", "2"], stderr=-3)
    partial = tmp_path / "out.partial"
    while process.poll() is None and not (partial.exists() and partial.read_bytes().count(b"\n") > 5):
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert partial.exists(), "it was done before it was killed: this shows nothing"
    assert main([*rest, "--arenas", "3"]) == 1
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()
    assert MistakeBook.load(tmp_path / "book") == MistakeBook.load(tmp_path / "whole-book")


def test_a_cluster_that_runs_here_is_joined_and_a_note_of_one_that_ended_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    assert places.running() is None
    note = tmp_path / "ray" / "ray_current_cluster"
    note.parent.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        note.write_text(f"{address}\n")
        assert places.running() == address
        monkeypatch.setattr(os, "getuid", lambda: note.stat().st_uid + 1)  # another user's
        assert places.running() is None
        monkeypatch.undo()
        monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    assert places.running() is None
    note.write_text("nonsense")
    assert places.running() is None
