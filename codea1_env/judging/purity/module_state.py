"""Whether anything in a module's own namespace could change from one call to the next, read off its syntax tree.

Only for modules that `company.py` has read: nothing here looks at what lies outside the namespace. Errs towards yes.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codea1_env.judging.purity.names import READING_METHODS


def holds_state(module: ast.Module, nodes: Sequence[ast.AST]) -> bool:
    """Whether anything in the module's namespace could change from one call to the next. `nodes`: all of the
    module's."""
    if not all(map(_is_fixed, module.body)):
        return True
    for node in nodes:
        match node:
            case ast.Global():
                return True
            case ast.FunctionDef(decorator_list=decorators) if decorators:
                return True
            case ast.arguments(defaults=defaults, kw_defaults=kw_defaults):
                if not all(default is None or _is_constant(default) for default in [*defaults, *kw_defaults]):
                    return True
    tables = {target.id for node in module.body for target in _table_names(node)}
    return bool(tables) and not _are_only_read(module, nodes, tables)


def _is_fixed(node: ast.stmt) -> bool:
    """A module-level statement that leaves nothing mutable behind."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.FunctionDef() | ast.Pass():
            return True
        case ast.Expr() | ast.Assert():
            return not any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node))
        case ast.Assign(targets=targets, value=value):
            is_kept = _is_constant(value) or bool(_table_names(node))
            return all(isinstance(target, ast.Name) for target in targets) and is_kept
        case ast.AnnAssign(target=ast.Name(), value=value):
            return value is None or _is_constant(value)
        case ast.If(
            test=ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant("__main__")])
        ):
            return not node.orelse  # never runs: the module has another name
        case _:
            return False


def _is_constant(node: ast.expr) -> bool:
    match node:
        case ast.Constant() | ast.UnaryOp(operand=ast.Constant()):
            return True
        case ast.Tuple(elts=items):
            return all(map(_is_constant, items))
        case _:
            return False


def _table_names(node: ast.stmt) -> list[ast.Name]:
    """The names that a module-level statement gives to a list, set or dict of constants."""
    match node:
        case ast.Assign(targets=targets, value=ast.List(elts=items) | ast.Set(elts=items)):
            pass
        case ast.Assign(targets=targets, value=ast.Dict(keys=keys, values=values)):
            items = [*(key for key in keys if key is not None), *values]
            if None in keys:  # {**other}
                return []
        case _:
            return []
    if not all(map(_is_constant, items)):
        return []
    return [target for target in targets if isinstance(target, ast.Name)]


def _are_only_read(module: ast.Module, nodes: Sequence[ast.AST], tables: set[str]) -> bool:
    """Whether all uses of the names are such that nothing can change what they name, or get hold of it."""
    harmless: set[ast.expr] = {name for node in module.body for name in _table_names(node)}
    for node in nodes:
        match node:
            case ast.Subscript(value=value, ctx=ast.Load()) | ast.For(iter=value) | ast.comprehension(iter=value):
                harmless.add(value)
            case ast.Compare(ops=ops, comparators=comparators):
                pairs = zip(ops, comparators, strict=True)
                harmless.update(value for op, value in pairs if isinstance(op, ast.In | ast.NotIn))
            case ast.Attribute(value=value, attr=name) if name in READING_METHODS:
                harmless.add(value)
    return all(node in harmless for node in nodes if isinstance(node, ast.Name) and node.id in tables)
