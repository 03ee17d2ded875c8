"""What is not installed, said one way: which package is missing, and which extra of this project brings it.

Does not import anything: the import stands in the `with` block.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class MissingExtra(ImportError):
    """A package of an extra is not installed; the message says which extra to install."""


@contextmanager
def extra(name: str, what: str, hint: str = "") -> Iterator[None]:
    """Imports in this block are for `what`, a plural or a singular with its verb (`training needs`), and come with the
    extra `name`. Raises MissingExtra that says so; `hint`: what else helps."""
    try:
        yield
    except ImportError as error:
        raise MissingExtra(
            f"{what} the extra `{name}`: pip install '.[{name}]' in the clone{hint and f'; {hint}'} (got: {error})"
        ) from error


@contextmanager
def for_script(names: str) -> Iterator[None]:
    """Likewise for a script that is run by path, which ends with one line and the status 1. `names`: of one extra, or
    of several with commas between them. All are named, whichever package is missing first."""
    try:
        yield
    except ImportError as error:
        got = error.__cause__ or error
        told = f"this script needs the extra `{names}`: pip install '.[{names}]' in the clone (got: {got})"
        raise SystemExit(f"{sys.argv[0]}: {told}") from None
