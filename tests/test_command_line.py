"""One command line: help with examples that parse, errors in one line, exit codes and streams as the page says."""

from __future__ import annotations

import argparse
import builtins
import errno
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codea1_env import starting
from codea1_env.cli import common, main
from codea1_env.cli.command_line import COMMANDS, _parser
from codea1_env.cli.common import require_place
from codea1_env.errors import ConfigurationError, told
from codea1_env.whole_files import append_whole, whole_file

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "command-line.md").read_text()
COMMAND = [sys.executable, "-m", "codea1_env"]


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Every command or action that does something."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield parser
    for action in below:
        for child in action.choices.values():
            yield from leaves(child)


LEAVES = {
    parser.prog.removeprefix("codea1 "): parser
    for command, *_ in COMMANDS
    for parser in leaves(_parser([command]))
    if parser.prog.split()[1] == command
}


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_has_help_with_a_description_and_examples_that_parse(name: str) -> None:
    shown = LEAVES[name].format_help()
    assert max(map(len, shown.splitlines())) <= 120
    assert f"`codea1 {name}`" in PAGE
    examples = shown[shown.index("examples:") :]
    commands = re.findall(r"(?:^  |&& |\| )(codea1 (?:[^|>#&\n]|(?<=\S)#)*)", examples, re.MULTILINE)
    assert commands
    for command in commands:
        given = shlex.split(command)[1:]
        _parser(given).parse_args(given)


def test_every_argument_says_what_it_is_and_takes_a_value_everywhere_or_nowhere() -> None:
    meanings: dict[str, set[bool]] = {}
    for name, parser in LEAVES.items():
        for action in parser._actions:
            assert action.help, (name, action)
            for option in action.option_strings:
                assert re.fullmatch(r"-[a-z]|--[a-z]+(-[a-z]+)*", option), option
                meanings.setdefault(option, set()).add(action.nargs == 0)
    assert {option: kinds for option, kinds in meanings.items() if len(kinds) > 1} == {}
    for option in re.findall(r"^\| `(?:-o`, `)?(--[a-z-]+)", PAGE, re.MULTILINE):
        assert option in meanings


def test_the_page_has_every_exit_code() -> None:
    codes = (common.DONE, common.FAILED, common.MISUSED, common.FAULT, starting.INTERRUPTED, starting.CLOSED)
    assert re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE) == list(map(str, codes))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("", "COMMAND must be given, got none; see codea1 --help"),
        ("scor", "COMMAND must be one of 'play', "),
        ("score", "IN.jsonl, -o/--output must be given, got none; see codea1 score --help"),
        ("score in.jsonl -o out --alpha high", "--alpha must be a number, got 'high'; see codea1 score --help"),
        ("score in.jsonl -o out --workers two", "--workers must be a whole number, got 'two'"),
        ("score in.jsonl -o out --oracle magic", "--oracle must be one of 'reference', "),
        ("score in.jsonl -o out --workers", "--workers must come with a value, got none"),
        (
            "score in.jsonl -o out --work 2",
            "an argument must be one of those in --help, got --work 2; did you mean --workers?",
        ),
        ("tournamnet", "COMMAND must be one of 'play', "),
        ("data choose in -o out --player oracle --between 1", "--between must come with 2 values, got another number"),
        ("doctor --json=yes", "--json must come without a value, got 'yes'"),
        ("pools", "ACTION must be given, got none; see codea1 pools --help"),
    ],
)
def test_arguments_that_cannot_be_read_are_one_line_with_must_and_got(
    arguments: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments.split())
    shown = capsys.readouterr()
    assert ended.value.code == 2
    assert shown.out == ""
    assert shown.err.startswith(f"codea1: {says}")
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ("tournamnet", "; did you mean tournament?; see codea1 --help"),
        ("data chek", "; did you mean check?; see codea1 data --help"),
        ("score a -o b --oracle refrence", "; did you mean reference?; see"),
        ("score a -o b --fidelty wide", "; did you mean --fidelity?; see"),
        ("score a --ouput=b", "-o/--output must be given, got none; --ouput=b is not known; see"),
        ("xyzzy", "got 'xyzzy'; see codea1 --help"),
        ("score a -o b --qqq", "got --qqq; see"),
    ],
)
def test_a_word_that_is_nearly_known_is_named(arguments: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(arguments.split())
    assert meant in capsys.readouterr().err


@pytest.mark.parametrize("place", ["before", "after", "nowhere"])
def test_debug_shows_where_an_error_came_from_and_nothing_else_does(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["replay", str(tmp_path / "none.jsonl")]
    given = {"before": ["--debug", *arguments], "after": [*arguments, "--debug"], "nowhere": arguments}[place]
    assert main(given) == 2
    shown = capsys.readouterr().err
    assert shown.splitlines()[-1] == f"codea1: the recording must be a file, got {tmp_path / 'none.jsonl'}"
    assert ("Traceback" in shown) == (place != "nowhere")


def test_errors_of_the_system_and_faults_of_ours_are_told_apart_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    (run / "metrics.jsonl").mkdir(parents=True)
    (run / "config.yaml").write_text("seed: 1")
    assert main(["report", str(run), "--no-png"]) == 1
    assert "Is a directory" in capsys.readouterr().err
    assert main(["report", object()]) == 70  # type: ignore[list-item]  # what nobody foresaw
    shown = capsys.readouterr().err
    assert re.fullmatch(r"codea1: a fault of codea1, not yours: TypeError: .*; --debug shows where\n", shown)


@pytest.fixture
def unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that the system refuses to open, to whoever runs the test: root may read everything."""
    path = tmp_path / "secret"
    path.write_text("{}\n")
    opened = io.open

    def refusing(file: Any, *arguments: Any, **options: Any) -> Any:
        if str(file) == str(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(file, *arguments, **options)

    monkeypatch.setattr(io, "open", refusing)
    monkeypatch.setattr(builtins, "open", refusing)
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ["score", "FILE", "-o", "OUT"],
        ["replay", "FILE"],
        ["view", "FILE"],
        ["data", "check", "FILE"],
        ["eval", "--player", "oracle", "--problems", "FILE", "-o", "OUT"],
        ["tournament", "--coder", "recorded:FILE", "--tester", "fuzz"],
        ["bench", "check", "FILE"],
    ],
)
def test_a_file_that_the_system_refuses_is_named_with_what_to_check(
    arguments: list[str], unreadable: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [word.replace("FILE", str(unreadable)).replace("OUT", str(tmp_path / "out")) for word in arguments]
    assert main(given) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"codea1: {unreadable} must be accessible, got: Permission denied; check its path and permissions"


def test_a_reader_that_leaves_ends_the_command_without_a_word() -> None:
    process = subprocess.Popen(
        [*COMMAND, "doctor", "--backend", "docker", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    told = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), told) == (141, b"")


FULL_DEVICE = "standard output must be writable, got: No space left on device; send it to another place\n"
PRINTING = {
    "a command": [*COMMAND, "doctor", "--backend", "docker", "--json"],
    "a version": [*COMMAND, "--version"],
    "a help": [*COMMAND, "--help"],
    "a plan": [sys.executable, str(ROOT / "agents" / "train_grpo.py"), "--preset", "smoke", "--dry-run"],
    "a study": [sys.executable, str(ROOT / "experiments" / "study.py"), "--list-arms"],
}


@pytest.mark.parametrize("command", PRINTING.values(), ids=PRINTING)
def test_output_that_cannot_be_written_is_one_line_that_says_so(command: list[str]) -> None:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=buffered, check=False)
    assert ended.returncode == 1
    assert ended.stderr.partition(": ")[2] == FULL_DEVICE


@pytest.mark.parametrize("name", ["a version", "a plan", "a study"])
def test_streams_that_the_caller_closed_are_the_null_device(name: str) -> None:
    """Nothing that is printed may land in a file that took the stream's number."""
    command = PRINTING[name]
    with_none = subprocess.run(["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *command], check=False)
    without_output = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], stderr=subprocess.PIPE, check=False)
    assert (with_none.returncode, without_output.returncode, without_output.stderr) == (0, 0, b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_in_a_tournament_is_one_line_and_leaves_its_journal(number: int, tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil")
    arguments = ["tournament", "--coder", "oracle", "--tester", "fuzz", "--samples", "100"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    process = psutil.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=environment,
        cwd=tmp_path,
    )
    children: list[Any] = []
    while not children:
        assert process.poll() is None
        time.sleep(0.05)
        children = process.children(recursive=True)
    process.send_signal(number)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, errors) == (130, b"", b"codea1: interrupted; the same command goes on\n")
    _, alive = psutil.wait_procs(children, timeout=20)
    assert not alive
    (journal,) = tmp_path.iterdir()
    assert journal.name.endswith(".journal.jsonl"), "from which the same command goes on"


def test_a_place_to_write_must_be_one(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_text("x")
    (tmp_path / "link").symlink_to(source)
    os.mkfifo(tmp_path / "pipe")
    require_place("--output", tmp_path / "new", source)
    for path, must in (
        (tmp_path, "--output must be a file in an existing directory"),
        (tmp_path / "no" / "file", "--output must be a file in an existing directory"),
        (tmp_path / "link", "--output must be another file than the input"),
        (tmp_path / "pipe", "--output must be a file, which is replaced, or a new one"),
    ):
        with pytest.raises(ConfigurationError, match=must):
            require_place("--output", path, source)


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")
    with pytest.raises(TypeError), whole_file(target) as file:
        file.writelines([b"half", "of it"])  # type: ignore[list-item]
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("file", b"old")]
    with whole_file(target) as file:
        file.write(b"new")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("file", b"new")]


def test_an_interrupted_line_leaves_nothing_of_it_for_the_next_one(tmp_path: Path) -> None:
    class Interrupted(io.FileIO):
        def write(self, content: Any) -> int:
            super().write(content[:3])
            raise KeyboardInterrupt

    with io.FileIO(tmp_path / "lines", "a") as file:
        append_whole(file, b"first\n", "")
    with Interrupted(tmp_path / "lines", "a") as file, pytest.raises(KeyboardInterrupt):
        append_whole(file, b"second\n", "")
    assert (tmp_path / "lines").read_bytes() == b"first\n"


def test_on_a_full_disk_the_file_is_named(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")
    message = f"{target} must be writable, got: No space left on device; it is as it was; make room and repeat"
    with pytest.raises(OSError, match=re.escape(message)), whole_file(target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert target.read_bytes() == b"old"


def test_what_is_no_file_is_not_replaced_by_one(tmp_path: Path) -> None:
    """Found here: as root, a page that was written to a device took the device's place."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FileExistsError) as refused, whole_file(pipe) as file:
        file.write(b"x")
    assert told(refused.value) == f"{pipe} must be a file or nothing, got something else; move it away"
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]
