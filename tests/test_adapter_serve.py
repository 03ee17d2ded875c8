"""The judge over HTTP: its verdicts are the arena's, what is wrong is said, and nothing that fails is a verdict."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import psutil
import pytest
from serve_process import serve

from codea1_env import Arena, LocalSandbox, bundled_problems, write_problems
from codea1_env.players import CoderRequest, GoldenTester, MutantCoder, TesterRequest
from codea1_env.records.matches import read_match, write_score
from codea1_env.sandbox.protocol import JobResult, Outcome, OutcomeKind

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytestmark = pytest.mark.serve

RIGHT = "def f(x):\n    return x + 1\n"
ASSERTS = "assert f(1) == 2\nassert f(2) == 3"
HANGS = "def f(x):\n    while True:\n        pass\n"
SURROGATE = b'{"program": "x", "tests": "assert f(1) == 1", "entry_point": "\\ud800"}'


@contextlib.contextmanager
def server(*arguments: str) -> Iterator[tuple[Any, subprocess.Popen[str]]]:
    """A client of a server of its own, and its process."""
    with serve(*arguments) as (url, process), httpx.Client(base_url=url, timeout=120) as client:
        yield client, process


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    problems = tmp_path_factory.mktemp("serve") / "problems.jsonl"
    write_problems(problems, bundled_problems())
    with server("--workers", "2", "--problems", str(problems)) as (client, _):
        yield client


def line(seed: int, problem: Any) -> dict[str, Any]:
    code = MutantCoder().respond([CoderRequest(problem)], seed=seed)[0][0].text
    suite = GoldenTester().respond([TesterRequest(problem, code)], seed=seed)[0][0].text
    fields = json.loads(problem.to_json())
    return {name: fields[name] for name in ("problem_id", "question", "entry_point", "reference_solution")} | {
        "codes": [code],
        "suites": [[suite]],
    }


def test_scores_are_the_lines_of_the_command(client: Any) -> None:
    lines = [json.dumps(line(seed, problem)).encode() for seed, problem in enumerate(bundled_problems()[:8])]
    with LocalSandbox() as sandbox:
        expected = b"".join(
            map(write_score, Arena(sandbox).play([read_match(each) for each in lines], update_book=False))
        )
    assert client.post("/v1/score", content=b"\n".join(lines)).content == expected
    assert client.post("/v1/score", content=lines[0]).content == expected.splitlines(keepends=True)[0]


@pytest.mark.parametrize(
    ("request_", "share"),
    [
        ({"program": RIGHT, "tests": ASSERTS}, 1.0),
        ({"program": "def f(x):\n    return 2\n", "tests": ASSERTS.splitlines()}, 0.5),
        ({"program": RIGHT, "tests": [["f(1)", "2"], ["f(2)", "4"]], "entry_point": "f"}, 0.5),
        ({"response": f"Sure:\n```python\n{RIGHT}```", "tests": ASSERTS}, 1.0),
        ({"response": [{"role": "assistant", "content": RIGHT}], "tests": ASSERTS}, 1.0),
        ({"program": "def f(x): return", "tests": ASSERTS}, 0.0),
        ({"program": "def f(x", "tests": ASSERTS}, 0.0),
        ({"program": HANGS, "tests": ASSERTS, "time_limit_s": 0.2}, 0.0),
        ({"program": "", "tests": ASSERTS}, 0.0),
        ({"program": "import os\nos._exit(0)", "tests": ASSERTS}, 0.0),
        ({"program": "class A:\n    def __eq__(s, o): return True\ndef f(x): return A()", "tests": ASSERTS}, 0.0),
        ({"program": "print(int(input()) + 1)", "tests": {"inputs": ["1\n", "5\n"], "outputs": ["2\n", "6\n"]}}, 1.0),
        ({"program": "print(2)", "tests": {"inputs": ["1\n", "5\n"], "outputs": ["2\n", "6\n"]}}, 0.5),
        ({"program": "def f(x): return x + 1.0000001", "tests": ASSERTS, "tolerance": 0.001}, 1.0),
    ],
)
def test_right_wrong_hostile_empty_and_late_programs(client: Any, request_: dict[str, Any], share: float) -> None:
    answer = client.post("/v1/verify", json=request_)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert (told["share"], told["passed"], told["judge"]) == (share, share == 1.0, "sealed")


def test_problems_of_the_server_by_name_and_batches(client: Any) -> None:
    problem = bundled_problems()[0]
    right = {"problem_id": problem.problem_id, "program": problem.reference_solution}
    wrong = {"problem_id": problem.problem_id, "program": f"def {problem.entry_point}(*a): return None"}
    right["which"] = None  # as though it were not there
    items = [right, {**right, "which": "golden"}, wrong, {"program": RIGHT, "tests": "no assert"}, right]
    answers = client.post("/v1/verify", json={"items": items}).json()["items"]
    assert [answer.get("passed") for answer in answers] == [True, True, False, None, True]
    assert "must call the function" in answers[3]["error"]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{", 422, "the body must be JSON, got"),
        (b"[]", 422, "a request must be an object, got"),
        (b'{"program": "x"}', 422, "a request must have a problem_id or tests, got"),
        (b'{"tests": "assert f(1) == 1"}', 422, "must have a program or a response, and not both, got"),
        (b'{"program": "x", "tests": "assert f(1) == 1", "tset": 1}', 422, "the fields must be among"),
        (b'{"program": "x", "problem_id": "none"}', 422, "problem_id must name one in the server's --problems, got"),
        (
            b'{"program": "x", "tests": "assert f(1) == 1", "time_limit_s": 99}',
            422,
            "time_limit_s must be in (0, 30] s",
        ),
        (b'{"program": "x", "tests": "assert f(1) == 1", "memory_mb": 1}', 422, "memory_mb must be"),
        (b'{"program": 5, "tests": "assert f(1) == 1"}', 422, "program must be a text, got"),
        (b'{"items": []}', 422, "items must be a list of 1 to 256 requests, got 0"),
        (
            b'{"program": "x", "tests": "assert f(1) == 1", "time_limit_s": NaN}',
            422,
            "time_limit_s must be in (0, 30] s",
        ),
        (b'{"program": "\xff", "tests": "assert f(1) == 1"}', 422, "the body must be JSON, got"),
        (b"[" * 100_000, 422, "the body must be JSON"),
        (b'{"program": "\\ud800", "tests": "assert f(1) == 1"}', 200, ""),
        (b'{"program": "x", "tests": {"inputs": ["\\ud800"], "outputs": [""]}}', 422, "equally many texts in UTF-8"),
        (b"x" * (9 << 20), 413, "a body must have at most 8388608 bytes, got more"),
    ],
)
def test_a_wrong_request_is_told_and_never_a_verdict(client: Any, body: bytes, status: int, said: str) -> None:
    answer = client.post("/v1/verify", content=body)
    assert answer.status_code == status, answer.text
    if said:
        assert said in answer.json()["error"]
    assert client.post("/v1/score", content=b'{"codes": []}').status_code == 422
    second = client.post("/v1/score", content=json.dumps(line(0, bundled_problems()[0])).encode() + b"\n{}")
    assert second.status_code == 422
    assert "line 2: the line must have the fields " in second.json()["error"]
    (refused,) = client.post("/v1/verify", content=b'{"items": [' + SURROGATE + b"]}").json()["items"]
    assert "tests must state what a call of \\ud800 returns, got" in refused["error"]
    for lost in (client.get("/nothing"), client.get("/v1/verify")):
        assert lost.status_code in (404, 405)
        assert "a request must be a POST or GET of what is here (/v1/score, " in lost.json()["error"]


def test_health_and_metrics(client: Any) -> None:
    assert client.get("/health").json()["status"] == "ok"
    before = client.get("/metrics").text
    client.post("/v1/verify", json={"program": RIGHT, "tests": ASSERTS})
    assert 'codea1_requests_total{route="/v1/verify",status="200"}' in before + client.get("/metrics").text
    assert "codea1_under_way 0.0" in client.get("/metrics").text


def test_an_answer_is_over_when_the_client_has_all_of_it() -> None:
    """Else its next request waits for the rest of this one."""
    sent = sent_to("GET", "/metrics", {"type": "http.request", "body": b"", "more_body": False})
    assert [each["type"] for each in sent] == ["http.response.start", "http.response.body"]
    assert not sent[1].get("more_body")


def sent_to(method: str, path: str, *messages: dict[str, Any], token: str = "") -> list[dict[str, Any]]:
    """What an application without a judge sends to a client of whom the messages come."""
    from codea1_env.serving.app import make_app

    sent, coming = [], iter(messages)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return next(coming)

    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": []}
    asyncio.run(make_app(token=token)(scope, receive, send))
    return sent


def test_what_a_client_says_of_the_host_is_no_part_of_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Host: x/health?` made older versions of Starlette read another path, one that needs no token."""
    from starlette.datastructures import URL
    from starlette.requests import Request

    monkeypatch.setattr(Request, "url", property(lambda _: URL("http://x/health?/metrics")))
    assert sent_to("GET", "/metrics", token="a-long-token")[0]["status"] == 401


def test_a_request_that_says_no_time_has_what_the_server_grants() -> None:
    from codea1_env.serving.requests import read_verify
    from codea1_env.serving.sandbox_fusion import read_run

    asked = {"program": RIGHT, "tests": ASSERTS}
    assert [read_verify(asked, {}, most).problem.time_limit_s for most in (0.5, 30.0)] == [0.5, 1.0]
    assert [read_run({"code": "1"}, most).job.limits.time_limit_s for most in (5.0, 30.0)] == [5.0, 10.0]


def test_a_batch_that_the_queue_never_has_room_for_is_wrong_and_not_early() -> None:
    from codea1_env.serving.service import Service, ServicePlan

    async def told() -> list[str]:
        service = Service(ServicePlan(queue=2))
        columns = dict.fromkeys(("query", "prompts", "labels"), ["{}"] * 3)
        asked = [service.verify_all([{"program": RIGHT, "tests": ASSERTS}] * 3), service.openrlhf("coder", columns)]
        errors = await asyncio.gather(*asked, return_exceptions=True)
        await service.close()
        return [f"{type(error).__name__}: {error}" for error in errors]

    first, second = asyncio.run(told())
    assert first == "ConfigurationError: items must be a list of 1 to 2 requests, got 3"
    assert second.startswith("FormatError: query, prompts and labels must be equally many texts, at most 2, got")


def test_a_client_that_leaves_is_no_fault_and_a_fault_is_told_without_its_insides(
    caplog: pytest.LogCaptureFixture,
) -> None:
    half = {"type": "http.request", "body": b'{"program": ', "more_body": True}
    assert sent_to("POST", "/v1/verify", half, {"type": "http.disconnect"})[0]["status"] == 499
    assert caplog.text == ""
    start, body = sent_to("POST", "/v1/verify", {"type": "http.request", "body": b"{}", "more_body": False})
    assert start["status"] == 500
    assert json.loads(body["body"]) == {
        "error": "this request could not be judged, for the server has a fault; its log says which"
    }
    assert "has no attribute 'service'" in caplog.text


def test_what_a_client_asked_who_has_left_is_not_judged() -> None:
    hangs = {"program": HANGS, "tests": ASSERTS, "time_limit_s": 0.5}
    body = json.dumps({"items": [{**hangs, "program": f"{HANGS}# {number}"} for number in range(30)]}).encode()
    with server() as (client, _):
        with socket.create_connection((client.base_url.host, client.base_url.port)) as rude:
            rude.sendall(b"POST /v1/verify HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            wait_for(client, "codea1_under_way 30.0")
        wait_for(client, "codea1_under_way 0.0")
        assert client.post("/v1/verify", json={"program": RIGHT, "tests": ASSERTS}).json()["passed"]
        assert 'codea1_verdicts{verdict="timeout"} 0.0' in client.get("/metrics").text


def wait_for(client: Any, line: str) -> None:
    while line not in client.get("/metrics").text:
        time.sleep(0.05)


def test_a_long_request_is_read_while_others_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    from codea1_env.serving import service as module

    answered, read = threading.Event(), module.read_verify

    def slow(given: Any, *rest: Any) -> Any:
        if given["tests"] != ASSERTS:
            assert answered.wait(60)
        return read(given, *rest)

    async def both() -> list[Any]:
        service = module.Service(module.ServicePlan())
        long = asyncio.ensure_future(service.verify({"program": RIGHT, "tests": "assert f(3) == 4"}))
        await asyncio.sleep(0)  # it has begun
        short = await service.verify({"program": RIGHT, "tests": ASSERTS})
        answered.set()
        return [short, await long, await service.close()]

    monkeypatch.setattr(module, "read_verify", slow)
    assert [told["passed"] for told in asyncio.run(both())[:2]] == [True, True]


HALVES = (
    b"POST /v1/verify HT",
    b"POST /v1/verify HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{",
    b"POST /v1/verify HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n{}",
    b"POST /v1/verify HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n",
    b"POST /v1/verify HTTP/1.1\r\n" + b"".join(b"X-%d: %b\r\n" % (number, b"a" * 99) for number in range(2000)),
    b"POST /v1/verify HTTP/1.1\r\nX: a\0b\r\n\r\n",
    b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03",
)


def test_what_is_no_request_is_not_answered_with_our_insides(client: Any) -> None:
    address = (client.base_url.host, client.base_url.port)
    with contextlib.ExitStack() as stack:
        open_ = [stack.enter_context(socket.create_connection(address)) for _ in HALVES * 20]
        for each, half in zip(open_, HALVES * 20, strict=True):
            with contextlib.suppress(ConnectionError):
                each.sendall(half)
        assert client.post("/v1/verify", json={"program": RIGHT, "tests": ASSERTS}).json()["passed"]
        for each in open_:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_WR)
                assert each.recv(1 << 16).partition(b"\r\n")[0] in (b"", b"HTTP/1.1 400 Bad Request")
    assert client.post("/v1/verify", json={"program": RIGHT, "tests": ASSERTS}).json()["passed"]


def test_a_token_is_asked_for_and_the_queue_has_an_end(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a-long-token\n")
    with server("--token-file", str(file), "--queue", "2") as (client, _):
        assert client.get("/metrics").status_code == 401
        assert client.get("/health").status_code == 200
        client.headers["Authorization"] = "Bearer a-long-token"
        asked = {"program": HANGS, "tests": "assert f(1) == 2", "time_limit_s": 1.0}
        with concurrent.futures.ThreadPoolExecutor(12) as threads:
            answers = list(threads.map(lambda _: client.post("/v1/verify", json=asked), range(12)))
        counts = {status: sum(each.status_code == status for each in answers) for status in (200, 429)}
        assert counts[200] >= 2
        assert counts[429] >= 1
        assert sum(counts.values()) == 12
        assert {each.headers.get("Retry-After") for each in answers if each.status_code == 429} == {"1"}


@pytest.mark.parametrize("killed", ["zygotes and guards", "server"])
def test_what_is_killed_comes_back_and_no_verdict_is_wrong(killed: str) -> None:
    right, wrong = ({"program": code, "tests": ASSERTS} for code in (RIGHT, "def f(x):\n    return x\n"))
    with server("--workers", "2") as (client, process):
        (child,) = [each for each in psutil.Process(process.pid).children() if "spawn_main" in " ".join(each.cmdline())]

        def asked(number: int) -> tuple[int, Any]:
            try:
                answer = client.post("/v1/verify", json=right if number % 2 else wrong)
            except httpx.TransportError:
                return number, None
            return number, answer.json() if answer.status_code == 200 else None

        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            futures = [threads.submit(asked, number) for number in range(200)]
            time.sleep(0.3)
            for each in [child] if killed == "server" else child.children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    os.kill(each.pid, signal.SIGKILL)
            answers = [future.result() for future in futures]
        assert sorted(number for number, _ in answers) == list(range(200))
        told = [(number, answer) for number, answer in answers if answer is not None]
        assert all(answer["passed"] is bool(number % 2) for number, answer in told)
        assert client.post("/v1/verify", json=right).json()["passed"]
        assert child.is_running() == (killed != "server")


def test_a_server_whose_parent_is_killed_ends_and_its_port_is_free() -> None:
    command = [sys.executable, "-m", "codea1_env.cli", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as parent:
        assert parent.stderr is not None
        port = int(parent.stderr.readline().split(",")[0].rpartition(":")[2])
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
            assert client.get("/health").status_code == 200
        started = psutil.Process(parent.pid).children(recursive=True)
        parent.kill()
        assert psutil.wait_procs(started, timeout=120)[1] == []
    socket.create_server(("127.0.0.1", port)).close()


def test_ctrl_c_of_a_process_group_is_the_parents_while_the_server_starts() -> None:
    command = [sys.executable, "-m", "codea1_env.cli", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as parent:
        assert parent.stderr is not None
        port = int(parent.stderr.readline().split(",")[0].rpartition(":")[2])
        children: list[psutil.Process] = []
        while not children or children[0].cpu_times().user < 0.2:  # it imports, and has not yet run a line of ours
            found = psutil.Process(parent.pid).children()
            children = [each for each in found if "spawn_main" in " ".join(each.cmdline())]
            time.sleep(0.001)
        children[0].send_signal(signal.SIGINT)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
            assert client.get("/health").status_code == 200
        parent.send_signal(signal.SIGINT)
        assert (parent.stderr.read(), parent.wait(timeout=120)) == ("", 0)


def test_wrong_arguments_are_said_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"a-long-t\xf6ken\n")
    (tmp_path / "null").write_bytes(b"a-long-t\0ken\n")
    (tmp_path / "empty").touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, said in (
            (["--port", "70000"], "--port must be in [0, 65535], got 70000"),
            (["--port", port], "--host and --port must be free to listen on"),
            (["--queue", "0"], "--queue must be at least 1, got 0"),
            (["--token-file", str(tmp_path / "latin")], "--token-file must hold one ASCII word of at least 8"),
            (["--token-file", str(tmp_path / "null")], "--token-file must hold one ASCII word of at least 8"),
            (["--problems", str(tmp_path)], "--problems must be a file"),
            (["--problems", str(tmp_path / "empty")], "--problems must hold a problem, got none in"),
        ):
            command = [sys.executable, "-m", "codea1_env.cli", "serve", *arguments]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            assert (done.returncode, done.stderr.count("\n")) == (2, 1)
            assert said in done.stderr


RUNS: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    ({"code": "print(int(input()) + 1)", "stdin": "4\n"}, "Success", {"stdout": "5\n", "return_code": 0}),
    ({"code": "import sys\nsys.stderr.write('no')\nsys.exit(3)"}, "Failed", {"stderr": "no", "return_code": 3}),
    ({"code": "print('half')\n1 / 0"}, "Failed", {"stdout": "half\n", "return_code": 1}),
    ({"code": "import sys\nsys.stdout.buffer.write(b'a\\xff')"}, "Success", {"stdout": "a\\udcff"}),
    ({"code": "while True: pass", "run_timeout": 0.3}, "Failed", {"status": "TimeLimitExceeded", "return_code": None}),
    ({"code": "import time\ntime.sleep(9)", "run_timeout": 0.3}, "Failed", {"status": "TimeLimitExceeded"}),
    ({"code": "import os\nprint(1, flush=True)\nos._exit(0)"}, "Success", {"stdout": "1\n"}),
    ({"code": "x = [0] * 10 ** 9", "memory_limit_MB": 128}, "Failed", {"return_code": 1}),
    ({"code": "import subprocess\nsubprocess.run(['true'])"}, "Failed", {"return_code": 1}),
]


@pytest.mark.parametrize(("asked", "status", "run"), RUNS)
def test_run_code_answers_as_sandbox_fusion_does(
    client: Any, asked: dict[str, Any], status: str, run: dict[str, Any]
) -> None:
    answer = client.post("/run_code", json={"language": "python", **asked}).json()
    assert answer["status"] == status
    assert {name: answer["run_result"][name] for name in run} == run
    for wrong in (
        {"language": "cpp"},
        {"files": {"a": "YQ=="}},
        {"run_timeout": 1e9},
        {"code": None},
        {"memory_limit_MB": 1e99},
    ):
        assert client.post("/run_code", json={"code": "1", **wrong}).json()["status"] == "SandboxError"
    assert client.post("/run_code", content=rb'{"code": "1", "stdin": "\ud800"}').json()["status"] == "SandboxError"


@pytest.mark.parametrize(
    "value", ['["a", "b", Infinity]', "[5, null, 0]", "[" * 10_000, '["a"]', "{}", '["a", "b", NaN]']
)
def test_an_answer_that_the_program_wrote_itself_is_none(value: str) -> None:
    from codea1_env.serving.sandbox_fusion import told

    answer = told(JobResult((Outcome(OutcomeKind.VALUE, value.encode()),)))
    assert answer["status"] == "Failed"
    assert answer["run_result"]["stderr"] == "the output is too long, or is none"


def test_the_client_package_of_sandbox_fusion_works_unchanged(client: Any) -> None:
    sandbox_fusion = pytest.importorskip("sandbox_fusion")
    sandbox_fusion.set_sandbox_endpoint(str(client.base_url))
    for asked, status, run in RUNS[:6]:
        request = sandbox_fusion.RunCodeRequest(language="python", **asked)
        answer = sandbox_fusion.run_code(request, max_attempts=1)
        assert answer.status.value == status
        told = json.loads(answer.run_result.json())
        assert {name: told[name] for name in run} == run


def test_a_program_that_cannot_begin_in_time_is_not_run_and_has_no_result() -> None:
    """Its caller would have gone, and takes an answer that does not come for a failed test; at 504 it tries again."""
    hangs = {"code": "import time\ntime.sleep(99)", "run_timeout": 15}
    with server() as (client, _), concurrent.futures.ThreadPoolExecutor(2) as threads:
        slow = threads.submit(client.post, "/run_code", json=hangs)
        wait_for(client, "codea1_under_way 1.0")
        late = client.post("/run_code", json={"code": "print(1)", "compile_timeout": 0})
        assert (late.status_code, late.json()) == (
            504,
            {"error": "a program must begin within 5 s, got more to do before it; try again"},
        )
        assert slow.result().json()["run_result"]["status"] == "TimeLimitExceeded"
        assert client.post("/run_code", json={"code": "print(1)"}).json()["status"] == "Success"


def test_openrlhfs_requests(client: Any) -> None:
    right, wrong = f"What?\n```python\n{bundled_problems()[0].reference_solution}```<|end|>", "What?\nNothing.<|end|>"
    label = bundled_problems()[0].to_json()
    asked = {"query": [right, wrong], "prompts": ["What?\n"] * 2, "labels": [label] * 2}
    answer = client.post("/v1/openrlhf/coder", json=asked).json()
    assert answer == {"rewards": [1.0, 0.0], "scores": [1.0, 0.0], "extra_logs": {"executes": [1.0, 0.0]}}
    cut = {"query": [right[len("What") :]], "prompts": ["Say. What?\n"], "labels": [label]}
    assert "must begin with its prompt" in client.post("/v1/openrlhf/coder", json=cut).json()["error"]  # too little
    told = client.post(
        "/v1/openrlhf/coder", json={**cut, "query": ["na" * 9 + right], "prompts": ["na" * 99 + "What?\n"]}
    )
    assert told.json()["rewards"] == [1.0]
    long = {"query": ["a" * 10**6], "prompts": ["a" * 10**6 + "b"], "labels": [label]}  # never, if each end is compared
    assert "must begin with its prompt" in client.post("/v1/openrlhf/coder", json=long).json()["error"]
    for body, said in (
        ({**asked, "labels": [label]}, "query, prompts and labels must be equally many texts, at most 256, got"),
        ({**asked, "labels": [label, "{}"]}, "the fields must include"),
        ({**asked, "prompts": ["Who?"] * 2}, "a query must begin with its prompt, got"),
        ({**asked, "labels": [json.dumps({**json.loads(label), "time_limit_s": 99.0})] * 2}, "must be in (0, 30] s"),
        ([], "query, prompts and labels must be"),
    ):
        refused = client.post("/v1/openrlhf/coder", json=body)
        assert refused.status_code == 422, refused.text
        assert said in refused.json()["error"]
    assert "must end in one of coder, tester" in client.post("/v1/openrlhf/judge", json=asked).json()["error"]


def test_a_signal_while_the_server_starts_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from codea1_env.serving import supervisor
    from codea1_env.serving.service import ServicePlan

    begin = SpawnProcess._Popen

    def interrupted(process: Any) -> Any:
        signal.raise_signal(signal.SIGTERM)
        return begin(process)

    monkeypatch.setattr(SpawnProcess, "_Popen", staticmethod(interrupted))
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with supervisor.bound("127.0.0.1", 0) as listening:
            assert supervisor.supervise(ServicePlan(), listening, "", 1 << 20) == 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
