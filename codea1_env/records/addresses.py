"""Addresses of fsspec (`s3://bucket/run`) in place of a run's directory: what is there, and the run brought from there.

A run works in a local directory, since no address promises locks, renames or syncs; `records/remote_copy.py`
copies what is complete. An address is opened anew for each use: a connection may not last from one checkpoint to the
next. Does not promise to see another run at an address in time: the marker is a file, and two that begin in the same
second may miss each other's.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from codea1_env.errors import Codea1Error, ConfigurationError
from codea1_env.extras import extra
from codea1_env.language_models.directories import default_cache
from codea1_env.yaml_files import read_yaml

CONFIG_FILE, SUMMARY, COMPLETE = "config.yaml", "summary.json", "complete.json"
IN_USE, COPIED = "in-use.json", "copied.json"
"""At an address: who writes there; and digests of the files that are neither of a checkpoint nor at the top."""
RECORDS = "run"
"""In a checkpoint at an address: what the run had on record when it was copied."""
CHECKPOINT = re.compile(r"[^/]+/checkpoint-\d+(?![^/])")
"""The folder of a checkpoint, below a seat's."""
_log = logging.getLogger(__name__)


class AddressFailed(Codea1Error):
    """An address cannot be read or written."""


def place_of(text: str) -> Path | str:
    """A path, or an address as it stands."""
    return text if "://" in text else Path(text)


def shown(address: str) -> str:
    """Without a password."""
    return re.sub(r"//[^/@]*@", "//***@", address)


def working_directory(address: str) -> Path:
    """Where a run with this address works: always the same directory on one machine."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", shown(address)).strip("-")[-60:]
    digest = hashlib.sha256(address.rstrip("/").encode()).hexdigest()[:12]
    return default_cache(os.environ) / "runs" / f"{name}-{digest}"


class Place:
    """What is at an address. Names are relative to it. Raises whatever its file system raises."""

    def __init__(self, address: str) -> None:
        with extra("train", "an address needs"):
            import fsspec

        self._system, root = fsspec.core.url_to_fs(address, skip_instance_cache=True)
        self._root = str(root).rstrip("/")
        self._made: set[str] = set()

    def is_file(self) -> bool:
        """Whether the address is a file's, whose name is empty then."""
        return bool(self._system.isfile(self._root))

    def sizes(self) -> dict[str, int]:
        """Every file, with its bytes."""
        self._system.invalidate_cache()
        try:
            found = self._system.find(self._root, detail=True)
        except FileNotFoundError:
            return {}
        names = {str(path).removeprefix(self._root).lstrip("/"): int(each["size"]) for path, each in found.items()}
        if odd := [name for name in names if {"..", "."} & set(name.split("/"))]:
            raise ValueError(f"a file's name must stay in its folder, got {odd[0]!r:.200}")
        return names

    def read(self, name: str) -> bytes | None:
        """The content of a small file; None where there is none."""
        try:
            return bytes(self._system.cat_file(self._path(name)))
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        self._make_folder(name)
        self._system.pipe_file(self._path(name), content)

    def put(self, file: Path, name: str) -> None:
        self._make_folder(name)
        self._system.put_file(str(file), self._path(name))

    def get(self, name: str, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._system.get_file(self._path(name), str(file))

    def delete(self, name: str) -> None:
        self._system.rm_file(self._path(name))

    def delete_checkpoint(self, name: str, there: Iterable[str]) -> None:
        """Never leaves something that could be taken for complete. `there`: names of all files."""
        if f"{name}/{COMPLETE}" in there:
            self.delete(f"{name}/{COMPLETE}")
        if any(each.startswith(f"{name}/") and each != f"{name}/{COMPLETE}" for each in there):
            self._system.rm(self._path(name), recursive=True)

    def _make_folder(self, name: str) -> None:
        folder = self._path(name).rpartition("/")[0]
        if folder not in self._made:
            self._system.makedirs(folder, exist_ok=True)
            self._made.add(folder)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root


@contextmanager
def reached(address: str) -> Iterator[Place]:
    """A place at work. Raises AddressFailed for whatever goes wrong: each file system has errors of its own."""
    try:
        yield Place(address)
    except Codea1Error:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {' '.join(str(error).split()):.300}"
        raise AddressFailed(f"{shown(address)} must be an address that can be read and written, got {said}") from error


def require_free(address: str, place: Place, own: str = "") -> None:
    """Raise ConfigurationError where another run is at work there. `own`: what this run writes into its marker."""
    content = place.read(IN_USE)
    if content is None or content == own.encode():
        return
    try:
        marker = json.loads(content)
        host, process = str(marker["host"]), int(marker["process"])
    except (ValueError, TypeError, KeyError):
        host, process = "unknown", 0
    if host == socket.gethostname() and not _is_alive(process):
        return
    raise ConfigurationError(
        f"{shown(address)} must not be in use by another run, got one of host {host}, process {process}; wait for it, "
        f"or delete {IN_USE} there if it has ended"
    )


def require_new(address: str) -> None:
    """Raise ConfigurationError for what a new run cannot have as its address."""
    try:
        with reached(address) as place:
            require_free(address, place)
            is_new = place.read(CONFIG_FILE) is None
    except AddressFailed as error:
        raise ConfigurationError(f"--output: {error}") from error
    if not is_new:
        raise ConfigurationError(
            f"--output must be an address without a run, got {shown(address)} with {CONFIG_FILE}; to go on with it: "
            "--resume"
        )


def holds(address: str | None, file: Path) -> bool:
    """Whether a file at the top of a run is at its address as it is here; so it is where there is no address."""
    if address is None:
        return True
    with reached(address) as place:
        return place.read(file.name) == file.read_bytes()


def fetched(address: str) -> Path:
    """The local directory in which the run at an address goes on: what this machine has of it where that is as far,
    else brought from there, with the checkpoints of the latest round that all seats have. Raises ConfigurationError."""
    try:
        with reached(address) as place:
            return _fetched(address, place)
    except AddressFailed as error:
        raise ConfigurationError(f"--resume: {error}") from error


def _fetched(address: str, place: Place) -> Path:
    require_free(address, place)
    sizes, target = place.sizes(), working_directory(address)
    if CONFIG_FILE not in sizes:
        raise ConfigurationError(f"--resume must be the address of a run, got {shown(address)} (no {CONFIG_FILE})")
    markers = {name: place.read(name) for name in sizes if CHECKPOINT.fullmatch(name.removesuffix(f"/{COMPLETE}"))}
    latest = _latest(markers, sizes)
    wanted = latest[max(latest)] if latest else []
    aside = target.with_name(f"{target.name}.fetching")
    shutil.rmtree(aside, ignore_errors=True)
    written = [name for each in wanted if (name := f"{each}/{RECORDS}/{CONFIG_FILE}") in sizes]
    place.get([*written, CONFIG_FILE][0], aside / CONFIG_FILE)
    if (target / CONFIG_FILE).is_file():
        files = {str(file.relative_to(target)): file for file in target.glob(f"*/checkpoint-*/{COMPLETE}")}
        own = _latest({name: file.read_bytes() for name, file in files.items()}, None)
        if _began(target) == _began(aside) and max(own, default=0) >= max(latest, default=0):
            shutil.rmtree(aside)
            _log.warning("%s goes on in %s, which is as far", shown(address), target)
            return target
    for name in sizes:
        found = CHECKPOINT.match(name)
        if name not in (IN_USE, COPIED) and (not found or found[0] in wanted):
            place.get(name, aside / name)
    for checkpoint in wanted:  # of the run's records those that are as old as the checkpoint
        records = aside / checkpoint / RECORDS
        for file in records.iterdir() if records.is_dir() else ():
            os.replace(file, aside / file.name)
        shutil.rmtree(records, ignore_errors=True)
    if target.exists():
        kept = next(path for n in range(1, 1_000_000) if not (path := target.with_name(f"{target.name}.{n}")).exists())
        target.rename(kept)
        _log.warning("%s is further than %s, which is now %s", shown(address), target, kept)
    aside.rename(target)
    _log.warning("%s was brought to %s and goes on there", shown(address), target)
    return target


def _latest(markers: Mapping[str, bytes | None], sizes: Mapping[str, int] | None) -> dict[int, list[str]]:
    """By rounds, the checkpoints of all seats, where all have one. `markers`: content of each `complete.json`.
    `sizes`: of all files there; a checkpoint whose files have others is left out."""
    by_seat: dict[str, dict[int, str]] = {}
    for name, content in markers.items():
        checkpoint = name.removesuffix(f"/{COMPLETE}")
        by_seat.setdefault(checkpoint.partition("/")[0], {})
        try:
            record = json.loads(content or b"")
            files = {f"{checkpoint}/{file}": int(each["bytes"]) for file, each in record["files"].items()}
            rounds = int(record["rounds"])
        except (ValueError, TypeError, KeyError, AttributeError):
            _log.warning("a checkpoint is left out: %s must say rounds and files", name)
            continue
        if sizes is not None and (odd := [file for file, size in files.items() if sizes.get(file) != size]):
            _log.warning("a checkpoint is left out: %s must have as many bytes as %s says", odd[0], name)
            continue
        by_seat[checkpoint.partition("/")[0]][rounds] = checkpoint
    common = set.intersection(*map(set, by_seat.values())) if by_seat else set()
    return {rounds: [each[rounds] for each in by_seat.values()] for rounds in common}


def _began(directory: Path) -> Any:
    """The first start of a run, which no other run has."""
    record = read_yaml(directory / CONFIG_FILE, "the run's configuration")
    starts = record.get("starts") if isinstance(record, dict) else None
    return starts[0] if isinstance(starts, list) and starts else None


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return process != os.getpid()  # the number came back: whoever had it has ended
