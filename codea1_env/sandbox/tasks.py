"""One job of the local backend on its way: what is handed over next, and what every ended process is charged for.

Calls are asked in one process, which says whether the program keeps what it kept when it was loaded, and was told
nothing by addresses. Where it was, or does not say, every call has a process of its own. Nothing of this is charged to
the program, and nothing of it asks what is right.

Pure bookkeeping. Does not start processes and does not keep time: see `local.py`.
"""

from __future__ import annotations

import marshal
import re
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from codea1_env.sandbox.protocol import MOST_NOTES, MOST_TOLD, NOTE, ExpressionsJob, Job, Outcome, OutcomeKind
from codea1_env.sandbox.worlds import packages_with_needs
from codea1_env.sandbox.zygotes import JOB_BYTES, RARE_MODULES, CandidateRecord, ZygoteKind

MAX_SOURCE_BYTES = 4 << 20
"""Bytes of the longest program that is tried at all."""
_RARE_IMPORT = re.compile(rf"(?:\bfrom[ \t]+|^(?>.*?\bimport\b).*\b)(?:{'|'.join(RARE_MODULES)})\b", re.MULTILINE)
SCRIPT_PACKAGES = ("numpy", "pandas", "scipy", "sklearn", "matplotlib", "seaborn")
"""What programs beside test scripts import most: once in a zygote, where one of them is named."""
_HEAVY = re.compile(rf"\b(?:{'|'.join(SCRIPT_PACKAGES)})\b")
_QUESTION = b'{"e":['
_SETS = re.compile(rb'\{"(?:[sz]":|e":"(?:[^"\\]|\\.)*(?:set\b|\{))')
"""A set among what a call is given, or code that may make one."""
_STARTING_NS = 5_000_000
"""What a process uses before its program loads and after its last record, at most: 1 to 3 ms were measured."""
_TOO_LARGE = b'{"o":"too large"}'
_TIMEOUT = Outcome(OutcomeKind.TIMEOUT)
_OUTCOMES = {"V": OutcomeKind.VALUE, "E": OutcomeKind.ERROR, "M": OutcomeKind.MEMORY}


@dataclass(slots=True)
class _SharedProcess:
    """Calls that one process was given together, and how the job stood before it."""

    outcomes: int
    strikes: int
    spent_ns: int
    asleep_s: float


@dataclass(slots=True)
class Task:
    """One job on its way: which items are done, and what it has used up."""

    job: Job
    items: Sequence[bytes]
    outcomes: list[Outcome] = field(default_factory=list)
    head: dict[str, object] = field(default_factory=dict)
    """What every process of the job is given beside its items."""
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
    denied: dict[str, None] = field(default_factory=dict)
    """What its processes say that they were denied."""

    is_alone: bool = False
    """Whether each item has a process of its own."""
    company: _SharedProcess | None = None
    """Of the running process, where its calls are looked at."""

    @property
    def done(self) -> bool:
        is_whole = self.loaded and len(self.outcomes) == len(self.items)
        return self.load_failure is not None or is_whole


class WaitingTasks:
    """Tasks that wait, those of one zygote together: to start one with large packages takes seconds."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._groups: dict[ZygoteKind, deque[Task]] = {}
        for task in tasks:
            self.put(task, is_next=False)

    def __bool__(self) -> bool:
        return bool(self._groups)

    def put(self, task: Task, is_next: bool) -> None:
        """Among those of its zygote it is the next one, or the last one."""
        group = self._groups.setdefault(zygote_kind(task.job), deque())
        (group.appendleft if is_next else group.append)(task)

    def take(self, own: Collection[ZygoteKind], of_all: Iterable[Collection[ZygoteKind]]) -> Task:
        """For a worker that has the zygotes `own`, the one that was used last at the end: of that one if it can be,
        else of another one that it has, else of one that no worker has, else where most tasks wait."""
        kind = next((kind for kind in [*own][::-1] if kind in self._groups), None)
        if kind is None:
            had = {kind for kinds in of_all for kind in kinds}
            largest = max(self._groups, key=lambda kind: len(self._groups[kind]))
            kind = next((kind for kind in self._groups if kind not in had), largest)
        task = self._groups[kind].popleft()
        if not self._groups[kind]:
            del self._groups[kind]
        return task


def zygote_kind(job: Job) -> ZygoteKind:
    """Which zygote the job's processes are forked from."""
    world = job.world
    packages = packages_with_needs(job.packages, world.packages)
    if world.everything:
        packages = SCRIPT_PACKAGES if _HEAVY.search(f"{job.source}\n{job.items}") else ()
    has_rare_modules = _RARE_IMPORT.search(job.source) is not None
    has_rare_modules |= bool(packages) or world.is_wide  # most of them are there by then: one kind, not two
    return ZygoteKind(job.hash_seed, packages, has_rare_modules, job.is_checker, world.is_wide, world.everything)


def has(job: Job) -> int:
    """What each process of the job is to have, as `inside/widening.py` reads it."""
    world = job.world
    return world.threads | world.scratch << 1 | job.is_program << 2 | world.everything << 3


def payload(task: Task) -> tuple[bytes, bytes]:
    """The job from its next item on, as the candidate reads it: its head, and as many items as fit one hand-over."""
    first = len(task.outcomes)
    left = task.items[first : first + 1] if wants_a_process_each(task) else task.items[first:]
    size, last, was_apart = 0, first, False
    for item in left:
        is_apart = _QUESTION in item  # what one question returns, another one may change
        if last > first and (was_apart or is_apart or size + len(item) >= JOB_BYTES):
            break
        size, last, was_apart = size + len(item), last + 1, is_apart
    looks = not task.job.is_shared and last - first > 1
    task.company = _SharedProcess(first, task.strikes, task.spent_ns, task.asleep_s) if looks else None
    task.handed_over = last - first
    task.head = task.head or _head(task.job)
    body = b"".join(task.items[first:last])
    sizes = [*map(len, task.items[first:last])]
    return marshal.dumps(task.head | {"sets": _SETS.search(body) is not None, "looks": looks, "sizes": sizes}), body


def wants_a_process_each(task: Task) -> bool:
    """A process that is given one item alone holds nothing that tells of the others, not even how many there are. Nor
    does a thread that outlives its call meet another one."""
    return task.job.world.threads or task.job.is_program or task.is_alone or len(task.items) == 1


def most_records(task: Task) -> int:
    """Records that the running process may write: two for each item that it was given, a few notes, and three
    more."""
    return 2 * task.handed_over + 3 + MOST_NOTES


def _head(job: Job) -> dict[str, object]:
    fields: dict[str, object] = {"value_bytes": job.limits.value_bytes, "listing_s": job.limits.time_limit_s / 4}
    if isinstance(job, ExpressionsJob):
        return fields | {"kind": "expressions"}
    world = job.world
    watched = {"is_watched": world.is_wide or "import" in job.source, "scratch": world.scratch}
    texts = {"source": job.source, "epilogue": job.epilogue, "entry_point": job.entry_point}
    what = {"is_checker": job.is_checker, "prints": job.is_program, "is_script": world.everything}
    return fields | watched | texts | what | {"kind": "calls"}


def refused(task: Task) -> bool:
    """Jobs that are not started at all: an absurdly long program."""
    if len(task.job.source) <= MAX_SOURCE_BYTES:
        return False
    task.load_failure = Outcome(OutcomeKind.ERROR, error="SourceTooLong")
    return True


def absorb(task: Task, records: list[CandidateRecord], cpu_ns: int, failure: Outcome, asleep_s: float = 0.0) -> None:
    """Take over an ended candidate's records; `failure` is what the unfinished item came to, if one is left.

    `cpu_ns` is what the kernel says that the process used. What it claims itself, per item, can shorten its time only:
    the one item of a process is charged with all of it, but for starting, or with the `asleep_s` for which the process
    was seen asleep where they are more.
    """
    notes = [_text(record.payload) for record in records if record.kind == "D"]
    known = [note for note in notes if NOTE.fullmatch(note)]
    task.denied |= dict.fromkeys(known[: max(0, MOST_NOTES - len(task.denied))])
    records = [record for record in records if record.kind not in "BD"]
    kinds, company = {record.kind for record in records}, task.company
    if company is not None and "A" in kinds:
        _part(task, company)
    else:
        _absorb(task, records, cpu_ns, failure, asleep_s)


def _told(record: CandidateRecord) -> tuple[bytes, str]:
    """The `value` and the `error` of an outcome."""
    if record.kind == "E":
        name, _, said = record.payload.partition(b"\n")
        return said[:MOST_TOLD], _text(name)
    return record.payload if record.kind == "V" else b"", ""


def _part(task: Task, company: _SharedProcess) -> None:
    """From where the calls were asked together, each has a process of its own."""
    del task.outcomes[company.outcomes :]
    task.strikes, task.spent_ns, task.asleep_s = company.strikes, company.spent_ns, company.asleep_s
    task.is_alone, task.company = True, None


def _absorb(task: Task, records: list[CandidateRecord], cpu_ns: int, failure: Outcome, asleep_s: float) -> None:
    has_one_item = wants_a_process_each(task)
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
        if record.kind not in _OUTCOMES:
            continue
        claimed_ns += record.cpu_ns
        taken += 1
        is_late = record.cpu_ns > limit_ns or claimed_ns > budget_ns or least_ns > 2 * limit_ns
        kind = OutcomeKind.TIMEOUT if is_late else _OUTCOMES[record.kind]
        tried = kind is not OutcomeKind.TIMEOUT or record.cpu_ns > limit_ns
        used_ns = max(least_ns, min(loading_ns + record.cpu_ns, cpu_ns))
        loading_ns = 0
        value, error = (b"", "") if is_late else _told(record)
        if kind is OutcomeKind.VALUE and len(value) > task.job.limits.value_bytes:
            value = _TOO_LARGE  # only an honest process has seen to that itself
        task.outcomes.append(Outcome(kind, value, error, tried, used_ns))
    full = any(record.kind == "F" for record in results)
    if taken < task.handed_over and not (full and taken):
        used_ns = max(0, task.spent_ns - claimed_ns)
        is_cut_short = failure.kind is OutcomeKind.TIMEOUT and task.spent_ns >= budget_ns and used_ns < limit_ns
        _strike(task, replace(failure, tried=not is_cut_short, cpu_ns=max(least_ns, used_ns)))
    _stop_at_the_budget(task)


def _absorb_failed_load(task: Task, head: CandidateRecord | None, failure: Outcome, used_ns: int) -> None:
    """`head`: the first record, if there is one: the program raised, or it loaded too late."""
    if head is not None and head.kind == "X":
        failure = Outcome(OutcomeKind.ERROR, error=_text(head.payload))
    elif head is not None and head.kind == "L":
        failure = _TIMEOUT
    if not task.loaded:
        task.load_failure = failure
        return
    # It loaded in an earlier process: the item that is next pays.
    failed = replace(failure, tried=wants_a_process_each(task), cpu_ns=used_ns)
    if failed.tried and not failed.kind.is_strike:
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
