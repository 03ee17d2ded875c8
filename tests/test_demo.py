"""`make demo`: both recipes run from one base, and table, picture and page show what their runs found."""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

import demo
from training_runs import recipes_here, run_here, same_weights

from codea1_env.configuration.presets import load_preset
from codea1_env.errors import ConfigurationError
from codea1_env.training.models.warm_start import base_model
from codea1_env.viewer import read_games

ROOT = Path(__file__).parents[1]

TINY = """
extends: demo
rounds: 2
save_rounds: 2
problems: {train: 8, held_out: 6}
model: {hidden: 64, layers: 2, heads: 2, feed_forward: 64}
warm_start: {steps: 80, copy_steps: 10, examples_per_step: 8, problems: 200}
round: {questions: 2, programs: 4, suites: 2}
evaluation: {every_rounds: 1, problems: 4, samples: 2, mutants: 1}
"""


def row(name: str, base: list[float], trained: list[float]) -> dict[str, Any]:
    return {"name": name, "base_by_problem": base, "trained_by_problem": trained}


def test_a_row_has_means_and_differences_over_the_same_problems() -> None:
    base, golden, ours = [0.0, 0.5, 0.0, 0.5], [0.25, 0.75, 0.25, 0.75], [1.0, 0.75, 1.0, 0.75]
    programs = ["coder: hidden pass rate", "coder: golden pass rate"]
    tests = ["tester: valid tests that kill", "tester: inputs that kill", "tester: valid tests"]
    suites = [row(name, [0.0] * 4, [0.5] * 4) for name in tests]
    found = demo.compared(
        [row(name, base, golden) for name in programs], [*(row(name, base, ours) for name in programs), *suites]
    )
    assert list(found["rows"]) == list(demo.ROWS.values())
    coder, _, tester, _ = found["rows"].values()
    assert (coder["base"], coder["golden"], coder["code_a1"]) == (0.25, 0.5, 0.875)
    assert coder["golden - base"] == [0.25, 0.25, 0.25], "every problem gains as much"
    mean, low, high = coder["code_a1 - golden"]
    assert mean == 0.375
    assert 0 <= low < 0.375 < high <= 0.75
    assert tester == {"base": 0.0, "code_a1": 0.5, "code_a1 - base": [0.5, 0.5, 0.5]}
    first, _, second, _, third, _ = demo.table_of(found).splitlines()
    assert first == "| 4 held-out problems | base | golden tests | Code-A1 | Code-A1 minus golden tests |"
    assert "| 0.250 | 0.500 (+0.250 [+0.250, +0.250]) | 0.875 (+0.625 [" in second
    assert third.endswith("| 0.000 | | 0.500 (+0.500 [+0.500, +0.500]) | |")


def test_a_seed_that_no_recipe_takes_is_refused_before_the_base_is_built(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(demo, "base_model", lambda *_: pytest.fail("it was built"))
    monkeypatch.setattr(sys, "argv", ["demo.py", "--seed", "-1", "--output", str(tmp_path / "run")])
    with pytest.raises(ConfigurationError, match=r"--seed must be in \[0, 2147483647\], got -1"):
        demo.main()


@pytest.fixture
def run(
    bases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Path], str]:
    (tmp_path / "tiny.yaml").write_text(TINY)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    here = partial(run_here, "experiments/demo.py", cache=bases, patch=monkeypatch, capsys=capsys)
    return lambda output: here("--seed", "3", "--config", str(tmp_path / "tiny.yaml"), "--output", str(output))


@pytest.mark.longest
def test_a_demo_ends_with_a_table_a_picture_and_a_page_and_goes_on_where_it_was_stopped(
    run: Callable[[Path], str], bases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipes_here(monkeypatch)
    first = tmp_path / "first"
    printed = run(first)
    found = json.loads((first / "demo.json").read_text())
    assert list(found["rows"]) == list(demo.ROWS.values())
    assert demo.table_of(found) in printed
    assert (first / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert printed.splitlines()[-1] == (first / "before_and_after.html").resolve().as_uri()
    assert "default-src 'none'" in (first / "before_and_after.html").read_text()

    games = read_games(first / "before_and_after", 100).games
    before, after = (
        {game["id"]: game for game in games if game["from"] == origin} for origin in ("round 0", "round 2")
    )
    assert len(before) == len(after) == 6
    for name, game in before.items():
        sources = [program["source"] for program in game["programs"]]
        assert sources == [program["source"] for program in after[name]["programs"]], "both testers attack the same two"
        assert [len(program["suites"]) for program in game["programs"]] == [demo.SUITES] * 2
    base = base_model(load_preset("demo", tmp_path / "tiny.yaml"), bases)
    for place in ("golden/coder", "code_a1/coder", "code_a1/tester"):
        assert not same_weights(base, first / place / "final"), "it has learnt"

    (first / "golden" / "summary.json").unlink()  # as if it had been stopped before its end
    finished = (first / "code_a1" / "summary.json").stat().st_mtime_ns
    assert run(first) == printed
    assert (first / "code_a1" / "summary.json").stat().st_mtime_ns == finished, "what is done is not done again"


@pytest.mark.slow
def test_a_demo_comes_to_the_same_bits_again(run: Callable[[Path], str], tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    printed = run(first)
    again = run(second)
    assert again.replace(str(second), str(first)) == printed
    for name in (
        "demo.json",
        "demo.png",
        "before_and_after/duels/round-0.jsonl",
        "before_and_after/duels/round-2.jsonl",
    ):
        assert (first / name).read_bytes() == (second / name).read_bytes(), name
    for place in ("golden/coder", "code_a1/coder", "code_a1/tester"):
        assert same_weights(first / place / "final", second / place / "final")


PAGE = (ROOT / "docs" / "training.md").read_text()
RECORD = ROOT / "experiments" / "results" / "demo.json"


def test_the_page_has_the_table_of_the_run_that_is_kept() -> None:
    shown = PAGE.split("<!-- demo: begin -->\n")[1].split("<!-- demo: end -->")[0]
    assert shown.strip() == demo.table_of(json.loads(RECORD.read_text()))


def test_both_seats_are_seen_to_learn_clear_of_zero() -> None:
    coder, _, *tester = json.loads(RECORD.read_text())["rows"].values()
    gained = [coder["code_a1 - golden"], *(row["code_a1 - base"] for row in (coder, *tester))]
    assert len(gained) == 4
    assert min(low for _, low, _ in gained) > 0
