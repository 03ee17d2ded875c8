"""Which calls are one call in other words, so that a suite is paid for it once: f(1) and f(a=1), and for a class also
lists and tuples in the places where they mean the same.

So is a dict or a Counter in another order, a tree with None for what ends it anyway, None for a list or tree without
nodes, and a program's input with other white space at the ends of its lines. Does not know defaults: f(1) and
f(1, b=2) stay two calls; and 1, 1.0 and True are different arguments.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from codea1_env.judging.equality import call_key, dumps, in_order, text_lines
from codea1_env.problems.kinds import PARAMETERS, argument_shapes
from codea1_env.problems.problem import Problem
from codea1_env.reading.signatures import parameters, placed


def names_of(problem: Problem, *, ask_reference: bool = True) -> tuple[str, ...]:
    """The parameters that have a place: the kind's, the reference's where it may be asked, or else those of the starter
    code. () where none of them is plain."""
    if problem.kind in PARAMETERS:
        return PARAMETERS[problem.kind]
    reference = problem.reference_solution or "" if ask_reference else ""
    starter = problem.starter_code.rstrip()
    sources = (reference, starter, f"{starter}\n        pass\n")  # a starter may have no body
    return next(filter(None, (parameters(source, problem.entry_point) for source in sources)), ())


def call_keys(problem: Problem, calls: Sequence[bytes], names: tuple[str, ...]) -> list[bytes]:
    """One per encoded call of a suite, equal for those that are one call. `names`: see `names_of`."""
    given = [placed(call, names) for call in calls]
    if problem.kind == "class":
        given = [_rewritten(call, _sequence) for call in given]
    elif problem.kind == "program":
        given = [_rewritten(call, lambda tree: text_lines(tree) if type(tree) is str else tree) for call in given]
    elif shapes := argument_shapes(problem):
        given = [_nodes(call, shapes) for call in given]
    keys = [call_key(call) for call in given]
    keys = [_unordered(key) if b'{"d":' in key or b'["Counter",' in key else key for key in keys]
    return keys if names else _without_names(keys)


def _unordered(key: bytes) -> bytes:
    """With the items of dicts in a fixed order, too; the oracle asks for each order by itself."""
    return dumps(in_order(json.loads(key), ("d", "Counter"))).encode("ascii")


def _rewritten(call: bytes, written: Callable[[Any], Any]) -> bytes:
    positional, named = json.loads(call)
    return dumps([[*map(written, positional)], named]).encode("ascii")


def _sequence(tree: Any) -> Any:
    """An argument of a class with lists for the tuples around it, and around the arguments of each name."""
    tree = _listed(tree)
    return [*map(_listed, tree)] if isinstance(tree, list) else tree


def _listed(tree: Any) -> Any:
    return tree["t"] if isinstance(tree, dict) and "t" in tree else tree


def _nodes(call: bytes, shapes: Mapping[str, Any]) -> bytes:
    """The call with its lists and trees of nodes written in one way."""
    positional, named = json.loads(call)
    placed_shapes = [*shapes.values(), *[None] * len(positional)]
    given = [_written(tree, shape) for tree, shape in zip(positional, placed_shapes, strict=False)]
    return dumps([given, [[name, _written(tree, shapes.get(name))] for name, tree in named]]).encode("ascii")


def _written(tree: Any, shape: Any) -> Any:
    """An argument of this shape: `[]` for no nodes, and no None at the end of a tree."""
    if isinstance(shape, list):
        return [_written(item, shape[0]) for item in tree] if isinstance(tree, list) else tree
    if shape is not None and tree is None:
        return []
    while shape == "TreeNode" and isinstance(tree, list) and tree and tree[-1] is None:
        tree.pop()
    return tree


def _without_names(keys: Sequence[bytes]) -> list[bytes]:
    """Where no parameter is known, calls that name different arguments and give the same values count as one."""
    if all(key.endswith(b",[]]") for key in keys):
        return list(keys)
    first: dict[str, tuple[list[str], bytes]] = {}  # hashed by this process's own secret seed
    same = []
    for key in keys:
        positional, named = json.loads(key)
        values = dumps(sorted(map(dumps, [*positional, *[value for _, value in named]])))
        named_first, first_key = first.setdefault(values, ([name for name, _ in named], key))
        same.append(key if named_first == [name for name, _ in named] else first_key)
    return same
