"""`codea1 eval`: measures by hand, resumed where it was killed, the same report however often it was interrupted."""

import argparse
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_openai import Json, Reply, completion, serving, silence

from codea1_env.cli import main
from codea1_env.cli.evaluate import _plan, add_eval
from codea1_env.cli.players import _recorded
from codea1_env.errors import ConfigurationError, FormatError
from codea1_env.evaluation.evaluate import EvaluationPlan, evaluate, journal_header
from codea1_env.evaluation.journal import EvaluationJournal
from codea1_env.players import Player, RecordedPlayer
from codea1_env.players.player import CoderRequest, Sampling
from codea1_env.problems import Problem, TestCase, bundled_problems
from codea1_env.problems.jsonl import write_problems
from codea1_env.sandbox import LocalSandbox

RIGHT = "def f(x):\n    if x < 0:\n        return -x\n    return x"
ABSOLUTE = Problem(
    "absolute",
    "f(x): the absolute value.",
    "f",
    reference_solution=RIGHT,
    golden_tests=(TestCase("f(3)", "3"),),
    hidden_tests=(TestCase("f(-1)", "1"), TestCase("f(0.5)", "0.5")),
)
DOUBLE = Problem("double", "g(x): twice x.", "g", reference_solution="def g(x):\n    return x * 2",
                 hidden_tests=(TestCase("g(3)", "6"), TestCase("g(1)", "2")))  # fmt: skip
UNTESTED = Problem("untested", "h(x)", "h", reference_solution="def h(x):\n    return x")
BROKEN = Problem("broken", "k(x)", "k", reference_solution="def k(:", hidden_tests=(TestCase("k(1)", "1"),))
CODES = {"absolute": [RIGHT, "def f(x):\n    return x", "garbage ("], "double": ["def g(x):\n    return x + x"] * 3}
SUITES = {
    ("absolute", RIGHT): ["assert f(3) == 3\nassert f(-1) == 1\nassert f(0.5) == 0.5", "assert f(3) == 4", ""],
    ("double", DOUBLE.reference_solution or ""): ["assert g(3) == 6"] * 3,
}


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    path = tmp_path / "mine.jsonl"
    write_problems(path, [ABSOLUTE, DOUBLE, UNTESTED])
    return path


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """What `codea1 score` reads: the tester's suites stand against the reference."""
    lines = []
    for problem in (ABSOLUTE, DOUBLE):
        fields = {"problem_id": problem.problem_id, "question": problem.question, "entry_point": problem.entry_point}
        reference = problem.reference_solution or ""
        fields |= {"reference_solution": reference}
        codes = CODES[problem.problem_id]
        lines.append({**fields, "codes": codes, "suites": [[] for _ in codes]})
        if reference not in codes:
            lines.append({**fields, "codes": [reference], "suites": [SUITES[problem.problem_id, reference]]})
        else:
            lines[0]["suites"][codes.index(reference)] = SUITES[problem.problem_id, reference]
    path = tmp_path / "recorded.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def run(*arguments: object) -> int:
    return main(["eval", *map(str, arguments)])


def means(report: dict[str, Any], name: str) -> dict[str, float | None]:
    return {key: each and each["mean"] for key, each in report["sets"][name]["measures"].items()}


def test_a_journal_of_answers_is_scored_elsewhere(problems: Path, record: Path, tmp_path: Path, capsys: Any) -> None:
    """Answers may be sampled on one machine and scored on another, also where no answer was scored there."""
    arguments = ("--problems", problems, "--n", 3)
    assert run("--player", f"recorded:{record}", *arguments, "-o", tmp_path / "whole") == 0
    lines = (tmp_path / "whole" / "journal.jsonl").read_text().splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line)["kind"] in ("plan", "answers")]
    (tmp_path / "journal.jsonl").write_text("".join(kept))
    assert len(kept) < len(lines)
    assert run("--player", f"recorded:{tmp_path / 'journal.jsonl'}", *arguments, "-o", tmp_path / "again") == 0
    one, other = (json.loads((tmp_path / name / "results.json").read_text()) for name in ("whole", "again"))
    assert one["sets"] == other["sets"]
    cut_off = kept[1].replace('"truncated":0', '"truncated":2')
    (tmp_path / "journal.jsonl").write_text("".join([kept[0], cut_off, *kept[2:]]) + '{"kind":"answ')
    assert run("--player", f"recorded:{tmp_path / 'journal.jsonl'}", *arguments, "-o", tmp_path / "third") == 0
    third = json.loads((tmp_path / "third" / "results.json").read_text())
    assert third["player"].startswith("recorded ")
    assert third["sets"]["mine"]["truncated"] == pytest.approx(2 / 6)
    fewer = RecordedPlayer({"double": ["a", "b", "c", "d"]}, cut_off={"double": 2})
    assert [each.truncated for each in fewer.respond([CoderRequest(DOUBLE)], 2)[0]] == [True, False]
    assert (
        run("--player", f"recorded:{tmp_path / 'journal.jsonl'}", "--seat", "tester", *arguments, "-o", tmp_path / "x")
        == 2
    )
    assert "the record of a tester must hold suites, got one of a coder's answers only" in capsys.readouterr().err
    for plan in (kept[0].replace('"sampling":', '"sampled":'), kept[0].replace('"player":', '"who":')):
        (tmp_path / "journal.jsonl").write_text(plan + kept[1])
        assert run("--player", f"recorded:{tmp_path / 'journal.jsonl'}", *arguments, "-o", tmp_path / "no") == 1
        assert "journal.jsonl must be as `codea1 eval` wrote it, got another journal" in capsys.readouterr().err
    (tmp_path / "journal.jsonl").write_text("[" * 100_000 + "\n")
    assert run("--player", f"recorded:{tmp_path / 'journal.jsonl'}", *arguments, "-o", tmp_path / "no") == 1
    (tmp_path / "journal.jsonl").write_text(kept[0].replace('"seat":"coder"', '"seat":"tester"'))
    assert run("--player", f"recorded:{tmp_path / 'journal.jsonl'}", *arguments, "-o", tmp_path / "no") == 2
    assert "a journal must be a coder's to be repeated, got the one of a tester" in capsys.readouterr().err


def test_a_recorded_coder_by_hand(problems: Path, record: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "out"
    assert run("--player", f"recorded:{record}", "--problems", problems, "--n", 3, "-o", out) == 0
    report = json.loads((out / "results.json").read_text())
    assert means(report, "mine") == {
        "avg@3": pytest.approx((1 / 3 + 1) / 2),
        "executes": pytest.approx((2 / 3 + 1) / 2),
    }
    assert report["sets"]["mine"]["passed"] == {"absolute": 1, "double": 3}
    assert report["sets"]["mine"]["left_out"] == {"untested": "it has no tests"}
    assert report["sampling"] == {"temperature": 0.7, "top_p": 0.95, "max_tokens": 2048}, "the paper's"
    assert "| mine | 2 | 1 | 66.67 [33.3, 100.0] |" in capsys.readouterr().out
    assert "66.67" in (out / "table.md").read_text()


def test_both_rates_are_reported_where_programs_are_trimmed_too(tmp_path: Path) -> None:
    problems, record, out = tmp_path / "mine.jsonl", tmp_path / "recorded.jsonl", tmp_path / "out"
    script = Problem("script", "Print 1.", "run", kind="program", reference_solution="print(1)\n",
                     hidden_tests=(TestCase("run('')", "'1'"),))  # fmt: skip
    write_problems(problems, [ABSOLUTE, script])
    codes = [RIGHT, f"{RIGHT}\n\nprint(f(int(input())))", f"{RIGHT}\nassert f(3) == 4\n", "def f(x):\n    return x\n"]
    scripts = ["def run():\n    print(1)\n\n\nrun()\n"] * 4  # has a function of the tests' name
    lines = [
        {"problem_id": each.problem_id, "question": each.question, "entry_point": each.entry_point,
         "reference_solution": each.reference_solution, "codes": answers, "suites": [[]] * 4}
        for each, answers in ((ABSOLUTE, codes), (script, scripts))
    ]  # fmt: skip
    record.write_text("".join(json.dumps(line) + "\n" for line in lines))
    arguments = ("--player", f"recorded:{record}", "--problems", problems, "--n", 4)
    assert run(*arguments, "--trim", "-o", out) == 0
    report = json.loads((out / "results.json").read_text())
    assert report["trim"] is True
    assert report["sets"]["mine"]["passed"] == {"absolute": 1, "script": 4}
    assert report["sets"]["mine"]["passed_trimmed"] == {"absolute": 3, "script": 4}
    assert means(report, "mine") == {
        "avg@4": (1 / 4 + 1) / 2, "executes": (2 / 4 + 1) / 2,
        "avg@4 trimmed": (3 / 4 + 1) / 2, "executes trimmed": 1.0,
    }  # fmt: skip
    assert "| avg@4 trimmed |" in (out / "table.md").read_text()
    assert run(*arguments, "-o", out) == 2, "another plan"
    assert run(*arguments, "-o", tmp_path / "plain") == 0
    assert "trim" not in json.loads((tmp_path / "plain" / "results.json").read_text())


def test_trimming_is_on_with_the_prompts_whose_figures_are_of_trimmed_answers() -> None:
    parser = argparse.ArgumentParser()
    add_eval(parser)

    def trims(*given: str) -> bool:
        return _plan(parser.parse_args(["--player", "hf:x", "--problems", "bundled", *given])).trim

    assert not trims()
    for published in (("--prompts", "evalplus"), ("--judge", "scripts")):
        assert trims(*published)
        assert not trims(*published, "--no-trim")
    assert not trims("--prompts", "evalplus", "--seat", "tester")
    assert trims("--trim")
    with pytest.raises(ConfigurationError, match="--trim must come with --seat coder"):
        trims("--trim", "--seat", "tester")


@pytest.mark.parametrize(
    ("player", "why"), [("oracle", "no reference_solution"), ("mutant", "no mutants and no reference_solution")]
)
def test_a_problem_without_what_a_scripted_coder_answers_with_is_left_out_by_name(
    player: str, why: str, tmp_path: Path
) -> None:
    problems, out = tmp_path / "mine.jsonl", tmp_path / "out"
    bare = dataclasses.replace(DOUBLE, reference_solution=None)
    write_problems(problems, [ABSOLUTE, bare])
    assert run("--player", player, "--problems", problems, "--n", 1, "-o", out) == 0
    report = json.loads((out / "results.json").read_text())["sets"]["mine"]
    assert report["problems"] == 1
    assert why in report["left_out"]["double"]


def test_a_recorded_tester_by_hand(problems: Path, record: Path, tmp_path: Path) -> None:
    """Of absolute's three suites one is valid and kills all mutants; of double's, all three kill the same ones."""
    out = tmp_path / "out"
    arguments = ("--seat", "tester", "--player", f"recorded:{record}", "--n", 3, "--suite-size", 3, "--limit", 2)
    assert run(*arguments, "--problems", problems, "-o", out) == 0
    report = json.loads((out / "results.json").read_text())
    found = means(report, "mine")
    # Of `x * 2` to x + 2, x * 3, x * 1, None: g(3) == 6 is failed by all, x + 2 being 5.
    assert found["pass@k"] == pytest.approx((3 + 0 + 0 + 1 + 1 + 1) / 18)
    assert found["valid suites"] == pytest.approx(4 / 6)
    assert found["mut@k"] == pytest.approx(1.0)
    assert found["mutation score"] == pytest.approx((1 + 0 + 0 + 3) / 6)
    assert found["Mul"] == pytest.approx(1 / 3)
    assert found["LCov@k"] == pytest.approx((1 + 2 / 3 + 0 + 3) / 6)
    assert found["BCov@k"] == pytest.approx((1 + 1 / 2 + 0) / 3), "double has no branch"
    assert report["sets"]["mine"]["mutants"] == 8 + 4
    assert report["sets"]["mine"]["equivalent"] == 1


def test_a_testers_suites_are_read_as_the_command_says_and_another_reading_is_another_plan(
    problems: Path, tmp_path: Path, capsys: Any
) -> None:
    suite = "def test_it():\n    self.assertGreater(f(9), 8)"
    line = {"problem_id": "absolute", "question": ABSOLUTE.question, "entry_point": "f"}
    line |= {"reference_solution": RIGHT, "codes": [RIGHT], "suites": [[suite]]}
    record = tmp_path / "one.jsonl"
    record.write_text(json.dumps(line) + "\n")
    arguments = ("--seat", "tester", "--player", f"recorded:{record}", "--n", 1, "--limit", 1, "--problems", problems)
    assert run(*arguments, "-o", tmp_path / "wide", "--fidelity", "wide") == 0
    report = json.loads((tmp_path / "wide" / "results.json").read_text())
    assert (report["fidelity"], means(report, "mine")["pass@k"]) == ("wide", pytest.approx(1 / 5))
    assert run(*arguments, "-o", tmp_path / "strict") == 0
    report = json.loads((tmp_path / "strict" / "results.json").read_text())
    assert ("fidelity" in report, means(report, "mine")["pass@k"]) == (False, 0.0)
    capsys.readouterr()
    assert run(*arguments, "-o", tmp_path / "wide") == 2
    assert "fidelity" in capsys.readouterr().err


def test_a_problem_whose_reference_does_not_work_is_left_out_by_name(tmp_path: Path, record: Path) -> None:
    path, out = tmp_path / "some.jsonl", tmp_path / "out"
    write_problems(path, [BROKEN, DOUBLE])
    assert run("--seat", "tester", "--player", "golden", "--problems", path, "--n", 1, "-o", out) == 0
    found = json.loads((out / "results.json").read_text())["sets"]["some"]
    assert list(found["left_out"]) == ["broken"]
    assert found["problems"] == 1
    assert means({"sets": {"some": found}}, "some")["pass@k"] == 0, "it has no golden tests to repeat"


def test_a_reference_that_does_not_load_is_left_out_where_programs_are_to_be_broken(
    tmp_path: Path, record: Path
) -> None:
    without = dataclasses.replace(DOUBLE, problem_id="without", reference_solution=None)
    path, programs, out = tmp_path / "some.jsonl", tmp_path / "programs.jsonl", tmp_path / "out"
    write_problems(path, [ABSOLUTE, BROKEN, without])
    wrong = "def f(x): return 0\ndef g(x): return 0\ndef k(x): return 0"
    lines = [{"problem_id": name, "codes": [wrong]} for name in ("absolute", "broken", "without")]
    programs.write_text("".join(json.dumps(line) + "\n" for line in lines))
    arguments = ("--seat", "tester", "--player", "fuzz", "--problems", path, "--against", programs, "--n", 1)
    assert run(*arguments, "-o", out) == 0
    found = json.loads((out / "results.json").read_text())["sets"]["some"]
    assert found["problems"] == 1
    assert found["left_out"] == {
        "broken": f"its reference_solution must load and define {BROKEN.entry_point!r}",
        "without": "it has no reference_solution",
    }


@pytest.mark.parametrize("more", [(), ("--select-by", "fuzz")])
def test_a_set_that_is_left_out_whole_has_a_row_without_numbers(
    more: Sequence[str], problems: Path, tmp_path: Path, capsys: Any
) -> None:
    nothing = tmp_path / "nothing.jsonl"
    write_problems(nothing, [UNTESTED])
    arguments = ("--player", "oracle", "--problems", problems, "--problems", nothing, "--n", 2, *more)
    assert run(*arguments, "-o", tmp_path / "out") == 0
    printed = capsys.readouterr().out
    assert "| avg@2 |" in printed
    assert "avg@0" not in printed
    assert "| nothing | 0 | 1 | - |" in printed
    assert "| mine | 2 | 1 | 100.00 [100.0, 100.0] |" in printed


class Interrupted(Exception):
    """Ends a run in the middle."""


class Watched:
    """A player that counts what it is asked, and gives up when told."""

    def __init__(self, patience: int = 1000) -> None:
        self._player = RecordedPlayer(CODES, SUITES)
        self._patience = patience
        self.name, self.version = "watched", "1"
        self.asked: list[str] = []

    def respond(self, requests: Sequence[Any], *arguments: Any) -> Any:
        if len(self.asked) >= self._patience:
            raise Interrupted
        self.asked += [request.problem.problem_id for request in requests]
        return self._player.respond(requests, *arguments)


def evaluated(player: Player, path: Path, sandbox: LocalSandbox, seat: Any = "coder") -> dict[str, Any]:
    plan, sets = EvaluationPlan(seat, samples=3), {"a": [ABSOLUTE, DOUBLE], "b": [DOUBLE, UNTESTED]}
    journal = EvaluationJournal(path, journal_header(player, sets, plan))
    try:
        return evaluate(player, sets, plan, sandbox, journal, batch=1)
    finally:
        journal.close()


@pytest.mark.parametrize("seat", ["coder", "tester"])
def test_wherever_the_journal_was_cut_off_the_report_is_the_same_and_no_answer_is_asked_for_twice(
    tmp_path: Path, seat: str
) -> None:
    whole = tmp_path / "whole"
    with LocalSandbox() as sandbox:
        patient = Watched()
        if seat == "tester":  # nothing is recorded against its function
            patient._player = RecordedPlayer(
                CODES, {**SUITES, ("untested", UNTESTED.reference_solution or ""): [""] * 3}
            )
        expected = evaluated(patient, whole, sandbox, seat)
        content = whole.read_bytes()
        lines = content.splitlines(keepends=True)
        kept_lines = range(0, len(lines), 1 if seat == "coder" else 2)
        for turn, kept in enumerate(kept_lines):  # at the end of a line or in the middle of the next
            torn = lines[kept][: len(lines[kept]) // 2] if turn % 2 else b""
            cut = tmp_path / "cut"
            cut.write_bytes(b"".join(lines[:kept]) + torn)
            player = Watched()
            player._player = patient._player
            assert evaluated(player, cut, sandbox, seat) == expected
            assert cut.read_bytes() == content
            answered = sum(b'"kind":"answers"' in line for line in lines[:kept])
            assert player.asked == patient.asked[answered:]


def test_a_player_that_fails_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with LocalSandbox() as sandbox:
        with pytest.raises(Interrupted):
            evaluated(Watched(patience=1), path, sandbox)
        player = Watched()
        evaluated(player, path, sandbox)
    assert player.asked == ["double", "double"]


def test_a_journal_of_another_plan_or_with_damage_is_refused(tmp_path: Path, problems: Path, capsys: Any) -> None:
    out = tmp_path / "out"
    arguments = ("--player", "oracle", "--problems", problems, "-o", out)
    assert run(*arguments, "--n", 1) == 0
    assert run(*arguments, "--n", 2, "--seed", 1) == 2
    assert "another samples, seed" in capsys.readouterr().err
    write_problems(problems, [ABSOLUTE])
    assert run(*arguments, "--n", 1) == 2
    assert "another problems" in capsys.readouterr().err
    path = tmp_path / "journal"
    path.write_bytes(b"no JSON\n")
    with pytest.raises(FormatError, match=r"line 1, must be what codea1 eval wrote.*; choose another output"):
        EvaluationJournal(path, {})
    plan, *rest = (out / "journal.jsonl").read_bytes().splitlines(keepends=True)
    for broken in (b'{"kind":"answers","set":"","problem_id":"p"}', b"[" * 200_000,
                   b'{"kind":"answers","set":"","problem_id":"p","texts":["a"],"truncated":2}'):  # fmt: skip
        path.write_bytes(plan + broken + b"\n" + b"".join(rest))
        with pytest.raises(FormatError, match=r"line 2, must be what codea1 eval wrote.*; remove that line"):
            EvaluationJournal(path, json.loads(plan))
    path.write_bytes(plan + b"\xff" * 4096 + b"\n")
    with pytest.raises(FormatError, match=r"^.{1,250}; remove that line") as found:
        EvaluationJournal(path, json.loads(plan))
    assert "\\xff" not in str(found.value)


def test_kill_9_and_the_same_command_again(tmp_path: Path, problems: Path) -> None:
    """Killed when its first answers are on the disk; a server counts what is asked."""

    def answer(request: Json, number: int) -> Reply:
        if number == 1 and not (tmp_path / "killed").exists():
            time.sleep(30)  # the kill comes first
        code = RIGHT if "f(x)" in request["messages"][1]["content"] else "def g(x):\n    return 1"
        return Reply(body=completion(*[f"```python\n{code}\n```"] * request["n"]))

    out = tmp_path / "out"
    with serving(answer) as server:
        command = [sys.executable, "-m", "codea1_env.cli", "eval", "--player", f"openai:{server.url}#m", "--n", "2",
                   "--problems", str(problems), "-o", str(out), "--batch", "1", "--concurrency", "1"]  # fmt: skip
        first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        journal = out / "journal.jsonl"
        while not (journal.exists() and b'"kind":"score"' in journal.read_bytes()):
            assert first.poll() is None
            time.sleep(0.05)
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        (tmp_path / "killed").touch()
        asked = len(server.asked)
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert len(server.asked) <= asked + 1, "only the second question, maybe again"
        sent = server.asked[0]
    report = json.loads((out / "results.json").read_text())
    assert report["sets"]["mine"]["passed"] == {"absolute": 2, "double": 0}
    assert [sent[name] for name in ("temperature", "top_p", "max_tokens", "n")] == [0.7, 0.95, 2048, 2]


def test_answers_without_content_count_as_empty_and_the_end_says_how_many(
    tmp_path: Path, problems: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server that thinks the whole answer of one question, at temperature 0: no resume could change that."""

    def answer(request: Json, number: int) -> Reply:
        is_thought = "f(x)" not in request["messages"][1]["content"]
        return Reply(body=silence(reasoning_content=RIGHT) if is_thought else completion(f"```python\n{RIGHT}\n```"))

    out = tmp_path / "out"
    with serving(answer) as server:
        asked = ("--player", f"openai:{server.url}#m", "--n", 3, "--temperature", 0, "--problems", problems, "-o", out)
        assert run(*asked) == 0
        count = len(server.asked)
        assert run(*asked) == 0
        assert len(server.asked) == count, "what was answered is not asked again"
    assert "Answers that had no content and counted as empty: 3 of mine." in capsys.readouterr().out
    record = json.loads((out / "results.json").read_text())["sets"]["mine"]
    assert (record["passed"], record["silent"]) == ({"absolute": 3, "double": 0}, 3)
    assert record["truncated"] == 0


def test_an_evaluation_of_a_server_that_is_mostly_silent_ends_with_an_error_and_goes_on_when_it_speaks(
    tmp_path: Path, problems: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    speaks = False

    def answer(request: Json, number: int) -> Reply:
        if request["n"] == 1 and not speaks:
            return Reply(body=silence())
        return Reply(body=completion(*[f"```python\n{RIGHT}\n```"] * request["n"]))

    out = tmp_path / "out"
    with serving(answer) as server:
        asked = ("--player", f"openai:{server.url}#m", "--n", 9, "--temperature", 0, "--problems", problems, "-o", out)
        assert run(*asked) != 0
        assert "must answer with content, got none in 8 of" in capsys.readouterr().err
        assert not (out / "results.json").exists()
        speaks = True
        assert run(*asked) == 0
    assert "silent" not in json.loads((out / "results.json").read_text())["sets"]["mine"]


def test_a_tester_behind_a_server_sees_the_function_and_is_not_told_of_a_bug(tmp_path: Path, problems: Path) -> None:
    def answer(request: Json, number: int) -> Reply:
        return Reply(body=completion(*["```python\nassert f(3) == 3\n```"] * request["n"]))

    with serving(answer) as server:
        arguments = ("--seat", "tester", "--player", f"openai:{server.url}#m", "--n", 2, "--limit", 1)
        assert run(*arguments, "--problems", problems, "-o", tmp_path / "out") == 0
        prompt = server.asked[0]["messages"][1]["content"]
    assert RIGHT in prompt
    assert "5 tests" in prompt
    assert "bug" not in prompt
    found = means(json.loads((tmp_path / "out" / "results.json").read_text()), "mine")
    assert (found["pass@k"], found["valid suites"]) == (pytest.approx(1 / 5), 1.0)


def test_a_hugging_face_directory_is_measured_in_both_seats(tmp_path: Path, problems: Path) -> None:
    pytest.importorskip("transformers", reason="the extra `train` is not installed")
    import tiny_chat_model

    model = tiny_chat_model.save(tmp_path / "model")
    for seat in ("coder", "tester"):
        out = tmp_path / seat
        command = ("--seat", seat, "--player", f"hf:{model}", "--problems", problems, "--n", 2, "--max-tokens", 8)
        with tiny_chat_model.one_thread():
            assert run(*command, "-o", out) == 0
        first = (out / "results.json").read_bytes()
        assert run(*command, "-o", out) == 0, "done already"
        assert (out / "results.json").read_bytes() == first
        assert json.loads(first)["sets"]["mine"]["truncated"] > 0


def test_unquantised_weights_in_bfloat16_answer_to_the_fields_prompt_greedily(tmp_path: Path, problems: Path) -> None:
    """As the original weights of a published model lie in their directory: safetensors, sharded, bfloat16."""
    pytest.importorskip("transformers", reason="the extra `train` is not installed")
    import tiny_chat_model
    import torch

    directory, out = tmp_path / "original", tmp_path / "out"
    tiny_chat_model.tiny_model().to(torch.bfloat16).save_pretrained(directory, max_shard_size="20KB")
    tiny_chat_model.tiny_tokenizer().save_pretrained(directory)
    assert len(list(directory.glob("*.safetensors"))) > 1
    command = ("--player", f"hf:{directory}", "--problems", problems, "--prompts", "evalplus", "--n", 1)
    with tiny_chat_model.one_thread():
        assert run(*command, "--temperature", 0, "--max-tokens", 4, "-o", out) == 0
    report = json.loads((out / "results.json").read_text())
    assert report["prompts"] == "evalplus"
    lines = [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]
    texts = [text for line in lines if line["kind"] == "answers" for text in line["texts"]]
    assert all("passes corresponding tests:\n```python\n" in text for text in texts), "the beginning is read, too"
    assert len(texts) == report["sets"]["mine"]["problems"] == 2


@pytest.mark.slow
def test_a_model_of_the_demo_is_asked_in_its_own_words(tmp_path: Path, base: Path) -> None:
    import tiny_chat_model

    for seat in ("coder", "tester"):
        out = tmp_path / seat
        command = ("--seat", seat, "--player", f"mini:{base}", "--problems", "miniature", "--limit", 3, "--n", 2)
        with tiny_chat_model.one_thread():
            assert run(*command, "--max-tokens", 48, "--suite-size", 2, "-o", out) == 0
        found = json.loads((out / "results.json").read_text())["sets"]["miniature"]
        assert found["problems"] == 3
        lines = [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]
        texts = [text for line in lines if line["kind"] == "answers" for text in line["texts"]]
        assert sum(("def " if seat == "coder" else "assert") in text for text in texts) > len(texts) / 2


def test_without_a_directory_it_is_named_after_seat_and_player(
    tmp_path: Path, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("--player", "oracle", "--problems", problems, "--n", 1) == 0
    assert (tmp_path / "eval-coder-oracle" / "results.json").is_file()


def test_a_public_set_is_imported_once_and_several_sets_have_a_mean(
    tmp_path: Path, problems: Path, capsys: Any
) -> None:
    rows = tmp_path / "rows.jsonl"
    row = {
        "task_id": "HumanEval/x", "prompt": 'def f(x):\n    """Twice."""\n', "canonical_solution": "    return 2 * x\n",
        "entry_point": "f",
        "test": "def check(candidate):\n    assert candidate(1) == 2\n    assert candidate(2) == 4\n",
    }  # fmt: skip
    rows.write_text(json.dumps(row) + "\n")
    command = ("--player", "oracle", "--problems", f"humanevalplus={rows}", "--problems", problems, "--n", 1, "-o",
               tmp_path / "out")  # fmt: skip
    assert run(*command) == 0
    printed = capsys.readouterr().out
    assert "| humanevalplus | 1 | 0 | 100.00 [100.0, 100.0] |" in printed
    assert "| mean | | | 100.00 | 100.00 | |" in printed
    rows.write_text(json.dumps({**row, "entry_point": "g"}) + "\n")
    assert run(*command) == 2
    assert "was imported from, " in capsys.readouterr().err, "the file has another content"
    rows.unlink()
    assert run(*command, "--json") == 0, "what was imported stands in the directory"
    assert json.loads(capsys.readouterr().out)["sets"]["humanevalplus"]["problems"] == 1
    for name in ("origin.json", "report.jsonl"):
        (file,) = (tmp_path / "out" / "problems").glob(f"*.{name}")
        whole = file.read_bytes()
        file.write_bytes(b"\xff\n")
        assert run(*command) == 1
        assert f"{name} must be a JSON object, got unreadable JSON" in capsys.readouterr().err
        file.write_bytes(whole)
    elsewhere = ("--player", "oracle", "--problems", f"humanevalplus={tmp_path / 'nowhere'}", "--n", 1, "-o")
    assert run(*elsewhere, tmp_path / "out") == 2


def test_a_public_set_without_a_usable_row_is_imported_again(tmp_path: Path, capsys: Any) -> None:
    rows = tmp_path / "rows.jsonl"
    command = ("--player", "oracle", "--problems", f"mbpp={rows}", "--n", 1, "-o", tmp_path / "out")
    rows.write_text("")
    assert run(*command) == 2
    assert "must hold a usable problem, got none" in capsys.readouterr().err
    rows.write_text(
        json.dumps({"task_id": 1, "text": "Twice.", "code": "def f(x):\n    return 2 * x",
                    "test_list": ["assert f(1) == 2", "assert f(2) == 4"], "test_setup_code": ""}) + "\n"
    )  # fmt: skip
    assert run(*command) == 0


def test_a_journal_that_holds_only_a_plan_binds_nothing_and_a_foreign_file_is_left_alone(
    problems: Path, record: Path, tmp_path: Path, capsys: Any
) -> None:
    out = tmp_path / "out"
    fail = ("--player", f"recorded:{record}", "--problems", problems, "--n", 50, "-o", out)
    assert run(*fail) == 2
    assert run("--player", "oracle", "--problems", problems, "--n", 1, "-o", out) == 0
    for content in ('{"my precious":"notes', "notes\nmore notes"):
        (out / "journal.jsonl").write_text(content)
        assert run("--player", "oracle", "--problems", problems, "--n", 1, "-o", out) == 1
        assert "must be what codea1 eval wrote, got" in capsys.readouterr().err
        assert (out / "journal.jsonl").read_text() == content


def test_a_recorded_tester_is_found_whatever_white_space_a_program_has_around_it(tmp_path: Path, capsys: Any) -> None:
    path, record, out = tmp_path / "p.jsonl", tmp_path / "r.jsonl", tmp_path / "out"
    write_problems(path, [ABSOLUTE])
    codes = [f"\n{RIGHT}\n\n", "def f(x):\n    return x\n"]
    line = {"problem_id": "absolute", "question": "Q", "entry_point": "f",
            "reference_solution": RIGHT, "codes": codes,
            "suites": [["assert f(-1) == 1"], ["assert f(-2) == 2"]]}  # fmt: skip
    record.write_text(json.dumps(line) + "\n")
    player = f"recorded:{record}"
    assert run("--player", player, "--select-by", player, "--problems", path, "--n", 2, "-o", out) == 0
    report = json.loads((out / "results.json").read_text())
    assert means(report, "p")["chosen"] == 1.0
    against = ("--seat", "tester", "--player", player, "--against", record, "--problems", path, "--n", 1)
    assert run(*against, "-o", tmp_path / "broken") == 0


def test_a_journal_that_is_scored_again_says_how_its_answers_were_sampled(tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("transformers", reason="the extra `train` is not installed")
    import tiny_chat_model

    problems = tmp_path / "problems.jsonl"
    write_problems(problems, bundled_problems()[:2])
    directory = tiny_chat_model.save(tmp_path / "model")
    asked = ["--temperature", "0.5", "--top-p", "1", "--max-tokens", "9", "--prompts", "example", "--seed", "3"]
    given = ["--problems", str(problems), "--n", "2"]
    assert main(["eval", "--player", f"hf:{directory}", *given, *asked, "-o", str(tmp_path / "first")]) == 0
    player = f"recorded:{tmp_path / 'first' / 'journal.jsonl'}"
    assert main(["eval", "--player", player, *given, "-o", str(tmp_path / "again")]) == 0
    first, again = (json.loads((tmp_path / name / "results.json").read_text()) for name in ("first", "again"))
    assert again["sampling"] == first["sampling"] == {"temperature": 0.5, "top_p": 1.0, "max_tokens": 9}
    assert (again["prompts"], again["recorded"]["seed"], again["seed"]) == ("example", 3, 0)
    assert "n = 2, temperature 0.5, top-p 1, at most 9 tokens, seed 0, prompts example" in capsys.readouterr().out
    selecting = ["--select-by", "golden", "-o", str(tmp_path / "chosen")]
    assert main(["eval", "--player", player, *given, *selecting]) == 0
    table = capsys.readouterr().out
    assert "recorded at temperature 0.5, top-p 1, at most 9 tokens, suites at temperature 0.7" in table
    assert main(["eval", "--player", player, *given, "--temperature", "0"]) == 2
    assert "--temperature must come with a player hf:MODEL" in capsys.readouterr().err


def test_two_sets_with_the_same_questions_keep_what_was_cut_off_in_each(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    lines = [{"kind": "plan", "seat": "coder", "player": "P", "sampling": {}, "seed": 0}]
    lines += [{"kind": "answers", "set": name, "problem_id": "a", "texts": ["x"], "truncated": 1} for name in "st"]
    journal.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    assert _recorded(journal).cut_off == {"a": 2}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--problems", "nosuch"], "--problems must be a problem file, bundled, miniature or one of"),
        (["--problems", "other=file"], "--problems must be a problem file, bundled, miniature or one of"),
        (["--problems", "bundled", "--problems", "bundled"], "different names, got 'bundled' twice"),
        (["--n", "0"], "--n must be at least 1, got 0"),
        (["--n", "1000000000"], "--n must be at most 100000, got 1000000000"),
        (["--stop-at-fence"], "--stop-at-fence must come with a player hf:MODEL or mini:DIRECTORY"),
        (["--temperature", "0.5"], "--temperature must come with a player hf:MODEL or vllm:MODEL or openai:URL#MODEL"),
        (["--max-tokens", "9"], "--max-tokens must come with a player hf:MODEL"),
        (["--retries", "9"], "--retries must come with a player openai:URL#MODEL, got oracle"),
        (["--player", "recorded:nosuch", "--concurrency", "2"], "--concurrency must come with a player openai:URL#"),
        (["--suite-size", "3"], "--suite-size must come with --seat tester or --select-by, got a coder alone"),
        (["--fidelity", "wide"], "--fidelity must come with --seat tester or --select-by, got a coder alone"),
        (["--player", "hf:x", "--stop-at-tests"], "--stop-at-tests must come with --seat tester or --select-by"),
        (["--suite-size", "0"], "--suite-size must be at least 1, got 0"),
        (["--limit", "0"], "--limit must be at least 1, got 0"),
        (["--batch", "0"], "--batch must be at least 1, got 0"),
        (["--workers", "0"], "--workers must be at least 1, got 0"),
        (["--workers", "100000"], "--workers must be at most 1024, got 100000"),
        (["--timeout", "0"], "timeout_s must be a number of seconds above 0, got 0.0"),
        (["--concurrency", "0"], "concurrency must be at least 1, got 0"),
        (["--tokens-per-minute", "0"], "tokens_per_minute must be at least 1, got 0"),
        (["--seed", "-1"], "seed must be at least 0, got -1"),
        (["--temperature", "-1"], "temperature must be in"),
        (["--player", "golden"], "a player in the coder's seat must be one of oracle, mutant, human, recorded:FILE"),
        (["--player", "nobody", "--problems", "humanevalplus"], "openai:URL#MODEL, mini:DIRECTORY, got 'nobody'"),
        (["--player", "mini:gone"], "the model of mini:gone must be a directory or a .gguf file, got gone: there is"),
        (["--player", "openai:http://x"], "a server must be given as openai:URL#MODEL"),
        (["--player", "recorded:nosuch"], "a record must be a file, got nosuch"),
        (["-o", __file__], "--output must be a directory or not exist"),
    ],
)
def test_wrong_arguments_are_refused(arguments: list[str], message: str, tmp_path: Path, capsys: Any) -> None:
    given = {"--player": "oracle", "--problems": "bundled", "-o": str(tmp_path / "out")}
    given = {name: value for name, value in given.items() if name not in arguments}
    assert main(["eval", *[part for pair in given.items() for part in pair], *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--problems", "empty.jsonl"], 2, "must hold a usable problem, got none"),
        (["--problems", "mbpp=gone.jsonl"], 2, "gone.jsonl must be a directory or a file"),
        (["--problems", "mbpp=bad.jsonl"], 1, "bad.jsonl:2: the line must be one JSON object"),
        (["--player", "recorded:record.jsonl"], 2, "the record must hold at least 32 codes of 'bundled/run-lengths'"),
    ],
)
def test_an_evaluation_that_cannot_begin_leaves_nothing(
    arguments: list[str], status: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "bad.jsonl").write_text('{"task_id": 1}\nno JSON\n')
    duel = {"problem_id": "a", "question": "Q", "entry_point": "f", "reference_solution": RIGHT}
    (tmp_path / "record.jsonl").write_text(json.dumps({**duel, "codes": [RIGHT], "suites": [[""]]}) + "\n")
    there = sorted(tmp_path.iterdir())
    given = {"--player": "oracle", "--problems": "bundled", **dict([arguments]), "-o": "deep/out"}
    assert main(["eval", *[part for pair in given.items() for part in pair]]) == status
    assert message in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == there
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "out").mkdir()
    assert main(["eval", *[part for pair in given.items() for part in pair]]) == status
    assert (tmp_path / "deep" / "out").is_dir(), "which the user made"


def test_programs_of_no_question_that_is_asked_are_refused(tmp_path: Path, problems: Path, capsys: Any) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({"problem_id": "elsewhere", "codes": ["def f(x): return x"]}) + "\n")
    assert run("--seat", "tester", "--player", "fuzz", "--problems", problems, "--against", other, "-o",
               tmp_path / "out") == 2  # fmt: skip
    told = capsys.readouterr().err
    assert "--against must have programs for a question of --problems, got none" in told
    assert "'elsewhere'" in told


def test_suites_that_end_before_the_tests_that_count_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="stop_at_tests must be at least 5, got 3"):
        EvaluationPlan("tester", suite_size=5, sampling=Sampling(stop_at_tests=3))
    EvaluationPlan("tester", suite_size=5, sampling=Sampling(stop_at_tests=5))
