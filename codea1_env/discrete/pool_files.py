"""Pools on disk: JSON lines, one pool a line; and the pools that come with the package.

Does not judge: what a file says a program came to is believed.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from importlib import resources

from codea1_env.discrete.pool import Pool
from codea1_env.errors import FormatError
from codea1_env.whole_files import whole_file


@functools.cache
def bundled_pools() -> tuple[Pool, ...]:
    """A pool for each bundled problem: its reference and mutants; golden tests, perturbed ones, right and wrong.

    The same tuple at every call. Made by `codea1 pools build`; hidden tests are not in them.
    """
    resource = resources.files("codea1_env.discrete").joinpath("bundled.jsonl")
    with resource.open("rb") as lines:
        return _parsed(lines, "bundled.jsonl")


def read_pools(path: str | os.PathLike[str]) -> tuple[Pool, ...]:
    """All pools of a file, in order. Raises FormatError with path, line, field, what it must be and what it was."""
    with open(path, "rb") as lines:
        return _parsed(lines, os.fspath(path))


def write_pools(path: str | os.PathLike[str], pools: Iterable[Pool]) -> None:
    """Write a file of pools, whole or not at all. Equal pools, equal bytes."""
    with whole_file(path) as file:
        for pool in pools:
            file.write(pool.to_json().encode("ascii") + b"\n")


def _parsed(lines: Iterable[bytes], name: str) -> tuple[Pool, ...]:
    pools: dict[str, Pool] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            pool = Pool.from_json(line)
        except FormatError as error:
            raise FormatError(f"{name}:{number}: {error}") from None
        if pool.problem_id in pools:
            raise FormatError(f"{name}:{number}: problem_id must be unique in its file, got {pool.problem_id!r} again")
        pools[pool.problem_id] = pool
    return tuple(pools.values())
