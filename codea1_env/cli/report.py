"""The command `codea1 report`: a page and a picture of training runs, or a local page that follows them."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from codea1_env.checks import require
from codea1_env.cli.common import claim, require_page, require_place, say
from codea1_env.errors import Codea1Error, ConfigurationError
from codea1_env.records.addresses import place_of, shown
from codea1_env.report.brought import brought
from codea1_env.report.duels import kept_duels
from codea1_env.report.page import RunOnPage, notice, page
from codea1_env.report.runs_read import RunRead, read_runs
from codea1_env.terminal import Progress
from codea1_env.viewer import make_page
from codea1_env.whole_files import write_whole

DESCRIPTION = (
    "Make one page of training runs, side by side. It shows held-out scores and rewards of both seats, "
    "diagnostics, where the time goes, the Mistake Book, and how the configuration differs from the paper's. A run "
    "may be unfinished: the page shows what is there."
)
EXAMPLES = """\
examples:
  codea1 report runs/mini-seed0              # report.html, report.png and report-duels.html in runs/mini-seed0
  codea1 report runs/mini-seed0 runs/golden-seed0 -o compared.html
  codea1 report runs/mini-seed0 --watch                  # a page at 127.0.0.1 that follows the run
  codea1 report s3://bucket/mini-seed0                   # report.html in the working directory

The page is one file without scripts; it opens from disk and loads nothing from a network.
"""


def add_report(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_report)
    parser.add_argument("runs", metavar="RUN_DIR", nargs="+", type=place_of, help="directory of a training "
                        "run, or its address for fsspec (s3://bucket/run)")  # fmt: skip
    parser.add_argument("-o", "--output", metavar="PAGE.html", type=Path, help="the page to write, with the picture "
                        "beside it as .png (default: report.html in the first RUN_DIR, or in the working directory if "
                        "RUN_DIR is an address)")  # fmt: skip
    parser.add_argument("--no-duels", action="store_true", help="write no pages of duels (default: one for each run "
                        "that kept duels, as by `codea1 view`)")  # fmt: skip
    parser.add_argument("--no-png", action="store_true", help="draw no picture (default: one, with matplotlib)")
    parser.add_argument("--watch", action="store_true", help="write nothing, but serve a page that refreshes itself, "
                        "to this machine only, until Ctrl-C")  # fmt: skip
    parser.add_argument("--port", metavar="N", type=int, default=0, help="the port of --watch, 0 to 65535; 0 takes any "
                        "free one (default: 0)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output: what was written, and "
                        "each run's status and latest numbers")  # fmt: skip


def _report(options: argparse.Namespace) -> int:
    require(0 <= options.port <= 65535, "--port", "be in [0, 65535]", options.port)
    if options.port and not options.watch:
        raise ConfigurationError(f"--port must come with --watch, got {options.port} without")
    if options.watch and (options.output or options.json or options.no_png or options.no_duels):
        raise ConfigurationError(
            "--watch writes nothing: it must come without --output, --no-png, --no-duels and --json"
        )
    places = [str(place.resolve()) if isinstance(place, Path) else place for place in options.runs]
    if twice := [name for name, place in zip(_given(options.runs), places, strict=True) if places.count(place) > 1]:
        raise ConfigurationError(f"RUN_DIR must be different directories, got {' and '.join(twice)}")
    with brought("RUN_DIR", options.runs) as directories:
        runs = read_runs(directories, _given(options.runs))
        return _watch(options.runs, options.port) if options.watch else _make(runs, options)


def _make(runs: Sequence[RunRead], options: argparse.Namespace) -> int:
    first = options.runs[0]
    output = options.output or (first if isinstance(first, Path) else Path()) / "report.html"
    picture = None if options.no_png else output.with_suffix(".png")
    require_page(output)
    if picture is not None:
        require_place("--output", picture)
    with claim(("--output", output)):
        written = _write(runs, output, picture, options)
    for run in runs:
        for note in run.notes:
            say(f"codea1: {run.name}: {note}")
    made = {"written": list(map(str, written)), "runs": [_described(run) for run in runs]}
    print(json.dumps(made, indent=1) if options.json else "\n".join(f"wrote {path}" for path in written))
    return 0


def _given(places: Sequence[Path | str]) -> list[str]:
    return [str(place) if isinstance(place, Path) else shown(place) for place in places]


def _write(runs: Sequence[RunRead], output: Path, picture: Path | None, options: argparse.Namespace) -> list[Path]:
    """The page and what stands beside it; what was written."""
    written = [output]
    on_page = [RunOnPage(run, kept_duels(run.directory)) for run in runs]
    if not options.no_duels:
        on_page = [_with_viewer(each, output, number, written) for number, each in enumerate(on_page, 1)]
    write_whole(output, _page(on_page).encode("utf-8", "backslashreplace"))
    if picture is not None and importlib.util.find_spec("matplotlib") is None:
        say(
            "codea1: no picture was drawn, because matplotlib is not installed; install the extra `train`, or pass "
            "--no-png"
        )
    elif picture is not None:
        from codea1_env.report.picture import draw

        with Progress(sys.stderr, "charts") as progress:
            if draw(runs, picture, progress.advance):
                written.append(picture)
    return written


def _with_viewer(each: RunOnPage, output: Path, number: int, written: list[Path]) -> RunOnPage:
    """The run with links into a page of its duels, which is written beside `output`, where it kept any."""
    if not each.kept.duels:
        return each
    beside = output.with_name(f"{output.stem}-duels{number if number > 1 else ''}.html")
    write_whole(beside, make_page(each.run.name, each.kept.games, each.kept.left_out, each.kept.book))
    written.append(beside)
    return RunOnPage(each.run, each.kept, quote(beside.name))


def _page(runs: Sequence[RunOnPage], *, refreshes: bool = False) -> str:
    made = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S %z")
    return page(runs, made, refreshes=refreshes)


def _watch(places: Sequence[Path | str], port: int) -> int:
    from codea1_env.report.watching import ReportServer

    try:
        server = ReportServer(port, lambda: _live_page(places))
    except OSError as error:
        raise ConfigurationError(f"--port must be a free one, got {port}: {error.strerror}") from None
    with server:
        say(f"following at {server.url} until Ctrl-C")
        server.serve_forever(poll_interval=0.2)
    return 0


def _live_page(places: Sequence[Path | str]) -> str:
    """The page as of now; where that fails, one that says why: the next look may find more."""
    try:
        with brought("RUN_DIR", places) as directories:
            runs = read_runs(directories, _given(places))
            return _page([RunOnPage(run, kept_duels(run.directory)) for run in runs], refreshes=True)
    except (Codea1Error, OSError) as error:
        return notice(str(error))


def _described(run: RunRead) -> dict[str, Any]:
    latest: dict[str, float] = {}
    for record in run.records:
        where = "/".join(filter(None, (record.kind, record.seat)))
        latest |= {f"{where}/{name}": value for name, value in record.values.items()}
    return {
        "name": run.name,
        "directory": run.given,
        "status": run.status,
        "rounds_done": run.rounds_done,
        "rounds_planned": run.rounds_planned,
        "latest": latest,
        "notes": list(run.notes),
    }
