"""A cluster of two nodes with addresses of their own, one of which is switched off while it works: `make test-cluster`.

Scores go on and are the same bytes. A run says which node it has lost, and goes on to the same bits on another one.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from two_nodes import HEAD, SECOND, Impossible, TwoNodes, two_nodes, until

pytest.importorskip("ray", reason="the extra `ray` is not installed")

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("default::ResourceWarning")]
ROOT = Path(__file__).parents[1]
MODES = {"disabled": {}, "token": {"RAY_AUTH_TOKEN": secrets.token_hex(32)}}
CLI = (sys.executable, "-m", "codea1_env.cli")


@pytest.fixture(params=MODES)
def nodes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TwoNodes]:
    """One CPU on the first, three on the second: what needs two is on the second, at least in part."""
    env = {"RAY_AUTH_MODE": request.param, **MODES[request.param], "PYTHONPATH": str(ROOT)}
    try:
        with two_nodes(tmp_path / "nodes", (1, 3), env) as started:
            yield started
    except Impossible as why:
        pytest.skip(f"two nodes with addresses of their own need namespaces: {why}")


def lines(count: int) -> str:
    """Matches that take a while: their programs sleep."""
    slow = "import time\ndef f(x):\n    time.sleep(0.05)\n    return x * 2"
    record = {"question": "", "entry_point": "f", "reference_solution": "def f(x):\n    return x * 2"}
    record |= {"codes": [slow, slow + " + (x == 3)"], "suites": [["assert f(1) == 2\nassert f(3) == 6"] * 2] * 2}
    return "".join(json.dumps({"problem_id": f"p{number % 40}", **record}) + "\n" for number in range(count))


def test_scores_go_on_where_a_node_is_lost_and_are_the_same_bytes(nodes: TwoNodes, tmp_path: Path) -> None:
    (tmp_path / "in").write_text(lines(200))
    if nodes.env["RAY_AUTH_MODE"] == "token":
        assert_refused(nodes, tmp_path / "in")
    score = [*CLI, "score", str(tmp_path / "in"), "-o"]
    here = [*score, str(tmp_path / "here"), "--book", str(tmp_path / "here-book")]
    assert subprocess.run(here, check=False, env=nodes.env, capture_output=True).returncode == 0
    there = [*score, str(tmp_path / "there"), "--book", str(tmp_path / "there-book"), "--sandbox", "ray"]
    process = nodes.popen(*there, "--arenas", "4")
    assert until(lambda: process.poll() is not None or nodes.second.runs("ray::Hosted.answer"))
    assert process.poll() is None
    nodes.second.kill()
    _, said = process.communicate(timeout=900)
    assert process.returncode == 0, said
    assert f"joined the Ray cluster at {HEAD}:6379" in said
    assert f"a process on node {SECOND} is lost, scoring line " in said
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    assert (tmp_path / "there-book").read_bytes() == (tmp_path / "here-book").read_bytes()


def test_a_run_says_which_node_it_has_lost_and_goes_on_to_the_same_bits(nodes: TwoNodes, tmp_path: Path) -> None:
    training = pytest.importorskip("training_runs", reason="the extra `train` is not installed")
    (tmp_path / "arenas.yaml").write_text(
        "extends: smoke\narenas: 2\nrounds: 6\nproblems: {train: 2}\n"
        "options: {opponents: uniform, opponent_every: 1, tester_book: 2}\n"
    )
    recipe = [sys.executable, str(ROOT / "agents" / "train_grpo.py"), "--config", str(tmp_path / "arenas.yaml")]
    env = {"CODEA1_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    whole, run = tmp_path / "whole", tmp_path / "run"
    here = subprocess.run([*recipe, "--output", str(whole)], env=nodes.env | env, capture_output=True, check=False)
    assert here.returncode == 0, here.stderr

    process = nodes.popen(*recipe, "--engine", "ray", "--output", str(run), env=env, stdout=subprocess.DEVNULL)
    assert until(lambda: process.poll() is not None or list(run.glob("*/checkpoint-2/complete.json")))
    nodes.second.kill()
    _, said = process.communicate(timeout=900)
    assert process.returncode == 1, said
    assert f"is gone: it was on node {SECOND}, which is lost; " in said.splitlines()[-1]
    assert f"node {SECOND}, which is lost" in (run / "failure.txt").read_text()

    nodes.start_second()
    process = nodes.popen(*recipe[:2], "--resume", str(run), env=env, stdout=subprocess.DEVNULL)
    _, said = process.communicate(timeout=900)
    assert process.returncode == 0, said
    training.assert_same_runs(whole, run)


def assert_refused(nodes: TwoNodes, source: Path) -> None:
    """Who has another token is told so."""
    command = [*CLI, "score", str(source), "-o", str(source.with_name("refused")), "--sandbox", "ray"]
    process = nodes.popen(*command, env={"RAY_AUTH_TOKEN": secrets.token_hex(32)})
    _, said = process.communicate(timeout=900)
    assert process.returncode != 0
    assert "the Ray cluster must be reachable, got: " in said
    assert "token" in said
