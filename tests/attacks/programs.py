"""The corpus of programs: the text files beside this one, under lines of `#### kind / name / verdicts`, and the sources
that `hostile_sources.py` builds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from attacks.hostile_sources import HOSTILE_SOURCES

_HEADING = re.compile(r"^#### (.+) / (.+) / ?(\w*)$", re.MULTILINE)
_HOSTILE_FILES = tuple(
    f"hostile_{what}" for what in ("programs", "insiders", "system_calls", "values", "objects", "worlds")
)


class Attack(NamedTuple):
    kind: str
    name: str
    verdicts: str
    """The verdicts that are right, as their first letters."""
    source: str


def _read(name: str) -> list[Attack]:
    text = (Path(__file__).parent / f"{name}.txt").read_text(encoding="utf-8")
    _, *parts = _HEADING.split(text)
    return [Attack(*parts[i : i + 3], parts[i + 3].strip("\n") + "\n") for i in range(0, len(parts), 4)]


def _hostile() -> tuple[Attack, ...]:
    found = [attack for name in _HOSTILE_FILES for attack in _read(name)]
    helpers = {attack.name: attack.source for attack in found if attack.kind == "helper"}
    programs = [attack for attack in found if attack.kind != "helper"]
    for name, source in helpers.items():
        programs = [attack._replace(source=attack.source.replace(f"@{name}@", source)) for attack in programs]
    # In fences, so that nobody picks the definition out of the rest.
    texts = [
        Attack("hostile text", name, verdicts, f"```python\n{source}\n```")
        for name, (verdicts, source) in HOSTILE_SOURCES.items()
    ]
    return (*programs, *texts)


HOSTILE_PROGRAMS = _hostile()
_odd = {program.name: program.source for program in _read("odd_programs")}
ODD_PROGRAMS = {**_odd, "windows_line_ends": _odd["recursion"].replace("\n", "\r\n")}
