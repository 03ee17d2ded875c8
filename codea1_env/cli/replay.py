"""The command `codea1 replay`: recorded games, played again.

Exit codes: 0 all rewards are the same, 1 some differ, the sandbox failed on some, or the file cannot be read to its
end, 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from codea1_env.class_paths import load_class
from codea1_env.cli.common import add_sandbox, require_file, say
from codea1_env.errors import ConfigurationError
from codea1_env.records.recording import ReplayedMatch, read_recording, replay
from codea1_env.rewards.code_a1 import PARTS
from codea1_env.sandbox import open_sandbox
from codea1_env.terminal import Progress

DESCRIPTION = "Play every recorded match again and compare both seats' rewards with the recorded ones, bit for bit."
EXAMPLES = """\
examples:
  codea1 replay games.jsonl
  codea1 replay games.jsonl --json > replayed.jsonl

Matches without rewards (infrastructure had failed) are counted and not compared. The exit code is 1 if a reward
differs, the sandbox failed or the recording was cut off.
"""


def add_replay(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_replay)
    parser.add_argument(
        "input",
        metavar="GAMES.jsonl",
        type=Path,
        help="a recording, as --record and codea1_env.records.recording.Recorder write it",
    )
    add_sandbox(parser, workers=False)
    for part in PARTS:
        parser.add_argument(f"--{part.replace('_', '-')}", metavar="MODULE:CLASS", help="your class that scored "
                            "the recorded matches; no recording imports a module unless you name it here")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="a line for each match: line, problem_id, same, recorded, "
                        "now")  # fmt: skip


def _replay(options: argparse.Namespace) -> int:
    require_file("the recording", options.input)
    if not options.input.stat().st_size:
        raise ConfigurationError(f"the recording must hold matches, got the empty file {options.input}")
    for part, base in PARTS.items():
        if (path := getattr(options, part)) is not None:
            load_class(path, base, f"--{part.replace('_', '-')}")
    compared = unscored = different = lost = 0
    cut: list[str] = []
    kilobytes = options.input.stat().st_size / 1e3
    with (
        options.input.open("rb") as lines,
        open_sandbox(options.sandbox) as sandbox,
        Progress(sys.stderr, "kB", kilobytes) as progress,
    ):
        for each in replay(read_recording(progress.read(lines), cut.append), sandbox):
            if not each.recorded.rewards.is_whole:
                unscored += 1
                continue
            if not each.rewards.is_whole:
                lost += 1
                progress.say(f"line {each.recorded.number}: the sandbox failed, so its rewards are not compared")
                continue
            compared += 1
            different += not each.is_same
            if options.json:
                print(json.dumps(_plain(each)))
            elif not each.is_same:
                print(f"line {each.recorded.number}: {each.recorded.match.problem.problem_id}: "
                      f"recorded {each.recorded.rewards}, now {each.rewards}")  # fmt: skip
    without = f"; {unscored} without rewards" if unscored else ""
    without += f"; the sandbox failed on {lost} more" if lost else ""
    if not compared + unscored + lost and not cut:
        raise ConfigurationError(f"the recording must hold matches, got none in {options.input}")
    say(f"{compared} matches played again, {different} with other rewards{without}")
    for why in cut:
        say(f"codea1: {why}: {options.input} was cut off, and nothing after that was played")
    return 1 if different or lost or cut else 0


def _plain(each: ReplayedMatch) -> dict[str, object]:
    return {
        "line": each.recorded.number,
        "problem_id": each.recorded.match.problem.problem_id,
        "same": each.is_same,
        "recorded": dataclasses.asdict(each.recorded.rewards),
        "now": dataclasses.asdict(each.rewards),
    }
