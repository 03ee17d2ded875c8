"""The corpus of `attacks/` as an ordinary user (65534, no groups): with namespaces where users may have them.

Whoever runs the tests as an ordinary user has played it so in `test_attacks.py` already.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from attacks.canaries import Canaries, canaries
from attacks.checks import CorpusChecks
from attacks.playing import Played
from attacks.unprivileged import NOBODY

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kept() -> Iterator[Canaries]:
    if os.geteuid() != 0:
        pytest.skip("the tests must run as root to become another user; the others have run as an ordinary one")
    with canaries(NOBODY) as made:
        yield made


def play_as_nobody(kept: Canaries, without: tuple[str, ...]) -> Played:
    options = {"words": kept.words, "without": without, "calls": 1}
    done = subprocess.run(
        [sys.executable, "-m", "attacks.unprivileged"],
        input=json.dumps(options),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])},
    )
    found = json.loads(done.stdout)
    if "skip" in found:
        pytest.skip(found["skip"])
    return Played(**found)


@pytest.fixture(
    scope="module",
    params=[(), ("namespaces",)],
    ids=["namespaces", "no_namespaces"],
)
def played(request: pytest.FixtureRequest, kept: Canaries) -> Played:
    return play_as_nobody(kept, request.param)


class TestUnprivileged(CorpusChecks):
    """All of it."""
