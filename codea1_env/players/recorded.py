"""A player that repeats recorded responses, which it looks up by the request.

Does not generate: it is an error if a request was not recorded, or not often enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codea1_env.checks import require_whole
from codea1_env.errors import ConfigurationError
from codea1_env.players.player import DEFAULT_SAMPLING, Request, Response, Sampling, TesterRequest
from codea1_env.reading.messages import answer_texts
from codea1_env.reading.responses import read_program


@dataclass(frozen=True, slots=True)
class RecordedPlayer:
    """Answers both seats' requests from a record, always with the first `n` responses of the record."""

    codes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Raw coder responses by problem id."""
    suites: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    """Raw tester responses by problem id and source of the program that they attack. A program that differs from one of
    these in the white space around it alone, as measures ask about programs, has that one's."""
    name: str = "recorded"
    version: str = ""
    cut_off: Mapping[str, int] = field(default_factory=dict)
    """How many coder responses to a problem ended at the length limit, by problem id. Which ones is not known: the
    first ones are said to be, and of fewer responses the same share."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    """How the responses were sampled, where that is on record: `sampling`, `seed` and the name of `prompts`."""

    _stripped: Mapping[tuple[str, str], Sequence[str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        stripped: dict[tuple[str, str], list[str]] = {}
        for (problem_id, program), texts in self.suites.items():
            stripped.setdefault((problem_id, program.strip()), []).extend(texts)
        object.__setattr__(self, "_stripped", stripped)

    @classmethod
    def from_records(cls, records: Iterable[Mapping[str, Any]], version: str = "") -> RecordedPlayer:
        """Make a player from the input records of `codea1 score`: `problem_id`, `entry_point`, `codes`, and `suites`
        for each code.

        Responses to the same request in several places are put together in their order.
        """
        codes: dict[str, list[str]] = {}
        suites: dict[tuple[str, str], list[str]] = {}
        for record in records:
            problem_id = record["problem_id"]
            texts = answer_texts(record["codes"], f"codes of {problem_id}")
            codes.setdefault(problem_id, []).extend(texts)
            for code, against in zip(texts, record["suites"], strict=True):
                program = read_program(code, record["entry_point"]).source
                written = answer_texts(against, f"suites of {problem_id}")
                suites.setdefault((problem_id, program), []).extend(written)
        return cls(codes, suites, version=version)

    def respond(
        self, requests: Sequence[Request], n: int = 1, sampling: Sampling = DEFAULT_SAMPLING, seed: int = 0
    ) -> list[list[Response]]:
        """The first `n` recorded responses to each request. Raises ConfigurationError if there are fewer."""
        require_whole("n", n)
        return [self._responses(request, n) for request in requests]

    def _responses(self, request: Request, n: int) -> list[Response]:
        texts = self._texts(request, n)
        problem_id, cut_off = request.problem.problem_id, 0
        if not isinstance(request, TesterRequest) and problem_id in self.cut_off:
            cut_off = round(self.cut_off[problem_id] * n / len(self.codes[problem_id]))
        return [Response(text, place < cut_off, self.name, self.version) for place, text in enumerate(texts)]

    def _texts(self, request: Request, n: int) -> Sequence[str]:
        problem_id = request.problem.problem_id
        if isinstance(request, TesterRequest):
            exact = self.suites.get((problem_id, request.program))
            texts = exact or self._stripped.get((problem_id, request.program.strip()), ())
            what = "suites against this program"
            if not self.suites:
                raise ConfigurationError("the record of a tester must hold suites, got one of a coder's answers only")
        else:
            texts, what = self.codes.get(problem_id, ()), "codes"
        if len(texts) < n:
            raise ConfigurationError(
                f"the record must hold at least {n} {what} of {problem_id!r}, got {len(texts)}; ask for fewer "
                "answers, or for questions that it has"
            )
        return texts[:n]
