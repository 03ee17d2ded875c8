"""Both seats' rewards as OpenRLHF's remote reward: a file that imports one as `reward_func`, or `codea1 serve`.

    --reward.remote_url my_reward.py
    --reward.remote_url http://localhost:8000/v1/openrlhf/coder    # or .../tester

`--data.label_key` names a column that holds the problem, a line of a file of problems. The tester's holds
`{"problem": ..., "program": ...}`. Where infrastructure fails, OpenRLHF says so and the response has no reward.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from codea1_env.adapters.seat_rewards import Earned, SeatRewards, shared
from codea1_env.checks import json_object
from codea1_env.errors import FormatError
from codea1_env.reading.queries import response_of

Texts = Sequence[str]
SEATS = ("coder", "tester")


def coder_by_golden_tests(queries: Texts, prompts: Texts, labels: Texts) -> dict[str, Any]:
    """The share of its problem's golden tests that each program passes: tensors of shape (responses,)."""
    return _tensors(shared().now(paid(shared(), "coder", queries, prompts, labels)))


def tester_by_kills(queries: Texts, prompts: Texts, labels: Texts) -> dict[str, Any]:
    """R_T of each suite against its label's program: tensors of shape (responses,)."""
    return _tensors(shared().now(paid(shared(), "tester", queries, prompts, labels)))


async def paid(rewards: SeatRewards, seat: str, queries: Texts, prompts: Texts, labels: Texts) -> dict[str, Any]:
    """Lists as OpenRLHF reads them: `rewards`, `scores`, `extra_logs` by name. Raises FormatError, SandboxError."""

    async def one(query: str, prompt: str, label: str) -> Earned:
        response = response_of(query, prompt)
        if seat == "coder":
            return await rewards.golden(label, response)
        row = json_object(label, "a tester's label", FormatError)
        return await rewards.kills(row.get("problem"), row.get("program"), response)

    earned = await asyncio.gather(*(one(*row) for row in zip(queries, prompts, labels, strict=True)))
    amounts = [each.reward for each in earned]
    logs = {name: [each.measures[name] for each in earned] for name in earned[0].measures} if earned else {}
    return {"rewards": amounts, "scores": amounts, "extra_logs": logs}


def _tensors(found: dict[str, Any]) -> dict[str, Any]:
    import torch  # OpenRLHF's own

    logs = {name: torch.tensor(values) for name, values in found["extra_logs"].items()}
    return {"rewards": torch.tensor(found["rewards"]), "scores": torch.tensor(found["scores"]), "extra_logs": logs}
