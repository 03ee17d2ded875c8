# ruff: noqa: E501  # one assert beside the other
"""Asserts about values of all kinds, and with arguments that are code: kept exactly where they pass in plain Python."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import pytest

from codea1_env.errors import PackageMissing
from codea1_env.judging.expected_values import BatchOracle, Jury
from codea1_env.judging.judge import Expectation, Judge, Trial
from codea1_env.judging.validation import read_suites, validate
from codea1_env.problems.checkers import CHECK
from codea1_env.problems.problem import Problem
from codea1_env.reading.pure_expressions import Reason
from codea1_env.reading.responses import read_suite
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Status
from codea1_env.sandbox import LocalSandbox
from codea1_env.sandbox.protocol import Job, JobResult

IMPORTS = """
import array, collections, datetime, decimal, fractions, io, itertools, json, math, operator, functools, pytest
import numpy as np
from collections import Counter, OrderedDict, deque
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import islice
"""
EXACT = {
    "from fractions import Fraction\ndef f(x):\n    return Fraction(x, 2)": """
        f(4) == 2 | f(1) == 0.5 | f(1) == Fraction(1, 2) | f(1) == fractions.Fraction(2, 4) | f(1) == Decimal('0.5')
        f(3) == Fraction(1, 2) | f(1) == '1/2'
    """,
    "from decimal import Decimal\ndef f(x):\n    return Decimal(x) / 10": """
        f(1) == Decimal('0.1') | f(1) == Decimal('0.10') | f(1) == Fraction(1, 10) | f(10) == 1 | f(5) == 0.5
        f(1) == 0.1 | f(1) == Decimal(1)
    """,
    "def f(x):\n    return complex(x, 0)": "f(2) == 2 | f(2) == 2 + 0j | f(2) == complex(2, 0) | f(2) == Fraction(2)",
    "import datetime\ndef f(d, n=1):\n    return d + datetime.timedelta(days=n)": """
        f(date(2020, 1, 1)) == date(2020, 1, 2) | f(datetime.date(2020, 1, 1), n=31) == date(2020, 2, 1)
        f(date(2020, 1, 1)) == datetime.datetime(2020, 1, 2) | f(date(2020, 1, 1)) == '2020-01-02'
        f(datetime.datetime(2020, 1, 1, 5)) == datetime.datetime(2020, 1, 2, 5)
        f(datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)) == datetime.datetime(2020, 1, 2)
        f(datetime.datetime.fromisoformat('2020-01-01')) == datetime.datetime.strptime('2020-01-02', '%Y-%m-%d')
        f(timedelta(hours=1)) == timedelta(days=1, hours=1)
    """,
    "def f(x):\n    return range(x)": "f(3) == range(3) | f(0) == range(5, 2) | f(3) == [0, 1, 2] | f(3) == range(0, 3, 1)",
    "def f(d):\n    return d.keys()": "f({'a': 1}) == {'a'} | f({'a': 1}) == ['a'] | f({}) == frozenset()",
    "def f(d):\n    return d.items()": "f({'a': 1}) == {('a', 1)} | f({'a': 1}) == [('a', 1)]",
    "from collections import deque\ndef f(x):\n    return deque(x, 5)": """
        f([1, 2]) == deque([1, 2]) | f([1, 2]) == collections.deque((1, 2), 9) | f([1, 2]) == [1, 2]
    """,
    "import array\ndef f(x):\n    return array.array('i', x)": "f([1]) == array.array('d', [1.0]) | f([1]) == [1]",
    "from collections import Counter\ndef f(x):\n    return Counter(x)": """
        f('aab') == {'a': 2, 'b': 1} | f('aab') == Counter('baa') | f('') == Counter(a=0) | f('a') == {'a': 1, 'b': 0}
    """,
    "from collections import OrderedDict\ndef f(*x):\n    return OrderedDict(x)": """
        f(('a', 1), ('b', 2)) == {'b': 2, 'a': 1} | f(('a', 1), ('b', 2)) == OrderedDict([('b', 2), ('a', 1)])
        f(('a', 1), ('b', 2)) == OrderedDict(a=1, b=2)
    """,
    "import collections\nP = collections.namedtuple('P', 'x y')\ndef f(x):\n    return P(x, -x)": """
        f(1) == (1, -1) | f(1) == [1, -1]
    """,
    "def f(x):\n    return type(x)": "f(1) == int | f('a') == str | f(1) == bool | f([]) == 'list' | f(None) == object",
    "def f(x):\n    return ... if x else NotImplemented": "f(1) == ... | f(0) == NotImplemented | f(0) == ... | f(1) == None | f(1) == Ellipsis",
    "def f(x):\n    return slice(x, None, 2)": "f(1) == slice(1, None, 2) | f(1) == slice(1, None) | f(1) == slice(1.0, None, 2) | f(1) == (1, None, 2)",
    "def f(x):\n    return {type(each): each for each in x}": "f([1, 'a']) == {int: 1, str: 'a'} | f([1]) == {float: 1}",
    "def f(x):\n    return x[::-1]": """
        f('é'.encode()) == b'\\xa9\\xc3' | f(bytes.fromhex('00ff')) == 'ÿ'.encode('latin-1') + bytes(1)
        f('a,b'.rsplit(',', 1)) == ['b', 'a'] | f('ab'.rjust(3)) == 'ba'.ljust(3) | f('a\\nb'.splitlines()) == ['a', 'b']
    """,
    "def f(x):\n    return {x}": "f(1) == {1} | f(1) == frozenset({1}) | f(1) == [1]",
    "def f(x):\n    return float(x)": "f('inf') == math.inf | f('1') == 1e400 | f('inf') == 1e400 | f('inf') == float('inf')",
    "import math\ndef f(x):\n    return math.pi * x": "f(1) == math.pi | f(2) == math.tau | f(1) == 3",
    "import enum\nclass E(enum.IntEnum):\n    A = 1\ndef f(x):\n    return E.A": "f(1) == 1 | f(1) == 2",
    "def f(x):\n    return map(str, x)": "f([1]) == ['1']",
    "def f(x):\n    return sum(x)": "f(range(4)) == 6 | f(iter([1, 2])) == 3 | f(map(int, '12')) == 3 | f({1, 2}) == 3",
    "def f(function, *given, **named):\n    return function(*given, **named)": """
        f(len, [1]) == 1 | f(int, '3') == 3 | f(lambda v: -v, 1) == -1 | f(str.lower, 'A') == 'a'
        f(operator.add, 1, 2) == 3 | f(math.sqrt, 4) == 2.0 | f(sorted, [1, 2], key=lambda v: -v) == [2, 1]
        f(functools.partial(max, 3), 2) == 3 | f(lambda *a, b=1: (a, b), 2) == ((2,), 1) | f(len, [1]) == 2
        f(lambda s: [w.upper() for w in s.split() if w], 'a b') == ['A', 'B'] | f(operator.itemgetter(1), 'ab') == 'b'
        f(lambda x: x is None, None) == True | f(lambda: 1 / 0) == 1 | f(Fraction, 1, 2) == 0.5
        f(type, 1) == int | f(print, 1) == None | f(print, 1) == 1
    """,
    "def f(x, n=2):\n    return [each for each, _ in zip(x, range(n))]": """
        f(itertools.count()) == [0, 1] | f(2 * v for v in (1, 4)) == [2, 8] | f((v for v in 'ab'), n=1) == ['a']
        f({'a': 1}.items()) == [('a', 1)] | f(itertools.chain([3], [4])) == [3, 4] | f(io.StringIO('a\\nb')) == ['a\\n', 'b']
        f(json.dumps({'x': 1})) == ['{', '"'] | f(sorted([1, 2], key=lambda v: -v)) == [2, 1] | f(itertools.count()) == [0]
        f(Counter('aab').most_common()) == [('a', 2), ('b', 1)] | f(date(2020, 1, 2).isoformat()) == ['2', '0']
    """,
    "def f(table, x):\n    return [g(x) for g in table]": "f([len, max], [1, 2]) == [2, 2] | f((abs, lambda v: 2 * v), -1) == [1, -2]",
    "def f(kind, x):\n    return isinstance(x, kind)": "f(int, 1) == True | f((int, str), 1.5) == False | f(ValueError, 1) is False",
}
LOOKED_AT = {
    "def f(x):\n    return map(str, x)": """
        list(f([1, 2])) == ['1', '2'] | next(f([1, 2])) == '1' | sorted(f([2, 1])) == ['1', '2'] | list(f([1])) == [1]
        tuple(f([1, 2])) == ('1', '2') | set(f([1, 1, 2])) == {'1', '2'} | len(f([1])) == 1 | f([1])[0] == '1'
        Counter(f([1, 1])) == {'1': 2} | list(islice(f([1, 2, 3]), 2)) == ['1', '2']
    """,
    "def f(x):\n    while True:\n        yield x\n        x += 1": """
        next(f(3)) == 3 | list(islice(f(3), 3)) == [3, 4, 5] | list(itertools.islice(f(3), 2)) == [3]
    """,
    "def f(x):\n    yield x\n    raise KeyError": "next(f(3)) == 3 | list(islice(f(3), 1)) == [3] | list(f(3)) == [3]",
    "def f(d):\n    return d.items()": "dict(f({'a': 1})) == {'a': 1} | list(f({'a': 1})) == [('a', 1)] | len(f({'a': 1, 'b': 2})) == 2",
    "def f(x):\n    return type(x)": "f(1) is int | f('a') is str | f(1) is float | f('a') is int",
    "def f(x):\n    return ... if x else NotImplemented": "f(1) is ... | f(0) is NotImplemented | f(0) is None | f(1) is NotImplemented",
    "def f(x):\n    return slice(x, x + 2)": "f(1).start == 1 | f(1).stop == 3 | f(1).step is None | f(1).start == 2",
    "def f(d):\n    return d.values()": "list(f({'a': 1})) == [1] | f({'a': 1}) == [1]",
    "from fractions import Fraction\ndef f(x):\n    return Fraction(x, 4)": """
        f(5).numerator == 5 | f(2).denominator == 2 | str(f(2)) == '1/2' | float(f(2)) == 0.5 | f(5).numerator == 4
        f(2) + Fraction(1, 2) == 1 | round(f(7)) == 2 | math.isclose(f(2), 0.5) | f(2) == pytest.approx(0.5)
    """,
    "import datetime\ndef f(x):\n    return datetime.datetime(2020, 1, x, 5)": """
        f(3).year == 2020 and f(3).day == 3 | f(3).isoformat() == '2020-01-03T05:00:00' | f(3).date() == date(2020, 1, 3)
        f(3).weekday() == 4 | (f(3) - datetime.datetime(2020, 1, 1)).total_seconds() == 190800.0 | f(3).day == 4
        datetime.datetime(2020, 1, 2) < f(3) < datetime.datetime(2020, 1, 4)
    """,
    "import numpy as np\ndef f(x):\n    return 2 * np.array(x)": """
        np.array_equal(f([1, 2]), [2, 4]) | np.array_equal(f([1, 2]), np.array([2, 5])) | f([1, 2]).tolist() == [2, 4]
        f([[1, 2], [3, 4]]).shape == (2, 2) | (f([1, 2]) == np.array([2, 4])).all() | np.all(f([1, 2]) == [2, 4])
        np.allclose(f([0.1, 0.2]), [0.2, 0.4]) | np.allclose(f([0.1, 0.2]), [0.2, 0.5]) | f([1, 2])[1] == 4
        f([[1, 2], [3, 4]])[1, 0] == 6 | f([1, 2]).sum() == 6 | len(f([1, 2, 3])) == 3 | list(f([1, 2])) == [2, 4]
        f([0.1, 0.2]) == pytest.approx([0.2, 0.4]) | f([1, 2, 3]).max() == 7 | f([1, 2]).size == 2
        np.array_equal(f(np.arange(3)), np.array([0, 2, 4])) | (f([1, 1]) == 2).all() | f([1, 2, 3])[1:].tolist() == [4, 6]
        f(np.zeros(2, dtype=int)).tolist() == [0, 0] | f(np.arange(2).astype(float)).tolist() == [0, 3]
        f(np.array([1], dtype=object)).tolist() == [2] | f(np.zeros(1, bool)).sum() == 0
    """,
    "import collections\nP = collections.namedtuple('P', 'x y')\ndef f(x):\n    return P(x, -x)": "f(1).y == -1 | f(1).x == 2 | f(3)[1] == -3",
    "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    tags: list\n"
    "    @property\n    def twice(self):\n        return 2 * self.x\n"
    "    @property\n    def broken(self):\n        raise KeyError\ndef f(x):\n    return P(x, [x])": """
        f(1).x == 1 | f(1).tags == [1] | f(2).twice == 4 | f(1).x == 2 | f(1).nothing == 1 | f(1).broken == 1
        str(f(1)) == 'P(x=1, tags=[1])' | f(1) == 1
    """,
    "class Bag:\n    __slots__ = ('items',)\n    def __init__(self, items):\n        self.items = items\n"
    "    def __iter__(self):\n        return iter(self.items)\n    def __len__(self):\n        return len(self.items)\n"
    "def f(x):\n    return Bag(x)": "list(f([1, 2])) == [1, 2] | f([1, 2]).items == [1, 2] | next(f([1])) == 1",
    "import enum\nclass E(enum.Enum):\n    A = 1\n    B = 'x'\ndef f(x):\n    return E(x)": "f(1).name == 'A' | f('x').value == 'x' | f(1).name == 'B'",
    "def f(x):\n    return range(0, x, 2)": "list(f(5)) == [0, 2, 4] | f(5)[1] == 2 | len(f(5)) == 3 | f(5).step == 2 | sum(f(5)) == 6",
}  # fmt: skip


def asserts(texts: str) -> list[str]:
    return [each.strip() for line in texts.split("\n") for each in line.split(" | ") if each.strip()]


EXACT_ROWS = [(program, text) for program, texts in EXACT.items() for text in asserts(texts)]
LOOKED_AT_ROWS = [(program, text) for program, texts in LOOKED_AT.items() for text in asserts(texts)]


def passes(program: str, text: str) -> bool:
    """In plain Python."""
    namespace: dict[str, object] = {}
    exec(IMPORTS, namespace)
    exec(program, namespace)
    with contextlib.suppress(Exception):
        return bool(eval(text, namespace))
    return False


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with LocalSandbox() as sandbox:
        yield Judge(sandbox)


def outcome(judge: Judge, program: str, text: str, fidelity: str, **fields: object) -> tuple[Status, str, str]:
    """Status and reason of the one test of a suite, and the verdict of the program on it."""
    packages = ("numpy",) if "np." in text or "numpy" in program else ()
    problem = Problem("p", "q", "f", reference_solution=program, golden_tests=(), packages=packages, **fields)  # type: ignore[arg-type]
    config = RewardConfig(fidelity=fidelity, correct_outputs=False)  # type: ignore[arg-type]
    suites = read_suites(judge, [(problem, read_suite(f"{IMPORTS}assert {text}", "f", fidelity=fidelity))], config)  # type: ignore[arg-type]
    rows = validate(judge, suites, config, BatchOracle(judge, "reference", [Jury(problem, 1)]).answer)[0]
    expected = [row.expectation for row in rows]
    assert expected, text
    if None in expected:
        return rows[expected.index(None)].test.status, rows[expected.index(None)].test.reason, ""
    trial = Trial(problem, program, tuple(each for each in expected if each))
    verdicts = {verdict.value for verdict in judge.try_programs([trial])[0].verdicts}
    return rows[0].test.status, rows[0].test.reason, ",".join(verdicts)


@pytest.mark.parametrize("fidelity", ["strict", "wide"])
@pytest.mark.parametrize(("program", "text"), EXACT_ROWS, ids=[text for _, text in EXACT_ROWS])
def test_an_equality_is_kept_exactly_where_it_passes_in_plain_python(
    judge: Judge, program: str, text: str, fidelity: str
) -> None:
    status, reason, verdict = outcome(judge, program, text, fidelity)
    if passes(program, text):
        assert (status, verdict) == (Status.KEPT, "pass"), reason
    else:
        assert status in (Status.WRONG_EXPECTED, Status.RAISES), (status, reason)


@pytest.mark.parametrize(("program", "text"), LOOKED_AT_ROWS, ids=[text for _, text in LOOKED_AT_ROWS])
def test_a_claim_is_kept_exactly_where_it_passes_in_plain_python(judge: Judge, program: str, text: str) -> None:
    status, reason, verdict = outcome(judge, program, text, "wide")
    if passes(program, text):
        assert (status, verdict) == (Status.KEPT, "pass"), reason
    else:
        is_raised = reason == Reason.EVALUATION_ERROR
        assert is_raised or status in (Status.WRONG_EXPECTED, Status.WRONG_RELATION, Status.RAISES), (status, reason)


def test_calls_with_the_same_code_are_one_call_whatever_its_spaces(judge: Judge) -> None:
    problem = Problem("p", "q", "f", reference_solution="def f(g, x):\n    return g(x)", golden_tests=())
    suite = read_suite(
        "assert f(lambda v:-v, 1) == -1\nassert f((lambda v: -v),1) == -1\nassert f(lambda w: -w, 1) == -1", "f"
    )
    config = RewardConfig()
    oracle = BatchOracle(judge, "reference", [Jury(problem, 1)])
    (rows,) = validate(judge, read_suites(judge, [(problem, suite)], config), config, oracle.answer)
    assert [row.test.status for row in rows] == [Status.KEPT, Status.DUPLICATE, Status.KEPT]


def test_a_checker_is_never_given_code(judge: Judge) -> None:
    checker = f"def {CHECK}(arguments, returned, reference):\n    return returned == reference\n"
    program = "def f(g, x):\n    return g(x)"
    status, reason, _ = outcome(judge, program, "f(len, [1]) == 1", "strict", checker=checker)
    assert (status, reason) == (Status.REJECTED, "with_checker")
    assert outcome(judge, program.replace("g(x)", "x"), "f(1, 2) == 2", "strict", checker=checker)[0] is Status.KEPT


@pytest.mark.parametrize("text", ["f(1) == Fraction(1, 2)", "f(len) == 1", "f(lambda: 1) == 1", "f(1) == math.pi"])
def test_paper_reading_stays_what_it_is(text: str) -> None:
    (test,) = read_suite(f"```python\nassert {text}\n```", "f", fidelity="paper").tests
    assert test.reason or test.stated is None


@pytest.mark.parametrize(
    ("imports", "text", "call", "stated"),
    [
        ("from fractions import Fraction as F", "f(F(1, 2)) == F(1)", "f(fractions.Fraction(1, 2))", "fractions.Fraction(1)"),
        ("import numpy as n", "f(1) == n.nan", "f(1)", "numpy.nan"),
        ("from datetime import datetime", "f(1) == datetime(2020, 1, 1)", "f(1)", "datetime.datetime(2020, 1, 1)"),
        ("from math import inf as most", "f(most) == 1", "f(math.inf)", "1"),
        ("import datetime as dt", "f(dt.date(2020, 1, 1)) == 1", "f(datetime.date(2020, 1, 1))", "1"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("fidelity", ["strict", "wide"])
def test_an_imported_name_means_what_it_was_imported_from(
    imports: str, text: str, call: str, stated: str, fidelity: str
) -> None:
    (test,) = read_suite(f"{imports}\nassert {text}", "f", fidelity=fidelity).tests  # type: ignore[arg-type]
    assert (test.reason, test.call, test.stated) == ("", call, stated)


@pytest.mark.parametrize(
    "code",
    [
        "from mylib import Fraction\nassert f(1) == Fraction(1, 2)",
        "class Fraction:\n    pass\nassert f(1) == Fraction(1, 2)",
        "def deque(x):\n    return g(x)\nassert f(1) == deque([1])",
        "import mylib as np\nassert f(1) == np.array([1])",
    ],
)
@pytest.mark.parametrize("fidelity", ["strict", "wide"])
def test_a_name_that_the_suite_gives_another_meaning_is_not_known(code: str, fidelity: str) -> None:
    (test,) = read_suite(code, "f", fidelity=fidelity).tests  # type: ignore[arg-type]
    assert test.reason in ("forbidden_call", "forbidden_name", "attribute")


def test_next_moves_an_iterator_on() -> None:
    text = "g = f(3)\nassert next(g) == 3\nassert next(g) == 4\nassert [next(g) for _ in range(2)] == [5, 6]\nnext(g)\n"
    suite = read_suite(f"{text}assert next(g) == 8", "f", fidelity="wide")
    assert [test.call for test in suite.tests] == [
        "(list(islice(f(3), 1))[0] == 3)",
        "(list(islice(f(3), 2))[1] == 4)",
        "(list(islice(f(3), 4))[2:] == [5, 6])",
        "(list(islice(f(3), 6))[5] == 8)",
    ]


class WithoutPackages:
    """A sandbox where no package is installed."""

    def __init__(self, sandbox: LocalSandbox) -> None:
        self.version = sandbox.version
        self._sandbox = sandbox

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        if any(job.packages for job in jobs):
            raise PackageMissing("numpy must be installed")
        return self._sandbox.run(jobs)

    def close(self) -> None:
        pass


def test_a_test_that_names_a_package_which_is_not_there_has_no_value_and_harms_no_other() -> None:
    with LocalSandbox() as sandbox:
        lone = Judge(WithoutPackages(sandbox))
        suite = read_suite("assert f(1) == np.array([1])\nassert f(1 + 1) == pd.Series([1])\nassert f(2 + 1) == 3", "f")
        (found,) = lone.evaluate([suite.tests])
    assert found == ["evaluation_error", "evaluation_error", Expectation(b"[[3],[]]", b"3")]


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("return map(str, [1])", "<map ['1']>"),
        ("yield 1; raise KeyError", "<generator [1], ...>"),
        ("return {1: 2}.values()", "<dict_values [2]>"),
        ("return type('P', (), {'x': 1})()", "<P x=1>"),
        ("return [iter([1])]", "<no plain data>"),
        ("return range(3)", "range(0, 3, 1)"),
    ],
)
def test_what_came_back_is_shown(judge: Judge, body: str, shown: str) -> None:
    problem = Problem("p", "q", "f", golden_tests=())
    (result,) = judge.try_programs([Trial(problem, f"def f():\n    {body}", (Expectation(b"[[],[]]", b"5"),))])
    assert result.returned == (shown,)
