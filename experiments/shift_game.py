"""The shift game: the coder's bugs move by how programs are written; must the tester learn beside it? docs/results.md.

    python experiments/shift_game.py --quick --output runs/shift        3 seeds over 3 bases
    python experiments/shift_game.py --output runs/shift                10 seeds over 5 bases; goes on where it was
    python experiments/shift_game.py --output runs/shift --again CELL   the same numbers, or within the interval?

The programs and tests are those of the shift family (problems/families/shift.py), the seats are softmax policies over
them (matrix_learning.py), paid and taught by the library. What a policy knows are its features: a coder knows a rule's
place and phrase; a tester knows places, and of the program its comparisons, or, where `reads`, its slips. Nothing is
executed, since the family says what its programs return. Does not say what a language model would do.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codea1_env.extras import for_script
from codea1_env.terminal import Parser

with for_script("train"):
    import numpy as np
    from matrix_learning import Arm, Game, Policies, softmax
    from matrix_pools import Flags, Floats, Ints, Questions
    from shift_report import expected_of, kept, tables

    from codea1_env.problems.families.bands import OFF_BY_ONE, PHRASES, BandQuestion
    from codea1_env.problems.families.shift import RULES, shift_questions
    from codea1_env.training.run.provenance import code_revision, processor
    from codea1_env.whole_files import write_whole

ROUNDS, EVERY, EARLY = 120, 10, 30
"""Of a run; between looks; after which the early tester is taken."""
TRAIN, HELD_OUT, QUIET = 480, 150, 20
"""Questions of a run; those it is measured on, the same for all; inputs away from thresholds that tests may use."""
SLIP_RATES = (0.7, 0.9)
"""Between which a base draws the rate of each phrase."""
AIM_SPREAD = 0.3
"""Standard deviation of a base tester's logits of the three places."""
PROGRAMS = tuple(
    tuple(place for place in range(RULES) if slip[place]) for slip in itertools.product((False, True), repeat=RULES)
)
"""Of a question: the places at which each slips; the first is right."""
SLIPS = np.array([[place in slips for place in range(RULES)] for slips in PROGRAMS])
CODE_A1 = Arm("code_a1", alpha=0.25, tests=1, coder_rate=0.5, tester_rate=0.5)
ARMS = (
    CODE_A1,
    replace(CODE_A1, name="frozen_trained", tester_learns=False, starts_from="code_a1"),
    replace(CODE_A1, name="frozen_early", tester_learns=False, starts_from="early"),
    replace(CODE_A1, name="frozen", tester_learns=False),
    replace(CODE_A1, name="black_box", white_box=False),
    replace(CODE_A1, name="no_book", book=False),
)


@dataclass(slots=True)
class Habits(Policies):
    """Policies whose coder begins with a programmer's habits, which add to the logits and are not learnt."""

    habits: Floats
    """Log-probability of every program as the base writes it, (Q, P)."""

    def program_logits(self, questions: Questions, chosen: Ints) -> Floats:
        return Policies.program_logits(self, questions, chosen) + self.habits[chosen]


def questions_of(drawn: Sequence[BandQuestion], reads: bool, seed: int) -> Questions:
    """The arrays of the game. Tests: a threshold each, and quiet inputs; all with the right value, then a wrong one."""
    count, width = len(drawn), RULES + QUIET
    phrases, comparisons = sorted(PHRASES), sorted(OFF_BY_ONE)
    by_phrase = np.zeros((count, RULES, len(phrases)))
    seen = np.zeros((count, len(PROGRAMS), RULES, len(comparisons)))
    for row, question in enumerate(drawn):
        for place, rule in enumerate(question.rules):
            by_phrase[row, place, phrases.index(rule.phrase)] = 1
            for program, slips in enumerate(SLIPS):
                written = OFF_BY_ONE[rule.comparison] if slips[place] else rule.comparison
                seen[row, program, place, comparisons.index(written)] = 1
    slipped = np.broadcast_to(SLIPS, (count, *SLIPS.shape)).astype(float)
    # As one who writes from the first rule to the last: of every rule whether it slips, and whether one before it does.
    before = (SLIPS.cumsum(1) - SLIPS > 0).astype(int)
    ways = np.eye(4)[2 * before + SLIPS]  # (P, places, ways)
    by_phrase = np.concatenate([by_phrase, np.ones((count, RULES, 1))], axis=2)  # and whatever the phrase
    known = np.einsum("prw,qrf->qprwf", ways, by_phrase).reshape(count, len(PROGRAMS), -1)
    fails = np.zeros((count, len(PROGRAMS), 2 * width), bool)
    fails[:, :, :RULES] = fails[:, :, width : width + RULES] = SLIPS
    kept = np.tile(np.arange(2 * width) < width, (count, 1))
    aims = np.zeros((2 * width, RULES + 1))
    aims[:RULES, :RULES] = aims[width : width + RULES, :RULES] = np.eye(RULES)
    aims[:width, RULES] = 1  # states the right value
    every: Flags = np.ones((count, 2 * width), bool)
    return Questions(
        tuple(f"{seed} {row}" for row in range(count)),
        (),
        programs=np.ones((count, len(PROGRAMS)), bool),
        executes=np.ones((count, len(PROGRAMS)), bool),
        tests=every,
        kept=kept,
        run=every,
        calls=np.tile(np.arange(2 * width) % width, (count, 1)),
        golden=np.tile((np.arange(2 * width) >= RULES) & (np.arange(2 * width) < RULES + 3), (count, 1)),
        fails=fails,
        written=~fails & kept[:, None],
        hidden=~fails[:, :, :width],
        hidden_calls=every[:, :width],
        program_features=known,
        shapes=slipped if reads else seen.reshape(count, len(PROGRAMS), -1),
        test_features=np.tile(aims, (count, 1, 1)),
    )


def habits_of(drawn: Sequence[BandQuestion], strength: float, base: int) -> Floats:
    """Log-probabilities of programs by base `base`, (Q, P): as `shift.written`, with a rate of its own a phrase."""
    rates = dict(zip(sorted(PHRASES), np.random.default_rng([7, base]).uniform(*SLIP_RATES, len(PHRASES)), strict=True))
    found = np.zeros((len(drawn), len(PROGRAMS)))
    for row, question in enumerate(drawn):
        for program, slips in enumerate(SLIPS):
            for place, rule in enumerate(question.rules):
                rate = rates[rule.phrase] * (1 - strength * bool(slips[:place].any()))
                found[row, program] += math.log(max(rate if slips[place] else 1 - rate, 1e-9))
    return found


def base_policies(questions: Questions, habits: Floats, base: int) -> Habits:
    """What both seats of base `base` begin with: habits, and a tester whose aim is hardly any."""
    fresh = Policies.untrained(questions)
    fresh.tester[:RULES] = np.random.default_rng([8, base]).normal(0.0, AIM_SPREAD, RULES)
    return Habits(fresh.coder, fresh.tester, fresh.attack, habits)


@dataclass(frozen=True, slots=True)
class Setting:
    """Of the game."""

    strength: float
    """0 to 1: how far one slip keeps the later rules right."""
    reads: bool = False
    """Whether a white-box tester's features name the slips of the program."""
    tester_rate: float = CODE_A1.tester_rate
    tests: int = 1
    """Of a suite."""

    @property
    def name(self) -> str:
        slow = f", tester rate {self.tester_rate:g}" if self.tester_rate != CODE_A1.tester_rate else ""
        many = f", {self.tests} tests" if self.tests > 1 else ""
        return f"strength {self.strength:g}{', reads' if self.reads else ''}{slow}{many}"


SETTINGS = (
    Setting(1.0),
    Setting(0.0),
    Setting(1.0, reads=True),
    Setting(0.5),
    *(Setting(strength, tester_rate=rate) for rate in (0.2, 0.1) for strength in (1.0, 0.0)),
    *(Setting(strength, tests=RULES) for strength in (1.0, 0.0)),
)
"""In the order in which they are run; the first two with all arms."""
FEW = ARMS[:4]


def run_place(setting: Setting, base: int, seed: int, arms: Sequence[Arm] = ARMS) -> dict[str, dict[str, Any]]:
    """All arms of one base and seed: their measures, and looks at what is left and who could find it."""
    drawn = [*shift_questions("train", TRAIN, seed), *shift_questions("held_out", HELD_OUT, 0)]
    questions, habits = questions_of(drawn, setting.reads, seed), habits_of(drawn, setting.strength, base)
    testers: dict[str, Policies] = {}
    found = {}
    for arm in arms:
        began = time.process_time()
        policies = base_policies(questions, habits, base)
        if arm.starts_from:
            begun = testers[arm.starts_from]
            policies.tester, policies.attack = begun.tester.copy(), begun.attack.copy()
        arm = replace(arm, tester_rate=setting.tester_rate, tests=setting.tests)
        game, looks = Game(questions, arm, np.arange(TRAIN), seed, policies), []
        for number in range(ROUNDS + 1):
            if number % EVERY == 0:
                looks.append(_look(questions, policies))
            if arm.name == "code_a1" and number == EARLY:
                testers["early"] = Policies(policies.coder, policies.tester.copy(), policies.attack.copy())
            if number < ROUNDS:
                game.round()
        testers[arm.name] = policies
        curve = [look["hidden"] for look in looks]
        found[arm.name] = {
            "hidden": curve[-1],
            "area": float(np.mean([(a + b) / 2 for a, b in itertools.pairwise(curve)])),
            "reward": float(np.mean(game.coder_rewards[-EVERY:])),
            "looks": looks,
            "seconds": round(time.process_time() - began, 2),
        }
    return found


def _look(questions: Questions, policies: Policies) -> dict[str, Any]:
    """On held-out questions, exactly: right programs; programs that slip at each place; and the probability that one
    test, written against a program that slips there alone, kills it."""
    chosen = np.arange(TRAIN, TRAIN + HELD_OUT)
    shares = softmax(policies.program_logits(questions, chosen)).mean(0)
    alone = np.array([PROGRAMS.index((place,)) for place in range(RULES)])
    aims = softmax(policies.test_logits(questions, chosen, np.tile(alone, (HELD_OUT, 1))))  # (Q, places, tests)
    kills = (aims * questions.fails[chosen[:, None], alone]).sum(2).mean(0)
    return {
        "hidden": round(float(shares[0]), 5),
        "slips": [round(float(share), 4) for share in shares @ SLIPS],
        "kills": [round(float(share), 4) for share in kills],
    }


def main() -> int:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--output", type=Path, default=Path("runs/shift"), help="where cells and results go. Default: runs/shift")
    add("--bases", type=int, default=5, help="base policies, at least 1. Default: 5")
    add("--seeds", type=int, default=2, help="runs of every base and arm, at least 1. Default: 2")
    add("--workers", type=int, default=2, help="processes, at least 1. Default: 2")
    add("--quick", action="store_true", help="3 bases with one seed each, strengths 0 and 1")
    add("--pilot", action="store_true", help="bases and seeds from 1000 on, which are not counted")
    add("--again", metavar="CELL", help="`strength 1/code_a1/base0-seed0`: run it again and compare")
    given = parser.parse_args()
    for name in ("bases", "seeds", "workers"):
        if getattr(given, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(given, name)}")
    if given.quick:
        given.bases, given.seeds = 3, 1
    if given.again:
        return _again(given.output, given.again)
    folder, first = given.output / "cells", 1000 * given.pilot
    folder.mkdir(parents=True, exist_ok=True)
    # Setting by setting, so that what is cut off leaves whole ones.
    todo = []
    for setting in SETTINGS[:2] if given.quick else SETTINGS:
        for seed, base in itertools.product(range(first, first + given.seeds), range(first, first + given.bases)):
            file = folder / f"{setting.name}, base{base}-seed{seed}.json"
            todo += [] if file.is_file() else [(setting, base, seed, file)]
    with multiprocessing.get_context("spawn").Pool(given.workers) as workers:
        for name in workers.imap(_leave_cell, todo):
            print(name, flush=True)
    cells = [kept(json.loads(file.read_text()), EVERY) for file in sorted(folder.glob("*.json"))]
    write_whole(given.output / "results.json", _as_json(cells))
    write_whole(given.output / "tables.md", tables(cells))
    print(tables(cells))
    return 0


def _leave_cell(work: tuple[Setting, int, int, Path]) -> str:
    """Run all arms of a place and write what they came to."""
    setting, base, seed, file = work
    arms = run_place(setting, base, seed, ARMS if setting in SETTINGS[:2] else FEW)
    content = {"setting": setting.name, "base": base, "seed": seed, "arms": arms}
    write_whole(file, json.dumps(content | _provenance()) + "\n")
    return file.stem


def _provenance() -> Mapping[str, Any]:
    return {
        "revision": code_revision(Path(__file__).parent).get("git", "no checkout")[:12],
        "processor": processor(os.environ),
    }


def _as_json(cells: Sequence[Mapping[str, Any]]) -> str:
    """A line a place, so that a diff can be read."""
    return "[\n" + ",\n".join(json.dumps(cell) for cell in cells) + "\n]\n"


def _again(output: Path, name: str) -> int:
    """Run one arm's cell again, and those that it needs."""
    cells = json.loads((output / "results.json").read_text())
    named = {f"{c['setting']}/{arm}/base{c['base']}-seed{c['seed']}": (c, arm) for c in cells for arm in c["arms"]}
    if name not in named:
        print(f"error: --again must be a cell of {output}/results.json, got {name!r}", file=sys.stderr)
        return 2
    before, arm = named[name]
    (setting,) = [setting for setting in SETTINGS if setting.name == before["setting"]]
    arms = [each for each in ARMS if each.name in before["arms"]]
    now = run_place(setting, before["base"], before["seed"], arms)[arm]
    then, lies_within = before["arms"][arm], True
    print(f"then: {before['processor']}\nnow:  {processor(os.environ)}")
    for measure in ("hidden", "area"):
        expected = expected_of(cells, before["setting"], arm, measure)
        within = expected.low <= now[measure] <= expected.high
        lies_within &= within
        print(f"{measure}: {then[measure]!r} {now[measure]!r}, {'within' if within else 'outside'} "
              f"[{expected.low:.3f}, {expected.high:.3f}], where 95 % of new runs are")  # fmt: skip
    return 0 if lies_within else 1


if __name__ == "__main__":
    raise SystemExit(main())
