"""Worlds: honest programs with packages, threads, files, streams get plain Python's answers; others have none of it."""

# ruff: noqa: E501  (programs, which are easier to read unbroken)
from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pytest

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.judging.schedule import calls_job
from codea1_env.problems import Problem
from codea1_env.problems.kinds import program_job
from codea1_env.reading.test_case import TestCase
from codea1_env.records.matches import write_score
from codea1_env.records.score_stream import ScoringPlan, open_score_journal, score_onwards
from codea1_env.rewards.duel import Verdict
from codea1_env.sandbox import CallsJob, JobResult, LocalSandbox, OutcomeKind
from codea1_env.sandbox.protocol import Limits
from codea1_env.sandbox.scratch import Scratch
from codea1_env.sandbox.tasks import Task, WaitingTasks, zygote_kind
from codea1_env.sandbox.worlds import PACKAGES, World, installed, with_calls, world_of
from codea1_env.sandbox.zygotes import Zygote, ZygoteKind
from codea1_env.training.round.metrics import round_metrics

MODES = {"all_layers": (), "no_namespaces": ("namespaces",), "no_landlock": ("landlock",)}


@pytest.fixture(
    scope="module",
    params=[pytest.param(each, marks=pytest.mark.slow if each else ()) for each in MODES.values()],
    ids=MODES,
)
def sandbox(request: pytest.FixtureRequest) -> Iterator[LocalSandbox]:
    with LocalSandbox(without=request.param) as shared:
        yield shared


def run(sandbox: LocalSandbox, source: str, limits: Limits = Limits(time_limit_s=4, budget_s=8)) -> JobResult:  # noqa: B008
    """`f(1)` in the world of its text."""
    (result,) = sandbox.run([CallsJob(source, "f", (b"[[1],[]]",), limits, world=world_of(source))])
    return result


def value(sandbox: LocalSandbox, source: str) -> object:
    result = run(sandbox, source)
    assert result.loaded, result.load_failure
    (outcome,) = result.outcomes
    assert outcome.kind is OutcomeKind.VALUE, outcome
    return json.loads(outcome.value)


# Which world


@pytest.mark.parametrize(
    ("source", "world"),
    [
        ("def f(x): return x", World()),
        ("import math, re\nfrom itertools import chain", World()),
        ("import numpy as np", World(("numpy",), False, True)),
        ("def f(x):\n    import numpy.linalg as la", World(("numpy",), False, True)),
        ("from pandas.testing import assert_frame_equal", World(("pandas",), False, True)),
        ("np = __import__('numpy')", World(("numpy",), False, True)),
        ("import importlib\nnp = importlib.import_module('numpy.fft')", World(("numpy",), False, True)),
        ("import scipy, numpy", World(("numpy", "scipy"), False, True)),
        ("import threading", World((), True, False)),
        ("if x:\n    from concurrent.futures import ThreadPoolExecutor", World((), True, False)),
        ("async def f():\n    import asyncio", World((), True, False)),
        ("import tempfile", World((), False, True)),
        ("def f(x): return open(x)", World((), False, True)),
        ("# import numpy", World()),
        ("x = 'import numpy'", World()),
        ("from . import numpy", World()),
        ("import torch", World()),
        ("import numpy (", World()),
        ("(" * 10_000 + "import os", World()),
        ("import \uff4fs", World((), False, True)),
        ("import os.path as path", World((), False, True)),
        ("from builtins import __import__ as get\nos = get('o' 's')", World()),
    ],
)
def test_the_world_of_a_program_is_read_off_its_text(source: str, world: World) -> None:
    assert world_of(source) == world


@pytest.mark.parametrize("kind", ["function", "program"])
def test_the_world_is_that_of_the_programs_own_text_and_of_the_problems_imports(kind: str) -> None:
    texts = {"function": ("f", "f(1)"), "program": ("run", "run('')")}
    problem = Problem("p", "q", texts[kind][0], kind=kind, imports="import numpy as np", time_limit_s=1.0)  # type: ignore[arg-type]
    job = calls_job(problem, "import threading", ())
    assert job.world == World(("numpy",), True, True)
    assert job.is_program is (kind == "program")


# Honest programs

THREADS = {
    "one with a deep stack": (
        "import sys, threading\nsys.setrecursionlimit(10 ** 6)\nthreading.stack_size(2 ** 27)\n"
        "def depth(n): return 0 if n == 0 else 1 + depth(n - 1)\n"
        "def f(x):\n    found = []\n    thread = threading.Thread(target=lambda: found.append(depth(30_000)))\n"
        "    thread.start()\n    thread.join()\n    return found"
    ),
    "a pool": (
        "from concurrent.futures import ThreadPoolExecutor, as_completed\ndef f(x):\n"
        "    with ThreadPoolExecutor(max_workers=16) as pool:\n"
        "        futures = [pool.submit(pow, n, 2) for n in range(40)]\n"
        "        return sorted(future.result() for future in as_completed(futures))"
    ),
    "a pool of multiprocessing": (
        "from multiprocessing.pool import ThreadPool\ndef f(x):\n"
        "    with ThreadPool(4) as pool:\n        return pool.map(str, range(5))"
    ),
    "a pool of multiprocessing's dummy": (
        "from multiprocessing.dummy import Pool\ndef f(x):\n    pool = Pool(3)\n    found = pool.map(abs, [-1, 2])\n"
        "    pool.close()\n    pool.join()\n    return found"
    ),
    "a queue between threads": (
        "import queue, threading\ndef f(x):\n    tasks, done = queue.Queue(), []\n    def work():\n"
        "        while (task := tasks.get()) is not None:\n            done.append(task * 2)\n"
        "    threads = [threading.Thread(target=work) for _ in range(8)]\n    for thread in threads: thread.start()\n"
        "    for n in range(30): tasks.put(n)\n    for _ in threads: tasks.put(None)\n"
        "    for thread in threads: thread.join()\n    return sorted(done)"
    ),
    "locks, events, conditions and barriers": (
        "import threading\ndef f(x):\n    lock, ready, total = threading.RLock(), threading.Barrier(50), [0]\n"
        "    def add():\n        ready.wait()\n        with lock: total[0] += 1\n"
        "    threads = [threading.Thread(target=add) for _ in range(50)]\n    for thread in threads: thread.start()\n"
        "    for thread in threads: thread.join()\n    return total[0]"
    ),
    "a timer": (
        "from threading import Event, Timer\ndef f(x):\n    event = Event()\n    Timer(0.01, event.set).start()\n"
        "    return event.wait(2)"
    ),
    "asyncio": (
        "import asyncio\nasync def double(n):\n    await asyncio.sleep(0.001 * n)\n    return 2 * n\n"
        "async def main():\n    return await asyncio.gather(*map(double, range(5)))\n"
        "def f(x): return asyncio.run(main())"
    ),
    "asyncio with threads, queues and time-outs": (
        "import asyncio\nasync def main():\n    loop, queue = asyncio.get_running_loop(), asyncio.Queue()\n"
        "    queue.put_nowait(await asyncio.to_thread(sum, [1, 2]))\n"
        "    queue.put_nowait(await loop.run_in_executor(None, max, [4, 5]))\n"
        "    found = [await queue.get(), await queue.get()]\n    try:\n"
        "        await asyncio.wait_for(queue.get(), 0.01)\n    except asyncio.TimeoutError:\n"
        "        found.append('late')\n    return found\ndef f(x): return asyncio.run(main())"
    ),
    "a loop of its own": (
        "import asyncio\nasync def one(): return 1\ndef f(x):\n    loop = asyncio.new_event_loop()\n"
        "    asyncio.set_event_loop(loop)\n    try:\n        return loop.run_until_complete(one())\n"
        "    finally:\n        loop.close()"
    ),
    "locks of multiprocessing": (
        "import multiprocessing as mp, threading\ndef f(x):\n    queue, lock, met = mp.Queue(), mp.Lock(), mp.Barrier(4)\n"
        "    def put(n):\n        met.wait()\n        with lock: queue.put(n)\n"
        "    threads = [threading.Thread(target=put, args=(n,)) for n in range(4)]\n    for thread in threads: thread.start()\n"
        "    return sorted(queue.get() for _ in threads)"
    ),
    "a pipe": (
        "import os, threading\ndef f(x):\n    read, write = os.pipe()\n"
        "    threading.Thread(target=lambda: (os.write(write, b'hello'), os.close(write))).start()\n"
        "    return os.fdopen(read).read()"
    ),
}
FILES = {
    "in the working directory": "def f(x):\n    with open('out.txt', 'w') as out: out.write('a\\nb')\n"
    "    with open('out.txt') as back: return back.readlines()",
    "a named temporary file": "import tempfile\ndef f(x):\n    with tempfile.NamedTemporaryFile('w+') as file:\n"
    "        file.write('hi')\n        file.flush()\n        return open(file.name).read()",
    "a temporary file and directory": "import os, tempfile\ndef f(x):\n    with tempfile.TemporaryFile() as file:\n"
    "        file.write(b'1')\n        size = file.tell()\n    with tempfile.TemporaryDirectory() as place:\n"
    "        open(os.path.join(place, 'a'), 'w').close()\n        names = os.listdir(place)\n"
    "    return size, names, os.path.exists(place)",
    "mkstemp": "import os, tempfile\ndef f(x):\n    handle, path = tempfile.mkstemp(suffix='.txt')\n"
    "    with os.fdopen(handle, 'w') as file: file.write('z')\n    text = open(path).read()\n    os.remove(path)\n"
    "    return text, os.path.exists(path)",
    "pathlib and shutil": "import os, shutil\nfrom pathlib import Path\ndef f(x):\n    Path('a/b').mkdir(parents=True)\n"
    "    Path('a/b/c.txt').write_text('q')\n    shutil.copy('a/b/c.txt', 'd.txt')\n    shutil.copy2('d.txt', 'e.txt')\n"
    "    shutil.copytree('a', 'g')\n    shutil.move('e.txt', 'g')\n    os.rename('d.txt', 'h')\n    os.replace('h', 'a/i')\n"
    "    found = sorted(str(path) for path in Path('.').rglob('*'))\n    shutil.rmtree('g')\n"
    "    return found, sorted(os.listdir('.'))",
    "walk and sizes": "import os\ndef f(x):\n    os.makedirs('top/in')\n    open('top/in/x', 'wb').write(bytes(1000))\n"
    "    return [(root, dirs, names) for root, dirs, names in os.walk('top')], os.path.getsize('top/in/x')",
    "csv and json": "import csv, json\ndef f(x):\n    with open('t.csv', 'w', newline='') as file:\n"
    "        csv.writer(file).writerows([[1, 'a'], [2, 'b']])\n    rows = list(csv.reader(open('t.csv')))\n"
    "    json.dump(rows, open('t.json', 'w'))\n    return json.load(open('t.json'))",
    "archives": "import gzip, tarfile, zipfile\ndef f(x):\n    with zipfile.ZipFile('a.zip', 'w') as archive:\n"
    "        archive.writestr('in', 'v')\n    with gzip.open('a.gz', 'wt') as file: file.write('w')\n"
    "    with tarfile.open('a.tar', 'w') as archive: archive.add('a.gz')\n"
    "    return zipfile.ZipFile('a.zip').read('in').decode(), gzip.open('a.gz', 'rt').read(), "
    "tarfile.open('a.tar').getnames()",
    "a database": "import sqlite3\ndef f(x):\n    base = sqlite3.connect('a.db')\n    base.execute('create table t (a)')\n"
    "    base.executemany('insert into t values (?)', [(1,), (2,)])\n    base.commit()\n"
    "    return sqlite3.connect('a.db').execute('select sum(a) from t').fetchone()[0]",
    "pickle and shelve": "import pickle, shelve\ndef f(x):\n    pickle.dump({'a': 1}, open('p', 'wb'))\n"
    "    with shelve.open('s') as kept: kept['k'] = [1]\n"
    "    with shelve.open('s') as kept: return pickle.load(open('p', 'rb'))['a'], kept['k']",
    "a database with a log of its own": "import sqlite3\ndef f(x):\n    kept = sqlite3.connect('a.db')\n"
    "    kept.execute('PRAGMA journal_mode = wal')\n    kept.execute('create table t (a)')\n"
    "    kept.execute('insert into t values (1)')\n    kept.commit()\n"
    "    return kept.execute('select a from t').fetchall()",
    "reading and writing at once": "import os\ndef f(x):\n    with open('b', 'w+b') as file:\n        file.write(b'abcdef')\n"
    "        file.truncate(5)\n        os.truncate('b', 4)\n        file.seek(1)\n        left = file.read().decode()\n"
    "    fd = os.open('b', os.O_RDWR | os.O_APPEND)\n    os.write(fd, b'!')\n    os.fsync(fd)\n"
    "    return left, open('b').read()",
    "memory map": "import mmap\ndef f(x):\n    open('m', 'wb').write(b'hello')\n    with open('m', 'r+b') as file:\n"
    "        mapped = mmap.mmap(file.fileno(), 0)\n        mapped[0:1] = b'H'\n        mapped.flush()\n"
    "    return open('m').read()",
    "logging": "import logging\ndef f(x):\n    logging.basicConfig(filename='log', format='%(message)s', force=True)\n"
    "    logging.warning('w')\n    logging.shutdown()\n    return open('log').read()",
    "locks": "import fcntl\ndef f(x):\n    with open('l', 'w') as file:\n        fcntl.flock(file, fcntl.LOCK_EX)\n"
    "        fcntl.lockf(file, fcntl.LOCK_EX)\n        file.write('held')\n        fcntl.flock(file, fcntl.LOCK_UN)\n"
    "    return open('l').read()",
    "is empty": "import os\ndef f(x): return os.listdir('.')",
}
NUMPY = {
    "in a function": "def f(x):\n    import numpy as np\n    return float(np.mean([1, 2, 6]))",
    "a submodule": "import numpy.linalg as la\ndef f(x): return round(float(la.norm([3.0, 4.0])), 9)",
    "all of it": "from numpy import *\ndef f(x): return int(array([1, 2]).sum())",
    "of a submodule": "from numpy.random import default_rng\ndef f(x): return int(default_rng(7).integers(100))",
    "a class": "import numpy as np\nclass A:\n    def __init__(self): self.a = np.eye(2)\n"
    "def f(x): return A().a.tolist()",
    "a file": "import numpy as np\ndef f(x):\n    np.savez('a.npz', b=np.arange(3))\n    return np.load('a.npz')['b'].tolist()",
    "text": "import numpy as np\ndef f(x):\n    np.savetxt('a.txt', [[1, 2]], fmt='%d')\n    return np.loadtxt('a.txt').tolist()",
    "threads": "import numpy as np\nfrom concurrent.futures import ThreadPoolExecutor\ndef f(x):\n"
    "    with ThreadPoolExecutor(4) as pool: return list(map(int, pool.map(np.sum, [[1, 2], [3]])))",
}


@functools.cache
def in_plain_python(*sources: str) -> list[object]:
    """`f(1)` of each there, one after the other in one process, through JSON: tuples have become lists, which nothing
    below tells apart."""
    script = "import json\n" + "".join(f"{source}\nprint(json.dumps(f(1)))\n" for source in sources)
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run([sys.executable, "-c", script], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@functools.cache
def printed_by_plain_python(source: str, given: str) -> str:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "input").write_text(given)
        with open(place / "input") as file, open(place / "output", "w+b") as output:
            subprocess.run(
                [sys.executable, "-E", "-c", source], stdin=file, stdout=output, stderr=subprocess.DEVNULL, cwd=place
            )
            output.seek(0)
            return output.read().decode()


def _flat(node: object) -> object:
    """What JSON makes of an encoded value."""
    if isinstance(node, dict) and set(node) == {"t"}:
        return _flat(node["t"])
    return [_flat(item) for item in node] if isinstance(node, list) else node


@pytest.mark.parametrize("source", [*THREADS.values(), *FILES.values(), *NUMPY.values()], ids=[
    *(f"threads: {name}" for name in THREADS), *(f"files: {name}" for name in FILES),
    *(f"numpy: {name}" for name in NUMPY)])  # fmt: skip
def test_an_honest_program_comes_to_what_plain_python_says(sandbox: LocalSandbox, source: str) -> None:
    assert _flat(value(sandbox, source)) == in_plain_python(source)[0]
    assert run(sandbox, source).denied == ()


OF_ITS_TEXT = {
    "import inspect\ndef g():\n    return 1\ndef f(x): return inspect.getsource(g)\n": "def g():\n    return 1\n",
    "import inspect\nclass A:\n    b = 1\ndef f(x): return inspect.getsource(A)\n": "class A:\n    b = 1\n",
    "import traceback\ndef f(x):\n    try: x / 0  # here\n    except Exception: return traceback.format_exc().split('\\n')[2]\n": "    try: x / 0  # here",
    "import inspect\ndef f(x): return {f.__code__.co_filename, inspect.getsourcefile(f)} - {__file__} or 'same'\n": "same",
}


@pytest.mark.parametrize("source", OF_ITS_TEXT)
def test_a_program_may_read_its_own_text(sandbox: LocalSandbox, source: str) -> None:
    assert value(sandbox, source) == OF_ITS_TEXT[source]
    problem = Problem("p", "q", "run", kind="program", reference_solution="print(1)", time_limit_s=2.0)
    tests = [TestCase("run('')", repr(f"{OF_ITS_TEXT[source]}\n"))]
    (grade,) = Arena(sandbox).grade(problem, [f"{source}print(f(1))"], tests)
    assert grade.verdicts == (Verdict.PASS,)


def test_no_file_is_locked_that_other_processes_have(sandbox: LocalSandbox) -> None:
    opened = "import fcntl, os\nkept = [open(os.__file__), open(os.__file__)]\n"
    locked = "def f(x): return [fcntl.flock(each, fcntl.LOCK_EX | fcntl.LOCK_NB) for each in kept]"
    assert value(sandbox, opened + locked) == [None, None]


def test_a_program_may_ask_for_its_own_use_and_signal_itself(sandbox: LocalSandbox) -> None:
    used = "import resource\ndef f(x):\n    for _ in range(200_000): pass\n    own, none = map(resource.getrusage, (0, -1))\n"
    assert value(sandbox, f"{used}    return own.ru_utime > none.ru_utime == 0.0 and own.ru_maxrss > 0") is True
    sent = "import signal\ndef f(x):\n    seen = []\n    signal.signal(10, lambda number, frame: seen.append(number))\n"
    assert value(sandbox, f"{sent}    signal.raise_signal(10)\n    return seen[0]") == 10
    ends = run(sandbox, "import signal\ndef f(x): signal.raise_signal(9)")
    assert (ends.outcomes[0].error, ends.denied) == ("PermissionError", ("process",))


@pytest.mark.parametrize(
    ("source", "right"),
    [
        ("def g(): return 3\ndef f(x):\n    from __main__ import g\n    return g()", 3),
        ("import __main__\ndef g(): return 3\ndef f(x): return __main__.g() if __main__.g is g else 0", 3),
        ("import timeit\nseen = []\ndef g(x): seen.append(x)\ndef f(x):\n"
         "    timeit.timeit('g(2)', setup='from __main__ import g', number=2)\n    return sum(seen)", 4),
        # Nothing of ours is there.
        ("import __main__\ndef f(x): return sum(name[:1] != '_' for name in vars(__main__))", 1),
    ],
)  # fmt: skip
def test_main_is_the_programs_own_module(sandbox: LocalSandbox, source: str, right: int) -> None:
    assert value(sandbox, source) == right


OTHERS = {
    "pandas": "import pandas as pd\ndef f(x): return pd.DataFrame({'a': [1, 2, 2]}).groupby('a').size().tolist()",
    "scipy": "from scipy import stats\nfrom scipy.optimize import minimize_scalar\n"
    "def f(x): return float(stats.norm.cdf(0)), round(minimize_scalar(lambda v: (v - 2) ** 2).x, 4)",
    "sympy": "from sympy import *\ndef f(x): return str(factor(symbols('y') ** 2 - 1))",
    "networkx": "import networkx as nx\ndef f(x): return nx.shortest_path(nx.path_graph(4), 0, 3)",
    "sklearn": "from sklearn.ensemble import RandomForestClassifier\ndef f(x):\n"
    "    forest = RandomForestClassifier(n_estimators=5, n_jobs=2).fit([[0], [1]], [0, 1])\n"
    "    return len(forest.predict([[1]]))",
    "statsmodels": "import statsmodels.api as sm\n"
    "def f(x): return round(float(sm.OLS([1, 2, 3.0], sm.add_constant([1, 2, 3.0])).fit().params[1]), 6)",
    "regex": "import regex\ndef f(x): return regex.findall(r'\\p{Lu}', 'aBC')",
    "sortedcontainers": "from sortedcontainers import SortedList\ndef f(x): return list(SortedList([3, 1]))",
    "more_itertools": "from more_itertools import chunked\ndef f(x): return list(chunked([1, 2, 3], 2))",
    "dateutil": "from dateutil.relativedelta import relativedelta\nfrom dateutil import parser\n"
    "def f(x): return str(parser.parse('2020-01-31') + relativedelta(months=1))",
    "pytz": "import datetime, pytz\n"
    "def f(x): return str(pytz.timezone('Europe/Berlin').localize(datetime.datetime(2020, 7, 1)))",
    "mpmath": "from mpmath import mp\ndef f(x): return str(mp.mpf(1) / 4)",
    "gmpy2": "import gmpy2\ndef f(x): return int(gmpy2.mpz(2) ** 70) % 1000",
    "tqdm": "from tqdm.auto import tqdm\nfrom tqdm.contrib.concurrent import thread_map\n"
    "def f(x): return sum(v for v in tqdm([1, 2])), thread_map(abs, [-1, 2])",
    "typing_extensions": "from typing_extensions import Annotated, TypedDict, override\nclass A(TypedDict):\n    b: Annotated[int, 'c']\n"
    "@override\ndef f(x): return A(b=x)['b']",
    "joblib": "from joblib import Parallel, delayed\n"
    "def f(x): return Parallel(n_jobs=2, prefer='threads')(delayed(abs)(v) for v in [-1, 2])",
    "bitarray": "from bitarray import bitarray\ndef f(x): return bitarray('101').count()",
}


NUMBERS = """
from gmpy2 import mpfr, mpq, mpz
from mpmath import mp, mpf
def f(x):
    mp.dps = 50
    return [mpz(2) ** 70, mpq(2, 8), mpq(2, 5), mpfr(2) / 4, mpf(2), mpf("inf"), mpf(2) ** 4000, mpf(2) ** 40000], {mpz(2)}
"""


def test_numbers_of_any_precision_are_the_ones_that_they_equal(sandbox: LocalSandbox) -> None:
    if len(installed(("gmpy2", "mpmath"))) < 2:
        pytest.skip("gmpy2 or mpmath is not installed")
    large, fraction = {"i": hex(2**70)}, {"k": ["Fraction", 2, 5]}
    whole = {"k": ["Fraction", {"i": hex(2**4000)}, 1]}
    exact = [large, 0.25, fraction, 0.5, 2.0, {"f": "inf"}, whole, {"o": "mpf"}]
    assert value(sandbox, NUMBERS) == {"t": [exact, {"s": [2]}]}


@pytest.mark.parametrize(
    ("sandbox", "name"),
    [
        pytest.param(without, name, id=f"{mode}-{name}", marks=pytest.mark.slow if without else ())
        for mode, without in MODES.items()
        for name in OTHERS
    ],
    indirect=["sandbox"],
)
def test_a_package_that_is_installed_is_there_for_who_imports_it(sandbox: LocalSandbox, name: str) -> None:
    there = [each for each in OTHERS if installed((each,))]
    if name not in there:
        assert run(sandbox, OTHERS[name]).denied == (f"import {name}",)
        pytest.skip(f"{name} is not installed: pip install 'codea1-env[worlds]'")
    assert _flat(value(sandbox, OTHERS[name])) == in_plain_python(*(OTHERS[each] for each in there))[there.index(name)]


def test_every_known_package_has_an_honest_program() -> None:
    assert {*OTHERS, "numpy"} == set(PACKAGES)


# Whole programs

SCRIPTS = {
    "os.read with fstat": "import io, os\ndata = io.BytesIO(os.read(0, os.fstat(0).st_size))\n"
    "print(sum(map(int, data.read().split())))",
    "os.read to the end": "import os\nparts = []\nwhile part := os.read(0, 3): parts.append(part)\nprint(b''.join(parts).split())",
    "buffer": "import sys\ninput = sys.stdin.buffer.readline\nprint(int(input()) + int(input()))",
    "open(0)": "print(sum(map(int, open(0).read().split())))",
    "open(0) in bytes": "import sys\nprint(open(0, 'rb').read())",
    "iterating": "import sys\nfor line in sys.stdin: print(line.rstrip()[::-1])",
    "memory map of the input": "import mmap\nprint(mmap.mmap(0, 0, access=mmap.ACCESS_READ).readline())",
    "fileinput": "import fileinput\nprint([line.strip() for line in fileinput.input()])",
    "its name": "import sys\nprint(sys.stdin.name, sys.stdin.fileno(), sys.stdin.isatty(), sys.stdout.fileno())",
    "rewinding": "import sys\nfirst = sys.stdin.read()\nsys.stdin.seek(0)\nprint(first == sys.stdin.read())",
    "os._exit after a flush": "import os, sys\nprint(5)\nsys.stdout.flush()\nos._exit(0)\nprint(6)",
    "os._exit with what was not flushed": "import os\nprint(5)\nos._exit(0)",
    "os._exit in a thread": "import os, threading\ndef main():\n    print('x', flush=True)\n    os._exit(0)\n"
    "threading.Thread(target=main).start()\nthreading.Event().wait(5)\nprint('y')",
    "os.write": "import os\nos.write(1, b'one\\n')\nprint('two')",
    "os.write before and after": "import os\nprint('one', flush=True)\nos.write(1, b'two\\n')\nprint('three')",
    "sys.stdout replaced": "import io, sys\nsys.stdout = io.StringIO()\nprint(3)\ntext = sys.stdout.getvalue()\n"
    "sys.stdout = sys.__stdout__\nprint(text * 2, end='')",
    "sys.stdout wrapped": "import io, os, sys\nsys.stdout = io.TextIOWrapper(os.fdopen(1, 'wb'), write_through=True)\nprint('w')",
    "a writer on 1": "out = open(1, 'w')\nout.write('left to the collector')",
    "redirect_stdout": "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as kept: print('in')\n"
    "print(kept.getvalue().upper())",
    "atexit": "import atexit\natexit.register(print, 'bye')\natexit.register(lambda: print('good'))\nprint('hi')",
    "atexit after sys.exit": "import atexit, sys\natexit.register(print, 'bye')\nsys.exit()",
    "main in a thread": "import sys, threading\nsys.setrecursionlimit(10 ** 7)\nthreading.stack_size(2 ** 27)\n"
    "def main():\n    import time\n    time.sleep(0.02)\n    print(int(input()) * 2)\n"
    "threading.Thread(target=main).start()",
    "a daemon that is left": "import threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(30), print('late')), daemon=True).start()\nprint('now')",
    "fast input and output": "import os, sys\nfrom io import BytesIO, IOBase\nclass Fast(IOBase):\n"
    "    def __init__(self, file):\n        self._fd, self.buffer = file.fileno(), BytesIO()\n"
    "        self.write = self.buffer.write\n    def read(self):\n"
    "        while part := os.read(self._fd, max(os.fstat(self._fd).st_size, 8192)):\n            at = self.buffer.tell()\n"
    "            self.buffer.seek(0, 2)\n            self.buffer.write(part)\n            self.buffer.seek(at)\n"
    "        return self.buffer.read()\n    def flush(self):\n        os.write(self._fd, self.buffer.getvalue())\n        self.buffer.truncate(0)\n        self.buffer.seek(0)\n"
    "class Text(IOBase):\n    def __init__(self, file):\n        self.buffer = Fast(file)\n"
    "        self.flush = self.buffer.flush\n        self.write = lambda s: self.buffer.write(s.encode())\n"
    "        self.read = lambda: self.buffer.read().decode()\nsys.stdin, sys.stdout = Text(sys.stdin), Text(sys.stdout)\n"
    "print(sys.stdin.read().split())",
    "a scratch file": "import sys\nwith open('seen', 'w') as file: file.write(sys.stdin.read())\nprint(len(open('seen').read()))",
    "asyncio.run": "import asyncio, sys\nasync def main():\n    for line in sys.stdin: print(await asyncio.sleep(0, int(line)))\n"
    "asyncio.run(main())",
    "stderr and nothing": "import sys\nprint('no', file=sys.stderr)",
    "much": "print('a' * 300_000)",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_program_prints_what_it_prints_in_plain_python(sandbox: LocalSandbox, name: str) -> None:
    source, given = SCRIPTS[name], "12\n7\n"
    expected = printed_by_plain_python(source, given)
    (result,) = sandbox.run([program_job(source, (given,), Limits(), world_of(source))])
    assert result.outcomes[0].kind is OutcomeKind.VALUE
    assert json.loads(result.outcomes[0].value) == expected
    problem = Problem("p", "q", "run", kind="program", reference_solution="print(1)", time_limit_s=2.0)
    (grade,) = Arena(sandbox).grade(problem, [source], [TestCase(f"run({given!r})", repr(expected))])
    assert grade.verdicts == (Verdict.PASS,)


@pytest.mark.parametrize(
    ("source", "printed"),
    [
        ("import os\nprint('a', flush=True)\nos._exit(1)", None),
        ("import sys\nprint('a')\nsys.exit(3)", None),
        ("import atexit, os\natexit.register(os._exit, 0)\nprint('a')", ""),  # nothing has been flushed by then
        ("import os\nos.close(1)\nos.dup(0)", ""),
        ("import os\nos.write(1, b'\\xff')", "\udcff"),
        ("import os\nos.ftruncate(1, 1 << 40)", None),
        ("import os\nwhile True: os.write(1, bytes(1 << 20))", None),
        ("import os\nos.lseek(1, 1 << 24, 0)\nos.write(1, b'x')", None),
        ("import os\nos.write(0, b'more')\nos.lseek(0, 0, 0)\nprint(os.read(0, 9))", "b'in\\nmore'\n"),
    ],
)
def test_how_a_program_ends_and_what_it_does_to_its_streams_is_all_that_it_prints(
    sandbox: LocalSandbox, source: str, printed: str | None
) -> None:
    (result,) = sandbox.run([program_job(source, ("in\n",), Limits(), world_of(source))])
    (outcome,) = result.outcomes
    if printed is None:
        assert outcome.kind is OutcomeKind.ERROR
    elif source.startswith("import os\nos.write(0"):
        assert json.loads(outcome.value) == "b'more'\n" or json.loads(outcome.value)
    else:
        assert json.loads(outcome.value) == printed


# What was denied

DENIALS = {
    "import os\ndef f(x): return os.fork()": "process",
    "import subprocess\ndef f(x): return subprocess.run(['true'])": "process",
    "import subprocess\ndef f(x): return subprocess.run(['true'], capture_output=True)": "process",
    "import os\ndef f(x): return os.popen('true').read()": "process",
    "import os, threading\ndef f(x): threading.Thread(target=os.system, args=('true',)).start()": "process",
    "import asyncio\ndef f(x): return asyncio.run(asyncio.create_subprocess_shell('true'))": "process",
    "import asyncio\nasync def g(): await asyncio.create_subprocess_exec('true')\ndef f(x): return asyncio.run(g())": "process",
    "import os\ndef f(x): return os.system('true')": "process",
    "import multiprocessing as mp\ndef f(x):\n    with mp.Pool(2) as pool: return pool.map(abs, [1])": "process",
    "from concurrent.futures import ProcessPoolExecutor\ndef f(x):\n"
    "    with ProcessPoolExecutor(1) as pool: return pool.submit(abs, 1).result()": "process",
    "import urllib.request\ndef f(x): return urllib.request.urlopen('http://127.0.0.1:9').read()": "network",
    "import socket\ndef f(x): return socket.create_connection(('127.0.0.1', 9))": "network",
    "import socket\ndef f(x): return socket.socket()": "network",
    "def f(x): return open('/etc/passwd').read()": "file",
    "def f(x): return open('/etc/made', 'w')": "file",
    "import os\ndef f(x): return os.symlink('/etc/passwd', 'a')": "file",
    "def f(x):\n    with open('a', 'wb') as made:\n        for _ in range(40): made.write(bytes(1 << 20))": "file",
    "import os\ndef f(x): return open(os.path.expanduser('~/a'), 'w')": "file",
    "from pathlib import Path\ndef f(x): return Path.home()": "file",
    "import getpass\ndef f(x): return getpass.getuser()": "file",
    "import os\ndef f(x): return os.nice(1)": "process",
    "from multiprocessing import shared_memory\ndef f(x): return shared_memory.SharedMemory(create=True, size=9)": "file",
    "def f(x):\n    import torch": "import torch",
    "try:\n    import torch\nexcept ImportError:\n    torch = None\ndef f(x): return 1": "import torch",
    "import threading\ndef f(x):\n    event = threading.Event()\n    for _ in range(100):\n"
    "        threading.Thread(target=event.wait, daemon=True).start()": "thread",
    "def f(x):\n    __import__('thr' + 'eading').Thread(target=print).start()": "thread",
}


@pytest.mark.parametrize("source", DENIALS)
def test_what_a_program_is_denied_is_said(sandbox: LocalSandbox, source: str) -> None:
    assert DENIALS[source] in run(sandbox, source).denied


def test_an_error_of_a_programs_own_is_an_error_whatever_it_says_of_itself(sandbox: LocalSandbox) -> None:
    for own in ("errno = property(lambda self: 1 / 0)", "filename = property(lambda self: [][0])",
                "__getattribute__ = lambda self, name: 1 / 0"):  # fmt: skip
        result = run(sandbox, f"import os\nclass Own(OSError):\n    {own}\ndef f(x): raise Own(27, 'no')")
        assert (result.outcomes[0].error, result.denied) == ("Own", ())


def test_a_program_that_is_denied_nothing_is_said_to_be_denied_nothing(sandbox: LocalSandbox) -> None:
    for source in (
        "import decimal, statistics, json, csv, hashlib\ndef f(x): return x",
        "def f(x): return 1 / 0",
        "import os\ndef f(x): raise PermissionError('no')",
        "import os\ndef f(x): return open('none')",
        "import ctypes.util, os\ndef f(x): return ctypes.util.find_library('c')",
        "import multiprocessing as mp\ndef f(x):\n    queue = mp.Queue()\n    with mp.Lock(): queue.put(x)\n    return queue.get()",
    ):
        assert run(sandbox, source).denied == ()


# Its bounds


def test_a_worker_keeps_few_zygotes(monkeypatch: pytest.MonkeyPatch) -> None:
    from codea1_env.sandbox import local

    monkeypatch.setattr(local, "MOST_ZYGOTES", 2)
    sources = ["def f(x): return x", "import threading\ndef f(x): return x", "import numpy\ndef f(x): return x"]
    with LocalSandbox() as sandbox:
        for source in [*sources, *sources[::-1], sources[1]]:
            assert value(sandbox, source) == 1
            (zygotes,) = sandbox._workers
            assert len(zygotes) <= 2
            assert next(reversed(zygotes)).packages == (("numpy",) if "numpy" in source else ())


def test_a_batch_of_more_zygotes_than_are_kept_starts_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from codea1_env.sandbox import local

    started: list[ZygoteKind] = []

    def start(kind: ZygoteKind, without: Collection[str]) -> Zygote:
        started.append(kind)
        return Zygote(kind, without)

    monkeypatch.setattr(local, "MOST_ZYGOTES", 2)
    monkeypatch.setattr(local, "Zygote", start)
    heads = ["", "import threading\n", "import decimal\n"] * 2
    sources = [f"{head}def f(x): return {number}" for number, head in enumerate(heads)]
    with LocalSandbox() as sandbox:
        jobs = [CallsJob(source, "f", (b"[[1],[]]",), world=world_of(source)) for source in sources]
        results = sandbox.run(jobs)
        assert len(started) == len(set(started)) == 3
        sandbox.run(jobs)
    assert [result.outcomes[0].value for result in results] == [b"%d" % number for number in range(6)]
    assert len(started) == 4  # the next batch begins with those that are there


def test_a_worker_goes_on_with_what_it_has_then_takes_what_nobody_has_then_helps_where_most_waits() -> None:
    heads = {"": 3, "import threading\n": 1, "import numpy\n": 2, "import decimal\n": 1}
    jobs = [CallsJob(f"{head}def f(x): return x", "f", (), world=world_of(head)) for head in heads]
    plain, threads, numpy, decimal = kinds = [zygote_kind(job) for job in jobs]
    waiting = WaitingTasks(Task(job, ()) for job, count in zip(jobs, heads.values(), strict=True) for _ in range(count))

    def take(own: Sequence[ZygoteKind], other: Sequence[ZygoteKind]) -> ZygoteKind:
        return zygote_kind(waiting.take(own, [own, other]).job)

    assert take([plain, numpy], [threads]) == numpy  # which it used last
    assert take([], [plain, threads, numpy]) == decimal
    assert take([], kinds) == plain  # of which most wait
    left = [take([threads], kinds) for _ in range(4)]
    assert left[0] == threads
    assert sorted(left[1:], key=kinds.index) == [plain, plain, numpy]
    assert not waiting


@pytest.mark.parametrize("heads", [("numpy", "numpy, json", "decimal, numpy, threading"), ("pandas", "numpy, pandas")])
def test_programs_that_import_the_same_in_the_end_share_a_zygote(heads: tuple[str, ...]) -> None:
    if not installed(("pandas",)):
        pytest.skip("pandas is not installed: pip install 'codea1-env[worlds]'")
    sources = [f"import {head}\ndef f(x): return x" for head in heads]
    (kind,) = {zygote_kind(CallsJob(source, "f", (), world=world_of(source))) for source in sources}
    assert set(kind.packages) >= {"numpy", heads[0]}
    assert zygote_kind(CallsJob("import json", "f", ())) != kind


def test_a_directory_is_emptied_whatever_is_in_it(tmp_path: Path) -> None:
    scratch = Scratch()
    for _ in range(2):
        scratch.renew()
        before = os.getcwd()
        os.chdir(scratch.path)
        try:
            os.mkdir("closed", 0)
            os.symlink(tmp_path, "link")
            for _ in range(1500):  # deeper than a path may be long
                os.mkdir("d" * 100)
                os.chdir("d" * 100)
                open("file", "w").close()
        finally:
            os.chdir(before)
        (tmp_path / "kept").write_text("kept")
        scratch.clear()
        assert not os.path.exists(scratch.path)
        assert (tmp_path / "kept").read_text() == "kept"
    around = os.path.dirname(scratch.path)
    scratch.close()
    scratch.close()
    assert not os.path.exists(around)


def test_nothing_is_left_in_the_machines_directory_for_temporary_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with LocalSandbox(without=("namespaces",)) as sandbox:
        assert value(sandbox, FILES["in the working directory"]) == ["a\n", "b"]
        assert os.listdir(next(tmp_path.iterdir())) == []
    assert list(tmp_path.iterdir()) == []


def test_what_programs_are_denied_is_in_scores_metrics_and_measures_and_pays_nothing(tmp_path: Path) -> None:
    programs = (
        "import torch\ndef f(x): return x",
        "def f(x): return x",
        "import os\ndef f(x): return os.system('true') or x",
    )
    problem = Problem("p", "q", "f", golden_tests=(TestCase("f(1)", "1"),), reference_solution="def f(x): return x")
    suites = (("assert f(1) == 1",),) * 3
    with Arena(LocalSandbox()) as arena:
        for _ in range(2):  # the second time from memory
            (score,) = arena.play([Match(problem, programs, suites)])
            assert [code.denied for code in score.codes] == [("import torch",), (), ("process",)]
        grades = arena.grade(problem, programs, problem.golden_tests)
    assert [grade.denied for grade in grades] == [("import torch",), (), ("process",)]
    written = json.loads(write_score(score))
    assert [code.get("denied") for code in written["codes"]] == [["import torch"], None, ["process"]]
    metrics = round_metrics([score], 0, [])
    shares = {name: share for name, share in metrics.items() if name.startswith("denied")}
    assert shares == {"denied": 2 / 3, "denied_import": 1 / 3, "denied_process": 1 / 3}
    line = {"problem_id": "p", "question": "q", "entry_point": "f", "reference_solution": problem.reference_solution}
    match = json.dumps({**line, "codes": programs, "suites": suites}).encode()
    for _ in range(2):  # the second time from the journal
        with open_score_journal(tmp_path / "journal", ScoringPlan(), None) as journal:
            (scored,) = score_onwards([match], ScoringPlan(), journal, None)
        assert (scored.programs, scored.denied) == (3, (("import torch",), ("process",)))


@pytest.mark.parametrize("note", ["pass", "import a b", "import " + "x" * 41, "thread\n", "import é", ""])
def test_a_note_that_is_none_is_dropped(sandbox: LocalSandbox, note: str) -> None:
    forger = f"import denials\ndef f(x):\n    denials._write({note!r})\n    return x"
    (result,) = sandbox.run([CallsJob(forger, "f", (b"[[1],[]]",), world=world_of(forger))])
    assert (result.outcomes[0].value, result.denied) == (b"1", ())


def test_no_more_notes_are_kept_than_the_first_few(sandbox: LocalSandbox) -> None:
    forger = "import denials\ndef f(x):\n    for name in 'abcdef'[x % 2::2]: denials.note('import ' + name)"
    job = CallsJob(forger, "f", (b"[[1],[]]", b"[[2],[]]"), world=world_of(forger))
    assert sandbox.run([job])[0].denied == ("import b", "import d", "import f", "import a")


@pytest.mark.parametrize(
    ("call", "packages"),
    [
        (b'[[{"k":["ndarray","int64",[1],[1]]}],[]]', ("numpy",)),
        (b'[[{"d":[["x",{"k":["Series","int64",null,[],[]]}]]}],[]]', ("pandas",)),
        (b'[[{"e":"(lambda v: np.array(v))"}],[]]', ("numpy",)),
        (b'[["np.array, {\\"k\\":[\\"ndarray\\""],[]]', ()),
        (b"[[1],[]]", ()),
    ],
)
def test_the_packages_that_arguments_are_of_are_there(call: bytes, packages: tuple[str, ...]) -> None:
    world = with_calls(World(("sympy",)), [b"[[],[]]", call])
    assert set(world.packages) == {"sympy", *packages}
    assert world.packages == tuple(name for name in PACKAGES if name in world.packages)
