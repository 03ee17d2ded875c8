"""Cards in the hub's form: what a run leaves beside a model, and of a problem file."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml

from codea1_env.cli import main
from codea1_env.cli.data.card import data_card
from codea1_env.configuration.presets import load_preset
from codea1_env.problems import Problem, TestCase, bundled_problems
from codea1_env.problems.jsonl import write_problems
from codea1_env.training.run.model_card import model_card, write_cards
from codea1_env.training.run.results import ResultRow

ROWS = [
    ResultRow("coder: hidden pass rate", 0.25, 0.5, 0.125, 0.375),
    ResultRow("coder: executes", 0.0, 0.0, 0.0, 0.0),
    ResultRow("tester: valid tests", 0.5, 0.25, -0.5, 0.0),
]


def configuration(preset: str = "1.5b", **model: str) -> dict[str, Any]:
    told = load_preset(preset).to_dict()
    told["model"] |= model
    return {
        "recipe": "code-a1",
        "seed": 7,
        "preset": told,
        "base": "0123456789abcdef" * 4,
        "data": {"train": "a" * 64, "held_out": "b" * 64},
    }


def parts(card: str) -> tuple[dict[str, Any], str]:
    """Front matter and text."""
    _, head, text = card.split("---\n", 2)
    return yaml.safe_load(head), text


@pytest.mark.parametrize(("seat", "role"), [("coder", "coder"), ("tester_1", "tester"), ("player", "player")])
def test_a_models_card_says_what_the_run_knows_and_no_more(seat: str, role: str) -> None:
    head, text = parts(model_card(configuration(), seat, ROWS, is_adapter=False))
    assert head == {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "base_model": "Qwen/Qwen2.5-Coder-1.5B-Instruct",
        "tags": ["code", "reinforcement-learning", "grpo", "code-a1", role],
    }
    assert ("| coder: hidden pass rate | 0.250 | 0.500 | +0.250 [+0.125, +0.375] |" in text) == (role != "tester")
    assert ("| tester: valid tests | 0.500 | 0.250 | -0.250 [-0.500, +0.000] |" in text) == (role != "coder")
    assert "executes" not in text, "it was 0 before and after"
    for said in ("code-a1, 1.5b, 7", "| rounds | 111 |", "0123456789abcdef |", "all weights", "arXiv:2603.15611"):
        assert said in text
    assert "None" not in text


def test_a_models_card_names_a_base_on_the_hub_alone_and_tells_adapters_from_weights() -> None:
    head, text = parts(model_card(configuration("0.5b", pretrained="/models/mine"), "coder", [], is_adapter=True))
    assert "base_model" not in head
    assert "/models/mine" not in text, "a place on this machine is nobody else's"
    assert head["library_name"] == "peft"
    assert "| what is trained | adapters |" in text
    assert "It was not measured" in text
    head, text = parts(model_card(configuration("smoke"), "coder", [], is_adapter=False))
    assert "base_model" not in head
    assert "a model made for this run" in text


def test_cards_lie_beside_final_models_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "coder" / "final").mkdir(parents=True)
    write_cards(tmp_path, configuration(), ["coder", "tester"], ROWS)
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")] == ["coder/final/README.md"]


def test_a_problem_files_card_counts_what_it_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = Problem(
        "a", "q", "f", reference_solution="def f(x): return x", golden_tests=(TestCase("f(1)", "1"),),
        mutants=("def f(x): return 0",), source="me/set", license="CC-BY-4.0", difficulty="hard",
    )  # fmt: skip
    second = dataclasses.replace(first, problem_id="b", reference_solution=None, mutants=(), source="me/other")
    file, output = tmp_path / "mine.jsonl", tmp_path / "README.md"
    write_problems(file, [first, second])
    assert main(["data", "card", str(file), "-o", str(output)]) == 0
    head, text = parts(output.read_text())
    assert head["license"] == "cc-by-4.0"
    assert head["size_categories"] == ["n<1K"]
    assert head["configs"] == [{"config_name": "default", "data_files": "mine.jsonl"}]
    for row in (
        "problems | 2", "from | me/set 1, me/other 1", "licence | CC-BY-4.0", "kinds | function", "difficulty | hard",
        "golden tests | 2", "hidden tests | 0", "wrong programs (`mutants`) | 1", "problems with a reference | 1",
    ):  # fmt: skip
        assert f"| {row} |" in text
    capsys.readouterr()
    assert main(["data", "card", str(file)]) == 0
    assert capsys.readouterr().out == output.read_text()
    assert main(["data", "card", str(file), "-o", str(file)]) == 2


def test_a_card_claims_no_licence_that_not_all_problems_have(tmp_path: Path) -> None:
    one = bundled_problems()[0]
    for licences in (("", ""), ("MIT", ""), ("MIT", "CC-BY-4.0"), ("(see the repository)",) * 2):
        problems = [dataclasses.replace(one, problem_id=str(n), license=name) for n, name in enumerate(licences)]
        assert parts(data_card(problems, "f.jsonl"))[0]["license"] == "other"
    (tmp_path / "empty.jsonl").write_text("")
    assert main(["data", "card", str(tmp_path / "empty.jsonl")]) == 2
