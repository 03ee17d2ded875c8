"""docs/results.md and the README say what the records in experiments/results/ say, and every record can be printed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("scipy", reason="the extra `solve` is not installed")
import show_results

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
INTERVAL = re.compile(r"[+-]?\d+\.\d+ \[([+-]?\d+\.\d+), ([+-]?\d+\.\d+)\]")


def test_the_page_has_every_marked_table_once() -> None:
    assert sorted(name for name, _ in show_results.blocks_of(PAGE)) == sorted(show_results.BLOCKS)


@pytest.mark.parametrize("name", show_results.BLOCKS)
def test_a_marked_table_is_what_the_records_say(name: str) -> None:
    bodies = dict(show_results.blocks_of(PAGE))
    assert bodies[name] == show_results.BLOCKS[name]() + "\n"


def test_the_readme_has_the_table_of_the_real_model() -> None:
    shown = dict(show_results.blocks_of((ROOT / "README.md").read_text(encoding="utf-8")))
    assert shown == {"fineprint": show_results.BLOCKS["fineprint"]() + "\n"}


def test_filling_writes_what_is_there_and_mends_what_is_not() -> None:
    assert show_results.filled(PAGE) == PAGE
    assert show_results.filled(PAGE.replace("| shown |", "| refuted |")) == PAGE


@pytest.mark.parametrize("claim", show_results.CLAIMS, ids=lambda claim: f"{claim.says}, {claim.on}")
def test_a_claim_is_shown_only_clear_of_zero_and_refuted_only_level_or_below(claim: show_results.Claim) -> None:
    (ends,) = INTERVAL.findall(claim.figure())
    low, high = map(float, ends)
    points = "points" in claim.on
    if claim.verdict.startswith("shown"):
        assert low > 0
    elif claim.verdict.startswith("refuted"):
        assert high < (5 if points else 0.05)
    else:
        assert claim.verdict.startswith("not shown")


@pytest.mark.parametrize("name", show_results.names())
def test_every_record_is_printed_as_tables(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show_results.real_compare, "RESAMPLED", 10)
    if name == "demo":
        pytest.importorskip("trl", reason="the extra `train` is not installed")
    shown = show_results.shown(name)
    assert name == "held-back" or shown.count("|---") + shown.count("| ---") >= 1
    for section in (
        json.loads((show_results.RESULTS / f"{name}.json").read_text()).get("sections", [])
        if (name not in show_results.OWN)
        else ()
    ):
        for each in section["tables"]:
            assert {len(row) for row in each["rows"]} == {len(each["columns"])}, section["section"]


def test_an_unknown_record_is_refused_with_those_that_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["show_results.py", "nowhere"])
    with pytest.raises(SystemExit):
        show_results.main()
    assert "NAME must be one of bigcodebench, costs, demo" in capsys.readouterr().err
