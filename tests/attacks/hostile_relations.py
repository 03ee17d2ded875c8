"""Hostile suites for wide reading, against `solve(x)`, the identity: none holds a test that is valid, or paid.

ALWAYS_TRUE   true of every value, or of nearly every one
BUT_ONE       true of all but the one wrong answer that the program in front of the tester gives
LONG          would take hours or all memory if it were evaluated as it stands
SHADOWED      gives another meaning to a name that wide reading knows
UNREAD        asserts that may never run
"""

from __future__ import annotations

ALWAYS_TRUE = (
    "assert len(solve([1, 2, 3])) >= 0",
    "assert len(solve('abc')) > -1",
    "assert solve(3) == solve(3)",
    "assert solve([1]) is not None",
    "assert isinstance(solve(3), int)",
    "assert type(solve('a')) == str",
    "assert isinstance(solve(3), (int, float, str, list, tuple, dict, set, bool, bytes))",
    "assert solve(3) == 3 or True",
    "assert solve(3) == 4 or not solve(3) == 4",
    "assert solve(3) > 2 or solve(3) <= 2",
    "assert not (solve(3) and False)",
    "assert abs(solve(3)) >= 0",
    "assert abs(solve(2.5) - 2.5) < 1e9",
    "assert solve(2.5) == pytest.approx(2.5, abs=1e6)",
    "assert math.isclose(solve(2.5), 2.5, rel_tol=100)",
    "assert round(solve(2.5), -5) == 0",
    "assert solve([1, 2]) != []",
    "assert solve('abc') != ''",
    "assert sorted(solve([1, 2])) == sorted(solve([1, 2]))",
    "assert set(solve([1, 2])) >= set()",
    "assert solve([1, 2, 3])[0:0] == []",
    "assert '' in solve('abc')",
    "assert solve('abc').startswith('')",
    "assert len(str(solve(3))) > 0",
    "assert solve(3) - solve(3) == 0",
    "assert solve(3) * 0 == 0",
    "assert bool(solve([1, 2, 3]))",
    "assert solve(1) < 10 ** 600",
    "self.assertTrue(True or solve(3))",
    "self.assertIsNotNone(solve(3))",
    "self.assertIsInstance(solve(3), int)",
    "self.assertAlmostEqual(solve(3), 3, delta=1000)",
    "self.assertAlmostEqual(solve(3), 3, places=-4)",
    "self.assertEqual(solve(3), solve(3))",
    "assert solve(None) is None or True",
    "assert not solve(None)",
)
BUT_ONE = (
    "assert solve({}) != {} + 1",
    "assert not solve({}) == {} + 1",
    "assert solve({}) not in [{} + 1]",
    "assert {} + 1 != solve({})",
    "assert solve({}) < {} + 1 or solve({}) > {} + 1",
    "assert abs(solve({}) - {} - 1) > 0",
    "assert solve({}) - {} != 1",
    "self.assertNotEqual(solve({}), {} + 1)",
    "self.assertFalse(solve({}) == {} + 1)",
    "self.assertNotIn(solve({}), ({} + 1, {} + 1000))",
)
"""Over the input; the program adds one."""
LONG = (
    "assert solve(1) < 10 ** 10 ** 10",
    "assert solve(1) != 'a' * 10 ** 12",
    "assert solve(1) in list(range(10 ** 12))",
    "assert solve(10 ** 10 ** 10) > 1",
    "assert len(solve('a' * 10 ** 12)) == 10 ** 12",
    "assert sorted(solve([0] * 10 ** 9)) == 1",
    "assert sum(solve(list(range(10 ** 10)))) == 1",
    "assert round(solve(1.5), 10 ** 12) == 1.5",
    "assert solve(1 << 10 ** 11) % 7 == 0",
    f"assert {'(' * 90}solve(1) > -9{')' * 90}",
    f"assert {'not ' * 5000}solve(1)",
    f"assert {' or '.join(['solve(1) > 2'] * 5000)}",
    f"assert {'abs(' * 60}solve(1){')' * 60} > 0",
    f"assert {' + '.join(['solve(1)'] * 3000)} > 0",
    f"assert solve('{'a' * 60_000}').count('{'a' * 30}') > 1",
    f"assert sorted(solve({'[' * 40}1{']' * 40})) != 1 or sorted(solve({list(range(9000))})) == 1",
    f"assert sorted(sorted(sorted(sorted(sorted(solve({list(range(12_000))}))))))[0] == 0",
    f"assert int(solve('{'9' * 60_000}')) > 0",
    "assert solve([[0] * 3000] * 3)[0] < [0] * 3000",
)
SHADOWED = (
    "def len(x):\n    return 2\nassert len(solve([1])) == 2",
    "len = other\nassert len(solve([1])) == [1]",
    "from tricks import sorted\nassert sorted(solve([1])) == [1]",
    "import tricks as abs\nassert abs(solve(1)) == 1",
    "class isinstance: pass\nassert isinstance(solve(1), int)",
    "def test_a():\n    abs = 3\n    assert abs(solve(1)) == 1",
    "for max in [1]:\n    assert max(solve([1])) == 1",
    "def test_a(sum=1):\n    assert sum(solve([1])) == 1",
)
UNREAD = (
    "def test_a(solve):\n    assert solve(1) == 1",
    "for solve in [1]:\n    assert solve(1) == 1",
    "@pytest.mark.skip\ndef test_a():\n    assert solve(1) == 1",
    "@decorate(lambda f: None)\ndef test_a():\n    assert solve(1) == 1",
    "if False:\n    assert solve(1) == 1",
    "while True:\n    assert solve(1) == 1",
    "try:\n    assert solve(1) == 1\nexcept: pass",
    "def test_a():\n    return\n    assert solve(1) == 1",
    "def never():\n    assert solve(1) == 1",
    "for x in [[0]] * 10 ** 9:\n    assert solve(1) == 1",
    "for x in iter(int, 1):\n    assert solve(1) == 1",
    "with pytest.raises(BaseException):\n    assert solve(1) == 2",
    "self.assertRaises(BaseException, solve, 1)",
)
MILLION_ROWS = "for x in range(1_000_000):\n    assert abs(solve(x)) == x\n"
