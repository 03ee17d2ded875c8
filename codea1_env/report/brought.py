"""What commands show of a run or of a file at an address of fsspec, brought to this machine while the command lasts.

Brought are a run's records, duels and Mistake Books; its models stay where they are. Does not write to an address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from codea1_env.errors import ConfigurationError, FormatError
from codea1_env.mistake_book.parts import DIRECTORY, FILE
from codea1_env.records.addresses import COMPLETE, CONFIG_FILE, AddressFailed, reached, shown
from codea1_env.records.duel_sample import FOLDER

CELLS_CARD, CELLS_RUN = "cell.json", "run"
"""In the folder of a study's cell: what says that it is one, and the run."""
_SHOWN = re.compile(
    rf"({CELLS_RUN}/)?([^/]+|{FOLDER}/[^/]+|[^/]+/checkpoint-\d+/({COMPLETE}|{FILE}|{DIRECTORY}/[^/]+))"
)
"""Files of a run that pages are made of."""


def last_name(place: Path | str) -> str:
    """The name of a file or a run, as a page is called by."""
    return place.resolve().name if isinstance(place, Path) else place.rstrip("/").rpartition("/")[2]


@contextmanager
def brought(argument: str, places: Sequence[Path | str]) -> Iterator[list[Path]]:
    """The places as local paths: of a study's cell its run; those that are addresses as copies, which are deleted at
    the end. `argument`: its name in errors. Raises ConfigurationError for a folder of several runs, and where an
    address cannot be read or has nothing.
    """
    if all(isinstance(place, Path) for place in places):
        yield [_run_of(argument, Path(place)) for place in places]
        return
    with TemporaryDirectory(prefix="codea1-") as folder:
        paths = [
            _run_of(
                argument, place if isinstance(place, Path) else _copied(argument, place, Path(folder) / str(number))
            )
            for number, place in enumerate(places)
        ]
        try:
            yield paths
        except (ConfigurationError, FormatError) as error:  # the user knows the address, and not the copy
            said = str(error)
            for path, place in zip(paths, places, strict=True):
                said = said.replace(str(path), shown(str(place)))
            raise type(error)(said) from error


def _run_of(argument: str, path: Path) -> Path:
    """Raises ConfigurationError for a folder of runs, as `make demo` makes one."""
    if (path / CELLS_CARD).is_file() and (path / CELLS_RUN).is_dir():
        return path / CELLS_RUN
    runs = [] if (path / CONFIG_FILE).exists() else sorted(path.glob(f"*/{CONFIG_FILE}"))
    if runs:
        held = " ".join(str(each.parent) for each in runs)
        raise ConfigurationError(
            f"{argument} must be the directory of a run, got {path}, a folder of runs; give {held}"
        )
    return path


def _copied(argument: str, address: str, folder: Path) -> Path:
    target = folder / last_name(address)
    try:
        with reached(address) as place:
            if place.is_file():
                place.get("", target)
                return target
            names = [name for name in place.sizes() if _SHOWN.fullmatch(name)]
            for name in names:
                place.get(name, target / name)
    except AddressFailed as error:
        raise ConfigurationError(f"{argument}: {error}") from error
    if not names:
        raise ConfigurationError(
            f"{argument} must be the address of a run or a file, got {shown(address)}: nothing there"
        )
    return target
