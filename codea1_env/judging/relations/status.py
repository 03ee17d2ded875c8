"""A relational test against the right value: is it kept, wrong, flaky, vacuous, or nothing new?

    wrong_relation  false of the right value; there is no right value to put in its place
    rejected        neither true nor false of it: it raises, or asks what data do not tell
    vacuous         true of it, and it says too little: it refuses too few of the other values, or it is true of what is
                    printed or written where the program does nothing
    duplicate       refuses no other value that an earlier test of the suite with the same call does not refuse
    flaky           true of one order of the right value's dicts and not of another, where that hangs on the hash seed
    kept            otherwise

The other values are those near the right one (`neighbours.py`) and those that the problem's own mutants return for the
call. All of it follows from texts, the oracle's values and the mutants, after all candidates of a batch have ended; no
candidate's value comes here. What a look (`reading/wide/looking.py`) makes of values is evaluated in the sandbox, where
no program runs then.

A relation says enough if one of its parts (`_conjuncts`) refuses at least half of them (_REFUSED) and every other part
more than a quarter (_BESIDE): `len(f(x)) == 2` does, `len(f(x)) >= 0`, `f(x) == f(x)` and `f(x) != 3` do not, nor does
a claim that carries one of these along. The parts are what must all hold: `not (a or b)` says `not a` and `not b`. What
is said of all items of a value is parted likewise: `all(a and b for ...)`. A part may be a choice (`a or b`), which no
`and` stands below. Lower and upper bounds of one term are one part, since either alone says little: `0 < f(x) <= 3`.
Without this, a claim that knows one thing could carry another along that only names the wrong answer in front of the
tester.

A look has no parts. Of a text it may also refuse half of those that differ by a line, or as JSON. If it is about
several calls, it must refuse half of the tuples in which one call's value is replaced by one near it, some for each
call, and all in which the calls return the same: `f(1) == f(2)` is vacuous.

Does not promise that half is the right share for a task, nor that a relation that is kept is strong: a property that
sets the value apart from its neighbours is enough.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from codea1_env.judging.equality import FAILURES, is_by_identity
from codea1_env.judging.judge import Expectation, Judge, plain_values
from codea1_env.judging.oracle import is_data
from codea1_env.judging.relations.neighbours import all_others, documents, spare_parts
from codea1_env.judging.relations.tree_values import is_seen
from codea1_env.judging.relations.truth import fits, holds_of, part_of, says
from codea1_env.judging.schedule import turn
from codea1_env.problems.problem import Problem
from codea1_env.problems.tolerances import Tolerances
from codea1_env.reading.grammar import canonical_name
from codea1_env.reading.literals import Tree, encode, tree_source
from codea1_env.reading.pure_expressions import Reason
from codea1_env.reading.wide.questions import idle
from codea1_env.reading.wide.relation import RETURNED_VALUE, Relation
from codea1_env.rewards.duel import Status

_REFUSED = 0.5
"""Least share of the other values that the strongest part of a relation which is kept must refuse."""
_BESIDE = 0.25
"""And what every other part of it must refuse more than."""
_MOST_MUTANTS = 16
"""Mutants of a problem that are asked for a relation's call."""
_MOST_OF_MUTANTS = 1 << 17
"""Bytes of what they return, as encoded, that is looked at: the first ones; every two of the values are compared."""
_MOST_BYTES = 1 << 18
"""Of a right value that is looked at; of the other values together 16 times as many."""
_MOST_SINGLE = 256
"""Values of single calls that a claim about several is tried on."""
_MOST_CHOICES = 8
"""Parts that one `or` of `and`s may be multiplied out to."""

MutantValues = Mapping[tuple[int, bytes], Sequence[bytes]]
"""By a problem's `id` and a call: plain values that its mutants return, each once."""


Place = tuple[str, int]
"""One of the other values: which part of the value it is near, empty for the whole, and its place in their list."""


def mutant_values(judge: Judge, asked: Sequence[tuple[Problem, Sequence[bytes]]]) -> MutantValues:
    """For the calls of relational tests, and what questions come to if the program does nothing (`idle`); nothing runs
    where there are none. Raises SandboxError."""
    turns = [
        turn(problem, mutant, calls, room=len(calls))  # of its own for each suite: none costs another a value
        for problem, calls in asked
        if calls
        for mutant in problem.mutants[:_MOST_MUTANTS]
    ]
    for problem, calls in asked:
        if left := [question for call in calls if (question := idle(call, canonical_name(problem.entry_point)))]:
            name = canonical_name(problem.entry_point).rpartition(".")[2]
            turns.append(turn(problem, f"def {name}(*_, **__):\n    pass\n", left, room=len(left)))
    found: dict[tuple[int, bytes], list[bytes]] = {}
    for ran, result in zip(turns, judge.run(turns) if turns else [], strict=True):
        for call, value in zip(ran.calls, plain_values(ran, result, ran.calls, is_data) or (), strict=False):
            known = found.setdefault((id(ran.problem), call), [])
            if value is not None and value not in known:
                known.append(value)
    return found


def related(
    judge: Judge,
    test: Expectation,
    right: bytes,
    mutants: Sequence[bytes],
    tolerance: Tolerances,
    earlier: set[Place],
    untouched: Sequence[bytes] = (),
    others: Sequence[bytes] = (),
) -> tuple[Status, str]:
    """What became of a test whose call, or the question of all its `calls`, returns `right`, and why it is rejected.
    `mutants`: encoded plain values; `untouched`: what its question comes to if the program does nothing; `others`: as
    in `ReferenceValue`. Adds to `earlier` what a kept one refuses."""
    assert test.relation is not None
    if test.look and (not is_data(right) or (test.calls and is_by_identity(right))):
        return Status.REJECTED, Reason.NOT_PLAIN_DATA
    if not (len(right) <= _MOST_BYTES if test.look else fits(test.relation, test.value, right)):
        return Status.REJECTED, Reason.TOO_LARGE

    def said_of(value: bytes) -> bool | None:
        if test.look:
            return judge.tried_on(test.look, [value])[0]
        return says(test.relation, test.value, value, tolerance) if test.relation else None

    said = said_of(right)
    if any(said_of(each) is not said for each in others):  # it asks for an order that hangs on the hash seed
        return Status.FLAKY, "flaky"
    if said is None:
        return Status.REJECTED, Reason.EVALUATION_ERROR
    if not said:
        is_told = not _may_be_true(judge, test, right, tolerance)
        return (Status.WRONG_RELATION, "") if is_told else (Status.REJECTED, Reason.NOT_PLAIN_DATA)
    if any(map(said_of, untouched)):
        return Status.VACUOUS, ""
    asked = test, right, mutants, tolerance
    refused = _refused_by_look(judge, *asked) if test.look else _refused(*asked)
    if refused is None and not test.look:
        refused = _refused_in_part(test, right, tolerance)
    if refused is None:
        return Status.VACUOUS, ""
    if refused <= earlier:
        return Status.DUPLICATE, ""
    earlier |= refused
    return Status.KEPT, ""


def _may_be_true(judge: Judge, test: Expectation, right: bytes, tolerance: Tolerances) -> bool:
    """Whether it is true if values are of libraries' types which come back as Python's: data do not tell these."""
    assert test.relation is not None
    if not test.look:
        return says(test.relation, test.value, right, tolerance, is_foreign=True) is True
    tree = json.loads(right)
    foreign = _foreign(tree)
    return foreign != tree and judge.tried_on(test.look, [encode(foreign)])[0] is True


_FOREIGN = {bool: "np.bool_", int: "np.int64", float: "np.float64"}


def _foreign(tree: Any) -> Any:
    """With code for what may have been of other types: whole, in lists, in tuples or as values of dicts."""
    if type(tree) in _FOREIGN:
        return {"e": f"{_FOREIGN[type(tree)]}({tree!r})"}
    if type(tree) is list:
        return [*map(_foreign, tree)]
    match tree:
        case {"t": list() as items}:
            return {"t": [*map(_foreign, items)]}
        case {"d": list() as pairs}:
            return {"e": f"defaultdict(int, {tree_source({'d': [[key, _foreign(value)] for key, value in pairs]})})"}
        case {"b": _}:
            return {"e": f"bytearray({tree_source(tree)})"}
        case {"k": ["datetime" | "timedelta" as kind, *_]}:
            return {"e": f"pd.{'Timestamp' if kind == 'datetime' else 'Timedelta'}({tree_source(tree)})"}
    return tree


def _refused(test: Expectation, right: bytes, mutants: Sequence[bytes], tolerance: Tolerances) -> set[Place] | None:
    """The other values that a relation refuses; None for one that says too little."""
    relation, constants = test.relation, test.value
    assert relation is not None
    try:
        trees: list[Tree] = json.loads(constants)["t"]
        mutants = [each for each in mutants if fits(relation, constants, each)]
        ends = accumulate(map(len, mutants))
        mutants = [each for each, end in zip(mutants, ends, strict=True) if end <= _MOST_OF_MUTANTS]
        values = all_others(json.loads(right), spare_parts(test.arguments), mutants, tolerance)
        return _refused_of(relation, trees, values, tolerance, "")
    except FAILURES:  # what came back stands for no value, or there is no saying what the parts of the claim are
        return None


def _refused_in_part(test: Expectation, right: bytes, tolerance: Tolerances) -> set[Place] | None:
    """Likewise, where a relation is about one part of the value alone: of the values near that part."""
    relation = test.relation
    assert relation is not None
    part = _only_part(relation)
    if part == RETURNED_VALUE:
        return None
    try:
        trees: list[Tree] = json.loads(test.value)["t"]
        tree = json.loads(right)
        value = part_of(part, trees, tree)
        holder = part_of(part.parts[0], trees, tree) if part.operator == "attribute" else None
        if value is None and is_seen(holder):
            values = [holder]  # a chain of objects goes on
        else:
            values = all_others(value, spare_parts(test.arguments), (), tolerance)
        which = json.dumps([[term.operator, *(trees[each.place] for each in term.parts[1:])] for term in part.walk()])
        return _refused_of(_of_part(relation, part), trees, values, tolerance, which)
    except FAILURES:
        return None


def _refused_of(
    relation: Relation, trees: Sequence[Tree], values: Sequence[Tree], tolerance: Tolerances, which: str
) -> set[Place] | None:
    """Raises one of FAILURES."""

    def refused(part: Relation) -> set[Place]:
        held = (holds_of(part, trees, other, tolerance) for other in values)
        return {(which, place) for place, one in enumerate(held) if not one}

    counts = [len(refused(part)) for part in _conjuncts(relation, trees)]
    is_enough = max(counts) >= _REFUSED * len(values) and min(counts) > _BESIDE * len(values)
    return refused(relation) if is_enough else None


def _only_part(relation: Relation) -> Relation:
    """The part of the returned value that a relation is about, `f(x)["a"]`, `f(x).size`; else that value itself."""
    part = RETURNED_VALUE
    while True:
        around = {term for term in relation.walk() if part in term.parts}
        wider = around.pop() if len(around) == 1 else relation
        is_part = wider.operator in _OF_PART and wider.parts[0] == part
        if not is_part or any(each.operator != "constant" for each in wider.parts[1:]):
            return part
        part = wider


_OF_PART = frozenset(("item", "attribute", "unpacked", "cell", "max", "min", "sorted"))


def _of_part(term: Relation, part: Relation) -> Relation:
    """The term with the returned value in the place of the part."""
    if term == part:
        return RETURNED_VALUE
    return replace(term, parts=tuple(_of_part(each, part) for each in term.parts))


def _refused_by_look(
    judge: Judge, test: Expectation, right: bytes, mutants: Sequence[bytes], tolerance: Tolerances
) -> set[Place] | None:
    tree, calls, most = json.loads(right), test.calls, 16 * _MOST_BYTES // len(right)
    constants: list[Tree] = []
    try:
        if calls:
            singles, constants = _of_several(tree["t"], calls, tolerance)
            kinds = [singles]
        else:
            spare = spare_parts(test.arguments)
            near = all_others(tree, spare, mutants, tolerance)
            kinds = [each[:most] for each in (near, documents(tree, spare) if type(tree) is str else [])]
    except FAILURES:
        return None
    others = [*itertools.chain(*kinds), *constants]
    held = judge.tried_on(test.look, [*map(encode, others)])
    refused = {("", place) for place, one in enumerate(held) if not one}
    ends = [0, *accumulate(map(len, kinds))]
    shares = [sum(not one for one in held[start:end]) / (end - start or 1) for start, end in itertools.pairwise(ends)]
    is_enough = max(shares) >= _REFUSED and not any(held[ends[-1] :])
    if is_enough and calls:
        is_enough = {_changed(tree, others[place]) for _, place in refused} >= {*range(len(calls))}
    return refused if is_enough else None


def _of_several(values: list[Tree], calls: Sequence[bytes], tolerance: Tolerances) -> tuple[list[Tree], list[Tree]]:
    """Tuples that differ in one call's value, and those of constant functions."""
    room = max(4, _MOST_SINGLE // len(values))
    spare = [spare_parts(call) if call else [] for call in calls]
    near = [all_others(value, given, (), tolerance)[:room] for value, given in zip(values, spare, strict=True)]
    singles: list[Tree] = [
        {"t": [*values[:place], other, *values[place + 1 :]]} for place, row in enumerate(near) for other in row
    ]
    written = {encode(value): value for value in values}
    return singles, [{"t": [value] * len(values)} for value in written.values()]


def _changed(one: Any, other: Any) -> int:
    """The place of the first value that differs in two tuples."""
    pairs = zip(one["t"], other["t"], strict=True)
    return next((place for place, (value, changed) in enumerate(pairs) if value != changed), -1)


_Clause = tuple[Relation, ...]
_BOUNDS = ("lt", "le", "gt", "ge")


def _conjuncts(relation: Relation, constants: Sequence[Tree]) -> list[Relation]:
    """At least one. Raises ValueError where a truth is calculated with, or there are too many choices."""
    bounds: dict[Relation, list[Relation]] = {}
    parts = []
    for clause in _clauses(relation, True, constants):
        term = _bounded(clause[0]) if len(clause) == 1 else None
        if term is None:
            parts.append(_joined("or", clause))
        else:
            bounds.setdefault(term, []).append(clause[0])
    return parts + [_joined("and", each) for each in bounds.values()]


def _clauses(term: Relation, wanted: bool, constants: Sequence[Tree]) -> list[_Clause]:
    """What must all hold for the term to be as `wanted`: choices, of which one must hold each."""
    name, parts = term.operator, term.parts
    if name in ("not", "bool"):
        return _clauses(parts[0], wanted == (name == "bool"), constants)
    if name in ("and", "or"):
        rows = [_clauses(part, wanted, constants) for part in parts]
        if (name == "and") == wanted:
            return [clause for row in rows for clause in row]
        if math.prod(map(len, rows)) > _MOST_CHOICES:
            raise ValueError("too many choices")
        return [tuple(itertools.chain(*choice)) for choice in itertools.product(*rows)]
    if name in ("eq", "ne", "is", "isnot"):
        for claim, said in (parts, parts[::-1]):
            truth = constants[said.place] if said.operator == "constant" else None
            if _is_truth(claim) and type(truth) is bool:
                return _clauses(claim, wanted == (truth == (name in ("eq", "is"))), constants)
    if name == ("all" if wanted else "any") and parts[0].operator == "each":
        items, made, *conditions = parts[0].parts  # of every item, each part of the claim
        return [(Relation("all", (Relation("each", (items, _joined("or", clause), *conditions)),)),)
                for clause in _clauses(made, wanted, constants)]  # fmt: skip
    if any(_is_truth(inner) for part in parts for inner in _walk(part)):
        raise ValueError("a truth is calculated with")  # `(f(x) != 3) > (f(x) < 0)` would be an `and` in disguise
    return [(term if wanted else Relation("not", (term,)),)]


def _walk(term: Relation) -> Iterator[Relation]:
    """The term and what is below it, but for what is said of single items alone."""
    yield term
    is_of_items = term.operator == "each" and RETURNED_VALUE not in {
        inner for part in term.parts[1:] for inner in part.walk()
    }
    for part in term.parts[:1] if is_of_items else term.parts:
        yield from _walk(part)


def _is_truth(term: Relation) -> bool:
    """It decides something, so that a calculation with it can stand for `and` and `or`."""
    decides = term.operator in ("and", "or", "startswith", "endswith", "isdigit")
    counts_in_constant = term.operator == "count" and term.parts[0].operator == "constant"
    return term.is_truth or decides or counts_in_constant


def _bounded(term: Relation) -> Relation | None:
    """What a comparison with a constant bounds."""
    term = term.parts[0] if term.operator == "not" else term
    if term.operator in _BOUNDS:
        for bounded, bound in (term.parts, term.parts[::-1]):
            if bound.operator == "constant":
                return bounded
    return None


def _joined(name: str, parts: Sequence[Relation]) -> Relation:
    return parts[0] if len(parts) == 1 else Relation(name, tuple(parts))
