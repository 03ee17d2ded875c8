"""What a candidate leaves behind tells a later one nothing; and what is run does not tell what is right.

`attacks/cooperating_programs.txt` has the pairs of programs that try it. Its kind `timing` is not held closed: clock
and caches of a machine are shared by nature (SECURITY.md). They are worth nothing while no verdict decides what is
run.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence

import pytest
from attacks.cooperating import COOPERATING_PAIRS, REPETITIONS, Pair, accuracy, told
from attacks.samples import some_of_each_kind

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.problems.problem import Problem
from codea1_env.reading.test_case import TestCase
from codea1_env.records.score_stream import ScoringPlan, numbered_lines, score_numbered
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox import LocalSandbox
from codea1_env.sandbox.protocol import CallsJob, Job, JobResult, Sandbox

MOST = 1 - 1 / REPETITIONS
"""Accuracy from which a channel is open. Chance gives more than this once in thousands of pairs."""
HELD = [pair for pair in COOPERATING_PAIRS if pair.kind != "timing"]
QUICK = some_of_each_kind(HELD, step=24)
# Without namespaces /proc and the times of files are there to be asked for; SECURITY.md lists them.
SEEN_WITHOUT_NAMESPACES = {
    "access_time_of_what_is_read",
    "moment_when_proc_was_first_asked",
    "moment_when_sys_was_first_asked",
    "number_of_a_new_file",
    "number_that_clone_says",
    "numbers_of_threads",
    "processes_that_there_are",
    "sizes_in_proc",
}


@pytest.fixture(
    scope="module",
    params=[(), pytest.param(("namespaces",), marks=pytest.mark.slow)],
    ids=["namespaces", "no_namespaces"],
)
def sandboxes(request: pytest.FixtureRequest) -> Iterator[tuple[LocalSandbox, LocalSandbox]]:
    with LocalSandbox(without=request.param) as one, LocalSandbox(2, without=request.param) as two:
        yield one, two


def test_the_corpus_is_broad() -> None:
    assert len({pair.name for pair in COOPERATING_PAIRS}) == len(COOPERATING_PAIRS)
    assert len(HELD) >= 105


@pytest.mark.parametrize(
    "pair",
    [pytest.param(pair, id=pair.name, marks=() if pair in QUICK else pytest.mark.slow) for pair in HELD],
)
def test_a_later_program_learns_nothing_from_an_earlier(
    sandboxes: tuple[LocalSandbox, LocalSandbox], pair: Pair
) -> None:
    one, two = sandboxes
    if one.guarantees["namespaces"] is not True and pair.name in SEEN_WITHOUT_NAMESPACES:
        pytest.skip("without namespaces a candidate can ask for this: SECURITY.md")
    found = told(two if pair.kind == "together" else one, pair, seed=5)
    assert accuracy(found) < MOST, found


def test_accuracy_can_tell() -> None:
    """An open channel, a noisy one, a closed one, and a counter that grows whatever the bit is."""
    bits = [1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 0, 1]
    assert accuracy([(bit, bit) for bit in bits]) == 1
    assert accuracy([(bit, 1000 - 50 * bit + i) for i, bit in enumerate(bits)]) == 1
    assert accuracy([(bit, "error OSError") for bit in bits]) == 0.5
    assert accuracy([(bit, i) for i, bit in enumerate(bits)]) < MOST


@pytest.mark.slow
@pytest.mark.parametrize(
    "pair", some_of_each_kind([pair for pair in HELD if pair.answers == "bit"]), ids=lambda pair: pair.name
)
def test_a_later_line_of_score_learns_nothing_from_an_earlier(pair: Pair) -> None:
    bits = [1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 0, 1]
    lines = []
    for repetition, bit in enumerate(bits):
        key = 4096 + 2 * repetition
        lines += [
            _line(f"write {repetition}", pair.writer, {2 * key + bit: "None", 2 * (key + 1) + bit: "None"}),
            _line(f"read {repetition}", pair.reader, {2 * key: "1"}),
        ]
    scores = [json.loads(line.output) for line in score_numbered(numbered_lines(lines), ScoringPlan(), None)]
    verdicts = [score["suites"][0][0]["tests"][0]["verdict"] for score in scores[1::2]]
    assert accuracy(list(zip(bits, verdicts, strict=True))) < MOST


def _line(name: str, program: str, answers: dict[int, str]) -> bytes:
    """A line of `codea1 score`: one program, and a suite that is right about `answers`."""
    table = ", ".join(f"{x}: {y}" for x, y in answers.items())
    return json.dumps(
        {
            "problem_id": name,
            "question": "q",
            "entry_point": "solve",
            "reference_solution": f"def solve(x):\n    return {{{table}}}[x]\n",
            "codes": [f"```python\n{program}```"],
            "suites": [["\n".join(f"assert solve({x}) == {y}" for x, y in answers.items())]],
        }
    ).encode()


# A forger: it remembers, by offsets of files, and answers True; what it is asked again alone it takes for a failure.
MEMORY = """
import os, stat
_files = []
for _fd in range(3, 64):
    try:
        if stat.S_ISREG(os.fstat(_fd).st_mode): _files.append(_fd)
    except OSError: pass
def get(i): return os.lseek(_files[i], 0, 1) if len(_files) > i else 0
def put(i, value):
    if len(_files) > i: os.lseek(_files[i], value, 0)
"""
FORGER = (
    MEMORY
    + """
QUESTION = @NUMBER@
if get(1) != QUESTION:
    put(1, QUESTION)
    put(0, 0)
def solve(x):
    asked, again, last, over = get(0) & 15, get(0) >> 4 & 255, get(0) >> 12 & 15, get(0) >> 16
    if asked < 8:
        put(0, get(0) + 1)
        return True
    i = x % 8
    over |= i + 1 <= last
    if not over:
        again, last = again | 1 << i, i + 1
    put(0, asked | again << 4 | last << 12 | over << 16)
    return not again >> i & 1
"""
)
REMEMBERS = (
    MEMORY
    + """
def solve(x):
    put(0, get(0) | 1 << x % 61)
    return True
"""
)
RECALLS = (
    MEMORY
    + """
def solve(x):
    return not get(0) >> x % 61 & 1
"""
)
TRUTHS = ("x * 2654435761 >> 7 & 1 == 0", "x * 2654435761 >> 7 & 1 == 1")
"""Two worlds: what is right in one is wrong in the other."""
EIGHT = RewardConfig(suite_size=8)


def world(truth: str) -> Problem:
    return Problem("forged", "q", "solve", reference_solution=f"def solve(x):\n    return {truth}\n")


def suite(numbers: Sequence[int], truth: str) -> str:
    return "\n".join(f"assert solve({x}) == {eval(truth, {'x': x})}" for x in numbers)


def passed(tests: Sequence[object]) -> list[bool]:
    return [str(getattr(test, "verdict", test)) == "pass" for test in tests]


def test_a_program_cannot_learn_from_its_later_runs_what_it_failed() -> None:
    """Its answers are the same where the opposite is right: what passes in one world fails in the other."""
    found = []
    for truth in TRUTHS:
        with Arena(LocalSandbox(), EIGHT) as arena:
            rows = []
            for number in range(1, 5):
                codes = tuple(FORGER.replace("@NUMBER@", str(number)) + f"# {i}\n" for i in range(2))
                text = suite(range(80 * number, 80 * number + 8), truth)
                (score,) = arena.play([Match(world(truth), codes, ((text,),) * 2)])
                rows += [passed(row[0].duel.tests) for row in score.suites]
            found.append(rows)
    assert {len(row) for row in found[0]} == {8}
    assert [[not verdict for verdict in row] for row in found[0]] == found[1]


def test_a_line_of_score_cannot_learn_from_the_lines_before() -> None:
    found = []
    for truth in TRUTHS:
        lines = []
        for number in range(1, 13):
            asked = range(80 * number, 80 * number + 8)
            answers = {x: str(eval(truth, {"x": x})) for x in asked}
            lines.append(_line(f"question {number}", FORGER.replace("@NUMBER@", str(number // 2 + 1)), answers))
        scores = [json.loads(line.output) for line in score_numbered(numbered_lines(lines), ScoringPlan(EIGHT), None)]
        found.append([[test["verdict"] == "pass" for test in score["suites"][0][0]["tests"]] for score in scores])
    assert [[not verdict for verdict in row] for row in found[0]] == found[1]


def test_a_later_round_cannot_learn_from_the_book_what_an_earlier_failed() -> None:
    """The first round's program notes its calls; the second's answers the other way to those that come back."""
    truth, book = TRUTHS[0], MistakeBook()
    with Arena(LocalSandbox(), EIGHT, book) as arena:
        arena.play([Match(world(truth), (REMEMBERS,), ((suite(range(8), truth),),))])
        (score,) = arena.play([Match(world(truth), (RECALLS,), ((suite(range(122, 126), truth),),))])
    replays = score.suites[0][0].duel.replays
    assert replays, "nothing was replayed, so the test says nothing"
    assert not any(passed(replays))


class Watched:
    """A sandbox that notes what it is asked to run, and stays open for the next arena."""

    def __init__(self, inner: Sandbox) -> None:
        self._inner = inner
        self.version = inner.version
        self.ran: list[list[CallsJob]] = []

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        self.ran.append([job for job in jobs if isinstance(job, CallsJob)])
        return self._inner.run(jobs)

    def close(self) -> None:
        pass


CANDIDATES = {
    "always_true": "def solve(x):\n    return True\n",
    "keeps_state": "seen = []\ndef solve(x):\n    seen.append(x)\n    return len(seen) % 2 == 0\n",
    "raises": "import sys\ndef solve(x):\n    sys.left = x\n    return 1 // (x % 2)\n",
    "crashes": "import os\ndef solve(x):\n    if x % 3 == 0:\n        os.abort()\n    return True\n",
    "hangs": "def solve(x):\n    while x % 3 == 0:\n        pass\n    return True\n",
}


@pytest.mark.parametrize(
    "config",
    [RewardConfig(), *(RewardConfig(fidelity=each) for each in ("wide", "paper")), RewardConfig(coder_tests="union")],
    ids=["strict", "wide", "paper", "union"],
)
@pytest.mark.parametrize("name", CANDIDATES)
def test_what_is_run_does_not_depend_on_what_is_right(sandbox: LocalSandbox, name: str, config: RewardConfig) -> None:
    """Four worlds: which answers are right, and whether the tests state them. The same jobs, in the same order."""
    logs = []
    for truth in TRUTHS:
        for stated in TRUTHS:
            watched = Watched(sandbox)
            problem = dataclasses.replace(world(truth), time_limit_s=0.05)
            with Arena(watched, config) as arena:
                text = suite(range(1, 6), stated)
                arena.play(
                    [Match(problem, (CANDIDATES[name], CANDIDATES["always_true"] + "# 2\n"), ((text,), (text,)))]
                )
                tests = [TestCase(f"solve({x})", str(eval(stated, {"x": x}))) for x in range(6, 9)]
                arena.grade(problem, [CANDIDATES[name]], tests)
            own = {problem.reference_solution}
            batches = [[(job.source, job.calls) for job in batch if job.source not in own] for batch in watched.ran]
            logs.append([batch for batch in batches if batch])
    assert logs[0], "nothing was run"
    assert logs[1:] == logs[:1] * 3
