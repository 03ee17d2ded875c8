"""Which parameters of a reference can be given by place or by name, so that f(1) and f(a=1) are known for one call.

Answers from the syntax tree alone, and only for a plain function, `async` or not: one definition at module level, not
decorated, and nothing else in the program that binds its name. Does not know defaults: f(1) and f(1, b=2) stay two
calls.
"""

from __future__ import annotations

import ast
import functools
import json
import re

from codea1_env.reading.parsing import Unparsable, parse

_SOLUTION = re.compile(r"^class[ \t]+Solution\b", re.MULTILINE)


@functools.lru_cache(maxsize=1024)
def parameters(source: str, entry_point: str) -> tuple[str, ...]:
    """Names of the parameters that have a place, in order; "" for one without a name to callers. () where unsure."""
    try:
        module = parse(source)
    except Unparsable:
        return ()
    owner, dot, method = entry_point.partition("().")
    is_method, name, body = bool(dot), method or entry_point, module.body
    if not is_method and not _functions(body, name) and has_solution_class(source):
        owner, is_method = "Solution", True  # whose method stands for the function (`problems/kinds.py`)
    if is_method:
        classes = [node for node in body if isinstance(node, ast.ClassDef) and node.name == owner]
        body = classes[0].body if len(classes) == 1 and not classes[0].decorator_list else []
    found = _functions(body, name)
    if len(found) != 1 or found[0].decorator_list or _binders(module, owner) != 1:
        return ()
    given = found[0].args
    names = (*("" for _ in given.posonlyargs), *(parameter.arg for parameter in given.args))
    return names[1:] if is_method else names  # but for the object itself


def _functions(body: list[ast.stmt], name: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [each for each in body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name == name]


def _binders(module: ast.Module, name: str) -> int:
    """How many places in the program may bind the name, in whatever scope."""
    count = 0
    for node in ast.walk(module):
        match node:
            case ast.FunctionDef(name=bound) | ast.AsyncFunctionDef(name=bound) | ast.ClassDef(name=bound):
                count += bound == name
            case ast.Name(id=bound, ctx=ast.Store() | ast.Del()):
                count += bound == name
            case ast.alias(name=imported, asname=renamed):
                count += (renamed or imported.split(".")[0]) in (name, "*")
            case ast.ExceptHandler(name=bound) | ast.MatchAs(name=bound) | ast.MatchStar(name=bound):
                count += bound == name
            case ast.MatchMapping(rest=bound):
                count += bound == name
    return count


def placed(arguments: bytes, names: tuple[str, ...]) -> bytes:
    """The same encoded call with named arguments moved to their places, as far as no place before them is empty."""
    if not names or arguments.endswith(b",[]]"):
        return arguments
    positional, named = json.loads(arguments)
    by_name = dict(named)
    while len(positional) < len(names) and names[len(positional)] in by_name:
        positional.append(by_name.pop(names[len(positional)]))
    rest = [pair for pair in named if pair[0] in by_name]
    return json.dumps([positional, rest], ensure_ascii=True, separators=(",", ":")).encode("ascii")


def has_solution_class(code: str) -> bool:
    """Whether a line begins a `class Solution`, as of contest sites. No parse, so that truncated programs count."""
    return "Solution" in code and _SOLUTION.search(code) is not None
