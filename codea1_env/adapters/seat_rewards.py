"""Rewards of single responses: the shared core of adapters whose frameworks pay one response at a time.

    rewards = SeatRewards()
    await rewards.golden(problem, response)           a coder's, by the problem's golden tests
    await rewards.attacked(problem, response)         a coder's, under suites that the tester writes against it
    await rewards.kills(problem, program, response)   a tester's, for its suite against a program

`problem` is a `Problem`, or a line of a file of problems, as text or object: a row of the data set can hold it, so that
no worker needs the file. Rewards are those of `Arena.play` and `Arena.grade`. `paid` is what OpenRLHF and the server
pay, for queries that are a prompt and a response, decoded together with special tokens; what ends a turn is recognized
by its form. Feedback to a tester that may answer again holds nothing of the reference; to a coder it holds failed tests
of the suites, with right values, and no golden test.

Raises FormatError for a row that is no problem. Where infrastructure fails it tries again, and then raises: there is no
score for it. Does not keep a Mistake Book, which would need all workers in one process: see `agents/train_grpo.py`.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from codea1_env.arena.asynchronous import AsyncArena
from codea1_env.arena.match import Match, MatchScore
from codea1_env.checks import json_object, require, require_whole
from codea1_env.envs.episode import failed_tests
from codea1_env.errors import ConfigurationError, FormatError, PackageMissing, SandboxError, SandboxUnsafe
from codea1_env.players.openai_compatible import OpenAIPlayer
from codea1_env.players.player import Player, TesterRequest, responses_of
from codea1_env.problems.problem import Problem
from codea1_env.reading.messages import answer_text
from codea1_env.rewards.duel import JudgedTest, Verdict


def for_coder(score: MatchScore) -> str:
    """How many tests the program passed, and which ones it failed."""
    duels = [suite.duel for suite in score.suites[0]]
    verdicts = [test.verdict for duel in duels for test in duel.tests] + [each.verdict for each in duels[0].replays]
    ran = [verdict for verdict in verdicts if verdict is not None]
    head = f"{ran.count(Verdict.PASS)} of {len(ran)} tests passed."
    if score.codes[0].refused:
        head = "The program may not run."
    elif not duels[0].executes:
        head = "The program does not load, or does not define the function."
    return _cut(f"{head}\n{failed_tests(score)}".rstrip("\n"))


def for_tester(score: MatchScore) -> str:
    """No value of the reference's: the tester is to find out itself what is right."""
    tests = score.suites[0][0].duel.tests
    return _cut("\n".join(f"{test.source}  # {_judgement(test)}" for test in tests) or "No test.")


def _judgement(test: JudgedTest) -> str:
    said = f"{test.status} ({test.reason})" if test.reason else str(test.status)
    return said if test.verdict is None else f"{said}, the program: {test.verdict}"


MOST_TOLD = 2_000
"""Characters of feedback: TRL drops a whole answer of a tool that does not fit into the completion."""


def _cut(text: str) -> str:
    """The text up to a line's end, where it is too long."""
    return text if len(text) <= MOST_TOLD else text[: MOST_TOLD - 3].rpartition("\n")[0] + "\n..."


_ATTEMPTS = 3
_PAUSE_S = 1.0
"""Before another attempt after an infrastructure failure."""
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Earned:
    """What a response earns. All rewards of one seat have the same measures."""

    reward: float
    measures: Mapping[str, float]
    """For logs: `executes` of a coder; `validity` and `kills` of a tester, shares of K."""
    told: str
    """Feedback for a model that may answer again, of 2,000 characters at most. It contains no golden test."""


class SeatRewards:
    """The judge of one process. Its coroutines may be awaited in several event loops; `now` is for callers without."""

    def __init__(
        self,
        arena: AsyncArena | None = None,
        *,
        tester: Player | None = None,
        suites: int = 1,
        reads: Callable[[object], Problem] | None = None,
    ) -> None:
        """`arena`: None opens one with a local sandbox. `tester`: who attacks in `attacked`, with so many `suites`.
        `reads`: what reads a row's problem, `read_problem` if None."""
        require_whole("suites", suites)
        self._arena = arena or AsyncArena()
        self._tester, self._suites, self._reads = tester, suites, reads or read_problem
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread()
        self._lock = threading.Lock()

    async def golden(self, problem: object, response: object) -> Earned:
        """The share of the problem's golden tests that the program passes, in [0, 1].

        Raises FormatError, SandboxError."""
        known = self._reads(problem)
        text = answer_text(response, "response", FormatError)
        require(bool(known.golden_tests), "the problem", "have golden tests", known.problem_id, FormatError)
        (grade,) = await _insist(lambda: self._arena.grade(known, [text], known.golden_tests))
        read = [verdict for verdict in grade.verdicts if verdict is not None]
        told = f"{read.count(Verdict.PASS)} of {len(read)} tests passed."
        return Earned(grade.share, {"executes": float(bool(grade.executes))}, told)

    async def attacked(self, problem: object, response: object) -> Earned:
        """R_C of the program under suites of the tester, which reads it first.

        Raises FormatError, SandboxError, and PlayerError where the tester cannot answer."""
        known, tester = self._reads(problem), self._tester
        text = answer_text(response, "response", FormatError)
        if tester is None:
            raise ConfigurationError("SeatRewards must have a tester to attack a program, got none")
        program = self._arena.config.program(known, text).source
        asked = [TesterRequest(known, program)]
        written = await asyncio.to_thread(responses_of, tester, asked, self._suites)
        score = await self._played(Match(known, (text,), (tuple(answer.text for answer in written[0]),)))
        code = score.codes[0]
        return Earned(_paid(code.reward), {"executes": float(bool(code.executes))}, for_coder(score))

    async def kills(self, problem: object, program: object, response: object) -> Earned:
        """R_T of a suite against a program, which is a source or a coder's whole response.

        Raises FormatError, SandboxError."""
        text = answer_text(response, "response", FormatError)
        code = answer_text(program, "program", FormatError)
        score = await self._played(Match(self._reads(problem), (code,), ((text,),)))
        suite = score.suites[0][0]
        terms = suite.terms
        measures = {"validity": terms.validity, "kills": float(terms.f_new)} if terms else {}
        return Earned(_paid(suite.reward), measures, for_tester(score))

    async def of_row(self, problem: object, response: object, program: object = None, seat: str = "") -> Earned:
        """A tester's `kills`; a coder's `attacked` where there is a tester, else `golden`. `seat`: where it is empty,
        a row with a program is a tester's."""
        if seat == "tester" or (not seat and program is not None):
            return await self.kills(problem, program, response)
        return await (self.attacked if self._tester else self.golden)(problem, response)

    async def _played(self, match: Match) -> MatchScore:
        async def play() -> MatchScore:
            score = await self._arena.score(match)
            rewards = [code.reward for code in score.codes] + [suite.reward for row in score.suites for suite in row]
            if None in rewards:
                raise SandboxError("a duel must be judged to be paid, got an infrastructure failure")
            return score

        return await _insist(play)

    def now(self, earned: Coroutine[Any, Any, _Result]) -> _Result:
        """Waits for one of the above, in any thread; the work runs in its own loop."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run, args=(self._loop,), daemon=True)
                self._thread.start()
        return asyncio.run_coroutine_threadsafe(earned, self._loop).result()

    def close(self) -> None:
        """End every process. Idempotent."""
        self._arena.close_now()
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
                self._loop = None


def _run(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


@functools.cache
def _shared(workers: int, sandbox: str, tester_url: str, tester_model: str, suites: int) -> SeatRewards:
    is_reached = bool(tester_url) or not tester_model
    require(is_reached, "tester_model", "come with the tester_url of its server", tester_model)
    tester = OpenAIPlayer(tester_url, tester_model) if tester_url else None
    rewards = SeatRewards(AsyncArena(workers=workers, sandbox=sandbox), tester=tester, suites=suites)
    atexit.register(rewards.close)
    return rewards


_opening = threading.Lock()


def shared(
    workers: int = 1, sandbox: str = "local", tester_url: str = "", tester_model: str = "", suites: int = 1
) -> SeatRewards:
    """This process's judge with these options, opened at the first call: for frameworks that call a bare function.

    `workers`: programs at a time; `sandbox`: as `open_sandbox` names it; `tester_url`, `tester_model`: the tester of
    `attacked`, behind an OpenAI-compatible address. Raises ConfigurationError, SandboxError."""
    with _opening:
        return _shared(workers, sandbox, tester_url, tester_model, suites)


def read_problem(given: object) -> Problem:
    """A problem, or a line of a file of problems as text or object. Raises FormatError."""
    if isinstance(given, Problem):
        return given
    if isinstance(given, str):
        return Problem.from_json(given)
    must = "be a Problem or a line of a file of problems, as text or object"
    require(isinstance(given, Mapping), "the problem", must, given, FormatError)
    return Problem.from_dict(given)  # type: ignore[arg-type]  # it is a mapping


async def _insist(work: Callable[[], Awaitable[_Result]]) -> _Result:
    """Another attempt where infrastructure failed, but not where it will fail again."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return await work()
        except (PackageMissing, SandboxUnsafe):
            raise
        except SandboxError:
            await asyncio.sleep(_PAUSE_S)
    return await work()


def _paid(reward: float | None) -> float:
    assert reward is not None  # `_played` has looked
    return reward


Texts = Sequence[str]
SEATS = ("coder", "tester")
_LEAST_OVERLAP = 16
"""Characters of a prompt whose beginning was cut off that a query must begin with."""
_LONGEST_MARK = 42
"""Characters of a mark such as `<|im_end|>`."""


async def paid(rewards: SeatRewards, seat: str, queries: Texts, prompts: Texts, labels: Texts) -> dict[str, Any]:
    """Lists as OpenRLHF reads them: `rewards`, `scores`, `extra_logs` by name. Raises FormatError, SandboxError."""

    async def one(query: str, prompt: str, label: str) -> Earned:
        row = {"problem": label} if seat == "coder" else json_object(label, "a tester's label", FormatError)
        response = await asyncio.to_thread(response_of, query, prompt)
        return await rewards.of_row(row.get("problem"), response, row.get("program"), seat)

    earned = await asyncio.gather(*(one(*row) for row in zip(queries, prompts, labels, strict=True)))
    amounts = [each.reward for each in earned]
    logs = {name: [each.measures[name] for each in earned] for name in earned[0].measures} if earned else {}
    return {"rewards": amounts, "scores": amounts, "extra_logs": logs}


def response_of(query: str, prompt: str) -> str:
    """What the model wrote: the query without its prompt, whose beginning may have been cut off, and without the marks
    at its end. Raises FormatError where the query does not begin with its prompt."""
    overlap = len(prompt) if query.startswith(prompt) else _overlap(prompt, query[: len(prompt)])
    if overlap < min(len(prompt), _LEAST_OVERLAP):
        raise FormatError(f"a query must begin with its prompt, got {query[:100]!r}")
    return _without_marks(query[overlap:])


def _overlap(text: str, beginning: str) -> int:
    """Characters of the longest end of the text that the beginning begins with; in time linear in both, for they are
    strangers' (the prefix function of Knuth, Morris and Pratt)."""
    signs = [*beginning, None, *text]
    lengths = [0] * len(signs)
    for place in range(1, len(signs)):
        length = lengths[place - 1]
        while length and signs[place] != signs[length]:
            length = lengths[length - 1]
        lengths[place] = length + (signs[place] == signs[length])
    return lengths[-1]


def _without_marks(response: str) -> str:
    """No Python ends in such a mark, unless it is in a comment."""
    response = response.rstrip()
    while response.endswith(">"):
        mark = response.rfind("<", max(0, len(response) - _LONGEST_MARK))
        if mark < 0 or any(map(str.isspace, response[mark:])):
            break
        response = response[:mark].rstrip()
    return response
