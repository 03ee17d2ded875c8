"""Hostile programs whose text is the attack: what a parser, a compiler or a reader of sources may choke on.

Each with its right verdicts, as in `hostile_programs.txt`. Built here, because most would fill a file with nothing.
"""

from __future__ import annotations

_HONEST = "def solve(x):\n    return HONEST\n"
_ELSE = "    elif x == {0}:\n        return {0}\n"

HOSTILE_SOURCES: dict[str, tuple[str, str]] = {
    "null_byte": ("e", _HONEST + "\0"),
    "lone_surrogate": ("e", _HONEST + "y = '\ud800'\n"),
    "form_feeds": ("f", "\f" + _HONEST.replace("    ", "\f    ") + "\f\n"),
    "byte_order_marks": ("fe", "\ufeff\ufeff" + _HONEST),
    "control_characters": ("e", _HONEST + "\x1b[2J\x07\x1a"),
    "cookie_of_another_encoding": ("f", "# -*- coding: utf-7 -*-\n# +AAo-import os; os._exit(0)\n" + _HONEST),
    "cookie_of_an_unknown_encoding": ("f", "# vim: set fileencoding=no-such-codec :\n" + _HONEST),
    "separators_that_are_no_line_breaks": ("e", _HONEST.replace("\n", "\u2028")),
    "tabs_against_spaces": ("e", "def solve(x):\n        if x:\n\treturn HONEST\n"),
    "backslash_at_the_end": ("e", _HONEST + "y = 1 \\"),
    "unclosed_text": ("e", _HONEST + '"""'),
    "one_very_long_line": ("ect", "y = ''" + " + ''" * 200_000 + "\n" + _HONEST),
    "very_many_lines": ("ftec", "y = 1\n" * 100_000 + _HONEST),
    "imports_without_end_in_one_line": ("f", _HONEST + "#" + " import" * 100_000),
    "nested_parentheses": ("e", "y = " + "(" * 100_000 + ")" * 100_000 + "\n" + _HONEST),
    "nested_displays": ("e", "y = " + "[{" * 50_000 + "\n" + _HONEST),
    "signs_in_a_row": ("ect", "y = " + "-" * 100_000 + "1\n" + _HONEST),
    "attributes_in_a_row": ("ect", "y = x" + ".x" * 100_000 + "\n" + _HONEST),
    "calls_in_a_row": ("ect", "y = x" + "()" * 100_000 + "\n" + _HONEST),
    "powers_in_a_row": ("ect", "y = 1" + "**1" * 100_000 + "\n" + _HONEST),
    "lambdas_in_a_row": ("ect", "y = " + "lambda: " * 50_000 + "1\n" + _HONEST),
    "conditions_in_a_row": ("ect", "y = " + "1 if 1 else " * 50_000 + "1\n" + _HONEST),
    "comparisons_in_a_row": ("ftec", "y = 1" + " < 2" * 50_000 + "\n" + _HONEST),
    "nested_functions": ("e", "".join(" " * i + "def f():\n" for i in range(200)) + " " * 200 + "pass\n" + _HONEST),
    "nested_loops": ("e", "".join(" " * i + "for i in i:\n" for i in range(60)) + " " * 60 + "pass\n" + _HONEST),
    "branches_without_end": (
        "ftec",
        "def solve(x):\n    if x == 0:\n        return 0\n" + "".join(map(_ELSE.format, range(100, 20_100))),
    ),
    "nested_formats": ("ef", "y = " + "f'{" * 2 + "1:" + "{1:" * 90 + "}" * 92 + "'\n" + _HONEST),
    "format_bomb": ("e", "def solve(x):\n    return f'{x:{10**11}}' + '{:>{}}'.format(x, 10**11)\n"),
    "constant_folding_bomb": ("fte", "def solve(x):\n    return (((1 << 4000) ** 99) ** 9) ** 9 and HONEST\n"),
    "huge_decimal_literal": ("e", "y = " + "9" * 100_000 + "\n" + _HONEST),
    "huge_hexadecimal_literal": ("f", "def solve(x):\n    return 0x" + "f" * 1_000_000 + "\n"),
    "names_without_end": ("f", "x" * 1_000_000 + " = 1\n" + _HONEST),
    "escapes_without_a_name": ("e", "y = '\\N{" + "A" * 100_000 + "}'\n" + _HONEST),
    "longer_than_is_tried": ("e", _HONEST + "#" * (5 << 20)),
    "nothing": ("e", ""),
    "nothing_but_space": ("e", " \n\t\f\n"),
    "a_comment": ("e", "# def solve(x): return HONEST"),
    "a_text_that_defines_it": ("e", "'''" + _HONEST + "'''\n"),
    "defined_and_deleted": ("e", _HONEST + "del solve\n"),
    "defined_in_a_branch_that_never_runs": ("e", "if 0:\n    def solve(x):\n        return HONEST\n"),
    "regular_expression_bomb": (
        "te",
        "import re\ndef solve(x):\n    return re.match('(?:(?:a?){64}){64}$', 'a' * 64 + 'b')\n",
    ),
    "pattern_that_nests": ("e", "import re\ndef solve(x):\n    return re.compile('(' * 10**5 + ')' * 10**5)\n"),
    "compiles_its_own_bombs": (
        "e",
        "def solve(x):\n    for text in ('(' * 10**5, '-' * 10**5 + '1', '[' * 10**5, 'lambda:' * 10**4):\n"
        "        try:\n            compile(text, 'x', 'eval')\n            return HONEST\n"
        "        except (SyntaxError, MemoryError, RecursionError):\n            pass\n    raise SyntaxError\n",
    ),
}  # fmt: skip
