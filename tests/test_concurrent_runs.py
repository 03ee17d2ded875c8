"""Two runs with one file: one of them works, the other refuses in one line, and no byte is lost."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codea1_env.cli import main
from codea1_env.errors import ConfigurationError
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.problems import TestCase
from codea1_env.problems.jsonl import bundled_problems, write_problems
from codea1_env.records.recording import Recorder
from codea1_env.whole_files import RunLock, claimed, whole_file

COMMAND = [sys.executable, "-m", "codea1_env.cli"]
IN_USE = "must not be in use by another run"


def match(question: str) -> bytes:
    """A recorded match whose one program fails its one test: the book gets the test."""
    record = {
        "problem_id": question,
        "question": "f(x): twice x",
        "entry_point": "f",
        "reference_solution": "def f(x):\n    return 2 * x",
        "codes": ["def f(x):\n    return x"],
        "suites": [["assert f(3) == 6"]],
    }
    return json.dumps(record).encode() + b"\n"


def start(arguments: list[str], directory: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, *arguments], cwd=directory, stderr=subprocess.PIPE, start_new_session=True)


def begun(directory: Path, *arguments: str) -> tuple[subprocess.Popen[bytes], Any]:
    """A run that has opened its files, and the pipe that it reads from."""
    os.mkfifo(directory / "pipe")
    process = start(["score", "pipe", *arguments], directory)
    pipe = -1
    while pipe < 0 and process.poll() is None:
        time.sleep(0.01)
        with contextlib.suppress(OSError):  # nobody reads yet
            pipe = os.open(directory / "pipe", os.O_WRONLY | os.O_NONBLOCK)
    os.set_blocking(pipe, True)
    return process, os.fdopen(pipe, "wb", buffering=0)


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    _, said = process.communicate(timeout=120)
    return process.returncode, said.decode()


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_a_second_run_with_one_output_is_refused_and_the_first_one_is_whole(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(match("second"))
    first, pipe = begun(tmp_path, "-o", "out")
    pipe.write(match("one"))
    code, said = ended(start(["score", "in", "-o", "./out"], tmp_path))
    assert (code, said.count("\n")) == (2, 1)
    assert said.startswith(f"codea1: --output {IN_USE}, got out, which is")
    pipe.write(match("two"))
    pipe.close()
    assert ended(first)[0] == 0
    assert [json.loads(line)["problem_id"] for line in (tmp_path / "out").read_bytes().splitlines()] == ["one", "two"]
    assert names(tmp_path) == {"in", "pipe", "out"}


def test_a_second_run_with_one_book_is_refused_and_no_update_is_lost(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(match("second"))
    second = ["score", "in", "-o", "out-2", "--book", "book"]
    first, pipe = begun(tmp_path, "-o", "out-1", "--book", "book")
    pipe.write(match("first"))
    code, said = ended(start(second, tmp_path))
    assert (code, said.count("\n")) == (2, 1)
    assert said.startswith(f"codea1: --book {IN_USE}, got book, which is")
    assert not (tmp_path / "out-2").exists()
    pipe.close()
    assert ended(first)[0] == 0
    assert ended(start(second, tmp_path))[0] == 0
    assert sorted(MistakeBook.load(tmp_path / "book").questions()) == ["first", "second"]


def test_a_run_that_was_killed_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(match("second"))
    first, pipe = begun(tmp_path, "-o", "out", "--book", "book")
    os.killpg(first.pid, signal.SIGKILL)
    ended(first)
    pipe.close()
    assert ended(start(["score", "in", "-o", "out", "--book", "book"], tmp_path))[0] == 0
    assert list(MistakeBook.load(tmp_path / "book").questions()) == ["second"]
    assert names(tmp_path) == {"in", "pipe", "out", "book"}


@pytest.mark.parametrize(
    "arguments",
    [
        "score recorded.jsonl -o out.html",
        "data import rows rows.jsonl -o out.html",
        "pools build problems.jsonl -o out.html",
        "pools from-recorded recorded.jsonl -o out.html",
        "tournament --coder oracle --tester golden --record out.html",
        "view recorded.jsonl -o out.html",
        "report run -o out.html --no-png",
    ],
)
def test_no_command_writes_to_a_file_that_another_run_is_writing(
    arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("recorded.jsonl").write_bytes(match("one"))
    write_problems("problems.jsonl", bundled_problems()[:1])
    Path("rows.jsonl").write_text('{"question": "q", "reference_solution": "def f(): pass", "tests": []}\n')
    Path("run").mkdir()
    Path("run/metrics.jsonl").touch()
    with claimed("--output", "out.html"):
        before = names(tmp_path)
        assert main(arguments.split()) == 2
        said = capsys.readouterr().err
        assert IN_USE in said
        assert said.count("\n") == 1
        assert names(tmp_path) == before


def test_a_recording_has_one_recorder_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    with Recorder(path), pytest.raises(ConfigurationError, match=f"the recording {IN_USE}"):
        Recorder(path)
    with Recorder(path):
        assert path.read_bytes().count(b"\n") <= 1
    assert path.read_bytes().count(b"\n") == 1
    assert names(tmp_path) == {"games.jsonl"}


def test_one_file_is_one_claim_by_whatever_name(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "here").symlink_to(tmp_path, target_is_directory=True)
    with claimed("--output", tmp_path / "file"):
        for other in ("file", "link", "here/file", "here/link"):
            with pytest.raises(ConfigurationError, match=IN_USE), claimed("--book", tmp_path / other):
                pass
        with claimed("--output", tmp_path / "another"):
            pass
    with claimed("--output", tmp_path / "link"):
        pass
    assert names(tmp_path) == {"link", "here"}


def test_where_the_file_system_has_no_locks_a_run_goes_on_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_here(descriptor: int, kind: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none_here)
    with claimed("--output", tmp_path / "out"):
        lock = RunLock(tmp_path, alone=True)
        lock.share()
        lock.release()


def test_what_a_link_names_is_written_and_the_link_stays(tmp_path: Path) -> None:
    book, link = tmp_path / "book", tmp_path / "link"
    book.write_bytes(b"old")
    link.symlink_to(book)
    with whole_file(link) as file:
        file.write(b"new")
    assert (link.is_symlink(), book.read_bytes()) == (True, b"new")


def test_two_that_are_written_at_a_time_are_both_whole(tmp_path: Path) -> None:
    with whole_file(tmp_path / "file") as one, whole_file(tmp_path / "file") as other:
        one.write(b"one")
        other.write(b"other")
    assert (tmp_path / "file").read_bytes() == b"one"  # the later one of the two to end
    assert names(tmp_path) == {"file"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("score out.partial -o out", "OUT.partial must be another file than the input"),
        ("score in -o out --book out.partial", "--book must be another file than the input and the other outputs"),
        ("score in -o new --book new", "--book must be another file than the input and the other outputs"),
        ("score in -o -", "--output must be a file, got -"),
        ("view in -o -", "--output must be a file, got -"),
        ("data import rows in -o -", "--output must be a file, got -"),
        ("data import rows in -o known --against known", "--output must be another file than the input"),
        ("tournament --coder oracle --tester golden --record -", "--record must be a file, got -"),
        ("eval --player oracle --problems bundled -o -", "--output must be a directory, got -"),
    ],
)
def test_no_input_is_overwritten_and_a_dash_is_no_file(
    arguments: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("in", "out.partial", "known"):
        Path(name).write_bytes(match(name))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert main(arguments.split()) == 2
    assert says in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.fixture
def alone(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bytes], bytes]:
    """What a run that is by itself writes for an input."""
    known: dict[bytes, bytes] = {}

    def output(lines: bytes) -> bytes:
        if lines not in known:
            directory = tmp_path_factory.mktemp("alone")
            (directory / "in").write_bytes(lines)
            assert main(["score", str(directory / "in"), "-o", str(directory / "out")]) == 0
            known[lines] = (directory / "out").read_bytes()
        return known[lines]

    return output


def play_pair(draw: random.Random, directory: Path, alone: Callable[[bytes], bytes]) -> list[int]:
    """Two runs at about the same time that share an output, a book or both; their exit codes, checked."""
    shared = draw.choice((("out",), ("book",), ("out", "book")))
    questions = [{f"{run}-{line}" for line in range(draw.randint(1, 3))} for run in "ab"]
    inputs = [b"".join(map(match, sorted(asked))) for asked in questions]
    runs = []
    for place, lines in enumerate(inputs):
        (directory / f"in-{place}").write_bytes(lines)
        output, book = (name if name in shared else f"{name}-{place}" for name in ("out", "book"))
        runs.append(start(["score", f"in-{place}", "-o", output, "--book", book], directory))
        time.sleep(draw.choice((0.0, draw.uniform(0, 0.2), draw.uniform(0, 2.0))))
    victim = runs[draw.randrange(2)] if draw.random() < 0.2 else None
    if victim is not None and victim.poll() is None:
        os.killpg(victim.pid, signal.SIGKILL)
    codes = []
    for run in runs:
        code, said = ended(run)
        codes.append(code)
        if code == 2:
            assert IN_USE in said, said
            assert said.count("\n") == 1, said
        else:
            assert code == 0 or run is victim, said
    assert set(codes) != {2}, "somebody must have worked"
    done = [place for place, code in enumerate(codes) if code == 0]
    killed = [place for place, code in enumerate(codes) if code < 0]
    for place in range(2):
        file = directory / ("out" if "out" in shared else f"out-{place}")
        wholes = [alone(inputs[each]) for each in (range(2) if "out" in shared else [place])]
        assert file.read_bytes() in wholes if file.exists() else place not in done
    for name, places in (("book", [0, 1]),) if "book" in shared else (("book-0", [0]), ("book-1", [1])):
        sure = set().union(*(questions[place] for place in places if place in done))
        maybe = set().union(*(questions[place] for place in places if place in killed))
        book = MistakeBook.load(directory / name) if (directory / name).exists() else MistakeBook()
        assert sure <= set(book.questions()) <= sure | maybe
        assert all(TestCase("f(3)", "6") in book.frequencies(each) for each in book.questions())
    if not killed:
        assert not {name for name in names(directory) if name.endswith((".lock", ".partial", ".tmp"))}
    (directory / "in-after").write_bytes(match("after"))  # whatever became of the two, the next run is not held up
    assert ended(start(["score", "in-after", "-o", "out", "--book", "book"], directory))[0] == 0
    return codes


@pytest.mark.slow
def test_random_pairs_of_runs_lose_nothing(tmp_path: Path, alone: Callable[[bytes], bytes]) -> None:
    draw = random.Random(12)
    for number in range(10):
        directory = tmp_path / str(number)
        directory.mkdir()
        play_pair(draw, directory, alone)
