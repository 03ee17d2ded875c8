"""The Docker backend against a real engine: the local backend's results, through killed, frozen and lying containers.

Skipped, saying why, where there is no engine or no base image; `.ci/start-docker` brings both.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from containers import candidates, containers_of, started

from codea1_env.cli import main
from codea1_env.errors import ConfigurationError, SandboxError
from codea1_env.judging.scripts import script_job
from codea1_env.problems.kinds import program_job
from codea1_env.sandbox import (
    CallsJob,
    ExpressionsJob,
    Job,
    JobResult,
    Limits,
    LocalSandbox,
    OutcomeKind,
    open_sandbox,
)
from codea1_env.sandbox.docker import image as image_module
from codea1_env.sandbox.docker.backend import DockerSandbox
from codea1_env.sandbox.docker.engine import OWNER_LABEL, SOURCES_LABEL, owner_identity
from codea1_env.sandbox.docker.image import BASE_IMAGE, DEFAULT_IMAGE, build_image, sources_digest

SHORT = Limits(time_limit_s=0.3, budget_s=3, memory_mb=256)
UNHURRIED = Limits(time_limit_s=10, budget_s=30, memory_mb=256)  # a page takes long where memory is scarce
UNITTEST = """
import os, tempfile, unittest
from unittest.mock import patch
class TestCases(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
    @patch('json.dumps', return_value=3)
    def test_mock(self, dumps):
        self.assertEqual(f(1), 3)
    def test_file(self):
        path = os.path.join(self.folder, 'a')
        open(path, 'w').write(f([1]))
        self.assertEqual(open(path).read(), '[1]')
    def test_wrong(self):
        self.assertEqual(f(1), 2)
"""


@pytest.fixture(scope="module")
def sandbox(engine: Any) -> Iterator[DockerSandbox]:
    with DockerSandbox() as shared:
        yield shared


def test_what_runs_inside_needs_nothing_but_the_standard_library(tmp_path: Path) -> None:
    for path, content in image_module.sources().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    started = f"import sys; sys.path.append({str(tmp_path)!r}); from codea1_env.sandbox.driver import main"
    subprocess.run([sys.executable, "-I", "-S", "-c", started], check=True)


def containers(engine: Any, pid: int | None = None) -> list[str]:
    """Ids of the containers of one process, this one by default."""
    label = f"{OWNER_LABEL}={owner_identity(os.getpid() if pid is None else pid)}"
    return [each["Id"] for each in engine.containers(all=True, filters={"label": label})]


def exists(engine: Any, container: str) -> bool:
    return bool(engine.containers(all=True, filters={"id": container}))


def calls(source: str, *arguments: object, limits: Limits = SHORT, entry_point: str = "f") -> CallsJob:
    return CallsJob(source, entry_point, tuple(json.dumps([[a], []]).encode() for a in arguments), limits)


def attempt(action: str) -> CallsJob:
    """Calls f twice; what it does first is refused, and the second call works."""
    body = "\n        ".join(action.splitlines())
    source = (
        "import os, sys, socket, ctypes, glob\n"
        "def f(x):\n    try:\n"
        f"        {body}\n"
        "    except BaseException as error:\n        return ['refused', x]\n"
        "    return ['done', x]\n"
    )
    return calls(source, 1, 2)


HONEST: dict[str, Job] = {
    "values": calls("def f(x): return {x: (x, [1.5, None, 2**70, 'é\\ud800', b'\\xff', {1}, 1j])}", 1, 2, True),
    "errors": calls("def f(x): return 1 // x", 0, 1),
    "error in a name of its own": calls("class É(Exception): pass\ndef f(x): raise É", 0),
    "does not load": calls("raise ValueError", 1),
    "does not parse": calls("def f(", 1),
    "no entry point": calls("def g(x): return x", 1),
    "no calls": calls("def f(x): return x"),
    "large value": calls("def f(x): return 'a' * x", 1 << 19, 1 << 21),
    "many values": calls("def f(x): return 'a' * 1000", *range(500)),
    "prints a lot": calls("def f(x):\n    print('x' * 100_000)\n    return x", *range(20)),
    "no data": calls("def f(x): return object()", 1),
    "expressions": ExpressionsJob(("[1, (2, {3})]", "1 / 0", "float('nan')")),
    "stdio": program_job("print(input()[::-1])", ("abc", "", "é"), SHORT),
    "script": script_job("def f(x): return x", "assert f(1) == 1", SHORT),
    "failing script": script_job("def f(x): return x", "assert f(1) == 2", SHORT),
    "unittest with a mock and files": script_job("import json\ndef f(x): return json.dumps(x)", UNITTEST, UNHURRIED),
}
HOSTILE: dict[str, Job] = {
    "loops": calls("def f(x):\n    while x: pass\n    return 5", 0, 1, 0),
    "loops on loading": calls("while True: pass", 1),
    "sleeps": calls("import time\ndef f(x):\n    time.sleep(60 * x)\n    return 5", 0, 1, 0),
    "three strikes": calls("def f(x):\n    while True: pass", *range(9)),
    "crashes": calls("import ctypes\ndef f(x): return 5 if x else ctypes.string_at(0)", 1, 0, 1),
    "leaves": calls("import os\ndef f(x): return 5 if x else os._exit(0)", 1, 0, 1),
    "leaves on loading": calls("import os\nos._exit(0)", 1),
    "memory": calls("def f(x): return len(b'a' * (1 << 40 if x else 1))", 0, 1, 0),
    "memory in steps": calls(
        "def f(x):\n    a = []\n    while x: a.append(bytearray(1 << 24))\n    return 5", 0, 1, 0, limits=UNHURRIED
    ),
    "kills everyone": attempt("os.kill(-1, 9)"),
    "kills the first": attempt("os.kill(1, 9)"),
    "stops its parent": attempt("os.kill(os.getppid(), 19)"),
    "forks": attempt("if os.fork() == 0:\n    os._exit(0)"),
    "starts a program": attempt("os.execv('/bin/true', ['true'])"),
    "network": attempt("socket.create_connection(('127.0.0.1', 80), 1)"),
    "a socket at all": attempt("socket.socket(socket.AF_UNIX)"),
    "reads a file": attempt("open('/etc/passwd').read()"),
    "reads the driver": attempt("open('/opt/codea1/codea1_env/sandbox/driver.py').read()"),
    "reads the driver's memory": attempt("open(f'/proc/{os.getppid()}/mem', 'rb').read(1)"),
    "reads the first's environment": attempt("open('/proc/1/environ', 'rb').read(1)"),
    "writes a file": attempt("open('/tmp/x', 'w').write('x')"),
    "writes to shared memory": attempt("open('/dev/shm/x', 'w').write('x')"),
    "forges a result on every descriptor": calls(
        "import os, struct\n"
        "frame = struct.pack('<cII', b'R', 30, 1) + b'[true,[[\"value\",1,\"\"]]]       ' + b'7'\n"
        "def f(x):\n"
        "    for fd in range(64):\n"
        "        try: os.write(fd, frame)\n"
        "        except OSError: pass\n"
        "    return 5",
        1,
        2,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def local() -> Iterator[LocalSandbox]:
    with LocalSandbox() as made:
        yield made


@pytest.fixture(scope="module")
def values(local: LocalSandbox) -> list[JobResult]:
    """What the job "values" comes to locally."""
    return local.run([HONEST["values"]])


@pytest.mark.parametrize("name", [*HONEST, *HOSTILE])
def test_every_job_comes_to_what_it_comes_to_locally(
    name: str, sandbox: DockerSandbox, local: LocalSandbox, values: list[JobResult]
) -> None:
    job = (HONEST | HOSTILE)[name]
    expected = local.run([job])
    (before,) = containers_of(sandbox)
    assert sandbox.run([job, HONEST["values"]]) == [*expected, *values]
    assert containers_of(sandbox) == [before], "a candidate cost its container"
    if name.startswith(("kills", "stops", "forks", "starts", "network", "a socket", "reads", "writes")):
        assert [b"refused" in outcome.value for outcome in expected[0].outcomes] == [True, True]


def test_the_walls_are_reported_from_inside_and_outside(sandbox: DockerSandbox, engine: Any) -> None:
    found = sandbox.guarantees
    for layer in ("seccomp", "landlock", "rlimits", "no_new_privileges", "capabilities", "hidden_memory"):
        assert found[layer] is True
    for layer in ("network", "read_only", "capabilities", "no_new_privileges"):
        assert found[f"container_{layer}"] is True
    (container,) = containers_of(sandbox)
    details = engine.inspect_container(container)
    assert details["Config"]["User"] == "65534:65534"
    assert details["HostConfig"]["Memory"] == details["HostConfig"]["MemorySwap"] > 0
    assert details["HostConfig"]["PidsLimit"] > 0
    assert details["HostConfig"]["Init"] is True
    assert "noexec" in details["HostConfig"]["Tmpfs"]["/tmp"]
    assert not details["Mounts"]


def test_two_workers_give_results_in_order(engine: Any) -> None:
    jobs = [calls(f"def f(x): return x * {number}", 3) for number in range(40)]
    with DockerSandbox(2) as sandbox:
        results = sandbox.run(jobs)
        assert len(containers_of(sandbox)) == 2
    assert [result.outcomes[0].value for result in results] == [str(3 * number).encode() for number in range(40)]


def test_a_job_with_more_memory_gets_a_larger_container(engine: Any) -> None:
    source = "def f(x): return len(bytearray(x << 20))"
    with DockerSandbox() as sandbox:
        small, large = [calls(source, 1500, limits=Limits(10, 20, size)) for size in (1024, 2048)]
        kinds = [sandbox.run([job])[0].outcomes[0].kind for job in (small, large)]
    assert kinds == [OutcomeKind.MEMORY, OutcomeKind.VALUE]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_containers_are_replaced_after_so_many_jobs_and_removed_on_close(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codea1_env.sandbox.docker.backend._MOST_JOBS", 3)
    jobs = [calls("def f(x): return x", number) for number in range(7)]
    before = set(containers(engine))
    opened = descriptors()
    with DockerSandbox() as sandbox:
        first = containers_of(sandbox)
        results = sandbox.run(jobs)
        assert containers_of(sandbox) != first
        assert len(set(containers(engine)) - before) == 1
        gc.collect()
        assert descriptors() <= opened + 3  # the container's stream, and a connection or two, whatever was replaced
    assert [result.outcomes[0].value for result in results] == [str(number).encode() for number in range(7)]
    assert set(containers(engine)) == before
    gc.collect()
    assert descriptors() <= opened
    with pytest.raises(SandboxError, match="closed"):
        sandbox.run(jobs)


def test_the_jobs_of_a_killed_container_run_again(engine: Any) -> None:
    jobs = [calls("import time\ndef f(x):\n    time.sleep(0.1)\n    return x", number) for number in range(20)]
    with DockerSandbox() as sandbox:
        (first,) = containers_of(sandbox)
        killer = threading.Timer(0.7, engine.kill, [first])
        killer.start()
        results = sandbox.run(jobs)
        killer.join()
        (second,) = containers_of(sandbox)
        assert second != first
        engine.kill(second)  # idle: nobody's fault, not even once
        assert sandbox.run(jobs[:2]) == results[:2]
    assert [result.outcomes[0].value for result in results] == [str(number).encode() for number in range(20)]


def test_a_job_that_runs_while_container_after_container_is_killed_has_no_verdict(
    engine: Any, values: list[JobResult]
) -> None:
    patient = Limits(time_limit_s=60, budget_s=60)
    sleeper = calls("import time\ndef f(x):\n    time.sleep(50)", 1, limits=patient)
    with DockerSandbox() as sandbox:
        over = threading.Event()

        def kill_each() -> None:
            killed: set[str] = set()
            while not over.wait(0.1):
                for container in set(started(sandbox)) - killed:
                    if runs_a_candidate(engine, container):
                        engine.kill(container)
                        killed.add(container)

        killer = threading.Thread(target=kill_each)
        killer.start()
        with pytest.raises(SandboxError, match="must stay alive, 4 died running jobs 0 to 0"):
            sandbox.run([sleeper])
        over.set()
        killer.join()
        assert sandbox.run([HONEST["values"]]) == values  # and the sandbox goes on


def runs_a_candidate(engine: Any, container: str) -> bool:
    from docker.errors import DockerException

    try:
        return bool(candidates(engine, container))
    except (ValueError, DockerException):
        return False  # it is still starting, or has ended by itself


def test_a_frozen_container_is_replaced(engine: Any, monkeypatch: pytest.MonkeyPatch, values: list[JobResult]) -> None:
    monkeypatch.setattr("codea1_env.sandbox.docker.engine._SILENCE_S", 6.0)
    with DockerSandbox() as sandbox:
        (frozen,) = containers_of(sandbox)
        engine.pause(frozen)
        assert sandbox.run([HONEST["values"]]) == values
        assert containers_of(sandbox) != [frozen]
        assert not exists(engine, frozen)


HELLO = "frame(b'H', b'{\"layers\":{}}')"
LIARS = {
    "too many outcomes": 'frame(b\'R\', b\'[true,[["value",1,""],["value",1,""]]]\', b\'77\')',
    "an early end": "sys.stdout.buffer.write(struct.pack('<cII', b'R', 50, 0) + b'[')",
}
"""Others are in `test_fuzz_container.py`."""


@pytest.mark.parametrize("name", LIARS)
def test_what_a_lying_container_sends_is_never_a_value(name: str, engine: Any) -> None:
    program = (
        "import os, struct, sys\n"
        "def frame(kind, head, body=b''):\n"
        "    sys.stdout.buffer.write(struct.pack('<cII', kind, len(head), len(body)) + head + body)\n"
        f"{HELLO}\nsys.stdout.flush()\nos.read(0, 1)\n{LIARS[name]}\nsys.stdout.flush()\n"
    )
    build_liar(engine, program)
    with DockerSandbox(image="codea1-sandbox:liar") as sandbox, pytest.raises(SandboxError, match="must stay alive"):
        sandbox.run([calls("def f(x): return x", 1)])


def build_liar(engine: Any, program: str) -> None:
    entry = json.dumps(["python3", "-c", program])
    text = f"FROM {DEFAULT_IMAGE}\nENTRYPOINT {entry}\n".encode()
    labels = {SOURCES_LABEL: sources_digest()}
    steps = engine.build(fileobj=io.BytesIO(text), tag="codea1-sandbox:liar", labels=labels, rm=True, decode=True)
    assert not [step for step in steps if "error" in step]


def test_a_container_that_never_starts_is_an_infrastructure_failure(engine: Any) -> None:
    build_liar(engine, "raise SystemExit('this image is of no use')")
    with DockerSandbox(image="codea1-sandbox:liar") as sandbox, pytest.raises(SandboxError, match="of no use"):
        sandbox.run([HONEST["values"]])


def test_an_image_that_is_missing_or_of_another_version_is_refused_with_the_fix(engine: Any) -> None:
    for image in ("codea1-sandbox:nowhere", BASE_IMAGE):
        with DockerSandbox(image=image) as sandbox, pytest.raises(SandboxError, match=f"build-image --tag {image}"):
            sandbox.run([HONEST["values"]])


PARENT = """
import sys, time
from codea1_env.sandbox.docker.backend import DockerSandbox
sandbox = DockerSandbox()
assert sandbox.guarantees
print(sandbox._processes._members[0].container_id, flush=True)
if sys.argv[1] == "wait":
    time.sleep(600)
"""


def start_parent(mode: str) -> tuple[subprocess.Popen[str], str]:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, mode], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    container = parent.stdout.readline().strip()
    parent.stdout.close()
    assert container
    return parent, container


def test_what_a_killed_parent_left_is_removed_at_the_next_start(engine: Any, values: list[JobResult]) -> None:
    parent, container = start_parent("wait")
    engine.pause(container)  # so that it cannot end by itself
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert exists(engine, container)
    living, other = start_parent("wait")  # its start does the removing
    assert not exists(engine, container)
    with DockerSandbox() as sandbox:
        assert sandbox.run([HONEST["values"]]) == values
    assert exists(engine, other), "a living process's container was removed"
    os.kill(living.pid, signal.SIGKILL)
    living.wait()
    waited = 0
    while exists(engine, other):  # not paused: it ends with the streams to its parent
        assert waited < 600
        waited += 1
        time.sleep(0.1)


def test_a_process_that_ends_without_closing_leaves_no_container(engine: Any) -> None:
    parent, container = start_parent("end")
    assert parent.wait() == 0
    assert not exists(engine, container)


def test_scores_are_the_local_ones(engine: Any, tmp_path: Path) -> None:
    match = {
        "problem_id": "p", "question": "f(x): twice x", "entry_point": "f",
        "reference_solution": "def f(x):\n    return x * 2",
        "codes": ["def f(x):\n    return x + x", "def f(x):\n    return 0 if x == 3 else x * 2"],
        "suites": [["assert f(1) == 2\nassert f(3) == 6"], ["assert f(3) == 6"]],
    }  # fmt: skip
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps(match) + "\n")
    for backend in ("local", "docker"):
        assert main(["score", str(source), "-o", str(tmp_path / backend), "--sandbox", backend]) == 0
    assert (tmp_path / "docker").read_bytes() == (tmp_path / "local").read_bytes()


def test_a_package_that_the_image_lacks_is_refused_and_one_that_it_was_built_with_works(
    engine: Any, values: list[JobResult]
) -> None:
    source = "import numpy as np\ndef f(x): return [np.int64(x), np.random.randint(1000)]"
    job = CallsJob(source, "f", (b"[[7],[]]",), packages=("numpy",))
    with DockerSandbox() as plain:
        with pytest.raises(SandboxError, match=r"must have numpy .* --with numpy"):
            plain.run([job, HONEST["values"]])
        assert plain.run([HONEST["values"]]) == values
    if sys.version_info[:2] != (3, 11):
        with pytest.raises(SandboxError, match="version of Python"):  # the base image has Python 3.11
            build_image("codea1-sandbox:test-packages", packages=("numpy",), say=lambda message: None)
        return
    image = build_image("codea1-sandbox:test-packages", packages=("numpy",), say=lambda message: None)
    try:
        with DockerSandbox(image=image) as equipped, LocalSandbox() as local:
            assert equipped.run([job, HONEST["values"]]) == local.run([job, HONEST["values"]])
            compiled = "import os, numpy\ndef f(x): return os.path.exists(numpy.__cached__)"
            (result,) = equipped.run([CallsJob(compiled, "f", (b"[[7],[]]",), packages=("numpy",))])
            assert result.outcomes[0].value == b"true"  # or each of its processes would compile it
    finally:
        engine.remove_image("codea1-sandbox:test-packages", force=True)


def test_an_image_for_scripts_has_what_is_installed_here_and_shows_it_to_scripts_alone(
    engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "made_up.py").write_text("two = 2\n")
    monkeypatch.setattr(image_module, "site_directories", lambda: [str(tmp_path)])
    monkeypatch.setattr(image_module, "_TRIED", ("made_up",))
    monkeypatch.setattr(image_module, "find_spec", lambda name: True)
    source = "import made_up\ndef f(x): return made_up.two"
    jobs = [script_job(source, "assert f(1) == 2", UNHURRIED), CallsJob(source, "f", (b"[[1],[]]",))]
    image = build_image("codea1-sandbox:test-scripts", for_scripts=True, say=lambda message: None)
    try:
        with DockerSandbox(image=image) as equipped:
            script, sealed = equipped.run(jobs)
    finally:
        engine.remove_image("codea1-sandbox:test-scripts", force=True)
    assert script.outcomes[0].value == b'[["script","passed",""]]'
    assert sealed.load_failure is not None
    assert sealed.load_failure.error == "ModuleNotFoundError"


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docker", None)
    with pytest.raises(ImportError, match=r"'\.\[docker\]'"):
        open_sandbox("docker")


def test_without_an_engine_the_error_says_where_it_was_looked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("docker")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    with open_sandbox("docker") as sandbox, pytest.raises(SandboxError, match=r"must answer at unix://.*nobody.sock"):
        sandbox.run([HONEST["values"]])
    assert main(["sandbox", "build-image"]) == 1
    assert "set DOCKER_HOST" in capsys.readouterr().err


def test_arguments_outside_their_range_are_refused() -> None:
    pytest.importorskip("docker")
    for arguments in ({"workers": 0}, {"waive": ("everything",)}):
        with pytest.raises(ConfigurationError):
            DockerSandbox(**arguments)  # type: ignore[arg-type]


def test_the_outer_modules_import_without_the_package() -> None:
    code = "import sys; sys.modules['docker'] = None; import codea1_env.sandbox.docker.backend, codea1_env.cli"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert importlib.util.find_spec("codea1_env.sandbox.docker.image") is not None
