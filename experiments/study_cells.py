"""Cells of the study, one run of a recipe each: planned, run in processes of their own, read back, and run again.

A cell's directory holds config.yaml (what the arm changes), log.txt, run/ (the recipe's own directory) and, once it is
done, cell.json. A cell that was interrupted goes on from its last checkpoint. Does not judge results: study_report.py
does.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from study_arms import Arm
from study_numbers import measures_of

from codea1_env.arena.failures import require_running
from codea1_env.closing import end_with
from codea1_env.configuration.algorithm import digests, located
from codea1_env.configuration.presets import Preset, load_preset, preset_from_dict
from codea1_env.errors import ConfigurationError, SandboxError
from codea1_env.records.addresses import CONFIG_FILE
from codea1_env.sandbox import LocalSandbox
from codea1_env.whole_files import write_whole

ROOT = Path(__file__).parent.parent
DONE, LOG = "cell.json", "log.txt"
_ROOM_BYTES = 1 << 20
"""What there must be room for to begin a cell: a checkpoint of the smallest preset has as much."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One run: a preset, an arm, a seed."""

    preset: str
    arm: Arm
    seed: int
    changes: Mapping[str, Any] = field(default_factory=dict)
    """What the whole study overrides in every preset; the arm's own changes come on top."""
    base: int = 0
    """Which base model: the warm start's seed is the preset's plus this."""

    @property
    def name(self) -> str:
        return f"{self.preset}/{self.arm.name}/{self._run}"

    @property
    def _run(self) -> str:
        return f"base{self.base}-seed{self.seed}" if self.base else f"seed{self.seed}"

    @property
    def overrides(self) -> dict[str, Any]:
        """What goes into the cell's configuration file."""
        merged = dict(self.changes)
        for key, value in self.arm.changes.items():
            both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
            merged[key] = {**merged[key], **value} if both else value
        if self.base:
            start = merged.get("warm_start") or {}
            merged["warm_start"] = {**start, "seed": start.get("seed", 0) + self.base}
        algorithm = merged.get("algorithm")
        if self.arm.folder and isinstance(algorithm, Mapping):
            merged["algorithm"] = {"path": [self.arm.folder]} | algorithm
        return merged

    def resolved(self) -> Preset:
        """The preset that the run has. Raises ConfigurationError where the arm's changes do not fit."""
        preset = preset_from_dict(self.overrides, load_preset(self.preset), self.name)
        located(preset.algorithm)
        return preset

    def identity(self) -> str:
        """Equal for cells that are the same run; changes with whatever a user can change."""
        preset = self.resolved()
        plain, own = preset.to_dict(), digests(preset.algorithm)
        plain["algorithm"]["path"] = [own[name]["sha256"] for name in sorted(own)]  # what is there, wherever that is
        parts = [self.arm.recipe, plain, self.seed, self.arm.tester_of]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def base_key(self) -> str:
        """Equal for cells that start from the same base model."""
        preset = self.resolved()
        access = "both" if preset.warm_start.blind_share else preset.options.access
        return f"{self.preset} {access} {self.base}"

    def tester(self) -> str:
        """The name of the cell whose trained tester it gets; empty where it gets none."""
        return f"{self.preset}/{self.arm.tester_of}/{self._run}" if self.arm.tester_of else ""


def plan(
    presets: Sequence[str], arms: Sequence[Arm], seeds: Sequence[int], changes: Mapping[str, Any], bases: int = 1
) -> list[Cell]:
    """All cells, seed by seed and base by base, so that whatever is cut off leaves whole seeds."""
    return [
        Cell(preset, arm, seed, changes, base)
        for seed in seeds
        for base in range(bases)
        for preset in presets
        for arm in arms
    ]


def twins_of(cells: Sequence[Cell]) -> dict[str, str]:
    """The name of every cell to the name of the first one that is the same run (often itself)."""
    first: dict[str, str] = {}
    return {cell.name: first.setdefault(cell.identity(), cell.name) for cell in cells}


def outcome(directory: Path) -> dict[str, Any] | None:
    """What a finished cell left; None where it is not finished, or that file is damaged: it is then made again of what
    the run measured."""
    file = directory / DONE
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) and "identity" in found else None


class Running:
    """One cell's process."""

    def __init__(self, cell: Cell, directory: Path, tester: Path | None) -> None:
        """Start or resume it. `tester`: the run whose trained tester it gets."""
        self.cell = cell
        self._directory = directory
        self._run = directory / "run"
        directory.mkdir(parents=True, exist_ok=True)
        config = directory / CONFIG_FILE
        write_whole(config, yaml.safe_dump({"extends": cell.preset} | cell.overrides, sort_keys=False))
        arguments = ["--config", _seen(config), "--output", _seen(self._run), "--seed", str(cell.seed)]
        if tester is not None:
            arguments += ["--tester", _seen(tester)]
        if (self._run / CONFIG_FILE).is_file():
            arguments = ["--resume", _seen(self._run)]
        elif self._run.exists():
            shutil.rmtree(self._run)  # it ended before there was anything to go on from
        self.command = [sys.executable, cell.arm.recipe, *arguments]
        self._began, self._started = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
        with (directory / LOG).open("ab") as log:
            # One thread each, so that cells side by side do not wait for each other; a session, so that Ctrl-C is ours.
            path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
            environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": path}
            self._process = subprocess.Popen(
                self.command,
                cwd=ROOT,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
                preexec_fn=partial(end_with, os.getpid()),
            )

    def rounds_done(self) -> int:
        """By the run's own account."""
        file = self._run / "metrics.jsonl"
        return file.read_bytes().count(b'"kind": "round"') if file.is_file() else 0

    def poll(self) -> int | None:
        """The process's exit status, None while it runs."""
        return self._process.poll()

    def stop(self) -> None:
        """Ask it to end after its round, with a checkpoint."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        if self.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def finish(self) -> dict[str, Any] | None:
        """Write cell.json and drop the checkpoints; None where the run did not get to its end."""
        if self.poll() != 0 or not (self._run / "summary.json").is_file():
            return None
        configuration = yaml.safe_load((self._run / CONFIG_FILE).read_text(encoding="utf-8"))
        start = configuration["starts"][-1]
        found = {
            "name": self.cell.name,
            "preset": self.cell.preset,
            "arm": self.cell.arm.name,
            "seed": self.cell.seed,
            "base": self.cell.base,
            "identity": self.cell.identity(),
            "measures": measures_of(self._run),
            "command": ["python", *self.command[1:]],
            "started": self._started,
            "seconds": round(time.monotonic() - self._began, 1),
            "starts": len(configuration["starts"]),
            "code": start["code"],
            "judge": start.get("judge", 1),
            "versions": start["versions"],
            "platform": start.get("platform", "not said"),
            "processor": start.get("processor", {}),
            "base_weights": configuration.get("base", "not said"),
        }
        write_whole(self._directory / DONE, json.dumps(found, indent=1) + "\n")
        for checkpoint in self._run.glob("*/checkpoint-*"):
            shutil.rmtree(checkpoint)
        return found

    def last_words(self) -> str:
        """What the log ends with."""
        lines = (self._directory / LOG).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1][-300:] if lines else "no output"


def _seen(path: Path) -> str:
    """As a cell's process sees it, whose folder is the checkout."""
    return os.path.relpath(path, ROOT) if not path.is_absolute() else str(path)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a study ended."""

    failures: Mapping[str, str]
    """Cell to reason."""
    left: tuple[str, ...]
    """Cells that did not begin or did not end, for want of time or by Ctrl-C."""
    interrupted: bool
    stopped: str = ""
    """Why no further cell was begun: infrastructure failed, and would have failed them too."""


def run_cells(
    cells: Sequence[Cell],
    directory: Path,
    *,
    jobs: int,
    budget_s: float,
    show: Callable[[int, Sequence[Running]], None],
) -> Ended:
    """Run what is not done yet, `jobs` at a time, until `budget_s` is over or Ctrl-C, which let rounds end first.

    Cells that are the same run are run once, as the first of them. `show(done, running)` is called at every look. After
    a cell has failed, no other is begun where nothing can run or be written any more (`arena.failures`).

    Raises ConfigurationError where a cell is there with other settings.
    """
    twins = twins_of(cells)
    todo = [cell for cell in cells if twins[cell.name] == cell.name]
    builders = _builders(todo)
    waiting = [cell for cell in todo if not _is_done(cell, directory)]
    done = {cell.name for cell in todo} - {cell.name for cell in waiting}
    running: list[Running] = []
    failures: dict[str, str] = {}
    interrupted, stopped, deadline = False, "", time.monotonic() + budget_s
    try:
        while (waiting or running) and not stopped:
            if time.monotonic() > deadline:
                break
            _drop_hopeless(waiting, twins, failures)
            for cell in tuple(waiting):
                if len(running) < jobs and _is_ready(cell, builders, twins, done | set(failures)):
                    waiting.remove(cell)
                    tester = directory / "cells" / twins[cell.tester()] / "run" if cell.tester() else None
                    running.append(Running(cell, directory / "cells" / cell.name, tester))
            failed = len(failures)
            _settle(running, done, failures)
            if len(failures) > failed:
                stopped = _why_nothing_works(directory)
            show(len(done), running)
            time.sleep(0.1)
    except KeyboardInterrupt:
        interrupted = True
    except OSError as error:  # of a file of the study's own
        stopped = str(error)
    _stop(running, done)
    unfinished = [cell for cell in todo if cell.name not in done and cell.name not in failures]
    left = sorted(unfinished, key=lambda cell: cell not in waiting)  # those that did not begin, then those that did
    return Ended(failures, tuple(cell.name for cell in left), interrupted, stopped)


def _why_nothing_works(directory: Path) -> str:
    """Why every further cell would fail; empty where a program of ours runs and a file can be written."""
    try:
        with LocalSandbox() as sandbox:
            require_running(sandbox)
        write_whole(directory / ".room", bytes(_ROOM_BYTES))
        (directory / ".room").unlink()
    except (SandboxError, OSError) as error:
        return str(error)
    return ""


def _is_done(cell: Cell, directory: Path) -> bool:
    found = outcome(directory / "cells" / cell.name)
    if found is not None and found["identity"] != cell.identity():
        raise ConfigurationError(
            f"--output must be new or of the same study, got {cell.name} with other settings or other code of yours in "
            f"{directory}; name another --output, or delete {directory / 'cells' / cell.name} to run it again"
        )
    return found is not None


def _builders(cells: Sequence[Cell]) -> dict[str, str]:
    """The name of every cell that needs no tester to the first one's that starts from the same base model."""
    first: dict[str, str] = {}
    return {cell.name: first.setdefault(cell.base_key(), cell.name) for cell in cells if not cell.tester()}


def _is_ready(cell: Cell, builders: Mapping[str, str], twins: Mapping[str, str], ended: set[str]) -> bool:
    """Its tester is trained; or, where it needs none, the base model is built or it is the one that builds it."""
    if cell.tester():
        return twins[cell.tester()] in ended
    return builders[cell.name] == cell.name or builders[cell.name] in ended


def _drop_hopeless(waiting: list[Cell], twins: Mapping[str, str], failures: dict[str, str]) -> None:
    """Those whose tester failed."""
    for cell in tuple(waiting):
        if cell.tester() and twins[cell.tester()] in failures:
            waiting.remove(cell)
            failures[cell.name] = f"the tester that it needs failed: {cell.tester()}"


def _settle(running: list[Running], done: set[str], failures: dict[str, str]) -> None:
    """Take the ended ones out."""
    for each in [each for each in running if each.poll() is not None]:
        running.remove(each)
        if each.finish() is None:
            failures[each.cell.name] = f"status {each.poll()}: {each.last_words()}"
        else:
            done.add(each.cell.name)


def _stop(running: list[Running], done: set[str]) -> None:
    """Let every cell end its round; a second Ctrl-C ends them at once. Who did not get done is no failure."""
    for each in running:
        each.stop()
    try:
        while any(each.poll() is None for each in running):
            time.sleep(0.2)
    except KeyboardInterrupt:
        for each in running:
            each.kill()
    for each in running:
        with contextlib.suppress(OSError):  # no room: the next call finds the run finished
            if each.finish() is not None:  # it ended by itself at this moment
                done.add(each.cell.name)
