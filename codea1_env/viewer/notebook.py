"""Duels in a notebook: `codea1_env.view("games.jsonl")` as the last line of a cell shows the page of `codea1 view`.

The page is shown in a frame of its own that may run the page's scripts and nothing else; it cannot reach the notebook.
Does not execute anything and writes no file unless asked to.
"""

from __future__ import annotations

import html
import os
from pathlib import Path

from codea1_env.errors import ConfigurationError
from codea1_env.viewer.page import make_page
from codea1_env.viewer.sources import Found, read_games
from codea1_env.whole_files import write_whole

DEFAULT_LIMIT = 20_000
"""Most duels on a page."""
_HEIGHT = 720
"""Of the frame, in pixels."""


class Page:
    """A page of duels. Notebooks show it; `save` writes it for a browser."""

    def __init__(self, content: bytes, found: Found) -> None:
        self.content = content
        """The page in UTF-8."""
        self.found = found
        """What is on it."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, whole or not at all."""
        write_whole(path, self.content)
        return Path(path)

    def _repr_html_(self) -> str:
        page = html.escape(self.content.decode("utf-8"))
        style = f"width:100%;height:{_HEIGHT}px;border:1px solid #8888;border-radius:8px"
        return f'<iframe srcdoc="{page}" sandbox="allow-scripts" title="Duels" style="{style}"></iframe>'

    def __repr__(self) -> str:
        return f"Page({self.found.duels} duels, {len(self.content) / 1e6:.1f} MB)"


def view(path: str | os.PathLike[str], *, limit: int = DEFAULT_LIMIT) -> Page:
    """The duels of a recording, of the output of `codea1 score` or of a run's directory, at most about `limit`.

    Raises ConfigurationError for a path that holds no duels, and FormatError with the line that cannot be read.
    """
    if not isinstance(path, str | os.PathLike):
        raise ConfigurationError(f"path must be the path of a file or of a run's directory, got {path!r:.200}")
    if type(limit) is not int or limit < 1:
        raise ConfigurationError(f"limit must be a whole number of at least 1, got {limit!r}")
    source = Path(path)
    sample = read_games(source, limit)
    return page_of(source.resolve().name, sample)


def page_of(title: str, sample: Found) -> Page:
    """What was found, as a page. Raises ConfigurationError where that is nothing."""
    if not sample.games and not (sample.book and sample.book["questions"]):
        rest = f"; {left_out(sample)}" if left_out(sample) else ""
        raise ConfigurationError(f"the input must hold at least one duel, got none in {title}{rest}")
    return Page(make_page(title, sample.games, left_out(sample), sample.book), sample)


def left_out(sample: Found) -> str:
    """What is not on the page; empty if everything is."""
    parts = [f"one game in {sample.stride} of {sample.seen} duels"] if sample.stride > 1 else []
    parts += [f"{sample.failed} lines could not be scored"] if sample.failed else []
    return "; ".join(parts)
