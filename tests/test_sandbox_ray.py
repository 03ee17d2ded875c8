"""The Ray backend: what the local one answers, once each and in order, whatever is lost on the way."""

import itertools
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.cli import main
from codea1_env.errors import ConfigurationError, SandboxError
from codea1_env.judging.scripts import script_job
from codea1_env.problems import bundled_problems
from codea1_env.problems.kinds import program_job
from codea1_env.sandbox import (
    CallsJob,
    ExpressionsJob,
    Job,
    Limits,
    LocalSandbox,
    RaySandbox,
    open_sandbox,
)
from codea1_env.sandbox.chunks import CHUNK_JOBS, MAX_CHUNK_JOBS, by_zygote, chunks
from codea1_env.sandbox.frames import pack_result, unpacked_result
from codea1_env.sandbox.ray_cluster import NodeSandbox
from codea1_env.sandbox.tasks import zygote_kind
from codea1_env.sandbox.worlds import world_of

needs_ray = pytest.mark.usefixtures("cluster")


def program(number: int, calls: int = 1) -> CallsJob:
    return CallsJob(f"def f(x):\n    return [{number}, x]", "f", tuple(b"[[%d],[]]" % x for x in range(calls)))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 70)), max_size=12), st.integers(1, 8))
def test_chunks_hold_every_job_once_in_order_and_cut_no_program_that_fits(
    runs: list[tuple[int, int]], workers: int
) -> None:
    jobs = [program(number) for number, length in runs for _ in range(length)]
    found = chunks(jobs, workers)
    assert [job for chunk in found for job in chunk] == jobs
    for chunk, following in itertools.pairwise(found):
        assert CHUNK_JOBS <= len(chunk) <= MAX_CHUNK_JOBS
        if chunk[-1] == following[0]:
            assert len(chunk) == MAX_CHUNK_JOBS


@given(st.lists(st.sampled_from(["", "import threading\n", "import decimal\n"]), max_size=20))
def test_jobs_of_one_zygote_are_side_by_side(heads: list[str]) -> None:
    jobs = [CallsJob(f"{head}def f(x): return x", "f", (), world=world_of(head)) for head in heads]
    order = by_zygote(jobs)
    kinds = [zygote_kind(jobs[place]) for place in order]
    assert sorted(order) == [*range(len(jobs))]
    assert len([kind for kind, _ in itertools.groupby(kinds)]) == len(set(kinds))


def test_packed_results_come_out_as_they_went_in() -> None:
    jobs = mixed()
    results = local_answers(jobs)
    assert {outcome.kind for result in results for outcome in result.outcomes} == {"value", "error", "timeout", "crash"}
    assert any(result.load_failure for result in results)
    arrived = [unpacked_result(pack_result(result), job) for job, result in zip(jobs, results, strict=True)]
    assert arrived == results
    times = [[outcome.cpu_ns for outcome in result.outcomes] for result in results]
    assert [[outcome.cpu_ns for outcome in result.outcomes] for result in arrived] == times


def test_a_missing_library_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "from codea1_env.sandbox import open_sandbox\n"
        "try: open_sandbox('ray')\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "extra `ray`" in done.stdout


def test_an_address_is_for_ray_only() -> None:
    with pytest.raises(ConfigurationError, match="address must be left out"):
        open_sandbox("local", address="127.0.0.1:6379")


def test_what_a_caller_waives_is_for_every_node_and_must_be_waivable() -> None:
    pytest.importorskip("ray", reason="the Ray backend needs the extra `ray`")
    for make in (RaySandbox, NodeSandbox):
        make(waive=("filesystem",)).close()
        with pytest.raises(ConfigurationError, match="waive must name seccomp or filesystem"):
            make(waive=("rlimits",))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes with a CPU each; the driver is on the first."""
    pytest.importorskip("ray", reason="the Ray backend needs the extra `ray`")
    import ray
    from ray.cluster_utils import Cluster

    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes.add_node(num_cpus=1)
    nodes.wait_for_nodes()
    usual = os.environ["RAY_ADDRESS"]
    os.environ["RAY_ADDRESS"] = nodes.address
    try:
        ray.init(address=nodes.address, log_to_driver=False, logging_level=logging.ERROR)
        yield nodes
    finally:
        ray.shutdown()
        nodes.shutdown()
        os.environ["RAY_ADDRESS"] = usual
        del os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"]


pytestmark = pytest.mark.filterwarnings("default::ResourceWarning", "ignore::DeprecationWarning:ray")


def busy(count: int) -> list[Job]:
    """Jobs that take long enough for something to happen meanwhile; every answer is another one."""
    source = "def f(n, x):\n    for _ in range(n):\n        x = (x * 16807) % 2147483647\n    return x"
    return [CallsJob(f"{source}  # {i}", "f", (b"[[400000,%d],[]]" % (i + 1),)) for i in range(count)]


def mixed() -> list[Job]:
    """Every kind of job, honest and not."""
    loop = CallsJob("def f(x):\n    while x:\n        pass\n    return 7", "f", (b"[[0],[]]", b"[[1],[]]", b"[[0],[]]"))
    return [
        *(program(i, calls=i % 4) for i in range(30)),
        loop,
        CallsJob("import os\ndef f():\n    os._exit(0)", "f", (b"[[],[]]",)),
        CallsJob("def f(:", "f", (b"[[],[]]",)),
        ExpressionsJob(("1 + 1", "[0] * 3", "1 / 0")),
        ExpressionsJob(("list({'a', 'b', 'c', 'd'})",), hash_seed=1),
        program_job("print(input() * 2)", ("ab", "c"), Limits()),
        script_job(
            "def f(x):\n    return x",
            "def test_a():\n    assert f(1) == 1\ndef test_b():\n    assert f(1) == 2\n",
            Limits(),
        ),
        CallsJob("import numpy\ndef f():\n    return numpy.int64(7)", "f", (b"[[],[]]",), packages=("numpy",)),
    ]


def local_answers(jobs: Sequence[Job]) -> list[Any]:
    with LocalSandbox() as sandbox:
        return sandbox.run(jobs)


def parent(process: int) -> int:
    """0: it has ended, or has none."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def is_ours(process: int) -> bool:
    """Of this process of the test run, on whatever node, or nobody's: its parents were killed. Not of a sibling."""
    while process > 1 and process != os.getpid():
        process = parent(process)
        if process == os.getppid():
            return False
    return True


def zygotes() -> set[int]:
    """Sandbox processes that this process of the test run has started."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        wanted = str(Path(__file__).parents[1] / "codea1_env/sandbox/inside/zygote.py").encode()
        if wanted in command and is_ours(int(process.name)):
            found.add(int(process.name))
    return found


def until(condition: Any, seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(condition())


def run_disturbed(sandbox: RaySandbox, jobs: list[Job], disturb: Any) -> list[Any]:
    """Run `jobs`; call `disturb` once both workers have been given some."""
    both_busy = threading.Event()

    def wait_and_disturb() -> None:
        if until(
            lambda: len(members := list(sandbox._processes._members)) == 2 and all(each.units for each in members)
        ):
            both_busy.set()
            disturb()

    thread = threading.Thread(target=wait_and_disturb)
    thread.start()
    try:
        return sandbox.run(jobs)
    finally:
        thread.join()
        assert both_busy.is_set()


@pytest.mark.slow
@needs_ray
def test_answers_are_those_of_the_local_backend_in_order() -> None:
    with RaySandbox(workers=2, waive=("seccomp",)) as sandbox:  # which takes nothing away where it is there
        assert sandbox.run([]) == []
        assert sandbox.run(mixed()) == local_answers(mixed())
        assert {guarantee for guarantee, active in sandbox.guarantees.items() if active is True} >= {
            "seccomp",
            "rlimits",
        }
    assert until(lambda: not zygotes())
    with pytest.raises(SandboxError, match="must be open"):
        sandbox.run(mixed())


@pytest.mark.slow
@needs_ray
def test_a_node_killed_in_the_middle_of_a_batch_loses_no_job_and_doubles_none(
    cluster: Any, caplog: pytest.LogCaptureFixture
) -> None:
    (victim,) = cluster.worker_nodes
    jobs = busy(96)
    with RaySandbox(workers=2) as sandbox:
        answers = run_disturbed(sandbox, jobs, lambda: cluster.remove_node(victim, allow_graceful=False))
        assert answers == local_answers(jobs)
        assert len({answer.outcomes[0].value for answer in answers}) == len(jobs)
        assert "is lost, running jobs" in caplog.text
        cluster.add_node(num_cpus=1)  # the lost worker's place is taken as soon as there is room
        cluster.wait_for_nodes()
        assert until(
            lambda: sandbox.run(jobs[:16]) and all(member.has_greeted for member in sandbox._processes._members)
        )
        assert sandbox.run(jobs) == answers
    assert until(lambda: not zygotes())


class Deadly(CallsJob):
    """A job on which a worker dies: it ends the process that unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (1,)


@pytest.mark.slow
@needs_ray
def test_a_chunk_that_loses_four_workers_is_an_infrastructure_error() -> None:
    with RaySandbox(workers=2) as sandbox:
        with pytest.raises(SandboxError, match=r"4 died running jobs 8 to 15"):
            sandbox.run([*[program(1)] * 8, *[Deadly("", "f", ())] * 8, *[program(2)] * 8])
        assert sandbox.run(mixed()) == local_answers(mixed())  # and the sandbox goes on


@pytest.mark.slow
@needs_ray
def test_an_arena_and_the_command_line_score_the_same_on_ray_as_here(tmp_path: Path) -> None:
    problem = bundled_problems()[0]
    suite = "\n".join(str(test) for test in problem.golden_tests)
    matches = [Match(problem, (str(problem.reference_solution), *problem.mutants[:3]), ((suite, "assert 1"),) * 4)]
    with Arena(LocalSandbox()) as here, Arena(open_sandbox("ray", workers=2)) as there:
        assert there.play(matches) == here.play(matches)
    source = tmp_path / "in.jsonl"
    record: dict[str, object] = {"question": "", "entry_point": "f", "reference_solution": "def f(x): return x * 2"}
    record["codes"] = ["def f(x): return x + x", "def f(x): return 0"]
    record["suites"] = [["assert f(1) == 2"], ["assert f(3) == 6"]]
    lines = [json.dumps(record | {"problem_id": f"p{number}"}) for number in range(6)]
    source.write_text("\n".join(lines))
    for name, options in (("local", ()), ("ray", ("--sandbox", "ray", "--workers", "2"))):
        assert main(["score", str(source), "-o", str(tmp_path / name), *options]) == 0
    assert (tmp_path / "ray").read_bytes() == (tmp_path / "local").read_bytes()
    assert b'"reward"' in (tmp_path / "ray").read_bytes()


@pytest.mark.slow
def test_an_interrupt_while_a_cluster_starts_ends_with_130_and_leaves_nothing(tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil")
    pytest.importorskip("ray", reason="the Ray backend needs the extra `ray`")
    record = {"problem_id": "p", "question": "", "entry_point": "f", "reference_solution": "def f(x): return x"}
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps(record | {"codes": ["def f(x): return x"], "suites": [["assert f(1) == 1"]]}))
    arguments = ["score", str(source), "-o", str(tmp_path / "out"), "--sandbox", "ray"]
    command = [sys.executable, "-m", "codea1_env.cli", *arguments]
    environment = os.environ | {"RAY_ADDRESS": "local"}
    process = psutil.Popen(command, stderr=subprocess.PIPE, start_new_session=True, env=environment)
    while len(process.children(recursive=True)) < 5 and process.poll() is None:
        time.sleep(0.01)
    family = process.children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (130, b"codea1: interrupted; the same command goes on\n")
    assert not psutil.wait_procs(family, timeout=60)[1]
    assert not (tmp_path / "out").exists()
