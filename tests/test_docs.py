"""The documentation is true: its Python runs, page by page, and its commands run or exist with the options they name.

A page's blocks run in order in one empty folder. Before a block of commands, `<!-- run -->` runs them, and
`<!-- not run: WHY -->` says why nobody can here. Lines of a `text` block must have been printed by then.
"""

import contextlib
import io
import os
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from codea1_env.cli import main
from codea1_env.configuration.presets import load_preset, preset_names
from codea1_env.players.prompts import find_prompts

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = {str(path.relative_to(ROOT)): path.read_text() for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))}
BLOCK = re.compile(r"(?:^<!-- (run|not run: .+?) -->\n)?^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^    ((?:python|codea1|make|pip) .*)$", re.MULTILINE)
SHARED_OPTIONS = (ROOT / "codea1_env" / "configuration" / "flags.py").read_text()
EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def commands() -> Iterator[tuple[str, str]]:
    """Every command of every page, in blocks of their own or indented."""
    for page, text in PAGES.items():
        for _, language, body in BLOCK.findall(text):
            if language == "sh":
                yield from ((page, line) for line in body.splitlines() if line.strip())
        yield from ((page, line) for line in COMMAND.findall(BLOCK.sub("", text)))


def test_there_are_pages_and_commands() -> None:
    assert len(PAGES) > 15
    assert len(list(commands())) > 30


def test_no_block_is_of_a_kind_that_nobody_checks() -> None:
    kinds = {language for text in PAGES.values() for _, language, _ in BLOCK.findall(text)}
    assert kinds <= {"python", "sh", "yaml", "text", "bibtex"}
    fences = sum(len(re.findall(r"^```", text, re.MULTILINE)) for text in PAGES.values())
    assert fences == 2 * sum(len(BLOCK.findall(text)) for text in PAGES.values())


@pytest.mark.parametrize("page", [page for page in PAGES if page != "README.md" and "```python" in PAGES[page]])
def test_what_a_page_runs_and_shows_is_true(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed: list[str] = []
    for mark, language, body in BLOCK.findall(PAGES[page]):
        if language == "python":
            printed += output_of(body, page, runs=not mark.startswith("not run"))
        elif language == "text":
            assert [line for line in body.splitlines() if line not in printed] == []
        elif mark == "run":
            for line in body.splitlines():
                program, *arguments = shlex.split(line)
                assert program == "codea1", "only the package's own command is run"
                with contextlib.redirect_stdout(io.StringIO()) as shown:
                    assert main(arguments) == 0
                printed += shown.getvalue().splitlines()
    assert printed or "```text" not in PAGES[page]


@pytest.mark.parametrize("page", [page for page in PAGES if "```yaml\nextends" in PAGES[page]])
def test_a_configuration_or_design_on_a_page_can_be_loaded(page: str, tmp_path: Path) -> None:
    blocks = [body for _, language, body in BLOCK.findall(PAGES[page]) if language == "yaml"]
    for block in blocks:
        file = tmp_path / "shown.yaml"
        file.write_text(block)
        is_design = re.findall("^extends: (.+)$", block, re.MULTILINE)[0] not in preset_names()
        assert find_prompts(str(file)) if is_design else load_preset(None, file)


def output_of(block: str, page: str, runs: bool) -> list[str]:
    code = compile(block, page, "exec")
    if not runs:
        return []
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(code, {"__name__": "page"})
    return shown.getvalue().splitlines()


@pytest.mark.parametrize(("page", "command"), list(commands()))
def test_every_command_exists_with_the_options_it_names(page: str, command: str) -> None:
    program, *words = shlex.split(command.split("&&")[0], comments=True)
    if program == "make":
        assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    elif program == "pip":
        assert words[0] == "install"
        assert {"codea1", "codea1-env", "codea1_env"}.isdisjoint(words), "it is on no index"
        for extras in re.findall(r"^'?\.\[(.*)\]'?$", words[-1]):
            assert set(extras.split(",")) <= EXTRAS
    elif program == "codea1":
        check_codea1(words)
    elif program.endswith(".sh"):
        assert os.access(ROOT / program, os.X_OK)
        assert f"$# -eq {len(words)} ]" in (ROOT / program).read_text(), "as many arguments as it takes"
    elif words[0] != "-m":
        assert program == "python"
        check_recipe(ROOT / words[0], words[1:])


def check_codea1(words: list[str]) -> None:
    names = [word for word in words[:2] if re.fullmatch(r"[a-z-]+", word) and not word.startswith("-")]
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), pytest.raises(SystemExit) as ended:
        main([*names, "--help"])
    assert ended.value.code == 0
    assert [option for option in options(words) if not re.search(rf"(?<![\w-]){option}\b", shown.getvalue())] == []


def check_recipe(path: Path, words: list[str]) -> None:
    source = path.read_text()
    assert [option for option in options(words) if f'"{option}"' not in source + SHARED_OPTIONS] == []
    if "--preset" in words:
        assert load_preset(words[words.index("--preset") + 1])


def options(words: list[str]) -> list[str]:
    return [word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)]


def test_every_command_has_its_line_on_the_page_of_the_command_line() -> None:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), pytest.raises(SystemExit):
        main(["--help"])
    commands = re.findall(r"^    ([a-z]+)\b", shown.getvalue(), re.MULTILINE)
    assert len(commands) > 6
    assert [name for name in commands if f"`codea1 {name}" not in PAGES["docs/command-line.md"]] == []


def test_the_loop_that_a_page_shows_is_the_recipes() -> None:
    lines = (ROOT / "agents" / "train_grpo.py").read_text().splitlines()
    recipe = "\n".join(line.removeprefix("    ") for line in lines)  # it stands eight deep there, and four here
    shown = {page: text for page, text in PAGES.items() if "run.rounds()" in text}
    assert "docs/your-algorithm.md" in shown
    for page, text in shown.items():
        loop = re.search(r"^    for index in run\.rounds\(\):.*\n(?:(?:     .*)?\n)+", text, re.MULTILINE)
        assert loop, page
        assert loop[0].rstrip() in recipe, page


def test_the_menu_of_the_site_is_short_and_its_pages_are_there() -> None:
    menu = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    named = re.findall(r"^\s+- (?:[^:\n]+: )?(\S+\.md)$", menu, re.MULTILINE)
    assert 10 < len(named) <= 20
    made = {"first-duel.md"}  # by docs/notebook_page.py
    assert [name for name in named if name not in made and not (DOCS / name).is_file()] == []


def test_pages_are_as_short_as_one_reads() -> None:
    limits = {"docs/results.md": 25_000, "docs/lab-notes.md": 15_000, "CHANGELOG.md": 12_000, "SECURITY.md": 12_000}
    sizes = {name: (ROOT / name).stat().st_size for name in limits}
    assert {name: size for name, size in sizes.items() if size > limits[name]} == {}
    assert sum(path.stat().st_size for path in DOCS.glob("*.md")) <= 260_000


def test_a_command_in_a_sentence_exists_with_the_options_it_names() -> None:
    spans = [
        (page, span)
        for page, text in PAGES.items()
        for span in re.findall(r"`(codea1 [a-z-]+[^`]* --?[a-z][^`]*)`", text)
        if "|" not in span and "..." not in span
    ]
    assert len(spans) > 5
    for _, span in spans:
        check_codea1([word for word in shlex.split(span)[1:] if word.strip("[]")])


def test_a_page_that_is_named_is_linked() -> None:
    """The map of files names files, not pages."""
    unlinked = {
        path.name: names
        for path in DOCS.glob("*.md")
        if path.name != "layout.md" and (names := re.findall(r"`(?:docs/)?([\w-]+\.md)`", path.read_text()))
    }
    assert {page: [name for name in names if (DOCS / name).is_file()] for page, names in unlinked.items()} == {
        page: [] for page in unlinked
    }


def test_every_link_between_pages_leads_somewhere() -> None:
    for path in DOCS.rglob("*.md"):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text()):
            assert (path.parent / target).is_file(), f"{path.name}: {target}"
