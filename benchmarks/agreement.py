"""Do the sandbox's verdicts agree with plain execution of the same asserts? A table by question, with every difference.

    python benchmarks/agreement.py IN.jsonl SCORED.jsonl [--questions 12] [--programs 25]

IN is the input and SCORED the output of `codea1 score`. For a sample of questions and programs, every test that ran is
executed again the plain way: a fresh `python` per program, `exec` of the program and then of `assert CALL == EXPECTED`
for each test, in a new namespace each time, with an alarm of 5 seconds. Recorded programs run unprotected here: use a
machine that you can throw away.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from codea1_env.terminal import Parser

PLAIN = """
import io, json, signal, sys
job = json.load(sys.stdin)
sys.stdout, out = io.StringIO(), sys.stdout
def stop(*_): raise TimeoutError
signal.signal(signal.SIGALRM, stop)
verdicts = []
for test in job["tests"]:
    namespace = {"__name__": "solution"}
    signal.alarm(5)
    try:
        exec(compile(job["program"], "program", "exec"), namespace)
        exec(compile(test, "test", "exec"), namespace)
        verdicts.append("pass")
    except AssertionError as error:
        trace = error.__traceback__
        while trace.tb_next:
            trace = trace.tb_next
        own = trace.tb_frame.f_code.co_filename == "program"  # the program's own assert, not the test
        verdicts.append("error" if own else "fail")
    except TimeoutError:
        verdicts.append("timeout")
    except BaseException as error:
        verdicts.append("error")
    finally:
        signal.alarm(0)
json.dump(verdicts, out)
"""


def plain_verdicts(program: str, tests: list[str]) -> list[str]:
    """The verdicts of plain execution; `crash` for all where the process does not answer."""
    job = json.dumps({"program": program, "tests": tests})
    try:
        done = subprocess.run([sys.executable, "-c", PLAIN], input=job, capture_output=True, text=True, timeout=300)
        return list(json.loads(done.stdout))
    except (subprocess.TimeoutExpired, ValueError):
        return ["crash"] * len(tests)


def main() -> None:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path)
    parser.add_argument("scored", type=Path)
    parser.add_argument("--questions", type=int, default=12, help="questions, spread over the file (default: 12)")
    parser.add_argument("--programs", type=int, default=25, help="programs of each question (default: 25)")
    options = parser.parse_args()
    from codea1_env.reading.responses import (
        read_program,  # the program is the response as read: the comparison is of verdicts
    )

    lines = list(zip(options.input.open(), options.scored.open(), strict=True))
    step = max(1, len(lines) // options.questions)
    print("| question | verdicts | pass | agree | differences |\n|---|---|---|---|---|")
    total: Counter[str] = Counter()
    for raw, scored in lines[::step][: options.questions]:
        question, result = json.loads(raw), json.loads(scored)
        counts, differences = Counter(), Counter()
        for code, row in list(zip(question["codes"], result["suites"], strict=True))[: options.programs]:
            tests = [t for suite in row for t in suite["tests"] if t["verdict"] is not None]
            plain = plain_verdicts(
                read_program(code, question["entry_point"]).source,
                [f"assert {t['call']} == {t['expected']}" for t in tests],
            )
            for test, verdict in zip(tests, plain, strict=True):
                counts["verdicts"] += 1
                counts["pass"] += test["verdict"] == "pass"
                if test["verdict"] == verdict:
                    counts["agree"] += 1
                else:
                    differences[f"{test['verdict']} here, {verdict} plainly"] += 1
        total += counts
        shown = "; ".join(f"{count} {what}" for what, count in sorted(differences.items())) or "none"
        print(f"| {question['problem_id']} | {counts['verdicts']} | {counts['pass']} | {counts['agree']} | {shown} |")
    print(f"| all | {total['verdicts']} | {total['pass']} | {total['agree']} | {total['verdicts'] - total['agree']} |")


if __name__ == "__main__":
    main()
