"""Does a recorded program pass HumanEval+ here exactly when EvalPlus says so? A table, and every difference.

    python benchmarks/evalplus_agreement.py RECORDED.jsonl.gz humanevalplus.parquet --peers .peers/bin/python \\
        --journal agreement.jsonl [--questions 77] [--programs 100] [--min-time-limit 1]

EvalPlus' side is its own `evalplus.eval.untrusted_check`, fast_check on as in its command line, on the inputs of the
data set, with what its own `trusted_exec` of the reference returns for them. Our side is `Arena.grade` on the problems
as `codea1 data import` makes them. Equal programs of a question run once. Every verdict is written down at once: a run
that was killed goes on where it was. EvalPlus gives a call a second by the clock: beside other work, raise its limit.

EvalPlus does not isolate: use a machine that you can throw away.
"""

import argparse
import ast
import gzip
import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from codea1_env.terminal import Parser

PEER = """
import json, math, sys
import numpy as np
from evalplus.eval import untrusted_check
from evalplus.gen.util import trusted_exec
channel, sys.stdout = sys.stdout, sys.stderr
for line in sys.stdin:
    job = json.loads(line)
    inputs = eval(job["inputs"], {"inf": math.inf, "nan": math.nan, "np": np})
    expected, times = trusted_exec(job["reference"], inputs, job["entry_point"], record_time=True)
    for number, program in job["programs"]:
        verdict, _ = untrusted_check("humaneval", program, inputs, job["entry_point"], expected, job["atol"], times,
                                     fast_check=True, min_time_limit=job["min_time_limit"])
        print(json.dumps([job["task_id"], number, verdict]), file=channel, flush=True)
"""


def read_rows(path: Path) -> dict[str, dict[str, Any]]:
    from codea1_env.problems.sources.rows import local_rows

    return {row["task_id"]: row for row in local_rows(path)}


def inputs_of(script: str) -> str:
    """Source of the list of inputs in a check function."""
    (check,) = [node for node in ast.parse(script).body if isinstance(node, ast.FunctionDef) and node.name == "check"]
    (found,) = [node.value for node in check.body if isinstance(node, ast.Assign) and node.targets[0].id == "inputs"]
    return ast.unparse(found)


def atol_of(script: str) -> float:
    """The absolute tolerance that the check function passes on; 0 where it is exact or has a check of its own."""
    for node in ast.walk(ast.parse(script)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "assertion":
            return float(ast.literal_eval(node.args[2]))
    return 0.0


class Journal:
    """Verdicts by side, question and program, appended to a file as they come."""

    def __init__(self, path: Path) -> None:
        self.known: dict[tuple[str, str, int], str] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                try:
                    side, task_id, number, verdict = json.loads(line)
                except ValueError:  # a line that was cut off
                    continue
                self.known[side, task_id, number] = verdict
        self._file = path.open("a")
        self._file.write("\n")  # a line that was cut off ends here

    def add(self, side: str, task_id: str, number: int, verdict: str) -> None:
        self.known[side, task_id, number] = verdict
        self._file.write(json.dumps([side, task_id, number, verdict]) + "\n")
        self._file.flush()


def run_evalplus(peers: Path, work: dict[str, Any], rows: dict[str, Any], journal: Journal, limit_s: float) -> None:
    with subprocess.Popen([str(peers), "-c", PEER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdin is not None
        assert peer.stdout is not None
        for task_id, (entry_point, programs) in work.items():
            row = rows[task_id]
            left = [[n, text] for n, text in enumerate(programs) if ("evalplus", task_id, n) not in journal.known]
            if not left:
                continue
            job = {
                "task_id": task_id,
                "entry_point": entry_point,
                "reference": row.get("question", row.get("prompt"))
                + row.get("reference_body", row.get("canonical_solution")),
                "inputs": inputs_of(row["test"]),
                "atol": atol_of(row["test"]),
                "min_time_limit": limit_s,
                "programs": left,
            }
            peer.stdin.write(json.dumps(job) + "\n")
            peer.stdin.flush()
            for _ in left:
                journal.add("evalplus", *json.loads(peer.stdout.readline()))
            print(f"evalplus: {task_id}, {len(left)} programs", file=sys.stderr)
        peer.stdin.close()


def run_here(work: dict[str, Any], rows: dict[str, Any], journal: Journal) -> None:
    from codea1_env import Arena, LocalSandbox
    from codea1_env.judging.problems.importing import import_drafts
    from codea1_env.problems.sources import find_source

    drafts = find_source("humanevalplus").drafts(rows[task_id] for task_id in work)
    with LocalSandbox() as sandbox:
        arena = Arena(sandbox)
        for imported in import_drafts(drafts, sandbox):
            task_id, problem = imported.problem_id, imported.problem
            programs = work[task_id][1]
            left = [number for number in range(len(programs)) if ("codea1", task_id, number) not in journal.known]
            if problem is None or not problem.hidden_tests:
                for number in left:
                    journal.add("codea1", task_id, number, "no tests here")
                continue
            for start in range(0, len(left), 10):
                chunk = left[start : start + 10]
                grades = arena.grade(problem, [programs[number] for number in chunk], problem.hidden_tests)
                for number, grade in zip(chunk, grades, strict=True):
                    if grade.executes is None:
                        raise SystemExit("the sandbox failed: run this again, it goes on where it was")
                    counts = Counter(verdict for verdict in grade.verdicts if verdict is not None)
                    verdict = "pass" if grade.all_passed else f"fail ({', '.join(sorted(set(counts)))})"
                    journal.add("codea1", task_id, number, verdict)
            print(f"codea1: {task_id}, {len(left)} programs", file=sys.stderr)


def show(work: dict[str, Any], counts: dict[tuple[str, int], int], known: dict[tuple[str, str, int], str]) -> None:
    total: Counter[str] = Counter()
    differences: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for task_id, (_, programs) in work.items():
        for number in range(len(programs)):
            here, there = known.get(("codea1", task_id, number)), known.get(("evalplus", task_id, number))
            if here is None or there is None:
                total["not run"] += counts[task_id, number]
                continue
            if here == "no tests here":
                total["no tests here"] += counts[task_id, number]
                continue
            total["programs"] += counts[task_id, number]
            total["distinct"] += 1
            total["pass"] += counts[task_id, number] * (there == "pass")
            if (here == "pass") == (there == "pass"):
                total["agree"] += counts[task_id, number]
            else:
                differences[f"{here} here, {there} by EvalPlus"].append((task_id, number))
    print("| programs | distinct | pass by EvalPlus | same verdict | not compared: no tests here | not run |")
    print("|---|---|---|---|---|---|")
    columns = ("programs", "distinct", "pass", "agree", "no tests here", "not run")
    print(f"| {' | '.join(str(total[name]) for name in columns)} |\n")
    for what, where in sorted(differences.items()):
        print(f"- {what}: {sum(counts[each] for each in where)} programs, {len(where)} distinct: {where[:12]}")


def main() -> None:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recorded", type=Path, help="recorded completions, gzipped JSON lines")
    parser.add_argument("parquet", type=Path, help="HumanEval+")
    parser.add_argument("--peers", type=Path, help="a Python with EvalPlus")
    parser.add_argument("--journal", type=Path, required=True, help="where verdicts are written as they come")
    parser.add_argument("--questions", type=int, default=1000, help="of each recorded file, the first (default: all)")
    parser.add_argument("--programs", type=int, default=1000, help="of each question, the first (default: all)")
    parser.add_argument("--side", choices=("both", "evalplus", "codea1", "none"), default="both", help="what to run")
    parser.add_argument("--min-time-limit", type=float, default=1.0, help="EvalPlus' for a call, s (its default: 1)")
    options = parser.parse_args()
    if options.side in ("both", "evalplus") and options.peers is None:
        parser.error("--peers must be given to run EvalPlus' side; --side codea1 runs ours alone")
    from codea1_env.reading.responses import read_program

    rows = read_rows(options.parquet)
    work: dict[str, Any] = {}
    counts: dict[tuple[str, int], int] = {}
    with gzip.open(options.recorded, "rt", encoding="utf-8") as source:
        for line in list(source)[: options.questions]:
            record = json.loads(line)
            texts = Counter(read_program(c, record["entry_point"]).source for c in record["codes"][: options.programs])
            work[record["task_id"]] = (record["entry_point"], list(texts))
            counts |= {(record["task_id"], number): count for number, count in enumerate(texts.values())}
    journal = Journal(options.journal)
    if options.side in ("both", "evalplus"):
        run_evalplus(options.peers, work, rows, journal, options.min_time_limit)
    if options.side in ("both", "codea1"):
        run_here(work, rows, journal)
    show(work, counts, journal.known)


if __name__ == "__main__":
    main()
