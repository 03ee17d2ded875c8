"""The commands `codea1 doctor` and `codea1 sandbox`: which guarantees hold on this machine; prepare the sandboxes."""

from __future__ import annotations

import argparse
import sys

from codea1_env.cli.common import Parser, add_actions, add_command, say
from codea1_env.sandbox.docker.image import DEFAULT_IMAGE, build_image
from codea1_env.sandbox.doctor import KNOWN_BACKENDS, as_json, as_text, examine
from codea1_env.sandbox.protocol import PACKAGES
from codea1_env.terminal import Progress, columns_of

DOCTOR_DESCRIPTION = (
    "Show for each backend of the sandbox which guarantees are active or why not, and what eleven attacks came to. "
    "The exit code is 1 if the default backend is not safe: a required layer is missing, or an attack succeeded."
)
DOCTOR_EXAMPLES = """\
examples:
  codea1 doctor
  codea1 doctor --backend local --json
"""
_EXAMPLES = """\
examples:
  codea1 sandbox build-image
  codea1 sandbox build-image --with numpy --tag codea1:numpy
"""


def add_sandbox(parser: Parser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    build = add_command(
        actions,
        "build-image",
        summary="make the image of the Docker sandbox",
        description="Make the image of the Docker sandbox: on this machine alone, as root, with debootstrap (about a "
        "minute the first time, seconds afterwards), or from a registry's Python image.",
        examples=_EXAMPLES,
    )
    build.add_argument("--tag", default=DEFAULT_IMAGE, help=f"the image's name (default: {DEFAULT_IMAGE})")
    build.add_argument("--from-dockerfile", action="store_true", help="take the base that the Dockerfile names from "
                       "its registry instead of making one here")  # fmt: skip
    build.add_argument("--with", dest="packages", nargs="+", choices=PACKAGES, default=[], metavar="PACKAGE",
                       help=f"packages for programs that may import them ({', '.join(PACKAGES)}), copied from this "
                       "machine's Python, which must be of the image's version")  # fmt: skip
    build.set_defaults(run=_build_image)


def _build_image(options: argparse.Namespace) -> int:
    packages = tuple(dict.fromkeys(options.packages))
    image_id = build_image(options.tag, from_dockerfile=options.from_dockerfile, packages=packages, say=say)
    say(f"made {options.tag} ({image_id})")
    return 0


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
    print(as_json(report) if options.json else as_text(report, columns_of(sys.stdout)))
    return 0 if report.safe else 1
