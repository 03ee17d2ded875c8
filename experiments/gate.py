"""The gate: a model's greedy answers to HumanEval+ beside published figures, and where the gap comes from.

    codea1 eval --player hf:DIRECTORY --problems humanevalplus=humanevalplus.parquet --prompts evalplus --n 1 \\
        --temperature 0 --max-tokens 512 -o GATE
    python experiments/gate.py GATE --recorded gate.jsonl.gz
    python benchmarks/evalplus_agreement.py gate.jsonl.gz humanevalplus.parquet --peers .peers/bin/python \\
        --side evalplus --journal gate-verdicts.jsonl
    python experiments/gate.py GATE --base HumanEval.jsonl.gz --verdicts gate-verdicts.jsonl --published 61.6 57.3

The second line writes the programs for EvalPlus' own executor, the third asks it, the last one prints the table: right
on HumanEval's tests (`--base`: a file of its rows) and on HumanEval+'s, also trimmed: EvalPlus keeps of an answer what
the asked function needs, so that calls below it, or a last line that was cut off, do no harm. And of the answers that
are wrong, each once: right when trimmed; cut off at the length limit; unread, where no program that loads was found;
judged otherwise by EvalPlus; the rest.
Answers and scores are read from the journal of the evaluation: no model is loaded here.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from codea1_env import Arena, LocalSandbox
from codea1_env.judging.problems.importing import import_drafts
from codea1_env.problems import read_problems
from codea1_env.problems.sources import find_source
from codea1_env.problems.sources.rows import local_rows
from codea1_env.terminal import Parser, markdown_table

REASONS = ("right when trimmed", "cut off", "unread", "judged otherwise by EvalPlus", "the rest")


@dataclass(frozen=True, slots=True)
class Answer:
    """The one answer to a question."""

    task_id: str
    text: str
    is_cut_off: bool
    executes: bool
    passed: bool


def main() -> None:
    options = arguments()
    answers, left_out = read_journal(options.evaluation / "journal.jsonl")
    if options.recorded:
        names = entry_points(options.evaluation)
        with gzip.open(options.recorded, "wt", encoding="utf-8") as file:
            for answer in answers:
                record = {"task_id": answer.task_id, "entry_point": names[answer.task_id], "codes": [answer.text]}
                file.write(json.dumps(record) + "\n")
    base = on_base_tests(options.base, answers, trims=False) if options.base else {}
    base_trimmed = on_base_tests(options.base, answers, trims=True) if options.base else {}
    plus_trimmed = on_plus_tests(options.evaluation, answers)
    verdicts = read_verdicts(options.verdicts) if options.verdicts else {}
    print(as_table(answers, left_out, (base, base_trimmed), plus_trimmed, verdicts, options.published))


def arguments() -> argparse.Namespace:
    parser = Parser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("evaluation", type=Path, help="the directory that `codea1 eval --n 1` wrote")
    parser.add_argument("--recorded", type=Path, help="write the answers there, for evalplus_agreement.py")
    parser.add_argument("--base", type=Path, help="rows of HumanEval, for its own few tests")
    parser.add_argument("--verdicts", type=Path, help="the journal of evalplus_agreement.py")
    parser.add_argument("--published", metavar=("BASE", "PLUS"), nargs=2, type=float, help="percent, to stand beside")
    return parser.parse_args()


def read_journal(path: Path) -> tuple[list[Answer], list[str]]:
    """The answers to the one set, and the questions without tests. An incomplete last line, which a killed run leaves,
    is left out."""
    if not path.is_file():
        raise SystemExit(f"error: {path} must be the journal of an evaluation, got no such file")
    plan, *lines = [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    if plan["samples"] != 1 or len(plan["problems"]) != 1:
        raise SystemExit(f"{path} must be of one set with --n 1, got {list(plan['problems'])}, n = {plan['samples']}")
    said = {line["problem_id"]: line for line in lines if line["kind"] == "answers"}
    answers, left_out = [], []
    scores = {line["problem_id"]: line for line in lines if line["kind"] == "score"}  # the last, if scored again
    for name, score in scores.items():
        if "left_out" in score:
            left_out.append(name)
            continue
        cut_off = bool(said[name]["truncated"])
        answers.append(Answer(name, said[name]["texts"][0], cut_off, score["executes"][0], score["passed"][0]))
    return answers, left_out


def problem_files(evaluation: Path) -> list[Path]:
    """The problems as the evaluation used them."""
    found = [*evaluation.glob("problems/*.jsonl"), *evaluation.parent.glob("problems/*.jsonl")]
    files = [file for file in found if "report" not in file.name]
    if not files:
        raise SystemExit(f"{evaluation} must have a folder problems/, as --problems NAME=PATH makes it, got none")
    return files


def entry_points(evaluation: Path) -> dict[str, str]:
    """By question."""
    rows = [json.loads(line) for file in problem_files(evaluation) for line in file.read_text().splitlines()]
    return {row["problem_id"]: row["entry_point"] for row in rows}


def trimmed(text: str, entry_point: str) -> str:
    """The asked function of an answer and what it needs: imports, and the definitions that it names."""
    tree = parsed(text.partition("```python\n")[2].partition("\n```")[0] or text)
    definitions: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            definitions[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            stored = [name.id for name in ast.walk(node) if isinstance(name, ast.Name)]
            definitions |= {name: node for name in stored if name not in definitions}
    kept, waiting = [], [entry_point]
    while waiting:
        found = definitions.get(waiting.pop())
        if found is not None and found not in kept:
            kept.append(found)
            waiting += [name.id for name in ast.walk(found) if isinstance(name, ast.Name)]
    body = [node for node in tree.body if node in kept or isinstance(node, ast.Import | ast.ImportFrom)]
    return f"```python\n{ast.unparse(ast.Module(body, []))}\n```"


def parsed(text: str) -> ast.Module:
    """As many of the first lines as are Python."""
    lines = text.split("\n")
    for end in range(len(lines), 0, -1):
        try:
            return ast.parse("\n".join(lines[:end]))
        except (SyntaxError, ValueError):
            continue
    return ast.Module([], [])


def on_plus_tests(evaluation: Path, answers: list[Answer]) -> dict[str, bool]:
    """Which answers, trimmed, pass HumanEval+'s tests."""
    by_id = {problem.problem_id: problem for file in problem_files(evaluation) for problem in read_problems(file)}
    with LocalSandbox() as sandbox:
        graded = Arena(sandbox).grade_many(
            [
                (by_id[answer.task_id], [trimmed(answer.text, by_id[answer.task_id].entry_point)],
                 by_id[answer.task_id].hidden_tests)
                for answer in answers
            ]
        )  # fmt: skip
    return {answer.task_id: grade.all_passed for answer, (grade,) in zip(answers, graded, strict=True)}


def on_base_tests(path: Path, answers: list[Answer], *, trims: bool) -> dict[str, bool]:
    """Which answers pass HumanEval's own tests."""
    by_id = {answer.task_id: answer for answer in answers}
    rows = [row for row in local_rows(path) if row["task_id"] in by_id]
    found = {}
    with LocalSandbox() as sandbox:
        for imported in import_drafts(find_source("humaneval").drafts(rows), sandbox):
            if imported.problem is not None and imported.problem.hidden_tests:
                tests = imported.problem.hidden_tests
                text = by_id[imported.problem_id].text
                text = trimmed(text, imported.problem.entry_point) if trims else text
                (grade,) = Arena(sandbox).grade(imported.problem, [text], tests)
                found[imported.problem_id] = grade.all_passed
    return found


def read_verdicts(path: Path) -> dict[str, bool]:
    """Whether EvalPlus' executor passes the answer, by question."""
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    return {task_id: verdict == "pass" for side, task_id, _, verdict in rows if side == "evalplus"}


def why_wrong(answer: Answer, plus_trimmed: dict[str, bool], verdicts: dict[str, bool]) -> str:
    """The first reason that holds."""
    if verdicts.get(answer.task_id, False):
        return "judged otherwise by EvalPlus"
    if plus_trimmed[answer.task_id]:
        return "right when trimmed"
    if answer.is_cut_off:
        return "cut off"
    return "the rest" if answer.executes else "unread"


def as_table(
    answers: list[Answer],
    left_out: list[str],
    base: tuple[dict[str, bool], dict[str, bool]],
    plus_trimmed: dict[str, bool],
    verdicts: dict[str, bool],
    published: list[float] | None,
) -> str:
    count, right = len(answers), sum(answer.passed for answer in answers)
    rows: list[tuple[object, ...]] = []
    told = [f"{value:.1f}" for value in published] if published else ["-", "-"]
    for how, passes in zip(("", ", trimmed"), base, strict=True):
        if passes:
            passed = sum(passes.values())
            share = 100 * passed / len(passes)
            rows.append((f"HumanEval, {len(passes)} questions{how}", passed, f"{share:.1f}", told[0]))
    for how, passed in (("", right), (", trimmed", sum(plus_trimmed.values()))):
        rows.append((f"HumanEval+, {count} questions{how}", passed, f"{100 * passed / count:.1f}", told[1]))
    reasons = Counter(why_wrong(answer, plus_trimmed, verdicts) for answer in answers if not answer.passed)
    split = ", ".join(f"{what} {reasons[what]}" for what in REASONS)
    lines = [markdown_table(("", "right", "percent", "published"), rows), "", f"Wrong: {count - right}. {split}."]
    if verdicts:
        there = sum(verdicts.values())
        lenient = [answer.task_id for answer in answers if answer.passed and not verdicts.get(answer.task_id, True)]
        strict = [answer.task_id for answer in answers if not answer.passed and verdicts.get(answer.task_id, False)]
        lines.append(
            f"EvalPlus' executor passes {there} of {len(verdicts)}; right here alone: {lenient or 'none'}; "
            f"right there alone: {strict or 'none'}."
        )
    if left_out:
        lines.append(f"Not asked, for they have no tests here: {', '.join(left_out)}.")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
