"""The study: its arms fit every preset, cells run once and go on, what fails is named, numbers repeat."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="the extra `train` is not installed")
pytest.importorskip("scipy", reason="the extra `solve` is not installed")
import study
import study_numbers
import study_report
from study_arms import ARMS, Arm, chosen_arms
from study_cells import Cell, Ended, Running, plan, run_cells, twins_of

from codea1_env.configuration.batches import seat_rows
from codea1_env.errors import ConfigurationError

ROOT = Path(__file__).parents[1]

# A recipe's command line and files, in a tenth of a second: its score is what the arm's `rounds` and the seed make it.
FAKE = """
    import json, os, sys, time, pathlib, yaml
    given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    run = pathlib.Path(given.get("--resume") or given["--output"])
    run.mkdir(parents=True, exist_ok=True)
    (run / "calls.txt").open("a").write(" ".join(sys.argv[1:]) + "\\n")
    if "--resume" not in given:
        rounds = yaml.safe_load(open(given["--config"]))["rounds"]
        processor = {"model": os.environ.get("FAKE_PROCESSOR", "one"), "instructions": "avx2", "torch": "AVX2"}
        starts = [{"code": {"git": "f" * 40, "dirty": False}, "versions": {}, "processor": processor}]
        known = {"seed": int(given["--seed"]), "rounds": rounds, "starts": starts, "base": "b" * 64}
        (run / "config.yaml").write_text(yaml.safe_dump(known))
    known = yaml.safe_load((run / "config.yaml").read_text())
    if known["rounds"] == 13 and "--resume" not in given:
        sys.exit("no luck")
    if known["rounds"] == 99:
        time.sleep(600)
    row = {"name": "coder: hidden pass rate", "trained": known["rounds"] / 100 + known["seed"] / 1000}
    row["trained"] += float(os.environ.get("FAKE_SHIFT", "0"))
    record = {"kind": "round", "seat": "", "round": 1, "coder_reward": 0.5}
    (run / "metrics.jsonl").write_text(json.dumps(record) + "\\n")
    (run / "summary.json").write_text(json.dumps({"rows": [row]}))
"""


@pytest.fixture
def recipe(tmp_path: Path) -> str:
    file = tmp_path / "fake.py"
    file.write_text(textwrap.dedent(FAKE))
    return str(file)


def fake_arms(recipe: str, **rounds: int) -> list[Arm]:
    return [Arm(name, recipe, "a fake", {"rounds": count}) for name, count in rounds.items()]


def run(cells: list[Cell], directory: Path, **options: Any) -> Ended:
    defaults = {"jobs": 2, "budget_s": 60.0, "show": lambda done, running: None}
    return run_cells(cells, directory, **(defaults | options))


def calls(directory: Path, cell: Cell) -> list[str]:
    return (directory / "cells" / cell.name / "run" / "calls.txt").read_text().splitlines()


def test_questions_come_back_as_often_as_the_arms_say() -> None:
    for name, visits in (("code_a1", 2), ("few_questions", 16)):
        preset = Cell("bands", next(arm for arm in ARMS if arm.name == name), 0).resolved()
        assert preset.rounds * preset.round.questions / preset.problems.train == visits


@pytest.mark.parametrize("preset", ["bands", "mini", "smoke"])
def test_every_arm_fits_every_preset_and_runs_a_recipe_that_is_there(preset: str) -> None:
    base = Cell(preset, Arm("", "", ""), 0).resolved()
    for arm in ARMS:
        resolved = Cell(preset, arm, 0).resolved()
        assert (ROOT / arm.recipe).is_file()
        assert (resolved == base) == (not arm.changes or arm.name == f"alpha_{base.reward.alpha}")
        assert (resolved.model, resolved.warm_start, resolved.evaluation) == (
            (base.model, base.warm_start, base.evaluation)
        ), "measured alike"


def test_the_same_run_under_two_names_is_run_once() -> None:
    for preset, alpha in (("bands", "alpha_0.25"), ("mini", "alpha_0.5")):
        twins = twins_of(plan([preset], ARMS, [0, 1], {}))
        found = {name: first for name, first in twins.items() if name != first}
        assert found == {f"{preset}/{alpha}/seed{seed}": f"{preset}/code_a1/seed{seed}" for seed in (0, 1)}


def test_bases_have_warm_starts_of_their_own_and_the_first_is_the_presets() -> None:
    cells = plan(["bands"], chosen_arms(["golden", "static_trained"], None), [0, 1], {"rounds": 9}, bases=2)
    assert [(cell.seed, cell.base) for cell in cells][::3] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [cell.name for cell in cells[3:6:2]] == ["bands/golden/base1-seed0", "bands/static_trained/base1-seed0"]
    assert cells[5].tester() == "bands/code_a1/base1-seed0"
    assert [cell.resolved().warm_start.seed for cell in cells[:6]] == [0, 0, 0, 1, 1, 1]
    assert len({cell.base_key() for cell in cells}) == 2
    assert len(set(twins_of(cells).values())) == len(cells), "another base is another run"
    (moved,) = plan(["bands"], chosen_arms(["golden"], None), [0], {"warm_start": {"seed": 7}})
    assert moved.resolved().warm_start.seed == 7


def test_intervals_are_over_bases_where_there_are_several() -> None:
    """Bases with the means 0.3 and 0.7: 0.5, and a margin of 12.706 * 0.2828 / sqrt(2) = 2.541."""

    def cell(arm: str, base: int, seed: int, hidden: float) -> dict[str, Any]:
        return {"preset": "bands", "arm": arm, "base": base, "seed": seed, "measures": {"hidden": hidden}}

    cells = [cell("golden", 0, 0, 0.2), cell("golden", 0, 1, 0.4), cell("golden", 1, 0, 0.6), cell("golden", 1, 1, 0.8)]
    cells += [cell("code_a1", base, seed, 0.9) for base in (0, 1) for seed in (0, 1)]
    scores = study_report.scores_of(cells)
    text = study_report.as_markdown(scores, ["golden", "code_a1"], {}, {})
    assert "| `golden` | 0.500 [0.000, 1.000] (4) |" in text, "2.541 to either side, and a rate is in [0, 1]"
    assert "| `golden` | +0.400 [-2.141, +2.941] (4) |" in text, "paired by base and seed"
    assert "Student's t over the bases' means" in text


def test_a_cell_says_its_processor_and_its_base_and_a_second_run_whether_it_lies_within(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seeds 0 to 2: 0.700, 0.701, 0.702; a new run is within 0.701 +- 4.303 * 0.001 * sqrt(4/3) = 0.005."""
    file = tmp_path / "mine.yaml"
    file.write_text(f"- {{name: mine, recipe: {recipe}, changes: {{rounds: 70}}, says: my own}}\n")
    command = ["--output", str(tmp_path / "out"), "--presets", "smoke", "--seeds", "3", "--arm-file", str(file)]
    command += ["--arms", "mine"]
    assert study.main(command) == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["cells"][0]["processor"]["model"] == "one"
    assert results["cells"][0]["base_weights"] == "b" * 64
    assert results["provenance"]["processors of the cells"] == "one, avx2, torch AVX2"
    again = [*command, "--again", "smoke/mine/seed0"]
    for shift, processor, ends, said in (
        ("0.004", "two", 0, "differ, on another processor; the hidden pass rate is within [0.696, 0.706]"),
        ("0.007", "two", 1, "differ, on another processor; the hidden pass rate is outside [0.696, 0.706]"),
        ("0.004", "one", 1, "differ, on the same kind of processor"),
        ("0", "two", 0, "the same numbers"),
    ):
        monkeypatch.setenv("FAKE_SHIFT", shift)
        monkeypatch.setenv("FAKE_PROCESSOR", processor)
        capsys.readouterr()
        assert study.main(again) == ends
        shown = capsys.readouterr().out
        assert said in shown
        assert f"then: one, avx2, torch AVX2, base {'b' * 12}" in shown
        assert f"now:  {processor}, avx2" in shown


def test_what_is_cut_off_leaves_whole_seeds() -> None:
    cells = plan(["mini"], chosen_arms(["quick"], None), [0, 1], {})
    assert [cell.seed for cell in cells] == [0] * 3 + [1] * 3


@pytest.mark.parametrize("given", [["--arms", "nope"], ["--seeds", "0"], ["--presets", "mini"]])
def test_quick_takes_no_choice_of_what_it_chooses(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert study.main(["--quick", *given]) == 2
    assert f"--quick must come without {given[0]}, which it chooses, got both" in capsys.readouterr().err


def test_an_arm_brings_the_arm_whose_tester_it_needs() -> None:
    assert [arm.name for arm in chosen_arms(["static_sft"], None)] == ["sft", "static_sft"]
    with pytest.raises(ConfigurationError, match=r"an arm must be one of quick, main, all, base, .* got 'gold'"):
        chosen_arms(["gold"], None)


def test_done_cells_are_not_run_again_and_failed_ones_go_on(recipe: str, tmp_path: Path) -> None:
    cells = plan(["smoke"], fake_arms(recipe, good=40, bad=13), [0, 1], {})
    ended = run(cells, tmp_path / "out")
    assert ended == Ended({c.name: "status 1: no luck" for c in cells if c.arm.name == "bad"}, (), False)
    assert run(cells, tmp_path / "out") == Ended({}, (), False)
    assert [len(calls(tmp_path / "out", cell)) for cell in cells] == [1, 2, 1, 2]
    assert calls(tmp_path / "out", cells[1])[1].startswith("--resume ")


def test_a_cell_waits_for_the_tester_it_needs_and_falls_with_it(recipe: str, tmp_path: Path) -> None:
    good, bad = fake_arms(recipe, good=40, bad=13)
    needy = [Arm(f"after_{arm.name}", recipe, "", {"rounds": 50}, tester_of=arm.name) for arm in (good, bad)]
    cells = plan(["smoke"], [*needy, good, bad], [0], {})
    ended = run(cells, tmp_path / "out", jobs=4)
    assert ended.failures["smoke/after_bad/seed0"] == "the tester that it needs failed: smoke/bad/seed0"
    assert set(ended.failures) == {"smoke/bad/seed0", "smoke/after_bad/seed0"}
    (call,) = calls(tmp_path / "out", cells[0])  # "after_good"
    assert call.endswith(f"--tester {tmp_path / 'out/cells/smoke/good/seed0/run'}")


def test_a_tester_that_is_trained_under_another_name_is_found(recipe: str, tmp_path: Path) -> None:
    one, same = fake_arms(recipe, one=40, same=40)
    needy = Arm("needy", recipe, "", {"rounds": 50}, tester_of="same")
    cells = plan(["smoke"], [one, same, needy], [0], {})
    assert run(cells, tmp_path / "out") == Ended({}, (), False)
    assert calls(tmp_path / "out", cells[2])[0].endswith("smoke/one/seed0/run")
    assert not (tmp_path / "out/cells/smoke/same").exists()


def test_at_the_end_of_the_budget_what_runs_is_stopped_and_nothing_is_a_failure(recipe: str, tmp_path: Path) -> None:
    cells = plan(["smoke"], fake_arms(recipe, endless=99, good=40), [0], {})
    ended = run(cells, tmp_path / "out", jobs=1, budget_s=1.0)
    assert ended == Ended({}, ("smoke/good/seed0", "smoke/endless/seed0"), False)


def test_ctrl_c_stops_what_runs_and_the_next_call_goes_on(recipe: str, tmp_path: Path) -> None:
    def interrupt(done: int, running: Sequence[Running]) -> None:
        if running and running[0].cell.arm.name == "endless":
            raise KeyboardInterrupt

    cells = plan(["smoke"], fake_arms(recipe, good=40, endless=99), [0], {})
    ended = run(cells, tmp_path / "out", jobs=1, show=interrupt)
    assert ended == Ended({}, ("smoke/endless/seed0",), True)
    shown: list[int] = []
    run(cells, tmp_path / "out", budget_s=0.5, show=lambda done, running: shown.append(done))
    assert shown[0] == 1, "the first cell is done already"


def test_a_directory_of_another_study_is_refused(recipe: str, tmp_path: Path) -> None:
    run(plan(["smoke"], fake_arms(recipe, good=40), [0], {}), tmp_path / "out")
    with pytest.raises(ConfigurationError, match=r"got smoke/good/seed0 with other settings"):
        run(plan(["smoke"], fake_arms(recipe, good=41), [0], {}), tmp_path / "out")


def test_the_table_has_means_paired_differences_and_gaps() -> None:
    def cell(arm: str, seed: int, **measures: float) -> dict[str, Any]:
        return {"preset": "bands", "arm": arm, "seed": seed, "measures": measures}

    cells = [cell("golden", 0, hidden=0.2), cell("golden", 1, hidden=0.4)]
    cells += [cell("code_a1", 0, hidden=0.5, valid=0.6), cell("code_a1", 1, hidden=0.8, valid=0.8)]
    scores = study_report.scores_of(cells)
    text = study_report.as_markdown(scores, ["golden", "code_a1"], {"command": "here"}, {"bands/base/seed0": "late"})
    # t of 1 degree of freedom: 12.706; the differences 0.3 and 0.4 have a standard error of 0.05.
    assert "| `golden` | +0.350 [-0.285, +0.985] (2) |" in text
    assert "| `golden` | 0.300 [0.000, 1.000] (2) |" in text
    assert "| `golden` | +0.300 (1) |" in study_report.as_markdown(
        study_report.scores_of([cells[0], cells[2]]), ["golden", "code_a1"], {}, {}
    )
    golden = next(line for line in text.splitlines() if line.startswith("| `golden` | 0.300"))
    assert golden.count("| ") == len(study_report.SHOWN) + 1, "measures that an arm has not are gaps"
    assert "- bands/base/seed0: late" in text
    one = study_report.estimates(study_report.scores_of(cells[:1]))
    assert one["arms"]["bands"]["golden"]["hidden"] == {"value": 0.2, "low": None, "high": None, "runs": 1}
    json.dumps(one, allow_nan=False)


def test_the_record_over_bases_says_where_each_cell_comes_from_and_what_came_out_again() -> None:
    record = json.loads((ROOT / "experiments" / "results" / "study-bases.json").read_text())
    scores = study_report.scores_of(record["cells"])
    for cell in record["cells"]:
        assert all((cell["git"], not cell["dirty"], cell["processor"]["model"], cell["command"])), cell["name"]
        arm = next(arm for arm in ARMS if arm.name == cell["arm"])
        assert cell["name"] == Cell("bands", arm, cell["seed"], base=cell["base"]).name
    assert study_report.column(scores["bands"]["code_a1"], "hidden").keys() >= {(base, 0) for base in range(3)}
    assert len({cell["base_weights"] for cell in record["cells"]}) == len({cell["base"] for cell in record["cells"]})

    first = {cell["name"]: cell for cell in record["cells"]}
    for cell in record["again"]:  # the same numbers, as on another processor
        assert cell["measures"] == first[cell["name"]]["measures"]
        assert cell["processor"]["torch"] != first[cell["name"]]["processor"]["torch"]
    for name in study_report.COMPUTE:
        for arm, runs in scores["bands"].items():
            counts = set(study_report.column(runs, name).values())
            assert name == "tokens" or len(counts) == 1, f"{arm}: every run has the same {name}"


def test_a_run_is_read_for_its_measures_diagnostics_and_way(tmp_path: Path) -> None:
    """By hand: 12 rounds whose reward and groups are their number / 100, so that the last 10 have the mean 0.075."""
    records: list[dict[str, Any]] = [
        {"kind": "round", "seat": "", "round": n, "coder_reward": n / 100, "coder_zero_groups": n / 100}
        | {"effective_alpha": 0.4 if n % 2 else None}
        for n in range(1, 13)
    ]
    records += [{"kind": "seat", "seat": "tester", "round": n, "entropy": 1.0 + n} for n in range(1, 13)]
    looks = [(0, 0.2, None), (25, 0.5, 0.1), (50, 0.4, 0.3)]
    records += [
        {"kind": "evaluation", "seat": "coder", "round": n, "hidden_pass_rate": hidden, "regression_rate": lost}
        for n, hidden, lost in looks
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    rows = [{"name": "coder: hidden pass rate", "trained": 0.7}, {"name": "something else", "trained": 1.0}]
    (tmp_path / "summary.json").write_text(json.dumps({"rows": rows}))
    assert study_numbers.measures_of(tmp_path) == {"hidden": 0.7, "last_reward": pytest.approx(0.075)}
    assert study_numbers.diagnostics_of(tmp_path) == pytest.approx(
        {"effective_alpha": 0.4, "coder_zero_groups": 0.075, "tester_entropy": 8.5, "regressions": 0.3}
    )
    assert study_numbers.curve_of(tmp_path) == {0: 0.2, 25: 0.5, 50: 0.4}


def test_the_compute_of_a_run_counts_seats_that_sample_and_those_that_learn(tmp_path: Path) -> None:
    """By hand, of bands: 64 programs and 256 suites a round, 64 of each are learnt from; two rounds."""
    preset = Cell("bands", Arm("", "", ""), 0).resolved()

    def counted(*seats: tuple[str, float | None]) -> dict[str, float]:
        records = [
            {"kind": "seat", "seat": seat, "round": n, "length": length} for seat, length in seats for n in (1, 2)
        ]
        (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        return study_numbers.compute_of(tmp_path, preset)

    both = counted(("coder", 15.0), ("tester", 10.0))
    assert both == {"programs": 128, "suites": 512, "learnt": 256, "tokens": 128 * 15 + 128 * 10, "steps": 4}
    assert counted(("coder", 15.0), ("tester", None)) == both | {"learnt": 128, "tokens": 128 * 15, "steps": 2}
    assert counted(("coder", 15.0)) == both | {"suites": 0, "learnt": 128, "tokens": 128 * 15, "steps": 2}
    assert counted(("player", 12.5)) == both | {"steps": 2}
    three = counted(("coder", 15.0), ("tester", 10.0), ("tester_1", 10.0))
    assert (three["programs"], three["suites"]) == (128, 1024)
    with (tmp_path / "metrics.jsonl").open("a") as supervised:
        supervised.write('{"kind": "seat", "seat": "tester", "round": 3, "accuracy": 0.5}\n')
    assert study_numbers.compute_of(tmp_path, preset) == {}
    cells = [
        {"preset": "bands", "arm": "code_a1", "base": 0, "seed": seed, "measures": {}, "compute": both}
        for seed in (0, 1)
    ]
    assert "| `code_a1` | 128 | 512 | 256 | 3,200 | 4 | 2 |" in study_report.as_markdown(
        study_report.scores_of(cells), ["code_a1"], {}, {}
    )


def test_the_record_counts_what_the_preset_makes_a_run_of_code_a1_sample_and_learn() -> None:
    preset = Cell("bands", Arm("", "", ""), 0).resolved()
    coder, tester = (seat_rows(preset, seat) for seat in ("coder", "tester"))
    a_round = (coder.sampled, tester.sampled, coder.learnt + tester.learnt, coder.updates + tester.updates)
    cells = json.loads((ROOT / "experiments" / "results" / "study-bases.json").read_text())["cells"]
    counted = [cell["compute"] for cell in cells if cell["arm"] == "code_a1"]
    assert counted
    for compute in counted:
        found = tuple(compute[name] for name in ("programs", "suites", "learnt", "steps"))
        assert found == tuple(preset.rounds * number for number in a_round)


def test_two_arms_are_compared_on_the_places_that_both_have() -> None:
    """Valid tests of alpha 1 minus those of alpha 0, by hand: 0.1 and 0.3 on the two bases that both have."""
    seen = {"alpha_0.0": {0: 0.2, 1: 0.2, 2: 0.9}, "alpha_1.0": {0: 0.3, 1: 0.5}}
    cells = [
        {"preset": "bands", "arm": arm, "base": base, "seed": 0, "measures": {"valid": valid}}
        for arm, values in seen.items()
        for base, valid in values.items()
    ]
    text = study_report.as_markdown(study_report.scores_of(cells), ["alpha_0.0", "alpha_1.0"], {}, {})
    assert "| `alpha_1.0` minus `alpha_0.0` | tester: valid | +0.200 [-1.071, +1.471] (2) |" in text
    assert "inputs that kill | +" not in text, "no run has it"


def test_an_arm_of_ones_own_stands_beside_the_others(recipe: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(f"- {{name: mine, recipe: {recipe}, changes: {{rounds: 70}}, says: my own}}\n")
    command = ["--output", str(tmp_path / "out"), "--presets", "smoke", "--seeds", "2", "--arm-file", str(file)]
    command += ["--arms", "mine"]
    with pytest.raises(ConfigurationError, match=r"an arm must be one of .*got 'mine'"):
        chosen_arms(["mine"], None)
    assert study.main(command) == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [cell["measures"]["hidden"] for cell in results["cells"]] == [0.7, 0.701]
    assert results["provenance"]["git revision of the cells"] == "f" * 12
    assert (tmp_path / "out" / "smoke-hidden.png").stat().st_size > 1_000
    command[3:4] = ["smoke", "bands"]
    assert study.main(command) == 0
    assert study.main([*command, "--again", "smoke/mine/seed1"]) == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: b", "must be a list of arms"),
        ("- {name: base, recipe: X}", "name must be new"),
        ("- {name: ../up, recipe: X}", "name must be new, of letters"),
        ("- {name: mine, recipe: nowhere.py}", "recipe must be a script that is there, got 'nowhere.py'"),
        ("- {name: mine, recipe: X, chnages: {}}", "fields among .*got chnages"),
        ("- {name: mine, recipe: X, tester_of: nobody}", "tester_of must be an arm of the study, got 'nobody'"),
    ],
)
def test_a_bad_arm_file_is_refused_with_must_and_got(content: str, message: str, recipe: str, tmp_path: Path) -> None:
    file = tmp_path / "arms.yaml"
    file.write_text(content.replace("X", recipe))
    with pytest.raises(ConfigurationError, match=message):
        chosen_arms(["base"], file)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--presets", "nowhere"], "--presets must be among"),
        (["--seeds", "0"], "--seeds must be in [1, 1000], got 0"),
        (["--config", "README.md"], "--config must be"),
        (["--bases", "0"], "--bases must be in [1, 1000], got 0"),
        (["--jobs", "0"], "--jobs must be at least 1, got 0"),
        (["--budget-min", "nan"], "--budget-min must be above 0 minutes, got nan"),
        (["--again", "bands/base/seed0"], "--again must be a finished cell of the study, got bands/base/seed0"),
    ],
)
def test_bad_arguments_are_refused_before_anything_runs(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert study.main(["--output", str(tmp_path / "out"), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_closed_pipe_ends_the_list_of_arms_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as nobody:
        monkeypatch.setattr("sys.stdout", nobody)
        assert study.main(["--list-arms"]) == 141
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_real_cell_run_again_gives_the_same_numbers(bases: Path, tmp_path: Path) -> None:
    """The duel and a coder against its finished tester, at smoke size, then the duel once more."""
    command = [sys.executable, "experiments/study.py", "--output", str(tmp_path / "out"), "--presets", "smoke"]
    command += ["--arms", "frozen_trained", "--seeds", "1", "--jobs", "1"]
    environment = os.environ | {"CODEA1_CACHE": str(bases)}
    first = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert first.returncode == 0, first.stderr
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [cell["name"] for cell in results["cells"]] == ["smoke/code_a1/seed0", "smoke/frozen_trained/seed0"]
    command += ["--again", "smoke/code_a1/seed0"]
    again = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "the same numbers" in again.stdout
