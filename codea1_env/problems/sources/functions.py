"""HumanEval, MBPP, UnLeakedTestBench, BigCodeBench: questions about one function, with tests as scripts.

UnLeakedTestBench is for testers: its functions have many branches, and they are the oracle. Most of the tests that come
with them state other values than the functions return (887 of the 1,000 in its small edition); these get the functions'
values, and are reported. BigCodeBench's tests are unittest classes whose asserts are read like others; most of its
functions need libraries that the sandbox does not have: what does not load is reported as unusable. Its older revisions
call `complete_prompt` and `instruct_prompt` `prompt` and `instruction`.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json

from codea1_env.problems.check_functions import Extracted, LeftOut, extract
from codea1_env.problems.problem import Problem
from codea1_env.problems.sources.draft import (
    Draft,
    Listed,
    ParsedProgram,
    RowError,
    RowFields,
    Source,
    is_generator,
    shown,
    spelt,
)
from codea1_env.problems.sources.evalplus import HUMANEVALPLUS, entry_point_of, problem_id_of, script_of
from codea1_env.reading.parsing import names_in, source_of, unindented
from codea1_env.reading.test_case import TestCase


def _read_mbpp(row: RowFields, source: Source) -> Draft:
    """`full` and `sanitized` revisions: `text` or `prompt`, `test_setup_code` or `test_imports`, challenge tests.

    Also mxeval's form, in which the prompt is a signature with a docstring, the solution a body, and the tests a check.
    """
    if "canonical_solution" in row and "code" not in row:
        return _read_mxeval(row, source)
    program = ParsedProgram(row.text("code"))
    asserts = row.texts("test_list")
    entry_point = entry_point_of(program, asserts)
    setup = [*row.texts("test_imports"), *str(row.get("test_setup_code") or "").splitlines()]
    golden = extract("\n".join([*setup, *asserts]), entry_point)
    hidden = extract("\n".join([*setup, *row.texts("challenge_test_list")]), entry_point)
    return source.draft(
        program,
        golden=golden,
        hidden=hidden,
        problem_id=problem_id_of(row),
        question=row.text("prompt", "text"),
        entry_point=entry_point,
        hidden_tests=tuple(case for case in hidden.tests if case not in golden.tests),
        starter_code=program.starter(entry_point),
    )


def _read_mxeval(row: RowFields, source: Source) -> Draft:
    draft = HUMANEVALPLUS.read_row(row, source)
    number = problem_id_of(row).rpartition("/")[2]
    golden, hidden = draft.problem.hidden_tests, ()
    problem = dataclasses.replace(draft.problem, problem_id=f"Mbpp/{number}", golden_tests=golden, hidden_tests=hidden)
    return dataclasses.replace(draft, problem=problem)


# What UnLeakedTestBench's own harness imports before each function: many functions count on it. pandas is not here.
_HARNESS = {name: f"import {name}" for name in "os re math random string warnings datetime traceback numpy".split()}
_HARNESS |= {"np": "import numpy as np"}
_HARNESS |= {
    name: f"from typing import {name}"
    for name in "List Dict Any Optional Union Tuple Set FrozenSet Sequence Iterable Generator Callable".split()
}


def _read_unleaked(row: RowFields, source: Source) -> Draft:
    program, entry_point = ParsedProgram(row.text("code"), "the code"), row.text("func_name")
    program.require(entry_point)
    is_listed = is_generator(program.functions[entry_point])
    used = {*names_in(program.module)}
    assumed = ParsedProgram("\n".join(line for name, line in _HARNESS.items() if name in used))
    draft = source.draft(
        assumed,
        program,
        golden=extract("\n".join(row.texts("test_list")), entry_point, Listed(entry_point) if is_listed else None),
        problem_id=f"UnLeakedTestBench/{row.get('task_id', entry_point)}",
        question=str(row.get("prompt") or f"Write {entry_point}({program.arguments(entry_point)})."),
        entry_point=entry_point,
        kind="generator" if is_listed else "function",
        starter_code=program.starter(entry_point),
        imports="\n".join(filter(None, [assumed.imports, program.imports])),
    )
    return dataclasses.replace(draft, are_tests_trusted=False)


_COMPLETE = ("complete_prompt", "prompt", "code_prompt")
"""Signature and docstring of BigCodeBench's questions; also in its older field names."""
_INSTRUCT = ("instruct_prompt", "instruction")
"""The same in words."""


def _read_big_code_bench(row: RowFields, source: Source, question: tuple[str, ...] = _COMPLETE) -> Draft:
    entry_point = row.text("entry_point")
    program = ParsedProgram(row.text(*_COMPLETE) + row.text("canonical_solution"), "prompt and solution together")
    program.require(entry_point)
    names = [getattr(node, "name", "") for node in program.module.body]
    # What stands before the function, imports and constants, stands before every solution, as in its own evaluation.
    before = program.module.body[: names.index(entry_point)]
    return source.draft(
        program,
        hidden=extract(row.text("test"), entry_point),
        problem_id=row.text("task_id"),
        question=row.text(*question),
        entry_point=entry_point,
        imports="\n".join(map(source_of, before)),
        time_limit_s=60.0,
        memory_mb=8192,
    )


def _asserts_of(row: RowFields) -> str:
    """MBPP's asserts behind what they set up; of mxeval's form its check."""
    if "test_list" not in row:
        return script_of(row)
    setup = [*row.texts("test_imports"), str(row.get("test_setup_code") or "")]
    return "\n".join([*setup, *row.texts("test_list"), *row.texts("challenge_test_list")])


FIELDS = (
    "question", "entry_point", "reference_solution", "tests", "golden_tests", "mutants", "problem_id", "difficulty"
)  # fmt: skip
"""What a row of any file may say, for `generic_source`."""
NAMED_FIELDS = (
    "kind",
    "checker",
    "raises",
    "starter_code",
    "imports",
    "tolerance",
    "compare",
    "time_limit_s",
    "memory_mb",
    "suite_size",
)
"""Likewise, but only where `fields` names them: elsewhere these words mean other things."""


def generic_source(fields: dict[str, str], licence: str) -> Source:
    """Any rows: `fields` says which field of a row holds what a problem needs.

    Its keys are `FIELDS` and `NAMED_FIELDS`; `tests` is a script or a list of asserts, `golden_tests` pairs of a call
    and its value. What of `FIELDS` it does not name is looked for under its own name; the entry point may be missing
    where the tests call one function, and a missing id is derived from question and reference.
    """
    named_fields = {key: fields[key] for key in NAMED_FIELDS if key in fields}

    def read_row(row: RowFields, source: Source) -> Draft:
        def named(key: str) -> str:
            return fields.get(key, key)

        program = ParsedProgram(row.text(named("reference_solution")))
        scripts = _scripts_of(row, named("tests"))
        pairs = _pairs_of(row, named("golden_tests"))
        scripts += [f"assert ({case.call}) == ({case.expected})" for case in pairs.tests]
        entry_point = row.said(named("entry_point")) or entry_point_of(program, scripts)
        function = program.functions.get(entry_point)
        is_listed = function is not None and is_generator(function)
        script = "\n".join(map(unindented, scripts))
        chosen = {key: row[field] for key, field in named_fields.items() if row.get(field) is not None}
        question, problem_id = row.text(named("question")), row.get(named("problem_id"))
        draft = source.draft(
            program,
            golden=extract(script, entry_point, Listed(entry_point) if is_listed else None),
            problem_id=_derived_id(entry_point, question, program) if problem_id in (None, "") else str(problem_id),
            question=question,
            entry_point=entry_point,
            kind=chosen.get("kind", "generator" if is_listed else "function"),
            mutants=tuple(row.texts(named("mutants"))),
            difficulty=row.said(named("difficulty")),
        )
        problem = draft.problem
        if chosen:
            known = json.loads(problem.to_json())
            if "compare" in chosen:
                known.pop("tolerance", None)  # which is read from the tests: what the row says counts
            problem = Problem.from_dict(known | chosen)
        return dataclasses.replace(draft, problem=problem, left_out=(*pairs.left_out, *draft.left_out))

    def script_of(row: RowFields) -> str:
        return "\n".join(map(unindented, _scripts_of(row, fields.get("tests", "tests"))))

    return Source("rows", "(local rows)", "", licence, read_row, script_of=script_of)


def _scripts_of(row: RowFields, name: str) -> list[str]:
    """A script, or asserts one by one. Raises RowError."""
    tests = spelt(row.get(name))
    if isinstance(tests, dict) or (isinstance(tests, list) and not all(isinstance(each, str) for each in tests)):
        raise RowError(f"{name} must be a script or a list of asserts, got {shown(tests)!r}")
    return [tests] if isinstance(tests, str) else row.texts(name)


def _pairs_of(row: RowFields, name: str) -> Extracted:
    """Pairs of call and value as test cases. Raises RowError."""
    field = spelt(row.get(name))
    if field is None:
        return Extracted()
    must = f"{name} must be a list of pairs of texts [call, value]"
    if not isinstance(field, list | tuple):
        raise RowError(f"{must}, got {shown(field)!r}")
    tests, left_out = [], []
    for pair in field:
        match pair:
            case [str(call), str(value)]:
                tests.append(TestCase(call, value))
            case _:
                left_out.append(LeftOut(shown(pair), must))
    if left_out and not tests:
        raise RowError(f"{must}, got {shown(field)!r}")
    return Extracted(tests, left_out=left_out)


def _derived_id(entry_point: str, question: str, program: ParsedProgram) -> str:
    """The same for the same question and reference, wherever in a file they stand."""
    told = f"{question}\0{program.source}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(told, digest_size=5).hexdigest()
    return f"{entry_point}-{digest}"


HUMANEVAL = Source(
    "humaneval",
    "openai/openai_humaneval",
    "test",
    "MIT",
    HUMANEVALPLUS.read_row,
    is_for_evaluation=True,
    script_of=script_of,
)
MBPP = Source("mbpp", "google-research-datasets/mbpp", "train", "CC-BY-4.0", _read_mbpp, script_of=_asserts_of)
UNLEAKED = Source(
    "unleakedtestbench", "huangd1999/UnLeakedTestBench", "test", "Apache-2.0", _read_unleaked, is_for_evaluation=True
)
BIG_CODE_BENCH = Source(
    "bigcodebench",
    "bigcode/bigcodebench",
    "v0.1.4",
    "Apache-2.0",
    _read_big_code_bench,
    is_for_evaluation=True,
    script_of=lambda row: row.text("test"),
    has_scripts_only=True,
)
BIG_CODE_BENCH_INSTRUCT = dataclasses.replace(
    BIG_CODE_BENCH,
    name="bigcodebench-instruct",
    read_row=functools.partial(_read_big_code_bench, question=_INSTRUCT),
)
_HARD = (
    13, 15, 17, 19, 34, 37, 82, 89, 92, 93, 99, 100, 101, 108, 120, 123, 124, 129, 139, 147, 161, 162, 177, 184, 187,
    199, 208, 211, 214, 227, 239, 241, 267, 273, 274, 287, 302, 308, 310, 313, 324, 326, 341, 346, 360, 367, 368, 374,
    399, 401, 409, 417, 418, 424, 443, 445, 454, 458, 461, 477, 486, 492, 501, 502, 503, 509, 511, 513, 526, 528, 530,
    532, 553, 560, 567, 574, 579, 582, 583, 587, 590, 592, 593, 594, 618, 636, 637, 654, 655, 657, 678, 720, 723, 752,
    760, 763, 765, 771, 777, 785, 800, 826, 845, 854, 857, 865, 870, 879, 897, 906, 914, 915, 916, 917, 928, 942, 945,
    952, 955, 963, 964, 969, 971, 985, 988, 990, 998, 999, 1003, 1004, 1006, 1008, 1012, 1013, 1015, 1019, 1020, 1022,
    1039, 1040, 1042, 1053, 1057, 1077, 1085, 1124, 1129, 1137,
)  # fmt: skip
BIG_CODE_BENCH_HARD = tuple(f"BigCodeBench/{number}" for number in _HARD)
"""The tasks of bigcode/bigcodebench-hard, by their ids in the full set."""
