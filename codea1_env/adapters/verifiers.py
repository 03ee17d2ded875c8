"""The duel as a two-seat environment of verifiers (`verifiers.v1`): a coder's run, then a tester's run against it.

`DuelTaskset` asks the questions, `DuelEnv` lets the seats answer them (each an agent with a model, an endpoint and a
harness of its own) and pays both: reward `duel` on each trace. Tasks, which are written into traces, hold what the
seats read and nothing of the references. `examples/codea1_duel` is the package that verifiers finds them by.

Where an agent or the sandbox fails the episode is an error and nobody is paid. Within one process all episodes share
the Mistake Book and are scored one after the other; each process of verifiers' own has a book of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.errors import ConfigurationError, SandboxError
from codea1_env.extras import extra
from codea1_env.players.prompts import DEFAULT, find_prompts
from codea1_env.players.templates import Messages
from codea1_env.problems import Problem, bundled_problems, read_problems
from codea1_env.reading.messages import answer_text
from codea1_env.reading.responses import read_program
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox import LocalSandbox

with extra("verifiers", "the adapter for verifiers needs"):
    import httpx
    import verifiers.v1 as vf
    from pydantic import Field


class DuelData(vf.TaskData):  # type: ignore[misc]  # the types of verifiers are not followed here
    """What one seat reads."""

    problem_id: str = ""


class DuelTask(vf.Task[DuelData]):  # type: ignore[misc]
    """One seat's turn. It is not judged by itself: `DuelEnv.finalize` judges both seats together."""

    @property
    def key(self) -> str:
        """The problem's id: the same however the question is put."""
        return str(self.data.problem_id)


class DuelTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]
    problems: Path | None = None
    """A file of problems, each with a reference solution; None: the bundled ones."""


class DuelTaskset(vf.Taskset[DuelTask, DuelTasksetConfig]):  # type: ignore[misc]
    """The questions, as the coder reads them."""

    def load(self) -> Iterator[DuelTask]:
        """One task for each problem, in order. Raises ProblemFormatError."""
        for problem in _problems(self.config):
            yield DuelTask(_data(problem, find_prompts(DEFAULT).for_coder(problem)), self.config.task)


class OneAnswer(vf.Harness[vf.HarnessConfig]):  # type: ignore[misc]
    """Asks the model once and takes what it says: no tools, no process, nothing to install."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: Mapping[str, str],
        data: vf.TaskData,
        **_: Any,
    ) -> vf.ProgramResult:
        """One chat completion through the endpoint that records it."""
        system, prompt = self.resolve_text_prompt(data)
        said = [("system", system), ("user", prompt)]
        messages = [{"role": role, "content": text} for role, text in said if text is not None]
        async with httpx.AsyncClient(timeout=None, trust_env=False) as client:
            answer = await client.post(
                f"{endpoint}/chat/completions",
                json={"model": ctx.model, "messages": messages},
                headers={"Authorization": f"Bearer {secret}"},
            )
        return vf.ProgramResult(int(answer.is_error), "", answer.text if answer.is_error else "")


def _seat() -> vf.AgentConfig:
    return vf.AgentConfig(runtime=vf.SubprocessConfig())


class DuelConfig(vf.EnvConfig):  # type: ignore[misc]
    coder: vf.AgentConfig = _seat()
    tester: vf.AgentConfig = _seat()
    suite_size: int = Field(8, ge=1)
    """K: how many tests of a suite count."""
    alpha: float = Field(0.5, ge=0, le=1)
    """Share of validity in the tester's reward."""
    workers: int = Field(1, ge=1)
    """Programs that the sandbox runs at a time."""


class DuelEnv(vf.Env[DuelConfig]):  # type: ignore[misc]
    """Coder, then tester, then both are judged."""

    def __init__(self, config: DuelConfig) -> None:
        super().__init__(config)
        self._known = {problem.problem_id: problem for problem in _problems(config.taskset)}
        self._arena: Arena | None = None
        self._one_at_a_time = asyncio.Lock()

    async def start(self) -> None:
        """The sandbox begins with the serving, and ends with it."""
        rewards = RewardConfig(alpha=self.config.alpha, suite_size=self.config.suite_size)
        self._arena = Arena(LocalSandbox(self.config.workers), rewards)

    async def stop(self) -> None:
        if self._arena is not None:
            await asyncio.to_thread(self._arena.close)
        self._arena = None

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        """Both turns. A coder whose run failed is not attacked."""
        problem = self._problem(task)
        coded = await agents.coder.run(task)
        if coded.ok:
            program = read_program(_reply(coded), problem.entry_point).source
            asked = find_prompts(DEFAULT).for_tester(problem, program, suite_size=self.config.suite_size)
            await agents.tester.run(DuelTask(_data(problem, asked), task.config))

    async def finalize(self, task: vf.Task, episode: vf.Episode) -> None:
        """The rewards. Raises SandboxError where infrastructure fails: the episode may be played again."""
        seats = {trace.agent.name: trace for trace in episode.traces}
        if len(seats) < 2 or not all(trace.ok for trace in episode.traces):
            return  # its error is on its trace
        coder, tester = seats["coder"], seats["tester"]
        match = Match(self._problem(task), (_reply(coder),), ((_reply(tester),),))
        async with self._one_at_a_time:
            if self._arena is None:
                raise ConfigurationError("an episode must be played while the environment is serving, got one outside")
            (score,) = await asyncio.to_thread(self._arena.play, [match])
        code, suite = score.codes[0], score.suites[0][0]
        if code.reward is None or suite.reward is None or suite.terms is None:
            raise SandboxError(f"a duel must be judged to be paid, got a failure: {suite.duel.infrastructure_error}")
        coder.record_reward("duel", code.reward)
        coder.record_metric("executes", float(bool(code.executes)))
        tester.record_reward("duel", suite.reward)
        tester.record_metrics({"validity": suite.terms.validity, "kills": float(suite.terms.f_new)})

    def _problem(self, task: vf.Task) -> Problem:
        problem_id = getattr(task.data, "problem_id", None)
        if problem_id not in self._known:
            raise ConfigurationError(f"a task must name a problem of this taskset, got {problem_id!r}")
        return self._known[problem_id]


def _reply(trace: vf.Trace) -> str:
    return answer_text(trace.last_reply, f"the reply of the {trace.agent.name}")


def _problems(config: vf.TasksetConfig) -> list[Problem]:
    path = getattr(config, "problems", None)
    problems = list(bundled_problems()) if path is None else read_problems(path)
    bare = [problem.problem_id for problem in problems if problem.reference_solution is None]
    if bare or not problems:
        raise ConfigurationError(
            f"the taskset must have problems, each with a reference_solution, got none in {bare[:3] or path}"
        )
    return problems


def _data(problem: Problem, messages: Messages) -> DuelData:
    system, user = (message["content"] for message in messages)
    return DuelData(id=problem.problem_id, system_prompt=system, prompt=user, problem_id=problem.problem_id)
