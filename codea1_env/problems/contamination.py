"""Whether a training problem is also in an evaluation set: a shared run of 13 words, the same reference, or its id.

13 words is the customary length (Brown et al. 2020, arXiv 2005.14165, appendix C); a question shorter than that counts
where all of its words are the same. References are compared as syntax trees: the names of parameters and the body,
without its docstring, or a whole script; those of a few nodes are too common to tell anything. Does not find a question
that was told in other words.

`evaluation_marks.jsonl` has digests of HumanEval+ and of UnLeakedTestBench's small edition, a quarter of the runs of
each question (a shared passage has many), and MBPP+'s ids: no text of theirs.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from importlib import resources

from codea1_env.problems.kinds import METHOD
from codea1_env.problems.problem import Problem
from codea1_env.problems.sources.pairs import INSTRUCTION, wrapped_program
from codea1_env.reading.parsing import Unparsable, dump_of, parse

RUN = 13
"""Words."""
_DIGEST_BYTES = 6
GENERATED = "codea1 "
"""How the source of a procedural family's problem begins. Its questions share their wording by nature, so that only a
question that is the same as a whole counts."""
_KINDS = ("words", "reference")
_WORD = re.compile(r"\w+")


class Contamination:
    """What the evaluation problems are made of, to look others up in."""

    def __init__(self, evaluation: Iterable[Problem], *, known_sets: bool = False) -> None:
        """`evaluation`: the problems that must not be trained on. `known_sets`: nor the known sets."""
        self._found: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        for problem in evaluation:
            for mark in _marks(problem):
                self._found.setdefault(mark, f"the evaluation problem {problem.problem_id}")
        marks = resources.files("codea1_env.problems").joinpath("evaluation_marks.jsonl")
        for record in map(json.loads, marks.read_text("ascii").splitlines() if known_sets else ()):
            self._ids.update(dict.fromkeys(record.get("ids", ()), str(record["name"])))
            for kind in _KINDS:
                packed = base64.b64decode(record.get(kind, ""))
                for start in range(0, len(packed), _DIGEST_BYTES):
                    mark = kind + packed[start : start + _DIGEST_BYTES].hex()
                    self._found.setdefault(mark, f"the evaluation set {record['name']}")

    def of(self, problem: Problem) -> str:
        """Why the problem must not be trained on; empty where nothing is shared."""
        if problem.problem_id in self._ids:
            return f"is in the evaluation set {self._ids[problem.problem_id]}"
        for mark in _marks(problem):
            if mark in self._found:
                what = "its reference" if mark.startswith("reference") else f"a run of {RUN} words"
                return f"shares {what} with {self._found[mark]}"
        return ""


def _marks(problem: Problem) -> Iterator[str]:
    """Digests of everything about a problem that another one must not share."""
    words = _WORD.findall(problem.question.replace(INSTRUCTION, "").lower())
    run = len(words) if problem.source.startswith(GENERATED) else RUN
    for start in range(max(1, len(words) - run + 1) if words else 0):
        yield _digest("words", " ".join(words[start : start + run]) + ("" if len(words) >= RUN else " (all)"))
    tree = _tree(problem)
    if tree:
        yield _digest("reference", tree)


def _tree(problem: Problem) -> str:
    """The reference's parameters and body; empty where there is too little of it."""
    try:
        node = _compared(problem)
    except Unparsable:
        return ""
    if node is None:
        return ""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    names = [argument.arg for argument in node.args.args] if is_function else []  # type: ignore[union-attr]
    dumped = "\n".join(map(dump_of, body))
    return f"{names} {dumped}" if sum(1 for each in body for _ in ast.walk(each)) >= 2 * RUN else ""


def _compared(problem: Problem) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module | None:
    """What of the reference others must not share: the function, method or class, or a whole script. Raises
    Unparsable."""
    module = parse(problem.reference_solution or "")
    program = wrapped_program(module)
    if program is not None:
        return parse(program)
    if problem.kind == "program":
        return module
    method = METHOD.fullmatch(problem.entry_point)
    found: ast.Module | ast.stmt | None = module
    for name in method.groups() if method else (problem.entry_point,):
        body = getattr(found, "body", [])
        found = next((node for node in body if getattr(node, "name", None) == name), None)
    return found if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else None


def _digest(kind: str, text: str) -> str:
    return kind + hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
