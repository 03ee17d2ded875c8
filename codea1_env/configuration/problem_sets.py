"""The problems that a run trains on and those that it is measured on: of a procedural family, or from files.

Problems that cannot be used are left out and counted in the log, and never trained on. Problems of a file are checked
as by `codea1 data check`, which runs references in a sandbox. Those of a family are right by construction.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from codea1_env.configuration.batches import roles_of
from codea1_env.configuration.presets import Preset
from codea1_env.configuration.run_sections import ProblemFiles
from codea1_env.errors import ConfigurationError
from codea1_env.judging.problems.own_tests import told
from codea1_env.judging.problems.usability import Usability, check_problems
from codea1_env.problems.contamination import Contamination
from codea1_env.problems.families import FAMILIES
from codea1_env.problems.jsonl import iter_problems
from codea1_env.problems.problem import Problem
from codea1_env.rewards.code_a1 import OracleMode
from codea1_env.sandbox import open_sandbox

_log = logging.getLogger(__name__)

_Check = Callable[[Iterable[Problem]], Iterator[Usability]]
_WORKERS = 2
_SHOWN = 5
"""Problems that cannot be judged whose reasons are logged."""
_SCRIPT_OR_GOLDEN = "a test script or golden tests"
_NEEDS: Mapping[str, Callable[[Problem], bool]] = {
    "a question": lambda problem: True,
    "a reference solution": lambda problem: problem.reference_solution is not None,
    "golden tests": lambda problem: bool(problem.golden_tests),
    "hidden tests": lambda problem: bool(problem.hidden_tests),
    _SCRIPT_OR_GOLDEN: lambda problem: bool(problem.test_script or problem.golden_tests),
}
"""What may be needed of a problem."""
_ORACLE_NEEDS = {"reference": "a reference solution", "golden": "golden tests"}
"""What an oracle needs; the others go by the solutions themselves."""


@dataclass(frozen=True, slots=True)
class ProblemSets:
    """The problems of a run."""

    train: tuple[Problem, ...]
    held_out: tuple[Problem, ...]


def load_problem_sets(preset: Preset, seed: int, *, golden_tests: bool = False) -> ProblemSets:
    """The problems of a run; `seed` draws those of a procedural family.

    A training problem from a file needs what `reward.oracle` decides by: a reference solution, golden tests or neither;
    with `golden_tests`, or a tester's reward that runs them, it needs golden tests. A held-out problem needs hidden
    tests. Raises ConfigurationError if too few are left, ProblemFormatError and SandboxError.
    """
    chosen = preset.problems
    if preset.reward.allow_unsealed and not golden_tests:
        raise ConfigurationError(
            "reward.allow_unsealed must be false but for the golden tests' reward (baselines/golden_tests.py), got true"
        )
    if not isinstance(chosen, ProblemFiles):
        draw = FAMILIES[chosen.family].draw
        train = draw("train", chosen.train, seed, chosen.golden_edge)
        if chosen.hidden_as_golden:
            train = tuple(dataclasses.replace(problem, golden_tests=problem.hidden_tests) for problem in train)
        return ProblemSets(train, draw("held_out", chosen.held_out, chosen.held_out_seed))
    needs_golden = golden_tests or preset.reward.runs_golden
    need = "golden tests" if needs_golden else _ORACLE_NEEDS.get(preset.reward.oracle, "a question")
    oracle: OracleMode = "golden" if golden_tests else preset.reward.oracle
    with open_sandbox(workers=_WORKERS) as sandbox:
        reward = preset.reward
        check = partial(check_problems, sandbox=sandbox, time_limit=reward.time_limit, memory_mb=reward.memory_mb)
        if reward.allow_unsealed:
            need = _SCRIPT_OR_GOLDEN
        if not chosen.held_out_file:
            return _split(chosen, need, preset.round.questions, check, oracle)
        train = _usable(chosen.file, "file", need, chosen.limit, preset.round.questions, check, oracle)
        held_out = _usable(chosen.held_out_file, "held_out_file", "hidden tests", chosen.held_out_limit, 1, check, None)
    return ProblemSets(train, held_out)


def checked_files(preset: Preset, recipe: str) -> str:
    """How much of the preset's problem files a recipe can use, and what is to be known of them; empty where files are
    missing.

    Raises what `load_problem_sets` raises.
    """
    chosen = preset.problems
    if not isinstance(chosen, ProblemFiles):
        return ""
    places = [Path(file) for file in (chosen.file, chosen.held_out_file) if file]
    if any(place.exists() and not place.is_file() for place in places):
        require_files(preset)
    if not all(place.is_file() for place in places):
        return ""  # a plan may be of files that are not there yet
    roles = roles_of(recipe)
    sets = load_problem_sets(preset, seed=0, golden_tests=roles.needs_golden)
    notes = [shared_note(sets), book_note(preset, len(sets.train)) if roles.has_book else ""]
    checked = f"checked    {len(sets.train)} problems can be trained on, {len(sets.held_out)} measured on"
    return "\n".join([checked, *(f"note       {note}" for note in notes if note)])


def shared_note(sets: ProblemSets) -> str:
    """That some of what is trained on is measured on, too; else empty."""
    held_out = Contamination(sets.held_out)
    shared = [(problem.problem_id, why) for problem in sets.train if (why := held_out.of(problem))]
    if not shared:
        return ""
    name, why = shared[0]
    return (
        f"{len(shared)} of the training problems are also among the held-out ones, or much like one of them: {name} "
        f"{why}; remove them from one file, or the measurement is contaminated"
    )


def book_note(preset: Preset, questions: int) -> str:
    """That the Mistake Book cannot act, where no question is asked twice; else empty. `questions`: those trained on."""
    asked = preset.rounds * preset.round.questions
    if not preset.reward.replay_limit or preset.rounds == 1 or asked > questions:
        return ""
    field = "limit" if isinstance(preset.problems, ProblemFiles) else "train"
    return (
        f"{preset.rounds} rounds ask {asked} of {questions} questions, each at most once, so the Mistake Book replays "
        f"nothing; to repeat questions, lower problems.{field}"
    )


def require_files(preset: Preset) -> None:
    """Raise ConfigurationError if the preset names a file that does not exist, before anything is loaded."""
    if isinstance(preset.problems, ProblemFiles):
        for name in ("file", "held_out_file"):
            path = Path(getattr(preset.problems, name))
            is_split = name == "held_out_file" and not preset.problems.held_out_file
            if not is_split and not path.is_file():
                why = "which is a directory" if path.is_dir() else "which is not there"
                option = " for --problems" if name == "file" else ""
                raise ConfigurationError(
                    f"problems.{name} must be a problem file, got {path}, {why}; `codea1 data import` makes one{option}"
                )


def _split(chosen: ProblemFiles, need: str, at_least: int, check: _Check, oracle: OracleMode | None) -> ProblemSets:
    """One file for both: what is measured on comes from its end."""
    kept = chosen.held_out_limit
    most = chosen.limit and chosen.limit + kept
    problems = _usable(chosen.file, "file", need, most, at_least + kept, check, oracle)
    held_out = [
        dataclasses.replace(problem, hidden_tests=problem.hidden_tests or problem.golden_tests)
        for problem in problems[-kept:]
    ]
    if not all(problem.hidden_tests for problem in held_out):
        raise ConfigurationError(f"the last {kept} problems of {chosen.file} must have tests, got some without")
    return ProblemSets(problems[:-kept], tuple(held_out))


def _usable(
    path: str, name: str, need: str, limit: int, at_least: int, check: _Check, oracle: OracleMode | None
) -> tuple[Problem, ...]:
    """The first `limit` (0: all) problems of a file that have the `need` and that `oracle` (None: any) can judge."""
    seen = lacking = 0
    refused: list[Usability] = []
    unread: list[Usability] = []

    def having() -> Iterator[Problem]:
        nonlocal seen, lacking
        for problem in iter_problems(path):
            seen += 1
            if _NEEDS[need](problem):
                yield problem
            else:
                lacking += 1

    def judged() -> Iterator[Problem]:
        for checked in check(having()):
            if checked.left_out:
                unread.append(checked)
            serves = checked.serves(oracle) if oracle else checked.is_usable
            is_by_script = need == _SCRIPT_OR_GOLDEN and bool(checked.problem.test_script)
            if _NEEDS[need](checked.problem) and (serves or is_by_script):
                yield checked.problem
            else:
                refused.append(checked)

    try:
        usable = tuple(islice(judged(), limit or None))
    except OSError as error:
        raise ConfigurationError(f"problems.{name} must be a readable problem file, got {path}: {error}") from None
    if lacking:
        _log.warning("%s: %d of %d problems are left out: without %s", path, lacking, seen, need)
    for each in unread[:_SHOWN]:
        _log.warning("%s: %s: %s and are left out", path, each.problem.problem_id, told(each.left_out))
    for each in refused[:_SHOWN]:
        _log.warning("%s: %s cannot be judged: %s", path, each.problem.problem_id, each.why_not)
    if refused:
        _log.warning("%s: %d of %d problems are left out: they cannot be judged", path, len(refused), seen)
    if len(usable) < at_least:
        raise ConfigurationError(
            f"problems.{name} must hold at least {at_least} problems with {need} that can be judged, got "
            f"{len(usable)} of {seen} in {path}; `codea1 data check` says why"
        )
    return usable
