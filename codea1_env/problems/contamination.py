"""Whether a training problem is also in an evaluation set: a shared run of 13 words, or the same reference.

13 words is the customary length (Brown et al. 2020, arXiv 2005.14165, appendix C); a question shorter than that counts
where all of its words are the same. References are compared as syntax trees: the names of parameters and the body,
without its docstring; bodies of a few nodes are too common to tell anything. Does not find a question that was told in
other words.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator

from codea1_env.problems.problem import Problem
from codea1_env.problems.sources.programs import INSTRUCTION
from codea1_env.reading.parsing import Unparsable, parse

RUN = 13
"""Words."""
_WORD = re.compile(r"\w+")


class Contamination:
    """What the evaluation problems are made of, to look others up in."""

    def __init__(self, evaluation: Iterable[Problem]) -> None:
        """`evaluation`: the problems that must not be trained on."""
        self._found: dict[str, str] = {}
        for problem in evaluation:
            for mark in _marks(problem):
                self._found.setdefault(mark, problem.problem_id)

    def of(self, problem: Problem) -> str:
        """Why the problem must not be trained on; empty where nothing is shared."""
        for mark in _marks(problem):
            if mark in self._found:
                what = "its reference" if mark.startswith("reference") else f"a run of {RUN} words"
                return f"shares {what} with the evaluation problem {self._found[mark]}"
        return ""


def _marks(problem: Problem) -> Iterator[str]:
    """Digests of everything about a problem that another one must not share."""
    words = _WORD.findall(problem.question.replace(INSTRUCTION, "").lower())
    for start in range(max(1, len(words) - RUN + 1) if words else 0):
        yield _digest("words", " ".join(words[start : start + RUN]) + ("" if len(words) >= RUN else " (all)"))
    tree = _tree(problem)
    if tree:
        yield _digest("reference", tree)


def _tree(problem: Problem) -> str:
    """The reference's parameters and body; empty where there is too little of it."""
    try:
        module = parse(problem.reference_solution or "")
    except Unparsable:
        return ""
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name == problem.entry_point:
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            names = [argument.arg for argument in node.args.args]
            dumped = "\n".join(ast.dump(statement) for statement in body)
            return f"{names} {dumped}" if sum(1 for each in body for _ in ast.walk(each)) >= 2 * RUN else ""
    return ""


def _digest(kind: str, text: str) -> str:
    return kind + hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
