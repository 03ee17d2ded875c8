"""Which engine a recipe runs on: all seats in this process, or each in actors of its own.

The recipes name the seats and what they are paid for; an engine decides where seats, arena and sandbox live.
Does not import an engine that is not asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from codea1_env.arena.arena import Arena
from codea1_env.problems.problem import Problem
from codea1_env.sandbox import open_sandbox
from codea1_env.training.engine.local import LocalEngine, prepare_process
from codea1_env.training.run.run_dir import Run

if TYPE_CHECKING:
    from codea1_env.training.engine.ray_cluster import RayEngine

__all__ = ["open_engine", "prepare_process"]


@contextmanager
def open_engine(run: Run, base: Path, held_out: Sequence[Problem]) -> Iterator[LocalEngine | RayEngine]:
    """The engine of a run, with an arena that has the run's Mistake Book; its sandbox is closed at the end.

    `base`: the model that both seats start from. `held_out`: the problems that seats are measured on.
    """
    if run.engine == "ray":
        from codea1_env.training.engine.ray_cluster import open_ray_engine  # only now: it needs the extra `ray`

        with open_ray_engine(run, base, held_out) as engine:
            yield engine
        return
    with open_sandbox(workers=2) as sandbox:
        yield LocalEngine(run, Arena(sandbox, run.preset.reward, run.book()), base, held_out)
