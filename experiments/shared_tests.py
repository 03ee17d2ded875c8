"""How well the rewards of recorded games rank the programs of a question, by who meets which suite.

    python experiments/shared_tests.py RUN/duels/*.jsonl --truth derived.jsonl

Each game is scored again: every program by the suites against it alone, by all suites of its question, and by those
against few of its programs, which are chosen as `selection: ahead` does. A reward is as good as it correlates, within a
question, with the share of the question's tests in `--truth` that a program passes; equal rewards correlate by 0.
Questions all of whose programs pass as many are left out. Replays do not count.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from codea1_env import Arena, Codea1Error, Match, Problem, open_sandbox, read_problems
from codea1_env.configuration.options import Options
from codea1_env.reading.responses import read_program
from codea1_env.records.recording import RecordedMatch, read_recording
from codea1_env.terminal import Parser, markdown_table
from codea1_env.training.round.rules import RoundRules

FEW = 2
"""Programs of a question that suites are written against in the last row."""


def main() -> None:
    parser = Parser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("games", type=Path, nargs="+", metavar="RECORDING", help="JSON lines of a run's `duels`")
    parser.add_argument("--truth", type=Path, required=True, help="JSON lines of the same problems with more tests")
    options = parser.parse_args()
    try:
        truth = {problem.problem_id: problem for problem in read_problems(options.truth)}
        games = [game for file in options.games for game in read_recording(file.read_bytes().splitlines())]
        if not games:
            raise SystemExit("error: RECORDING must have games, got none")
        if lacking := sorted({game.match.problem.problem_id for game in games} - truth.keys()):
            raise SystemExit(f"error: --truth must have every question that was played, got none for {lacking[0]}")
        print(table(correlations(games, truth), [len(_suites(game.match)) for game in games]))
    except (OSError, Codea1Error) as error:
        raise SystemExit(f"error: {error}") from None


def correlations(games: Sequence[RecordedMatch], truth: dict[str, Problem]) -> dict[str, list[float]]:
    """By reward, a value in [-1, 1] for each question whose programs differ."""
    matches = [game.match for game in games]
    own = dataclasses.replace(games[0].config, coder_tests="own", replay_limit=0)
    union = dataclasses.replace(own, coder_tests="union")
    with open_sandbox() as sandbox:
        arena = Arena(sandbox, own)
        passed = [_shares(arena, match, truth[match.problem.problem_id]) for match in matches]
        found = {
            "suites against it": _rewards(arena, matches),
            "all suites of the question": _rewards(Arena(sandbox, union), matches),
            f"suites against {FEW} of the programs": _rewards(Arena(sandbox, union), [_ahead(m) for m in matches]),
            "golden tests": [_shares(arena, match, match.problem) for match in matches],
        }
    return {
        name: [_correlation(mine, true) for mine, true in zip(rows, passed, strict=True) if np.ptp(true) > 0]
        for name, rows in found.items()
    }


def table(found: dict[str, list[float]], suites: Sequence[int]) -> str:
    """Means over questions with standard errors, and each row's difference from the first."""
    first = np.array(next(iter(found.values())))
    if len(first) < 2:
        raise SystemExit(f"error: RECORDING must have two questions whose programs differ, got {len(first)}")
    rows = [(name, _with_error(np.array(mine)), _with_error(np.array(mine) - first)) for name, mine in found.items()]
    shown = markdown_table(("a program is paid by", "correlation", "minus the first"), rows)
    return f"{len(first)} questions, {np.mean(suites):.1f} suites each\n\n{shown}"


def _with_error(values: np.ndarray) -> str:
    return f"{values.mean():.3f} ± {values.std(ddof=1) / len(values) ** 0.5:.3f}"


def _rewards(arena: Arena, matches: Sequence[Match]) -> list[np.ndarray]:
    scores = arena.play(matches, update_book=False)
    return [np.array([code.reward for code in score.codes], dtype=float) for score in scores]


def _shares(arena: Arena, match: Match, problem: Problem) -> np.ndarray:
    return np.array([grade.share for grade in arena.grade(problem, match.codes, problem.golden_tests)])


def _ahead(match: Match) -> Match:
    """The match with the suites alone that would have been written with `selection: ahead`."""
    programs = [read_program(code, match.problem.entry_point).source for code in match.codes]
    put = RoundRules(Options(selection="ahead")).put_to_tester(programs, FEW)
    rows = tuple(row if place in put else () for place, row in enumerate(match.suites))
    return dataclasses.replace(match, suites=rows)


def _suites(match: Match) -> list[str]:
    return [text for row in match.suites for text in row]


def _correlation(mine: np.ndarray, true: np.ndarray) -> float:
    return float(np.corrcoef(mine, true)[0, 1]) if np.ptp(mine) > 1e-9 else 0.0


if __name__ == "__main__":
    main()
