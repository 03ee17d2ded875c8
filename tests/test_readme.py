"""The README is short and true: its Python runs, its commands exist, its paths are there."""

import contextlib
import io
import re
import shlex
import struct
from pathlib import Path

import pytest

from codea1_env.cli import main
from codea1_env.configuration.presets import load_preset

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_it_is_read_in_two_minutes() -> None:
    assert len(README.splitlines()) <= 130
    assert len(README.encode()) <= 8_500


def test_its_python_prints_what_it_says() -> None:
    (block,) = BLOCKS
    (said,) = re.findall(r"[Tt]his prints\s+`([^`]+)`:\s+```python", README)
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(block, "README.md", "exec"), {"__name__": "readme"})
    assert shown.getvalue().strip() == said


def test_its_commands_run_as_they_stand_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of `codea1`; recipes and the study have tests that run them."""
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^    codea1 (.*)$", README, re.MULTILINE)
    assert len(commands) >= 2
    for command in commands:
        assert main(shlex.split(command)) == 0, capsys.readouterr().err
    assert (tmp_path / "games.html").is_file()


def test_the_picture_of_the_viewer_has_its_colours() -> None:
    """A picture of few colours loses those of verdicts and seats first, which cover little of it."""
    picture = (ROOT / "docs" / "images" / "viewer-light.png").read_bytes()
    begin = picture.index(b"PLTE")
    (length,) = struct.unpack(">I", picture[begin - 4 : begin])
    colours = {picture[place : place + 3].hex() for place in range(begin + 4, begin + 4 + length, 3)}
    sheet = (ROOT / "codea1_env" / "viewer" / "theme.css").read_text()
    for name in ("ground", "ink", "coder", "tester", "pass", "pass-ground", "fail", "fail-ground", "py-keyword"):
        (light,) = re.findall(rf"--{name}: light-dark\(#(\w{{6}}),", sheet)
        assert light in colours, name


def test_every_make_target_it_names_exists() -> None:
    targets = set(re.findall(r"(?:^    |`)make ([a-z-]+)", README, re.MULTILINE))
    assert {"demo", "test"} <= targets
    makefile = (ROOT / "Makefile").read_text()
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_path_it_names_exists() -> None:
    named = set(re.findall(r"\]\((?!https?:)([^)#]+)", README))
    named |= set(re.findall(r"`((?:agents|baselines|examples|benchmarks|experiments)/[\w./-]*)`", README))
    assert len(named) > 10
    missing = [name for name in named if not (ROOT / name).exists()]
    assert missing == []


def test_every_recipe_command_names_a_recipe_and_a_preset_that_exist() -> None:
    commands = re.findall(r"python ((?:agents|baselines)/\w+\.py) --preset ([\w.]+)", README)
    assert commands
    for recipe, preset in commands:
        assert (ROOT / recipe).exists()
        assert load_preset(preset).name == preset


def test_every_test_that_the_feature_table_names_is_there() -> None:
    table = (ROOT / "docs" / "features.md").read_text()
    for name, rest in re.findall(r"`(test_\w+\.py)((?:::\w+)*)", table):
        source = (ROOT / "tests" / name).read_text()
        for part in rest.split("::")[1:]:
            assert re.search(rf"(def|class) {part}\b", source), f"{name}{rest}"
