"""What a run copies to an address: no reader takes half of anything for whole."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from codea1_env.errors import ConfigurationError
from codea1_env.records.addresses import (
    AddressFailed,
    fetched,
    place_of,
    require_new,
    shown,
    working_directory,
)
from codea1_env.records.remote_copy import RemoteCopy
from codea1_env.training.run.checkpoints import latest_common, mark_complete, rounds_of
from codea1_env.whole_files import write_whole

RECORDS = ("config.yaml", "metrics.jsonl", "hidden_tests.json")
SEATS = ("coder", "tester")
CONFIG = "seed: 0\npreset: {name: tiny}\nstarts: [{started: FIRST}]\n"


class Breaking(MemoryFileSystem):  # type: ignore[misc]  # no type stubs
    """Breaks down after so many operations that change something, in the middle of the last one, until it is mended."""

    protocol = "breaking"
    store: dict[str, Any] = {}  # noqa: RUF012 - the base class's own way
    pseudo_dirs = [""]  # noqa: RUF012
    left: float = float("inf")

    @classmethod
    def _strip_protocol(cls, path: Any) -> str:
        return str(MemoryFileSystem._strip_protocol(str(path).removeprefix("breaking://")))

    def _count(self) -> bool:
        """Whether this is the operation that breaks."""
        if Breaking.left <= 0:
            raise ConnectionResetError("the line is down")
        Breaking.left -= 1
        return Breaking.left <= 0

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **how: Any) -> None:
        if self._count():
            super().pipe_file(path, value[: len(value) // 2])
            raise ConnectionResetError("in the middle")
        super().pipe_file(path, value)

    def put_file(self, lpath: str, rpath: str, **how: Any) -> None:
        self.pipe_file(rpath, Path(lpath).read_bytes())

    def rm(self, path: str, recursive: bool = False, maxdepth: int | None = None) -> None:
        for name in self.find(path):
            self.rm_file(name)

    def rm_file(self, path: str) -> None:
        if self._count():
            raise ConnectionResetError("before it")
        super().rm_file(path)


fsspec.register_implementation("breaking", Breaking, clobber=True)


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is in memory, and local directories of runs are this test's own."""
    monkeypatch.setenv("CODEA1_CACHE", str(tmp_path / "cache"))
    yield
    for system in (Breaking, MemoryFileSystem):
        system.store.clear()
        system.pseudo_dirs[:] = [""]
    Breaking.left = float("inf")


def begin(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    write_whole(directory / "config.yaml", CONFIG)


def play_round(directory: Path, rounds: int, keep: int = 2) -> None:
    """What a round leaves, without training: all of it names its round."""
    text = f"round {rounds} "
    with (directory / "metrics.jsonl").open("a") as metrics:
        metrics.write(json.dumps({"kind": "round", "seat": "", "round": rounds}) + "\n")
    write_whole(directory / "hidden_tests.json", json.dumps({"rounds": rounds}))
    (directory / "duels").mkdir(exist_ok=True)
    (directory / "duels" / f"round-{rounds}.jsonl").write_text(text * 5)
    for seat in SEATS:
        checkpoint = directory / seat / f"checkpoint-{rounds}"
        (checkpoint / "parts").mkdir(parents=True)
        (checkpoint / "model.safetensors").write_text(text * 20)
        (checkpoint / "parts" / "0").write_text(text + seat)
        mark_complete(checkpoint, rounds, "adamw")
        shutil.rmtree(directory / seat / f"checkpoint-{rounds - keep}", ignore_errors=True)


def require_sound(address: str, at_least: int) -> int:
    """A reader on another machine gets a round that is whole, or a run without one; the round."""
    try:
        directory = fetched(address)
    except ConfigurationError:
        if at_least:
            raise
        return 0
    saved = latest_common({seat: directory / seat for seat in SEATS})
    rounds = rounds_of(saved["coder"]) if saved else 0
    assert rounds >= at_least
    lines = (directory / "metrics.jsonl").read_text().splitlines() if rounds else []
    assert [json.loads(line)["round"] for line in lines][:rounds] == list(range(1, rounds + 1))
    if rounds:
        assert json.loads((directory / "hidden_tests.json").read_text())["rounds"] >= rounds
        assert (directory / "config.yaml").read_text() == CONFIG
    for number in range(1, rounds + 1):
        assert (directory / "duels" / f"round-{number}.jsonl").read_text() == f"round {number} " * 5
    shutil.rmtree(directory)
    return rounds


def require_all_of_the_finished(address: str, directory: Path) -> None:
    """Where there is a summary, there is all else of the run that has it."""
    if "summary.json" not in there(address):
        return
    system, root = fsspec.core.url_to_fs(address)
    others = [path for path in directory.rglob("*") if path.is_file() and path.name != "summary.json"]
    for path in others:
        assert system.cat_file(f"{root}/{path.relative_to(directory)}") == path.read_bytes(), path


def copying(address: str, directory: Path, *, is_new: bool = True) -> RemoteCopy:
    copy = RemoteCopy(address, directory, RECORDS)
    copy.claim(is_new=is_new)
    return copy


def there(address: str) -> set[str]:
    system, root = fsspec.core.url_to_fs(address)
    return {str(name).removeprefix(f"{root}/") for name in system.find(root)}


def test_what_is_there_is_what_is_here(tmp_path: Path) -> None:
    here = tmp_path / "run"
    begin(here)
    copy = copying("memory://bucket/run", here)
    for rounds in (1, 2, 3):
        play_round(here, rounds)
        (here / ".metrics.jsonl.12345678.tmp").write_text("half a file")
        copy.copy()
    copy.release()
    local = {str(path.relative_to(here)) for path in here.rglob("*") if path.is_file() and path.suffix != ".tmp"}
    records = {f"{seat}/checkpoint-{n}/run/{name}" for seat in SEATS for n in (2, 3) for name in RECORDS}
    assert there("memory://bucket/run") == local | records | {"copied.json"}
    brought = fetched("memory://bucket/run/")
    for name in local:
        if "checkpoint-2" not in name:
            assert (brought / name).read_bytes() == (here / name).read_bytes(), name
    assert not (brought / "coder" / "checkpoint-2").exists(), "only what the run goes on from"
    assert not (brought / "coder" / "checkpoint-3" / "run").exists()


def broken(copy: RemoteCopy, steps: int) -> bool:
    """A copy that breaks down in this operation; whether it came so far."""
    Breaking.left = steps
    copy.copy()
    has_broken = Breaking.left <= 0
    Breaking.left = float("inf")
    return has_broken


def finish(directory: Path, rounds: int) -> None:
    final = directory / "coder" / "final" / "model.safetensors"
    final.parent.mkdir(exist_ok=True)
    final.write_text(f"after {rounds} rounds")
    write_whole(directory / "summary.json", json.dumps({"rounds": rounds}))


@pytest.mark.parametrize("finished", [False, True], ids=["goes on", "ends"])
def test_wherever_a_copy_breaks_off_the_last_whole_round_is_there(tmp_path: Path, finished: bool) -> None:
    """Every operation breaks once, in its middle; then the same copy is made again."""
    address, here = "breaking://bucket/run", tmp_path / "run"
    begin(here)
    copy = copying(address, here)
    for rounds in (1, 2):
        play_round(here, rounds)
        copy.copy()
    copy.release()
    before = dict(Breaking.store)
    play_round(here, 3)
    if finished:
        finish(here, 3)
    for steps in range(1, 1000):
        Breaking.store.clear()
        Breaking.store.update(before)
        copy = copying(address, here, is_new=False)
        has_broken = broken(copy, steps)
        copy.release()
        require_all_of_the_finished(address, here)
        assert require_sound(address, at_least=2) in (2, 3)
        copy = copying(address, here, is_new=False)
        copy.copy()
        copy.require_whole()
        copy.release()
        assert require_sound(address, at_least=3) == 3
        if not has_broken:
            break
    assert steps >= 25


def test_a_first_copy_that_breaks_off_begins_again_and_a_finished_run_is_not_finished_while_its_files_change(
    tmp_path: Path,
) -> None:
    address = "breaking://bucket/run"
    for steps in range(1, 40, 3):
        for ended_before in (False, True):
            Breaking.store.clear()
            here = tmp_path / f"{steps} {ended_before}"
            begin(here)
            copy = copying(address, here)
            play_round(here, 1)
            if not ended_before:
                broken(copy, steps)
                copy.release()
                require_sound(address, at_least=0)
                continue
            finish(here, 1)
            copy.copy()
            play_round(here, 2)
            finish(here, 2)
            broken(copy, steps)
            if json.dumps({"rounds": 1}).encode() == written(address, "summary.json"):
                assert written(address, "coder/final/model.safetensors") == b"after 1 rounds"
            else:
                require_all_of_the_finished(address, here)


def written(address: str, name: str) -> bytes:
    system, root = fsspec.core.url_to_fs(address)
    return bytes(system.cat_file(f"{root}/{name}")) if system.exists(f"{root}/{name}") else b""


def test_a_round_that_is_played_again_takes_the_place_of_the_first_one(tmp_path: Path) -> None:
    """The first one's checkpoint is there for one seat only, and never stands beside the other seat's second one."""
    here = tmp_path / "run"
    begin(here)
    copy = copying("memory://bucket/run", here)
    play_round(here, 1)
    copy.copy()
    play_round(here, 2)
    for seat in ("tester", "coder"):
        shutil.rmtree(here / seat / "checkpoint-2")
        copy.copy()
    assert not any("checkpoint-2" in name for name in there("memory://bucket/run"))


def test_a_copy_that_fails_is_said_and_made_up_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    here = tmp_path / "run"
    begin(here)
    copy = copying("breaking://bucket/run", here)
    play_round(here, 1)
    assert broken(copy, 3)
    assert "not copied, to be tried again at the next checkpoint: breaking://bucket/run must be" in caplog.text
    assert "ConnectionResetError" in caplog.text
    with pytest.raises(AddressFailed, match=f"everything is in {here}; --resume breaking://bucket/run on this machine"):
        copy.require_whole()
    play_round(here, 2)
    copy.copy()
    copy.require_whole()
    copy.release()
    assert require_sound("breaking://bucket/run", at_least=2) == 2


def test_a_second_run_is_refused_while_the_first_is_there(tmp_path: Path) -> None:
    address = "memory://bucket/run"
    begin(tmp_path / "run")
    copy = copying(address, tmp_path / "run")
    copy.copy()
    system, _ = fsspec.core.url_to_fs(address)
    marker = json.loads(system.cat_file("/bucket/run/in-use.json"))
    system.pipe_file("/bucket/run/in-use.json", json.dumps(marker | {"host": "elsewhere", "process": 7}).encode())
    for refused in (lambda: fetched(address), lambda: copying(address, tmp_path / "run", is_new=False)):
        with pytest.raises(
            ConfigurationError, match="got one of host elsewhere, process 7; wait for it, or delete in-"
        ):
            refused()
    before = there(address)
    play_round(tmp_path / "run", 1)
    copy.copy()  # another run has taken the address: from now on this one writes nothing there
    copy.release()
    assert there(address) == before
    with pytest.raises(AddressFailed, match="must not be in use by another run"):
        copy.require_whole()


def test_the_marker_of_a_process_of_this_machine_that_has_ended_is_no_obstacle(tmp_path: Path) -> None:
    begin(tmp_path / "run")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    system, _ = fsspec.core.url_to_fs("memory://bucket/run")
    for process in (gone.pid, os.getppid(), "x"):
        marker = {"host": socket.gethostname(), "process": process}
        system.pipe_file("/bucket/run/in-use.json", json.dumps(marker).encode())
        if process == gone.pid:
            copying("memory://bucket/run", tmp_path / "run").release()
            continue
        with pytest.raises(ConfigurationError, match="must not be in use"):
            copying("memory://bucket/run", tmp_path / "run")


def test_an_address_that_cannot_be_used_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    for address, message in (
        ("nosuch://bucket/run", "must be an address that can be read and written, got ValueError"),
        ("ftp://user:secret@127.0.0.1:1/run", r"ftp://\*\*\*@127.0.0.1:1/run must be an address that can be"),
    ):
        for refused in (require_new, fetched):
            with pytest.raises(ConfigurationError, match=message) as raised:
                refused(address)
            assert "secret" not in str(raised.value)
    begin(tmp_path / "run")
    with pytest.raises(ConfigurationError, match=r"--resume must be the address of a run, got memory://b/r \(no conf"):
        fetched("memory://b/r")
    copy = copying("memory://b/r", tmp_path / "run")
    copy.copy()
    copy.release()
    with pytest.raises(ConfigurationError, match="--output must be an address without a run, got memory://b/r with"):
        copying("memory://b/r", tmp_path / "run")
    system, _ = fsspec.core.url_to_fs("memory://b/r")
    system.store["/b/r/../../outside"] = system.store["/b/r/config.yaml"]
    with pytest.raises(ConfigurationError, match="a file's name must stay in its folder"):
        fetched("memory://b/r")


def test_a_checkpoint_with_other_sizes_is_left_out_and_the_one_before_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    begin(tmp_path / "run")
    copy = copying("memory://b/r", tmp_path / "run")
    for rounds in (1, 2):
        play_round(tmp_path / "run", rounds)
    copy.copy()
    copy.release()
    fsspec.core.url_to_fs("memory://b/r")[0].pipe_file("/b/r/tester/checkpoint-2/parts/0", b"")
    assert require_sound("memory://b/r", at_least=1) == 1
    named = "tester/checkpoint-2/complete.json"
    assert f"tester/checkpoint-2/parts/0 must have as many bytes as {named} says" in caplog.text


def test_what_this_machine_has_counts_where_it_is_as_far_and_is_kept_where_it_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address = "memory://b/r"
    here = working_directory(address)
    begin(here)
    copy = copying(address, here)
    play_round(here, 1)
    copy.copy()
    copy.release()
    play_round(here, 2)  # and not copied
    assert fetched(address) == here
    assert "which is as far" in caplog.text
    assert (here / "coder" / "checkpoint-2").exists()
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(here, elsewhere)
    play_round(elsewhere, 3)
    copy = copying(address, elsewhere, is_new=False)
    copy.copy()
    copy.release()
    assert fetched(address) == here
    assert [path.name for path in (here / "coder").iterdir()] == ["checkpoint-3"]
    assert (here.with_name(f"{here.name}.1") / "coder" / "checkpoint-2").exists()
    write_whole(here / "config.yaml", CONFIG.replace("FIRST", "OTHER"))  # another run, as far
    fetched(address)
    assert (here / "config.yaml").read_text() == CONFIG


def test_a_path_is_a_path_and_an_address_stays_as_it_is() -> None:
    assert place_of("runs/mini") == Path("runs/mini")
    assert place_of("s3://bucket//run") == "s3://bucket//run"
    assert shown("sftp://me:word@host/run") == "sftp://***@host/run"
    assert working_directory("s3://b/run/") == working_directory("s3://b/run") != working_directory("s3://b/run2")
