"""Packages that a job asks for: they work, nothing from beside them comes along, and who does not ask has none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy
import pytest

import codea1_env
from codea1_env.errors import ConfigurationError, ProblemFormatError
from codea1_env.judging.judge import Expectation, Judge, Trial
from codea1_env.judging.scripts import script_job
from codea1_env.problems import Problem
from codea1_env.problems.kinds import program_job
from codea1_env.records.matches import read_match
from codea1_env.rewards.duel import Verdict
from codea1_env.sandbox import (
    CallsJob,
    ExpressionsJob,
    Job,
    JobResult,
    Limits,
    LocalSandbox,
    OutcomeKind,
)
from codea1_env.sandbox.frames import HEADER, pack_job, read_job
from codea1_env.sandbox.self_test import run_attacks
from codea1_env.sandbox.zygotes import Zygote, ZygoteKind

NUMPY = ("numpy",)
MODES = ((), *(pytest.param((layer,), marks=pytest.mark.slow) for layer in ("namespaces", "landlock")))


@pytest.fixture(scope="module", params=MODES, ids=["all_layers", "no_namespaces", "no_landlock"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[LocalSandbox]:
    with LocalSandbox(without=request.param) as shared:
        yield shared


def run(sandbox: LocalSandbox, body: str, packages: tuple[str, ...] = NUMPY, hash_seed: int = 0) -> JobResult:
    """One call of f(1), whose body begins with `import numpy as np` at the head of the program."""
    source = "import numpy as np\ndef f(x):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    (result,) = sandbox.run([CallsJob(source, "f", (b"[[1],[]]",), Limits(), hash_seed, packages)])
    return result


def value(sandbox: LocalSandbox, body: str, hash_seed: int = 0) -> object:
    result = run(sandbox, body, hash_seed=hash_seed)
    assert result.loaded, result.load_failure
    (outcome,) = result.outcomes
    assert outcome.kind is OutcomeKind.VALUE, outcome
    return json.loads(outcome.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can read what is another user's alone")
def test_a_root_that_cannot_be_made_leaves_programs_their_directory() -> None:
    """Root has no such right any more in a namespace, where the package cannot be mounted. Landlock does instead."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        package = Path(folder, "private", "bitarray")
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("value = 7\n")
        os.chmod(package.parent, 0o700)
        for place in (package.parent, package, package / "__init__.py"):
            os.chown(place, 1000, 1000)
        body = """
from codea1_env.sandbox import CallsJob, LocalSandbox
from codea1_env.sandbox.worlds import world_of
source = "import bitarray\\ndef f():\\n    open('a', 'w').close()\\n    return bitarray.value"
with LocalSandbox() as sandbox:
    print(sandbox.run([CallsJob(source, "f", (b"[[],[]]",), world=world_of(source))])[0].outcomes[0].value)
"""
        command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(package.parent)!r}){body}"]
        done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("b'7'\n", "")


def test_the_guard_of_a_zygote_does_not_keep_what_that_imported() -> None:
    zygote = Zygote(ZygoteKind(packages=("numpy",), has_rare_modules=True))
    try:
        guard = zygote._process.pid
        (own,) = map(int, Path(f"/proc/{guard}/task/{guard}/children").read_text().split())
        pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in (guard, own)]
    finally:
        zygote.close()
    assert 2 * pages[0] < pages[1]


# It works


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return np.arange(5).sum()", 10),
        ("return np.linalg.norm([3, 4])", 5.0),
        ("a = np.ones((300, 300)); return (a @ a).trace()", 90000.0),  # large enough for BLAS to want threads
        ("return np.fft.ifft(np.fft.fft([1, 2, 4])).real.round(6).tolist()", [1.0, 2.0, 4.0]),
        ("return np.random.default_rng(7).integers(100, size=3).tolist()", [94, 62, 68]),
        ("return np.polynomial.Polynomial([1, 2])(3)", 7.0),
        ("return np.ma.array([1, 2], mask=[0, 1]).sum()", 1),
        # not imported before the program runs: read from the package's directory
        ("import numpy.testing; numpy.testing.assert_array_equal([1], [1]); return 'equal'", "equal"),
        ("import numpy.ctypeslib; return numpy.ctypeslib.__name__", "numpy.ctypeslib"),
    ],
)
def test_numpy_and_its_submodules_work(sandbox: LocalSandbox, body: str, expected: object) -> None:
    assert value(sandbox, body) == expected


def test_whole_programs_and_scripts_can_ask_for_a_package_too(sandbox: LocalSandbox) -> None:
    program = "import numpy\nprint(numpy.array(eval(input())).max())"
    test = "import numpy as np\nassert np.allclose(f(1), 1)"
    printed, checked = sandbox.run(
        [
            replace(program_job(program, ("[1, 3, 2]",), Limits()), packages=NUMPY),
            script_job("def f(x): return x + 1e-12", test, Limits(), NUMPY),
        ]
    )
    assert json.loads(printed.outcomes[0].value) == "3\n"
    assert checked.outcomes[0].kind is OutcomeKind.VALUE


def test_the_random_state_is_seeded_by_the_hash_seed_and_is_each_process_own(sandbox: LocalSandbox) -> None:
    draws = [value(sandbox, "return np.random.randint(1 << 30, size=3).tolist()", seed) for seed in (0, 0, 1, 1)]
    assert draws[0] == draws[1] == numpy.random.RandomState(0).randint(1 << 30, size=3).tolist()
    assert draws[2] == draws[3] != draws[0]


def test_a_package_is_not_charged_to_the_memory_of_a_program(sandbox: LocalSandbox) -> None:
    limits = Limits(memory_mb=64)
    small = "import numpy as np\ndef f(x):\n    return np.zeros(x << 17).sum()\n"
    (result,) = sandbox.run([CallsJob(small, "f", (b"[[8],[]]", b"[[80],[]]"), limits, packages=NUMPY)])
    fits, does_not = result.outcomes  # 8 and 80 MiB
    assert fits.value == b"0.0"
    assert (does_not.kind, does_not.error) in (
        (OutcomeKind.MEMORY, ""),
        (OutcomeKind.ERROR, "_ArrayMemoryError"),
        (OutcomeKind.ERROR, "MemoryError"),
    )


# Values


def test_scalars_come_back_as_pythons_own_values(sandbox: LocalSandbox) -> None:
    body = (
        "return [np.int64(-3), np.uint8(200), np.longlong(2), np.bool_(True), np.float32(0.1), np.float16(0.5),\n"
        "        np.float64('inf'), np.complex64(1j), np.str_('a'), np.uint64(2**64 - 1), {np.int8(1): np.float64(2)}]"
    )
    assert value(sandbox, body) == [
        -3, 200, 2, True, 0.10000000149011612, 0.5, {"f": "inf"}, {"c": [0.0, 1.0]}, "a", {"i": hex(2**64 - 1)},
        {"d": [[1, 2.0]]},
    ]  # fmt: skip


@pytest.mark.parametrize(
    "expression",
    [
        "np.ma.masked",
        "np.ma.array([1])",
        "np.longdouble(1)",
        "np.clongdouble(1)",
        "np.datetime64(1, 'ns')",
        "np.timedelta64(1, 'ns')",
        "np.array([(1, 2.0)], dtype='i4,f8')[0]",
    ],
)
def test_what_has_no_exact_value_equals_nothing(sandbox: LocalSandbox, expression: str) -> None:
    found = value(sandbox, f"return [{expression}]")
    assert isinstance(found, list)
    assert list(found[0]) == ["o"]


@pytest.mark.parametrize(
    ("expression", "shape", "items"),
    [
        ("np.array([1, 2])", [2], [1, 2]),
        ("np.array(5)", [], [5]),
        ("np.matrix([[1]])", [1, 1], [1]),
        ("np.array(['2020-01-02'], 'M8')", [1], [{"k": ["date", 2020, 1, 2]}]),
    ],
)
def test_an_array_is_its_shape_and_items(
    sandbox: LocalSandbox, expression: str, shape: list[int], items: list[object]
) -> None:
    found = value(sandbox, f"return [{expression}]")
    assert isinstance(found, list)
    assert found[0]["k"][2:] == [shape, items]


def test_a_judge_takes_a_scalar_for_its_value_and_no_array_for_a_list() -> None:
    problem = Problem("p", "q", "f", reference_solution="def f(x): return x", packages=NUMPY)
    sources = ("import numpy as np\ndef f(x): return np.int64(x)", "import numpy as np\ndef f(x): return np.array(x)")
    with LocalSandbox() as sandbox:
        judge = Judge(sandbox)
        asked = [b"[[5],[]]", b"[[[5]],[]]", b"[[[5,6]],[]]"]
        (values,) = judge.reference_values([(problem, asked)])
        expected = tuple(Expectation(call, found.value) for call, found in zip(asked, values, strict=True))
        scalar, array = judge.try_programs([Trial(problem, source, expected) for source in sources])
        # The truth of `np.array([5]) == [5]` is that of its one item; of several items there is none.
        assert scalar.verdicts == array.verdicts == (Verdict.PASS, Verdict.PASS, Verdict.FAIL)


# Nothing else comes along


def test_who_does_not_ask_cannot_import_it(sandbox: LocalSandbox) -> None:
    run(sandbox, "return 1")  # a process with numpy in it is at hand
    result = run(sandbox, "return 1", packages=())
    assert result.load_failure is not None
    assert result.load_failure.error == "ModuleNotFoundError"


@pytest.mark.parametrize("name", ["codea1_env", "pytest", "gymnasium", "pip"])
def test_what_is_installed_beside_a_package_cannot_be_imported(sandbox: LocalSandbox, name: str) -> None:
    body = (
        "import os, sys\n"
        "sys.path.append(os.path.dirname(os.path.dirname(np.__file__)))\n"
        f"try:\n    import {name}\n"
        "except ImportError as error:\n    return 'ImportError'\n"
        f"return str({name})"
    )
    assert value(sandbox, body) == "ImportError"


def test_files_beside_a_package_cannot_be_read_and_its_own_not_be_changed(sandbox: LocalSandbox) -> None:
    secret = Path(codea1_env.__file__).parent / "problems" / "bundled.jsonl"
    beside = next(Path(numpy.__file__).parents[1].glob("numpy-*.dist-info")) / "METADATA"
    for path in (secret, beside):
        assert path.read_bytes()
        body = f"try:\n    return open({str(path)!r}, 'rb').read(10)\nexcept OSError:\n    return 'no'"
        assert value(sandbox, body) == "no"
    body = "try:\n    open(np.__file__, 'a')\nexcept OSError:\n    return 'no'"
    assert value(sandbox, body) == "no"


_ELSEWHERE = """
import sys
from codea1_env.sandbox import CallsJob, LocalSandbox, zygotes
shared = {shared!r}
directories = zygotes.python_directories()
zygotes.python_directories = lambda: [*directories, shared]
source = '''
import numpy, os
def f(x):
    beside = os.path.join(os.path.dirname(os.path.dirname(numpy.__file__)), "beside", "__init__.py")
    try:
        open(beside).close()
    except OSError:
        from numpy.testing import assert_equal
        return numpy.__file__
'''
with LocalSandbox(without={without!r}) as sandbox:
    root = sandbox.guarantees["root"]
    (result,) = sandbox.run([CallsJob(source, "f", (b"[[1],[]]",), packages=("numpy",))])
    print(root, result.outcomes[0].value.decode())
"""


@pytest.mark.parametrize("without", MODES[:2], ids=["namespaces", "no_namespaces"])
def test_a_package_below_a_directory_that_is_hidden_is_all_that_shows_there(tmp_path: Path, without: object) -> None:
    """A system's own Python has its packages inside a directory that programs may read; this one lies in /tmp, too."""
    packages = tmp_path / "python3" / "dist-packages"
    for directory in Path(numpy.__file__).parent, Path(numpy.__file__).parents[1] / "numpy.libs":
        if directory.is_dir():
            left_out = shutil.ignore_patterns("tests", "__pycache__", "*.pyi", "*.a")
            shutil.copytree(directory, packages / directory.name, ignore=left_out)
    (packages / "beside").mkdir()
    (packages / "beside" / "__init__.py").write_text("")
    script = _ELSEWHERE.format(shared=str(tmp_path), without=without)
    paths = f"{packages}:{Path(codea1_env.__file__).parents[1]}"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], env={"PYTHONPATH": paths}, capture_output=True, text=True
    )
    root = "needs namespaces" if without else "True"
    if "True" not in done.stdout and not without:
        pytest.skip("this machine permits no namespaces")
    assert done.stdout == f'{root} "{packages}/numpy/__init__.py"\n', done.stderr


class _Equipped:
    """A sandbox whose every call is made with numpy at hand."""

    def __init__(self, sandbox: LocalSandbox) -> None:
        self._sandbox, self.version = sandbox, sandbox.version

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        return self._sandbox.run([replace(job, packages=NUMPY) if isinstance(job, CallsJob) else job for job in jobs])

    def close(self) -> None:
        self._sandbox.close()


@pytest.mark.parametrize("without", MODES[:2], ids=["namespaces", "no_namespaces"])
def test_no_attack_succeeds_where_numpy_is_at_hand(without: tuple[str, ...]) -> None:
    with LocalSandbox(without=without) as sandbox:
        results = run_attacks(_Equipped(sandbox))
    assert len(results) == 11
    assert [(each.name, each.detail) for each in results if each.succeeded] == []


# Configuration


_WITHOUT_NUMPY = """
import sys
sys.path = [path for path in sys.path if "site-packages" not in path]
from codea1_env.errors import SandboxError
from codea1_env.sandbox.local import LocalSandbox
from codea1_env.sandbox.protocol import CallsJob
with LocalSandbox() as sandbox:
    for packages in ("numpy",), ():
        try:
            (result,) = sandbox.run([CallsJob("def f(): return 1", "f", (b"[[],[]]",), packages=packages)])
            print(result.outcomes[0].kind)
        except SandboxError as error:
            print(error)
"""


def test_a_missing_package_is_the_sandboxs_failure_not_the_programs(tmp_path: Path) -> None:
    """The sandbox alone, without the rest of the package, which needs numpy itself."""
    package = tmp_path / "codea1_env"
    origin = Path(codea1_env.__file__).parent
    left_out = shutil.ignore_patterns("__pycache__")
    shutil.copytree(origin / "sandbox", package / "sandbox", ignore=left_out)
    for name in ("checks.py", "class_paths.py", "closing.py", "errors.py", "extras.py"):
        shutil.copy(origin / name, package)
    done = subprocess.run(
        [sys.executable, "-P", "-S", "-c", _WITHOUT_NUMPY],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert len(done.stdout.splitlines()) == 2, done.stderr
    refused, plain = done.stdout.splitlines()
    assert "numpy must be installed" in refused
    assert "pip install numpy" in refused
    assert plain == "value", done.stderr


def test_an_unknown_package_is_refused_before_anything_runs() -> None:
    job = CallsJob("def f(): return 1", "f", (b"[[],[]]",), packages=("os",))
    with LocalSandbox() as sandbox, pytest.raises(ConfigurationError, match=r"must be among numpy, .*, got 'os'"):
        sandbox.run([job])


@pytest.mark.parametrize("packages", [["torch"], ["numpy", "numpy"], "numpy", [1], [["numpy"]], None])
def test_a_problem_names_known_packages_once(packages: object) -> None:
    record = {"problem_id": "p", "question": "q", "entry_point": "f", "packages": packages}
    with pytest.raises(ProblemFormatError, match="packages must"):
        Problem.from_json(json.dumps(record))


def test_a_problem_without_packages_has_the_same_text_and_hash_as_before_there_were_any() -> None:
    plain = Problem("p", "q", "f")
    asking = Problem("p", "q", "f", packages=NUMPY)
    assert "packages" not in plain.to_json()
    assert Problem.from_json(asking.to_json()) == asking
    assert plain.content_hash != asking.content_hash


def test_a_recorded_line_may_ask_for_packages() -> None:
    line = {"problem_id": "p", "question": "q", "entry_point": "f", "reference_solution": "", "codes": [], "suites": []}
    assert read_match(json.dumps({**line, "packages": ["numpy"]}).encode()).problem.packages == NUMPY
    assert read_match(json.dumps(line).encode()).problem.packages == ()


@pytest.mark.parametrize(
    "job",
    [
        CallsJob("", "f", (), packages=NUMPY),
        program_job("", ("a",), Limits(), reports=True),
        script_job("", "", Limits(), NUMPY),
        CallsJob("", "f", ()),
        ExpressionsJob(("1",)),
    ],
)
def test_packages_reach_a_container_with_their_job(job: CallsJob) -> None:
    frame = pack_job(job)
    _, head, _ = HEADER.unpack_from(frame)
    assert read_job(frame[HEADER.size : HEADER.size + head], frame[HEADER.size + head :]) == job


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\ndef f(x): return np.random.rand()",
        "from numpy.random import rand\ndef f(x): return rand()",
        "def f(x):\n    import numpy.random\n    return numpy.random.rand()",
        "import numpy as np\ntable = np.zeros(3)\ndef f(x):\n    table[0] += x\n    return float(table[0])",
        "import numpy as np\nkept = []\ndef f(x):\n    kept.append(np.sum(x))\n    return len(kept)",
        "import numpy as np\ndef f(x):\n    old = np.geterr()['over']\n    np.seterr(over='raise')\n    return old",
    ],
)
def test_a_program_that_keeps_something_by_numpy_gets_nothing_from_it(sandbox: LocalSandbox, source: str) -> None:
    calls = tuple(b"[[%d],[]]" % x for x in (1, 2, 3))
    (together,) = sandbox.run([CallsJob(source, "f", calls, packages=NUMPY)])
    alone = [sandbox.run([CallsJob(source, "f", (call,), packages=NUMPY)])[0].outcomes[0] for call in calls]
    assert [*together.outcomes] == alone
    assert all(outcome.value for outcome in alone)


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\ndef f(x): return np.sum(x)",
        "from numpy import *\ndef f(x): return sum(x)",
        "import numpy as np\ntable = np.arange(9)\ndef f(x): return int(table[x] / np.float64(0))",
    ],
)
def test_a_program_that_keeps_nothing_by_numpy_has_no_process_for_each_call(
    sandbox: LocalSandbox, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    start = Zygote.start
    monkeypatch.setattr(Zygote, "start", lambda *given: started.append(start(*given)))
    sandbox.run([CallsJob(source, "f", tuple(b"[[%d],[]]" % x for x in range(9)), packages=NUMPY)])
    assert 1 <= len(started) <= 2
