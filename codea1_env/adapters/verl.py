"""Both seats' rewards as verl's `custom_reward_function`. A row's `reward_model.ground_truth` is the problem, a line of
a file of problems; a tester's row says in `extra_info.program` which program it attacks.

Raises where infrastructure fails: a zero would be learnt from, and verl has no way to leave a row out.
"""

from __future__ import annotations

from typing import Any

from codea1_env.adapters.seat_rewards import Earned, SeatRewards, shared


async def coder_by_golden_tests(
    data_source: str, solution_str: str, ground_truth: Any, extra_info: Any, **options: Any
) -> dict[str, float]:
    """The share of the problem's golden tests that the program passes. `options`: what `shared` takes."""
    return _told(await _rewards(options).golden(ground_truth, solution_str))


async def coder_by_suites(
    data_source: str, solution_str: str, ground_truth: Any, extra_info: Any, **options: Any
) -> dict[str, float]:
    """R_C under suites of the tester at `tester_url`."""
    return _told(await _rewards(options).attacked(ground_truth, solution_str))


async def tester_by_kills(
    data_source: str, solution_str: str, ground_truth: Any, extra_info: Any, **options: Any
) -> dict[str, float]:
    """R_T against the row's program."""
    return _told(await _rewards(options).kills(ground_truth, (extra_info or {}).get("program"), solution_str))


def _rewards(options: dict[str, Any]) -> SeatRewards:
    return shared(**{name: value for name, value in options.items() if not name.startswith("reward_")})  # verl's own


def _told(earned: Earned) -> dict[str, float]:
    return {"score": earned.reward, **earned.measures}
