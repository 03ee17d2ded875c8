"""`codea1` in a real terminal: it fits narrow and wide ones, its colours say what its words say, Ctrl-C is one line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyte", reason="pyte is not installed: make test-browser")

from real_terminal import Terminal

pytestmark = pytest.mark.browser
GAME = ("play", "--problem", "bundled/largest-drop", "--seed", "4")
SUITE = """assert largest_drop([5, 3, 1]) == 4
assert largest_drop([9, 2]) == 7
assert largest_drop([1, 2]) == 1
largest_drop([3])
.
"""
SIZES = ((39, 80, 360), (80, 48, 768), (120, 44, 1440))
"""Columns, lines, and the pixels of a window that has room for so many."""


@pytest.mark.parametrize(("columns", "lines", "width"), SIZES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_game_fits_the_terminal_and_its_colours_agree_with_its_words(
    columns: int, lines: int, width: int, theme: str, browser: Any, tmp_path: Path
) -> None:
    with Terminal(GAME, columns, lines) as terminal:
        terminal.wait_for("Ctrl-D:")
        for row in terminal.text().splitlines():
            assert not row.endswith(("pric", "large")), "prose breaks between words"
        terminal.type(SUITE)
        terminal.wait_for_end()
        assert terminal.status == 0
        assert terminal.colour_of("the program FAILS") == "green", "that is what a tester wants"
        assert terminal.colour_of("the program passes") == "red"
        assert terminal.colour_of("states a wrong value; right is 0") == "brown"
        assert "R_T, yours: 0.3" in terminal.text()
        page = browser.new_page(viewport={"width": width, "height": 600})
        page.set_content(terminal.page(theme))
        shots = Path(os.environ.get("CODEA1_SCREENSHOTS", tmp_path))
        page.screenshot(path=shots / f"terminal-{width}-{theme}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.close()


def test_ctrl_c_in_a_game_is_one_line_and_exit_code_130() -> None:
    with Terminal(GAME, 80, 48) as terminal:
        terminal.wait_for("Ctrl-D:")
        terminal.type("assert largest_drop([1]) == 0\n\x03")
        terminal.wait_for_end()
        assert terminal.status == 130
        assert "codea1: interrupted" in terminal.text()
        assert "Traceback" not in terminal.text()
