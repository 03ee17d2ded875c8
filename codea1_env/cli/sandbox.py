"""The commands `codea1 doctor`, `sandbox` and `audit`: what holds here; prepare it; can a grader be fooled."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from codea1_env.audit.corpus import PARTS, chosen, controls, effects
from codea1_env.audit.grader import command_grader
from codea1_env.audit.page import as_html, as_markdown, as_text as audit_as_text
from codea1_env.audit.run import audit
from codea1_env.checks import require
from codea1_env.cli.common import add_actions, add_command, claim, require_place, say
from codea1_env.errors import ConfigurationError
from codea1_env.sandbox import BACKENDS
from codea1_env.sandbox.docker.image import DEFAULT_IMAGE, build_image
from codea1_env.sandbox.doctor import as_json, as_text, examine
from codea1_env.sandbox.worlds import PACKAGES
from codea1_env.terminal import Parser, Progress, columns_of
from codea1_env.whole_files import write_whole

DOCTOR_DESCRIPTION = (
    "Show for each backend of the sandbox which guarantees are active, why others are not, and whether any of "
    "eleven attacks succeeded. The exit code is 1 if the default backend is not safe (with --backend alone, "
    "if the named one is not): a required layer is missing, or an attack succeeded."
)
DOCTOR_EXAMPLES = """\
examples:
  codea1 doctor
  codea1 doctor --backend local --json
"""
AUDIT_DESCRIPTION = (
    "Send wrong programs that try to be counted as right, and honest ones, through any grader. A grader is a "
    "command that reads one object per line (problem_id, entry_point, program, tests, cases, time_limit_s). It "
    'answers each with a line {"passed": true} or false, or null if it does not grade it. It always runs in '
    "namespaces of its own. The exit code is 1 if a wrong program was counted as right or an honest one was lost. "
    "docs/sandbox.md says how to close each class."
)
_FOR_SCRIPTS = "bigcodebench"
"""Among the names of packages: all that is installed, as by the extra of that name."""
AUDIT_EXAMPLES = """\
examples:
  codea1 audit --grader "python my_grader.py"
  codea1 audit --grader "python my_grader.py" --budget 40 -o report.json --page report.html
"""
_EXAMPLES = """\
examples:
  codea1 sandbox build-image
  codea1 sandbox build-image --with numpy sympy --tag codea1:two-packages
  codea1 sandbox build-image --with bigcodebench --tag codea1:scripts
  codea1 sandbox build-image --with --tag codea1:no-packages
"""


def add_sandbox(parser: Parser) -> None:
    actions = add_actions(parser)
    build = add_command(
        actions,
        "build-image",
        summary="make the image of the Docker sandbox",
        description="Make the image of the Docker sandbox. By default it is made on this machine, as root, with "
        "debootstrap; this takes about a minute the first time and seconds afterwards.",
        examples=_EXAMPLES,
    )
    build.add_argument("--tag", default=DEFAULT_IMAGE, help=f"the image's name (default: {DEFAULT_IMAGE})")
    build.add_argument("--from-dockerfile", action="store_true", help="start from the Python image that the Dockerfile "
                       "names, from its registry")  # fmt: skip
    build.add_argument("--with", dest="packages", nargs="*", choices=[*PACKAGES, _FOR_SCRIPTS], metavar="PACKAGE",
                       help="packages that programs may import, copied from this machine's Python, which must have the "
                       f"image's version: any of {', '.join(PACKAGES)}; without a name, none (default: all that are "
                       f"installed here). {_FOR_SCRIPTS}: all packages installed here, only for programs with test "
                       "scripts")  # fmt: skip
    build.set_defaults(run=_build_image)


def _build_image(options: argparse.Namespace) -> int:
    named = tuple(dict.fromkeys(options.packages or ()))
    for_scripts = _FOR_SCRIPTS in named
    packages = None if options.packages is None else tuple(name for name in named if name != _FOR_SCRIPTS)
    image_id = build_image(
        options.tag, from_dockerfile=options.from_dockerfile, packages=packages, for_scripts=for_scripts, say=say
    )
    say(f"made {options.tag} ({image_id})")
    return 0


def add_doctor(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_doctor)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    parser.add_argument("--backend", choices=BACKENDS, action="append", dest="backends", help="check only this "
                        "one; may be given several times (default: all)")  # fmt: skip


def _doctor(options: argparse.Namespace) -> int:
    backends = dict.fromkeys(options.backends or BACKENDS)
    with Progress(sys.stderr, "backends", len(backends)) as progress:
        report = examine(progress.over(backends))
    print(as_json(report) if options.json else as_text(report, columns_of(sys.stdout)))
    return 0 if report.safe else 1


def add_audit(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_audit)
    parser.add_argument("--grader", metavar="CMD", required=True, help="the command, in quotes; no shell runs it")
    parser.add_argument("--name", help="what the report calls it (default: the command)")
    parser.add_argument("--readable", metavar="PATH", type=Path, action="append", default=[], help="a file or "
                        "directory that the grader needs beside its program, its files and the working directory; "
                        "may be given several times")  # fmt: skip
    parser.add_argument("--part", choices=PARTS, action="append", dest="parts", help="only this part of the "
                        "corpus; may be given several times (default: all)")  # fmt: skip
    parser.add_argument("--budget", metavar="N", type=int, help="most attacks, >= 1, taken from all classes in "
                        "turns and the same every time (default: all)")  # fmt: skip
    parser.add_argument("--wait", metavar="S", type=float, default=30.0, help="seconds to wait for an answer, > 0 "
                        "(default: 30)")  # fmt: skip
    parser.add_argument("-o", "--output", metavar="REPORT.json", type=Path, help="the file of the report")
    parser.add_argument("--page", metavar="PAGE", type=Path, help="the file of a page, .html or .md")
    parser.add_argument("--json", action="store_true", help="the report on standard output instead of the table")


def _audit(options: argparse.Namespace) -> int:
    parts = tuple(dict.fromkeys(options.parts or PARTS))
    total = len(chosen(parts, options.budget)) + len(controls()) + sum(len(effects(part)) for part in parts)
    if options.output is not None:
        require_place("--output", options.output, options.page)
    if options.page is not None:
        require_place("--page", options.page)
        require(options.page.suffix in (".html", ".md"), "--page", "end with .html or .md", options.page)
    try:
        words = shlex.split(options.grader)
    except ValueError as error:
        raise ConfigurationError(f"--grader must be a command with closed quotes, got {options.grader}") from error
    with claim(("--output", options.output), ("--page", options.page)):
        with (
            Progress(sys.stderr, "programs", total) as progress,
            command_grader(words, name=options.name, readable=options.readable, wait_s=options.wait) as grader,
        ):
            result = audit(grader, parts=parts, budget=options.budget, watch=progress.over)
        # First: where the disk has no room for a report, what was found is told all the same.
        print(result.as_json() if options.json else audit_as_text(result), end="" if options.json else "\n")
        if options.output is not None:
            write_whole(options.output, result.as_json())
        if options.page is not None:
            page = as_html([result]) if options.page.suffix == ".html" else as_markdown([result])
            write_whole(options.page, page)
    return 0 if result.clean else 1
