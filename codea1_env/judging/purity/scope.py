"""What the names of a program stand for: its imports, functions and everything else that it binds.

Read for the whole module at once, whatever the scope: a name that may stand for two things must do as both. Part of the
allow-list of `company.py`: raises Alone for what the list does not know.
"""

from __future__ import annotations

import ast
import builtins
import importlib
from collections.abc import Mapping, Sequence

from codea1_env.judging.purity.names import BUILTINS, EXCEPTIONS, MODULES, UNUSED_MODULES

KNOWN_BUILTINS = frozenset(dir(builtins))


class Alone(Exception):
    """The program must run each call alone; the text says why."""


class Scope:
    """The names of one module. Raises Alone at the first import or spelling that is not on the list."""

    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        """`nodes`: all of the module's."""
        self._nodes = nodes
        yields = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes)
        self.yielding = holding(nodes, ast.Yield, ast.YieldFrom) if yields else set()
        """What has a `yield` in it."""
        self.modules: dict[str, str] = {}
        """Names that stand for modules."""
        self.members: dict[str, tuple[str, str]] = {}
        """Names that stand for members of modules."""
        self.functions: set[str] = set()
        """Names of functions and lambdas of the program's own."""
        self.generators: set[str] = set()
        """Those that make iterators."""
        self.bound: set[str] = set()
        """All other names that the program gives to something."""
        self.caught: set[str] = set()
        """Names of exceptions that were caught. Their hashes are addresses, so all that is done to them is to read
        their text and to raise them again."""
        self.shadowed: set[str] = set()
        self._starred: set[str] = set()
        """Names that a star import brings and that are not on the list."""
        self._collect()
        self._refuse_shadows()
        for name in self.bound | self.functions:
            self.check_spelling(name)

    def member(self, node: ast.expr) -> tuple[str, str]:
        """(module, member) that the expression stands for, ("", "") where it stands for none."""
        match node:
            case ast.Name(id=name):
                return self.members.get(name, ("", ""))
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in self.modules:
                module = self.modules[name]
                return (module, attribute) if attribute in MODULES.get(module, ()) else ("", "")
            case ast.Attribute(value=inner, attr="from_iterable") if self.member(inner) == ("itertools", "chain"):
                return ("itertools", "chain")
        return ("", "")

    def _collect(self) -> None:
        """What every name may stand for, in whatever scope. One that may stand for two things must do as both."""
        for node in self._nodes:
            match node:
                case ast.Import(names=names):
                    for alias in names:
                        self._import(alias)
                case ast.ImportFrom(module=module, names=names, level=level):
                    for alias in names:
                        self._import_member(module or "", alias, level)
                case ast.FunctionDef(name=name):
                    self.functions.add(name)
                    if node in self.yielding:
                        self.generators.add(name)
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda()):
                    self.functions.add(name)
                case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                    self.bound.add(name)
                case ast.ExceptHandler(name=str(name)):
                    self.caught.add(name)
        renamed: dict[str, list[str]] = {}
        for node in self._nodes:
            for name, known in pairs(node) if isinstance(node, ast.Assign) else ():
                renamed.setdefault(known, []).append(name)
        _add_renamed(self.functions, renamed)
        _add_renamed(self.generators, renamed)

    def _refuse_shadows(self) -> None:
        """A name that is imported stands for nothing else, but for those of numbers and of functions of numbers."""
        own = self.bound | self.functions | self.caught
        for name in own & (self.modules.keys() | self.members.keys()):
            if name in self.modules or self.members[name][0] not in ("math", "cmath"):
                raise Alone(f"gives the imported name {name} to something else")
            del self.members[name]
            self.shadowed.add(name)
        for name in self.modules.keys() & self.members.keys():
            raise Alone(f"the name {name} is imported twice")
        if self.caught & (self.bound | self.functions):
            raise Alone("has an exception under the name of something else")

    def _import(self, alias: ast.alias) -> None:
        name = alias.asname or alias.name.split(".")[0]
        self.check_spelling(name)
        if alias.name not in MODULES and alias.name not in UNUSED_MODULES:
            raise Alone(f"imports {alias.name}")
        if self.modules.setdefault(name, alias.name) != alias.name:
            raise Alone(f"the name {name} is imported twice")

    def _import_member(self, module: str, alias: ast.alias, level: int) -> None:
        known = MODULES.get(module, frozenset())
        if module == "__future__" and not level:
            return
        if level or not known or (alias.name != "*" and alias.name not in known):
            raise Alone(f"imports {alias.name} from {module}")
        if alias.name == "*":
            brought = importlib.import_module(module)
            self._starred |= set(getattr(brought, "__all__", dir(brought))) - known
        for name in known if alias.name == "*" else (alias.name,):
            bound = name if alias.name == "*" else alias.asname or name
            self.check_spelling(bound)
            if module == "typing" and bound in self.members:
                continue  # typing's Counter and deque make the ones of collections
            if self.members.get(bound, (module, name)) not in ((module, name), ("typing", name)):
                raise Alone(f"the name {bound} is imported twice")
            self.members[bound] = (module, name)

    def is_own(self, name: str) -> bool:
        """Whether the program gives the name to something, imports and caught exceptions apart."""
        return name in self.bound or name in self.functions

    def check_spelling(self, name: str) -> None:
        """No name of the program's hides what a reader of the text would take it for."""
        if (
            name in self._starred
            or name.startswith("__")
            or (name in KNOWN_BUILTINS and name not in BUILTINS | EXCEPTIONS)
        ):
            raise Alone(f"uses the name {name}")


def _add_renamed(known: set[str], renamed: Mapping[str, Sequence[str]]) -> None:
    """Add every other name of a known one, also names of such names. `renamed`: by names, their other names."""
    added = list(known)
    while added:  # each name once: texts come from players
        names = set(renamed.get(added.pop(), ())) - known
        known |= names
        added += names


def holding(nodes: Sequence[ast.AST], *kinds: type[ast.AST]) -> set[ast.AST]:
    """The nodes that are of one of the kinds or have one below them. `nodes`: all of a tree, parents first.

    One pass: a walk below each of them would take as many as they nest.
    """
    found: set[ast.AST] = set()
    for node in reversed(nodes):
        if isinstance(node, kinds) or not found.isdisjoint(ast.iter_child_nodes(node)):
            found.add(node)
    return found


def pairs(node: ast.Assign) -> list[tuple[str, str]]:
    """(name, other name) of an assignment that gives what one name stands for to another, one by one."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=known)):
            return [(name, known)]
        case ast.Assign(targets=[ast.Tuple(elts=names) | ast.List(elts=names)], value=ast.Tuple(elts=values)):
            if len(names) == len(values) and all(isinstance(name, ast.Name) for name in names):
                couples = zip(names, values, strict=True)
                return [(a.id, b.id) for a, b in couples if isinstance(a, ast.Name) and isinstance(b, ast.Name)]
    return []
