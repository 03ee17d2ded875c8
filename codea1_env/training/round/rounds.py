"""What a round of the duel is, whatever trains the seats: who is attacked, the scores, what is learnt from.

Plain data and numpy. Does not promise anything about sampling or gradients, and knows no tensor.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from codea1_env.arena.arena import Arena
from codea1_env.arena.diagnostics import diagnose, hollow_metrics, mean, zero_groups
from codea1_env.arena.match import Match, MatchScore
from codea1_env.configuration.run_sections import RoundPreset
from codea1_env.errors import ConfigurationError, SandboxError
from codea1_env.problems.problem import Problem
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.training.round.metrics import round_metrics
from codea1_env.training.round.rules import RoundRules
from codea1_env.training.run.held_out import hidden_metrics
from codea1_env.training.samples import Rewards, Row, RowLabel, Sample, texts_of

_Item = TypeVar("_Item")
_Played = dict[str, tuple[MatchScore, list[int]]]
"""By question, what its old programs came to, and their places among `PastPlay.programs`."""
Suites = Sequence[Sequence[Sample]]
"""One row of samples for each program; empty where it was not put to the tester."""


@dataclass(frozen=True, slots=True)
class ReadProgram:
    """One program of the coder, read from its response."""

    problem: Problem
    response: str
    """Raw: what the arena scores."""
    source: str
    """What a white-box tester is shown."""
    sample: Sample | None = None
    """What the coder learns from; None for a program that it did not write now."""


@dataclass(frozen=True, slots=True)
class PastPlay:
    """What the past adds to a round: it is played and paid, and only the present seats learn from it."""

    suites: tuple[tuple[str, ...], ...] = ()
    """An old tester's suites against each present program; they count for the coder."""
    programs: tuple[ReadProgram, ...] = ()
    """Old ones, an old coder's and those of the tester's book, of questions of this round."""
    old_coders: int = 0
    """How many of `programs`, the first ones, are an old coder's."""
    against: Suites = ()
    """The present tester's suites against each of them; the tester may be trained on them."""
    tokens: int = 0
    """Of the old coder's and the old tester's responses."""


@dataclass(frozen=True, slots=True)
class Score:
    """What a round came to."""

    batches: tuple[list[Row], ...]
    """What each seat learns from: the coder's programs, then for each tester the suites of the selected programs, group
    by group."""
    metrics: Mapping[str, float]
    past_coder: float | None = None
    """Mean reward of an old coder's programs against the present tester; None where none played or was scored."""
    past_tester: float | None = None
    """Mean R_adv of an old tester's suites against the present programs; None likewise."""
    played: tuple[MatchScore, ...] = ()
    """Every match with the present tester's suites, for its mistake book; empty where there is none."""

    @property
    def rewards(self) -> dict[str, list[float | None]]:
        """Of the coder's programs, by problem_id."""
        found: dict[str, list[float | None]] = {}
        for row in self.batches[0] if self.batches else ():
            found.setdefault(row.label.question, []).append(row.reward)
        return found


def read_programs(arena: Arena, problems: Sequence[Problem], samples: Sequence[Sequence[Sample]]) -> list[ReadProgram]:
    """The programs of each question's samples, question by question."""
    return [
        ReadProgram(problem, sample.text or "", arena.program(problem, sample.text or "").source, sample)
        for problem, group in zip(problems, samples, strict=True)
        for sample in group
    ]


def program_rows(programs: Sequence[ReadProgram], rewards: Rewards, *, learns: bool = True) -> list[Row]:
    """The programs of a question are a group; no question comes twice in a round."""
    rows = []
    for program, reward in zip(programs, rewards, strict=True):
        assert program.sample is not None, "the coder learns from what it wrote now"
        name = program.problem.problem_id
        rows.append(Row(program.sample, reward, RowLabel(f"coder {name}", name, "coder"), learns))
    return rows


def put_to_tester(programs: Sequence[ReadProgram], shape: RoundPreset, rules: RoundRules) -> list[int]:
    """Places of the round's programs, N a question, that suites are written against."""
    return [
        start + place
        for start in range(0, len(programs), shape.programs)
        for place in rules.put_to_tester(
            [program.source for program in programs[start : start + shape.programs]], shape.attacked
        )
    ]


def in_places(rows: Sequence[Sequence[_Item]], places: Sequence[int], count: int) -> list[Sequence[_Item]]:
    """A row for each of `count` programs: those of `places` in theirs, none for the others; what is over comes last."""
    spread: list[Sequence[_Item]] = [()] * count
    for place, row in zip(places, rows, strict=False):
        spread[place] = row
    return spread + list(rows[len(places) :])


@dataclass(frozen=True, slots=True)
class Round:
    """A round whose suites are written, to be scored."""

    index: int
    shape: RoundPreset
    programs: Sequence[ReadProgram]
    suites: Sequence[Suites]
    """Of each tester, a row for each program."""
    rules: RoundRules = field(default_factory=RoundRules)
    past: PastPlay = field(default_factory=PastPlay)
    testers: Sequence[str] = ("tester",)
    """Their seats."""

    def score(self, arena: Arena, play: Callable[[Sequence[Match], float], list[MatchScore]] | None = None) -> Score:
        """Play every suite against its program, and select what the testers train on. `play`: other than the arena's,
        called with the round's alpha.

        Past programs are played first, on the Mistake Book as it was, and leave no trace in it. A program whose suites
        have no text could not be put to the tester: neither it nor they have a score. One without suites was not put to
        it and is paid by its question's suites, if there are any. Raises ConfigurationError where no program could be
        put to the tester, and SandboxError where nothing has a score.
        """
        started = time.perf_counter()
        written = zip(*map(texts_of, self.suites), strict=True)
        texts = [[text for suites in of_program for text in suites] for of_program in written]
        self._require_prompts(texts)
        config = arena.config.with_alpha(self.rules.options.alpha(arena.config.alpha, self.index))
        play = play or (lambda matches, alpha: arena.play(matches, alpha=alpha))
        own = [tuple(text for text in row if text is not None) for row in texts]
        old_played = self._old_played(arena, config.alpha)
        added = self.past.suites or ((),) * len(self.programs)
        rows = [(*mine, *others) if mine else () for mine, others in zip(own, added, strict=True)]
        matches = [
            Match(group[0].problem, tuple(program.response for program in group), tuple(suites))
            for group, suites in zip(self._by_question(self.programs), self._by_question(rows), strict=True)
        ]
        scores = [
            _unpaid(score, row)
            for score, row in zip(play(matches, config.alpha), self._by_question(texts), strict=True)
        ]
        spent = {f"seconds_{part}": seconds for part, seconds in arena.seconds.items()}
        paid = [
            _first_suites(score, [len(mine) for mine in group])
            for score, group in zip(scores, self._by_question(own), strict=True)
        ]
        rewards = [code.reward for score in scores for code in score.codes]
        require_scores(self.index, rewards)
        batches = (
            program_rows(self.programs, rewards, learns=self.rules.options.learns("coder", self.index)),
            *(self._suite_rows(tester, paid, old_played, config) for tester in range(len(self.testers))),
        )
        selected = [row.reward for batch in batches[1:] for row in batch]
        metrics = round_metrics(paid, len(arena.book), selected)
        by_tester = [  # whose suites against one program are a group
            self._of_tester(tester, score, question * self.shape.programs)
            for tester in range(len(self.testers))
            for question, score in enumerate(paid)
        ]
        metrics |= diagnose(by_tester, config).as_metrics()
        metrics |= hollow_metrics([(program.problem, program.source) for program in self.programs])
        if self.rules.tries_hidden_tests(self.index):
            responses = [program.response for program in self.programs]
            metrics |= hidden_metrics(arena, [program.problem for program in self.programs], responses, rewards)
        past_coder = _old_coders_reward(self.past, old_played)
        past_tester = self._old_testers_reward(scores, own)
        tokens = float(self.past.tokens) or None
        by_past = {"past_coder_reward": past_coder, "past_tester_reward": past_tester, "tokens": tokens}
        metrics |= {name: value for name, value in by_past.items() if value is not None}
        played = (*paid, *(score for score, _ in old_played.values())) if self.rules.options.tester_book else ()
        seconds = {"seconds_scoring": time.perf_counter() - started}
        return Score(batches, metrics | spent | seconds, past_coder, past_tester, played)

    def _require_prompts(self, texts: Sequence[Sequence[str | None]]) -> None:
        written = [text for row in texts for text in row]
        if written and all(text is None for text in written):
            raise ConfigurationError(
                f"round {self.index + 1} must have a program that fits into the tester's prompt, got none among "
                f"{len(self.programs)}; raise round.tester_prompt_tokens ({self.shape.tester_prompt_tokens}) in the "
                "run's config.yaml and go on with --resume"
            )

    def _by_question(self, rows: Sequence[_Item]) -> list[Sequence[_Item]]:
        return [rows[start : start + self.shape.programs] for start in range(0, len(rows), self.shape.programs)]

    def _suite_rows(
        self, tester: int, paid: Sequence[MatchScore], old_played: _Played, config: RewardConfig
    ) -> list[Row]:
        """The suites that a tester trains on, of all questions."""
        suites, found = self.suites[tester], list[Row]()
        for question, whole in enumerate(paid):
            first = question * self.shape.programs
            score = self._of_tester(tester, whole, first)
            old, old_places = old_played.get(score.problem_id, (None, []))
            places = [*range(first, first + self.shape.programs), *(len(self.programs) + place for place in old_places)]
            written = [*suites[first : first + self.shape.programs], *(self.past.against[each] for each in old_places)]
            if old is not None:
                score = MatchScore(score.problem_id, score.codes + old.codes, score.suites + old.suites)
            found += self._selected(tester, score, places, written, config)
        return found

    def _of_tester(self, tester: int, score: MatchScore, first: int) -> MatchScore:
        """The match with one tester's suites alone."""
        if len(self.testers) == 1:
            return score
        rows = []
        for place, row in enumerate(score.suites, first):
            counts = [sum(sample.text is not None for sample in suites[place]) for suites in self.suites]
            start = sum(counts[:tester])
            rows.append(row[start : start + counts[tester]])
        return dataclasses.replace(score, suites=tuple(rows))

    def _selected(
        self,
        tester: int,
        score: MatchScore,
        places: Sequence[int],
        written: Sequence[Sequence[Sample]],
        config: RewardConfig,
    ) -> list[Row]:
        """The rows of one question. `places`: of its programs in the round; `written`: the suites against each."""
        rewards: list[list[float | None]] = [
            [suite.reward for suite in row] or [None] * len(suites)
            for row, suites in zip(score.suites, written, strict=True)
        ]
        earned, loads = [code.reward for code in score.codes], [code.executes for code in score.codes]
        learns = self.rules.options.learns("tester", self.index)
        found = []
        for choice in self.rules.select(self.index, score.problem_id, earned, loads, rewards, self.shape.attacked):
            group = RowLabel(f"{self.testers[tester]} {places[choice]}", score.problem_id, "tester")
            for number, (sample, reward) in enumerate(zip(written[choice], rewards[choice], strict=True)):
                label = group
                if sample.text is not None:
                    suite = score.suites[choice][number]
                    label = self.rules.with_tests(group, suite, sample.text, config)
                found.append(Row(sample, reward, label, learns))
        return found

    def _old_played(self, arena: Arena, alpha: float) -> _Played:
        by_question: dict[str, list[int]] = {}
        for place, program in enumerate(self.past.programs):
            by_question.setdefault(program.problem.problem_id, []).append(place)
        if not by_question:
            return {}
        texts, rows = texts_of(self.past.against), list(by_question.values())
        matches = [
            Match(
                self.past.programs[places[0]].problem,
                tuple(self.past.programs[place].response for place in places),
                tuple(tuple(text for text in texts[place] if text is not None) for place in places),
            )
            for places in rows
        ]
        return {
            score.problem_id: (_unpaid(score, [texts[place] for place in places]), places)
            for score, places in zip(arena.play(matches, update_book=False, alpha=alpha), rows, strict=True)
        }

    def _old_testers_reward(self, scores: Sequence[MatchScore], own: Sequence[Sequence[str]]) -> float | None:
        earned = [
            suite.terms.adversarial
            for score, group in zip(scores, self._by_question(own), strict=True)
            for row, mine in zip(score.suites, group, strict=True)
            for suite in row[len(mine) :]
            if suite.terms is not None
        ]
        return float(np.mean(earned)) if earned and self.past.suites else None


def _unpaid(score: MatchScore, texts: Sequence[Sequence[str | None]]) -> MatchScore:
    """The match without rewards of programs that could not be put to the tester, or have no suite to pay them."""
    none_written = not any(score.suites)
    codes = [
        dataclasses.replace(code, reward=None) if none_written or None in row else code
        for code, row in zip(score.codes, texts, strict=True)
    ]
    return dataclasses.replace(score, codes=tuple(codes))


def _first_suites(score: MatchScore, counts: Sequence[int]) -> MatchScore:
    """The match with the present testers' suites alone: the first `counts[i]` against program i."""
    rows = tuple(row[:count] for row, count in zip(score.suites, counts, strict=True))
    return dataclasses.replace(score, suites=rows)


def _old_coders_reward(past: PastPlay, played: _Played) -> float | None:
    rewards = [
        code.reward
        for score, places in played.values()
        for code, place in zip(score.codes, places, strict=True)
        if place < past.old_coders and code.reward is not None
    ]
    return float(np.mean(rewards)) if rewards else None


def require_scores(round_index: int, rewards: Rewards) -> None:
    """Single rows may stay without a score; a round without any means that the sandbox is gone: raises SandboxError."""
    if rewards and all(reward is None for reward in rewards):
        raise SandboxError(
            f"round {round_index + 1} must be scored, got no score for any of its {len(rewards)} programs: "
            "the sandbox failed"
        )


def grade_round(arena: Arena, programs: Sequence[ReadProgram], rules: RoundRules, round_index: int) -> Score:
    """The golden tests' reward: the share of its question's golden tests that a program passes; with `allow_unsealed`
    the share of its script's tests, where it has one."""
    started = time.perf_counter()
    is_unsealed = [arena.config.allow_unsealed and bool(program.problem.test_script) for program in programs]
    tried = list(zip(programs, is_unsealed, strict=True))
    sealed = iter(arena.grade_many([(p.problem, (p.response,), p.problem.golden_tests) for p, no in tried if not no]))
    scripted = [(p.problem, (p.response,)) for p, yes in tried if yes]
    unsealed = iter(arena.grade_scripts(scripted) if scripted else ())
    grades = [next(unsealed if by_script else sealed)[0] for by_script in is_unsealed]
    rewards = [None if grade.executes is None else grade.share for grade in grades]
    require_scores(round_index, rewards)
    score = Score((program_rows(programs, rewards),), {})
    executes = [None if grade.executes is None else float(grade.executes) for grade in grades]
    metrics = {"coder_reward": mean(rewards), "executes": mean(executes)}
    if arena.config.allow_unsealed:
        metrics["unsealed"] = mean([float(each) for each in is_unsealed])
    metrics["seconds_scoring"] = time.perf_counter() - started
    metrics["coder_zero_groups"] = zero_groups(score.rewards.values())
    metrics |= hollow_metrics([(program.problem, program.source) for program in programs])
    if rules.tries_hidden_tests(round_index):
        problems, responses = [each.problem for each in programs], [each.response for each in programs]
        metrics |= hidden_metrics(arena, problems, responses, rewards)
    return dataclasses.replace(score, metrics=metrics)
