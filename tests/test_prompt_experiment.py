"""The experiment on prompt designs: its table by hand, and that nothing is sampled twice."""

import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="the extra `train` is not installed")

import prompt_designs
import tiny_chat_model

from codea1_env.problems import Problem, TestCase
from codea1_env.problems.jsonl import write_problems

RIGHT, WRONG = "def f(x):\n    return abs(x)\n", "def f(x):\n    return x\n"
PROBLEMS = [Problem(f"p{k}", f"Question {k}.", "f", RIGHT, (TestCase("f(-1)", "1"),)) for k in range(3)]


def run(monkeypatch: pytest.MonkeyPatch, capsys: Any, *arguments: object) -> str:
    monkeypatch.setattr(sys, "argv", ["prompt_designs.py", *map(str, arguments)])
    with tiny_chat_model.one_thread():
        prompt_designs.main()
    printed: str = capsys.readouterr().out
    return printed


def answer(design: str, problem: str, text: str, seat: str = "tester", truncated: bool = False) -> dict[str, Any]:
    words = prompt_designs.text_digest(prompt_designs.find_prompts(design))
    return {"seat": seat, "design": design, "prompts": words, "problem_id": problem, "program": WRONG, "text": text,
            "truncated": truncated, "tokens": 10, "cpu_s": 1.0}  # fmt: skip


def test_the_table_counts_what_is_read_right_and_breaking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    problems, out = tmp_path / "p.jsonl", tmp_path / "out"
    write_problems(problems, PROBLEMS[:2])
    out.mkdir()
    rows = [
        answer("paper", "p0", "```python\nassert f(-2) == 2\nassert f(3) == 3\nassert f(4) == 5\n```"),
        answer("paper", "p1", "Input: -2, expected output: 2", truncated=True),
        answer("codea1", "p0", RIGHT, "coder"),
        answer("codea1", "p1", "def f(x) ret", "coder", truncated=True),
    ]
    plan = {"model": "nowhere", "temperature": 1.0, "max_tokens": 200, "seed": 0,
            "problems": sha256(problems.read_bytes()).hexdigest()}  # fmt: skip
    (out / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (plan, *rows)))
    common = ("--model", "nowhere", "--problems", problems, "-o", out)
    table = run(monkeypatch, capsys, *common, "--designs", "paper")
    assert "| paper | 50 % | 1.5 | 67 % | 1.0 | 50 % | 50 % | 10 |" in table
    table = run(monkeypatch, capsys, *common, "--seats", "coder", "--designs", "codea1")
    assert "| codea1 | 50 % | 50 % | 50 % | 10 |" in table
    assert (out / "table.md").read_text().count("| codea1 |") == 1


def test_what_was_answered_is_not_sampled_again_and_the_rest_is_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    problems, out = tmp_path / "p.jsonl", tmp_path / "out"
    write_problems(problems, PROBLEMS)
    model = tiny_chat_model.save(tmp_path / "model")
    monkeypatch.setattr(prompt_designs, "AT_A_TIME", 2)
    command = ("--model", model, "--problems", problems, "--designs", "paper,begun", "--max-tokens", 4, "-o", out)
    whole = run(monkeypatch, capsys, *command)
    path = out / "answers.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    assert len(lines) == 1 + 2 * 3
    begun = [json.loads(line)["text"] for line in lines if '"design": "begun"' in line]
    assert all(text.startswith("```python\nassert f(") for text in begun)
    path.write_text("".join(lines[:5]) + lines[5][:20])
    assert run(monkeypatch, capsys, *command) == whole
    texts = [json.loads(line)["text"] for line in path.read_text().splitlines()[1:]]
    assert texts == [json.loads(line)["text"] for line in lines[1:]]
    for other in (("--seed", 5), ("--max-tokens", 7), ("--temperature", 0.2), ("--model", "another")):
        with pytest.raises(SystemExit, match=f"got another {other[0].strip('-').replace('-', '_')}; choose another -o"):
            run(monkeypatch, capsys, *command, *other)
    foreign = path.read_text()[:-20]
    path.write_text(foreign)
    with pytest.raises(SystemExit, match="got another seed; choose another -o"):
        run(monkeypatch, capsys, *command, "--seed", 5)
    assert path.read_text() == foreign, "what is refused is left as it is"
    with pytest.raises(SystemExit, match="--seats must be tester, coder or both, got testr"):
        run(monkeypatch, capsys, *command, "--seats", "testr")
    assert run(monkeypatch, capsys, *command, "--questions", 1).count("\n| ") == 3, "a heading and two designs"
