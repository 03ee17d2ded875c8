"""What a round of the duel is, whatever engine trains the seats: who is attacked, the scores, what is learnt from.

Plain data and numpy. Does not promise anything about sampling or gradients, and knows no tensor.
"""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from codea1_env.arena.arena import Arena
from codea1_env.arena.diagnostics import diagnose, mean, zero_groups
from codea1_env.arena.hollow import hollow_metrics
from codea1_env.arena.match import Match, MatchScore
from codea1_env.errors import ConfigurationError, SandboxError
from codea1_env.problems.problem import Problem
from codea1_env.reading.grammar import Fidelity
from codea1_env.reading.responses import read_program
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.training.config.run_sections import RoundPreset
from codea1_env.training.round.metrics import round_metrics
from codea1_env.training.round.rules import RoundRules
from codea1_env.training.row_labels import RowLabel
from codea1_env.training.run.hidden_tests import hidden_metrics

Rewards = list[float | None]
"""One per row; None: infrastructure failed, there is no score."""
_Row = TypeVar("_Row")
OldPlayed = dict[str, tuple[MatchScore, list[int]]]
"""By question, what its old programs came to, and their places among `PastPlay.attacks`."""


@dataclass(frozen=True, slots=True)
class Attack:
    """One program of the coder, as the tester meets it."""

    problem: Problem
    response: str
    """The coder's response, raw: what the arena scores."""
    program: str
    """The program read from it: what a white-box tester is shown."""


@dataclass(frozen=True, slots=True)
class SelectedSuite:
    """One suite that the tester trains on, by its place in the round."""

    attack: int
    """Among the present attacks, then those of `PastPlay.attacks`."""
    suite: int
    reward: float | None
    label: RowLabel


@dataclass(frozen=True, slots=True)
class PastPlay:
    """What the past adds to a round: it is played and paid, and only the present seats learn from it."""

    suites: tuple[tuple[str, ...], ...] = ()
    """An old tester's suites against each present program; they count for the coder."""
    attacks: tuple[Attack, ...] = ()
    """Old programs, an old coder's and targets of the tester's book, of questions of this round."""
    old_coders: int = 0
    """How many of `attacks`, the first ones, are an old coder's."""
    against: tuple[tuple[str | None, ...], ...] = ()
    """The present tester's suites against each of them; the tester may be trained on them."""


@dataclass(frozen=True, slots=True)
class RoundScore:
    """What both seats earn in a round."""

    coder: Rewards
    """One per attack."""
    tester: tuple[SelectedSuite, ...]
    """The suites of the selected attacks, group by group: questions * update_n * M rows."""
    metrics: Mapping[str, float]
    past_coder: float | None = None
    """Mean reward of an old coder's programs against the present tester; None where none played or was scored."""
    past_tester: float | None = None
    """Mean R_adv of an old tester's suites against the present programs; None likewise."""
    played: tuple[MatchScore, ...] = ()
    """Every match with the present tester's suites, for its mistake book; empty where there is none."""


def schedule(problems: int, rounds: int, questions: int, seed: int) -> list[int]:
    """Places of the problems asked, `questions` a round: every problem once, in random order, then again.

    No problem comes twice in a round. A longer schedule begins with the shorter one, so that a run can be extended.
    """
    assert questions <= problems
    rng = random.Random(f"schedule {seed}")
    asked: list[int] = []
    drawn: list[int] = []
    begun = 0  # of `drawn`, so many are asked
    while len(asked) < rounds * questions:
        if len(drawn) - begun < questions:
            # What is left over is asked first; in the new pass it comes last, so that the round does not repeat it.
            left, new = drawn[begun:], rng.sample(range(problems), problems)
            known = set(left)
            drawn = left + [p for p in new if p not in known] + [p for p in new if p in known]
            begun = 0
        asked += drawn[begun : begun + questions]
        begun += questions
    return asked


def attacks_of(
    problems: Sequence[Problem], responses: Sequence[str], fidelity: Fidelity = "strict"
) -> tuple[Attack, ...]:
    """One attack per row of the coder's batch, in its order. `fidelity`: of the rewards, which read programs alike."""
    return tuple(
        Attack(problem, response, read_program(response, problem.entry_point, fidelity=fidelity).source)
        for problem, response in zip(problems, responses, strict=True)
    )


def put_to_tester(attacks: Sequence[Attack], programs: int, attacked: int, rules: RoundRules) -> list[int]:
    """Places of the round's programs, N `programs` a question, that suites are written against."""
    return [
        start + place
        for start in range(0, len(attacks), programs)
        for place in rules.put_to_tester([attack.program for attack in attacks[start : start + programs]], attacked)
    ]


def in_places(rows: Sequence[list[_Row]], places: Sequence[int], count: int) -> list[list[_Row]]:
    """A row for each of `count` programs: those of `places` in theirs, none for the others; what is over comes last."""
    spread: list[list[_Row]] = [[] for _ in range(count)]
    for place, row in zip(places, rows, strict=False):
        spread[place] = row
    return spread + list(rows[len(places) :])


def asked(suites: Sequence[Sequence[str | None]]) -> list[tuple[str, ...]]:
    """The suites of each program, without those that could not be asked for."""
    return [tuple(text for text in texts if text is not None) for texts in suites]


def matches_of(attacks: Sequence[Attack], suites: Sequence[tuple[str, ...]], programs: int) -> list[Match]:
    """Every program with its suites, N `programs` a question."""
    return [
        Match(group[0].problem, tuple(attack.response for attack in group), tuple(texts))
        for group, texts in zip(_groups(attacks, programs), _groups(suites, programs), strict=True)
    ]


def _groups(rows: Sequence[_Row], programs: int) -> list[Sequence[_Row]]:
    """The rows of each question."""
    return [rows[start : start + programs] for start in range(0, len(rows), programs)]


def score_round(
    arena: Arena,
    attacks: Sequence[Attack],
    suites: Sequence[Sequence[str | None]],
    *,
    programs: int,
    attacked: int,
    rules: RoundRules | None = None,
    round_index: int = 0,
    past: PastPlay | None = None,
    play: Callable[[Sequence[Match]], list[MatchScore]] | None = None,
) -> RoundScore:
    """Play every suite against its program, N `programs` a question, and select what the tester trains on.

    Past programs are played first, on the Mistake Book as it was, and leave no trace in it. A program whose suites are
    None could not be put to the tester: neither it nor they have a score. One without suites was not put to it
    (`put_to_tester`) and is paid by its question's suites, if there are any. `play`: other than the arena's, for a
    round of which a part has been played.
    """
    rules, past = rules or RoundRules(), past or PastPlay()
    own_texts = asked(suites)
    added = past.suites or ((),) * len(attacks)
    rows = [(*own, *others) if own else () for own, others in zip(own_texts, added, strict=True)]
    old_played = _old_played(arena, past)
    scores = [
        _unpaid(score, texts)
        for score, texts in zip(
            (play or arena.play)(matches_of(attacks, rows, programs)), _groups(suites, programs), strict=True
        )
    ]
    spent = {f"seconds_{part}": seconds for part, seconds in arena.seconds.items()}
    paid = [
        rules.as_paid(round_index, _without_past(score, [len(texts) for texts in group]))
        for score, group in zip(scores, _groups(own_texts, programs), strict=True)
    ]
    selected: list[SelectedSuite] = []
    for first, own in zip(range(0, len(attacks), programs), paid, strict=True):
        whole, old_places = _with_old_programs(own, old_played, rules, round_index)
        places = [*range(first, first + programs), *(len(attacks) + place for place in old_places)]
        texts = [*suites[first : first + programs], *(past.against[place] for place in old_places)]
        selected += _selected(whole, places, texts, arena.config, rules, round_index, attacked)
    rewards = [code.reward for score in scores for code in score.codes]
    metrics = round_metrics(scores, len(arena.book), [row.reward for row in selected])
    metrics |= diagnose(paid, arena.config).as_metrics()
    metrics |= hollow_metrics([(attack.problem, attack.program) for attack in attacks])
    if rules.tries_hidden_tests(round_index):
        metrics |= hidden_metrics(arena, [a.problem for a in attacks], [a.response for a in attacks], rewards)
    past_coder = _old_coders_reward(past, old_played)
    past_tester = _old_testers_reward(scores, own_texts, programs) if past.suites else None
    by_past = {"past_coder_reward": past_coder, "past_tester_reward": past_tester}
    metrics |= {name: reward for name, reward in by_past.items() if reward is not None}
    return RoundScore(
        rewards,
        tuple(selected),
        metrics | spent,
        past_coder=past_coder,
        past_tester=past_tester,
        played=(*paid, *(score for score, _ in old_played.values())) if rules.options.tester_book else (),
    )


def _selected(
    score: MatchScore,
    places: Sequence[int],
    texts: Sequence[Sequence[str | None]],
    config: RewardConfig,
    rules: RoundRules,
    round_index: int,
    attacked: int,
) -> list[SelectedSuite]:
    """The suites of one question that train the tester. `places`: of its programs in the round."""
    rewards: list[list[float | None]] = [
        [suite.reward for suite in row] or [None] * len(written)
        for row, written in zip(score.suites, texts, strict=True)
    ]
    earned, loads = [code.reward for code in score.codes], [code.executes for code in score.codes]
    chosen = rules.select(round_index, score.problem_id, earned, loads, rewards, attacked)
    suites = []
    for choice in chosen:
        group = RowLabel(group=str(places[choice]), question=score.problem_id, seat="tester")
        for index, reward in enumerate(rewards[choice]):
            text, label = texts[choice][index], group
            if text is not None:
                label = rules.with_tests(group, round_index, score.suites[choice][index], text, config)
            suites.append(SelectedSuite(places[choice], index, reward, label))
    return suites


def _old_played(arena: Arena, past: PastPlay) -> OldPlayed:
    old = _old_matches(past)
    scores = arena.play([match for match, _ in old], update_book=False) if old else []
    return {
        match.problem.problem_id: (_unpaid(score, [past.against[place] for place in places]), places)
        for (match, places), score in zip(old, scores, strict=True)
    }


def _with_old_programs(
    own: MatchScore, old_played: OldPlayed, rules: RoundRules, round_index: int
) -> tuple[MatchScore, Sequence[int]]:
    """The match with the question's old programs behind its own, and their places among `past.attacks`."""
    if own.problem_id not in old_played:
        return own, ()
    old, places = old_played[own.problem_id]
    old = rules.as_paid(round_index, old)
    return MatchScore(own.problem_id, own.codes + old.codes, own.suites + old.suites), places


def _old_matches(past: PastPlay) -> list[tuple[Match, list[int]]]:
    """One match a question, with the places of its programs among `past.attacks`."""
    by_question: dict[str, list[int]] = {}
    for place, attack in enumerate(past.attacks):
        by_question.setdefault(attack.problem.problem_id, []).append(place)
    return [
        (
            Match(
                past.attacks[places[0]].problem,
                tuple(past.attacks[place].response for place in places),
                tuple(tuple(text for text in past.against[place] if text is not None) for place in places),
            ),
            places,
        )
        for places in by_question.values()
    ]


def _unpaid(score: MatchScore, texts: Sequence[Sequence[str | None]]) -> MatchScore:
    """The match without rewards of programs that could not be put to the tester, or have no suite to pay them."""
    none_written = not any(score.suites)
    codes = [
        dataclasses.replace(code, reward=None) if none_written or None in row else code
        for code, row in zip(score.codes, texts, strict=True)
    ]
    return dataclasses.replace(score, codes=tuple(codes))


def _without_past(score: MatchScore, own: Sequence[int]) -> MatchScore:
    """The match with the present tester's suites alone: the first `own[i]` against program i."""
    rows = tuple(row[:count] for row, count in zip(score.suites, own, strict=True))
    return dataclasses.replace(score, suites=rows)


def _old_coders_reward(past: PastPlay, played: OldPlayed) -> float | None:
    rewards = [
        code.reward
        for score, places in played.values()
        for code, place in zip(score.codes, places, strict=True)
        if place < past.old_coders and code.reward is not None
    ]
    return float(np.mean(rewards)) if rewards else None


def _old_testers_reward(scores: Sequence[MatchScore], suites: Sequence[Sequence[str]], programs: int) -> float | None:
    earned = [
        suite.terms.adversarial
        for score, group in zip(scores, _groups(suites, programs), strict=True)
        for row, own in zip(score.suites, group, strict=True)
        for suite in row[len(own) :]
        if suite.terms is not None
    ]
    return float(np.mean(earned)) if earned else None


def scored_round(
    arena: Arena,
    attacks: Sequence[Attack],
    suites: Sequence[Sequence[str | None]],
    shape: RoundPreset,
    log: Callable[[int, Mapping[str, float]], None],
    *,
    round_index: int,
    **more: Any,
) -> RoundScore:
    """`score_round` of a run, its metrics logged. Raises ConfigurationError where the tester could be shown no program,
    and SandboxError where nothing has a score."""
    start = time.perf_counter()
    texts = [text for row in suites for text in row]
    if texts and all(text is None for text in texts):
        raise ConfigurationError(
            f"round {round_index + 1} must have a program that fits into the tester's prompt, got none among "
            f"{len(attacks)}; raise round.tester_prompt_tokens ({shape.tester_prompt_tokens}) in the run's config.yaml "
            "and go on with --resume"
        )
    score = score_round(
        arena, attacks, suites, programs=shape.programs, attacked=shape.attacked, round_index=round_index, **more
    )
    require_scores(round_index, score.coder)
    log(round_index, {**score.metrics, "seconds_scoring": time.perf_counter() - start})
    return score


def require_scores(round_index: int, rewards: Rewards) -> None:
    """Single rows may stay without a score; a round without any means that the sandbox is gone: raises SandboxError."""
    if rewards and all(reward is None for reward in rewards):
        raise SandboxError(
            f"round {round_index + 1} must be scored, got no score for any of its {len(rewards)} programs: "
            "the sandbox failed"
        )


def golden_rewards(
    arena: Arena, log: Callable[[int, Mapping[str, float]], None], hidden_rounds: int = 0
) -> Callable[[int, Sequence[Problem], Sequence[str]], Rewards]:
    """The golden-test baseline's reward: the share of its question's golden tests that a program passes.

    `hidden_rounds`: as in `RoundRules`.
    """

    def score(round_index: int, problems: Sequence[Problem], responses: Sequence[str]) -> Rewards:
        items = [
            (problem, (response,), problem.golden_tests) for problem, response in zip(problems, responses, strict=True)
        ]
        start = time.perf_counter()
        grades = [graded[0] for graded in arena.grade_many(items)]
        rewards = [None if grade.executes is None else grade.share for grade in grades]
        require_scores(round_index, rewards)
        executes = [None if grade.executes is None else float(grade.executes) for grade in grades]
        seconds = time.perf_counter() - start
        groups: dict[str, list[float | None]] = {}
        for problem, reward in zip(problems, rewards, strict=True):
            groups.setdefault(problem.problem_id, []).append(reward)
        metrics = {"coder_reward": mean(rewards), "executes": mean(executes), "seconds_scoring": seconds}
        metrics["coder_zero_groups"] = zero_groups(groups.values())
        attacks = attacks_of(problems, responses)
        metrics |= hollow_metrics([(attack.problem, attack.program) for attack in attacks])
        if RoundRules(hidden_rounds=hidden_rounds).tries_hidden_tests(round_index):
            metrics |= hidden_metrics(arena, problems, responses, rewards)
        log(round_index, metrics)
        return rewards

    return score
