"""Questions in wide suites: calls of calls, objects and arguments that calls change, and what surrounds tests.

What each question asks, that it gets plain Python's verdict, and that none of them is true of a program that does
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.problems.kinds import Kind
from codea1_env.problems.problem import Problem
from codea1_env.reading.pure_expressions import Reason
from codea1_env.reading.responses import read_case, read_suite
from codea1_env.reading.test_case import TestCase
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Status
from codea1_env.sandbox import open_sandbox

STACK = """
class Stack:
    def __init__(self, items=()):
        self.items = list(items)
    def push(self, item):
        self.items.append(item)
        return self
    def pop(self):
        if not self.items:
            raise IndexError("empty")
        return self.items.pop()
    @property
    def size(self):
        return len(self.items)
    def twice(self):
        return Stack(self.items * 2)
"""
LAZY_STACK = STACK.replace("self.items.append(item)", "self.items = [item]")
SIZE = """
import functools
@functools.total_ordering
class Size:
    def __init__(self, metres):
        self.metres = metres
    def __lt__(self, other):
        return self.metres < other.metres
"""
SORT = "def f(items):\n    items.sort()\n    return len(items)\n"
ADDER = "def f(a):\n    return lambda b: a + b\n"
NEXT = "def f(x):\n    return x + 1\n"
PAIRS = "def f(n):\n    return [(i, i * i) for i in range(n)]\n"
BAG = """
class Bag:
    def __init__(self, *items):
        self._items = dict.fromkeys(items, 1)
    def __contains__(self, item):
        return item in self._items
    def __delitem__(self, item):
        del self._items[item]
    def __setattr__(self, name, value):
        if name == "size":
            raise IndexError("fixed")
        super().__setattr__(name, value)
    def __mul__(self, times):
        return Bag(*[item * times for item in self._items])
    @property
    def items(self):
        return list(self._items)
    def mapped(self, function):
        self._items = {function(item): 1 for item in self._items}
    def listed(self, items=None):
        return list(items or self._items)
"""
COLORS = """
import enum
class Text(str, enum.Enum):
    RED = "red"
    BLUE = "blue"
class Set(enum.Flag):
    RED = 1
    BLUE = 2
def f(n, kind="t"):
    return (Text, Set)[kind == "s"]["BLUE" if n else "RED"]
"""
VEC = """
class Vec:
    __slots__ = ("x", "y")
    def __init__(self, x, *, y=0):
        self.x, self.y = x, y
    def __eq__(self, other):
        return (self.x, self.y) == (other.x, other.y)
    def __add__(self, other):
        return Vec(self.x + other.x, y=self.y + other.y)
"""
RECORDS = """
import collections, dataclasses, enum
@dataclasses.dataclass(order=True)
class Item:
    name: str
    price: int = 0
    seen: int = dataclasses.field(default=0, compare=False)
class Plain:
    def __init__(self, name):
        self.name = name
    def __eq__(self, other):
        return self.name == other.name
P = collections.namedtuple("P", "a b")
Color = enum.Enum("Color", "RED GREEN BLUE")
def f(kind, n):
    if kind == "colors":
        return [*Color][:n]
    if kind == "items":
        return [Item(str(i), i, 2 * i) for i in range(n)]
    return {"item": Item("a", n), "plain": Plain(n), "pair": P(n, b=n + 1)}[kind]
"""
WAIT = "import asyncio\nasync def f(n):\n    await asyncio.sleep(0)\n    return n + 1\n"
NOTHING = "def f(*given):\n    return None\n"


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    with open_sandbox("local", 1) as sandbox:
        yield Arena(sandbox, RewardConfig(fidelity="wide", suite_size=32), on_failure="raise")


def verdicts(
    arena: Arena, suite: str, program: str, reference: str, entry_point: str = "f", question: str = "Do."
) -> list[str]:
    """Of every test that is kept its verdict on the program, of others their status."""
    problem = Problem("test/p", question, entry_point, reference_solution=reference, raises=("IndexError(message)",))
    (score,) = arena.play([Match(problem, (program,), ((suite,),))], update_book=False)
    tests = score.suites[0][0].duel.tests
    return [str(test.verdict) if test.status is Status.KEPT else str(test.status) for test in tests]


def reasons(suite: str, entry_point: str = "f") -> list[str]:
    return [test.reason for test in read_suite(suite, entry_point, fidelity="wide").tests]


def called(suite: str, entry_point: str = "f") -> list[str]:
    return [test.inner or str(test.call) for test in read_suite(suite, entry_point, fidelity="wide").tests]


SUITES = {
    "a call of a call": ("assert f(f(1)) == 3\nassert f(len([f(0), f(1)])) == 3\n", NEXT, "f"),
    "a call of what is returned": ("assert f(3)(4) == 7\nadd = f(1)\nassert add(2) == 3\n", ADDER, "f"),
    "an argument afterwards": ("xs = [3, 1]\nf(xs)\nassert xs == [1, 3]\n", SORT, "f"),
    "a part of an argument": ("xs = [3, 1, 2]\nf(xs)\nassert xs[0] == 1\nassert xs[1:] == [2, 3]\n", SORT, "f"),
    "an order of objects": ("assert Size(1) < Size(2)\nassert not Size(2) <= Size(1)\n", SIZE, "Size"),
    "an argument of an assert": ("xs = [3, 1]\nassert f(xs) == 2\nassert xs == [1, 3]\n", SORT, "f"),
    "an object": ("s = Stack()\ns.push(1)\ns.push(2)\nassert s.pop() == 2\nassert s.size == 1\nassert s.pop() == 1\n",
                  STACK, "Stack"),
    "what a function returned": ("s = f(1)\ns.push(2)\nfor i in (3, 4):\n    s.push(i)\nassert s.size == 4\n"
                                 "assert s.twice().size == 8\nassert s.items[0] == 1\n",
                                 f"{STACK}def f(x):\n    return Stack([x])\n", "f"),
    "a deque that a function returned": ("d = f([1])\nd.appendleft(2)\nassert list(d) == [2, 1]\nd.rotate()\n"
                                         "assert d[0] == 1\n", "from collections import deque as f", "f"),
    "in a loop": ("def test():\n    s = Stack()\n    for i in range(3):\n        s.push(i)\n    assert s.pop() == 2\n"
                  "    assert s.items == [0, 1]\n", STACK, "Stack"),
    "chained": ("assert Stack([1]).push(2).twice().size == 4\n", STACK, "Stack"),
    "setUp": ("class TestStack(unittest.TestCase):\n    more = [5, 6]\n    def setUp(self):\n        self.s = Stack()\n"
              "        self.s.push(7)\n    def test_a(self):\n        self.assertEqual(self.s.pop(), 7)\n"
              "    def test_b(self):\n        self.assertEqual(self.s.size, 1)\n"
              "        self.assertEqual(Stack(self.more).size, 2)\n", STACK, "Stack"),
    "a fixture": ("@pytest.fixture\ndef s():\n    return Stack([4])\ndef test_a(s):\n    assert s.pop() == 4\n"
                  "def test_b(s):\n    s.push(5)\n    assert s.size == 2\n", STACK, "Stack"),
    "an exception": ("with pytest.raises(IndexError) as info:\n    Stack().pop()\n"
                     "assert str(info.value) == 'empty'\n",
                     STACK, "Stack"),
    "an exception by try": ("s = Stack([1])\ns.pop()\ntry:\n    s.pop()\n    assert False\n"
                            "except IndexError as error:\n    assert 'emp' in str(error)\n", STACK, "Stack"),
    "items": ("assert [b for _, b in f(3)] == [0, 1, 4]\nassert sum(b for _, b in f(4)) == 14\n"
              "assert sum(b for a, b in f(5) if a > 2) == 25\n", PAIRS, "f"),
    "neighbours": ("r = f([3, 1, 2])\nassert [a + b for a, b in zip(r, r[1:])] == [3, 5]\n", "f = sorted", "f"),
    "texts": ("assert ''.join(f('ba')) == 'ab'\n"
              "assert '-'.join(x.upper() for x in f('dc')) == 'C-D'\n", "f = sorted", "f"),
    "no number": ("assert math.isnan(f('nan'))\nassert math.isinf(f('inf'))\n", "f = float", "f"),
    "what is in an object": ("b = Bag(1, 2)\nassert 1 in b\ndel b[1]\nassert 1 not in b\nassert 2 in b\n", BAG, "Bag"),
    "setting that raises": ("b = Bag(1)\nwith pytest.raises(IndexError, match='fixed'):\n    b.size = 2\n"
                            "assert b.items == [1]\n", BAG, "Bag"),
    "an object with a lambda": ("b = Bag(2, 3)\nb.mapped(lambda n: n * n)\nassert b.items == [4, 9]\n", BAG, "Bag"),
    "an object that is given its own": ("b = Bag(2, 3)\nassert b.listed(b.listed()) == [2, 3]\n"
                                        "assert b.items == [2, 3]\n", BAG, "Bag"),
    "objects and an operator": ("assert sorted((Bag(1, 2) * 3).items, key=lambda n: -n) == [6, 3]\n", BAG, "Bag"),
    "a member that is a text": ("assert f(0) == Text.RED\nassert f(1).value == 'blue'\nassert f(1) is Text.BLUE\n",
                                COLORS, "f"),
    "a member inside": ("assert f(1).level == Level.UP\nassert f(0).level.name == 'LOW'\nassert f(2).level == 0\n",
                              "import enum\nLevel = enum.IntEnum('Level', [('LOW', 0), ('UP', 1)])\nclass Grade: pass\n"
                              "def f(n):\n    made = Grade()\n    made.level = Level(n % 2)\n    return made\n", "f"),
    "a member of a flag": ("assert f(0, 's') == Set.RED\nassert f(1, 's').value == 2\n", COLORS, "f"),
    "coroutines of the suite": ("async def main():\n    assert await f(1) == 2\n"
                                "    assert await asyncio.gather(f(2), f(3)) == [3, 4]\n"
                                "async def both(a, b):\n    return await asyncio.gather(*[f(n) for n in (a, b)])\n"
                                "asyncio.run(main())\nassert asyncio.run(both(4, 5)) == [5, 6]\n", WAIT, "f"),
    "coroutines of a test": ("def test_f():\n    async def main():\n        return await asyncio.gather(f(1), f(2))\n"
                             "    assert asyncio.run(main()) == [2, 3]\n", WAIT, "f"),
    "what a helper makes, unpacked": ("def made():\n    words = ['a', 'b']\n    return words, 'c'\n"
                                      "found = f(*made())\nassert found == ['a', 'b', 'c']\n",
                                      "def f(a, b): return [*a, b]", "f"),
    "a namedtuple": ("assert f(1)._asdict() == {'a': 1, 'b': 2}\n",
                     "import collections\nP = collections.namedtuple('P', 'a b')\ndef f(n): return P(n, n + 1)", "f"),
    "objects that are equal": ("v = Vec(1, y=2)\nassert v + Vec(3, y=4) == Vec(4, y=6)\nassert v == Vec(1, y=2)\n",
                               VEC, "Vec"),
    "objects of other classes": (
        "assert f('item', 3) == Item('a', 3)\nassert f('item', 4) == Item(price=4, name='a')\n"
        "assert f('items', 2) == [Item('0', 0), Item('1', 1)]\nexpected = Plain(5)\nassert f('plain', 5) == expected\n"
        "assert f('pair', 1) == P(1, 2)\nassert P(a=2, b=3) == f('pair', 2)\n"
        "assert f('colors', 2) == [Color.RED, Color.GREEN]\n"
        "assert f('colors', 1)[0] in (Color.RED, Color.BLUE)\n", RECORDS, "f"),
    "one object in several tests": ("A = Vec(1, y=2)\nB = Vec(3)\ndef test_a():\n    assert A + B == Vec(4, y=2)\n"
                                    "def test_b():\n    assert A + Vec(1) == Vec(2, y=2)\n", VEC, "Vec"),
    "a generator that is sent to": ("g = f(5)\nnext(g)\nassert g.send(3) == 8\nassert g.send(4) == 12\n"
                                    "h = f(1)\nassert next(h) == 1\nh.send(2)\nassert h.send(9) == 12\n",
                                    "def f(n):\n    while True:\n        n += (yield n)\n", "f"),
    "a fixture for every test": ("class TestStack:\n    @pytest.fixture(autouse=True)\n    def ready(self):\n"
                                 "        self.stack = Stack([1, 2])\n        yield\n        self.stack.pop()\n"
                                 "    def test_pop(self):\n        assert self.stack.pop() == 2\n", STACK, "Stack"),
    "a date": ("from datetime import date\nassert f(2020).strftime('%d.%m.%Y') == '01.01.2020'\n",
               "import datetime\ndef f(y): return datetime.date(y, 1, 1)", "f"),
    "a helper": ("def double(x):\n    return 2 * x\nassert f(double, 4) == 8\n", "def f(g, x): return g(x)", "f"),
    "stated texts": ("n = 3\nassert f(n) == f'{n:>2}'\nassert f(4) == '{:>2}'.format(4)\n",
                     "def f(n): return f'{n:>2}'", "f"),
}  # fmt: skip


@pytest.mark.parametrize("name", SUITES)
def test_right_programs_pass_and_one_that_does_nothing_does_not(arena: Arena, name: str) -> None:
    suite, program, entry_point = SUITES[name]
    assert set(verdicts(arena, suite, program, program, entry_point)) == {"pass"}
    nothing = NOTHING.replace("f(", f"{entry_point}(")
    assert "pass" not in verdicts(arena, suite, nothing, program, entry_point)


ZIGZAG = "def f(s):\n    return s[::-1]\ndef undo(s):\n    return s[::-1]\n"


@pytest.mark.parametrize("claim", ["undo(f('ab')) == 'ab'", "f(undo('ab')) == 'ab'", "f(undo(f('ab'))) == 'ba'"])
def test_another_function_is_asked_for_if_the_problem_names_it(arena: Arena, claim: str) -> None:
    suite, wrong = f"assert {claim}\n", ZIGZAG.replace("s[::-1]\ndef", "s[1:]\ndef")
    for question in (
        "Write f(s) and undo(s).",
        "Write the functions f and undo.",
        "`undo` is the way back.",
    ):
        assert verdicts(arena, suite, ZIGZAG, ZIGZAG, "f", question) == ["pass"]
    assert verdicts(arena, suite, wrong, ZIGZAG, "f", "Write f(s) and undo(s).") == ["fail"]
    for question in ("Write f, and no undoing.", "Write f. Nobody can undo it."):
        assert verdicts(arena, suite, ZIGZAG, ZIGZAG, "f", question) == ["rejected"]
    suite, program = suite.replace("undo", "un_do"), ZIGZAG.replace("undo", "un_do")
    assert verdicts(arena, suite, program, program, "f", "Write f, and un_do as its way back.") == ["pass"]


@pytest.mark.parametrize(
    "own", ["def undo(s):\n    for c in s:\n        pass\n    return c\n", "undo = lambda s: s[::-1]\n"]
)
def test_a_function_of_the_suites_is_not_the_programs(own: str) -> None:
    (test,) = read_suite(f"{own}assert f(undo('ab')) == 'ab'\n", "f", fidelity="wide").tests
    assert not test.asks


def test_an_object_is_asked_with_all_its_calls(arena: Arena) -> None:
    suite, _, entry_point = SUITES["an object"]
    assert verdicts(arena, suite, LAZY_STACK, STACK, entry_point) == ["pass", "fail", "fail"]
    assert called(suite, entry_point)[2] == (
        "(lambda it: [it.push(1), it.push(2), it.pop(), it][-1])(Stack()).pop()"
    )  # an attribute changes nothing


@pytest.mark.parametrize(
    "line",
    [
        "t = s",  # two names of one object
        "x = s.pop() if s.size else 0",
        "x = [s.pop() for _ in s.items]",
        "if s.size:\n    s.pop()",
        "while s.size:\n    s.pop()",
        "s.items.append(3)",  # a call of what belongs to data
        "with s:\n    pass",
        "@s.push\ndef g():\n    return 1",
    ],
)
def test_an_object_whose_calls_are_not_known_is_not_asked(line: str) -> None:
    before, after = "s = Stack()\ns.push(1)\n", "assert s.pop() == 1\n"
    assert reasons(before + after, "Stack") == [""]
    assert reasons(f"{before}{line}\n{after}", "Stack")[-1]


@pytest.mark.parametrize(
    ("condition", "entry_point"),
    [
        ("(lambda it: [f(1), it][-1])([1, 2]) == [2]", "f"),  # not given
        ("(lambda it: [f(it), it][-1])(g()) == 5", "f"),
        ("[f(1), 5][1] == 5", "f"),
        ("f(1).__class__ == 1", "f"),
        ("f(1)(2).__name__ == 1", "f"),
        ("Stack()._items() == 1", "Stack"),
        ("Stack().items.copy() == []", "Stack"),
        ("Stack().pop().find('z') == -1", "Stack"),
        ("(lambda it: [it.items.append(1), it][-1])(Stack()).size == 1", "Stack"),
        ("Stack(open('x')).size == 1", "Stack"),
        ("(lambda it: [next(open('x')), it][-1])(f(1)).send(1) == 1", "f"),
        ("(lambda it: [next(it, 1), it][-1])(f(1)).send(1) == 1", "f"),
        ("f(f(1), *x) == 1", "f"),
        ("(lambda it: [it.__setattr__('size', 3), it][-1])(Stack()).size == 3", "Stack"),  # true of any class
        ("(lambda it: [it.__init__(3), it][-1])(Stack()).size == 3", "Stack"),
        ("Stack(open).size == 1", "Stack"),
        ("f(Open._x) == 1", "f"),
        ("f(f(1), 1 / 0)['raises'] == 'ZeroDivisionError'", "f"),  # an exception of the suite's own
        ("raised(f(f(1), 1 / 0), 'ZeroDivisionError')['raises'] == 'ZeroDivisionError'", "f"),
        ("raised(f(f(1), 1 / 0), 'ZeroDivisionError') == {'raises': 'ZeroDivisionError'}", "f"),
        ("raised(f(1) + f(2), 'TypeError')['raises'] == 'TypeError'", "f"),
        ("raised(len(f(1)), 'TypeError')['raises'] == 'TypeError'", "f"),
        ("raised(f(1), 'TypeError')['raises'] == f(1)", "f"),
        ("f(Node(int('x')))['raises'] == 'ValueError'", "f"),
        ("f(f(1), {}['x'])['raises'] == 'KeyError' and 'x' in f(f(1), {}['x'])['message']", "f"),
        ("(lambda it: [it.push([][0]), it][-1])(Stack()).pop()['raises'] == 'IndexError'", "Stack"),
        ("Stack()[1 / 0]['raises'] == 'ZeroDivisionError'", "Stack"),
        ("Stack()[1 / 0][0]['raises'] == 'ZeroDivisionError'", "Stack"),
        ("f(1)[[][0]]['raises'] == 'IndexError'", "f"),
        ("f(f(1), [][0])['a']['raises'] == 'IndexError'", "f"),
    ],
)
def test_what_a_program_need_not_answer_is_no_question(condition: str, entry_point: str) -> None:
    assert all(reasons(f"assert {condition}\n", entry_point))


def test_a_message_within_a_list_is_data_like_any_other(arena: Arena) -> None:
    program = "def logged(lines):\n    return [{'message': line, 'raises': 0} for line in lines]\n"
    wrong = program.replace("line,", "line[:1],")
    suite = "entries = logged(['ab', 'cd'])\nassert entries[-1]['message'] == 'cd'\n"
    assert verdicts(arena, suite, program, program, "logged") == ["pass"]
    assert verdicts(arena, suite, wrong, program, "logged") == ["fail"]


@pytest.mark.parametrize("kept", ["iter(items)", "[iter(items)]", "{0: iter(items)}"])
def test_an_iterator_gives_its_items_whatever_public_name_its_source_has(arena: Arena, kept: str) -> None:
    program = (
        f"class twice:\n    def __init__(self, items):\n        self.source = {kept}\n        self.n = 2\n"
        "    def __iter__(self):\n        return self\n"
        "    def __next__(self):\n        return self.n * next(SOURCE)\n"
    ).replace("SOURCE", "self.source" if kept == "iter(items)" else "self.source[0]")
    suite = "assert list(twice([1, 2])) == [2, 4]\nassert twice([1]).n == 2\nassert next(twice([3])) == 6\n"
    assert verdicts(arena, suite, program, program, "twice") == ["pass"] * 3
    assert verdicts(arena, suite, program.replace("= 2", "= 3"), program, "twice") == ["fail"] * 3


def test_an_object_that_was_given_to_another_is_asked_for_as_that_left_it(arena: Arena) -> None:
    program = (
        "class Account:\n    def __init__(self, has):\n        self.has = has\n"
        "    def give(self, other, n):\n        self.has -= n\n        other.has += n\n"
    )
    wrong = program.replace("other.has += n", "self.has += n")
    suite = "a, b = Account(9), Account(1)\na.give(b, 4)\nb.give(a, 2)\nassert b.has == 3\nassert a.has == 7\n"
    assert verdicts(arena, suite, program, program, "Account") == ["pass", "pass"]
    assert verdicts(arena, suite, wrong, program, "Account") == ["fail", "fail"]
    assert verdicts(arena, "a = Account(1)\na.give(a, 1)\nassert a.has == 1\n", program, program, "Account") == ["pass"]


def test_a_method_of_what_a_function_returns_is_not_asked_for_by_its_name(arena: Arena) -> None:
    program = "def Word(n):\n    return 'a' * n\n"
    assert verdicts(arena, "assert Word(2).find_all() == -1\n", program, program, "Word") == ["raises"]


def test_a_stored_question_is_read_back() -> None:
    for suite, _, entry_point in SUITES.values():
        for test in read_suite(suite, entry_point, fidelity="wide").tests:
            assert test.call is not None
            again = read_case(TestCase(test.call, str(test.claim)), entry_point, "wide")
            assert (again.call, again.arguments, again.relation) == (test.call, test.arguments, test.relation)


@pytest.mark.parametrize(
    "claim",
    [
        *("xs == [1, 2]", "xs == [1.0, 2.0]", "xs == [True, 2.01]", "xs[1] == 2", "xs[:1] == [1]", "xs[5] == 3"),
        *("xs == [g, 2]", "xs[0] != 3", "len(xs) == 2", "xs.count(9) == 0", "xs == list((1, 2))"),
    ],
)
def test_what_an_argument_was_before_is_no_test_and_not_stored(claim: str) -> None:
    (test,) = read_suite(f"g = 1\nxs = [1, 2]\nf(xs)\nassert {claim}\n", "f", fidelity="wide").tests
    assert test.beside == b"[[[1,2]],[]]"
    assert read_case(TestCase(test.call or "", "True"), "f", "wide").reason == "not_entry_point"


def test_what_an_attribute_of_a_suite_holds_after_unpacking_is_read_back() -> None:
    suite = (
        "class T(unittest.TestCase):\n    def setUp(self):\n        self.a, self.b = f(2)\n"
        "    def test_a(self):\n        assert round(self.b, 3) == 1.5\n"
    )
    (test,) = read_suite(suite, "f", fidelity="wide").tests
    assert test.call == "(round((lambda self_a, self_b: self_b)(*f(2)), 3) == 1.5)"
    assert read_case(TestCase(test.call, "True"), "f", "wide").relation == test.relation


def test_an_object_that_is_asked_too_much_is_not_followed() -> None:
    many = "".join(f"s.push({number})\n" for number in range(500))
    assert reasons(f"s = Stack()\n{many}assert s.pop() == 499\n", "Stack") != [""]


@pytest.mark.parametrize(
    "claim",
    [
        "all(x >= 0 for x in f([3, 1]))",
        "all(x == x for x in f([3, 1]))",
        "all(x != 9 and x != 8 for x in f([3, 1]))",
        "[0 for x in f([3, 1])] != [0]",
        "not any(x == 9 for x in f([3, 1]))",
    ],
)
def test_what_holds_of_most_items_is_vacuous(arena: Arena, claim: str) -> None:
    assert verdicts(arena, f"assert {claim}\n", "f = sorted", "f = sorted") == ["vacuous"]


def test_calls_of_a_question_meet_no_other_calls(arena: Arena) -> None:
    table = "TABLE = [1]\ndef f(x):\n    if x is TABLE:\n        TABLE.append(2)\n    return TABLE\n"
    suite = "assert f(f(0)) == [1, 2]\nassert f(0) == [1]\nassert f(f(1)) == [1, 2]\n"
    assert verdicts(arena, suite, table, table) == ["pass"] * 3


def test_reasons_are_named() -> None:
    assert reasons("assert f(f) == 1\n") == [Reason.ENTRY_POINT_AGAIN]


EQUAL = """
class Same:
    def __eq__(self, other):
        return True
    def __hash__(self):
        return 0
    def __call__(self, *given, **named):
        return self
    def __getattr__(self, name):
        return self
    def __getitem__(self, at):
        return self
    def __iter__(self):
        return iter([])
"""
FORGERS = {
    "equals everything": EQUAL + "class Stack(Same):\n    def __init__(self, *given):\n        pass\n",
    "a function of that name": EQUAL + "def Stack(*given):\n    return Same()\n",
    "a subclass of int": (
        "class One(int):\n    def __eq__(self, other):\n        return True\n    __hash__ = int.__hash__\n"
        "class Stack:\n    def __init__(self, *given):\n        pass\n    def push(self, x):\n        pass\n"
        "    def pop(self):\n        return One(9)\n    size = One(9)\n"
    ),
    "a metaclass": EQUAL + "class Meta(type):\n    def __call__(self, *given):\n        return Same()\n"
    "class Stack(metaclass=Meta):\n    pass\n",
    "another evaluator": "import builtins\nbuiltins.eval = lambda *given: 'right'\nclass Stack:\n    pass\n",
    "the frames around it": (
        "import sys\nclass Stack:\n    def __init__(self, *given):\n        pass\n"
        "    def push(self, x):\n        pass\n"
        "    def pop(self):\n        frame, found = sys._getframe(1), []\n        while frame:\n"
        "            found += [v for v in frame.f_locals.values() if type(v) is int]\n"
        "            frame = frame.f_back\n"
        "        return found[0] if found else 0\n    size = property(pop)\n"
    ),
    "a record of its own": (
        "import sys\nclass Stack:\n    def __init__(self, *given):\n"
        "        sys.modules['values'].encode = lambda value, most=0: b'[true]'\n    def push(self, x):\n        pass\n"
        "    def pop(self):\n        return 0\n    size = 0\n"
    ),
}


@pytest.mark.parametrize("forger", FORGERS)
def test_no_program_forges_the_answer_to_a_question(arena: Arena, forger: str) -> None:
    suite, program, entry_point = SUITES["an object"]
    assert "pass" not in verdicts(arena, suite, FORGERS[forger], program, entry_point)


@pytest.mark.parametrize(
    "line",
    [
        "assert f('item', 3) == Other('a', 3)",
        "assert f('item', 3) == Item(3, 'a')",
        "assert f('item', 3) == Item('a')",
        "assert f('item', 3) == Item('a', name='a')",
        "assert f('item', 3) == Item('a', 3, 0)",
        "assert f('item', 3) == P('a', 3)",
        "assert f('item', 3) == [Item('a', 3)]",
        "assert f('items', 2) == (Item('0', 0), Item('1', 1))",
        "assert f('pair', 1) == P(b=1, a=2)",
        "assert f('colors', 2) == [Color.RED, Color.BLUE]",
        "assert f('colors', 1)[0] in [Color.BLUE, Color.GREEN]",
    ],
)
def test_what_is_no_such_object_is_a_wrong_claim(arena: Arena, line: str) -> None:
    assert verdicts(arena, f"{line}\n", RECORDS, RECORDS) == ["wrong_relation"]


MONEY = """
from collections import namedtuple
from dataclasses import dataclass, field
@dataclass
class Money:
    amount: int
    unit: str = "EUR"
    notes: list = field(default_factory=list)
Two = namedtuple("Two", "a b")
def f(x):
    return MADE
"""


@pytest.mark.parametrize(
    "made",
    [
        "{'a': [Money(x, 'USD')]}",
        "{'a': [Money(x, notes=[1])]}",
        "{'a': [Money(x + 1)]}",
        "{'a': [Two(x, 'EUR')]}",
        "{'a': [('__object__', 'Money', (x,), {})]}",
        "{'a': Two(('__object__', 'Money', (x,), {}), 0)[:1]}",
        "{'a': [Money(x), Money(x)]}",
        "{'b': [Money(x)]}",
        "{}",
        "[Money(x)]",
        "Money(x)",
        "None",
    ],
)
def test_an_object_within_a_value_is_the_stated_one_or_none(arena: Arena, made: str) -> None:
    right, wrong = MONEY.replace("MADE", "{'a': [Money(x)]}"), MONEY.replace("MADE", made)
    for stated in ("Money(3)", "Money(3, 'EUR')", "Money(amount=3, notes=[])"):
        suite = f"assert f(3) == {{'a': [{stated}]}}\n"
        assert verdicts(arena, suite, right, right) == ["pass"]
        assert verdicts(arena, suite, wrong, right) == ["fail"]


def test_one_of_several_may_be_an_object_and_another_none(arena: Arena) -> None:
    programs = {made: MONEY.replace("MADE", made) for made in ("Money(x)", "None", "Money(x, 'USD')", "(x,)")}
    suite = "assert f(3) in (Money(3), None)\n"
    assert [verdicts(arena, suite, each, programs["Money(x)"]) for each in programs.values()] == [
        ["pass"], ["pass"], ["fail"], ["fail"]
    ]  # fmt: skip


def test_that_objects_differ_says_little(arena: Arena) -> None:
    assert verdicts(arena, "assert f('item', 3) != Item('a', 4)\n", RECORDS, RECORDS) == ["vacuous"]
    assert verdicts(arena, "assert Vec(1) != Vec(2)\n", VEC, VEC, "Vec") == ["vacuous"]


LEARNS = """
class Vec:
    last = (0, 0)
    __match_args__ = ("x", "y")
    def __init__(self, x, y=0):
        if type(self).last != (0, 0):
            self.x, self.y = type(self).last
        self.x, self.y = type(self).last = x, y
    def __eq__(self, other):
        self.x, self.y = other.x, other.y
        return True
    def __add__(self, other):
        return self
"""


@pytest.mark.parametrize("name", ["self._x, self._y", "self._x, self.y", "self.x, self._y"])
def test_private_attributes_are_made_from_parameters_too(arena: Arena, name: str) -> None:
    suite = "assert Vec(1, y=2) + Vec(3, y=4) == Vec(4, y=6)\n"
    private = VEC.replace('    __slots__ = ("x", "y")\n', "")
    for at, attribute in zip(("x", "y"), (each.removeprefix("self.") for each in name.split(", ")), strict=True):
        private = private.replace(f"self.{at}", f"self.{attribute}").replace(f"other.{at}", f"other.{attribute}")
    assert verdicts(arena, suite, private, VEC, "Vec") == ["pass"]
    assert verdicts(arena, suite, private.replace("+ other", "- other"), VEC, "Vec") == ["fail"]


STARRED = """
class Vec:
    def __init__(self, first, *rest, unit="m"):
        self.first, self._rest, self.unit = first, tuple(rest), unit
    def __eq__(self, other):
        return vars(self) == vars(other)
    def __add__(self, other):
        rest = [a + b for a, b in zip(self._rest, other._rest)]
        return Vec(self.first + other.first, *rest, unit=self.unit)
"""


@pytest.mark.parametrize(
    ("change", "wrong"),
    [("", ""), ("a + b", "a - b"), ("*rest, unit=s", "*rest, 0, unit=s"), ("*rest, unit=s", "*rest[1:], unit=s"),
     (", unit=self.unit", ", unit='cm'"), ("other.first, *rest", "other.first, rest")],
)  # fmt: skip
def test_starred_parameters_are_what_objects_are_made_from(arena: Arena, change: str, wrong: str) -> None:
    suite = "assert Vec(1, 2, 3) + Vec(3, 4, 5, unit='cm') == Vec(4, 6, 8)\n"
    assert verdicts(arena, suite, STARRED.replace(change, wrong), STARRED, "Vec") == ["fail" if change else "pass"]


@pytest.mark.parametrize(
    "kept", ["tuple(map(tuple, rows))", "[list(row) for row in rows]", "[*map(tuple, rows)]", "rows"]
)
def test_what_an_object_is_made_from_may_be_kept_in_lists_or_tuples(arena: Arena, kept: str) -> None:
    table = """
class Table:
    def __init__(self, rows):
        self.rows = KEPT
    def __eq__(self, other):
        return [*map(list, self.rows)] == [*map(list, other.rows)]
    def flipped(self):
        return Table([*zip(*self.rows)])
"""
    suite = "assert Table([[1, 2], (3, 4)]).flipped() == Table(([1, 3], [2, 4]))\n"
    reference = table.replace("KEPT", "rows")
    assert verdicts(arena, suite, table.replace("KEPT", kept), reference, "Table") == ["pass"]
    assert verdicts(arena, suite, table.replace("KEPT", f"{kept}[::-1]"), reference, "Table") == ["fail"]


UNEQUAL = {
    "learns from whom it meets": LEARNS,
    "no `==`": VEC.replace("__eq__", "equals"),
    "never equal": VEC.replace("return (self.x, self.y) == (other.x, other.y)", "return False"),
    "equal to all": VEC.replace("return (self.x, self.y) == (other.x, other.y)", "return True").replace("+", "-"),
    "other fields": VEC.replace("self.x, self.y = x, y", "self.x, self.y = x, x"),
    "a truth of its own": VEC.replace("return (self.x, self.y) == (other.x, other.y)", "return 1").replace("+", "-"),
    "no fields": "class Vec:\n    __match_args__ = ()\n    def __init__(self, *given, **named):\n        pass\n"
    "    def __eq__(self, other):\n        return True\n    def __add__(self, other):\n        return self\n",
}


@pytest.mark.parametrize("name", UNEQUAL)
def test_no_class_says_by_itself_that_its_objects_are_equal(arena: Arena, name: str) -> None:
    suite = "assert Vec(1, y=2) + Vec(3, y=4) == Vec(4, y=6)\n"
    assert verdicts(arena, suite, VEC, VEC, "Vec") == ["pass"]
    assert "pass" not in verdicts(arena, suite, UNEQUAL[name], VEC, "Vec")


COUNTDOWN = """
class Countdown:
    def __init__(self, n):
        self.n = n
    def __iter__(self):
        return self
    def __next__(self):
        if not self.n:
            raise StopIteration
        self.n -= 1
        return self.n + 1
    def __len__(self):
        return self.n
class Bag:
    def __init__(self, items):
        self.items = [*items]
    def __iter__(self):
        return iter(self.items)
def chunks(items, n):
    for at in range(0, len(items), n):
        yield items[at : at + n]
"""


@pytest.mark.parametrize(
    ("entry_point", "kind", "suite", "right", "wrong"),
    [
        ("Countdown", "class", "assert list(Countdown(3)) == [3, 2, 1]", "return self.n + 1", "return self.n"),
        ("Countdown", "class", "c = Countdown(3)\nnext(c)\nassert len(c) == 2", "return self.n\n", "return 3\n"),
        ("Countdown", "function", "c = Countdown(3)\nnext(c)\nassert len(c) == 2", "return self.n\n", "return 3\n"),
        ("Countdown", "class", "c = Countdown(9)\nnext(c)\nnext(c)\nassert next(c) == 7", "self.n -= 1", "self.n -= 2"),
        ("Bag", "class", "assert next(iter(Bag([4, 5]))) == 4", "iter(self.items)", "reversed(self.items)"),
        ("Bag", "class", "assert sum(Bag([4, 5])) == 9", "[*items]", "[*items, 1]"),
        ("chunks", "generator", "assert next(chunks([3, 4, 5], 2)) == [3, 4]", "at + n", "at + 1"),
        ("chunks", "generator", "assert next(chunks([3], 2), None) == [3]", "at + n", "at"),
        (
            "chunks",
            "generator",
            "g = chunks([3, 4], 1)\nassert [next(g) for _ in range(2)] == [[3], [4]]",
            "at + n",
            "at",
        ),
    ],
)
def test_what_an_object_or_a_generator_gives_is_taken_one_by_one_and_read_back(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, entry_point: str, kind: Kind, suite: str, right: str, wrong: str
) -> None:
    assert right in COUNTDOWN
    programs = (COUNTDOWN, COUNTDOWN.replace(right, wrong))
    problem = Problem("test/p", f"Write `{entry_point}`.", entry_point, reference_solution=COUNTDOWN, kind=kind)
    monkeypatch.setattr(arena, "book", MistakeBook())
    (score,) = arena.play([Match(problem, programs, ((suite,),) * 2)])
    assert [[test.verdict for test in row[0].duel.tests] for row in score.suites] == [["pass"], ["fail"]]
    (score,) = arena.play([Match(problem, programs, ((), ()))])
    assert [[replay.verdict for replay in code.replays] for code in score.codes] == [["pass"], ["fail"]]


@pytest.mark.parametrize(
    ("claim", "status"),
    [
        ("isinstance(chunks([3], 1), types.GeneratorType)", Status.VACUOUS),
        ("not isinstance(chunks([3], 1), list)", Status.VACUOUS),
        ("isinstance(chunks([3], 1), list)", Status.WRONG_RELATION),
        ("type(chunks([3], 1)) is list", Status.WRONG_RELATION),
    ],
)
def test_a_generator_is_no_list_whatever_its_values_come_back_as(arena: Arena, claim: str, status: Status) -> None:
    problem = Problem("test/p", "Do `chunks`.", "chunks", reference_solution=COUNTDOWN, kind="generator")
    (score,) = arena.play([Match(problem, (COUNTDOWN,), ((f"import types\nassert {claim}",),))], update_book=False)
    assert [test.status for test in score.suites[0][0].duel.tests] == [status]


@pytest.mark.parametrize("items", ["range(len(s.items))", "s.items"])
def test_how_often_an_object_is_called_has_to_be_known(items: str) -> None:
    suite = f"s = Stack([1, 2])\nassert [s.pop() for _ in {items}] == [2, 1]\nassert s.size == 0\n"
    assert all(reasons(suite, "Stack"))
    suite = f"s = Stack([1, 2])\nx = [s.pop() for _ in {items}]\nassert x == [2, 1]\n"
    assert all(reasons(suite, "Stack"))
    assert not any(reasons("s = Stack([1, 2])\nassert [s.pop() for _ in range(2)] == [2, 1]\n", "Stack"))


def test_an_iterator_that_is_asked_while_an_item_is_taken_of_it_is_not_read() -> None:
    suite = "c = Countdown(3)\nassert next(c) == 3 and len(c) == 2\nassert len(c) == 2\n"
    assert reasons(suite, "Countdown") == ["several_calls", ""]
    suite = "c = Countdown(3)\nc.reset()\nassert next(c) == 3 and len(c) == 2\nassert len(c) == 2\n"
    assert reasons(suite, "Countdown")[0] == "several_calls"
    assert reasons(suite, "Countdown")[1]
