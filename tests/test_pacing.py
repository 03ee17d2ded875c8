"""Rate limits over any 60 seconds, on a clock of the tests' own."""

import random

import pytest

from codea1_env.errors import ConfigurationError
from codea1_env.players.http_json import Pace, Passage
from codea1_env.players.openai_compatible import Traffic


class Clock:
    """Time passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


class Paced:
    """A pace on such a clock."""

    def __init__(self, requests: float, tokens: float, clock: Clock) -> None:
        self._pace = Pace(requests, tokens, clock=clock)
        self._clock = clock
        self.hold = self._pace.hold

    def enter(self, tokens: int) -> Passage:
        return self._pace.enter(tokens, self._clock.sleep)


def pace(requests: float = float("inf"), tokens: float = float("inf")) -> tuple[Paced, Clock]:
    clock = Clock()
    return Paced(requests, tokens, clock), clock


def test_without_limits_nothing_waits() -> None:
    limited, clock = pace()
    for _ in range(100):
        limited.enter(10**9)
    assert clock.now == 1000


def test_requests_beyond_a_minutes_share_wait_for_the_oldest_to_leave_the_window() -> None:
    limited, clock = pace(requests=2)
    began = []
    for pause in (0, 10, 0, 0, 100, 0):
        clock.now += pause
        began.append(limited.enter(0).began_s - 1000)
    assert began == [0, 10, 60, 70, 170, 170]


def test_tokens_beyond_a_minutes_share_wait_and_real_numbers_replace_estimates() -> None:
    limited, clock = pace(tokens=100)
    first = limited.enter(60)
    first.tokens = 30
    assert limited.enter(70).began_s == 1000
    assert limited.enter(1).began_s == 1060
    clock.now = 2000
    limited.enter(10).tokens = 500  # more than estimated, and more than the limit
    assert limited.enter(1).began_s == 2060


@pytest.mark.parametrize("seed", range(5))
def test_no_60_seconds_ever_hold_more_than_is_allowed(seed: int) -> None:
    generator = random.Random(seed)
    limited, clock = pace(requests=5, tokens=100)
    passed = []
    for _ in range(200):
        clock.now += generator.choice((0, 0, 1, 13.7))
        passed.append(limited.enter(generator.randint(1, 60)))
    for start in passed:
        window = [each for each in passed if start.began_s <= each.began_s < start.began_s + 60]
        assert len(window) <= 5
        assert sum(each.tokens for each in window) <= 100


def test_a_hold_lets_nothing_through_and_a_shorter_one_does_not_end_it() -> None:
    limited, _ = pace()
    limited.hold(30)
    limited.hold(5)
    assert limited.enter(1).began_s == 1030
    assert limited.enter(1).began_s == 1030


def test_what_can_never_pass_is_refused() -> None:
    limited, _ = pace(tokens=100)
    with pytest.raises(ConfigurationError, match="must allow a request, got 100 for one of 101 tokens"):
        limited.enter(101)
    with pytest.raises(ConfigurationError, match="requests_per_minute must be at least 1, got 0"):
        Traffic(requests_per_minute=0)
    with pytest.raises(ConfigurationError, match="tokens_per_minute must be at least 1, got nan"):
        Traffic(tokens_per_minute=float("nan"))
    for name in ("timeout_s", "back_off_s", "max_wait_s", "requests_per_minute", "retries"):
        with pytest.raises(ConfigurationError, match=rf"{name} must be .*, got \[1\]"):
            Traffic(**{name: [1]})
