"""The command `codea1 serve`: the judge over HTTP, for trainers elsewhere.

Exit codes: 0 ended by Ctrl-C or SIGTERM, 1 the server could not begin, 2 wrong arguments.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from codea1_env.checks import require
from codea1_env.cli.common import add_sandbox, problems_in, require_at_least_one, require_file, say
from codea1_env.errors import ConfigurationError
from codea1_env.rewards.code_a1 import RewardConfig

DESCRIPTION = (
    "Judge programs over HTTP (extra `serve`). POST /v1/score takes and gives the lines of codea1 score. POST "
    "/v1/verify takes a program and tests, and gives the share that passes. A failure of the server is an error "
    "and never a verdict."
)
EXAMPLES = """\
examples:
  codea1 serve
  codea1 serve --port 9000 --workers 8 --problems questions.jsonl --token-file token.txt
  curl localhost:8000/v1/verify -d '{"program": "def f(x): return x + 1", "tests": "assert f(1) == 2"}'
"""


def add_serve(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_serve)
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: this machine only)")
    parser.add_argument(
        "--port", metavar="N", type=int, default=8000, help="the port, 0 to 65535; 0 takes any free one (default: 8000)"
    )
    parser.add_argument("--problems", metavar="FILE.jsonl", type=Path, help="a problem file whose tests clients may "
                        "ask for by problem_id (default: none)")  # fmt: skip
    parser.add_argument("--token-file", metavar="FILE", type=Path, help="a file with a token that clients must send as "
                        "Authorization: Bearer TOKEN (default: none is asked for)")  # fmt: skip
    parser.add_argument("--queue", metavar="N", type=int, default=1024, help="requests that may wait or be judged, >= "
                        "1; more get 429 (default: 1024)")  # fmt: skip
    parser.add_argument("--most-seconds", metavar="S", type=float, default=30.0, help="the longest time limit of a "
                        "call that a request may ask for, in (0, 3600] (default: 30)")  # fmt: skip
    parser.add_argument(
        "--most-mb", metavar="MIB", type=int, default=8, help="the largest body of a request, >= 1 (default: 8)"
    )
    add_sandbox(parser)


def _serve(options: argparse.Namespace) -> int:
    from codea1_env.serving.service import ServicePlan
    from codea1_env.serving.supervisor import bound, supervise

    require_at_least_one(options, "workers", "queue", "most_mb")
    require(0 <= options.port <= 65535, "--port", "be in [0, 65535]", options.port)
    problems = {}
    if options.problems is not None:
        problems = {problem.problem_id: problem for problem in problems_in("--problems", options.problems)}
    plan = ServicePlan(
        RewardConfig(),
        problems,
        options.workers,
        options.sandbox,
        options.queue,
        options.most_seconds,
    )
    token = _token(options.token_file)
    with bound(options.host, options.port) as listening:
        say(f"judging on http://{options.host}:{listening.getsockname()[1]}, Ctrl-C ends it")
        return supervise(plan, listening, token, options.most_mb << 20)


def _token(file: Path | None) -> str:
    if file is None:
        return ""
    require_file("--token-file", file)
    token = file.read_text(encoding="utf-8", errors="replace").strip()
    if not token.isascii() or not token.isprintable() or " " in token or len(token) < 8:
        raise ConfigurationError(f"--token-file must hold one ASCII word of at least 8 characters, got {file}")
    return token
