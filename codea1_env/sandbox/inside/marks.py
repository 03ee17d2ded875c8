"""Marks on what a call did that another call may be told by, though nothing is kept: an object's address decided its
hash or stood in a text, or memory or the stack came to an end.

The interpreter asks a function of an object's type for its hash, its text and its end. `watch` puts a few instructions
before those that depend on an address: they set a byte and go on as before, so that objects of every library are seen,
and nothing has another result. numpy's arrays begin as zeros here, for what was in memory before is other calls'.

Does not promise to see what a program reads by a far word (`looks.py`): `id`, the memory itself.
"""

import _thread
import contextvars
import ctypes
import mmap
import os
import sys
import types
import weakref
from collections.abc import Iterator

HASHED, CLASSED, SHOWN, EXHAUSTED = range(4)
"""By its address: an object's hash, which orders a set; that of a class or of typing's, as typing asks for as a program
loads; an object's text. The fourth: the stack or memory came to an end."""
_NONE = bytes(4)
_marks = (ctypes.c_ubyte * 4)()
_seen = memoryview(_marks).cast("B")
is_watching = False
_BYTES = 1 << 14
_DEALLOC, _REPR, _HASH, _BUFFER, _FLAGS, _SIZE = 48, 88, 120, 160, 168, 32
"""Where a type has its functions, what gives its objects' memory, its flags and the size of its objects: bytes from its
beginning."""
_OF_DESCRIPTOR = 48
"""Where the descriptor of such a function has it."""
_ARRAYS_ALLOCATOR, _MALLOC, _CALLOC = 306, 136, 144
"""Where numpy's table has what allocates the memory of arrays, and where that has its functions."""

ALWAYS, MADE, NAN = range(3)
"""What sets a mark: every object; a class that a statement or a call has made; a float that is no number."""
CODE = {
    "x86_64": (
        # test dword [rdi + 168], 0x200; jz 13 | movsd xmm0, [rdi + 16]; ucomisd xmm0, xmm0; jnp 13
        ("", "f787a80000000002 0000740d", "f20f104710660f2e c07b0d"),
        # mov rax, MARK; mov byte [rax], 1; mov rax, NEXT; jmp rax
        "48b8{mark}c60001 48b8{next}ffe0",
    ),
    "aarch64": (
        # ldr w17, [x0, 168]; tbz w17, 9, 16 | ldr d0, [x0, 16]; fcmp d0, d0; b.vc 16
        ("", "11a840b9 91004836", "000840fd 0020601e 87000054"),
        # ldr x16, MARK; mov w17, 1; strb w17, [x16]; ldr x16, NEXT; br x16
        "b0000058 31008052 11020039 90000058 00021fd6 {mark}{next}",
    ),
}
"""Of a processor: the conditions, and what sets a mark and goes on. The object is a function's first argument."""
CLEARING = {
    # mov rdx, rsi; mov esi, 1; mov rax, NEXT; jmp rax
    "x86_64": "4889f2be01000000 48b8{next}ffe0",
    # mov x2, x1; mov x1, 1; ldr x16, NEXT; br x16
    "aarch64": "e20301aa210080d2 5000005800021fd6 {next}",
}
"""Likewise, what asks for memory for one object of a size where memory of that size is asked for: it has zeros."""


def instructions(machine: str, condition: int, mark: int, following: int) -> bytes:
    """Set the byte at `mark` where the condition holds, then go on at `following`."""
    conditions, rest = CODE[machine]
    places = {"mark": mark.to_bytes(8, "little").hex(), "next": following.to_bytes(8, "little").hex()}
    return bytes.fromhex(conditions[condition] + rest.format(**places))


def clearing(machine: str, following: int) -> bytes:
    """Go on at `following`, which clears what it gives."""
    return bytes.fromhex(CLEARING[machine].format(next=following.to_bytes(8, "little").hex()))


def watch() -> None:
    """In the zygote. Where the machine does not permit it, `is_watching` stays False, and each call is alone."""
    global is_watching
    machine = os.uname().machine
    if machine not in CODE or not _is_as_known():
        return
    try:
        allocator = _allocator()
    except ValueError:
        return
    page = mmap.mmap(-1, _BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(page))
    begins: dict[tuple[int, int, int], int] = {}
    places = []
    for place, mark, condition in _watched():
        function = _at(place)
        begin = begins.get((function, mark, condition))
        if begin is None:
            code = instructions(machine, condition, ctypes.addressof(_marks) + mark, function)
            begin = begins[function, mark, condition] = start + page.tell()
            page.write(code.ljust(-len(code) % 16 + len(code)))
        places.append((place, begin))
    if allocator:
        places.append((allocator + _MALLOC, start + page.tell()))
        page.write(clearing(machine, _at(allocator + _CALLOC)))
    if ctypes.CDLL(None).mprotect(ctypes.c_void_p(start), _BYTES, mmap.PROT_READ | mmap.PROT_EXEC):
        return
    for place, begin in places:
        ctypes.c_size_t.from_address(place).value = begin
    _kept.append(page)
    is_watching = True


def begin() -> None:
    """No mark is set."""
    _seen[:] = _NONE


def has(mark: int) -> bool:
    """Whether it was set since the last `begin`."""
    return _seen[mark] != 0


_kept: "list[object]" = []
_SHOWING = frozenset(
    (types.FunctionType, types.BuiltinFunctionType, types.MethodWrapperType, types.CodeType, types.CellType,
     types.FrameType, types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, memoryview, weakref.ref,
     weakref.ProxyType, weakref.CallableProxyType, _thread.LockType, _thread.RLock, contextvars.ContextVar,
     contextvars.Token)
)  # fmt: skip
"""Types whose objects' text has their address, beside those that have the text of any object."""
_OWN_TEXTS = ("_hashlib", "numpy.random")
"""Modules with types that put an address into a text of their own."""
_HASHING = frozenset((types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType, complex))
"""Types whose objects' hash may be made of an address, likewise."""
_HOLDING = ("ndarray", "void")
"""Types of numpy whose objects' memory may have addresses of others, which it gives to whatever reads bytes."""
_ONE = frozenset((type(None), type(Ellipsis), type(NotImplemented)))
"""Types of an object that is at the same address in all processes."""


def _watched() -> "Iterator[tuple[int, int, int]]":
    """Where the functions are, with what they mark and when."""
    of_object = {where: _at(id(object) + where) for where in (_REPR, _HASH)}
    for kind in kinds():
        for where, mark, name, condition in (
            (_REPR, SHOWN, "__repr__", _shows(kind, of_object[_REPR])),
            (_HASH, HASHED, "__hash__", _hashes(kind, of_object[_HASH])),
            (_DEALLOC, EXHAUSTED, "", ALWAYS if kind is MemoryError or kind is RecursionError else None),
        ):
            if condition is not None:
                is_of_typing = mark == HASHED and (condition == MADE or kind.__module__ == "typing")
                mark = CLASSED if is_of_typing else mark
                yield id(kind) + where, mark, condition
                described = vars(kind).get(name)  # from which classes of Python inherit
                if type(described) is types.WrapperDescriptorType:
                    yield id(described) + _OF_DESCRIPTOR, mark, condition
        giving = _at(id(kind) + _BUFFER)
        if giving and _at(giving) and any(base.__name__ in _HOLDING for base in kind.__mro__):
            yield giving, SHOWN, ALWAYS


def _shows(kind: type, of_object: int) -> "int | None":
    is_shown = _at(id(kind) + _REPR) == of_object or kind in _SHOWING or str(kind.__module__).startswith(_OWN_TEXTS)
    return ALWAYS if is_shown else None


def _hashes(kind: type, of_object: int) -> "int | None":
    if issubclass(kind, float):
        return NAN
    if _at(id(kind) + _HASH) == of_object and kind not in _ONE:
        return MADE if issubclass(kind, type) else ALWAYS
    is_number = any(base.__name__ in ("Decimal", "inexact") for base in kind.__mro__)
    return ALWAYS if is_number or kind in _HASHING else None


def kinds() -> "set[type]":
    """All types that there are."""
    waiting: list[type] = [object]
    found = {*waiting}
    while waiting:
        inner: set[type] = {*type.__subclasses__(waiting.pop())} - found
        found |= inner
        waiting += inner
    return found


def _allocator() -> int:
    """Where it is that allocates the memory of arrays; 0 where there is no numpy. Raises ValueError for another one."""
    numpy = sys.modules.get("numpy._core._multiarray_umath") or sys.modules.get("numpy.core._multiarray_umath")
    if numpy is None:
        return 0
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    held = _at(pointer(vars(numpy)["_ARRAY_API"], None) + _ARRAYS_ALLOCATOR * ctypes.sizeof(ctypes.c_void_p))
    allocator: int = pointer(ctypes.py_object.from_address(held), b"mem_handler")
    return allocator


def _at(place: int) -> int:
    return ctypes.c_size_t.from_address(place).value


def _is_as_known() -> bool:
    """Whether types lie in memory as this module has it."""
    made = type("Made", (), {})
    is_inherited = all(_at(id(made) + where) == _at(id(object) + where) for where in (_REPR, _HASH))
    return is_inherited and all(
        (_at(id(kind) + _SIZE), _at(id(kind) + _FLAGS)) == (kind.__basicsize__, kind.__flags__)
        for kind in (object, made, float)
    )
