"""What a relation asks of the programs of some kinds.

Of a class, `list(Bag([1]))` asks for an object, by a question: what is no sequence of calls has no other value. Of a
generator, `next(f(3))` asks for the first of its values, which come back as a list, and it is no list itself.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from codea1_env.judging.judge import Expectation
from codea1_env.problems.kinds import Kind
from codea1_env.reading import grammar
from codea1_env.reading.grammar import WrittenTest, canonical_name
from codea1_env.reading.pure_expressions import Rejected
from codea1_env.reading.wide import questions
from codea1_env.reading.wide.relation import RETURNED_VALUE, Relation


def of_kind(kind: Kind, entry_point: str, test: WrittenTest, stated: Expectation) -> Expectation:
    """The data of a test, as it is asked of a problem of this kind."""
    if stated.relation is None:
        return stated
    if kind == "generator":
        relation = _of_values(stated.relation)
        return replace(stated, relation=relation, or_look=stated.or_look if relation == stated.relation else "")
    if kind == "class" and not test.asks and not _is_sequence(stated.arguments, entry_point):
        return replace(stated, arguments=_object(test.inner, canonical_name(entry_point)) or stated.arguments)
    return stated


def _of_values(relation: Relation) -> Relation:
    parts = tuple(map(_of_values, relation.parts))
    if relation.operator in ("next", "isinstance", "hastype") and parts[:1] == (RETURNED_VALUE,):
        parts = (Relation("generated", (RETURNED_VALUE,)), *parts[1:])
    return replace(relation, parts=parts)


def _is_sequence(arguments: bytes, entry_point: str) -> bool:
    """Whether the arguments are names and what each is called with, the first of which is the class."""
    positional, named = json.loads(arguments)
    given: Any = positional[0] if positional else dict(named).get("names")
    names = given.get("t") if isinstance(given, dict) else given
    return isinstance(names, list) and names[:1] == [entry_point]


def _object(call: str, entry_point: str) -> bytes:
    """The question for an object that is made by this call; empty where it is none."""
    try:
        made = grammar.single_expression(call)
        questions.check_question(made, entry_point)
        return questions.arguments_of(made, entry_point, grammar.CASE_DEPTH).encoded or b""
    except Rejected:
        return b""
