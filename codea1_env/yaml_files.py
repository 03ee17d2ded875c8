"""YAML files as plain data: presets, and the configuration that a run writes down.

A file may come from anybody: it is bounded in bytes and in depth, has no aliases and no tags, so that reading it takes
as long as the file is, has no key twice in a mapping, and holds what JSON can hold. Does not know what a field means:
see `configuration/presets.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from codea1_env.errors import ConfigurationError

MAX_BYTES = 1 << 18
"""Of a file. The largest preset has 4 KB; a run writes 1 KB more whenever it is resumed."""
MAX_DEPTH = 16
"""Lists and mappings within each other. Presets have 3."""
MAX_DIGITS = 18
"""Of a whole number."""


def read_yaml(file: Path, what: str) -> Any:
    """Plain data from a YAML file. Raises ConfigurationError naming `what` it was for, in one line."""
    try:
        with file.open("rb") as source:
            content = source.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ValueError(f"it must have at most {MAX_BYTES} bytes, got more")
        text = content.decode("utf-8")
        _check_events(text)
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        _check_keys(node)
        data = loader.construct_document(node) if node else None
        _check_plain(data)
    except (OSError, ValueError, ArithmeticError, yaml.YAMLError) as error:
        said = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise ConfigurationError(f"{what} must be a readable YAML file, got {file}: {said}") from None
    return data


def _check_events(text: str) -> None:
    """Before anything is built: the parser alone neither recurses nor expands."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = 1 + (event.start_mark.line if event.start_mark else 0)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ValueError(f"line {line} must be at most {MAX_DEPTH} lists and mappings deep, got more")
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"line {line} must not have an alias, got *{event.anchor}; write the value out")
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise ValueError(f"line {line} must not have a tag, got {tag[:80]!r}; leave it out")


def _check_keys(node: object) -> None:
    """Raises ValueError for a key that a mapping has twice: the reader would take the last one and say nothing."""
    if isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            line = 1 + key.start_mark.line
            if isinstance(key, yaml.ScalarNode):
                before = lines.setdefault(key.value, 0)
                if before:
                    got = f"{key.value[:80]!r} as on line {before}"
                    raise ValueError(f"line {line} must not have a key again, got {got}; leave one out")
                lines[key.value] = line
            _check_keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _check_keys(item)


def _check_plain(value: object) -> None:
    """Raises ValueError for what JSON has no word for."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"a key must be a text, got {str(key)[:80]}; put it in quotes")
            _check_plain(item)
    elif isinstance(value, list):
        for item in value:
            _check_plain(item)
    elif isinstance(value, int):
        if abs(value) >= 10**MAX_DIGITS:
            raise ValueError(f"a whole number must have at most {MAX_DIGITS} digits, got more")
    elif value is not None and not isinstance(value, str | float):
        raise ValueError(f"a value must be a text, a number, true, false or null, got {value}; put it in quotes")
