"""The words of the allow-list in `company.py`: builtins, methods, and the members of each module.

Every word stands for something that keeps nothing between calls, shows no address, and gives no way to a module, a
frame or a class of the interpreter. A word that is missing costs time; a word too many costs the independence of calls.
Does not decide anything.
"""

from __future__ import annotations

import builtins
import cmath
import math


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BUILTINS = _words(
    "abs all any ascii bin bool bytearray bytes chr complex dict divmod enumerate filter float format frozenset hex "
    "int isinstance iter len list map max min next oct ord pow print range repr reversed round set slice sorted str "
    "sum tuple type zip Ellipsis NotImplemented"
)
"""Not `id` and `hash` (addresses), nor anything that reads attributes, namespaces, files or source text."""

TYPES = _words("bool bytearray bytes complex dict float frozenset int list set str tuple")
"""Builtins whose methods are called by their names, too: `dict.fromkeys(keys)`."""

EXCEPTIONS = frozenset(
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)
)

ITERATOR_MAKERS = _words("enumerate filter iter map reversed zip")
"""Builtins that return iterators, whose text shows an address."""

CONSUMERS = _words(
    "all any bytearray bytes dict enumerate frozenset iter len list max min next reversed set sorted sum tuple "
    "Counter OrderedDict deque heapify combinations combinations_with_replacement cycle islice pairwise permutations "
    "accumulate mean median mode fsum prod"
)
"""Callables that iterate over their first argument, or whose result does, and is itself an iterator where they do
not."""

CONSUMERS_OF_SECOND = _words("defaultdict dropwhile filter filterfalse nlargest nsmallest reduce starmap takewhile")
CONSUMERS_OF_ALL = _words("chain compress map print product zip zip_longest")

CONSUMING_METHODS = _words(
    "join extend extendleft update union intersection difference symmetric_difference intersection_update "
    "difference_update symmetric_difference_update issubset issuperset isdisjoint"
)

CALLBACKS = _words("map filter reduce cmp_to_key starmap takewhile dropwhile filterfalse")
"""Callables that call their first argument and forget it."""

KEYED = _words("bisect bisect_left bisect_right insort insort_left insort_right max min nlargest nsmallest sorted")
"""Callables that call their argument `key` and forget it, and what it returned."""

METHODS = _words(
    # str and bytes; `format` reads attributes by their names and is looked at apart
    "capitalize casefold center count decode encode endswith expandtabs find hex index isalnum isalpha isascii "
    "isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip "
    "maketrans partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split "
    "splitlines startswith strip swapcase title translate upper zfill "
    # list, dict, set, deque, Counter, OrderedDict
    "append clear copy extend insert pop remove reverse sort fromkeys get items keys popitem setdefault update values "
    "add difference difference_update discard intersection intersection_update isdisjoint issubset issuperset "
    "symmetric_difference symmetric_difference_update union appendleft extendleft popleft rotate most_common subtract "
    "total move_to_end "
    # numbers
    "as_integer_ratio bit_count bit_length conjugate from_bytes fromhex is_integer to_bytes limit_denominator quantize "
    "sqrt to_integral_value "
    # matches of regular expressions
    "end group groupdict groups span start"
)

METHODS_WITH_ADDRESSES = _words("from_bytes fromhex fromkeys items keys maketrans values")
"""Methods that are not to be read without being called: the text of some shows an address, and of views it matters
where they go."""

READING_METHODS = _words("copy count get index items keys values")
"""Of lists, sets and dicts whose items are constants: what they return can change nothing either."""

TYPING = _words(
    "Any AnyStr Callable Collection Container Counter DefaultDict Deque Dict FrozenSet Generator Hashable Iterable "
    "Iterator List Literal Mapping MutableMapping MutableSequence MutableSet NoReturn Optional OrderedDict "
    "Reversible Sequence Set Sized Text Tuple Type Union defaultdict deque"
)
"""What annotations are made of."""


def _public(module: object) -> frozenset[str]:
    return frozenset(name for name in dir(module) if not name.startswith("_"))


MODULES: dict[str, frozenset[str]] = {
    "math": _public(math),
    "cmath": _public(cmath),
    "itertools": _words(
        "accumulate chain combinations combinations_with_replacement compress count cycle dropwhile filterfalse "
        "islice pairwise permutations product repeat starmap takewhile zip_longest"
    ),
    "collections": _words("Counter OrderedDict defaultdict deque"),
    "functools": _words("cache cmp_to_key lru_cache reduce"),
    "re": _words(
        "A ASCII DOTALL I IGNORECASE M MULTILINE S VERBOSE X escape findall fullmatch match search split sub subn"
    ),
    "string": _words(
        "ascii_letters ascii_lowercase ascii_uppercase digits hexdigits octdigits printable punctuation whitespace"
    ),
    "heapq": _words("heapify heappop heappush heappushpop heapreplace nlargest nsmallest"),
    "bisect": _words("bisect bisect_left bisect_right insort insort_left insort_right"),
    "copy": _words("copy deepcopy"),
    "operator": _words(
        "add and_ concat contains eq floordiv ge gt itemgetter le lshift lt mod mul ne neg not_ or_ pow rshift sub "
        "truediv xor"
    ),
    "fractions": _words("Fraction"),
    "decimal": _words(
        "Decimal ROUND_CEILING ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN ROUND_HALF_UP ROUND_UP"
    ),
    "statistics": _words("fmean mean median median_high median_low mode pstdev pvariance stdev variance"),
    "typing": TYPING - _words("defaultdict deque"),
    "sys": _words("maxsize"),
}
"""What a program may use of each module."""

ONLY_CALLED = frozenset(
    {
        ("copy", "deepcopy"),
        ("functools", "cache"),
        ("functools", "cmp_to_key"),
        ("functools", "lru_cache"),
        ("operator", "itemgetter"),
        ("re", "fullmatch"),
        ("re", "match"),
        ("re", "search"),
    }
)
"""Members that are called by their name and in certain places only, as all of itertools are."""

CONSTANTS = frozenset(
    (module, name)
    for module, names in MODULES.items()
    for name in names
    if module == "string"
    or name.startswith("ROUND_")
    or (module, name) == ("sys", "maxsize")
    or (module == "re" and name.isupper())
    or (module in ("math", "cmath") and name in ("e", "pi", "tau", "inf", "nan", "infj", "nanj"))
)
"""Members that are values: of all others, functions and types, the text or the hash shows an address."""

CODECS = ("utf-8", "utf8", "UTF-8", "utf_8", "ascii", "ASCII", "latin-1", "latin1", "iso-8859-1")
"""Encodings that no program has to import."""

OF_WHOLE_NUMBERS = _words("ceil comb factorial floor gcd isqrt lcm perm prod")
"""Members of math that make whole numbers of whole numbers."""

UNUSED_MODULES = _words(
    "datetime json os random time unicodedata textwrap enum dataclasses contextlib numbers queue abc numpy"
)
"""Modules that a program may import as long as it never uses them: importing them changes nothing that a call can
see."""
