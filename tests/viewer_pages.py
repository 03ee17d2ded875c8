"""Pages for the tests in a browser: games made by hand, so that every number on them is known. Not a test module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codea1_env.viewer import make_page

REFERENCE = "def f(x):\n    return x * 2\n"
PROGRAM = 'def f(x):\n    # twice\n    return [1, x] if x == 3 else x * 2  # "ok"\n'
CONFIG = {"tester_reward": "code-a1", "coder_tests": "own"}


def row(source: str, status: str, verdict: str | None, **texts: Any) -> list[Any]:
    """One test as `viewer/games.py` has it. `verdicts`: of all programs of the question."""
    names = ("reason", "call", "stated", "expected")
    reason, call, stated, expected = (texts.get(name, "" if name == "reason" else None) for name in names)
    return [source, status, reason, call, stated, expected, verdict, texts.get("returned", ""), texts.get("pay"),
            texts.get("verdicts")]  # fmt: skip


def example_suite() -> dict[str, Any]:
    """K = 4, two of three replays failed. Of four asserts two are kept, one failed; one is corrected and passes; one is
    rejected.

    v = 3, invalid = 2: R_val = min(3/4, 1 - 2/4) = 0.5; f_new = 1/4, f_hist = 2/3: R_adv = (1/4 - 2/3 + 1)/2 = 7/24;
    R_T = 0.5 * 0.5 + 0.5 * 7/24 = 19/48. p_new = 2/3, p_hist = 1/3: the suite pays the coder 1/2.
    """
    tests = [
        row("assert f(1) == 2", "kept", "pass", call="f(1)", stated="2", expected="2"),
        row("assert f(3) == 6", "kept", "fail", call="f(3)", stated="6", expected="6", returned="[1, 3]"),
        row("assert f(2) == 5", "wrong_expected", "pass", call="f(2)", stated="5", expected="4"),
        row("assert f(2) > 1", "rejected", None, reason="operator"),
    ]
    terms = {
        "executes": True, "v": 3, "invalid": 2, "suite_size": 4, "alpha": 0.5, "passed": 2, "validity": 0.5,
        "f_new": 0.25, "f_hist": 2 / 3, "adversarial": 7 / 24, "nonprintable": 0.0, "p_new": 2 / 3, "p_hist": 1 / 3,
        "reward": 19 / 48,
    }  # fmt: skip
    return {"reward": 19 / 48, "terms": terms, "error": "", "replays": ["pass", "fail", "timeout"], "tests": tests}


def game(
    name: str = "twice", source: str = PROGRAM, programs: int = 3, suites: int = 2, **changes: Any
) -> dict[str, Any]:
    """A question with equal programs, or with what `changes` says."""
    program = {"source": source, "executes": True, "reward": 0.5}
    return {
        "id": name,
        "from": "round 1",
        "question": "Write f(x): twice x.",
        "reference": REFERENCE,
        "config": CONFIG,
        "replays": [["f(1)", "2"], ["f(3)", "6"], ["f(5)", "10"]],
        "programs": [program | {"suites": [example_suite() for _ in range(suites)]} for _ in range(programs)],
    } | changes


def shared_game() -> dict[str, Any]:
    """Three programs, of which the first two have a suite each; all met both suites."""
    shared = game("shared", suites=1, config=CONFIG | {"coder_tests": "union"})
    for program, verdict in zip(shared["programs"], ("pass", "fail", "timeout"), strict=True):
        program["suites"][0]["tests"] = [
            row("assert f(3) == 6", "kept", verdict, call="f(3)", stated="6", expected="6", returned="[1, 3]",
                verdicts=["pass", "fail", "timeout"]),
            row("assert f(2) > 1", "rejected", None, reason="operator", verdicts=[None, None, None]),
        ]  # fmt: skip
    shared["programs"][2] |= {"suites": [], "replays": ["timeout", "pass", "fail"]}
    return shared


def write_page(
    path: Path, games: list[dict[str, Any]], title: str = "games.jsonl", book: dict[str, Any] | None = None
) -> Path:
    path.write_bytes(make_page(title, games, book=book))
    return path


ATTACKS = {
    "backticks": "`` ` ```x` \n" * 8_000 + "```\n" + "`" * 2_000 + "<img src=x onerror=pwned=1>",
    "ends the data": "</template><script>window.pwned = 1</script>",
    "ends a script": "</script><script>window.pwned = 1</script>",
    "comment": "<!--<script>window.pwned = 1</script>-->",
    "image": "<img src=x onerror='window.pwned = 1'>",
    "svg": "<svg onload=window.pwned=1><style>*{display:none}</style></svg>",
    "link": "<a href='javascript:window.pwned=1'>press</a><base href='https://example.org/'>",
    "meta": "<meta http-equiv=refresh content='0;url=https://example.org/'>",
    "frame": "<iframe srcdoc='<script>parent.pwned = 1</script>'></iframe>",
    "handler": '" onmouseover="window.pwned=1" autofocus onfocus=\'window.pwned=1\'',
    "template": "${window.pwned = 1}{{constructor.constructor('window.pwned=1')()}}{{packed}}{{policy}}",
    "entities": "&lt;script&gt;window.pwned=1&lt;/script&gt;&#60;img src=x onerror=window.pwned=1&#62;",
    "right to left": "access = 'user\u202e \u2066# admin only\u2069 \u2066'\u05d0\u05d1",
    "terminal": "\x1b[2J\x1b]0;title\x07\x1b[31mred",
    "surrogates": "\ud800 \udfff \ud83d",
    "null": "\x00" * 1000 + "a\x00b",
    "alternating": "\x00\x01" * 30000,
    "prototype": "__proto__ constructor toString hasOwnProperty",
    "one long line": "x" * 1_000_000,
    "long words": "<b>" * 20000,
    "many lines": "\n" * 60000,
    "quotes": "'''" + '"' * 50000,
    "backslashes": "'" + "\\" * 60000,
    "brackets": "(" * 60000,
    "marks": "a" + "\u0301" * 20000,
    "wide": "\U0001f600" * 20000 + "\u3000" * 100,
    "tags": "".join(chr(0xE0000 + ord(c)) for c in "hidden text"),
    "separators": "a\u2028b\u2029c\u0085d\u200bd\ufeff",
    "digits": "1" * 60000,
    "exponents": "1e" * 30000,
    "names": "\u00e9" * 60000,
}
"""Texts that a program, a test, a question or a file's name may hold."""


def attack_game(name: str, text: str) -> dict[str, Any]:
    """The text in every place that takes one."""
    short = text[:4096]
    suite = example_suite()
    suite["tests"] = [
        row(short, "kept", "fail", call=short, stated=short, expected=short, returned=short),
        row(short, "rejected", None, reason=short),
    ]
    suite["error"] = short
    program = {"source": text[: 1 << 16], "executes": True, "reward": 0.5, "suites": [suite]}
    return game(name + " " + short[:400], programs=1) | {
        "question": text[: 1 << 16], "reference": text[: 1 << 16], "from": "round 1", "replays": [[short, short]] * 3,
        "programs": [program],
    }  # fmt: skip
