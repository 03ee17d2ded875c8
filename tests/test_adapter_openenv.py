"""The OpenEnv server over real sockets: whole games, many sessions, OpenEnv's own client, clients that mean harm."""

import asyncio
import contextlib
import importlib
import json
import re
import runpy
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from codea1_env import bundled_problems
from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.errors import ConfigurationError, SandboxError
from codea1_env.players import GoldenTester
from codea1_env.problems import Problem, TestCase
from codea1_env.sandbox import LocalSandbox

openenv = pytest.importorskip("openenv", reason="OpenEnv has an environment of its own: make test-adapters")
uvicorn, websockets, adapter, server = map(
    importlib.import_module,
    ("uvicorn", "websockets.sync.client", "codea1_env.adapters.openenv", "codea1_env.adapters.openenv_server"),
)

pytestmark = pytest.mark.openenv
EXAMPLE = Path(__file__).parents[1] / "examples" / "openenv_client.py"
HANG = "def {name}(*_):\n    while True:\n        pass"
SECRET = Problem(
    "secret",
    "Write `double(x)`.",
    "double",
    reference_solution="def double(x):\n    quokka = 2 * x\n    return quokka\n",
    golden_tests=(TestCase("double(987601)", "1975202"),),
    hidden_tests=(TestCase("double(987602)", "1975204"),),
    mutants=("def double(x):\n    return x + 987603\n",),
)


@contextlib.contextmanager
def serving(table: Any = None, **options: Any) -> Iterator[Any]:
    """A running server: `url`, and OpenEnv's own `HTTPEnvServer` behind it as `openenv`."""
    app = server.make_app(table, **options)
    listener = socket.create_server(("127.0.0.1", 0))
    running = uvicorn.Server(uvicorn.Config(app, log_level="error", ws_max_size=server.MOST_BYTES))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
    thread.start()
    assert wait_for(lambda: running.started)
    app.state.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        yield app.state
    finally:
        running.should_exit = True
        thread.join()
        listener.close()


def wait_for(condition: Callable[[], bool], most_s: float = 60.0) -> bool:
    end = time.monotonic() + most_s
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


class Session:
    """A WebSocket without OpenEnv's good manners around it; closed when the test ends."""

    opened = contextlib.ExitStack()

    def __init__(self, url: str) -> None:
        self.socket = self.opened.enter_context(websockets.connect(url.replace("http", "ws") + "/ws", max_size=None))

    def say(self, text: str | bytes) -> dict[str, Any]:
        self.socket.send(text)
        heard = json.loads(self.socket.recv(timeout=120))
        assert isinstance(heard, dict)
        return heard

    def ask(self, type_: str, **content: Any) -> dict[str, Any]:
        return self.say(json.dumps({"type": type_, "data": content}))

    def play(self, problem: Problem, seat: str, *responses: str) -> dict[str, Any]:
        heard = self.ask("reset", seat=seat, problem_id=problem.problem_id, seed=7)
        for response in responses:
            heard = self.ask("step", response=response)
        return dict(heard["data"])


def post(url: str, body: bytes) -> tuple[int, Any]:
    """Status and content of the answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"})) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, error.read()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(adapter.TableRules(tester=GoldenTester())) as state:
        yield state.url


@pytest.fixture(autouse=True)
def _sessions_end(url: str) -> Iterator[None]:
    yield
    Session.opened.close()


def sandboxes() -> set[int]:
    """The processes below this one."""
    return {child.pid for child in psutil.Process().children(recursive=True)}


def test_openenvs_own_client_plays_a_game_with_repair() -> None:
    problem = bundled_problems()[0]
    with serving(adapter.TableRules(rounds=2)) as state, openenv.GenericEnvClient(base_url=state.url).sync() as client:
        seen = client.reset(seat="both", problem_id=problem.problem_id)
        assert seen.observation["question"] == problem.question
        assert seen.observation["turn"] == "coder"
        seen = client.step({"response": f"def {problem.entry_point}(*_): return None"})
        assert (seen.observation["turn"], seen.reward, seen.done) == ("tester", None, False)
        suite = str(problem.golden_tests[0])
        seen = client.step({"response": suite})
        assert seen.observation["rewards"]["coder"] == 0.0
        assert seen.reward == seen.observation["rewards"]["tester"] > 0
        assert seen.observation["tests"] == [{"test": suite, "status": "kept", "verdict": "fail"}]
        assert (seen.observation["turn"], seen.observation["round"], seen.done) == ("coder", 1, False)
        client.step({"response": problem.reference_solution})
        seen = client.step({"response": suite})
        assert seen.observation["rewards"]["coder"] == 1.0
        assert seen.done
        assert client.state()["step_count"] == 4


def test_sixteen_sessions_at_once_are_paid_what_the_arena_pays(url: str) -> None:
    problems = bundled_problems()[:16]
    suites = ["\n".join(map(str, problem.golden_tests)) for problem in problems]
    paid: dict[int, dict[str, Any]] = {}
    everybody_is_here = threading.Barrier(16)

    def play(number: int) -> None:
        session = Session(url)
        everybody_is_here.wait(120)
        problem = problems[number]
        code = problem.mutants[0] if number % 2 else problem.reference_solution
        paid[number] = session.play(problem, "both", str(code), suites[number])
        session.socket.close()

    threads = [threading.Thread(target=play, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    codes = [str(each.mutants[0] if number % 2 else each.reference_solution) for number, each in enumerate(problems)]
    matches = [Match(*parts) for parts in zip(problems, [(c,) for c in codes], [((s,),) for s in suites], strict=True)]
    with Arena(LocalSandbox()) as arena:
        scores = arena.play(matches)
    for number, score in enumerate(scores):
        rewards = {"coder": score.codes[0].reward, "tester": score.suites[0][0].reward}
        assert paid[number]["observation"]["rewards"] == rewards
        assert paid[number]["reward"] == rewards["tester"]
        assert paid[number]["done"]
    assert len({score.codes[0].reward for score in scores}) > 1


def test_a_seat_is_played_against_the_servers_player(url: str) -> None:
    problem = bundled_problems()[0]
    session = Session(url)
    seen = session.play(problem, "coder", str(problem.reference_solution))
    assert (seen["reward"], seen["done"], seen["observation"]["rewards"]) == (1.0, True, {"coder": 1.0})
    seen = session.play(problem, "tester")
    assert seen["observation"]["turn"] == "tester"
    assert any(mutant.strip() == seen["observation"]["program"].strip() for mutant in problem.mutants)
    seen = session.ask("step", response="\n".join(map(str, problem.golden_tests)))["data"]
    assert seen["reward"] == seen["observation"]["rewards"]["tester"] > 0


def test_a_tester_is_paid_for_every_round(url: str) -> None:
    problem = bundled_problems()[0]
    suite = "\n".join(map(str, problem.golden_tests))
    with serving(adapter.TableRules(rounds=2)) as state:
        session = Session(state.url)
        session.play(problem, "tester")
        rounds = [session.ask("step", response=suite)["data"] for _ in range(2)]
    assert [seen["done"] for seen in rounds] == [False, True]
    assert all(seen["reward"] == seen["observation"]["rewards"]["tester"] > 0 for seen in rounds)
    assert all(seen["observation"]["tests"] for seen in rounds)


def test_equal_seeds_give_equal_games(url: str) -> None:
    games = [
        [Session(url).ask("reset", seat="tester", seed=seed)["data"]["observation"] for seed in (3, 3, 4)]
        for _ in range(2)
    ]
    assert games[0] == games[1]
    assert games[0][0] == games[0][1] != games[0][2]


def test_a_client_never_sees_the_reference_nor_a_test_that_it_did_not_write() -> None:
    seen: list[str] = []
    with serving(adapter.TableRules((SECRET,), tester=GoldenTester(), rounds=2)) as state:
        session = Session(state.url)
        wrong = "def double(x):\n    return 0"
        for seat, responses in (
            ("coder", [wrong, wrong]),
            ("tester", ["assert double(3) == 7\nassert double(4) == 8"] * 2),
            ("both", [wrong, "assert double(5) == 11"] * 2),
        ):
            seen.append(json.dumps(session.play(SECRET, seat)))
            seen += [json.dumps(session.ask("step", response=response)) for response in responses]
            seen += [json.dumps(session.ask("step", response="")), session.socket.recv.__name__]
            session.socket.send('{"type": "state"}')
            seen.append(str(session.socket.recv()))
        for path in ("/schema", "/metadata", "/openapi.json", "/state", "/health"):
            with urllib.request.urlopen(state.url + path) as answer:
                seen.append(answer.read().decode())
    everything = "\n".join(seen)
    assert "987603" in everything  # the program that testers attack
    for secret in ("quokka", "987601", "1975202", "987602", "1975204"):
        assert secret not in everything
    # Of what the client's own tests should have stated, nothing either: 6, and 10 (8 it has stated itself).
    assert not re.search(r"== (6|10)\b", everything)


def test_sessions_do_not_see_each_other(url: str) -> None:
    problem = bundled_problems()[0]
    first, second = Session(url), Session(url)
    marked = f"def {problem.entry_point}(*_):\n    return 'platypus'"
    first.play(problem, "both", marked, str(problem.golden_tests[0]))
    # What the first one failed is not in the other one's Mistake Book, but in its own.
    others = second.play(problem, "both", marked, str(problem.golden_tests[0]))
    assert [line["status"] for line in others["observation"]["tests"]] == ["kept"]
    heard = first.ask("reset", seat="both", problem_id=problem.problem_id)
    assert "platypus" not in json.dumps(heard)
    first.ask("step", response=marked)
    again = first.ask("step", response="")["data"]["observation"]["tests"]
    assert [line["status"] for line in again] == ["replayed"]


def test_a_program_that_hangs_keeps_no_other_session_waiting(url: str) -> None:
    problem = bundled_problems()[0]
    slow, quick = Session(url), Session(url)
    suite = "\n".join(map(str, problem.golden_tests))
    slow.play(problem, "both", HANG.format(name=problem.entry_point))
    slow.socket.send(json.dumps({"type": "step", "data": {"response": suite}}))
    seen = quick.play(problem, "both", str(problem.reference_solution), suite)
    assert seen["observation"]["rewards"]["coder"] == 1.0
    with pytest.raises(TimeoutError):  # the other one is still at it
        slow.socket.recv(timeout=0)
    late = json.loads(slow.socket.recv(timeout=120))["data"]["observation"]
    assert late["rewards"]["coder"] == 0.0
    assert {line["verdict"] for line in late["tests"]} == {"timeout"}


@pytest.mark.parametrize("hangs", [False, True])
def test_a_session_that_is_dropped_leaves_no_process_and_frees_its_place(hangs: bool) -> None:
    problem = bundled_problems()[0]
    before = sandboxes()
    with serving(sessions=1) as state:
        session = Session(state.url)
        session.play(problem, "both", HANG.format(name=problem.entry_point) if hangs else "")
        session.socket.send(json.dumps({"type": "step", "data": {"response": str(problem.golden_tests[0])}}))
        assert wait_for(lambda: bool(sandboxes() - before))
        session.socket.socket.close()  # no farewell
        assert wait_for(lambda: state.openenv.active_sessions == 0)
        assert wait_for(lambda: not sandboxes() - before)
        assert Session(state.url).play(problem, "both")["observation"]["turn"] == "coder"


def test_a_silent_session_ends_and_its_connection_is_told() -> None:
    with serving(sessions=1, idle_s=0.1) as state:
        session = Session(state.url)
        session.play(bundled_problems()[0], "both")
        assert wait_for(lambda: state.openenv.active_sessions == 0)
        assert wait_for(lambda: "must be open" in session.ask("step", response="")["data"].get("message", ""))


def test_no_more_sessions_than_allowed() -> None:
    with serving(sessions=1) as state:
        first = Session(state.url)
        first.ask("reset")
        assert json.loads(Session(state.url).socket.recv())["data"]["code"] == "CAPACITY_REACHED"
        for creates in ({"jsonrpc": "2.0", "id": 1, "method": "openenv/session/create", "params": {}},):
            assert post(state.url + "/mcp", json.dumps(creates).encode())[0] in (404, 405)
            assert first.ask("mcp", **creates)["data"]["code"] == "UNKNOWN_TYPE"
        assert state.openenv.active_sessions == 1


UNREADABLE = ["", "{", "nonsense", "[1, 2", '{"type": "step", "data": ', "\0", "{'type': 'reset'}"]
NO_MESSAGES = [
    "[]",
    "5",
    '"reset"',
    "null",
    "{}",
    '{"type": 5}',
    '{"type": "rest"}',
    '{"type": ["reset"]}',
    "[" * 50_000,
]
WRONG_TYPES = [
    '{"type": "step"}',
    '{"type": "step", "data": 5}',
    '{"type": "step", "data": "x"}',
    '{"type": "step", "data": {}}',
    '{"type": "step", "data": {"response": 5}}',
    '{"type": "step", "data": {"response": null}}',
    '{"type": "step", "data": {"response": ["a"]}}',
    '{"type": "step", "data": {"response": "", "more": 1}}',
    '{"type": "step", "data": {"response": "", "metadata": 1}}',
    json.dumps({"type": "step", "data": {"response": "x" * 100_001}}),
    '{"type": "reset", "data": 5}',
    '{"type": "reset", "data": {"seed": "x"}}',
    '{"type": "reset", "data": {"seed": -1}}',
    '{"type": "reset", "data": {"seed": true}}',
    '{"type": "reset", "data": {"seed": 1e999}}',
    '{"type": "reset", "data": {"seed": ' + "9" * 5000 + "}}",
    '{"type": "reset", "data": {"seat": "judge"}}',
    '{"type": "reset", "data": {"seat": ["coder"]}}',
    '{"type": "reset", "data": {"problem_id": {"a": 1}}}',
    '{"type": "reset", "data": {"problem_id": "nowhere"}}',
    '{"type": "reset", "data": {"problem_id": "\\ud800"}}',
    '{"type": "reset", "data": {"episode_id": 5}}',
    '{"type": "reset", "data": {"episode_id": "' + "x" * 256 + '"}}',
]


def test_whatever_is_said_is_answered_and_the_game_goes_on(url: str) -> None:
    problem = bundled_problems()[0]
    session = Session(url)
    session.play(problem, "both", str(problem.reference_solution))
    for text in [*UNREADABLE, *NO_MESSAGES, *WRONG_TYPES]:
        assert session.say(text)["type"] == "error", text[:80]
    assert session.say(b"\xff\xfe")["type"] == "error"
    assert session.say(json.dumps({"type": "state"}))["data"]["step_count"] == 1
    assert session.ask("step", response=str(problem.golden_tests[0]))["data"]["observation"]["rewards"]["coder"] == 1.0


@pytest.mark.parametrize("text", ["\ud800", "\0", "\u202e", "```", "def f(:", "assert f(1) == '\ud800'", "x" * 100_000])
def test_any_text_is_a_response(text: str, url: str) -> None:
    session = Session(url)
    session.play(bundled_problems()[0], "both", text)
    seen = session.ask("step", response=text)
    assert seen["type"] == "observation"
    assert seen["data"]["observation"]["rewards"]["coder"] == 0.0


def test_a_response_may_be_chat_messages_and_another_form_is_refused_with_a_reason(url: str) -> None:
    problem = bundled_problems()[0]
    text = {"type": "text", "text": str(problem.reference_solution)}
    session = Session(url)
    session.play(problem, "coder")
    heard = session.ask("step", response=[{"role": "assistant", "content": [text]}])
    assert heard["data"]["reward"] == 1.0
    assert adapter.ResponseAction(response=[{"role": "assistant", "content": [text]}]).response == text["text"]
    for bad in (None, ["x"], [], 3, {"role": "user", "content": "x"}, [["\ud800" * 1000]]):
        session.play(problem, "coder")
        heard = session.ask("step", response=bad)
        assert heard["type"] == "error"
        assert "must be a text or an assistant's chat message" in json.dumps(heard)
        assert 400 <= post(url + "/step", json.dumps({"action": {"response": bad}}).encode())[0] < 500


def test_a_step_needs_an_episode(url: str) -> None:
    session = Session(url)
    early = session.ask("step", response="")
    assert (early["type"], early["data"]["code"]) == ("error", "EXECUTION_ERROR")
    assert "before reset or after the end" in early["data"]["message"]
    session.play(bundled_problems()[0], "coder", "")
    assert "after the end" in session.ask("step", response="")["data"]["message"]
    status, body = post(url + "/step", b'{"action": {"response": ""}}')
    assert status == 400
    assert b"before reset" in body
    assert b"over the WebSocket /ws" in body


def test_messages_and_bodies_that_are_too_long_are_not_read(url: str) -> None:
    body = json.dumps({"action": {"response": "x" * server.MOST_BYTES}}).encode()
    assert post(url + "/step", body)[0] == 413
    assert post(url + "/reset", b" " * (server.MOST_BYTES + 1))[0] == 413
    session = Session(url)
    with pytest.raises(Exception, match="1009"):
        session.say(json.dumps({"type": "step", "data": {"response": "x" * server.MOST_BYTES}}))
    assert Session(url).ask("reset")["type"] == "observation"


def test_a_long_message_is_refused_under_any_server() -> None:
    sent: list[Any] = []

    async def run() -> None:
        app = server.make_app()
        waiting = [{"type": "websocket.connect"}, {"type": "websocket.receive", "text": "x" * (server.MOST_BYTES + 1)}]

        async def receive() -> Any:
            return waiting.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "websocket", "path": "/ws", "headers": [], "query_string": b"", "subprotocols": []}
        await app({**scope, "asgi": {"version": "3.0"}, "root_path": "", "scheme": "ws"}, receive, send)

    asyncio.run(run())
    assert sent[0]["type"] == "websocket.accept"
    assert (sent[1]["type"], sent[1]["code"]) == ("websocket.close", 1009)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"5", b'{"seed": -1}', b'{"seed": "x"}', b"\xff", b"[" * 100_000])
def test_malformed_requests_are_refused_and_the_server_goes_on(body: bytes, url: str) -> None:
    status, _ = post(url + "/step", body)
    assert 400 <= status < 500
    status, seen = post(url + "/reset", b'{"problem_id": "' + bundled_problems()[1].problem_id.encode() + b'"}')
    assert status == 200
    assert seen["observation"]["question"] == bundled_problems()[1].question


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "-Infinity", "1e999", '"\\ud800"', "[" * 5000 + "]" * 5000, "9" * 5000]
)
@pytest.mark.parametrize("field", ["seed", "seat", "problem_id", "action", "other"])
def test_a_value_that_no_answer_could_quote_is_refused_with_a_reason(field: str, value: str, url: str) -> None:
    """Found here: the answer that quoted it could not be written, and the client got a 500."""
    for path in ("/reset", "/step"):
        status, answer = post(url + path, f'{{"{field}": {value}}}'.encode())
        assert 400 <= status < 500
        assert json.loads(answer)["detail"]
    assert post(url + "/reset", b"{}")[0] == 200


def test_a_failing_sandbox_is_an_error_without_its_words_and_without_a_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise SandboxError("the machine at 10.0.0.1 is on fire")

    with serving() as state:
        session = Session(state.url)
        with monkeypatch.context() as patch:
            patch.setattr(LocalSandbox, "run", fail)
            heard = session.play(bundled_problems()[0], "both", "", "assert 1")
        assert heard["code"] == "EXECUTION_ERROR"
        assert "must be judged" in heard["message"]
        assert "10.0.0.1" not in json.dumps(heard)
        assert "before reset" in session.ask("step", response="")["data"]["message"]
        assert session.play(bundled_problems()[0], "both", "", "")["done"]


def test_tables_that_cannot_be_played_are_refused() -> None:
    bare = Problem("bare", "?", "f", reference_solution="def f(): pass")
    with pytest.raises(ConfigurationError, match="must have mutants for testers to attack"):
        adapter.TableRules((bare,))
    assert adapter.TableRules((bare,), seats=("coder", "both")).asked == (bare,)
    with pytest.raises(ConfigurationError, match="seats must be some of"):
        adapter.TableRules(seats=("judge",))
    with pytest.raises(ConfigurationError, match="rounds must be"):
        adapter.TableRules(rounds=0)
    with pytest.raises(ConfigurationError, match="sessions must be at least 1"):
        server.make_app(sessions=0)
    with pytest.raises(ConfigurationError, match="idle_s must be greater than 0"):
        server.make_app(idle_s=0)


def test_the_environment_is_openenvs_and_closes_twice() -> None:
    from openenv.core.env_server.interfaces import Environment

    game = adapter.GameEnvironment()
    assert isinstance(game, Environment)
    assert adapter.GameEnvironment.SUPPORTS_CONCURRENT_SESSIONS
    assert game.reset(seed=1).turn == "coder"
    game.close()
    game.close()
    with pytest.raises(ConfigurationError, match="connect again"):
        game.reset()


def test_the_manifest_names_a_server_that_is_there() -> None:
    yaml = importlib.import_module("yaml")

    manifest = yaml.safe_load((EXAMPLE.parents[1] / "openenv.yaml").read_text())
    module, _, name = manifest["app"].partition(":")
    assert getattr(importlib.import_module(module), name).title == "codea1"


def test_the_example_is_short_and_plays(capsys: pytest.CaptureFixture[str], url: str) -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 32
    runpy.run_path(str(EXAMPLE))["main"](url)
    assert "coder's reward 1.000" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "99999"], "port must be 0-65535"),
        (["--host", "a" * 70], "label too long"),
        (["--problems", "/"], "/ must be accessible, got: Is a directory; check its path"),
    ],
)
def test_an_argument_that_is_none_ends_in_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        server.main(arguments)
    assert said in capsys.readouterr().err
