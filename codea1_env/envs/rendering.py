"""An episode for human eyes: as plain text, as a picture and as a self-contained HTML page.

This module does not judge or score; it shows what the score says. Every text that a player wrote is escaped in HTML.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Callable, Sequence

import gymnasium
import numpy as np
import numpy.typing as npt

from codea1_env.arena.match import MatchScore
from codea1_env.extras import extra
from codea1_env.problems.problem import Problem
from codea1_env.rewards.duel import Duel
from codea1_env.terminal import printable

_STYLE = (
    "body{font:14px sans-serif;max-width:60em;margin:2em auto}pre{background:#f4f4f4;padding:1em;overflow:auto}"
    "td,th{text-align:left;padding:.2em 1em .2em 0;vertical-align:top;font-family:monospace}"
)
_COLUMNS = ("status", "verdict", "test", "value used")


def rendered(mode: str | None, modes: Sequence[str], text: Callable[[], str]) -> str | Picture | None:
    """An episode's text in one of the modes that every game has: "ansi" gives it, "rgb_array" a picture of it, and
    "human", in which Gymnasium's `render` prints, nothing. `modes`: those of the game."""
    if mode is None:
        gymnasium.logger.warn(f"render() needs a render_mode, one of {tuple(modes)}; got None")
        return None
    if mode == "human":
        print(text())
        return None
    return picture(text()) if mode == "rgb_array" else text()


def plain_text(problem: Problem, phase: str, program: str, score: MatchScore | None) -> str:
    """The episode as lines of text."""
    lines = [f"{problem.problem_id} (phase: {phase})", "", problem.question.rstrip()]
    if program:
        lines += ["", "PROGRAM", program.rstrip()]
    if score is not None:
        for title, rows in _tables(score).items():
            lines += ["", title.upper()]
            width = max((len(row[0]) for row in rows), default=0)
            for status, verdict, test, used in rows:
                lines.append(f"{status:<{width}}  {verdict:<7}  {test}" + (f"    [value used: {used}]" if used else ""))
        lines += ["", _rewards(score)]
    return printable("\n".join(lines))


def html_page(problem: Problem, phase: str, program: str, score: MatchScore | None) -> str:
    """The episode as an HTML page without scripts and without references to other files."""
    parts = [
        f"<h1>{html.escape(problem.problem_id)}</h1><p>phase: {html.escape(phase)}</p>",
        f"<pre>{html.escape(problem.question)}</pre>",
    ]
    if program:
        parts.append(f"<h2>Program</h2><pre>{html.escape(program)}</pre>")
    if score is not None:
        heads = "".join(f"<th>{name}</th>" for name in _COLUMNS)
        for name, table in _tables(score).items():
            rows = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in table)
            parts.append(f"<h2>{name}</h2><table><tr>{heads}</tr>{rows}</table>")
        parts.append(f"<p>{html.escape(_rewards(score))}</p>")
    title = html.escape(problem.problem_id)
    head = f'<head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style></head>'
    return printable(f'<!doctype html><html lang="en">{head}<body>{"".join(parts)}</body></html>')


_Row = tuple[str, str, str, str]


def _tables(score: MatchScore) -> dict[str, list[_Row]]:
    """By title: the tests of every tester's suite; the last one's are followed by the replayed ones."""
    suites = score.suites[0]
    titles = ["Tests"] if len(suites) == 1 else [f"Tests of tester_{number}" for number in range(len(suites))]
    tables = {title: _rows(suite.duel) for title, suite in zip(titles, suites, strict=True)}
    tables[titles[-1]] += [
        ("replayed", str(each.verdict or "-"), str(each.case), "") for each in score.codes[0].replays
    ]
    return tables


def _rows(duel: Duel) -> list[_Row]:
    """One row of `_COLUMNS` for each assert of a suite."""
    return [
        (
            f"{test.status}{f' ({test.reason})' if test.reason else ''}",
            str(test.verdict or "-"),
            test.source,
            test.expected if test.expected is not None and test.expected != test.stated else "",
        )
        for test in duel.tests
    ]


def _rewards(score: MatchScore) -> str:
    refused = f" (may not run: {score.codes[0].refused})" if score.codes[0].refused else ""
    testers = "tester's reward" if len(score.suites[0]) == 1 else "testers' rewards"
    paid = ", ".join(f"{suite.reward:.3f}" for suite in score.suites[0])
    return f"coder's reward {score.codes[0].reward:.3f}{refused}, {testers} {paid}"


COLUMNS = 100
"""Characters in a line."""
LINES = 50
_LETTER = (6, 11)  # pixels, width and height, of Pillow's built-in font; all its letters are as wide
_MARGIN = 10
_SCALE = 2
_INK, _PAPER = 20, 250  # of 255

Picture = npt.NDArray[np.uint8]


def require_pillow() -> None:
    """Raise ImportError that names the extra, when an environment is made and not in the middle of an episode."""
    with extra("video", 'render_mode="rgb_array" needs'):
        import PIL.ImageDraw
        import PIL.ImageFont  # noqa: F401


def picture(text: str) -> Picture:
    """The text in black on white, (height, width, 3). Both sides are even, as video codecs want them."""
    from PIL import Image, ImageDraw, ImageFont

    width, height = (n * size + 2 * _MARGIN for n, size in zip((COLUMNS, LINES), _LETTER, strict=True))
    sheet = Image.new("L", (width, height), _PAPER)
    canvas, font = ImageDraw.Draw(sheet), ImageFont.load_default_imagefont()
    for number, line in enumerate(fitted(text)):
        shown = line.encode("latin-1", "replace").decode("latin-1")
        canvas.text((_MARGIN, _MARGIN + number * _LETTER[1]), shown, fill=_INK, font=font)
    grey = np.asarray(sheet).repeat(_SCALE, axis=0).repeat(_SCALE, axis=1)  # (height, width)
    return np.stack([grey] * 3, axis=2)


def fitted(text: str) -> list[str]:
    """At most LINES lines of at most COLUMNS characters."""
    lines = [
        part
        for line in text.expandtabs(4).split("\n")
        for part in textwrap.wrap(line, COLUMNS, drop_whitespace=False, replace_whitespace=False) or [""]
    ]
    if len(lines) <= LINES:
        return lines
    first, last = LINES // 2, LINES - LINES // 2 - 1
    return [*lines[:first], f"... {len(lines) - first - last} lines are left out here ...", *lines[-last:]]
