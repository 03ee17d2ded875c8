"""The judge: tests to data, the reference as oracle, programs to verdicts; what runs where, and what may not matter."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from codea1_env.errors import SandboxError, UnusableReference
from codea1_env.judging.judge import Expectation, Judge, Trial
from codea1_env.judging.oracle import ReferenceValue
from codea1_env.judging.raised import raised_outcome
from codea1_env.judging.schedule import turn, with_imports
from codea1_env.problems.problem import Problem
from codea1_env.reading.grammar import RETURNED, read_case
from codea1_env.reading.test_case import TestCase
from codea1_env.rewards.duel import Verdict
from codea1_env.sandbox import CallsJob, ExpressionsJob, Job, JobResult, LocalSandbox, Outcome, OutcomeKind


class RecordingSandbox:
    """The real sandbox, with a list of the jobs that it was given."""

    version = "recording"

    def __init__(self, sandbox: LocalSandbox) -> None:
        self._sandbox = sandbox
        self.jobs: list[Job] = []

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        self.jobs += jobs
        return self._sandbox.run(jobs)

    def close(self) -> None:
        """Not ours to close."""


class BrokenSandbox:
    """Infrastructure that fails."""

    version = "broken"

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        raise SandboxError("the machine must be up, got a power cut")

    def close(self) -> None:
        """Nothing to close."""


@pytest.fixture(scope="module")
def local() -> Iterator[LocalSandbox]:
    with LocalSandbox() as shared:
        yield shared


@pytest.fixture
def sandbox(local: LocalSandbox) -> RecordingSandbox:
    return RecordingSandbox(local)


@pytest.fixture
def judge(sandbox: RecordingSandbox) -> Judge:
    return Judge(sandbox)


def problem(reference: str | None = None, imports: str = "", entry_point: str = "f") -> Problem:
    return Problem("p", "?", entry_point, reference_solution=reference, imports=imports, time_limit_s=0.1)


def call(*positional: object) -> bytes:
    return json.dumps([positional, []], separators=(",", ":")).encode()


def expect(argument: object, value: object) -> Expectation:
    return Expectation(call(argument), json.dumps(value).encode())


def verdicts(judge: Judge, source: str, pairs: Sequence[tuple[object, object]], imports: str = "") -> str:
    """One trial's verdicts, as their first letters."""
    trial = Trial(problem(imports=imports), source, tuple(expect(*pair) for pair in pairs))
    (result,) = judge.try_programs([trial])
    return "".join(verdict.value[0] for verdict in result.verdicts)


# Tests to data


def test_literal_tests_are_data_without_running_anything() -> None:
    test = read_case(TestCase("f([1, 'a'], b={2})", "(1.5, None)"), "f")
    assert Judge(BrokenSandbox()).evaluate([[test], []]) == [
        [Expectation(b'[[[1,"a"]],[["b",{"s":[2]}]]]', b'{"t":[1.5,null]}')],
        [],
    ]


def test_pure_expressions_are_evaluated_to_data(judge: Judge) -> None:
    cases = [
        TestCase("f(sum([1, 2]), b=sorted({3, 1}))", "10 ** 2"),
        TestCase("f(1)", "1"),
        TestCase("f([0] * 2)", "()"),
    ]
    (found,) = judge.evaluate([[read_case(case, "f") for case in cases]])
    assert found == [
        Expectation(b'[[3],[["b",[1,3]]]]', b"100"),
        Expectation(b"[[1],[]]", b"1"),
        Expectation(b"[[[0,0]],[]]", b'{"t":[]}'),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 / 0", "evaluation_error"),
        ("int('x')", "evaluation_error"),
        ("10 ** 10 ** 10", "evaluation_limit"),
        ("[0] * 10 ** 10", "evaluation_limit"),
        ("[range(10 ** 9), 'a' * 100000]", "not_plain_data"),
        ("'a' * 100000", "not_plain_data"),
        ("str(zip())", "unstable"),
        ("list({'a', 'b', 'c', 'd', 'e', 'f'})", "unstable"),
    ],
)
def test_what_has_no_data_has_a_named_reason_and_spares_its_neighbours(judge: Judge, text: str, reason: str) -> None:
    cases = [TestCase("f(0 + 1)", "1"), TestCase(f"f({text})", "1"), TestCase("f(1)", text), TestCase("f(2 + 3)", "1")]
    (found,) = judge.evaluate([[read_case(case, "f") for case in cases]])
    assert found == [Expectation(call(1), b"1"), reason, reason, Expectation(call(5), b"1")]


# The oracle


def reference_values(judge: Judge, reference: str, calls: Sequence[bytes], imports: str = "") -> list[ReferenceValue]:
    (found,) = judge.reference_values([(problem(reference, imports), calls)])
    return found


def test_the_reference_answers_each_call(judge: Judge) -> None:
    reference = "def f(x):\n    if x == 1:\n        raise KeyError\n    return [object(), 0, {x}, x][x]\n"
    assert reference_values(judge, reference, [call(x) for x in (3, 0, 1, 2)]) == [
        ReferenceValue(b"3"),
        ReferenceValue(b"", "opaque"),
        ReferenceValue(b"", "KeyError", b'{"t":[["KeyError","LookupError","Exception","BaseException"],""]}'),
        ReferenceValue(b'{"s":[2]}'),
    ]


FORGED = [
    b"", b"nul", b"\xff", b"NaN", b"1e999", b"[" * 400_000, b"9" * 9000, b'{ "o":"x"}', b'{"d":[[]]}', b'{"t":1}',
]  # fmt: skip


@pytest.mark.parametrize(
    "forged",
    [*FORGED, b'{"t":[[1,{}],"x"]}', b'{"t":[["ValueError"],[]]}', b'{"d":[["raises","ValueError"]]}'],
    ids=lambda forged: repr(forged[:12]),
)
@pytest.mark.parametrize("raises", [(), ("ValueError",)])
def test_what_a_program_forges_of_an_exception_is_no_exception(judge: Judge, forged: bytes, raises: Any) -> None:
    program = f"import values\nvalues.encode = lambda value, room: {forged!r}\ndef f(x):\n    raise ValueError\n"
    problem = Problem("p", "q", "f", raises=raises)
    result = judge.run([turn(problem, program, [call(1)])])[0]
    kind = OutcomeKind.VALUE if raises and forged.startswith(b'{"d":[["raises"') else OutcomeKind.ERROR
    assert raised_outcome(problem, result.outcomes[0], ["ValueError"]).kind is kind


@pytest.mark.parametrize("forged", FORGED, ids=lambda forged: repr(forged[:12]))
def test_what_a_reference_forges_is_no_value_and_breaks_nothing(judge: Judge, forged: bytes) -> None:
    reference = f"import values\nvalues.encode = lambda value, room: {forged!r}\ndef f(x):\n    return x\n"
    assert reference_values(judge, reference, [call(1)]) == [ReferenceValue(b"", "opaque")]


@pytest.mark.parametrize(
    "body",
    [
        "import random\n    return random.random()",
        "import time\n    return time.perf_counter_ns()",
        "return hash('a')",
        "return list({'a', 'b', 'c', 'd', 'e', 'f', 'g'})",
        "return str(object())",
        *(f"return hex(id({made}))[{digit}]" for made in ("object()", "x + 0.5", "lambda: x") for digit in (-4, -3)),
        "return hex(id([x]))[-3]",
        "return id(x)",
        "import os\n    return os.urandom(4)",
        "import uuid\n    return str(uuid.uuid4())",
    ],
)
def test_a_reference_that_does_not_repeat_itself_is_flaky(judge: Judge, body: str) -> None:
    found = reference_values(judge, f"def f(x):\n    {body}\n", [call(1)])
    assert found == [ReferenceValue(b"", "flaky")]


def test_a_set_in_another_order_is_not_flaky(judge: Judge) -> None:
    (found,) = reference_values(judge, "def f(x):\n    return {'a', 'b', 'c', 'd', 'e', 'f'}\n", [call(1)])
    assert found.failure == ""


_HANGS = "def f(x):\n    while x > 100:\n        pass\n    return x\n"


def test_calls_on_which_the_reference_hangs_cost_no_other_call_its_value(judge: Judge) -> None:
    """More of them than a candidate would have strikes, and in front."""
    found = reference_values(judge, _HANGS, [call(x) for x in (101, 102, 103, 104, 1, 2)])
    assert [value.failure for value in found] == ["timeout"] * 4 + ["", ""]
    assert [value.value for value in found[4:]] == [b"1", b"2"]


def test_a_call_that_hangs_is_not_asked_again_under_the_other_hash_seed(
    judge: Judge, sandbox: RecordingSandbox
) -> None:
    reference_values(judge, _HANGS + "# once", [call(x) for x in (101, 1, 102)])
    asked = [(job.hash_seed, job.calls) for job in sandbox.jobs if isinstance(job, CallsJob)]
    assert asked == [(0, (call(101), call(1), call(102))), (1, (call(1),))]


def test_a_row_of_calls_ends_with_its_last_hang_and_what_others_ask_changes_nothing(judge: Judge) -> None:
    asked = problem(_HANGS)
    rows = [[call(x) for x in row] for row in ((101, 1, 102, 2, 103), (2, 103, 3, 3), (104, 105, 2), (3, 101, 1))]
    found = judge.reference_values([(asked, row) for row in rows], most_hangs=2)
    texts = [[value.failure or value.value.decode() for value in row] for row in found]
    end = "timeout"
    assert texts == [[end, "1", end, end, end], ["2", end, "3", "3"], [end, end, end], ["3", end, "1"]]
    assert judge.reference_values([(asked, rows[0])], most_hangs=2) == found[:1]  # where 2 is remembered
    assert judge.reference_values([(asked, rows[0])])[0][3].value == b"2"


_BUSY = """
def f(x):
    import time
    end = time.process_time() + 0.06
    while time.process_time() < end:
        pass
    return x
"""


def test_a_reference_is_not_short_of_time_where_many_suites_ask(judge: Judge) -> None:
    """Ten times its time limit would be a candidate's budget for all calls together."""
    brief = Problem("p", "?", "f", reference_solution=_BUSY, time_limit_s=0.1)
    (found,) = judge.reference_values([(brief, [call(x) for x in range(18)])])
    assert [value.value for value in found] == [str(x).encode() for x in range(18)]


def test_a_reference_with_state_has_a_process_for_every_call(judge: Judge) -> None:
    counting = "n = 0\ndef f(x):\n    global n\n    n += 1\n    return n\n"
    assert reference_values(judge, counting, [call(x) for x in range(4)]) == [ReferenceValue(b"1")] * 4
    from_imports = "def f(x):\n    s.n = getattr(s, 'n', 0) + 1\n    return s.n\n"
    found = reference_values(judge, from_imports, [call(x) for x in range(4)], imports="import sys as s")
    assert found == [ReferenceValue(b"1")] * 4


def test_a_value_is_asked_for_once_and_then_remembered(judge: Judge, sandbox: RecordingSandbox) -> None:
    reference = "def f(x):\n    return x\n"
    asked = [(problem(reference), [call(1), call(2)]), (problem(reference), [call(2), call(3)])]
    first = judge.reference_values(asked)
    calls = [job.calls for job in sandbox.jobs if isinstance(job, CallsJob)]
    assert calls == [(call(1), call(2), call(3))] * 2
    assert {job.hash_seed for job in sandbox.jobs} == {0, 1}
    assert judge.reference_values(asked) == first
    assert len(sandbox.jobs) == 2


def test_the_values_are_bounded_by_bytes_and_forgetting_changes_none(local: LocalSandbox) -> None:
    """A mebibyte holds one of them only, whatever their number."""
    sandbox = RecordingSandbox(local)
    judge = Judge(sandbox, reference_cache_mb=1)
    for _ in range(2):
        found = reference_values(judge, "def f(x):\n    return str(x) * 600_000\n", [call(x) for x in range(3)])
        assert [value.value for value in found] == [b'"%s"' % (b"%d" % x * 600_000) for x in range(3)]
    asked = [job.calls for job in sandbox.jobs if isinstance(job, CallsJob)]
    assert asked == [(call(0), call(1), call(2))] * 2 + [(call(0), call(1))] * 2


@pytest.mark.parametrize(
    ("reference", "got"),
    [(None, "none"), ("def g(): pass", "NoEntryPoint"), ("1 / 0", "ZeroDivisionError"), ("f = (", "SyntaxError")],
)
def test_a_reference_that_cannot_serve_is_named(judge: Judge, reference: str | None, got: str) -> None:
    with pytest.raises(UnusableReference, match=f"'p' must .*got {got}"):
        judge.reference_values([(problem(reference), [call(1)])])


# Verdicts


_TROUBLES = """
def f(x):
    if x == 2:
        raise ValueError
    if x == 3:
        return [0] * 10**10
    if x == 4:
        while True:
            pass
    if x == 5:
        from ctypes import string_at
        string_at(1)
    return x
"""


def test_every_outcome_has_its_verdict(judge: Judge) -> None:
    assert verdicts(judge, _TROUBLES, [(0, 0), (1, 0), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6)]) == "pfeetcp"


@pytest.mark.parametrize(
    ("source", "letter"), [("def f(", "e"), ("", "e"), ("import os\nos._exit(0)", "c"), ("while 1: 1", "t")]
)
def test_a_program_that_does_not_load_fails_every_test(judge: Judge, source: str, letter: str) -> None:
    trials = [Trial(problem(), source, (expect(1, 1), expect(2, 2))), Trial(problem(), source, ())]
    results = judge.try_programs(trials)
    assert [result.executes for result in results] == [False, False]
    assert [verdict.value[0] for verdict in results[0].verdicts] == [letter] * 2


@pytest.mark.parametrize("forged", [b'{"f":3}', b'{"t":3}', b'{"o":"Thing"}', b"3.0"])
def test_what_has_no_length_has_not_the_right_one(judge: Judge, forged: bytes) -> None:
    source = f"import values\nvalues.encode = lambda value, room: {forged!r}\ndef f(x):\n    return x\n"
    expected = Expectation(call(1), b"3", look=f"len({RETURNED})")
    (result,) = judge.try_programs([Trial(problem(), source, (expected,))])
    assert result.verdicts == (Verdict.ERROR,)


def test_no_trials_are_no_results() -> None:
    assert Judge(BrokenSandbox()).try_programs([]) == []


def test_a_failing_sandbox_is_an_error_and_never_a_verdict() -> None:
    with pytest.raises(SandboxError, match="power cut"):
        Judge(BrokenSandbox()).try_programs([Trial(problem(), "def f(x): return x", (expect(1, 1),))])


def test_floats_may_differ_by_the_tolerance_and_without_one_by_nothing(local: LocalSandbox) -> None:
    trial = Trial(problem(), "def f(x):\n    return x + 0.2\n", (expect(0.1, 0.3),))
    assert Judge(local).try_programs([trial])[0].verdicts == (Verdict.FAIL,)
    assert Judge(local, tolerance=1e-9).try_programs([trial])[0].verdicts == (Verdict.PASS,)


def test_what_goes_to_a_candidate_holds_no_expected_value_and_no_reference(
    judge: Judge, sandbox: RecordingSandbox
) -> None:
    judge.reference_values([(problem("def f(x):\n    return 'right answer'  # the reference\n"), [call(1)])])
    references = len(sandbox.jobs)
    judge.try_programs([Trial(problem("# the reference"), "def f(x):\n    return 0\n", (expect(1, "right answer"),))])
    candidates = sandbox.jobs[references:]
    assert candidates
    for job in candidates:
        assert "right answer" not in repr(job)
        assert "the reference" not in repr(job)


def test_suites_on_one_stateless_program_share_a_process(judge: Judge, sandbox: RecordingSandbox) -> None:
    source = "def f(x):\n    return x\n"
    trials = [Trial(problem(), source, (expect(1, 1), expect(n, 2))) for n in (1, 2, 3)]
    letters = [[verdict.value[0] for verdict in result.verdicts] for result in judge.try_programs(trials)]
    assert letters == [["p", "f"], ["p", "p"], ["p", "f"]]
    (job,) = [job for job in sandbox.jobs if isinstance(job, CallsJob)]
    assert sorted(job.calls) == [call(1), call(2), call(3)]
    assert not job.is_shared


def test_one_suites_hanging_calls_take_nothing_from_another_suite(judge: Judge) -> None:
    source = "def f(x):\n    while x > 100:\n        pass\n    return x\n"
    hanging, quick = [(x, x) for x in range(101, 106)], [(x, x) for x in range(5)]
    trials = [
        Trial(problem(), source, tuple(expect(*pair) for pair in pairs)) for pairs in (hanging, quick, quick + hanging)
    ]
    letters = ["".join(v.value[0] for v in result.verdicts) for result in judge.try_programs(trials)]
    assert letters == ["ttttt", "ppppp", "pppppttttt"]
    assert letters == [verdicts(judge, source, pairs) for pairs in (hanging, quick, quick + hanging)]


_COUNTS = "n = 0\ndef f(x):\n    global n\n    n += 1\n    return x if n == 1 else None\n"


def test_what_runs_does_not_depend_on_what_is_right(judge: Judge, sandbox: RecordingSandbox) -> None:
    """The same jobs for every value that the tests could expect, also of programs that keep state."""
    for source in (_COUNTS, "import os\ndef f(x):\n    return x\n", "def f(x):\n    return x\n"):
        asked = []
        for right in ((1, 2, 3), (0, 0, 0), (1, 0, 3)):
            sandbox.jobs.clear()
            cold = Judge(sandbox, execution_cache_mb=0)
            verdicts(cold, source, list(zip((1, 2, 3), right, strict=True)))
            asked.append(list(sandbox.jobs))
        assert asked[0] == asked[1] == asked[2]


_POISON = "import math\ndef f(x):\n    if x == 0:\n        math.floor = None\n    return math.floor(x + 0.5)\n"
_REMEMBERS = "def f(x, seen=[]):\n    seen.append(x)\n    return sum(seen)\n"


@pytest.mark.parametrize(
    "source", [_COUNTS, _POISON, _REMEMBERS, _POISON.replace("import math", "import math as m; import math")]
)
def test_verdicts_do_not_depend_on_the_other_tests_or_their_order(judge: Judge, source: str) -> None:
    pairs = [(0, 0), (1, 1), (2, 2), (3, 4)]
    alone = {pair: verdicts(judge, source, [pair]) for pair in pairs}
    for order in itertools.permutations(pairs):
        assert verdicts(judge, source, order) == "".join(alone[pair] for pair in order)


_COMPANY = """
import sys
def f(x):
    frame = sys._getframe()
    while "job" not in frame.f_locals:
        frame = frame.f_back
    return len(frame.f_locals["job"]["sizes"]) > 1
"""


def test_no_program_has_two_guesses_at_a_test(judge: Judge) -> None:
    """It says True among other calls and False alone, so that one of the two is right: it earns one constant's due."""
    pairs = [(x, x % 2 == 0) for x in range(8)]
    constant = verdicts(judge, "def f(x):\n    return False\n", pairs)
    assert constant == "fpfpfpfp"
    assert verdicts(judge, _COMPANY, pairs) == constant


class GuessingSandbox:
    """Every call of a program is answered by the next toss of a coin: True or False."""

    version = "guessing"

    def __init__(self, tosses: Sequence[bool]) -> None:
        self._tosses = iter(tosses)

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        return [JobResult(tuple(self._answer() for _ in job.calls)) for job in jobs]  # type: ignore[union-attr]

    def _answer(self) -> Outcome:
        return Outcome(OutcomeKind.VALUE, json.dumps(next(self._tosses)).encode())

    def close(self) -> None:
        """Nothing to close."""


def test_guessing_by_chance_has_one_guess_at_each_test() -> None:
    """Two calls, True is right; of all tosses that there can be, 1 test passes on average."""
    source = "import os\ndef f(x):\n    return os.urandom(1) < b'\\x80'\n"
    trial = Trial(problem(), source, (expect(1, True), expect(2, True)))
    earned = []
    for tosses in itertools.product([True, False], repeat=2):
        (result,) = Judge(GuessingSandbox(tosses)).try_programs([trial])
        earned.append(result.verdicts.count(Verdict.PASS))
    assert sum(earned) / len(earned) == 1.0


def test_state_that_came_with_the_problems_imports_counts_as_well(judge: Judge) -> None:
    source = "def f(x):\n    random.seed(random.random() + x)\n    return random.random()\n"
    asked = [problem(imports="import random") for _ in range(3)]
    (first,), (second,), both = (
        judge.try_programs([Trial(asked[number], source, tuple(expect(n, 0) for n in numbers))])
        for number, numbers in enumerate(((1,), (2,), (1, 2)))
    )
    assert both[0].returned == first.returned + second.returned


# The problem's imports


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    return math.floor(x)\n",
        "from __future__ import annotations\ndef f(x: Undefined):\n    return math.floor(x)\n",
        "from __future__ import (\n    annotations,\n)\ndef f(x: Undefined):\n    return math.floor(x)\n",
        "from __future__ import annotations; import sys\ndef f(x: Undefined):\n    return math.floor(x)\n",
        '"""Docs."""\n# why\nfrom __future__ import annotations\ndef f(x: Undefined):\n    return math.floor(x)\n',
        "s = '''\nfrom __future__ import nothing\n'''\ndef f(x):\n    return math.floor(x) if len(s) == 32 else 0\n",
    ],
)
def test_the_problems_imports_come_first_but_after_future_imports(judge: Judge, source: str) -> None:
    assert verdicts(judge, source, [(1.5, 1)]) == "e"
    assert verdicts(judge, source, [(1.5, 1)], imports="import math") == "p"
    assert with_imports(problem(), source) == source


def test_the_expressions_of_a_suite_share_a_process_per_hash_seed(judge: Judge, sandbox: RecordingSandbox) -> None:
    suite = [read_case(TestCase(f"f({n} + {n})", "1"), "f") for n in range(3)]
    judge.evaluate([suite, suite[:1]])
    jobs = [job for job in sandbox.jobs if isinstance(job, ExpressionsJob)]
    assert [(len(job.expressions), job.hash_seed) for job in jobs] == [(3, 0), (3, 1), (1, 0), (1, 1)]
