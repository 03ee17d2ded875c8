"""The command `codea1 play`: a person in one seat, a scripted player in the other, verdicts one by one.

Does not keep a Mistake Book and does not record: for that there is `codea1 tournament --record`.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import secrets
import shlex
import sys
import time

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match, MatchScore, SuiteScore
from codea1_env.checks import require_whole
from codea1_env.cli.common import add_sandbox
from codea1_env.cli.players import add_game, as_coder, as_tester, problems_of
from codea1_env.errors import ConfigurationError, SandboxError
from codea1_env.players import CoderRequest, HumanPlayer, Player, TesterRequest
from codea1_env.players.human import RULE_COLUMNS
from codea1_env.players.player import responses_of
from codea1_env.problems import Problem, problems_of_every_kind
from codea1_env.reading.responses import read_program
from codea1_env.records.matches import write_score
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import JudgedTest, Status, Verdict
from codea1_env.rewards.terms import SuiteTerms
from codea1_env.sandbox import open_sandbox
from codea1_env.terminal import Painter, columns_of, printable

DESCRIPTION = (
    "Play one game. As the tester you see a question and a program, and write asserts that are right and that the "
    "program fails. As the coder you write the program, and a scripted tester attacks it. You get the same verdicts "
    "and rewards as a model."
)
EXAMPLES = """\
examples:
  codea1 play                                  # a program with a bug: break it
  codea1 play --seat coder --opponent fuzz      # write a program that survives
  codea1 play --problem bundled/run-lengths --seed 3
  printf 'assert run_lengths("") == []\\n.\\n' | codea1 play --problem bundled/run-lengths --json

An answer ends with a line that holds only a dot, or with Ctrl-D. A terminal shows colours unless NO_COLOR is set.
"""
OPPONENTS = {"tester": ("mutant", "oracle"), "coder": ("golden", "fuzz", "random")}
"""By the person's seat; the first is the default."""
PAUSE_S = 0.35
"""Between two verdicts, on a terminal."""
_MEANINGS = {
    Status.KEPT: "valid",
    Status.WRONG_EXPECTED: "states a wrong value",
    Status.DUPLICATE: "repeats a call",
    Status.RAISES: "the reference raises",
    Status.FLAKY: "the reference does not repeat itself",
    Status.REJECTED: "no test",
    Status.SURPLUS: "beyond the first K",
}
_IGNORED = {
    "text": "prose",
    "assert_in_text": "prose with an assert in it",
    "main_block": "`if __name__` block",
    "too_long": "text beyond the longest answer",
    "too_much": "text that takes too long to read",
    "assert_outside_fences": "assert outside the fenced blocks",
}


def add_play(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_play)
    rewards = RewardConfig()
    names = sorted({name for each in OPPONENTS.values() for name in each})
    parser.add_argument(
        "--seat", choices=("tester", "coder"), default="tester", help="the seat that you play (default: tester)"
    )
    parser.add_argument("--opponent", choices=names, help="a coder (mutant, oracle) if you are the tester, "
                        "a tester (golden, fuzz, random) if you are the coder (default: mutant; golden)"
                        )  # fmt: skip
    add_game(parser)
    parser.add_argument(
        "--problem",
        metavar="ID",
        help="the problem to play, from the set or from those that show each kind, such as kinds/shelf (default: "
        "drawn by the seed)",
    )
    parser.add_argument("--seed", metavar="N", type=int, help="seed of the problem and of the other seat's answers, "
                        ">= 0 (default: a new one each time, which is shown)")  # fmt: skip
    parser.add_argument("--alpha", type=float, default=rewards.alpha, help="weight of validity in the tester's reward, "
                        f"in [0, 1] (paper and default: {rewards.alpha})")  # fmt: skip
    add_sandbox(parser, workers=False)
    parser.add_argument("--json", action="store_true", help="the outcome as one JSON object, as `codea1 score` writes "
                        "it, instead of text")  # fmt: skip


def _play(options: argparse.Namespace) -> int:
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    require_whole("--seed", seed, 0)
    config = RewardConfig(alpha=options.alpha, suite_size=options.suite_size)
    opponent = _opponent(options)
    problem = _problem(options, seed)
    with open_sandbox(options.sandbox) as sandbox:
        # Whoever pipes an answer in does not read the question.
        writer = sys.stderr if sys.stdin is not None and sys.stdin.isatty() else io.StringIO()
        person = HumanPlayer("you", writer=writer, suite_size=options.suite_size)
        coder, tester = (person, opponent) if options.seat == "coder" else (opponent, person)
        code = responses_of(coder, [CoderRequest(problem)], seed=seed)[0][0].text
        program = read_program(code, problem.entry_point).source
        suite = responses_of(tester, [TesterRequest(problem, program)], seed=seed)[0][0].text
        (score,) = Arena(sandbox, config).play([Match(problem, (code,), ((suite,),))], update_book=False)
    if options.json:
        sys.stdout.write(write_score(score).decode())
    else:
        _show(score, options, seed)
    (game,) = score.suites[0]
    if game.terms is None:
        raise SandboxError(f"the game must be scored, got no verdicts: {game.duel.infrastructure_error}")
    return 0


def _opponent(options: argparse.Namespace) -> Player:
    choices = OPPONENTS[options.seat]
    name = options.opponent or choices[0]
    if name not in choices:
        raise ConfigurationError(
            f"--opponent must be {' or '.join(choices)} if you are the {options.seat}, got {name}; it "
            "plays against the other --seat"
        )
    return (as_coder if options.seat == "tester" else as_tester)(name, options)


def _problem(options: argparse.Namespace, seed: int) -> Problem:
    problems = problems_of(options)
    if options.problem is None:
        return random.Random(seed).choice(problems)
    for problem in problems if options.problems else (*problems, *problems_of_every_kind()):
        if problem.problem_id == options.problem:
            return problem
    some = ", ".join(problem.problem_id for problem in problems[:5])
    raise ConfigurationError(f"--problem must be an id of the problems, such as {some}, got {options.problem}")


def _show(score: MatchScore, options: argparse.Namespace, seed: int) -> None:
    """Verdict after verdict, then what both seats earn."""
    paint = Painter(sys.stdout, os.environ)
    pause_s = PAUSE_S if sys.stdout.isatty() else 0.0
    (game,) = score.suites[0]
    _say(paint("-" * min(RULE_COLUMNS, columns_of(sys.stdout) or RULE_COLUMNS), "dim"))
    whose = "your program" if options.seat == "coder" else "the program"
    if game.duel.executes is False:
        _say(paint(f"{whose} does not load, so it fails every test", "red" if options.seat == "coder" else "green"))
    if not game.duel.tests:
        _say("no assert was found in the answer")
    for number, test in enumerate(game.duel.tests, 1):
        time.sleep(pause_s)
        _say(_told(number, test, whose, options.seat, paint))
    if game.duel.ignored:
        reasons = ", ".join(f"{_IGNORED.get(reason, str(reason))} ({count})" for reason, count in game.duel.ignored)
        _say(paint(f"other lines of the answer were not read as tests: {reasons}", "yellow"))
    if game.terms is not None:
        _say("")
        for line in _rewards(score, game, game.terms, options.seat, paint):
            _say(line)
    _say(paint(f"play the same game again: {_again(options, score.problem_id, seed)}", "dim"))


def _again(options: argparse.Namespace, problem_id: str, seed: int) -> str:
    """The command, without what is left out by default."""
    command = ["codea1", "play", "--seat", options.seat, "--problem", problem_id, "--seed", str(seed)]
    rewards = RewardConfig()
    for name, default in (
        ("problems", None), ("opponent", None), ("suite_size", rewards.suite_size), ("alpha", rewards.alpha)
    ):  # fmt: skip
        if (value := getattr(options, name)) not in (None, default):
            command += ["--" + name.replace("_", "-"), str(value)]
    return shlex.join(command)


def _told(number: int, test: JudgedTest, whose: str, seat: str, paint: Painter) -> str:
    what = _MEANINGS[test.status] + (f": {test.reason}" if test.reason else "")
    if test.status is Status.WRONG_EXPECTED and test.expected is not None:
        what += f"; right is {_short(test.expected)}"
    told = paint(what, "green" if test.status is Status.KEPT else "yellow")
    if test.verdict is not None:
        is_pass = test.verdict is Verdict.PASS
        is_good = is_pass == (seat == "coder")
        outcome = f"{whose} passes" if is_pass else f"{whose} FAILS ({test.verdict})"
        told += ", " + paint(outcome, "green" if is_good else "red", *(() if is_pass else ("bold",)))
    return f"{number:3}  {_short(test.source)}\n     {told}"


def _short(text: str) -> str:
    line = printable(" ".join(text.split()))
    return line if len(line) <= 100 else line[:97] + "..."


def _rewards(score: MatchScore, game: SuiteScore, terms: SuiteTerms, seat: str, paint: Painter) -> list[str]:
    tester = paint("R_T, yours" if seat == "tester" else "R_T, the tester's", "bold", "cyan")
    coder = paint("R_C, yours" if seat == "coder" else "R_C, the coder's", "bold", "cyan")
    parts = f"{terms.alpha:g} * {terms.validity:.3f} (valid) + {1 - terms.alpha:g} * {terms.adversarial:.3f} (breaking)"
    penalty = f" - {terms.nonprintable:.3f} (unprintable)" if terms.nonprintable else ""
    earned = f"{parts}{penalty}" if terms.executes else f"nothing, because the program does not load{penalty}"
    passed = f"{terms.passed} of {terms.v} valid tests passed" if terms.v else "no valid test to pass"
    return [
        f"{tester}: {paint(_number(game.reward), 'bold')} = {earned}",
        f"{coder}: {paint(_number(score.codes[0].reward), 'bold')} = {passed}",
    ]


def _number(reward: float | None) -> str:
    return "none" if reward is None else f"{reward:.3f}"


def _say(line: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    print(line.encode(encoding, "backslashreplace").decode(encoding), flush=True)
