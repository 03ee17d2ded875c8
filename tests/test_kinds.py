"""Every kind of problem: how a call reaches a solution of it, in both seats, and that nothing else changes by it."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import pytest

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Grade, Match
from codea1_env.cli import main
from codea1_env.errors import ProblemFormatError
from codea1_env.evaluation.coverage import covered
from codea1_env.judging.problems.usability import check_problems
from codea1_env.judging.schedule import calls_job
from codea1_env.players.prompts import DEFAULT, find_prompts
from codea1_env.problems import Problem, TestCase, problems_of_every_kind
from codea1_env.problems.checkers import COMPARISONS
from codea1_env.problems.kinds import KINDS, MOST_LISTED, NODES, node_shapes
from codea1_env.reading.responses import read_program, read_suite
from codea1_env.records.recording import Recorder
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Status, Verdict
from codea1_env.sandbox import LocalSandbox

DESIGN = find_prompts(DEFAULT)
WIDE = RewardConfig(fidelity="wide")

METHOD = "class Solution:\n    def add(self, a, b=2):\n        return a + b\n"
COUNTER = """class Counter:
    def __init__(self, start):
        self.seen = [start]
    def add(self, by):
        self.seen.append(self.seen[-1] + by)
    def all(self):
        return self.seen
"""
REVERSED = """class Solution:
    def turn(self, head: Optional[ListNode]) -> Optional[ListNode]:
        before = None
        while head:
            head.next, before, head = before, head, head.next
        return before
"""
MIRROR = """class Solution:
    def mirror(self, root: 'TreeNode | None') -> Optional[TreeNode]:
        if root:
            root.left, root.right = self.mirror(root.right), self.mirror(root.left)
        return root
"""
IMPORTS = "from typing import List, Optional\n" + NODES["ListNode"] + NODES["TreeNode"]
SUMS = "n = int(input())\nfor _ in range(n):\n    print(sum(map(int, input().split())), end=' \\n')\n"
NATURALS = "def naturals(start):\n    while True:\n        yield start\n        start += 1\n"
GATHER = """import asyncio
async def part(x):
    await asyncio.sleep(1000)
    return x
async def total(xs):
    return sum(await asyncio.gather(*[part(x) for x in xs]))
"""


BRANCHING = Problem(
    "p",
    "Q",
    "run",
    "def main():\n    if int(input()):\n        print(1)\n    else:\n        print(0)\n\n\nmain()\n",
    kind="program",
)


def graded(one: Problem, source: str, sandbox: LocalSandbox) -> Grade:
    """By its golden tests."""
    (grade,) = Arena(sandbox).grade(one, [source], one.golden_tests)
    return grade


def statuses(one: Problem, code: str, suite: str, sandbox: LocalSandbox) -> list[Status]:
    """Of the suite's tests, against one program."""
    (score,) = Arena(sandbox).play([Match(one, (code,), ((suite,),))], update_book=False)
    return [test.status for test in score.suites[0][0].duel.tests]


def problem(kind: str, entry_point: str, reference: str, *tests: tuple[str, str], **fields: Any) -> Problem:
    golden = tuple(TestCase(*test) for test in tests)
    return Problem("p", "Q", entry_point, reference, golden, kind=kind, **fields)  # type: ignore[arg-type]


EVERY = [
    problem("method", "Solution().add", METHOD, ("Solution().add(1)", "3"), ("Solution().add(b=1, a=1)", "2")),
    problem("method", "Solution().turn", REVERSED, ("Solution().turn([1, 2, 3])", "[3, 2, 1]"), imports=IMPORTS),
    problem("method", "Solution().turn", REVERSED, ("Solution().turn(head=[])", "[]"), imports=IMPORTS),
    problem(
        "method",
        "Solution().mirror",
        MIRROR,
        ("Solution().mirror([4, 2, 7, 1, None, 6])", "[4, 7, 2, None, 6, None, 1]"),
        ("Solution().mirror([])", "[]"),
        imports=IMPORTS,
    ),
    problem(
        "class",
        "Counter",
        COUNTER,
        ('Counter(["Counter", "all", "add", "all"], [[3], [], [4], []])', "[None, [3], None, [3, 7]]"),
    ),
    problem("generator", "naturals", NATURALS, ("naturals(2)", repr(list(range(2, 2 + MOST_LISTED))))),
    problem("coroutine", "total", GATHER, ("total([1, 2])", "3")),
    problem("coroutine", "same", "async def same(x):\n    return x\n", ("same(4)", "4")),
    problem("program", "sums", SUMS, ("sums('2\\n1 2\\n3 4')", "'3\\n7\\n'")),
]
HIDDEN = [  # Python's names stand for other things in the program
    problem(
        "generator",
        "naturals",
        "list = zip = None\n" + NATURALS,
        ("naturals(2)", repr(list(range(2, 2 + MOST_LISTED)))),
    ),
    problem(
        "method",
        "Solution().turn",
        "zip = list = type = isinstance = None\n" + REVERSED,
        ("Solution().turn([1, 2, 3])", "[3, 2, 1]"),
        imports=IMPORTS,
    ),
]


@pytest.mark.parametrize("one", EVERY + HIDDEN, ids=lambda one: f"{one.kind} {one.golden_tests[0].call[:30]}")
def test_a_reference_of_every_kind_passes_its_tests_and_serves_both_seats(one: Problem, sandbox: LocalSandbox) -> None:
    (found,) = check_problems([one], sandbox)
    assert found.serves("reference")
    assert found.serves("golden"), str(found)
    assert Problem.from_json(one.to_json()) == one


@pytest.mark.parametrize(
    ("number", "wrong"),
    [
        (0, METHOD.replace("a + b", "a - b")),
        (1, REVERSED.replace("return before", "return head")),
        (3, MIRROR.replace("self.mirror(root.right), self.mirror(root.left)", "root.right, root.right")),
        (4, COUNTER.replace("self.seen[-1] + by", "by")),
        (5, NATURALS.replace("+= 1", "+= 2")),
        (6, GATHER.replace("sum(", "max(")),
        (8, SUMS.replace("sum(", "max(")),
    ],
)
def test_a_wrong_solution_of_every_kind_fails_and_a_right_assert_kills_it(
    number: int, wrong: str, sandbox: LocalSandbox
) -> None:
    one = EVERY[number]
    suite = "\n".join(map(str, one.golden_tests))
    arena = Arena(sandbox)
    (score,) = arena.play([Match(one, (wrong, one.reference_solution or ""), ((suite,), (suite,)))], update_book=False)
    bad, good = (row[0].duel.tests for row in score.suites)
    assert {test.status for test in (*bad, *good)} == {Status.KEPT}
    assert Verdict.FAIL in {test.verdict for test in bad}
    assert {test.verdict for test in good} == {Verdict.PASS}
    assert score.codes[1].reward == 1.0


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.kind)
def test_a_solution_without_what_is_asked_for_does_not_execute(one: Problem, sandbox: LocalSandbox) -> None:
    source = "def other(:\n" if one.kind == "program" else "def other():\n    return 1\n"
    assert graded(one, source, sandbox).executes is False


OWNERS = {
    "attribute": "class Solution:\n    def __init__(self):\n        self.f = lambda n: n + 1\n",
    "getattr": "class Solution:\n    def __getattr__(self, name):\n        if name != 'f':\n            "
    "raise AttributeError(name)\n        return lambda n: n + 1\n",
    "any getattr": "class Solution:\n    def __getattr__(self, name):\n        return lambda n: n + 1\n",
    "getattribute": "class Solution:\n    def __getattribute__(self, name):\n        return lambda n: n + 1\n",
    "setattr": "class Solution:\n    def __init__(self):\n        setattr(self, 'f', self._f)\n"
    "    def _f(self, n):\n        return n + 1\n",
    "slots": "class Solution:\n    __slots__ = ('f',)\n    def __init__(self):\n        self.f = lambda n: n + 1\n",
    "dict": "class Solution:\n    def __init__(self):\n        self.__dict__['f'] = lambda n: n + 1\n",
    "property": "class Solution:\n    @property\n    def f(self):\n        return lambda n: n + 1\n",
    "static": "class Solution:\n    @staticmethod\n    def f(n):\n        return n + 1\n",
    "class attribute": "class Solution:\n    pass\nSolution.f = lambda self, n: n + 1\n",
    "base": "class Base:\n    def __init__(self):\n        self.f = lambda n: n + 1\nclass Solution(Base):\n    pass\n",
    "delegate": "class Other:\n    def f(self, n):\n        return n + 1\nclass Solution:\n    def __init__(self):\n"
    "        self.one = Other()\n    def __getattr__(self, name):\n        return getattr(self.one, name)\n",
    "factory": "class Other:\n    def f(self, n):\n        return n + 1\ndef Solution():\n    return Other()\n",
    "namespace": "import types\ndef Solution():\n    return types.SimpleNamespace(f=lambda n: n + 1)\n",
    "new": "class Other:\n    f = staticmethod(lambda n: n + 1)\nclass Solution:\n    def __new__(cls):\n"
    "        return Other()\n",
    "shadowing": "hasattr = getattr = callable = globals = None\n"
    "class Solution:\n    def __init__(self):\n        self.f = lambda n: n + 1\n",
    "objects are counted": "class Solution:\n    made = 0\n    def __init__(self):\n        Solution.made += 1\n"
    "        made = Solution.made\n        self.f = lambda n: n + made\n",
    "questions are counted": "class Solution:\n    def __init__(self):\n        self.asked = 0\n"
    "    def __getattr__(self, name):\n        self.asked += 1\n        return lambda n: n + self.asked\n",
}


@pytest.mark.parametrize("owner", OWNERS)
def test_a_method_is_what_an_object_has_and_not_only_its_class(owner: str, sandbox: LocalSandbox) -> None:
    source = OWNERS[owner]
    there: dict[str, Any] = {}
    exec(source, there)
    assert there["Solution"]().f(1) == 2, "what plain Python says"
    reference = "class Solution:\n    def f(self, n):\n        return n + 1\n"
    one = problem("method", "Solution().f", reference, ("Solution().f(1)", "2"), ("Solution().f(n=5)", "6"))
    grade = graded(one, source, sandbox)
    assert grade.executes is True
    assert grade.verdicts[0] is Verdict.PASS


def test_a_method_of_nodes_may_be_an_attribute_of_the_object(sandbox: LocalSandbox) -> None:
    one = next(each for each in EVERY if each.entry_point == "Solution().turn")
    there = REVERSED.replace("def turn(", "def _turn(") + "    def __init__(self):\n        self.turn = self._turn\n"
    assert graded(one, there, sandbox).all_passed


@pytest.mark.parametrize(
    "source",
    [
        "class Solution:\n    pass\n",
        "class Solution:\n    def __init__(self):\n        self.g = abs\n",
        "class Solution:\n    def __init__(self, x):\n        self.f = abs\n",
        "class Solution:\n    def __init__(self):\n        raise SystemExit\n",
        "class Solution:\n    def __getattr__(self, name):\n        raise ValueError(name)\n",
        "Solution = 3\n",
        "Solution = None\n",
    ],
)
def test_an_object_without_the_method_does_not_execute(source: str, sandbox: LocalSandbox) -> None:
    one = problem(
        "method", "Solution().f", "class Solution:\n    def f(self):\n        return 1\n", ("Solution().f()", "1")
    )
    assert graded(one, source, sandbox).executes is False


@pytest.mark.parametrize("kind", ["function", "method", "program"])
def test_a_program_has_a_file_by_name(kind: str, sandbox: LocalSandbox) -> None:
    told = "import os\nHERE = os.path.dirname(os.path.abspath(__file__))\n"
    asked = {
        "function": problem("function", "f", f"{told}def f():\n    return __file__.endswith('.py')\n", ("f()", "True")),
        "method": problem("method", "Solution().add", told + METHOD, ("Solution().add(1)", "3")),
        "program": problem("program", "run", f"{told}print(__file__[-3:])\n", ("run('')", "'.py\\n'")),
    }
    assert graded(asked[kind], asked[kind].reference_solution or "", sandbox).all_passed


def test_every_call_of_a_method_has_a_new_object(sandbox: LocalSandbox) -> None:
    keeps = "class Solution:\n    seen = 0\n    def f(self):\n        self.seen += 1\n        return self.seen\n"
    one = problem("method", "Solution().f", keeps, ("Solution().f()", "1"))
    suite = "s = Solution()\nassert s.f() == 1\nassert Solution().f() == 2"
    tests = read_suite(suite, one.entry_point).tests
    assert [test.call for test in tests] == ["Solution().f()"] * 2
    assert statuses(one, keeps, suite, sandbox) == [Status.KEPT, Status.DUPLICATE]


def test_one_call_of_a_method_is_one_call_however_its_arguments_are_given(sandbox: LocalSandbox) -> None:
    suite = "assert Solution().add(1, 1) == 2\nassert Solution().add(1, b=1) == 2\nassert Solution().add(a=1, b=1) == 2"
    assert statuses(EVERY[0], METHOD, suite, sandbox) == [Status.KEPT, Status.DUPLICATE, Status.DUPLICATE]


SUM = "async def f(a, b):\n    return a + b\n"
IN_OTHER_WORDS = [
    (
        problem("function", "f", "def f(c):\n    return [len(each) for each in c]\n"),
        "[2, 2]",
        ("f([Counter('ab'), {1: 2, 3: 4}])", "f([Counter('ba'), {3: 4, 1: 2}])", "f(c=[Counter('ba'), {1: 2, 3: 4}])"),
    ),
    (problem("coroutine", "f", SUM), "3", ("f(1, 2)", "f(1, b=2)", "f(b=2, a=1)")),
    (problem("program", "run", "print(input())\n"), "'7'", ("run('7')", "run(text='7')")),
    (
        problem("class", "C", "class C:\n    def put(self, k):\n        return k\n"),
        "[None, 1]",
        (
            "C(['C', 'put'], [[], [1]])",
            "C(('C', 'put'), [[], [1]])",
            "C(['C', 'put'], ([], [1]))",
            "C(['C', 'put'], [(), (1,)])",
            "C(['C', 'put'], arguments=[[], [1]])",
            "C(arguments=((), [1]), names=('C', 'put'))",
        ),
    ),
]


@pytest.mark.parametrize(("one", "value", "calls"), IN_OTHER_WORDS, ids=lambda each: getattr(each, "kind", ""))
def test_a_call_in_other_words_is_the_same_call(
    one: Problem, value: str, calls: tuple[str, ...], sandbox: LocalSandbox
) -> None:
    suite = "\n".join(f"assert {call} == {value}" for call in calls)
    assert statuses(one, "", suite, sandbox) == [Status.KEPT] + [Status.DUPLICATE] * (len(calls) - 1)


@pytest.mark.parametrize(
    "call",
    [
        'Counter("CC", [[1], []])',
        'Counter(["Counter"], [{1: 2}])',
        'Counter(["Counter"], [{1}])',
        'Counter(["Counter"], "1")',
        'Counter(["Counter", "__sizeof__"], [[1], []])',
        'Counter(["all"], [[]])',
        'Counter(["Counter", "all"], [[1]])',
        'Counter(["Counter", "seen"], [[1], []])',
    ],
)
def test_a_sequence_is_of_public_methods_of_one_new_object(call: str, sandbox: LocalSandbox) -> None:
    assert statuses(EVERY[4], COUNTER, f"assert {call} == [None]", sandbox) == [Status.RAISES]


def test_a_list_without_an_end_is_an_error_and_no_hang(sandbox: LocalSandbox) -> None:
    circle = REVERSED.replace("        return before", "        before.next = before\n        return before")
    assert graded(EVERY[1], circle, sandbox).verdicts == (Verdict.ERROR,)


def test_a_programs_output_is_compared_by_lines(sandbox: LocalSandbox) -> None:
    outputs = (
        "print('3\\n7')",
        "print('3  \\n7\\n\\n')",
        "print('3 7')",
        "print('3\\n\\n7')",
        "1 / 0",
        "exit(3)",
        "exit()",
    )
    grades = Arena(sandbox).grade(EVERY[8], outputs, EVERY[8].golden_tests)
    verdicts = [verdict for grade in grades for verdict in grade.verdicts]
    assert verdicts == [Verdict.PASS] * 2 + [Verdict.FAIL] * 2 + [Verdict.ERROR] * 2 + [Verdict.FAIL]


SUM = "n = int(input())\nprint(sum(map(int, input().split())))\n"
READS_OTHERWISE = {
    "rewrapped": "import io, sys\nsys.stdin = io.TextIOWrapper(sys.stdin.buffer, encoding='utf-8')\n"
    f"sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')\n{SUM}",
    "a codec's reader": f"import codecs, sys\nsys.stdin = codecs.getreader('utf-8')(sys.stdin.buffer)\n{SUM}",
    "redirected": "import io, sys\nsys.stdout = io.StringIO()\nprint('lost')\nsys.stdout = sys.__stdout__\n" + SUM,
    "file 0": "n, *xs = map(int, open(0).read().split())\nprint(sum(xs))\n",
    "bytes of file 0": "n, *xs = map(int, open(0, 'rb').read().split())\nprint(sum(xs))\n",
    "by its name": "with open('/dev/stdin') as file:\n    n, *xs = map(int, file.read().split())\nprint(sum(xs))\n",
    "written at exit": "import atexit, io, sys\nsys.stdout = kept = io.StringIO()\n"
    f"atexit.register(lambda: sys.__stdout__.write(kept.getvalue()))\n{SUM}",
    "a wrapper that ends": "import io, sys\ndef main():\n    out = io.TextIOWrapper(sys.stdout.buffer)\n"
    "    n, *xs = map(int, sys.stdin.read().split())\n    out.write(str(sum(xs)))\nmain()\n",
    "an object of its own": "import sys\nreal = sys.stdout\nclass Out:\n    def write(self, text):\n"
    "        real.write(text)\n"
    f"sys.stdout = Out()\n{SUM}",
    "detached": "import sys\nn, *xs = map(int, sys.stdin.read().split())\n"
    "sys.stdout.detach().write(str(sum(xs)).encode())\n",
    "file 0 left open": "n, *xs = map(int, open(0, closefd=False).read().split())\nprint(sum(xs))\n",
    "by its number": "import sys\nn, *xs = map(int, open(sys.stdin.fileno()).read().split())\nprint(sum(xs))\n",
    "by codecs": "import codecs\nn, *xs = map(int, codecs.open('/dev/stdin').read().split())\nprint(sum(xs))\n",
    "looked at ahead": f"import sys\nassert sys.stdin.buffer.peek(1) and sys.stdin.name == '<stdin>'\n{SUM}",
    "a wrapper that is left": "import io, sys\nout = io.TextIOWrapper(io.BufferedWriter(sys.stdout.buffer))\n"
    "n, *xs = map(int, sys.stdin.read().split())\nout.write(str(sum(xs)))\n",
    "io's file 0": "import io\nn, *xs = map(int, io.open(0).read().split())\nprint(sum(xs))\n",
    "by its path": "from pathlib import Path\nn, *xs = map(int, Path('/dev/stdin').read_text().split())\n"
    "print(sum(xs))\n",
    "to a file by its name": "import builtins\ndef print(x):\n"
    f"    builtins.print(x, file=open('/dev/stdout', 'w'))\n{SUM}",
    "beside its file": f"import os\nhere = os.path.dirname(os.path.abspath(__file__))\n{SUM}",
    "closed": f"import sys\n{SUM}sys.stdout.close()\n",
}


@pytest.mark.parametrize("name", READS_OTHERWISE)
def test_a_program_may_read_and_write_its_streams_in_every_usual_way(name: str, sandbox: LocalSandbox) -> None:
    one = problem("program", "run", SUM, ("run('3\\n1 2 3\\n')", "'6'"), ("run('1\\n8\\n')", "'8'"))
    assert graded(one, READS_OTHERWISE[name], sandbox).verdicts == (Verdict.PASS,) * 2


def test_what_is_printed_to_a_closed_stream_is_an_error_as_at_a_terminal(sandbox: LocalSandbox) -> None:
    one = problem("program", "run", SUM, ("run('1\\n8\\n')", "'8'"))
    assert graded(one, "import sys\nsys.stdout.close()\nprint(8)\n", sandbox).verdicts == (Verdict.ERROR,)


@pytest.mark.parametrize(
    "node",
    [
        "class ListNode:\n    def __init__(self, x):\n        self.val = x\n        self.next = None\n",
        "class ListNode:\n    def __init__(self, val, next=None):\n        self.val, self.next = val, next\n",
        "class ListNode:\n    def __init__(self, next=None, val=0):\n        self.val, self.next = val, next\n",
    ],
)
def test_a_program_may_bring_a_class_of_nodes_of_its_own(node: str, sandbox: LocalSandbox) -> None:
    assert graded(EVERY[1], f"{node}\n{REVERSED}", sandbox).verdicts == (Verdict.PASS,)


IN_THREADS = {
    "a thread of the loop's": "await asyncio.to_thread(slow, x)",
    "of a pool": "await asyncio.get_running_loop().run_in_executor(ThreadPoolExecutor(1), slow, x)",
    "of a pool that the loop does not know": "await asyncio.wrap_future(ThreadPoolExecutor(1).submit(slow, x))",
    "within a time": "await asyncio.wait_for(asyncio.to_thread(slow, x), 60)",
    "beside one that sleeps for ages": "(await asyncio.gather(asyncio.sleep(10**9, 7), asyncio.to_thread(slow, x)))[1]",
    "before one that does": "await asyncio.to_thread(slow, x) + await asyncio.sleep(10**9, 0)",
}


@pytest.mark.parametrize("name", IN_THREADS)
def test_a_coroutine_waits_for_its_threads(sandbox: LocalSandbox, name: str) -> None:
    source = (
        "import asyncio, time\nfrom concurrent.futures import ThreadPoolExecutor\ndef slow(x):\n    time.sleep(0.1)\n"
        f"    return x + 1\nasync def f(x):\n    return {IN_THREADS[name]}\n"
    )
    one = problem("coroutine", "f", source, ("f(1)", "2"))
    (grade,) = Arena(sandbox).grade(one, [source], one.golden_tests)
    assert grade.all_passed, grade


def test_a_coroutine_may_import_asyncio_when_it_runs(sandbox: LocalSandbox) -> None:
    late = "async def total(xs):\n    import asyncio\n    await asyncio.sleep(1000)\n    return sum(xs)\n"
    one = problem("coroutine", "total", GATHER, ("total([1, 2])", "3"))
    assert graded(one, late, sandbox).verdicts == (Verdict.PASS,)


def test_a_program_keeps_nothing_from_one_input_to_the_next(sandbox: LocalSandbox) -> None:
    remembers = "import sys, math\nmath.seen = getattr(math, 'seen', 0) + 1\nprint(math.seen)\n"
    tests = [TestCase(f"sums('{n}')", "'1'") for n in range(4)]
    (grade,) = Arena(sandbox).grade(EVERY[8], [remembers], tests)
    assert grade.verdicts == (Verdict.PASS,) * 4


def test_what_a_method_takes_and_returns_is_read_from_its_signature() -> None:
    starter = "class Solution:\n    def f(self, xs: List[Optional[ListNode]], k: int, t: TreeNode) -> ListNode:\n"
    shapes = node_shapes(starter, "f")
    assert shapes == {"xs": ["ListNode"], "k": None, "t": "TreeNode", "return": "ListNode"}
    assert node_shapes("class Solution:\n    def f(self, x: int) -> int:\n        pass", "f") == {}
    assert node_shapes("no code at all", "f") == {}


@pytest.mark.parametrize(
    ("kind", "entry_point", "told"),
    [
        ("methods", "f", "kind must be one of"),
        ("method", "f", "entry_point must be Class().method, got 'f'"),
        ("method", "Solution().def", "entry_point must be Class().method"),
        ("function", "Solution().f", "entry_point must be a Python function name"),
    ],
)
def test_a_kind_and_its_entry_point_belong_together(kind: str, entry_point: str, told: str) -> None:
    with pytest.raises(ProblemFormatError) as refused:
        problem(kind, entry_point, METHOD)
    assert told in str(refused.value)


def test_players_are_asked_for_what_the_kind_is() -> None:
    asked = {
        one.kind: (DESIGN.for_coder(one)[1]["content"], DESIGN.for_tester(one, "x", suite_size=2)[1]["content"])
        for one in EVERY
    }
    assert "Define the class `Solution` with the method `mirror`" in asked["method"][0]
    assert "`assert Solution().mirror(...) == expected`" in asked["method"][1]
    assert "a tree as the list of its values level by level" in asked["method"][1]
    assert "An empty one is `[]`." in asked["method"][1]
    assert '`["Counter", "method", ...]`' in asked["class"][1]
    assert "Write a whole program, a script" in asked["program"][0]
    assert "the whole standard input as a string" in asked["program"][1]
    assert "with `async def`" in asked["coroutine"][0]
    assert f"the first {MOST_LISTED}" in asked["generator"][1]


def test_of_several_blocks_that_with_the_class_is_the_program() -> None:
    answer = f"```python\n{METHOD}```\nFor example:\n```python\nSolution().add(1)\n```\n"
    assert read_program(answer, "Solution().add").source == METHOD


def test_lines_that_a_method_runs_are_measured(sandbox: LocalSandbox) -> None:
    method, script = covered(sandbox, [(EVERY[0], [b"[[1],[]]"]), (BRANCHING, [b'[["1"],[]]', b'[["0"],[]]'])])
    assert method.passed([0])[0] == 1
    assert [script.passed(calls)[1] for calls in ([0], [1], [0, 1])] == [1, 1, 2]


@pytest.mark.parametrize("one", problems_of_every_kind(), ids=lambda one: one.problem_id)
def test_a_bundled_problem_of_every_kind_is_right_and_its_mutants_are_wrong(
    one: Problem, sandbox: LocalSandbox
) -> None:
    (found,) = check_problems([one], sandbox)
    assert found.serves("reference")
    assert found.serves("golden")
    assert found.why_not == ""
    assert len(one.golden_tests) == 3
    arena = Arena(sandbox)
    grades = arena.grade(one, one.mutants, (*one.golden_tests, *one.hidden_tests))
    assert len(one.mutants) >= 3
    assert all(grade.executes and set(grade.verdicts) > {Verdict.PASS} for grade in grades)
    if one.checker != "any-of":  # there the reference knows all answers, and is none
        (grade,) = arena.grade(one, [one.reference_solution or ""], one.hidden_tests)
        assert set(grade.verdicts) == {Verdict.PASS}


def test_there_is_a_bundled_problem_of_every_kind_and_with_every_checker() -> None:
    every = problems_of_every_kind()
    assert {one.kind for one in every} == set(KINDS)
    assert {one.checker for one in every if one.checker in COMPARISONS} == set(COMPARISONS)
    assert {name for one in every for name in NODES if f"class {name}" in one.imports} == set(NODES)
    assert any(one.checker and one.checker not in COMPARISONS for one in every)
    assert any(one.raises for one in every)


@pytest.mark.parametrize("one", problems_of_every_kind(), ids=lambda one: one.problem_id)
def test_a_problem_of_every_kind_is_played_in_both_seats_at_the_terminal(
    one: Problem, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = "\n".join(map(str, one.golden_tests))
    if one.checker == "any-of":
        given = given.replace("['", "'").replace("']", "'") if "richest" in given else given
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    assert main(["play", "--problem", one.problem_id, "--seed", "1", "--json"]) == 0
    (suite,) = json.loads(capsys.readouterr().out)["suites"][0]
    assert sum(test["status"] == "kept" for test in suite["tests"]) >= 1


ROOT = "def root(x):\n    if x < 0:\n        raise ValueError(f'{x} is negative')\n    return x ** 0.5\n"
OWN_ROOT = f"class Own(ValueError):\n    pass\n{ROOT.replace('ValueError', 'Own')}"
ROOTS = Problem(
    "root", "Q", "root", ROOT, (TestCase("root(-1)", "{'raises': 'ValueError', 'message': '-1 is negative'}"),),
    raises=("ValueError(message)", "Own", "SystemExit", "KeyboardInterrupt"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("program", "verdict"),
    [
        (ROOT, Verdict.PASS),
        (ROOT.replace(" is negative", ""), Verdict.FAIL),
        (ROOT.replace("ValueError", "KeyError"), Verdict.ERROR),
        ("str = len\n" + ROOT, Verdict.PASS),
        (ROOT.replace("raise ValueError(f'{x} is negative')", "raise SystemExit(1)"), Verdict.FAIL),
        ("class Own(Exception):\n    pass\n" + ROOT.replace("ValueError", "Own"), Verdict.FAIL),
        ("class ValueError(Exception):\n    pass\n" + ROOT, Verdict.ERROR),
        ("class ValueError(ValueError):\n    pass\n" + ROOT, Verdict.PASS),
        ("class Negative(ValueError):\n    pass\n" + ROOT.replace("raise ValueError", "raise Negative"), Verdict.PASS),
        (ROOT.replace("raise ValueError(", "return dict(raises='ValueError', message="), Verdict.ERROR),
        (
            "class D(dict):\n    def __contains__(self, key):\n        return False\n"
            + ROOT.replace("raise ValueError(", "return D(raises='ValueError', message="),
            Verdict.ERROR,
        ),
        (
            "class S(str):\n    __hash__ = lambda self: 5\n"
            + ROOT.replace("raise ValueError(", "return (lambda m: {S('raises'): 'ValueError', 'message': m})("),
            Verdict.ERROR,
        ),
        (ROOT.replace("raise ValueError(f'{x} is negative')", "raise KeyboardInterrupt"), Verdict.FAIL),
        ("def root(x):\n    return abs(x) ** 0.5\n", Verdict.FAIL),
    ],
)
def test_an_exception_is_an_answer_where_the_problem_says_so(
    program: str, verdict: Verdict, sandbox: LocalSandbox
) -> None:
    (found,) = check_problems([ROOTS], sandbox)
    assert (found.serves("reference"), found.serves("golden")) == (True, True)
    assert graded(ROOTS, program, sandbox).verdicts == (verdict,)


@pytest.mark.parametrize(
    ("changes", "statuses"),
    [
        ({}, ("kept", "wrong_relation", "raises", "kept")),
        ({"raises": ("ValueError",)}, ("rejected", "wrong_relation", "raises", "kept")),  # its text is no answer
        ({"raises": ("KeyError",)}, ("raises", "raises", "raises", "raises")),
        ({"raises": ("Own",), "reference_solution": OWN_ROOT}, ("wrong_relation", "wrong_relation", "raises", "kept")),
        ({"raises": ()}, ("kept", "wrong_relation", "raises", "kept")),  # a `raise` of the reference says it
        ({"raises": (), "question": "TypeError for a text"}, ("kept", "wrong_relation", "kept", "kept")),
        ({"raises": (), "reference_solution": "def root(x):\n    return abs(x) ** 0.5\n"}, 4 * ("raises",)),
    ],
)
def test_a_tester_is_paid_for_an_exception_that_somebody_describes(
    changes: dict[str, Any], statuses: tuple[str, ...], sandbox: LocalSandbox
) -> None:
    suite = (
        "def test_root():\n    with pytest.raises(ValueError, match='is negative'):\n        root(-1)\n"
        "    with pytest.raises(KeyError):\n        root(-2)\n"
        "    with pytest.raises((TypeError, KeyError)):\n        root('x')\n"
        "    with pytest.raises(Exception):\n        root(-3)\n"
    )
    problem = dataclasses.replace(ROOTS, golden_tests=(), **changes)
    (score,) = Arena(sandbox, WIDE).play([Match(problem, ("def root(x):\n    return 2.0\n",), ((suite,),))])
    tests = score.suites[0][0].duel.tests
    assert tuple(str(test.status) for test in tests) == statuses
    assert {test.verdict for test in tests if test.status is Status.KEPT} <= {Verdict.ERROR}


SHELF = """class Shelf:
    def __init__(self, books):
        self.books = books
    def find(self, title):
        raise KeyError(title)
    def sort(self, key):
        raise TypeError(key)
class Book:
    pass
"""


@pytest.mark.parametrize(
    "program",
    [
        SHELF.partition("class Book")[0],
        SHELF.replace("class Shelf", "class _Shelf") + "def Shelf(books):\n    return _Shelf(books)\n",
        SHELF.replace("raise KeyError(title)", "return Told()").replace("raise TypeError(key)", "return 1")
        + "class M(type):\n    def __getattribute__(cls, name):\n        raise KeyError\n"
        + "class Told(metaclass=M):\n    pass\n",
    ],
)
def test_what_is_around_a_call_raises_nothing_that_a_test_expects(program: str, sandbox: LocalSandbox) -> None:
    """A name that is not there is a NameError, and what a function makes or a look at a value raises is none."""
    suite = "with pytest.raises(KeyError):\n    Shelf([Book()]).find('a')\n"
    suite += "with pytest.raises(TypeError):\n    Shelf([Book()]).sort(1)\n"
    problem = Problem("shelf", "Q", "Shelf", SHELF)
    (score,) = Arena(sandbox, WIDE).play([Match(problem, (SHELF, program), ((suite,), (suite,)))])
    right, wrong = ([test.verdict for test in row[0].duel.tests] for row in score.suites)
    assert right == [Verdict.PASS, Verdict.PASS]
    assert Verdict.PASS not in wrong


@pytest.mark.parametrize("text", ["'x' * 5000", "Own()"])
def test_an_exception_without_a_short_text_is_one_of_its_type(text: str, sandbox: LocalSandbox) -> None:
    own = "class Own:\n    def __str__(self):\n        raise KeyError\n"
    suite = (
        "with pytest.raises(ValueError):\n    root(-1)\nwith pytest.raises(ValueError, match='neg'):\n    root(-2)\n"
    )
    problem = dataclasses.replace(ROOTS, golden_tests=(), raises=())
    program = own + ROOT.replace("f'{x} is negative'", text)
    (score,) = Arena(sandbox, WIDE).play([Match(problem, (program,), ((suite,),))])
    assert [test.verdict for test in score.suites[0][0].duel.tests] == [Verdict.PASS, Verdict.FAIL]


def test_a_claim_about_what_comes_back_is_none_about_an_exception(sandbox: LocalSandbox) -> None:
    """Neither is a right program's exception a value, nor does a program that raises satisfy such a claim."""
    suite = "assert len(root(-1)) == 2\nassert root(-1)['raises'] == 'ValueError'\nassert root(4) != 3\n"
    problem = dataclasses.replace(ROOTS, golden_tests=(), raises=())
    wrong = "def root(x):\n    raise ValueError(f'{x} is negative')\n"
    (score,) = Arena(sandbox, WIDE).play([Match(problem, (wrong,), ((suite + "assert 1.5 < root(4) < 2.5\n",),))])
    tests = score.suites[0][0].duel.tests
    assert [str(test.status) for test in tests] == ["raises", "raises", "vacuous", "kept"]
    assert tests[3].verdict is Verdict.ERROR


def test_a_method_and_a_sequence_raise_as_functions_do(sandbox: LocalSandbox) -> None:
    raised = [('Counter(["Counter", "pop"], [[1], []])', "{'raises': 'IndexError'}")]
    source = "class Counter:\n    def __init__(self, x):\n        pass\n    def pop(self):\n        return [].pop()\n"
    one = problem("class", "Counter", source, *raised, raises=("IndexError",))
    assert graded(one, source, sandbox).verdicts == (Verdict.PASS,)


@pytest.mark.parametrize("raises", [("Value Error",), ("E", "E(message)"), ["E"], (1,), ("E()",)])
def test_exceptions_that_are_answers_are_names(raises: Any) -> None:
    with pytest.raises(ProblemFormatError, match="raises must be a tuple of"):
        dataclasses.replace(ROOTS, raises=raises)
    assert Problem.from_json(ROOTS.to_json()) == ROOTS
    with pytest.raises(ProblemFormatError, match="raises must be"):
        Problem("p", "Q", "run", kind="program", raises=("ValueError",))


def test_an_ordinary_problem_is_run_as_it_was() -> None:
    one = Problem("p", "Q", "f", "def f():\n    return 1\n")

    assert (calls_job(one, "x = 1", ()).source, calls_job(one, "x = 1", ()).entry_point) == ("x = 1", "f")
    assert not {"kind", "checker", "raises"} & set(one.to_json().split('"'))


def test_games_of_every_kind_are_recorded_played_again_and_shown(
    tmp_path: Path, sandbox: LocalSandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    games, page = tmp_path / "games.jsonl", tmp_path / "page.html"
    suites = {one: "\n".join(map(str, one.golden_tests)) for one in problems_of_every_kind()}
    matches = [Match(one, one.mutants[:1], ((suite,),)) for one, suite in suites.items()]
    with Recorder(games) as recorder:
        arena = Arena(sandbox, on_score=recorder.write)
        arena.play(matches)
    assert main(["replay", str(games)]) == 0
    assert f"{len(matches)} matches played again, 0 with other rewards" in "".join(capsys.readouterr())
    assert main(["view", str(games), "-o", str(page)]) == 0
    assert f"{len(matches)} duels" in "".join(capsys.readouterr())
