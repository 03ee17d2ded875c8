"""The judge's number moves when a verdict does: the corpus of `judged/`, and who refuses to compare two judges."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from judged.record import SUBJECTS, VERDICTS, judged_now, recorded

from codea1_env.cli import main
from codea1_env.errors import ConfigurationError, FormatError
from codea1_env.judging import version
from codea1_env.judging.version import ANY, Move, moved, require_comparable
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.problems import TestCase
from codea1_env.records.journal import Journal
from codea1_env.records.recording import read_recording, replay
from codea1_env.report.runs_read import read_runs
from codea1_env.sandbox import LocalSandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[LocalSandbox]:
    with LocalSandbox(workers=2) as opened:
        yield opened


@pytest.fixture
def second(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge of version 2, under which verdicts on bands moved."""
    move = Move(2, frozenset({"bands"}), "an int is no bool")
    monkeypatch.setattr(version, "MOVES", (move,))
    monkeypatch.setattr(version, "VERSION", 2)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_no_recorded_verdict_moves_while_the_number_stays(subject: str, sandbox: LocalSandbox) -> None:
    matches, verdicts = recorded(subject), json.loads(VERDICTS.read_text())[subject]
    assert len(matches) >= 4
    assert not moved(matches[0].judge, version.VERSION, subject), "record the corpus again: tests/judged/record.py"
    now = judged_now(matches, sandbox)
    changed = [place for place, (then, got) in enumerate(zip(verdicts, now, strict=True)) if then != got]
    assert changed == [], "a verdict moved: list it in judging/version.py under a new version, then record again"
    rewards = [each.is_same for each in replay(matches, sandbox)]
    assert all(rewards)


def test_the_corpus_would_show_a_move() -> None:
    told = " ".join(text for texts in json.loads(VERDICTS.read_text()).values() for text in texts)
    for status in ("kept:pass", "kept:fail", "kept:error", "wrong_expected:", "rejected:", "False"):
        assert told.count(status) >= 20, status


def test_every_version_after_the_first_says_what_moved() -> None:
    assert [move.version for move in version.MOVES] == list(range(2, version.VERSION + 1))
    assert all(move.what and move.subjects for move in version.MOVES)


def test_only_what_moved_keeps_two_judges_apart(second: None) -> None:
    require_comparable([1, 2, 2], "fineprint", "files")
    require_comparable([2, 2], "bands", "files")
    for subject in ("bands", ANY):
        with pytest.raises(ConfigurationError, match=r"got versions \[1, 2\].* 2: an int is no bool"):
            require_comparable([2, 1], subject, "files")
    with pytest.raises(ConfigurationError, match="a version from 1 to 2, got 3"):
        require_comparable([3, 2], "bands", "files")


def test_a_recording_of_another_judge_is_not_compared(
    second: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = Path(VERDICTS.parent / "bands.jsonl")
    lines = old.read_text().splitlines(keepends=True)
    assert json.loads(lines[0])["judge"] == 1
    assert main(["replay", str(old)]) == 2
    assert "must be of one judge" in capsys.readouterr().err
    without = tmp_path / "older.jsonl"
    without.write_text(lines[0].replace(', "judge": 1', "").replace(',"judge":1', "") + "".join(lines[1:]))
    assert [each.judge for each in read_recording(without.read_bytes().splitlines())][:1] == [1]


@pytest.mark.parametrize("judge", [0, "1", None, True])
def test_a_recording_with_no_version_for_a_judge_is_refused(judge: object) -> None:
    header = json.dumps({"codea1_recording": 1, "judge": judge}).encode()
    with pytest.raises(FormatError, match="judge must be a version"):
        list(read_recording([header]))


def test_a_book_says_its_judge_and_one_of_a_later_judge_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "book.jsonl"
    book = MistakeBook()
    book.record("p", (), [TestCase("f(0)", "0")])
    book.save(file)
    assert json.loads(file.read_text().splitlines()[0])["judge"] == version.VERSION
    older = file.read_text().replace(f', "judge": {version.VERSION}', "")
    file.write_text(older)
    assert len(MistakeBook.load(file)) == 1
    file.write_text(older.replace('"mistake_book"', f'"mistake_book", "judge": {version.VERSION + 1}', 1))
    with pytest.raises(FormatError, match=f"judge must be a version from 1 to {version.VERSION}"):
        MistakeBook.load(file)


def test_a_journal_goes_on_under_its_own_judge_alone(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    file.write_text('{"kind":"plan","schema":1,"n":1}\n{"kind":"done"}\n')
    with Journal(file, "codea1 eval", {"n": 1}) as journal:
        assert journal.found == (1 if version.VERSION == 1 else 0)
    file.write_text('{"kind":"plan","schema":1,"judge":99,"n":1}\n{"kind":"done"}\n')
    with pytest.raises(ConfigurationError, match="another judge"):
        Journal(file, "codea1 eval", {"n": 1})


def test_runs_of_two_judges_are_on_one_page_where_nothing_moved(second: None, tmp_path: Path) -> None:
    for family in ("bands", "fineprint"):
        runs = [tmp_path / f"{family}{judge}" for judge in (1, 2)]
        for judge, run in enumerate(runs, 1):
            run.mkdir()
            start = {"judge": judge} if judge > 1 else {}  # runs of the first say none
            record = {"seed": 0, "preset": {"rounds": 1, "problems": {"family": family}}, "starts": [start]}
            (run / "config.yaml").write_text(yaml.safe_dump(record))
        if family == "bands":
            with pytest.raises(ConfigurationError, match="runs on one page must be of one judge"):
                read_runs(runs)
        else:
            assert len(read_runs(runs)) == 2


def test_the_command_says_its_judge(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.strip().endswith(f", judge {version.VERSION}")
