"""HumanEval+ and MBPP+ (EvalPlus), for evaluation: rows of the hub's data sets, and EvalPlus' own files as its cache
holds them.

HumanEval+ has 164 questions with some 750 tests each, which become hidden tests. A reference is a body only: the prompt
goes before it. Fields are called as on the hub (`prompt`, `canonical_solution`) or `question`, `reference_body`. One
question, HumanEval/32, has many right answers: a checker puts them into its polynomial, as the set's own test does.

MBPP+ has 378 questions. The three asserts of MBPP become golden tests, EvalPlus' many hidden ones. A row names no entry
point: it is the function of the reference that the asserts call; its signature becomes the starter code.

A row of EvalPlus' own files has `task_id`, `prompt`, `entry_point`, `canonical_solution`, `base_input`, `plus_input`
and `atol`. The inputs of the original questions become golden tests and those that EvalPlus adds hidden ones; the
reference is run for their values (`judging/problems/importing.py`). `contract`, which says what inputs are allowed, and
`assertion` are not needed for that. The file is JSON, which has no tuples, sets and complex numbers: which arguments of
MBPP+ are such is known by the question's number. Where EvalPlus compares otherwise than by equality, a checker does as
it does. Three questions of MBPP+ return match objects, which are no data: their tests are left out.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from codea1_env.problems.check_functions import Extracted, LeftOut, extract
from codea1_env.problems.sources.draft import (
    Draft,
    ParsedProgram,
    Row,
    RowError,
    RowFields,
    Source,
    called_names,
    shown,
)
from codea1_env.reading.literals import NotLiteral, value_source
from codea1_env.reading.parsing import parses, source_of
from codea1_env.reading.test_case import TestCase

FLOATS = 1e-6
"""What EvalPlus grants a float where `atol` says nothing."""
_Arguments = list[Any]


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _items(value: Any) -> Any:
    return list(map(_tuple, value)) if isinstance(value, list) else value


def _all(value: Any) -> Any:
    return tuple(map(_all, value)) if isinstance(value, list) else value


def _set(value: Any) -> Any:
    return (set(value) if value else {}) if isinstance(value, list) else value


def _each(change: Callable[[Any], Any]) -> Callable[[_Arguments], _Arguments]:
    return lambda given: list(map(change, given))


def _first(change: Callable[[Any], Any], *rest: Callable[[Any], Any]) -> Callable[[_Arguments], _Arguments]:
    """Of the first arguments, each by its own; the others stay."""

    def changed(given: _Arguments) -> _Arguments:
        head = [how(value) for how, value in zip((change, *rest), given, strict=False)]
        return [*head, *given[len(head) :]]

    return changed


_RESTORED: Mapping[Callable[[_Arguments], _Arguments], Sequence[int]] = {
    _each(_tuple): (
        2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630, 726, 740, 744, 809,
    ),
    _each(_items): (63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780),
    _each(lambda value: _tuple(_items(value))): (259, 278, 401, 445),
    _each(_all): (580, 615, 791),
    _first(_items): (75, 413, 444, 753),
    _first(_tuple): (250, 307, 405, 446, 617, 720, 763, 808),
    _first(lambda value: value, _tuple): (106, 750),
    _first(lambda value: list(map(_set, value))): (115,),
    _first(lambda value: {key: _tuple(each) for key, each in value.items()}): (722,),
    _first(float, complex): (124,),
    _first(complex): (252,),
}  # fmt: skip
"""How the arguments of questions of MBPP+ are what they were before they were written as JSON, by their numbers."""
_HOW = {number: how for how, numbers in _RESTORED.items() for number in numbers}

_SAME_MEMBERS = """def check(arguments, returned, reference):
    return set(returned) == set(reference)
"""
MBPP_CHECKERS: Mapping[str, str] = {
    **dict.fromkeys(
        ("similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly", "larg_nnum",
         "intersection_array", "find_dissimilar", "Diff"), _SAME_MEMBERS,
    ),
    "are_equivalent": "def check(arguments, returned, reference):\n    return True\n",
    "sum_div": "def check(arguments, returned, reference):\n    return returned == reference or returned == 0\n",
    "surface_Area": """def check(arguments, returned, reference):
    base, height = arguments
    upright = base**2 + 2 * base * ((base / 2) ** 2 + height**2) ** 0.5
    return returned == reference or returned == round(upright)
""",
    "digit_distance_nums": """def check(arguments, returned, reference):
    first, second = map(str, arguments)
    width = max(len(first), len(second))
    pairs = zip(first.zfill(width), second.zfill(width))
    return returned == reference or returned == sum(abs(int(one) - int(other)) for one, other in pairs)
""",
}  # fmt: skip
"""Of MBPP+ by entry point: what EvalPlus takes for right beside the reference's value."""


def is_file_row(row: Row) -> bool:
    """Whether a row is of EvalPlus' own file and not of the hub's data set."""
    return "base_input" in row and "plus_input" in row


def require_script(row: RowFields) -> None:
    """Raise RowError for a row of EvalPlus' own file."""
    if is_file_row(row):
        raise RowError(
            "a row must have a script to be judged by one, got inputs alone, as EvalPlus' own file has them; take the "
            "rows of the hub's data set, or --judge sealed"
        )


def read_file_row(row: RowFields, source: Source, checkers: Mapping[str, str]) -> Draft:
    """A row of either file. `checkers`: by entry point. Raises RowError."""
    prompt, code, entry_point = row.text("prompt"), row.text("canonical_solution"), row.text("entry_point")
    is_whole = parses(code) and entry_point in ParsedProgram(code).functions
    program = ParsedProgram(code if is_whole else prompt + code, "prompt and solution together")
    program.require(entry_point)
    granted = row.get("atol") or 0.0
    if isinstance(granted, bool) or not isinstance(granted, int | float) or not 0 <= granted < 1:
        raise RowError(f"atol must be in [0, 1), got {shown(granted)!r}")
    task_id = row.text("task_id")
    number = task_id.rpartition("/")[2]
    restored = _HOW.get(int(number)) if source.name == "mbppplus" and number.isdecimal() else None
    scripts: list[Extracted] = []
    for name in ("base_input", "plus_input"):
        calls, left_out = _calls(row, name, entry_point, restored)
        known = set(scripts[0].unvalued) if scripts else set()
        scripts.append(
            Extracted(
                unvalued=[call for call in calls if call not in known],
                reference=program.source,
                reference_name=entry_point,
                reference_tolerance=float(granted) or FLOATS,
                are_golden=name == "base_input",
                left_out=left_out,
            )
        )
    return source.draft(
        program,
        golden=scripts[0],
        hidden=scripts[1],
        problem_id=task_id,
        question=prompt.strip().removeprefix('"""').removesuffix('"""').strip() + "\n" if is_whole else prompt,
        entry_point=entry_point,
        starter_code=program.starter(entry_point) if is_whole else "",
        checker=checkers.get(entry_point, ""),
    )


def _calls(
    row: Row, name: str, entry_point: str, restored: Callable[[_Arguments], _Arguments] | None
) -> tuple[list[str], list[LeftOut]]:
    """Each input once, as a call, and those that are none. Raises RowError."""
    inputs = row.get(name) or []
    if not isinstance(inputs, list) or not all(isinstance(each, list) for each in inputs):
        raise RowError(f"{name} must be a list of lists of arguments, got {shown(inputs)!r}")
    calls: dict[str, None] = {}
    left_out = []
    for given in inputs:
        try:
            arguments = restored(given) if restored else given
            calls[f"{entry_point}({', '.join(map(value_source, arguments))})"] = None
        except (NotLiteral, TypeError, ValueError, OverflowError, AttributeError) as error:
            left_out.append(LeftOut(shown(given), f"{name}: {error}"))
    return list(calls), left_out


HUMANEVAL_CHECKERS = {
    "find_zero": """def check(arguments, returned, reference):
    (coefficients,) = arguments
    if isinstance(returned, bool) or not isinstance(returned, (int, float)):
        return False
    return abs(sum(factor * returned**power for power, factor in enumerate(coefficients))) <= 1e-4
"""
}


def _listed(script: str, entry_point: str) -> Extracted:
    """The inputs and results that a check lists, whatever it does with them."""
    extracted = Extracted()
    lists = {
        node.targets[0].id: node.value.elts
        for node in ast.walk(ParsedProgram(script, "the tests").module)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.List)
    }
    for given, value in zip(lists.get("inputs", []), lists.get("results", []), strict=False):
        if isinstance(given, ast.List):
            arguments = ", ".join(map(source_of, given.elts))
            extracted.tests.append(TestCase(f"{entry_point}({arguments})", source_of(value)))
    extracted.tests = list(dict.fromkeys(extracted.tests))
    return extracted


def _read_humaneval(row: RowFields, source: Source) -> Draft:
    if is_file_row(row):
        return read_file_row(row, source, HUMANEVAL_CHECKERS)
    prompt, body = row.text("prompt", "question"), row.text("canonical_solution", "reference_body")
    entry_point = row.text("entry_point")
    program = ParsedProgram(prompt + body, "prompt and solution together")
    program.require(entry_point)
    checker = HUMANEVAL_CHECKERS.get(entry_point, "")
    extracted = _listed(row.text("test"), entry_point) if checker else extract(row.text("test"), entry_point)
    return source.draft(
        program,
        hidden=extracted,
        problem_id=row.text("task_id"),
        question=prompt,
        entry_point=entry_point,
        checker=checker,
    )


def script_of(row: RowFields) -> str:
    """The row's check, called. Raises RowError."""
    require_script(row)
    return f"{row.text('test')}\n\ncheck({row.text('entry_point')})\n"


HUMANEVALPLUS = Source(
    "humanevalplus",
    "evalplus/humanevalplus",
    "test",
    "Apache-2.0",
    _read_humaneval,
    is_for_evaluation=True,
    script_of=script_of,
)


def _read_mbpp(row: RowFields, source: Source) -> Draft:
    if is_file_row(row):
        return read_file_row(row, source, MBPP_CHECKERS)
    program = ParsedProgram(row.text("code", "canonical_solution"))
    asserts = row.texts("test_list")
    entry_point = entry_point_of(program, asserts)
    imports = dict.fromkeys([*row.texts("test_imports"), *program.imports.splitlines()])
    return source.draft(
        program,
        golden=extract("\n".join(asserts), entry_point),
        hidden=extract(row.text("test"), entry_point),
        problem_id=problem_id_of(row),
        question=row.text("prompt", "text"),
        entry_point=entry_point,
        starter_code=program.starter(entry_point),
        imports="\n".join(line for line in imports if line),
    )


def entry_point_of(program: ParsedProgram, asserts: list[str]) -> str:
    """The top-level function that most asserts call, the last of them where it is a draw."""
    functions = list(program.functions)
    called = called_names(asserts)
    if not any(name in called for name in functions):
        got = f"calls of {', '.join(dict.fromkeys(called))}"[:200] if called else "no assert with a call"
        raise RowError(
            f"the tests must have asserts that call a function of the solution, which has "
            f"{', '.join(functions) or 'none'}, got {got}"
        )
    return max(reversed(functions), key=called.count)


def problem_id_of(row: RowFields) -> str:
    name = row.get("task_id")
    if isinstance(name, int) and not isinstance(name, bool):
        return f"Mbpp/{name}"
    name = row.text("task_id")
    return f"Mbpp/{name}" if name.isdecimal() else name


def _mbpp_script_of(row: RowFields) -> str:
    require_script(row)
    return "\n".join([*row.texts("test_imports"), *row.texts("test_list"), row.text("test")])


MBPPPLUS = Source(
    "mbppplus", "evalplus/mbppplus", "test", "Apache-2.0", _read_mbpp, is_for_evaluation=True, script_of=_mbpp_script_of
)
