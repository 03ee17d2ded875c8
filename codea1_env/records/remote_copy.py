"""The copy of a run at an address: what is complete goes there, in an order that never shows half of anything as whole.

Before a checkpoint's `complete.json`, written last, everything is there that the run needs to go on from it: its files,
the run's records as they are, the files beside. It is deleted first. `summary.json` is the last file of a finished run.
A copy that fails is said, the run goes on, and the next copy does what was left; at the end, a copy that is behind is
an error. Does not stop a run that another one has driven from the address, but writes nothing there from then on.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import socket
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path

from codea1_env.errors import ConfigurationError
from codea1_env.records.addresses import (
    CHECKPOINT,
    COMPLETE,
    CONFIG_FILE,
    COPIED,
    IN_USE,
    RECORDS,
    SUMMARY,
    AddressFailed,
    Place,
    reached,
    require_free,
    require_new,
    shown,
)
from codea1_env.whole_files import LOCK

_UNFINISHED = (".tmp", ".partial")
_log = logging.getLogger(__name__)


class RemoteCopy:
    """Copies one run's directory to its address, if it has one."""

    def __init__(self, address: str | None, directory: Path, records: Sequence[str]) -> None:
        """`records`: files at the top of the directory without which the run cannot go on."""
        self._address, self._directory, self._records = address or "", directory, records
        who = {"host": socket.gethostname(), "process": os.getpid(), "token": secrets.token_hex(8)}
        self._marker = json.dumps(who | {"since": datetime.now(UTC).isoformat(timespec="seconds")})
        self._digests: dict[tuple[str, int, int], str] = {}
        self._behind = ""
        self._is_claimed = False

    def claim(self, *, is_new: bool) -> None:
        """Mark the address as this run's. Raises ConfigurationError where it is another's, or cannot be written."""
        if not self._address:
            return
        if is_new:
            require_new(self._address)
        try:
            with reached(self._address) as place:
                require_free(self._address, place)
                place.write(IN_USE, self._marker.encode())
                require_free(self._address, place, self._marker)  # another one may have begun meanwhile
        except AddressFailed as error:
            raise ConfigurationError(f"--output: {error}") from error
        self._is_claimed = True

    def copy(self) -> None:
        """Bring the address up to what the directory holds."""
        if not self._is_claimed:
            return
        try:
            with reached(self._address) as place:
                self._keep_claim(place)
                self._mirror(place)
            self._behind = ""
        except (AddressFailed, ConfigurationError) as error:
            self._behind = str(error)
            _log.warning("not copied, to be tried again at the next checkpoint: %s", error)

    def release(self) -> None:
        """Let others have the address."""
        if not self._is_claimed:
            return
        try:
            with reached(self._address) as place:
                if place.read(IN_USE) == self._marker.encode():
                    place.delete(IN_USE)
        except AddressFailed as error:
            _log.warning("%s may have to be deleted there before another run: %s", IN_USE, error)

    def require_whole(self) -> None:
        """Raises AddressFailed where the last copy failed."""
        if self._behind:
            raise AddressFailed(
                f"the copy must be complete, but it is behind: {self._behind}; everything is in "
                f"{self._directory}; --resume {shown(self._address)} on this machine copies it"
            )

    def _keep_claim(self, place: Place) -> None:
        if place.read(IN_USE) is None:  # somebody has deleted it, and nobody has come
            place.write(IN_USE, self._marker.encode())
        require_free(self._address, place, self._marker)

    def _mirror(self, place: Place) -> None:
        there, top, beside, checkpoints = place.sizes(), list[str](), list[str](), list[str]()
        for file in sorted(self._directory.rglob("*")):
            name = file.relative_to(self._directory).as_posix()
            if CHECKPOINT.match(name):
                if CHECKPOINT.fullmatch(name.removesuffix(f"/{COMPLETE}")) and file.is_file():
                    checkpoints.append(name.removesuffix(f"/{COMPLETE}"))
            elif file.is_file() and name != LOCK and not file.name.endswith(_UNFINISHED):
                (beside if "/" in name else top).append(name)
        if SUMMARY in there and (SUMMARY not in top or place.read(SUMMARY) != self._content(SUMMARY)):
            place.delete(SUMMARY)
        self._put_beside(place, beside, there)
        if CONFIG_FILE not in there:
            place.put(self._directory / CONFIG_FILE, CONFIG_FILE)
        for name in checkpoints:
            self._put_checkpoint(place, name, there)
        for name in sorted(top, key=lambda each: each == SUMMARY):
            place.put(self._directory / name, name)
        for name in sorted({found[0] for each in there if (found := CHECKPOINT.match(each))} - set(checkpoints)):
            place.delete_checkpoint(name, there)

    def _put_checkpoint(self, place: Place, name: str, there: Collection[str]) -> None:
        marker = f"{name}/{COMPLETE}"
        content = self._content(marker)
        if marker in there and place.read(marker) == content:
            return
        place.delete_checkpoint(name, there)
        for file in json.loads(content)["files"]:
            place.put(self._directory / name / file, f"{name}/{file}")
        for record in self._records:
            if (self._directory / record).exists():
                place.put(self._directory / record, f"{name}/{RECORDS}/{record}")
        place.write(marker, content)

    def _put_beside(self, place: Place, names: Sequence[str], there: Collection[str]) -> None:
        """Files that are neither of a checkpoint nor at the top, such as duels and final models: those that changed."""
        known = self._known(place)
        digests = {name: self._digest(name) for name in names}
        kept = {name: digest for name, digest in digests.items() if known.get(name) == digest and name in there}
        for name in names:
            if name not in kept:
                place.put(self._directory / name, name)
        for name in known:
            if name not in digests and name in there:
                place.delete(name)
        if kept != digests:
            place.write(COPIED, json.dumps(digests).encode())

    def _known(self, place: Place) -> dict[str, str]:
        try:
            known = json.loads(place.read(COPIED) or b"{}")
        except ValueError:
            return {}
        return known if isinstance(known, dict) else {}

    def _digest(self, name: str) -> str:
        file = self._directory / name
        state = file.stat()
        key = (name, state.st_size, state.st_mtime_ns)
        if key not in self._digests:
            with file.open("rb") as content:
                self._digests[key] = hashlib.file_digest(content, "sha256").hexdigest()
        return self._digests[key]

    def _content(self, name: str) -> bytes:
        return (self._directory / name).read_bytes()
