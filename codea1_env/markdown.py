"""Tables in Markdown, as cards, reports and studies print them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A line for the head, the rule, and a line for every row; a cell that is empty takes no room."""
    return "\n".join([_line(head), "|" + "---|" * len(head), *map(_line, rows)])


def _line(cells: Sequence[object]) -> str:
    return "".join(f"| {cell} " if cell != "" else "| " for cell in cells) + "|"
