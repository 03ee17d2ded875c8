"""What suites claim that is true: kept where it says enough, unread where data do not tell, and never called wrong.

Each row is a function, a claim about it that is true in plain Python or false, and the status that it gets.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.problems.problem import Problem
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox import open_sandbox

INTEGER = "import numpy as np\ndef f(n):\n    return np.int64(n)\n"
ROWS = "def f(n):\n    return list(range(n))\n"
PATH = "from pathlib import Path\ndef f():\n    return Path('a/b.txt')\n"
NAMESPACE = "from types import SimpleNamespace\ndef f(n):\n    return SimpleNamespace(a=n, b=2)\n"
OWN = """
class Own:
    def __init__(self, n):
        self.parts = [n]
    def __eq__(self, other):
        return self.parts == other.parts
def f(n):
    return Own(n)
"""
COUNTS = """
from collections import defaultdict
def f(text):
    found = defaultdict(int)
    for letter in text:
        found[letter] += 1
    return found
"""
MEAN = "def f(xs):\n    return {'mean': sum(xs) / len(xs), 'count': len(xs)}\n"
POINT = """
import dataclasses
@dataclasses.dataclass
class Point:
    x: float
    y: float
def f(text):
    return Point(*map(float, text.split(",")))
"""
NODES = """
class Node:
    def __init__(self, val, next=None):
        self.val, self.next = val, next
def f(values):
    head = None
    for value in reversed(values):
        head = Node(value, head)
    return head
"""
FOUND = "import re\ndef f(text):\n    return re.search(r'\\d+(x)?', text)\n"
MADE = "import re, ipaddress\nimport numpy as np\nimport pandas as pd\ndef f(text):\n    return eval(text)\n"
NAMED = "import collections\nP = collections.namedtuple('P', 'x y')\ndef f(n):\n    return P(n, 2)\n"
VIEW = "def f(text):\n    return dict.fromkeys(text, 1).items()\n"
TIME = "import time\ndef f(n):\n    return time.gmtime(n)\n"
TABLE = """
import pandas as pd
def f(n):
    return pd.DataFrame({"a": list(range(1, n + 1)), "b": [f"x{i}" for i in range(n)]})
"""
CATEGORIES = "import pandas as pd\ndef f(text):\n    return pd.Series(list(text), dtype='category')\n"
GROUPS = """
import pandas as pd
def f():
    table = pd.DataFrame({"g": [1, 1, 2], "h": ["a", "b", "a"], "v": [1, 2, 3]}).groupby(["g", "h"]).sum()
    table.columns.name, table.attrs = "c", {"by": 2}
    return table
"""
LEVELS = "import pandas as pd\ndef f(n):\n    return pd.DataFrame({('a', 'x'): [n], ('a', 'y'): [2]})\n"
TYPES = """
import pandas as pd
def f(n):
    return pd.DataFrame({"a": [*range(n)], "b": ["x"] * n}).astype({"a": object, "b": "category"})
"""
FILE = """
import pandas as pd
def f(n):
    return "out.csv", pd.DataFrame({"Country": ["Germany", "Côte d'Ivoire"], "n": [n, 2]})
"""

STATED = "pd.DataFrame({'a': [1, 2], 'b': ['x0', 'x1']})"

CLAIMS = [
    # What the data do not tell, and what raises.
    (INTEGER, "f(2).item() == 2", "rejected"),
    (INTEGER, "(f(2) + 1).item() == 3", "rejected"),
    (INTEGER, "f(2).dtype == 'int64'", "rejected"),
    (ROWS, "f(2)[5] == 5", "rejected"),
    (ROWS, "f(2)[1] == 5", "wrong_relation"),
    (TABLE, "f(2).nothing.max() == 2", "rejected"),
    # Objects of libraries that are told by their attributes and their text.
    (FOUND, "f('a12')", "kept"),
    (FOUND, "f('a12') is not None", "kept"),
    (FOUND, "f('a12')[0] == '12'", "kept"),
    (FOUND, "f('a12')[1] is None", "kept"),
    (FOUND, "f('a12')[2] == '12'", "rejected"),
    (FOUND, "f('a12').start() == 1", "kept"),
    (FOUND, "f('a12').start() == 2", "wrong_relation"),
    (FOUND, "not f('a12')", "wrong_relation"),
    (MADE, "f('re.compile(\"a+\")').pattern == 'a+'", "kept"),
    (MADE, "isinstance(f('ValueError(1)'), ValueError)", "vacuous"),
    (MADE, "isinstance(f('ValueError(1)'), KeyError)", "wrong_relation"),
    (MADE, "str(f('ValueError(1)')) == '1'", "kept"),
    (MADE, "str(f('ipaddress.ip_address(1)')) == '0.0.0.1'", "kept"),
    (MADE, "f('ipaddress.ip_address(1)').is_private is True", "kept"),
    (MADE, 'f(\'pd.Period("2020-01", "M")\').month == 1', "kept"),
    (MADE, "f('pd.Interval(1, 3)').length == 2", "kept"),
    (MADE, "2 in f('pd.Interval(1, 3)')", "rejected"),
    # Objects whose parts are nothing.
    (POINT, "f('0,0') == Point(0, 0)", "kept"),
    (POINT, "f('0,0') == Point(0, 1)", "wrong_relation"),
    (NODES, "f([1, 2, 3]).next.next.next is None", "kept"),
    (NODES, "not f([1, 2, 3]).next.next.next", "kept"),
    (NODES, "f([1, 2, 3]).next.next is None", "wrong_relation"),
    (NODES, "f([1, 2, 3]).next.next is not None", "vacuous"),
    (NODES, "f([1, 2, 3]).next.next.next != 3", "vacuous"),
    (NODES, "not isinstance(f([1, 2, 3]).next.next.next, (int, str, list, dict))", "vacuous"),
    # Texts with values in them, and several values that are said to be one.
    (MEAN, "'{:.2f}'.format(f([1, 2])['mean']) == '1.50'", "kept"),
    (MEAN, "'%.2f' % f([1, 2])['mean'] == '1.50'", "kept"),
    (MEAN, "'{:.2f}'.format(f([1, 2])['mean']) == '1.60'", "wrong_relation"),
    (ROWS, "f(2) == f(3) == [0, 1]", "kept wrong_expected"),
    (ROWS, "f(2) == f(3)[:2] == [0, 1]", "kept kept"),
    # What numpy and pandas assert is None where it holds.
    (TABLE, f"pd.testing.assert_frame_equal(f(2), {STATED}) is None", "kept"),
    (TABLE, f"not pd.testing.assert_frame_equal(f(2), {STATED})", "kept"),
    (TABLE, f"pd.testing.assert_frame_equal(f(3), {STATED}) is None", "wrong_relation"),
    (TABLE, f"pd.testing.assert_frame_equal(f(2), {STATED}) is not None", "rejected"),
    (TIME, "f(0).tm_year == 1970", "kept"),
    (TIME, "f(0).tm_year == 1971", "wrong_relation"),
    # Numbers of numpy's types come back as Python's, and objects of classes that derive from Python's as theirs.
    (INTEGER, "isinstance(f(2), np.integer)", "rejected"),
    (INTEGER, "isinstance(f(2), np.floating)", "wrong_relation"),
    (INTEGER, "isinstance(f(2), (int, np.integer))", "vacuous"),
    (INTEGER, "isinstance(f(2), int) is False", "rejected"),
    (INTEGER, "not isinstance(f(2), (int, float))", "rejected"),
    (INTEGER, "isinstance(f(2), str)", "wrong_relation"),
    (INTEGER, "repr(f(2)) == 'np.int64(2)'", "rejected"),
    (ROWS, "isinstance(f(2), np.ndarray)", "wrong_relation"),
    (ROWS, "isinstance(f(2), str) or isinstance(f(2), dict)", "wrong_relation"),
    (COUNTS, "isinstance(f('aa'), defaultdict)", "rejected"),
    (COUNTS, "isinstance(f('aa'), dict)", "vacuous"),
    (COUNTS, "str(f('aa')).startswith('defaultdict')", "rejected"),
    (COUNTS, "str(f('aa')).startswith('Counter')", "wrong_relation"),
    (MADE, "f('np.bool_(True)') is not True", "rejected"),
    (MADE, "(f('np.bool_(True)') is True) is False", "rejected"),
    (MADE, "str(f('[np.int64(1)]')) == '[np.int64(1)]'", "rejected"),
    (MADE, "isinstance(f('bytearray(b\\'a\\')'), bytearray)", "rejected"),
    (MADE, "str(f('pd.Timedelta(hours=30)')) == '1 days 06:00:00'", "rejected"),
    (VIEW, "str(f('ba')) == \"dict_items([('b', 1), ('a', 1)])\"", "kept"),
    (VIEW, "[key for key, _ in f('ba')][0] == 'b'", "vacuous"),
    (NAMED, "str(f(1)) == 'P(x=1, y=2)'", "kept"),
    (NAMED, "str(f(1)) == '(1, 2)'", "wrong_relation"),
    (NAMED, "len(f(1).x * [0]) == 1", "kept"),
    # What objects equal, and how they are shown, is for their class to say.
    (PATH, "from pathlib import Path\nf() == Path('a/b.txt')", "kept"),
    (PATH, "from pathlib import Path\nf() == Path('a/c.txt')", "wrong_relation"),
    (PATH, "from pathlib import PurePosixPath\nf() == PurePosixPath('a/b.txt')", "rejected"),
    (PATH, "sorted([f(), f()]) == []", "rejected"),
    (NAMESPACE, "from types import SimpleNamespace\nf(1) == SimpleNamespace(a=1, b=2)", "kept"),
    (NAMESPACE, "from types import SimpleNamespace\nf(1) == SimpleNamespace(a=1)", "wrong_relation"),
    (NAMESPACE, "import types\nf(1) == types.SimpleNamespace(a=1, b=2)", "kept"),
    (NAMESPACE, "import types\nf(1) == types.SimpleNamespace(a=1)", "rejected"),
    (OWN, "f(2) == Own(2)", "rejected"),
    (MADE, "len([each for each in f('[KeyError(1)]') if each != None]) == 2", "wrong_relation"),
    (OWN, "[f(2)] == sorted([f(2)], key=str)", "rejected"),
    # Columns as attributes, rows that a condition chooses.
    (TABLE, "f(2).a.max() == 2", "kept"),
    (TABLE, "f(2).a.max() == 3", "wrong_relation"),
    (TABLE, "f(2).b.str.upper().tolist() == ['X0', 'X1']", "kept"),
    (TABLE, "len(f(3)[f(3)['a'] > 1]) == 2", "kept"),
    (TABLE, "f(3)[(f(3).a > 1) & (f(3).b != 'x1')].b.tolist() == ['x2']", "kept"),
    (TABLE, "f(3).loc[f(3).a == 2, 'b'].iloc[0] == 'x1'", "vacuous"),
    (TABLE, "len(f(3)[f(3)['a'] > 1]) == 3", "wrong_relation"),
    (FILE, 'name, df = f(1)\n"Côte d\'Ivoire" in df.Country.values', "kept"),
    (GROUPS, "f().index.names == ['g', 'h']", "kept"),
    (GROUPS, "list(f().index.names) == ['g', 'x']", "wrong_relation"),
    (GROUPS, "f().index.name is None", "vacuous"),
    (GROUPS, "f().reset_index()['h'].tolist() == ['a', 'b', 'a']", "vacuous"),
    (GROUPS, "f().columns.name == 'c'", "rejected"),
    (GROUPS, "f().columns.names == ['c']", "rejected"),
    (GROUPS, "f().attrs == {'by': 2}", "rejected"),
    (LEVELS, "f(1).columns.nlevels == 2", "vacuous"),
    (LEVELS, "f(1)['a'].shape == (1, 2)", "vacuous"),
    (LEVELS, "f(1)['a']['x'].tolist() == [1]", "kept"),
    (TYPES, "f(2).dtypes['b'] == 'category'", "vacuous"),
    (TYPES, "f(2).dtypes.astype(str).tolist() == ['object', 'category']", "vacuous"),
    (CATEGORIES, "f('ba').cat.categories.tolist() == ['a', 'b']", "rejected"),
]


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    with open_sandbox("local", 1) as sandbox:
        yield Arena(sandbox, RewardConfig(fidelity="wide", suite_size=32), on_failure="raise")


@pytest.mark.parametrize(("program", "claim", "expected"), CLAIMS)
def test_no_claim_is_wrong_that_is_not_false(arena: Arena, program: str, claim: str, expected: str) -> None:
    *lines, last = claim.split("\n")
    suite = "\n".join([*lines, f"assert {last}"])
    problem = Problem("test/p", "Do `f`.", "f", reference_solution=program)
    (score,) = arena.play([Match(problem, (program,), ((suite,),))], update_book=False)
    tests = score.suites[0][0].duel.tests
    assert " ".join(test.status for test in tests) == expected
    assert {test.verdict for test in tests} <= {"pass", None}


HALF, SORTED, MADE_PAIR = "x // 2", "dict(sorted(x.items()))", "P(x, 2)"


@pytest.mark.parametrize(
    ("suite", "right", "alike", "wrong"),
    [
        ("assert isinstance(f(4), int)\nassert f(4) == 2", HALF, "x >> 1", "x / 2"),
        ("assert f(4) == 2\nassert type(f(4)) is int", HALF, "x >> 1", "x / 2"),
        ("assert f(x=4) == 2\nassert isinstance(f(4), int)", HALF, "x >> 1", "x / 2"),
        ("assert f(4) > 1\nassert isinstance(f(4), int)\nassert f(4) < 3", HALF, "x >> 1", "x / 2.0"),
        (
            "assert f({'b': 1, 'a': 2}) == {'a': 2, 'b': 1}\nassert list(f({'b': 1, 'a': 2})) == ['a', 'b']",
            *(SORTED, "{key: x[key] for key in sorted(x)}", "x"),
        ),
        ("assert f(1) == (1, 2)\nassert f(1).a == 1", MADE_PAIR, "P(b=2, a=x)", "(x, 2)"),
    ],
)
def test_what_counts_for_nothing_by_itself_holds_where_the_test_of_its_call_passes(
    arena: Arena, suite: str, right: str, alike: str, wrong: str
) -> None:
    head = "from collections import namedtuple\nP = namedtuple('P', 'a b')\ndef f(x):\n    return "
    problem = Problem("test/p", "Do `f`.", "f", reference_solution=head + right)
    programs = tuple(head + each for each in (right, alike, wrong))
    (score,) = arena.play([Match(problem, programs, ((suite,),) * 3)], update_book=False)
    rows = [[str(test.verdict) for test in each[0].duel.tests if test.verdict] for each in score.suites]
    assert rows[0] == rows[1]
    assert {*rows[0]} == {"pass"}
    assert "fail" in rows[2]
    assert len(rows[2]) < suite.count("assert"), "a claim that counts by itself says nothing here"


def test_a_claim_that_is_false_of_the_right_value_changes_no_verdict(arena: Arena) -> None:
    suite = "assert f(4) == 2\nassert isinstance(f(4), float)\nassert f(4) > 5"
    problem = Problem("test/p", "Do `f`.", "f", reference_solution="def f(x):\n    return x // 2\n")
    (score,) = arena.play([Match(problem, ("def f(x):\n    return x // 2\n",), ((suite,),))], update_book=False)
    assert [test.verdict for test in score.suites[0][0].duel.tests] == ["pass", None, None]


COUNTED = "def f(text):\n    return {{each: text.count(each) for each in {}}}\n"
ADDED, ROUNDED = "def f(a, b):\n    return {'sum': a + b}\n", "def f(a, b):\n    return {'sum': round(a + b, 12)}\n"
SQUARE, BARE = "n = int(input())\nprint(n * n)\n", "n = int(input())\nprint(n * n, end='')\n"


@pytest.mark.parametrize(
    ("suite", "right", "alike", "statuses"),
    [
        # A call in other words: a dict in another order is another argument to who asks for the order.
        (
            "assert f({'a': 1, 'b': 2}) == {'a': 1, 'b': 2}\nassert list(f({'b': 2, 'a': 1})) == ['b', 'a']",
            *("def f(x):\n    return dict(x)\n", "def f(x):\n    return {**x}\n", "kept duplicate"),
        ),
        # An order that hangs on the hash seed.
        (
            "assert list(f('abc')) == ['c', 'a', 'b']\nassert f('abc') == {'a': 1, 'b': 1, 'c': 1}",
            *(COUNTED.format("set(text)"), COUNTED.format("sorted(text)"), "flaky kept"),
        ),
        (
            "assert f('abc') == {'a': 1, 'b': 1, 'c': 1}\nassert next(iter(f('abc'))) == 'c'",
            *(COUNTED.format("set(text)"), COUNTED.format("sorted(text)"), "kept duplicate"),
        ),
        (
            "assert list(f('abcd'))[0] == 'd'\nassert list(f('abcd').items())[0] == ('d', 1)\n"  # under both seeds
            "assert f('abcd').most_common(1) == [('d', 1)]",
            *(
                f"from collections import Counter\ndef f(text):\n    return Counter({each})\n"
                for each in ("set(text)", "sorted(text)")
            ),
            "flaky flaky flaky",
        ),
        # What is true of the data of a library's number, and false of the number.
        (
            "assert f(2) == 2\nassert isinstance(f(2), int)",
            INTEGER,
            "def f(n):\n    return float(n)\n",
            "kept duplicate",
        ),
        # Digits beyond the problem's tolerance.
        ("assert str(f(.1, .2)['sum']) == '0.30000000000000004'", ADDED, ROUNDED, "kept"),
        ("assert f(.1, .2)['sum'] > .3", ADDED, ROUNDED, "kept"),
        ("assert f(.1, .2)['sum'] + f(.1, .2)['sum'] > .6", ADDED, ROUNDED, "kept"),
        (
            "assert f(.1, .2)['parts'].real > .3\nassert f(.1, .2)['parts'].imag >= 3\n"
            "assert f(.1, .2)['rows'] // 1 == 3",
            "def f(a, b):\n    return {'parts': complex(a + b, 3), 'rows': 3}\n",
            "def f(a, b):\n    return {'parts': complex(.3, 2.9999999), 'rows': 2.9999999}\n",
            "kept kept kept",
        ),
        ("assert f(.1, .2) == {'sum': .3}\nassert len(str(f(.1, .2)['sum'])) == 19", ADDED, ROUNDED, "kept duplicate"),
        # White space at the ends of what is printed.
        ("assert run('7').endswith('9\\n')", SQUARE, BARE, "kept"),
        ("assert run('7') == '49'\nassert len(run('7')) == 3", SQUARE, BARE, "kept duplicate"),
    ],
)
def test_no_suite_claims_of_a_right_program_what_its_problem_does_not_ask_for(
    arena: Arena, suite: str, right: str, alike: str, statuses: str
) -> None:
    is_program = "run" in suite
    problem = Problem(
        *("test/p", "Do it.", "run" if is_program else "f"),
        reference_solution=right,
        kind="program" if is_program else "function",
        tolerance=1e-6 if "a, b" in right else 0.0,
    )
    (score,) = arena.play([Match(problem, (right, alike), ((suite,),) * 2)], update_book=False)
    for (one,) in score.suites:
        assert " ".join(test.status for test in one.duel.tests) == statuses
        assert {test.verdict for test in one.duel.tests} <= {"pass", None}


@pytest.mark.parametrize(
    "suite",
    [
        "xs = [3, 1]\nassert f(xs) == [1, 3]\nassert xs == [3, 1]",
        "xs = [3, 1]\nold = xs.copy()\nassert f(xs) == [1, 3]\nassert xs == old",
        "xs = [3, 1]\nold = list(xs)\nassert f(xs) == [1, 3]\nassert xs == old",
        "xs = [3, 1]\nassert f(xs) == [1, 3]\nassert xs[0] > 2",
        "def test_it():\n    xs = [3, 1]\n    found = f(xs)\n    assert found == [1, 3]\n    assert xs[0] == 3",
        "def test_it():\n    xs = [3, 1]\n    assert len(f(xs)) == 2\n    f(xs)\n    assert xs == [3, 1]",
        "class TestIt(unittest.TestCase):\n    def test_it(self):\n        xs = [3, 1]\n"
        "        self.assertEqual(f(x=xs), [1, 3])\n        self.assertEqual(xs, [3, 1])",
    ],
)
def test_an_argument_that_is_as_it_was_counts_for_nothing_and_is_asked_for_where_its_call_counts(
    arena: Arena, suite: str
) -> None:
    bodies = ("return sorted(x)", "y = x[:]; y.sort(); return y", "x.sort(); return x", "x[:] = sorted(x); return x[:]")
    programs = [f"def f(x):\n    {body}" for body in bodies]
    problem = Problem("test/p", "Do `f`.", "f", reference_solution=programs[0])
    (score,) = arena.play([Match(problem, tuple(programs), ((suite,),) * 4)], update_book=False)
    tests = [each[0].duel.tests for each in score.suites]
    assert [test.status for test in tests[0]] == ["kept", "vacuous"]
    assert [row[0].verdict for row in tests] == ["pass", "pass", "fail", "fail"]


def test_what_the_reference_changes_may_be_changed(arena: Arena) -> None:
    suite = "xs = [3, 1]\nassert f(xs) == 3\nassert xs == [3, 1]"
    programs = ("def f(x):\n    return x.pop(0)", "def f(x):\n    return x[0]")
    problem = Problem("test/p", "Do `f`.", "f", reference_solution=programs[0])
    (score,) = arena.play([Match(problem, programs, ((suite,),) * 2)], update_book=False)
    assert [[(test.status, test.verdict) for test in each[0].duel.tests] for each in score.suites] == [
        [("kept", "pass"), ("wrong_relation", None)]
    ] * 2
