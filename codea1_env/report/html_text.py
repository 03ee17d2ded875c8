"""Text of strangers in a page: escaped, and without characters that are not printed as themselves. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from codea1_env.terminal import printable

GAP = "\N{NO-BREAK SPACE}"
"""Where a line must not break."""


@dataclass(frozen=True, slots=True)
class Link:
    """A cell of a table that leads somewhere."""

    shown: str
    address: str
    """A relative one, its path quoted; empty: the cell is plain text."""


def text(value: object) -> str:
    """Any value as text of a page, in an element or an attribute with quotes."""
    return GAP.join(escape(printable(part), quote=True) for part in str(value).split(GAP))


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table that scrolls sideways by itself where the window is narrow; the first cell of a row names it."""
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in heads)
    body = "".join(
        f'<tr><th scope="row">{_cell(first)}</th>{"".join(f"<td>{_cell(cell)}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(caption)}"><table><caption>{text(caption)}'
        f"</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(value: object) -> str:
    if isinstance(value, Link):
        return f'<a href="{text(value.address)}">{text(value.shown)}</a>' if value.address else text(value.shown)
    return text(value)


def listed(sentences: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{text(sentence)}</li>" for sentence in sentences) + "</ul>"
