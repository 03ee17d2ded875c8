"""Long commands end well: killed, interrupted, out of room or with a damaged line, they lose nothing that was paid for;
the same command goes on, and what is left out is said. (Training and the study: test_long_training.py.)"""

import json
import os
import pwd
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fake_openai import FakeServer, Json, Reply, completion, serving

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.cli import main
from codea1_env.errors import SandboxError
from codea1_env.problems import Problem, TestCase
from codea1_env.problems.jsonl import write_problems
from codea1_env.sandbox import LocalSandbox
from codea1_env.sandbox.protocol import Job, JobResult

ROOT = Path(__file__).parents[1]
ENDED_AT = ROOT / "tests" / "ended_at.py"
PROBLEMS = [
    Problem(
        f"p{n}",
        f"f(x): {n} times x.",
        "f",
        reference_solution=f"def f(x):\n    return x * {n}  # {n} times",
        golden_tests=(TestCase("f(1)", str(n)), TestCase("f(2)", str(2 * n))),
    )
    for n in range(2, 7)
]
COMMANDS = ("eval coder", "eval tester", "score", "score with a book", "tournament", "tournament recorded")
HOW = {"SIGKILL": -9, "SIGINT": 130, "full": 1}
QUICK = ("eval coder", "score with a book", "tournament recorded")
EACH = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in COMMANDS]
"""All of them, of which the quick suite runs one of each kind."""


def quickly(*chosen: tuple[str, Any], of: Sequence[Any]) -> list[Any]:
    """Every command with each of these, of which the quick suite runs those that are chosen."""
    pairs = [(name, each) for name in COMMANDS for each in of]
    return [pytest.param(*pair, marks=() if pair in chosen else pytest.mark.slow) for pair in pairs]


def answer(request: Json, number: int) -> Reply:
    """A program that is right on even problems, or a suite; the same for the same request."""
    asked = request["messages"][-1]["content"]
    n = next(n for n in range(2, 7) if f"f(x): {n} times x." in asked)
    wrong = f"def f(x):\n    return x * {n if n % 2 == 0 else 1}  # {n} times"
    text = f"assert f(1) == {n}\nassert f(0) == 0" if "Write" in asked and "tests" in asked else wrong
    return Reply(body=completion(*[f"```python\n{text}\n```"] * request["n"]))


@dataclass(frozen=True)
class Place:
    """Where a command works, and who answers."""

    folder: Path
    server: FakeServer

    def command(self, name: str, folder: Path) -> list[str]:
        player = f"openai:{self.server.url}#m"
        problems, scored = str(self.folder / "problems.jsonl"), str(self.folder / "in.jsonl")
        if name.startswith("eval"):
            one = ["--batch", "1", "--concurrency", "1", "--seat", name.split()[1]]
            return ["eval", "--player", player, *one, "--problems", problems, "--n", "2", "-o", str(folder / "out")]
        if name.startswith("score"):
            book = ["--book", str(folder / "book")] if "book" in name else []
            return ["score", scored, "-o", str(folder / "out"), *book]
        record = ["--record", str(folder / "games")] if "recorded" in name else []
        players = ["--coder", player, "--coder", "oracle", "--tester", player, "--concurrency", "1"]
        journal = str(folder / "journal")
        return ["tournament", *players, "--problems", problems, "--json", "-o", journal, *record]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("long")
    write_problems(folder / "problems.jsonl", PROBLEMS)
    lines = []
    for problem in (*PROBLEMS, PROBLEMS[0]):
        codes = ["def f(x):\n    return x", problem.reference_solution]
        fields = {"problem_id": problem.problem_id, "question": problem.question, "entry_point": "f"}
        suites = [[case.call and f"assert {case.call} == {case.expected}" for case in problem.golden_tests]] * 2
        lines.append(fields | {"reference_solution": problem.reference_solution, "codes": codes, "suites": suites})
    lines.insert(3, {"broken": True})
    (folder / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with serving(answer) as server:
        yield Place(folder, server)


def run(how: str, nth: int, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(ENDED_AT), how, str(nth), *command], capture_output=True, text=True)


def here(command: Sequence[str], capsys: Any) -> subprocess.CompletedProcess[str]:
    """The command undisturbed, in this process."""
    capsys.readouterr()
    status = main(command)
    shown = capsys.readouterr()
    return subprocess.CompletedProcess(command, status, shown.out, shown.err)


def results(folder: Path, printed: str) -> dict[str, str]:
    """Everything that a command leaves but for its journal."""
    files = {path.name: path for path in (*folder.glob("*"), *folder.glob("out/*")) if path.is_file()}
    kept = {name: path.read_text() for name, path in files.items() if "journal" not in name and name != "lock"}
    return kept | {"printed": printed}


def journal_in(folder: Path) -> Path:
    places = (folder / name for name in ("out/journal.jsonl", "out.partial", "journal"))
    (journal,) = filter(Path.is_file, places)
    return journal


@pytest.fixture(scope="module")
def undisturbed(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """By command: its results, how many writes there are, and what was asked."""
    known: dict[str, tuple[dict[str, str], int, int]] = {}

    def find(name: str) -> tuple[dict[str, str], int, int]:
        if name not in known:
            folder, before = tmp_path_factory.mktemp("whole"), len(place.server.asked)
            done = run("count", 0, place.command(name, folder))
            assert done.returncode == (1 if "score" in name else 0), done.stderr
            writes = int(done.stderr.splitlines()[-1])
            known[name] = (results(folder, done.stdout), writes, len(place.server.asked) - before)
        return known[name]

    return find


def goes_on(name: str, how: str, nth: int, place: Place, undisturbed: Any, folder: Path, capsys: Any) -> None:
    expected, _, asked = undisturbed(name)
    command, before = place.command(name, folder), len(place.server.asked)
    ended = run(how, nth, command)
    assert ended.returncode == HOW[how], ended.stderr
    errors = [line for line in ended.stderr.splitlines() if line.startswith("codea1:") or "Traceback" in line]
    if how == "SIGINT":
        assert errors == ["codea1: interrupted; the same command goes on"]
    elif how == "full":
        assert len(errors) == 1
        assert "must be writable, got: File too large" in errors[0]
    has_records = journal_in(folder).read_bytes().count(b"\n") > 1
    again = here(command, capsys)
    assert again.returncode == (1 if "score" in name else 0), again.stderr
    assert results(folder, again.stdout) == expected
    assert ("going on with" in again.stderr) == has_records
    assert has_records or nth < 3
    most = {"eval": 1, "score": 0, "tournament": 2 * len(PROBLEMS)}[name.split()[0]]  # what one write holds
    assert len(place.server.asked) - before <= asked + most


@pytest.mark.longest
@pytest.mark.parametrize(("name", "how"), [*zip(QUICK, HOW, strict=True)])
def test_a_command_that_ends_in_the_middle_goes_on(
    name: str, how: str, place: Place, undisturbed: Any, tmp_path: Path, capsys: Any
) -> None:
    _, writes, _ = undisturbed(name)
    goes_on(name, how, writes // 2 + 1, place, undisturbed, tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_ends_anywhere_goes_on(
    name: str, how: str, place: Place, undisturbed: Any, tmp_path: Path, capsys: Any
) -> None:
    _, writes, _ = undisturbed(name)
    for nth in range(1, writes + 1):
        folder = tmp_path / str(nth)
        folder.mkdir()
        goes_on(name, how, nth, place, undisturbed, folder, capsys)


@pytest.mark.parametrize("name", EACH)
def test_a_damaged_line_of_a_journal_is_named_and_without_it_the_command_goes_on(
    name: str, place: Place, undisturbed: Any, tmp_path: Path, capsys: Any
) -> None:
    expected, writes, _ = undisturbed(name)
    command = place.command(name, tmp_path)
    run("SIGKILL", writes, command)
    journal = journal_in(tmp_path)
    lines = journal.read_bytes().splitlines(keepends=True)
    for damage in (b"\0" * 20 + b"\n", b'{"kind":"line"}\n'):
        journal.write_bytes(b"".join([lines[0], damage, *lines[2:]]))
        refused = here(command, capsys)
        assert refused.returncode == 1
        (error,) = [line for line in refused.stderr.splitlines() if line.startswith("codea1:")]
        assert ", line 2, must be what codea1 " in error
        left = b"".join([lines[0], damage, *lines[2:]])
        assert left.startswith(journal.read_bytes())
        assert journal.read_bytes().count(b"\n") == left.count(b"\n"), "half a line at the end may go"
    journal.write_bytes(b"".join([lines[0], *lines[2:]]))
    assert results(tmp_path, here(command, capsys).stdout) == expected


@pytest.mark.parametrize("name", EACH)
def test_the_journal_of_other_work_is_refused_and_stays(name: str, place: Place, tmp_path: Path, capsys: Any) -> None:
    command = place.command(name, tmp_path)
    run("SIGKILL", 5, command)

    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".lock"}

    before = files()
    other = [*command, *(["--seed", "1"] if "score" not in name else ["--alpha", "0.25"])]
    refused = here(other, capsys)
    assert refused.returncode == 2, refused.stderr
    assert f"another {'config' if 'score' in name else 'seed'}" in refused.stderr
    assert files() == before


def test_another_input_is_not_taken_for_the_one_that_was_scored(place: Place, tmp_path: Path, capsys: Any) -> None:
    command = place.command("score", tmp_path)
    run("SIGKILL", 5, command)
    lines = (place.folder / "in.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "other").write_text("".join([lines[1], *lines[1:]]))
    refused = here(["score", str(tmp_path / "other"), *command[2:]], capsys)
    assert refused.returncode == 2
    assert "the input must be the one of" in refused.stderr
    assert "got another line 1" in refused.stderr


@pytest.mark.parametrize(
    ("name", "size"), quickly(*zip(QUICK, (0, 50 << 10, 0), strict=True), (QUICK[2], 50 << 10), of=(0, 50 << 10))
)
def test_a_limit_that_every_further_line_would_meet_is_one_error(
    name: str, size: int, place: Place, undisturbed: Any, tmp_path: Path, capsys: Any
) -> None:
    """As under `ulimit -f`: at 0 no journal can begin, at 50 KiB no sandbox can start."""
    command = [sys.executable, "-m", "codea1_env.cli", *place.command(name, tmp_path)]
    ended = subprocess.run(
        command,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY)),
    )
    assert ended.returncode == 1, ended.stderr
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert "File too large" in ended.stderr
    again = here(place.command(name, tmp_path), capsys)
    assert results(tmp_path, again.stdout) == undisturbed(name)[0]


class Broken:
    """Makes the sandbox fail: always, from the nth run on; or where a job's program holds a text."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int = 10**9, on: str = "nowhere") -> None:
        self.runs, whole = 0, LocalSandbox.run

        def run(sandbox: LocalSandbox, jobs: Sequence[Job]) -> list[JobResult]:
            self.runs += 1
            if self.runs > after or any(on in getattr(job, "source", "") for job in jobs):
                raise SandboxError("the sandbox must have what it needs, got nothing")
            return whole(sandbox, jobs)

        monkeypatch.setattr(LocalSandbox, "run", run)


@pytest.mark.parametrize(("name", "after"), quickly((QUICK[0], 0), *((name, 4) for name in QUICK), of=(0, 4)))
def test_a_sandbox_that_is_gone_ends_a_command_with_one_error(
    name: str, after: int, place: Place, undisturbed: Any, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    with monkeypatch.context() as patch:
        Broken(patch, after)
        assert main(place.command(name, tmp_path)) == 1
    printed = capsys.readouterr()
    errors = [line for line in printed.err.splitlines() if "sandbox" in line]
    assert errors == ["codea1: the sandbox must have what it needs, got nothing"]
    assert printed.out == ""
    main(place.command(name, tmp_path))
    assert results(tmp_path, capsys.readouterr().out) == undisturbed(name)[0]


@pytest.mark.parametrize("name", EACH)
def test_what_the_sandbox_fails_by_itself_is_left_out_by_name_and_the_others_go_on(
    name: str, place: Place, undisturbed: Any, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    with monkeypatch.context() as patch:
        Broken(patch, on="# 4 times")
        assert main(place.command(name, tmp_path)) == 1
    printed = capsys.readouterr()
    if name.startswith("score"):
        written = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
        assert [line.get("line") for line in written] == [None, None, 3, 4, None, None, None]
        assert "line 3: the sandbox must have what it needs" in printed.err
        return
    if name.startswith("eval"):
        assert "the sandbox failed on 1 problems" in printed.err
        report = json.loads((tmp_path / "out/results.json").read_text())["sets"]["problems"]
        assert list(report["left_out"]) == ["p4"]
        assert report["problems"] == len(PROBLEMS) - 1
    else:
        assert "2 of 10 games have no result: the sandbox failed" in printed.err
        games = json.loads(printed.out)["games"]
        assert {game["problem_id"] for game in games if game["outcome"] == "none"} == {"p4"}
    assert main(place.command(name, tmp_path)) == 0, "the same command tries again"
    assert results(tmp_path, capsys.readouterr().out) == undisturbed(name)[0]


def test_an_arena_for_training_leaves_out_one_match_and_ends_where_nothing_runs(monkeypatch: Any) -> None:
    matches = [Match(problem, ("def f(x):\n    return x",), (("assert f(1) == 7",),)) for problem in PROBLEMS]
    items = [(problem, ("def f(x):\n    return x",), problem.golden_tests) for problem in PROBLEMS]
    with Arena(LocalSandbox(), execution_cache_mb=0, on_failure="apart") as arena:
        with monkeypatch.context() as patch:
            Broken(patch, on="# 4 times")
            scores = arena.play(matches)
            assert [score.codes[0].reward is None for score in scores] == [False, False, True, False, False]
            assert "got nothing" in scores[2].suites[0][0].duel.infrastructure_error
            assert len(arena.book) > 0
            assert all(grades[0].executes for grades in arena.grade_many(items)), "no reference is needed"
        Broken(monkeypatch, after=0)
        for work in (lambda: arena.play(matches), lambda: arena.grade_many(items)):
            with pytest.raises(SandboxError, match="got nothing"):
                work()


def test_a_recording_of_another_tournament_gives_way_and_one_of_this_goes_on(place: Place, tmp_path: Path) -> None:
    command = place.command("tournament recorded", tmp_path)
    other = ["tournament", "--coder", "oracle", "--tester", "fuzz", "--questions", "2"]
    assert main([*other, "--record", str(tmp_path / "games"), "-o", str(tmp_path / "other")]) == 0
    assert main(command) == 0
    whole = (tmp_path / "games").read_bytes()
    assert main(["replay", str(tmp_path / "games")]) == 0
    (tmp_path / "games").write_bytes(whole[: len(whole) // 2])
    assert main(command) == 0
    assert (tmp_path / "games").read_bytes() == whole


@pytest.fixture
def recording(undisturbed: Any) -> bytes:
    content: str = undisturbed("tournament recorded")[0]["games"]
    return content.encode()


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.999])
def test_a_recording_that_was_cut_off_says_so_and_does_not_end_with_0(
    share: float, recording: bytes, tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "cut").write_bytes(recording[: int(len(recording) * share)])
    assert main(["replay", str(tmp_path / "cut")]) == 1
    assert "was cut off, and nothing after that was played" in capsys.readouterr().err


@pytest.mark.parametrize("kept", [1, 2])
def test_a_recording_without_a_match_is_no_success(kept: int, recording: bytes, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "cut").write_bytes(b"".join(recording.splitlines(keepends=True)[:kept]))
    assert main(["replay", str(tmp_path / "cut")]) == (2 if kept == 1 else 1)
    assert ("must hold matches, got none" if kept == 1 else "was cut off") in capsys.readouterr().err


def test_a_tournament_without_a_place_keeps_its_journal_here_until_it_has_ended(
    place: Place, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    command = place.command("tournament", tmp_path)
    at = command.index("-o")
    del command[at : at + 2]
    assert run("SIGINT", 5, command).returncode == 130
    (journal,) = tmp_path.glob("tournament-*.journal.jsonl")
    assert main(command) == 0
    assert f"going on with {journal.name}: " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


NOBODY = pwd.getpwnam("nobody") if os.getuid() == 0 else None


def as_nobody(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command run by an ordinary user, with an interpreter within that user's reach."""
    assert NOBODY is not None
    paths = [str(ROOT), *(path for path in sys.path if path.endswith("-packages"))]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    for python in (sys.executable, f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"):
        who: dict[str, Any] = {"user": NOBODY.pw_uid, "group": NOBODY.pw_gid, "extra_groups": []}
        try:
            run = [python, *command]
            return subprocess.run(run, cwd=folder, env=environment, capture_output=True, text=True, **who)
        except (PermissionError, FileNotFoundError):
            continue
    pytest.skip("an ordinary user may not run any interpreter")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("name", [*EACH, "tournament here", "train", pytest.param("study", marks=pytest.mark.slow)])
def test_a_folder_that_an_ordinary_user_may_not_write_to_is_one_error(name: str, place: Place) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        for file in ("problems.jsonl", "in.jsonl"):
            (folder / file).write_bytes((place.folder / file).read_bytes())
        before = sorted(folder.iterdir())
        command = {
            "train": [str(ROOT / "agents/train_grpo.py"), "--preset", "smoke", "--output", str(folder / "run")],
            "study": [str(ROOT / "experiments/study.py"), "--presets", "smoke", "--output", str(folder / "run")],
            "tournament here": ["-m", "codea1_env.cli", "tournament", "--coder", "oracle", "--tester", "golden"],
        }.get(name) or ["-m", "codea1_env.cli", *Place(folder, place.server).command(name, folder)]
        asked = len(place.server.asked)
        ended = as_nobody(*command, folder=folder)
        assert ended.returncode in (1, 2), ended.stderr
        assert "Traceback" not in ended.stderr
        assert str(folder) in ended.stderr.splitlines()[-1]
        assert "must be" in ended.stderr.splitlines()[-1] or "ermission denied" in ended.stderr.splitlines()[-1]
        assert sorted(folder.iterdir()) == before
        assert len(place.server.asked) == asked, "nothing is paid for that cannot be kept"
