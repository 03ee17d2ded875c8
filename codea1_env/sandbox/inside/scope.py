"""The names that a pure expression and an argument which is code may use: tables, and the namespace that they make.

The grammar (`reading/pure_expressions.py`) admits these names only, so the modules here are never reached whole. Names
are short where everybody imports them so. Does not import a module that no name in the text asks for.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

PURE = frozenset(
    """abs bool bytes chr complex dict enumerate float frozenset int len list max min ord range reversed round set
    sorted str sum tuple zip""".split()
)
"""Builtins that a pure expression may call."""
STATED = PURE | frozenset("bytearray divmod pow repr slice".split())
"""Likewise, but not in paper fidelity."""
SINGLE = frozenset(
    """bool bytearray bytes complex dict Ellipsis float frozenset int list NotImplemented object range set slice str
    tuple type""".split()
)
"""Builtins that a pure expression may name without calling them: types, and the constants that have no literal."""
CODE_BUILTINS = STATED | frozenset(
    """all any ascii bin callable filter format hash hex isinstance iter map next object oct""".split()
)
"""Builtins that an argument which is code may name, beside exceptions."""


def _named(**words: str) -> dict[str, frozenset[str]]:
    return {name: frozenset(text.split()) for name, text in words.items()}


VALUE_NAMES = _named(
    fractions="Fraction Fraction.from_float Fraction.from_decimal",
    decimal="Decimal Decimal.from_float",
    datetime="date date.fromisoformat date.fromordinal date.max date.min datetime datetime.combine "
    "datetime.fromisoformat datetime.max datetime.min datetime.strptime time time.fromisoformat timedelta timezone "
    "timezone.utc UTC",
    collections="deque Counter OrderedDict defaultdict",
    array="array",
    math="pi e tau inf nan sqrt factorial comb gcd lcm floor ceil exp log log2 log10 sin cos tan radians degrees hypot "
    "isqrt",
    numpy="array asarray zeros ones full eye identity arange linspace diag zeros_like ones_like full_like nan "
    "inf pi e newaxis int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 "
    "bool_ str_ datetime64 timedelta64 array_equal sqrt",
    pandas="Series DataFrame Index MultiIndex.from_tuples Timestamp Timedelta date_range to_datetime NaT NA RangeIndex "
    "DatetimeIndex",
)
"""{module: its names that a pure expression may use}."""
CONSTANTS = frozenset(
    """math.pi math.e math.tau math.inf math.nan numpy.nan numpy.inf numpy.pi numpy.e numpy.newaxis datetime.UTC
    datetime.timezone.utc datetime.date.max datetime.date.min datetime.datetime.max datetime.datetime.min pandas.NaT
    pandas.NA""".split()
)
"""Of these names: those that are values themselves."""
CODE_NAMES = VALUE_NAMES | _named(
    operator="abs add and_ concat contains eq floordiv ge getitem gt inv invert itemgetter le lshift lt mod mul ne neg "
    "not_ or_ pos pow rshift sub truediv truth xor",
    functools="partial reduce cmp_to_key",
    itertools="accumulate chain combinations count cycle islice permutations product repeat starmap takewhile "
    "zip_longest",
    asyncio="run",
    string="capwords",
    str="capitalize casefold count endswith find format isalnum isalpha isdecimal isdigit islower isnumeric isspace "
    "istitle isupper join lower lstrip replace rstrip split startswith strip swapcase title upper zfill",
    int="bit_count bit_length from_bytes",
    float="is_integer",
    list="append copy count extend index insert pop remove reverse sort",
    dict="copy fromkeys get items keys pop update values",
    set="add difference discard intersection issubset issuperset symmetric_difference union",
)
"""Likewise, of an argument that is code."""
SHORT: Mapping[str, str] = {
    **{name: f"{module}.{name}" for module in ("fractions", "decimal", "collections") for name in
       VALUE_NAMES[module] if "." not in name},
    **{name: f"datetime.{name}" for name in ("date", "timedelta", "timezone")},
    "np": "numpy",
    "pd": "pandas",
}  # fmt: skip
"""Names that mean a module's also where nobody imports them."""
PACKAGES = ("numpy", "pandas")
"""Of the modules: those that the standard library does not have."""
_WORDS = re.compile(r"[^\W\d]\w*")


class _Datetime:
    """`datetime`, whether it was imported as a module or as its class."""

    def __init__(self) -> None:
        import datetime

        self.__dict__.update(vars(datetime))
        for name in ("strptime", "fromisoformat", "combine", "min", "max"):
            setattr(self, name, getattr(datetime.datetime, name))
        self._made = datetime.datetime

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self._made(*given, **named)


def namespace(text: str, builtins: Mapping[str, Any], names: Mapping[str, frozenset[str]]) -> dict[str, Any]:
    """What `eval(text, ...)` needs. Raises ImportError for a package that is not there."""
    words = set(_WORDS.findall(text))
    made: dict[str, Any] = {"__builtins__": {**builtins, "__import__": _imported}}
    for word in words - set(builtins):
        if word in SHORT or word in names:
            made[word] = _Datetime() if word == "datetime" else _found(SHORT.get(word, word))
    return made


def _imported(name: str, *given: Any) -> Any:
    """What `datetime.strptime` imports by the builtins of who calls it, and nothing else."""
    if name != "_strptime":
        raise ImportError(name)
    return __import__(name, *given)


def _found(dotted: str) -> Any:
    module, _, name = dotted.partition(".")
    found = __import__(module)
    return getattr(found, name) if name else found


def packages_in(text: str, wanted: Callable[[str], bool] = bool) -> tuple[str, ...]:
    """Packages that a text's names need."""
    words = {SHORT.get(word, word) for word in _WORDS.findall(text)}
    return tuple(name for name in PACKAGES if name in words and wanted(name))
