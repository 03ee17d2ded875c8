"""Code of one's own that a configuration names as `module:Name`: found, loaded, and noted in the run's configuration.

It is a Python module like any other: whatever it does at import happens in every process that trains. Does not promise
that a run can be resumed after its module was changed; the configuration says which text of it each start had.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from codea1_env.errors import ConfigurationError
from codea1_env.training.config.algorithm import Algorithm


def located(algorithm: Algorithm, *folders: Path) -> Algorithm:
    """The section with the folders in which its own modules are looked for, and the modules are there.

    Raises ConfigurationError. Imports no module, but for the packages around it.
    """
    if not algorithm.own:
        return algorithm
    kept = dict.fromkeys([*algorithm.path, *(str(folder.resolve()) for folder in folders)])
    found = replace(algorithm, path=tuple(kept))
    for name in found.own:
        file_of(name, found.path)
    return found


def file_of(name: str, path: Sequence[str]) -> Path:
    """The file of the module in `module:Name`. Raises ConfigurationError where there is none."""
    module = name.split(":")[0]
    _add(path)
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise ConfigurationError(
            f"the module of {name!r} must be in one of {', '.join(path) or 'no folder'}, or where Python finds it "
            "(PYTHONPATH), got no such module"
        )
    return Path(spec.origin)


def load(name: str, path: Sequence[str]) -> Any:
    """What `module:Name` names. Raises ConfigurationError where the module has no such thing."""
    module, attribute = name.split(":")
    file = file_of(name, path)
    try:
        return getattr(importlib.import_module(module), attribute)
    except AttributeError:
        raise ConfigurationError(f"{file} must have {attribute!r} ({name}), got a module without it") from None


def digests(algorithm: Algorithm) -> dict[str, dict[str, str]]:
    """By name: the file and the SHA-256 of its text."""
    files = {name: file_of(name, algorithm.path) for name in algorithm.own}
    return {
        name: {"file": str(file), "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        for name, file in files.items()
    }


def _add(path: Sequence[str]) -> None:
    """At the end: a file called like a module of Python must not take that one's place."""
    known = {os.path.realpath(folder) for folder in sys.path}
    sys.path.extend(folder for folder in path if os.path.realpath(folder) not in known)
    importlib.invalidate_caches()
