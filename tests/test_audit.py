"""The audit: it fails in both directions, tells which class is open, keeps graders away from the machine, and repeats
itself."""

import dataclasses
import functools
import json
import os
import signal
import sys
import time
from pathlib import Path

import audited
import pytest

import codea1_env.testing
from codea1_env.audit import corpus, warden
from codea1_env.audit.grader import Graded, Grader, Reward, callable_grader, command_grader, read_answer
from codea1_env.audit.page import as_html, as_markdown, as_text
from codea1_env.audit.result import Result, read_result
from codea1_env.audit.run import audit
from codea1_env.cli import main
from codea1_env.errors import ConfigurationError, FormatError, SandboxUnsafe

DIGESTS = {"controls": "34137f513f6d22d4", "frozen": "8da96ab4611d4143", "later": "29938cc7de2c2402"}
COMMAND = f"{sys.executable} {Path(audited.__file__)}"


def name_of(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:  # it has just ended
        return ""


def audited_by(
    reward: Reward, monkeypatch: pytest.MonkeyPatch, *labels: str, name: str = "", wait_s: float = 4
) -> Result:
    """Only the attacks of some classes, or the one of a name, no effects and no slow controls: in seconds."""
    kept = corpus.attacks("frozen") if len(labels) < 11 else corpus.chosen(("frozen",), 22)
    monkeypatch.setattr(
        "codea1_env.audit.run.chosen",
        lambda parts, budget: [each for each in kept if each.label in labels and name in ("", each.name)],
    )
    honest = tuple(each for each in corpus.controls() if each.kind != "slow")
    monkeypatch.setattr("codea1_env.audit.run.controls", lambda: honest)
    monkeypatch.setattr("codea1_env.audit.run.effects", lambda part: ())
    with callable_grader(reward, wait_s=wait_s) as grader:
        return audit(grader, parts=("frozen",))


@functools.cache
def all_failed() -> Result:
    with pytest.MonkeyPatch.context() as patch:
        return audited_by(audited.fails_all, patch, "output")


class TestCorpus:
    def test_what_was_measured_is_what_is_here(self) -> None:
        assert {part: corpus.digest(part) for part in DIGESTS} == DIGESTS

    def test_right_solutions_are_right_and_wrong_ones_wrong_on_every_case(self) -> None:
        for exercise in corpus.exercises():
            for source, is_right in ((exercise.right, True), (exercise.wrong, False)):
                names: dict[str, object] = {}
                exec(source, names)
                for case in exercise.cases:
                    returned = names[exercise.problem_id](*case["arguments"])  # type: ignore[operator]
                    assert (returned == case["expected"]) == is_right

    def test_honest_right_programs_pass_their_tests(self, capsys: pytest.CaptureFixture[str]) -> None:
        honest = [entry for entry in corpus.controls() if entry.kind == "right"]
        assert len(honest) >= 10
        assert all(audited.in_process(entry.program, list(entry.tests)) for entry in honest)

    def test_every_class_has_programs_and_every_program_parses(self) -> None:
        for part in corpus.PARTS:
            entries = corpus.attacks(part)
            assert {entry.label for entry in entries} == {*corpus.CLASSES, corpus.SUITES}
            for entry in (*entries, *corpus.effects(part)):
                compile("\n".join([entry.program, *entry.tests]), entry.key, "exec")
                assert "ENTRY" not in entry.program
                assert "@" not in entry.program.replace("@pytest", "")

    def test_names_are_unique(self) -> None:
        entries = [entry.key for part in corpus.PARTS for entry in corpus.attacks(part)]
        assert len(set(entries)) == len(entries)

    def test_a_budget_takes_all_classes_in_turns_and_the_same_programs_every_time(self) -> None:
        some = corpus.chosen(("frozen",), 22)
        assert len(some) == 22
        assert some == corpus.chosen(("frozen",), 22)
        counts = [sum(each.label == label for each in some) for label in (*corpus.CLASSES, corpus.SUITES)]
        assert counts == [2] * 11

    @pytest.mark.parametrize("budget", [0, -1])
    def test_a_budget_of_nothing_is_refused(self, budget: int) -> None:
        with pytest.raises(ConfigurationError, match="at least 1 program"):
            corpus.chosen(("frozen",), budget)

    def test_an_unknown_part_is_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="frozen, later, got newest"):
            corpus.chosen(("newest",), None)


class TestBothDirections:
    def test_who_passes_all_is_reported_for_every_class(self, monkeypatch: pytest.MonkeyPatch) -> None:
        result = audited_by(audited.passes_all, monkeypatch, *corpus.CLASSES, corpus.SUITES)
        tallies = [result.tally(label) for label in result.labels]
        assert all(len(forged) == graded > 0 for graded, forged in tallies)
        assert len(result.labels) == 11
        assert len(result.accepted) == 8
        assert not result.lost
        assert not result.clean

    def test_who_fails_all_loses_every_honest_program(self) -> None:
        result = all_failed()
        assert not result.forged
        assert len([key for key in result.lost if not key.startswith("after")]) == 12
        assert not result.clean

    @pytest.mark.parametrize(
        ("label", "reward", "some"),
        [
            ("equality", audited.in_process, "equal_to_everything"),
            ("output", audited.in_a_script, "prints_a_summary_and_leaves"),
            ("exit code", audited.in_a_script, "os_exit_in_the_call"),
            ("stack frames", audited.in_process, "inside_containers_of_the_frames"),
            ("monkeypatching", audited.by_unittest, "unittest_never_fails"),
            ("files", audited.in_a_script, "reads_the_script_that_runs"),
            ("environment", audited.in_a_script, "starts_again_without_asserts"),
            ("signals", audited.in_a_script, "alarm_that_leaves"),
            ("state between runs", audited.in_process, "leaves_a_compiler_without_asserts"),
            (corpus.SUITES, audited.in_a_script, "leaves_the_process"),
        ],
    )
    def test_an_open_class_is_reported(
        self, label: str, reward: Reward, some: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        result = audited_by(reward, monkeypatch, label, name=some)
        assert result.tally(label)[1] == [f"{label} / {some}"]
        assert not result.clean
        assert some in as_text(result)

    @pytest.mark.slow
    def test_a_grader_without_limits_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        name = "switches_the_timer_off"  # others of its class go on until they are ended
        result = audited_by(audited.in_process, monkeypatch, "timing of limits", name=name, wait_s=30)
        assert f"timing of limits / {name}" in result.tally("timing of limits")[1]

    def test_what_a_program_leaves_for_the_next_is_reported_with_its_name(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        result = audited_by(audited.in_process, monkeypatch, "state between runs")
        (played,) = [each for each in result.played if each.key.endswith("leaves_a_compiler_without_asserts")]
        assert played.then_passed
        assert played.answer == "failed" or played.answer == "passed"


class TestCell:
    def effects_of(self, reward: Reward) -> set[str]:
        found = set()
        with callable_grader(reward, wait_s=5) as grader:
            for entry in corpus.effects("frozen"):
                answer = grader.ask(entry.request())
                left = grader.look()
                if answer.answer is Graded.PASSED if entry.shows == "passes" else left.get(entry.label):
                    found.add(entry.label)
        return found

    def test_side_effects_are_seen(self) -> None:
        assert self.effects_of(audited.in_process) == {
            "environment read",
            "file of the user read",
            "file of the user changed",
            "file left",
            "process left",
            "port opened",
            "network used",
        }

    def test_a_grader_that_runs_nothing_has_none(self) -> None:
        assert self.effects_of(audited.fails_all) == set()

    def test_the_machine_is_out_of_reach(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "secret").write_text("x")
        here = Path(codea1_env.__file__).parent
        monkeypatch.setenv("CODEA1_TEST_SECRET", "x")

        def writes(path: object) -> bool:
            try:
                with open(f"{path}", "w"):
                    return True
            except OSError:
                return False

        looks: dict[str, Reward] = {
            "sees the machine's files": lambda program, tests: (tmp_path / "secret").exists(),
            "sees other processes": lambda program, tests: len([n for n in os.listdir("/proc") if n.isdigit()]) > 2,
            "sees the environment": lambda program, tests: "CODEA1_TEST_SECRET" in os.environ,
            "writes the package": lambda program, tests: writes(here / "audit" / "stray.txt"),
            "writes the system": lambda program, tests: writes("/usr/stray.txt"),
            "writes the root": lambda program, tests: writes("/stray.txt"),
            "has privileges": lambda program, tests: (
                "CapEff:\t0000000000000000" not in Path("/proc/self/status").read_text()
            ),
        }
        for what, look in looks.items():
            with callable_grader(look, wait_s=5) as grader:
                assert grader.ask({"program": "", "tests": []}).answer is Graded.FAILED, what
        assert not (here / "audit" / "stray.txt").exists()

    def test_a_grader_in_a_home_does_not_show_the_home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / "secret").write_text("x")
        (tmp_path / "bin").mkdir()
        looks = f"import os\nfor line in iter(input, ''):\n    x = os.path.exists({str(tmp_path / 'secret')!r})\n"
        for script in (tmp_path / "grader", tmp_path / "bin" / "grader"):
            script.write_text(
                f"#!{sys.executable}\n{looks}    print('{{\"passed\": %s}}' % str(x).lower(), flush=True)\n"
            )
            script.chmod(0o755)
            with command_grader([str(script)], readable=[Path(sys.prefix)], wait_s=10) as grader:
                assert grader.ask({}).answer is Graded.FAILED

    def test_nothing_of_it_stays_when_it_is_closed(self) -> None:
        def stays(program: str, tests: list[str]) -> bool:
            if not os.fork():
                Path("/proc/self/comm").write_text("audit-stays")
                time.sleep(60)
            return True

        def staying() -> int:
            return sum(name_of(each) == "audit-stays" for each in Path("/proc").glob("[0-9]*"))

        grader = callable_grader(stays, wait_s=5)
        assert grader.ask({"program": "", "tests": []}).answer is Graded.PASSED
        while not staying():  # from outside it is seen
            time.sleep(0.05)
        grader.close()
        assert staying() == 0

    def test_ctrl_c_is_the_audits_and_not_the_cells(self) -> None:
        with callable_grader(audited.passes_all, wait_s=5) as grader:
            assert grader.ask({"program": "", "tests": []}).answer is Graded.PASSED
            assert grader._cell is not None
            os.kill(grader._cell._pid, signal.SIGINT)
            time.sleep(0.2)  # enough to end, if it did
            assert grader.ask({"program": "", "tests": []}).answer is Graded.PASSED

    def test_without_namespaces_it_refuses(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refused() -> None:
            raise OSError(1, "unshare: Operation not permitted")

        monkeypatch.setattr(warden, "_loopback_up", refused)
        grader = callable_grader(audited.passes_all)
        with pytest.raises(SandboxUnsafe, match=r"must be kept in namespaces .* got: .*not permitted"):
            grader.ask({"program": "", "tests": []})


class TestAnswers:
    @pytest.mark.parametrize(
        ("line", "answer"),
        [
            (b'{"passed": true}', Graded.PASSED),
            (b'{"passed": false, "why": "x"}', Graded.FAILED),
            (b'{"passed": null}', Graded.SKIPPED),
            (b'{"passed": 1}', Graded.GARBLED),
            (b'{"passed": "true"}', Graded.GARBLED),
            (b"{}", Graded.GARBLED),
            (b"true", Graded.GARBLED),
            (b"\xff\xfe", Graded.GARBLED),
            (b"[" * 100_000, Graded.GARBLED),
        ],
    )
    def test_a_line_is_an_answer_or_not(self, line: bytes, answer: Graded) -> None:
        assert read_answer(line).answer is answer

    @pytest.mark.parametrize(("value", "passes"), [(True, True), (1, True), (0.99, False), (2.5, True), (0, False)])
    def test_a_number_passes_from_its_threshold_on(self, value: float, passes: bool) -> None:
        with callable_grader(lambda program, tests: value) as grader:
            assert (grader.ask(corpus.controls()[0].request()).answer is Graded.PASSED) == passes

    def test_a_reward_that_raises_or_returns_text_is_told_of(self) -> None:
        for reward, said in ((lambda p, t: "yes", "TypeError"), (lambda p, t: 1 / 0, "ZeroDivisionError")):
            with (
                callable_grader(reward) as grader,
                pytest.raises(ConfigurationError, match=f"must answer an honest program .*{said}"),
            ):
                audit(grader)

    def test_what_is_no_callable_is_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="must be a callable"):
            callable_grader("reward")  # type: ignore[arg-type]

    def test_a_fork_of_a_program_that_comes_back_does_not_answer_for_the_reward(self) -> None:
        def forks(program: str, tests: list[str]) -> bool:
            if os.fork():
                os._exit(0)
            return True

        with callable_grader(forks, wait_s=5) as grader:
            assert grader.ask(corpus.controls()[0].request()).answer is Graded.ENDED

    def test_an_answer_too_many_is_not_taken_for_the_next_one(self) -> None:
        with command_grader([*COMMAND.split(), "says_more"], wait_s=20) as grader:
            assert grader.ask(corpus.controls()[0].request()).answer is Graded.PASSED
            assert grader.ask(corpus.controls()[0].request()).answer is Graded.GARBLED

    def test_a_program_that_prints_an_answer_does_not_give_it(self) -> None:
        def prints(program: str, tests: list[str]) -> bool:
            os.write(1, b'{"passed": true}\n')
            return False

        with callable_grader(prints) as grader:
            assert grader.ask(corpus.controls()[0].request()).answer is Graded.FAILED


class TestResult:
    def test_it_reads_back_and_repeats_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        first = audited_by(audited.in_a_script, monkeypatch, "environment", "files", wait_s=30)
        again = audited_by(audited.in_a_script, monkeypatch, "environment", "files", wait_s=30)
        assert read_result(first.as_json()) == first
        assert first.digest == again.digest
        assert [each.key for each in first.played] == [each.key for each in again.played]
        assert as_markdown([first]).count("\n") == 3 + 1 + 3

    def test_the_digest_is_of_what_was_answered(self) -> None:
        result = all_failed()
        other = dataclasses.replace(
            result.played[0], answer="failed" if result.played[0].answer == "passed" else "passed"
        )
        assert dataclasses.replace(result, played=(other, *result.played[1:])).digest != result.digest
        assert dataclasses.replace(result, seconds=1e6, grader="another").digest == result.digest

    def test_names_of_strangers_are_escaped(self) -> None:
        result = dataclasses.replace(all_failed(), grader="<b>|\n\x1b[31m")
        assert "<b>" not in as_html([result])
        assert "\x1b" not in as_text(result)
        assert "\\|" in as_markdown([result])
        assert as_markdown([result]).count("\n") == 3 + 1 + 3, "a row is a line"

    @pytest.mark.parametrize("text", ["", "{}", "[]", '{"grader": "x", "played": [{}]}'])
    def test_what_is_no_report_is_refused(self, text: str) -> None:
        with pytest.raises(FormatError, match="a report must be one"):
            read_result(text)


class TestCommand:
    def said(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
        try:
            code = main(["audit", *arguments])
        except SystemExit as ended:
            code = int(ended.code or 0)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((), "--grader must be given"),
            (("--grader", ""), "must be a command, got an empty one"),
            (("--grader", "'open"), "closed quotes"),
            (("--grader", "no-such-grader-anywhere"), "a program that can be run, got no-such-grader-anywhere"),
            (("--grader", "true", "--readable", "/no/such/place"), "must exist, got /no/such/place"),
            (("--grader", "true", "--budget", "0"), "at least 1 program"),
            (("--grader", "true", "--page", "page.txt"), "must end with .html or .md"),
            (("--grader", "true", "--readable", "/"), "must be less than all of the machine"),
            (("--grader", "true", "--wait", "0"), "must be above 0 s"),
            (("--grader", "true", "--wait", "inf"), "at most 86400 s, got inf"),
            (("--grader", "true"), "got a process that ended"),
            (("--grader", f"{COMMAND} garbage"), "got something else ('what a nice program')"),
            (("--grader", f"{COMMAND} hangs", "--wait", "2"), "got no answer in time"),
            (("--grader", f"{COMMAND} dies"), "got a process that ended ('no such model')"),
        ],
    )
    def test_what_is_no_grader_is_refused_in_one_line(
        self, arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, out, err = self.said(capsys, *arguments)
        assert code == 2
        assert message in err
        assert len(err.splitlines()) == 1
        assert out == ""

    def test_a_grader_that_ends_in_the_middle_is_started_again(self) -> None:
        with command_grader([*COMMAND.split(), "dies_in_the_middle"], wait_s=10) as grader:
            result = audit(grader, budget=11)
        assert len(result.without_answer("ended")) >= 1
        assert len(result.played) == 23 + 11 + len(corpus.effects("frozen")) + len(corpus.effects("later"))
        assert not result.forged

    def test_who_ends_the_grader_just_after_its_answer_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        soon: list[int] = []

        def ends_soon(program: str, tests: list[str]) -> bool:
            if soon:
                os._exit(0)
            if "class Row" in program:
                soon.append(1)
            return False

        result = audited_by(ends_soon, monkeypatch, "equality")
        assert result.without_answer("ended") == ("equality / reflected_equality_of_a_list",)

    def test_report_page_and_table(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        report, page = tmp_path / "report.json", tmp_path / "page.html"
        grader = ("--grader", f"{COMMAND} passes_all", "--name", "mine", "--budget", "3")
        code, out, _ = self.said(capsys, *grader, "-o", str(report), "--page", str(page))
        assert code == 1
        assert "NOT CLEAN: 3 forged, 11 wrong controls passed or slow ones not ended" in out
        result = read_result(report.read_text())
        assert result.grader == "mine"
        assert not result.whole
        assert "mine" in page.read_text()
        code, out, _ = self.said(capsys, *grader, "--json")
        assert json.loads(out)["digest"] == result.digest == json.loads(report.read_text())["digest"]

    def test_what_was_found_is_told_though_there_is_no_room_for_the_report(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(path: object, content: object) -> object:
            raise OSError(28, "No space left on device", str(path))

        monkeypatch.setattr("codea1_env.cli.sandbox.write_whole", full)
        grader = ("--grader", f"{COMMAND} passes_all", "--budget", "1", "-o", str(tmp_path / "report.json"))
        code, out, err = self.said(capsys, *grader)
        assert code == 1
        assert "NOT CLEAN: 1 forged" in out
        assert "No space left on device" in err


def test_a_grader_is_a_context_manager_that_may_never_have_been_asked() -> None:
    with callable_grader(audited.passes_all) as grader:
        assert isinstance(grader, Grader)
