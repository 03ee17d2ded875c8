"""All honest programs in containers and on Ray workers, as `test_honest.py` has them on the local backend."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attacks.backends import BACKENDS
from test_honest import PROGRAMS, Played, on_backend, test_plain_pythons_verdict

__all__ = ["test_plain_pythons_verdict"]


@pytest.fixture(scope="module", params=BACKENDS[1:])
def played(request: pytest.FixtureRequest) -> Iterator[Played]:
    yield from on_backend(request.param, PROGRAMS, request)
