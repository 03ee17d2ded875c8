"""What must hold wherever the corpus is played; `test_attacks*.py` say where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from attacks.canaries import Canaries, canaries
from attacks.hostile_asserts import HOSTILE_ASSERTS
from attacks.playing import ODD_TESTS, Played
from attacks.programs import HOSTILE_PROGRAMS, ODD_PROGRAMS, Attack

_LETTERS = {"p": "pass", "f": "fail", "e": "error", "t": "timeout", "c": "crash"}


@pytest.fixture(scope="module")
def kept() -> Iterator[Canaries]:
    """Canaries that belong to this user."""
    with canaries() as made:
        yield made


class CorpusChecks:
    """The module of a subclass has a fixture `played`, which depends on a fixture `kept`: the one above, or another."""

    programs: Sequence[Attack] = HOSTILE_PROGRAMS
    """The hostile programs that are played."""

    def test_a_hostile_program_gets_the_verdict_it_deserves(self, played: Played) -> None:
        assert {attack.name for attack in self.programs} == played.hostile.keys()
        undeserved = {}
        for attack in self.programs:
            allowed, verdicts = {_LETTERS[letter] for letter in attack.verdicts}, played.hostile[attack.name]
            assert "pass" not in allowed
            if len(verdicts) != len(played.carriers[0]) or not set(verdicts) <= allowed:
                undeserved[attack.name] = verdicts
        assert undeserved == {}

    def test_an_honest_program_between_attacks_always_passes(self, played: Played) -> None:
        assert len(played.carriers) == len(self.programs) + 1
        assert {verdict for verdicts in played.carriers for verdict in verdicts} == {"pass"}

    def test_no_attack_changes_a_file(self, played: Played, kept: Canaries) -> None:
        kept.assert_files_untouched()

    def test_no_attack_reaches_a_socket(self, played: Played, kept: Canaries) -> None:
        kept.assert_sockets_untouched()

    def test_no_attack_reaches_another_process(self, played: Played, kept: Canaries) -> None:
        kept.assert_processes_untouched()

    def test_no_attack_leaves_a_process(self, played: Played) -> None:
        assert played.processes_left == []

    def test_an_honest_odd_program_passes(self, played: Played) -> None:
        assert played.odd == dict.fromkeys(ODD_PROGRAMS, ["pass"] * len(ODD_TESTS))

    def test_a_hostile_assert_is_no_test(self, played: Played) -> None:
        found = {}
        for hostile in HOSTILE_ASSERTS:
            *bad, honest = (tuple(test) for test in played.asserts[hostile.source])
            if set(bad) != {(hostile.status, hostile.reason, None)} or honest != ("kept", "", "fail"):
                found[hostile.source] = played.asserts[hostile.source]
        assert found == {}
