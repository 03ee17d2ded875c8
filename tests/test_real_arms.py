"""Arms of a real model beside their base: what `compare` counts, and docs/real-models.md held to its record."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "experiments"))  # where the script is

import real_models  # noqa: E402


def measured(out: Path, player: str, samples: int, passed: dict[str, int]) -> Path:
    """A directory as `measure` leaves it."""
    directory = out / f"eval-coder-{player}"
    directory.mkdir(parents=True)
    results = {"samples": samples, "sets": {"some": {"passed": passed}}}
    (directory / "results.json").write_text(json.dumps(results))
    return out


def test_answers_of_several_directories_are_put_together_and_paired_by_question(tmp_path: Path) -> None:
    """By hand: base .5 and .25, the arm 1 and .25 of the questions that both have; (.5 + 0) / 2 = .25 more."""
    first = measured(tmp_path / "first", "base", 2, {"a": 1, "b": 0})
    measured(first, "arm", 2, {"a": 2})
    second = measured(tmp_path / "second", "base", 2, {"b": 1, "c": 2})
    measured(second, "arm", 4, {"b": 1})
    counts = real_models.counts_of([first, second])
    assert counts == {"base": {"a": (1, 2), "b": (1, 4), "c": (2, 2)}, "arm": {"a": (2, 2), "b": (1, 4)}}
    questions, share, difference = real_models.beside(counts, "arm", "base")
    assert (questions, share.mean, difference.mean) == (2, 0.625, 0.25)
    assert (difference.low, difference.high) == (0.0, 0.5)
    assert "| arm | 2 | 62.5 [25.0, 100.0] | +25.0 [+0.0, +50.0] |" in real_models.as_table(counts, "base")


def test_what_is_compared_with_must_have_been_measured(tmp_path: Path, monkeypatch: Any) -> None:
    out = measured(tmp_path / "out", "arm", 2, {"a": 2})
    monkeypatch.setattr("sys.argv", ["real_models.py", "compare", str(out), "-o", str(tmp_path / "counts.json")])
    with pytest.raises(SystemExit, match=r"--to must be a measured coder, one of arm; got base"):
        real_models.main()
    measured(out, "base", 2, {"b": 2})
    with pytest.raises(SystemExit, match=r"arm must have answered questions that base has, got none"):
        real_models.main()


def test_what_is_compared_is_printed_and_written(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    out = measured(measured(tmp_path / "out", "base", 2, {"a": 1}), "arm", 2, {"a": 2})
    monkeypatch.setattr("sys.argv", ["real_models.py", "compare", str(out), "-o", str(tmp_path / "counts.json")])
    real_models.main()
    assert "| arm | 1 | 100.0 [100.0, 100.0] | +50.0 [+50.0, +50.0] |" in capsys.readouterr().out
    assert json.loads((tmp_path / "counts.json").read_text()) == {"arm": {"a": [2, 2]}, "base": {"a": [1, 2]}}


def test_the_page_has_what_the_record_of_every_question_comes_to() -> None:
    """docs/real-models.json has how many answers to each question were right; page, README and card have the means."""
    record = json.loads((ROOT / "docs" / "real-models.json").read_text())
    page, readme, card = (
        (ROOT / name).read_text() for name in ("docs/real-models.md", "README.md", "examples/adapters/README.md")
    )
    section = page.split("\n## Code-A1 beside golden tests\n")[1].split("\n## ")[0]
    rows = {"code-a1-seed0": "Code-A1", "golden-seed0": "golden tests, more compute", "base": "base"}
    rows["golden-seed0-15"] = "golden tests, as many rounds"
    assert record.keys() == rows.keys()
    for player, name in rows.items():
        row = next(row for row in section.splitlines() if row.startswith(f"| {name} |")).replace("**", "")
        questions, share, difference = real_models.beside(record, player, "base")
        assert questions == (82 if player == "golden-seed0-15" else 122)
        if questions == 122:
            assert real_models.shown(share) in row
        if player != "base":
            assert real_models.shown(difference, "+") in row
            assert real_models.shown(difference, "+") in readme.split("| difference to the base |")[1]
        for part in (range(82), range(82, 122)):
            own = [record[player].get(f"HumanEval/{number}") for number in part]
            if all(own):
                assert f"| {100 * sum(right / of for right, of in own) / len(own):.1f} |" in row
        if player.startswith("golden"):
            _, _, below = real_models.beside(record, player, "code-a1-seed0")
            ahead = f"{-100 * below.mean:.1f} [{-100 * below.high:+.1f}, {-100 * below.low:+.1f}] points"
            assert ahead in " ".join(section.split())
    _, share, difference = real_models.beside(record, "code-a1-seed0", "base")
    assert f"{100 * share.mean:.1f}, base 51.7, difference {real_models.shown(difference, '+')}" in card
