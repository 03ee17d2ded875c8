"""The corpus of `attacks/`, through the arena and the real sandbox: verdicts right, canaries untouched, odd style free.

Here on the local backend with all its layers, slowly all of it; `test_attacks_*.py` play it on the others.
"""

from __future__ import annotations

import pytest
from attacks.canaries import Canaries
from attacks.checks import CorpusChecks, kept
from attacks.hostile_asserts import HOSTILE_ASSERTS
from attacks.playing import Played, play
from attacks.programs import HOSTILE_PROGRAMS, ODD_PROGRAMS
from attacks.samples import some_of_each_kind

from codea1_env.reading.pure_expressions import Reason
from codea1_env.sandbox import LocalSandbox

__all__ = ["kept"]


@pytest.fixture(scope="class")
def played(request: pytest.FixtureRequest, kept: Canaries) -> Played:
    with LocalSandbox() as sandbox:
        return play(sandbox, kept.words, calls=2, programs=request.cls.programs)


class TestLocal(CorpusChecks):
    """Some of each kind of hostile programs, and all else."""

    programs = some_of_each_kind(HOSTILE_PROGRAMS, step=8)


@pytest.mark.slow
class TestAllOfThem(CorpusChecks):
    """All of it."""


def test_the_corpus_is_broad() -> None:
    """A table that lost its rows would make the tests above say little."""
    assert len({attack.name for attack in HOSTILE_PROGRAMS}) == len(HOSTILE_PROGRAMS) >= 370
    assert len({hostile.source for hostile in HOSTILE_ASSERTS}) == len(HOSTILE_ASSERTS) >= 80
    assert len(set(ODD_PROGRAMS.values())) == len(ODD_PROGRAMS) >= 40
    of_other_readings = {Reason.CALL_NOT_LEFT, Reason.SEVERAL_CALLS, Reason.EXPECTS_EXCEPTION, Reason.WITH_CHECKER}
    of_other_readings.add(Reason.F_STRING)
    reasons = {hostile.reason for hostile in HOSTILE_ASSERTS if hostile.status == "rejected"}
    assert reasons == set(Reason) - of_other_readings
