"""Claims that need more of Python than a relation has: `sorted(f(x), key=len) == [...]`, `f(1) < f(2)`, `f(x).sum()`.

    call     one call or question (`questions.py`); of several, one question that is the tuple of them
    look     the condition, with RETURNED in the place of the call and `RETURNED[0]`, ... in the places of several

The look is evaluated on what came back, as data, in a sandbox of its own where no program runs (`Judge.looked_at`). It
may use the names of code and of `scope.LOOKED`. It decides one thing: one comparison, and no `and`, `or` or `if`
outside of what is said of single items, so that a claim which knows something cannot carry along one that only names a
wrong answer. Nothing is evaluated here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from codea1_env.reading import grammar
from codea1_env.reading.grammar import RETURNED, WrittenTest
from codea1_env.reading.literals import encode
from codea1_env.reading.parsing import copied
from codea1_env.reading.pure_expressions import LOOKED, Reason, Rejected, check_code, known_name
from codea1_env.reading.wide import questions, relation, trees
from codea1_env.reading.wide.statements import unpacking
from codea1_env.sandbox.inside.scope import ATTRIBUTE, LOOKED_METHODS, LOOKED_NAMES, WRITTEN

MAX_CALLS = 128
"""Of one claim."""
_WITHIN = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""What says something of single items."""
_ALWAYS = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.JoinedStr, ast.Lambda, ast.GeneratorExp)
"""What is always true, or as good as that: `assert (f(1) == 1, "message")`, `assert lambda: f(1) == 1`."""
_MODULES = LOOKED_NAMES.keys() | {name.rpartition(".")[0] for name in LOOKED}


def read_look(condition: ast.expr, source: str, entry_point: str, max_depth: int) -> WrittenTest:
    """The accepted test. Raises Rejected for a claim that is none."""
    holes = _Holes(entry_point)
    text = grammar.shallow_source(condition, max_depth)
    # A copy, for nodes of remembered names are shared.
    look: ast.expr = holes.visit(grammar.single_expression(text))  # type: ignore[assignment]  # an expression
    calls = list(holes.calls.values())
    if not calls or len(calls) > MAX_CALLS:
        raise Rejected(Reason.TOO_LARGE if calls else Reason.WRAPPED_CALL)
    if len(calls) == 1:
        look = copied(look, {id(hole): hole.value for hole in holes.made})
    _check(look, entry_point, is_one=len(calls) == 1, max_depth=max_depth)
    raising = questions.classes_raised(calls[0])
    calls = [call.args[0] for call in calls] if raising and len(calls) == 1 else calls  # type: ignore[misc]
    is_question = len(calls) > 1 or not _is_plain(calls[0], entry_point)
    for call in calls if is_question else ():
        questions.check_question(call, entry_point)
        if len(calls) > 1 and known_name(getattr(call, "func", call)) == WRITTEN:
            raise Rejected(Reason.WRAPPED_CALL)
        if questions.is_changed(call, entry_point):
            raise Rejected(Reason.NOT_ENTRY_POINT)
    each = [
        grammar.arguments_of(call, entry_point, max_depth, stars=False)
        if _is_plain(call, entry_point)
        else questions.arguments_of(call, entry_point, max_depth)
        for call in calls
    ]
    asked = calls[0] if len(calls) == 1 else trees.tupled(*calls)
    arguments = each[0] if len(calls) == 1 else questions.arguments_of(asked, entry_point, max_depth)
    return WrittenTest(
        source=source[: grammar.MAX_SHOWN],
        reason="",
        call=f"bool({text})",
        stated="()",
        arguments=arguments.encoded,
        value=encode({"t": []}),
        inner=arguments.source if is_question else f"{entry_point}({arguments.source})",
        look=f"bool({ast.unparse(_Asking().visit(look))})",
        # Empty where its arguments are no literals, for these could be written in many ways.
        calls=tuple(one.encoded or b"" for one in each) if len(calls) > 1 else (),
        asks=questions.roots(asked, entry_point) if is_question else "",
        relation=replace(relation.LOOKED, raising=tuple(raising)),
    )


def _is_plain(call: ast.expr, entry_point: str) -> bool:
    return grammar.is_call(call, entry_point) and not questions.is_question(call, entry_point)


class _Holes(ast.NodeTransformer):
    """Puts `RETURNED[number]` in the place of each call, questions whole."""

    def __init__(self, entry_point: str) -> None:
        self._entry_point = entry_point
        self.calls: dict[str, ast.Call] = {}
        self.made: list[ast.Subscript] = []

    def visit(self, node: ast.AST) -> ast.AST:
        name = self._entry_point
        if isinstance(node, ast.Call) and (part := unpacking(node)) is not None:
            return trees.item(trees.call("list", self.visit(part[0])), part[1])  # type: ignore[arg-type]
        if isinstance(node, ast.Call) and (
            grammar.is_call(node, name) or questions.is_question(node, name) or questions.classes_raised(node)
        ):
            return self._hole(node)
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        is_of_object = isinstance(node, ast.Attribute) and questions.is_object(root, name)  # type: ignore[arg-type]
        if is_of_object or (isinstance(node, ast.expr) and questions.is_operation(node, name)):
            return self._hole(node)  # type: ignore[arg-type]  # as good as a call
        return self.generic_visit(node)

    def _hole(self, call: ast.Call) -> ast.AST:
        text = ast.unparse(call)
        self.calls.setdefault(text, call)
        number = list(self.calls).index(text)
        self.made.append(trees.item(trees.name(RETURNED), number))
        return self.made[-1]


class _Asking(ast.NodeTransformer):
    """Asks for attributes that data has by other names than LOOKED_METHODS in a way that gives no function."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        is_known = node.attr in LOOKED_METHODS or known_name(node) in LOOKED or known_name(node.value) in _MODULES
        if is_known or isinstance(node.value, ast.Constant):  # `"{:.2f}".format(...)`
            return node
        return trees.call(ATTRIBUTE, node.value, ast.Constant(node.attr))


def _check(look: ast.expr, entry_point: str, *, is_one: bool, max_depth: int) -> None:
    """Raises Rejected for what is no claim, decides more than one thing, or is not pure."""
    claim = look.operand if isinstance(look, ast.UnaryOp) and isinstance(look.op, ast.Not) else look
    if isinstance(claim, _ALWAYS):
        raise Rejected(Reason.NOT_A_COMPARISON)
    deciding = [node for node in _of_the_whole(claim) if isinstance(node, ast.Compare | ast.BoolOp | ast.IfExp)]
    negated = any(isinstance(node, ast.Not) for part in _of_the_whole(claim) for node in ast.iter_child_nodes(part))
    if len(deciding) > 1 or negated or not all(isinstance(node, ast.Compare) for node in deciding):
        raise Rejected(Reason.OPERATOR)
    displays = [each for each in _gone_through(claim) if isinstance(each, ast.List | ast.Tuple | ast.Set | ast.Dict)]
    if is_one and any(grammar.mentions(each, RETURNED) for each in displays):
        raise Rejected(Reason.WRAPPED_CALL)  # a comprehension of one item would be an `and` in disguise
    if any(map(is_name_of_columns, ast.walk(look))):
        raise Rejected(Reason.ATTRIBUTE)
    check_code(look, entry_point, (frozenset((RETURNED,)),), 2 * max_depth, LOOKED)


def is_name_of_columns(node: ast.AST) -> bool:
    """Whether it asks what the columns of a table are called as a whole, which its data do not keep."""
    match node:
        case ast.Attribute(value=ast.Attribute(attr="columns"), attr="name" | "names"):
            return True
    return False


def _of_the_whole(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what stands below it, but for what is said of single items."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.Subscript) and child is node.slice:
            for part in child.elts if isinstance(child, ast.Tuple) else [child]:
                yield from () if _chooses_rows(part) else _of_the_whole(part)
        elif not isinstance(node, _WITHIN) or (isinstance(child, ast.comprehension)):
            yield from _of_the_whole(child.iter if isinstance(child, ast.comprehension) else child)


def _chooses_rows(node: ast.AST) -> bool:
    """Whether it says of each row of a table if it is meant: `df[df["a"] > 1]`, `df[(df.a > 1) & (df.b == "x")]`."""
    match node:
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
            return _chooses_rows(node.left) and _chooses_rows(node.right)
        case ast.UnaryOp(op=ast.Invert()):
            return _chooses_rows(node.operand)
        case ast.Compare(left=ast.Subscript(slice=ast.Constant(value=str())) | ast.Attribute() as column, ops=[_]):
            return grammar.mentions(column, RETURNED) and not grammar.mentions(node.comparators[0], RETURNED)
    return False


def _gone_through(node: ast.AST) -> Iterator[ast.expr]:
    """What the items are taken of."""
    for each in ast.walk(node):
        if isinstance(each, ast.comprehension):
            yield each.iter
        elif isinstance(each, ast.Call):
            yield from each.args
