"""The rows of a data set: from a local Parquet or JSON-lines file, or from the hub.

The hub needs the extra `data`, Parquet files too. Does not know what the fields mean.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from codea1_env.errors import ConfigurationError, FormatError
from codea1_env.extras import extra
from codea1_env.problems.sources.draft import Row, Source, json_value, shown
from codea1_env.problems.sources.hub import hub_or_cache

_SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz", ".json")
_BATCH_ROWS = 256


def rows_of_source(
    source: Source, path: str | os.PathLike[str] | None, *, split: str | None = None, revision: str | None = None
) -> Iterator[Row]:
    """The rows of a set: from `path` where it is given, else from the hub.

    Raises ConfigurationError where there is no such file, or no `path` for a set that is not on the hub.
    """
    if path is None and not source.split:
        form = "file" if source.rows_of_directory is None else "directory"
        raise ConfigurationError(f"{source.name} must come with a local {form} as PATH, got none")
    if path is None:
        return hub_rows(source.hub_id, split or source.split, revision)
    return local_rows(path) if source.rows_of_directory is None else source.rows_of_directory(Path(path))


def local_rows(path: str | os.PathLike[str]) -> Iterator[Row]:
    """The rows of a file, or of all such files of a directory in the order of their names.

    Raises ConfigurationError where there is no such file, FormatError for one that is not what its name says.
    """
    path = Path(path)
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.name.endswith(_SUFFIXES) and each.is_file())
        if not files:
            raise ConfigurationError(f"{path} must hold files that end in {', '.join(_SUFFIXES)}, got none")
    elif path.is_file() and path.name.endswith(_SUFFIXES):
        files = [path]
    else:
        got = f"a file that ends in {path.suffix!r}" if path.exists() else "no such file"
        raise ConfigurationError(f"{path} must be a directory or a file that ends in {', '.join(_SUFFIXES)}, got {got}")
    return (row for file in files for row in (_parquet(file) if file.suffix == ".parquet" else _json_lines(file)))


def _parquet(path: Path) -> Iterator[Row]:
    with extra("data", "Parquet files need"):
        from pyarrow import ArrowException, parquet
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH_ROWS):
                yield from batch.to_pylist()
    except (ArrowException, OSError) as error:  # the second of damage behind the head
        raise FormatError(f"{path} must be a Parquet file, got: {error}") from None


def _json_lines(path: Path) -> Iterator[Row]:
    opened: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rb") as lines:
            is_list = lines.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"["  # whatever its name, one JSON list
            lines.seek(0)
            rows = _json(lines.read(), f"{path}", "a JSON list") if is_list else ()
            for number, row in enumerate(rows, start=1):
                yield _record(row, f"{path}: row {number}")
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    where = f"{path}:{number}: the line"
                    yield _record(_json(line, where, "one JSON object"), where)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FormatError(f"{path} must be a gzip file, got: {error}") from None


def _json(content: bytes, where: str, must: str) -> Any:
    try:
        return json_value(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where} must be {must} in UTF-8, got: {error}") from None


def _record(row: object, where: str) -> Row:
    if not isinstance(row, dict):
        raise FormatError(f"{where} must be a JSON object, got {shown(row)}")
    return row


def hub_rows(hub_id: str, split: str, revision: str | None = None) -> Iterator[Row]:
    """The rows of a data set on the hub, downloaded where the cache lacks them. Raises FormatError where none come."""
    with extra("data", "data sets from the hub need"):
        import datasets
    try:
        with hub_or_cache():
            loaded = datasets.load_dataset(hub_id, split=split, revision=revision)
    except Exception as error:  # the hub's client has no one base of what a network can do to it
        raise FormatError(
            f"the data set {hub_id} must be within reach, got {type(error).__name__}: {error}; "
            "without a network, give a local file of its rows (docs/your-problems.md)"
        ) from error
    return iter(loaded)
