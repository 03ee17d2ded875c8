"""codea1: a Code LLM against a Test LLM, as a PettingZoo environment with sandboxed execution and replay inside.

    import codea1_env
    env = codea1_env.parallel_env()          # or codea1_env.env() for the turn-based form

The names below are loaded when they are first used; importing the package loads neither torch nor any trainer.
"""

from codea1_env.starting import end_on_interrupt, open_closed_streams

open_closed_streams()
end_on_interrupt()  # before every other import, of __future__ too, hence E402

import importlib  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

from codea1_env.registration import register  # noqa: E402

if TYPE_CHECKING:
    from codea1_env.arena.arena import Arena
    from codea1_env.arena.asynchronous import AsyncArena
    from codea1_env.arena.match import CodeScore, Grade, Match, MatchScore, SuiteScore
    from codea1_env.arena.sharded import ShardedArena
    from codea1_env.envs.environment import env, parallel_env, raw_env
    from codea1_env.envs.vector import vector_env
    from codea1_env.errors import (
        BookFormatError,
        Codea1Error,
        ConfigurationError,
        FormatError,
        ProblemFormatError,
        SandboxError,
        SandboxUnsafe,
        UnusableReference,
    )
    from codea1_env.mistake_book.book import MistakeBook
    from codea1_env.mistake_book.policies import BookConfig, BookPolicy, Shelf, Visit
    from codea1_env.problems import Problem, TestCase, bundled_problems, read_problems, write_problems
    from codea1_env.reading.responses import read_program, read_suite
    from codea1_env.rewards.code_a1 import RewardConfig
    from codea1_env.rewards.duel import Duel, Status, Verdict
    from codea1_env.rewards.interfaces import Accept, CoderReward, Group, ProgramResult, TesterReward
    from codea1_env.rewards.terms import SuiteTerms
    from codea1_env.sandbox import LocalSandbox, open_sandbox
    from codea1_env.viewer import view

__version__ = "0.1.0"

_HOMES = {
    "codea1_env.arena.asynchronous": ("AsyncArena",),
    "codea1_env.arena.sharded": ("ShardedArena",),
    "codea1_env.arena.arena": ("Arena",),
    "codea1_env.arena.match": ("CodeScore", "Grade", "Match", "MatchScore", "SuiteScore"),
    "codea1_env.mistake_book.policies": ("BookConfig", "BookPolicy", "Shelf", "Visit"),
    "codea1_env.rewards.duel": ("Duel", "Status", "Verdict"),
    "codea1_env.envs.environment": ("env", "parallel_env", "raw_env"),
    "codea1_env.envs.vector": ("vector_env",),
    "codea1_env.errors": (
        "BookFormatError",
        "Codea1Error",
        "ConfigurationError",
        "FormatError",
        "ProblemFormatError",
        "SandboxError",
        "SandboxUnsafe",
        "UnusableReference",
    ),
    "codea1_env.mistake_book.book": ("MistakeBook",),
    "codea1_env.problems": ("Problem", "TestCase", "bundled_problems", "read_problems", "write_problems"),
    "codea1_env.reading.responses": ("read_program", "read_suite"),
    "codea1_env.rewards.terms": ("SuiteTerms",),
    "codea1_env.rewards.code_a1": ("RewardConfig",),
    "codea1_env.rewards.interfaces": ("Accept", "CoderReward", "Group", "ProgramResult", "TesterReward"),
    "codea1_env.sandbox": ("LocalSandbox", "open_sandbox"),
    "codea1_env.viewer": ("view",),
}
_PETTINGZOO_MODULE = "codea1_env.envs.environment"
"""What PettingZoo's own environments are: `from codea1_env import codea1_v0`, then `codea1_v0.env()`."""
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Accept",
    "Arena",
    "AsyncArena",
    "BookConfig",
    "BookFormatError",
    "BookPolicy",
    "CodeScore",
    "Codea1Error",
    "CoderReward",
    "ConfigurationError",
    "Duel",
    "FormatError",
    "Grade",
    "Group",
    "LocalSandbox",
    "Match",
    "MatchScore",
    "MistakeBook",
    "Problem",
    "ProblemFormatError",
    "ProgramResult",
    "RewardConfig",
    "SandboxError",
    "SandboxUnsafe",
    "ShardedArena",
    "Shelf",
    "Status",
    "SuiteScore",
    "SuiteTerms",
    "TestCase",
    "TesterReward",
    "UnusableReference",
    "Verdict",
    "Visit",
    "__version__",
    "bundled_problems",
    "env",
    "open_sandbox",
    "parallel_env",
    "raw_env",
    "read_problems",
    "read_program",
    "read_suite",
    "vector_env",
    "view",
    "write_problems",
]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(importlib.import_module(_HOME_OF[name]), name)
    if name == "codea1_v0":
        return importlib.import_module(_PETTINGZOO_MODULE)
    raise AttributeError(f"module 'codea1_env' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


register()
