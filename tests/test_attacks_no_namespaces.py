"""The corpus of `attacks/` where the machine permits no namespaces: Landlock, seccomp and limits alone."""

from __future__ import annotations

import pytest
from attacks.canaries import Canaries
from attacks.checks import CorpusChecks, kept
from attacks.playing import Played, play

from codea1_env.sandbox import LocalSandbox

__all__ = ["kept"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def played(kept: Canaries) -> Played:
    with LocalSandbox(without=("namespaces",)) as sandbox:
        return play(sandbox, kept.words, calls=1)


class TestWithoutNamespaces(CorpusChecks):
    """All of it."""
