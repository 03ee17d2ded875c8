"""The metrics of a run, as its directory has them: one record a line, by kind, seat and round.

Does not know what a measure means, nor who writes: see `codea1_env.training.run.run_dir`.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from codea1_env.errors import FormatError

METRICS = "metrics.jsonl"

_log = logging.getLogger(__name__)


def read_metrics(directory: Path) -> list[dict[str, Any]]:
    """Everything logged so far; a line that is being written is left out. Raises FormatError for a line that is no
    record."""
    file = directory / METRICS
    lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
    if lines and not lines[-1].endswith(b"\n"):
        _log.warning("the last line of %s was not written to its end and is left out", file)
        lines.pop()
    records = []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not _is_record(record):
            said = line[:80].decode("utf-8", "replace")
            raise FormatError(f"{file}:{number} must be a record that the run wrote, got {said!r}; mend or remove it")
        records.append(record)
    return records


def _is_record(record: object) -> bool:
    """Whether a run could have written it."""
    if not isinstance(record, dict) or not all(isinstance(record.get(name), str) for name in ("kind", "seat")):
        return False
    values = [value for name, value in record.items() if name not in ("kind", "seat")]
    return type(record.get("round")) is int and all(isinstance(value, int | float | None) for value in values)
