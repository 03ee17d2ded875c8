"""`codea1 score`: one line in, one line out, the same bytes whatever runs beside it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codea1_env.cli import main
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.mistake_book.policies import BookConfig
from codea1_env.problems import TestCase
from codea1_env.records.score_stream import ScoringPlan, numbered_lines, score_numbered

REFERENCE = "def f(x):\n    return x * 2"


def line(number: int = 0, **changes: object) -> dict[str, object]:
    """A match with two programs, one right and one wrong for x = 3, and two suites each."""
    return {
        "problem_id": f"p{number}",
        "question": "f(x): twice x",
        "entry_point": "f",
        "reference_solution": REFERENCE,
        "codes": ["def f(x):\n    return x + x", "```python\ndef f(x):\n    return 0 if x == 3 else x * 2\n```"],
        "suites": [
            [f"assert f({number}) == {2 * number}\nassert f(3) == 6", "assert f(3) == 7\nassert f(4) > 1"],
            ["assert f(3) == 6", "nothing at all"],
        ],
    } | changes


def write(path: Path, records: list[object]) -> Path:
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records))
    return path


def score(tmp_path: Path, records: list[object], *arguments: str) -> tuple[int, list[dict[str, object]]]:
    source, target = write(tmp_path / "in.jsonl", records), tmp_path / "out.jsonl"
    code = main(["score", str(source), "-o", str(target), *arguments])
    return code, [json.loads(text) for text in target.read_text().splitlines()]


def test_every_field_of_the_output_has_its_hand_computed_value(tmp_path: Path) -> None:
    code, (result,) = score(tmp_path, [line(5)])
    assert code == 0
    assert list(result) == ["schema", "judge", "problem_id", "codes", "suites"]
    # right program: (2/2 + 1/1) / 2; wrong one: suite 1 has 1 valid test, failed; suite 2 has none: (0 + 0) / 2
    assert result["codes"] == [{"executes": True, "reward": 1.0}, {"executes": True, "reward": 0.0}]
    first, second = result["suites"][0]
    # K = 8: v = 2, invalid = 0: validity 2/8; no failure; alpha 1/2
    assert (first["validity"], first["adversarial"], first["reward"]) == (0.25, 0.0, 0.125)
    # f(3) == 7 is corrected (v = 1, invalid 1), f(4) > 1 is rejected (invalid 2): min(1/8, 6/8)
    assert (second["validity"], second["adversarial"], second["reward"]) == (0.125, 0.0, 0.0625)
    assert second["terms"]["invalid"] == 2
    assert second["tests"] == [
        {
            "source": "assert f(3) == 7", "status": "wrong_expected", "reason": "", "call": "f(3)", "stated": "7",
            "expected": "6", "verdict": "pass",
        },
        {
            "source": "assert f(4) > 1", "status": "rejected", "reason": "operator", "call": None, "stated": None,
            "expected": None, "verdict": None,
        },
    ]  # fmt: skip
    attack, empty = result["suites"][1]
    assert (attack["validity"], attack["adversarial"], attack["reward"]) == (0.125, 0.125, 0.125)
    assert attack["tests"][0]["verdict"] == "fail"
    assert (empty["reward"], empty["tests"], empty["replays"]) == (0.0, [], [])


def test_all_fields_of_a_problem_that_decide_a_verdict_count(tmp_path: Path) -> None:
    """Exceptions that are answers, and types of a method's arguments that stand in the starter code alone."""
    raising = line(
        raises=["KeyError"],
        reference_solution="def f(x):\n    raise KeyError(x)",
        codes=["def f(x):\n    return x"],
        suites=[["assert f(1) == {'raises': 'KeyError'}"]],
    )
    last = "class Solution:\n    def last(self, head):\n        return self.last(head.next) if head.next else head.val"
    listed = line(
        entry_point="Solution().last",
        kind="method",
        imports="class ListNode:\n    def __init__(self, val=0, next=None):\n        self.val, self.next = val, next",
        starter_code="class Solution:\n    def last(self, head: ListNode) -> int:\n        pass",
        reference_solution=last,
        codes=[last],
        suites=[["assert Solution().last([1, 2]) == 2"]],
    )
    code, results = score(tmp_path, [raising, listed])
    assert code == 0
    tests = [result["suites"][0][0]["tests"][0] for result in results]
    assert [(test["status"], test["verdict"]) for test in tests] == [("kept", "fail"), ("kept", "pass")]


def test_a_line_needs_a_reference_only_where_the_oracle_does(tmp_path: Path) -> None:
    without = {name: value for name, value in line(5).items() if name != "reference_solution"} | {
        "codes": ["def f(x):\n    return 2 * x"] * 2, "suites": [["assert f(5) == 10"]] * 2
    }  # fmt: skip
    code, (result,) = score(tmp_path, [without], "--oracle", "majority")
    assert code == 0
    assert result["suites"][0][0]["tests"][0]["status"] == "kept"
    (tmp_path / "out.jsonl").unlink()
    code, (result,) = score(tmp_path, [without])
    assert "must have a reference_solution to validate tests, got none" in result["error"]


def test_paper_fidelity_reads_any_operator_as_equality(tmp_path: Path) -> None:
    _, (result,) = score(tmp_path, [line()], "--fidelity", "paper")
    test = result["suites"][0][1]["tests"][1]
    assert (test["status"], test["stated"], test["expected"]) == ("wrong_expected", "1", "8")


def test_a_bad_line_is_reported_with_its_number_and_the_rest_is_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = [
        "not json",
        {"problem_id": "x"},
        line(codes="text"),
        line(suites=[["a"]]),
        line(reference_solution=None),
        line(reference_solution="def g(): pass"),
        line(entry_point="not a name"),
        line(entry_point="\uff46", reference_solution="def \uff46(x): return x"),  # Python reads it as f
        "[" * 100_000,
        line(schema=2),
    ]
    code, results = score(tmp_path, [line(1), *broken, line(2)])
    assert code == 1
    assert [result.get("line") for result in results] == [None, *range(2, 2 + len(broken)), None]
    said = capsys.readouterr().err
    assert all(f"line {number}: " in said for number in range(2, 2 + len(broken)))
    for result in results[1:-1]:
        assert "must" in result["error"], result
    assert "entry_point must be as Python reads it (NFKC), 'f'" in results[8]["error"]


def test_blank_lines_are_skipped_and_a_file_of_nothing_else_is_refused_and_replaces_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert score(tmp_path, ["", line(1), "   "])[1][0]["problem_id"] == "p1"
    for nothing in ([], ["", "  "]):
        code, results = score(tmp_path, list(nothing))
        assert (code, results[0]["problem_id"]) == (2, "p1")
        assert "the input must have a line to score, got none in" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.partial"))


def test_hostile_text_comes_through_as_data(tmp_path: Path) -> None:
    codes = ["\ud800 def", "\x00", "def f(x):\n    return 'a' * 10**9", "import os\ndef f(x):\n    os._exit(0)"]
    code, (result,) = score(tmp_path, [line(codes=codes, suites=[["assert f(3) == '\ud800'"]] * 4)])
    assert code == 0
    assert [item["executes"] for item in result["codes"]] == [False, False, True, True]
    assert [item["reward"] for item in result["codes"]] == [0.0] * 4


def test_the_book_is_updated_in_the_order_of_the_input(tmp_path: Path) -> None:
    book = tmp_path / "book.jsonl"
    wrong = line(codes=["def f(x):\n    return 1"], suites=[["assert f(3) == 6"]])
    right = line(codes=[REFERENCE], suites=[["assert f(1) == 2"]])
    _, (first, second, third) = score(tmp_path, [wrong, right, right], "--book", str(book))
    assert first["suites"][0][0]["replays"] == []
    assert second["suites"][0][0]["replays"] == [{"call": "f(3)", "expected": "6", "verdict": "pass"}]
    assert third["suites"][0][0]["replays"] == []  # it passed once, so it has been dropped
    assert len(MistakeBook.load(book)) == 0
    score(tmp_path, [wrong], "--book", str(book))
    assert MistakeBook.load(book).frequencies("p0") == {TestCase("f(3)", "6"): 1}


def test_the_bytes_do_not_depend_on_what_is_remembered(tmp_path: Path) -> None:
    """Lines that repeat, with programs of every kind: right, wrong, hanging, keeping state, broken."""
    codes = [
        REFERENCE,
        "def f(x):\n    return 0 if x == 3 else x * 2",
        "def f(x):\n    while x == 3:\n        pass\n    return x * 2",
        "n = []\ndef f(x):\n    n.append(x)\n    return len(n) * x",
        "def f(x:",
    ]
    suites = [["assert f(1) == 2\nassert f(3) == 6\nassert f(4) == 8", "assert f(4) == 8\nassert f(3) == 6"]] * 5
    records: list[object] = [line(i % 2, codes=codes, suites=suites, time_limit_s=0.1) for i in range(4)]
    source = write(tmp_path / "in.jsonl", records)
    for megabytes in ("0", "1", "64"):
        assert main(["score", str(source), "-o", str(tmp_path / megabytes), "--execution-cache-mb", megabytes]) == 0
    assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes() == (tmp_path / "64").read_bytes()
    scored = [json.loads(text)["suites"] for text in (tmp_path / "0").read_text().splitlines()]
    assert scored[0] == scored[2]
    assert {test["verdict"] for row in scored[0] for suite in row for test in suite["tests"]} == {
        "pass", "fail", "timeout", "error",
    }  # fmt: skip


def test_the_bytes_do_not_change_under_cpu_stress(tmp_path: Path) -> None:
    slow = "def f(x):\n    return sum(range(200_000)) * 0 + x * 2"
    looping = "def f(x):\n    while x == 3:\n        pass\n    return x * 2"
    source = write(tmp_path / "in.jsonl", [line(codes=[slow, looping], time_limit_s=0.2)])
    assert main(["score", str(source), "-o", str(tmp_path / "calm")]) == 0
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        assert main(["score", str(source), "-o", str(tmp_path / "stressed")]) == 0
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    calm = (tmp_path / "calm").read_bytes()
    assert b'"timeout"' in calm
    assert b'"pass"' in calm
    assert calm == (tmp_path / "stressed").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["missing.jsonl", "-o", "out"], "the input must exist"),
        (["in.jsonl", "-o", "nowhere/out"], "--output must be a file in an existing directory"),
        (["in.jsonl", "-o", "pipe"], "--output must be a file, which is replaced, or a new one, got pipe"),
        (["in.jsonl", "-o", "out", "--book", "pipe"], "--book must be a file, which is replaced"),
        (["in.jsonl", "-o", "."], "--output must be a file in an existing directory, got ."),
        (["in.jsonl", "-o", "in.jsonl"], "--output must be another file than the input"),
        (["in.jsonl", "-o", "out", "--workers", "0"], "--workers must be at least 1, got 0"),
        (["in.jsonl", "-o", "out", "--alpha", "1.3"], "alpha must be in [0, 1], got 1.3"),
        (["in.jsonl", "-o", "out", "--alpha", "0.9", "--tester-reward", "utrl"], "--alpha must come with --tester-rew"),
        (["in.jsonl", "-o", "out", "--execution-cache-mb", "-1"], "--execution-cache-mb must be a whole number of MiB"),
        (["in.jsonl", "-o", "out", "--suite-size", "0"], "suite_size must be at least 1"),
    ],
)
def test_wrong_arguments_say_must_and_got_and_exit_with_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in.jsonl", [line()])
    os.mkfifo(tmp_path / "pipe")
    assert main(["score", *arguments]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_link_that_names_itself_makes_room_for_the_output(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", [line()])
    (tmp_path / "link").symlink_to("link")
    assert main(["score", str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "link")]) == 0
    assert (tmp_path / "link").is_file()


def test_a_broken_book_is_refused_before_anything_is_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = tmp_path / "book.jsonl"
    book.write_text("nonsense\n")
    source = write(tmp_path / "in.jsonl", [line()])
    assert main(["score", str(source), "-o", str(tmp_path / "out"), "--book", str(book)]) == 1
    assert book.read_text() == "nonsense\n"
    assert f"codea1: --book {book}: line 1 must be JSON" in capsys.readouterr().err


def test_on_a_full_disk_whole_lines_and_earlier_files_stay(tmp_path: Path) -> None:
    """A tiny file system in a mount namespace of its own."""
    source, small, after = write(tmp_path / "in.jsonl", [line(i) for i in range(20)]), tmp_path / "small", tmp_path
    small.mkdir()
    script = (
        f"mount -t tmpfs -o size=16k tmpfs {small} && echo earlier > {small}/out && echo ready; "
        f"{sys.executable} -m codea1_env score {source} -o {small}/out; code=$?; cp {small}/* {after}; exit $code"
    )
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.stdout != "ready\n":
        pytest.skip(f"a mount namespace must be possible, got: {done.stderr}")
    assert done.returncode == 1
    assert "out.partial must be writable, got: No space left on device; what was done so far is in it" in done.stderr
    assert (after / "out").read_text() == "earlier\n"
    plan, *whole = (json.loads(text) for text in (after / "out.partial").read_text().splitlines())
    assert plan["kind"] == "plan"
    assert 0 < len(whole) < 20
    scored = [json.loads(record["output"])["problem_id"] for record in whole]
    assert scored == [f"p{i}" for i in range(len(whole))]


def test_a_line_whose_process_is_killed_is_scored_by_another(tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil")
    slow = line(codes=["import time\ndef f(x):\n    time.sleep(0.2)\n    return x * 2"] * 2)
    source = write(tmp_path / "in.jsonl", [slow | {"problem_id": f"p{i}"} for i in range(4)])
    arguments = ["score", str(source), "-o"]
    assert main([*arguments, str(tmp_path / "calm")]) == 0
    command = [sys.executable, "-m", "codea1_env.cli", *arguments, str(tmp_path / "out"), "--workers", "2"]
    process = psutil.Popen(command, stderr=subprocess.DEVNULL)
    working: list[psutil.Process] = []
    while not working and process.poll() is None:
        time.sleep(0.05)
        with contextlib.suppress(psutil.NoSuchProcess):  # they come and go
            working = [child for child in process.children() if len(child.children(recursive=True)) > 1]
    working[0].kill()
    assert process.wait(timeout=120) == 0
    assert (tmp_path / "out").read_bytes() == (tmp_path / "calm").read_bytes()


def test_an_interrupt_while_worker_processes_start_says_one_line(tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil")
    source = write(tmp_path / "in.jsonl", [line()])
    arguments = ["score", str(source), "-o", str(tmp_path / "out"), "--workers", "2"]
    command = [sys.executable, "-m", "codea1_env.cli", *arguments]
    process = psutil.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    # Two workers: the last one imports by now, and has not yet run a line of ours.
    while (len(process.children()) < 2 or process.children()[-1].cpu_times().user < 0.04) and process.poll() is None:
        time.sleep(0.001)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (130, b"codea1: interrupted; the same command goes on\n")


def mappings(pid: int) -> str:
    """What the process maps; nothing once it is gone (the sandbox's processes that only prepare come and go)."""
    try:
        return Path(f"/proc/{pid}/maps").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_run_whose_process_group_is_ended_leaves_nothing(tmp_path: Path, number: signal.Signals, code: int) -> None:
    psutil = pytest.importorskip("psutil")
    sleeping = line(codes=["import time\ndef f(x):\n    time.sleep(60)"] * 2, time_limit_s=30)
    source = write(tmp_path / "in.jsonl", [sleeping] * 4)
    arguments = ["score", str(source), "-o", str(tmp_path / "out"), "--workers", "2"]
    command = [sys.executable, "-m", "codea1_env.cli", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    parent = psutil.Process(process.pid)
    while len(parent.children(recursive=True)) < 6 and process.poll() is None:
        time.sleep(0.05)
    children = parent.children(recursive=True)
    # A named semaphore would outlive the group: whoever removes it is killed, too.
    assert not any("/dev/shm" in mappings(each.pid) for each in [parent, *children])
    os.killpg(process.pid, number)
    process.wait(timeout=120)
    assert process.returncode == code
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []
    assert not (tmp_path / "out").exists()


def test_what_of_a_suite_is_not_read_is_named_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suites = [
        "def test_it():\n    assert f(1) == 2\n",
        "So assert f(1) == 2\nand assert f(2) == 4\n",
        "```python\nassert f(1) == 2\n```\nassert f(2) == 4\n",
        "if __name__ == '__main__':\n    assert f(1) == 2\nprint(f(3))\n",
        "import unittest\nclass TestF(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(f(1), 2)\n",
        "def check(candidate):\n    assert candidate(1) == 2\ncheck(f)\n",
    ]
    code, (result,) = score(tmp_path, [line(codes=["def f(x): return x"], suites=[suites])])
    assert code == 0
    assert [suite["ignored"] for suite in result["suites"][0]] == [
        {"function": 1},
        {"assert_in_text": 2},
        {"assert_outside_fences": 1},
        {"main_block": 1, "statement": 1},
        {"class": 1},
        {"function": 1, "statement": 1},
    ]
    assert [len(suite["tests"]) for suite in result["suites"][0]] == [0, 0, 1, 0, 0, 0]
    said = capsys.readouterr()
    assert "5 of 6 suites hold no readable test; they hold " in said.err + said.out
    assert "`--fidelity wide` reads functions, classes" in said.err + said.out
    assert "function (2)" in said.err + said.out


def test_where_most_suites_can_be_read_nothing_is_said_about_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suites = ["no test at all", "assert f(1) == 2"]
    score(tmp_path, [line(codes=["def f(x): return x"], suites=[suites])])
    said = capsys.readouterr()
    assert "hold no test" not in said.err + said.out


def test_a_line_without_a_score_is_no_visit_of_its_question() -> None:
    book = MistakeBook(BookConfig(decay=0.5))
    book.record("p0", (), [TestCase("f(1)", "2")] * 4)
    broken = json.dumps(line(reference_solution="def g(): pass")).encode()
    (scored,) = score_numbered(numbered_lines([broken]), ScoringPlan(), book)
    assert scored.error
    assert book.frequencies("p0") == {TestCase("f(1)", "2"): 4}


def test_where_no_line_can_be_scored_an_earlier_output_stays(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text('{"earlier": 1}\n')
    assert score(tmp_path, ["no JSON"]) == (1, [{"earlier": 1}])
    assert not (tmp_path / "out.jsonl.partial").exists()
