"""Why a reward is what it is, as the page shows it: every term with its numbers, and what each assert adds. Pure.

    account  title, lines, coder: [line], sums: {count: number} or null, tests: [[counts, [reward, share, ...]]]
    line     name, formula, [text or number], value, names of the counts in it

The page computes nothing: it shows these numbers. They come from `rewards/terms.py`; where the terms of a file are not
what the formulas come to, that is said and the file's are shown. A reward of somebody's own is not imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from codea1_env.reading.grammar import Fidelity
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import JudgedTest, Status, Verdict
from codea1_env.rewards.terms import AssertCounts, SuiteTerms, attacking, count, share_passed, terms_of

Json = dict[str, Any]
Line = list[Any]

_CLOSE = 1e-9
_MOST_LISTED = 8
"""Suites whose shares are written out."""


def accounted(game: Json) -> Json:
    """The game with an `account` in every suite that has terms."""
    config = game.get("config") or {}
    programs = [program | {"suites": _suites(program, config)} for program in game["programs"]]
    return game | {"programs": programs}


def _suites(program: Json, config: Mapping[str, Any]) -> list[Json]:
    known = [SuiteTerms(**suite["terms"]) if suite["terms"] else None for suite in program["suites"]]
    shares = [None if terms is None else share_passed(terms.p_hist, terms.p_new) for terms in known]
    return [
        suite if terms is None else suite | {"account": _account(suite, terms, program, shares, config)}
        for suite, terms in zip(program["suites"], known, strict=True)
    ]


def _account(
    suite: Json, terms: SuiteTerms, program: Json, shares: Sequence[float | None], config: Mapping[str, Any]
) -> Json:
    method = config.get("tester_reward", "code-a1")
    tests = [_judged(row) for row in suite["tests"]]
    fidelity: Fidelity = "paper" if config.get("fidelity") == "paper" else "strict"
    sums, mine = _again(tests, terms, fidelity)
    account: Json = {
        "title": [f"Tester · {_NAMES.get(method, method)}, K = {terms.suite_size}"],
        "coder": _coder_lines(terms, program, shares, config),
        "sums": None,
        "tests": [],
    }
    if method != "code-a1":
        return account | {"lines": _METHODS.get(method, _own_lines)(suite, terms)}
    if abs(mine.reward - suite["reward"]) >= _CLOSE or abs(mine.validity - terms.validity) >= _CLOSE:
        values = {name: getattr(terms, name) for name in SuiteTerms.__slots__}
        shown = {name: None if isinstance(value, bool) else value for name, value in values.items()}
        lines: list[Line] = [[name, "as in the file", [], value, []] for name, value in shown.items()]
        note = "The formula does not give these terms; they are shown as in the file."
        return account | {"title": ["Tester"], "lines": lines, "note": note}
    return account | {
        "title": [f"Tester · K = {terms.suite_size}, α = ", terms.alpha],
        "lines": _code_a1_lines(suite, terms, sums),
        "sums": sums._asdict() | {"size": terms.suite_size},
        "tests": [_part(tests, place, terms, fidelity, sums, mine) for place in range(len(tests))],
    }


def _judged(row: Sequence[Any]) -> JudgedTest:
    """Of a row of the page, what counts."""
    verdict = None if row[6] is None else Verdict(row[6])
    return JudgedTest("", Status(row[1]), "", None, None, None, verdict)


def _again(
    tests: Sequence[JudgedTest], terms: SuiteTerms, fidelity: Fidelity, without: int | None = None
) -> tuple[AssertCounts, SuiteTerms]:
    """Counts and terms of Code-A1, all tests counted or all but one. A test ran exactly where it counts as valid."""
    valid = [test.verdict is not None for test in tests]
    counts = count(tests, valid, attacking(valid, terms.suite_size, fidelity), without)
    return counts, terms_of(
        counts,
        executes=terms.executes,
        size=terms.suite_size,
        alpha=terms.alpha,
        f_hist=terms.f_hist,
        nonprintable=terms.nonprintable,
    )


def _part(
    tests: Sequence[JudgedTest], place: int, terms: SuiteTerms, fidelity: Fidelity, sums: AssertCounts, mine: SuiteTerms
) -> list[Any]:
    """The counts that a test is in; both seats' rewards with it, without it, and the difference."""
    rest, others = _again(tests, terms, fidelity, place)
    names = [name for name, whole, part in zip(AssertCounts._fields, sums, rest, strict=True) if whole != part]
    share, without = share_passed(mine.p_hist, mine.p_new), share_passed(others.p_hist, others.p_new)
    return [names, [mine.reward, others.reward, mine.reward - others.reward], [share, without, share - without]]


def _code_a1_lines(suite: Json, terms: SuiteTerms, sums: AssertCounts) -> list[Line]:
    size, replays = terms.suite_size, suite["replays"]
    valid = [f"min({sums.v}/{size}, 1 − {sums.invalid}/{size})"]
    lines: list[Line] = [
        ["R_val", "min(v / K, 1 − invalid / K)", valid, terms.validity, ["v", "invalid"]],
        ["f_new", "valid tests that the program fails / K", [f"{sums.broken}/{size}"], terms.f_new, ["broken"]],
    ]
    if terms.f_hist is None:
        lines.append(["R_adv", "f_new, because nothing was replayed", [terms.f_new], terms.adversarial, ["broken"]])
    else:
        failed = sum(verdict != Verdict.PASS for verdict in replays)
        replayed = [f"{failed}/{len(replays)}"]
        lines.append(["f_hist", "replayed tests that it fails / replayed", replayed, terms.f_hist, []])
        formula = "0 without a valid test"
        numbers: list[Any] = ["0"]
        if sums.v:
            formula, numbers = "(f_new − f_hist + 1) / 2", ["(", terms.f_new, " − ", terms.f_hist, " + 1) / 2"]
        lines.append(["R_adv", formula, numbers, terms.adversarial, ["v", "broken"]])
    weighed = [terms.alpha, " · ", terms.validity, " + ", 1 - terms.alpha, " · ", terms.adversarial]
    loads = "" if terms.executes else ", times 0: the program does not load"
    earned = weighed if terms.executes else ["0 · (", *weighed, ")"]
    formula = f"α R_val + (1 − α) R_adv{loads} − unprintable"
    lines.append(["R_T", formula, [*earned, " − ", terms.nonprintable], suite["reward"], ["v", "invalid", "broken"]])
    return lines


def _utrl_lines(suite: Json, terms: SuiteTerms) -> list[Line]:
    numbers = ["(0.85 · ", terms.adversarial, " + 0.05 · ", terms.validity, ") / 0.9"]
    return [
        ["V", "kept tests / max(τ, asserts without repeats)", [], terms.validity, []],
        ["D", "programs of the question that a kept test catches / programs", [], terms.adversarial, []],
        ["R_T", "(0.85 D + 0.05 V) / 0.9", numbers, suite["reward"], []],
    ]


def _cure_lines(suite: Json, terms: SuiteTerms, lack: str = "") -> list[Line]:
    """`lack`: what is subtracted for tests that are not there."""
    pays, numbers = [row[8] for row in suite["tests"]], list[Any]()
    for pay in pays[: terms.suite_size] if None not in pays else ():
        numbers += [pay] if not numbers else [" − " if pay < 0 else " + ", abs(pay)]
    mean = ["(", *numbers, lack, f") / {terms.suite_size}"] if None not in pays else []
    return [["R_T", "rewards of the first K asserts / K", mean, suite["reward"], []]]


def _skill_lines(suite: Json, terms: SuiteTerms) -> list[Line]:
    missing = max(terms.suite_size - len(suite["tests"]), 0)
    if missing and suite["reward"] == 0 and all(row[8] == 0 for row in suite["tests"]):
        return [["R_T", "0, because no program of the question loads", [], suite["reward"], []]]
    return _cure_lines(suite, terms, f" − {missing} · 0.5 for missing asserts" if missing else "")


def _own_lines(suite: Json, terms: SuiteTerms) -> list[Line]:
    return [
        ["validity", "as in the file", [], terms.validity, []],
        ["adversarial", "as in the file", [], terms.adversarial, []],
        ["R_T", "what this tester reward pays", [], suite["reward"], []],
    ]


_NAMES = {"code-a1": "Code-A1", "utrl": "UTRL", "cure": "CURE", "skill": "the skill write-up"}
_METHODS: Mapping[str, Callable[[Json, SuiteTerms], list[Line]]] = {
    "utrl": _utrl_lines,
    "cure": _cure_lines,
    "skill": _skill_lines,
}


def _coder_lines(
    terms: SuiteTerms, program: Json, shares: Sequence[float | None], config: Mapping[str, Any]
) -> list[Line]:
    new = [f"{terms.passed}/{terms.v}"] if terms.v else ["no valid test"]
    share = share_passed(terms.p_hist, terms.p_new)
    lines: list[Line] = [["p_new", "valid tests passed / v", new, terms.p_new, ["passed", "v"]]]
    formula = "the one that exists, else 0"
    numbers: list[Any] = [share]
    if terms.p_hist is not None:
        lines.append(["p_hist", "1 − f_hist", ["1 − ", terms.f_hist], terms.p_hist, []])
        if terms.p_new is not None:
            formula, numbers = "(p_hist + p_new) / 2", ["(", terms.p_hist, " + ", terms.p_new, ") / 2"]
    lines.append(["share", formula, numbers, share, ["passed", "v"]])
    return [*lines, _coder_reward_line(program["reward"], shares, config)]


def _coder_reward_line(reward: float | None, shares: Sequence[float | None], config: Mapping[str, Any]) -> Line:
    named = {name: config[name] for name in ("tester_reward", "coder_reward", "coder_tests") if name in config}
    method = RewardConfig(**named)
    if ("coder_reward" if method.coder_reward else "tester_reward") in method.own:
        return ["R_C", "what this coder reward pays a program", [], reward, []]
    if method.judges_by_union:
        return ["R_C", "the tests of all suites of the question decide", [], reward, []]
    listed: list[Any] = []
    for share in shares if len(shares) <= _MOST_LISTED else ():
        listed += [" + "] * bool(listed) + ["–" if share is None else share]
    numbers = ["(", *listed, f") / {len(shares)}"] if listed else []
    suites = "1 suite" if len(shares) == 1 else f"{len(shares):,} suites"
    return ["R_C", f"mean of the shares of its {suites}", numbers, reward, ["passed", "v"]]
