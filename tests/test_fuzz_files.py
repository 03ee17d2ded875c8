"""Files that were cut, flipped or edited anywhere: read, or refused by name. Never another error, and nothing is lost.

What failed once is kept in `crashers/`, a folder for each reader, and is read again here. `make fuzz` looks for more.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from edits import edited
from growing_texts import STATEMENTS
from hypothesis import given, settings, strategies as st
from test_sources_contests import APPS_CALL_ROW, APPS_ROW, CONTESTS_ROW, LIVE_CALL_ROW, LIVE_ROW

import codea1_env
from codea1_env.arena.tester_book import TesterBook
from codea1_env.audit.result import read_result
from codea1_env.discrete.pool import bundled_pools, read_pools, write_pools
from codea1_env.errors import ConfigurationError, FormatError, PlayerError
from codea1_env.evaluation.journal import EvaluationJournal
from codea1_env.evaluation.wrong_programs import read_programs
from codea1_env.judging.checking import compares
from codea1_env.judging.equality import same_output, same_value
from codea1_env.judging.relations.truth import holds
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.mistake_book.parts import read_book
from codea1_env.players.completions import read_completions
from codea1_env.problems.checkers import COMPARISONS
from codea1_env.problems.jsonl import bundled_problems, read_problems, write_problems
from codea1_env.problems.sources import SOURCES
from codea1_env.problems.sources.rows import local_rows
from codea1_env.reading.responses import read_program, read_suite
from codea1_env.reading.spans import test_spans as spans_of
from codea1_env.reading.test_case import TestCase
from codea1_env.records.matches import read_match
from codea1_env.records.recording import Recorder, read_recording
from codea1_env.report.runs_read import read_run
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox.inside.values import encode
from codea1_env.training.run.checkpoints import UnusableCheckpoint, mark_complete, rounds_of
from codea1_env.training.run.held_out import HiddenRecord
from codea1_env.training.run.run_dir import Run

EXAMPLES = settings.default.max_examples // 4 if settings.default else 25
"""There are many kinds of files."""
CRASHERS = Path(__file__).parent / "crashers"
PROBLEM = bundled_problems()[0]
PLAN = {"seat": "coder", "n": 2, "sets": ["mini"]}
LONE = "\ud800 text"


class Kind(NamedTuple):
    """A kind of file."""

    name: str
    content: bytes
    read: Callable[[Path], object]
    refusals: tuple[type[BaseException], ...] = (FormatError,)

    @property
    def folder(self) -> str:
        """In CRASHERS."""
        return self.name.replace(".", "-")


def lines(*records: Any) -> bytes:
    return b"".join(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records)


def saved(write: Callable[[Path], object]) -> bytes:
    """What a writer of the library writes."""
    path = Path(os.devnull).parent / "shm" / f"codea1-fuzz-{os.getpid()}"
    write(path)
    content = path.read_bytes()
    path.unlink()
    return content


def a_book() -> MistakeBook:
    book = MistakeBook()
    for name in ("a", LONE):
        book.record(name, (TestCase("f(1)", "2"), TestCase("f('\ud800\udc00')", "[]")), ())
    return book


def a_tester_book() -> TesterBook:
    book = TesterBook()
    book.record("a", "def f(x): return x", 0, 3)
    book.record(LONE, "def f(x): return 1", 0, 1)
    return book


def evaluation(path: Path) -> None:
    EvaluationJournal(path, PLAN).close()


def a_journal(path: Path) -> None:
    journal = EvaluationJournal(path, PLAN)
    for record in (ANSWERS, ANSWERS | {"problem_id": "b"}, SCORE):
        journal.append(record)
    journal.close()


def run_records(path: Path) -> object:
    return Run.records(SimpleNamespace(directory=path.parent))  # type: ignore[arg-type]


RECORDING = (
    {"codea1_recording": 1, "codea1": codea1_env.__version__},
    {"problem": json.loads(PROBLEM.to_json())},
    {"match": {
        "problem": PROBLEM.content_hash, "config": dataclasses.asdict(RewardConfig()),
        "codes": ["a", {"utf8": "eda080"}], "suites": [["b"], ["c"]], "replays": [["f(1)", "2"]],
        "rewards": {"codes": [1.0, None], "suites": [[0.5], [None]]}, "score": {"codes": []},
    }},
)  # fmt: skip
ANSWERS = {"kind": "answers", "set": "mini", "problem_id": "a", "texts": ["x", "y"], "truncated": 1, "version": "v"}
SCORE = {"kind": "score", "set": "mini", "problem_id": "a", "passed": [1, 0]}
JOURNAL = saved(a_journal)
METRICS = lines(
    {"kind": "round", "seat": "", "round": 1, "book": 3, "kl": None},
    {"kind": "seat", "seat": "coder", "round": 1, "loss": 0.5},
    {"kind": "evaluation", "seat": "", "round": 1, "coder/pass@1": 1},
)
SUMMARY = json.dumps({"rows": [{"name": "a", "base": 0.1, "trained": 0.2, "low": 0.0, "high": 1}],
                      "cost": {"seconds": {"training": 1.5}}}, indent=1).encode()  # fmt: skip
CONFIG = b"preset:\n  name: mini\n  rounds: 3\nmodels: {coder: a, tester: [b, 1]}\n"
RUN = {"metrics.jsonl": METRICS, "summary.json": SUMMARY, "config.yaml": CONFIG, "book.jsonl": saved(a_book().save)}
AUDIT = json.dumps({
    "grader": "g", "digests": {"frozen": "0"}, "whole": True, "seconds": 1.0, "seconds_per_verdict": 0.1,
    "played": [{"part": "frozen", "name": "a", "label": "l", "role": "wrong", "answer": "failed", "reached": []}],
}).encode()  # fmt: skip
COMPLETION = json.dumps({
    "model": "m", "choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": "stop"}],
    "usage": {"total_tokens": 3},
}).encode()  # fmt: skip
ROWS = {"apps": [APPS_ROW, APPS_CALL_ROW], "code-contests": [CONTESTS_ROW], "livecodebench": [LIVE_ROW, LIVE_CALL_ROW]}
MATCH = {"problem_id": "a", "question": "q", "entry_point": "f", "codes": ["x"], "suites": [["y"]],
         "reference_solution": "def f(x): return x", "golden_tests": [["f(1)", "1"]]}  # fmt: skip


def drafts(path: Path) -> object:
    return [list(each.drafts(local_rows(path))) for each in SOURCES.values() if each.rows_of_directory is None]


def a_run(path: Path) -> object:
    """With one of its files damaged."""
    for name, content in RUN.items():
        (path.parent / name).write_bytes(path.read_bytes() if name == path.name else content)
    return read_run(path.parent, "r")


def answer(path: Path) -> None:
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    read_program(text, "f")
    for fidelity in ("strict", "wide", "paper"):
        suite = read_suite(text, "f", fidelity=fidelity)  # type: ignore[arg-type]
        spans_of(text, [test.source for test in suite.tests])
        assert all(test.reason or test.call for test in suite.tests)


RIGHT = [encode(value) for value in (1, "a", [1.5, (2, {3})], {"a": [None]}, {(1, b"x")}, [[1], [2]], 1 << 80, 2j)]
CLAIM = read_suite("assert sorted(f(1)) == [1] or max(f(1)) < 2 or len(set(f(1))) > 1", "f", fidelity="wide").tests[0]


def value(path: Path) -> None:
    got = path.read_bytes()
    for right in RIGHT:
        same_value(right, got, 1e-6)
        same_output(right, got, 1e-6)
        for checker in COMPARISONS:
            compares(checker, right, got, 1e-6)
    assert CLAIM.relation is not None
    assert CLAIM.value is not None
    holds(CLAIM.relation, CLAIM.value, got, 0.0)


SUITE = "x = z = [1]\n" + "\n".join(each.replace("{}", "7") for each in STATEMENTS.values())
KINDS = [
    Kind("answer.txt", f"Here:\n```python\n{SUITE}\n```\n".encode(), answer, ()),
    Kind("value.json", encode([1, (2.5, float("nan"), {"a": frozenset((1 << 90, True))}), b"x", 1j]), value, ()),
    *(Kind(f"value-{number}.json", right, value, ()) for number, right in enumerate(RIGHT[2:6])),
    Kind("recording.jsonl", lines(*RECORDING), lambda path: list(read_recording(path.read_bytes().splitlines(True)))),
    Kind("recorder.jsonl", lines(*RECORDING), lambda path: Recorder(path).close(), (ConfigurationError, FormatError)),
    Kind("book.jsonl", saved(a_book().save), MistakeBook.load),
    Kind("numbers.jsonl", saved(a_book().save), read_book),
    Kind("tester.jsonl", saved(a_tester_book().save), TesterBook.load),
    Kind("journal.jsonl", JOURNAL, evaluation, (FormatError, ConfigurationError)),
    Kind("programs.jsonl", JOURNAL, read_programs),
    Kind("metrics.jsonl", METRICS, run_records),
    Kind("hidden.json", b'{"1": {"a": "3"}, "2": {"a": "1"}}', lambda path: HiddenRecord(path).read()),
    Kind("problems.jsonl", saved(lambda path: write_problems(path, bundled_problems()[:3])), read_problems),
    Kind("pools.jsonl", saved(lambda path: write_pools(path, bundled_pools()[:1])), read_pools),
    Kind("match.jsonl", lines(MATCH), lambda path: read_match(path.read_bytes())),
    Kind("audit.json", AUDIT, lambda path: read_result(path.read_text(errors="replace"))),
    Kind("completion.json", COMPLETION, lambda path: read_completions(path.read_bytes()), (PlayerError,)),
    *(Kind(f"{name}.jsonl", lines(*rows), drafts) for name, rows in ROWS.items()),
    *(Kind(f"run/{name}", content, a_run, ()) for name, content in RUN.items()),
]  # fmt: skip
BY_NAME = {kind.name: kind for kind in KINDS}
ODD = (
    None, True, 0, -1, 1 << 70, 10**400, 0.5, 1e308, math.inf, math.nan, "", "a", "\0", LONE, "f(", "9" * 5000, [], {},
    [[]], [None], {"": None}, {"utf8": "ff"}, [{}], ["a", ["b"]], [1, 2, 3, 4],
)  # fmt: skip
NOISE = st.binary(max_size=6) | st.sampled_from(
    [b"\n", b"{", b"[" * 5000, b"\xff\xfe", b"\xef\xbb\xbf", b"null\n", b"\r"]
)


@st.composite
def flipped(draw: Any, content: bytes) -> bytes:
    """One bit, anywhere."""
    place = draw(st.integers(0, 8 * len(content) - 1))
    return content[: place // 8] + bytes([content[place // 8] ^ 1 << place % 8]) + content[place // 8 + 1 :]


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Everything inside a value of JSON: what holds it, and where."""
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [place for key, value in list(inside) for place in ((tree, key), *places(value))]


@st.composite
def misstated(draw: Any, content: bytes) -> bytes:
    """Good JSON with an odd value somewhere, or with something missing."""
    try:
        records = [json.loads(line) for line in content.splitlines()]
    except ValueError:
        try:
            records = [json.loads(content)]
        except ValueError:
            return content
    for _ in range(draw(st.integers(1, 2))):
        holder, key = draw(st.sampled_from(places(records)))
        if isinstance(holder, dict) and draw(st.booleans()):
            holder.pop(key, None)
        elif not isinstance(holder, dict) or key in holder:
            value = copy.deepcopy(draw(st.sampled_from(ODD)))
            if isinstance(holder, dict) or key < len(holder):
                holder[key] = value
    return lines(*records)


def damaged(content: bytes) -> st.SearchStrategy[bytes]:
    cut = st.integers(0, len(content)).map(lambda end: content[:end])
    return cut | flipped(content) | misstated(content) | edited(st.just(content), NOISE)


def require_read_or_refused(kind: Kind, content: bytes, folder: Path) -> None:
    """A crasher is kept where it was looked for: the shortest of its reader and error."""
    path = folder / kind.name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    try:
        kind.read(path)
    except kind.refusals:
        return
    except Exception as error:
        kept = CRASHERS / kind.folder / type(error).__name__
        if os.environ.get("CODEA1_FUZZ") and not (kept.exists() and kept.stat().st_size <= len(content)):
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(content)
        raise


@pytest.mark.parametrize("name", BY_NAME)
def test_a_damaged_file_is_read_or_refused(name: str, tmp_path: Path) -> None:
    kind = BY_NAME[name]

    @settings(deadline=None, max_examples=EXAMPLES)
    @given(damaged(kind.content))
    def read(content: bytes) -> None:
        require_read_or_refused(kind, content, tmp_path)

    require_read_or_refused(kind, kind.content, tmp_path)
    read()


@pytest.mark.parametrize(
    "crasher", sorted(CRASHERS.glob("**/[A-Z]*")), ids=lambda path: str(path.relative_to(CRASHERS))
)
def test_what_failed_once_is_read_or_refused(crasher: Path, tmp_path: Path) -> None:
    kind = next(kind for kind in KINDS if kind.folder == str(crasher.parent.relative_to(CRASHERS)))
    require_read_or_refused(kind, crasher.read_bytes(), tmp_path)


@pytest.mark.parametrize("name", ["journal.jsonl", "recorder.jsonl"])
def test_of_a_file_that_breaks_off_every_whole_line_stays(name: str, tmp_path: Path) -> None:
    """As a killed process or a full disk leaves it."""
    kind = BY_NAME[name]
    size = len(kind.content)
    for end in sorted({*range(min(150, size)), *range(0, size, 17), *range(size - 50, size + 1)}):
        path = tmp_path / name
        path.write_bytes(kind.content[:end])
        kind.read(path)
        whole = kind.content[: kind.content.rfind(b"\n", 0, end) + 1]
        left = path.read_bytes()
        if whole.count(b"\n") > 1:
            assert left == whole
        else:
            assert left.count(b"\n") == 1, "a header and nothing else"


@pytest.mark.parametrize("name", ["state.json", "deep/weights", "complete.json"])
def test_of_a_checkpoint_whatever_changed_is_noticed(name: str, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint-3"
    (checkpoint / "deep").mkdir(parents=True)
    for each in ("state.json", "deep/weights"):
        (checkpoint / each).write_bytes(b'{"a": [1, 2, 3]}')
    mark_complete(checkpoint, 3, "adamw")
    content = (checkpoint / name).read_bytes()

    @settings(deadline=None, max_examples=EXAMPLES)
    @given(damaged(content))
    def read(changed: bytes) -> None:
        (checkpoint / name).write_bytes(changed)
        try:
            rounds = rounds_of(checkpoint)
        except UnusableCheckpoint:
            return
        assert name == "complete.json" or changed == content
        assert rounds > 0

    read()
