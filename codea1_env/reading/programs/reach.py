"""What the top-level statements of a program bind and need, and so which of them a name reaches.

    needed_by(pieces, ["f"])    `def f`, what it calls, the imports and tables of both, and what fills those tables
    joined(blocks, program)     a program behind what it uses and earlier blocks of its answer define
    trimmed_program(p, "f")     a program reduced to `f` and what that needs, as EvalPlus does before it runs answers

Names are resolved as Python's compiler does, scope by scope. A name that a string or `globals()` makes is not seen.
Nothing is executed.
"""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from symtable import SymbolTable

from codea1_env.reading import parsing
from codea1_env.reading.inlining import CHANGING
from codea1_env.reading.parsing import SourceText, Unparsable, end_line, names_in, normalised, parse, parses
from codea1_env.reading.wide.statements import DEFINITIONS, is_main

_BUILTINS = frozenset(vars(builtins)) | {"__name__", "__file__", "__doc__"}
_SETTINGS = frozenset(("getcontext", "seed", "set_int_max_str_digits", "setrecursionlimit"))
"""Functions whose calls change how everything runs that follows."""
_CUTS = 8
"""Lines that are looked for in a statement that does not parse, from each of which on it is left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """One top-level statement."""

    text: str
    """With the comments before it."""
    node: ast.stmt
    binds: frozenset[str]
    """Names that have another value behind it: bound, or changed in place."""
    needs: frozenset[str]
    """Names of the module that it, or what it defines, uses."""
    tells: frozenset[str]
    """Names of its bases and decorators, to which it may tell of itself what it defines."""


def pieces_of(source: str, max_characters: int = parsing.MAX_CHARACTERS) -> list[Piece]:
    """The statements of a program in order. Raises Unparsable."""
    body = parse(source, max_characters).body
    lines, exact = normalised(source).split("\n"), SourceText(source)
    pieces = []
    end = 0
    for place, node in enumerate(body):
        start, end = end, end_line(node)
        is_shared = node.lineno <= start or (place + 1 < len(body) and body[place + 1].lineno == end)
        pieces.append(_piece(exact.of(node) if is_shared else "\n".join(lines[start:end]), node))
    return pieces


def _piece(text: str, node: ast.stmt) -> Piece:
    scopes = parsing.scopes_of(text)
    symbols = scopes.get_symbols()
    inner = list(_globals(scopes))
    bound = {each.get_name() for each in symbols if each.is_assigned() or each.is_imported()}
    used = {each.get_name() for each in symbols if each.is_referenced()} | {name for name, _ in inner}
    if isinstance(node, ast.For):  # a loop has its own
        used -= {*names_in(node.target)}
    changed = () if isinstance(node, DEFINITIONS) else _changed(node)
    binds = frozenset((*bound, *changed, *(name for name, is_bound in inner if is_bound)))
    asked = [*getattr(node, "bases", ()), *getattr(node, "decorator_list", ())]
    tells = frozenset(names_in(*asked))
    return Piece(text, node, binds, frozenset(used), tells)


def needed_by(pieces: Sequence[Piece], names: Collection[str]) -> list[Piece]:
    """Those pieces, in order, that bind the names or change them, and all that these need in turn. What tells a base or
    a decorator of itself changes that, and what that uses, where the pieces define these."""
    binders, told, telling = (defaultdict[str, list[Piece]](list) for _ in range(3))
    for piece in pieces:
        for name in piece.binds:
            binders[name].append(piece)
        for name in piece.tells:
            telling[name].append(piece)
    for name, piece in {each.node.name: each for each in pieces if isinstance(each.node, DEFINITIONS)}.items():
        for used in {name, *piece.needs} if name in telling else ():
            told[used].append(piece)
    waiting, wanted, kept = list(names), set(names), set[Piece]()
    while waiting:
        name = waiting.pop()
        tellers = [each for piece in told.pop(name, ()) for each in telling.pop(piece.node.name, ())]  # type: ignore[attr-defined]
        for piece in (*binders[name], *tellers):
            if piece not in kept:
                kept.add(piece)
                fresh = piece.needs - wanted
                wanted |= fresh
                waiting += fresh
    return [piece for piece in pieces if piece in kept]


def joined(before: Sequence[str], program: str) -> str:
    """A program with what it uses, does not bind itself, and only earlier blocks of its answer define, put before it.
    Of those blocks nothing else is taken: no example and no assert."""
    try:
        own = pieces_of(program)
    except Unparsable:
        return program
    bound = frozenset[str]().union(*(piece.binds for piece in own))
    missing = frozenset[str]().union(*(piece.needs for piece in own)) - bound - _BUILTINS
    earlier = [piece for block in before for piece in _definitions_of(block)] if missing else []
    needed = needed_by(earlier, missing)
    if not needed:
        return program
    lines = normalised(program).split("\n")
    futures = [end_line(each.node) for each in own if getattr(each.node, "module", "") == "__future__"]
    first = max(futures, default=0)  # which must stay the first
    return "\n".join([*lines[:first], *(piece.text.strip("\n") for piece in needed), "", "", *lines[first:]])


def _definitions_of(block: str) -> list[Piece]:
    """The statements of a block that define something; none where it does not parse."""
    try:
        return [piece for piece in pieces_of(block) if not isinstance(piece.node, ast.Expr | ast.Assert | ast.Delete)]
    except Unparsable:
        return []


def _is_setting(node: ast.stmt) -> bool:
    """Whether a statement sets how everything runs: `sys.setrecursionlimit(10**6)`, `getcontext().prec = 50`."""
    if not isinstance(node, ast.Expr | ast.Assign):
        return False
    where: list[ast.AST] = [node.value] if isinstance(node, ast.Expr) else list(node.targets)
    calls = [each.func for top in where for each in ast.walk(top) if isinstance(each, ast.Call)]
    return any((getattr(each, "attr", "") or getattr(each, "id", "")) in _SETTINGS for each in calls)


def _globals(scopes: SymbolTable) -> Iterator[tuple[str, bool]]:
    """Names of the module that inner scopes use, and whether they bind them."""
    waiting = list(scopes.get_children())
    while waiting:
        scope = waiting.pop()
        waiting += scope.get_children()
        for symbol in scope.get_symbols():
            if symbol.is_global():
                yield symbol.get_name(), symbol.is_declared_global() and symbol.is_assigned()


def _changed(statement: ast.stmt) -> Iterator[str]:
    """Names whose objects a statement changes: `x[0] = 1`, `x.y = 1`, `del x[0]`, `x.append(1)`."""
    for node in ast.walk(statement):
        part: ast.expr | None = None
        if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            part = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
            part = node.func.value
        while isinstance(part, ast.Subscript | ast.Attribute):
            part = part.value
        if isinstance(part, ast.Name):
            yield part.id


def trimmed_program(source: str, entry_point: str) -> str:
    """The reduced program (EvalPlus: `sanitize`); the source as it is where it does not define the entry point, or
    nothing is left out. Takes linear time.

    Kept are imports, definitions, assignments and blocks that the entry point reaches, or that change what it reaches,
    and settings such as the recursion limit. Left out go examples, prompts for input, asserts, a `__main__` block,
    lines that do not parse and what breaks off: so an answer counts for its function alone. EvalPlus drops more:
    blocks, settings, functions without `return`, and second definitions of a name.
    """
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
        return _is_setting(node) or (isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute))
    return not isinstance(node, ast.Assert | ast.Delete | ast.Pass) and not (isinstance(node, ast.If) and is_main(node))


def _is_always_needed(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__" or any(alias.name == "*" for alias in node.names)
    return _is_setting(node)


def _parsable(source: str) -> str:
    """The statements of a program that parse, and of those that do not their first lines, as far as these do."""
    if parses(source):
        return source
    whole = (
        fragment.text if fragment.module is not None else _beginning(fragment.text)
        for fragment in parsing.fragments(source, lambda piece: True)
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
