"""The shared core of adapters that pay one response at a time: rewards are the arena's, and no failure is a score."""

import asyncio
import concurrent.futures
import json
from collections.abc import Iterator
from typing import Any

import pytest
import seat_contract as contract

from codea1_env import Arena, AsyncArena, ConfigurationError, FormatError, LocalSandbox, Match, SandboxError
from codea1_env.adapters import seat_rewards, verl
from codea1_env.adapters.seat_rewards import SeatRewards, paid, read_problem, response_of
from codea1_env.players import GoldenTester


@pytest.fixture(scope="module")
def rewards() -> Iterator[SeatRewards]:
    rewards = SeatRewards(AsyncArena(workers=2), tester=GoldenTester(), suites=2)
    yield rewards
    rewards.close()


def test_a_coder_earns_what_the_arena_grades(rewards: SeatRewards) -> None:
    async def all_at_once() -> list[float]:
        earned = await asyncio.gather(*(rewards.golden(contract.LINE, text) for text in contract.PROGRAMS.values()))
        return [each.reward for each in earned]

    assert dict(zip(contract.PROGRAMS, asyncio.run(all_at_once()), strict=True)) == contract.golden_by_the_arena()


def test_a_coder_under_attack_earns_what_the_arena_pays(rewards: SeatRewards) -> None:
    suite = "\n".join(map(str, contract.PROBLEM.golden_tests))
    with Arena(LocalSandbox()) as arena:
        texts = tuple(contract.PROGRAMS.values())
        (score,) = arena.play([Match(contract.PROBLEM, texts, ((suite, suite),) * len(texts))], update_book=False)
    found = {name: rewards.now(rewards.attacked(contract.PROBLEM, text)) for name, text in contract.PROGRAMS.items()}
    assert [each.reward for each in found.values()] == [code.reward for code in score.codes]
    assert found["right"].reward == 1.0
    assert found["wrong"].told.startswith("8 of 16 tests passed.\nassert halve(1) == 1")  # of both suites


def test_a_tester_earns_what_the_arena_pays_for_its_kills(rewards: SeatRewards) -> None:
    by_the_arena = contract.kills_by_the_arena()
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        paid = threads.map(
            lambda text: rewards.now(rewards.kills(contract.LINE, contract.WRONG, text)).reward,
            contract.SUITES.values(),
        )
        assert dict(zip(contract.SUITES, paid, strict=True)) == by_the_arena
    fenced = rewards.now(rewards.kills(contract.LINE, contract.fenced(contract.WRONG), contract.SUITES["right"]))
    assert fenced.reward == by_the_arena["right"]


def test_what_the_model_is_told_is_cut_at_a_line_and_never_longer_than_it_may_be() -> None:
    whole, longer = "a" * 1_999 + "\n", "a" * 1_000 + "\n" + "b" * 998 + "\nc"
    assert seat_rewards._cut(whole) == whole
    assert seat_rewards._cut(longer) == "a" * 1_000 + "\n..."


def test_what_the_model_is_told_holds_no_golden_test(rewards: SeatRewards) -> None:
    told = rewards.now(rewards.golden(contract.LINE, contract.PROGRAMS["wrong"])).told
    assert told == "4 of 8 tests passed."


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{", "a problem must be a JSON object"),
        ("[]", "a problem must be a JSON object"),
        (None, "the problem must be a Problem or a line"),
        ({"problem_id": "x"}, "the fields must include"),
        ({**json.loads(contract.LINE), "tset": 1}, "the fields must be among"),
    ],
)
def test_a_row_that_is_no_problem_is_refused(given: object, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        read_problem(given)


def test_golden_tests_and_a_tester_are_asked_for_where_they_are_needed(rewards: SeatRewards) -> None:
    bare = {**json.loads(contract.LINE), "golden_tests": []}
    with pytest.raises(FormatError, match="the problem must have golden tests, got 'halve'"):
        rewards.now(rewards.golden(bare, "x"))
    with pytest.raises(FormatError, match="program must"):
        rewards.now(rewards.kills(contract.LINE, None, "assert halve(1) == 1"))
    alone = SeatRewards()
    with pytest.raises(ConfigurationError, match="must have a tester"):
        alone.now(alone.attacked(contract.LINE, "x"))
    alone.close()
    alone.close()


def test_a_failure_of_ours_is_tried_again_and_is_never_a_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seat_rewards, "_PAUSE_S", 0.0)
    working = LocalSandbox.run
    failures: list[int] = []

    def fail(self: LocalSandbox, *arguments: Any, **named: Any) -> Any:
        failures.append(1)
        if len(failures) <= most:
            raise SandboxError("the machine is on fire")
        return working(self, *arguments, **named)

    rewards = SeatRewards()
    monkeypatch.setattr(LocalSandbox, "run", fail)
    most = 1
    assert rewards.now(rewards.golden(contract.LINE, contract.PROGRAMS["right"])).reward == 1.0
    most = 1_000
    for work in (
        rewards.golden(contract.LINE, contract.PROGRAMS["wrong"]),
        rewards.kills(contract.LINE, contract.WRONG, contract.SUITES["right"]),
    ):
        with pytest.raises(SandboxError):
            rewards.now(work)
    rewards.close()


def test_event_loops_that_have_ended_leave_nothing_in_the_arena() -> None:
    arena = AsyncArena()
    rewards = SeatRewards(arena)
    for _ in range(5):
        asyncio.run(rewards.golden(contract.LINE, ""))
    assert len(arena._room) <= 1
    rewards.close()


def test_verls_functions_pay_the_same() -> None:
    async def paid() -> list[dict[str, float]]:
        coder = verl.coder_by_golden_tests(
            "codea1", contract.PROGRAMS["wrong"], contract.LINE, {}, reward_model_tokenizer=0
        )
        tester = verl.tester_by_kills("codea1", contract.SUITES["right"], contract.LINE, {"program": contract.WRONG})
        return [await coder, await tester]

    coder, tester = asyncio.run(paid())
    assert coder == {"score": 0.5, "executes": 1.0}
    assert tester == {"score": (3 / 8 + 2 / 8) / 2, "validity": 3 / 8, "kills": 2 / 8}


def test_openrlhfs_lists_pay_the_same(rewards: SeatRewards) -> None:
    prompt = "<|user|>Halve it.<|assistant|>\n"
    queries = [prompt + text + "<|im_end|>\n" for text in contract.PROGRAMS.values()]
    lines = [contract.LINE] * len(queries)
    found = rewards.now(paid(rewards, "coder", queries, [prompt] * len(queries), lines))
    assert found["rewards"] == found["scores"] == list(contract.golden_by_the_arena().values())
    assert set(found["extra_logs"]) == {"executes"}
    assert rewards.now(paid(rewards, "tester", [], [], [])) == {"rewards": [], "scores": [], "extra_logs": {}}


PROMPT = "<|im_start|>user\nHalve it, as in ```python\ndef halve(x): ...\n```<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize("cut", [0, 1, 20, len(PROMPT) - 16])
@pytest.mark.parametrize(
    ("written", "response"),
    [
        ("x = 1", "x = 1"),
        ("x = 1<|im_end|>", "x = 1"),
        ("x = 1\n<|im_end|>\n<｜end▁of▁sentence｜></s>", "x = 1"),
        ("x = '<|im_end|>'", "x = '<|im_end|>'"),
        ("", ""),
        ("<|im_end|>", ""),
        ("if a <b and c>", "if a <b and c>"),
        (">" * 100_000, ">" * 100_000),
        (" " * 100_000 + ">", " " * 100_000 + ">"),
    ],
)
def test_a_response_is_read_from_the_query_behind_its_prompt(cut: int, written: str, response: str) -> None:
    assert response_of(PROMPT[cut:] + written, PROMPT) == response


def test_a_query_of_another_prompt_is_refused() -> None:
    with pytest.raises(FormatError, match="a query must begin with its prompt, got 'Double it"):
        response_of("Double it", PROMPT)
    assert response_of("x", "") == "x"


def test_a_testers_name_without_its_address_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="tester_model must come with the tester_url of its server, got 'm'"):
        seat_rewards.shared(tester_model="m")
