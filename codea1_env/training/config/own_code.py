"""Code of one's own that a configuration names as `module:Name`: found, and noted in the run's configuration.

Does not promise that a run can be resumed after its module was changed; the configuration says which text of it each
start had.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from codea1_env.class_paths import file_of
from codea1_env.training.config.algorithm import Algorithm

_SECTION = "algorithm"


def located(algorithm: Algorithm, *folders: Path) -> Algorithm:
    """The section with the folders in which its own modules are looked for, and the modules are there.

    Raises ConfigurationError. Imports no module, but for the packages around it.
    """
    if not algorithm.own:
        return algorithm
    kept = dict.fromkeys([*algorithm.path, *(str(folder.resolve()) for folder in folders)])
    found = replace(algorithm, path=tuple(kept))
    for name in found.own:
        file_of(name, _SECTION, found.path)
    return found


def digests(algorithm: Algorithm) -> dict[str, dict[str, str]]:
    """By name: the file and the SHA-256 of its text."""
    files = {name: file_of(name, _SECTION, algorithm.path) for name in algorithm.own}
    return {
        name: {"file": str(file), "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        for name, file in files.items()
    }
