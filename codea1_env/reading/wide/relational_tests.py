"""A condition about one call -> a relational test: the call's arguments, constants and a `Relation`, or a reason.

    call         one call of the entry point, with literal or pure arguments as everywhere, or one question
                 (`questions.py`); it may stand several times
    constant     whatever does not hold the call: a pure expression, evaluated in the sandbox as stated values are
    relation     how the returned value and the constants are compared

The text of the test, as stored and shown, is the condition itself with the value True, so that a stored test is read
back by the same rules (`read_relational_case`). Calls whose arguments would depend on what another call returned are
refused: tests are parsed and fixed before any program runs. Nothing is evaluated here.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations

from codea1_env.reading import grammar
from codea1_env.reading.grammar import WrittenTest, canonical_name, read_assert, rejected
from codea1_env.reading.literals import encode
from codea1_env.reading.parsing import names_in
from codea1_env.reading.pure_expressions import NAMED, STATED_NAMES, Reason, Rejected, known_name, pure_source
from codea1_env.reading.test_case import TestCase
from codea1_env.reading.wide import questions, trees
from codea1_env.reading.wide.claims import COUNT_EQUAL
from codea1_env.reading.wide.looking import is_name_of_columns, read_look
from codea1_env.reading.wide.relation import ELEMENT, FUNCTIONS, MAX_TERMS, METHODS, RETURNED_VALUE, TYPES, Relation
from codea1_env.reading.wide.statements import unpacking
from codea1_env.sandbox.inside.scope import SINGLE

CLAIMED = "True"
"""What a relational test states about its condition."""

_COMPARE: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.In: "in",
    ast.NotIn: "notin", ast.Is: "is", ast.IsNot: "isnot",
}  # fmt: skip
_BINARY: Mapping[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
}  # fmt: skip
APPROX = {"rel": "1e-06", "abs": "1e-12"}
"""pytest's defaults, and math's."""
ISCLOSE = {"rel_tol": "1e-09", "abs_tol": "0.0"}
_ITERATING = frozenset(
    "same_items sorted list tuple set frozenset sum min max any all dict iter Counter islice".split()
)
"""Functions that go through whatever they are given."""
_CLOSE_ARRAYS = ("actual", "desired", "rtol", "atol", "equal_nan")
_OF_TABLES = {"check_dtype": "True", "check_names": "True", "rtol": "1e-05", "atol": "1e-08"}
_CLAIMS: Mapping[str, tuple[str, tuple[str, ...], Mapping[str, str]]] = {
    "numpy.array_equal": ("array_equal", ("a1", "a2"), {}),
    "numpy.allclose": ("allclose", ("a", "b", "rtol", "atol", "equal_nan"),
                       {"rtol": "1e-05", "atol": "1e-08", "equal_nan": "False"}),
    "numpy.testing.assert_array_equal": ("equal_arrays", ("actual", "desired"), {}),
    "numpy.testing.assert_equal": ("equal_arrays", ("actual", "desired"), {}),
    "numpy.testing.assert_allclose": ("allclose", _CLOSE_ARRAYS, {"rtol": "1e-07", "atol": "0.0", "equal_nan": "True"}),
    "numpy.testing.assert_array_almost_equal": ("allclose", ("actual", "desired", "decimal"),
                                                {"rtol": "0.0", "atol": "1.5e-06", "equal_nan": "True"}),
    "numpy.testing.assert_almost_equal": ("allclose", ("actual", "desired", "decimal"),
                                          {"rtol": "0.0", "atol": "1.5e-07", "equal_nan": "True"}),
    **{f"pandas.testing.assert_{kind}_equal": ("same_table", ("left", "right", *_OF_TABLES), _OF_TABLES)
       for kind in ("frame", "series", "index")},
}  # fmt: skip
"""{function of arrays or tables: its operator, its arguments, what those behind the first two are if not given}."""
ASSERTING = frozenset(name for name in _CLAIMS if ".testing." in name)
"""Those that raise where they do not hold: statements of their own."""
IMPORTED = ASSERTING | {*"numpy.testing pandas.testing numpy.allclose numpy.all types types.GeneratorType".split()}
"""Names that a suite may import beside those of pure expressions."""
_ELSEWHERE = {**{f"{module}.{name}": name for module in ("math", "numpy") for name in ("isnan", "isinf", "isfinite")},
              "itertools.islice": "islice", "islice": "islice", "collections.Counter": "Counter", "numpy.all": "all",
              "numpy.any": "any"}  # fmt: skip
_TYPES_ELSEWHERE = {"types.GeneratorType": "generator"}
_HOMES_OF_TYPES = frozenset(("fractions", "decimal", "datetime", "collections", "array", "numpy", "pandas"))
_DTYPES = {"int": "int64", "float": "float64", "bool": "bool", "complex": "complex128", "O": "object", "i8": "int64",
           "f8": "float64"}  # fmt: skip
_OUTSIDE: Mapping[type[ast.AST], Reason] = {
    **NAMED,
    ast.ListComp: Reason.COMPREHENSION,
    ast.SetComp: Reason.COMPREHENSION,
    ast.DictComp: Reason.COMPREHENSION,
    ast.IfExp: Reason.NOT_A_COMPARISON,
    ast.Tuple: Reason.NOT_A_COMPARISON,  # `assert (f(1) == 1, "message")` is always true
    ast.BinOp: Reason.OPERATOR,
    ast.UnaryOp: Reason.OPERATOR,
}


def read_condition(condition: ast.expr, source: str, entry_point: str) -> WrittenTest:
    """Judge the condition of one assert: an equality by the strict grammar, else a relation. Remembered names are
    inlined, and `entry_point` is a `canonical_name`."""
    condition = _by_name(_asserted(condition), entry_point)
    condition = condition if questions.is_of_class(entry_point) else _by_key(condition)
    test = read_assert(condition, source, entry_point)
    if not test.reason:
        return test
    try:
        return _claim(condition, source, entry_point, grammar.MAX_DEPTH)
    except Rejected as error:
        return rejected(source, error.reason)


def read_relational_case(case: TestCase, entry_point: str) -> WrittenTest:
    """A stored test, relational or an equality, with room for whatever a reference returns."""
    test = grammar.read_case(case, entry_point)
    if not test.reason or case.expected != CLAIMED:
        return test
    try:
        condition = grammar.single_expression(case.call)
        claim = _claim(condition, str(case), canonical_name(entry_point), grammar.CASE_DEPTH)
        return rejected(str(case), Reason.NOT_ENTRY_POINT) if claim.beside else claim
    except Rejected as error:
        return rejected(str(case), error.reason)


def _claim(condition: ast.expr, source: str, entry_point: str, max_depth: int) -> WrittenTest:
    """The accepted test: a relation, or else a look. Raises Rejected."""
    if not grammar.mentions(condition, entry_point):
        raise Rejected(Reason.NOT_ENTRY_POINT)
    if grammar.mentions(condition, grammar.RETURNED):
        raise Rejected(Reason.FORBIDDEN_NAME)
    test = _accepted(condition, source, entry_point, max_depth)
    if questions.raises_itself(condition, entry_point):  # behind what has seen to its depth
        raise Rejected(Reason.EXPECTS_EXCEPTION)
    return test


def _accepted(condition: ast.expr, source: str, entry_point: str, max_depth: int) -> WrittenTest:
    try:
        test = _relational(condition, source, entry_point, max_depth)
    except Rejected as error:
        if error.reason in (Reason.TOO_LARGE, Reason.TOO_DEEP):
            raise
        try:
            match condition:
                case ast.Call(func=ast.Name(id="bool"), args=[claim], keywords=[]):  # as a stored test has it
                    condition = claim
            return read_look(_as_looked(condition), source, entry_point, max_depth)
        except Rejected as other:
            raise error if other.reason == Reason.WRAPPED_CALL else other from None
    try:
        look = read_look(condition, source, entry_point, max_depth)
    except Rejected:
        return test
    return replace(test, or_look=look.look) if look.arguments == test.arguments else test


def _relational(condition: ast.expr, source: str, entry_point: str, max_depth: int) -> WrittenTest:
    """The accepted test. Raises Rejected."""
    text = grammar.shallow_source(condition, max_depth)
    calls = [node for node in ast.walk(condition) if isinstance(node, ast.Call) and node is not condition]
    if any(known_name(call.func) in ASSERTING for call in calls):  # it is None, and no truth
        raise Rejected(Reason.FORBIDDEN_CALL)
    reader = _Terms(condition, entry_point, max_depth)
    relation = reader.truth_of(condition, max_depth)
    if reader.call is None or not all(map(_takes_its_parts, relation.walk())):
        raise Rejected(Reason.WRAPPED_CALL)
    beside = b""
    is_changed = reader.asked is not None and questions.is_changed(reader.asked, entry_point)
    if is_changed and _may_be_unchanged(reader.asked, relation, reader.constants):  # type: ignore[arg-type]  # not None
        beside = _call_alone(reader.asked, entry_point, max_depth)  # type: ignore[arg-type]
    if not relation.is_truth:
        relation, text = Relation("bool", (relation,)), f"bool({text})"
    else:
        text = pure_source(condition)  # in brackets where it binds weaker than the `==` of a stored test
    return WrittenTest(
        source=source[: grammar.MAX_SHOWN],
        reason="",
        call=text,
        stated=f"({''.join(f'{constant.source}, ' for constant in reader.constants)})",
        arguments=reader.call.encoded,
        value=encode({"t": [constant.tree for constant in reader.constants]})
        if all(constant.is_literal for constant in reader.constants)
        else None,
        inner=f"{entry_point}({reader.call.source})" if reader.asked is None else reader.call.source,
        asks=questions.roots(reader.asked, entry_point) if reader.asked is not None else "",
        beside=beside,
        relation=replace(relation, raising=tuple(reader.raising)),
    )


def _asserted(condition: ast.expr) -> ast.expr:
    """`assert_frame_equal(f(x), v) is None`, which is so wherever it does not raise, as that alone."""
    match condition:
        case (
            ast.Compare(left=ast.Call() as call, ops=[ast.Is() | ast.Eq()], comparators=[ast.Constant(value=None)])
            | ast.UnaryOp(op=ast.Not(), operand=ast.Call() as call)
        ) if known_name(call.func) in ASSERTING:
            return call
    return condition


def _by_name(condition: ast.expr, entry_point: str) -> ast.expr:
    """What is compared with members of an Enum of the program, by their names: `Color.RED`, `Mode.R | Mode.W`."""
    match condition:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is() | ast.NotEq() | ast.IsNot() as op], comparators=[right]):
            operator: ast.cmpop = ast.Eq() if isinstance(op, ast.Eq | ast.Is) else ast.NotEq()
            for value, other in ((left, right), (right, left)):
                names = questions.members(other)
                if not names or not grammar.mentions(value, entry_point) or questions.members(value):
                    continue
                name = ast.Attribute(value, "name", ast.Load())
                if len(names) == 1:
                    return ast.Compare(name, [operator], [ast.Constant(names[0])])
                orders = [ast.Constant("|".join(order)) for order in permutations(names)]  # one of them is the class's
                operator = ast.In() if isinstance(operator, ast.Eq) else ast.NotIn()
                return ast.Compare(name, [operator], [trees.tupled(*orders)])
    return condition


def _by_key(condition: ast.expr) -> ast.expr:
    """`f(x).get("a") == 1` as `f(x)["a"] == 1`: nothing that is no item equals anything but None."""
    match condition:
        case ast.Compare(
            left=ast.Call(func=ast.Attribute(value=value, attr="get"), args=[ast.Constant() as key], keywords=[]),
            ops=[ast.Eq()],
            comparators=[stated],
        ) if not (isinstance(stated, ast.Constant) and stated.value is None):
            return ast.Compare(ast.Subscript(value, key, ast.Load()), condition.ops, [stated])
    return condition


def _call_alone(asked: ast.expr, entry_point: str, max_depth: int) -> bytes:
    """The first call that was given an argument, as a call by itself, on the wire. Raises Rejected."""
    alone = grammar.arguments_of(questions.first_call(asked), entry_point, max_depth, stars=False).encoded
    if alone is None:
        raise Rejected(Reason.NOT_ENTRY_POINT)
    return alone


def _may_be_unchanged(asked: ast.expr, relation: Relation, constants: Sequence[grammar.Pure]) -> bool:
    """Whether what is claimed of an argument may hold without a call: anything but that it, or a part of it, equals
    what it plainly did not equal before."""
    stated = [part for part in relation.parts if part.operator == "constant"]
    claimed = [part for part in relation.parts if part.operator != "constant"]
    if relation.operator != "eq" or len(stated) != len(claimed):
        return True
    part, path = claimed[0], []
    while part.operator in ("item", "slice") and all(each.operator == "constant" for each in part.parts[1:]):
        path.append(part.parts[1:])
        part = part.parts[0]
    used = [constants[each.place] for row in (stated, *path) for each in row]
    if part != RETURNED_VALUE or not all(each.is_literal for each in used):
        return True
    places = [[constants[each.place].tree for each in row] for row in reversed(path)]
    return questions.may_equal(asked, used[0].tree, places)


class _Terms:
    """Makes the terms of one relation, and keeps its call and its constants."""

    def __init__(self, condition: ast.expr, entry_point: str, max_depth: int) -> None:
        self._entry_point = entry_point
        self._mentioning = grammar.mentioning(condition, entry_point)
        self._max_depth = max_depth
        self._left = MAX_TERMS
        self.call: grammar.Pure | None = None
        self._elements: dict[str, Relation] | None = None
        """What the names stand for that a comprehension binds, inside of one."""
        self.asked: ast.expr | None = None
        """The question, where the call is more than one call."""
        self.raising: list[str] = []
        """The classes of exceptions, where that is what the call is asked for."""
        self._now_raising: list[str] = []
        """Likewise, of the call that is read now."""
        self.constants: list[grammar.Pure] = []

    def of(self, node: ast.expr, room: int) -> Relation:
        """The term of an expression. Raises Rejected."""
        self._left -= 1
        if self._left < 0:
            raise Rejected(Reason.TOO_LARGE)
        if room <= 0:
            raise Rejected(Reason.TOO_DEEP)
        if type(node) is ast.Name and self._elements is not None and node.id in self._elements:
            return self._elements[node.id]
        if node not in self._mentioning and not (self._elements and {*self._elements} & {*names_in(node)}):
            return self._constant(node)
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
            return self._each(node, room - 1)
        if questions.is_operation(node, self._entry_point):
            return self._question(node)
        if type(node) is ast.Call:
            return self._called(node, room - 1)
        if type(node) is ast.Compare:
            return self._compared(node, room - 1)
        if type(node) is ast.BoolOp:
            return self._made("and" if type(node.op) is ast.And else "or", room - 1, *node.values)
        if type(node) is ast.UnaryOp and type(node.op) is ast.Not:
            return Relation("not", (self.truth_of(node.operand, room - 1),))
        if type(node) is ast.UnaryOp and type(node.op) is ast.USub:
            return self._made("neg", room - 1, node.operand)
        if type(node) is ast.BinOp and type(node.op) in _BINARY:
            return self._made(_BINARY[type(node.op)], room - 1, node.left, node.right)
        if type(node) is ast.Subscript:
            return self._subscript(node, room - 1)
        if type(node) is ast.Attribute and questions.is_set(node):
            raise Rejected(Reason.NOT_ENTRY_POINT)
        if is_name_of_columns(node):
            raise Rejected(Reason.ATTRIBUTE)
        if questions.is_of_member(node, self._entry_point) or questions.is_attribute(node, self._entry_point):
            return self._question(node)
        if type(node) is ast.Attribute and not node.attr.startswith("_"):
            return self._made("attribute", room - 1, node.value, repr(node.attr))
        raise Rejected(_OUTSIDE.get(type(node), Reason.WRAPPED_CALL))

    def truth_of(self, node: ast.expr, room: int) -> Relation:
        """The term of what is true or not; of an object, its class has a say in that. Raises Rejected."""
        if questions.is_of_class(self._entry_point) and questions.is_made(node, self._entry_point):
            return self._question(trees.call("bool", node))
        return self.of(node, room)

    def _each(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, room: int) -> Relation:
        """`[g(a) for a in f(x) if h(a)]`: what is made of the items of a value."""
        clause = node.generators[0]
        if len(node.generators) > 1 or clause.is_async or self._elements is not None:
            raise Rejected(_OUTSIDE[type(node)])
        items = self.of(clause.iter, room)
        targets = clause.target.elts if isinstance(clause.target, ast.Tuple) else [clause.target]
        if items.operator == "constant" or not all(isinstance(target, ast.Name) for target in targets):
            raise Rejected(_OUTSIDE[type(node)])
        if isinstance(clause.target, ast.Tuple):
            count = self._text(repr(len(targets)))
            bound = [Relation("unpacked", (ELEMENT, self._text(repr(at)), count)) for at in range(len(targets))]
        else:
            bound = [ELEMENT]
        self._elements = {target.id: part for target, part in zip(targets, bound, strict=True)}  # type: ignore[attr-defined]
        try:
            wanted = [Relation("bool", (self.of(condition, room),)) for condition in clause.ifs]
            made = self.of(node.elt, room)
        finally:
            self._elements = None
        each = Relation("each", (items, made, *wanted))
        return Relation("set", (each,)) if isinstance(node, ast.SetComp) else each

    def _constant(self, node: ast.expr) -> Relation:
        pure = grammar.pure_expression(node, self._entry_point, self._max_depth, STATED_NAMES)
        if pure not in self.constants:
            self.constants.append(pure)
        return Relation("constant", place=self.constants.index(pure))

    def _text(self, text: str) -> Relation:
        return self._constant(grammar.single_expression(text))

    def _called(self, node: ast.Call, room: int) -> Relation:
        function, names = node.func, [keyword.arg for keyword in node.keywords]
        part = unpacking(node)
        if part is not None:
            value, *numbers = part
            return self._made("unpacked", room, value, *map(repr, numbers))
        if raising := questions.classes_raised(node):
            return self._raised(node.args[0], raising, room)
        if questions.is_question(node, self._entry_point) and not self._is_of_value(node):
            return self._question(node)
        if grammar.is_call(node, self._entry_point):
            return self._asking(grammar.arguments_of(node, self._entry_point, self._max_depth, stars=False))
        name = called_name(function)
        if name == "isclose" and len(node.args) == 2:
            return self._made("isclose", room, *node.args, *tolerances(node.keywords, [], ISCLOSE))
        if name == COUNT_EQUAL and len(node.args) == 2 and not node.keywords:
            return self._made("same_items", room, *node.args)
        called = known_name(function)
        if called in _CLAIMS:
            return self._of_arrays(called, node, room)
        if called in _ELSEWHERE and not node.keywords:
            name = _ELSEWHERE[called]
            if called == "numpy.all" and len(node.args) == 1 and isinstance(node.args[0], ast.Compare):
                return self._everywhere(node.args[0], room)
            if name == "islice" and len(node.args) == 2:
                return self._made(name, room, *node.args)
        elif isinstance(function, ast.Attribute):
            whole = self._of_whole_array(node, room)
            if whole is not None:
                return whole
            if function.attr == "join" and len(node.args) == 1 and type(function.value) is ast.Constant:
                return self._made("join", room, function.value, *node.args)
            if METHODS.get(function.attr) != len(node.args) or node.keywords:
                raise Rejected(Reason.ATTRIBUTE)
            return self._made(function.attr, room, function.value, *node.args)
        if name == "isinstance" and len(node.args) == 2 and not node.keywords:
            return Relation("isinstance", (self.of(node.args[0], room), self._types(node.args[1])))
        if name == "sorted" and names == ["reverse"] and len(node.args) == 1:
            value = node.keywords[0].value
            if type(value) is not ast.Constant or type(value.value) is not bool:
                raise Rejected(Reason.FORBIDDEN_CALL)
            inner = self._made("sorted", room, *node.args)
            return Relation("list", (Relation("reversed", (inner,)),)) if value.value else inner
        of_two = name in ("zip", "round", "next") and len(node.args) == 2
        of_one = name in FUNCTIONS and len(node.args) == 1
        if node.keywords or not (of_one or of_two):
            raise Rejected(Reason.FORBIDDEN_CALL if isinstance(function, ast.Name) else Reason.WRAPPED_CALL)
        return self._made(name, room, *node.args)

    def _made(self, operator: str, room: int, *parts: ast.expr | str) -> Relation:
        """What an operator makes of these; a text is a constant that nobody wrote. Raises Rejected."""
        return Relation(
            operator, tuple(self._text(part) if isinstance(part, str) else self.of(part, room) for part in parts)
        )

    def _asking(self, arguments: grammar.Pure) -> Relation:
        if self.call is not None and (self.call.source, self.raising) != (arguments.source, self._now_raising):
            raise Rejected(Reason.SEVERAL_CALLS)
        self.call, self.raising = arguments, self._now_raising
        return RETURNED_VALUE

    def _raised(self, asked: ast.expr, raising: list[str], room: int) -> Relation:
        self._now_raising = raising
        called = questions.iterated(asked, raising)
        if (self._question(asked, called) if called is not None else self.of(asked, room)) != RETURNED_VALUE:
            raise Rejected(Reason.EXPECTS_EXCEPTION)
        self._now_raising = []
        return RETURNED_VALUE

    def _is_of_value(self, node: ast.Call) -> bool:
        """Whether a relation calls this method of what a question comes to."""
        if not isinstance(node.func, ast.Attribute) or METHODS.get(node.func.attr) != len(node.args):
            return False
        return not questions.is_made(node.func.value, self._entry_point)

    def _question(self, node: ast.expr, part: ast.expr | None = None) -> Relation:
        """`part`: what alone has to be one, where the whole is made of it."""
        questions.check_question(part or node, self._entry_point)
        self.asked = node
        return self._asking(questions.arguments_of(node, self._entry_point, self._max_depth))

    def _of_arrays(self, called: str, node: ast.Call, room: int) -> Relation:
        """`np.allclose(f(x), [1.0])`, `pd.testing.assert_frame_equal(f(x), ...)`."""
        operator, given = _arrays(called, node)
        return self._made(operator, room, *given)

    def _of_whole_array(self, node: ast.Call, room: int) -> Relation | None:
        """`(f(x) == v).all()`, `f(x).sum()`, `f(x).equals(v)`; None for another method."""
        assert isinstance(node.func, ast.Attribute)
        value, name = node.func.value, node.func.attr
        if name == "equals" and len(node.args) == 1 and not node.keywords:
            exact = [self._text(text) for text in ("True", "False", "0.0", "0.0")]
            return Relation("same_table", (self.of(value, room), self.of(node.args[0], room), *exact))
        if name not in ("all", "any", "sum", "min", "max") or node.args or node.keywords:
            return None
        if name == "all" and isinstance(value, ast.Compare):
            return self._everywhere(value, room)
        return Relation(name, (self._made("flatten", room, value),))

    def _everywhere(self, value: ast.Compare, room: int) -> Relation:
        if len(value.ops) != 1 or not isinstance(value.ops[0], ast.Eq):
            raise Rejected(Reason.OPERATOR)
        return self._made("equal_everywhere", room, value.left, *value.comparators)

    def _compared(self, node: ast.Compare, room: int) -> Relation:
        sides = [node.left, *node.comparators]
        pairs = [
            self._pair(_COMPARE[type(operator)], sides[place], sides[place + 1], room)
            for place, operator in enumerate(node.ops)
        ]
        return pairs[0] if len(pairs) == 1 else Relation("and", tuple(pairs))

    def _pair(self, name: str, left: ast.expr, right: ast.expr, room: int) -> Relation:
        asks_type = isinstance(left, ast.Call) and called_name(left.func) == "type" and len(left.args) == 1
        if asks_type and name in ("eq", "is"):
            return Relation("hastype", (self.of(left.args[0], room), self._types(right)))  # type: ignore[attr-defined]
        if name in ("eq", "ne") and isinstance(left, ast.Attribute) and left.attr == "dtype":
            right = ast.Constant(_dtype(right))
        for one, other in ((left, right), (right, left)):
            if isinstance(other, ast.Call) and called_name(other.func) == "approx" and name in ("eq", "ne"):
                near = self._approximately(one, other, room)
                return near if name == "eq" else Relation("not", (near,))
        if name == "in" and left in self._mentioning and questions.stated(right) is not right:
            if not isinstance(right, ast.List | ast.Tuple):
                raise Rejected(Reason.OPERATOR)
            return Relation("or", tuple(self._pair("eq", left, each, room) for each in right.elts))
        for one, other in ((left, right), (right, left)):
            is_stated = name in ("eq", "ne") and one in self._mentioning
            stated = questions.stated(other) if is_stated else other
            if stated is not other:
                is_new = other in self._mentioning and name == "eq"
                value = self._equal_object(one, other) if is_new else self.of(one, room)
                constant = self._constant(stated)
                return Relation(name, (Relation("as_stated", (value, constant)), constant))
        if name in ("is", "isnot") and _is_singleton(left) and not _is_singleton(right):
            left, right = right, left
        if name in ("is", "isnot") and not _is_singleton(right):
            raise Rejected(Reason.OPERATOR)  # identity is no property of data
        if name == "notin" and questions.is_operation(ast.Compare(left, [ast.In()], [right]), self._entry_point):
            return Relation("not", (self._question(ast.Compare(left, [ast.In()], [right])),))
        sides = [self.of(left, room), self.of(right, room)]
        if name not in ("in", "notin"):
            sides = [Relation("set", (side,)) if side.operator in ("keys", "items") else side for side in sides]
        return Relation(name, tuple(sides))

    def _equal_object(self, one: ast.expr, other: ast.expr) -> Relation:
        """An object that is said to equal a new one: its class must say so of two with the same data. The new one is
        no part of the question: what it is made from is what is right."""
        if not grammar.is_call(other, self._entry_point):
            raise Rejected(Reason.ENTRY_POINT_AGAIN)
        asked = trees.listed((one, ast.Compare(one, [ast.Eq()], [one])))
        return Relation("agreed", (self._question(asked, one),))

    def _approximately(self, value: ast.expr, approx: ast.Call, room: int) -> Relation:
        """`value == pytest.approx(expected, rel, abs)`: numbers, or containers of them, element by element."""
        if not approx.args:
            raise Rejected(Reason.FORBIDDEN_CALL)
        given = tolerances(approx.keywords, approx.args[1:], APPROX)
        return self._made("isclose", room, value, approx.args[0], *given)

    def _subscript(self, node: ast.Subscript, room: int) -> Relation:
        if isinstance(node.slice, ast.Tuple) and any(isinstance(each, ast.Slice) for each in node.slice.elts):
            raise Rejected(Reason.WRAPPED_CALL)  # several slices have no literal; a look has them
        if (
            isinstance(node.value, ast.Attribute)
            and node.value.attr in _BY_LABEL
            and not isinstance(node.slice, ast.Slice)
        ):
            by_label = self._text(repr(_BY_LABEL[node.value.attr]))
            return Relation("cell", (self.of(node.value.value, room), self.of(node.slice, room), by_label))
        if isinstance(node.slice, ast.Slice):
            bounds = (node.slice.lower, node.slice.upper, node.slice.step)
            return self._made("slice", room, node.value, *(bound or "None" for bound in bounds))
        return self._made("item", room, node.value, node.slice)

    def _types(self, node: ast.expr) -> Relation:
        """The constant for one type or a tuple of types: the list of their names. Raises Rejected."""
        named = node.elts if isinstance(node, ast.Tuple) else [node]
        names = []
        for each in named:
            is_none = isinstance(each, ast.Call) and ast.unparse(each) == "type(None)"
            dotted = _TYPES_ELSEWHERE.get(known_name(each), known_name(each))
            name = "NoneType" if is_none else dotted.rpartition(".")[2]
            if name not in TYPES or ("." in dotted and dotted.partition(".")[0] not in _HOMES_OF_TYPES):
                raise Rejected(Reason.FORBIDDEN_NAME)
            names.append(name)
        return self._text(repr(names))


def _arrays(called: str, node: ast.Call) -> tuple[str, list[ast.expr]]:
    """The operator of one of _CLAIMS and what it is given. Raises Rejected."""
    operator, names, defaults = _CLAIMS[called]
    given = dict(zip(names, node.args, strict=False)) | {str(each.arg): each.value for each in node.keywords}
    message = given.pop("err_msg", None)
    exact = given.pop("check_exact", None)
    if len(node.args) > len(names) or set(given) - {*names} or not {*names[:2]} <= set(given):
        raise Rejected(Reason.FORBIDDEN_CALL)
    if message is not None and not isinstance(message, ast.Constant):
        raise Rejected(Reason.FORBIDDEN_CALL)
    if exact is not None and ast.unparse(exact) == "True":
        defaults = {**defaults, "rtol": "0.0", "atol": "0.0"}
    if "decimal" in given:
        places = given.pop("decimal")
        if not isinstance(places, ast.Constant) or type(places.value) is not int:
            raise Rejected(Reason.FORBIDDEN_CALL)
        defaults = {**defaults, "atol": repr(1.5 * 10.0 ** -min(places.value, 400))}
    more = [given.get(name) or grammar.single_expression(text) for name, text in defaults.items()]
    return operator, [*(given[name] for name in names[:2]), *more]


def _as_looked(claim: ast.expr) -> ast.expr:
    """A claim that a look can evaluate: `np.testing.assert_allclose(f(x).sum(axis=0), [1, 2])` returns no truth."""
    called = known_name(claim.func) if isinstance(claim, ast.Call) else ""
    if called == COUNT_EQUAL:
        sides: list[ast.expr] = [trees.call("sorted", side) for side in claim.args]  # type: ignore[attr-defined]
        return ast.Compare(sides[0], [ast.Eq()], sides[1:]) if len(sides) == 2 else claim
    if called not in ASSERTING or not called.startswith("numpy."):
        return claim
    operator, given = _arrays(called, claim)  # type: ignore[arg-type]  # a Call
    name = "allclose" if operator == "allclose" else "array_equal"
    return trees.call(f"numpy.{name}", *given)


_BY_LABEL = {"loc": True, "at": True, "iloc": False, "iat": False}
"""Of tables of pandas: whether what stands in the brackets is labels, or places."""


def _is_singleton(node: ast.expr) -> bool:
    """None, True, False, `...`, or a builtin type: what there is one of."""
    if isinstance(node, ast.Name):
        return node.id in SINGLE
    return isinstance(node, ast.Constant) and type(node.value) in (bool, type(None), type(...))


def _dtype(node: ast.expr) -> str:
    """The name of a numpy type: `np.int64`, `"int64"`, `int`, `np.dtype("int64")`. Raises Rejected."""
    if isinstance(node, ast.Call) and known_name(node.func) == "numpy.dtype" and len(node.args) == 1:
        node = node.args[0]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _DTYPES.get(node.value, node.value)
    name = known_name(node)
    if not name or name.partition(".")[0] not in ("numpy", *_DTYPES):
        raise Rejected(Reason.FORBIDDEN_NAME)
    name = name.rpartition(".")[2].rstrip("_")
    return _DTYPES.get(name, name)


def _takes_its_parts(term: Relation) -> bool:
    """Whether Python takes the views of dicts and the iterators among a term's parts as we do, as lists. Elsewhere they
    have no items to be asked for and equal nothing, or each other as sets do."""
    for place, part in enumerate(term.parts):
        is_view, is_iterator = part.operator in ("keys", "values", "items"), part.operator == "reversed"
        is_asked = term.operator in ("in", "notin") and place == 1
        if (is_view or is_iterator) and not (term.operator in _ITERATING or is_asked):
            return is_view and term.operator in ("len", "bool", "not")
    return True


def called_name(function: ast.expr) -> str:
    """The name that is called: of `abs`, or of one of math's, pytest's or numpy's functions; else empty."""
    if isinstance(function, ast.Name):
        return function.id
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return function.attr if HOMES.get(function.attr) == function.value.id else ""
    return ""


HOMES = {"isclose": "math", "approx": "pytest", "Counter": "collections"}
"""The module that a name must be imported from, or asked of, to mean what it does here."""


def tolerances(
    keywords: Sequence[ast.keyword], positional: Sequence[ast.expr], defaults: Mapping[str, str]
) -> list[ast.expr]:
    """The relative and the absolute tolerance. Raises Rejected for an argument that is neither."""
    arguments = dict(zip(defaults, positional, strict=False)) | {str(each.arg): each.value for each in keywords}
    if len(positional) > len(defaults) or set(arguments) - set(defaults):
        raise Rejected(Reason.FORBIDDEN_CALL)
    if "abs" in arguments:  # in pytest, an absolute tolerance alone leaves no relative one
        defaults = {**defaults, "rel": "0.0"}
    return [arguments.get(name) or grammar.single_expression(text) for name, text in defaults.items()]
