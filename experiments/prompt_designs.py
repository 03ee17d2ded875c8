"""What a base model makes of prompt designs: what of its answers can be read, what is right, what is cut off, tokens.

    python experiments/prompt_designs.py --model DIRECTORY --problems FILE.jsonl --designs codea1,paper,begun -o OUT

Every design is put to the same first questions. As tester the model sees the question and a program with a bug: one
mutant of the reference, drawn by the seed, the same for all designs. As coder it sees the question. Answers go to
OUT/answers.jsonl, some questions at a time; what is there already is not sampled again. The table, OUT/table.md, is
made of that file, so that it can be made anew without a model. docs/results.md says what came out.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from codea1_env.errors import Codea1Error
from codea1_env.extras import for_script
from codea1_env.terminal import Parser, markdown_table

with for_script("train"):
    from codea1_env import Arena, LocalSandbox, Match, Problem, RewardConfig, Verdict
    from codea1_env.players import CoderRequest, MutantCoder, Request, Sampling, TesterRequest
    from codea1_env.players.chat import chat_messages
    from codea1_env.players.hugging_face import HuggingFacePlayer
    from codea1_env.players.prompts import find_prompts, text_digest
    from codea1_env.players.templates import Messages, Prompts
    from codea1_env.problems import read_problems
    from codea1_env.reading.responses import read_program
    from codea1_env.rewards.duel import Status

SUITE_SIZE = 8
"""Paper: K."""
AT_A_TIME = 16
"""Questions: what is lost at most when a run is killed."""


def main() -> None:
    options = arguments()
    problems = read_problems(options.problems)[: options.questions]
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "answers.jsonl"
    seats = options.seats.split(",")
    if not set(seats) <= {"tester", "coder"}:
        raise SystemExit(f"error: --seats must be tester, coder or both, got {options.seats}")
    wanted = [
        (seat, design, text_digest(find_prompts(design)))
        for seat in seats
        for design in dict.fromkeys(options.designs.split(","))
    ]
    done = sampled(options, problems, wanted, path)
    asked = {problem.problem_id for problem in problems}
    rows = [row for row in done if design_of(row) in wanted and row["problem_id"] in asked]
    table = as_table(options, problems, rows)
    (options.output / "table.md").write_text(table + "\n")
    print(table)


def arguments() -> argparse.Namespace:
    parser = Parser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", required=True, help="a directory in Hugging Face format, or a repository of the hub")
    parser.add_argument("--problems", type=Path, required=True, help="a problem file with references and tests")
    parser.add_argument("--designs", default="codea1,paper,example,begun,example_begun", help="divided by commas")
    parser.add_argument("--seats", default="tester", help="tester, coder or tester,coder (default: tester)")
    parser.add_argument("--questions", type=int, default=60, help="the first ones of the file (default: 60)")
    parser.add_argument("--max-tokens", type=int, default=200, help="of an answer (default: 200)")
    parser.add_argument("--temperature", type=float, default=1.0, help="as in training (default: 1)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, required=True, help="a directory")
    return parser.parse_args()


def design_of(row: dict[str, Any]) -> tuple[str, str, str]:
    """Seat, design and a digest of its words: a file may have been edited under its name."""
    return row["seat"], row["design"], row["prompts"]


def recorded(path: Path, plan: dict[str, Any]) -> list[dict[str, Any]]:
    """The answers in `path`, which begins with the plan; a last line that was cut off is taken away. Raises SystemExit
    where they are of another plan."""
    if not path.exists():
        path.write_text(json.dumps(plan) + "\n")
    content = path.read_text()
    whole = content[: content.rfind("\n") + 1]
    first, *rows = [json.loads(line) for line in whole.splitlines()] or [{}]
    if first != plan:
        different = sorted(name for name in plan if first.get(name) != plan[name])
        raise SystemExit(f"error: {path} must be of this plan to go on, got another {', '.join(different)}; choose "
                         "another -o")  # fmt: skip
    if whole != content:  # only of a file that is ours
        path.write_text(whole)
    return rows


def sampled(
    options: argparse.Namespace, problems: Sequence[Problem], wanted: Sequence[tuple[str, str, str]], path: Path
) -> list[dict[str, Any]]:
    """One line for each answer that is not in `path`; some questions at a time, all designs of them together."""
    plan = {"model": options.model, "temperature": options.temperature, "max_tokens": options.max_tokens,
            "seed": options.seed, "problems": sha256(options.problems.read_bytes()).hexdigest()}  # fmt: skip
    done = recorded(path, plan)
    known = {(*design_of(row), row["problem_id"]) for row in done}
    waiting = [problem for problem in problems if any((*each, problem.problem_id) not in known for each in wanted)]
    if not waiting:
        return done
    asked_in: dict[int, Prompts] = {}

    def prompt(request: Request) -> Messages:
        return chat_messages(request, SUITE_SIZE, asked_in[id(request)])

    player = HuggingFacePlayer.load(options.model, prompt=prompt, keeps_tokens=True)
    for start in range(0, len(waiting), AT_A_TIME):
        chunk = waiting[start : start + AT_A_TIME]
        mutants = MutantCoder().respond([CoderRequest(problem) for problem in chunk], seed=options.seed)
        programs = [read_program(said[0].text, p.entry_point).source for p, said in zip(chunk, mutants, strict=True)]
        rows = [
            {"seat": seat, "design": design, "prompts": words, "problem_id": problem.problem_id, "program": program}
            for seat, design, words in wanted
            for problem, program in zip(chunk, programs, strict=True)
            if (seat, design, words, problem.problem_id) not in known
        ]
        by_id = {problem.problem_id: problem for problem in chunk}
        requests: list[Request] = [
            TesterRequest(by_id[row["problem_id"]], row["program"])
            if row["seat"] == "tester"
            else CoderRequest(by_id[row["problem_id"]])
            for row in rows
        ]
        asked_in.update({id(request): find_prompts(row["design"]) for request, row in zip(requests, rows, strict=True)})
        started = time.process_time()
        sampling = Sampling(options.temperature, max_tokens=options.max_tokens, stop_at_fence=True)
        answers = player.respond(requests, 1, sampling, options.seed)
        spent_s = time.process_time() - started
        for row, (answer,) in zip(rows, answers, strict=True):
            row |= {"text": answer.text, "truncated": answer.truncated, "tokens": len(answer.token_ids or ())}
            row["cpu_s"] = spent_s / len(rows)
        with path.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        print(f"{len(rows)} answers to {len(chunk)} questions: {spent_s:.0f} CPU-s", file=sys.stderr, flush=True)
        done += rows
    return done


def as_table(options: argparse.Namespace, problems: Sequence[Problem], rows: Sequence[dict[str, Any]]) -> str:
    by_id = {problem.problem_id: problem for problem in problems}
    lines = [f"{options.model}: {len(problems)} questions, temperature {options.temperature:g}, at most "
             f"{options.max_tokens} tokens, seed {options.seed}"]  # fmt: skip
    titles = {
        "tester": "tester's design | readable suites | tests of 8 that are read | of these right "
        "| right tests a suite | suites that break the mutant | cut off | tokens",
        "coder": "coder's design | programs that load | right | cut off | tokens",
    }
    with Arena(LocalSandbox(), RewardConfig(suite_size=SUITE_SIZE, correct_outputs=False)) as arena:
        for seat, measured in (("tester", partial(of_suites, arena)), ("coder", partial(of_programs, arena))):
            designs = list(dict.fromkeys(row["design"] for row in rows if row["seat"] == seat))
            table = []
            for design in designs:
                mine = [row for row in rows if (row["seat"], row["design"]) == (seat, design)]
                cut = sum(row["truncated"] for row in mine) / len(mine)
                tokens = sum(row["tokens"] for row in mine) / len(mine)
                found = measured([(by_id[row["problem_id"]], row) for row in mine])
                table.append([design, *found, f"{100 * cut:.0f} %", f"{tokens:.0f}"])
            lines += ["", markdown_table(titles[seat].split(" | "), table)] if table else []
    return "\n".join(lines)


def of_suites(arena: Arena, rows: Sequence[tuple[Problem, dict[str, Any]]]) -> list[str]:
    """Tests are taken as they are written: nothing is corrected."""
    matches = [Match(problem, (row["program"],), ((row["text"],),)) for problem, row in rows]
    games = [score.suites[0][0].duel.tests for score in arena.play(matches, update_book=False)]
    read = [[test for test in tests if test.status not in (Status.REJECTED, Status.SURPLUS)] for tests in games]
    right = [[test for test in tests if test.status is Status.KEPT] for tests in games]
    broken = [any(test.verdict is not Verdict.PASS for test in tests) for tests in right]
    count, all_read, all_right = len(rows), sum(map(len, read)), sum(map(len, right))
    share = f"{100 * all_right / all_read:.0f} %" if all_read else "-"
    return [
        f"{100 * sum(map(bool, read)) / count:.0f} %", f"{all_read / count:.1f}", share, f"{all_right / count:.1f}",
        f"{100 * sum(broken) / count:.0f} %",
    ]  # fmt: skip


def of_programs(arena: Arena, rows: Sequence[tuple[Problem, dict[str, Any]]]) -> list[str]:
    graded = arena.grade_many([(p, [row["text"]], (*p.golden_tests, *p.hidden_tests)) for p, row in rows])
    loads = sum(grade.executes is True for (grade,) in graded)
    right = sum(grade.all_passed for (grade,) in graded)
    return [f"{100 * loads / len(rows):.0f} %", f"{100 * right / len(rows):.0f} %"]


if __name__ == "__main__":
    try:
        main()
    except (Codea1Error, OSError) as error:
        raise SystemExit(f"error: {error}") from None
