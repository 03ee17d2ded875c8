"""What a seat is asked, as data: templates that a problem is filled into, and the chat messages that come out.

A template is a system text, paragraphs of the user's message, worked examples, and the words that the answer begins
with. A paragraph may name what is in `PLACEHOLDERS`, in braces; one that names starter code or imports is left out for
a problem that has none. Worked examples are earlier turns of the conversation, put in the template's own words.

A conversation whose last message is the assistant's is an answer that was begun: a model continues it, and whoever
reads the answer reads its beginning, too. Does not know tokenizers or lengths, and does not read files: see
`prompts.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from codea1_env.checks import require_choice, require_whole
from codea1_env.errors import ConfigurationError
from codea1_env.problems.kind_words import DUTIES, ENDINGS, test_form, wanted
from codea1_env.problems.problem import Problem
from codea1_env.reading.answers import fenced_ranges
from codea1_env.reading.parsing import Unparsable, parse, source_of

Messages = list[dict[str, str]]
"""Each with `role` and `content`."""

Access = Literal["white-box", "black-box"]
"""Whether the tester sees the program that it attacks."""

PLACEHOLDERS = {
    "question": "the question",
    "entry_point": "name of the function",
    "starter_code": "fenced; a paragraph with it is left out where there is none",
    "imports": "likewise: the lines that stand above a program",
    "packages": "what may be imported",
    "program": "fenced: the program under attack, or the function to be tested",
    "tests": "`8 tests`, `1 test`",
    "wanted": "what a program must define, as a clause: ``Define the function `f` ``",
    "duty": "what it must do: `return its result`",
    "ending": "what it must not do besides, a sentence with a blank before it; empty for some kinds of problems",
    "test_form": "what a test of this kind of problem looks like, a sentence or two",
    "failed_tests": "`these tests:` and the tests, fenced; or `tests.` where none are shown",
}
_OPTIONAL = ("starter_code", "imports")
_MOST_NAMES = 32
"""That imports may have and still be shown as they are; a star is one."""
_ASSERT_LINE = re.compile(r"^assert\b", re.MULTILINE)
_NAMED = re.compile(r"\{([A-Za-z_]\w*)\}")
_MUST = {
    "coder": ("question",),
    "repair": (),
    "tester": ("question", "program"),
    "black_box": ("question",),
    "unit_tests": ("program",),
}
"""What the paragraphs of each role must name, or the prompt would ask for nothing."""
_MUST_NOT = {
    "coder": ("program", "tests", "failed_tests"),
    "repair": ("program", "tests"),
    "tester": ("failed_tests",),
    "black_box": ("program", "failed_tests"),
    "unit_tests": ("failed_tests",),
}
ROLES = tuple(_MUST)
CLOSED = "\n```\n"
"""Where an answer that was begun inside a block ends, for servers that stop at a text."""


@dataclass(frozen=True, slots=True)
class Shot:
    """A problem and its answer, shown before the real one."""

    question: str
    entry_point: str
    answer: str
    """Taken literally: braces have no meaning in it."""
    program: str = ""
    """The program that the tester is shown."""

    def problem(self) -> Problem:
        return Problem("example", self.question, self.entry_point)


@dataclass(frozen=True, slots=True)
class Template:
    """The prompt of one role."""

    user: tuple[str, ...]
    """Paragraphs, at least one; blank lines come between them."""
    system: str = ""
    """The system message. If it is empty there is none, and a model's chat template may add its own."""
    response: str = ""
    """The beginning of the answer. It is part of the prompt: no seat learns from it, and it is read with the answer."""
    examples: tuple[Shot, ...] = ()

    def messages(self, values: Mapping[str, str]) -> Messages:
        """The chat messages; without system text, examples and response there is one user message."""
        parts = [
            _filled(part, values).rstrip(" ")
            for part in self.user
            if all(values[name] for name in _OPTIONAL if name in _NAMED.findall(part))
        ]
        return [{"role": "user", "content": "\n\n".join(parts)}]


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of all roles: a design, as a run records it."""

    name: str
    coder: Template
    repair: Template
    """Next turn of the coder's conversation; its system text and examples are the coder's."""
    tester: Template
    black_box: Template
    """The tester that does not see the program."""
    unit_tests: Template
    """The tester that is measured on a function that is right."""

    def __post_init__(self) -> None:
        for role in ROLES:
            _check(role, getattr(self, role))

    def for_coder(self, problem: Problem) -> Messages:
        """The messages that ask for a program."""
        return _conversation(self.coder, _values(problem))

    def for_repair(self, problem: Problem, program: str, feedback: str) -> Messages:
        """The messages that ask for a better program. `feedback`: the tests that it failed, an assert on each line."""
        shown = f"these tests:\n\n{fenced(feedback)}" if feedback.strip() else "tests."
        values = {**_values(problem), "failed_tests": shown}
        turn = [{"role": "assistant", "content": fenced(program)}, *self.repair.messages(values)]
        return [*begun(self.for_coder(problem)).messages, *turn, *_begin(self.repair, values)]

    def for_tester(self, problem: Problem, program: str, *, suite_size: int, access: Access = "white-box") -> Messages:
        """The messages that ask for a suite of K asserts that break the program: `suite_size`, where the problem does
        not say. A black-box tester is not shown it."""
        require_choice("access", access, ("white-box", "black-box"))
        if access == "black-box":
            return _conversation(self.black_box, _values(problem, suite_size=suite_size))
        return _conversation(self.tester, _values(problem, program, suite_size))

    def for_unit_tests(self, problem: Problem, program: str, *, suite_size: int) -> Messages:
        """The messages that ask for K unit tests of a function that is right, as in measures of test generation."""
        return _conversation(self.unit_tests, _values(problem, program, suite_size))


@dataclass(frozen=True, slots=True)
class Begun:
    """A conversation, and the answer that was begun in it."""

    messages: Messages
    """The messages; the last one is to be answered."""
    answer: str
    """The beginning of the answer; empty if it was not begun."""

    @property
    def is_in_fence(self) -> bool:
        """Whether the answer was begun with an open fence, so that it ends where that is closed."""
        ranges = fenced_ranges(self.answer)
        return bool(ranges) and ranges[-1][1] == len(self.answer)

    def whole(self, said: str) -> str:
        """The answer with its beginning, and without any text after a block that was begun for the model."""
        text = self.answer + said
        return text[: end_of_block(text)] if self.is_in_fence else text


def begun(messages: Messages) -> Begun:
    """The conversation as it is, or without its last message if that is the assistant's."""
    if messages and messages[-1]["role"] == "assistant":
        return Begun(messages[:-1], messages[-1]["content"])
    return Begun(messages, "")


def end_of_block(text: str) -> int | None:
    """The place after the fence that closes the first fenced block of an answer; None if no block is closed, or if its
    last line may go on."""
    for _, end, _ in fenced_ranges(text):
        line = text.find("\n", end)
        if end < len(text) and line >= 0:
            return line
    return None


def fenced(source: str) -> str:
    """A Markdown block whose fence is longer than any run of backticks inside, so that the source cannot end it."""
    longest = max((len(run) for run in re.findall(r"`+", source)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{source.strip(chr(10))}\n{fence}"


def _conversation(template: Template, values: Mapping[str, str]) -> Messages:
    messages: Messages = [{"role": "system", "content": template.system}] if template.system else []
    for example in template.examples:
        shown = _values(example.problem(), example.program, max(1, len(_ASSERT_LINE.findall(example.answer))))
        messages += [*template.messages(shown), {"role": "assistant", "content": example.answer}]
    return [*messages, *template.messages(values), *_begin(template, values)]


def _begin(template: Template, values: Mapping[str, str]) -> Messages:
    return [{"role": "assistant", "content": _filled(template.response, values)}] if template.response else []


def _values(problem: Problem, program: str = "", suite_size: int = 1) -> dict[str, str]:
    require_whole("suite_size", suite_size)
    tests = problem.suite_size_or(suite_size)
    return {
        "question": problem.question.strip(),
        "entry_point": problem.entry_point,
        "starter_code": fenced(problem.starter_code) if problem.starter_code.strip() else "",
        "imports": fenced(_shown_imports(problem)) if problem.imports.strip() else "",
        "packages": " and ".join(["the standard library", *problem.packages]),
        "program": fenced(program),
        "tests": "1 test" if tests == 1 else f"{tests} tests",
        "wanted": wanted(problem),
        "duty": DUTIES[problem.kind],
        "ending": ENDINGS[problem.kind],
        "test_form": test_form(problem),
        "failed_tests": "",
    }


def _shown_imports(problem: Problem) -> str:
    """Of many imports only those of names that the starter code has; a comment says where the others come from.

    A small model copies 25 lines of imports into a block of their own, and its answer ends with that block.
    """
    try:
        statements = parse(problem.imports).body
    except Unparsable:
        return problem.imports
    imported = [statement for statement in statements if isinstance(statement, ast.Import | ast.ImportFrom)]
    if sum(len(statement.names) for statement in imported) <= _MOST_NAMES:
        return problem.imports
    named = set(re.findall(r"\w+", problem.starter_code))
    shown: list[str] = []
    modules: dict[str, None] = {}
    for statement in imported:
        left_out = [each for each in statement.names if (each.asname or each.name.split(".")[0]) not in named]
        modules.update(dict.fromkeys(_module(statement, alias) for alias in left_out))
        statement.names = [alias for alias in statement.names if alias not in left_out]
        shown += [source_of(statement)] if statement.names else []
    others = [source_of(statement) for statement in statements if statement not in imported]
    more = [f"# and more of {', '.join(modules)}"] if modules else []
    return "\n".join([*shown, *more, *others])


def _module(statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    return alias.name if isinstance(statement, ast.Import) else "." * statement.level + (statement.module or "")


def _filled(text: str, values: Mapping[str, str]) -> str:
    """In one pass: what a problem says is not searched for names."""
    return _NAMED.sub(lambda match: values[match[1]], text)


def _check(role: str, template: Template) -> None:
    if not any(part.strip() for part in template.user):
        raise ConfigurationError(f"{role}.user must be a text or a list of texts, got nothing")
    if role == "repair" and (template.system or template.examples):
        raise ConfigurationError("repair must have user and response only, got more; the coder's conversation goes on")
    allowed = [name for name in PLACEHOLDERS if name not in _MUST_NOT[role]]
    for where, text in (("user", "\n".join(template.user)), ("response", template.response)):
        for name in _NAMED.findall(text):
            if name not in allowed:
                known = ", ".join(f"{{{each}}}" for each in allowed)
                raise ConfigurationError(f"{role}.{where} must name only {known}, got {{{name}}}")
    named = _NAMED.findall("\n".join(template.user))
    for name in _MUST[role]:
        if name not in named:
            raise ConfigurationError(f"{role}.user must name {{{name}}}, got a template without it")
    if "{" in template.system and _NAMED.search(template.system):
        raise ConfigurationError(f"{role}.system must name nothing in braces, got {_NAMED.findall(template.system)[0]}")
