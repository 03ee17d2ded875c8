"""For your own tests: whether a reward function can be fooled.

    import codea1_env.testing

    def test_nobody_fools_the_reward() -> None:
        codea1_env.testing.audit(my_reward, budget=40)

Conformance tests for environments are in `codea1_env.envs.testing`.
"""

from __future__ import annotations

from collections.abc import Sequence

from codea1_env.audit.corpus import PARTS
from codea1_env.audit.grader import Reward, callable_grader
from codea1_env.audit.page import as_text
from codea1_env.audit.result import Result
from codea1_env.audit.run import audit as _audit


def audit(
    reward: Reward,
    *,
    budget: int | None = None,
    parts: Sequence[str] = PARTS,
    passes_at: float = 1.0,
    wait_s: float = 30.0,
) -> Result:
    """Raise AssertionError with the table if the reward is fooled or loses honest programs; otherwise return the
    result.

    `reward(program, tests)` returns whether the program passes the tests (asserts, as texts), or a number, which is a
    pass from `passes_at` on. It is called in forks of this process that are kept in namespaces, never here. `budget`:
    attacks at most, the same ones every time. `wait_s`: seconds until an answer counts as none.
    """
    with callable_grader(reward, passes_at=passes_at, wait_s=wait_s) as grader:
        result = _audit(grader, parts=parts, budget=budget)
    if not result.clean:
        raise AssertionError(as_text(result))
    return result
