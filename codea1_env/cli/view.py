"""The command `codea1 view`: duels on one HTML page."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from pathlib import Path

from codea1_env.cli.common import claim, require_at_least_one, require_page, say
from codea1_env.errors import ConfigurationError
from codea1_env.records.addresses import place_of, shown
from codea1_env.report.brought import brought, last_name
from codea1_env.sandbox import BACKENDS, Sandbox, open_sandbox
from codea1_env.terminal import Progress
from codea1_env.viewer import read_games
from codea1_env.viewer.page import DEFAULT_LIMIT, left_out, page_of

DESCRIPTION = (
    "Write one HTML page that shows duels: question, program, suite, every verdict, and every term of both rewards. "
    "It needs no network and no other file, and no text of a program can run in it."
)
EXAMPLES = """\
examples:
  codea1 view runs/mini-seed0
  codea1 view games.jsonl -o games.html --open
  codea1 view s3://bucket/mini-seed0
  codea1 score recorded.jsonl -o scored.jsonl --details && codea1 view scored.jsonl

The page says what a file does not hold. --execute plays recorded games again in the sandbox and shows the verdicts of
today, also for recordings without scores.
"""


def add_view(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_view)
    parser.add_argument("input", metavar="RUN_OR_FILE", type=place_of, help="a training run's directory, the "
                        "output of `codea1 score`, or a recording of games: a path, or an address "
                        "for fsspec")  # fmt: skip
    parser.add_argument("-o", "--output", metavar="PAGE.html", type=Path, help="the page to write (default: the "
                        "input's name with .html, in the working directory)")  # fmt: skip
    parser.add_argument("--open", action="store_true", help="open the page in the browser of this machine")
    parser.add_argument("--limit", metavar="N", type=int, default=DEFAULT_LIMIT, help="most duels on the page, >= "
                        f"1; if there are more, games are left out evenly (default: {DEFAULT_LIMIT})")  # fmt: skip
    parser.add_argument("--execute", action="store_true", help="play recorded games again instead of showing the "
                        "recorded verdicts")  # fmt: skip
    parser.add_argument("--sandbox", choices=BACKENDS, help="where --execute runs programs (default: "
                        "local)")  # fmt: skip


def _view(options: argparse.Namespace) -> int:
    require_at_least_one(options, "limit")
    if options.sandbox is not None and not options.execute:
        raise ConfigurationError(f"--sandbox must come with --execute, got {options.sandbox} without")
    with brought("RUN_OR_FILE", [options.input]) as (path,):
        return _view_of(path, options)


def _view_of(path: Path, options: argparse.Namespace) -> int:
    """`path`: of the input on this machine."""
    name = last_name(options.input)
    output = options.output or Path(f"{Path(name).stem if path.is_file() else name}.html")
    require_page(output, path)
    with claim(("--output", output)) as stack:
        sandbox: Sandbox | None = None
        if options.execute:
            sandbox = open_sandbox(options.sandbox or "local")
            stack.callback(sandbox.close)
        progress = stack.enter_context(Progress(sys.stderr, "kB"))
        games = read_games(path, options.limit, sandbox, progress.read)
        page = page_of(name, games)
        page.save(output)
    if games.unjudged:
        say(f"games without verdicts in {shown(str(options.input))}: {games.unjudged}; --execute finds them out")
    rest = f"; {left_out(games)}" if left_out(games) else ""
    say(f"wrote {output}: {games.duels} duels, {len(page.content) / 1e6:.1f} MB{rest}")
    address = output.resolve().as_uri()
    print(address)
    if options.open and not webbrowser.open(address):
        say("no browser could be started here; open the address above in one")
    return 0
