"""Policies that live in Ray actors: the loop of a recipe is the same, and so are the bits.

A call that returns nothing is only queued, so that the seats learn side by side; the next call that returns something
waits for it. Whatever is lost or fails ends the run with its cause. On several machines the run's directory must be on
a file system that they share. Does not restart a lost actor: the run goes on by --resume. Needs the extra `ray`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from codea1_env.closing import interrupts_later
from codea1_env.configuration.batches import roles_of
from codea1_env.configuration.placement import SeatPlacement, role_of
from codea1_env.errors import ConfigurationError, SeatFailed
from codea1_env.extras import extra
from codea1_env.language_models.loading import load_tokenizer
from codea1_env.sandbox.places import joined
from codea1_env.training.advantages import Advantages
from codea1_env.training.losses import Loss
from codea1_env.training.policies.policy import Policy
from codea1_env.training.policies.ray_seats import RankPlace, SeatActor, failure
from codea1_env.training.run.run_dir import FAILURE, Run
from codea1_env.training.samples import Batch, Prompt, SamplerSettings, SeatRun, Tokens

with extra("ray", "--engine ray needs"):
    import ray

ROOM_TIMEOUT_S = 60.0
"""Seconds for the cluster to find room for a seat."""
LOST_RANK_TIMEOUT_S = 20.0
"""Seconds for all ranks to end once one has failed; a busy machine takes some to notice that a process is gone."""

LOST_NODE_TIMEOUT_S = 60.0
"""Seconds for the cluster to notice that a node is gone whose actors cannot be reached."""


class Ranks:
    """The actors of one seat, all of which are asked the same at the same time."""

    def __init__(self, seat: str, actors: list[Any], patience_s: float, seats: Mapping[str, Ranks]) -> None:
        """`patience_s`: after which a seat that does not answer is taken to hang. `seats`: all of the run."""
        self.seat, self.actors = seat, actors
        self.places: list[RankPlace] = []
        """Where each actor is, once it has said so."""
        self._patience_s, self._seats = patience_s, seats
        self._queued: list[Any] = []

    def queue(self, method: str, *arguments: Any) -> None:
        """Ask all ranks for something whose end nobody waits for."""
        self._queued += [actor.call.remote(method, *arguments) for actor in self.actors]

    def queue_each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> None:
        """Likewise, each rank with arguments of its own."""
        pairs = zip(self.actors, arguments, strict=True)
        self._queued += [actor.call.remote(method, *own) for actor, own in pairs]

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        """What all ranks answer, once all that was queued is done."""
        return self.ask_each(method, [arguments] * len(self.actors))

    def ask_each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        references = [actor.call.remote(method, *own) for actor, own in zip(self.actors, arguments, strict=True)]
        return self.wait(references)

    def wait(self, references: list[Any]) -> list[Any]:
        """Their answers. Raises SeatFailed with the first cause, which may be another seat's: it is not waited for."""
        asked, self._queued = dict.fromkeys([*self._queued, *references], self), []
        asked |= {queued: ranks for ranks in self._seats.values() for queued in ranks._queued}
        deadline = time.monotonic() + self._patience_s
        while self in asked.values():
            done, _ = ray.wait(list(asked), num_returns=1, timeout=max(0.0, deadline - time.monotonic()))
            if not done:
                raise SeatFailed(f"the {self.seat} must answer within {self._patience_s:g} s, got nothing: it hangs")
            for reference in done:
                ranks = asked.pop(reference)
                answer = ranks._answer(reference)
                if isinstance(answer, SeatFailed):
                    raise ranks._lost([each for each, other in asked.items() if other is ranks]) or answer
        return [self._answer(reference) for reference in references]

    def _answer(self, reference: Any) -> Any:
        try:
            return ray.get(reference)
        except ray.exceptions.RayActorError as error:
            return SeatFailed(f"the {self.seat} is gone: {self._where(error)}{_why_gone(error)}")
        except ray.exceptions.RayError as error:
            return failure(f"the {self.seat}", getattr(error, "cause", None) or error)

    def _where(self, error: Any) -> str:
        """The machine of the actor that an error is about."""
        names = [actor._actor_id.hex() for actor in self.actors]
        if error.actor_id not in names or len(self.places) != len(names):
            return ""
        place = self.places[names.index(error.actor_id)]
        # An actor that cannot be reached is heard of before its node is known to be gone.
        is_unreachable = isinstance(error, ray.exceptions.ActorUnavailableError)
        end = time.monotonic() + (LOST_NODE_TIMEOUT_S if is_unreachable else 0.0)
        while is_there := any(node["Alive"] and node["NodeID"] == place.node for node in ray.nodes()):
            if time.monotonic() >= end:
                break
            time.sleep(0.1)
        return f"it was on node {place.host}{'' if is_there else ', which is lost'}; "

    def _lost(self, waiting: list[Any]) -> SeatFailed | None:
        """A rank that is gone makes the others of its seat fail, which may be heard of sooner."""
        if len(self.actors) == 1 or not waiting:
            return None
        ended, _ = ray.wait(waiting, num_returns=len(waiting), timeout=LOST_RANK_TIMEOUT_S)
        answers = [self._answer(reference) for reference in ended]
        return next((one for one in answers if isinstance(one, SeatFailed) and " is gone: " in str(one)), None)


class RemotePolicy(Policy):
    """A policy whose ranks are actors. Rows go to ranks in order, to each an equal share."""

    def __init__(self, run: SeatRun, tokenizer: Any, ranks: Ranks) -> None:
        super().__init__(run, tokenizer)
        self._ranks = ranks
        ranks.wait([actor.open.remote(run) for actor in ranks.actors])

    def begin(self, round_index: int) -> None:
        super().begin(round_index)
        self._ranks.queue("begin", round_index)

    def draw(self, prompts: Sequence[Prompt], n: int) -> list[list[Tokens]]:
        if len(self._ranks.actors) == 1:
            drawn: list[list[Tokens]] = self._ranks.ask("draw", prompts, n)[0]
            return drawn
        rows = [list(prompt.tokens) for prompt in prompts for _ in range(n)]
        shares = [(rows[share], n) for share in self._shares(len(rows))]
        found = [row for answer in self._ranks.ask_each("draw_rows", shares) for row in answer]
        return [found[start : start + n] for start in range(0, len(found), n)]

    def updates(self, batch: Batch, advantages: Advantages) -> Sequence[int]:
        """Their places: the rows stay where they are learnt from."""
        shares = [(batch[share], advantages.part(share)) for share in self._shares(len(batch))]
        self._ranks.queue_each("updates", shares)
        return range(self.run.preset.round.updates)

    def backward(self, update: int, loss: Loss | None = None) -> None:
        self._ranks.queue("backward", update, loss)

    def step(self) -> None:
        self._ranks.queue("step")

    def measured(self) -> dict[str, float]:
        told: dict[str, float] = self._ranks.ask("metrics")[0]
        self._seconds["learning"] = told.pop("seconds_learning")
        del told["seconds_generating"]  # is measured here, with the way there
        return told

    def answer(self, prompts: Sequence[Prompt], n: int, how: SamplerSettings) -> list[list[Tokens]]:
        return RemoteModel(self._ranks, None).answer(prompts, n, how)

    def save(self, checkpoint: Path) -> None:
        self._ranks.ask("save", checkpoint)

    def export(self, directory: Path, goes_on: bool = False) -> None:
        self._ranks.ask("export", directory, goes_on)

    def _shares(self, rows: int) -> list[slice]:
        ranks = len(self._ranks.actors)
        assert rows % ranks == 0, "the preset was checked: ranks divide the rows of a round"
        return [slice(rank * rows // ranks, (rank + 1) * rows // ranks) for rank in range(ranks)]


class RemoteModel:
    """A model in a seat's actor: a saved one, or the policy as it is."""

    def __init__(self, ranks: Ranks, directory: Path | None) -> None:
        self._ranks, self._directory = ranks, directory

    def answer(self, prompts: Sequence[Prompt], n: int, how: SamplerSettings) -> list[list[Tokens]]:
        """As a `Model`."""
        (found,) = self._ranks.wait([self._ranks.actors[0].answer.remote(self._directory, prompts, n, how)])
        answered: list[list[Tokens]] = found
        return answered

    def let_go(self) -> None:
        self._ranks.actors[0].let_go.remote(self._directory)


@contextmanager
def open_ray_backend(run: Run, base: Path) -> Iterator[RayBackend]:
    """Joins or starts the cluster; at the end every actor is gone, and the cluster too if it was started here."""
    processes = sum(run.preset.placement.of(seat).ranks for seat in run.seats) + run.preset.arenas
    with ExitStack() as stack:
        try:
            stack.enter_context(joined(run.ray_address, processes))
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise ConfigurationError(f"--ray-address must be of a reachable cluster, got: {error}") from error
        backend = RayBackend(run, base)
        stack.callback(backend.close)
        try:
            yield backend
        except SeatFailed as failed:
            notes = "\n".join(getattr(failed, "__notes__", ()))
            with suppress(OSError):  # the run ends with its own cause, not with that of a full disk
                (run.directory / FAILURE).write_text(f"{failed}\n\n{notes}", encoding="utf-8")
            raise


class RayBackend:
    """The seats of one run, each with actors of its own."""

    def __init__(self, run: Run, base: Path) -> None:
        self.tokenizer = load_tokenizer(base)
        self._run = run
        self._seats: dict[str, Ranks] = {}
        self._rooms: list[Any] = []

    def policy(self, run: SeatRun) -> Policy:
        return RemotePolicy(run, self.tokenizer, self._ranks(run.seat))

    def model(self, role: str, directory: Path) -> RemoteModel:
        """Where a seat of that role is; a role that nobody plays is the first seat's guest."""
        has_place = role in self._run.seats or (role in roles_of(self._run.recipe).plays)
        named = [seat for seat in self._run.seats if role_of(seat) == role]
        return RemoteModel(self._ranks(named[0] if named else role if has_place else self._run.seats[0]), directory)

    def close(self) -> None:
        """End every actor. Idempotent."""
        with interrupts_later():
            for actor in [actor for ranks in self._seats.values() for actor in ranks.actors]:
                ray.kill(actor)
            for room in self._rooms:
                ray.util.remove_placement_group(room)
            self._seats, self._rooms = {}, []

    def _ranks(self, seat: str) -> Ranks:
        if seat not in self._seats:
            placed = self._run.preset.placement.of(seat)
            ranks = Ranks(seat, self._actors(seat, placed), self._run.preset.patience_s, self._seats)
            self._seats[seat] = ranks
            ranks.places = ranks.wait([actor.place.remote() for actor in ranks.actors])
            environments = rank_environments(ranks.places)
            directory = self._run.directory.resolve()
            pairs = zip(ranks.actors, environments, strict=True)
            ranks.wait([actor.join.remote(environment, directory) for actor, environment in pairs])
        return self._seats[seat]

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
            .remote(seat, self._run.preset)
            for rank in range(placed.ranks)
        ]


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
