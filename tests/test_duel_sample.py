"""The games that a run keeps: whole, replayable, a few a round, and never a reason to end."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from codea1_env import Arena, LocalSandbox, Match, MatchScore, Problem
from codea1_env.records.duel_sample import MOST_CHARACTERS, DuelSample
from codea1_env.records.recording import read_recording, replay
from codea1_env.viewer import read_games

MATCHES = [
    Match(
        Problem(f"p{number}", "", "f", "def f(x):\n    return x"),
        ("def f(x): return x", "def f(x): return 0"),
        (("assert f(1) == 1",), ("assert f(2) == 2",)),
    )
    for number in range(3)
]


@pytest.fixture(scope="module")
def arena(sandbox: LocalSandbox) -> Arena:
    return Arena(sandbox)


@pytest.fixture(scope="module")
def scores(arena: Arena) -> list[MatchScore]:
    return arena.play(MATCHES, update_book=False)


def kept(folder: Path) -> dict[str, list[str]]:
    files = {file.name: read_recording(file.read_bytes().splitlines()) for file in sorted(folder.iterdir())}
    return {name: [each.match.problem.problem_id for each in games] for name, games in files.items()}


def test_questions_take_turns_and_every_game_is_whole(arena: Arena, scores: list[MatchScore], tmp_path: Path) -> None:
    sample = DuelSample(tmp_path / "duels", 2)
    for round_index in range(3):
        sample.keep(round_index, MATCHES, scores, arena.config)
    # Rounds 1 to 3 begin at questions 0, 2, 4: two each of three, in the order of the round.
    assert kept(tmp_path / "duels") == {
        "round-1.jsonl": ["p0", "p1"],
        "round-2.jsonl": ["p0", "p2"],
        "round-3.jsonl": ["p1", "p2"],
    }
    with LocalSandbox() as sandbox:
        recording = (tmp_path / "duels" / "round-2.jsonl").read_bytes().splitlines()
        assert all(each.is_same for each in replay(read_recording(recording), sandbox))
    games = read_games(tmp_path, 100).games
    assert [game["from"] for game in games] == ["round 1", "round 1", "round 2", "round 2", "round 3", "round 3"]
    assert games[0]["programs"][1]["suites"][0]["tests"][0][6:8] == ["fail", "0"]


def test_a_round_again_replaces_its_games(arena: Arena, scores: list[MatchScore], tmp_path: Path, caplog: Any) -> None:
    sample = DuelSample(tmp_path, 1)
    sample.keep(0, MATCHES, scores, arena.config)
    before = (tmp_path / "round-1.jsonl").read_bytes()
    (tmp_path / "round-1.jsonl.partial").write_text("half a line of a process that was killed")
    sample.keep(0, MATCHES, scores, arena.config)
    assert (tmp_path / "round-1.jsonl").read_bytes() == before
    (tmp_path / "duels").write_text("a file")
    DuelSample(tmp_path / "duels", 1).keep(0, MATCHES, scores, arena.config)
    assert "the duels of round 1 are not kept" in caplog.text


def test_none_are_kept_where_unasked_or_too_large(arena: Arena, scores: list[MatchScore], tmp_path: Path) -> None:
    DuelSample(tmp_path / "duels", 0).keep(0, MATCHES, scores, arena.config)
    large = dataclasses.replace(MATCHES[0], codes=("#" * (MOST_CHARACTERS + 1), ""))
    DuelSample(tmp_path / "duels", 1).keep(0, [large], scores[:1], arena.config)
    assert not (tmp_path / "duels").exists()
