"""The training questions that Code-A1's authors released: 9,688 hard ones of KodCode-V1, in a file beside their code.

The file is `Code-A1/code/rl/train_data/kodcode_hard_dual_model_training_data_mix.parquet` of
github.com/ZJU-REAL/Code-A1. Of a row their code reads `clean_description`, which is the question that the tester is
shown, `GT_code`, `GT_test`, a list of scripts that run one after the other, and `extra_info` with the question's id.
Where that has the function's name and imports, too, they count. `GT_test` becomes golden tests. The licence is
KodCode's.

Does not read `prompt`, the coder's whole chat: what players are asked is a design's (`players/designs/`).
"""

from __future__ import annotations

from collections.abc import Mapping

from codea1_env.problems.check_functions import extract
from codea1_env.problems.sources.draft import (
    Draft,
    Row,
    RowError,
    Source,
    imports_of,
    require_function,
    said,
    shown,
    spelt,
    starter_of,
    text,
    texts_of,
    tree_of,
)
from codea1_env.problems.sources.mbppplus import entry_point_of
from codea1_env.reading.parsing import unindented

_TRAINING = "kodcode_light"
"""What `data_source` says of training questions; the rows of the validation file are named after their benchmark."""


def _read_row(row: Row, source: Source) -> Draft:
    kind = row.get("data_source", _TRAINING)
    if kind != _TRAINING:
        raise RowError(f"data_source must be {_TRAINING}, got {shown(kind)!r}: its benchmark has a reader of its own")
    about = spelt(row.get("extra_info"))
    if not isinstance(about, Mapping):
        raise RowError(f"extra_info must be a record with question_id, got {shown(about)!r}")
    code, scripts = text(row, "GT_code"), texts_of(row, "GT_test")
    module = tree_of(code, "GT_code")
    entry_point = said(about, "function_name") or entry_point_of(module, scripts)
    require_function(module, entry_point, "GT_code")
    imports = dict.fromkeys([*said(about, "imports").splitlines(), *imports_of(module).splitlines()])
    return source.draft(
        module,
        golden=extract(_script_of(row), entry_point),
        problem_id=text(about, "question_id"),
        question=text(row, "clean_description"),
        entry_point=entry_point,
        reference_solution=code,
        starter_code=starter_of(module, entry_point),
        imports="\n".join(line for line in imports if line),
        difficulty="hard",
    )


def _script_of(row: Row) -> str:
    return "\n".join(map(unindented, texts_of(row, "GT_test")))


CODE_A1 = Source("codea1", "ZJU-REAL/Code-A1", "", "CC-BY-NC-4.0", _read_row, script_of=_script_of)
