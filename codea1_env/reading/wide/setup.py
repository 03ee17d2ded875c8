"""What a class of tests keeps for its methods: `setUp`, `setup_method`, `setUpClass` and the class's own names.

    self.items = [1, 2]      in `setUp`: in every method `self.items` stands for it, made anew for each
    books = ["Emma"]         in the class: likewise `self.books`

Such an attribute becomes a name of its own, `self.items`, which no other name is like; what keeps it stands before the
method's body. Plain syntax trees in and out. Does not know what a class inherits.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

_BEFORE_ALL = ("setUpClass", "setup_class")
_BEFORE_EACH = ("setUp", "setup_method", "setup")
_OWNERS = ("self", "cls")


def with_setup(node: ast.ClassDef, methods: Sequence[ast.FunctionDef]) -> list[ast.FunctionDef]:
    """The methods with what is done before them. Changes the class's tree."""
    setups = [
        each for names in (_BEFORE_ALL, _BEFORE_EACH) for each in node.body
        if isinstance(each, ast.FunctionDef) and each.name in names
    ]  # fmt: skip
    own = [each for each in node.body if isinstance(each, ast.Assign | ast.AnnAssign) and each.value is not None]
    kept = {target.id for each in own for target in _targets(each) if isinstance(target, ast.Name)}
    as_names = _Attributes(node.name, kept | {name for setup in setups for name in _kept_by(setup)})
    if not as_names.kept:
        return list(methods)
    before: list[ast.stmt] = [as_names.of_class(each) for each in own]
    before += [as_names.visit(statement) for setup in setups for statement in setup.body]
    return [_behind(before, as_names.visit(method)) for method in methods]


def _behind(before: list[ast.stmt], method: ast.FunctionDef) -> ast.FunctionDef:
    method.body = [*before, *method.body]
    return method


def _targets(statement: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


def _kept_by(setup: ast.FunctionDef) -> set[str]:
    """The attributes of its object that it gives a value."""
    stored = [node for node in ast.walk(setup) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
    return {node.attr for node in stored if isinstance(node.value, ast.Name) and node.value.id in _OWNERS}


class _Attributes(ast.NodeTransformer):
    """Puts names in the place of what a class keeps."""

    def __init__(self, owner: str, kept: set[str]) -> None:
        self._owners = (*_OWNERS, owner)
        self.kept = kept

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id in self._owners and node.attr in self.kept:
            return ast.copy_location(ast.Name(_name(node.attr), node.ctx), node)
        return self.generic_visit(node)

    def of_class(self, statement: ast.Assign | ast.AnnAssign) -> ast.stmt:
        """A statement of the class's own body, behind which its names are attributes."""
        pairs = [ast.Name(_name(each.id), each.ctx) if isinstance(each, ast.Name) else each
                 for each in _targets(statement)]  # fmt: skip
        assert statement.value is not None
        return ast.copy_location(ast.Assign(pairs, statement.value), statement)


def _name(attribute: str) -> str:
    return f"self.{attribute}"
