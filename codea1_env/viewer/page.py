"""Puts the page together: its sources as they are, the games packed, and a policy that lets nothing else in.

The policy allows the scripts and style sheets of this folder by their hashes, and nothing else: no other script, no
network, no frame, no form, and no text that becomes markup (trusted types). The games are base64 of gzip in a
`template`, which no browser reads as markup. Does not check the games.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from collections.abc import Sequence
from pathlib import Path

from codea1_env import __version__
from codea1_env.viewer.accounts import accounted
from codea1_env.viewer.games import Json

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
