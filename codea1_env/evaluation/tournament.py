"""Coders against testers: every pair plays the same questions, and everyone gets a rating.

A game is one program of the coder's and one suite that the tester writes against it. Tests are valid as the rewards
count them (`RewardConfig`): the reference repeats itself on them, and their stated value is right or is corrected. The
reference decides whatever the arena's oracle and rewards are: a vote among one program would be none.

    the tester wins   the program fails a valid test; one that does not load fails them all
    the coder wins    the program loads and passes every valid test, also where there is none: a suite without a valid
                      test has tested nothing, and if that were a draw, saying nothing would be the best answer to a
                      strong coder
    a draw            the program does not load, and the suite has no valid test: neither has done anything
    no result         infrastructure failed; such games are counted and rated for nobody

So a coder need not be right to win, only not to be found out: its pass rate on hidden tests is `Arena.grade`'s affair.

Programs are drawn once and meet every tester; a tester answers the same program once. Each pair plays by itself, so
that its games do not depend on who else is there, and the Mistake Book is not written: nobody's failures are tried on
others.

With a journal, answers and games are in it before they are relied on, and what is in it is neither asked nor played
again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match, MatchScore, SuiteScore
from codea1_env.errors import ConfigurationError
from codea1_env.evaluation.ratings import Rating, rate
from codea1_env.players.player import (
    DEFAULT_SAMPLING,
    CoderRequest,
    Player,
    Request,
    Sampling,
    TesterRequest,
    require_players,
    responses_of,
)
from codea1_env.players.prompts import text_digest
from codea1_env.players.templates import Prompts
from codea1_env.problems.problem import Problem
from codea1_env.reading.responses import read_program
from codea1_env.records.journal import Journal, Record
from codea1_env.rewards.code_a1 import RewardConfig

Key = tuple[str, str, str, int]
"""Of a game: coder, tester, problem, and which of the coder's programs."""


class Winner(StrEnum):
    """Who won a game."""

    CODER = "coder"
    TESTER = "tester"
    DRAW = "draw"
    NONE = "none"
    """Infrastructure failed."""


@dataclass(frozen=True, slots=True)
class PlayedGame:
    """One program against one suite."""

    coder: str
    tester: str
    problem_id: str
    outcome: Winner
    coder_reward: float | None
    """R_C for this suite alone, in [0, 1]; None where infrastructure failed."""
    tester_reward: float | None
    """R_T, in [-1, 1]; None where infrastructure failed."""


def tournament_plan(
    coders: Mapping[str, Player],
    testers: Mapping[str, Player],
    problems: Sequence[Problem],
    config: RewardConfig,
    *,
    samples: int,
    sampling: Sampling,
    seed: int,
    prompts: Prompts,
) -> dict[str, Any]:
    """What must be the same for a tournament to go on."""
    asked = "".join(problem.content_hash for problem in problems)
    return {
        "command": "codea1 tournament",
        "coders": {name: [player.name, player.version] for name, player in coders.items()},
        "testers": {name: [player.name, player.version] for name, player in testers.items()},
        "problems": hashlib.sha256(asked.encode()).hexdigest(),
        "rewards": dataclasses.asdict(config),
        "samples": samples,
        "sampling": dataclasses.asdict(sampling),
        "seed": seed,
        "prompts": text_digest(prompts),
    }


def plan_digest(plan: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()[:8]


class TournamentJournal(Journal):
    """What a tournament has done, and the file that it goes into."""

    def __init__(self, path: str | os.PathLike[str], plan: Mapping[str, Any]) -> None:
        """Open or begin it, see `Journal`. `plan`: of `tournament_plan`."""
        self._answers: dict[tuple[str, str, str, str], list[str]] = {}
        self.games: dict[Key, PlayedGame] = {}
        self._samples = plan["samples"]
        super().__init__(path, "codea1 tournament", plan)

    def answers(self, seat: str, name: str, request: Request) -> list[str] | None:
        """What the player that stands under `name` answered to this request; None where it was not asked."""
        return self._answers.get(_place(seat, name, request))

    def append_answers(self, seat: str, name: str, requests: Sequence[Request], texts: Sequence[Sequence[str]]) -> None:
        records = []
        for request, group in zip(requests, texts, strict=True):
            place = dict(zip(("seat", "player", "problem_id", "program"), _place(seat, name, request), strict=True))
            records.append({"kind": "answers", **place, "texts": list(group)})
        self.append(*records)

    def append_games(self, games: Mapping[Key, PlayedGame]) -> None:
        """Those with a result."""
        ended = {key: game for key, game in games.items() if game.outcome is not Winner.NONE}
        self.append(*({"kind": "game", "sample": key[3], **dataclasses.asdict(game)} for key, game in ended.items()))

    def _take(self, record: Record) -> None:
        if record["kind"] == "answers":
            place = (record["seat"], record["player"], record["problem_id"], record["program"])
            texts = list(record["texts"])
            if not all(isinstance(text, str) for text in (*place, *texts)):
                raise TypeError("answers that are no texts")
            if len(texts) != (self._samples if record["seat"] == "coder" else 1):
                raise ValueError(f"{len(texts)} answers")
            self._answers[place] = texts
            # Answers come before games, but for those of a line that was removed: what they had come to is played anew.
            stale = [key for key in self.games if record["player"] in key[:2] and record["problem_id"] == key[2]]
            for key in stale:
                del self.games[key]
        elif record["kind"] == "game":
            fields = {field.name: record[field.name] for field in dataclasses.fields(PlayedGame)}
            for reward in ("coder_reward", "tester_reward"):
                fields[reward] = fields[reward] if fields[reward] is None else float(fields[reward])
            game = PlayedGame(**{**fields, "outcome": Winner(fields["outcome"])})
            self.games[game.coder, game.tester, game.problem_id, int(record["sample"])] = game
        else:
            raise ValueError(f"a record of the kind {record['kind']}")


def _place(seat: str, name: str, request: Request) -> tuple[str, str, str, str]:
    program = request.program.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(program).hexdigest()[:16] if program else ""
    return seat, name, request.problem.problem_id, digest


OnAnswers = Callable[[str, int, int], object]
"""Told of a seat, `coders` or `testers`, how many more of how many answers are there."""
_ASKED_AT_ONCE = 16
"""Requests that a player gets at a time: many enough to be answered side by side, few enough to lose and to say how far
it is."""
_PLAYED_AT_ONCE = 16
"""Games that are scored at a time."""
_CODERS_SHARE = {Winner.CODER: 1.0, Winner.TESTER: 0.0, Winner.DRAW: 0.5}


@dataclass(frozen=True, slots=True)
class Standing:
    """What became of one player."""

    name: str
    version: str
    rating: Rating
    won: int
    drawn: int
    lost: int
    unscored: int
    """Games without a result."""
    reward: float | None
    """Mean reward of the games with a result; None without any."""


@dataclass(frozen=True, slots=True)
class Tournament:
    """What all games came to."""

    coders: tuple[Standing, ...]
    testers: tuple[Standing, ...]
    games: tuple[PlayedGame, ...]
    """Pair by pair, in the order of the players and the questions."""

    def share(self, coder: str, tester: str) -> float | None:
        """Games that the coder won against the tester, draws half, of those with a result; None without any."""
        games = [each.outcome for each in self.games if (each.coder, each.tester) == (coder, tester)]
        shares = [_CODERS_SHARE[each] for each in games if each is not Winner.NONE]
        return sum(shares) / len(shares) if shares else None


def outcome(suite: SuiteScore) -> Winner:
    """Who won the game of a scored suite, by the rules above."""
    terms = suite.terms
    if terms is None:
        return Winner.NONE
    if not terms.executes:
        return Winner.TESTER if terms.v else Winner.DRAW
    return Winner.CODER if terms.passed == terms.v else Winner.TESTER


def play_tournament(
    coders: Mapping[str, Player],
    testers: Mapping[str, Player],
    problems: Sequence[Problem],
    arena: Arena,
    *,
    samples: int = 1,
    sampling: Sampling = DEFAULT_SAMPLING,
    seed: int = 0,
    on_answers: OnAnswers | None = None,
    journal: TournamentJournal | None = None,
    on_games: Callable[[Sequence[Match]], int] | None = None,
) -> Tournament:
    """Players by the names they stand under. `samples`: programs for each question and coder, a game each, >= 1.

    All answers are asked for before the first program runs. `on_games`: gets the games that the journal has from the
    first on, before any is played, and says how many of them, from the first on, need not be played again.

    Raises what players raise (PlayerError, ConfigurationError), OSError, UnusableReference for a problem without a
    working reference, and SandboxUnsafe; SandboxError only where the arena does.
    """
    for what, given in (("coders", coders), ("testers", testers), ("problems", problems)):
        if not given:
            raise ConfigurationError(f"a tournament must have {what}, got none")
    for seat, players in (("coder", coders), ("tester", testers)):
        require_players({f"{seat} {name!r}": player for name, player in players.items()})
    if len({problem.problem_id for problem in problems}) < len(problems):
        raise ConfigurationError("problems must have different ids, got one twice")
    asking = _AskedPlayers(samples, sampling, seed, journal, on_answers or (lambda seat, count, total: None))
    codes = asking.texts("coder", coders, [CoderRequest(problem) for problem in problems])
    attacked = {
        (problem.problem_id, code): TesterRequest(problem, read_program(code, problem.entry_point).source)
        for rows in codes.values()
        for problem, row in zip(problems, rows, strict=True)
        for code in row
    }
    different = {(request.problem.problem_id, request.program): request for request in attacked.values()}
    written = asking.texts("tester", testers, list(different.values()))
    suites = {name: dict(zip(different, texts, strict=True)) for name, texts in written.items()}
    games: dict[Key, Match] = {}
    for coder, rows in codes.items():
        for tester in testers:
            for k in range(samples):
                for problem, row in zip(problems, rows, strict=True):
                    program = attacked[problem.problem_id, row[k]].program
                    (suite,) = suites[tester][problem.problem_id, program]
                    match = Match(problem, (row[k],), ((suite,),), by_reference=True)
                    games[coder, tester, problem.problem_id, k] = match
    return _tournament(coders, testers, problems, list(_played(games, arena, journal, on_games)), seed)


@dataclass(frozen=True, slots=True)
class _AskedPlayers:
    """How players are asked."""

    samples: int
    sampling: Sampling
    seed: int
    journal: TournamentJournal | None
    told: OnAnswers

    def texts(
        self, seat: str, players: Mapping[str, Player], requests: Sequence[Request]
    ) -> dict[str, list[list[str]]]:
        """Of every player, the answers to each request: `samples` programs of a coder, one suite of a tester."""
        n = self.samples if seat == "coder" else 1
        journal = self.journal
        known = {
            name: [journal.answers(seat, name, request) if journal else None for request in requests]
            for name in players
        }
        total = sum(row.count(None) for row in known.values()) * n
        for name, player in players.items():
            left = [place for place, group in enumerate(known[name]) if group is None]
            for at in range(0, len(left), _ASKED_AT_ONCE):
                places = left[at : at + _ASKED_AT_ONCE]
                asked = [requests[place] for place in places]
                part = responses_of(player, asked, n, self.sampling, self.seed)
                texts = [[response.text for response in group] for group in part]
                if journal is not None:
                    journal.append_answers(seat, name, asked, texts)
                for place, group in zip(places, texts, strict=True):
                    known[name][place] = group
                self.told(f"{seat}s", len(places) * n, total)
        return {name: [group for group in row if group is not None] for name, row in known.items()}


def _played(
    games: Mapping[Key, Match],
    arena: Arena,
    journal: TournamentJournal | None,
    on_games: Callable[[Sequence[Match]], int] | None,
) -> Iterator[PlayedGame]:
    known = journal.games if journal is not None else {}
    kept = list(games)
    if on_games is not None:
        leading = list(itertools.takewhile(lambda key: key in known, games))
        kept = leading[: on_games([games[key] for key in leading])]
    ended = {key: known[key] for key in kept if key in known}
    waiting = [key for key in games if key not in ended]
    # One program of a question at a time: a batch could share its time-outs.
    for _, group in itertools.groupby(waiting, key=lambda key: (key[0], key[1], key[3])):
        keys = list(group)
        for at in range(0, len(keys), _PLAYED_AT_ONCE):
            part = keys[at : at + _PLAYED_AT_ONCE]
            scores = arena.play([games[key] for key in part], update_book=False)
            new = {key: _game(key, score) for key, score in zip(part, scores, strict=True)}
            if journal is not None:
                journal.append_games(new)
            ended |= new
    return (ended[key] for key in games)


def _game(key: Key, score: MatchScore) -> PlayedGame:
    suite = score.suites[0][0]
    return PlayedGame(*key[:3], outcome(suite), score.codes[0].reward, suite.reward)


def _tournament(
    coders: Mapping[str, Player],
    testers: Mapping[str, Player],
    problems: Sequence[Problem],
    games: Sequence[PlayedGame],
    seed: int,
) -> Tournament:
    won = np.zeros((len(problems), len(coders), len(testers)))
    lost = np.zeros_like(won)
    axes = [{name: place for place, name in enumerate(each)} for each in (coders, testers)]
    questions = {problem.problem_id: place for place, problem in enumerate(problems)}
    for game in games:
        if game.outcome is not Winner.NONE:
            place = questions[game.problem_id], axes[0][game.coder], axes[1][game.tester]
            won[place] += _CODERS_SHARE[game.outcome]
            lost[place] += 1 - _CODERS_SHARE[game.outcome]
    ratings = iter(rate(won, lost, seed=seed))
    of_coders, of_testers = (
        tuple(_standing(name, player, next(ratings), games, own) for name, player in players.items())
        for players, own in ((coders, Winner.CODER), (testers, Winner.TESTER))
    )
    return Tournament(of_coders, of_testers, tuple(games))


def _standing(name: str, player: Player, rating: Rating, games: Sequence[PlayedGame], own: Winner) -> Standing:
    played = [game for game in games if name == (game.coder if own is Winner.CODER else game.tester)]
    outcomes = [game.outcome for game in played]
    won, drawn, unscored = (outcomes.count(each) for each in (own, Winner.DRAW, Winner.NONE))
    rewards = [game.coder_reward if own is Winner.CODER else game.tester_reward for game in played]
    known = [reward for reward in rewards if reward is not None]
    lost, mean = len(played) - won - drawn - unscored, sum(known) / len(known) if known else None
    return Standing(name, player.version, rating, won, drawn, lost, unscored, mean)
