"""Honest programs get the verdict that plain Python gives them: right ones pass, subtly wrong ones do not.

The corpus is `honest/*.txt`; `honest/differing.txt` lists what differs still, and why. `test_honest_backends.py` has
Docker and Ray.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from attacks.backends import opened
from attacks.samples import some_of_each_kind
from honest.corpus import PAGE, Honest, page_table, read_corpus, read_differing
from honest.judging import differing, in_plain_python, judged

from codea1_env.sandbox import LocalSandbox, Sandbox

CORPUS = read_corpus()
PROGRAMS = [honest for honest in CORPUS if not honest.missing]
KINDS = sorted({honest.kind for honest in CORPUS})
NAMES = ("local", "docker", "ray")


class Played(NamedTuple):
    differ: dict[tuple[str, str], str]
    """{(kind, name): what happened here} of those that are not judged alike."""
    listed: set[tuple[str, str]]
    """Those that may differ on this backend, of those that were run."""


OTHERS = ("no_namespaces", "ordinary_user")
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("local", *OTHERS)]


@pytest.fixture(scope="module", params=["some", *SLOW])
def played(request: pytest.FixtureRequest) -> Iterator[Played]:
    """On the local backend: `some` of each kind, all, and a quarter without namespaces and as an ordinary user."""
    backend = request.param
    if backend == "some":
        yield from on_backend("local", some_of_each_kind(PROGRAMS, step=20), request)
    else:
        yield from on_backend(backend, some_of_each_kind(PROGRAMS) if backend in OTHERS else PROGRAMS, request)


def on_backend(backend: str, programs: Sequence[Honest], request: pytest.FixtureRequest) -> Iterator[Played]:
    """The body of a fixture of a module."""
    run = {(honest.kind, honest.name) for honest in programs}
    listed = read_differing(backend).keys() & run
    # What plain Python says of them, as a slow test sees to.
    claimed = [["pass", *["fail"] * len(honest.wrong)] for honest in programs]
    if backend == "ordinary_user":
        yield Played(_as_ordinary_user(), listed)
    else:
        for sandbox in _opened(backend, request):
            yield Played(differing(judged(sandbox, programs, claimed)), listed)


def _as_ordinary_user() -> dict[tuple[str, str], str]:
    if os.geteuid() != 0:
        pytest.skip("the tests must run as root to become another user; the others have run as an ordinary one")
    command = [sys.executable, "-m", "honest.unprivileged"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=Path(__file__).parent)
    said = json.loads(done.stdout)
    if isinstance(said, dict):
        pytest.skip(said["skip"])
    return {(kind, name): what for kind, name, what in said}


def _opened(backend: str, request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    if backend == "no_namespaces":
        with LocalSandbox(2, without=("namespaces",)) as sandbox:
            yield sandbox
    else:
        yield from opened(backend, request)


def test_the_corpus_is_broad() -> None:
    wrong = sum(len(honest.wrong) for honest in CORPUS)
    assert len(CORPUS) >= 400
    assert len(KINDS) == 16
    assert min(Counter(honest.kind for honest in CORPUS).values()) >= 20
    assert wrong / (wrong + len(CORPUS)) >= 0.15


@pytest.mark.slow
def test_programs_are_right_and_wrong_as_the_corpus_says() -> None:
    plain = in_plain_python(PROGRAMS)
    mistaken = [
        (honest.kind, honest.name, place, said)
        for honest, row in zip(PROGRAMS, plain, strict=True)
        for place, said in enumerate(row)
        if (said == "pass") != (place == 0)
    ]
    assert not mistaken


@pytest.mark.parametrize("kind", KINDS)
def test_plain_pythons_verdict(played: Played, kind: str) -> None:
    listed = {name for of, name in played.listed if of == kind}
    differ = {name: what for (of, name), what in played.differ.items() if of == kind}
    assert {name: what for name, what in differ.items() if name not in listed} == {}, "these differ now"
    assert listed <= differ.keys(), "these are judged alike now: python tests/honest --differing"


@pytest.mark.parametrize("backend", [*NAMES, "no_namespaces"])
def test_what_is_listed_is_in_the_corpus_and_has_a_reason(backend: str) -> None:
    listed = read_differing(backend)
    assert listed.keys() <= {(honest.kind, honest.name) for honest in CORPUS}
    assert all(re.match(r"denied: |not yet( \(\w+\))?: ", reason) for reason in listed.values())


def test_the_page_has_the_table() -> None:
    assert f"<!-- honest -->\n{page_table()}<!-- /honest -->" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("honest", [each for each in CORPUS if each.missing], ids=lambda each: each.name)
def test_not_run(honest: Honest) -> None:
    pytest.skip(f"not installed: {', '.join(honest.missing)}")
