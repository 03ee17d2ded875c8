"""Checkers: what decides whether a returned value is right where several are.

A checker is a program with `check(arguments, returned, reference)`, which returns True or False. `arguments` are those
of the call, in the order of the reference's parameters (named ones that have no place there come last, in a dict);
`reference` is what the reference returned, or what a golden or hidden test says. In its place may stand the name of a
comparison of data, one of COMPARISONS (`judging/checking.py` says what each takes for right).

Nothing runs here: `judging/checking.py` runs checkers in the sandbox.
"""

from __future__ import annotations

import ast

from codea1_env.reading.parsing import parse, parses

CHECK = "check"
OF_TEXTS = ("tokens", "decimals")
"""Comparisons of what programs print."""
COMPARISONS = ("unordered", "close", "any-of", *OF_TEXTS)
TOKENS = OF_TEXTS[0]


def is_checker(checker: str) -> bool:
    """Whether the text is a comparison's name or a program that defines `check` with three parameters."""
    if checker in COMPARISONS or not parses(checker):
        return checker in COMPARISONS
    definitions = [node for node in parse(checker).body if isinstance(node, ast.FunctionDef) and node.name == CHECK]
    return len(definitions) == 1 and len([*definitions[0].args.posonlyargs, *definitions[0].args.args]) == 3
