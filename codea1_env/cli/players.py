"""Players as commands name them: `KIND`, `KIND:WHERE`; the arguments of models and servers; what is played."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from codea1_env.checks import require
from codea1_env.cli.common import problems_in
from codea1_env.errors import ConfigurationError, FormatError, about
from codea1_env.evaluation.search_tester import SearchTester
from codea1_env.evaluation.wrong_programs import read_programs
from codea1_env.language_models.directories import base_of, is_place, require_chat_model
from codea1_env.players import (
    FuzzTester,
    HumanPlayer,
    OpenAIPlayer,
    Player,
    RandomTester,
    RecordedPlayer,
    Sampling,
    Traffic,
)
from codea1_env.players.chat import Prompt, chat_messages
from codea1_env.players.player import Request, TesterRequest
from codea1_env.players.prompts import DEFAULT, design_names, find_prompts, text_digest
from codea1_env.players.scripted import CODERS, TESTERS
from codea1_env.players.templates import Messages, Prompts
from codea1_env.problems import Problem, bundled_problems
from codea1_env.records.matches import read_match
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox.protocol import Sandbox

HELP = """\
  coders    oracle, mutant
  testers   golden, random, fuzz
  either    human, recorded:FILE (what `codea1 score` reads, or the journal of a coder's `codea1 eval`),
            hf:DIRECTORY-OR-REPOSITORY, vllm:DIRECTORY-OR-REPOSITORY, openai:URL#MODEL,
            mini:DIRECTORY (a model trained from scratch, with its own short prompts)
"""
SEARCH = "search"
"""The tester that searches for inputs by mutants of the program that it is shown: in `codea1 eval` only."""
_SCRIPTED = {"coder": CODERS, "tester": TESTERS}
_PLACED = {"recorded": "FILE", "hf": "MODEL", "vllm": "MODEL", "openai": "URL#MODEL", "mini": "DIRECTORY"}
"""Players of either seat that come with a place, and what that is."""
_PROMPTED = ("hf", "vllm", "openai")
_SAMPLED = (*_PROMPTED, "mini")
"""Players that draw tokens."""
_STOPPED = ("hf", "mini")
"""Players that stop where an answer's block ends."""
_READERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("temperature", "top_p", "max_tokens"), _SAMPLED),
    "prompts": _PROMPTED,
    **dict.fromkeys(("stop_at_fence", "stop_at_tests"), _STOPPED),
    **dict.fromkeys(("timeout", "retries", "requests_per_minute", "tokens_per_minute", "concurrency"), ("openai",)),
}
"""Arguments of `add_models`, and the kinds of players that read them."""
_LOADED = ("hf", "vllm", "mini")
"""Players that read a model's files here."""
_SPEC = re.compile(r"(?P<kind>[a-z]+)(?::(?P<where>.+))?", re.DOTALL)


def add_models(parser: argparse.ArgumentParser, sampling: Sampling, *, suites: bool = True) -> None:
    """The arguments of language models, with these defaults, and of servers. `suites`: somebody is asked for one."""
    models = parser.add_argument_group("language models")
    models.add_argument("--temperature", type=float, default=sampling.temperature, help="in [0, 100], 0 is greedy "
                        f"(default: {sampling.temperature:g})")  # fmt: skip
    models.add_argument("--top-p", type=float, default=sampling.top_p, help=f"in (0, 1] (default: {sampling.top_p:g})")
    models.add_argument("--max-tokens", type=int, default=sampling.max_tokens, help="longest answer "
                        f"(default: {sampling.max_tokens})")  # fmt: skip
    models.add_argument("--prompts", metavar="FILE-OR-NAME", help="the prompts that models get: one of "
                        f"{', '.join(design_names())}, or your own file, see docs/your-model.md (default: "
                        f"{DEFAULT})"
                        )  # fmt: skip
    models.add_argument("--stop-at-fence", action="store_true", help="hf: players stop after the first fenced block "
                        "(default: only if the prompt opens that block)"
                        )  # fmt: skip
    if suites:
        models.add_argument("--stop-at-tests", action="store_true", help="hf: testers stop after the last test that "
                            "counts, at the top level of a fenced block (default: off)")  # fmt: skip
    traffic = Traffic()
    servers = parser.add_argument_group("servers, each")
    servers.add_argument("--timeout", metavar="S", type=float, default=traffic.timeout_s, help="seconds for a request "
                         f"(default: {traffic.timeout_s:g})")  # fmt: skip
    servers.add_argument("--retries", metavar="N", type=int, default=traffic.retries,
                         help=f"attempts after the first (default: {traffic.retries})")  # fmt: skip
    servers.add_argument("--requests-per-minute", metavar="N", type=float, default=math.inf,
                         help="requests that begin in a minute, at most (default: no limit)")  # fmt: skip
    servers.add_argument("--tokens-per-minute", metavar="N", type=float, default=math.inf,
                         help="tokens of prompts and answers in a minute, at most (default: no limit)")  # fmt: skip
    servers.add_argument("--concurrency", metavar="N", type=int, default=traffic.concurrency,
                         help=f"requests under way at a time (default: {traffic.concurrency})")  # fmt: skip
    parser.set_defaults(unread={name: parser.get_default(name) for name in _READERS})


def sampling_of(options: argparse.Namespace) -> Sampling:
    """Raises ConfigurationError for values out of range, also for those of servers, whether one plays or not."""
    _traffic_of(options)
    tests = options.suite_size if options.stop_at_tests else 0
    return Sampling(options.temperature, options.top_p, options.max_tokens, options.stop_at_fence, tests)


def _traffic_of(options: argparse.Namespace) -> Traffic:
    return Traffic(
        timeout_s=options.timeout,
        retries=options.retries,
        requests_per_minute=options.requests_per_minute,
        tokens_per_minute=options.tokens_per_minute,
        concurrency=options.concurrency,
    )


def prompts_of(options: argparse.Namespace, specs: Sequence[str]) -> Prompts:
    """What language models among the players are asked. Raises ConfigurationError, also for an argument of models or
    servers that was given where none of the players reads it."""
    kinds = {spec.partition(":")[0] for spec in specs}
    for name, readers in _READERS.items():
        if getattr(options, name) != options.unread[name] and kinds.isdisjoint(readers):
            known = " or ".join(f"{kind}:{_PLACED[kind]}" for kind in readers)
            raise ConfigurationError(
                f"--{name.replace('_', '-')} must come with a player {known}, got {', '.join(specs)}"
            )
    return find_prompts(options.prompts or DEFAULT)


def require_player(spec: str, seat: str, *, runs_programs: bool = False) -> None:
    """Raise ConfigurationError for a player that nobody could be in this seat, before anything is loaded.
    `runs_programs`: whether it may be one that needs a sandbox."""
    parts = _SPEC.fullmatch(spec)
    is_placed = parts is not None and parts["kind"] in _PLACED and parts["where"] is not None
    scripted = [*_SCRIPTED[seat], *([SEARCH] if runs_programs and seat == "tester" else []), "human"]
    if not is_placed and spec not in scripted:
        known = [*scripted, *(f"{kind}:{where}" for kind, where in _PLACED.items())]
        raise ConfigurationError(f"a player in the {seat}'s seat must be one of {', '.join(known)}, got {spec!r}")
    kind, _, where = spec.partition(":")
    if kind == "mini" or (kind in _LOADED and is_place(where)):
        model = base_of(Path(where)) or where
        if kind == "mini" or is_place(model):
            require_chat_model(Path(model), f"the model of {kind}:{where}")


def as_coder(spec: str, options: argparse.Namespace) -> Player:
    """Raises ConfigurationError for a player that there is not, in this seat."""
    require_player(spec, "coder")
    if spec in CODERS:
        return CODERS[spec]()
    return _either(spec, options, None)


def as_tester(
    spec: str, options: argparse.Namespace, prompt: Prompt | None = None, sandbox: Sandbox | None = None
) -> Player:
    """Likewise. `options.suite_size`: asserts that it is asked for. `sandbox`: where the ones that run programs do."""
    require_player(spec, "tester", runs_programs=sandbox is not None)
    if spec == SEARCH and sandbox is not None:
        return SearchTester(sandbox, options.suite_size)
    if spec == "golden":
        return TESTERS[spec]()
    if spec in ("random", "fuzz"):
        return (RandomTester if spec == "random" else FuzzTester)(options.suite_size)
    return _either(spec, options, prompt)


def _either(spec: str, options: argparse.Namespace, prompt: Prompt | None) -> Player:
    """`spec`: of a player that can be in the seat."""
    design = find_prompts(options.prompts or DEFAULT)
    prompt = prompt or partial(chat_messages, suite_size=options.suite_size, prompts=design)
    kind, _, where = spec.partition(":")
    if kind == "human":
        return HumanPlayer(suite_size=options.suite_size)
    if kind == "recorded":
        return _recorded(Path(where))
    if kind in ("hf", "mini"):
        from codea1_env.players.hugging_face import HuggingFacePlayer  # torch: only for who needs it

        return HuggingFacePlayer.load(where, prompt=_mini_prompt if kind == "mini" else prompt)
    if kind == "vllm":
        from codea1_env.players.vllm_offline import VLLMPlayer  # likewise

        return VLLMPlayer.load(where, prompt=prompt)
    url, mark, model = where.rpartition("#")
    if not (url and mark and model):
        raise ConfigurationError(f"a server must be given as openai:URL#MODEL, got {'openai:' + where!r}")
    return OpenAIPlayer(url, model, traffic=_traffic_of(options), prompt=prompt)


def _mini_prompt(request: Request) -> Messages:
    from codea1_env.training.models.tiny import coder_messages, tester_messages

    question = request.problem.question
    return (
        tester_messages(question, request.program) if isinstance(request, TesterRequest) else coder_messages(question)
    )


def _recorded(path: Path) -> RecordedPlayer:
    require(path.is_file(), "a record", "be a file", path)
    content = path.read_bytes()
    version = hashlib.sha256(content).hexdigest()[:16]
    if plan := _coders_plan(content):
        programs = read_programs(path)
        cut_off: Counter[str] = Counter()  # sets may share questions, whose answers are put together
        try:
            for line in content.split(b"\n")[:-1]:  # an incomplete last one is left out
                if line.startswith(b'{"kind":"answers"'):
                    answers = json.loads(line)
                    cut_off[answers["problem_id"]] += int(answers.get("truncated", 0))
            asked = {"sampling": plan["sampling"], "seed": plan["seed"], "prompts": _design(plan.get("prompts"))}
            name = f"recorded {plan['player']}"
        except (ValueError, LookupError, TypeError) as error:
            raise FormatError(f"{path} must be as `codea1 eval` wrote it, got another journal: {error!r}") from None
        return RecordedPlayer(programs, cut_off=cut_off, asked=asked, name=name, version=version)
    records = []
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip():
            with about(f"{path}, line {number}"):
                match = read_match(line)
            problem = match.problem
            records.append({"problem_id": problem.problem_id, "entry_point": problem.entry_point,
                            "codes": match.codes, "suites": match.suites})  # fmt: skip
    return RecordedPlayer.from_records(records, version=version)


def _coders_plan(content: bytes) -> dict[str, Any] | None:
    """The plan of a coder's journal of `codea1 eval`; None of another file. A tester's raises ConfigurationError."""
    try:
        plan = json.loads(content.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return None
    if not isinstance(plan, dict) or plan.get("kind") != "plan":
        return None
    if plan.get("seat") != "coder":
        raise ConfigurationError(f"a journal must be a coder's to be repeated, got the one of a {plan.get('seat')}")
    return plan


def _design(digest: str | None) -> str:
    """The name of the design that a journal names by its digest; the digest itself of one that somebody wrote."""
    known = {text_digest(find_prompts(name)): name for name in design_names()}
    return DEFAULT if digest is None else known.get(digest, digest)


def add_game(parser: argparse.ArgumentParser) -> None:
    """The arguments `--problems`, for `problems_of`, and `--suite-size`."""
    size = RewardConfig().suite_size
    parser.add_argument("--problems", metavar="FILE.jsonl", type=Path, help="a problem file (default: the bundled set)")
    parser.add_argument("--suite-size", metavar="K", type=int, default=size, help="asserts of a suite that count, >= 1 "
                        f"(paper and default: {size})")  # fmt: skip


def problems_of(options: argparse.Namespace) -> Sequence[Problem]:
    """Those of `--problems`, at least one. Raises ConfigurationError and what reading raises."""
    return problems_in("--problems", options.problems) if options.problems else bundled_problems()
