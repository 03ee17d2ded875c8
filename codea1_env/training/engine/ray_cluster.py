"""The Ray engine: each seat in actors of its own, the arena and its sandbox in another, the recipe in this process.

The same recipes, seats, exchange and scores as with the local engine, and the same bits on the same seed. Whatever is
lost or fails ends the run with its cause; Ctrl-C lets the round finish, so that both seats leave a checkpoint of the
same round. On several machines the run's directory must be on a file system that they share. Does not restart a lost
actor: the run goes on by --resume. Needs the extra `ray`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from codea1_env.errors import ConfigurationError, SeatFailed
from codea1_env.extras import extra
from codea1_env.problems.problem import Problem
from codea1_env.sandbox import Sandbox, open_sandbox
from codea1_env.sandbox.interrupts import interrupts_later
from codea1_env.sandbox.ray_cluster import joined
from codea1_env.training.config.placement import SeatPlacement
from codea1_env.training.engine.local import Build
from codea1_env.training.engine.ray_actors import ArenaActor, RankPlace, SeatActor, SeatWork
from codea1_env.training.engine.ray_handles import ArenaHandle, LogHandle, MeetingHandle, failure
from codea1_env.training.run.journal import Journal
from codea1_env.training.run.results import Measured
from codea1_env.training.run.run_dir import FAILURE, Run

with extra("ray", "--engine ray needs"):
    import ray

LOCAL_SANDBOX = partial(open_sandbox, "local", 2)
ROOM_TIMEOUT_S = 60.0
"""Seconds for the cluster to find room for a seat."""
LAST_WORDS_TIMEOUT_S = 5.0
"""Seconds for an arena to say why a run ended."""
LOST_RANK_TIMEOUT_S = 20.0
"""Seconds for all ranks to end once one has failed; a busy machine takes some to notice that a process is gone."""
POLL_S = 0.2
CALLS_AT_ONCE = 32
"""Of the arena's actor: a waiting call each of both seats' first ranks, and what the engine asks meanwhile."""


@contextmanager
def open_ray_engine(
    run: Run,
    base: Path,
    held_out: Sequence[Problem],
    *,
    make_sandbox: Callable[[], Sandbox] = LOCAL_SANDBOX,
) -> Iterator[RayEngine]:
    """Joins or starts the cluster; at the end every actor is gone, and the cluster too if it was started here.

    `make_sandbox`: called beside the arena. Raises SeatFailed when the arena does not start.
    """
    ranks = sum(run.preset.placement.of(seat).ranks for seat in run.seats)
    with ExitStack() as stack:
        try:
            stack.enter_context(joined(run.ray_address, ranks))
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise ConfigurationError(f"--ray-address must be of a reachable cluster, got: {error}") from error
        engine = RayEngine(run, base, held_out, make_sandbox)
        stack.callback(engine.close)
        yield engine


class RayEngine:
    """Trains the seats of one run."""

    def __init__(self, run: Run, base: Path, held_out: Sequence[Problem], make_sandbox: Callable[[], Sandbox]) -> None:
        self._run = run
        self._base = base
        self._held_out = tuple(held_out)
        self._journal = Journal(run)
        self._seats: dict[str, list[Any]] = {}
        self._rooms: list[Any] = []
        self._is_duel = self._stop_asked = False
        self._written = 0
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        options = {"num_cpus": 0, "max_concurrency": CALLS_AT_ONCE, "scheduling_strategy": here}
        self._actor = ray.remote(ArenaActor).options(**options).remote(run.preset, run.book(), make_sandbox, run.duels)
        self.arena = ArenaHandle(self._actor, run.preset.reward)
        self.log_round = LogHandle(self._actor)
        try:
            self._get(self._actor.process.remote(), "the arena")
        except BaseException:
            self.close()
            raise

    def exchange(self) -> MeetingHandle:
        """The meeting point of a run with two seats."""
        self._is_duel = True
        return MeetingHandle(self._actor)

    def measure(self, coder: Path, tester: Path | None, rounds_done: int) -> Measured:
        """Both roles on all held-out problems, each where it trains. `tester` None: the coder only."""
        wanted = {"coder": coder} | ({"tester": tester} if tester else {})
        # A role that is no seat of the run is measured by one: in self-play both are.
        seats = {role: role if role in self._run.seats else self._run.seats[0] for role in wanted}
        self._start(dict.fromkeys(seats.values()))
        asked = {
            role: self._seats[seats[role]][0].measure.remote(
                role, self.arena, self._run.preset, self._held_out, directory
            )
            for role, directory in wanted.items()
        }
        results = {seat: self._get(reference, f"the {seat}") for seat, reference in asked.items()}
        for result in results.values():
            if isinstance(result, SeatFailed):
                raise self._told(result)
        measured = Measured(results["coder"], results.get("tester"))
        self._journal.write_measured(measured, rounds_done)
        return measured

    def train(self, seats: Mapping[str, Build]) -> bool:
        """Run all rounds. True if they were cut short by Ctrl-C. Raises SeatFailed with the first cause."""
        if len(seats) > 1 and not self._is_duel:
            raise ConfigurationError("two seats must meet: call exchange() before train(), got no exchange")
        self._start(seats)
        running: dict[Any, str] = {}
        for seat, build in seats.items():
            work = SeatWork(build, self._run.seat(seat, self._base), self.arena, self._held_out, self._is_duel)
            running |= {actor.train.remote(work): seat for actor in self._seats[seat]}
        while running:
            try:
                self._write_records()
                self._see_who_ended(running)
            except KeyboardInterrupt:
                if self._stop_asked:
                    raise
                self._ask_to_stop()
        self._journal.close()
        last = self._run.preset.rounds - 1
        return bool(self._get(self._actor.is_last.remote(last, self._is_duel), "the arena"))

    def close(self) -> None:
        """End every actor. Idempotent."""
        self._journal.close()
        with interrupts_later():
            for actor in [actor for ranks in self._seats.values() for actor in ranks] + [self._actor]:
                ray.kill(actor)
            for room in self._rooms:
                ray.util.remove_placement_group(room)
            self._seats, self._rooms = {}, []

    def _start(self, seats: Mapping[str, Any]) -> None:
        """The actors of those seats that have none yet, side by side: most of it is importing."""
        joining = []
        for seat in seats:
            if seat not in self._seats:
                placed = self._run.preset.placement.of(seat)
                self._seats[seat] = self._actors(seat, placed)
                places = [self._get(actor.place.remote(), f"the {seat}") for actor in self._seats[seat]]
                environments = rank_environments(places)
                pairs = zip(self._seats[seat], environments, strict=True)
                joining += [(actor.join.remote(environment), seat) for actor, environment in pairs]
        for reference, seat in joining:
            self._get(reference, f"the {seat}")

    def _actors(self, seat: str, placed: SeatPlacement) -> list[Any]:
        """One actor per rank; each node's ranks share a bundle of the seat's placement group."""
        each = {"CPU": 1.0, "GPU": float(placed.gpus_per_node > 0), "memory": placed.memory_gb * 2**30}
        each = {name: amount for name, amount in each.items() if amount}
        bundle = {name: amount * placed.ranks_per_node for name, amount in each.items()}
        room = ray.util.placement_group(
            [bundle] * placed.nodes, strategy="STRICT_SPREAD" if placed.nodes > 1 else "STRICT_PACK"
        )
        self._rooms.append(room)
        if not room.wait(ROOM_TIMEOUT_S):
            raise ConfigurationError(
                f"the cluster must have room for the {seat}, {placed.nodes} x {bundle} within {ROOM_TIMEOUT_S:g} s, "
                f"got free {ray.available_resources()}"
            )
        return [
            ray.remote(SeatActor)
            .options(
                num_cpus=each["CPU"],
                num_gpus=each.get("GPU", 0),
                memory=each.get("memory"),
                max_concurrency=1,
                scheduling_strategy=ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(
                    room, placement_group_bundle_index=rank // placed.ranks_per_node
                ),
            )
            .remote(seat)
            for rank in range(placed.ranks)
        ]

    def _write_records(self) -> None:
        """Write what the arena has for the metrics. A record that is not confirmed comes again, so it is never lost."""
        records = self._get(self._actor.records.remote(self._written, POLL_S), "the arena")
        with interrupts_later():
            for record in records:
                self._journal.write(record.kind, record.rounds_done, record.values, record.seat)
                self._written += 1

    def _see_who_ended(self, running: dict[Any, str]) -> None:
        ended, _ = ray.wait(list(running), num_returns=1, timeout=0)
        for reference in ended:
            seat = running[reference]
            failed = self._get(reference, f"the {seat}")
            del running[reference]
            if failed is not None:
                raise self._told(self._lost_rank(running) or self._first_cause() or failed)

    def _has_several_ranks(self) -> bool:
        return any(len(ranks) > 1 for ranks in self._seats.values())

    def _lost_rank(self, running: Mapping[Any, str]) -> SeatFailed | None:
        """A rank that is gone makes the others of its seat fail, which may be heard of sooner."""
        if not running or not self._has_several_ranks():
            return None
        ended, _ = ray.wait(list(running), num_returns=len(running), timeout=LOST_RANK_TIMEOUT_S)
        for reference in ended:
            try:
                ray.get(reference)
            except ray.exceptions.RayActorError as error:
                return SeatFailed(f"the {running[reference]} is gone: {_why_gone(error)}")
        return None

    def _ask_to_stop(self) -> None:
        self._stop_asked = True
        self._journal.say("stopping after this round (Ctrl-C again: at once, without a checkpoint)")
        self._actor.ask_to_stop.remote()

    def _get(self, reference: Any, who: str) -> Any:
        """The answer of an actor. Raises SeatFailed where there is none, with the first cause that is known."""
        try:
            return ray.get(reference)
        except ray.exceptions.RayActorError as error:
            # A seat that lost its arena says so as its own failure, and the other way round: ask who is left. But what
            # closed the arena of a seat of several ranks may only be that another rank missed this one.
            lost = SeatFailed(f"{who} is gone: {_why_gone(error)}")
            raise self._told((None if self._has_several_ranks() else self._first_cause()) or lost) from error
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None) or error
            raise self._told(failure(who, cause)) from error

    def _first_cause(self) -> SeatFailed | None:
        """What the arena was closed with, or that it is gone itself; None where it knows of nothing."""
        try:
            cause: SeatFailed | None = ray.get(self._actor.cause.remote(), timeout=LAST_WORDS_TIMEOUT_S)
        except ray.exceptions.RayActorError as error:
            return SeatFailed(f"the arena is gone: {_why_gone(error)}")
        except ray.exceptions.RayError:
            return None
        return cause

    def _told(self, failed: SeatFailed) -> SeatFailed:
        """The same, once its traceback is in the run's directory."""
        notes = "\n".join(getattr(failed, "__notes__", ()))
        with suppress(OSError):  # the run ends with its own cause, not with that of a full disk
            (self._run.directory / FAILURE).write_text(f"{failed}\n\n{notes}", encoding="utf-8")
        return failed


def rank_environments(places: Sequence[RankPlace]) -> list[dict[str, str]]:
    """What tells each rank of a seat where it is, as torch's own launchers do; empty for a seat of one rank.

    All ranks of a node see all of the seat's GPUs there, and use the one of their local rank.
    """
    if len(places) == 1:
        return [{}]
    environments = []
    for rank, place in enumerate(places):
        beside = [number for number, other in enumerate(places) if other.node == place.node]
        environment = {
            "RANK": str(rank),
            "WORLD_SIZE": str(len(places)),
            "LOCAL_RANK": str(beside.index(rank)),
            "LOCAL_WORLD_SIZE": str(len(beside)),
            "MASTER_ADDR": places[0].host,
            "MASTER_PORT": str(places[0].free_port),
        }
        gpus = [gpu for number in beside for gpu in places[number].gpus]
        if gpus:
            environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
        environments.append(environment)
    return environments


def _why_gone(error: BaseException) -> str:
    """The first telling line of Ray's long messages."""
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "died" in line or "killed" in line or "exit" in line]
    return (telling or lines or [type(error).__name__])[0][:500]
