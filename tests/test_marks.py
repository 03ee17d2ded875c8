"""What a call does by addresses, or at the end of memory or stack, is marked where it happens (`inside/marks.py`)."""

import ctypes
import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import unicorn
from attacks.independence import KEEPING_PROGRAMS, ONLY_LOOKING_PROGRAMS
from attacks.samples import some_of_each_kind
from test_companies import differing
from unicorn import arm64_const, x86_const

from codea1_env import LocalSandbox
from codea1_env.sandbox.inside import marks

INSIDE = Path(marks.__file__).parent

_IN_A_PROCESS = """
import collections, contextvars, decimal, functools, hashlib, itertools, json, math, random, re, sys, typing, weakref
import numpy as np
sys.path.insert(0, sys.argv[1])
import marks
class Old: pass
old = Old()
before = hash(old), repr(old), hash(Old), hash(len), hash(2.5)
marks.watch()
assert marks.is_watching
class Plain:
    pass
class Said(Plain):
    def __repr__(self):
        return super().__repr__()
class Named:
    def __repr__(self):
        return "named"
    def __hash__(self):
        return 1
class Number(float):
    pass
class Full(MemoryError):
    pass
def function():
    yield
async def coroutine():
    pass
def deeper():
    deeper()
def caught(error):
    try:
        raise error
    except error:
        pass
def fresh(size):
    for _ in range(20):
        np.full(size, 2.5)
    return np.empty(size)
def catches(function):
    try:
        function()
    except Exception:
        pass
def closed():
    return old
nan, text = float("nan"), "text"
variable = contextvars.ContextVar("v")
kept = set()
shown = [
    Plain(), Old(), Said(), [Plain()], {"k": Plain()}, function, function(), len, [].append, [].__len__,
    Plain().__init__, functools.partial(function), functools.lru_cache(function), property(), staticmethod(function),
    iter([]), map(str, []), zip(), itertools.chain(), re.finditer("a", "a"), random.Random(), hashlib.sha256(),
    hashlib.blake2b(), weakref.ref(function), function.__code__, closed.__code__, memoryview(b""), variable,
    collections.defaultdict(function), np.array([Plain()], object), functools.cmp_to_key(len), object(),
]
hashed = [
    Plain(), Old(), Said(), function, len, [].append, [].__len__, Plain().__init__, (1, Plain()), nan, Number("nan"),
    np.float64("nan"), np.float32("nan"), complex(nan, 0), decimal.Decimal("NaN"), iter([]), object(), Plain,
    functools.partial(function), weakref.ref(function), np.datetime64("NaT"), math,
    typing.TypeVar("T"), typing.NewType("N", int),
]
neither = [
    1, 2.5, -0.0, 1e999, Number(2), text, b"", (1, (2.5, "a")), frozenset([1, "a"]), None, True, int, ..., Named(),
    np.int64(1), np.float64(2), np.str_("a"), range(3), re.compile("a"), NotImplemented,
]
def of(act, *given):
    marks.begin()
    catches(lambda: act(*given))
    return [marks.has(each) for each in (marks.HASHED, marks.CLASSED, marks.SHOWN, marks.EXHAUSTED)]
said = {
    "shown": [
        (str(type(each)), of(repr, each), of("{}".format, each), of(type(each).__repr__, each)) for each in shown
    ],
    "hashed": [(repr(type(each)), of(kept.add, each)) for each in hashed],
    "neither": [(repr(each), of(repr, each), of({}.get, each)) for each in neither],
    "stack": of(deeper),
    "memory": [of(caught, MemoryError), of(caught, Full), of(lambda: "x" * (1 << 62)), of(lambda: [0] * (1 << 62))],
    "other": [of(caught, ValueError), of(caught, RuntimeError), of(next, iter(()))],
    "zeros": bool((fresh(40) == 0).all() and (fresh(1 << 20) == 0).all()),
    "bytes": [of(bytes, each) for each in (np.array([old], object), np.zeros(1, "O,i8")[0], np.matrix([[old]]))],
    "same": (hash(old), repr(old), hash(Old), hash(len), hash(2.5)) == before,
}
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said() -> dict[str, Any]:
    """In a process of its own: the types of this one stay as they are."""
    ran = subprocess.run([sys.executable, "-c", _IN_A_PROCESS, str(INSIDE)], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_a_text_with_an_address_is_marked_however_it_is_asked_for(said: dict[str, Any]) -> None:
    for kind, *found in said["shown"]:
        assert all(marks_of[marks.SHOWN] for marks_of in found), kind


def test_a_hash_that_is_an_address_is_marked(said: dict[str, Any]) -> None:
    for kind, found in said["hashed"]:
        is_class = kind == "<class 'type'>" or "typing." in kind
        assert found == [not is_class, is_class, False, False], kind


def test_what_has_neither_is_not_marked(said: dict[str, Any]) -> None:
    for value, *found in said["neither"]:
        assert found == [[False] * 4] * 2, value


def test_the_end_of_stack_and_memory_is_marked_also_where_it_is_caught(said: dict[str, Any]) -> None:
    assert said["stack"][marks.EXHAUSTED]
    assert all(found[marks.EXHAUSTED] for found in said["memory"])
    assert not any(found[marks.EXHAUSTED] for found in said["other"])


def test_memory_of_arrays_has_zeros_and_that_of_objects_is_marked(said: dict[str, Any]) -> None:
    assert said["zeros"]
    assert all(found[marks.SHOWN] for found in said["bytes"])


def test_what_is_marked_has_the_results_that_it_had(said: dict[str, Any]) -> None:
    assert said["same"]


ARM64 = (
    unicorn.UC_ARCH_ARM64,
    unicorn.UC_MODE_ARM,
    arm64_const.UC_ARM64_REG_X0,
    [getattr(arm64_const, f"UC_ARM64_REG_X{number}") for number in range(8)],
)
X86_64 = (
    unicorn.UC_ARCH_X86,
    unicorn.UC_MODE_64,
    x86_const.UC_X86_REG_RDI,
    [getattr(x86_const, f"UC_X86_REG_{name}") for name in ("RDI", "RSI", "RDX", "RCX", "RSP")],
)
CODE, DATA, MARK, NEXT = 0x10000, 0x20000, 0x30004, 0x11000
FLAG = 1 << 9


def is_marked(machine: str, condition: int, content: bytes, place: int) -> bool:
    """Whether an emulated processor sets the mark for an object with this content there, and leaves all else alone."""
    architecture, mode, first, kept = {"aarch64": ARM64, "x86_64": X86_64}[machine]
    processor = unicorn.Uc(architecture, mode)
    for start in (CODE, DATA, MARK & ~0xFFF, NEXT):
        processor.mem_map(start, 0x1000)
    processor.mem_write(CODE, marks.instructions(machine, condition, MARK, NEXT))
    processor.mem_write(DATA + place, content)
    if machine == "aarch64":  # programs may use the registers of numbers
        processor.reg_write(arm64_const.UC_ARM64_REG_CPACR_EL1, 3 << 20)
    for number, register in enumerate(kept):
        processor.reg_write(register, 0x1000 + number)
    processor.reg_write(first, DATA)
    before = [processor.reg_read(register) for register in kept]
    processor.emu_start(CODE, NEXT, count=20)
    assert processor.reg_read(x86_const.UC_X86_REG_RIP if machine == "x86_64" else arm64_const.UC_ARM64_REG_PC) == NEXT
    assert [processor.reg_read(register) for register in kept] == before
    around = bytes(processor.mem_read(MARK - 4, 12))
    assert around in (bytes(12), bytes(4) + b"\1" + bytes(7))
    return around != bytes(12)


@pytest.mark.parametrize("machine", marks.CODE)
def test_the_instructions_set_a_mark_and_go_on(machine: str) -> None:
    assert is_marked(machine, marks.ALWAYS, b"", 0)
    for flags in (0, FLAG, FLAG >> 1, FLAG << 1, FLAG | 1 << 31, ~FLAG & (1 << 64) - 1):
        assert is_marked(machine, marks.MADE, struct.pack("<Q", flags), 168) == bool(flags & FLAG)
    for number in (0.0, -0.0, 1.5, -1e308, 5e-324, float("inf"), float("-inf")):
        assert not is_marked(machine, marks.NAN, struct.pack("<d", number), object.__basicsize__)
    for bits in (0x7FF8 << 48, 0xFFF8 << 48, (0x7FF0 << 48) + 1, (1 << 64) - 1):
        assert is_marked(machine, marks.NAN, struct.pack("<Q", bits), object.__basicsize__)


@pytest.mark.parametrize("machine", marks.CLEARING)
def test_memory_of_a_size_is_asked_for_as_that_of_one_object_with_zeros(machine: str) -> None:
    architecture, mode, _, kept = {"aarch64": ARM64, "x86_64": X86_64}[machine]
    processor = unicorn.Uc(architecture, mode)
    for start in (CODE, NEXT):
        processor.mem_map(start, 0x1000)
    processor.mem_write(CODE, marks.clearing(machine, NEXT))
    for number, register in enumerate(kept):
        processor.reg_write(register, 0x1000 + number)
    processor.emu_start(CODE, NEXT, count=20)
    context, count, size = [processor.reg_read(register) for register in kept[:3]]
    assert (context, count, size) == (0x1000, 1, 0x1001)


def test_types_lie_as_the_instructions_have_it() -> None:
    for kind in (object, int, type("Made", (), {})):
        assert ctypes.c_ulong.from_address(id(kind) + 168).value == kind.__flags__
        assert bool(kind.__flags__ & FLAG) == (kind.__name__ == "Made")
    assert ctypes.c_double.from_address(id(float("1.5")) + object.__basicsize__).value == 1.5


def test_where_nobody_watches_each_call_is_alone() -> None:
    programs = [*some_of_each_kind(KEEPING_PROGRAMS, step=40), *some_of_each_kind(ONLY_LOOKING_PROGRAMS, step=40)]
    with LocalSandbox(without={"marks"}) as sandbox:
        assert differing(sandbox, sandbox, 5, 3, programs) == {}
