"""Batches of duels and what becomes of them: the one place that scores, its inputs and outputs, diagnostics."""

from codea1_env.arena.arena import Arena, record_changes
from codea1_env.arena.match import BookChanges, CodeScore, Grade, Match, MatchScore, SuiteScore, book_changes

__all__ = [
    "Arena",
    "BookChanges",
    "CodeScore",
    "Grade",
    "Match",
    "MatchScore",
    "SuiteScore",
    "book_changes",
    "record_changes",
]
