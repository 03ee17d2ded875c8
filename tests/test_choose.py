"""Choosing questions that a model solves sometimes: which ones, once for all, and where a killed run goes on."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from fake_openai import Json, Reply, completion, serving

from codea1_env import Problem, TestCase, read_problems, write_problems
from codea1_env.cli import main

RIGHT, WRONG = "def f(x):\n    return x\n", "def f(x):\n    return None\n"
RIGHT_OF_4 = {"never": 0, "once": 1, "often": 3, "always": 4}


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    path = tmp_path / "all.jsonl"
    tests = (TestCase("f(1)", "1"),)
    made = [Problem(name, f"Question {name}.", "f", RIGHT, golden_tests=tests) for name in RIGHT_OF_4]
    write_problems(path, [*made, Problem("untested", "Question untested.", "f", RIGHT)])
    return path


def answer(request: Json, number: int) -> Reply:
    question = request["messages"][-1]["content"]
    right = next((count for name, count in RIGHT_OF_4.items() if f"Question {name}." in question), 0)
    return Reply(body=completion(*[RIGHT] * right, *[WRONG] * (request["n"] - right)))


def choose(problems: Path, url: str, *arguments: str) -> int:
    player = f"openai:{url}#m"
    return main(["data", "choose", str(problems), "--player", player, "-n", "4", "--concurrency", "1", *arguments])


def test_an_empty_file_is_a_wrong_argument(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "none.jsonl").touch()
    assert choose(tmp_path / "none.jsonl", "http://127.0.0.1:1", "-o", str(tmp_path / "chosen.jsonl")) == 2
    assert capsys.readouterr().err.startswith("codea1: FILE.jsonl must hold a problem, got none in ")
    assert [file.name for file in tmp_path.iterdir()] == ["none.jsonl"]


def test_questions_that_are_right_sometimes_are_kept_as_they_are(problems: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "chosen.jsonl"
    with serving(answer) as server:
        assert choose(problems, server.url, "-o", str(out)) == 0
        asked = len(server.asked)
        assert choose(problems, server.url, "-o", str(out)) == 0
        assert len(server.asked) == asked == 4, "what was asked is known, what has no tests is not asked"
        assert choose(problems, server.url, "-o", str(tmp_path / "all"), "--between", "0.75", "1") == 0
    chosen = read_problems(out)
    assert [problem.problem_id for problem in chosen] == ["once", "often"]
    assert chosen == [problem for problem in read_problems(problems) if problem.problem_id in ("once", "often")]
    assert [problem.problem_id for problem in read_problems(tmp_path / "all")] == ["often", "always"]
    printed = capsys.readouterr()
    shares = "2 of 5 questions have a share of right answers from 0.1 to 0.9; 1 have less, 1 have more, 1 have no"
    assert shares in printed.err
    assert f"sha256 {hashlib.sha256(out.read_bytes()).hexdigest()}" in printed.out


def test_a_run_that_ended_early_goes_on_and_not_with_another_seed(problems: Path, tmp_path: Path, capsys: Any) -> None:
    out, journal = tmp_path / "chosen.jsonl", tmp_path / "chosen.jsonl.journal.jsonl"
    with serving(answer) as server:
        assert choose(problems, server.url, "-o", str(out), "--batch", "1") == 0
        whole, lines = out.read_bytes(), journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join(lines[:3]) + lines[3][:30])
        out.unlink()
        before = len(server.asked)
        assert choose(problems, server.url, "-o", str(out), "--batch", "1") == 0
        assert len(server.asked) == before + 3
        assert choose(problems, server.url, "-o", str(out), "--seed", "1") == 2
    assert out.read_bytes() == whole
    assert json.loads(lines[0])["seed"] == 0
    assert "another seed" in capsys.readouterr().err


def test_nothing_is_written_where_nothing_fits(problems: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "chosen.jsonl"
    command = ["data", "choose", str(problems), "--player", "oracle", "-n", "2", "-o", str(out)]
    assert main(command) == 1
    assert "0 of 5 questions have a share of right answers from 0.1 to 0.9; 0 have less, 4" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--between", "0.9", "0.1"], "--between must be two numbers in [0, 1], the lower one first, got 0.9 0.1"),
        (["--between", "0", "2"], "--between must be two numbers in [0, 1]"),
        (["--player", "golden"], "a player in the coder's seat must be one of"),
        (["-n", "0"], "--n must be at least 1, got 0"),
        (["-n", "1000000000"], "--n must be at most 100000, got 1000000000"),
        (["--limit", "0"], "--limit must be at least 1, got 0"),
        (["--prompts", "paper"], "--prompts must come with a player hf:MODEL or vllm:MODEL"),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: list[str], message: str, problems: Path, tmp_path: Path, capsys: Any
) -> None:
    given = ["--player", "oracle", *arguments]
    assert main(["data", "choose", str(problems), *given, "-o", str(tmp_path / "o.jsonl")]) == 2
    assert message in capsys.readouterr().err
    assert main(["data", "choose", str(problems), "--player", "oracle", "-o", ""]) == 2
    assert "--output must be a file in an existing directory, got ." in capsys.readouterr().err
    assert main(["data", "choose", str(problems), "--player", "oracle", "-o", str(problems)]) == 2
    assert "must be another file than the input" in capsys.readouterr().err
