"""An episode for human eyes: as plain text, as a picture and as a self-contained HTML page.

This module does not judge or score; it shows what the score says. Every text that a player wrote is escaped in HTML.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

import gymnasium

from codea1_env.arena.match import MatchScore
from codea1_env.envs.pictures import Picture, picture
from codea1_env.problems.problem import Problem
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
        lines += ["", "TESTS"]
        rows = _rows(score)
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
        rows = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in _rows(score))
        parts.append(f"<h2>Tests</h2><table><tr>{heads}</tr>{rows}</table><p>{html.escape(_rewards(score))}</p>")
    title = html.escape(problem.problem_id)
    head = f'<head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style></head>'
    return printable(f'<!doctype html><html lang="en">{head}<body>{"".join(parts)}</body></html>')


def _rows(score: MatchScore) -> list[tuple[str, str, str, str]]:
    """One row of `_COLUMNS` for each assert of the suite, then one for each replayed test."""
    duel = score.suites[0][0].duel
    rows = [
        (
            f"{test.status}{f' ({test.reason})' if test.reason else ''}",
            str(test.verdict or "-"),
            test.source,
            test.expected if test.expected is not None and test.expected != test.stated else "",
        )
        for test in duel.tests
    ]
    return rows + [("replayed", str(replay.verdict or "-"), str(replay.case), "") for replay in duel.replays]


def _rewards(score: MatchScore) -> str:
    return f"coder's reward {score.codes[0].reward:.3f}, tester's reward {score.suites[0][0].reward:.3f}"
