"""The prompts of instruct models in either seat: designs by name, designs from files, and the default design.

A design is a YAML or JSON file with a template for each role (`templates.py`); those in `designs/` are known by name. A
file holds its changes; everything else is as in the design that it extends. The words of the default design are ours,
and its content is the method's. Whatever a program says to the tester in its comments is part of the game and is passed
on unchanged. Does not read answers: `reading/responses.py` does.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codea1_env.checks import require
from codea1_env.errors import ConfigurationError, about
from codea1_env.players.templates import ROLES, Prompts, Shot, Template
from codea1_env.yaml_files import read_yaml

DEFAULT = "codea1"
DESIGNS = Path(__file__).parent / "designs"


@functools.cache
def design_names() -> tuple[str, ...]:
    """Every design that `find_prompts` knows by name."""
    return tuple(sorted(file.stem for file in DESIGNS.glob("*.yaml")))


def find_prompts(source: str, folders: Sequence[str] = ()) -> Prompts:
    """The design of that name, or the one in that file: the first that is in one of the folders, or as the path says.

    Raises ConfigurationError.
    """
    if source in design_names():
        return _bundled(source)
    if not source.endswith((".yaml", ".yml", ".json")):
        known = ", ".join(design_names())
        raise ConfigurationError(f"prompts must be one of {known} or a file (.yaml, .json), got {source!r}")
    places = (Path(folder, source) for folder in folders)
    file = next((place for place in places if place.is_file()), Path(source))
    return prompts_from(read_yaml(file, "prompts"), source)


def prompts_from(content: object, where: str) -> Prompts:
    """A design from plain data, as a file or a run's configuration holds it. Raises ConfigurationError naming `where`.

    Keys: `extends`, a design's name, and a role each; a role is the name of the design that it is taken from, or its
    fields, which replace those of the extended design's.
    """
    if not isinstance(content, Mapping):
        raise ConfigurationError(f"prompts {where} must be a mapping of roles to templates, got {content!r:.80}")
    with about(f"prompts {where}"):
        for key in content:
            require(key in ("name", "extends", *ROLES), "a key", f"be one of extends, {', '.join(ROLES)}", key)
        return _read(content, where)


def text_digest(prompts: Prompts) -> str:
    """A digest that changes with any word of the design, and not with its name."""
    plain = {**dataclasses.asdict(prompts), "name": ""}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]


@functools.cache
def _bundled(name: str) -> Prompts:
    file = DESIGNS / f"{name}.yaml"
    return prompts_from({"name": name, **read_yaml(file, "prompts")}, str(file))


def _read(content: Mapping[str, Any], where: str) -> Prompts:
    name = content.get("name", Path(where).stem)
    require(isinstance(name, str), "name", "be text", name)
    extends_nothing = Path(where) == DESIGNS / f"{DEFAULT}.yaml"
    base = None if extends_nothing else _by_name(content.get("extends", DEFAULT), "extends")
    roles = {}
    for role in ROLES:
        current: Template | None = getattr(base, role) if base else None
        given = content.get(role)
        if isinstance(given, str):
            roles[role] = getattr(_by_name(given, role), role)
        elif given is None and current is not None:
            roles[role] = current
        else:
            roles[role] = _template(given, role, current)
    return Prompts(name, **roles)


def _by_name(name: object, where: str) -> Prompts:
    require(isinstance(name, str) and name in design_names(), where, f"be one of {', '.join(design_names())}", name)
    return _bundled(name)


def _template(given: object, role: str, current: Template | None) -> Template:
    if not isinstance(given, Mapping):
        raise ConfigurationError(f"{role} must be a design's name or a mapping of fields to texts, got {given!r:.80}")
    fields = [field.name for field in dataclasses.fields(Template)]
    values: dict[str, Any] = {field: getattr(current, field) for field in fields} if current else {"user": ()}
    for key, value in given.items():
        require(key in fields, f"{role}: a key", f"be one of {', '.join(fields)}", key)
        if key == "examples":
            values[key] = tuple(_example(each, role) for each in _list(value, f"{role}.examples"))
        elif key == "user":
            parts = [value] if isinstance(value, str) else _list(value, f"{role}.user")
            values[key] = tuple(_text(part, f"{role}.user") for part in parts)
        else:
            values[key] = _text(value, f"{role}.{key}")
    return Template(**values)


def _example(given: object, role: str) -> Shot:
    fields = {field.name: field.default is dataclasses.MISSING for field in dataclasses.fields(Shot)}
    if not isinstance(given, Mapping) or not set(given) <= set(fields):
        raise ConfigurationError(f"{role}.examples must have {', '.join(fields)}, got {given!r:.80}")
    for key, is_needed in fields.items():
        if is_needed and not _text(given.get(key), f"{role}.examples: {key}").strip():
            raise ConfigurationError(f"{role}.examples: {key} must be a text that is not empty, got {given.get(key)!r}")
    return Shot(**{key: _text(value, f"{role}.examples: {key}") for key, value in given.items()})


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise ConfigurationError(f"{where} must be a list, got {value!r:.80}")
    return list(value)


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise ConfigurationError(f"{where} must be text, got {value!r:.80}")
    return value
