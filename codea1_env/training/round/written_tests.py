"""What models that do not change write once: suites against programs of the base coder, validated by the arena.

Supervised fine-tuning learns from them, static supervision takes them for golden tests. The samples depend on the run's
seed and the place of a question among those asked. Does not touch the Mistake Book, and learns nothing.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.configuration.run_sections import RoundPreset
from codea1_env.errors import ConfigurationError, SandboxError
from codea1_env.players.templates import begun, fenced
from codea1_env.problems.jsonl import write_problems
from codea1_env.problems.problem import Problem
from codea1_env.reading.grammar import read_case
from codea1_env.reading.test_case import TestCase
from codea1_env.rewards.duel import ROUNDING, Duel
from codea1_env.training.models.chat import Chat, Prompter, tokens_of
from codea1_env.training.policies.policy import Frozen
from codea1_env.training.round.rounds import read_programs
from codea1_env.training.samples import Row, RowLabel, Sample, texts_of

GOLDEN, SUITES = "golden_tests.jsonl", "suites.jsonl"
"""In the seat's directory: the problems with the tests that a tester wrote; the suites that it learns from, one a line,
the empty ones left out."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WrittenSuite:
    """One suite of the tester, and what the arena left of it."""

    problem: Problem
    program: str
    """What the tester was shown."""
    tests: tuple[TestCase, ...]
    """Those that count, in order, with the reference's values; may be none."""

    def __str__(self) -> str:
        return "\n".join(map(str, self.tests))


def write_suites(
    coder: Frozen, tester: Frozen, arena: Arena, prompter: Prompter, problems: Sequence[Problem], shape: RoundPreset
) -> list[WrittenSuite]:
    """`attacked` programs for each of `problems`, and M suites against each program that fits into the tester's prompt.

    A test counts as it does in the reward: with `reward.correct_outputs` also where the stated value was wrong. Raises
    ConfigurationError where no program fits, and SandboxError where something could not be validated.
    """
    written: list[WrittenSuite] = []
    for chunk, start in enumerate(range(0, len(problems), shape.questions)):
        asked = problems[start : start + shape.questions]
        for policy in (coder, tester):
            policy.begin(chunk)
        programs = read_programs(arena, asked, coder.sample(prompter.coder(asked), shape.attacked))
        shown = prompter.tester([(program.problem, program.source) for program in programs])
        suites = texts_of(tester.sample(shown, shape.suites))
        matches = [
            Match(program.problem, (program.response,), (tuple(text for text in row if text is not None),),
                  by_reference=True)
            for program, row in zip(programs, suites, strict=True)
        ]  # fmt: skip
        for program, score in zip(programs, arena.play(matches, update_book=False), strict=True):
            if any(suite.terms is None for suite in score.suites[0]):
                raise SandboxError("suites must be validated to the end, got no statuses: the sandbox failed")
            written += [
                WrittenSuite(program.problem, program.source, counting_tests(suite.duel)) for suite in score.suites[0]
            ]
    if not written:
        raise ConfigurationError(
            "a program of the base must fit into the tester's prompt, got none that does; raise round."
            f"tester_prompt_tokens ({shape.tester_prompt_tokens}) in the run's config.yaml and go on with --resume"
        )
    return written


def counting_tests(duel: Duel) -> tuple[TestCase, ...]:
    """The tests of a scored suite that the reward counts, with the values that were used: what ran on the program."""
    return tuple(
        TestCase(test.call, test.expected)
        for test in duel.tests
        if test.verdict is not None and test.call is not None and test.expected is not None and test.reason != ROUNDING
    )


def as_golden_tests(written: Sequence[WrittenSuite], problems: Sequence[Problem], folder: Path) -> dict[str, Problem]:
    """By problem_id, the problems with what was written as golden tests, which are left in `folder`, too."""
    replaced = with_written_tests(problems, written)
    folder.mkdir(parents=True, exist_ok=True)
    write_problems(folder / GOLDEN, replaced)
    without = sum(not problem.golden_tests for problem in replaced)
    if without:
        _log.warning("%d of %d problems are left without a golden test: they pay nothing", without, len(replaced))
    return {problem.problem_id: problem for problem in replaced}


def with_written_tests(problems: Sequence[Problem], written: Sequence[WrittenSuite]) -> list[Problem]:
    """The problems with what their suites came to as golden tests: every test that counts once, in order, or none."""
    tests: dict[str, dict[TestCase, None]] = {problem.problem_id: {} for problem in problems}
    for suite in written:
        # In paper fidelity a test may be written in a way that only there is one.
        usable = [test for test in suite.tests if not read_case(test, suite.problem.entry_point).reason]
        tests[suite.problem.problem_id].update(dict.fromkeys(usable))
    return [dataclasses.replace(problem, golden_tests=tuple(tests[problem.problem_id])) for problem in problems]


class Demonstrations:
    """Suites to learn from as they are, gone over again and again; left in `folder`, too."""

    def __init__(self, written: Sequence[WrittenSuite], prompts: Prompter, folder: Path) -> None:
        """Where no suite has a test that counts there is nothing to learn, with a warning. Raises ConfigurationError
        for a tokenizer that does not say where an answer ends."""
        chat, tokenizer = prompts.chat, prompts.tokenizer
        if tokenizer.eos_token_id is None:
            raise ConfigurationError(
                "a tester that learns from suites must learn where they end: its tokenizer must have an eos_token, got "
                "none"
            )
        kept = [suite for suite in written if suite.tests]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SUITES).write_text("".join(map(_line, kept)), encoding="utf-8")
        if not kept:
            _log.warning("none of the base tester's %d suites has a test that counts: it learns nothing", len(written))
        self.share = len(kept) / len(written)
        """Of the suites, those with a test that counts."""
        self._rows = [_row(suite, chat, tokenizer) for suite in kept]
        self._nothing = _row(dataclasses.replace(written[0], tests=()), chat, tokenizer)

    def batch(self, round_index: int, count: int) -> list[Row]:
        """The next `count` of them. Where there are none, as many rows that are not learnt from."""
        if not self._rows:
            return [dataclasses.replace(self._nothing, learns=False)] * count
        first = round_index * count
        return [self._rows[place % len(self._rows)] for place in range(first, first + count)]


def _row(suite: WrittenSuite, chat: Chat, tokenizer: Any) -> Row:
    """The prompt as the tester of the duel sees it, and the suite, whose tokens alone are learnt."""
    messages = chat.tester(suite.problem, suite.program)
    begin, text = begun(messages), str(suite)
    whole = fenced(text) if begin.is_in_fence else text
    is_continued = whole.startswith(begin.answer)  # else the answer is learnt from its own beginning
    prompt = tokens_of(tokenizer, messages if is_continued else begin.messages)
    said = whole.removeprefix(begin.answer) if is_continued else whole
    answer = [*tokenizer(said, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
    label = RowLabel(" ".join(map(str, prompt)), suite.problem.problem_id, "tester")
    return Row(Sample(tuple(prompt), tuple(answer), whole), 1.0, label)


def _line(suite: WrittenSuite) -> str:
    record = {"problem_id": suite.problem.problem_id, "program": suite.program, "suite": str(suite)}
    return json.dumps(record) + "\n"
