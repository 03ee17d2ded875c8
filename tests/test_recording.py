"""Recordings: the same rewards again, whoever played, and clear refusals of what is no recording."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.cli import main
from codea1_env.envs import testing
from codea1_env.envs.environment import parallel_env
from codea1_env.envs.episode import CODER, TESTER
from codea1_env.errors import ConfigurationError, FormatError, SandboxError
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.problems.problem import Problem
from codea1_env.reading.test_case import TestCase
from codea1_env.records.recording import Recorder, read_recording, replay
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox import LocalSandbox


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory, sandbox: LocalSandbox) -> Path:
    """Six questions, three rounds each: programs right and wrong, tests of every status, replays."""
    path = tmp_path_factory.mktemp("games") / "games.jsonl"
    with Recorder(path) as recorder:
        game = parallel_env(sandbox=sandbox, rounds=3, rewards=RewardConfig(alpha=0.3), recorder=recorder)
        testing.trajectory(game)
    return path


def matches(path: Path) -> list[Any]:
    return [json.loads(line)["match"] for line in path.read_bytes().splitlines() if b'"match"' in line]


def rewritten(path: Path, out: Path, change: Any) -> Path:
    """The recording with `change` applied to every match."""
    lines = []
    for line in path.read_bytes().splitlines():
        record = json.loads(line)
        if "match" in record:
            change(record["match"])
        lines.append(json.dumps(record))
    out.write_text("\n".join(lines) + "\n")
    return out


def test_every_match_is_worth_the_same_again_bit_for_bit(games: Path, sandbox: LocalSandbox) -> None:
    replayed = list(replay(read_recording(games.read_bytes().splitlines()), sandbox))
    assert len(replayed) == 18
    assert all(each.is_same for each in replayed)
    assert any(each.recorded.replays for each in replayed)  # or the book is not put to the test
    assert len({each.rewards for each in replayed}) >= 5
    backwards = list(replay([each.recorded for each in reversed(replayed)], sandbox))
    assert all(each.is_same for each in backwards)


def test_another_reward_is_found_out(games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def change(match: Any) -> None:
        match["rewards"]["codes"][0] += 2**-52

    assert main(["replay", str(games)]) == 0
    assert "18 matches played again, 0 with other rewards" in capsys.readouterr().err
    changed = rewritten(games, tmp_path / "changed.jsonl", change)
    assert main(["replay", str(changed), "--json"]) == 1
    shown = capsys.readouterr()
    lines = [json.loads(line) for line in shown.out.splitlines()]
    assert [line["same"] for line in lines] == [False] * 18
    assert "18 matches played again, 18 with other rewards" in shown.err


class _FailingSandbox:
    """Fails on some programs, as a machine does that is short of something."""

    def __init__(self, sandbox: LocalSandbox, part: str) -> None:
        self._sandbox, self._part, self.version = sandbox, part, sandbox.version

    def run(self, jobs: Any) -> Any:
        if any(self._part in job.source for job in jobs):
            raise SandboxError("no memory")
        return self._sandbox.run(jobs)

    def __enter__(self) -> "_FailingSandbox":
        return self

    def __exit__(self, *_: object) -> None:
        pass


def test_a_match_that_the_sandbox_fails_now_has_no_other_rewards(
    games: Path, sandbox: LocalSandbox, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = next(read_recording(games.read_bytes().splitlines())).match.problem
    count = sum(each.match.problem == problem for each in read_recording(games.read_bytes().splitlines()))
    partly = _FailingSandbox(sandbox, f"def {problem.entry_point}(")
    monkeypatch.setattr("codea1_env.cli.replay.open_sandbox", lambda name: partly)
    assert main(["replay", str(games)]) == 1
    said = capsys.readouterr()
    assert f"{18 - count} matches played again, 0 with other rewards; the sandbox failed on {count} more" in said.err
    assert said.out == ""
    monkeypatch.setattr("codea1_env.cli.replay.open_sandbox", lambda name: _FailingSandbox(sandbox, ""))
    assert main(["replay", str(games)]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "codea1: no memory"


def test_texts_that_json_would_change_come_back_exactly(sandbox: LocalSandbox, tmp_path: Path) -> None:
    odd = "\ud83d\ude00 \x00 \udcff \U0001f600"
    with Recorder(tmp_path / "games.jsonl") as recorder:
        game = parallel_env(sandbox=sandbox, recorder=recorder)
        game.reset(seed=1)
        game.step({CODER: f"# {odd}\ndef f(): pass"})
        game.step({TESTER: f"assert f({odd!r}) == {odd!r}"})
    (recorded,) = read_recording((tmp_path / "games.jsonl").read_bytes().splitlines())
    assert recorded.match.codes == (f"# {odd}\ndef f(): pass",)
    assert recorded.match.suites == ((f"assert f({odd!r}) == {odd!r}",),)


def test_a_match_without_suites_keeps_its_replays(tmp_path: Path, sandbox: LocalSandbox) -> None:
    book = MistakeBook()
    book.record("twice", (), (TestCase("f(3)", "6"),))
    problem = Problem("twice", "", "f", "def f(x):\n    return x * 2")
    with Recorder(tmp_path / "games.jsonl") as recorder:
        config = RewardConfig(tester_reward="skill")  # it pays a program for replays alone
        arena = Arena(sandbox, config, book, on_score=recorder.write)
        arena.play([Match(problem, (problem.reference_solution or "",), ((),))], update_book=False)
    (replayed,) = replay(read_recording((tmp_path / "games.jsonl").read_bytes().splitlines()), sandbox)
    assert replayed.recorded.replays == (TestCase("f(3)", "6"),)
    assert replayed.is_same
    assert replayed.rewards.codes == (1.0,)


def test_a_recorder_goes_on_after_a_kill_in_the_middle_of_a_line(
    games: Path, tmp_path: Path, sandbox: LocalSandbox
) -> None:
    path = tmp_path / "games.jsonl"
    content = games.read_bytes()
    path.write_bytes(content[: content.rindex(b"\n", 0, len(content) - 1) + 100])
    with Recorder(path) as recorder:
        testing.trajectory(parallel_env(sandbox=sandbox, recorder=recorder), episodes=1)
    assert len(matches(path)) == 18
    assert all(each.is_same for each in replay(read_recording(path.read_bytes().splitlines()), sandbox))
    problems = [line for line in path.read_bytes().splitlines() if line.startswith(b'{"problem"')]
    assert len(problems) == len(set(problems))


def test_a_recording_is_read_while_its_last_line_is_written(games: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.jsonl").write_bytes(games.read_bytes()[:-100])
    with (tmp_path / "cut.jsonl").open("rb") as lines:
        assert len(list(read_recording(lines))) == 17
    (tmp_path / "hole.jsonl").write_bytes(games.read_bytes().replace(b"\n{", b"\n", 1))
    with (tmp_path / "hole.jsonl").open("rb") as lines, pytest.raises(FormatError, match="line 2 must be"):
        list(read_recording(lines))


def test_a_closed_recorder_says_so(sandbox: LocalSandbox, tmp_path: Path) -> None:
    with Recorder(tmp_path / "games.jsonl") as recorder:
        game = parallel_env(sandbox=sandbox, recorder=recorder)
        game.reset(seed=1)
        game.step({CODER: ""})
    with pytest.raises(ConfigurationError, match=r"must be open to write to .*games.jsonl, got one that was closed"):
        game.step({TESTER: ""})


def test_only_a_recording_is_continued(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("my notes\n")
    with pytest.raises(ConfigurationError, match=r"must be new, empty or a recording, got: line 1 must be a JSON"):
        Recorder(other)
    assert other.read_text() == "my notes\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must begin with a header of schema 1, got an empty file"),
        (b"[]\n", "line 1 must be a JSON object"),
        (b'{"codea1_recording": 2}\n', "line 1 must be the header of a recording of schema 1.*later version of codea1"),
        (b'{"codea1_recording": 1}\n{"match": {}}\n', "line 2: a match must have exactly the fields"),
        (b'{"codea1_recording": 1}\n{"game": {}}\n', "line 2 must be a problem or a match"),
        (b'{"codea1_recording": 1}\n{"problem": {}}\n', "line 2: "),
    ],
)
def test_what_is_no_recording_is_refused_with_its_line(content: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        list(read_recording(content.splitlines()))


@pytest.mark.parametrize(
    "change",
    [
        lambda match: match.update(problem="0" * 64),
        lambda match: match.update(codes=[7]),
        lambda match: match.update(suites=[]),
        lambda match: match.update(replays=[["f(1)"]]),
        lambda match: match.update(rewards={}),
        lambda match: match["rewards"].update(codes=[]),
        lambda match: match["rewards"].update(suites=[["much"]]),
        lambda match: match["config"].update(alpha=7),
        lambda match: match["config"].update(unheard_of=1),
    ],
)
def test_a_match_with_a_wrong_field_is_refused_with_its_line(games: Path, tmp_path: Path, change: Any) -> None:
    changed = rewritten(games, tmp_path / "changed.jsonl", change)
    with pytest.raises(FormatError, match=r"line 3"):
        list(read_recording(changed.read_bytes().splitlines()))


def test_a_missing_recording_is_a_wrong_argument(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "codea1_env.cli", "replay", str(tmp_path / "nothing")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"codea1: the recording must be a file, got {tmp_path / 'nothing'}\n")
    (tmp_path / "empty.jsonl").touch()
    assert main(["replay", str(tmp_path / "empty.jsonl")]) == 2


def test_a_match_under_an_arenas_tolerance_is_worth_the_same_again(tmp_path: Path, sandbox: LocalSandbox) -> None:
    problem = Problem("third", "", "f", "def f(x):\n    return x / 3")
    match = Match(problem, ("def f(x):\n    return round(x / 3, 5)",), (("assert f(1) == 0.33333",),))
    with Recorder(tmp_path / "games.jsonl") as recorder:
        (score,) = Arena(sandbox, tolerance=1e-3, on_score=recorder.write).play([match])
    assert score.codes[0].reward == 1.0
    (again,) = replay(read_recording((tmp_path / "games.jsonl").read_bytes().splitlines()), sandbox)
    assert again.is_same
