"""`POST /run_code` as SandboxFusion answers it, for Python: what verl's `sandbox_fusion.url` and its client call.

    in    code, language ("python"), stdin, run_timeout (s), compile_timeout (s), memory_limit_MB
    out   status, message, run_result: {status, execution_time (s), return_code, stdout, stderr}

Source of the field names: the client package `sandbox-fusion`. What a program prints is data, and the caller compares
it: such verdicts cannot be forged. A caller who appends asserts to the code and looks at the return code has an
unsealed verdict, here as there: the program may leave with 0 before them.

verl's client waits for both time limits and 10 s, tries again where the status is 504 and takes everything else that
goes wrong for a failed test. So a program that cannot begin in time is not run, and 504 says that there is no result.

Does not run other languages and takes no files: such a request gets `SandboxError`, as SandboxFusion calls what is no
result.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codea1_env.adapters.client_bodies import is_writable, readable
from codea1_env.checks import is_number
from codea1_env.errors import FormatError
from codea1_env.problems.kinds import program_job
from codea1_env.sandbox.protocol import MEMORY_MB, CallsJob, JobResult, Limits, Outcome, OutcomeKind
from codea1_env.sandbox.worlds import world_of

_LANGUAGES = ("python", "python3")
_USUAL_S = 10.0
_ROUND_TRIP_S = 5.0
"""What is left for a program's end and the way back, of the 10 s."""


@dataclass(frozen=True, slots=True)
class FusionRun:
    """A program to be run."""

    job: CallsJob
    patience_s: float
    """Within which it must begin, or its caller has gone when it ends."""


def read_run(given: object, most_seconds: float) -> FusionRun:
    """A request's program. Raises FormatError for what is not run here."""
    if not isinstance(given, Mapping):
        raise FormatError(f"a request must be an object, got {str(given)[:100]!r}")
    code, language, stdin = given.get("code"), given.get("language", "python"), given.get("stdin")
    seconds = _or(given.get("run_timeout"), min(_USUAL_S, most_seconds))
    compile_s = _or(given.get("compile_timeout"), _USUAL_S)
    memory_mb = _or(given.get("memory_limit_MB"), MEMORY_MB)
    for name, is_right, must in (
        ("code", isinstance(code, str), "be a text"),
        ("language", language in _LANGUAGES, f"be one of {', '.join(_LANGUAGES)}"),
        ("stdin", stdin is None or (isinstance(stdin, str) and is_writable(stdin)), "be a text in UTF-8 or null"),
        ("files", not given.get("files"), "be empty: none is taken"),
        ("fetch_files", not given.get("fetch_files"), "be empty: none is given"),
        ("run_timeout", is_number(seconds) and 0 < seconds <= most_seconds, f"be in (0, {most_seconds:g}] s"),
        ("compile_timeout", is_number(compile_s) and 0 <= compile_s < threading.TIMEOUT_MAX, "be at least 0 s"),
        ("memory_limit_MB", is_number(memory_mb) and 64 <= memory_mb <= 1 << 20, "be in [64, 1048576] MiB"),
    ):
        if not is_right:
            raise FormatError(f"{name} must {must}, got {str(given.get(name))[:100]!r}")
    limits = Limits(float(seconds), float(seconds), int(memory_mb), strikes=1)
    source = str(code)
    job = program_job(source, (stdin or "",), limits, world_of(source), reports=True)
    return FusionRun(job, float(compile_s) + _ROUND_TRIP_S)


def _or(given: Any, usual: float) -> Any:
    """-1 and null leave it to the server."""
    return usual if given is None or given == -1 else given


def told(result: JobResult) -> dict[str, Any]:
    """A result in SandboxFusion's fields."""
    outcome = result.load_failure or result.outcomes[0]
    run = _run_result(outcome)
    is_finished = run["status"] == "Finished" and run["return_code"] == 0
    return _answer("Success" if is_finished else "Failed", "", run)


def refused(why: str) -> dict[str, Any]:
    """The answer to what is not run here."""
    return _answer("SandboxError", why, None)


def _answer(status: str, message: str, run: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "status": status,
        "message": message,
        "compile_result": None,
        "run_result": run,
        "executor_pod_name": None,
        "files": {},
    }


_UNREADABLE = (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError)


def _run_result(outcome: Outcome) -> dict[str, Any]:
    run: dict[str, Any] = {"status": "Error", "execution_time": outcome.cpu_ns / 1e9, "return_code": None}
    run |= {"stdout": "", "stderr": ""}
    if outcome.kind is OutcomeKind.VALUE:
        try:
            printed, complained, status = json.loads(outcome.value)
            said = {"stdout": readable(printed), "stderr": readable(complained), "return_code": int(status)}
            return run | {"status": "Finished"} | said
        except _UNREADABLE:  # too much was printed, or the program has written the answer itself
            return run | {"stderr": "the output is too long, or is none", "return_code": 1}
    if outcome.kind is OutcomeKind.TIMEOUT:
        return run | {"status": "TimeLimitExceeded"}
    if outcome.kind is OutcomeKind.MEMORY:
        return run | {"stderr": "MemoryError", "return_code": 1}
    return run | {"stderr": outcome.error or str(outcome.kind), "return_code": -9 if not outcome.error else 1}
