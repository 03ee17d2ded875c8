"""The command `codea1 tournament`: coders against testers, every pair on the same questions, and their ratings.

Exit codes: 0 done, 1 some games have no result or a player gave no answer, 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import random
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from codea1_env.arena.arena import Arena
from codea1_env.arena.failures import apart
from codea1_env.arena.match import Match, MatchScore
from codea1_env.checks import require, require_whole
from codea1_env.cli.common import add_sandbox, claim, require_at_least_one, require_place, say, say_going_on
from codea1_env.cli.players import (
    HELP,
    add_game,
    add_models,
    as_coder,
    as_tester,
    problems_of,
    prompts_of,
    require_player,
    sampling_of,
)
from codea1_env.errors import ConfigurationError
from codea1_env.evaluation.ratings import FEWEST
from codea1_env.evaluation.tournament import (
    Standing,
    Tournament,
    TournamentJournal,
    plan_digest,
    play_tournament,
    tournament_plan,
)
from codea1_env.judging.problems.usability import require_judgeable
from codea1_env.players import Player, Sampling
from codea1_env.players.prompts import DEFAULT, find_prompts
from codea1_env.problems import Problem
from codea1_env.records.recording import Recorder, keep_leading
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox import open_sandbox
from codea1_env.terminal import Progress

DESCRIPTION = (
    "Let every coder play every tester on the same questions, and rate them. The tester wins a game when the "
    "program fails a valid test of its suite. The coder wins when the program passes all valid tests, even if "
    "there are none. It is a draw if the program does not load and the suite has no valid test."
)
EXAMPLES = f"""\
players, [NAME=]KIND:
{HELP}
examples:
  codea1 tournament --coder oracle --coder mutant --tester golden --tester fuzz --questions 16
  codea1 tournament --coder hf:./mine --coder base=hf:org/base --tester openai:http://localhost:8000/v1#m --json

An OpenAI-compatible server gets the key in OPENAI_API_KEY, if it is set. Intervals show how much the choice of
questions and the number of games matter; with fewer than {FEWEST} games there is none. After an interruption the same
command continues.
"""
LEGEND = (
    "A tester wins a game if the program fails a valid test of its suite.",
    "Rating: 1500 is average; 400 points more are odds of ten to one. Reward: the mean of a game.",
)
_SPEC = re.compile(r"(?:(?P<name>[^=:/]+)=)?(?P<spec>[a-z]+(?::.+)?)", re.DOTALL)


def add_tournament(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_tournament)
    parser.add_argument("--coder", metavar="PLAYER", action="append", required=True, dest="coders",
                        help="a coder, as below; may be given several times")  # fmt: skip
    parser.add_argument("--tester", metavar="PLAYER", action="append", required=True, dest="testers",
                        help="a tester, as below; may be given several times")  # fmt: skip
    add_game(parser)
    parser.add_argument("--questions", metavar="N", type=int, help="play N of them, drawn by the seed (default: all)")
    parser.add_argument("--samples", metavar="N", type=int, default=1, help="programs of each coder for a question, "
                        ">= 1 (default: 1)")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="draws questions, answers and intervals (default: 0)")
    parser.add_argument("--no-correction", action="store_true", help="a test that states a wrong value is not valid "
                        "(default: it is run with the reference's value)")  # fmt: skip
    add_sandbox(parser)
    parser.add_argument("--record", metavar="GAMES.jsonl", type=Path, help="replace this file and write every game "
                        "to it as it is played; `codea1 replay` plays them again")  # fmt: skip
    parser.add_argument("-o", "--output", metavar="JOURNAL.jsonl", type=Path, help="the journal of answers and games; "
                        "an unfinished tournament in it continues (default: "
                        "tournament-DIGEST.journal.jsonl, here, until the tournament has ended)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    add_models(parser, Sampling())


def _tournament(options: argparse.Namespace) -> int:
    sampling = _checked(options)
    problems = _problems(options)
    known: dict[str, Player] = {}
    coders = _players(options.coders, as_coder, options, known)
    testers = _players(options.testers, as_tester, options, known)
    rewards = RewardConfig(suite_size=options.suite_size, correct_outputs=not options.no_correction)
    plan = tournament_plan(
        coders,
        testers,
        problems,
        rewards,
        samples=options.samples,
        sampling=sampling,
        seed=options.seed,
        prompts=find_prompts(options.prompts or DEFAULT),
    )
    place = options.output or Path(f"tournament-{plan_digest(plan)}.journal.jsonl")
    with claim(("--output", place), ("--record", options.record)), TournamentJournal(place, plan) as journal:
        say_going_on(journal)
        try:
            played = _played(options, coders, testers, problems, rewards, sampling, journal)
        except BaseException:
            if options.output is None and journal.is_bare:  # nobody was asked: there is nothing to go on with
                journal.remove()
            raise
        print(_as_json(played, problems, options) if options.json else _as_text(played), flush=True)
        if options.record is not None:
            say(f"wrote {options.record}; `codea1 view {options.record}` makes a page of it")
        unscored = sum(each.unscored for each in played.coders)
        if unscored:
            say(
                f"codea1: {unscored} of {len(played.games)} games have no result: the sandbox failed; "
                f"the same command plays them again; the others are in {place}"
            )
        elif options.output is None:
            journal.remove()
    return 1 if unscored else 0


def _played(
    options: argparse.Namespace,
    coders: Mapping[str, Player],
    testers: Mapping[str, Player],
    problems: Sequence[Problem],
    rewards: RewardConfig,
    sampling: Sampling,
    journal: TournamentJournal,
) -> Tournament:
    """All games; what the journal has is neither asked nor played again."""
    with ExitStack() as stack:
        recorder: Recorder | None = None
        bars: dict[str, Progress] = {}

        def done(what: str, count: int, total: int) -> None:
            if what not in bars:
                bars[what] = stack.enter_context(Progress(sys.stderr, what, total))
            bars[what].advance(count)

        def begun(matches: Sequence[Match]) -> int:
            nonlocal recorder
            kept = keep_leading(options.record, matches, rewards.by_reference)
            recorder = stack.enter_context(Recorder(options.record, is_claimed=True))
            return kept

        def scored(matches: Sequence[Match], scores: Sequence[MatchScore], config: RewardConfig) -> None:
            if recorder:
                recorder.write(matches, scores, config)
            done("games", len(matches), len(coders) * len(testers) * len(problems) * options.samples - found)

        found = len(journal.games)
        sandbox = open_sandbox(options.sandbox, options.workers)
        arena = stack.enter_context(Arena(sandbox, rewards, on_score=scored, on_failure="apart"))
        if options.problems:

            def judgeable(part: Sequence[Problem]) -> list[None]:
                require_judgeable(part, sandbox, "reference", f"--problems {options.problems}")
                return [None] * len(part)

            apart(sandbox, judgeable, problems)  # one that the sandbox fails has games without a result
        return play_tournament(
            coders,
            testers,
            problems,
            arena,
            samples=options.samples,
            sampling=sampling,
            seed=options.seed,
            on_answers=lambda seat, count, total: done(f"answers of {seat}", count, total),
            journal=journal,
            on_games=begun if options.record else None,
        )


def _checked(options: argparse.Namespace) -> Sampling:
    """How models sample. Raises ConfigurationError for arguments of no use, before anything is loaded."""
    require_at_least_one(options, "samples", "workers", "suite_size")
    require_whole("--seed", options.seed, 0)
    if options.record is not None:
        require_place("--record", options.record, options.problems)
        _require_recording(options.record)
    if options.output is not None:
        require_place("--output", options.output, options.problems, options.record)
    elif not os.access(".", os.W_OK):
        raise ConfigurationError(
            "the folder where the command runs must be one that can be written, for the journal, got "
            f"{Path.cwd()}; name a file with --output"
        )
    sampling = sampling_of(options)
    prompts_of(options, [_spec(named) for named in (*options.coders, *options.testers)])
    for seat, specs in (("coder", options.coders), ("tester", options.testers)):
        for named in specs:
            require_player(_spec(named), seat)
    return sampling


def _require_recording(path: Path) -> None:
    """Raise ConfigurationError where --record would take the place of something else than a recording."""
    start = b""
    if path.exists():
        with path.open("rb") as file:
            start = file.read(200)
    if start.strip() and b'"codea1_recording"' not in start:
        raise ConfigurationError(f"--record must be a new or empty file or a recording, got {path}")


def _problems(options: argparse.Namespace) -> Sequence[Problem]:
    problems = problems_of(options)
    if options.questions is None:
        return problems
    require(1 <= options.questions <= len(problems), "--questions", f"be in [1, {len(problems)}]", options.questions)
    drawn = sorted(random.Random(options.seed).sample(range(len(problems)), options.questions))
    return [problems[place] for place in drawn]


def _spec(named: str) -> str:
    parts = _SPEC.fullmatch(named)
    return parts["spec"] if parts else named


Maker = Callable[[str, argparse.Namespace], Player]


def _players(
    specs: Sequence[str], make: Maker, options: argparse.Namespace, known: dict[str, Player]
) -> dict[str, Player]:
    """By name. Who plays in both seats is loaded once."""
    players: dict[str, Player] = {}
    for named in specs:
        parts, spec = _SPEC.fullmatch(named), _spec(named)
        name = (parts["name"] if parts else None) or named
        if name in players:
            raise ConfigurationError(f"players of a seat must have different names, got {name!r} twice: NAME=PLAYER")
        players[name] = known[spec] if spec in known else make(spec, options)
        if ":" in spec:
            known[spec] = players[name]
    return players


def _as_text(played: Tournament) -> str:
    width = max(len(name) for name in ("tester", *(each.name for each in (*played.coders, *played.testers))))
    lines = []
    for title, standings in (("coder", played.coders), ("tester", played.testers)):
        lines.append(f"{title:<{width}}  rating     95 % interval    won  drawn   lost  reward")
        for each in sorted(standings, key=lambda standing: -standing.rating.points):
            rating = each.rating
            interval = "too few games" if rating.low is None else f"{rating.low:.0f} .. {rating.high:.0f}"
            reward = "-" if each.reward is None else f"{each.reward:.3f}"
            lines.append(f"{each.name:<{width}}  {rating.points:6.0f}  {interval:>16}  {each.won:>5}  {each.drawn:>5}  "
                         f"{each.lost:>5}  {reward:>6}")  # fmt: skip
        lines.append("")
    lines.append("the coder's share of each pair's games (a draw counts half)")
    columns = [max(len(tester.name), 5) for tester in played.testers]
    heads = [f"{tester.name:>{size}}" for tester, size in zip(played.testers, columns, strict=True)]
    lines.append("  ".join([" " * width, *heads]))
    for coder in played.coders:
        shares = [played.share(coder.name, tester.name) for tester in played.testers]
        cells = ["-" if share is None else f"{share:.2f}" for share in shares]
        row = [f"{cell:>{size}}" for cell, size in zip(cells, columns, strict=True)]
        lines.append("  ".join([f"{coder.name:<{width}}", *row]))
    return "\n".join([*lines, "", *LEGEND])


def _as_json(played: Tournament, problems: Sequence[Problem], options: argparse.Namespace) -> str:
    record = {
        "schema": 1,
        "seed": options.seed,
        "samples": options.samples,
        "problems": [problem.problem_id for problem in problems],
        "coders": [_plain(each) for each in played.coders],
        "testers": [_plain(each) for each in played.testers],
        "games": [dataclasses.asdict(game) for game in played.games],
    }
    return json.dumps(record, indent=1)


def _plain(standing: Standing) -> dict[str, object]:
    record = dataclasses.asdict(standing)
    rating = record.pop("rating")
    return {**record, "rating": rating["points"], "low": rating["low"], "high": rating["high"]}
