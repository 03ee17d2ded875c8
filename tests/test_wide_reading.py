"""Wide reading: where tests may stand, what is not read and why, and that strict asserts are read as ever."""

from __future__ import annotations

import ast
import gzip
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from codea1_env.reading.grammar import Fidelity
from codea1_env.reading.pure_expressions import Reason
from codea1_env.reading.responses import read_case, read_suite
from codea1_env.reading.suites import Ignored, Suite
from codea1_env.reading.test_case import TestCase
from codea1_env.reading.wide.displays import table

RECORDED = Path(__file__).resolve().parents[2] / "shared" / "data" / "recorded-humaneval-codegen16b.jsonl.gz"

FIDELITIES: tuple[Fidelity, ...] = ("strict", "wide")


def read(code: str) -> Suite:
    return read_suite(code, "f", fidelity="wide")


def said(code: str) -> list[str]:
    """Every test of a suite: what it claims, or in brackets why it is none."""
    return [f"<{test.reason}>" if test.reason else f"{test.call} == {test.claim}" for test in read(code).tests]


@pytest.mark.parametrize(
    ("code", "claims"),
    [
        ("def test_a():\n    assert f(1) == 2\n", ["f(1) == 2"]),
        ("def test_a(): assert f(1) == 2\n", ["f(1) == 2"]),
        ("    assert f(1) == 2\n    assert f(2) == 3\n", ["f(1) == 2", "f(2) == 3"]),
        ("\tassert f(1) == 2\n\tassert f(2) == 3\n", ["f(1) == 2", "f(2) == 3"]),
        ("Tests:\n```python\n    assert f(1) == 2\n```\n", ["f(1) == 2"]),
        ("def check(candidate):\n    assert candidate(1) == 2\n", ["f(1) == 2"]),
        ("def check(candidate):\n    assert candidate(1) == 2\ncheck(f)\n", ["f(1) == 2"]),
        ("def main():\n    assert f(1) == 2\nif __name__ == '__main__':\n    main()\n", ["f(1) == 2"]),
        ("def ask(a, b=3):\n    assert f(a) == b\nask(1)\nask(2, 4)\n", ["f(1) == 3", "f(2) == 4"]),
        ("def test_a():\n    ask(1)\ndef ask(a):\n    assert f(a) == 0\n", ["f(1) == 0"]),
        ("def ask(b, *a, **k):\n    assert f(*a, **k) == b\nask(1, 2, c=3)\nask(b=4)\n",
         ["f(2, c=3) == 1", "f() == 4"]),
        ("def ask(a, *, b=3):\n    assert f(a) == b\nask(1)\nask(2, b=4)\n", ["f(1) == 3", "f(2) == 4"]),
        ("def made(a=1):\n    return f(a)\nassert made() == 2\nassert made(a=2)[0] == 3\n",
         ["f(1) == 2", "(f(2)[0] == 3) == True"]),
        ("def f(x):\n    y = x + 1\n    return y\nassert f(1) == 2\n", ["f(1) == 2"]),
        ("B = [[1]]\nx = copy.deepcopy(B)\nx.append(2)\nassert f(x) == f(B.copy())\n",
         ["bool(f([[1], 2]) == f([[1]])) == True"]),
        ("s = Solution()\nassert s.f(1) == 2\nassert Solution().f(a=2) == 3\n", ["f(1) == 2", "f(a=2) == 3"]),
        ("class TestF:\n def ask(self, a, b):\n  assert f(a) == b\n def test_a(self):\n  self.ask(1, b=2)\n",
         ["f(1) == 2"]),
        ("if __name__ == '__main__':\n    assert f(1) == 2\n", ["f(1) == 2"]),
        ("for a, b in [(1, 2), (3, 4)]:\n    assert f(a) == b\n", ["f(1) == 2", "f(3) == 4"]),
        ("T = [(1, 2)]\nfor case in T:\n    assert f(case[0]) == case[1]\n", ["f(1) == 2"]),
        ("for a, b in {1: 2, 3: 4}.items():\n    assert f(a) == b\n", ["f(1) == 2", "f(3) == 4"]),
        ("for a, b in {1: 2, 5: 6, True: 3}.items():\n    assert f(a) == b\n", ["f(1) == 3", "f(5) == 6"]),
        ("for a, b in {-1: 1, -1.0: 2, (0,): 3, (False,): 4}.items():\n    assert f(a) == b\n",
         ["f(-1) == 2", "f((0,)) == 4"]),
        ("for a, b in enumerate({2, 1}):\n    assert f(a) == b\n", []),
        ("for a, b in enumerate([2, 1], start=3):\n    assert f(a) == b\n", ["f(3) == 2", "f(4) == 1"]),
        ("for a, b in enumerate([2, 1], start=len('ab')):\n    assert f(a) == b\n", []),
        ("for a, b in zip([1, 3], [2, 4]):\n    assert f(a) == b\n", ["f(1) == 2", "f(3) == 4"]),
        ("for i, (a, b) in enumerate([(1, 2)]):\n    assert f(a) == b, i\n", ["f(1) == 2"]),
        ("for n in range(2):\n    assert f(n) == n\n", ["f(0) == 0", "f(1) == 1"]),
        ("for a in [1, 2]:\n    for b in [3]:\n        assert f(a, b) == 0\n", ["f(1, 3) == 0", "f(2, 3) == 0"]),
        ("for c in [{'x': [1, 2], 'y': 3}]:\n    assert f(*c['x']) == c['y']\n", ["f(1, 2) == 3"]),
        ("def test_a():\n    result = f([1])\n    assert result == [1]\n", ["f([1]) == [1]"]),
        ("def test_a():\n    x, y = 1, 2\n    x, y = y, x\n    assert f(x) == y\n", ["f(2) == 1"]),
        ("from solution import f as g\nassert g(1) == 2\n", ["f(1) == 2"]),
        ("g = f\nassert g(1) == 2\n", ["f(1) == 2"]),
        ("assert f(1) == 2 and f(2) == 3\n", ["f(1) == 2", "f(2) == 3"]),
        ("assert f(1) == 2; assert f(2) == 3\n", ["f(1) == 2", "f(2) == 3"]),
        ("assert f(1)\nassert not f(2)\n", ["bool(f(1)) == True", "(not f(2)) == True"]),
        ("assert f(1) is True\nassert f(2) is not None\n", ["f(1) == True", "(f(2) is not None) == True"]),
        ("assert f(1) == f(2)\n", ["bool(f(1) == f(2)) == True"]),
        ("assert f(f(1)) == 2\n", ["(f(f(1)) == 2) == True"]),
        ("assert f(f) == 2\n", ["<entry_point_again>"]),
        ("assert f(1) == Mode.R | Mode.W\n", ["(f(1).name in ('R|W', 'W|R')) == True"]),
        ("np.testing.assert_allclose(f(1).sum(axis=0), [2])\n",
         ["bool(numpy.allclose(f(1).sum(axis=0), [2], 1e-07, 0.0, True)) == True"]),
    ],
)  # fmt: skip
def test_where_a_test_may_stand(code: str, claims: list[str]) -> None:
    assert said(code) == claims


LOW = "(raised(f(1), 'KeyError')['raises'] == 'KeyError' and 'low' in raised(f(1), 'KeyError')['message']) == True"
UNITTEST = """
import unittest
class TestF(unittest.TestCase):
    def test_all(self):
        {}
if __name__ == "__main__":
    unittest.main()
"""


@pytest.mark.parametrize(
    ("line", "claim"),
    [
        ("self.assertEqual(f(1), 2)", "f(1) == 2"),
        ("self.assertEqual(f(1), 2, 'message')", "f(1) == 2"),
        ("self.assertEqual(first=f(1), second=2, msg='')", "f(1) == 2"),
        ("self.assertListEqual(f(1), [2])", "f(1) == [2]"),
        ("self.assertTrue(f(1))", "bool(f(1)) == True"),
        ("self.assertTrue(f(1) == 2)", "f(1) == 2"),
        ("self.assertFalse(f(1))", "(not f(1)) == True"),
        ("self.assertIsNone(f(1))", "f(1) == None"),
        ("self.assertIs(f(1), True)", "f(1) == True"),
        ("self.assertIsNotNone(f(1))", "(f(1) is not None) == True"),
        ("self.assertNotEqual(f(1), 2)", "(f(1) != 2) == True"),
        ("self.assertIn(f(1), [2, 3])", "(f(1) in [2, 3]) == True"),
        ("self.assertGreater(f(1), 2)", "(f(1) > 2) == True"),
        ("self.assertCountEqual(f(1), [2])", "assertCountEqual(f(1), [2]) == True"),
        ("self.assertCountEqual(f(1), f(2))", "bool(sorted(f(1)) == sorted(f(2))) == True"),
        ("self.assertIsInstance(f(1), list)", "isinstance(f(1), list) == True"),
        ("self.assertAlmostEqual(f(1), 2.5)", "(round(abs(f(1) - 2.5), 7) == 0) == True"),
        ("self.assertAlmostEqual(f(1), 2.5, places=3)", "(round(abs(f(1) - 2.5), 3) == 0) == True"),
        ("self.assertAlmostEqual(f(1), 2.5, delta=0.1)", "(abs(f(1) - 2.5) <= 0.1) == True"),
        ("self.assertAlmostEqual(f(1), [2.5])", "f(1) == [2.5]"),
        ("self.assertAlmostEqual(f(1), -float('inf'))", "f(1) == -float('inf')"),
        ("self.assertAlmostEqual(math.inf, f(1))", "f(1) == math.inf"),
        ("self.assertRaises(KeyError, f, 1)", "(raised(f(1), 'KeyError')['raises'] == 'KeyError') == True"),
        ("self.assertRaises(KeyError, lambda: f(1))", "(raised(f(1), 'KeyError')['raises'] == 'KeyError') == True"),
        ("with self.assertRaises(KeyError): f(1)", "(raised(f(1), 'KeyError')['raises'] == 'KeyError') == True"),
        (
            "with pytest.raises((KeyError, Own)) as e: x = f(1)",
            "(raised(f(1), 'KeyError', 'Own')['raises'] in ['KeyError', 'Own']) == True",
        ),
        ("with self.assertRaises(KeyError): f(1); f(2)", "<expects_exception>"),
        ("with pytest.raises(KeyError, match=pattern): f(1)", "<expects_exception>"),
        *(
            (f"with pytest.raises(KeyError, match=re.escape({text})): f(1)", "<expects_exception>")
            for text in ("wanted.text", "5", "f'{wanted}'")
        ),
        (
            "with pytest.raises(Own): f(date(2020, 1, 1))",
            "(raised(f(date(2020, 1, 1)), 'Own')['raises'] == 'Own') == True",
        ),
        ("with pytest.raises(errors.Own): f(1)", "(raised(f(1), 'Own')['raises'] == 'Own') == True"),
        (
            "with pytest.raises(json.decoder.JSONDecodeError): f(1)",
            "(raised(f(1), 'JSONDecodeError')['raises'] == 'JSONDecodeError') == True",
        ),
        ("with pytest.raises(errors().Own): f(1)", "<expects_exception>"),
        ("E = KeyError; self.assertRaises(E, f, 1)", "(raised(f(1), 'KeyError')['raises'] == 'KeyError') == True"),
        (
            "for E in [KeyError]: self.assertRaises((E, Own), f, 1)",
            "(raised(f(1), 'KeyError', 'Own')['raises'] in ['KeyError', 'Own']) == True",
        ),
        ("with pytest.raises(KeyError): g(1)", "<not_entry_point>"),
        ("with self.subTest(1): self.assertEqual(f(1), 2)", "f(1) == 2"),
        (
            "with self.subTest(1), self.assertRaises(KeyError): f(1)",
            "(raised(f(1), 'KeyError')['raises'] == 'KeyError') == True",
        ),
        ("with self.assertRaises(KeyError), self.subTest(1): f(1)", "<expects_exception>"),
        ("with pytest.raises(KeyError, match=re.escape('low')): f(1)", LOW),
        ("for text in ['low']: self.assertRaisesRegex(KeyError, text, f, 1)", LOW),
        ("for text in ['low']:\n            with pytest.raises(KeyError, match=text): f(1)", LOW),
    ],
)
def test_unittests_methods_are_conditions(line: str, claim: str) -> None:
    assert said(UNITTEST.format(line)) == [claim]
    assert said(f"def test_a(self):\n    {line}\n") == [claim]  # a method whose class was left out


def test_of_a_method_the_same_is_read_as_of_a_function() -> None:
    entry_point = "Solution().f"
    lines = "assert len(s.f([1])) == 2\nassert not s.f(a=2)\nassert s.f(1) == s.f(2)\nassert sorted(s.g(1)) == []\n"
    suite = read_suite(f"s = Solution()\n{lines}self.assertIn(s.f(1), [2])", entry_point, fidelity="wide")
    assert [test.reason or str(test.call) for test in suite.tests] == [
        "(len(Solution().f([1])) == 2)",
        "(not Solution().f(a=2))",
        "bool(Solution().f(1) == Solution().f(2))",
        "not_entry_point",
        "(Solution().f(1) in [2])",
    ]
    stored = [TestCase(test.call, "True") for test in suite.tests if test.call]
    assert [read_case(case, entry_point, "wide").call for case in stored] == [case.call for case in stored]
    (wrapped,) = read_suite("assert len(Solution().f([1])) == 2", entry_point).tests
    assert wrapped.reason == Reason.WRAPPED_CALL


PARAMETRIZED = """
import pytest
@pytest.mark.parametrize({})
def test_f(a, b):
    assert f(a) == b
"""


@pytest.mark.parametrize(
    ("arguments", "claims"),
    [
        ("'a, b', [(1, 2), (3, 4)]", ["f(1) == 2", "f(3) == 4"]),
        ("('a', 'b'), [[1, 2]], ids=['x']", ["f(1) == 2"]),
        ("['a', 'b'], [pytest.param(1, 2, id='x')]", ["f(1) == 2"]),
        ("'b', [3, 4])\n@pytest.mark.parametrize('a', [1, 2]", ["f(1) == 3", "f(1) == 4", "f(2) == 3", "f(2) == 4"]),
    ],
)
def test_a_parametrised_test_is_one_for_each_row(arguments: str, claims: list[str]) -> None:
    assert sorted(said(PARAMETRIZED.format(arguments))) == claims


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("@pytest.mark.skip\ndef test_a():\n    assert f(1) == 2\n", Ignored.DECORATED),
        ("@mock.patch('x')\nclass TestA:\n    def test_a(self):\n        assert f(1) == 2\n", Ignored.DECORATED),
        ("@pytest.mark.parametrize('a', rows())\ndef test_a(a):\n    assert f(a) == 2\n", Ignored.DECORATED),
        (PARAMETRIZED.format("'a, b', [pytest.param(1, 2, marks=pytest.mark.xfail)]"), Ignored.DECORATED),
        ("def test_a(monkeypatch):\n    assert f(1) == 2\n", Ignored.FUNCTION),
        ("def helper():\n    assert f(1) == 2\n", Ignored.FUNCTION),
        ("async def helper():\n    assert f(1) == 2\n", Ignored.FUNCTION),
        ("def test_a(f):\n    assert f(1) == 2\n", Ignored.FUNCTION),
        ("class Helper:\n    def run(self):\n        assert f(1) == 2\n", Ignored.CLASS),
        ("if unknown:\n    assert f(1) == 2\n", Ignored.BLOCK),
        ("while x:\n    assert f(1) == 2\n", Ignored.BLOCK),
        ("try:\n    assert f(1) == 2\nexcept Exception: pass\n", Ignored.BLOCK),
        ("for a in rows():\n    assert f(a) == 2\n", Ignored.BLOCK),
        ("for f in [1]:\n    assert f(1) == 2\n", Ignored.BLOCK),
        ("with open('x'):\n    assert f(1) == 2\n", Ignored.BLOCK),
        ("print(f(1))\n", Ignored.STATEMENT),
    ],
)
def test_what_may_not_run_is_not_read_and_counted_by_name(code: str, reason: Ignored) -> None:
    suite = read(code)
    assert (suite.tests, [name for name, _ in suite.unread]) == ((), [reason])


@pytest.mark.parametrize(
    ("code", "claims"),
    [
        ("def test_a():\n    return\n    assert f(1) == 2\n", []),
        ("def test_a():\n    if x:\n        return\n    assert f(1) == 2\n", []),
        ("def test_a():\n    try:\n        g()\n    except OSError:\n        return\n    assert f(1) == 2\n", []),
        ("def test_a():\n    while x:\n        break\n    assert f(1) == 2\n", ["f(1) == 2"]),
        ("def test_a():\n    def g():\n        return 1\n    assert f(1) == 2\n", ["f(1) == 2"]),
        ("def test_a():\n    if x:\n        raise ValueError\n    assert f(1) == 2\n", ["f(1) == 2"]),
        (
            "def test_a():\n    pytest.skip('why')\n    assert f(1) == 2\ndef test_b():\n    assert f(3) == 4\n",
            ["f(3) == 4"],
        ),
        (
            "for a in [1, 2]:\n    if a == 1:\n        continue\n    assert f(a) == 2\nassert f(3) == 4\n",
            ["f(2) == 2", "f(3) == 4"],
        ),
        ("for a in [1, 2]:\n    if a == x:\n        continue\n    assert f(a) == 2\nassert f(3) == 4\n", ["f(3) == 4"]),
        (
            "if False:\n    assert f(1) == 2\nelif 'a' not in 'b' and not []:\n    assert f(2) == 3\n",
            ["f(2) == 3"],
        ),
        (
            "for a in [1, 'x', None]:\n    if isinstance(a, int):\n        assert f(a) == 2\n    elif a is not None:\n"
            "        assert f(a) == 3\n",
            ["f(1) == 2", "f('x') == 3"],
        ),
        ("if 1 < 'a':\n    assert f(1) == 2\n", []),
        ("for a in [1, 2]:\n    assert f(a) == 2\n    if a:\n        continue\n", ["f(1) == 2", "f(2) == 2"]),
        ("for a in [1, 2]:\n    assert f(a) == 2\n    break\nassert f(3) == 4\n", ["f(1) == 2", "f(3) == 4"]),
        (
            "for a in [1, 2]:\n    assert f(a) == 2\n    if a:\n        break\nassert f(3) == 4\n",
            ["f(1) == 2", "f(3) == 4"],
        ),
        ("def test_a():\n    for a in [1, 2]:\n        return\n    assert f(1) == 2\n", []),
        ("def test_a():\n    it.skip(1)\n    assert f(1) == 2\n", ["f(1) == 2"]),
        ("if __name__ == '__main__':\n    sys.exit(0)\nassert f(1) == 2\n", ["f(1) == 2"]),
        ("for a in [1, 2]:\n    while x:\n        break\n    else:\n        break\n    assert f(a) == 2\n", []),
        ("for a in [1]:\n    while x:\n        break\n    else:\n        pass\n    assert f(a) == 2\n", ["f(1) == 2"]),
        ("for a in [1, 2]:\n    with self.subTest(a):\n        break\n    assert f(a) == 2\n", []),
        ("def test_a():\n    if x:\n        pytest.skip('why')\n    assert f(1) == 2\n", []),
        ("def test_a(self):\n    if x:\n        self.skipTest('why')\n    assert f(1) == 2\n", []),
        ("if x:\n    sys.exit(1)\nassert f(1) == 2\n", ["f(1) == 2"]),
        # What a condition may have left out may leave, or change a name, as well.
        (
            "def test_a():\n    for a in [1]:\n        if x:\n            continue\n        if y:\n            return\n"
            "    assert f(1) == 2\n",
            [],
        ),
        ("def test_a():\n    if x:\n        return\n    z.append(1)\nz = [1]\nassert f(z) == 2\n", ["f([1]) == 2"]),
        (
            "z = [1]\ndef test_a():\n    if x:\n        return\n    z.append(1)\nassert f(z) == 2\n",
            ["<forbidden_name>"],
        ),
    ],
)
def test_what_may_not_run_because_of_what_stands_before_it_is_not_read(code: str, claims: list[str]) -> None:
    assert said(code) == claims


@pytest.mark.parametrize("claim", ["f(1) == pytest.approx(y)", "f(1) == approx(y)", "math.isclose(f(1), y[0])"])
def test_what_a_value_is_compared_with_stays_known(claim: str) -> None:
    first, second = read(f"y = [1.5]\nassert {claim}\nassert {claim}\n").tests
    assert not first.reason
    assert second == first


@pytest.mark.parametrize(
    "shadow", ["len = g[0]", "def len(x):\n    return 2", "from x import len", "class len: pass", "import y as len"]
)
def test_a_builtin_under_another_meaning_is_not_pythons(shadow: str) -> None:
    assert said("assert len(f(1)) == 2\n") == ["(len(f(1)) == 2) == True"]
    (claim,) = said(f"{shadow}\nassert len(f(1)) == 2\n")
    assert claim.startswith("<")


def test_the_names_of_a_function_end_with_it() -> None:
    assert said("x = 1\ndef test_a():\n    x = 2\n    assert f(x) == 0\nassert f(x) == 0\n") == [
        "f(2) == 0",
        "f(1) == 0",
    ]


def test_of_a_function_that_breaks_off_the_whole_lines_are_read() -> None:
    code = "def test_a():\n    x = 3\n    assert f(1) == 2\n    assert f(x) == 4\n    assert f(5) == [1,"
    assert said(code) == ["f(1) == 2", "f(3) == 4", "<syntax>"]


def test_each_test_shows_the_line_that_it_was_written_in() -> None:
    tests = read(UNITTEST.format("self.assertTrue(f(1) > 2)")).tests
    assert [test.source for test in tests] == ["self.assertTrue(f(1) > 2)"]
    assert [test.source for test in read("for a in (1, 2):\n    assert f(a) > a\n").tests] == ["assert f(a) > a"] * 2


def test_names_that_comprehensions_bind_count_as_read() -> None:
    """Else they were gone through for every comprehension inside, and for every row."""
    names = ",".join(f"a{n:x}" for n in range(9000))
    code = f"y = 1\nfor i in range(9):\n    assert f([[{'[0 for q in []],' * 60}] for {names} in []]) == y\n"
    assert {test.reason for test in read(code).tests} == {Reason.TOO_LARGE}
    assert {test.reason for test in read(code.replace(names, "a")).tests} == {""}


@pytest.mark.parametrize(
    "code",
    ["assert f(1) == 2\n", "assert 2 == f(1)\n", "x = [1]\nassert f(x) is None\n", "assert f(1 + 1) == max(1, 2)\n",
     "assert f() == 'a' * 3\n", "assert f(open('x')) == 1\n", "assert f(1) == g\n", "assert f(1 == 2\n", "assert\n"],
)  # fmt: skip
def test_a_strict_assert_is_read_as_ever(code: str) -> None:
    assert read(code).tests == read_suite(code, "f").tests


@pytest.mark.skipif(not RECORDED.exists(), reason=f"the recorded outputs are not at {RECORDED}")
def test_every_test_that_strict_reads_in_recorded_suites_wide_reads_too() -> None:
    with gzip.open(RECORDED, "rt") as lines:
        records = [json.loads(line) for line in lines][::6]
    compared = more = 0
    for record in records:
        for response in record["suites"][::5]:
            strict, wide = (
                Counter((test.call, test.stated) for test in suite.tests if not test.reason)
                for suite in (read_suite(response, record["entry_point"], fidelity=each) for each in FIDELITIES)
            )
            assert not strict - wide, response
            compared, more = compared + strict.total(), more + (wide - strict).total()
    assert compared > 100
    assert more > 0


@pytest.mark.parametrize(
    "line",
    [
        "with pytest.raises(KeyError, match=r'no \\(a\\)'): f(1)",
        "self.assertRaisesRegex(KeyError, 'no \\\\(a\\\\)', f, 1)",
    ],
)
def test_an_exceptions_type_and_a_text_in_its_message_are_one_test(line: str) -> None:
    (claim,) = said(UNITTEST.format(line))
    raised = "raised(f(1), 'KeyError')"
    assert claim == f"({raised}['raises'] == 'KeyError' and 'no (a)' in {raised}['message']) == True"


def test_of_tables_upon_tables_the_first_rows_are_read() -> None:
    """64 ** 9 rows in all."""
    tables = "\n".join(f"@pytest.mark.parametrize('x{n}', {list(range(64))})" for n in range(9))
    suite = read(f"{tables}\ndef test_it({', '.join(f'x{n}' for n in range(9))}):\n    assert f(x8, x0) == 1\n")
    assert [str(test.call) for test in suite.tests[:3]] == ["f(0, 0)", "f(0, 1)", "f(0, 2)"]
    assert (len(suite.tests), dict(suite.unread)) == (256, {Ignored.ROWS: 1})


@pytest.mark.parametrize(
    "claim", ['(f(1) == 2, "no")', "[f(1)]", "lambda: f(1) == 2", "(f(1) == 2 for _ in [1])", "not (lambda: f(1))"]
)
def test_what_is_true_whatever_comes_back_is_no_claim(claim: str) -> None:
    assert [test.reason for test in read(f"assert {claim}").tests] == [Reason.NOT_A_COMPARISON]


def test_reasons_of_wide_reading_name_themselves() -> None:
    suite = read("def test_a():\n    assert f(1) == f(open)\n    with pytest.raises(a().E):\n        f(1)\n")
    assert [test.reason for test in suite.tests] == [Reason.FORBIDDEN_NAME, Reason.EXPECTS_EXCEPTION]


@pytest.mark.parametrize("fidelity", FIDELITIES)
@pytest.mark.parametrize(
    "change",
    [
        "while x < 5:\n    x += 1",
        "print(x := 5)",
        "if ready:\n    x = 5",
        "[x := i for i in (4, 5)]",
        "try:\n    x = 5\nexcept ValueError:\n    pass",
        "x = [4, 5",
        "match [5]:\n    case [x]:\n        pass",
        "try:\n    g()\nexcept ValueError as x:\n    pass",
        "if ready:\n    def x(): pass",
    ],
)
@pytest.mark.parametrize("end", ["", "assert f(1", "That is all.\n"])
def test_a_name_that_code_changes_is_forgotten_whether_the_suite_parses_or_not(
    fidelity: Fidelity, change: str, end: str
) -> None:
    suite = read_suite(f"x = 1\n{change}\nassert f(x) == 6\n{end}", "f", fidelity=fidelity)
    assert not any(test.claim for test in suite.tests if not test.reason), "nothing that is called f(1)"


@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_prose_beside_code_leaves_the_names_that_it_does_not_speak_of(fidelity: Fidelity) -> None:
    suite = read_suite("Some tests:\nx = [1]\nThe first one.\nassert f(x) == 1\nassert f(2", "f", fidelity=fidelity)
    assert [test.call for test in suite.tests] == ["f([1])", None]


@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_an_object_of_the_entry_points_class_stays_whatever_its_methods_are_named(fidelity: Fidelity) -> None:
    code = "s = Solution()\nassert s.reverse(123) == 321\nprint(s.reverse(1))\nassert s.reverse(120) == 21\n"
    suite = read_suite(code, "Solution().reverse", fidelity=fidelity)
    assert [test.call for test in suite.tests] == ["Solution().reverse(123)", "Solution().reverse(120)"]
    changed = "x = list()\nx.reverse()\nassert f(x) == 1\n"
    assert [test.reason for test in read_suite(changed, "f", fidelity=fidelity).tests] == ["forbidden_name"]


@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_a_function_of_the_suites_own_hides_pythons(fidelity: Fidelity) -> None:
    code = "def sorted(xs):\n    return xs\nassert f(sorted([2, 1])) == 1\n"
    calls = [test.call for test in read_suite(code, "f", fidelity=fidelity).tests]
    assert calls == [{"strict": None, "wide": "f([2, 1])"}[fidelity]]


@pytest.mark.parametrize(
    ("code", "claims"),
    [
        # What a name stands for is known before another one is bound.
        ("def check(x, y):\n    assert f(x) == y\nx = 4\nx += 2\ncheck(5, x)\n", ["<forbidden_name>"]),
        ("x = 0\nx += 7\nx, y = 1, x\nassert f(y) == 7\n", ["<forbidden_name>"]),
        ("a, b = 1, 2\na, b = [b, a]\nassert f(a) == b\n", ["f(2) == 1"]),
        ("x = 3\ndef check(x, y=x):\n    assert f(x) == y\ncheck(9)\n", ["f(9) == 3"]),
        ("c = 1\nc += 1\nfor c, d in [(1, c), (2, c)]:\n    assert f(c) == d\n", ["<forbidden_name>"] * 2),
        # Of a function that calls it, a function sees nothing; of one around it, everything.
        (
            "n = 3\ndef check(x):\n    assert f(x, n) == 1\ndef test_a():\n    n = 10\n    check(2)\n",
            ["f(2, 3) == 1"],
        ),
        (
            "n = 3\ndef test_a():\n    n = 10\n    def check(x):\n        assert f(x, n) == 1\n    check(2)\n",
            ["f(2, 10) == 1"],
        ),
        ("def check(a, b, /):\n    assert f(a) == b\na = 1\ncheck(2, 3)\n", ["f(2) == 3"]),
        # What a function is given it may change, unless it gives that name to something else.
        ("def fill(q):\n    q.append(2)\nx = [1]\nfill(x)\nassert f(x) == 3\n", ["f([1, 2]) == 3"]),
        ("def fill(q):\n    q.sort()\nx = [2, 1]\nfill(q=x)\nassert f(x) == 3\n", ["<forbidden_name>"]),
        ("def fill(q):\n    q = [5]\n    q.append(2)\nx = [1]\nfill(x)\nassert f(x) == 3\n", ["f([1]) == 3"]),
        # Displays, tables and blocks mean what Python means by them.
        ("x = [*[10, 20], 5]\nassert f(x[1]) == 21\n", ["<starred>"]),
        ("given = {'a': 1}\nassert f(**given) == 2\n", ["f(a=1) == 2"]),
        ("for given in [{'a': 1}, {'b': 2}]:\n    assert f(0, **given) == 2\n", ["f(0, a=1) == 2", "f(0, b=2) == 2"]),
        ("assert f(a=1, **{'a': 2}) == 2\n", ["<repeated_keyword>"]),
        ("assert f(**{'a': 1, **{'b': 2}}) == 2\n", ["<starred>"]),
        ("assert f(**{'a b': 1}) == 2\n", ["<starred>"]),
        (
            "t = {1: 2}\nfor a, b in t.items():\n    assert f(a) == b\nassert f(3) == t\n",
            ["f(1) == 2", "f(3) == {1: 2}"],
        ),
        ("t = {1: [2]}\nfor a in t.values():\n    a.append(3)\nassert f(3) == t\n", ["<forbidden_name>"]),
        ("t = {1: [2]}\nnext(iter(t.values())).append(3)\nassert f(3) == t\n", ["<forbidden_name>"]),
        ("async def g():\n    return 1\nassert f([g]) == [1]\n", ["<forbidden_name>"]),
        ("t = [1, 2]\nrandom.Random(1).shuffle(t)\nassert f(3) == t\n", ["<forbidden_name>"]),
        ("t = [1, 2]\nfill(to=t)\nassert f(3) == t\n", ["<forbidden_name>"]),
        ("t, u = [1, 2], 'a'\nprint(t)\nf(t)\nshow(u)\nassert f(u) == t\n", ["f('a') == [1, 2]"]),
        ('assert f("""a\n   \nb""") == 1\n', [r"f('a\n   \nb') == 1"]),
        ('    assert f("""a\n   \n    b""") == 1\n', [r"f('a\n   \nb') == 1"]),
        (
            "@pytest.mark.parametrize(['x'], [([1, 2],)])\ndef test_a(x):\n    assert f(x) == 1\n",
            ["f([1, 2]) == 1"],
        ),
        (
            "@pytest.mark.parametrize('x', [([1, 2],)])\ndef test_a(x):\n    assert f(x) == 1\n",
            ["f(([1, 2],)) == 1"],
        ),
        ("@pytest.mark.parametrize('x', [1], indirect=True)\ndef test_a(x):\n    assert f(x) == 1\n", []),
        ("if __name__ != '__main__':\n    assert f(1) == 2\n", []),
        ("from numpy import isclose\nassert isclose(f(1), 2)\n", ["<forbidden_call>"]),
        ("from math import isclose\nassert isclose(f(1), 2.0)\n", ["isclose(f(1), 2.0) == True"]),
        # Of code that breaks off, a block is read where it is a function's.
        ("n = 1\nfor n in [5, 6]:\n    assert f(n) == n * 2\n    assert f(n", []),
        ("if False:\n    assert f(1) == 99\n    assert f(x", []),
        ("x = 1\ndef test_a(x):\n    assert f(x) == 2\n    assert f(x", ["<forbidden_name>", "<syntax>"]),
        (
            "def test_a():\n    x = 7\n    assert f(\ndef test_b():\n    assert f(x) == 1\n",
            ["<syntax>", "<forbidden_name>"],
        ),
    ],
)
def test_a_test_is_read_as_python_means_it_or_not_at_all(code: str, claims: list[str]) -> None:
    assert said(code) == claims


@pytest.mark.parametrize(
    ("value", "statement"), [("[" * 60 + "]" * 60, "x.assert_any(1)"), ("'x'", "assert (x := f(1)) == 2")]
)
def test_what_a_name_stands_for_ends_no_reading(value: str, statement: str) -> None:
    assert read(f"x = {value}\n{statement}\nassert f(3) == 4\n").tests[-1].call == "f(3)"


@pytest.mark.parametrize(
    "code",
    [
        "with patch():\n    assert f(1) == 2",
        "@patch()\ndef test_a():\n    assert f(1) == 2",
        f"np.testing.assert_almost_equal(f(1), 2, decimal=1{'0' * 400})",
        f"g = islice(f(1), {10**14}, None)\ng.send(1)",
        # What `ast` does not write: a number of thousands of digits, or before 3.12 an f-string with a backslash.
        *(
            form.replace("HUGE", huge)
            for huge in ("0x" + "f" * 6000, "f\"{'a\u00a0'}\"")
            for form in (
                "try:\n    f(1)\n    x[HUGE]()\nexcept KeyError:\n    pass",
                "@marked(HUGE)\nasync def test_a():\n    assert f(1) == 2",
                "class TestA:\n    @marked(HUGE)\n    def ask(self): pass\n    def test_a(self): pass",
                "class TestA:\n    @pytest.fixture(params=[HUGE])\n    def g(self): pass\n    def test_a(self): pass",
                "assert printed(lambda a=HUGE: f(1)) == 2",
                "assert (lambda it: [it.a(), it][HUGE])(f(1)) == 2",
                "n = HUGE\nopen(f'a{n}', 'w').write('1')",
                "assert [f(n) for n in (1, HUGE)] == [1, 2]",
                "assert f([HUGE, HUGE + 'a']) == 2",
            )
        ),
    ],
)
def test_odd_arguments_end_no_reading(code: str) -> None:
    assert said(f"{code}\nassert f(3) == 4\n")[-1] == "f(3) == 4"


def test_an_object_is_what_a_function_of_the_suite_has_made_of_it() -> None:
    suite = "def ask(c, n):\n    c.up(n)\n    assert c.size() == n\nc = C()\nask(c, 2)\nassert c.size() == 2\n"
    after = "(lambda it: [it.up(2), it][-1])(C())", "(lambda it: [it.up(2), it.size(), it][-1])(C())"
    tests = read_suite(suite, "C", fidelity="wide").tests
    assert [test.call for test in tests] == [f"({each}.size() == 2)" for each in after]


def test_colliding_keys_of_a_table_are_told_apart_without_a_hash_table() -> None:
    # As in `test_literals.py`: of a dict that is hashed by these, this would take minutes.
    keys: list[ast.expr | None] = [ast.Constant((2**61 - 1) * number) for number in range(60_000)]
    rows = table(ast.Dict(keys, [ast.Constant(1)] * len(keys)))
    assert rows is not None
    assert rows.is_cut


@pytest.mark.parametrize("text", ["\\n", "{'''\n", 'it\'s "\t"', "\u00a0"])
@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_a_text_in_an_f_string_may_be_any(text: str, fidelity: Fidelity) -> None:
    forms = ("f'{x}:'", "f'{x!r}{x!s}{x!a}'")
    asserts = "\n".join(f"assert f({form}) == 1" for form in (*forms, "f'{[x]}'", "[f'{x:>9}']"))
    tests = read_suite(f"x = {text!r}\n{asserts}", "f", fidelity=fidelity).tests
    given = [eval(str(test.call), {"f": lambda value: value}) for test in tests if not test.reason]
    assert given[:2] == [eval(form, {"x": text}) for form in forms]
    for test in tests:  # before 3.12 Python cannot write all of them
        assert test.reason == "f_string" or test.expression


@pytest.mark.parametrize(
    "claim",
    ["{} == 'low'", "'low' in {}", "{}.upper() == 'LOW'", "repr({}) == 'low'", "sorted({}, key=len) == []", "{} is {}"],
)
def test_of_an_exception_nothing_but_its_text_is_known(claim: str) -> None:
    caught = "with pytest.raises(KeyError) as e: f(1)\nassert " + claim.replace("{}", "e.value")
    tried = "try: f(1)\nexcept KeyError as e:\n    assert " + claim.replace("{}", "e") + "\nelse: assert False"
    for suite in (caught, tried):
        assert [bool(test.reason) for test in read(suite).tests] == [False, True]


@pytest.mark.parametrize(
    "change",
    [
        "def g():\n    x.append(2)\ng()",
        "def g():\n    global x\n    x = [5]\ng()",
        "def g(x):\n    x = y\ndef h():\n    x.sort()\n    g(1)\nh()",
        "def test_a():\n    x.append(2)",
        "def test_a():\n    x.append(2)\n    y = [x for x in [3]]",
        "def test_a():\n    x.append(2)\n    y = lambda x: x",
        "def test_a():\n    x.append(2)\n    def h(x):\n        x = 1",
        "def g():\n    x.append(2)\n    return 1\ny = g()",
        "@pytest.fixture\ndef a():\n    x.append(2)\n    return x\ndef test_a(a): pass",
    ],
)
def test_what_a_function_does_to_a_name_of_the_module_is_seen_behind_it(change: str) -> None:
    own = re.sub(r"\b(global )?x\b", r"z", change)
    assert said(f"x = z = [1]\n{change}\nassert f(x) == 3\n")[-1] == "<forbidden_name>"
    assert said(f"x = z = [1]\n{own}\nassert f(x) == 3\n")[-1] == "f([1]) == 3"


@pytest.mark.parametrize("own", ["x = [2]\n    x.append(1)", "x = y\n    x = [3]", "import x", "for x in y(): pass"])
def test_names_of_a_functions_own_are_no_others(own: str) -> None:
    assert said(f"x = [1]\ndef test_a():\n    {own}\nassert f(x) == 3\n")[-1] == "f([1]) == 3"


@pytest.mark.parametrize("parts", ["1 + ", "2 ** ", "1 if 1 else ", "f(1) + "])
def test_an_expression_of_many_levels_is_rejected_and_ends_no_reading(parts: str) -> None:
    assert said(f"assert f({parts * 400}1) == 1\nassert f(3) == 4\n") == ["<too_deep>", "f(3) == 4"]


@pytest.mark.parametrize(
    "claim", ["max(__returned__, f(1), key=abs) == 2", "__returned__ == f(1)", "f(1) == __returned__"]
)
def test_no_suite_names_what_was_returned(claim: str) -> None:
    (test,) = read_suite(f"assert {claim}", "f", fidelity="wide").tests
    assert test.reason
