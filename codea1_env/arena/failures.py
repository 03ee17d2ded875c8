"""When an infrastructure failure ends a command: the one rule for scoring, measuring, tournaments, training, the study.

Work that the sandbox fails is tried again piece by piece. A piece that fails by itself has no score, and the others go
on. But a program of ours is tried first: where that fails as well, every further piece would, and the command ends with
one error. A file that cannot be written ends a command in any case, with the OSError of whoever writes it.

Does not look at verdicts: what is tried again was never judged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from codea1_env.errors import SandboxError, SandboxUnsafe
from codea1_env.sandbox.protocol import CallsJob, Limits, OutcomeKind, Sandbox

Piece = TypeVar("Piece")
Result = TypeVar("Result")

_OURS = CallsJob("def f():\n    return 1\n", "f", (b"[[],[]]",), Limits(time_limit_s=10.0, budget_s=20.0))


def require_running(sandbox: Sandbox) -> None:
    """Raise SandboxError where a program of ours does not run either."""
    (result,) = sandbox.run([_OURS])
    kinds = [outcome.kind for outcome in result.outcomes]
    if kinds != [OutcomeKind.VALUE]:
        raise SandboxError(f"a program of ours must run in the sandbox, got {kinds[0] if kinds else 'one not loaded'}")


def apart(
    sandbox: Sandbox, work: Callable[[Sequence[Piece]], Sequence[Result]], pieces: Sequence[Piece]
) -> list[Result | SandboxError]:
    """What `work` makes of the pieces, in order; of a piece that the sandbox fails by itself, the error.

    Raises SandboxError where every further piece would fail, and SandboxUnsafe.
    """
    try:
        return list(work(pieces))
    except SandboxUnsafe:
        raise
    except SandboxError as error:
        require_running(sandbox)
        if len(pieces) == 1:
            return [error]
    return [result for piece in pieces for result in apart(sandbox, work, [piece])]
