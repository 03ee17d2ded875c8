"""Plain Python data as JSON text: the only thing that crosses the sandbox's border.

Exact builtin types have a form of their own: None, bool, int, float, complex, str, bytes, list, tuple, dict, set,
frozenset. Further kinds, and what equals nothing but itself, are in `value_kinds.py`. An instance of a subclass is
reduced to its base value by base-class methods; anything else is opaque and equals nothing.

Does not promise that equal values have equal encodings (sets and dicts keep their order): see
`codea1_env.judging.equality`; nor to tell two lone surrogates that stand together from the one character that they
spell in JSON. The encoder runs in the untrusted process and protects nothing; whatever it writes is only "a returned
value".
"""

import json
from collections.abc import Callable
from typing import Any

if __name__ == "values":  # beside the zygote, which runs by path
    import value_kinds
else:
    from codea1_env.sandbox.inside import value_kinds

MAX_DEPTH = 100
NANS: tuple[float, ...] = ()
"""What `decode` hands out first: the hash of a NaN is its address, and that of a new one hangs on what was before. The
zygote makes them before anything else."""

_nans = iter(NANS)

TOO_LARGE = b'{"o":"too large"}'
_INT_MIN, _INT_MAX = -(1 << 63), (1 << 63) - 1
_dumps = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), check_circular=False).encode
TooLarge, _take = value_kinds.TooLarge, value_kinds.take


class Code:
    """An argument that is code, as its text: what evaluates the arguments makes it, and what is called gets the
    value. Or a whole question: a name of the program's, and a text that it is evaluated with."""

    def __init__(self, text: "str | list[str]") -> None:
        self.text = text


def encode(value: object, max_bytes: int = 1 << 20) -> bytes:
    """Encode `value`; opaque where it is no plain data or is larger than `max_bytes` or deeper than MAX_DEPTH."""
    if type(value) is bool:  # what most functions return, without a walk
        return b"true" if value else b"false"
    if type(value) is int and _INT_MIN <= value <= _INT_MAX:
        return b"%d" % value
    try:
        text = _dumps(tree(value, [max_bytes], 0)).encode("ascii")
    except (TooLarge, RecursionError):
        return TOO_LARGE
    return text if len(text) <= max_bytes else TOO_LARGE


def tree(value: Any, room: list[int], depth: int) -> Any:
    """The JSON tree of `value`. `room[0]` counts down an upper bound of the bytes still allowed."""
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        if _INT_MIN <= value <= _INT_MAX:
            return value
        _take(room, value.bit_length() >> 2)
        return {"i": hex(value)}
    if kind is str:
        _take(room, len(value))
        return value
    if kind is float:
        return value if value - value == 0 else {"f": "nan" if value != value else "inf" if value > 0 else "-inf"}
    if depth >= MAX_DEPTH:
        raise TooLarge
    if kind is list:
        _take(room, len(value))
        return [tree(item, room, depth + 1) for item in value]
    if kind is tuple:
        _take(room, len(value))
        return {"t": [tree(item, room, depth + 1) for item in value]}
    if kind is dict:
        _take(room, len(value) * 2)
        return {"d": [[tree(key, room, depth + 1), tree(item, room, depth + 1)] for key, item in value.items()]}
    if kind is set or kind is frozenset:
        _take(room, len(value))
        return {"s" if kind is set else "z": [tree(item, room, depth + 1) for item in value]}
    if kind is bytes:
        _take(room, len(value) * 2)
        return {"b": value.hex()}
    if kind is complex:
        return {"c": [tree(value.real, room, depth + 1), tree(value.imag, room, depth + 1)]}
    return _reduced(value, kind, room, depth)


def _reduced(value: Any, kind: type, room: list[int], depth: int) -> Any:
    """What is of a further kind; a subclass's instance as its base value, read by the base's own methods; an object."""
    if kind is Code:
        return {"e": value.text}
    _take(room, 16)
    reading = value_kinds.Reading(lambda part: tree(part, room, depth + 1), room)
    try:
        found = value_kinds.further(value, kind, reading)
        if found is not None:
            return found
        for base, read in READERS:
            if issubclass(kind, base):
                return tree(read(value), room, depth)
        return value_kinds.identity(value, kind, reading)
    except (TooLarge, MemoryError, RecursionError):
        raise
    except Exception:  # what a class says of itself may raise anything
        return {"o": str(kind.__name__)[:64]}


READERS: tuple[tuple[type, Callable[[Any], object]], ...] = (
    (int, int.__index__),
    (float, float.__float__),
    (complex, lambda value: complex(complex.__getattribute__(value, "real"), complex.__getattribute__(value, "imag"))),
    (str, lambda value: str.__str__(value) if type(str.__str__(value)) is str else str.__add__("", value)),
    (bytes, lambda value: bytes.__getitem__(value, slice(None)) if type(value) is bytes else bytes.__add__(b"", value)),
    (bytearray, lambda value: bytes(bytearray.__getitem__(value, slice(None)))),
    (tuple, lambda value: (*tuple.__iter__(value),)),
    (list, lambda value: [*list.__iter__(value)]),
    (dict, lambda value: dict([*dict.items(value)])),
    (frozenset, lambda value: frozenset([*frozenset.__iter__(value)])),
    (set, lambda value: {*set.__iter__(value)}),
)


scope: Callable[[str], dict[str, Any]] | None = None
"""The names that an argument which is code may use; None where no argument may be code."""


def begin() -> None:
    """Of an item: its first NaN is the first of NANS again."""
    global _nans
    _nans = iter(NANS)


def decode(node: Any) -> Any:
    """The Python value of a JSON tree. Raises ValueError (or TypeError: unhashable) for a malformed one."""
    if type(node) is list:
        return [decode(item) for item in node]
    if type(node) is not dict:
        return node
    if len(node) != 1:
        raise ValueError("a tagged value must have exactly one tag")
    ((tag, body),) = node.items()
    if tag == "t":
        return tuple([decode(item) for item in body])
    if tag == "d":
        return {decode(key): decode(item) for key, item in body}
    if tag == "s":
        return {decode(item) for item in body}
    if tag == "z":
        return frozenset([decode(item) for item in body])
    if tag == "i":
        return int(body, 16)
    if tag == "f":
        return next(_nans, float(body)) if body == "nan" else float(body)
    if tag == "b":
        return bytes.fromhex(body)
    if tag == "c":
        return complex(decode(body[0]), decode(body[1]))
    if tag == "k":
        return value_kinds.decoded(body, decode)
    if tag == "v" and body[0] == "iterator" and not body[3]:
        return iter(decode(body[2]))
    if tag == "e" and scope is not None:
        return eval(body, scope(body))
    raise ValueError(f"a tag must be one of t d s z i f b c k, got {tag!r}")
