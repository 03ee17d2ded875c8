"""A run's directory: configuration, metrics, checkpoints of both seats, Mistake Book, curves; its RUN.md explains each.

A run that ended in whatever way goes on from the latest round that is complete for all seats, as if it had never ended.
Does not promise that two processes may write one run: the second one is refused.
"""

from __future__ import annotations

import json
import logging
import math
import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from codea1_env.configuration.algorithm import digests
from codea1_env.configuration.arguments import RecipeArguments, found_in, read_record
from codea1_env.errors import Codea1Error, ConfigurationError
from codea1_env.extras import extra
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.mistake_book.parts import FILE as BOOK, place_in
from codea1_env.problems.jsonl import problems_hash
from codea1_env.problems.problem import Problem
from codea1_env.records.addresses import CONFIG_FILE, SUMMARY, shown
from codea1_env.records.duel_sample import FOLDER, DuelSample
from codea1_env.records.metrics_file import METRICS, read_metrics
from codea1_env.records.remote_copy import RemoteCopy
from codea1_env.training.run.checkpoints import delete, latest_common, require_fitting, rounds_of, step_of
from codea1_env.training.run.held_out import HIDDEN, HiddenRecord
from codea1_env.training.run.provenance import FILES, changed, this_start, weights_hash
from codea1_env.training.run.trackers import Trackers
from codea1_env.training.samples import SeatRun
from codea1_env.whole_files import RunLock, write_whole

with extra("train", "training needs"):
    import yaml

_log = logging.getLogger(__name__)

CURVES = "curves.png"
QUESTIONS = "questions.json"
"""What the chooser of questions remembers, beside the book."""
FAILURE = "failure.txt"

SEAT_SEEDS = {"coder": 0, "tester": 1, "player": 0}
"""Added to twice the run's seed, so that no two seats of two runs draw from the same stream."""


class Run:
    """One run on disk; a context manager that closes the trackers."""

    def __init__(self, arguments: RecipeArguments, seats: Sequence[str], held_out: Sequence[Problem] = ()) -> None:
        """Create the directory, or find the latest round that is complete for all `seats` and go on from it."""
        self.directory = arguments.output
        self.preset = arguments.preset
        self.seed = arguments.seed
        self.engine = arguments.engine
        self.ray_address = arguments.ray_address
        self._tester = arguments.tester
        self.recipe = arguments.recipe
        self.seats = tuple(seats)
        self.held_out = tuple(held_out)
        """The problems that seats are measured on."""
        self.duels = DuelSample(self.directory.absolute() / FOLDER, self.preset.keep_duels)
        self.place = shown(arguments.address) if arguments.address else str(self.directory)
        """What to name to go on with the run."""
        self._copy = RemoteCopy(arguments.address, self.directory, (CONFIG_FILE, METRICS, HIDDEN))
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock = RunLock(self.directory, alone=True)
        except OSError as error:
            raise Codea1Error(
                f"a run's directory must be one that can be written, got {self.directory}: {error.strerror}; name "
                "another --output"
            ) from error
        try:
            if not arguments.resume:
                self._require_new()
            self._copy.claim(is_new=not arguments.resume)
            self._checkpoints = latest_common(self._outputs()) if arguments.resume else {}
            self.rounds_done = rounds_of(self._checkpoints[self.seats[0]]) if self._checkpoints else 0
            before, records = self._before(), self.records()  # what cannot be read is refused while all is as it was
            self.hidden_record().read()
            if arguments.resume:
                self._require_nothing_lost(before, records)
                self._require_places()
            if self.rounds_done > self.preset.rounds:
                raise ConfigurationError(
                    f"--rounds must be at least the {self.rounds_done} rounds already done, got {self.preset.rounds}"
                )
            require_fitting(self.preset, self._checkpoints, self.rounds_done)
            self._configuration = self._begin(before)
            names = self.preset.report_to
            # What a tracker refuses leaves no run behind: the mended command finds none.
            self._trackers = Trackers(names, self.directory, self._configuration, self.rounds_done)
            self._write_configuration()
            write_whole(self.directory / "RUN.md", FILES)
            (self.directory / FAILURE).unlink(missing_ok=True)  # of the start before
            self._forget_rounds_after(self.rounds_done, records)
            self._copy.copy()
            self._lock.share()
        except BaseException:
            self._copy.release()
            self._lock.release()
            raise

    def checkpoint(self, seat: str) -> Path | None:
        """Where this seat goes on from, or None for the base model."""
        return self._checkpoints.get(seat)

    def seat(self, seat: str, base: Path) -> SeatRun:
        """What a seat needs to train in this run, from `base` or from where it was."""
        known = SEAT_SEEDS.get(seat)  # further testers have one at random, for numpy takes 32 bits at most
        seed = random.Random(f"{seat} {self.seed}").getrandbits(32) if known is None else 2 * self.seed + known
        return SeatRun(self.preset, base, self.directory / seat, seed, self.checkpoint(seat), self._outputs())

    def seat_of(self, role: str, base: Path) -> SeatRun:
        """The seat that plays coder or tester: the player's in self-play, the first of several."""
        names = [seat for seat in self.seats if seat in (role, "player") or seat.startswith(f"{role}_")]
        return self.seat(names[0] if names else role, base)

    @property
    def _keeper(self) -> Path | None:
        """The checkpoint that holds what is no seat's own: of the seat that brings the programs, or the only one."""
        names = [seat for seat in self.seats if not seat.startswith("tester")]
        return self.checkpoint(names[0] if names else self.seats[0])

    def book(self, parts: int = 1) -> MistakeBook:
        """The Mistake Book to start with, in so many parts."""
        saved, rule = place_in(self._keeper) if self._keeper else None, self.preset.book
        return (
            MistakeBook.load(saved, rule, parts=parts) if saved and saved.exists() else MistakeBook(rule, parts=parts)
        )

    def restore_questions(self, restore: Callable[[dict[str, Any]], None]) -> None:
        """Let the chooser know what it knew. A run of an older version has nothing of it."""
        saved = self._keeper
        if saved and (saved / QUESTIONS).exists():
            restore(json.loads((saved / QUESTIONS).read_text(encoding="utf-8")))

    @property
    def configuration(self) -> Mapping[str, Any]:
        """What config.yaml holds."""
        return self._configuration

    def hidden_record(self) -> HiddenRecord:
        """Which hidden tests the coder passed before."""
        return HiddenRecord(self.directory / HIDDEN)

    def log(self, kind: str, rounds_done: int, values: Mapping[str, float], seat: str = "") -> None:
        """One line of metrics.jsonl and the same numbers for the trackers. Not-a-number is written as null."""
        name = f"{kind}/{seat}" if seat else kind
        plain = {key: None if math.isnan(value) else value for key, value in values.items()}
        record: dict[str, Any] = {"kind": kind, "seat": seat, "round": rounds_done} | plain
        with (self.directory / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
            if rounds_done % self.preset.save_rounds == 0:  # a checkpoint of this round follows
                file.flush()
                os.fsync(file.fileno())
        self._trackers.log(name, rounds_done, values)

    def set_problems(self, train: Iterable[Problem], held_out: Iterable[Problem]) -> None:
        """Note which problems the run is about. Raises ConfigurationError where a resumed run had other ones."""
        hashes = {"train": problems_hash(train), "held_out": problems_hash(held_out)}
        known = self._configuration.get("data")
        if known and self.rounds_done and known != hashes:
            raise ConfigurationError(f"the problems of a resumed run must be those it had, {known}, got {hashes}")
        self._configuration["data"] = hashes
        self._write_configuration()

    def set_base(self, base: Path) -> None:
        """Note which weights the run begins with. Raises ConfigurationError where a resumed run had other ones."""
        known = self._configuration.get("base")
        fix = "a warm start differs in its last bits on another processor; copy the folder from the first machine"
        self._configuration["base"] = self._same_weights("the base model", base, known, fix)
        self._write_configuration()

    def records(self) -> list[dict[str, Any]]:
        """Everything logged so far. Raises FormatError for a line that is no record."""
        return read_metrics(self.directory)

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        write_whole(self.directory / SUMMARY, json.dumps(summary, indent=1) + "\n")

    def copy(self) -> None:
        """Bring the address, if there is one, up to what the directory holds."""
        self._copy.copy()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        try:
            self._trackers.close()
            if kind is None or kind is SystemExit:  # after a failure the last checkpoint is there already
                self._copy.copy()
        finally:
            self._copy.release()
            self._lock.release()
        if kind is None:
            self._copy.require_whole()

    def _require_new(self) -> None:
        """Another run may have begun, and ended, since the arguments were looked at."""
        if others := found_in(self.directory):
            raise ConfigurationError(
                f"--output must be a new or empty directory, got {self.directory} with {others[0]}; to go on with it: "
                "--resume"
            )

    def _require_nothing_lost(self, began: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> None:
        """Without a checkpoint a resumed run begins anew, which is right only where none was ever complete. With one,
        say which rounds lack a record."""
        rounds = max((record["round"] for record in records if record["kind"] in ("round", "seat")), default=0)
        if self._checkpoints:
            if rounds < self.rounds_done:
                file = self.directory / METRICS
                _log.warning("%s lacks rounds %d to %d, as curves and reports will", file, rounds + 1, self.rounds_done)
            return
        first = began.get("preset", {}).get("save_rounds", self.preset.save_rounds)
        resumed = any(start.get("rounds_done") for start in began.get("starts", ()))
        # The round after a checkpoint is played once all seats have written theirs, and `final` after the last one.
        if rounds > first or resumed or any((output / "final").exists() for output in self._outputs().values()):
            raise ConfigurationError(
                f"--resume must find a whole checkpoint of the same round in {' and '.join(self.seats)}, got none in "
                f"{self.directory}, of which {rounds} rounds are on record; bring the checkpoints back, or begin a new "
                "run with another --output"
            )
        _log.warning("%s has no checkpoint yet, so the run begins again with its first round", self.directory)

    def _require_places(self) -> None:
        """Raise ConfigurationError where a folder stands in a result's place: it would end the run after its rounds."""
        finals = [output / "final" for output in self._outputs().values()]
        files = [self.directory / name for name in (BOOK, CURVES, SUMMARY)]
        files += [path for final in finals for path in final.glob("*.*")]
        if wrong := [each for each in files if each.is_dir()] or [each for each in finals if each.is_file()]:
            kind, other = ("directory", "file") if wrong[0] in finals else ("file", "directory")
            raise ConfigurationError(f"{wrong[0]} must be a {kind}, or nothing yet, got a {other}; move it away")

    def _before(self) -> dict[str, Any]:
        """The configuration that the last start wrote; empty before the first."""
        file = self.directory / CONFIG_FILE
        return read_record(file) if file.exists() else {}

    def _begin(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """Who starts or resumes the run, and with what."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        own = digests(self.preset.algorithm, *self.preset.reward.own.values(), self.preset.book.policy)
        start = this_start(self.engine, self.rounds_done, now, own)
        starts = list(before.get("starts", ()))
        if self.rounds_done and starts and (others := changed(starts[-1], start)):
            _log.warning(
                "resumed under other conditions (%s): the run continues, but not to the same bits",
                "; ".join(others),
            )
        told = {"recipe": self.recipe, "seed": self.seed, "engine": self.engine}
        self._configuration = told | {"preset": self.preset.to_dict()}
        if self._tester:
            fix = "bring its weights back, or begin a new run with another --output"
            weights = self._same_weights("the tester", self._tester, before.get("tester_weights"), fix)
            self._configuration |= {"tester": str(self._tester), "tester_weights": weights}
        self._configuration |= {name: before[name] for name in ("data", "base") if name in before}
        self._configuration["starts"] = [*starts, start]
        return self._configuration

    def _same_weights(self, what: str, model: Path, known: str | None, fix: str) -> str:
        """Their hash. Raises ConfigurationError where a resumed run had other ones."""
        digest = weights_hash(model)
        if known and self.rounds_done and known != digest:
            raise ConfigurationError(
                f"{what} of a resumed run must be the one it had, {known[:16]}, got {digest[:16]} in {model}; {fix}"
            )
        return digest

    def _write_configuration(self) -> None:
        text = yaml.safe_dump(self._configuration, sort_keys=False, width=120)
        write_whole(self.directory / CONFIG_FILE, text)

    def _outputs(self) -> dict[str, Path]:
        return {seat: self.directory / seat for seat in self.seats}

    def _forget_rounds_after(self, rounds: int, records: Sequence[Mapping[str, Any]]) -> None:
        """What an interrupted run did after its last checkpoint is done again: it must not be counted twice."""
        if (self.directory / METRICS).exists():
            kept = [record for record in records if rounds and self._is_done(record, rounds)]
            write_whole(self.directory / METRICS, "".join(json.dumps(record) + "\n" for record in kept))
        for left in self.directory.glob(".*.????????.tmp"):  # half of a file, of a start that was killed
            left.unlink()
        self.duels.forget_after(rounds)
        for seat, output in self._outputs().items():
            kept_step = step_of(self._checkpoints[seat]) if self._checkpoints else 0
            for checkpoint in output.glob("checkpoint-*"):
                if step_of(checkpoint) > kept_step:
                    delete(checkpoint)

    def _is_done(self, record: Mapping[str, Any], rounds: int) -> bool:
        # The evaluation after the last round comes after its checkpoint.
        is_final = record["kind"] == "evaluation" and record["round"] == self.preset.rounds
        return bool(record["round"] <= rounds and not is_final)
