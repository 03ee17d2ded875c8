"""The names that a pure expression and an argument which is code may use: tables, and the namespace that they make.

The grammar (`reading/pure_expressions.py`) admits these names only, so the modules here are never reached whole. Names
are short where everybody imports them so. Does not import a module that no name in the text asks for.
"""

import re
from collections.abc import Mapping
from typing import Any

FILE, ROWS, PRINTED, WRITTEN, LEFT = "scratch_file", "csv_rows", "printed", "written", "left_behind"
"""What a question calls a file that a test has written, rows in one, what calls print, what they write at a path, and
what they leave anywhere."""
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
    f"""all any ascii bin callable filter format hash hex isinstance iter map next object oct {FILE} {ROWS}""".split()
)
"""Builtins that an argument which is code may name, beside exceptions."""
GIVEN = frozenset(("print", "type"))
"""Those that may be an argument, but that no code may call."""


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
    bytes="fromhex",
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
    itertools="accumulate chain chain.from_iterable combinations count cycle islice permutations product repeat "
    "starmap takewhile zip_longest",
    asyncio="run",
    string="capwords ascii_letters ascii_lowercase ascii_uppercase digits punctuation",
    json="dumps loads",
    io="BytesIO StringIO",
    re="compile",
    sys="maxsize",
    str="capitalize casefold center count encode endswith expandtabs find format index isalnum isalpha isascii "
    "isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip "
    "partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split splitlines "
    "startswith strip swapcase title upper zfill",
    int="bit_count bit_length from_bytes",
    float="is_integer",
    list="append copy count extend index insert pop remove reverse sort",
    dict="copy fromkeys get items keys pop update values",
    hashlib="md5 sha1 sha256 sha512",
    base64="b64encode b64decode",
    set="add difference discard intersection issubset issuperset symmetric_difference union",
)
"""Likewise, of an argument that is code."""
ATTRIBUTE, DECODED, SEEN = "__attribute__", "__decoded__", "__seen__"
"""What a look calls `attribute_of`, the value of a wire tree, and `Seen`."""
LOOKED_NAMES = {
    **{name: names for name, names in CODE_NAMES.items() if name != "asyncio"},
    **{name: CODE_NAMES.get(name, frozenset()) | names for name, names in _named(
        re="match search fullmatch findall split sub IGNORECASE I MULTILINE M DOTALL S",
        json="loads dumps",
        csv="reader DictReader",
        ast="literal_eval",
        copy="copy deepcopy",
        types="SimpleNamespace",
        string="ascii_letters ascii_lowercase ascii_uppercase digits punctuation whitespace hexdigits printable",
        statistics="mean median mode stdev pstdev variance pvariance multimode fmean",
        cmath="isclose phase polar rect pi e inf nan isnan sqrt exp",
        math="prod fsum isclose isnan isinf isfinite trunc fabs dist pow atan atan2 acos asin sinh cosh tanh copysign "
        "fmod cbrt perm",
        itertools="pairwise groupby",
        numpy="linalg.norm linalg.det linalg.inv linalg.eigvals linalg.matrix_rank linalg.solve allclose isclose all "
        "any sum mean std var median min max amin amax argmax argmin sort argsort unique diff cumsum cumprod prod dot "
        "matmul outer inner cross trace transpose abs absolute round around isnan isinf isfinite isin where "
        "count_nonzero concatenate stack vstack hstack ravel reshape ndim shape size sign exp log sin cos triu tril "
        "maximum minimum power square clip flip roll tile repeat percentile quantile corrcoef logical_and logical_or "
        "logical_not bincount ndarray number integer floating issubdtype float_power array_equiv",
        pandas="isna isnull notna notnull concat MultiIndex Interval",
    ).items()},
}  # fmt: skip
"""Likewise, of a look at what came back."""
LOOKED_METHODS = frozenset(
    """decode hex translate most_common elements total isdisjoint as_integer_ratio conjugate real imag numerator
    denominator limit_denominator quantize year month day hour minute second microsecond days seconds date time
    weekday isoweekday isoformat strftime timestamp total_seconds utcoffset tzname as_tuple exponent timetuple
    group groups start end span groupdict stop step tzinfo sum mean std var median min max all any prod cumsum
    cumprod argmax argmin round astype tolist reshape flatten ravel transpose dot T shape size ndim dtype kind
    name names itemsize trace diagonal nonzero searchsorted squeeze item clip isna isnull notna notnull to_dict
    to_list to_numpy columns loc iloc at iat head tail dropna fillna sort_values sort_index reset_index
    set_index unique nunique value_counts duplicated drop_duplicates drop equals groupby first last idxmax
    idxmin isin between empty dtypes str contains len dt is_unique is_monotonic_increasing
    is_monotonic_decreasing diff shift abs corr describe quantile iterrows itertuples get_group nlargest
    nsmallest rename select_dtypes maxlen digest hexdigest""".split()
) | frozenset(name for owner in ("str", "int", "float", "list", "dict", "set") for name in CODE_NAMES[owner]) - {
    "format"
}
"""Methods and attributes of values that it may use."""
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
_NOT_KEPT = frozenset("attrs cat categories codes flags freq freqstr ordered".split())
"""What data do not keep of tables."""
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


def attribute_of(value: Any, name: str) -> Any:
    """An attribute of an object as its data show it, or a column of a table: never a function, and of nothing else."""
    kind = type(value)
    found = getattr(value, name)
    if name[:1] == "_" or name in _NOT_KEPT or callable(found):
        raise AttributeError(name)
    is_told = kind is Seen or hasattr(kind, "_fields")
    if not is_told and kind.__module__.partition(".")[0] not in ("types", "pandas"):
        raise AttributeError(name)
    return found


def is_instance(value: Any, kinds: Any) -> bool:
    """`isinstance`, of data. Raises where an object of a class that derives from the value's has come back as such."""
    found, listed, waiting = isinstance(value, kinds), [], [kinds]
    for each in waiting:
        waiting += each if isinstance(each, tuple) else getattr(each, "__args__", ())
        listed += [each] if isinstance(each, type) else []
    if not found and any(kind is not bool and issubclass(kind, type(value)) for kind in listed):
        raise TypeError("what derives from a class is data of that class")
    if type(value) is not Seen:
        return found
    names = [kind.__name__ for kind in listed if issubclass(kind, BaseException)]
    if len(names) < len(listed):
        raise TypeError("likewise")
    return not {*names}.isdisjoint(vars(value)["__classes__"])


class Seen:
    """In a look, an object as its data show it. Whatever they do not tell raises."""

    def __init__(self, kind: str, attributes: dict[str, Any]) -> None:
        self.__dict__.update(attributes)
        self.__dict__["__kind__"] = kind

    def __eq__(self, other: object) -> bool:
        import pathlib
        import types

        told, kind = vars(self), self.__dict__["__kind__"]
        if other is None:
            return False
        if isinstance(other, pathlib.PurePath) and kind in ("PosixPath", "PurePosixPath"):
            return bool(told["__str__"] == str(other))
        names = {name for name in told if name[:1] != "_"}
        if isinstance(other, types.SimpleNamespace) and kind == "SimpleNamespace" and names == {*vars(other)}:
            return all(told[name] == value for name, value in vars(other).items())
        raise TypeError("what an object equals is for its class to say")

    __hash__ = None  # type: ignore[assignment]  # likewise

    def __bool__(self) -> bool:
        if {"__len__", "__bool__"} & vars(self).keys():
            raise TypeError("likewise")
        return True

    def __str__(self) -> str:
        told = vars(self)
        return str(told["__str__" if "__str__" in told else "__repr__"])

    def __repr__(self) -> str:
        return str(vars(self)["__repr__"])


def _imported(name: str, *given: Any) -> Any:
    """What methods of times and of arrays import by the builtins of who calls them, and nothing else."""
    if name not in ("_strptime", "time") and name.partition(".")[0] not in PACKAGES:
        raise ImportError(name)
    return __import__(name, *given)


def _found(dotted: str) -> Any:
    module, _, name = dotted.partition(".")
    found = __import__(module)
    return getattr(found, name) if name else found


def packages_in(text: str) -> tuple[str, ...]:
    """Packages that a text's names need."""
    words = {SHORT.get(word, word) for word in _WORDS.findall(text)}
    return tuple(name for name in PACKAGES if name in words)
