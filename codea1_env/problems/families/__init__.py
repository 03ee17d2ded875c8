"""The procedural families of problems, by name. Each makes as many problems as one wants, and holds some questions out.

Does not import anything heavy, and makes nothing before it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from codea1_env.problems.families.bands import band_problems
from codea1_env.problems.families.fineprint import fineprint_problems, fineprint_words_problems
from codea1_env.problems.families.miniature import miniature_problems
from codea1_env.problems.families.shift import shift_problems
from codea1_env.problems.problem import Problem

SPLITS = ("train", "held_out")


@dataclass(frozen=True, slots=True)
class Family:
    """A procedural family."""

    draw: Callable[..., tuple[Problem, ...]]
    """(split, count, seed, golden_edge) to problems. Raises ConfigurationError."""
    about: str
    """In a line."""


FAMILIES: Mapping[str, Family] = {
    "miniature": Family(miniature_problems, "lists of whole numbers, and edges that hurried tests miss"),
    "bands": Family(band_problems, "one number, and bugs that show on one input"),
    "shift": Family(shift_problems, "as bands, and one bug gives way to the next"),
    "fineprint": Family(fineprint_problems, "plain English with clauses, for pretrained models; lists of numbers"),
    "fineprint_words": Family(fineprint_words_problems, "the same on lists of words, for measuring what carries over"),
}
