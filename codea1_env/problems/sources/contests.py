"""APPS, TACO, CodeContests, LiveCodeBench: contest questions, about a function or a whole program (`pairs.py`).

`Source.programs_as` says what whole programs come in as. The sets' fields hold JSON in texts, and where that fails,
Python's spelling of the same; LiveCodeBench packs its private tests into a pickle, which is read without being
unpickled. LiveCodeBench has no reference solutions: its problems are kept as they are, nobody has checked their tests,
and games about them need an oracle that is no reference.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import pickletools
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from codea1_env.problems.check_functions import Extracted, LeftOut
from codea1_env.problems.sources.draft import (
    CUSTOMARY_IMPORTS,
    Draft,
    ParsedProgram,
    RowError,
    RowFields,
    Source,
    json_value,
    plain_value,
    shown,
)
from codea1_env.problems.sources.pairs import (
    ENTRY_POINT,
    PROGRAM,
    STARTER_CODE,
    TUPLE_AS_LIST,
    TUPLES_AS_LISTS,
    call_tests,
    checker_for,
    functional_tests,
    method_as_function,
    program_as_function,
    question_about_text,
    require_some,
    starter_of_method,
    text_tests,
    with_whole_keys,
)
from codea1_env.reading.parsing import parses

MAX_UNPACKED = 1 << 28
"""Bytes of LiveCodeBench's private tests, unpacked."""
MAX_HIDDEN = 64
"""Of CodeContests' private and generated tests, of which there are hundreds."""
_PYTHON_3 = 3  # CodeContests' number for the language
# How the sets' own graders compare what programs print (docs/your-problems.md). numpy's `allclose`:
_ALLCLOSE = {"checker": "tokens", "compare": {"float": {"relative": 1e-5, "absolute": 1e-8}}}
_COMPARED: Mapping[str, Mapping[str, Any]] = {
    "apps": _ALLCLOSE,
    "taco": _ALLCLOSE,
    "code_contests": {"checker": "tokens", "compare": {"float": {"absolute": 1e-5}}},
    "livecodebench": {"checker": "decimals"},
}


def _read_apps(row: RowFields, source: Source) -> Draft:
    """APPS and TACO: `input_output` names a function (`fn_name`) or holds standard inputs and outputs."""
    cases = _plain(row, "input_output")
    solutions = _plain(row, "solutions")
    if not isinstance(cases, Mapping) or not isinstance(solutions, list):
        raise RowError("a row must have inputs, outputs and solutions, got none")
    inputs, outputs = _list(cases, "inputs"), _list(cases, "outputs")
    name = cases.get("fn_name")
    question = row.text("question")
    common: dict[str, Any] = {"problem_id": _name_of(row, source), "difficulty": row.said("difficulty")}
    solution = ParsedProgram(_first_python(solutions))
    if isinstance(name, str) and name:
        are_wrapped = all(isinstance(value, list) and len(value) == 1 for value in outputs)
        values = [with_whole_keys(value[0] if are_wrapped else value) for value in outputs]
        given = [[with_whole_keys(each[0])] if isinstance(each, list) and len(each) == 1 else each for each in inputs]
        calls = call_tests(name, given, values)
        require_some(calls)
        return source.draft(
            solution,
            golden=calls,
            question=question,
            entry_point=name,
            reference_solution=method_as_function(solution, name),
            starter_code=starter_of_method(str(row.get("starter_code") or ""), name),
            imports="\n".join(filter(None, [CUSTOMARY_IMPORTS, solution.imports])),
            checker=checker_for(calls.tests, TUPLES_AS_LISTS if are_wrapped else TUPLE_AS_LIST),
            **common,
        )
    texts = text_tests(_called(source), inputs, outputs)
    require_some(texts)
    return _about_program(source, question, solution, golden=texts, **common)


def _read_code_contests(row: RowFields, source: Source) -> Draft:
    """Public tests become golden tests; the first private and generated ones hidden tests."""
    solutions = row.get("solutions")
    if not isinstance(solutions, Mapping):
        raise RowError("solutions must be a record of language and solution, got none")
    languages, programs = _list(solutions, "language"), _list(solutions, "solution")
    python = [program for language, program in zip(languages, programs, strict=False) if language == _PYTHON_3]
    public, *others = [
        text_tests(_called(source), *_pairs(row, name)) for name in ("public_tests", "private_tests", "generated_tests")
    ]
    require_some(public, *others)
    hidden = list(dict.fromkeys(case for each in others for case in each.tests if case not in public.tests))
    left_out = [left for each in others for left in each.left_out]
    left_out += [LeftOut("", f"more than {MAX_HIDDEN} private and generated tests")] * (len(hidden) - MAX_HIDDEN)
    difficulty = row.get("difficulty")
    return _about_program(
        source,
        row.text("description"),
        ParsedProgram(_first_python(python)),
        golden=public,
        hidden=Extracted(hidden[:MAX_HIDDEN], left_out=left_out),
        problem_id=row.text("name"),
        difficulty=str(difficulty) if difficulty not in (None, 0) else "",
    )


def _read_live_code_bench(row: RowFields, source: Source) -> Draft:
    """No reference. `metadata` names the function where the tests are functional."""
    metadata = _plain(row, "metadata") if row.get("metadata") else {}
    name = metadata.get("func_name") if isinstance(metadata, Mapping) else None
    starter = str(row.get("starter_code") or "")
    public = _records(_plain(row, "public_test_cases"))
    private = _records(_private_tests(row.text("private_test_cases")))
    question, written = row.text("question_content"), []
    for records in (public, private):
        inputs, outputs = [each.get("input") for each in records], [each.get("output") for each in records]
        written.append(
            functional_tests(str(name), inputs, outputs) if name else text_tests(_called(source), inputs, outputs)
        )
    require_some(*written)
    golden, hidden = written
    common: dict[str, Any] = {
        "golden": golden,
        "hidden": hidden,
        "problem_id": row.text("question_id"),
        "hidden_tests": tuple(case for case in hidden.tests if case not in golden.tests),
        "difficulty": row.said("difficulty"),
    }
    if not name:
        return _about_program(source, question, None, **common)
    return source.draft(
        question=question,
        entry_point=str(name),
        starter_code=starter_of_method(starter, str(name)),
        imports=CUSTOMARY_IMPORTS,
        checker=checker_for((*golden.tests, *hidden.tests), TUPLE_AS_LIST),
        **common,
    )


def _called(source: Source) -> str:
    """What tests of whole programs call."""
    return PROGRAM if source.programs_as == "program" else ENTRY_POINT


def _about_program(source: Source, question: str, solution: ParsedProgram | None, **fields: Any) -> Draft:
    if source.programs_as == "program":
        fields |= {"question": question, "kind": "program", "reference_solution": solution and solution.source}
    else:
        function = solution and program_as_function(solution.source)
        fields |= {"question": question_about_text(question), "reference_solution": function}
        fields["starter_code"] = STARTER_CODE
    programs = [solution] if solution else []
    return source.draft(*programs, imports="", entry_point=_called(source), **fields, **_COMPARED[source.name])


def _private_tests(packed: str) -> object:
    """JSON as it is, or packed: base64, zlib, and a pickle of one text."""
    with contextlib.suppress(ValueError, RecursionError):
        return json_value(packed)
    try:
        unpacking = zlib.decompressobj()
        pickled = unpacking.decompress(base64.b64decode(packed, validate=True), MAX_UNPACKED)
        if unpacking.unconsumed_tail:
            raise RowError(f"private_test_cases must unpack to at most {MAX_UNPACKED} bytes, got more")
        return json_value(_pickled_text(pickled))
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        raise RowError(f"private_test_cases must be JSON, plain or packed, got: {error}") from None


def _pickled_text(pickled: bytes) -> str:
    """The one text in a pickle. A pickle is a program: this reads its instructions and runs none."""
    texts = []
    for instruction, argument, _ in pickletools.genops(pickled):
        if instruction.name in ("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"):
            texts.append(str(argument))
        elif instruction.name not in ("PROTO", "FRAME", "PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE", "STOP"):
            raise RowError(f"a pickle must hold one text, got the instruction {instruction.name}")
    if len(texts) != 1:
        raise RowError(f"a pickle must hold one text, got {len(texts)}")
    return texts[0]


def _plain(row: RowFields, name: str) -> Any:
    """A field that holds JSON or Python literals as text, or the plain value itself."""
    value = row.get(name)
    if not isinstance(value, str):
        return value
    if not value.strip():
        raise RowError(f"{name} must hold JSON, got an empty text")
    try:
        return plain_value(value)
    except ValueError as error:
        raise RowError(f"{name} must hold JSON or Python literals, got {error}") from None


def _list(record: Mapping[str, Any], name: str) -> list[Any]:
    values = record.get(name)
    if not isinstance(values, list):
        raise RowError(f"{name} must be a list, got {shown(values)!r}")
    return values


def _pairs(row: RowFields, name: str) -> tuple[list[Any], list[Any]]:
    record = row.get(name)
    if record is None:
        return [], []
    if not isinstance(record, Mapping):
        raise RowError(f"{name} must be a record of input and output, got {shown(record)!r}")
    return _list(record, "input"), _list(record, "output")


def _records(value: object) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
        raise RowError(f"tests must be a list of records, got {shown(value)!r}")
    return value


def _first_python(solutions: Sequence[object]) -> str:
    """The first solution that is Python 3: older sets hold Python 2 as well."""
    for solution in solutions:
        if isinstance(solution, str) and solution.strip() and parses(solution):
            return solution
    raise RowError(f"one of the solutions must be Python 3, got {len(solutions)} that are not")


def _name_of(row: RowFields, source: Source) -> str:
    """APPS numbers its problems; TACO names some, by their address on the judge's site."""
    for name in ("problem_id", "id", "url", "name"):
        value = row.get(name)
        if isinstance(value, int | str) and not isinstance(value, bool) and value != "":
            return f"{source.name}/{value}"
    raise RowError("a row must have problem_id, id, url or name, got none of them")


APPS = Source("apps", "codeparrot/apps", "train", "MIT", _read_apps, programs_as="function")
TACO = Source("taco", "BAAI/TACO", "train", "Apache-2.0", _read_apps, programs_as="function")
CODE_CONTESTS = Source(
    "code_contests", "deepmind/code_contests", "train", "CC-BY-4.0", _read_code_contests, programs_as="function"
)
LIVE_CODE_BENCH = Source(
    "livecodebench",
    "livecodebench/code_generation_lite",
    "test",
    "CC (see the set's page)",
    _read_live_code_bench,
    True,
    programs_as="function",
)
