"""Arms of a real model beside their base: what is counted and drawn of them, and the pages on them held to it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "experiments"))  # where the script is

import real_compare  # noqa: E402
import real_curves  # noqa: E402
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


RECORD = json.loads((ROOT / "docs" / "real-models.json").read_text())
CODERS = {
    "base": ("base", "0"),
    "golden-15": ("golden tests", "15"),
    "golden-50": ("golden tests", "50"),
    "derived-seed0-45": ("golden tests derived from the reference", "45"),
    "frozen-seed0-15": ("frozen tester", "15"),
    "self-play-seed0-10": ("self-play", "10"),
    "code-a1-15": ("Code-A1", "15"),
    "preset-28": ("Code-A1, the preset on one core", "28"),
    "golden-preset-28": ("golden tests, the preset on one core", "28"),
    "preset-mean-seed1-28": ("Code-A1, the preset, mean of 14 checkpoints", "28"),
    "golden-mean-seed1-28": ("golden tests, the preset, mean of 14 checkpoints", "28"),
    "golden-equal": ("golden tests, the preset on one core, about the compute of Code-A1", "68, 95"),
    "frozen-preset-seed1-28": ("frozen tester, the preset on one core", "28"),
    "derived-preset-seed1-28": ("golden tests derived from the reference, the preset on one core", "28"),
    "self-play-preset-seed1-26": ("self-play, the preset on one core, about the compute of Code-A1", "26"),
    "shared-28": ("Code-A1 with shared tests, on one core", "28"),
    "union-28": ("Code-A1 with all suites on all programs, on one core", "28"),
    "gentle-seed1-28": ("Code-A1 with a slower coder, on one core", "28"),
    "mean-28": ("Code-A1 with shared tests, mean of 14 checkpoints", "28"),
    "mixed-28": ("Code-A1 on mixed questions, on one core", "28"),
    "code-a1-first-10": ("Code-A1, earlier run", "10"),
    "golden-first-15": ("golden tests, earlier run, 82 questions", "15"),
    "golden-first-70": ("golden tests, earlier run, 122 questions", "70"),
}
"""By their names in the record: a row's first two cells on the page."""


def what_the_pages_say() -> str:
    """What the page says of the arms, with the page that tells them run by run."""
    page = (ROOT / "docs" / "real-models.md").read_text()
    runs = (ROOT / "docs" / "real-runs.md").read_text()
    return page.split("\n## Code-A1 beside its baselines\n")[1].split("\n## ")[0] + "\n" + runs


def cells(text: str, first: str, second: str) -> str:
    """The row of a table, without emphasis."""
    rows = [line.replace("**", "") for line in text.splitlines() if line.startswith("|")]
    return next(row for row in rows if row.startswith((f"| {first} | {second} |", f"| {first}, {second} |")))


def test_the_record_has_no_coder_that_the_page_leaves_out() -> None:
    arms = real_compare.seeds_of(RECORD["coders"])
    assert {name for player in CODERS for name in arms.get(player, [player])} == RECORD["coders"].keys()


@pytest.mark.parametrize("player", CODERS)
def test_the_page_has_what_the_record_of_every_question_comes_to(player: str) -> None:
    row = cells(what_the_pages_say(), *CODERS[player])
    questions, share, difference = real_compare.beside(RECORD["coders"], player, "base")
    assert questions == {"golden-first-15": 82, "golden-first-70": 122}.get(player, 164)
    assert f"| {real_compare.shown(share)} |" in row
    if player != "base":
        assert f"| {real_compare.shown(difference, '+')} |" in row
    runs = real_compare.seeds_of(RECORD["coders"]).get(player, [player])
    if len(runs) > 1:
        assert (
            ", ".join(f"{100 * real_compare.beside(RECORD['coders'], run, 'base')[2].mean:+.1f}" for run in runs) in row
        )
    solved = [np.mean([right > 0 for right, _ in RECORD["coders"][run].values()]) for run in runs]
    if questions == 164:
        assert f" {', '.join(f'{100 * share:.1f}' for share in solved)} " in row, "pass@16"


@pytest.mark.parametrize("arm", ["preset", "golden-preset", "shared", "union", "mean", "mixed"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_page_says_in_words_what_each_seed_came_to_on_one_core(arm: str, seed: int) -> None:
    _, share, difference = real_compare.beside(RECORD["coders"], f"{arm}-seed{seed}-28", "base")
    page = " ".join(what_the_pages_say().split())
    assert f"{real_compare.shown(share)} %" in page
    assert real_compare.shown(difference, "+") in page


def test_the_page_has_how_the_second_seeds_programs_and_book_went() -> None:
    code_a1, golden = CURVES["preset-seed1"], CURVES["golden-preset-seed1"]
    first, last = np.mean(golden["coder_length"][:3]), np.mean(golden["coder_length"][-3:])
    page = " ".join(what_the_pages_say().split())
    assert f"Programs of golden tests shrank from {first:.0f} tokens to {last:.0f} in training" in page
    low, end = code_a1["coder_length"][13], np.mean(code_a1["coder_length"][-3:])
    assert f"were at {low:.0f} tokens in round 14, and {end:.0f} at the end" in page
    paid = [f"{np.mean(golden['coder_reward'][part]):.2f}".lstrip("0") for part in (slice(3), slice(-3, None))]
    assert f"their reward went from {paid[0]} to {paid[1]}" in page
    assert f"{code_a1['book'][15]:.0f} failures after round 16 and {code_a1['book'][-1]:.0f} at the end" in page


@pytest.mark.parametrize(
    ("player", "other"),
    [
        ("code-a1-15", "golden-50"),
        ("code-a1-15", "golden-15"),
        ("code-a1-15", "frozen-seed0-15"),
        ("preset-seed0-28", "golden-preset-seed0-28"),
        ("preset-seed0-28", "golden-equal-seed0"),
        ("shared-28", "golden-equal-seed0"),
        ("preset-seed1-28", "golden-equal-seed1"),
        ("preset-28", "golden-equal"),
        ("preset-seed1-28", "frozen-preset-seed1-28"),
        ("preset-seed1-28", "derived-preset-seed1-28"),
        ("preset-seed1-28", "self-play-preset-seed1-26"),
        ("shared-28", "golden-preset-seed0-28"),
        ("union-28", "golden-equal"),
        ("preset-seed1-28", "golden-preset-seed1-28"),
        ("preset-mean-seed1-28", "golden-mean-seed1-28"),
        ("preset-28", "golden-preset-28"),
        ("mixed-28", "golden-preset-28"),
    ],
)
def test_what_the_page_says_of_two_arms_is_what_the_record_says(player: str, other: str) -> None:
    difference = real_compare.shown(real_compare.beside(RECORD["coders"], player, other)[2], "+")
    assert difference in " ".join(what_the_pages_say().split())
    assert difference in " ".join((ROOT / "docs" / "claims.md").read_text().split())


def test_the_page_has_what_the_testers_came_to() -> None:
    measures = real_compare.testers_beside(RECORD["testers"], "code-a1-first-15", "base")
    base = real_compare.testers_beside(RECORD["testers"], "base", "base")
    page, card = what_the_pages_say(), (ROOT / "examples" / "adapters" / "README.md").read_text()
    for row, found in (("base, same prompt", base), ("Code-A1, earlier run, 15 rounds", measures)):
        line = next(line for line in page.splitlines() if line.startswith(f"| {row} |")).replace("**", "")
        for name in ("pass@k", "Mul"):
            assert f"| {real_compare.shown(found[name])} |" in line
            assert real_compare.shown(found[name]) in card
    line = next(line for line in page.splitlines() if line.startswith("| difference of the earlier run |"))
    times = measures["times"]
    assert real_compare.shown(measures["pass@k more"], "+") in line
    assert real_compare.shown(measures["Mul more"], "+") in line
    assert f"{times.mean:.2f} [{times.low:.2f}, {times.high:.2f}] times" in line


@pytest.mark.parametrize(
    ("tester", "row"),
    [
        ("preset-seed0-28", "Code-A1, the preset on one core, 28 rounds"),
        ("union-seed0-28", "Code-A1 with all suites on all programs, seed 0"),
        ("union-seed1-28", "Code-A1 with all suites on all programs, seed 1"),
    ],
)
def test_the_page_has_what_a_tester_on_one_core_came_to(tester: str, row: str) -> None:
    found = real_compare.testers_beside(RECORD["testers"], tester, "base")
    page = " ".join(what_the_pages_say().split())
    shares = [real_compare.shown(found[name]) for name in ("pass@k", "Mul")]
    assert f"| {row} | {' | '.join(shares)} |" in page
    more = [real_compare.shown(found[f"{name} more"], "+") for name in ("pass@k", "Mul")]
    times = found["times"]
    factor = f"{times.mean:.2f} [{times.low:.2f}, {times.high:.2f}] times"
    assert f"is {more[0]} in pass@5 and {more[1]} in Mul from the base, {factor}" in page


def test_the_page_has_the_vacuous_tests_of_the_worst_round() -> None:
    shares = {run: each["vacuous_tests"] for run, each in CURVES.items() if "vacuous_tests" in each}
    worst = max(shares, key=lambda run: max(shares[run]))
    assert (worst, shares[worst].index(max(shares[worst])) + 1) == ("shared-seed0", 12)
    assert (
        f"{100 * max(shares[worst]):.0f} % in the worst single round, round 12 of shared tests with seed 0"
        in " ".join(what_the_pages_say().split())
    )
    assert {round(100 * np.mean(each)) for each in shares.values()} == {1, 2}


def test_the_goals_stand_beside_the_figures_of_the_record() -> None:
    goals = (ROOT / "docs" / "real-models.md").read_text().split("\n## What was reached\n")[1].split("\n## ")[0]
    base, golden, mul = (
        next(line for line in goals.splitlines() if words in line)
        for words in ("above the base, clear of zero", "ahead of golden tests at equal compute", "Mul at least")
    )
    assert f"{more_than('code-a1-15', 'base')} on the GPU, {more_than('preset-28', 'base')} with the preset" in base
    assert f"{more_than('union-28', 'base')} there with all suites on all programs" in base
    assert f"{more_than('code-a1-15', 'golden-50')} on the GPU, {more_than('preset-28', 'golden-equal')} on" in golden
    for run in ("code-a1-first-15", "preset-seed0-28", "union-seed0-28", "union-seed1-28"):
        times = real_compare.testers_beside(RECORD["testers"], run, "base")["times"]
        assert f"{times.mean:.2f} [{times.low:.2f}, {times.high:.2f}]" in mul


def more_than(player: str, other: str) -> str:
    return real_compare.shown(real_compare.beside(RECORD["coders"], player, other)[2], "+")


def test_readme_and_card_have_the_figures_of_the_page() -> None:
    readme, card = (
        " ".join((ROOT / name).read_text().split()) for name in ("README.md", "examples/adapters/README.md")
    )
    _, share, difference = real_compare.beside(RECORD["coders"], "code-a1-first-10", "base")
    assert f"{100 * share.mean:.1f}, base 45.6, difference {real_compare.shown(difference, '+')}" in card
    assert f"An earlier run of Code-A1 on other questions gained {real_compare.shown(difference, '+')}" in readme
    assert more_than("code-a1-15", "base") in card
    assert more_than("code-a1-15", "golden-50") in readme


def test_what_the_published_coder_came_to_on_questions_kept_back_stands_wherever_its_gain_does() -> None:
    told = json.loads((ROOT / "docs" / "held-back.json").read_text())
    difference = "{mean:+.1f} [{low:+.1f}, {high:+.1f}]".format(**told["difference"])
    gain = more_than("code-a1-first-10", "base")
    pages = {
        name: " ".join((ROOT / name).read_text().split())
        for name in ("README.md", "examples/adapters/README.md", "docs/real-models.md", "docs/claims.md")
    }
    for name, page in pages.items():
        assert page.count(gain) == page.count(difference), name
        assert gain in page, name
        assert f"{told['questions'].replace(' of ', ' questions of ')}" in page or told["questions"] in page, name
    card, page = pages["examples/adapters/README.md"], pages["docs/real-models.md"]
    assert f"{told['percent']['coder']}, base {told['percent']['base']}, difference {difference}" in card
    assert f"its coder has {told['percent']['coder']} % and the base {told['percent']['base']} %, {difference}" in page
    for text in (card, page):
        assert told["source"] in text
        assert "not shown to carry over" in text


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


def test_the_picture_has_a_line_for_every_run_in_every_panel(tmp_path: Path, monkeypatch: Any) -> None:
    pytest.importorskip("matplotlib", reason="the extra `train` is not installed")
    for run in ("arm-seed1", "arm-seed2"):
        (tmp_path / run).mkdir()
        (tmp_path / run / "metrics.jsonl").write_text('{"kind": "round", "seat": "", "round": 1, "coder_reward": 1}\n')
    monkeypatch.chdir(tmp_path)
    arguments = ["arm-seed1", "arm-seed2", "-o", "record.json", "--picture", "picture.png"]
    monkeypatch.setattr("sys.argv", ["real_curves.py", *arguments])
    real_curves.main()
    record = json.loads((tmp_path / "record.json").read_text())
    assert record == {run: {"coder_reward": [1]} for run in ("arm-seed1", "arm-seed2")}
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    axes = real_curves.picture(record).axes
    assert [len(axis.lines) for axis in axes] == [2] * len(real_curves.SHOWN)
    assert {line.get_color() for axis in axes for line in axis.lines} == {"C0"}


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


CURVES = json.loads((ROOT / "docs" / "real-curves.json").read_text())
COLUMNS = (
    "code-a1-seed1", "code-a1-seed2", "preset-seed0", "preset-seed1", "shared-seed0", "shared-seed1", "mixed-seed0",
    "mixed-seed1", "frozen-seed0", "self-play-seed0",
)  # fmt: skip
"""The page's columns of first and last rounds."""


@pytest.mark.parametrize(
    ("measure", "said"),
    [
        ("coder_reward", "coder's reward"),
        ("valid_tests", "tests that are valid"),
        ("killing_tests", "tests that kill"),
        ("trivial_tests", "tests that tell no program from another"),
        ("test_diversity", "different tests in a group"),
        ("unreadable", "suites that cannot be read"),
        ("vacuous_tests", "vacuous tests"),
    ],
)
def test_the_page_has_the_first_and_the_last_rounds_of_the_record(measure: str, said: str) -> None:
    ends = [(np.mean(CURVES[run][measure][:3]), np.mean(CURVES[run][measure][-3:])) for run in COLUMNS]
    row = " | ".join(f"{first:.2f}, {last:.2f}" for first, last in ends)
    assert f"\n| {said} | {row} |\n" in what_the_pages_say()


@pytest.mark.parametrize(
    ("arm", "rounds"),
    [
        ("code-a1", 15),
        ("golden", 15),
        ("golden", 50),
        ("derived", 45),
        ("shared", 28),
        ("union", 28),
        ("mixed", 28),
        ("preset", 28),
        ("golden-preset", 28),
    ],
)
def test_the_page_has_the_tokens_of_the_record(arm: str, rounds: int) -> None:
    runs = [CURVES[name] for name in CURVES if real_curves.SEED.sub("", name) == arm]
    spent = {
        kind: ", ".join(f"{sum(thousands(run, kind, rounds)):.0f}" for run in runs) for kind in ("tokens", "learnt")
    }
    name = {
        "code-a1": "Code-A1",
        "golden": "golden tests",
        "derived": "golden tests derived from the reference",
        "shared": "Code-A1 with shared tests, on one core",
        "union": "Code-A1 with all suites on all programs, on one core",
        "mixed": "Code-A1 on mixed questions, on one core",
        "preset": "Code-A1, the preset on one core",
        "golden-preset": "golden tests, the preset on one core",
    }[arm]
    assert f"| {spent['tokens']}; {spent['learnt']} |" in cells(what_the_pages_say(), name, str(rounds))


def thousands(run: Any, kind: str, rounds: int) -> list[float]:
    """Tokens of either seat, decoded or learnt."""
    names = [f"{seat}_{'learnt_' * (kind == 'learnt')}tokens" for seat in ("coder", "tester")]
    return [sum(value or 0 for value in run.get(name, [])[:rounds]) / 1000 for name in names]


def test_the_page_has_what_golden_tests_cost_at_about_equal_compute() -> None:
    """Tokens of golden tests at the prices of Code-A1's coder with seed 1: its seconds of sampling and of learning."""
    code_a1, golden = CURVES["preset-seed1"], CURVES["golden-equal-seed1"]
    prices = {"coder_tokens": 1232, "coder_learnt_tokens": 1518}
    cost = sum(
        seconds * sum(value or 0 for value in golden[name]) / sum(value or 0 for value in code_a1[name])
        for name, seconds in prices.items()
    )
    silent = sum(not value for value in golden["coder_learnt_tokens"])
    page = " ".join(what_the_pages_say().split())
    assert f"their tokens cost {cost:,.0f} seconds, {cost / 5430:.2f}".replace(" 0.", " .") in page
    assert f"in {silent} of the {len(golden['coder_tokens'])} rounds no group" in page
    ends = [f"{np.mean(golden['coder_reward'][part]):.2f}".lstrip("0") for part in (slice(3), slice(-3, None))]
    assert f"the reward rose from {ends[0]} to {ends[1]}" in page
    earlier = CURVES["golden-preset-seed0"]
    spent = [
        ", ".join(f"{sum(value or 0 for value in run[name]) / 1000:.0f}" for run in (earlier, golden))
        for name in prices
    ]
    assert f"| {spent[0]}; {spent[1]} |" in cells(what_the_pages_say(), *CODERS["golden-equal"])
