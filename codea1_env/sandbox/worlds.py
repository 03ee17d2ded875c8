"""The world of a program: what surrounds it while it runs. Read off its text, before anything runs.

A world is the packages that it may import, whether it may start threads, and whether it has a directory to write in. A
program that imports nothing and opens nothing has none of these and pays for none. Does not look at what a program
returns, nor at what is installed: the sandbox that runs it knows that.
"""

from __future__ import annotations

import ast
import functools
import re
import warnings
from collections.abc import Collection
from dataclasses import dataclass, replace

PACKAGES = (
    "numpy", "pandas", "scipy", "sympy", "networkx", "sklearn", "statsmodels", "regex", "sortedcontainers",
    "more_itertools", "dateutil", "pytz", "mpmath", "gmpy2", "bitarray",
)  # fmt: skip
"""Third-party packages of pure computation, by the names that programs import. A program can import those that its text
names and that are installed where the sandbox runs; beside them, the standard library alone."""
_THREADS = frozenset(("threading", "_thread", "concurrent", "asyncio", "multiprocessing", "joblib"))
_USE_THREADS = frozenset(("sklearn", "statsmodels"))
"""Packages whose own functions start some."""
_FILES = frozenset((
    "os", "tempfile", "pathlib", "shutil", "sqlite3", "shelve", "dbm", "zipfile", "tarfile", "gzip", "bz2", "lzma",
    "fileinput", "mmap", "logging", "glob", "configparser", "posix", "nt", "codecs", "wave", "mailbox", "trace",
))  # fmt: skip
"""Modules that programs use for files of their own."""
_OPEN = frozenset(("open", "fdopen", "FileIO", "open_code"))
_IMPORTS_BY_NAME = frozenset(("__import__", "import_module"))
_MAX_CHARACTERS = 1 << 18
_KEPT = 1 << 13
"""Characters of the longest program whose world is remembered, so that memory stays flat whatever is sent."""
_NAMES = frozenset((*PACKAGES, *_THREADS, *_USE_THREADS, *_FILES, *_OPEN, *_IMPORTS_BY_NAME))
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class World:
    """What surrounds a program. Jobs name it, so it is a part of whatever identifies a job."""

    packages: tuple[str, ...] = ()
    """Of PACKAGES, in that order: those that the text imports, or that arguments are of. What is not installed is not
    there."""
    threads: bool = False
    """Up to `isolation.MOST_THREADS` threads, pipes and pairs of sockets within the process."""
    scratch: bool = False
    """A directory of its own that is empty when its process starts and gone when that ends."""
    everything: bool = False
    """Whatever is installed where the sandbox runs may be imported, and started as a process where there are
    namespaces: for test scripts, which are unsealed anyway."""

    @property
    def is_wide(self) -> bool:
        """Whether it takes more of the kernel than computing."""
        return self.threads or self.scratch


SCRIPTS = World(threads=True, scratch=True, everything=True)
"""Of programs beside their test scripts."""
PLAIN = World()
"""The standard library, in one process, and nothing to write on."""


def world_of(source: str) -> World:
    """The world of the program `source`. One that does not parse has a plain one: it does not load in any."""
    return (_world_of if len(source) <= _KEPT else _world_of.__wrapped__)(source)


@functools.lru_cache(maxsize=4096)
def _world_of(source: str) -> World:
    # Where all is ASCII, a name is a word of the text; other letters may stand for these (PEP 3131).
    is_plain = source.isascii() and _NAMES.isdisjoint(_WORD.findall(source))
    if is_plain or len(source) > _MAX_CHARACTERS:
        return PLAIN
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return PLAIN
    imported = {name for node in nodes for name in _imported(node)}
    packages = tuple(name for name in PACKAGES if name in imported)
    opens = any(_name_of(node) in _OPEN for node in nodes)
    threads = bool(imported & (_THREADS | _USE_THREADS))
    return World(packages, threads, bool(packages or opens or imported & _FILES))


def with_calls(world: World, calls: Collection[bytes]) -> World:
    """The world with the packages whose values, or names in code, are among the arguments of calls."""
    text = b"".join(calls)
    if b'{"k":' not in text and b'{"e":' not in text:
        return world
    code = [call for call in calls if b'{"e":' in call]
    given = {
        package
        for package, (values, names) in _VALUES_OF.items()
        if package not in world.packages and (values.search(text) or any(map(names.search, code)))
    }
    if not given:
        return world
    packages = tuple(name for name in PACKAGES if name in given or name in world.packages)
    return replace(world, packages=packages, scratch=True)


_VALUES_OF = {
    "numpy": (re.compile(rb'\{"k":\["ndarray"'), re.compile(rb"\b(?:np|numpy)\.")),
    "pandas": (re.compile(rb'\{"k":\["(?:Series|DataFrame|Index|NaT|NA)"'), re.compile(rb"\b(?:pd|pandas)\.")),
}
"""How values of a package begin on the wire, and how code names it."""


def _imported(node: ast.AST) -> list[str]:
    """The top-level modules that a node imports, wherever it stands."""
    match node:
        case ast.Import(names=names):
            return [alias.name.partition(".")[0] for alias in names]
        case ast.ImportFrom(module=str(module), level=0):
            return [module.partition(".")[0]]
        case ast.Call(func=called, args=[ast.Constant(value=str(module)), *_]) if _name_of(called) in _IMPORTS_BY_NAME:
            return [module.partition(".")[0]]
    return []


def _name_of(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            return name
    return ""
