"""Arms of a real model beside their base: what is counted and drawn of them, and the pages on them held to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import real_compare
import real_curves
import real_models

ROOT = Path(__file__).parent.parent


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
    counts = real_compare.coders_of([first, second])
    assert counts == {"base": {"a": (1, 2), "b": (1, 4), "c": (2, 2)}, "arm": {"a": (2, 2), "b": (1, 4)}}
    questions, share, difference = real_compare.beside(counts, "arm", "base")
    assert (questions, share.mean, difference.mean) == (2, 0.625, 0.25)
    assert (difference.low, difference.high) == (0.0, 0.5)
    assert "| arm | 2 | 62.5 [25.0, 100.0] | +25.0 [+0.0, +50.0] |" in real_compare.coders_table(counts, "base")


def test_seeds_of_an_arm_get_a_row_of_their_own_and_are_resampled() -> None:
    """By hand: the seeds are right in all and none of both questions, so that the mean is .5. Of two seeds drawn, a
    quarter of the draws has the one twice and a quarter the other: the ends of a 95 % interval."""
    counts = {
        "base": {"a": (1, 2), "b": (1, 2)},
        "arm-seed1-15": {"a": (2, 2), "b": (2, 2)},
        "arm-seed2-15": {"a": (0, 2), "b": (0, 2)},
        "arm-seed1-50": {"a": (2, 2), "b": (2, 2)},
        "other-seed1": {"a": (1, 2)},
    }
    assert real_compare.seeds_of(counts) == {"arm-15": ["arm-seed1-15", "arm-seed2-15"]}
    questions, share, difference = real_compare.beside(counts, "arm-15", "base")
    assert questions == 2
    assert (share.low, share.mean, share.high) == (0.0, 0.5, 1.0)
    assert (difference.low, difference.mean, difference.high) == (-0.5, 0.0, 0.5)
    assert "| arm-15 | 2 | 50.0 [0.0, 100.0] | +0.0 [-50.0, +50.0] |" in real_compare.coders_table(counts, "base")
    assert real_compare.beside(counts, "other-seed1", "arm-15")[0] == 1


def suites_measured(out: Path, player: str, suites: dict[str, list[list[int]]]) -> None:
    """As `measure` leaves a tester: tests asked for, written and right, mutants and those killed, of each suite."""
    directory = out / f"eval-tester-{player}"
    directory.mkdir(parents=True)
    (directory / "results.json").write_text("{}")
    scores = [{"kind": "score", "problem_id": name, "suites": rows} for name, rows in suites.items()]
    lines = [{"kind": "plan"}, *scores, {"kind": "score", "problem_id": "z", "left_out": "it has no tests"}]
    (directory / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_testers_are_paired_by_function(tmp_path: Path) -> None:
    """By hand: of two functions with a suite of 4 tests each, the base states 1 and 4 right tests, (1/4 + 1) / 2, and
    kills 2 of 8 mutants with the valid suite; the arm 4 and 4, and kills 4 and 4 of 8."""
    suites_measured(tmp_path, "base", {"f": [[4, 4, 1, 8, 0]], "g": [[4, 4, 4, 8, 2]]})
    suites_measured(tmp_path, "arm", {"f": [[4, 4, 4, 8, 4]], "g": [[4, 4, 4, 8, 4]]})
    with (tmp_path / "eval-tester-arm" / "journal.jsonl").open("r+") as journal:
        again = journal.read().splitlines()[1]
        journal.write(again + "\n")
    suites = real_compare.testers_of([tmp_path])
    assert suites == {
        "arm": {"f": [1, 1, 0.5, 1], "g": [1, 1, 0.5, 1]},
        "base": {"f": [0.25, 1, 0, 0], "g": [1, 1, 0.25, 1]},
    }
    measures = real_compare.testers_beside(suites, "arm", "base")
    assert {name: interval.mean for name, interval in measures.items()} == {
        "pass@k": 1.0, "Mul": 0.5, "pass@k more": 0.375, "Mul more": 0.5 - 0.625 * 0.25, "times": 0.5 / (0.625 * 0.25),
    }  # fmt: skip
    assert (measures["pass@k more"].low, measures["pass@k more"].high) == (0.0, 0.75)
    assert "| arm | 2 | 100.0 [100.0, 100.0] | 50.0 [50.0, 50.0] | +37.5 " in real_compare.testers_table(suites, "base")


def test_what_is_compared_with_must_have_been_measured(tmp_path: Path, monkeypatch: Any) -> None:
    out = measured(tmp_path / "out", "arm", 2, {"a": 2})
    monkeypatch.setattr("sys.argv", ["real_compare.py", str(out), "-o", str(tmp_path / "counts.json")])
    with pytest.raises(SystemExit, match=r"--to must be a measured player, one of arm; got base"):
        real_compare.main()
    measured(out, "base", 2, {"b": 2})
    with pytest.raises(SystemExit, match=r"arm must have answered questions that base has, got none"):
        real_compare.main()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing",), "OUT must hold eval-coder-NAME/ or eval-tester-NAME/ with a results.json, got none"),
        (("out", "out"), "each OUT must be named once, since all answers of a player count; got one twice"),
        (("broken",), "what `codea1 eval` wrote must be whole, got a file that is not"),
        (("out", "-o", "no/counts.json"), "No such file or directory"),
    ],
)
def test_wrong_arguments_end_in_one_line(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: Any
) -> None:
    measured(tmp_path / "out", "base", 2, {"a": 1})
    broken = measured(tmp_path / "broken", "base", 2, {"a": 1})
    (broken / "eval-coder-base" / "results.json").write_text('{"samples": 2, "se')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["real_compare.py", "-o", "counts.json", *arguments])
    with pytest.raises(SystemExit, match=message):
        real_compare.main()


def test_cells_that_cannot_be_read_and_a_missing_file_are_refused() -> None:
    with pytest.raises(SystemExit, match="cells must be ARM:SEED or ARM:SEED:ROUNDS, got golden:x"):
        real_models.Cell.read("golden:x")
    assert real_models.Cell.read("derived:0:50").name == "derived-seed0-50"


def test_a_cell_without_a_model_is_refused_and_settings_that_differ_are_too(tmp_path: Path, monkeypatch: Any) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(real_models, "run", lambda name, argv, logs: (ran.append(argv), (name, 0))[1])

    def call(*arguments: str) -> None:
        common = ("--model", "M", "--problems", "P", "-o", str(tmp_path / "out"))
        monkeypatch.setattr("sys.argv", ["real_models.py", *arguments, *common])
        real_models.main()

    train = ("train", "--held-out", "H", "--cells", "golden:0")
    call(*train)
    (tmp_path / "out" / "golden-seed0").mkdir()
    (tmp_path / "out" / "golden-seed0" / "config.yaml").write_text("")
    call(*train, "--rounds", "99")
    assert ran[-1][-4:] == ["--resume", str(tmp_path / "out" / "golden-seed0"), "--rounds", "99"]
    before = (tmp_path / "out" / "arms.yaml").read_text()
    with pytest.raises(SystemExit, match="must be what the options give, got other settings"):
        call(*train, "--set", "grpo.learning_rate=5e-3")
    assert (tmp_path / "out" / "arms.yaml").read_text() == before
    call(*train, "--derived", "D")
    for option, other, got in (("--model", "M2", "M, as"), ("--problems", "P2", "P, as"), ("--derived", "D2", "D, as")):
        monkeypatch.setattr("sys.argv", ["real_models.py", *train, "-o", str(tmp_path / "out"), "--model", "M",
                                         "--problems", "P", option, other])  # fmt: skip
        with pytest.raises(SystemExit, match=f"{option} must be {got} of the runs in .*, got {other}"):
            real_models.main()
    with pytest.raises(SystemExit, match="golden-seed0-50 must have a model of its coder"):
        call("measure", "--cells", "golden:0:50")


def test_what_is_compared_is_printed_and_written(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    out = measured(measured(tmp_path / "out", "base", 2, {"a": 1}), "arm", 2, {"a": 2})
    monkeypatch.setattr("sys.argv", ["real_compare.py", str(out), "-o", str(tmp_path / "counts.json")])
    real_compare.main()
    assert "| arm | 1 | 100.0 [100.0, 100.0] | +50.0 [+50.0, +50.0] |" in capsys.readouterr().out
    assert json.loads((tmp_path / "counts.json").read_text()) == {
        "coders": {"arm": {"a": [2, 2]}, "base": {"a": [1, 2]}},
        "testers": {},
    }


RECORD = json.loads((ROOT / "experiments" / "results" / "real-models.json").read_text())
CARD = " ".join((ROOT / "examples" / "adapters" / "README.md").read_text().split())


def more_than(player: str, other: str) -> str:
    return real_compare.shown(real_compare.beside(RECORD["coders"], player, other)[2], "+")


def test_the_card_has_the_figures_of_the_record() -> None:
    _, share, difference = real_compare.beside(RECORD["coders"], "code-a1-first-10", "base")
    assert f"{100 * share.mean:.1f}, base 45.6, difference {real_compare.shown(difference, '+')}" in CARD
    assert more_than("code-a1-15", "base") in CARD
    for tester in ("base", "code-a1-first-15"):
        found = real_compare.testers_beside(RECORD["testers"], tester, "base")
        assert all(real_compare.shown(found[name]) in CARD for name in ("pass@k", "Mul"))


def test_what_the_published_coder_came_to_on_questions_kept_back_stands_where_its_gain_does() -> None:
    told = json.loads((ROOT / "experiments" / "results" / "held-back.json").read_text())
    difference = "{mean:+.1f} [{low:+.1f}, {high:+.1f}]".format(**told["difference"])
    page = " ".join((ROOT / "docs" / "results.md").read_text().split())
    for text in (CARD, page):
        assert more_than("code-a1-first-10", "base") in text
        assert difference in text
    assert f"{told['percent']['coder']}, base {told['percent']['base']}, difference {difference}" in CARD
    assert told["source"] in CARD
    assert "not shown to carry over" in CARD


def test_the_rounds_of_a_run_are_kept_once_each_with_what_the_seats_said(tmp_path: Path) -> None:
    """The second round was played twice, as after a resume: the later record counts."""
    lines = [
        {"kind": "round", "seat": "", "round": 1, "coder_reward": 0.25, "valid_tests": None, "seconds_judging": 1.0},
        {"kind": "seat", "seat": "coder", "round": 1, "length": 10.0, "entropy": 1.0},
        {"kind": "round", "seat": "", "round": 2, "coder_reward": 0.0},
        {"kind": "evaluation", "seat": "coder", "round": 2, "hidden_pass_rate": 1.0},
        {"kind": "round", "seat": "", "round": 2, "coder_reward": 1.0 / 3, "valid_tests": 0.5},
    ]
    file = tmp_path / "metrics.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = {"coder_reward": [0.25, 0.3333], "coder_length": [10.0, None], "valid_tests": [None, 0.5]}
    assert real_curves.rounds_of(file) == found


def test_a_running_mean_leaves_out_rounds_without_a_value() -> None:
    values = real_curves.running_mean(np.array([1.0, 2.0, np.nan, np.nan, 4.0]))
    assert values.tolist() == [1.5, 1.5, 2.0, 4.0, 4.0]


def test_the_picture_has_the_mean_of_every_arm_in_every_panel(tmp_path: Path, monkeypatch: Any) -> None:
    pytest.importorskip("matplotlib", reason="the extra `train` is not installed")
    rewards = {"preset-seed1": 1, "own-seed1": 0, "preset-seed2": 0}
    for run, reward in rewards.items():
        (tmp_path / run).mkdir()
        line = {"kind": "round", "seat": "", "round": 1, "coder_reward": reward}
        (tmp_path / run / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["real_curves.py", *rewards, "-o", "record.json", "--picture", "picture.png"])
    real_curves.main()
    record = json.loads((tmp_path / "record.json").read_text())
    assert record == {run: {"coder_reward": [reward]} for run, reward in rewards.items()}
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    axes = real_curves.picture(record).axes
    assert len(axes) == len(real_curves.SHOWN)
    assert {line.get_label(): list(line.get_ydata()) for line in axes[0].lines} == {"Code-A1": [0.5], "other arms": [0]}
    assert [line.get_label() for line in axes[0].lines] == ["other arms", "Code-A1"], "what has a colour lies on top"


@pytest.mark.parametrize("content", [None, "{", '{"kind": "round"}'])
def test_metrics_that_are_missing_or_torn_are_refused_in_one_line(
    content: str | None, tmp_path: Path, monkeypatch: Any
) -> None:
    if content is not None:
        (tmp_path / "metrics.jsonl").write_text(content)
    monkeypatch.setattr("sys.argv", ["real_curves.py", str(tmp_path), "-o", str(tmp_path / "record.json")])
    with pytest.raises(SystemExit, match="error: "):
        real_curves.main()
    assert not (tmp_path / "record.json").exists()
