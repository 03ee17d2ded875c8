"""A person in either seat: the request is shown, and the answer is read line by line.

Does not edit, colour or check what is typed, and does not promise the same answer twice, whatever the seed.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import TextIO

from codea1_env.checks import require_whole
from codea1_env.errors import PlayerError
from codea1_env.players.player import DEFAULT_SAMPLING, CoderRequest, Request, Response, Sampling
from codea1_env.problems.kind_words import test_form, wanted
from codea1_env.terminal import columns_of, printable, wrapped

RULE_COLUMNS = 72


class HumanPlayer:
    """Asks whoever sits at the terminal.

    An answer ends with a line that holds only a dot, or with the end of the input (Ctrl-D). A dot alone is an empty
    answer. If the input ends before an answer begins, there is no answer and PlayerError is raised. Ctrl-C interrupts
    the game.
    """

    version = "1"

    def __init__(
        self, name: str = "human", *, reader: TextIO | None = None, writer: TextIO | None = None, suite_size: int = 8
    ) -> None:
        """`reader` and `writer`: standard input and standard error, unless others are given, at the time of asking.

        `suite_size`: K, the asserts that a tester is asked for, at least 1, where the problem does not say.
        """
        require_whole("suite_size", suite_size)
        self.name = name
        self._reader = reader
        self._writer = writer
        self._suite_size = suite_size

    def respond(
        self, requests: Sequence[Request], n: int = 1, sampling: Sampling = DEFAULT_SAMPLING, seed: int = 0
    ) -> list[list[Response]]:
        """`n` answers to each request, asked for one after another; `sampling` and `seed` have no meaning here.

        Raises ConfigurationError for n < 1, and PlayerError if the input ends before an answer begins.
        """
        require_whole("n", n)
        answers = []
        for request in requests:
            self._say(_shown(request, self._suite_size, columns_of(self._output)))
            answers.append([Response(self._ask(k, n), False, self.name, self.version) for k in range(n)])
        return answers

    def _ask(self, k: int, n: int) -> str:
        which = f"answer {k + 1} of {n}" if n > 1 else "your answer"
        self._say(wrapped(f"{which}, ended by a line with only a dot, or by Ctrl-D:", columns_of(self._output)) + "\n")
        reader = self._reader or sys.stdin or io.StringIO()  # a closed standard input is none, and has ended
        lines: list[str] = []
        try:
            while (line := reader.readline()) and line.rstrip("\r\n") != ".":
                lines.append(line)
        except UnicodeDecodeError as error:
            raise PlayerError(f"an answer must be text in {error.encoding}, got other bytes: {error.reason}") from None
        if not line:
            self._say("\n")
            if not lines:
                raise PlayerError(f"{self.name} must answer (a dot alone is an empty answer), got the end of the input")
        return "".join(lines)

    @property
    def _output(self) -> TextIO:
        return sys.stderr if self._writer is None else self._writer

    def _say(self, text: str) -> None:
        writer = self._output
        encoding = writer.encoding or "utf-8"
        writer.write(text.encode(encoding, "backslashreplace").decode(encoding))
        writer.flush()


def _shown(request: Request, suite_size: int, columns: int | None) -> str:
    """`columns`: of the terminal, for prose to be wrapped; programs are left as they are."""
    problem = request.problem
    rule = "-" * min(RULE_COLUMNS, columns or RULE_COLUMNS)
    parts = [rule, problem.problem_id, "", wrapped(printable(problem.question.strip()), columns), ""]
    if isinstance(request, CoderRequest):
        if problem.starter_code.strip():
            parts += ["Start from:", problem.starter_code.strip("\n"), ""]
        if request.program:
            parts += ["Your program:", request.program.strip("\n"), ""]
        if request.feedback:
            parts += ["It fails:", request.feedback.strip("\n"), ""]
        parts.append(wrapped(wanted(problem), columns))
    else:
        parts += ["The program to break:", request.program.strip("\n"), ""]
        size = problem.suite_size_or(suite_size)
        parts.append(wrapped(f"Write up to {size} lines: assert {problem.entry_point}(...) == value", columns))
        if problem.kind != "function":
            parts.append(wrapped(test_form(problem), columns))
    return printable("\n".join(parts) + "\n")  # a program is a stranger's text
