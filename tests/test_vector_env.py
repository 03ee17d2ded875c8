"""Episodes in batches: each is what it is alone, and nothing is shared but the arena."""

import copy
import dataclasses
import json
from pathlib import Path
from typing import Any

import double_question
import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from hypothesis import HealthCheck, given, settings, strategies as st

import codea1_env
from codea1_env import MistakeBook, RewardConfig, TestCase, bundled_problems, parallel_env, vector_env
from codea1_env.envs.episode import CODER, TESTER
from codea1_env.errors import Codea1Error, ConfigurationError, SandboxError, UnusableReference
from codea1_env.records.recording import Recorder
from codea1_env.sandbox import Job, JobResult, LocalSandbox

DOUBLE = dataclasses.replace(double_question.DOUBLE, time_limit_s=0.2)
SORTED = dataclasses.replace(
    DOUBLE,
    problem_id="backwards",
    question="Write `backwards(xs)`, which returns the list backwards.",
    entry_point="backwards",
    reference_solution="def backwards(xs):\n    return xs[::-1]\n",
    golden_tests=(TestCase("backwards([1, 2])", "[2, 1]"),),
)
PROBLEMS = [DOUBLE, SORTED]
CODES = (
    "",
    "def double(x): return 2 * x",
    "def double(x): return x * x",
    "def backwards(xs): return sorted(xs)",
    "def double(x):\n    while x != 3: pass\n    return 6",
    "import os\n\ndef double(x): os._exit(0)",
    "def double(x):\n    global seen\n    seen = globals().get('seen', 0) + 1\n    return 2 * x if seen == 1 else seen",
    "def double(x): return [double] * x\nbackwards = double",
    "def double(x):\n    class Six(int):\n        def __eq__(self, other): return True\n    return Six(x)",
    "```python\ndef backwards(xs):\n    return list(reversed(xs))\n```",
    "raise SystemExit",
)
SUITES = (
    "",
    "assert double(2) == 4\nassert double(3) == 6\nassert double(5) == 10",
    "assert double(3) == 7\nassert double(4) == 8\nassert double(4) == 8",
    "assert backwards([3, 1, 2]) == [2, 1, 3]\nassert backwards([1, 2]) == [2, 1]",
    "assert __import__('os').system('true') == 0\nassert double(double(1)) == 4",
    "assert double(2) in (4, 5)\n" * 12,
    "\x00\ud800 assert",
)


def names(testers: int) -> list[str]:
    return [f"tester_{number}" for number in range(testers)]


def seen_alone(games: list[Any], rows: list[tuple[str, ...]], resets: list[dict[str, Any]]) -> list[list[Any]]:
    """What environments show in an episode each, one after the other: the reset, then every step."""
    shown = []
    for game, row, reset in zip(games, rows, resets, strict=True):
        steps = [game.reset(**reset)]
        while game.agents:
            steps.append(game.step(dict(zip(game.possible_agents, row, strict=True))))
        shown.append(steps)
    return shown


def seen_together(games: Any, rows: list[tuple[str, ...]], **reset: Any) -> list[list[Any]]:
    """The same of a vector, taken apart."""
    steps = [games.reset(**reset)]
    actions = dict(zip(games.possible_agents, map(list, zip(*rows, strict=True)), strict=True))
    while games.agents:
        steps.append(games.step(actions))
    return [[tuple(episode_of(part, place) for part in step) for step in steps] for place in range(games.num_envs)]


def episode_of(part: dict[str, Any], place: int) -> dict[str, Any]:
    """By agent, what one episode of the batch got."""
    return {
        agent: {key: values[place] for key, values in batch.items()} if isinstance(batch, dict) else batch[place]
        for agent, batch in part.items()
    }


def bytes_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_episode_of_a_vector_is_what_it_is_alone(
    data: st.DataObject, sandbox: LocalSandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Observations, rewards, infos, books and the recording, over seeded and unseeded episodes one after the other."""
    n, rounds, testers = (data.draw(st.integers(low, most)) for low, most in ((1, 5), (1, 2), (1, 3)))
    seed = data.draw(st.integers(0, 1 << 40))
    folder = tmp_path_factory.mktemp("games")
    book = MistakeBook()
    book.record("double", (), [TestCase("double(7)", "14")])
    arguments: dict[str, Any] = {"rounds": rounds, "testers": testers, "book": book, "sandbox": sandbox}
    with Recorder(folder / "one") as one, Recorder(folder / "many") as many:
        alone = [parallel_env(PROBLEMS, recorder=one, **arguments) for _ in range(n)]
        together = vector_env(n, PROBLEMS, recorder=many, **arguments)
        for episode in range(3):
            suites = st.lists(st.sampled_from(SUITES), min_size=testers, max_size=testers)
            rows = [(data.draw(st.sampled_from(CODES)), *data.draw(suites)) for _ in range(n)]
            is_seeded = episode == 0
            resets: list[dict[str, Any]] = [{"seed": seed + place if is_seeded else None} for place in range(n)]
            theirs = seen_alone(alone, rows, resets)
            ours = seen_together(together, rows, seed=seed if is_seeded else None)
            assert ours == theirs
            assert list(together.books) == [game.book for game in alone]
    if rounds == 1:  # with more, environments that step one after the other finish their episodes in another order
        assert bytes_of(folder / "many") == bytes_of(folder / "one")
    assert sorted(bytes_of(folder / "many")) == sorted(bytes_of(folder / "one"))


def test_a_program_in_many_episodes_crashes_in_each_of_them_as_it_does_alone(sandbox: LocalSandbox) -> None:
    """After ten crashes in a batch a program has less time, and one that is slow but right would fail."""
    slow = (
        "import os, time\n\ndef double(x):\n    if x > 9:\n        os._exit(1)\n"
        "    time.sleep(0.5 if x == 9 else 0)\n    return 2 * x"
    )
    numbers = [(*range(first, first + 4), 9) for first in (10, 20, 30)]
    suites = ["\n".join(f"assert double({number}) == {2 * number}" for number in row) for row in numbers]
    problem = dataclasses.replace(DOUBLE, time_limit_s=0.8)
    arguments: dict[str, Any] = {"sandbox": sandbox, "rewards": RewardConfig(suite_size=5)}
    rows = [(slow, suite) for suite in suites]
    resets: list[dict[str, Any]] = [{"seed": place} for place in range(3)]
    theirs = seen_alone([parallel_env([problem], **arguments) for _ in rows], rows, resets)
    ours = seen_together(vector_env(3, [problem], **arguments), rows, seed=0)
    assert ours == theirs
    assert ours[2][-1][1][CODER] == 1 / 5  # the slow call counts


def test_seeds_are_gymnasiums_and_questions_are_drawn_or_named_for_each_episode() -> None:
    games = vector_env(20)
    drawn = [info["problem_id"] for info in games.reset(seed=5)[1][CODER]]
    assert drawn == [parallel_env().reset(seed=seed)[1][CODER]["problem_id"] for seed in range(5, 25)]
    assert len(set(drawn)) > 10
    assert [info["problem_id"] for info in games.reset(seed=list(range(24, 4, -1)))[1][TESTER]] == drawn[::-1]
    assert [info["problem_id"] for info in games.reset(seed=np.arange(5, 25))[1][CODER]] == drawn
    ids = [problem.problem_id for problem in bundled_problems()[:20]]
    assert [info["problem_id"] for info in games.reset(options={"problem_id": ids})[1][CODER]] == ids
    assert {info["problem_id"] for info in games.reset(options={"problem_id": ids[3]})[1][CODER]} == {ids[3]}


def test_what_comes_back_lies_in_the_spaces_batched_as_gymnasium_batches_them(sandbox: LocalSandbox) -> None:
    games = vector_env(3, PROBLEMS, sandbox=sandbox, testers=2)
    assert games.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    assert games.action_space(CODER).contains(("", "x", "y"))
    steps: list[Any] = [games.reset(seed=0)]
    steps += [games.step({agent: ["", "def f(): pass", ""] for agent in games.possible_agents}) for _ in range(2)]
    for step in steps:
        assert all(games.observation_space(agent).contains(seen) for agent, seen in step[0].items())
    assert games.state_space.contains(games.state())
    _, rewards, terminations, truncations, infos = steps[-1]
    assert {(each.shape, each.dtype) for each in rewards.values()} == {((3,), np.dtype(np.float64))}
    assert all(each.all() and each.dtype == bool for each in terminations.values())
    assert not any(each.any() for each in truncations.values())
    assert json.loads(json.dumps(infos, allow_nan=False)) == infos
    assert games.agents == []
    with pytest.raises(gymnasium.error.ResetNeeded, match="step outside of one"):
        games.step(dict.fromkeys(games.possible_agents, [""] * 3))


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ({}, r"actions must hold the action of coder_0 now, got \[\]"),
        ({TESTER: ["", ""]}, r"actions must hold the action of coder_0 now, got \['tester_0'\]"),
        (["", ""], "actions must hold the action of coder_0 now, got list"),
        ({CODER: "ab"}, r"actions\['coder_0'\] must be 2 strings in a list, one for each episode, got 'ab'"),
        ({CODER: [""]}, r"actions\['coder_0'\] must be 2 strings in a list, one for each episode, got \[''\]"),
        ({CODER: ["", None]}, r"actions\['coder_0'\] must be 2 strings"),
        ({CODER: 7}, r"actions\['coder_0'\] must be 2 strings"),
    ],
)
def test_actions_of_another_shape_change_nothing(actions: Any, message: str, sandbox: LocalSandbox) -> None:
    games = vector_env(2, PROBLEMS, sandbox=sandbox)
    games.reset(seed=0)
    before = games.state()
    with pytest.raises(ConfigurationError, match=message):
        games.step(actions)
    assert str(games.state()) == str(before)
    games.step({CODER: np.array(["", ""], dtype=object)})
    assert games.state()["phase"] == ("test", "test")


@pytest.mark.parametrize(
    ("reset", "message"),
    [
        ({"seed": np.array(1)}, "seed must be None, a whole number of at least 0, or 2 of these in a list, got array"),
        ({"seed": -1}, "seed must be None, a whole number of at least 0, or 2 of these in a list, got -1"),
        ({"seed": [1]}, "seed must be None"),
        ({"seed": "ab"}, "seed must be None"),
        ({"seed": True}, "seed must be None"),
        ({"options": {"problem_id": ["double", "nowhere"]}}, "must name a problem of this environment, got 'nowhere'"),
        ({"options": {"problem_id": ["double"]}}, r"options\['problem_id'\] must be a problem's id, or 2 in a list"),
        ({"options": {"book": {}}}, "must be a MistakeBook, got dict"),
        ({"options": {"reset_mask": 1}}, "must have no other names than book, problem_id"),
    ],
)
def test_a_refused_reset_begins_no_episode(reset: Any, message: str, sandbox: LocalSandbox) -> None:
    games = vector_env(2, PROBLEMS, sandbox=sandbox)
    games.reset(seed=0)
    games.step({CODER: ["", ""]})
    with pytest.raises(ConfigurationError, match=message):
        games.reset(**reset)
    assert games.state()["phase"] == ("test", "test")


@pytest.mark.parametrize("num_envs", [0, -1, 1.0, True, "2", None, 10**9])
def test_the_number_of_episodes_is_a_whole_number(num_envs: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"num_envs must be a whole number in \[1, 100000\], got "):
        vector_env(num_envs)


def test_a_failing_sandbox_pays_nobody_and_the_step_may_be_made_again(sandbox: LocalSandbox) -> None:
    failing = double_question.FailingSandbox(sandbox)
    games, other = (vector_env(2, [DOUBLE], sandbox=failing) for _ in range(2))
    for each in (games, other):
        each.reset(seed=0)
        each.step({CODER: [CODES[1], CODES[2]]})
    before = str(games.state())
    with pytest.raises(SandboxError, match="on fire"):
        games.step({TESTER: [SUITES[1]] * 2})
    assert str(games.state()) == before
    assert [len(book) for book in games.books] == [0, 0]
    failing.fails = False
    again, first = (each.step({TESTER: [SUITES[1]] * 2}) for each in (games, other))
    assert str(again) == str(first)
    assert [len(book) for book in games.books] == [0, 2]


def test_a_reference_that_does_not_run_is_named_and_nothing_changes(sandbox: LocalSandbox) -> None:
    broken = dataclasses.replace(SORTED, reference_solution="def other(): pass")
    games = vector_env(2, [DOUBLE, broken], sandbox=sandbox)
    games.reset(options={"problem_id": ["double", "backwards"]})
    games.step({CODER: ["", ""]})
    with pytest.raises(UnusableReference, match="'backwards'"):
        games.step({TESTER: [SUITES[1], SUITES[3]]})
    assert games.state()["phase"] == ("test", "test")


def test_a_step_is_one_pass_of_the_sandbox_for_programs_however_many_episodes(sandbox: LocalSandbox) -> None:
    class Counting:
        version = sandbox.version

        def __init__(self) -> None:
            self.passes: list[int] = []

        def run(self, jobs: list[Job]) -> list[JobResult]:
            self.passes.append(len(jobs))
            return sandbox.run(jobs)

        def close(self) -> None: ...

    counts = []
    for n in (1, 16):
        counting = Counting()
        games: Any = vector_env(n, [DOUBLE], sandbox=counting)
        games.reset(seed=0)
        games.step({CODER: [f"def double(x): return 2 * x  # {place}" for place in range(n)]})
        games.step({TESTER: [SUITES[1]] * n})
        counts.append(counting.passes)
    assert counts == [[1, 1, 1], [16, 1, 1]]  # programs; the reference under two hash seeds, once for all


def test_an_own_sandbox_is_stopped_and_a_copy_has_its_own() -> None:
    games = vector_env(2, [DOUBLE])
    games.reset(seed=0)
    games.step({CODER: [CODES[1], CODES[2]]})
    twin = copy.deepcopy(games)
    for each in (games, twin):
        assert each.step({TESTER: [SUITES[1]] * 2})[1][CODER].tolist() == [1.0, 1 / 3]
        each.close()
        each.close()


def test_every_mode_renders_every_episode(sandbox: LocalSandbox, capsys: pytest.CaptureFixture[str]) -> None:
    games = vector_env(2, PROBLEMS, sandbox=sandbox, render_mode="ansi")
    games.reset(options={"problem_id": ["double", "backwards"]})
    first, second = games.render()
    assert DOUBLE.question in str(first)
    assert SORTED.question in str(second)
    human = vector_env(2, PROBLEMS, sandbox=sandbox, render_mode="human")
    human.reset(options={"problem_id": ["double", "backwards"]})
    printed = capsys.readouterr().out
    assert DOUBLE.question in printed
    assert SORTED.question in printed


class TestBooksOfTheirOwn:
    """`Arena.play(books=...)`, on which vectors stand."""

    def test_each_match_replays_and_changes_its_own_book(self, sandbox: LocalSandbox) -> None:
        arena = codea1_env.Arena(sandbox)
        full, empty = MistakeBook(), MistakeBook()
        full.record("double", (), [TestCase("double(3)", "6")])
        match = codea1_env.Match(DOUBLE, (CODES[2],), (("assert double(5) == 10",),))
        scores = arena.play([match, match], books=[full, empty])
        assert [len(score.codes[0].replays) for score in scores] == [1, 0]
        assert [len(book) for book in (full, empty, arena.book)] == [2, 1, 0]

    def test_books_of_another_shape_are_refused(self, sandbox: LocalSandbox) -> None:
        arena, book = codea1_env.Arena(sandbox), MistakeBook()
        match = codea1_env.Match(DOUBLE, (CODES[2],), (("",),))
        for books in ([book], [book, book], [book, None], 7):
            with pytest.raises(Codea1Error, match="books must be"):
                arena.play([match, match], books=books)  # type: ignore[arg-type]  # on purpose
