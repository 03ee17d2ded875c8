"""Every option of the game is documented with its default, and reachable from YAML and, where it says so, a flag."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from codea1_env.cli import main
from codea1_env.configuration.presets import SMOKE, preset_from_dict
from codea1_env.mistake_book.policies import BookConfig
from codea1_env.rewards.code_a1 import RewardConfig

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "training.md").read_text()


@pytest.mark.parametrize("config", [RewardConfig(), BookConfig()], ids=["rewards", "book"])
def test_every_field_has_a_row_with_its_default_and_an_existing_test(config: RewardConfig | BookConfig) -> None:
    for field in dataclasses.fields(config):
        (row,) = re.findall(rf"^\| `{field.name}` \| `.*$", TEXT, re.MULTILINE)
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[1] == f"`{getattr(config, field.name)!r}`"
        assert (ROOT / cells[-1].strip("`")).exists(), row


def test_every_flag_of_the_table_is_in_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["score", "--help"])
    shown = capsys.readouterr().out
    flags = re.findall(r"^\| `\w+` \| `[^|]*` \| `(--[a-z-]+)` \|", TEXT, re.MULTILINE)
    assert {"--tester-reward", "--coder-tests", "--oracle", "--alpha"} <= set(flags)
    assert all(flag in shown for flag in flags)


def test_yaml_reaches_every_option() -> None:
    yaml = pytest.importorskip("yaml")
    (line,) = re.findall(r"`(book: \{\w.*?\})`", TEXT)
    text = f"{line}\nreward: {{tester_reward: utrl, utrl_tau: 4, coder_tests: union, oracle: majority}}\n"
    preset = preset_from_dict(yaml.safe_load(text), SMOKE)
    assert preset.book == BookConfig(capacity=1000, retire=False, admission=0.3, replay="sampled")
    assert preset.reward == RewardConfig(
        suite_size=4, tester_reward="utrl", utrl_tau=4, coder_tests="union", oracle="majority"
    )
    assert preset_from_dict(preset.to_dict(), SMOKE) == preset


def test_the_flags_reach_the_scores(tmp_path: Path) -> None:
    record = {
        "problem_id": "p", "question": "Twice x.", "entry_point": "f",
        "reference_solution": "def f(x):\n    return 2*x",
        "golden_tests": [["f(3)", "6"]], "codes": ["def f(x):\n    return x*x", "def f(x):\n    return x+x"],
        "suites": [["assert f(3) == 6\nassert f(2) == 4"], []],
    }  # fmt: skip
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps(record) + "\n" + json.dumps({**record, "golden_tests": []}) + "\n")

    def scored(*flags: str, status: int = 0) -> list[dict]:
        out = tmp_path / "out.jsonl"
        assert main(["score", str(source), "-o", str(out), "--suite-size", "2", *flags]) == status
        return [json.loads(line) for line in out.read_text().splitlines()]

    assert [code["reward"] for code in scored()[0]["codes"]] == [0.5, 0.0]
    assert [code["reward"] for code in scored("--coder-tests", "union")[0]["codes"]] == [0.5, 1.0]
    # One right and one wrong solution: f(3) tells the wrong one, f(2) does not. The second line has no golden tests.
    first, second = scored("--tester-reward", "cure", status=1)
    assert first["suites"][0][0]["reward"] == 0.5
    assert "must have golden tests" in second["error"]
    first, second = scored("--oracle", "golden", status=1)
    assert [test["status"] for test in first["suites"][0][0]["tests"]] == ["kept", "raises"]
    assert [test["status"] for test in scored("--oracle", "majority")[0]["suites"][0][0]["tests"]] == ["raises", "kept"]
