"""Whether what a call comes to depends on the calls and programs around it, told as plain text.

`differences` asks every program the same questions alone, in company, in other orders, beside other programs and with a
memory of earlier answers. Does not know which programs keep state, and nothing of how the judge finds out.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from codea1_env.judging.judge import Expectation, Judge, Trial, plain_values
from codea1_env.judging.schedule import turn
from codea1_env.problems.problem import Problem
from codea1_env.sandbox.protocol import Sandbox

_HEADING = re.compile(r"^#### (.+) / (\w+)$", re.MULTILINE)
PROBLEM = Problem("independence", "Return anything.", "solve", time_limit_s=2.0, memory_mb=512)
CALLS = (b"[[0],[]]", b"[[1],[]]", b"[[2],[]]")


class Program(NamedTuple):
    kind: str
    name: str
    source: str


def _read(name: str) -> tuple[Program, ...]:
    text = (Path(__file__).parent / f"{name}.txt").read_text(encoding="utf-8")
    _, *parts = _HEADING.split(text)
    return tuple(Program(*parts[i : i + 2], parts[i + 2].strip("\n") + "\n") for i in range(0, len(parts), 3))


STATEFUL_PROGRAMS = _read("stateful_programs")
PURE_PROGRAMS = _read("pure_programs")
KEEPING_PROGRAMS = _read("keeping_programs")
ONLY_LOOKING_PROGRAMS = _read("only_looking_programs")

Answers = list[tuple[bytes | None, ...] | None]
"""Of every program the encoded value of each call, None where it came to none."""


def alone(
    sandbox: Sandbox, sources: Sequence[str], calls: Sequence[bytes] = CALLS, problem: Problem = PROBLEM
) -> Answers:
    """What each call comes to in a batch that asks every program for nothing else."""
    columns = [in_company(Judge(sandbox, execution_cache_mb=0), sources, (call,), problem) for call in calls]
    rows = list(zip(*columns, strict=True))
    return [None if None in row else tuple(answer[0] for answer in row if answer is not None) for row in rows]


def in_company(
    judge: Judge, sources: Sequence[str], calls: Sequence[bytes] = CALLS, problem: Problem = PROBLEM
) -> Answers:
    """What each call comes to where every program is asked for all of them, in this order."""
    turns = [turn(problem, source, calls) for source in sources]
    return [plain_values(asked, result, calls) for asked, result in zip(turns, judge.run(turns), strict=True)]


def differences(
    sandbox: Sandbox, sources: Sequence[str], seed: int = 0, *, judged: bool = True
) -> dict[str, list[str]]:
    """By source, where which answers or verdicts became others because of their company.

    Without `judged`, only what a sandbox could do wrong: orders, memory and verdicts are the judge's, the same on all.
    """
    chance = random.Random(seed)
    expected = alone(sandbox, sources)
    found: dict[str, list[str]] = {}

    def compare(where: str, answers: Answers, order: Sequence[int] = range(len(sources))) -> None:
        for index, answer in zip(order, answers, strict=True):
            if answer != expected[index]:
                found.setdefault(sources[index], []).append(f"{where}: {expected[index]} became {answer}")

    def fresh() -> Judge:
        return Judge(sandbox, execution_cache_mb=0)

    compare("in company", in_company(fresh(), sources))
    order = chance.sample(range(len(sources)), len(sources))
    compare("after other programs", in_company(fresh(), [sources[i] for i in order]), order)
    if not judged:
        return found
    compare("in reverse order", [row and row[::-1] for row in in_company(fresh(), sources, CALLS[::-1])])
    compare("asked for one call twice", [row and row[1:] for row in in_company(fresh(), sources, (CALLS[2], *CALLS))])
    beside = [(i, j) for i in order for j in (i, chance.randrange(len(sources)))]
    compare(
        "beside other questions of its own",
        in_company(fresh(), [sources[j] for pair in beside for j in pair])[::2],
        [i for i, _ in beside],
    )
    judge = Judge(sandbox)
    compare("with a memory", in_company(judge, sources))
    compare("from memory", in_company(judge, sources))
    compare("from memory, in reverse order", [row and row[::-1] for row in in_company(judge, sources, CALLS[::-1])])
    for source, text in _verdicts(Judge(sandbox), sources, expected):
        found.setdefault(source, []).append(text)
    return found


def _verdicts(judge: Judge, sources: Sequence[str], expected: Answers) -> list[tuple[str, str]]:
    """Every call passes where its answer when alone is the right one, and fails where nothing is right; (source, what
    became of that) where it does not."""
    known = [
        (source, row) for source, row in zip(sources, expected, strict=True) if row is not None and None not in row
    ]
    trials = [
        Trial(PROBLEM, source, tuple(Expectation(call, right) for call, right in zip(CALLS, rights, strict=True)))
        for source, row in known
        for rights in (row, (b'"wrong"',) * len(CALLS))
    ]
    texts = [" ".join(map(str, result.verdicts)) for result in judge.try_programs(trials)]
    wanted = [" ".join([word] * len(CALLS)) for _ in known for word in ("pass", "fail")]
    return [
        (trial.source, f"verdicts: {wanted[i]} became {texts[i]}")
        for i, trial in enumerate(trials)
        if texts[i] != wanted[i]
    ]


def main() -> None:
    """As an ordinary user: reads {"without": [...]} from standard input, writes the differences, or {"skip": why}."""
    from attacks.unprivileged import become_nobody
    from codea1_env.sandbox import LocalSandbox

    options = json.load(sys.stdin)
    why_not = become_nobody()
    if why_not:
        print(json.dumps({"skip": why_not}))
        return
    with LocalSandbox(without=options["without"]) as sandbox:
        sources = [program.source for program in (*STATEFUL_PROGRAMS, *PURE_PROGRAMS)]
        print(json.dumps(differences(sandbox, sources, judged=False)))


if __name__ == "__main__":
    main()
