"""What a program keeps: all that can be reached from its names is noted once it is loaded, and looked at again later.

By identity: what was there before any program (`learn`) is not gone into, and a change back to something equal is a
change. What is too large, and an object whose inside cannot be seen, is not noted at all. Calls nothing that a program
has written, so what it sees of an object is what the interpreter has of it.
"""

import _collections
import _random
import _thread
import collections
import contextlib
import ctypes
import functools
import gc
import random
import re
import struct
import sys
import types
from collections.abc import Callable, Iterator, Sequence, Sized
from operator import is_
from typing import Any

import looks
import marks

_MOST, _MOST_CHANGING, _MOST_FLAT = 5_000, 1_000, 50_000
"""Objects that are noted, those of them that may change, and their references: a look after each call takes a
millisecond or two then, and a process for each call would cost as much."""
_CONSTANT: "frozenset[type]" = frozenset(
    (int, str, bytes, bool, float, complex, range, type(None), type(Ellipsis), type(NotImplemented), types.CodeType)
)
_EXACT: "frozenset[type]" = frozenset((int, str, bytes))
"""Of these, whose equal objects are the same in every way."""
_WARNED = "__warningregistry__"
"""What a warning leaves among the names, where no program can name it."""
_HEAP_TYPE = 1 << 9
_flags, _mro, _namespace, _dict_offset = (
    type.__dict__[name].__get__ for name in ("__flags__", "__mro__", "__dict__", "__dictoffset__")
)
_frame = types.GeneratorType.__dict__["gi_frame"].__get__
_cache_info = type(functools.lru_cache(len)).cache_info
_references = gc.get_referents
_ordered = collections.OrderedDict.__iter__
_doubles = struct.Struct("dd").pack
_OF_TABLE = struct.calcsize("nPPnnnn")
"""Bytes of a set: also places that are spent, and where `pop` goes on; of a deque: its room and count of changes."""
_IN_DICT, _OF_DICT, _OF_KEYS = struct.calcsize("nPnQ"), struct.Struct("PP"), struct.Struct("nBBBInn")
"""Where a table has the addresses of its entries and of values apart from them; what is before the entries."""

_WITH_NUMBERS = (UnicodeError, OSError)
"""Exceptions with fields that are no objects."""
_UNCHANGING: "frozenset[type]" = frozenset(
    (tuple, frozenset, re.Pattern, slice, types.BuiltinFunctionType, types.MethodType, types.GetSetDescriptorType,
     types.MemberDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType, types.MethodDescriptorType,
     types.ClassMethodDescriptorType, types.GenericAlias, types.UnionType, _collections._tuplegetter,
     type(_namespace(Sized)["_abc_impl"]), types.ModuleType)
)  # fmt: skip
"""Types whose objects always refer to the same ones, as far as a program can do anything about it."""
_INSIDES: "dict[type, Callable[[Any], Sequence[object]]]" = {
    **dict.fromkeys(
        (*_UNCHANGING, *_CONSTANT, types.CellType, types.FunctionType, types.MappingProxyType, property, staticmethod,
         classmethod, super, list, type, functools.partial, object),
        lambda value: (),
    ),
    dict: lambda value: (*dict.keys(value),),
    collections.defaultdict: lambda value: _INSIDES[dict](value),
    _thread.RLock: lambda value: [repr(value)],
    collections.OrderedDict: lambda value: (*_ordered(value), *_keys_and_places(value)),
    set: lambda value: [ctypes.string_at(id(value) + object.__basicsize__, _OF_TABLE)],
    collections.deque: lambda value: _INSIDES[set](value),
    bytearray: lambda value: [bytes(bytearray.__getitem__(value, slice(None)))],
    types.GeneratorType: lambda value: [getattr(_frame(value), "f_lasti", None)],
    type(functools.lru_cache(len)): lambda value: [str(_cache_info(value))],
    _random.Random: lambda value: [_random.Random.getstate(value)],
}  # fmt: skip
"""What the references of an object of a type, as the collector follows them, do not show of it: a list of what is made
to show something, or a tuple of what is there."""

_aliases: "frozenset[type]" = frozenset()
"""Of `typing`: their objects change where somebody stores an attribute of theirs, and not otherwise."""
_old: "frozenset[int]" = frozenset()
_kept: "list[object]" = []
_typing_caches: "list[Any]" = []
_array: Any = None
"""numpy's type, where there is numpy."""
_of_tops: "dict[str, _Top]" = {}


class _Top:
    """A package and the modules within it, as they are before any program. A look goes by names: to touch a module, if
    only to see what it is, costs each child a copy of its pages."""

    def __init__(self) -> None:
        self.holders: dict[str, list[dict[str, Any]]] = {}
        """By a name, the namespaces that have it."""
        self.modules: dict[str, dict[int, types.ModuleType]] = {}
        """By the name of a module in them, and its identity."""

    def add(self, namespace: "dict[str, Any]") -> None:
        for name, value in namespace.items():
            if type(value) is types.ModuleType:
                self.modules.setdefault(name, {})[id(value)] = value
            else:
                self.holders.setdefault(name, []).append(namespace)


def learn() -> None:
    """In the zygote: everything that there is now was there before any program."""
    global _old, _aliases, _array
    looks.learn(marks.kinds())
    numpy: Any = sys.modules.get("numpy")
    _array = getattr(numpy, "ndarray", None)
    if numpy:  # of a function of arrays there is nothing to see but its references and attributes
        _INSIDES[numpy.ufunc] = _INSIDES[list]
    typing = vars(sys.modules["typing"])
    kinds = [kind for kind in typing.values() if isinstance(kind, type)]
    _aliases = frozenset(kind for kind in kinds if issubclass(kind, typing["_BaseGenericAlias"]))
    _typing_caches[:] = [forget.__self__ for forget in typing["_cleanups"]]
    modules = [*sys.modules.values()]
    _kept[:] = [*modules, *map(vars, modules), *(value for module in modules for value in vars(module).values())]
    _old = frozenset(id(value) for value in _kept if type(value) not in _CONSTANT)
    _of_tops.clear()
    for name, module in sys.modules.items():
        _of_tops.setdefault(name.partition(".")[0], _Top()).add(vars(module))


class Unseen(Exception):
    """Something cannot be looked at, or is too large."""


def noted(namespace: "dict[str, object]", code: looks.Looks) -> "State | None":
    """What a program keeps, once it is loaded; None where that cannot be seen."""
    try:
        return State(namespace, code)
    except (Unseen, MemoryError, RecursionError):
        return None


class State:
    """What one program keeps, once it is loaded."""

    def __init__(self, namespace: "dict[str, object]", code: looks.Looks) -> None:
        """Raises Unseen."""
        if code.deletes:
            _INSIDES[dict] = _keys_and_places
        self._namespace, self._code = namespace, code
        self._seen: list[tuple[Any, list[object], Sequence[object]]] = []
        """Of every object that may change, what it refers to and what else there is to see, both kept alive."""
        self._names = {name for name in code.names if name[:2] != "__"}
        self._tops, self._spaces = self._reached()
        self._visited = {id(namespace)}
        self._flat = 0
        kept = [part for name, part in namespace.items() if name[:7] != looks.OURS and name != _WARNED]
        namespace.setdefault(_WARNED, {})
        self._note(namespace)
        self._walk([part for part in kept if id(part) not in _old])
        self._walk(self._of_library())
        self._process = [(look, look()) for look in self._of_process()]

    def is_as_loaded(self) -> bool:
        """Whether nothing has changed. What cannot be seen any more has."""
        try:
            for value, references, inside in self._seen:
                are_as_before = _are_same if type(inside) is tuple else _are_equal
                if not _are_same(_references(value), references) or not are_as_before(_inside(value), inside):
                    return False
            return all(_is_equal(look(), seen) for look, seen in self._process)
        except (Unseen, MemoryError, RecursionError):
            return False

    def _reached(self) -> "tuple[set[str], list[dict[str, Any]]]":
        """The packages that the program imports and those that it reaches by a name within them, and the namespaces of
        such modules."""
        found: set[str] = set()
        parts = [*self._namespace.values(), *map(sys.modules.get, self._code.imported)]
        modules = {id(part): part for part in parts if type(part) is types.ModuleType}
        waiting = {*self._code.tops}
        while waiting:
            top = waiting.pop()
            found.add(top)
            inner = _of_tops[top].modules if top in _of_tops else {}
            for name in self._names & inner.keys():
                modules.update(inner[name])
                waiting |= {module.__name__.partition(".")[0] for module in inner[name].values()} - found
        return found, [*map(vars, modules.values())]

    def _may_use(self, *modules: str) -> bool:
        """Whether it reaches the package of one of them, and names that or something of the module."""
        found = [module for module in modules if module in sys.modules and module.partition(".")[0] in self._tops]
        return any(not self._names.isdisjoint((each.partition(".")[0], *vars(sys.modules[each]))) for each in found)

    def _of_process(self) -> "Iterator[Callable[[], object]]":
        """What is kept elsewhere."""
        numpy: Any = sys.modules.get("numpy")
        yield lambda: len(sys.modules)
        # The attributes of an alias that is remembered there may change, too.
        told = slice(2) if self._code.stores_in_aliases else slice(1, 2)
        yield lambda: tuple([_cache_info(cache)[told] for cache in _typing_caches])
        yield lambda: str([*map(len, self._spaces)])
        if self._code.stores:
            for space in self._spaces:
                yield lambda space=space: tuple([space.get(name, self) for name in self._code.names])  # type: ignore[misc]
        if self._may_use("random", "statistics"):
            yield random.getstate
        if self._code.has_contexts and "decimal" in sys.modules:
            yield lambda: (sys.modules["decimal"].getcontext(), repr(sys.modules["decimal"].getcontext()))
        if self._may_use("numpy.random"):
            yield lambda: tuple([getattr(part, "tobytes", part.__repr__)() for part in numpy.random.get_state()])
        if self._may_use("numpy"):
            yield lambda: (numpy.geterrcall(), repr((numpy.geterr(), numpy.get_printoptions())))

    def _of_library(self) -> "list[Any]":
        """Of the modules that are imported, what the program names and may change."""
        held = [space[name] for space in self._spaces for name in self._names if name in space]
        found = [value for value in held if id(value) not in _old]  # what the program has put there
        for space in self._spaces if self._code.sets else ():
            self._note(space)
        for top in self._tops & _of_tops.keys():
            holders = _of_tops[top].holders
            held = [(space, name) for name in self._names for space in holders.get(name, ())]
            for value in {id(space[name]): space[name] for space, name in held if name in space}.values():
                is_code = isinstance(value, (type, types.FunctionType))
                found += [value] if self._code.stores or not is_code else _defaults(value)
                if self._code.stores and id(value) in _old:
                    found += _behind(value)
                if isinstance(value, type) and _flags(value) & _HEAP_TYPE:
                    members = _namespace(value)
                    if not self._code.stores:  # but a function of the library may
                        self._note(next(part for part in _references(value) if type(part) is dict))
                    found += [members[inner] for inner in self._names if inner in members]
        return found

    def _note(self, value: Any) -> "list[object]":
        """Everything that is inside an object."""
        is_alias = type(value) in _aliases
        is_code = type(value) is types.FunctionType or is_alias or (isinstance(value, type) and id(value) in _old)
        may_change = type(value) not in _UNCHANGING and (self._code.stores or not is_code)
        own: Any = None
        if _dict_offset(type(value)):
            with contextlib.suppress(AttributeError):
                own = object.__getattribute__(value, "__dict__")  # from now on an object of its own, with the names
        references, inside = _references(value), _inside(value) if may_change or not is_alias else ()
        if is_alias and not may_change:
            references = [*object.__getattribute__(value, "__dict__").values()]
        elif isinstance(value, type) and not may_change:
            references = [*_namespace(value).values(), *_mro(value)[1:]]
        if may_change:
            self._seen.append((value, references, inside))
        self._flat += len(references) + len(inside)
        if self._flat > _MOST_FLAT or len(self._seen) > _MOST_CHANGING:
            raise Unseen
        named = [own] if type(own) is dict else []  # from Python 3.13 on no reference leads to it
        return [*references, *named, *_objects(inside)]

    def _walk(self, waiting: "list[Any]") -> None:
        """Note everything that can be reached. What is old is not gone into, unless it is the beginning."""
        waiting = [part for part in waiting if type(part) not in _CONSTANT]
        while waiting:
            value = waiting.pop()
            kind, address = type(value), id(value)
            if kind is types.ModuleType or address in self._visited or (kind is dict and "__spec__" in value):
                continue
            if isinstance(value, type) and not _flags(value) & _HEAP_TYPE:
                continue
            self._visited.add(address)
            if len(self._visited) > _MOST:
                raise Unseen
            parts = self._note(value)
            if id(kind) not in _old and kind is not type:
                parts.append(kind)
            waiting += [part for part in parts if type(part) not in _CONSTANT and id(part) not in _old]


def _are_same(some: "Sequence[object]", others: "Sequence[object]") -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def _are_equal(some: "Sequence[object]", others: "Sequence[object]") -> bool:
    """Constants by value, other objects by identity."""
    return len(some) == len(others) and all(map(_is_equal, some, others))


def _is_equal(one: Any, other: Any) -> bool:
    kind = type(one)
    if one is other or kind is not type(other):
        return one is other
    if kind is tuple:
        return _are_equal(one, other)
    if kind is float or kind is complex:  # also the sign of what is no number
        return _doubles(one.real, one.imag) == _doubles(other.real, other.imag)
    if kind in _EXACT:
        return bool(one == other)
    return kind in _CONSTANT and repr(one) == repr(other)


def _objects(parts: "Sequence[object]") -> "list[object]":
    """What is in tuples that were made to show something."""
    found: list[object] = []
    for part in parts:
        if type(part) is tuple:
            found += _objects(part)
        elif type(part) not in _CONSTANT:
            found.append(part)
    return found


def _inside(value: Any) -> "Sequence[object]":
    """What is to be seen of an object beside its references. Raises Unseen where a part of it may not be seen."""
    for base in _mro(type(value)):
        inside = _INSIDES.get(base)
        if inside is not None:
            seen = inside(value)
            return seen if base in (type(value), type) else type(seen)((*seen, *_slots(value)))  # type: ignore[call-arg]
        if not _flags(base) & _HEAP_TYPE or not _is_of_python(base):
            if base.__reduce__ is object.__reduce__ or issubclass(base, _WITH_NUMBERS):
                raise Unseen
            try:  # the copy of an object of the library shows what it is: iterators, dates, numbers
                beside = [_array.base.__get__(value), *map(repr, _of_array(value))] if base is _array else []
                return [base.__reduce__(value), *_slots(value), *beside]
            except Exception:
                raise Unseen from None
    raise Unseen


def _keys_and_places(value: Any) -> "tuple[object, ...]":
    """Also how many entries are left and where the used ones are, deleted ones, too, for a loop that changes the table
    goes on by them: the same object for the same places. Not where the entries are those of a class."""
    keys, values = _OF_DICT.unpack(ctypes.string_at(id(value) + _IN_DICT, _OF_DICT.size))
    if values:
        return (*dict.keys(value),)
    _, _, indices, has_texts, _, left, used = _OF_KEYS.unpack(ctypes.string_at(keys, _OF_KEYS.size))
    size = used * (16 if has_texts else 24) if used > dict.__len__(value) else 0
    entries = ctypes.string_at(keys + _OF_KEYS.size + (1 << indices), size) if size else b""
    return (*dict.keys(value), sys.intern(str(hash((left, used, entries)))))


def _slots(value: Any) -> "list[object]":
    """What each of its slots has: from a reference nobody can tell which slot it is of."""
    found: list[object] = []
    for base in _mro(type(value))[:-1]:
        for name, part in _namespace(base).items():
            if type(part) is types.MemberDescriptorType:
                with contextlib.suppress(AttributeError):
                    found += (name, part.__get__(value))
    return found


def _behind(value: Any) -> "list[object]":
    """Of a library's object that is named, those that are reached without their names: an alias' class, which gets what
    is stored in the alias, an enumeration's members, also those that are combined later, and what a class inherits."""
    if type(value) in _aliases:
        return [object.__getattribute__(value, "__dict__").get("__origin__")]
    kind = value if isinstance(value, type) else type(value)
    members = _namespace(kind).get("_value2member_map_", {})
    return [members, *members.values(), *(_mro(value)[1:] if kind is value else ())]


def _defaults(code: "type | types.FunctionType") -> "list[object]":
    """What a library's function may hand over that is its own: its attributes, lists and tables among its defaults."""
    if isinstance(code, type):
        return []
    given = [*(code.__defaults__ or ()), *(code.__kwdefaults__ or {}).values()]
    return [code.__dict__, *(part for part in given if type(part) in (list, dict, set))]


def _of_array(value: Any) -> "tuple[object, object]":
    """How it lies in memory."""
    return _array.flags.__get__(value), _array.__array_interface__.__get__(value)


def _is_of_python(base: type) -> bool:
    """Whether a class was made by a statement, so that it holds nothing but attributes."""
    members = _namespace(base)
    return (
        members.get("__module__") == "solution"
        or "__slots__" in members
        or any(type(member) is types.FunctionType for member in members.values())
    )
