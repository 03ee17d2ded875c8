"""Checkers: what decides whether a returned value is right where several are.

A checker is a program with `check(arguments, returned, reference)`, which returns True or False. `arguments` are those
of the call, in the order of the reference's parameters (named ones that have no place there come last, in a dict);
`reference` is what the reference returned, or what a golden or hidden test says. Some come by name:

    unordered   the same members in any order: of a list or tuple, or of a set
    close       the same value, numbers within a millionth, relative or absolute
    any-of      one of the reference's members: the reference returns the list of all right answers

Nothing runs here: `judging/checking.py` runs checkers in the sandbox.
"""

from __future__ import annotations

import ast

from codea1_env.reading.parsing import parse, parses

CHECK = "check"
BUNDLED = {
    "unordered": """def check(arguments, returned, reference):
    sequences = (list, tuple, set, frozenset)
    if not isinstance(returned, sequences) or not isinstance(reference, sequences):
        return returned == reference
    if len(returned) != len(reference):
        return False
    left = list(reference)
    for item in sorted(returned, key=repr):
        if item not in left:
            return False
        left.remove(item)
    return True
""",
    "close": """import math


def check(arguments, returned, reference):
    numbers = (int, float)
    if isinstance(returned, numbers) and isinstance(reference, numbers):
        return returned == reference or math.isclose(returned, reference, rel_tol=1e-6, abs_tol=1e-6)
    if type(returned) is not type(reference):
        return False
    if isinstance(reference, (list, tuple)):
        pairs = zip(returned, reference)
        return len(returned) == len(reference) and all(check(arguments, one, other) for one, other in pairs)
    if isinstance(reference, dict):
        same_keys = returned.keys() == reference.keys()
        return same_keys and all(check(arguments, returned[key], reference[key]) for key in reference)
    return returned == reference
""",
    "any-of": """def check(arguments, returned, reference):
    return any(type(returned) is type(each) and returned == each for each in reference)
""",
}


def checker_source(checker: str) -> str:
    """The program: of a bundled checker, or as given."""
    return BUNDLED.get(checker, checker)


def is_checker(checker: str) -> bool:
    """Whether the text is a bundled checker's name or a program that defines `check` with three parameters."""
    if checker in BUNDLED or not parses(checker):
        return checker in BUNDLED
    definitions = [node for node in parse(checker).body if isinstance(node, ast.FunctionDef) and node.name == CHECK]
    return len(definitions) == 1 and len([*definitions[0].args.posonlyargs, *definitions[0].args.args]) == 3
