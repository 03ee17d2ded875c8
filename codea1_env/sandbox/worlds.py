"""The world of a program: what surrounds it while it runs, read off its text before anything runs; and the third-party
packages of it, where this interpreter keeps them.

A world is the packages that it may import, whether it may start threads, and whether it has a directory to write in. A
program that imports nothing and opens nothing has none of these and pays for none. Packages are found without importing
them. Does not look at what a program returns, nor at what an image or another node has installed.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib.metadata
import importlib.util
import os
import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from codea1_env.errors import ConfigurationError, PackageMissing
from codea1_env.sandbox.inside.scope import FILE, WRITTEN

PACKAGES = (
    "numpy", "pandas", "scipy", "sympy", "networkx", "sklearn", "statsmodels", "regex", "sortedcontainers",
    "more_itertools", "dateutil", "pytz", "mpmath", "gmpy2", "bitarray", "joblib", "tqdm", "typing_extensions",
)  # fmt: skip
"""Third-party packages of pure computation, by the names that programs import. A program can import those that its text
names and that are installed where the sandbox runs; beside them, the standard library alone."""
_THREADS = frozenset((
    "threading", "_thread", "concurrent", "asyncio", "multiprocessing", "joblib", "sklearn", "statsmodels", "tqdm",
))  # fmt: skip
"""Modules for threads, and packages whose own functions start some."""
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
_NAMES = frozenset((*PACKAGES, *_THREADS, *_FILES, *_OPEN, *_IMPORTS_BY_NAME))
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
    return World(packages, bool(imported & _THREADS), bool(packages or opens or imported & _FILES))


def with_calls(world: World, calls: Collection[bytes]) -> World:
    """The world with the packages whose values, or names in code, are among the arguments of calls."""
    text = b"".join(calls)
    if b'{"k":' not in text and b'{"e":' not in text:
        return world
    is_run, *asks_files = (name in text for name in (b"asyncio.run(", FILE.encode(), WRITTEN.encode()))
    world = replace(world, threads=world.threads or is_run, scratch=world.scratch or any(asks_files))
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


_DISTRIBUTIONS = {
    "sklearn": "scikit-learn",
    "more_itertools": "more-itertools",
    "dateutil": "python-dateutil",
    "typing_extensions": "typing-extensions",
}
"""What those are called in an index whose modules have another name."""
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "scipy": ("numpy",),
    "pandas": ("numpy", "dateutil", "pytz", "tzdata"),
    "sympy": ("mpmath",),
    "networkx": ("numpy", "scipy"),
    "sklearn": ("numpy", "scipy", "joblib", "threadpoolctl", "narwhals"),
    "statsmodels": ("numpy", "scipy", "pandas", "patsy", "formulaic", "packaging"),
    "formulaic": ("interface_meta", "narwhals", "wrapt", "typing_extensions"),
    "dateutil": ("six",),
    "joblib": ("cloudpickle",),
}
"""What packages import of others, in any of their versions, as far as it is installed."""


def package_places(packages: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """{module: real paths of its directory or file and of its shared libraries}: `packages`, and what they need.

    Raises ConfigurationError for a name that is not in PACKAGES, PackageMissing for a package that is not installed.
    """
    for name in packages:
        if name not in PACKAGES:
            raise ConfigurationError(f"packages must be among {', '.join(PACKAGES)}, got {name!r}")
        if not _places(name):
            raise PackageMissing(
                f"{name} must be installed where the sandbox runs, for a program that may import it, got no such "
                f"package; install it there: pip install {distribution_of(name)}"
            )
    return {name: places for name in _closure(packages) if (places := _places(name))}


def installed(packages: Iterable[str]) -> tuple[str, ...]:
    """Those of them that are."""
    return tuple(name for name in packages if _places(name))


@functools.lru_cache(1 << 10)  # programs choose what is asked
def packages_with_needs(required: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """`required`, whatever it is, those of `wanted` that are installed, and what all these need, in one order: programs
    that import the same in the end are forked from one zygote."""
    there = {*required, *installed(_closure([*required, *installed(wanted)]))}
    return (*(name for name in PACKAGES if name in there), *(name for name in required if name not in PACKAGES))


def metadata_places(names: Iterable[str]) -> list[str]:
    """Where the index's data of these modules' packages are: some of them read their version there when imported."""
    found = []
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            files = importlib.metadata.files(distribution_of(name)) or []
            found += [os.path.dirname(str(file.locate())) for file in files if file.name == "METADATA"]
    return found


def distribution_of(name: str) -> str:
    """What to install for the package `name`."""
    return _DISTRIBUTIONS.get(name, name)


def _closure(packages: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    waiting = list(packages)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = None
            waiting += _NEEDS.get(name, ())
    return sorted(found)


@functools.cache
def _places(name: str) -> tuple[str, ...]:
    """Empty where it is not installed."""
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # a module of that name that has no spec
        spec = None
    if spec is None or spec.origin is None or not os.path.isfile(spec.origin):
        return ()
    own = os.path.realpath(spec.origin)
    if os.path.basename(own) != "__init__.py":
        return (own,)
    own = os.path.dirname(own)
    # Where a wheel keeps the shared libraries that it brings along.
    libraries = os.path.join(os.path.dirname(own), f"{distribution_of(name).replace('-', '_')}.libs")
    return (own, libraries) if os.path.isdir(libraries) else (own,)


@functools.cache
def package_versions() -> str:
    """Names and versions of the known packages here: what a program computes with them may depend on it."""
    return "-".join(f"{name}-{version_of(name)}" for name in PACKAGES)


def version_of(name: str) -> str:
    """Of a known package; "none" where it is not installed."""
    try:
        return importlib.metadata.version(distribution_of(name))
    except importlib.metadata.PackageNotFoundError:
        return "none"
