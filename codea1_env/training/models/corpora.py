"""What tiny models are warm-started on: imperfect programs and suites of a problem family, with seeded habits.

Does not run a program: the families know what theirs return. Does not promise that a habit is natural; each is a number
in the preset.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from codea1_env.configuration.presets import Preset
from codea1_env.configuration.run_sections import ProblemsPreset
from codea1_env.problems.families.bands import (
    DOMAIN,
    ENTRY_POINTS,
    OFF_BY_ONE,
    PHRASES,
    BandQuestion,
    BugKind,
    Rules,
    band_questions,
    off_by_one,
)
from codea1_env.problems.families.miniature import RAISED, Composition, miniature_compositions
from codea1_env.problems.families.shift import shift_questions, written
from codea1_env.training.models.tiny import coder_messages, tester_messages

HARD_PHRASES = ("below", "up to", "over", "from")
"""One phrase for each comparison that the base mostly gets wrong."""
HARD_RATE, EASY_RATE = 0.6, 0.25
"""How often the base's comparison is off by one for those phrases, and for the others, at a bug rate of 1."""
OTHER_BUGS: tuple[tuple[BugKind, float], ...] = (("spur", 0.5), ("thr", 0.06))
"""How often a program of the base has one of these, at a bug rate of 1."""
SLIP_RATE = 0.8
"""How often a rule of the shift family slips where nothing before it did, at a bug rate of 1."""
AIMED_SHARE = 0.5
"""Share of an edge suite's inputs that are drawn from those that break the program shown, where its constants do."""
BESIDE_SHARE = 0.15
"""Share of the other edge inputs that lie beside a constant, not on it."""
EDGE, BASIC = "# edge", "# basic"
"""First line of a suite of the bands family: what kind of inputs follow. A comment, worth nothing to the arena."""


@dataclass(frozen=True, slots=True)
class SupervisedExample:
    """One supervised example: chat messages and the answer to learn."""

    messages: list[dict[str, str]]
    answer: str


@dataclass(frozen=True, slots=True)
class Habits:
    """How the imperfect programmer and the hurried tester of the corpus behave at one point of it."""

    bug_rate: float
    edge_share: float
    wrong_share: float


def examples(preset: Preset, count: int) -> Iterator[SupervisedExample]:
    """The first `count` examples of the corpus, each with the probabilities that the preset gives."""
    family = family_of(preset)
    if family == "shift":
        return _shift_examples(preset, count)
    return _band_examples(preset, count) if family == "bands" else _miniature_examples(preset, count)


def family_of(preset: Preset) -> str:
    """The problem family that a tiny model is made for; a run on problem files plays in the miniature's language."""
    return preset.problems.family if isinstance(preset.problems, ProblemsPreset) else "miniature"


def shift_of(preset: Preset) -> float:
    """How far one slip keeps the others away, in the shift family."""
    return preset.problems.shift if isinstance(preset.problems, ProblemsPreset) else 0.0


def band_pieces() -> tuple[str, ...]:
    """The texts that questions, programs and suites of the bands family consist of, numbers included.

    One token each: a number is then the same token wherever it stands, so that it can be found again, and a program
    takes 20 tokens, not 60.
    """
    comparisons = [*OFF_BY_ONE, "=="]
    return (
        *(str(number) for number in range(DOMAIN)),
        *(f"{name}(x): " for name in ENTRY_POINTS),
        *(f"def {name}(x):" for name in ENTRY_POINTS),
        *(f"\nassert {name}(" for name in ENTRY_POINTS),
        *(f"{phrase} " for phrase in PHRASES),
        *(f"\n    if x {comparison} " for comparison in comparisons),
        *(" gives ", "; else ", "; otherwise ", ": return ", "\n    return ", ") == ", EDGE, BASIC),
    )


def _miniature_examples(preset: Preset, count: int) -> Iterator[SupervisedExample]:
    warm, tests = preset.warm_start, preset.reward.suite_size
    rng = random.Random(f"warm start {warm.seed}")
    questions = miniature_compositions("train", warm.problems, warm.seed)
    for index in range(count):
        habits = _habits(preset, index, count)
        composition = rng.choice(questions)
        program = composition.program(rng, habits.bug_rate).strip()
        if rng.random() < warm.code_share:
            yield SupervisedExample(coder_messages(composition.question), program)
        else:
            asserts = [_assert(composition, rng, habits) for _ in range(tests)]
            shown = program if _shows_program(preset, rng) else ""
            yield SupervisedExample(tester_messages(composition.question, shown), "\n".join(asserts))


def _assert(composition: Composition, rng: random.Random, habits: Habits) -> str:
    is_edge = rng.random() < habits.edge_share
    xs = composition.edge_input(rng) if is_edge else composition.typical_input(rng)
    value = composition.run(composition.reference, xs)
    if rng.random() < habits.wrong_share:
        value = composition.run(composition.program(rng, 0.9), xs)
    return str(composition.case(xs, 0 if value is RAISED else value))


def _band_examples(preset: Preset, count: int) -> Iterator[SupervisedExample]:
    warm, tests = preset.warm_start, preset.reward.suite_size
    rng = random.Random(f"warm start bands {warm.seed}")
    questions = band_questions("train", warm.problems, warm.seed)
    for index in range(count):
        habits = _habits(preset, index, count)
        question = rng.choice(questions)
        if rng.random() < warm.code_share:
            program = question.program(_imperfect(question, rng, habits.bug_rate))
            yield SupervisedExample(coder_messages(question.question), program.strip())
        elif _shows_program(preset, rng):
            shown = _imperfect(question, rng, warm.bug_rate)  # also in practice: a tester meets no right programs
            suite = _band_suite(question, rng, habits, tests, shown)
            yield SupervisedExample(tester_messages(question.question, question.program(shown)), suite)
        else:
            suite = _band_suite(question, rng, habits, tests, None)
            yield SupervisedExample(tester_messages(question.question, ""), suite)


def _shift_examples(preset: Preset, count: int) -> Iterator[SupervisedExample]:
    """Testers aim at thresholds alike: nothing tells them where a program slips."""
    warm, tests, strength = preset.warm_start, preset.reward.suite_size, shift_of(preset)
    rng = random.Random(f"warm start shift {warm.seed}")
    questions = shift_questions("train", warm.problems, warm.seed)
    for index in range(count):
        habits = _habits(preset, index, count)
        question = rng.choice(questions)
        if rng.random() < warm.code_share:
            program = question.program(written(question, rng, SLIP_RATE * habits.bug_rate, strength))
            yield SupervisedExample(coder_messages(question.question), program.strip())
        else:
            shown = question.program(written(question, rng, SLIP_RATE * warm.bug_rate, strength))
            suite = _band_suite(question, rng, habits, tests, None)
            yield SupervisedExample(
                tester_messages(question.question, shown if _shows_program(preset, rng) else ""), suite
            )


def _imperfect(question: BandQuestion, rng: random.Random, bug_rate: float) -> Rules:
    """A program as the base writes it: comparisons off by one, depending on the phrase, and now and then worse."""
    rules = question.rules
    for place, rule in enumerate(question.rules):
        rate = HARD_RATE if rule.phrase in HARD_PHRASES else EASY_RATE
        if rng.random() < rate * bug_rate:
            wrong = off_by_one(rule)
            rules = (*rules[:place], wrong, *rules[place + 1 :])
    for kind, rate in OTHER_BUGS:
        if rng.random() < rate * bug_rate:
            rules = question.with_bug(kind, rng, rules)
    return rules


def _band_suite(question: BandQuestion, rng: random.Random, habits: Habits, tests: int, shown: Rules | None) -> str:
    """On random inputs, or, with probability `edge_share`, on constants: often those that break `shown`."""
    is_edge = rng.random() < habits.edge_share
    constants = [*question.thresholds, *(rule.threshold for rule in shown or ())]
    table = question.table(question.rules)
    broken = table if shown is None else question.table(shown)
    breaking = [x for x in constants if broken[x] != table[x]]
    inputs: list[int] = []
    while len(inputs) < tests:
        if not is_edge:
            x = rng.randrange(DOMAIN)
        elif breaking and rng.random() < AIMED_SHARE:
            x = rng.choice(breaking)
        else:
            x = rng.choice(constants)
            if rng.random() < BESIDE_SHARE:
                x = min(DOMAIN - 1, max(0, x + rng.choice((-1, 1))))
        if x not in inputs or rng.random() < 0.02:  # now and then a hurried tester repeats itself
            inputs.append(x)
    values = [rng.choice(question.values) if rng.random() < habits.wrong_share else table[x] for x in inputs]
    asserts = [str(question.case(x, value)) for x, value in zip(inputs, values, strict=True)]
    return "\n".join([EDGE if is_edge else BASIC, *asserts])


def _habits(preset: Preset, index: int, count: int) -> Habits:
    """Of example `index` of `count`: those of practice in the first ones, then the base's own."""
    warm = preset.warm_start
    if index < warm.practice_share * count:
        return Habits(warm.practice_bug_rate, warm.practice_edge_share, warm.wrong_share)
    return Habits(warm.bug_rate, warm.edge_share, warm.wrong_share)


def _shows_program(preset: Preset, rng: random.Random) -> bool:
    """Whether a suite's prompt has the program: as the run's tester will see it, or, for one base of both kinds of
    tester, by `blind_share`."""
    blind = preset.warm_start.blind_share
    return rng.random() >= blind if blind else preset.options.access == "white-box"
