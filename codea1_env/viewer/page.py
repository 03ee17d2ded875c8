"""Puts the page together: its sources as they are, the games packed, and a policy that lets nothing else in. And duels
in a notebook: `codea1_env.view("games.jsonl")` as the last line of a cell shows the page of `codea1 view`.

The policy allows the scripts and style sheets of this folder by their hashes, and nothing else: no other script, no
network, no frame, no form, and no text that becomes markup (trusted types). The games are base64 of gzip in a
`template`, which no browser reads as markup. Does not check the games.

In a notebook the page is shown in a frame of its own that may run the page's scripts and nothing else; it cannot reach
the notebook. Does not execute anything and writes no file unless asked to.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import os
from collections.abc import Sequence
from pathlib import Path

from codea1_env import __version__
from codea1_env.checks import require, require_whole
from codea1_env.errors import ConfigurationError
from codea1_env.viewer.accounts import accounted
from codea1_env.viewer.games import Json
from codea1_env.viewer.sources import Found, read_games
from codea1_env.whole_files import write_whole

_FOLDER = Path(__file__).parent
SCRIPTS = ("text", "python", "prose", "rows", "data", "filters", "list", "matrix", "why", "detail", "book", "main")
"""In this order: each uses what stands before it."""
STYLES = ("theme", "layout", "list", "duel", "book")
_CLOSING = ("</script", "</style", "<!--")


def make_page(title: str, games: Sequence[Json], note: str = "", book: Json | None = None) -> bytes:
    """The page in UTF-8. The same games give the same bytes. `note`: of what is not on it. `book`: of `sources.py`."""
    content: Json = {"title": title, "note": note, "version": __version__, "games": [accounted(game) for game in games]}
    content |= {"book": book} if book else {}
    plain = json.dumps(content, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    packed = base64.b64encode(gzip.compress(plain, compresslevel=6, mtime=0)).decode("ascii")
    scripts = [_source(f"{name}.js") for name in SCRIPTS]
    styles = [_source(f"{name}.css") for name in STYLES]
    parts = {
        "policy": _policy(scripts, styles),
        "title": html.escape("".join(c if c.isprintable() else " " for c in title)),
        "styles": "\n".join(f"<style>{text}</style>" for text in styles),
        "scripts": "\n".join(f"<script>{text}</script>" for text in scripts),
        "packed": packed,
    }
    head, *rest = (_FOLDER / "page.html").read_text(encoding="utf-8").split("{{")
    pieces = [head]
    for piece in rest:  # what is put in is never looked at for places to put something in
        name, after = piece.split("}}", 1)
        pieces += [parts[name], after]
    return "".join(pieces).encode("utf-8")


def _source(name: str) -> str:
    text = (_FOLDER / name).read_text(encoding="utf-8")
    assert not any(mark in text.lower() for mark in _CLOSING), f"{name} would end its own element"
    return text


def _policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, scripts))}",
            f"style-src {' '.join(map(_hash, styles))}",
            "connect-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


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
    require(isinstance(path, str | os.PathLike), "path", "be the path of a file or of a run's directory", path)
    require_whole("limit", limit)
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
