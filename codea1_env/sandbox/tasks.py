"""One job of the local backend on its way: what is handed over next, and what every ended process is charged for.

Pure bookkeeping. Does not start processes and does not keep time: see `local.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from codea1_env.sandbox.protocol import (
    CallsJob,
    Company,
    ExpressionsJob,
    Job,
    Outcome,
    OutcomeKind,
    ScriptJob,
    StdioJob,
    packages_of,
)
from codea1_env.sandbox.zygotes import JOB_BYTES, RARE_MODULES, Record, ZygoteKind

MAX_SOURCE_BYTES = 4 << 20
"""Bytes of the longest program that is tried at all."""
_RARE_IMPORT = re.compile(rf"\b(?:from[ \t]+|import\b.*\b)(?:{'|'.join(RARE_MODULES)})\b")
_FLOATS = re.compile(rb'[0-9]\.[0-9]|[0-9]e[+-]?[0-9]|\{"[fc]":')
_SETS = re.compile(rb'\{"[sz]":')
_STARTING_NS = 5_000_000
"""What a process uses before its program loads and after its last record, at most: 1 to 3 ms were measured."""
_TOO_LARGE = b'{"o":"too large"}'
_TIMEOUT = Outcome(OutcomeKind.TIMEOUT)
STRIKES = (OutcomeKind.TIMEOUT, OutcomeKind.CRASH)
"""What counts against `Limits.strikes`."""
_OUTCOMES = {"V": OutcomeKind.VALUE, "E": OutcomeKind.ERROR, "M": OutcomeKind.MEMORY}


@dataclass(slots=True)
class Task:
    """One job on its way: which items are done, and what it has used up."""

    index: int
    job: Job
    items: Sequence[bytes]
    outcomes: list[Outcome] = field(default_factory=list)
    head: bytes = b""
    """What every process of the job is given beside its items, as JSON without its closing brace."""
    handed_over: int = 0
    """Items that the running process was given: not all, where they are many or each wants a process."""
    loaded: bool = False
    load_failure: Outcome | None = None
    strikes: int = 0
    spent_ns: int = 0
    asleep_s: float = 0.0
    """As far as it was seen."""
    losses: int = 0
    """Sandbox processes that were lost while they ran it, through no doing of its own."""
    kills: int = 0
    """Candidates that were killed and whose job ran again."""

    @property
    def done(self) -> bool:
        return self.load_failure is not None or (self.loaded and len(self.outcomes) == len(self.items))


def items_of(job: Job) -> Sequence[bytes]:
    """What the job does one after another, each as JSON."""
    match job:
        case CallsJob():
            return job.calls
        case ExpressionsJob():
            return [json.dumps(text).encode() for text in job.expressions]
        case StdioJob():
            return [json.dumps(text).encode() for text in job.stdins]
        case ScriptJob():
            return [json.dumps(job.script).encode()]


def zygote_kind(job: Job) -> ZygoteKind:
    """Which zygote the job's processes are forked from."""
    has_rare_modules = not isinstance(job, ExpressionsJob) and _RARE_IMPORT.search(job.source) is not None
    is_checker = isinstance(job, CallsJob) and job.is_checker
    return ZygoteKind(job.hash_seed, packages_of(job), has_rare_modules, is_checker)


def payload(task: Task) -> bytes:
    """The job from its next item on, as the candidate reads it; as many items as fit one hand-over."""
    first = len(task.outcomes)
    most = min(first + 1, len(task.items)) if wants_a_process_each(task.job) else len(task.items)
    size, last = 0, first
    while last < most and (last == first or size + len(task.items[last]) < JOB_BYTES):
        if last > first and (_wants_its_own(task, last - 1) or _wants_its_own(task, last)):
            break
        size += len(task.items[last]) + 1
        last += 1
    task.handed_over = last - first
    task.head = task.head or json.dumps(_head(task.job)).encode()[:-1]
    return task.head + b',"items":[' + b",".join(task.items[first:last]) + b"]}"


def wants_a_process_each(job: Job) -> bool:
    """A process that is given one item alone holds nothing that tells of the others, not even how many there are."""
    return isinstance(job, StdioJob) or (isinstance(job, CallsJob) and job.company is Company.ALONE)


def _wants_its_own(task: Task, item: int) -> bool:
    """Whether no other item is to be in its process, although the program keeps nothing (`floats_apart`)."""
    job, call = task.job, task.items[item]
    if not isinstance(job, CallsJob) or _FLOATS.search(call) is None:
        return False
    return job.floats_apart or _SETS.search(call) is not None


def most_records(task: Task) -> int:
    """Records that the running process may write: one for each item that it was given and for each time that it loads,
    and one more."""
    reloads = isinstance(task.job, CallsJob) and task.job.company is Company.RELOADED
    return (2 if reloads else 1) * task.handed_over + 2


def _head(job: Job) -> dict[str, object]:
    fields: dict[str, object] = {"value_bytes": job.limits.value_bytes}
    match job:
        case CallsJob():
            reload = job.company is Company.RELOADED
            company = {"reload": reload, "alone": job.company is Company.ALONE}
            return fields | {"kind": "calls", "source": job.source, "entry_point": job.entry_point} | company
        case ExpressionsJob():
            return fields | {"kind": "expressions"}
        case StdioJob():
            return fields | {"kind": "stdio", "source": job.source}
        case ScriptJob():
            return fields | {"kind": "script", "source": job.source}


def refused(task: Task) -> bool:
    """Jobs that are not started at all: an absurdly long program."""
    source = getattr(task.job, "source", "")
    if len(source) <= MAX_SOURCE_BYTES:
        return False
    task.load_failure = Outcome(OutcomeKind.ERROR, error="SourceTooLong")
    return True


def absorb(task: Task, records: list[Record], cpu_ns: int, failure: Outcome, asleep_s: float = 0.0) -> None:
    """Take over an ended candidate's records; `failure` is what the unfinished item came to, if one is left.

    `cpu_ns` is what the kernel says that the process used. What it claims itself, per item, can shorten its time only:
    the one item of a process is charged with all of it, but for starting, or with the `asleep_s` for which the process
    was seen asleep where they are more. Of several items, none can lie about its clock, and none can sleep.
    """
    has_one_item = wants_a_process_each(task.job)
    asleep_ns = round(asleep_s * 1e9)
    least_ns = max(0, cpu_ns - _STARTING_NS, asleep_ns) if has_one_item else 0
    limit_ns, budget_ns = task.job.limits.time_limit_s * 1e9, task.job.limits.budget_s * 1e9
    claimed_ns = task.spent_ns
    task.spent_ns += cpu_ns
    head, results = (records[0], records[1:]) if records else (None, [])
    if head is None or head.kind != "L" or head.cpu_ns > limit_ns:
        _absorb_failed_load(task, head, failure, max(cpu_ns, asleep_ns))
        return
    task.loaded = True
    claimed_ns += head.cpu_ns
    taken = 0
    loading_ns = head.cpu_ns if has_one_item else 0
    for record in results:
        if taken == task.handed_over:
            break
        if record.kind == "L":  # it was loaded anew for the next item
            loading_ns = record.cpu_ns
            claimed_ns += record.cpu_ns
        if record.kind not in _OUTCOMES:
            continue
        claimed_ns += record.cpu_ns
        taken += 1
        is_late = record.cpu_ns > limit_ns or claimed_ns > budget_ns or least_ns > 2 * limit_ns
        kind = OutcomeKind.TIMEOUT if is_late else _OUTCOMES[record.kind]
        tried = kind is not OutcomeKind.TIMEOUT or record.cpu_ns > limit_ns
        used_ns = max(least_ns, min(loading_ns + record.cpu_ns, cpu_ns))
        loading_ns = 0
        value = record.payload if kind is OutcomeKind.VALUE else b""
        if len(value) > task.job.limits.value_bytes:  # only an honest process has seen to that itself
            value = _TOO_LARGE
        error = _text(record.payload) if kind is OutcomeKind.ERROR else ""
        task.outcomes.append(Outcome(kind, value, error, tried, used_ns))
    full = any(record.kind == "F" for record in results)
    if taken < task.handed_over and not (full and taken):
        used_ns = max(0, task.spent_ns - claimed_ns)
        is_cut_short = failure.kind is OutcomeKind.TIMEOUT and task.spent_ns >= budget_ns and used_ns < limit_ns
        _strike(task, replace(failure, tried=not is_cut_short, cpu_ns=max(least_ns, used_ns)))
    _stop_at_the_budget(task)


def _absorb_failed_load(task: Task, head: Record | None, failure: Outcome, used_ns: int) -> None:
    """`head`: the first record, if there is one: the program raised, or it loaded too late."""
    if head is not None and head.kind == "X":
        failure = Outcome(OutcomeKind.ERROR, error=_text(head.payload))
    elif head is not None and head.kind == "L":
        failure = _TIMEOUT
    if not task.loaded:
        task.load_failure = failure
        return
    # It loaded in an earlier process: the item that is next pays.
    failed = replace(failure, tried=wants_a_process_each(task.job), cpu_ns=used_ns)
    if failed.tried and failed.kind not in STRIKES:
        task.outcomes.append(failed)
    else:
        _strike(task, failed)
    _stop_at_the_budget(task)


def _strike(task: Task, failure: Outcome) -> None:
    """Charge `failure` to the next item; after too many to all that are left."""
    task.outcomes.append(failure)
    task.strikes += 1
    if task.strikes >= task.job.limits.strikes:
        give_up(task, failure)


def _stop_at_the_budget(task: Task) -> None:
    if max(task.spent_ns / 1e9, task.asleep_s) >= task.job.limits.budget_s:
        give_up(task, _TIMEOUT)


def give_up(task: Task, failure: Outcome) -> None:
    """Charge `failure` to everything that is left."""
    if task.loaded:
        untried = Outcome(failure.kind, error=failure.error, tried=False)
        task.outcomes += [untried] * (len(task.items) - len(task.outcomes))
    else:
        task.load_failure = failure


def _text(payload: bytes) -> str:
    return payload[:64].decode("ascii", "replace")
