"""Tests that write the files they ask about, that ask what a call prints, or what an object is that a function
returned: what they become, and what is left out."""

from __future__ import annotations

import pytest

from codea1_env import read_suite
from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.problems.problem import Problem
from codea1_env.reading.literals import Tree, encode
from codea1_env.reading.wide.questions import idle
from codea1_env.rewards.code_a1 import OracleMode, RewardConfig
from codea1_env.sandbox import Sandbox

WRITTEN = "f(scratch_file({'t0': None, 't0/a': '1 2'}, 't0/a'))"


def read(code: str) -> list[str]:
    return [test.reason or test.call for test in read_suite(code, "f", fidelity="wide").tests]


@pytest.mark.parametrize(
    "body",
    [
        "def test(tmp_path):\n    p = tmp_path / 'a'\n    p.write_text('1 2')\n    assert f(p) == 3\n",
        "def test(tmp_path):\n    p = tmp_path.joinpath('a')\n    with open(p, 'w') as out:\n        out.write('1 2')\n"
        "    assert f(p) == 3\n",
        "@pytest.fixture\ndef here(tmp_path):\n    (tmp_path / 'a').write_text('1 2')\n    return tmp_path\n"
        "def test(here):\n    assert f(here / 'a') == 3\n",
        "def test(tmp_path):\n    p = tmp_path / 'a'\n    p.write_text('no')\n    p.write_text('1 2')\n"
        "    assert f(p) == 3\n",
    ],
)
def test_a_path_is_that_of_a_file_with_what_was_written(body: str) -> None:
    assert read(body) == [WRITTEN]


HERE = "f(scratch_file({'a': '1 2'}, '.') and 'a')"


@pytest.mark.parametrize(
    "body",
    [
        "def test():\n    with open('a', 'w') as out:\n        out.write('1 2')\n    assert f('a') == 3\n",
        "def test():\n    open('a', 'w').write('1 2')\n    assert f('a') == 3\n",
        "def test():\n    out = open('a', 'w')\n    out.write('1 2')\n    out.close()\n    assert f('a') == 3\n",
        "def test():\n    Path('a').write_text('1 2')\n    assert f('a') == 3\n",
        "def make():\n    for name in ['a']:\n        with open(name, 'w') as out:\n            out.write('1 2')\n"
        "class T:\n    def setUp(self):\n        make()\n"
        "    def test_a(self):\n        assert f('a') == 3\n    def test_b(self):\n        assert f('a') == 3\n",
    ],
)
def test_files_of_the_directory_that_the_program_works_in(body: str) -> None:
    assert {*read(body)} == {HERE}


def test_paths_below_that_directory() -> None:
    code = """
class TestF(unittest.TestCase):
    def setUp(self):
        self.root = os.path.join(os.getcwd(), 'data')
        if not os.path.exists(self.root):
            os.makedirs(self.root)
        for i in range(2):
            open(f"{self.root}/{i}.txt", 'a').close()

    def test_texts(self):
        self.assertEqual(f(self.root + '/0.txt', 5), os.path.join(self.root, '1.txt'))

    def test_path(self):
        self.assertEqual(f(Path('data') / '1.txt'), 3)
"""
    files = "{'data': None, 'data/0.txt': '', 'data/1.txt': ''}"
    assert read(code) == [
        f"f(scratch_file({files}, '.') and './data/0.txt', 5)",
        f"f(scratch_file({files}, 'data/1.txt'))",
    ]


@pytest.mark.parametrize(
    "path",
    ["'/data/a'", "'../a'", "unknown", "'~/a'"],
)
def test_files_elsewhere_are_not_made(path: str) -> None:
    code = f"def test():\n    with open({path}, 'w') as out:\n        out.write('1 2')\n    assert f('a') == 3\n"
    assert read(code) == ["f('a')"]


def test_what_is_done_with_files_that_are_there_is_not_read_but_for_their_removal() -> None:
    code = "def test():\n    if os.path.exists('a'):\n        {}\n    assert f('b') == 3\n"
    removed, asserted = (
        read_suite(code.format(done), "f", fidelity="wide") for done in ("os.remove('a')", "assert f('a') == 4")
    )
    assert [test.call for test in removed.tests] == [test.call for test in asserted.tests] == ["f('b')"]
    assert (removed.ignored, asserted.ignored) == (0, 1)


def test_a_call_whose_files_are_not_plain_to_see_is_read_without_them() -> None:
    code = "def test():\n    open('a', 'w').write(unknown())\n    assert f('b') == 3\n"
    assert read(code) == ["f('b')"]


def test_a_helper_of_a_test_class_makes_a_file() -> None:
    code = """
class TestF(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.root = Path(tempfile.mkdtemp(), 'in')

    def make(self, name, content):
        path = os.path.join(self.temporary.name, name)
        with open(path, 'w') as out:
            out.write(content)
        return path

    def test_it(self):
        path = self.make('a', '1 2')
        self.assertEqual(f(path, f"{self.temporary.name}/b"), 3)
        self.assertEqual(f(self.root), 4)
"""
    files = "{'t1': None, 't2': None, 't1/a': '1 2'}"
    assert read(code) == [
        f"f(scratch_file({files}, '.') and 't1/a', 't1/b')",
        f"f(scratch_file({files}, 't2/in'))",
    ]


def test_files_of_tempfile() -> None:
    code = """
class TestF(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        with open(os.path.join(self.root, 'a'), 'w') as out:
            out.write('1')
            out.write('2')

    def test_it(self):
        self.assertEqual(f(self.root), 3)

    def test_named(self):
        with tempfile.NamedTemporaryFile('w', suffix='.txt', delete=False) as out:
            json.dump([1], out)
        self.assertEqual(f(out.name), 3)
"""
    assert read(code) == [
        "f(scratch_file({'t1': None, 't1/a': '1' + '2'}, '.') and 't1')",
        "f(scratch_file({'t2': None, 't2/a': '1' + '2', 't3.txt': json.dumps([1])}, '.') and 't3.txt')",
    ]


@pytest.mark.parametrize(
    "writing",
    [
        "csv.writer(out).writerow(unknown)",
        "rows = csv.writer(out)\n        rows.writerow(unknown)",
        "print('1', file=out)",
        "out.write(unknown)",
        "out.write(f(2))",
    ],
)
def test_a_file_that_is_not_plain_to_see_is_not_read(writing: str) -> None:
    code = f"def test(tmp_path):\n    p = tmp_path / 'a'\n    with open(p, 'w') as out:\n        {writing}\n"
    code += "    assert f(p) == 3\n"
    assert not {WRITTEN, "f(scratch_file({'t0': None, 't0/a': ''}, 't0/a'))"} & {*read(code)}
    assert all(reason.islower() and "(" not in reason for reason in read(code))


def test_what_is_printed_before_and_after_an_assert() -> None:
    asked = "    f({0})\n    assert {1} == '1'\n"
    capsys = "".join(asked.format(n, "capsys.readouterr().out") for n in (1, 2))
    kept = "".join(asked.format(n, "b.getvalue()") for n in (1, 2))
    found = read(f"def test(capsys):\n{capsys}@patch('sys.stdout', new_callable=StringIO)\ndef test_b(b):\n{kept}")
    calls = ["lambda: f(1)", "lambda: f(2)", "lambda: f(1)", "lambda: f(1), lambda: f(2)"]
    assert found == [f"(printed({each}) == '1')" for each in calls]


def test_what_one_test_writes_is_not_there_in_another() -> None:
    code = "def test_{0}(tmp_path):\n    (tmp_path / '{0}').write_text('1')\n    assert f(tmp_path) == 1\n"
    assert read(code.format("a") + code.format("b")) == [
        f"f(scratch_file({{'t0': None, 't0/{name}': '1'}}, 't0'))" for name in "ab"
    ]


@pytest.mark.parametrize(
    ("body", "calls"),
    [
        ("def test(capsys):\n    f(1)\n    assert capsys.readouterr().out == '1'\n", ["f(1)"]),
        ("def test(capsys):\n    f(1)\n    f(2)\n    said = capsys.readouterr()\n    assert said.out == '1'\n",
         ["f(1)", "f(2)"]),
        ("def test(capsys):\n    f(1)\n    capsys.readouterr()\n    f(2)\n    assert capsys.readouterr().out == '1'\n",
         ["f(2)"]),
        ("def test(capsys):\n    f(1)\n    out, _ = capsys.readouterr()\n    f(2)\n    assert out == '1'\n", ["f(1)"]),
        ("def test():\n    b = io.StringIO()\n    with redirect_stdout(b):\n        f(1)\n"
         "    assert b.getvalue() == '1'\n",
         ["f(1)"]),
        ("def test():\n    with patch('sys.stdout', new_callable=StringIO) as b:\n        f(1)\n"
         "    assert b.getvalue() == '1'\n",
         ["f(1)"]),
        ("def test():\n    b = io.StringIO()\n    with contextlib.redirect_stdout(b):\n        f(1)\n"
         "        assert b.getvalue() == '1'\n",
         ["f(1)"]),
        ("def test():\n    old = sys.stdout\n    sys.stdout = b = io.StringIO()\n    f(1)\n"
         "    sys.stdout = old\n    f(2)\n    assert b.getvalue() == '1'\n",
         ["f(1)"]),
        ("@patch('sys.stdout', new_callable=StringIO)\ndef test(b):\n    f(1)\n    f(2)\n"
         "    said = b.getvalue()\n    assert said == '1'\n",
         ["f(1)", "f(2)"]),
        ("def said(n):\n    with contextlib.redirect_stdout(io.StringIO()) as b:\n        f(n)\n"
         "    return b.getvalue()\ndef test():\n    assert said(1) == '1'\n",
         ["f(1)"]),
        ("@patch('builtins.input')\n@patch('sys.stdout', new_callable=StringIO)\ndef test(b, c):\n    f(1)\n"
         "    assert b.getvalue() == '1'\n", None),
        ("def test():\n    sys.stdout = unknown\n    f(1)\n    assert unknown.getvalue() == '1'\n", None),
        ("def test(capsys):\n    if x:\n        f(1)\n    assert capsys.readouterr().out == '1'\n", None),
        ("def test(capsys):\n    f(f(1))\n    assert capsys.readouterr().out == '1'\n", None),
    ],
)  # fmt: skip
def test_what_calls_print_is_a_question(body: str, calls: list[str] | None) -> None:
    printed = ", ".join(f"lambda: {call}" for call in calls or ())
    found = [test for test in read(body) if "printed" in test]
    assert found == ([f"(printed({printed}) == '1')"] if calls else [])


LEFT = "def test(tmp_path):\n    out = tmp_path / 'o'\n    f(1, out)\n"
ASKED = "lambda: f(1, scratch_file({'t0': None}, 't0/o')), lambda: 't0/o'"
TEXT = f"written('text', {ASKED})"


@pytest.mark.parametrize(
    ("asking", "claim"),
    [
        ("assert out.exists()", f"bool(written('exists', {ASKED}))"),
        ("assert os.path.isfile(out)", f"bool(written('isfile', {ASKED}))"),
        ("assert (tmp_path / 'o').is_dir()", f"bool(written('isdir', {ASKED}))"),
        ("assert os.path.getsize(str(out)) > 0", f"(written('size', {ASKED}) > 0)"),
        ("assert sorted(os.listdir(out)) == []", f"(sorted(written('names', {ASKED})) == [])"),
        ("assert out.read_text() == '1'", f"({TEXT} == '1')"),
        ("assert open(out).read() == '1'", f"({TEXT} == '1')"),
        ("with open(out) as file:\n        said = file.read()\n    assert said == '1'", f"({TEXT} == '1')"),
        ("with out.open('r') as file:\n        assert file.readlines() == ['1']",
         f"bool({TEXT}.splitlines(True) == ['1'])"),
        ("with open(out) as file:\n        assert json.load(file) == [1]", f"bool(json.loads({TEXT}) == [1])"),
        ("with open(out) as file:\n        rows = list(csv.reader(file))\n    assert rows == [['1']]",
         f"bool(list(csv.reader({TEXT}.splitlines(True))) == [['1']])"),
        ("with open(out) as file:\n        for line in file:\n            assert line > '1'",
         f"bool(all((line > '1' for line in {TEXT}.splitlines(True))))"),
        ("with open(out, 'rb') as file:\n        assert file.read() == b'1'", "not_entry_point"),
        ("assert open(unknown).read() == '1'", "not_entry_point"),
    ],
)  # fmt: skip
def test_what_a_call_leaves_in_files_is_a_question(asking: str, claim: str) -> None:
    found = read(LEFT + f"    {asking}\n")
    assert found == [claim] or (claim == "not_entry_point" and all("(" not in each for each in found))


def test_a_path_that_came_back_and_calls_one_after_another() -> None:
    code = "def test():\n    path = f(1)\n    assert os.path.exists(path)\n"
    code += "    g = f(2)\n    assert open(g[0]).read() == '2'\n"
    assert read(code) == [
        "bool(written('exists', lambda: f(1)))",
        "(written('text', lambda: f(1), lambda: f(2)[0]) == '2')",
    ]
    code = "def test():\n    Path('a').write_text('0')\n    f('a')\n    f('a')\n    assert open('a').read() == '00'\n"
    first, again = "f(scratch_file({'a': '0'}, '.') and 'a')", "f(scratch_file({}, '.') and 'a')"
    assert read(code) == [f"(written('text', lambda: {first}, lambda: {again}, lambda: 'a') == '00')"]


@pytest.mark.parametrize(
    "writing",
    ["image.save('a.png')", "base = sqlite3.connect('a.png')", "with gzip.open('a.png', 'wt') as out:\n        pass",
     "for name in names:\n        open(name, 'w').close()"],
)  # fmt: skip
def test_what_asks_for_a_file_that_is_written_in_another_way_is_not_read(writing: str) -> None:
    assert read(f"def test():\n    {writing}\n    assert f('a.png') == 3\n    assert f(3) == 3\n") == [
        "forbidden_name", "f(3)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("writing", "content"),
    [
        ("csv.writer(out, delimiter=';')\n        rows.writerow([1, 'a'])\n        rows.writerows([[2, 'b']])",
         "csv_rows([[1, 'a']], None, delimiter=';') + csv_rows([[2, 'b']], None, delimiter=';')"),
        ("csv.DictWriter(out, fieldnames=['n'])\n        rows.writeheader()\n        rows.writerow({'n': 1})",
         "csv_rows([dict(zip(['n'], ['n']))], ['n']) + csv_rows([{'n': 1}], ['n'])"),
        ("['1\\n', '2']\n        out.writelines(rows)", "''.join(['1\\n', '2'])"),
    ],
)  # fmt: skip
def test_rows_that_are_written(writing: str, content: str) -> None:
    code = f"def test(tmp_path):\n    with open(tmp_path / 'a', 'w') as out:\n        rows = {writing}\n"
    code += "    assert f(tmp_path) == 3\n"
    assert read(code) == [f"f(scratch_file({{'t0': None, 't0/a': {content}}}, 't0'))"]


def test_unknown_files_are_unknown_by_their_directory_too() -> None:
    code = "def test(tmp_path):\n    d = tempfile.mkdtemp()\n    with open(os.path.join(d, 'a'), 'w') as out:\n"
    code += "        {0}\n    assert f(d) == 3\n"
    for writing in ("config.write(out)", "out.write(datetime.now().isoformat())"):
        assert read(code.format(writing)) == ["forbidden_name"]
    assert read(code.format("out.write('1')")) == [
        "f(scratch_file({'t0': None, 't1': None, 't1/a': '1'}, '.') and 't1')"
    ]


def test_what_is_written_by_a_call_for_another_is_not_asked() -> None:
    for again in ("f(p)", "f(2)"):
        assert read(f"def test():\n    p = f(1)\n    {again}\n    assert os.path.exists(p)\n") == ["attribute"]


def test_files_in_tmp_are_below_the_directory_that_the_program_works_in() -> None:
    code = "def test():\n    open('/tmp/a', 'w').write('1')\n    assert f('/tmp/a') == '/tmp/a.gz'\n"
    (test,) = read_suite(code, "f", fidelity="wide").tests
    assert (test.call, test.stated) == ("f(scratch_file({'tmp': None, 'tmp/a': '1'}, '.') and 'tmp/a')", "'tmp/a.gz'")
    code = (
        "def test():\n    p = os.path.join(tempfile.gettempdir(), 'a')\n    f(p)\n    assert os.path.exists('/tmp/a')\n"
    )
    made = "scratch_file({'tmp': None}, '.') and 'tmp/a'"
    assert read(code) == [f"bool(written('exists', lambda: f({made}), lambda: 'tmp/a'))"]
    assert read("def test(capsys):\n    f('/tmp/a')\n    assert capsys.readouterr().out == '/tmp/a'\n") == [
        "(printed(lambda: f('/tmp/a')) == '/tmp/a')"
    ]


def test_tables_that_are_written_and_files_that_are_removed() -> None:
    code = "def test(tmp_path):\n    pd.DataFrame({'a': [1]}).to_csv(tmp_path / 'a', index=False)\n"
    code += "    assert f(tmp_path) == 3\n"
    content = "pd.DataFrame({'a': [1]}).to_csv(index=False)"
    assert read(code) == [f"f(scratch_file({{'t0': None, 't0/a': {content}}}, 't0'))"]
    code = "def test():\n    open('a', 'w').close()\n    os.remove('a')\n    assert f('a') == 3\n"
    assert read(code) == ["f('a')"]


@pytest.mark.parametrize(
    "claim",
    ["written('isdir', lambda: f(3), lambda: '/')", "written('isdir', lambda: f(3), lambda: 'a/../..')",
     "f(written('text', lambda: f(3), lambda: 'a')) == 1",
     "(written('size', lambda: f(3), lambda: 'a') < written('size', lambda: f(4), lambda: 'b')) == 1",
     "printed(f(1)) == '1'", "printed(lambda: f(1), f) == '1'", "printed(lambda n=f(1): f(n)) == '1'",
     "printed(lambda: '1' + f(1)) == '1'", "printed(lambda: f) == '1'"],
)  # fmt: skip
def test_a_question_of_what_is_printed_holds_calls_alone(claim: str) -> None:
    assert [test.islower() and "(" not in test for test in read(f"assert {claim}")] == [True]


@pytest.mark.parametrize(
    ("code", "calls"),
    [
        ("import solution\n_, _, c = solution.f(1)\nassert c == 3\n", ["((lambda __0, __1, c_2: c_2)(*f(1)) == 3)"]),
        ("assert [f(n) for n in (1, 2)] == pytest.approx([3, 4])\n",
         ["(f(1) == pytest.approx(3))", "(f(2) == pytest.approx(4))"]),
        ("with pytest.raises(ValueError):\n    list(f(1))\n",
         ["(raised(list(f(1)), 'ValueError')['raises'] == 'ValueError')"]),
        ("with pytest.raises(TypeError):\n    list(f(1))\n", ["expects_exception"]),  # whatever is no iterable does
        ("with pytest.raises(Exception):\n    next(f(1))\n", ["expects_exception"]),
        ("@f(2)\ndef add(a, b):\n    return a + b\nassert add(1, 2) == 3\n", ["(f(2)(lambda a, b: a + b)(1, 2) == 3)"]),
        ("@other\ndef add(a, b):\n    return a + b\nassert add(1, 2) == 3\n", ["not_entry_point"]),
        ("g = f(1)\nassert g.number_of_nodes() == 3\n", ["(f(1).number_of_nodes() == 3)"]),
        ("assert f('a').group(1) == 'a'\n", ["(f('a').group(1) == 'a')"]),
        ("assert f(1)._secret() == 3\n", ["attribute"]),
        ("assert f(1).get('a') == 3\n", ["(f(1)['a'] == 3)"]),
        ("assert f(1).get('a') == None\n", ["bool(f(1).get('a') == None)"]),
        ("model, ax = f(1)\nassert ax.get_title() == 'a'\n", ["((lambda model, ax: ax)(*f(1)).get_title() == 'a')"]),
        ("line = f(1).lines()[0]\nassert line.label() == 'x'\n", ["(f(1).lines()[0].label() == 'x')"]),
        ("model, ax = f(1)\nassert ax._secret() == 'a'\n", ["attribute"]),
        ("assert f(hashlib.sha256) == 3\n", ["f(hashlib.sha256)"]),
        ("assert f(*range(3)) == 3\n", ["f(0, 1, 2)"]),
        ("x = [1, 2]\nx[-1] = 3\nassert f(x) == 3\n", ["f([1, 3])"]),
        ("x = {'a': 1}\nx['b'] = [2]\nx['a'] = 5\nassert f(x) == 3\n", ["f({'a': 1, 'b': [2], 'a': 5})"]),
        ("x = [1, 2]\nx[0] = f(1)\nassert f(x) == 3\n", ["forbidden_name"]),
        ("x = [1, 2]\nx[2] = 1\nassert f(x) == 3\n", ["forbidden_name"]),
    ],
)  # fmt: skip
def test_forms_of_claims(code: str, calls: list[str]) -> None:
    assert read(code) == calls


SUM = "def f(path):\n    return sum(map(int, open(path).read().split()))\n"
PAIR = (
    "class Square:\n    def __init__(self, side):\n        self.side = side\n    def area(self):\n"
    "        return self.side ** 2\ndef f(x):\n    return x, Square(x)\n"
)
SAY = "def f(x):\n    print(x)\n    return x\n"
FILES = "def test(tmp_path):\n    p = tmp_path / 'a'\n    p.write_text('1 2')\n    assert f(str(p)) == 3\n"
WRITE = "def f(x):\n    with open('o', 'w') as out:\n        out.write(str(x))\n"
OUT = "def test():\n    f(12)\n    with open('o') as out:\n        text = out.read()\n    assert text == '12'\n"
THERE = "def test():\n    f(12)\n    assert os.path.exists('o')\n"
GONE = "def test():\n    open('a', 'w').close()\n    f('a')\n    assert not os.path.exists('a')\n"
REMOVE = "import os\ndef f(path):\n    os.remove(path)\n"
BESIDE = "def test():\n    open('a', 'w').write('1 2')\n    assert f('a') == 3\n"
ROWS = (
    "def test():\n    with open('a', 'w', newline='') as out:\n        rows = csv.writer(out, delimiter=' ')\n"
    "        rows.writerow([1, 2])\n    assert f('a') == 3\n"
)
SAID = "def test(capsys):\n    f(12)\n    assert capsys.readouterr().out == '12\\n'\n"


@pytest.mark.parametrize(
    ("right", "wrong", "suite"),
    [
        (SUM, SUM.replace("sum", "max"), FILES),
        (SUM, SUM.replace("sum", "max"), BESIDE),
        (SUM, SUM.replace("sum", "max"), ROWS),
        (SUM, "import os\ndef f(path):\n    os.unlink(path)\n    return 3 + len(path) // 4\n", FILES),
        (PAIR, PAIR.replace("self.side ** 2", "self.side"), "side, shape = f(3)\nassert shape.area() == 9\n"),
        (PAIR, PAIR.replace("self.side ** 2", "self.side"), "assert f(3)[1].area() == 9\n"),
        (SAY, SAY.replace("print(x)", "print(-x)"), SAID),
        (WRITE, WRITE.replace("str(x)", "str(-x)"), OUT),
        (WRITE, WRITE.replace("'o'", "'p'"), THERE),
        (WRITE, "import os\nos.stat = lambda *_: os.lstat('.')\nos.path.exists = len\ndef f(x):\n    pass\n", THERE),
        # What is asked is not told to a program that looks for it.
        (WRITE, "import sys\ndef f(x):\n    g = sys._getframe(1)\n    while g and 'steps' not in g.f_locals:\n"
                "        g = g.f_back\n    if g:\n        open(g.f_locals['steps'][-1](), 'w').write('12')\n", OUT),
        (WRITE, "import sys\nsys.modules['candidate']._stat = lambda _: sys\nsys.st_mode = 0o100000\nsys.st_size = 2\n"
                "def f(x):\n    open\n", THERE),
        (REMOVE, REMOVE.replace("os.remove(path)", "pass"), GONE),
        (SAY, SAY.replace("print(x)", ""), SAID),
        # A text that says of itself that it is equal is compared as data.
        (SAY, "import io\nclass T(str):\n    __eq__ = lambda *_: True\nclass S(io.StringIO):\n"
              "    getvalue = lambda self: T('no')\nio.StringIO = S\n" + SAY, SAID),
    ],
)  # fmt: skip
def test_a_right_program_passes_and_a_wrong_one_fails(sandbox: Sandbox, right: str, wrong: str, suite: str) -> None:
    arena = Arena(sandbox, RewardConfig(fidelity="wide"), on_failure="raise")
    problem = Problem("own/f", "Write f.", "f", reference_solution=right, time_limit_s=5.0)
    duels = [
        arena.play([Match(problem, (program,), ((suite,),))], update_book=False)[0].suites[0][0].duel
        for program in (right, wrong)
    ]
    (passed,), (other,) = [[str(test.verdict) for test in duel.tests if test.status == "kept"] for duel in duels]
    assert passed == "pass"
    assert other in ("fail", "error")


@pytest.mark.parametrize(
    "claim",
    [
        "f(3)\n    assert os.path.exists('a') == True",
        "f(3)\n    assert [os.path.isfile('b')] == [False]",
        "f(3)\n    assert open('a').read() == '1 2'",
        "f(3)\n    assert '1' in open('a').readlines()[0]",
        "f(3)\n    assert os.path.getsize('a') == 3",
        "f(3)\n    assert os.listdir('.') == ['a']",
        "f(3)\n    assert os.path.isdir('.')",
        "p = f('b')\n    assert os.path.exists(p) == False",
        "p = f('b')\n    assert os.path.exists(p[0]) is False",
        "p = f(1)\n    assert os.path.exists(p)",
        "f(3)\n    assert capsys.readouterr().out == ''",
    ],
)
def test_a_claim_that_holds_where_the_program_does_nothing_is_not_paid(sandbox: Sandbox, claim: str) -> None:
    program = "def f(x):\n    return x\n"
    suite = f"def test(capsys):\n    open('a', 'w').write('1 2')\n    {claim}\n"
    problem = Problem("own/f", "Write f.", "f", reference_solution=program, time_limit_s=5.0)
    arena = Arena(sandbox, RewardConfig(fidelity="wide"), on_failure="raise")
    duel = arena.play([Match(problem, (program,), ((suite,),))], update_book=False)[0].suites[0][0].duel
    assert [str(test.status) for test in duel.tests] == ["raises" if "f(1)" in claim else "vacuous"]


def test_a_suffix_that_python_does_not_write_is_none() -> None:
    code = f"def test():\n    out = tempfile.NamedTemporaryFile(suffix={hex(10**5000)})\n    assert f(out.name) == 3\n"
    assert read(code) == ["f(scratch_file({'t1': ''}, '.') and 't1')"]


def test_many_files_are_unknown() -> None:
    code = "def test():\n" + "".join(f"    open('{i}.txt', 'w').write('x')\n" for i in range(40))
    assert read(code + "    assert f('1.txt') == 3\n    assert f(1) == 3\n") == ["forbidden_name", "f(1)"]
    assert read(code + "    f(1)\n    assert open('1.txt').read() == 'x'\n") == ["not_entry_point"]


def test_an_empty_directory_is_empty_where_the_program_does_nothing(sandbox: Sandbox) -> None:
    program = "import os\ndef f(x):\n    open('o', 'w').close()\n    os.remove('o')\n    return x\n"
    suite = "def test():\n    f(3)\n    assert os.listdir('.') == []\n"
    problem = Problem("own/f", "Write f.", "f", reference_solution=program, time_limit_s=5.0)
    arena = Arena(sandbox, RewardConfig(fidelity="wide"), on_failure="raise")
    duel = arena.play([Match(problem, (program,), ((suite,),))], update_book=False)[0].suites[0][0].duel
    assert [str(test.status) for test in duel.tests] == ["vacuous"]


@pytest.mark.parametrize("given", [[["lambda: x"], []], [[], [["text", "lambda: x"]]], [[["lambda: x"], 1], []]])
def test_a_text_that_looks_like_a_question_is_none(given: Tree) -> None:
    assert idle(encode(given), "f") == b""


def test_no_other_call_finds_the_files(sandbox: Sandbox) -> None:
    lines = "import pandas\ndef f(path):\n    return list(pandas.read_csv(path, header=None)[0])\n"
    there = "    assert f('a') == [1, 2]\n"
    suite = f"def test():\n    open('a', 'w').write('1\\n2')\n{there * 2}"
    suite += "def test_none():\n    with pytest.raises(FileNotFoundError):\n        f('a')\n"
    problem = Problem("own/f", "Write f, which may raise FileNotFoundError.", "f", reference_solution=lines)
    arena = Arena(sandbox, RewardConfig(fidelity="wide"), on_failure="raise")
    duel = arena.play([Match(problem, (lines,), ((suite,),))], update_book=False)[0].suites[0][0].duel
    assert [(str(test.status), str(test.verdict)) for test in duel.tests] == [
        ("kept", "pass"), ("duplicate", "None"), ("kept", "pass"),
    ]  # fmt: skip


def test_a_path_that_a_program_gives_is_that_which_the_test_states(sandbox: Sandbox) -> None:
    program = "import os\ndef f(path):\n    return os.path.join(path, 'b')\n"
    suite = "def test(tmp_path):\n    assert f(str(tmp_path)) == str(tmp_path / 'b')\n"
    problem = Problem("own/f", "Write f.", "f", reference_solution=program)
    arena = Arena(sandbox, RewardConfig(fidelity="wide"), on_failure="raise")
    duel = arena.play([Match(problem, (program,), ((suite,),))], update_book=False)[0].suites[0][0].duel
    assert [(str(test.status), str(test.verdict)) for test in duel.tests] == [("kept", "pass")]


@pytest.mark.parametrize("oracle", ["reference", "majority", "dual"])
def test_what_holds_where_nothing_is_done_is_known_without_a_reference(sandbox: Sandbox, oracle: OracleMode) -> None:
    suite = "def test(capsys, tmp_path):\n    f(1)\n    assert '2' not in capsys.readouterr().out\n"
    suite += f"    assert tmp_path.exists()\n    assert not os.path.exists('a')\n{SAID}"
    problem = Problem("own/f", "Write f.", "f", reference_solution=SAY if oracle == "reference" else None)
    arena = Arena(sandbox, RewardConfig(fidelity="wide", oracle=oracle), on_failure="raise")
    scores = arena.play([Match(problem, (SAY,) * 3, ((suite,),) * 3)], update_book=False)[0]
    assert [str(test.status) for test in scores.suites[0][0].duel.tests] == ["vacuous"] * 3 + ["kept"]


def test_claims_about_lines_and_documents_are_paid_each(sandbox: Sandbox) -> None:
    program = (
        "import json\ndef f(n):\n    with open('o', 'w') as out:\n"
        "        json.dump({'n': n, 'to': list(range(n))}, out)\n"
        "    with open('p', 'w') as out:\n        out.writelines(f'{i};{i * i}\\n' for i in range(n))\n"
    )
    suite = """
def test_it():
    f(3)
    with open('o') as file:
        found = json.load(file)
    assert found['n'] == 3
    assert found['to'] == [0, 1, 2]
    assert 'n' in found
    with open('p') as file:
        lines = file.readlines()
    assert len(lines) == 3
    assert lines[-1] == '2;4\\n'
"""
    problem = Problem("own/f", "Write f.", "f", reference_solution=program, time_limit_s=5.0)
    arena = Arena(sandbox, RewardConfig(fidelity="wide"), on_failure="raise")
    wrong = program.replace("list(range(n))", "[]").replace("i * i", "i")
    duels = [
        arena.play([Match(problem, (each,), ((suite,),))], update_book=False)[0].suites[0][0].duel
        for each in (program, wrong)
    ]
    verdicts = [
        [str(test.verdict) if test.status == "kept" else str(test.status) for test in duel.tests] for duel in duels
    ]
    assert verdicts == [["pass"] * 2 + ["duplicate"] + ["pass"] * 2, ["pass", "fail", "duplicate", "pass", "fail"]]
