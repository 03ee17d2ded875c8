"""KodCode-V1: synthetic questions with a solution and pytest tests, for training; and the 9,688 hard ones of them that
Code-A1's authors released. The tests become golden tests. The licence forbids commercial use.

Revisions of KodCode differ: the tests are `test`, earlier `test_code`; the function is in `test_info`, earlier in
`test_entry_point`; the id is `question_id`, earlier `conversation_id`.

The released file is `Code-A1/code/rl/train_data/kodcode_hard_dual_model_training_data_mix.parquet` of
github.com/ZJU-REAL/Code-A1. Of a row their code reads `clean_description`, which is the question that the tester is
shown, `GT_code`, `GT_test`, a list of scripts that run one after the other, and `extra_info` with the question's id.
Where that has the function's name and imports, too, they count. `prompt`, the coder's whole chat, is not read: what
players are asked is a design's (`players/designs/`).
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Mapping

from codea1_env.problems.check_functions import extract
from codea1_env.problems.sources.draft import Draft, ParsedProgram, RowError, RowFields, Source, shown, spelt
from codea1_env.problems.sources.evalplus import entry_point_of
from codea1_env.reading.parsing import parse, parses, unindented


def _read_row(row: RowFields, source: Source) -> Draft:
    program, test = ParsedProgram(row.text("solution")), row.text("test", "test_code")
    entry_point = _entry_point(row, program, test)
    return source.draft(
        program,
        golden=extract(test, entry_point),
        problem_id=row.text("question_id", "conversation_id"),
        question=row.text("question"),
        entry_point=entry_point,
        difficulty=row.said("gpt_difficulty"),
    )


def _entry_point(row: RowFields, program: ParsedProgram, test: str) -> str:
    """The function that the row names; else the one that the test imports, or calls most often."""
    functions = program.functions
    nodes = list(ast.walk(parse(test))) if parses(test) else []
    named = [*_named(row.get("test_info")), *_named(row.get("test_entry_point"))]
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "solution"]
    named += [alias.name for node in imports for alias in node.names]
    for name in named:
        if name in functions:
            return name
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    called = Counter(each.id for each in calls if isinstance(each, ast.Name))
    methods = [each for each in calls if isinstance(each, ast.Attribute)]
    called.update(each.attr for each in methods if getattr(each.value, "id", "") == "solution")
    if any(called[name] for name in functions):
        return max(reversed(functions), key=called.__getitem__)
    raise RowError(
        f"the tests must call a top-level function of the solution, got tests of {', '.join(named) or 'none'} "
        f"and a solution with {', '.join(functions) or 'no function'}"
    )


def _named(value: object) -> list[str]:
    """Function names in `test_info`: a list of records, the same as columns, as JSON text, or a plain name."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = [value]  # a plain name, no JSON
    if isinstance(value, Mapping):
        value = value.get("function_name")
        value = value if isinstance(value, list) else [value]
    if not isinstance(value, list):
        return []
    names = [each.get("function_name") if isinstance(each, Mapping) else each for each in value]
    return [name.strip() for name in names if isinstance(name, str)]


def _script_of(row: RowFields) -> str:
    return row.text("test", "test_code")


KODCODE = Source("kodcode-v1", "KodCode/KodCode-V1", "train", "CC-BY-NC-4.0", _read_row, script_of=_script_of)


_TRAINING = "kodcode_light"
"""What `data_source` says of training questions; the rows of the validation file are named after their benchmark."""


def _read_released(row: RowFields, source: Source) -> Draft:
    kind = row.get("data_source", _TRAINING)
    if kind != _TRAINING:
        raise RowError(f"data_source must be {_TRAINING}, got {shown(kind)!r}: its benchmark has a reader of its own")
    info = spelt(row.get("extra_info"))
    if not isinstance(info, Mapping):
        raise RowError(f"extra_info must be a record with question_id, got {shown(info)!r}")
    about, program, scripts = RowFields(info), ParsedProgram(row.text("GT_code"), "GT_code"), row.texts("GT_test")
    entry_point = about.said("function_name") or entry_point_of(program, scripts)
    program.require(entry_point)
    imports = dict.fromkeys([*about.said("imports").splitlines(), *program.imports.splitlines()])
    return source.draft(
        program,
        golden=extract(_released_script_of(row), entry_point),
        problem_id=about.text("question_id"),
        question=row.text("clean_description"),
        entry_point=entry_point,
        starter_code=program.starter(entry_point),
        imports="\n".join(line for line in imports if line),
        difficulty="hard",
    )


def _released_script_of(row: RowFields) -> str:
    return "\n".join(map(unindented, row.texts("GT_test")))


CODE_A1 = Source("codea1", "ZJU-REAL/Code-A1", "", "CC-BY-NC-4.0", _read_released, script_of=_released_script_of)
