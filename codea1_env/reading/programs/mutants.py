"""Puts one small bug into a program: all programs that are one change away, in the order of the source.

    relational           < to <=, < to >, == to !=, in to not in, is to is not, and so on
    arithmetic           + to -, // to %, & to |, -x to +x, and so on
    logical              and to or, or to and
    constant             an int plus or minus 1, a float plus 1 or halved, a bool turned round, a text cut or lengthened
    negated-condition    of if, a conditional expression, a comprehension's filter, assert
    return-none          return x to return None
    break-continue       break to continue and back
    zero-iterations      for ... in (), while False
    slice-bound          x[a:b] with one of its bounds off by one; constants are moved by `constant`
    twin-function        min to max, any to all, sorted to list, and back

Works on the syntax tree and runs nothing. Left alone is what would mostly do no harm (annotations, docstrings, what
only the main script runs) and what would mostly make a `while` loop run for ever: its step is only changed by a
constant, its condition only by a bound. Comments are lost.

Does not promise that a mutant behaves otherwise: some changes make no difference, and only running tells
(`evaluation/kill_matrix.py`).
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from codea1_env.reading.parsing import Unparsable, names_in, parse, parses

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_BOUNDS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_ARITHMETIC: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add,),
    ast.FloorDiv: (ast.Mod, ast.Div),
    ast.Div: (ast.FloorDiv,),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitXor: (ast.BitOr,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
}
_TWINS = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}
_SEQUENCES = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A program with one change."""

    operator: str
    """Of those listed above."""
    change: str
    """From what to what, e.g. `< to <=`."""
    line: int
    """In the source that it was made of, from 1."""
    column: int
    """Bytes before the place of the change in that line; of an operator between two operands: the end of the first."""
    source: str
    """The whole program, unparsed from its syntax tree."""

    @property
    def name(self) -> str:
        """Unique among the mutants of one program, texts of one f-string before Python 3.12 apart."""
        return f"{self.operator}: {self.change} (line {self.line}, column {self.column})"


@dataclass(frozen=True, slots=True)
class _Replacement:
    """What one field of one node would become."""

    node: ast.AST
    field: str
    value: Any
    operator: str
    text: str
    at: tuple[int, int]
    """Line from 1, column in bytes."""


def mutants(source: str) -> list[Mutant]:
    """Every mutant of a program, in the order of its source, no program twice; [] where it cannot be read."""
    try:
        body = parse(source).body
        written = [ast.unparse(statement) for statement in body]
        by_source: dict[str, Mutant] = {}
        for place, statement in enumerate(body):
            for change in sorted(_changes(statement), key=lambda change: change.at):
                changed = _applied(change, statement)
                if changed != written[place] and parses(changed):
                    whole = "\n".join([*written[:place], changed, *written[place + 1 :]])
                    by_source.setdefault(whole, Mutant(change.operator, change.text, *change.at, whole))
    except (Unparsable, RecursionError, ValueError):  # ValueError: an int that is too long to be written
        return []
    return list(by_source.values())


def drawn_mutant(source: str, generator: random.Random) -> Mutant | None:
    """One of `mutants(source)`, each change as likely as any other; None where there is none."""
    choices = mutants(source)
    return generator.choice(choices) if choices else None


def _applied(change: _Replacement, statement: ast.stmt) -> str:
    """The statement with the change, which is taken back."""
    before = getattr(change.node, change.field)
    setattr(change.node, change.field, change.value)
    try:
        return ast.unparse(statement)
    finally:
        setattr(change.node, change.field, before)


def _changes(node: ast.AST, in_while: bool = False) -> Iterator[_Replacement]:
    """Every change of the node and of what is below it, in the order of the source."""
    if _is_idle(node):
        return
    yield from _own_changes(node, in_while)
    is_loop = isinstance(node, ast.While)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "format_spec", "type_params", "names"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _changes(child, in_while or is_loop)


def _is_idle(node: ast.AST) -> bool:
    """Changing it changes nothing: a docstring, or what only the main script runs."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.If) and "__name__" in names_in(node.test)


def _own_changes(node: ast.AST, guarded: bool) -> Iterator[_Replacement]:
    """`guarded`: inside a `while` loop, which is to end."""
    match node:
        case ast.Compare():
            yield from _relational(node, guarded)
        case ast.BinOp(left=left, op=op, right=right):
            if not (_is_sequence(left) or _is_sequence(right)):  # another operator would only raise
                for other in _ARITHMETIC.get(type(op), ()):
                    yield _Replacement(node, "op", other(), "arithmetic", _between(op, other()), _end(left))
        case ast.AugAssign(target=target, op=op) if not guarded:
            for other in _ARITHMETIC.get(type(op), ()):
                yield _Replacement(node, "op", other(), "arithmetic", _between(op, other()), _end(target))
        case ast.BoolOp(op=op, values=values):
            other_op = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield _Replacement(node, "op", other_op, "logical", _between(op, other_op), _end(values[0]))
        case ast.UnaryOp(op=ast.USub()):
            yield _Replacement(node, "op", ast.UAdd(), "arithmetic", "-x to +x", _start(node))
        case ast.If(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            yield _negated(node, "test", test)
        case ast.While(test=test):
            yield _Replacement(
                node, "test", ast.Constant(False), "zero-iterations", "while to while False", _start(test)
            )
        case ast.For(iter=iterated):
            yield _Replacement(node, "iter", ast.Tuple([]), "zero-iterations", "for to for in ()", _start(iterated))
        case ast.comprehension(ifs=filters):
            for place, test in enumerate(filters):
                others = [*filters[:place], ast.UnaryOp(ast.Not(), test), *filters[place + 1 :]]
                yield _Replacement(node, "ifs", others, "negated-condition", "c to not c", _start(test))
        case ast.Slice():
            yield from _slice_bounds(node)
        case ast.Name(id=name, ctx=ast.Load()) if name in _TWINS:
            yield _Replacement(node, "id", _TWINS[name], "twin-function", f"{name} to {_TWINS[name]}", _start(node))
        case ast.Constant(value=value):
            for other_value in _other_constants(value):
                if not (guarded and other_value == 0):
                    text = f"{_shown(value)} to {_shown(other_value)}"
                    yield _Replacement(node, "value", other_value, "constant", text, _start(node))
    yield from _jumps(node, guarded or isinstance(node, ast.While))


def _relational(node: ast.Compare, guarded: bool) -> Iterator[_Replacement]:
    for place, operator in enumerate(node.ops):
        others = _COMPARISONS[type(operator)]
        if guarded:  # turned round, its loop might not end
            others = others[:1] if type(operator) in _BOUNDS else ()
        at = _end(node.left if place == 0 else node.comparators[place - 1])
        for other in others:
            ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
            yield _Replacement(node, "ops", ops, "relational", _between(operator, other()), at)


def _negated(node: ast.AST, field: str, test: ast.expr) -> _Replacement:
    return _Replacement(node, field, ast.UnaryOp(ast.Not(), test), "negated-condition", "c to not c", _start(test))


def _slice_bounds(node: ast.Slice) -> Iterator[_Replacement]:
    """One bound off by one; what is left out stands for 0 and for the end. An operator of its own moves constants."""
    bounds = (
        ("lower", node.lower, 1, "[:b] to [1:b]", "[a:] to [a {} 1:]"),
        ("upper", node.upper, -1, "[a:] to [a:-1]", "[:b] to [:b {} 1]"),
    )
    for name, bound, otherwise, put, moved in bounds:
        if bound is None:
            if node.step is None:
                yield _Replacement(node, name, ast.Constant(otherwise), "slice-bound", put, _start(node))
        elif not isinstance(bound.operand if isinstance(bound, ast.UnaryOp) else bound, ast.Constant):
            for op in (ast.Add(), ast.Sub()):
                value = ast.BinOp(bound, op, ast.Constant(1))
                yield _Replacement(node, name, value, "slice-bound", moved.format(_SIGNS[type(op)]), _start(bound))


def _jumps(node: ast.AST, guarded: bool) -> Iterator[_Replacement]:
    """`return x`, and the `break` and `continue` among a block's statements."""
    is_none = isinstance(node, ast.Return) and isinstance(node.value, ast.Constant) and node.value.value is None
    if isinstance(node, ast.Return) and node.value is not None and not is_none:
        yield _Replacement(node, "value", ast.Constant(None), "return-none", "return x to return None", _start(node))
    for name in ("body", "orelse", "finalbody"):
        value = getattr(node, name, [])
        block: list[Any] = value if isinstance(value, list) else []  # a lambda's is an expression
        for place, statement in enumerate(block):
            if isinstance(statement, ast.Continue) or (isinstance(statement, ast.Break) and not guarded):
                other: ast.stmt = ast.Break() if isinstance(statement, ast.Continue) else ast.Continue()
                text = "continue to break" if isinstance(statement, ast.Continue) else "break to continue"
                changed = [*block[:place], other, *block[place + 1 :]]
                yield _Replacement(node, name, changed, "break-continue", text, _start(statement))


def _is_sequence(node: ast.expr) -> bool:
    return isinstance(node, _SEQUENCES) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _other_constants(value: Any) -> tuple[Any, ...]:
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int):
        return (value + 1, value - 1)
    if isinstance(value, float):
        return (value + 1.0, value / 2)
    if isinstance(value, str):
        return (value[:-1],) if value else (" ",)
    return ()


_OPERATORS = (
    *(ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Div, ast.Mod),
    *(ast.Pow, ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift, ast.In, ast.Is, ast.And, ast.Or),
)
_SIGNS = dict(zip(_OPERATORS, "< <= > >= == != + - * // / % ** & | ^ << >> in is and or".split(), strict=True))
_SIGNS |= {ast.NotIn: "not in", ast.IsNot: "is not"}


def _between(one: ast.AST, other: ast.AST) -> str:
    return f"{_SIGNS[type(one)]} to {_SIGNS[type(other)]}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 20 else f"{text[:17]}..."


def _start(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 1), getattr(node, "col_offset", 0)


def _end(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "end_lineno", None) or 1, getattr(node, "end_col_offset", None) or 0
