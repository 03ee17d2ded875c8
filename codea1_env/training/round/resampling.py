"""Dynamic sampling (DAPO, arXiv 2503.14476): a group all of whose rows earn the same teaches nothing. It is replaced by
one that was sampled again for the same question, where that one does teach. How often it is tried is bounded.

Plain data. Rows without a score are not sampled again: what failed there was infrastructure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from codea1_env.training.round.rounds import Score
from codea1_env.training.samples import Batch, Row

_EQUAL = 1e-9


def silent_questions(batches: Iterable[Batch]) -> list[str]:
    """Questions with a group that teaches nothing, each once. `batches`: of the seats that learn."""
    silent = [group[0].label.question for batch in batches for group in _groups(batch) if _is_silent(group)]
    return list(dict.fromkeys(silent))


def with_groups(score: Score, again: Score, attempt: int) -> Score:
    """`score` with its silent groups replaced by groups of `again` that teach, of the same question, seat and size.

    The metrics stay those of what was sampled first, but for three that are added up: `seconds_scoring`,
    `sampled_again` (questions) and `groups_replaced`.
    """
    replaced, batches = 0, list[list[Row]]()
    for old, new in zip(score.batches, again.batches, strict=True):
        found = [group for group in _groups(new) if _spread(group) > _EQUAL]
        batch = list[Row]()
        for group in _groups(old):
            other = next((each for each in found if _fits(each, group)), None) if _is_silent(group) else None
            if other is not None:
                found.remove(other)
                replaced += 1
            batch += group if other is None else _renamed(other, attempt)
        batches.append(batch)
    metrics = dict(score.metrics)
    for name, value in (
        ("sampled_again", float(len({row.label.question for row in again.batches[0]}))),
        ("groups_replaced", float(replaced)),
        ("seconds_scoring", again.metrics.get("seconds_scoring", 0.0)),
    ):
        metrics[name] = metrics.get(name, 0.0) + value
    return dataclasses.replace(score, batches=tuple(batches), metrics=metrics, played=(*score.played, *again.played))


def _groups(batch: Iterable[Row]) -> list[list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in batch:
        found.setdefault(row.label.group, []).append(row)
    return list(found.values())


def _spread(group: Sequence[Row]) -> float:
    known = [row.reward for row in group if row.reward is not None]
    return max(known) - min(known) if known else 0.0


def _is_silent(group: Sequence[Row]) -> bool:
    return any(row.learns and row.reward is not None for row in group) and _spread(group) <= _EQUAL


def _fits(group: Sequence[Row], place: Sequence[Row]) -> bool:
    return group[0].label.question == place[0].label.question and len(group) == len(place)


def _renamed(group: Sequence[Row], attempt: int) -> list[Row]:
    """Groups of testers are named by places in what was sampled together: in the round another may have the name."""
    names = [f"{row.label.group} of {row.label.question}, sampled again {attempt}" for row in group]
    labels = [dataclasses.replace(row.label, group=name) for row, name in zip(group, names, strict=True)]
    return [dataclasses.replace(row, label=label) for row, label in zip(group, labels, strict=True)]
