"""A program reduced to its entry point and what that needs, as EvalPlus does before it runs answers (`sanitize`).

Kept are imports, definitions, assignments and blocks that the entry point reaches, or that change what it reaches, and
settings such as the recursion limit. Left out go examples, prompts for input, asserts, a `__main__` block, lines that
do not parse and what breaks off: so an answer counts for its function alone. EvalPlus drops more: blocks, settings,
functions without `return`, and second definitions of a name. Nothing is executed. Takes linear time.
"""

from __future__ import annotations

import ast

from codea1_env.reading.parsing import Unparsable, fragments, parse, parses
from codea1_env.reading.programs.reach import is_setting, needed_by, pieces_of
from codea1_env.reading.wide.statements import is_main

_CUTS = 8
"""Lines that are looked for in a statement that does not parse, from each of which on it is left out."""


def trimmed_program(source: str, entry_point: str) -> str:
    """The reduced program; the source as it is where it does not define the entry point, or nothing is left out."""
    try:
        pieces = pieces_of(_parsable(source))
    except Unparsable:
        return source
    left = [piece for piece in pieces if _may_be_needed(piece.node)]
    bound = frozenset[str]().union(*(piece.binds for piece in left))
    names = [name for name in (entry_point.partition("()")[0], "Solution") if name in bound]
    if not names:
        return source
    always = [piece for piece in left if _is_always_needed(piece.node)]
    needed = {*always, *needed_by(left, [names[0], *(name for piece in always for name in piece.needs)])}
    kept = [piece for piece in left if piece in needed]
    if len(kept) == len(pieces) and parses(source):
        return source
    return "\n".join(piece.text for piece in kept).strip("\n") + "\n"


def _may_be_needed(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):  # `table.append(1)`
        return is_setting(node) or (isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute))
    return not isinstance(node, ast.Assert | ast.Delete | ast.Pass) and not (isinstance(node, ast.If) and is_main(node))


def _is_always_needed(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__" or any(alias.name == "*" for alias in node.names)
    return is_setting(node)


def _parsable(source: str) -> str:
    """The statements of a program that parse, and of those that do not their first lines, as far as these do."""
    if parses(source):
        return source
    whole = (
        fragment.text if fragment.module is not None else _beginning(fragment.text)
        for fragment in fragments(source, lambda piece: True)
    )
    return "\n".join(whole)


def _beginning(text: str) -> str:
    """The first lines of a broken statement that parse; empty where none do, or too many are broken."""
    lines = text.split("\n")
    for _ in range(_CUTS):
        try:
            parse("\n".join(lines))
        except Unparsable as error:
            lines = lines[: min(error.line, len(lines)) - 1] if error.line else []
        else:
            return "\n".join(lines)
    return ""
