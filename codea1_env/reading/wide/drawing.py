"""Items that a test takes of an iterator, one by one: `g = f(1)`, `next(g)`, `[next(g) for _ in range(3)]`.

    next(g), the third time        list(islice(f(1), 3))[2]

`g` stands for `islice(f(1), 3, None)` then. Does not follow an iterator under a second name.
"""

from __future__ import annotations

import ast

from codea1_env.reading.wide.displays import whole

_MOST = 1 << 10
"""Items that are taken of one iterator."""


def is_next(node: ast.AST) -> bool:
    """Whether it is `next` of a name."""
    match node:
        case ast.Call(func=ast.Name(id="next"), args=[ast.Name()], keywords=[]):
            return True
    return False


def is_drawn(node: ast.AST) -> bool:
    """Whether it stands for an iterator of which items were taken."""
    match node:
        case ast.Call(func=ast.Name(id="islice"), args=[_, ast.Constant(value=int()), ast.Constant(value=None)]):
            return True
    return False


class TakenItems(ast.NodeTransformer):
    """Puts items in the place of `next(name)`, in the order of the text. Changes the tree that it is given."""

    def __init__(self, name: str, known: ast.Call) -> None:
        """`known`: what the name stands for, a call or what is left of one."""
        self._name = name
        self._made: ast.expr = known.args[0] if is_drawn(known) else known
        self._count: int = known.args[1].value if is_drawn(known) else 0  # type: ignore[attr-defined]

    def rest(self) -> ast.expr:
        """What the name stands for then."""
        if self._count > _MOST:
            return ast.Name("__unknown__", ast.Load())
        start, end = ast.Constant(self._count), ast.Constant(None)
        return ast.Call(ast.Name("islice", ast.Load()), [self._made, start, end], [])

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if is_next(node) and node.args[0].id == self._name:  # type: ignore[attr-defined]
            self._count += 1
            return ast.Subscript(self._first(self._count), ast.Constant(self._count - 1), ast.Load())
        return self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        match node.generators:
            case [ast.comprehension(iter=ast.Call(func=ast.Name(id="range"), args=[n]), ifs=[])] if is_next(node.elt):
                count, start = whole(n), self._count
                if count is not None and 0 <= count <= _MOST:
                    self._count += count
                    return ast.Subscript(self._first(self._count), ast.Slice(ast.Constant(start)), ast.Load())
        return node

    def _first(self, count: int) -> ast.expr:
        part = ast.Call(ast.Name("islice", ast.Load()), [self._made, ast.Constant(count)], [])
        return ast.Call(ast.Name("list", ast.Load()), [part], [])
