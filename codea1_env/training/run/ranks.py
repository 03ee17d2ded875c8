"""What the ranks of one seat do together: rows gathered in rank order, handled once, and shared out again.

For any number of ranks; with one there is nothing to do. Must be called by all ranks of a seat, in the same order. Does
not promise speed: what passes here is text and rewards, once a round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from codea1_env.extras import extra

with extra("train", "training needs"):
    import torch
    from accelerate import PartialState
    from accelerate.utils import broadcast_object_list, gather_object

Row = TypeVar("Row")
Answer = TypeVar("Answer")


def rank() -> int:
    """Of this process among its seat's."""
    return int(PartialState().process_index)


def gathered(rows: Sequence[Row]) -> list[Row]:
    """The rows of all ranks, those of rank 0 first."""
    if PartialState().num_processes == 1:
        return list(rows)
    return list(gather_object(list(rows)))


def from_first(work: Callable[[], Answer]) -> Answer:
    """What `work` returns on rank 0, where alone it runs."""
    if PartialState().num_processes == 1:
        return work()
    box: list[Any] = [work() if rank() == 0 else None]
    broadcast_object_list(box)
    answer: Answer = box[0]
    return answer


def own_share(rows: Sequence[Row]) -> list[Row]:
    """This rank's part of rows in rank order. Every rank has equally many."""
    ranks = PartialState().num_processes
    assert len(rows) % ranks == 0, "the preset was checked: ranks divide the rows of a round"
    size = len(rows) // ranks
    return list(rows[rank() * size : (rank() + 1) * size])


def accept_numbered_cpus() -> None:
    """Let checkpoints be read where ranks share a CPU: accelerate calls it cpu:0, which torch does not know. Once."""
    torch.serialization.register_package(
        5, lambda storage: None, lambda storage, location: storage if location.startswith("cpu:") else None
    )


def wait_for_all() -> None:
    PartialState().wait_for_everyone()
