"""What experiments/gpu_run.sh knows between two commands: what is next, and all that it needs in a few small files.

    python experiments/gpu_state.py next WORK --rounds 75
    python experiments/gpu_state.py run --log LOG --seconds 240 --grace 40 -- COMMAND ...
    python experiments/gpu_state.py pack WORK OUT --rounds 75
    python experiments/gpu_state.py unpack OUT WORK --model MODEL

WORK has the two runs, `code-a1` and `golden`, and the evaluations. `next` prints a stage and its rounds. Golden tests
play as many rounds as Code-A1, and then more, until their tokens cost as much. `run` gives a command Ctrl-C when its
time is up.

`pack` takes of a run that goes on its latest checkpoint, and of one that has ended the adapters alone. Weights stay
float32. Adam's moments are rounded to bfloat16 (`--moments float32` keeps them): a run that goes on from there is not
the same to the bit as one that was never stopped. What a packed run samples depends on seed, seat, round and row: there
is no other random state. `unpack` checks every byte. Does not promise that OUT of a killed `pack` can be used.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from codea1_env.errors import Codea1Error, FormatError
from codea1_env.language_models.directories import ADAPTER, BASE
from codea1_env.records.metrics_file import read_metrics
from codea1_env.terminal import Parser
from codea1_env.training.run.checkpoints import STATE, latest_common, mark_complete, rounds_of
from codea1_env.whole_files import LOCK, write_whole

RUNS = {"code-a1": ("coder", "tester"), "golden": ("coder",)}
"""With their seats, in order."""
EVALUATIONS = ("eval-coder-base", "eval-coder-code-a1", "eval-coder-golden")
DECODED, LEARNT = 19_900, 15_000
"""Tokens a second on one H100 (docs/cluster.md): the prices at which compute is compared."""
ENOUGH = 0.98
"""Share of Code-A1's cost that golden tests must have."""
MOST = 8
"""Times Code-A1's rounds that golden tests have at most."""
WEIGHTS, MANIFEST = "adapter_model.safetensors", "state.json"
PART, ROOM = 15 << 20, 64 << 20
"""Bytes of a part at most, and bytes above which `pack` warns."""


def main() -> None:
    options = arguments()
    try:
        options.action(options)
    except (Codea1Error, OSError) as error:
        raise SystemExit(f"error: {error}") from None


def arguments() -> argparse.Namespace:
    parser = Parser(description=(__doc__ or "").split("\n")[0])
    actions = parser.add_subparsers(required=True)
    following = actions.add_parser("next", help="print the stage that is next, and the rounds that it has in the end")
    run = actions.add_parser("run", help="run a command for some time")
    run.add_argument("--log", type=Path, required=True, help="file that what it prints is added to")
    run.add_argument("--seconds", type=float, required=True, help="after which it gets Ctrl-C")
    run.add_argument("--grace", type=float, required=True, help="seconds after that at which it is killed")
    run.add_argument("command", nargs="+", help="after --")
    pack = actions.add_parser("pack", help="write all that the next command needs")
    unpack = actions.add_parser("unpack", help="read it")
    unpack.add_argument("state", type=Path, help="what `pack` wrote; empty or not there: nothing")
    for action in (following, pack, unpack):
        action.add_argument("work", type=Path, help="directory of the runs")
    unpack.add_argument("--model", type=Path, required=True, help="where the base is now")
    pack.add_argument("out", type=Path, help="a directory")
    pack.add_argument("--moments", choices=("bfloat16", "float32"), default="bfloat16", help="(default: %(default)s)")
    for action in (following, pack):
        action.add_argument("--rounds", type=int, required=True, help="of Code-A1")
    following.set_defaults(action=lambda told: print(*next_stage(told.work, told.rounds)))
    run.set_defaults(action=lambda told: sys.exit(run_for(told.command, told.log, told.seconds, told.grace)))
    pack.set_defaults(action=lambda told: write_state(told.work, told.out, told.rounds, told.moments))
    unpack.set_defaults(action=lambda told: read_state(told.state, told.work, told.model))
    return parser.parse_args()


def next_stage(work: Path, rounds: int) -> tuple[str, int]:
    """And the rounds that it has in the end; 0 where it has none. ("done", 0) where nothing is left."""
    if not (work / "code-a1" / "summary.json").exists():
        return "code-a1", rounds
    wanted = golden_rounds(work)
    if not (work / "golden" / "summary.json").exists() or wanted > rounds_played(work / "golden"):
        return "golden", wanted
    left = [name for name in EVALUATIONS if not (work / name / "results.json").exists()]
    return (left[0] if left else "done"), 0


def golden_rounds(work: Path) -> int:
    """With which golden tests cost what Code-A1 did, by what they have cost a round so far."""
    rounds, played = rounds_played(work / "code-a1"), rounds_played(work / "golden")
    price, spent = cost(work / "code-a1"), cost(work / "golden")
    if played < rounds or spent >= ENOUGH * price or played >= MOST * rounds:
        return max(rounds, played)
    return min(math.ceil(played * price / spent), MOST * rounds) if spent else MOST * rounds


def rounds_played(run: Path) -> int:
    return max((record["round"] for record in seat_records(run)), default=0)


def cost(run: Path) -> float:
    """Of all seats, in seconds: tokens decoded and learnt at their prices, without those of prompts."""
    prices = {"tokens": DECODED, "learnt_tokens": LEARNT}
    return sum((record.get(name) or 0) / price for record in seat_records(run) for name, price in prices.items())


def seat_records(run: Path) -> Iterator[dict[str, Any]]:
    """A round's of each seat; without a last line that was cut off."""
    return (record for record in read_metrics(run) if record["kind"] == "seat")


def run_for(command: Sequence[str], log: Path, seconds: float, grace: float) -> int:
    """Its status; 130 where it was stopped and did not fail. Ctrl-C here goes on to it, once."""
    with log.open("a") as file:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            return child.wait(seconds)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            child.send_signal(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            status = child.wait(grace)
        except subprocess.TimeoutExpired:
            file.write(f"it must end {grace:.0f} s after Ctrl-C, got none: killed\n")
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            return 130
    return 130 if status in (0, -signal.SIGINT) else status


def write_state(work: Path, out: Path, rounds: int, moments: str) -> None:
    """Compressed files, one after the other, cut into parts; the manifest comes last."""
    stage, _ = next_stage(work, rounds)
    out.mkdir(parents=True, exist_ok=True)
    files, packed = [], bytearray()
    with tempfile.TemporaryDirectory() as place:
        for name, file in sorted(kept(work, stage, moments, Path(place))):
            content, stride = file.read_bytes(), stride_of(file, moments)
            stored = zlib.compress(planes(content, stride), 1)
            files.append({"name": name, "sha256": digest(content), "stride": stride, "stored": len(stored)})
            packed += stored
    parts = []
    for place in range(0, len(packed), PART):
        part = out / f"state.{place // PART:02d}"
        part.write_bytes(packed[place : place + PART])
        parts.append({"name": part.name, "sha256": digest(part.read_bytes())})
    played = {run: rounds_played(work / run) for run in RUNS}
    if stage in RUNS:  # after its checkpoint it may have played more, which will be played again
        played[stage] = max(map(rounds_of, latest(work, stage).values()), default=0)
    manifest = {"next": stage, "rounds": played, "moments": moments, "bytes": len(packed), "parts": parts}
    write_whole(out / MANIFEST, json.dumps(manifest | {"files": files}, indent=1) + "\n")
    if len(packed) > ROOM:
        print(f"the state must fit {ROOM >> 20} MiB to come back from some machines, got {len(packed) / 2**20:.1f}",
              file=sys.stderr)  # fmt: skip
    told = ", ".join(f"{run} {count} rounds" for run, count in played.items())
    print(f"{told}; {len(packed) / 2**20:.1f} MiB in {len(parts)} parts; next: {stage}")


def kept(work: Path, stage: str, moments: str, place: Path) -> Iterator[tuple[str, Path]]:
    """What travels: by its name in WORK, where it lies. `place`: for checkpoints whose moments are rounded."""
    for file in work.rglob("*"):
        name = file.relative_to(work)
        is_final = name.parts[-2:-1] == ("final",)
        if file.is_symlink() or not file.is_file() or file.name == LOCK:
            continue
        if any(part.startswith("checkpoint-") for part in name.parts):
            continue
        if not is_final or file.name in (WEIGHTS, ADAPTER, BASE):  # the tokenizer is the base's
            yield str(name), file
    if stage not in RUNS:
        return
    for checkpoint in latest(work, stage).values():
        found = checkpoint
        if moments == "bfloat16":
            found = place / checkpoint.relative_to(work)
            shutil.copytree(checkpoint, found)
            round_moments(found / STATE)
            mark_complete(found, rounds_of(checkpoint), "adamw")
        for file in found.iterdir():
            yield str(checkpoint.relative_to(work) / file.name), file


def latest(work: Path, run: str) -> dict[str, Path]:
    """By seat, its checkpoint of the round that a run would go on from; empty where there is none."""
    return latest_common({seat: work / run / seat for seat in RUNS[run]})


def round_moments(file: Path) -> None:
    """Of Adam, to bfloat16; they are float32 again when they are loaded."""
    import torch

    held = torch.load(file, map_location="cpu", weights_only=True)
    for moments in held["optimizer"]["state"].values():
        for name, values in moments.items():
            if values.dim():  # the number of steps has none
                moments[name] = values.to(torch.bfloat16)
    torch.save(held, file)


def stride_of(file: Path, moments: str) -> int:
    """Bytes of most of its numbers."""
    return {WEIGHTS: 4, STATE: 2 if moments == "bfloat16" else 4}.get(file.name, 1)


def planes(content: bytes, stride: int) -> bytes:
    """First bytes of all numbers, then second ones: exponents are alike, and compress where they stand together."""
    return b"".join(content[start::stride] for start in range(stride))


def joined(content: bytes, stride: int) -> bytes:
    """`planes` undone."""
    whole, place = bytearray(len(content)), 0
    for start in range(stride):
        count = len(range(start, len(content), stride))
        whole[start::stride] = content[place : place + count]
        place += count
    return bytes(whole)


def read_state(state: Path, work: Path, model: Path) -> None:
    """Raises FormatError, before anything is written, for a state that is not whole."""
    if not state.is_dir() or not any(state.iterdir()):
        work.mkdir(parents=True, exist_ok=True)
        return
    if work.exists() and any(work.iterdir()):
        raise FormatError(f"WORK must be new or empty, got {work} with files in it")
    for name, content in contents(state).items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes(content)
    for final in work.glob("*/*/final"):
        for file, key in ((final / ADAPTER, "base_model_name_or_path"), (final / BASE, "base")):
            told = json.loads(file.read_text(encoding="utf-8"))
            file.write_text(json.dumps(told | {key: str(model.resolve())}, indent=1) + "\n", encoding="utf-8")


def contents(state: Path) -> dict[str, bytes]:
    """All files by name, checked. Raises FormatError."""
    try:
        manifest = json.loads((state / MANIFEST).read_text(encoding="utf-8"))
        parts = [(state / part["name"], part["sha256"]) for part in manifest["parts"]]
        packed = b"".join(checked(file.read_bytes(), sha256, file) for file, sha256 in parts)
        found, place = {}, 0
        for record in manifest["files"]:
            name = Path(record["name"])
            if name.is_absolute() or ".." in name.parts:
                raise FormatError(f"{state / MANIFEST} must name files below WORK, got {name}")
            stored = zlib.decompress(packed[place : place + record["stored"]])
            found[str(name)] = checked(joined(stored, record["stride"]), record["sha256"], name)
            place += record["stored"]
    except (OSError, ValueError, LookupError, TypeError, zlib.error) as error:
        raise FormatError(f"{state} must hold what `pack` wrote, all of it, got {error!r}; take it from the last "
                          "command whose files are whole") from None  # fmt: skip
    return found


def checked(content: bytes, sha256: str, what: Path) -> bytes:
    if digest(content) != sha256:
        raise FormatError(f"{what} must be as it was packed, got another content; bring it back once more")
    return content


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    main()
