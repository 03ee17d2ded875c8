"""The gate's table: each wrong answer is counted once, by the first reason that holds."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

from codea1_env.cli import main
from codea1_env.problems import Problem, TestCase
from codea1_env.problems.jsonl import write_problems

GATE = Path(__file__).parents[1] / "experiments" / "gate.py"
RIGHT = "def f(x):\n    return 2 * x"
ANSWERS = {
    "T/0": (RIGHT, 0, True, True),
    "T/1": ("def f(x):\n    return x", 0, True, False),
    "T/2": ("def f(x):\n    ret", 1, True, False),
    "T/3": ("I cannot.", 0, False, False),
    "T/4": (RIGHT, 0, True, False),
    "T/6": (f"```python\n{RIGHT}\n\nassert f(1) == 3\n```", 0, False, False),
}


def evaluated(tmp_path: Path) -> Path:
    out = tmp_path / "gate"
    (out / "problems").mkdir(parents=True)
    made = [Problem(name, "Q", "f", RIGHT, hidden_tests=(TestCase("f(1)", "2"),)) for name in ANSWERS]
    write_problems(out / "problems" / "set.jsonl", made)
    lines: list[object] = [{"kind": "plan", "samples": 1, "problems": {"set": "digest"}}]
    for name, (text, cut, executes, passed) in ANSWERS.items():
        lines.append({"kind": "answers", "set": "set", "problem_id": name, "texts": [text], "truncated": cut})
        score = {"kind": "score", "set": "set", "problem_id": name}
        lines.append({**score, "passed": [passed], "executes": [executes]})
    lines.append({"kind": "score", "set": "set", "problem_id": "T/5", "left_out": "it has no tests"})
    lines.append(lines[2])  # scored again, after the line of its answers was lost
    (out / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return out


def run(*arguments: object) -> str:
    done = subprocess.run([sys.executable, GATE, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_gap_is_split_and_both_sets_stand_beside_the_published_figures(tmp_path: Path) -> None:
    out = evaluated(tmp_path)
    verdicts = tmp_path / "verdicts.jsonl"
    told = {"T/0": "pass", "T/1": "fail", "T/2": "fail", "T/3": "fail", "T/4": "pass", "T/6": "fail"}
    verdicts.write_text(
        "\n" + "".join(json.dumps(["evalplus", name, 0, verdict]) + "\n" for name, verdict in told.items())
    )
    base = tmp_path / "base.jsonl"
    row = {"prompt": 'def f(x):\n    """Twice."""\n', "canonical_solution": "    return 2 * x\n", "entry_point": "f",
           "test": "def check(candidate):\n    assert candidate(0) == 0\n"}  # fmt: skip
    base.write_text("".join(json.dumps({**row, "task_id": name}) + "\n" for name in ANSWERS))
    recorded = tmp_path / "gate.jsonl.gz"
    table = run(out, "--base", base, "--verdicts", verdicts, "--published", 61.6, 57.3, "--recorded", recorded)
    assert "| HumanEval, 6 questions | 3 | 50.0 | 61.6 |" in table, "f(0) is 0 in T/1, too"
    assert "| HumanEval, 6 questions, trimmed | 4 | 66.7 | 61.6 |" in table, "what fails below the function is left out"
    assert "| HumanEval+, 6 questions | 1 | 16.7 | 57.3 |" in table
    assert "| HumanEval+, 6 questions, trimmed | 3 | 50.0 | 57.3 |" in table
    assert "Wrong: 5. right when trimmed 1, cut off 1, unread 1, judged otherwise by EvalPlus 1, the rest 1." in table
    assert "EvalPlus' executor passes 2 of 6; right here alone: none; right there alone: ['T/4']." in table
    assert "no tests here: T/5." in table
    first = json.loads(gzip.decompress(recorded.read_bytes()).splitlines()[0])
    assert first == {"task_id": "T/0", "entry_point": "f", "codes": [RIGHT]}


def test_it_reads_what_the_command_writes(tmp_path: Path) -> None:
    problems = tmp_path / "problems"
    problems.mkdir()
    write_problems(problems / "mine.jsonl", [Problem("a", "Q", "f", RIGHT, hidden_tests=(TestCase("f(1)", "2"),))])
    out = tmp_path / "out"
    assert (
        main(["eval", "--player", "oracle", "--problems", str(problems / "mine.jsonl"), "--n", "1", "-o", str(out)])
        == 0
    )
    assert "| HumanEval+, 1 questions | 1 | 100.0 | - |" in run(out)
