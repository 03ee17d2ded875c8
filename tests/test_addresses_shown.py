"""`codea1 report` and `codea1 view` of runs and files at addresses of fsspec, in memory and over a connection."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from hdfs_server import serving
from report_pages import write_run

from codea1_env import Arena, LocalSandbox, Match, Problem
from codea1_env.cli import main
from codea1_env.cli.report import _live_page
from codea1_env.records.recording import Recorder

TWICE = Problem("twice", "f(x): twice x", "f", "def f(x):\n    return x * 2")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, sandbox: LocalSandbox) -> Path:
    """A run that was stopped: its book is in a checkpoint, beside weights that no page needs."""
    run = write_run(tmp_path_factory.mktemp("runs") / "run")
    (run / "duels").mkdir()
    with Recorder(run / "duels" / "round-1.jsonl") as recorder:
        Arena(sandbox, on_score=recorder.write).play([Match(TWICE, ("def f(x): return 2",), (("assert f(2) == 4",),))])
    checkpoint = run / "coder" / "checkpoint-3"
    checkpoint.mkdir(parents=True)
    shutil.move(run / "book.jsonl", checkpoint)
    (checkpoint / "complete.json").write_text("{}")
    (checkpoint / "model.safetensors").write_bytes(b"weights")
    return run


@pytest.fixture(params=["memory", "webhdfs"])
def address(
    request: pytest.FixtureRequest, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Of the run, with the working directory in a place of its own."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    if request.param == "memory":
        system, root = fsspec.core.url_to_fs(f"memory://bucket/{tmp_path.name}/run")
        for file in run.rglob("*"):
            if file.is_file():
                system.pipe_file(f"{root}/{file.relative_to(run).as_posix()}", file.read_bytes())
        yield f"memory:/{root}"
    else:
        shutil.copytree(run, tmp_path / "served" / "run")
        with serving(tmp_path / "served") as server:
            yield f"{server}/run"


def test_a_report_of_an_address_is_that_of_the_run(address: str, run: Path, capsys: Any) -> None:
    assert main(["report", address, "--no-png", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["written"] == ["report.html", "report-duels.html"]
    assert (told["runs"][0]["name"], told["runs"][0]["directory"]) == ("run", address)
    assert main(["report", str(run), "--no-png", "--json", "-o", "local.html"]) == 0
    local = json.loads(capsys.readouterr().out)
    assert local["runs"] == [told["runs"][0] | {"directory": str(run)}]
    assert address in Path("report.html").read_text()


def test_runs_of_one_name_are_told_apart_by_their_addresses(address: str, run: Path, capsys: Any) -> None:
    assert main(["report", str(run), address, "--no-png", "--no-duels", "--json", "-o", "both.html"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)["runs"]] == [str(run), address]


def test_a_view_of_an_address_is_that_of_the_run_or_the_file(address: str, run: Path) -> None:
    assert main(["view", address]) == 0
    assert main(["view", str(run), "-o", "local.html"]) == 0
    assert Path("run.html").read_bytes() == Path("local.html").read_bytes()
    assert main(["view", f"{address}/duels/round-1.jsonl"]) == 0
    assert main(["view", str(run / "duels" / "round-1.jsonl"), "-o", "local.html"]) == 0
    assert Path("round-1.html").read_bytes() == Path("local.html").read_bytes()


def test_a_page_that_follows_looks_at_the_address_again(address: str) -> None:
    assert address in _live_page([address])


def test_a_cell_of_a_study_shows_its_run_also_at_an_address(run: Path, tmp_path: Path, capsys: Any) -> None:
    cell = tmp_path / "code_a1" / "seed0"
    shutil.copytree(run, cell / "run")
    for name in ("cell.json", "config.yaml", "log.txt"):
        (cell / name).write_text("{}")
    for place in (str(cell), f"file://{cell}"):
        page = tmp_path / "page.html"
        assert main(["report", place, "--no-png", "--no-duels", "--json", "-o", str(page)]) == 0
        (described,) = json.loads(capsys.readouterr().out)["runs"]
        assert (described["name"], described["rounds_done"], described["status"]) == ("seed0", 3, "finished")
        assert main(["view", place, "-o", str(page)]) == 0
        assert "1 duels" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "place", "must"),
    [
        ("report", "{}/none", "RUN_DIR must be the address of a run or a file"),
        ("view", "{}/none", "RUN_OR_FILE must be the address of a run or a file"),
        ("report", "{}/duels", "RUN_DIR must be the directory of a run"),
        ("view", "{}/duels", "a run's directory must have duels/round-N.jsonl"),
        ("report", "nosuch://run", "RUN_DIR: nosuch://run must be an address that can be read"),
        ("view", "nosuch://run", "RUN_OR_FILE: nosuch://run must be an address that can be read"),
    ],
)
def test_where_nothing_can_be_shown_the_address_is_named(
    address: str, command: str, place: str, must: str, capsys: Any
) -> None:
    assert main([command, place.format(address)]) == 2
    error = capsys.readouterr().err
    assert must in error
    assert place.format(address) in error
    assert error.count("\n") == 1
    assert not list(Path().iterdir())


def test_models_are_not_brought(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from codea1_env.records.addresses import Place

    brought: list[str] = []
    get = Place.get
    monkeypatch.setattr(Place, "get", lambda self, name, file: (brought.append(name), get(self, name, file))[1])
    assert main(["view", address]) == 0
    assert "coder/checkpoint-3/book.jsonl" in brought
    assert not [name for name in brought if name.endswith("safetensors")]
