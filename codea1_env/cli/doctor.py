"""The command `codea1 doctor`: which guarantees of the sandbox hold on this machine."""

from __future__ import annotations

import argparse
import sys

from codea1_env.sandbox.doctor import KNOWN_BACKENDS, as_json, as_text, examine
from codea1_env.terminal import Progress

DESCRIPTION = (
    "For each sandbox backend: every guarantee, active or not and why, and eleven attacks of our own with what they "
    "came to. Exit code 1 when the default backend is not safe: a required layer is missing, or an attack succeeded."
)
EXAMPLES = """\
examples:
  codea1 doctor
  codea1 doctor --backend local --json
"""


def add_doctor(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.set_defaults(run=_doctor)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    parser.add_argument("--backend", choices=KNOWN_BACKENDS, action="append", dest="backends", help="look at this one "
                        "only; may be given several times (default: all)")  # fmt: skip


def _doctor(options: argparse.Namespace) -> int:
    backends = dict.fromkeys(options.backends or KNOWN_BACKENDS)
    with Progress(sys.stderr, "backends", len(backends)) as progress:
        report = examine(progress.over(backends))
    print(as_json(report) if options.json else as_text(report))
    return 0 if report.safe else 1
