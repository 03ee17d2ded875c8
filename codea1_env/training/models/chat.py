"""How the questions and programs of a run are put to its models, and which of them are too long to be put.

An instruct model gets the run's prompts (`codea1_env/players/templates.py`), a tiny one the short messages that it was
built for. A conversation that ends with the assistant's words is an answer that was begun: those words are prompt, and
are read with the answer (`begun`). Nothing is ever cut: what is too long is not asked. Loads a tokenizer, and never a
model.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codea1_env.configuration.memory_estimate import longest_prompt
from codea1_env.configuration.model_sections import PretrainedModel
from codea1_env.configuration.presets import Preset
from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra
from codea1_env.language_models.directories import positions_of
from codea1_env.language_models.loading import load_tokenizer
from codea1_env.players.chat import prompt_text
from codea1_env.players.prompts import DEFAULT, find_prompts
from codea1_env.players.templates import Access, Messages, Prompts, begun
from codea1_env.problems.problem import Problem
from codea1_env.training.models import tiny
from codea1_env.training.samples import Prompt

with extra("train", "training needs"):
    from jinja2 import TemplateError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Chat:
    """The messages of both seats."""

    is_instruct: bool
    """For a pretrained instruct model, not for a tiny one."""
    suite_size: int
    """K, where a problem does not say."""
    access: Access = "white-box"
    """Whether the tester sees the program."""
    prompts: Prompts = field(default_factory=lambda: find_prompts(DEFAULT))
    """What an instruct model is asked."""
    stop_at_tests: int = 0
    """Tests that an answer of the tester ends with, where the problem does not say; 0: it goes on."""

    def coder(self, problem: Problem) -> Messages:
        return self.prompts.for_coder(problem) if self.is_instruct else tiny.coder_messages(problem.question)

    def tester(self, problem: Problem, program: str) -> Messages:
        if self.is_instruct:
            return self.prompts.for_tester(problem, program, suite_size=self.suite_size, access=self.access)
        return tiny.tester_messages(problem.question, program if self.access == "white-box" else "")


def chat_of(preset: Preset) -> Chat:
    """The messages that the preset's model understands."""
    access: Access = "black-box" if preset.options.access == "black-box" else "white-box"
    tests = preset.reward.suite_size
    stop = tests if preset.stop_at_tests else 0
    return Chat(isinstance(preset.model, PretrainedModel), tests, access, preset.prompts, stop)


def tokens_of(tokenizer: Any, messages: Messages) -> list[int]:
    """A prompt as the model gets it: up to where its answer goes on. Raises ConfigurationError where the chat template
    has no place for the messages."""
    try:
        text = prompt_text(tokenizer, messages)
    except TemplateError as error:
        roles = ", ".join(dict.fromkeys(message["role"] for message in messages))
        raise ConfigurationError(
            f"the model's chat template must take messages of the roles {roles}, got: {error}; take another model, or "
            "prompts without what it refuses (docs/your-model.md)"
        ) from None
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


@dataclass(frozen=True, slots=True)
class Prompter:
    """Questions and programs as the prompts of a model."""

    chat: Chat
    tokenizer: Any
    longest: int = 0
    """Tokens of a tester's prompt, at most; 0: no limit. Those of the coder are looked at once (`fitting`)."""

    def coder(self, problems: Sequence[Problem]) -> list[Prompt]:
        """Each question."""
        return [self._prompt(self.chat.coder(problem), 0, 0) for problem in problems]

    def tester(self, programs: Sequence[tuple[Problem, str]], longest: int | None = None) -> list[Prompt]:
        """Each question with a program. `longest`: another limit."""
        most, stop = self.longest if longest is None else longest, self.chat.stop_at_tests
        return [
            self._prompt(self.chat.tester(problem, source), most, problem.suite_size_or(stop) if stop else 0)
            for problem, source in programs
        ]

    def _prompt(self, messages: Messages, longest: int, tests: int) -> Prompt:
        tokens, begin = tokens_of(self.tokenizer, messages), begun(messages)
        if longest and len(tokens) > longest:  # a policy that must sample it anyway has something short instead
            return Prompt((self.tokenizer.eos_token_id or 0,), begin, tests, fits=False)
        return Prompt(tuple(tokens), begin, tests)


def require_room(preset: Preset, held_out: Sequence[Problem], roles: Collection[str], base: Path) -> None:
    """Raise ConfigurationError for a prompt of the evaluations that leaves no room for its answer in the model: the
    first of them would only find it once the run has begun."""
    (positions, _), shape = positions_of(base), preset.evaluation
    chat, tokenizer = chat_of(preset), load_tokenizer(base)
    for problem in held_out:
        asked = {"coder": [chat.coder(problem)]}
        asked["tester"] = [chat.tester(problem, mutant) for mutant in problem.mutants[: shape.mutants]]
        for role in roles:
            answer = shape.tokens or preset.grpo.tokens(role)
            longest = max((len(tokens_of(tokenizer, messages)) for messages in asked[role]), default=0)
            if longest + answer > positions:
                raise ConfigurationError(
                    f"prompt and answer of a held-out question must fit into the {positions} positions of the model, "
                    f"got {longest} + {answer} tokens of the {role} for {problem.problem_id!r}; leave it out, or lower "
                    "evaluation.tokens"
                )


def fitting(preset: Preset, problems: Sequence[Problem], base: Path) -> list[Problem]:
    """The problems whose prompt for the coder is not too long (`longest_prompt`); how many are too long is logged.

    `base`: directory of the model that is asked. Raises ConfigurationError where too few remain for a round.
    """
    limit = longest_prompt(preset, "coder")
    chat, tokenizer = chat_of(preset), load_tokenizer(base)
    for problem in problems[:1]:
        tokens_of(tokenizer, chat.tester(problem, ""))  # or its template is refused rounds later
    questions = [problem for problem in problems if len(tokens_of(tokenizer, chat.coder(problem))) <= limit]
    if len(questions) < len(problems):
        left_out = len(problems) - len(questions)
        _log.warning("%d of %d questions are left out: prompts over %d tokens", left_out, len(problems), limit)
    if len(questions) < preset.round.questions:
        raise ConfigurationError(
            f"the questions whose prompt fits must be at least those of a round ({preset.round.questions}), got "
            f"{len(questions)} of {len(problems)}; raise round.coder_prompt_tokens or model.context, which "
            f"allow {limit}, or ask fewer"
        )
    return questions
