"""Both seats' rewards as OpenRLHF's remote reward: a file that imports one as `reward_func`, or `codea1 serve`.

    --reward.remote_url my_reward.py
    --reward.remote_url http://localhost:8000/v1/openrlhf/coder    # or .../tester

`--data.label_key` names a column that holds the problem, a line of a file of problems. The tester's holds
`{"problem": ..., "program": ...}`. Where infrastructure fails, OpenRLHF says so and the response has no reward.
"""

from __future__ import annotations

from typing import Any

from codea1_env.adapters.seat_rewards import Texts, paid, shared


def coder_by_golden_tests(queries: Texts, prompts: Texts, labels: Texts) -> dict[str, Any]:
    """The share of its problem's golden tests that each program passes: tensors of shape (responses,)."""
    return _tensors("coder", queries, prompts, labels)


def tester_by_kills(queries: Texts, prompts: Texts, labels: Texts) -> dict[str, Any]:
    """R_T of each suite against its label's program: tensors of shape (responses,)."""
    return _tensors("tester", queries, prompts, labels)


def _tensors(seat: str, *columns: Texts) -> dict[str, Any]:
    import torch  # OpenRLHF's own

    found = shared().now(paid(shared(), seat, *columns))
    logs = {name: torch.tensor(values) for name, values in found["extra_logs"].items()}
    return {"rewards": torch.tensor(found["rewards"]), "scores": torch.tensor(found["scores"]), "extra_logs": logs}
