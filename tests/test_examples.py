"""The examples run as they stand, and show what they say they show."""

import ast
import contextlib
import io
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from fake_openai import Reply, completion, serving

from codea1_env.problems import bundled_problems

EXAMPLES = Path(__file__).parents[1] / "examples"


def shown(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """What the example prints."""
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


SINGLE = ("verl", "openrlhf", "skyrl", "nemo_gym")


def test_no_example_is_longer_than_60_lines() -> None:
    lengths = {path.name: len(path.read_text().splitlines()) for path in EXAMPLES.glob("*.py")}
    assert len(lengths) >= 2
    assert {name for name, length in lengths.items() if length > 60} == set()


def test_a_framework_that_pays_single_responses_has_an_adapter_and_an_example_of_40_lines_at_most() -> None:
    adapters = [EXAMPLES.parent / "codea1_env" / "adapters" / f"{name}.py" for name in SINGLE]
    examples = [path for name in SINGLE for path in EXAMPLES.glob(f"{name}*")]
    examples += [*EXAMPLES.glob("nemo_gym/**/*.*"), *EXAMPLES.glob("codea1_duel/**/*.*")]
    files = [path for path in (*adapters, *examples) if path.is_file() and path.suffix != ".pyc"]
    assert {name for name in SINGLE if not any(name in str(path) for path in files if path not in adapters)} == set()
    assert [path for path in files if len(path.read_text().splitlines()) > 40] == []
    page = (EXAMPLES.parent / "docs" / "your-framework.md").read_text()
    sections = re.findall(r"^### .*\n\n((?:(?!#).*\n)*)", page, re.MULTILINE)
    assert len(sections) == 5, "verifiers and prime-rl share one"
    assert [section for section in sections if len(section.strip().splitlines()) > 10] == []


def test_the_duel_by_hand_shows_every_status_and_the_book_at_work(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shown("duel_by_hand.py", capsys, monkeypatch)
    first, second = text.split("THE NEXT VISIT")
    for status in ("kept", "wrong_expected", "duplicate", "rejected"):
        assert status in first
    # 3 valid tests of which 1 is passed; R_T = (min(3/8, 1 - 3/8) + 2/8) / 2
    assert "coder's reward 0.333, tester's reward 0.312" in first
    assert "in the Mistake Book now: 2" in first
    assert second.count("replayed") == 1 + 2  # the title and two tests
    assert "coder's reward 1.000" in second
    assert "in the Mistake Book now: 0" in second


@pytest.mark.slow
def test_the_audited_rewards_are_both_fooled(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_process, exit_code = shown("audit_your_reward.py", capsys, monkeypatch).split("NOT CLEAN")[:2]
    assert "equality                 1 of 1" in in_process
    assert "exit code                1 of 1" in exit_code


def test_the_pettingzoo_loop_prints_one_line_for_each_episode_and_repeats_itself(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shown("pettingzoo_loop.py", capsys, monkeypatch)
    assert len(text.splitlines()) == 8
    assert text == shown("pettingzoo_loop.py", capsys, monkeypatch)


def test_the_gymnasium_seat_plays_two_rounds_of_each_question(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shown("gymnasium_seat.py", capsys, monkeypatch)
    assert [line.split(", ")[0].split(": ")[1] for line in text.splitlines()] == ["to repair", "done"] * 3
    assert text == shown("gymnasium_seat.py", capsys, monkeypatch)


def test_trls_trainer_takes_the_reward_in_the_example(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("trl", reason="the extra `train` is not installed")
    assert "rewards/coder_reward/mean" in shown("trl_rewards.py", capsys, monkeypatch)


def test_the_tournament_rates_five_players_and_repeats_itself(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shown("tournament.py", capsys, monkeypatch)
    assert [line.split()[0] for line in text.splitlines()] == [
        "oracle",
        "mutant",
        "golden",
        "random",
        "fuzz",
        "mutant's",
    ]
    assert "24 games won" in text.splitlines()[0]  # the oracle wins all: 3 testers, 8 questions
    assert text == shown("tournament.py", capsys, monkeypatch)


def test_a_server_writes_a_program(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    problem = bundled_problems()[0]
    with serving(lambda *_: Reply(body=completion(f"```python\n{problem.reference_solution}```"))) as server:
        text = shown("server_plays.py", capsys, monkeypatch, server.url, "some-model")
    assert "coder's reward 1.000" in text
    assert server.asked[0]["model"] == "some-model"


@pytest.mark.parametrize("name", ["play_checkpoint.py", "server_plays.py", "trl_environment.py"])
def test_an_example_without_what_it_needs_says_how_to_call_it(name: str, capsys: Any, monkeypatch: Any) -> None:
    with pytest.raises(SystemExit, match=f"usage: python examples/{name} "):
        shown(name, capsys, monkeypatch)


@pytest.mark.parametrize(("name", "package"), [("openenv_client.py", "openenv"), ("verifiers_duel.py", "verifiers")])
def test_an_example_of_a_framework_says_what_to_install_or_how_to_call_it(
    name: str, package: str, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # not installed, whatever is here
    with pytest.raises(SystemExit, match=rf"{name}.* needs .*{package}.*: pip install"):
        shown(name, capsys, monkeypatch)
    monkeypatch.setitem(sys.modules, package, MagicMock())
    monkeypatch.setitem(sys.modules, "verifiers.v1", MagicMock())
    monkeypatch.setitem(sys.modules, "codea1_env.adapters.verifiers", MagicMock())
    with pytest.raises(SystemExit, match=f"usage: python examples/{name} URL"):
        shown(name, capsys, monkeypatch)


@pytest.mark.parametrize(
    "name", ["gymnasium_seat.py", "pettingzoo_loop.py", "server_plays.py", "tournament.py", "trl_rewards.py"]
)
def test_a_newcomers_first_scripts_are_at_most_32_lines(name: str) -> None:
    assert len((EXAMPLES / name).read_text().splitlines()) <= 32


def test_the_scoring_example_shows_a_kill_a_correction_and_a_duplicate(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shown("score_recorded.py", capsys, monkeypatch)
    # suite 1: v = 3, invalid = 1, one failure: (3/8 + 1/8) / 2; program 0 passes 2 of 3
    assert "program 0: executes True, coder's reward 0.667" in text
    assert "tester's reward 0.2500 = validity 0.375 and adversarial 0.125" in text
    assert "clamp(3, 0, 9) -> 3 (stated 4): pass" in text
    assert "duplicate" in text
    assert "assert True -> None: not_a_comparison" in text


def code_cells(name: str = "first_duel.ipynb") -> list[dict[str, Any]]:
    notebook = json.loads((EXAMPLES / name).read_text())
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_the_notebook_prints_what_it_shows_and_ends_with_the_viewer() -> None:
    """Its cells run here as a notebook runs them, in one namespace, without a kernel."""
    names: dict[str, Any] = {"__name__": "notebook"}
    value = None
    for cell in code_cells():
        *statements, last = ast.parse("".join(cell["source"])).body
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(ast.Module(statements, []), "cell", "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
            else:
                exec(compile(ast.Module([last], []), "cell", "exec"), names)
        assert printed.getvalue() == "".join("".join(output["text"]) for output in cell["outputs"])
    assert value is not None
    assert value._repr_html_().startswith("<iframe srcdoc=")
    assert [game["id"] for game in value.found.games] == ["mine/clamp"] * 2
    assert names["rewards"] == {"coder_0": 2 / 3, "tester_0": 1 / 4}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_opens_anywhere(path: Path) -> None:
    """Format 4.5 by its rules: a kernel that everybody has, ids that differ, plain text and plain Python, no magic."""
    notebook = json.loads(path.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in notebook["cells"]:
        assert cell["cell_type"] in ("markdown", "code")
        assert all(isinstance(line, str) for line in cell["source"])
        if cell["cell_type"] == "code":
            assert {"execution_count", "outputs", "metadata"} <= cell.keys()
            ast.parse("".join(cell["source"]))


@pytest.mark.slow
def test_the_training_notebook_trains_the_smoke_preset(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("trl", reason="the extra `train` is not installed")
    monkeypatch.chdir(EXAMPLES)
    names: dict[str, Any] = {"__name__": "notebook"}
    for cell in code_cells("first_training.ipynb"):
        exec("".join(cell["source"]), names)
    assert (names["run"] / "coder" / "final" / "README.md").is_file()
    rounds = [line for line in capsys.readouterr().out.splitlines() if line.startswith("round ")]
    assert [line.partition(":")[0] for line in rounds] == ["round 1", "round 2"]


def test_the_notebook_needs_no_torch() -> None:
    source = "\n".join("".join(cell["source"]) for cell in code_cells())
    program = f"{source}\nimport sys\nassert not {{'torch', 'transformers', 'matplotlib'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
