"""A function of tensors on a GPU, recorded once for each form of its arguments and replayed after that (CUDA graphs).

One step of a small model is hundreds of kernels that take less time than their launches; a replay launches all of them
at once. The function may do nothing but launch kernels, and what it reads beside its arguments must stay where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from codea1_env.extras import extra

with extra("train", "language models need"):
    import torch
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class _Recording:
    graph: Any
    arguments: tuple[Tensor, ...]
    """Where the next call's are copied to."""
    result: Tensor


class ReplayedGraph:
    """`function`, called with tensors of a GPU. Its result holds until the next call."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        self._function = function
        self._recordings: dict[tuple[torch.Size, ...], _Recording] = {}
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, *arguments: Tensor) -> Tensor:
        form = tuple(argument.shape for argument in arguments)
        if form not in self._recordings:
            self._recordings[form] = self._record(arguments)
        recording = self._recordings[form]
        for place, argument in zip(recording.arguments, arguments, strict=True):
            place.copy_(argument)
        recording.graph.replay()
        return recording.result

    def _record(self, arguments: tuple[Tensor, ...]) -> _Recording:
        places = tuple(argument.clone() for argument in arguments)
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):  # libraries set themselves up in a first call, which cannot be recorded
            self._function(*places)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            result = self._function(*places)
        return _Recording(graph, places, result)
