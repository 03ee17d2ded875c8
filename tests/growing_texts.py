"""Texts that grow: every construct of suites and answers, repeated, nested and in rows, for counts of steps.

suites(size)      by name, each about `size` characters of a suite
answers(size)     the same of answers around code: fences, marks, prose
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

Growing = Callable[[int], str]
"""A text of about so many characters."""


def repeated(piece: str, joint: str = "\n") -> Growing:
    """A piece again and again; `{}` in it is the number of the piece."""
    return lambda size: joint.join(piece.replace("{}", f"{n:05}") for n in range(max(1, size // (len(piece) + 3))))


def around(before: str, inner: Growing, behind: str = "", indent: str = "") -> Growing:
    """Something that grows between what does not."""
    return lambda size: before + "\n".join(indent + line for line in inner(size).split("\n")) + behind


def chained(before: str, piece: str, behind: str, joint: str = "") -> Growing:
    """One statement that grows."""
    return lambda size: before + repeated(piece, joint)(size) + behind


STATEMENTS: Mapping[str, str] = {
    "assert": "assert f({}) == 1",
    "relation": "assert len(f({})) > x",
    "and": "assert f({}) == 1 and f(2) > x",
    "of a name": "assert f(x, y{}) == x",
    "unknown": "assert g({}) == 1",
    "bind": "y{} = [x, 1]",
    "pairs": "y{}, z = z, x",
    "change": "x.append({})",
    "method": "self.assertEqual(f({}), x)",
    "raises": "with pytest.raises((E, Exception, ValueError)): f({})",
    "called": "check({}, x)",
    "call": "print(f({}))",
    "import": "from math import y{}",
    "while": "while x:\n a = 1; break",
    "if": "if x == {}: pass",
    "main": "if __name__ == {}: pass",
    "try": "try: y{} = 1\nexcept E as x: pass",
    "for": "for i in [1, 2]: assert f(i, {}) == x",
    "for what": "for i in g({}): assert f(i) == x",
    "for else": "for i in [1]: pass\nelse: x = {}",
    "sub test": "with self.subTest(i={}): assert f({}) == 1",
    "open": "with open({}) as x: assert f(x) == 1",
    "def": "def g{}(a, b=1): assert f(a) == b",
    "def test": "def test_{}(): assert f({}) == x",
    "fixture": "def test_{}(x): assert f(x) == 1",
    "check": "def g{}(candidate): assert candidate(x) == 1",
    "rows": "@pytest.mark.parametrize('a, b', [(1, {}), (x, 3)])\ndef test_{}(a, b): assert f(a) == b",
    "class": "class T{}:\n def test_a(self): assert f({}) == x",
    "async": "async def test_{}(): assert f(1) == x",
    "lambda": "y{} = lambda a: f(a) == x",
    "delete": "del x[{}], y{}",
    "pass": "pass",
    "match": "match x:\n case [{}, *y]: pass",
    "docstring": "'''assert {}'''",
    "and so on": "a{};" * 20,
}
"""Of a suite: what may stand in a module, a function or a loop."""

EXPRESSIONS: Mapping[str, Growing] = {
    "list": chained("[", "{},", "]"),
    "dict": chained("{", "'{}': [],", "}"),
    "set": chained("{", "{},", "}"),
    "tuples": chained("[", "(1, ({}, 2)),", "]"),
    "empty lists": chained("[", "[],", "]"),
    "text": chained("'", "abcdefg", "'"),
    "bytes": chained("b'", r"\xff", "'"),
    "number": chained("0x", "ffff", ""),
    "names": chained("[", "x,", "]"),
    "sum": chained("[", "1 + {},", "]"),
    "calls": chained("[", "len([{}]),", "]"),
    "comprehensions": chained("[", "[i for i in [{}]],", "]"),
    "one comprehension": lambda size: (
        f"[[{repeated('[0 for b in c]', ',')(size // 2)}] for {repeated('a{}', ',')(size // 2)} in []]"
    ),
    "clauses": chained("[0", " for a{} in [1]", "]"),
    "sides": chained("[1", " < {}", "]"),
    "starred": chained("g(", "*[{}],", ")"),
    "keywords": chained("g(", "a{}=1,", ")"),
    "places": chained("[", "[1, {}][0],", "]"),
    "keys": lambda size: f"[{{{repeated(repr('{}') + ': 1', ',')(size)}}}['00001']]",
    "set of sets": chained("{", "frozenset({{}, (1, 2)}),", "}"),
    "format": chained("[", "f'{x}',", "]"),
    "zip": lambda size: f"zip({chained('[', '{},', ']')(size // 2)}, {chained('[', '{},', ']')(size // 2)})",
    "attributes": lambda size: f"[{','.join('x' + '.a' * 90 for _ in range(max(1, size // 180)))}]",
    "walrus": chained("[", "(x := {}),", "]"),
    "pops": chained("[", "x.pop(),", "]"),
}
"""Of a suite: what may stand in an assert, a table or an argument."""

HOLDERS: Mapping[str, str] = {
    "argument": "assert f(@) == 1",
    "value": "assert f(1) == @",
    "relation": "assert len(f(1)) != @",
    "deep relation": "assert " + "not (" * 40 + "f(1) == @" + ")" * 40,
    "in": "assert f(1) in @",
    "bind": "y = @\nassert f(y) == 1",
    "chain of names": "a = b = c = d = e = @\nassert f(a) == e",
    "item": "x[@] = 1",
    "table": "for i in @:\n assert f(i) == 1",
    "if": "if x == @: pass",
    "while": "while @: pass",
    "call": "check(@, x)",
    "print": "print(@)",
    "method": "self.assertEqual(f(1), @)",
    "raises": "with pytest.raises(E, match=@): f(1)",
    "raises of types": "with pytest.raises(@): f(1)",
    "default": "def g(a=@): assert f(a) == 1\ng()",
    "decorator": "@pytest.mark.parametrize('i', @)\ndef test_a(i): assert f(i) == 1".replace("@p", "\0p"),
    "decorator's names": "@pytest.mark.parametrize(@, [[1, 2]])\ndef test_a(i): assert f(i) == 1".replace("@p", "\0p"),
    "message": "assert f(1) == 1, @",
    "subject": "match @:\n case x: pass",
}
"""Of a suite: statements that hold one expression."""

FRAMES: Mapping[str, tuple[str, str, str]] = {
    "module": ("x = z = [1]\ndef check(a, b): assert f(a) == b\n", "", ""),
    "broken": ("x = z = [1]\ndef check(a, b): assert f(a) == b\n", "", "\nassert f(1 ==\n"),
    "rows": ("x = z = [1]\ndef check(a, b): assert f(a) == b\nfor r in range(64):\n", " ", ""),
    "rows in rows": ("x = z = 1\nfor r in range(64):\n for q in range(60):\n", "  ", "\n  assert f(r, q) == 1"),
    "rows that end": ("x = z = 1\nfor r in range(64):\n for q in range(60):\n  if y: continue\n", "  ", ""),
    "function": ("x = z = [1]\ndef test_a(self):\n", " ", ""),
    "called": ("x = z = [1]\ndef a(b):\n", " ", "\nfor r in range(64):\n a(r)\n"),
    "classes": ("x = z = [1]\nclass T:\n def test_a(self):\n", "  ", ""),
    "parametrised": ("x = [1]\n@pytest.mark.parametrize('z', range(64))\ndef test_a(z):\n", " ", ""),
    "unread": ("x = z = [1]\nfor r in range(64):\n if y:\n", "  ", "\n assert f(r) == 1"),
}
"""Of a suite: what is around statements."""


def nested(opening: str, body: str, level: str = " ") -> Growing:
    """Statements inside of statements, as deep as Python goes."""

    def text(size: int) -> str:
        deep = min(90, max(1, int((2 * size / max(1, len(level))) ** 0.5)))
        return "".join(f"{level * n}{opening.replace('{}', str(n))}\n" for n in range(deep)) + level * deep + body

    return text


MORE_SUITES: Mapping[str, Growing] = {
    "names and functions": lambda size: (
        repeated("a{} = 1")(size // 2) + "\n" + repeated("def test_{}(): pass")(size // 2)
    ),
    "targets and functions": lambda size: (
        f"{repeated('a{}', ' = ')(size // 2)} = 1\n{repeated('def test_{}(): pass')(size // 2)}"
    ),
    "targets": lambda size: (
        f"{repeated('a{}', ' = ')(size // 2)} = {EXPRESSIONS['list'](size // 2)}\nassert f(a00001) == 1"
    ),
    "functions and methods": lambda size: (
        repeated("def g{}(): pass")(size // 2) + "\nclass T:\n" + repeated(" def test_{}(self): pass")(size // 2)
    ),
    "class in rows": lambda size: (
        "for i in range(64):\n for j in range(64):\n  class T:\n   a = 1\n" + repeated("   def g{}(self): pass")(size)
    ),
    "fixtures": lambda size: (
        repeated("@pytest.fixture\ndef a{}(): return 1")(size // 2)
        + "\n"
        + repeated("def test_{}(a00001): assert f(a00001) == 1")(size // 2)
    ),
    "fixtures of fixtures": lambda size: (
        "@pytest.fixture(params=[1, 2])\ndef a0(request): return request.param\n"
        + "\n".join(f"@pytest.fixture\ndef a{n}(a{n - 1}, a0): return a{n - 1}" for n in range(1, size // 40))
        + f"\ndef test(a{size // 40 - 1}): assert f(1) == 1"
    ),
    "parameters": lambda size: f"def g({repeated('a{}=1', ',')(size // 2)}): pass\n" + repeated("g()")(size // 2),
    "parameters not given": lambda size: (
        f"def g({repeated('a{}', ',')(size // 2)}): pass\n" + repeated("g(k=1)")(size // 2)
    ),
    "calls in rows": lambda size: (
        "def g(a): pass\nfor i in range(64):\n for j in range(64):\n" + repeated("  g(i)")(size)
    ),
    "calls of calls": lambda size: (
        "def g0(a): assert f(a) == 1\n"
        + "\n".join(f"def g{n}(a): g{n - 1}(a); g{n - 1}(a)" for n in range(1, size // 32 + 2))
        + f"\ng{size // 32}(1)"
    ),
    "arguments": lambda size: f"def g(a, b): pass\n{repeated(f'g(1, {[0] * 30!r})')(size)}",
    "tables of tables": lambda size: (
        "\n".join(f"@pytest.mark.parametrize('x{n}', {list(range(40))})" for n in range(max(1, size // 200)))
        + f"\ndef test_a({', '.join(f'x{n}' for n in range(max(1, size // 200)))}): assert f(x0) == 1"
    ),
    "wide tables": lambda size: (
        f"@pytest.mark.parametrize('{repeated('a{}', ',')(size // 2)}', [[{repeated('{}', ',')(size // 2)}]])\n"
        "@pytest.mark.parametrize('b', range(64))\n@pytest.mark.parametrize('c', range(64))\n"
        f"def test_a({repeated('a{}', ',')(size // 2)}, b, c): pass"
    ),
    "doubling": lambda size: "a = [1]\n" + repeated("a = a, a")(size) + "\nassert f(a) == 1",
    "using": lambda size: f"a = {EXPRESSIONS['list'](size // 2)}\n" + repeated("assert f(a) == {}")(size // 2),
    "using too much": lambda size: (
        f"a = {EXPRESSIONS['list'](size // 2)}\n" + repeated("assert f(a, a, a) == {}")(size // 2)
    ),
    "indented": lambda size: "\n".join("   " + line for line in repeated("assert f({}) == 1")(size).split("\n")),
    "indentation": lambda size: "assert f(1 ==\n" + "\n".join(" " * 40 + "x" for _ in range(size // 42)),
    "broken functions": lambda size: "a = 1\n" + repeated("def test_{}():\n x = [\n assert f(a) == 1")(size),
    "broken names": lambda size: repeated("a{} = 1")(size // 2) + "\nx = (\n" + repeated("a{} = (")(size // 2),
    "open brackets": repeated("assert f([{}) == 1"),
    "closing brackets": repeated("assert f({})]) == 1"),
    "open strings": repeated("assert f('{}) == 1"),
    "one line": repeated("assert f({}) == 1", "; "),
    "one name often": chained("x = [1]\nassert f(", "x", ") == 1", ", "),
    "types": lambda size: f"assert isinstance(f(1), ({repeated('int', ', ')(size)}))",
    "ifs": lambda size: "if 1: pass\n" + repeated("elif {}: pass")(size),
    "nested fors": nested("for i{} in range(9):", "assert f(1) == 1"),
    "nested ifs": nested("if {}:", "assert f(1) == 1"),
    "nested defs": nested("def test_{}():", "assert f(1) == 1"),
    "nested withs": nested("with self.subTest():", "assert f(1) == 1"),
    "nested classes": nested("class T{}:", "def test_a(self): pass"),
    "nested whiles in rows": around("for i in range(64):\n", nested("while {}:", "break"), indent=" "),
    "whiles in rows": around("for i in range(64):\n while x:\n  ", chained("", "a;", "a")),
    "whiles": chained("assert f(1) == 1\nwhile x:\n ", "a;", "a\nassert f(2) == 2"),
}


def suites() -> dict[str, Growing]:
    """Every construct: statements in every frame, expressions in every statement that holds one, and others."""
    found: dict[str, Growing] = dict(MORE_SUITES)
    for (name, statement), (frame, (before, indent, behind)) in itertools.product(STATEMENTS.items(), FRAMES.items()):
        found[f"{name} in {frame}"] = around(before, repeated(statement), behind, indent)
    for (name, expression), (holder, text) in itertools.product(EXPRESSIONS.items(), HOLDERS.items()):
        for frame in ("module", "rows"):
            before, indent, behind = FRAMES[frame]

            def held(size: int, text: str = text, expression: Growing = expression) -> str:
                return text.replace("@", expression(size)).replace("\0", "@")

            found[f"{name} as {holder} in {frame}"] = around(before, held, behind, indent)
    return found


ANSWERS: Mapping[str, Growing] = {
    "closed fences": repeated("```python\ndef f(x): return {}\nassert f(1) == {}\n```"),
    "fences of others": repeated("```\nassert g(1) == {}\n```"),
    "outputs": repeated("```\n{}\n```"),
    "opened again": lambda size: "```python\nx\n" + repeated("```a{}")(size),
    "opened at once": repeated("```python"),
    "opened in blanks": lambda size: "```a\n" + repeated(" \n```b{}")(size),
    "never closed": lambda size: "```python\n" + repeated("assert f({}) == 1")(size),
    "longer and longer": lambda size: "\n".join("`" * (3 + n % 9) for n in range(size // 8)),
    "tags": repeated("<answer>```python\nassert f({}) == 1\n```</answer>"),
    "open tags": repeated("<answer<```"),
    "indented fences": repeated("   ```\n   assert f({}) == 1\n   ```"),
    "tildes": repeated("~~~\nassert f({}) == 1\n~~~~"),
    "thoughts": repeated("assert f({}) == 1\n</think>   "),
    "prose": repeated("Here are some tests ({}, as asked:"),
    "prose and asserts": repeated("One of them is:\nassert f({}) == 1"),
    "prose and programs": repeated("This is one.\ndef f(x): return {}\nAnd this:"),
    "async": lambda size: "async" + " " * size + "x",
    "annotation": lambda size: "f:" + " " * size,
    "marks": repeated("<|im_end|>"),
    "one assert in vain": lambda size: "```python\nassert f(1) == 2\n```\n" + repeated("x; assert f(1) == 2 {}")(size),
    "many spans": lambda size: "```\n```\n" * (size // 16) + repeated("assert f({}) == 1")(size // 2),
    "items": repeated("- `assert f({}) == 1`: one\n  and more"),
    "items in items": lambda size: "\n".join(" " * (n % 40) + f"- assert f({n:05}) == 1 (" for n in range(size // 30)),
    "labels": repeated("Test {}: assert f({}) == 1 ("),
    "marks of items": lambda size: "1. " * (size // 3) + "assert f(1) == 1",
    "helpers in blocks": lambda size: (
        repeated("```python\ndef g{}(x): return h{}\n```")(size) + "\n```python\ndef f(x): return g00001(x)\n```"
    ),
    "one decorator": lambda size: (
        f"def g(x): return {repeated('a{}', ',')(size // 2)}\n"
        + repeated("@g\ndef h{}(): pass")(size // 2)
        + "\ndef f(x): return a00001"
    ),
    "names of modules": lambda size: "import a" + ".a" * (size // 4) + "\nassert a" + ".a" * (size // 4) + ".f(1) == 1",
    "modules": repeated("import a{}.b\nassert a{}.b.f(1) == 1"),
    "line breaks": repeated("\r\n\f\x1c\u2028"),
}
"""Answers of both seats: code in fences, between prose, or neither."""
