"""The problems that a run trains on and those that it is measured on: of a procedural family, or from files.

What cannot serve is left out and counted in the log, never trained on. Executes nothing: whether a reference runs was
found out when the file was made (`codea1 data import`).
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from codea1_env.errors import ConfigurationError
from codea1_env.problems.bands import band_problems
from codea1_env.problems.jsonl import iter_problems
from codea1_env.problems.miniature import miniature_problems
from codea1_env.problems.problem import Problem
from codea1_env.training.config.presets import Preset, ProblemFiles

logger = logging.getLogger(__name__)


ANYTHING = "a question"
ORACLE_NEEDS = {"reference": "a reference solution", "golden": "golden tests"}
"""What an oracle needs of a problem; the others go by the solutions themselves."""


@dataclass(frozen=True, slots=True)
class ProblemSets:
    """What a run plays with."""

    train: tuple[Problem, ...]
    held_out: tuple[Problem, ...]


def load_problem_sets(preset: Preset, seed: int, *, golden_tests: bool = False) -> ProblemSets:
    """The problems of a run; `seed` draws those of a procedural family.

    From files, a training problem needs what `reward.oracle` decides by, a reference solution, golden tests or neither;
    with `golden_tests`, those. A held-out one needs hidden tests. Raises ConfigurationError where too few are left, and
    ProblemFormatError.
    """
    chosen = preset.problems
    if not isinstance(chosen, ProblemFiles):
        draw = band_problems if chosen.family == "bands" else miniature_problems
        train = draw("train", chosen.train, seed, chosen.golden_edge)
        if chosen.hidden_as_golden:
            train = tuple(dataclasses.replace(problem, golden_tests=problem.hidden_tests) for problem in train)
        return ProblemSets(
            train,
            draw("held_out", chosen.held_out, chosen.held_out_seed),
        )
    need = "golden tests" if golden_tests else ORACLE_NEEDS.get(preset.reward.oracle, ANYTHING)
    if not chosen.held_out_file:
        return _split(chosen, need, at_least=preset.round.questions)
    train = _usable(chosen.file, "file", need, chosen.limit, at_least=preset.round.questions)
    held_out = _usable(chosen.held_out_file, "held_out_file", "hidden tests", chosen.held_out_limit, at_least=1)
    return ProblemSets(train, held_out)


def require_files(preset: Preset) -> None:
    """Raise ConfigurationError where the preset names a file that is not there: cheap, before anything is loaded."""
    if isinstance(preset.problems, ProblemFiles):
        for name in ("file", "held_out_file"):
            path = Path(getattr(preset.problems, name))
            is_split = name == "held_out_file" and not preset.problems.held_out_file
            if not is_split and not path.is_file():
                raise ConfigurationError(
                    f"problems.{name} must be a problem file, got {path}, which is not there; `codea1 data import` "
                    "makes one"
                )


def _split(chosen: ProblemFiles, need: str, at_least: int) -> ProblemSets:
    """One file for both: what is measured on comes from its end."""
    kept = chosen.held_out_limit
    found = _usable(chosen.file, "file", need, chosen.limit and chosen.limit + kept, at_least + kept)
    held_out = [
        dataclasses.replace(problem, hidden_tests=problem.hidden_tests or problem.golden_tests)
        for problem in found[-kept:]
    ]
    if not all(problem.hidden_tests for problem in held_out):
        raise ConfigurationError(f"the last {kept} problems of {chosen.file} must have tests, got some without")
    return ProblemSets(found[:-kept], tuple(held_out))


def _usable(path: str, name: str, need: str, limit: int, at_least: int) -> tuple[Problem, ...]:
    """The first `limit` (0: all) problems of a file that have what is needed."""
    seen = 0

    def having() -> Iterator[Problem]:
        nonlocal seen
        for problem in iter_problems(path):
            seen += 1
            if _has(problem, need):
                yield problem

    try:
        found = tuple(islice(having(), limit or None))
    except OSError as error:
        raise ConfigurationError(f"problems.{name} must be a readable problem file, got {path}: {error}") from None
    if len(found) < seen:
        logger.warning("%s: %d of %d problems are left out: without %s", path, seen - len(found), seen, need)
    if len(found) < at_least:
        raise ConfigurationError(
            f"problems.{name} must hold at least {at_least} problems with {need}, got {len(found)} of {seen} in {path}"
        )
    return found


def _has(problem: Problem, need: str) -> bool:
    if need == ANYTHING:
        return True
    if need == "a reference solution":
        return problem.reference_solution is not None
    return bool(problem.golden_tests if need == "golden tests" else problem.hidden_tests)
