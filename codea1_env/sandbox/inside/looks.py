"""What the text of a program names, read off its compiled code before any of it runs.

A far word reaches what `state.py` does not look at, or tells of the process itself: the collector, frames, modules that
are not on the list, addresses, clocks. What is neither the program's own nor of the listed modules is one, too.
Names only: what a program does with them is none of this module's business.
"""

import builtins
import gc
import opcode
import re
import sys
import types

OURS = "_codea1"
"""What begins so is no candidate's: the text that follows a solution (`problems/kinds.py`)."""
MODULES = frozenset(
    "__future__ abc array bisect cmath collections collections.abc contextlib copy dataclasses datetime decimal enum "
    "fractions functools hashlib heapq itertools json math numbers numpy numpy.linalg numpy.random numpy.typing "
    "operator pathlib queue random re sortedcontainers statistics string sys textwrap typing unicodedata".split()
)
"""What a program may import and still be looked at: whatever they remember is looked at, or named by a far word."""
_OF_SYS = frozenset(dir(sys)) - {"maxsize", "float_info", "version_info", "byteorder", "stdin"}
_FAR = frozenset(
    # the process, its objects and its frames
    "open breakpoint memoryview getattr setattr delattr attrgetter methodcaller builtins gi_frame gi_code gi_yieldfrom "
    "f_globals f_locals f_back f_builtins f_code tb_frame tb_next cr_frame cr_code ag_frame ag_code mro sys modules "
    # what modules of the list remember
    "register dispatch_table setcontext DefaultContext BasicContext ExtendedContext get_type_hints purge "
    "update_abstractmethods get_overloads clear_overloads now today utcnow SystemRandom randbytes urandom chdir "
    "redirect_stdout redirect_stderr buffer_info".split()
)
_FAR_BUILTINS = frozenset("globals locals vars dir exec compile input exit quit help id".split())
"""Attributes of these names are another thing, for a name of the builtins' module is far itself."""
_NO_ATTRIBUTES = _FAR_BUILTINS | {"eval"}
_FAR_IN = {
    "pathlib": frozenset(
        "cwd home absolute resolve exists stat iterdir glob rglob read_text read_bytes write_text write_bytes is_file "
        "is_dir owner expanduser touch mkdir".split()
    ),
    # memory with addresses, files, what is set for all
    "numpy": frozenset(
        "tobytes tostring dumps ctypeslib core lib f2py testing compat memmap fromfile tofile save savez "
        "savetxt load loadtxt genfromtxt fromregex DataSource seterr seterrcall seterrobj setbufsize "
        "set_printoptions set_string_function set_numeric_ops default_rng byte_bounds "
        "nditer set_default_printstyle _core dump add_docstring add_newdoc "
        "printoptions show_config get_bit_generator set_bit_generator".split()
    ),
}
"""By a package: its far words, which mean nothing where it is not loaded."""
_OTHER_MODULES = frozenset(sys.stdlib_module_names) - {module.partition(".")[0] for module in MODULES}
"""Modules that are inside those of the list."""
_OWN = frozenset(
    f"__{name}__"
    for name in "abs add and annotations bool call class contains delitem doc enter eq exit floordiv format ge get "
    "getitem gt iadd init int iter le len lt main matmul missing mod module mul name ne neg next new or pos "
    "post_init pow qualname radd repr reversed rmul rsub set set_name setitem slots str sub truediv xor".split()
)
"""Names with two underscores at both ends that a program may have: how its own objects behave."""
_DUNDER = re.compile(r"__\w+__")
_IN_TEXT = re.compile(rf"{_DUNDER.pattern}|\b(?:gi|cr|ag|tb|f)_[a-z]+")
"""What a text may name, in a format."""
_FIELD = re.compile(r"\{[^{}]*\.(\w+)")
"""An attribute that a format reads."""
_PATTERN = opcode.opmap["MATCH_CLASS"]
_IMPORT, _CAUGHT = opcode.opmap["IMPORT_NAME"], opcode.opmap["PUSH_EXC_INFO"]
_SETS = frozenset(opcode.opmap[name] for name in ("BUILD_SET", "SET_ADD", "SET_UPDATE"))
_SET_NAMES = frozenset("set frozenset Set MutableSet KeysView ItemsView SortedSet keys items hash".split())
_IS, _IS_NAMES = opcode.opmap["IS_OP"], frozenset(("is_", "is_not"))
_DELETES = frozenset(opcode.opmap[name] for name in ("DELETE_SUBSCR", "DELETE_GLOBAL", "DELETE_ATTR"))
_DELETING = frozenset("pop popitem clear delitem __delitem__ Counter".split())  # which drops what is not above zero
_BUILTINS = frozenset(vars(builtins))
_STORES = frozenset(opcode.opmap[name] for name in ("STORE_ATTR", "DELETE_ATTR"))
_ATTRIBUTES = _STORES | {opcode.opmap[name] for name in ("LOAD_ATTR", "LOAD_METHOD") if name in opcode.opmap}
_GLOBALS = frozenset(opcode.opmap[name] for name in ("STORE_GLOBAL", "DELETE_GLOBAL"))
_IMPORT_FROM, _STORE = opcode.opmap["IMPORT_FROM"], opcode.opmap["STORE_NAME"]
_BROUGHT = frozenset(opcode.opmap[name] for name in ("IMPORT_NAME", "IMPORT_FROM", "LOAD_NAME", "LOAD_ATTR"))
"""What may bring the value that the next name is bound to, also inside a table or as a default."""
_BINDINGS = _STORES | _GLOBALS | {_STORE}
_BOUND = _STORES | _GLOBALS | {_IMPORT}
_NAMED = frozenset(opcode.hasname)
_SHIFTS = {opcode.opmap["LOAD_GLOBAL"]: 1}
if sys.version_info >= (3, 12):
    _SHIFTS |= {opcode.opmap["LOAD_ATTR"]: 1, opcode.opmap["LOAD_SUPER_ATTR"]: 2}
"""Bits of an operation's argument that come before its name."""
_IN_FUNCTION, _SUSPENDED = 1, 0x2A0
"""Of the flags of code: that it is no body of a module or a class; that it may be let go of before its end."""
_CONTEXTS = frozenset(("getcontext", "localcontext"))
_SETTERS = frozenset(
    "update_wrapper wraps total_ordering dataclass runtime_checkable global_enum final abstractmethod no_type_check "
    "override dataclass_transform cached_property abstractclassmethod abstractstaticmethod".split()
)
"""What stores attributes of what it is given."""
_STORING = ("__annotations__", "__init__")
"""What stores attributes of its own object, of a module, too."""
_OF_ALIASES = frozenset("_name _inst _nparams _paramspec_tvars _typevar_types".split())
"""What an alias of `typing` keeps itself; every other attribute is its class'."""
_ASKED_LATE = frozenset("__del__ __subclasshook__ __subclasscheck__ __index__".split())
"""Methods that run when the collector pleases, whose answers abc remembers, or of which numpy forgets the end of the
stack."""
_GIVERS = frozenset(
    "type __class__ get_origin get_args parse_array parse_object pathmod flags traps args default "
    "default_factory".split()
)
"""What gives a part of a library that the program need not name: its class, the parts of an alias, the signals of a
context, an exception's arguments, what stands for no default."""
_COLLECTION_ABCS = frozenset("send throw close".split())
"""Methods without underscores that the library's abstract classes ask for."""
_INTERNING = frozenset(
    "hasattr PurePath PurePosixPath PureWindowsPath namedtuple eval Enum IntEnum StrEnum Flag IntFlag".split()
)
"""What keeps the texts that it is given, or looks them up in a class, which remembers them."""
_IMMORTAL = {11: frozenset[str](), 12: _INTERNING}.get(sys.version_info[1], frozenset(("eval",)))
"""Of these, what keeps them for good."""
_hidden: "frozenset[str]" = frozenset()
_known: "frozenset[str]" = frozenset()
_loaded: "frozenset[str]" = frozenset()
_anywhere: "frozenset[str]" = frozenset()
"""Names of attributes that something in this process has. Nothing comes of any other name but an exception."""


def learn(all_kinds: "set[type]") -> None:
    """In the zygote, which has `all_kinds` of objects: what names its modules and types have, and which are hidden."""
    global _hidden, _known, _loaded, _anywhere
    modules = [sys.modules[module] for module in MODULES.intersection(sys.modules)]
    names = {name for module in modules for name in vars(module)}
    builtins_names = {name for module in modules for name, value in vars(module).items() if value is builtins}
    _hidden = frozenset(name for name in names if name.startswith("_")) - _OWN - {"_"} | builtins_names
    kinds = [value for module in [*modules, builtins] for value in vars(module).values() if isinstance(value, type)]
    held = (
        {name for kind in kinds for name in dir(kind)} | names | {*vars(builtins), "hexdigest"} | MODULES
    )  # of a hash
    _known = frozenset(name for name in held if not name.startswith("_")) | _OWN
    _loaded = frozenset(sys.modules)
    of_kinds = {name for kind in all_kinds for name in vars(kind)}
    _anywhere = frozenset(_names_of_modules() | of_kinds | _names_in_code())


def _names_of_modules() -> "set[str]":
    return {name for module in [*sys.modules.values()] for name in vars(module)}


def _names_in_code() -> "set[str]":
    """Among them those of the attributes that objects have of their own."""
    functions = [each for each in gc.get_objects() if type(each) is types.FunctionType]
    return {name for function in functions for name in function.__code__.co_names}


class Looks:
    """One program's code, with all that is compiled within it."""

    def __init__(self, code: types.CodeType, has_sets: bool = False) -> None:
        """`has_sets`: whether its calls give it any."""
        self.names: set[str] = set()
        """All that it uses; not what it only imports."""
        self._brought: dict[str, set[str]] = {}
        """By a module, the names that its imports bind outside of functions, and their names in it."""
        self._aliases: set[tuple[str, str]] = set()
        """Names under which something was imported, and its own."""
        self._own: set[str] = set()
        self._operations: set[int] = set()
        self._in_functions: set[str] = set()
        self._stored: set[str] = set()
        """Attributes that functions and classes bind."""
        self._builtins: set[str] = set()
        """Names that may be the builtins'."""
        self._suspends_in_handlers = False
        """Whether it has a generator that may be let go of where exceptions are handled."""
        self._texts: list[str] = []
        waiting, bodies = [code], []
        while waiting:
            part = waiting.pop()
            self._read(part)
            if not part.co_flags & _IN_FUNCTION or part.co_name == "<setcomp>":
                bodies.append(part)
            waiting += [each for each in part.co_consts if type(each) is types.CodeType]
        self.names.update(name for alias, name in self._aliases if alias in self.names)
        has_star = "*" in self._texts
        if has_star and "sys" in self._brought:
            self.names.add("sys")
        self.imported = {
            module
            for module, names in self._brought.items()
            if has_star or not names or not self.names.isdisjoint((*names, module.partition(".")[0]))
        }
        """Modules that it imports, but for those that it does not use."""
        self.tops = {module.partition(".")[0] for module in self.imported}
        self.makes_sets = has_sets or not (_SETS.isdisjoint(self._operations) and _SET_NAMES.isdisjoint(self.names))
        self.loads_sets = any(map(_makes_sets, bodies))
        """Whether it may have sets as soon as it is loaded; the classes that typing hashes then are no set's."""
        self.sets = not self.names.isdisjoint(_SETTERS)
        """Whether it may store attributes that it does not name."""
        self.stores = self.sets or not (self.names.isdisjoint(_STORING) and self._operations.isdisjoint(_STORES))
        """Whether it stores attributes, of functions and classes, too."""
        self.evaluates = "eval" in self._builtins
        self._compares = _IS in self._operations or not self.names.isdisjoint(_IS_NAMES)
        """Whether it may ask if two objects are one."""
        self.interns = self._compares and not self.names.isdisjoint(_INTERNING)
        """Whether it may ask if a text is the one that is kept."""
        self.deletes = not (_DELETES.isdisjoint(self._operations) and _DELETING.isdisjoint(self.names))
        """Whether it may take something out of a table, which has a place less then."""
        self.has_contexts = not _CONTEXTS.isdisjoint(self.names.union(*self._brought.values()))
        """Whether it may see or set what decimals are computed by, and the flags that each of them raises."""
        self.stores_in_aliases = not self._stored.isdisjoint(_OF_ALIASES)

    def _read(self, part: types.CodeType) -> None:
        self._operations.update(part.co_code[::2])
        self._suspends_in_handlers |= bool(part.co_flags & _SUSPENDED) and _CAUGHT in part.co_code[::2]
        self._constants(part.co_consts)
        if _PATTERN in part.co_code[::2]:  # the attributes that it reads are constants
            self.names.update(
                name for names in part.co_consts if type(names) is tuple for name in names if type(name) is str
            )
        if part.co_flags & _IN_FUNCTION:
            self._in_functions.update(part.co_names)
        self._own.update((part.co_name,), part.co_varnames, part.co_cellvars)
        in_function = part.co_flags & _IN_FUNCTION
        if in_function:
            self.names.update(part.co_names)
        if not (in_function and _BOUND.isdisjoint(part.co_code[::2]) and _NO_ATTRIBUTES.isdisjoint(part.co_names)):
            self._bindings(part)

    def _bindings(self, part: types.CodeType) -> None:
        wide, brought = 0, ""
        bound: set[str] | None = None
        for operation, argument in zip(part.co_code[::2], part.co_code[1::2], strict=True):
            argument |= wide
            wide = argument << 8 if operation == opcode.EXTENDED_ARG else 0
            if operation not in _NAMED:
                continue
            name = part.co_names[argument >> _SHIFTS.get(operation, 0)]
            if operation == _IMPORT:
                bound = self._brought.setdefault(name, set())
                if part.co_name != "<module>":  # where it is no global, that it is used is not seen
                    self.names.add(name.partition(".")[0])
            elif operation not in (_IMPORT_FROM, _STORE):
                bound = None
            elif bound is not None:
                bound.add(name)
            if operation in _BINDINGS:
                self._own.add(name)
                if brought and brought != name:
                    self._aliases.add((name, brought))
                if operation in _STORES and part.co_name != "<module>":
                    self._stored.add(name)
            if operation not in _ATTRIBUTES and operation != _STORE:
                self._builtins.add(name)
            if operation not in (_IMPORT, _IMPORT_FROM, _STORE):
                self.names.add(name)
            elif operation == _IMPORT_FROM and brought == "sys":
                self.names.add(brought)
            brought = name.partition(".")[0] if operation in _BROUGHT else ""

    def _constants(self, constants: "tuple[object, ...]") -> None:
        for constant in constants:
            if type(constant) is str:
                self._texts.append(constant)
                self.names.update(_FIELD.findall(constant))
            elif type(constant) is bytes:
                self._texts.append(constant.decode("latin-1"))
            elif type(constant) is tuple:
                self._constants(constant)

    def alone_because(self) -> str:
        """Why each call needs a process of its own, whatever it does; "" where it does not."""
        for module in sorted(self.imported - MODULES):
            return f"imports {module}"
        used = self.names.union(*(_IN_TEXT.findall(text) for text in self._texts if "_" in text))
        if "sys" in self.imported and "modules" not in used and _OF_SYS.isdisjoint(used):
            used.discard("sys")
        far = used & _FAR or used & _hidden or used & _OTHER_MODULES or self._builtins & _FAR_BUILTINS
        for package, words in _FAR_IN.items():
            far = far or (used & words if package in sys.modules or package in self.tops or package in used else set())
        far = far or {name for name in used if name[:2] == "__" == name[-2:] and name not in _OWN}
        far = far or {name for name in used | self._own if name.startswith(OURS)}
        for name in sorted(far):
            return f"uses the name {name}"
        unknown = self.names - self._own - _known
        for name in sorted(unknown if not self.imported <= _loaded else unknown & _anywhere):
            return f"uses the name {name}, which is not on the list"
        given = used & _GIVERS or self._in_functions & {"field", "fields", "auto"}
        if self.stores and given:
            return "may store in a class of a library that it does not name"
        if any(map(_DUNDER.fullmatch, self._stored)) or self._stored & _COLLECTION_ABCS:
            return "may change what a class is an instance of, which abc remembers"
        if self.interns and not self.names.isdisjoint(_IMMORTAL):
            return "may meet a text that is kept for good"
        if self._suspends_in_handlers or self._own & _ASKED_LATE or (self._stored and "runtime_checkable" in used):
            return "may do something when it is let go of, or answer abc differently"
        return ""

    def covers(self, code: types.CodeType) -> bool:
        """Whether a text that the program evaluates does nothing that its own text does not show: it has names that the
        program has, or of plain builtins, and makes nothing but data."""
        inner = Looks(code)
        return (
            inner.names <= self.names | _BUILTINS
            and inner._operations.isdisjoint(_ATTRIBUTES)
            and not inner.alone_because()
            and not (inner.makes_sets > self.makes_sets or inner._compares or inner.stores)
        )


def _makes_sets(part: types.CodeType) -> bool:
    return not (_SETS.isdisjoint(part.co_code[::2]) and _SET_NAMES.isdisjoint(part.co_names))


def alone_because(source: str) -> str:
    """Why the calls of a program need a process each, from its text alone; "" where they may not."""
    try:
        return Looks(compile(source, "<program>", "exec", dont_inherit=True)).alone_because()
    except (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError):
        return "does not compile"
