"""Twice the text is at most 2.5 times the work, whatever the text is made of, and every suite has a budget.

The count is of `counted_steps`: it does not ask the code what it has charged. What loops and calls repeat may grow as
the product of two parts of a text, but only up to the budget, which is made small here, so that small texts reach it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from counted_steps import CountedText, steps_of
from growing_texts import ANSWERS, EXPRESSIONS, FRAMES, HOLDERS, MORE_SUITES, STATEMENTS, Growing, repeated, suites

from codea1_env.judging import checking, equality
from codea1_env.judging.checking import MOST_STEPS, compares
from codea1_env.judging.equality import same_output, same_value
from codea1_env.judging.relations.truth import holds
from codea1_env.problems.checkers import COMPARISONS
from codea1_env.problems.sources.draft import called_names
from codea1_env.reading import steps
from codea1_env.reading.responses import read_program, read_suite
from codea1_env.reading.spans import test_spans as spans_of
from codea1_env.reading.suites import Ignored
from codea1_env.sandbox.inside.values import encode
from codea1_env.sandbox.protocol import CallsJob
from codea1_env.sandbox.tasks import zygote_kind

MOST = 2.5
SUITES = suites()
FIDELITIES = ("strict", "wide", "paper")


def sample() -> list[str]:
    """Some of the suites: every part with a few of those that it may stand with, another few for each."""
    frames, holders = list(FRAMES), list(HOLDERS)
    chosen = list(MORE_SUITES)
    for number, statement in enumerate(STATEMENTS):
        chosen += [f"{statement} in {frames[(number + step) % len(frames)]}" for step in (0, 4)]
    for number, expression in enumerate(EXPRESSIONS):
        chosen.append(f"{expression} as {holders[number % len(holders)]} in rows")
    return chosen


def require_linear(growing: Callable[[int], Callable[[], object]], size: int) -> None:
    one, other = steps_of(growing(size)), steps_of(growing(2 * size))
    assert other <= MOST * one, f"{one} steps, then {other}"


def require_linear_suites(names: list[str], fidelity: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MAX_STEPS", 1 << 11)
    for name in names:

        def reads(size: int, growing: Growing = SUITES[name]) -> Callable[[], object]:
            text = CountedText(growing(size))
            return lambda: read_suite(text, "f", fidelity=fidelity)

        try:
            require_linear(reads, 600)
        except AssertionError as error:
            error.add_note(f"the suite: {name}")
            raise


@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_twice_the_suite_is_twice_the_work(fidelity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    every = 2 if fidelity == "wide" else 8
    require_linear_suites(sample()[::every], fidelity, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_twice_any_suite_is_twice_the_work(fidelity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_linear_suites(list(SUITES), fidelity, monkeypatch)


def test_a_name_that_one_call_has_often_is_twice_the_work() -> None:
    """What costs little for each two of its places shows in a long call alone."""

    def reads(size: int) -> Callable[[], object]:
        text = CountedText(MORE_SUITES["one name often"](size))
        return lambda: read_suite(text, "f", fidelity="wide")

    require_linear(reads, 2400)


def test_many_objects_in_one_call_take_no_more_than_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MAX_STEPS", 1 << 16)
    objects = [f"a{n}" for n in range(600)]
    suite = "".join(f"{name} = S()\n" for name in objects) + f"assert a1.x == 1\ng({', '.join(objects)})\n"
    assert steps_of(lambda: read_suite(CountedText(suite), "S", fidelity="wide")) < 64 * steps.MAX_STEPS


def test_definitions_that_tell_one_decorator_of_themselves_are_twice_the_work() -> None:
    def reads(size: int) -> Callable[[], object]:
        text = CountedText(ANSWERS["one decorator"](size))
        return lambda: read_program(text, "f", trim=True)

    require_linear(reads, 3000)


@pytest.mark.parametrize("name", ANSWERS)
def test_twice_the_answer_is_twice_the_work(name: str) -> None:
    def reads(size: int) -> Callable[[], object]:
        text = CountedText(ANSWERS[name](size))

        def read() -> None:
            read_program(text, "f", trim=True)
            for fidelity in FIDELITIES:
                read_suite(text, "f", fidelity=fidelity)  # type: ignore[arg-type]
            spans_of(text, [f"assert f({n:05}) == 1" for n in range(size // 20)])

        return read

    require_linear(reads, 1000)


HEAVY = {
    "while": "while x:\n " + "a;" * 125_000 + "a\n",
    "while in rows": "for i in range(64):\n while x:\n  " + "a;" * 6000 + "a\n",
    "skipped": "for i in range(64):\n for j in range(60):\n  if x: continue\n" + "  assert f(1)==1\n" * 1500,
    "if in rows": "for i in range(64):\n if x:\n  " + "a;" * 100_000 + "a\n",
    "defaults": f"def g({repeated('a{}=1', ',')(20_000)}): pass\n" + "g()\n" * 9000,
    "exceptions": f"for i in range(64):\n with pytest.raises(({'Exception,' * 9000})): f(1)\n",
    "fixtures of two": "\n".join(
        f"@pytest.fixture\ndef {name}{n}(a{n + 1}, b{n + 1}): return 1" for n in range(40) for name in "ab"
    )
    + "\ndef test_a(a0): assert f(a0) == 1\n",
    "fixtures of one": "\n".join(f"@pytest.fixture\ndef a{n}(a{n + 1}): return 1" for n in range(900))
    + "\ndef test_a(a0): assert f(a0) == 1\n",
    "helpers of one": "\n".join(f"def g{n}():\n a = g{n + 1}()\n return a" for n in range(900))
    + "\nassert f(g0()) == 1\n",
    "members": "for i in range(64):\n for j in range(64):\n  class T:\n" + "   def g(self): pass\n" * 5000,
    "conditions": "for i in range(64):\n for j in range(64):\n  if x == [" + "1," * 50_000 + "]: pass\n",
    "names": " = ".join(f"a{n}" for n in range(20_000)) + " = 1\n" + "def test_a(): pass\n" * 6000,
    "files": "".join(f"open('a{n}', 'w').write('x')\n" for n in range(1100)),
    "contents": f"x = {[1] * 2000}\nout = open('a', 'w')\n" + "json.dump(x, out)\n" * 30 + "f('a')\n" * 30,
    "big rows": "for i in range(64):\n assert len(f(i)) != [" + "[]," * 20_000 + "]\n",
}


RARER = ("exceptions", "conditions", "names", "big rows", "if in rows")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in RARER else ()) for name in HEAVY]
)
def test_a_suite_ends_at_its_budget_by_name_and_keeps_what_stood_before(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "MAX_STEPS", 1 << 16)
    reads = read_suite(f"assert f(1) == 2\n{HEAVY[name]}assert f(3) == 4\n", "f", fidelity="wide")
    assert reads.tests[0].call == "f(1)"
    assert len(reads.unread) < 10
    if reads.tests[-1].call != "f(3)":
        assert Ignored.TOO_MUCH in dict(reads.unread)


@pytest.mark.parametrize("name", ["while in rows", "skipped", "defaults", "members", "files"])
def test_no_suite_takes_more_than_its_budget(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of the budget is some lines that are run; all that is not repeated is some for each character."""
    text = CountedText(HEAVY[name][:40_000])
    monkeypatch.setattr(steps, "MAX_STEPS", 1 << 15)
    assert steps_of(lambda: read_suite(text, "f", fidelity="wide")) < 8 * steps.MAX_STEPS + 48 * len(text)


def test_contents_of_files_are_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MAX_STEPS", 1 << 15)
    assert steps_of(lambda: read_suite(CountedText(HEAVY["contents"]), "f", fidelity="wide")) < 96 * steps.MAX_STEPS


def test_the_budget_of_strict_reading_is_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MAX_STEPS", 1000)
    suite = read_suite("x = [1, 2, 3]\n" + "assert f(x) == 1\n" * 500, "f")
    assert 10 < len(suite.tests) < 500
    assert dict(suite.unread) == {Ignored.TOO_MUCH: 1}


VALUES: dict[str, Callable[[int], object]] = {
    "numbers": lambda size: list(range(size)),
    "floats": lambda size: [number + 0.5 for number in range(size)],
    "texts": lambda size: tuple(map(str, range(size))),
    "empty": lambda size: [[] for _ in range(size)],
    "pairs": lambda size: [(number, [1.5]) for number in range(size)],
    "set": lambda size: {(number, "a") for number in range(size)},
    "sets": lambda size: frozenset(frozenset({number, "a"}) for number in range(size)),
    "dict": lambda size: {number: {"a": [number]} for number in range(size)},
    "complex": lambda size: [complex(number, 1) for number in range(size)],
    "large": lambda size: [1 << (70 + number % 9) for number in range(size)],
    "text": lambda size: "[{,\n" * size,
    "deep": lambda size: [json.loads("[" * 90 + "]" * 90) for _ in range(size // 90 + 1)],
}


def changed(value: object) -> object:
    """Another one of the same size, that differs late, and in its order."""
    if isinstance(value, list | tuple):
        return type(value)([*value[:0:-1], value[0]])
    return value


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("tolerance", [0.0, 1e-6])
def test_twice_the_value_is_twice_the_work_of_a_comparison(name: str, tolerance: float) -> None:
    def compared(size: int) -> Callable[[], object]:
        value = VALUES[name](size)
        pairs = [(encode(value), encode(other)) for other in (value, changed(value))]

        def compare() -> None:
            for right, got in pairs:
                same_value(right, b" " + got, tolerance)
                same_output(right, got, tolerance)
                for checker in COMPARISONS:
                    compares(checker, right, got, tolerance)

        return compare

    require_linear(compared, 150)


CLAIMS = (
    "len(f(1)) == 3", "sorted(f(1)) == f(1)", "max(f(1)) > min(f(1))", "set(f(1)) == {1}", "all(f(1))",
    "sum(f(1)) > 2", "f(1).count(1) == 2", "1 in f(1)", "f(1)[-1] == 1", "f(1)[::-1] == f(1)", "str(f(1)) == 'a'",
    "f(1) == pytest.approx([1, 2])", "len(set(f(1))) == len(f(1))", "f(1) < [1, 2]", "list(f(1).items()) == [1]",
    "set(f(1)) <= {1, 2}", "sorted(f(1).keys()) == [1]", "f(1).lower().split() == ['a']", "not any(f(1))",
)  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_twice_the_value_is_twice_the_work_of_a_relation(name: str) -> None:
    tests = [read_suite(f"assert {claim}", "f", fidelity="wide").tests[0] for claim in CLAIMS]
    assert all(test.relation and test.value for test in tests)

    def related(size: int) -> Callable[[], object]:
        got = encode(VALUES[name](size))
        return lambda: [holds(test.relation, test.value, got, 0.0) for test in tests]  # type: ignore[arg-type]

    require_linear(related, 150)


def test_members_that_are_compared_each_with_each_are_few() -> None:
    for size in (50, 200, 400, 800):
        right = encode([[number + 0.5] for number in range(size)])
        got = encode([[number + 0.5 + 1e-9] for number in reversed(range(size))])
        assert compares("unordered", right, got, 1e-6) == (size * 2 * len(right) <= MOST_STEPS)
        assert steps_of(lambda right=right, got=got: compares("unordered", right, got, 1e-6)) < 4 * MOST_STEPS  # type: ignore[misc]


ITEMS = ("[]", "0", '""', "[[]]", '{"t":[]}', '{"s":[]}', '{"d":[]}', "null", '{"f":"inf"}', '{"c":[1.0,2.0]}')
REFERENCES = [list(range(3000)), "a," * 400 + "x" * 15_000, {"a": [1.5] * 2000}, ["abcdefgh"] * 1400, b"ab" * 4000]


@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize("reference", REFERENCES, ids=lambda each: str(each)[:20])
def test_a_value_of_too_many_items_is_unequal_before_it_is_built(
    item: str, reference: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a reference of 16 KB, whatever the items are and however they are held."""
    right = encode(reference)
    for got in (f"[{','.join([item] * 50_000)}]", f'{{"d":[{",".join([f"[{item},{item}]"] * 20_000)}]}}'):
        with monkeypatch.context() as patched:
            patched.setattr(equality, "_loads", lambda text: pytest.fail(f"{len(text)} characters are built"))
            patched.setattr(checking.json, "loads", lambda text: pytest.fail(f"{len(text)} characters are built"))
            assert not same_value(right, got.encode())
            assert not any(compares(checker, right, got.encode(), 1e-6) for checker in ("unordered", "close", "any-of"))


@pytest.mark.parametrize("piece", ["_", "1e", "f ", "import ", "raise KeyError ", '"', "'\\", '# "', "'''\\'"])
def test_no_regular_expression_goes_back_over_a_text(piece: str) -> None:
    """Their scans are not counted; over a megabyte, one that went back would take hours."""
    text = piece * ((1 << 20) // len(piece)) + "`"
    assert set(called_names([text])) <= {"f"}
    assert not zygote_kind(CallsJob(text, "f", ())).has_rare_modules
