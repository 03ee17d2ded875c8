"""Several testers against one coder: each is paid for its own suite, the coder by all, and records show all of them."""

from pathlib import Path
from typing import Any

import pytest
from double_question import DOUBLE, SQUARE, FailingSandbox

from codea1_env import Arena, Match, MistakeBook, RewardConfig, TestCase
from codea1_env.envs import testing
from codea1_env.envs.environment import env, parallel_env
from codea1_env.envs.episode import CODER, TESTER
from codea1_env.envs.single_seat import CoderEnv, TesterEnv
from codea1_env.errors import ConfigurationError, SandboxError
from codea1_env.players.player import Response
from codea1_env.records.recording import Recorder, read_recording, replay
from codea1_env.sandbox import LocalSandbox
from codea1_env.viewer import view

WEAK = "assert double(2) == 4\nassert double(0) == 0\n"
STRONG = "assert double(3) == 6\nassert double(5) == 10\n"
AGENTS = [CODER, TESTER, "tester_1"]
PAID = {CODER: (1 + 0) / 2, TESTER: (2 / 8 + 0) / 2, "tester_1": (2 / 8 + 2 / 8) / 2}
"""By hand: all tests of one suite pass and none of the other; K is 8, half is for validity and half for kills."""


def test_each_tester_is_paid_for_its_own_suite_and_the_coder_by_all(sandbox: LocalSandbox) -> None:
    game = parallel_env([DOUBLE], sandbox=sandbox, testers=2)
    observations, _ = game.reset()
    assert game.possible_agents == game.agents == list(observations) == AGENTS
    assert [observations[agent]["active"] for agent in AGENTS] == [1, 0, 0]
    observations = game.step({CODER: SQUARE})[0]
    assert [observations[agent]["active"] for agent in AGENTS] == [0, 1, 1]
    observations, rewards, terminations, _, infos = game.step({TESTER: WEAK, "tester_1": STRONG})
    assert rewards == PAID
    assert terminations == dict.fromkeys(AGENTS, True)
    assert [len(suite["duel"]["tests"]) for suite in infos["tester_1"]["score"]["suites"][0]] == [2, 2]
    assert game.book.frequencies("double") == {TestCase("double(3)", "6"): 1, TestCase("double(5)", "10"): 1}


def test_in_turns_no_tester_sees_what_another_wrote_and_all_are_paid_at_the_end(sandbox: LocalSandbox) -> None:
    game = env([DOUBLE], sandbox=sandbox, testers=2)
    game.reset()
    seen = []
    for agent in game.agent_iter():
        observation, reward, terminated, _, info = game.last()
        seen.append((agent, observation["phase"], observation["active"], reward, game.unwrapped.state()["turn"]))
        assert STRONG[:20] not in str(observation) + str(info if not terminated else "")
        game.step(None if terminated else {CODER: SQUARE, TESTER: STRONG, "tester_1": WEAK}[agent])
    paid = {CODER: 2 / 4, TESTER: PAID["tester_1"], "tester_1": PAID[TESTER]}
    assert seen == [
        (CODER, "code", 1, 0.0, 0),
        (TESTER, "test", 1, 0.0, 1),
        ("tester_1", "test", 1, 0.0, 2),
        *[(agent, "over", 0, paid[agent], 3) for agent in AGENTS],
    ]


def test_the_rewards_are_those_of_a_match_with_as_many_suites(sandbox: LocalSandbox) -> None:
    """Under every rule that plays one program at a time."""
    for rewards in (RewardConfig(), RewardConfig(fidelity="paper"), RewardConfig(alpha=0.2, suite_size=3)):
        game = parallel_env([DOUBLE], sandbox=sandbox, testers=3, rewards=rewards)
        game.reset()
        game.step({CODER: SQUARE})
        suites = (WEAK, STRONG, "assert double(3) == 7\nassert double(1) == 2")
        paid = game.step(dict(zip(game.possible_agents[1:], suites, strict=True)))[1]
        (score,) = Arena(sandbox, rewards).play([Match(DOUBLE, (SQUARE,), (suites,))])
        assert list(paid.values()) == [score.codes[0].reward, *(suite.reward for suite in score.suites[0])]


@pytest.mark.parametrize("rounds", [1, 2])
def test_both_forms_pass_pettingzoos_tests(rounds: int, sandbox: LocalSandbox) -> None:
    testing.check_turns(lambda: env(sandbox=sandbox, rounds=rounds, testers=2))
    testing.check_parallel(lambda: Everybody(sandbox=sandbox, rounds=rounds, testers=2))
    testing.check_state(lambda: env(sandbox=sandbox, testers=2), lambda: parallel_env(sandbox=sandbox, testers=2))


class Everybody(parallel_env):
    """Gives the second tester the first one's scripted answers."""

    def step(self, actions: dict[str, Any]) -> Any:
        return super().step({"tester_1": actions.get(TESTER, ""), **actions})


def test_from_round_to_round_the_coder_reads_what_it_failed_of_all_suites(sandbox: LocalSandbox) -> None:
    game = parallel_env([DOUBLE], sandbox=sandbox, testers=2, rounds=2)
    game.reset()
    game.step({CODER: SQUARE})
    observations = game.step({TESTER: "assert double(3) == 6", "tester_1": "assert double(5) == 10"})[0]
    assert observations[CODER]["feedback"] == "assert double(3) == 6  # fail\nassert double(5) == 10  # fail\n"
    game.step({CODER: DOUBLE.reference_solution})
    observations, rewards, *_ = game.step({TESTER: "", "tester_1": WEAK})
    assert rewards[CODER] == 1.0
    assert observations[CODER]["feedback"] == ("assert double(3) == 6  # fail\nassert double(5) == 10  # fail\n")


def test_records_replays_pages_and_pictures_show_however_many_there_are(sandbox: LocalSandbox, tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    with Recorder(path) as recorder:
        game = parallel_env([DOUBLE], sandbox=sandbox, testers=3, recorder=recorder, render_mode="ansi")
        game.reset()
        game.step({CODER: SQUARE})
        game.step({TESTER: WEAK, "tester_1": STRONG, "tester_2": "assert double(7) == 14"})
    (replayed,) = replay(read_recording(path.read_bytes().splitlines()), sandbox)
    assert replayed.is_same
    assert len(replayed.rewards.suites[0]) == 3
    (shown,) = view(path).found.games
    assert [len(program["suites"]) for program in shown["programs"]] == [3]
    for test in ("double(0)", "double(5)", "double(7)"):
        assert test in str(shown)
        assert test in game.render()
    assert "TESTS OF TESTER_2" in game.render()
    html = parallel_env([DOUBLE], sandbox=sandbox, testers=3, render_mode="html")
    html.reset()
    html.step({CODER: SQUARE})
    html.step({TESTER: WEAK, "tester_1": STRONG, "tester_2": ""})
    assert html.render().count("<h2>Tests of tester_") == 3


def test_replayed_tests_are_counted_and_shown_once(sandbox: LocalSandbox) -> None:
    book = MistakeBook()
    book.record("double", (), [TestCase("double(9)", "18")])
    game = parallel_env([DOUBLE], sandbox=sandbox, testers=2, book=book, render_mode="ansi")
    game.reset()
    game.step({CODER: SQUARE})
    paid = game.step({TESTER: WEAK, "tester_1": STRONG})[1]
    assert paid[CODER] == ((1 + 0) / 2 + (0 + 0) / 2) / 2  # a suite's share: the mean of new and replayed tests
    assert game.render().count("double(9)") == 1


def test_all_due_actions_must_be_there_and_a_refused_step_takes_none(sandbox: LocalSandbox) -> None:
    game = parallel_env([DOUBLE], sandbox=sandbox, testers=2)
    game.reset()
    game.step({CODER: SQUARE})
    for actions in ({TESTER: STRONG}, {"tester_1": STRONG}, {TESTER: STRONG, "tester_1": None}):
        with pytest.raises(ConfigurationError, match=r"of tester_0 and tester_1 now|a response must be a string"):
            game.step(actions)
    assert game.step({TESTER: WEAK, "tester_1": STRONG})[1] == PAID


def test_a_failing_sandbox_leaves_the_turn_with_the_last_tester(sandbox: LocalSandbox) -> None:
    failing = FailingSandbox(sandbox)
    game = env([DOUBLE], sandbox=failing, testers=2)
    game.reset()
    game.step(SQUARE)
    game.step(WEAK)
    with pytest.raises(SandboxError, match="on fire"):
        game.step(STRONG)
    failing.fails = False
    game.step(STRONG)
    assert game.rewards == PAID


class Writes:
    """Answers everything with one text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def respond(self, requests: Any, n: int, sampling: Any, seed: int) -> list[list[Response]]:
        return [[Response(self._text)] * n for _ in requests]


def test_a_view_of_one_seat_has_an_opponent_for_each_other_seat(sandbox: LocalSandbox) -> None:
    weak, strong = Writes(WEAK), Writes(STRONG)
    coder = CoderEnv([DOUBLE], opponent=[weak, strong], sandbox=sandbox)
    coder.reset(seed=0)
    _, reward, terminated, _, info = coder.step(SQUARE)
    assert (reward, terminated) == (PAID[CODER], True)
    assert len(info["score"]["suites"][0]) == 2
    tester = TesterEnv([DOUBLE], opponent=(Writes(SQUARE), strong), sandbox=sandbox)
    tester.reset(seed=0)
    assert tester.step(WEAK)[1] == PAID[TESTER]
    tester.reset(seed=0)
    assert tester.step("")[1] == 0.0
    named = CoderEnv([DOUBLE], opponent=["golden", "random", "golden"], sandbox=sandbox)
    named.reset(seed=0)
    assert len(named.step(SQUARE)[4]["score"]["suites"][0]) == 3
    with pytest.raises(ConfigurationError, match=r"one of golden, random, fuzz, or a player .*, got 'oracle'"):
        TesterEnv([DOUBLE], opponent=["oracle", "oracle"])
    with pytest.raises(ConfigurationError, match=r"None, one of golden, random, fuzz, or a player .*, got \[\]"):
        CoderEnv([DOUBLE], opponent=[])
