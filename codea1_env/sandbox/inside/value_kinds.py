"""Values beyond JSON's and Python's builtin containers, as trees, and back: `{"k": [kind, ...]}`, `{"v": [kind, ...]}`.

    k   numbers, times, sequences, dicts, tables, slices and the types of `builtins` that equal others as Python says
        (`reading/kinds/nodes.py`)
    v   what equals nothing but itself, as it is when the call has returned: an iterator by its items, an object by its
        attributes

A kind is found by the classes that a type derives from, and read by their own methods, so that what a subclass says of
itself does not count. Items and attributes are asked of the object, in the process of the program and in the time of
its call: at most MAX_ITEMS items, MAX_ATTRIBUTES attributes, MAX_OBJECTS objects in each other. Modules that the
program has not imported are not imported here. As `values.py`, it protects nothing.
"""

import builtins
import collections
import contextlib
import functools
import itertools
import sys
import types
from collections.abc import Callable, Iterable
from time import process_time as _cpu_s
from typing import Any

MAX_ITEMS = 1 << 16
"""Of an iterator that is listed; of one that has more, SHOWN_ITEMS are told."""
SHOWN_ITEMS = 256
listing_s = 1e9
"""CPU seconds of a listing of more than SHOWN_ITEMS, after which such an iterator has more; set once, by the job."""
MAX_ATTRIBUTES = 64
MAX_OBJECTS = 8
"""Objects that may stand in each other's attributes and items."""
MORE = "more"
"""How the listing of an iterator ends that has more items, or too large ones."""
_VARARGS = 4
"""The flag of code that takes `*args`."""
_HOOKS = ("__len__", "__bool__", "__next__")
"""What a class may define of which is told that it does, and not what it says."""

_TOLD = {
    ("types", "SimpleNamespace"), ("uuid", "UUID"), ("pathlib", "PurePath"), ("re", "Match"), ("re", "Pattern"),
    ("builtins", "BaseException"), ("ipaddress", "_BaseAddress"), ("pandas", "Period"), ("pandas", "Interval"),
}  # fmt: skip
"""Classes of libraries whose objects are told by their attributes and their text."""

classes_of: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
name_of: Callable[[type], str] = type.__dict__["__name__"].__get__
_SECOND = 1_000_000  # microseconds


class TooLarge(Exception):
    """The value has more bytes or levels than a value may have."""


class Opaque(Exception):
    """It is no data."""


def take(room: list[int], count: int) -> None:
    """Count so many bytes of the room that is left. Raises TooLarge."""
    room[0] -= count
    if room[0] < 0:
        raise TooLarge


class Reading:
    """One value that is read: `tree(item)` makes the trees of its parts, `take(count)` counts bytes."""

    def __init__(self, tree: Callable[[Any], Any], room: list[int]) -> None:
        self.tree, self._room, self.take = tree, room, functools.partial(take, room)

    def trees(self, items: Iterable[Any]) -> list[Any]:
        listed = [*items]
        self.take(len(listed))
        return [self.tree(item) for item in listed]

    def pairs(self, items: Iterable[Any]) -> list[Any]:
        return [[self.tree(key), self.tree(value)] for key, value in items]

    def listed(self, iterable: Any) -> tuple[list[Any], str]:
        """What an iteration gives, and how it ends: "", MORE or an exception's name. All of it is asked for before it
        is read, as `list` does, for an object may change after it was given. May take half of the room."""
        found: list[Any] = []
        end = ""
        try:
            iterator, began = iter(iterable), _cpu_s()
            count = -SHOWN_ITEMS
            while count + SHOWN_ITEMS == len(found) <= MAX_ITEMS:
                count = len(found)
                if count and _cpu_s() - began > listing_s:  # most such iterators never end
                    return self._kept_trees(found[:SHOWN_ITEMS], MORE)
                found.extend(itertools.islice(iterator, SHOWN_ITEMS))
        except (MemoryError, RecursionError):
            raise
        except Exception as error:
            end = str(type(error).__name__)[:64]
        if len(found) > MAX_ITEMS:
            found, end = found[:SHOWN_ITEMS], MORE
        return self._kept_trees(found, end)

    def _kept_trees(self, found: list[Any], end: str) -> tuple[list[Any], str]:
        kept = self._room[0] // 2
        self._room[0] -= kept
        trees: list[Any] = []
        try:
            for item in found:
                self.take(4)
                trees.append(self.tree(item))
        except TooLarge:
            trees, end = trees[:SHOWN_ITEMS], MORE
        self._room[0] = max(self._room[0], 0) + kept
        return trees, end

    def object(self, value: Any, bases: tuple[type, ...]) -> dict[str, Any]:
        """An object: its class's name, attributes, and items where it has any."""
        if len(self._room) > MAX_OBJECTS:
            raise Opaque
        self._room.append(0)  # one more level
        try:
            goes_on = _defines(bases, "__iter__") and not _is_member(bases)  # a member of a Flag has itself as an item
            attributes, drawn = [], []
            for name, found in self._attributes(value, bases):
                if goes_on and _is_drawn_from(found):  # reading it first would take the items of the object itself
                    drawn.append((name, found))
                else:
                    attributes.append([name, self.tree(found)])
            items, end = self.listed(value) if goes_on else (None, "")
            attributes += [[name, self.tree(found)] for name, found in drawn]
            attributes = [each for each in attributes if not holds_opaque(each[1])]
        finally:
            self._room.pop()
        return {"v": ["object", str(bases[0].__name__)[:64], attributes, items, end]}

    def _attributes(self, value: Any, bases: tuple[type, ...]) -> "Iterable[tuple[str, Any]]":
        names: dict[str, None] = {}
        is_text = str(bases[0].__module__).partition(".")[0] in _BY_TEXT
        for base in () if is_text else reversed(bases[:-1]):
            for name, member in dict(vars(base)).items():
                if not (callable(member) or isinstance(member, classmethod | staticmethod | types.MethodType)):
                    names[name] = None
        with contextlib.suppress(AttributeError):  # one with slots alone
            names |= dict.fromkeys(object.__getattribute__(value, "__dict__"))
        if _is_member(bases):
            names = {"name": None, "value": None}
        try:
            made = _made_from(value, bases)
        except (MemoryError, RecursionError):
            raise
        except Exception:  # made otherwise: nobody can claim from what
            made = None
        told = [name.removeprefix("*") for name in made or ()]
        public = [name for name in names if type(name) is str and (name in told or not name.startswith("_"))]
        asked: list[tuple[str, Callable[[], Any]]] = [
            (name, functools.partial(getattr, value, name)) for name in public[:MAX_ATTRIBUTES]
        ]
        asked += [("__str__", lambda: str(value))] if _defines(bases, "__str__") else []
        asked += [("__repr__", lambda: repr(value))] if _defines(bases, "__repr__") and not is_text else []
        asked += [(name, lambda: True) for name in _HOOKS if _defines(bases, name)]
        asked += [("__classes__", lambda: _exceptions(bases))] if BaseException in bases else []
        if made is not None:
            asked += [("__match_args__", lambda: made), ("__defaults__", lambda: _usual(bases))]
        for name, ask in asked:
            self.take(16 + len(name))
            try:
                found = ask()
            except (MemoryError, RecursionError):
                raise
            except Exception:  # an attribute that raises is one that nobody can claim a thing about
                continue
            yield name, found


def _made_from(value: Any, bases: tuple[type, ...]) -> tuple[str, ...]:
    """The attributes that an object is made from and compared by, in the order of the class's parameters; "*xs" holds
    what `*xs` is given. Raises where it has others, is made otherwise, or equals nothing but itself."""
    if _is_member(bases):
        return ("name",)
    if (bases[0].__module__, bases[0].__name__) == ("types", "SimpleNamespace"):
        return tuple(vars(value))
    owner = next(base for base in bases[:-1] if "__eq__" in vars(base))
    if "__dataclass_fields__" in vars(owner):
        return tuple(field.name for field in sys.modules["dataclasses"].fields(owner) if field.compare)
    code = next(vars(base)["__init__"] for base in bases if "__init__" in vars(base)).__code__
    held = {name for base in bases for name, part in vars(base).items() if type(part) is types.MemberDescriptorType}
    held |= getattr(value, "__dict__", {}).keys()
    count, last = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    stars = code.co_varnames[last : last + 1] if code.co_flags & _VARARGS else ()
    given = [*code.co_varnames[1:count], *stars, *code.co_varnames[count:last]]
    found = {name if name in held else f"_{name}": name in stars for name in given}
    if found.keys() != held:
        raise Opaque
    return tuple([f"*{name}" if is_starred else name for name, is_starred in found.items()])


def _usual(bases: tuple[type, ...]) -> dict[str, Any]:
    """What a class gives its parameters by itself, as far as its text says it."""
    init = next(vars(base)["__init__"] for base in bases if "__init__" in vars(base))
    names = init.__code__.co_varnames[: init.__code__.co_argcount]
    given = dict(zip(names[::-1], (init.__defaults__ or ())[::-1], strict=False)) | (init.__kwdefaults__ or {})
    fields = [each for base in bases for each in vars(base).get("__dataclass_fields__", {}).values()]
    made = {field.name: field.default_factory() for field in fields if callable(field.default_factory)}
    return {name: made.get(name, value) for name, value in given.items()}


def _exceptions(bases: tuple[type, ...]) -> tuple[str, ...]:
    """Of the classes those that are exceptions of Python's own."""
    named = [(name_of(base), base) for base in bases[:-1]]
    return tuple([name for name, base in named if vars(builtins).get(name) is base])


def _is_member(bases: tuple[type, ...]) -> bool:
    return any(base.__module__ == "enum" and base.__name__ == "Enum" for base in bases)


def further(value: Any, kind: type, reading: Reading) -> Any:
    """The tree of a value of a kind that is named below; None where it is of none."""
    for module, name in (("pandas", "NaT"), ("pandas", "NA")):
        if value is _class(module, name):
            return {"k": [name]}
    if kind is type or value is ... or value is NotImplemented:
        name = "Ellipsis" if value is ... else "NotImplemented" if value is NotImplemented else name_of(value)
        return {"k": ["builtin", name]} if vars(builtins).get(name, _NONE) is value else None
    if kind in _VIEWS:
        name = _VIEWS[kind]
        return {"k": [name, reading.trees(value) if name == "keys" else reading.pairs(value)]}
    bases = classes_of(kind)
    for module, name, read in _KINDS:
        base = _class(module, name)
        if base in bases:
            return {"k": [name, *read(base, value, reading)]}
    for module, name, plain in _AS_PLAIN:
        base = _class(module, name)
        if base in bases:
            return reading.tree(plain(base, value))
    fields = next((vars(base)["_fields"] for base in bases if "_fields" in vars(base)), None)
    if _class("time", "struct_time") in bases:
        fields = _class("time", "struct_time").__match_args__
    if tuple in bases and type(fields) is tuple and all(type(field) is str for field in fields):
        return {"k": ["namedtuple", str(kind.__name__)[:64], [*fields], reading.trees(tuple.__iter__(value))]}
    return None


def identity(value: Any, kind: type, reading: Reading) -> Any:
    """The tree of what equals nothing but itself. Raises Opaque for what is no data."""
    bases = classes_of(kind)
    if kind is _VALUES:
        return {"v": ["values", reading.trees(value)]}
    is_own = bool(kind.__flags__ & _HEAP_TYPE) and str(kind.__module__).partition(".")[0] not in _LIBRARIES
    is_told = any((str(base.__module__).partition(".")[0], base.__name__) in _TOLD for base in bases)
    if (is_own or is_told) and type not in bases:
        return reading.object(value, bases)
    if not (_defines(bases, "__iter__") and _defines(bases, "__next__")):
        raise Opaque
    items, end = reading.listed(value)
    return {"v": ["iterator", str(kind.__name__)[:64], items, end]}


def holds_opaque(tree: Any) -> bool:
    """Whether a tree has a part that is no data."""
    if type(tree) is list:
        return any(map(holds_opaque, tree))
    return type(tree) is dict and ("o" in tree or any(map(holds_opaque, tree.values())))


def _defines(bases: tuple[type, ...], name: str) -> bool:
    """Whether a class, but for `object`, defines a method."""
    return any(vars(base).get(name) is not None for base in bases[:-1])


def _is_drawn_from(value: Any) -> bool:
    """Whether reading it takes what it gives: an iterator, or a list, tuple, deque or dict with one among its items."""
    kind = type(value)
    if kind in (list, tuple, collections.deque):
        return any(_is_iterator(type(item)) for item in kind.__iter__(value))
    if kind is dict:
        return any(_is_iterator(type(item)) for item in dict.values(value))
    return _is_iterator(kind)


def _is_iterator(kind: type) -> bool:
    return _defines(classes_of(kind), "__next__")


def _class(module: str, name: str) -> Any:
    return getattr(sys.modules.get(module), name, _NONE)


def _offset(given: Any) -> Any:
    """Microseconds east of UTC; None for what says no place."""
    return None if given is None else (given.days * 86400 + given.seconds) * _SECOND + given.microseconds


def _fields(*names: str) -> Callable[[Any, Any, Reading], list[Any]]:
    """Reads what a time or a span has under these names, and its place where it may have one."""

    def read(base: Any, value: Any, reading: Reading) -> list[Any]:
        if getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0):  # of pandas
            raise Opaque
        found = [getattr(base, name).__get__(value) for name in names]
        return [*found, _offset(base.utcoffset(value))] if names[-1] == "fold" else found

    return read


def _parts(base: Any, value: Any, reading: Reading) -> list[Any]:
    """Of a range or a slice."""
    return [reading.tree(part) for part in (value.start, value.stop, value.step)]


def _read_array(base: Any, value: Any, reading: Reading) -> list[Any]:
    """numpy's: its type, shape and items."""
    if _class("numpy.ma", "MaskedArray") in classes_of(type(value)):
        raise Opaque
    plain = base.view(value, base)
    kind = plain.dtype.kind
    if kind not in "biufcSUOMm" or plain.dtype.char in "gG":
        raise Opaque
    reading.take(4 * plain.size)
    flat = base.reshape(plain, -1)
    if kind in "Mm":
        flat = _coarse(flat)
        items = [{"k": ["NaT"]} if item is None else reading.tree(item) for item in flat.tolist()]
    else:
        items = [reading.tree(item) for item in flat.tolist()]
    return [str(plain.dtype), [int(length) for length in plain.shape], items]


def _coarse(times: Any) -> Any:
    """With microseconds for what is finer: Python's own objects have no more. Raises Opaque."""
    numpy = sys.modules["numpy"]
    if numpy.datetime_data(times.dtype)[0] not in ("ns", "ps", "fs", "as"):
        return times
    coarse = times.astype(f"{times.dtype.kind}8[us]")
    if not numpy.all((coarse == times) | numpy.isnat(times)):
        raise Opaque
    return coarse


def _scalar(base: Any, value: Any) -> Any:
    """numpy's: Python's value, where it has one."""
    if value.dtype.kind in "Mm":
        item = _coarse(value).item()
        if item is None:
            raise Opaque
        return item
    if value.dtype.kind not in "biufcSUO" or value.dtype.char in "gG":
        raise Opaque
    return base.item(value)


def _names(index: Any) -> Any:
    """The name of an index; of one with several levels the list of theirs, where they have any."""
    names = [*index.names]
    return names if len(names) > 1 and any(name is not None for name in names) else index.name


def _read_frame(base: Any, value: Any, reading: Reading) -> list[Any]:
    columns, index = reading.trees(value.columns.tolist()), reading.tree(value.index)
    parts = [value.iloc[:, place] for place in range(len(columns))]
    return [columns, index, [reading.trees(part.tolist()) for part in parts], [str(part.dtype) for part in parts]]


def _rational(base: Any, value: Any) -> Any:
    """sympy's, which equals Python's number."""
    above, below = int(value.p), int(value.q)
    return above if below == 1 else sys.modules["fractions"].Fraction(above, below)


def _ratio(base: Any, value: Any) -> Any:
    """gmpy2's and mpmath's numbers of any precision: the float that each equals, or else the Fraction."""
    try:
        number = float(value)
        if value == number or value != value:
            return number
    except OverflowError:
        pass
    if hasattr(value, "man_exp"):
        mantissa, exponent = map(int, value.man_exp)
        if abs(exponent) > _MOST_BITS:
            raise Opaque
        parts = mantissa << max(exponent, 0), 1 << max(-exponent, 0)
    else:
        parts = value.as_integer_ratio()
    return sys.modules["fractions"].Fraction(*map(int, parts))


_MOST_BITS = 1 << 14
"""Of the two numbers of a Fraction that is told."""


def _bytes_of(base: Any, value: Any) -> Any:
    if value.format not in "Bbc" or value.ndim != 1:
        raise Opaque
    return base.tobytes(value)


def _as_dict(base: Any, value: Any) -> Any:
    read = dict.__getitem__ if issubclass(base, dict) else base.__getitem__
    return {key: read(value, key) for key in base.__iter__(value)}


def _data(base: Any, value: Any) -> Any:
    return object.__getattribute__(value, "__dict__")["data"]


_NONE = object()
DATE = ("year", "month", "day")
TIME = ("hour", "minute", "second", "microsecond", "fold")
_VALUES: type = type({}.values())
_LIBRARIES = sys.stdlib_module_names | {"numpy", "pandas", "scipy", "sklearn", "torch"}
"""Their objects have attributes of all kinds, which are no matter of a test."""
_BY_TEXT = {"sympy"}
"""Theirs have hundreds, some of which take seconds: the text and the items are told."""
_HEAP_TYPE = 1 << 9
"""The flag of a type that a class statement has made."""
_VIEWS: dict[type, str] = {type({}.keys()): "keys", type({}.items()): "items"}

# The first that fits: what derives from another stands before it.
_KINDS: tuple[tuple[str, str, Callable[[Any, Any, Reading], list[Any]]], ...] = (
    ("fractions", "Fraction", lambda base, value, reading: [
        reading.tree(base._numerator.__get__(value)), reading.tree(base._denominator.__get__(value))]),
    ("decimal", "Decimal", lambda base, value, reading: [base.__str__(value)]),
    ("datetime", "datetime", _fields(*DATE, *TIME)),
    ("datetime", "date", _fields(*DATE)),
    ("datetime", "time", _fields(*TIME)),
    ("datetime", "timedelta", _fields("days", "seconds", "microseconds")),
    ("builtins", "range", _parts),
    ("builtins", "slice", _parts),
    ("collections", "deque", lambda base, value, reading: [
        reading.trees(base.__iter__(value)), base.maxlen.__get__(value)]),
    ("array", "array", lambda base, value, reading: [
        base.typecode.__get__(value), reading.trees(base.tolist(value))]),
    ("collections", "OrderedDict", lambda base, value, reading: [reading.pairs(base.items(value))]),
    ("collections", "Counter", lambda base, value, reading: [reading.pairs(dict.items(value))]),
    ("numpy", "ndarray", _read_array),
    ("pandas", "Series", lambda base, value, reading: [
        str(value.dtype), reading.tree(value.name), reading.tree(value.index), reading.trees(base.tolist(value))]),
    ("pandas", "Index", lambda base, value, reading: [
        str(value.dtype), reading.tree(_names(value)), reading.trees(base.tolist(value))]),
    ("pandas", "DataFrame", _read_frame),
)  # fmt: skip
_AS_PLAIN: tuple[tuple[str, str, Callable[[Any, Any], Any]], ...] = (
    ("collections", "UserDict", _data),
    ("collections", "UserList", _data),
    ("collections", "UserString", _data),
    ("collections", "ChainMap", _as_dict),
    ("types", "MappingProxyType", lambda base, value: dict(value)),
    ("sortedcontainers", "SortedDict", _as_dict),
    ("sortedcontainers", "SortedList", lambda base, value: [*base.__iter__(value)]),
    ("builtins", "memoryview", _bytes_of),
    ("numpy", "generic", _scalar),
    ("sympy", "Rational", _rational),
    ("gmpy2", "mpz", lambda base, value: int(value)),
    *(
        (module, name, _ratio)
        for module, name in (("gmpy2", "mpq"), ("gmpy2", "mpfr"), ("mpmath.ctx_mp_python", "_mpf"))
    ),
)


def decoded(node: list[Any], decode: Callable[[Any], Any]) -> Any:
    """The value of what stands under the tag `k`. Raises ValueError or TypeError for a malformed one; imports what it
    takes."""
    kind, *parts = node
    match kind:
        case "Fraction":
            import fractions

            return fractions.Fraction(*map(decode, parts))
        case "Decimal":
            import decimal

            return decimal.Decimal(*parts)
        case "date" | "datetime" | "time" | "timedelta":
            return moment(kind, parts)
        case "range" | "slice":
            return getattr(builtins, kind)(*map(decode, parts))
        case "builtin":
            return _single(parts[0])
        case "deque":
            return collections.deque(map(decode, parts[0]), parts[1])
        case "array":
            import array

            return array.array(parts[0], decode(parts[1]))
        case "namedtuple":
            return tuple(map(decode, parts[2]))
        case "OrderedDict" | "Counter":
            made: dict[Any, Any] = collections.OrderedDict() if kind == "OrderedDict" else collections.Counter()
            for key, value in parts[0]:
                made[decode(key)] = decode(value)
            return made
        case "keys":
            return dict.fromkeys(map(decode, parts[0])).keys()
        case "items":
            return {decode(key): decode(value) for key, value in parts[0]}.items()
        case "ndarray":
            return _array(parts, decode)
        case "Series" | "Index" | "DataFrame" | "NaT" | "NA":
            return _table(kind, parts, decode)
    raise ValueError(f"no kind of value is {kind!r}")


def _single(name: str) -> Any:
    found = vars(builtins)[name]
    if isinstance(found, type) or found is ... or found is NotImplemented:
        return found
    raise ValueError(f"no type is {name!r}")


def moment(kind: str, parts: list[Any]) -> Any:
    """The date, time or span of a kind. Raises ValueError or TypeError for malformed parts."""
    import datetime

    if kind in ("date", "timedelta"):
        return getattr(datetime, kind)(*parts)
    *fields, fold, offset = parts
    zone = None if offset is None else datetime.timezone(datetime.timedelta(microseconds=offset))
    return getattr(datetime, kind)(*fields, tzinfo=zone, fold=fold)


def _array(parts: list[Any], decode: Callable[[Any], Any]) -> Any:
    import numpy

    dtype, shape, items = parts
    made = numpy.empty(len(items), numpy.dtype(dtype))
    for place, item in enumerate(items):
        made[place] = decode(item) if item != {"k": ["NaT"]} else None
    return made.reshape(shape)


def _table(kind: str, parts: list[Any], decode: Callable[[Any], Any]) -> Any:
    pandas: Any = __import__("pandas")

    match kind, parts:
        case "Series", [dtype, name, index, items]:
            return pandas.Series(decode(items), index=decode(index), dtype=dtype, name=decode(name))
        case "Index", [_, list() as names, items]:
            return pandas.MultiIndex.from_tuples(decode(items), names=decode(names))
        case "Index", [dtype, name, items]:
            return pandas.Index(decode(items), dtype=dtype, name=decode(name))
        case "DataFrame", [columns, index, values, dtypes]:
            made = pandas.DataFrame(dict(enumerate(map(decode, values))), index=decode(index))
            made = made.astype(dict(enumerate(dtypes)))
            made.columns = pandas.Index(decode(columns))  # of several levels where they are tuples
            return made
        case "NaT" | "NA", []:
            return getattr(pandas, kind)
    raise ValueError("malformed table")
