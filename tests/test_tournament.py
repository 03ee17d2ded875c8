"""Tournaments: who wins a game, who plays whom, and the command."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_openai import Reply, completion, serving

from codea1_env import Arena, LocalSandbox, RewardConfig
from codea1_env.cli import main
from codea1_env.errors import ConfigurationError, FormatError, PlayerError, SandboxError, UnusableReference
from codea1_env.evaluation.tournament import Tournament, TournamentJournal, Winner, play_tournament
from codea1_env.players import CoderRequest, GoldenTester, MutantCoder, OracleCoder, Player, RandomTester, Response
from codea1_env.problems import Problem, TestCase, bundled_problems
from codea1_env.records.recording import Recorder, read_recording, replay
from codea1_env.sandbox.protocol import Job, JobResult

DOUBLE = Problem("double", "Return 2 x.", "f", "def f(x):\n    return 2 * x\n", golden_tests=(TestCase("f(1)", "2"),))
BUNDLED = bundled_problems()[:6]
RIGHT, WRONG, BROKEN = "def f(x): return x + x", "def f(x): return x * x", "def g(x): return 0"
FINDS, MISSES, SURE, INVALID = "assert f(1) == 2", "assert f(2) == 4", "assert f(1) == 3", "assert f('a' - 1) == 0"


@pytest.fixture(autouse=True)
def here(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command keeps its journal where it runs, until it has ended."""
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))


class Says:
    """Answers every request with its next text, over and over, and keeps note of what it was asked."""

    version = "1"

    def __init__(self, *texts: str, name: str = "says") -> None:
        self.name = name
        self.texts = texts
        self.asked: list[Any] = []

    def respond(self, requests: Sequence[Any], n: int = 1, sampling: Any = None, seed: int = 0) -> list[list[Response]]:
        self.asked += requests
        return [[Response(self.texts[k % len(self.texts)], False, self.name, "1") for k in range(n)] for _ in requests]


def played(
    sandbox: Any, coders: dict[str, Player], testers: dict[str, Player], problems: Any = (DOUBLE,), **given: Any
) -> Tournament:
    config = given.pop("config", None)
    return play_tournament(coders, testers, problems, Arena(sandbox, config), **given)


@pytest.mark.parametrize(
    ("code", "suite", "expected"),
    [
        (RIGHT, FINDS, Winner.CODER),
        (WRONG, FINDS, Winner.TESTER),
        (WRONG, MISSES, Winner.CODER),  # not found out
        (WRONG, f"{FINDS}\n{MISSES}", Winner.TESTER),  # one failure is enough
        (WRONG, SURE, Winner.TESTER),  # the reference corrects what it states
        (RIGHT, SURE, Winner.CODER),
        (RIGHT, "", Winner.CODER),
        (WRONG, INVALID, Winner.CODER),
        (BROKEN, MISSES, Winner.TESTER),
        (BROKEN, "", Winner.DRAW),
        ("", "", Winner.DRAW),
        ("def f(x): raise ValueError", MISSES, Winner.TESTER),
    ],
)
def test_who_wins_a_game(sandbox: LocalSandbox, code: str, suite: str, expected: Winner) -> None:
    (game,) = played(sandbox, {"c": Says(code)}, {"t": Says(suite)}).games
    assert game.outcome is expected


def test_without_corrections_a_wrong_value_tests_nothing(sandbox: LocalSandbox) -> None:
    config = RewardConfig(correct_outputs=False)
    (game,) = played(sandbox, {"c": Says(WRONG)}, {"t": Says(SURE)}, config=config).games
    assert game.outcome is Winner.CODER


def test_the_reference_decides_whatever_the_arenas_oracle_and_rewards_are(sandbox: LocalSandbox) -> None:
    coders: dict[str, Player] = {"right": Says(RIGHT), "wrong": Says(WRONG)}
    found = played(sandbox, coders, {"t": Says(FINDS)})
    for given in ({"oracle": "majority"}, {"tester_reward": "utrl"}, {"coder_tests": "union"}):
        assert played(sandbox, coders, {"t": Says(FINDS)}, config=RewardConfig(**given)) == found


def test_standings_count_every_game_from_both_sides(sandbox: LocalSandbox) -> None:
    found = played(
        sandbox,
        {"right": Says(RIGHT), "broken": Says(BROKEN)},
        {"finds": Says(FINDS), "silent": Says("")},
    )
    counts = {each.name: (each.won, each.drawn, each.lost, each.unscored) for each in (*found.coders, *found.testers)}
    assert counts == {"right": (2, 0, 0, 0), "broken": (0, 1, 1, 0), "finds": (1, 0, 1, 0), "silent": (0, 1, 1, 0)}
    assert [found.share("broken", tester) for tester in ("finds", "silent")] == [0.0, 0.5]
    right, broken = found.coders
    assert right.reward == 0.5  # passes the one valid test; against the empty suite R_C is 0
    assert right.rating.points > broken.rating.points
    finds, silent = found.testers
    assert finds.rating.points > silent.rating.points  # saying nothing does not pay


def test_every_pair_plays_every_question_and_a_program_meets_every_tester(sandbox: LocalSandbox) -> None:
    one, other = Says("assert True", name="one"), Says("", name="other")
    coders: dict[str, Player] = {"oracle": OracleCoder(), "mutant": MutantCoder(), "again": OracleCoder()}
    found = played(sandbox, coders, {"one": one, "other": other}, BUNDLED, samples=2)
    pairs = [(game.coder, game.tester, game.problem_id) for game in found.games]
    assert len(pairs) == 3 * 2 * 6 * 2
    assert len(set(pairs)) == 3 * 2 * 6
    asked = [(request.problem.problem_id, request.program) for request in one.asked]
    assert len(set(asked)) == len(asked)  # the oracles' programs are the same: asked about once
    assert one.asked == other.asked


def test_somebody_is_told_how_many_answers_there_are(sandbox: LocalSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two coders of 3 programs on 6 questions, 4 at a time; the testers meet a program once: three different ones."""
    monkeypatch.setattr("codea1_env.evaluation.tournament._ASKED_AT_ONCE", 4)
    told: list[tuple[str, int, int]] = []
    played(
        sandbox,
        {"a": Says(RIGHT, WRONG, BROKEN), "b": Says(RIGHT, WRONG, BROKEN)},
        {"c": Says(FINDS)},
        BUNDLED,
        samples=3,
        on_answers=lambda seat, count, total: told.append((seat, count, total)),
    )
    assert told[:4] == [("coders", 12, 36), ("coders", 6, 36)] * 2
    assert told[4:] == [("testers", 4, 18)] * 4 + [("testers", 2, 18)]


def test_a_tournament_repeats_itself_for_a_seed_and_a_pair_whoever_else_is_there(sandbox: LocalSandbox) -> None:
    coders: dict[str, Player] = {"mutant": MutantCoder(), "oracle": OracleCoder()}
    testers: dict[str, Player] = {"random": RandomTester(), "golden": GoldenTester()}
    whole = played(sandbox, coders, testers, BUNDLED, seed=4)
    assert whole == played(sandbox, coders, testers, BUNDLED, seed=4)
    assert whole.games != played(sandbox, coders, testers, BUNDLED, seed=5).games
    alone = played(sandbox, {"mutant": MutantCoder()}, {"random": RandomTester()}, BUNDLED, seed=4)
    assert alone.games == tuple(game for game in whole.games if (game.coder, game.tester) == ("mutant", "random"))


def test_a_line_of_a_journal_that_says_something_else_is_refused_and_what_a_removed_one_said_is_done_again(
    sandbox: LocalSandbox, tmp_path: Path
) -> None:
    path, plan = tmp_path / "journal", {"samples": 1}

    def go_on(code: str) -> Tournament:
        with TournamentJournal(path, plan) as journal:
            return played(sandbox, {"c": Says(code)}, {"t": Says(FINDS)}, journal=journal)

    assert [game.outcome for game in go_on(WRONG).games] == [Winner.TESTER]
    lines = path.read_text().splitlines(keepends=True)
    coder, game = json.loads(lines[1]), json.loads(lines[-1])
    for at, damaged in ((1, {**coder, "texts": []}), (1, {**coder, "texts": {}}), (3, {**game, "coder_reward": []})):
        path.write_text("".join([*lines[:at], json.dumps(damaged) + "\n", *lines[at + 1 :]]))
        with pytest.raises(FormatError, match=f"line {at + 1}, must be what codea1 tournament wrote"):
            go_on(WRONG)
    path.write_text("".join([lines[0], *lines[2:]]))
    for _ in range(2):  # the coder is asked again, answers otherwise, and the game that was lost is played again
        assert [game.outcome for game in go_on(RIGHT).games] == [Winner.CODER]


def test_infrastructure_that_fails_is_nobodys_loss(sandbox: LocalSandbox) -> None:
    class Failing:
        version = "failing"

        def run(self, jobs: Sequence[Job]) -> list[JobResult]:
            raise SandboxError("no processes left")

        def close(self) -> None:
            """Nothing to close."""

    found = played(Failing(), {"c": Says(WRONG)}, {"t": Says(FINDS)})
    (game,) = found.games
    assert (game.outcome, game.coder_reward, game.tester_reward) == (Winner.NONE, None, None)
    (coder,) = found.coders
    assert (coder.won, coder.drawn, coder.lost, coder.unscored, coder.reward) == (0, 0, 0, 1, None)
    assert coder.rating.points == 1500
    assert found.share("c", "t") is None


def test_what_cannot_be_played_is_refused(sandbox: LocalSandbox) -> None:
    coder, tester = Says(RIGHT), Says(FINDS)
    with pytest.raises(ConfigurationError, match="must have coders, got none"):
        played(sandbox, {}, {"t": tester})
    with pytest.raises(ConfigurationError, match="must have problems, got none"):
        played(sandbox, {"c": coder}, {"t": tester}, ())
    with pytest.raises(ConfigurationError, match="different ids"):
        played(sandbox, {"c": coder}, {"t": tester}, (DOUBLE, DOUBLE))
    with pytest.raises(UnusableReference):
        played(sandbox, {"c": coder}, {"t": tester}, (Problem("p", "q", "f"),))


def test_every_game_can_be_recorded_and_replayed(sandbox: LocalSandbox, tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    with Recorder(path) as recorder:
        arena = Arena(sandbox, on_score=recorder.write)
        play_tournament({"mutant": MutantCoder()}, {"random": RandomTester()}, BUNDLED, arena)
    replayed = list(replay(read_recording(path.read_bytes().splitlines()), sandbox))
    assert len(replayed) == 6
    assert all(each.is_same for each in replayed)


QUICK = ("tournament", "--questions", "3", "--coder", "mutant", "--tester", "golden")


def test_the_command_prints_tables_and_repeats_itself(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*QUICK, "--coder", "oracle", "--tester", "mine=fuzz", "--seed", "2"]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    (oracle,) = [line.split() for line in shown.splitlines() if line.startswith("oracle") and ".." in line]
    assert oracle[-4:] == ["6", "0", "0", "1.000"]
    assert "mine" in shown
    assert main(arguments) == 0
    assert capsys.readouterr().out == shown


def test_the_command_does_not_depend_on_the_hash_seed() -> None:
    command = [sys.executable, "-m", "codea1_env.cli", *QUICK, "--tester", "random", "--json"]
    shown = {
        subprocess.run(command, env={"PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        for seed in ("0", "1")
    }
    assert len(shown) == 1


def test_the_command_writes_json_and_games(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    assert main([*QUICK, "--json", "--samples", "2", "--record", str(path)]) == 0
    printed = capsys.readouterr()
    assert printed.err.endswith(f"wrote {path}; `codea1 view {path}` makes a page of it\n")
    record = json.loads(printed.out)
    assert [(each["name"], each["won"] + each["drawn"] + each["lost"]) for each in record["coders"]] == [("mutant", 6)]
    assert len(record["problems"]) == 3
    assert {game["outcome"] for game in record["games"]} <= {"coder", "tester"}
    assert record["coders"][0]["low"] <= record["coders"][0]["rating"] <= record["coders"][0]["high"]
    for _ in range(2):  # the second time it takes the first one's place
        assert main(["replay", str(path)]) == 0
        assert "6 matches played again, 0 with other rewards" in capsys.readouterr().err
        assert main([*QUICK, "--samples", "2", "--record", str(path)]) == 0
    assert list(tmp_path.iterdir()) == [path]


def test_recorded_players_play_their_record(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    problems, record = tmp_path / "problems.jsonl", tmp_path / "record.jsonl"
    problems.write_text(DOUBLE.to_json() + "\n")
    line = {
        "problem_id": "double", "question": DOUBLE.question, "entry_point": "f",
        "reference_solution": DOUBLE.reference_solution, "codes": [WRONG], "suites": [[FINDS]],
    }  # fmt: skip
    record.write_text(json.dumps(line) + "\n")
    player = f"recorded:{record}"
    arguments = ["tournament", "--problems", str(problems), "--coder", player, "--tester", player, "--json"]
    assert main(arguments) == 0
    (game,) = json.loads(capsys.readouterr().out)["games"]
    assert (game["coder"], game["outcome"]) == (player, "tester")
    assert main([*arguments, "--coder", "oracle"]) == 2
    assert "must hold at least 1 suites against this program" in capsys.readouterr().err
    record.write_text("{}\n")
    assert main(arguments) == 1
    assert "line 1: the line must have the fields" in capsys.readouterr().err


def test_a_server_plays_and_one_that_refuses_ends_the_tournament(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(lambda request, _: Reply(body=completion("assert False"))) as server:
        assert (
            main([*QUICK, "--tester", f"served=openai:{server.url}#m", "--max-tokens", "9", "--suite-size", "5"]) == 0
        )
        assert {request["max_tokens"] for request in server.asked} == {9}
        assert "Write 5 tests" in server.asked[0]["messages"][1]["content"]
    assert "served" in capsys.readouterr().out
    with serving(lambda request, _: Reply(401, b"who?")) as server:
        assert main([*QUICK, "--coder", f"openai:{server.url}#m"]) == 1
    assert "got 401: who?" in capsys.readouterr().err


def test_a_hugging_face_directory_plays_both_seats_and_is_loaded_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    import tiny_chat_model

    player = f"hf:{tiny_chat_model.save(tmp_path)}"
    arguments = ["tournament", "--questions", "1", "--coder", f"c={player}", "--tester", f"t={player}", "--json"]
    with tiny_chat_model.one_thread():
        assert main([*arguments, "--max-tokens", "3"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["coders"][0]["version"] == record["testers"][0]["version"]
    assert record["games"][0]["outcome"] == "draw"  # three random tokens are no program


@pytest.mark.parametrize("kind", ["hf", "vllm", "mini"])
def test_a_model_that_cannot_be_read_is_refused_in_one_line_before_anything_is_loaded(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("hugging_face", "vllm_offline"):
        monkeypatch.setitem(sys.modules, f"codea1_env.players.{name}", None)
    bare, adapter = tmp_path / "bare", tmp_path / "adapter"
    for directory in (bare, adapter, tmp_path / "empty"):
        directory.mkdir()
    (bare / "config.json").write_text('{"model_type": "gpt2"}')
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(bare)}))
    (tmp_path / "text.gguf").write_text("no model")
    for name, why in (
        ("none", "must be a directory or a .gguf file, got"),
        ("empty", "must hold a config.json, got none in"),
        ("text.gguf", "must be a directory or a .gguf file, got"),
        ("bare", "must have a chat template (take an instruct model), got none in"),
        ("adapter", "must have a chat template (take an instruct model), got none in"),
    ):
        for seat in ("--coder", "--tester"):
            assert main([*QUICK, seat, f"model={kind}:{tmp_path / name}"]) == 2
            said = capsys.readouterr().err
            assert said.startswith(f"codea1: the model of {kind}:{tmp_path / name} {why}")
            assert said.count("\n") == 1


def test_a_person_plays(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO(".\n" * 3))
    assert main([*QUICK, "--coder", "human"]) == 0
    assert "human" in capsys.readouterr().out
    assert main([*QUICK, "--coder", "human"]) == 1  # nobody there any more
    assert "human must answer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--coder", "mutant"], "different names, got 'mutant' twice"),
        (["--coder", "golden"], "a player in the coder's seat must be one of oracle, mutant, human"),
        (["--coder", "oracle:x"], "got 'oracle:x'"),
        (["--coder", ""], "got ''"),
        (["--coder", "recorded"], "got 'recorded'"),
        (["--coder", "recorded:nowhere.jsonl"], "a record must be a file, got nowhere.jsonl"),
        (["--problems", "nowhere.jsonl"], "--problems must be a file, got nowhere.jsonl"),
        (["--coder", "openai:http://x/v1"], "must be given as openai:URL#MODEL"),
        (["--coder", "openai:ftp://x/v1#m"], "must be an http or https address"),
        (["--tester", "oracle"], "got 'oracle'"),
        (["-o", "nowhere/journal"], "--output must be a file in an existing directory"),
        (["--samples", "0"], "--samples must be at least 1, got 0"),
        (["--samples", "1000000000"], "--samples must be at most 100000, got 1000000000"),
        (["--suite-size", "0"], "--suite-size must be at least 1, got 0"),
        (["--seed", "-1"], "--seed must be at least 0, got -1"),
        (["--questions", "65"], r"--questions must be in [1, 64], got 65"),
        (["--temperature", "nan"], "temperature must be in [0, 100], got nan"),
        (["--record", __file__], "--record must be a new or empty file or a recording"),
    ],
)
def test_wrong_arguments_are_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_problem_file_without_problems_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    assert main([*QUICK, "--problems", str(tmp_path / "empty.jsonl"), "--questions", "2"]) == 2
    assert "--problems must hold a problem, got none in" in capsys.readouterr().err


def test_a_player_that_gives_no_answer_ends_the_tournament(sandbox: LocalSandbox) -> None:
    class Silent(Says):
        def respond(self, *_: Any, **__: Any) -> list[list[Response]]:
            raise PlayerError("gone")

    with pytest.raises(PlayerError, match="gone"):
        played(sandbox, {"c": Silent()}, {"t": Says(FINDS)})


@pytest.mark.parametrize("answers", [[["text"]], [], None, [[]], [[Response(None)]], "x"])  # type: ignore[arg-type]
def test_what_is_no_response_is_refused_where_it_arrives(answers: Any, sandbox: LocalSandbox) -> None:
    class Wrong(Says):
        def respond(self, *_: Any, **__: Any) -> Any:
            return answers

    with pytest.raises(PlayerError, match="what the player 'says' answers must be 1 "):
        played(sandbox, {"c": Wrong()}, {"t": Says(FINDS)})


def test_a_player_that_does_not_say_who_it_is_is_refused_before_anybody_is_asked(sandbox: LocalSandbox) -> None:
    class Nameless:
        version = "1"
        respond = Says(FINDS).respond

    with pytest.raises(ConfigurationError, match="tester 't' must be a player: texts `name` and `version`, and a meth"):
        played(sandbox, {"c": Says(RIGHT)}, {"t": Nameless()})  # type: ignore[dict-item]


def test_players_here_are_players(sandbox: LocalSandbox) -> None:
    player: Player = Says(RIGHT)
    assert player.respond([CoderRequest(DOUBLE)], n=2)[0][1].text == RIGHT
