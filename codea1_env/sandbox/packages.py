"""Third-party packages that programs may import, and where this interpreter keeps them.

Finds them without importing them. Does not install anything, and does not know what an image or another node has.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import importlib.util
import os
from collections.abc import Iterable, Mapping, Sequence

from codea1_env.errors import ConfigurationError, PackageMissing
from codea1_env.sandbox.worlds import PACKAGES

_DISTRIBUTIONS = {
    "sklearn": "scikit-learn",
    "more_itertools": "more-itertools",
    "dateutil": "python-dateutil",
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


@functools.cache
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
