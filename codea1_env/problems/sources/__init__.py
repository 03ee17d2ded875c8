"""Loaders of public problem sets: each turns the rows of one set, from the hub or a file, into drafts of problems.

Does not execute anything: `codea1_env.judging.problems.importing` finds out whether a reference passes its own tests.
"""

from __future__ import annotations

from codea1_env.checks import require
from codea1_env.problems.sources import contests, evalplus, functions, kodcode, leetcode, submissions
from codea1_env.problems.sources.draft import Draft, Source, Unreadable

SOURCES = {
    source.name: source
    for source in (
        evalplus.HUMANEVALPLUS,
        evalplus.MBPPPLUS,
        kodcode.KODCODE,
        kodcode.CODE_A1,
        functions.HUMANEVAL,
        functions.MBPP,
        functions.BIG_CODE_BENCH,
        functions.BIG_CODE_BENCH_INSTRUCT,
        functions.UNLEAKED,
        leetcode.LEETCODE,
        contests.LIVE_CODE_BENCH,
        contests.APPS,
        contests.TACO,
        contests.CODE_CONTESTS,
        submissions.CONDEFECTS,
        submissions.REFACTORY,
    )
}


def find_source(name: str) -> Source:
    """Raises ConfigurationError for a name that this version does not have."""
    require(name in SOURCES, "the problem source", f"be one of {', '.join(SOURCES)}", name)
    return SOURCES[name]


__all__ = ["SOURCES", "Draft", "Source", "Unreadable", "find_source"]
