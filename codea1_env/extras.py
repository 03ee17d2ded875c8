"""What is not installed, said one way: which package is missing, and which extra of this project brings it.

Does not import anything: the import stands in the `with` block.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def extra(name: str, what: str, hint: str = "") -> Iterator[None]:
    """Imports in this block are for `what`, a plural or a singular with its verb (`training needs`), and come with the
    extra `name`. Raises ImportError that says so; `hint`: what else helps."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"{what} the extra `{name}`: pip install '.[{name}]' in the clone{hint and f'; {hint}'} (got: {error})"
        ) from error
