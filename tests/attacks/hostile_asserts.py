"""Hostile asserts: none may be a valid test of `solve(x)`, the identity on anything; each with the reason it is given.

`status` is `rejected` (outside the grammar, or no plain data), `raises` (the reference does) or `duplicate`.
"""

from __future__ import annotations

from typing import NamedTuple


class HostileAssert(NamedTuple):
    source: str
    status: str
    reason: str


# Each name holds the one before it twice: the last is four million elements.
_DOUBLING = "a0 = [1, 1]\n" + "".join(f"a{i} = [a{i - 1}, a{i - 1}]\n" for i in range(1, 22))
_NESTING = "a0 = [[[[1]]]]\n" + "".join(f"a{i} = [[[[a{i - 1}]]]]\n" for i in range(1, 15))


def _rejected(reason: str, *sources: str) -> list[HostileAssert]:
    return [HostileAssert(source, "rejected", reason) for source in sources]


HOSTILE_ASSERTS: tuple[HostileAssert, ...] = (
    *_rejected(
        "not_a_comparison", "assert True", "assert solve(1)", "assert solve(1) == 1 or True", "assert not solve(0)"
    ),
    *_rejected(
        "not_entry_point",
        "assert len([1]) == 1",
        "assert 1 == 1",
        "assert 'solve' in globals()",
        "assert 'spec' in globals()",
    ),
    *_rejected("self_comparison", "assert solve(1) == solve(1)"),
    *_rejected("chained_comparison", "assert solve(1) == 1 == 1", "assert 0 < solve(1) < 2"),
    *_rejected(
        "wrapped_call", "assert len(solve([1])) == 1", "assert solve([1])[0] == 1", "assert str(solve(1)) == '1'"
    ),
    *_rejected(
        "operator", "assert solve(1) != 2", "assert solve(1) > 0", "assert solve(1) in [1]", "assert solve(1) is 1"
    ),
    *_rejected("entry_point_again", "assert solve(solve(1)) == 1", "assert solve(1) == [solve(1)][0] + 0"),
    *_rejected("walrus", "assert solve(y := 1) == 1"),
    *_rejected("lambda", "assert solve(1) == (lambda: 1)", "assert solve((lambda: 1)()) == 1"),
    *_rejected(
        "attribute",
        "assert solve(lambda x: x.__class__) == 1",
        "assert solve(lambda: ().__class__.__bases__[0].__subclasses__()) == 1",
        "assert solve(lambda: '{0.__class__}'.format(1)) == 1",
        "assert solve(lambda x: x.gi_frame.f_builtins) == 1",
        "assert solve(operator.attrgetter('__class__')) == 1",
        "assert solve(np.load('/etc/passwd')) == 1",
        "assert solve(np.array([1]).tofile('/tmp/x')) == 1",
        "assert solve(1) == pd.read_csv('/etc/passwd')",
        "assert solve(lambda: np.lib.format) == 1",
        "assert solve(datetime.datetime.now()) == 1",
        "assert solve(math.__loader__) == 1",
        "assert solve(datetime.sys) == 1",
    ),
    *_rejected("other_expression", "assert solve(lambda: (yield)) == 1"),
    *_rejected("entry_point_again", "assert solve(lambda: solve(1)) == 1"),
    *_rejected(
        "forbidden_call",
        "assert solve(lambda: open('/etc/passwd')) == 1",
        "assert solve(lambda: __import__('os')) == 1",
        "assert solve(__code__('open')) == 1",
        "assert solve(Node(1)) == 1",
    ),
    *_rejected(
        "forbidden_name",
        "assert solve(lambda made=open: made) == 1",
        "assert solve(getattr) == 1",
        "assert solve(lambda: solution) == 1",
        "assert solve(lambda solve: 1, solve) == 1",
    ),
    *_rejected("walrus", "assert solve(lambda x: (y := x)) == 1"),
    HostileAssert("assert solve(lambda: 1) == 1", "raises", "opaque"),
    HostileAssert("assert solve(iter([1])) == [1]", "raises", "opaque"),
    HostileAssert("assert solve(enumerate([])) == 1", "raises", "opaque"),
    *_rejected("forbidden_call", "assert solve(1) == sum(__import__(x) for x in ['os'])"),
    *_rejected(
        "attribute",
        "assert solve(().__class__.__bases__) == 1",
        "assert solve('{0.__class__}'.format(1)) == 'b'",
        "assert solve(__import__('os').getpid()) == 1",
    ),
    *_rejected(
        "forbidden_call",
        "assert solve(eval('1')) == 1",
        "assert solve(open('/etc/passwd')) == 1",
        "assert solve(random()) == 1",
        "assert solve(id(1)) == id(1)",
        "assert solve(exec('import os')) is None",
        "assert solve(input()) == ''",
    ),
    *_rejected(
        "forbidden_name", "assert solve(__name__) == 'x'", "assert solve(solution) == 1", "assert solve(1) == print"
    ),
    *_rejected("starred", "assert solve(*[1]) == 1", "assert solve(**{'x': 1}) == 1"),
    *_rejected("entry_point_again", "assert solve(f'{solve}') == '1'"),
    *_rejected("several_statements", "assert solve(1) == 1; assert solve(2) == 2"),
    *_rejected(
        "evaluation_error", "assert solve(1 / 0) == 1", "assert solve([1][5]) == 1", "assert solve(int('x')) == 1"
    ),
    *_rejected(
        "evaluation_limit",
        "assert solve(10 ** 10 ** 10) == 1",
        "assert solve('a' * 10 ** 12) == 1",
        "assert solve([0] * 10 ** 9) == 1",
        "assert solve(sum([1 for a in range(10 ** 4) for b in range(10 ** 4)])) == 1",
    ),
    *_rejected(
        "not_plain_data",
        "assert solve('ab' * 10 ** 6) == 1",
        "assert solve(1) == zip([1])",
    ),
    *_rejected(
        "unstable",
        "assert solve(str(zip())) == str(zip())",
        "assert solve(list({'a', 'b', 'c', 'd', 'e'})) == 1",
        "assert solve('%s' % reversed([])) == ''",
    ),
    *_rejected(
        "too_deep", "assert solve(" + "[" * 60 + "]" * 60 + ") == 1", "assert solve(" + "-" * 20_000 + "1) == 1"
    ),
    HostileAssert("assert solve() == 1", "raises", "TypeError"),
    HostileAssert("assert solve(1, 2) == 1", "raises", "TypeError"),
    HostileAssert("assert solve(y=1) == 1", "raises", "TypeError"),
    *_rejected(
        "syntax",
        "assert",
        "assert solve(1 == 1",
        "assert solve(1)) == 1",
        "assert solve(1) = 1",
        "assert solve(1) === 1",
        "assert solve(1) == 'x",
        "assert solve(1), == 1",
        "assert solve('\0') == 1",
        "assert solve('\ud800') == 1",
    ),
    *_rejected("too_long", f"assert solve('{'a' * 70_000}') == 1"),
    *_rejected(
        "too_large",
        f"{_DOUBLING}assert solve(a21) == a21",
        f"assert solve(1 + 0x{'f' * 2000}) == 1",
    ),
    *_rejected("too_deep", f"{_NESTING}assert solve(a14) == a14"),
    *_rejected("several_statements", "assert solve(1) == 1; solve = None", "x = 1; assert solve(x) == x"),
    *_rejected(
        "not_a_comparison",
        "assert (solve(1) == 1,)",
        "assert(solve(1) == 1, 'message')",
        "assert all([solve(1) == 1])",
        "assert solve(1) == 1 and solve(2) == 2",
        "assert solve(1) == 1 if True else False",
        "assert lambda: solve(1) == 1",
        "assert 'solve(1) == 1'",
    ),
    *_rejected(
        "chained_comparison",
        "assert 1 == solve(1) == 1",
        "assert solve(1) is True is True",
        "assert solve(1) == 1 != 2",
    ),
    *_rejected(
        "operator",
        "assert solve(1) is not None",
        "assert None is solve(None)",
        "assert solve(1) is ...",
        "assert solve(1 is 1) is True",
    ),
    *_rejected(
        "not_entry_point",
        "assert globals()['solve'](1) == 1",
        "assert \u0455olve(1) == 1",  # a Cyrillic letter
        "assert Solve(1) == 1",
        "assert module.solve(1) == 1",
        "assert print(1) is None",
    ),
    *_rejected(
        "wrapped_call",
        "assert solve(1).real == 1",
        "assert solve.__call__(1) == 1",
        "assert solve(1)(2) == 1",
        "assert -solve(1) == -1",
        "assert [solve][0](1) == 1",
        "assert solve is not None",
        "assert (lambda: solve(1))() == 1",
        "assert (y := solve(1)) == 1",
    ),
    *_rejected(
        "entry_point_again",
        "assert solve(1) == solve",
        "assert solve(x=solve(1)) == 1",
        "assert solve([solve(1)]) == [1]",
    ),
    *_rejected("repeated_keyword", "assert solve(x=1, x=1) == 1", "assert solve(dict(a=1, a=2)) == 1"),
    *_rejected(
        "starred", "assert solve([*[1], 2]) == [1, 2]", "assert solve({**{}}) == {}", "assert solve(max(*[1, 2])) == 2"
    ),
    *_rejected(
        "comprehension",
        "assert solve([a async for a in []]) == []",
        "assert solve([1 for x[0] in [1]]) == [1]",
        "assert solve([1 for [a, b] in []]) == []",
        "assert solve([1 for *a, b in [[1]]]) == []",
        "assert solve([1 for a.b in []]) == []",
    ),
    *_rejected(
        "other_expression",
        "assert solve(...) == ...",
        "assert solve((yield)) == 1",
        "assert solve(await x) == 1",
    ),
    *_rejected("walrus", "assert solve([y := 1, y]) == [1, 1]"),
    *_rejected("lambda", "assert solve((lambda x=1: x)()) == 1", "assert solve(1) == sorted([1], key=lambda a: a)"),
    *_rejected("generator", "assert solve(1) == (a for a in [1])"),
    *_rejected("attribute", "assert solve(f'{(1).__class__}') == '1'"),
    *_rejected(
        "attribute",
        "assert solve('{0.__class__}'.format(1)) == 1",
        "assert solve((1).real) == 1",
        "assert solve(1) == int.from_bytes(b'a', 'big')",
    ),
    *_rejected(
        "forbidden_call",
        "assert solve(__import__('os')) == 1",
        "assert solve(globals()) == 1",
        "assert solve(type('X', (), {})) == 1",
        "assert solve(getattr(1, 'real')) == 1",
        "assert solve(map(type, [1])) == [int]",
        "assert solve(compile('1', 'x', 'eval')) == 1",
        "assert solve(breakpoint()) is None",
        "assert solve(1) == hash('a')",
        "assert solve(vars()) == 1",
        "assert solve(1) == object()",
        "assert solve([int][0]('1')) == 1",
        "assert solve('os.system'()) == 1",
    ),
    *_rejected(
        "forbidden_name",
        "assert solve(__builtins__) == 1",
        "assert solve(__debug__) is True",
        "assert solve(NotImplemented) == 1",
        "assert solve(expected) == expected",
        "assert solve(1) == candidate",
        "assert solve([a for sum in [1] for a in [1]]) == [1]",
        "assert solve([solve for solve in [1]]) == [1]",
    ),
    *_rejected(
        "evaluation_error",
        "assert solve({[]: 1}) == 1",
        "assert solve(int('9' * 5000)) == 1",
        "assert solve('%d' % 'x') == 1",
        "assert solve(str(b'a', 'no-such-codec')) == 'a'",
        "assert solve({{1}}) == 1",
        "assert solve([][::0]) == []",
        "assert solve(1 << -1) == 1",
        "assert solve(10.0 ** 400) == 1",
    ),
    *_rejected(
        "evaluation_limit",
        "assert solve(1 << 10 ** 11) == 1",
        "assert solve('%099999999999d' % 1) == 1",
        "assert solve(list(range(10 ** 10))) == 1",
        "assert solve(1) == 'a' * 10 ** 12",
        "x = [[0]] * 10 ** 11\nassert solve(x) == x",
    ),
    *_rejected(
        "not_plain_data",
        "assert solve('a' * 2 ** 17) == 'a' * 2 ** 17",
        "assert solve(1) == (1 << 10 ** 6)",
    ),
    *_rejected(
        "unstable",
        "assert solve(str({'a', 'b', 'c', 'd'})) == 1",
        "assert solve(1) == list({'k', 'l', 'm', 'n', 'o', 'p'})",
        "assert solve(str(enumerate([]))) == ''",
    ),
    HostileAssert("assert solve('a', 'b', 'c') == 1", "raises", "TypeError"),
    HostileAssert("assert solve(X=1) == 1", "raises", "TypeError"),
)
