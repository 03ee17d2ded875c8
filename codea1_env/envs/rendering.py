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
