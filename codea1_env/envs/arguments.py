"""Checks of an environment's arguments when it is made: otherwise most mistakes would show only rounds later.

Of sandboxes, books and recorders only the type is checked.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any, Protocol, TypeVar

from codea1_env.arena.arena import is_sandbox
from codea1_env.checks import is_choice, is_several, require, require_whole
from codea1_env.envs.rendering import require_pillow
from codea1_env.errors import ConfigurationError
from codea1_env.judging.problems.limits import rule_of
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.problems import Problem, bundled_problems, read_problems
from codea1_env.records.recording import Recorder
from codea1_env.rewards.code_a1 import RewardConfig

GivenProblems = Sequence[Problem] | str | os.PathLike[str] | None
"""What `problems` may be: Problems, the path of a problem file, or None for the bundled ones."""

MAX_ROUNDS = 1_000
MAX_TESTERS = 100
MAX_EPISODES = 100_000
"""Of a vector."""
_LEAST_TEXT = 8
"""Characters: room for the name of a phase."""


class AskedOf(Protocol):
    """What an episode may be about."""

    @property
    def problem_id(self) -> str: ...


Item = TypeVar("Item", bound=AskedOf)
Made = TypeVar("Made")


def check_parts(sandbox: object, rewards: object, book: object, recorder: object) -> None:
    """Raise ConfigurationError if a part has the wrong type."""
    is_usable = sandbox is None or is_sandbox(sandbox)
    require(is_usable, "sandbox", "be None or a sandbox, as codea1_env.open_sandbox makes it", sandbox)
    require(isinstance(rewards, RewardConfig), "rewards", "be a codea1_env.RewardConfig", rewards)
    assert isinstance(rewards, RewardConfig)
    rewards.require_parts()
    require(isinstance(book, MistakeBook | None), "book", "be None or a codea1_env.MistakeBook", book)
    require(
        isinstance(recorder, Recorder | None),
        "recorder",
        "be None or a codea1_env.records.recording.Recorder",
        recorder,
    )


def check_numbers(max_text_length: object, rounds: object, testers: object = 1) -> None:
    """Raises ConfigurationError."""
    require_whole("max_text_length", max_text_length)
    for name, value, most in (("rounds", rounds, MAX_ROUNDS), ("testers", testers, MAX_TESTERS)):
        require(type(value) is int and 1 <= value <= most, name, f"be a whole number in [1, {most}]", value)


def check_render_mode(mode: object, known: Sequence[str]) -> None:
    """Raise ConfigurationError for an unknown mode, and ImportError if the mode needs a package that is not
    installed."""
    require(mode is None or is_choice(mode, known), "render_mode", f"be None or one of {', '.join(known)}", mode)
    if mode == "rgb_array":
        require_pillow()


def checked_options(options: object, *known: str) -> Mapping[str, Any]:
    """The options that `reset` was given. Raises ConfigurationError for a name that is not in `known`.

    The name `options` is let through: PettingZoo's own tests pass `{"options": 1}` to every environment.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise ConfigurationError(f"options must be None or a dictionary, got {type(options).__name__}")
    unknown = [name for name in options if name not in (*known, "options")]
    if unknown:
        raise ConfigurationError(f"options must have no other names than {', '.join(known)}, got {unknown[0]!r}")
    return options


def own_constructor(kind: type[Made]) -> type[Made]:
    """Give a class its base's constructor under the class's own name, which Python's messages about arguments use."""
    shared: Any = kind.__init__
    own = FunctionType(shared.__code__, shared.__globals__, "__init__", shared.__defaults__, shared.__closure__)
    own.__kwdefaults__, own.__annotations__, own.__doc__ = shared.__kwdefaults__, shared.__annotations__, shared.__doc__
    own.__module__, own.__qualname__ = kind.__module__, f"{kind.__qualname__}.__init__"
    setattr(kind, "__init__", own)  # noqa: B010  # mypy has no word for this assignment
    return kind


def checked_items(what: str, given: object, kind: type[Item]) -> tuple[Item, ...]:
    """The problems, of which there must be at least one, each with its own id. Raises ConfigurationError."""
    if not is_several(given):
        raise ConfigurationError(f"{what}s must be None or a list of {kind.__name__}s, got {type(given).__name__}")
    items = tuple(given)
    if not items:
        raise ConfigurationError(f"{what}s must hold at least one {what}, got none")
    for each in items:
        if not isinstance(each, kind):
            raise ConfigurationError(
                f"{what}s must be None or a list of {kind.__name__}s, got {type(each).__name__} in it"
            )
    counts = Counter(each.problem_id for each in items)
    repeated = [problem_id for problem_id, count in counts.items() if count > 1]
    if repeated:
        raise ConfigurationError(f"{what}s must have distinct problem ids, got these more than once: {repeated[:5]}")
    return items


def checked_problems(problems: object, max_text_length: int, rewards: RewardConfig) -> tuple[Problem, ...]:
    """The problems after they were checked: of a path those of the file, of None the bundled ones.

    Raises ConfigurationError, also for rewards that no duel of one program can be paid by, and ProblemFormatError with
    the number of a line that holds no problem, and UnusableReference for a time limit that nothing decides.
    """
    alone = rewards.oracle not in ("majority", "dual")
    require(alone, "rewards.oracle", "be reference or golden where one program is played at a time", rewards.oracle)
    if isinstance(problems, str | os.PathLike):
        problems = _read(problems)
    checked = checked_items("problem", bundled_problems() if problems is None else problems, Problem)
    for problem in checked:
        if rewards.needs_golden and not problem.golden_tests:
            raise ConfigurationError(
                f"every problem must have golden_tests with the oracle {rewards.oracle!r} and the tester's reward "
                f"{rewards.tester_reward!r}, got none for {problem.problem_id!r}"
            )
        if problem.reference_solution is None and rewards.oracle == "reference":
            raise ConfigurationError(
                f"every problem must have a reference_solution, which decides what a valid test is; "
                f"got none for {problem.problem_id!r}"
            )
        rule_of(problem, rewards.time_limit)
        longest = max(len(problem.question), len(problem.entry_point), len(problem.starter_code), _LEAST_TEXT)
        if longest > max_text_length:
            raise ConfigurationError(
                f"max_text_length must be at least {longest}, the length of the longest text of problem "
                f"{problem.problem_id!r}, got {max_text_length}"
            )
    return checked


def _read(path: str | os.PathLike[str]) -> list[Problem]:
    try:
        problems = read_problems(path)
    except OSError as error:
        raise ConfigurationError(
            f"problems must be None, a list of Problems or the path of a problem file, got {os.fspath(path)!r}, which "
            f"cannot be read: {error.strerror}"
        ) from None
    if not problems:
        raise ConfigurationError(f"a problem file must hold at least one problem, got none in {os.fspath(path)!r}")
    return problems
