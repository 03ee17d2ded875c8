"""The two-seat environment of verifiers, run by verifiers itself against a server of the OpenAI protocol."""

import asyncio
import importlib
import json
import os
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from double_question import on_fire
from fake_openai import FakeServer, Json, Reply, completion, serving

from codea1_env import bundled_problems
from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.errors import ConfigurationError
from codea1_env.problems import Problem, TestCase, write_problems
from codea1_env.sandbox import LocalSandbox

pytest.importorskip("verifiers", reason="verifiers has an environment of its own: make test-adapters")
vf = importlib.import_module("verifiers.v1")
adapter = importlib.import_module("codea1_env.adapters.verifiers")

pytestmark = pytest.mark.verifiers
EXAMPLE = Path(__file__).parents[1] / "examples" / "verifiers_duel.py"
PACKAGE = EXAMPLE.parent / "codea1_duel"
PROBLEMS = {problem.entry_point: problem for problem in bundled_problems()}


@pytest.fixture(autouse=True)
def _by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """verifiers finds the package as if it were installed."""
    monkeypatch.syspath_prepend(str(PACKAGE))


def asked(request: Json) -> tuple[str, Problem]:
    """The seat that is asked, and about which problem."""
    system, user = (message["content"] for message in request["messages"])
    seat = "tester" if "breaking programs" in system else "coder"
    (problem,) = [problem for problem in PROBLEMS.values() if problem.question.strip() in user]
    return seat, problem


def program_of(problem: Problem) -> str:
    """About half of the questions are answered right."""
    is_right = sum(map(ord, problem.entry_point)) % 2
    wrong = f"def {problem.entry_point}(*_):\n    return []"
    return f"```python\n{problem.reference_solution if is_right else wrong}\n```"


def suite_of(problem: Problem) -> str:
    return "\n".join(map(str, problem.golden_tests))


def player(request: Json, number: int) -> Reply:
    seat, problem = asked(request)
    return Reply(body=completion(program_of(problem) if seat == "coder" else suite_of(problem)))


def saying(text: str) -> Callable[[Json, int], Reply]:
    return lambda request, number: Reply(body=completion(text))


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with serving(player) as running:
        yield running


def played(url: str, questions: int = 1, at_once: int = 1, **options: Any) -> list[Any]:
    """The episodes of the first questions."""

    async def play() -> list[Any]:
        config = adapter.DuelConfig(taskset=adapter.DuelTasksetConfig(id="codea1-duel"), **options)
        duel = vf.load_environment(config)
        assert type(duel) is adapter.DuelEnv
        context = vf.ModelContext("some-model", vf.EvalClientConfig(base_url=url, api_key_var="NO_SUCH_KEY"))
        gate = asyncio.Semaphore(at_once)
        async with duel.serving():
            slots = [slot for task in duel.taskset.take(questions) for slot in duel.slots(task)]
            return list(await asyncio.gather(*(duel.run_slot(slot, context, gate) for slot in slots)))

    return asyncio.run(play())


def rewards_of(episode: Any) -> dict[str, float]:
    return {trace.agent.name: trace.reward for trace in episode.traces}


def test_episodes_at_once_are_paid_what_the_arena_pays(server: FakeServer) -> None:
    episodes = played(server.url, questions=8, at_once=8)
    problems = bundled_problems()[:8]
    matches = [Match(each, (program_of(each),), ((suite_of(each),),)) for each in problems]
    with Arena(LocalSandbox()) as arena:
        scores = arena.play(matches)
    assert len({score.codes[0].reward for score in scores}) > 1
    for episode, problem, score in zip(episodes, problems, scores, strict=True):
        assert episode.ok, episode.errors
        assert episode.task.data.problem_id == problem.problem_id
        assert rewards_of(episode) == {"coder": score.codes[0].reward, "tester": score.suites[0][0].reward}
        tester = episode.traces[1]
        terms = score.suites[0][0].terms
        assert terms is not None
        assert tester.metrics == {"validity": terms.validity, "kills": terms.f_new}


def test_the_tester_reads_the_program_and_each_seat_may_have_a_model_of_its_own(server: FakeServer) -> None:
    seat = adapter.DuelConfig().tester.model_copy(update={"model": "another-model"})
    played(server.url, tester=seat)
    first, second = server.asked
    assert [asked(first)[0], asked(second)[0]] == ["coder", "tester"]
    assert [first["model"], second["model"]] == ["some-model", "another-model"]
    program = program_of(asked(first)[1]).removeprefix("```python").removesuffix("```").strip()
    assert program in second["messages"][1]["content"]


def test_traces_hold_no_reference_and_no_test(tmp_path: Path) -> None:
    secret = Problem(
        "secret",
        "Write `double(x)`.",
        "double",
        reference_solution="def double(x):\n    quokka = 2 * x\n    return quokka\n",
        golden_tests=(TestCase("double(987601)", "1975202"),),
        hidden_tests=(TestCase("double(987602)", "1975204"),),
    )
    write_problems(tmp_path / "problems.jsonl", [secret])

    async def play(url: str) -> Any:
        taskset = adapter.DuelTasksetConfig(id="codea1-duel", problems=tmp_path / "problems.jsonl")
        duel = adapter.DuelEnv(adapter.DuelConfig(taskset=taskset))
        context = vf.ModelContext("m", vf.EvalClientConfig(base_url=url, api_key_var="NO_SUCH_KEY"))
        async with duel.serving():
            (task,) = duel.taskset
            return await duel.run_episode(task, context)

    with serving(saying("assert double(3) == 7")) as running:
        episode = asyncio.run(play(running.url))
    assert episode.ok
    everything = json.dumps([episode.to_record(), running.asked])
    assert "Write `double(x)`." in everything
    for word in ("quokka", "987601", "1975202", "987602", "1975204"):
        assert word not in everything


@pytest.mark.parametrize("text", ["", "\0", "I would rather not.", "```python\ndef f(:\n```", "assert", "x" * 200_000])
def test_any_text_is_an_answer(text: str) -> None:
    with serving(saying(text)) as running:
        (episode,) = played(running.url)
    assert episode.ok, episode.errors
    assert rewards_of(episode)["coder"] == 0.0


def test_a_server_that_fails_is_an_error_and_no_reward() -> None:
    with serving(lambda request, number: Reply(status=400, body=b"{}")) as running:
        (episode,) = played(running.url)
    assert not episode.ok
    assert [trace.agent.name for trace in episode.traces] == ["coder"]  # nobody attacks what was not written
    assert not any(trace.rewards for trace in episode.traces)


def test_a_tester_that_fails_costs_the_coder_nothing_and_pays_it_nothing() -> None:
    def behave(request: Json, number: int) -> Reply:
        return player(request, number) if asked(request)[0] == "coder" else Reply(status=400, body=b"{}")

    with serving(behave) as running:
        (episode,) = played(running.url)
    assert not episode.ok
    assert len(episode.traces) == 2
    assert not any(trace.rewards for trace in episode.traces)


def test_a_failing_sandbox_is_an_error_of_the_episode(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalSandbox, "run", on_fire)
    (episode,) = played(server.url)
    assert not episode.ok
    assert "must be judged to be paid" in episode.errors[0].message
    assert not any(trace.rewards for trace in episode.traces)


def test_no_process_outlives_the_serving(server: FakeServer) -> None:
    psutil = importlib.import_module("psutil")
    before = set(psutil.Process().children(recursive=True))
    played(server.url)
    assert not set(psutil.Process().children(recursive=True)) - before


def test_what_cannot_be_played_is_refused(tmp_path: Path) -> None:
    write_problems(tmp_path / "bare.jsonl", [Problem("bare", "?", "f")])
    for path in ("bare.jsonl", "empty.jsonl"):
        (tmp_path / "empty.jsonl").touch()
        taskset = adapter.DuelTasksetConfig(id="codea1-duel", problems=tmp_path / path)
        with pytest.raises(ConfigurationError, match="must have problems, each with a reference_solution"):
            adapter.DuelEnv(adapter.DuelConfig(taskset=taskset))
    for wrong in ({"suite_size": 0}, {"alpha": 2.0}, {"workers": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            adapter.DuelConfig(**wrong)


def test_the_example_is_short_and_plays(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 32
    asyncio.run(runpy.run_path(str(EXAMPLE))["main"](server.url, "some-model"))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all("'coder':" in line and "'tester':" in line for line in lines)


def test_the_package_has_the_layout_that_verifiers_makes(tmp_path: Path) -> None:
    init = importlib.import_module("verifiers.v1.cli.init")
    config = importlib.import_module("verifiers.v1.configs.cli.init").InitConfig
    made = init.scaffold(config(name="codea1-duel", path=str(tmp_path)))
    files = [{path.relative_to(root) for path in root.rglob("*.*") if path.is_file()} for root in (made, PACKAGE)]
    assert files[0] - files[1] == {Path("codea1_duel/taskset.py")}  # it is in codea1_env
    ours, theirs = (tomllib.loads((root / "pyproject.toml").read_text()) for root in (PACKAGE, made))
    assert ours["build-system"] == theirs["build-system"]
    assert ours["tool"] == theirs["tool"]
    assert ours["project"].keys() == theirs["project"].keys()
    assert ours["project"]["name"] == theirs["project"]["name"]


def test_vf_eval_plays_the_package(server: FakeServer, tmp_path: Path) -> None:
    command = [str(Path(sys.executable).parent / "vf-eval"), "codea1-duel", "-m", "some-model", "-n", "2", "--no-push"]
    command += ["--client.base-url", server.url, "-o", str(tmp_path), "--no-rich"]
    path = os.pathsep.join([str(PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, timeout=300)
    assert done.returncode == 0, done.stderr + done.stdout
    (traces,) = tmp_path.rglob("traces.jsonl")
    episodes = [json.loads(line) for line in traces.read_text().splitlines()]
    assert [len(episode["traces"]) for episode in episodes] == [2, 2]


def test_both_seats_of_prime_rls_configuration_learn() -> None:
    """As far as it can be held without prime-rl: the environment's part is read by verifiers, which prime-rl asks."""
    asked = tomllib.loads((PACKAGE / "prime_rl.toml").read_text())["orchestrator"]
    assert asked["algo"] == {"type": "rae"}
    ((source),) = asked["train"]["source"]
    config = importlib.import_module("verifiers.v1.utils.loaders").resolve_env_config(source["env"])
    assert type(config) is adapter.DuelConfig
    assert {config.coder.model, config.tester.model} == {None}  # the run's own, which learns
    assert config.coder.harness.id == config.tester.harness.id == "codea1-duel"
    assert type(vf.load_environment(config)) is adapter.DuelEnv
