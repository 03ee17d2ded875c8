"""What company a program's calls may have: never more than leaves every call independent of the others."""

# programs as texts read better on one line
from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.judging.purity.company import alone_because, company
from codea1_env.problems import bundled_problems
from codea1_env.sandbox import Company

_F = "def f(x):\n    return x\n"
SHARED = {
    "plain": _F,
    "documented": f'"""What it does."""\n{_F}',
    "constants": f"A = B = 3\nC: int = -1\nD = (1, ('a', None))\nE: str\n{_F}",
    "helpers": f"def g(x, y=1, *, z=(2, 3)):\n    out = []\n    out.append(x)\n    return out\n{_F}",
    "types_that_are_compared": "from collections import defaultdict\ndef f(x):\n    d = defaultdict(int, {1: 2})\n"
    "    return isinstance(x, (int, float)) or type(x) in (str, list) or dict.fromkeys(x, d[0]) or int == type(x)\n",
    "functions_that_are_handed_over": "import math, operator, re\nfrom functools import reduce\ndef f(x):\n"
    "    a = sorted(map(int, x), key=abs), max(x, key=str.lower, default=math.inf), reduce(operator.mul, x, 1)\n"
    "    return a, re.sub('a', 'b', 'a', flags=re.I), 'a'.encode('utf-8').decode(), str(x), bytes(3)\n",
    "closure": "def f(x):\n    s = set()\n    def g():\n        nonlocal x\n        x = s.add(x)\n    g()\n",
    "stateless_modules": f"import math, re\nfrom collections import Counter, deque\nfrom typing import *\n{_F}",
    "import_inside": "def f(x):\n    import heapq\n    return heapq.nlargest(1, x)\n",
    "import_that_is_not_used": f"import os, sys, random\nfrom functools import lru_cache\nimport numpy as np\n{_F}",
    "main_guard": f"{_F}if __name__ == '__main__':\n    print(f(1))\n",
    "future": f"from __future__ import annotations\n{_F}",
    "calls_at_module_level": f"{_F}print(f(1))\nassert f(2) == 2\npass\n",
    "table_of_constants": "ROMAN = {'I': 1, 'V': 5}\nODD = [1, (3, -5)]\nVOWELS = WORDS = {'a'}\ndef f(x):\n"
    "    return ROMAN[x], ROMAN.get(x), x in VOWELS, [n for n in ODD], [k for k, v in ROMAN.items()], ODD[1:]\n",
    "lambda_inside": "def f(x):\n    return sorted(x, key=lambda y, z=1: -y)\n",
    "matches_looked_at": "import re\ndef f(x):\n    if not re.match('a', x) and re.search('b', x) is not None:\n"
    "        return re.search('b', x).group(0)\n    return bool(re.fullmatch('a+', x))\n",
    "exception_told": "def f(x):\n    try:\n        return int(x)\n    except (ValueError, TypeError) as e:\n"
    "        print(e, f'{e}')\n        raise KeyError(str(e)) from e\n",
    "names_of_math": "from math import *\ndef f(x, e):\n    pi = e\n    return sqrt(pi)\n",
}
NOT_SHARED = {
    "mutable_default": "def f(x, seen=[]):\n    seen.append(x)\n    return seen\n",
    "mutable_keyword_default": "def f(x, *, seen={}):\n    return seen.setdefault(x, len(seen))\n",
    "mutable_default_of_lambda": "def f(x):\n    return x\ng = lambda x, s=[]: s\n",
    "global": "n = 0\ndef f(x):\n    global n\n    n += 1\n    return n\n",
    "module_list": "seen = []\ndef f(x):\n    seen.append(x)\n    return len(seen)\n",
    "module_dict": "memo = dict()\ndef f(x):\n    return memo.setdefault(x, len(memo))\n",
    "module_object_in_tuple": "both = ([], 1)\ndef f(x):\n    both[0].append(x)\n    return both\n",
    "function_attribute": "def f(x):\n    f.n = getattr(f, 'n', 0) + 1\n    return f.n\n",
    "function_dict": "def f(x):\n    return f.__dict__.setdefault(x, 1)\n",
    "class_attribute": "class C:\n    n = []\ndef f(x):\n    C.n.append(x)\n    return C.n\n",
    "decorated": "import functools\n@functools.cache\ndef f(x):\n    return [x]\n",
    "cache_by_name": "from functools import lru_cache as keep\ndef f(x):\n    return keep(g)(x)\n",
    "random": "import random\ndef f(x):\n    return random.random()\n",
    "random_by_name": "from random import randint as pick\ndef f(x):\n    return pick(0, x)\n",
    "star_import": "from random import *\ndef f(x):\n    return x\n",
    "import_inside": "def f(x):\n    import sys\n    sys.n = x\n",
    "builtins": "import builtins as b\ndef f(x):\n    b.n = x\n",
    "module_of_a_module": "import os.path\ndef f(x):\n    return os.path.exists(x)\n",
    "decimal_context": "import decimal\ndef f(x):\n    decimal.getcontext().prec += 1\n    return 1\n",
    "attribute_of_a_module": "import math\ndef f(x):\n    math.n = x\n    return x\n",
    "deleted_attribute": "import math\ndef f(x):\n    del math.pi\n    return x\n",
    "iterator": "import itertools\nn = itertools.count()\ndef f(x):\n    return next(n)\n",
    "generator": "def g():\n    yield 1\nn = g()\ndef f(x):\n    return next(n)\n",
    "globals": "def f(x):\n    return globals().setdefault('n', x)\n",
    "exec": "def f(x):\n    exec('n = 1')\n",
    "setattr": "def f(x):\n    setattr(f, 'n', x)\n",
    "input": "def f(x):\n    return input()\n",
    "file": "def f(x):\n    return open(x)\n",
    "dunder_import": "def f(x):\n    return __import__('sys')\n",
    "frames": "def f(x):\n    return x.gi_frame._locals\n",
    "table_that_grows": "T = [1]\ndef f(x):\n    T.append(x)\n    return x in T\n",
    "table_that_is_handed_out": "T = [1]\ndef f(x):\n    return T\n",
    "table_by_another_name": "T = [1]\ndef f(x):\n    t = T\n    t += [x]\n    return t[0]\n",
    "table_as_an_argument": "T = {1: 2}\ndef f(x):\n    dict.update(T, {x: x})\n    return T.get(x)\n",
    "table_item_assigned": "T = {1: 2}\ndef f(x):\n    T[x] = x\n    return len(T.keys())\n",
    "table_item_added_to": "T = [1]\ndef f(x):\n    T[0] += x\n    return T[0]\n",
    "table_item_deleted": "T = [1, 2]\ndef f(x):\n    del T[0]\n    return T[0]\n",
    "table_of_tables": "T = {1: [2]}\ndef f(x):\n    T[1].append(x)\n    return T[1]\n",
    "table_with_another_inside": "A = [1]\nT = {**{1: A}}\ndef f(x):\n    T[1].append(x)\n",
    "table_on_the_left": "T = [1]\ndef f(x):\n    return T in x\n",
    "named_at_module_level": f"(n := [])\n{_F}",
    "named_in_an_assert": f"assert (n := [1])\n{_F}",
    "loop_at_module_level": f"for i in range(3):\n    pass\n{_F}",
    "unpacking_at_module_level": f"a, b = [], []\n{_F}",
    "augmented": f"a = ()\na += ([],)\n{_F}",
    "else_of_a_main_guard": f"if __name__ == '__main__':\n    pass\nelse:\n    a = []\n{_F}",
}


NOT_SHARED["function_by_another_name"] = (
    "def f(x):\n    return [x]\nseen, g = [], f\ndef f(*args):\n    seen.append(args)\n    return g(*args)\n"
)
RELOADED = {
    "function_by_another_name",
    "mutable_default", "mutable_keyword_default", "mutable_default_of_lambda", "global", "module_list", "module_dict",
    "module_object_in_tuple", "decorated", "table_that_grows", "table_that_is_handed_out", "table_by_another_name",
    "table_as_an_argument", "table_item_assigned", "table_item_added_to", "table_item_deleted", "table_of_tables",
    "table_with_another_inside", "table_on_the_left", "named_at_module_level", "named_in_an_assert",
    "loop_at_module_level", "unpacking_at_module_level", "augmented", "else_of_a_main_guard",
}  # fmt: skip
"""Of NOT_SHARED: what they keep lies in their own namespace."""
ALONE = {
    "async": "async def f(x):\n    return x\n",
    "with": "def f(x):\n    with x:\n        pass\n",
    "class": "class A:\n    pass\ndef f(x):\n    return 1\n",
    "match": "def f(x):\n    match f:\n        case object(__globals__=g):\n            return g\n",
    "text_of_a_renamed_function": "def g(x):\n    return x\nh = g\ndef f(x):\n    return str(h)\n",
    "text_of_a_function_renamed_twice": "def g(x):\n    return x\nh = g\ni = h\ndef f(x):\n    return str(i)\n",
    "renamed_generator": "def g(x):\n    yield x\nh = g\ndef f(x):\n    return str(h(x))\n",
    "address": "def f(x):\n    return id(x) % 7\n",
    "hash": "def f(x):\n    return hash(x)\n",
    "text_of_a_function": "def f(x):\n    return str(f)\n",
    "text_of_a_lambda": "def f(x):\n    return f'{lambda: 0}'\n",
    "text_of_an_iterator": "def f(x):\n    return str(map(str, x))\n",
    "text_of_a_generator": "def g():\n    yield 1\ndef f(x):\n    return '%s' % g()\n",
    "text_of_a_method": "def f(x):\n    return str(x.append)\n",
    "format_at_run_time": "def f(x):\n    return x.format(f)\n",
    "format_of_an_attribute": "def f(x):\n    return '{0.__globals__}'.format(f)\n",
    "format_as_a_value": "def f(x):\n    return list(map(str.format, x))\n",
    "attribute_by_name": "from operator import attrgetter\ndef f(x):\n    return attrgetter('a')(x)\n",
    "module_in_a_module": "from statistics import sys\ndef f(x):\n    return sys.modules\n",
    "module_of_a_module_by_attribute": "import statistics\ndef f(x):\n    return statistics.sys.modules\n",
    "module_as_a_value": "import math\ndef f(x):\n    return [math]\n",
    "table_of_a_module": "import copy\ndef f(x):\n    return copy.dispatch_table\n",
    "type_hints": "import typing\ndef g(x: [0]): pass\ndef f(x):\n    return typing.get_type_hints(g)\n",
    "registry": "import numbers\ndef f(x):\n    numbers.Number.register(str)\n",
    "patterns_that_are_remembered": "import re\ndef f(x):\n    return re.compile(x) is re.compile(x)\n",
    "context": "import decimal\ndef f(x):\n    with decimal.localcontext() as c:\n        return c.flags\n",
    "normal_distribution": "from statistics import NormalDist\ndef f(x):\n    return NormalDist().samples(2)\n",
    "type_made": "def f(x):\n    return type('A', (), {})\n",
    "type_of_a_type": "def f(x):\n    t = type(x)\n    return t\n",
    "clock": "import time\ndef f(x):\n    return time.time()\n",
    "hidden_builtin": "def g():\n    getattr = 1\ndef f(x):\n    return getattr(x, 'a')\n",
    "factory_in_a_text": "from collections import defaultdict\ndef f(x):\n    return str(defaultdict(lambda: 0))\n",
    "default_repr": "def f(x):\n    return repr(object())\n",
    "table_of_addresses_of_copies": "import copy\ndef f(x):\n"
    "    m = {}\n    copy.deepcopy([x], m)\n    return sorted(m)\n",
    "text_of_a_class_method": "def f(x):\n    return str(dict.fromkeys)\n",
    "text_of_a_static_method": "def f(x):\n    return str(str.maketrans)\n",
    "text_of_a_class_method_of_itertools": "from itertools import chain\n"
    "def f(x):\n    return str(chain.from_iterable)\n",
    "iterator_by_another_name": "def f(x):\n    m = zip\n    return str(m([1]))\n",
    "iterator_of_a_module_by_another_name": "from itertools import count\ndef f(x):\n    m = count\n"
    "    return str(iter2(m))\ndef iter2(m):\n    return str(m(1)) + str([m()])",
    "iterators_made_by_map": "def f(x):\n    return str(list(map(zip, [[1]])))\n",
    "iterator_made_by_a_default": "from collections import defaultdict\n"
    "def f(x):\n    return str(defaultdict(zip)[1])\n",
    "function_under_the_name_key": "def f(x):\n    return str(dict(key=lambda: 0))\n",
    "function_in_a_field_key": "def f(x):\n    return '{key}'.format(key=lambda: 0)\n",
    "builtin_that_is_rebound": "def f(x):\n    tuple = str\n    return tuple(n for n in [x])\n",
    "module_that_is_rebound": "import copy\ndef f(x):\n"
    "    return show([x])\ndef show(copy):\n    return str(copy.copy)\n",
    "star_brings_what_is_not_listed": "from operator import *\ndef f(x):\n"
    "    g = attrgetter('__self__')\n    return str(g(len))\n",
    "star_brings_a_generator": "from heapq import *\ndef f(x):\n    return str(merge([1]))\n",
    "lambda_that_yields": "def f(x):\n    g = lambda: (yield)\n    return str(g())\n",
    "iterator_that_is_the_greatest": "def f(x):\n    return str(max(map(str, [1]), map(str, [2]), key=lambda v: 0))\n",
    "iterator_that_is_a_default": "def f(x):\n    return str(next(iter([]), zip([1])))\n",
    "iterator_that_is_a_start": "def f(x):\n    return str(sum([], zip([1])))\n",
    "iterator_that_is_reduced_to": "from functools import reduce\n"
    "def f(x):\n    return str(reduce(max, [], zip([1])))\n",
    "iterators_of_groups": "from itertools import groupby\ndef f(x):\n    return str([g for k, g in groupby([1])])\n",
    "generators_made_by_map": "def g(x):\n    yield x\ndef f(x):\n    return str(list(map(g, [1])))\n",
    "imported_name_of_a_generator": "from collections import deque as d\ndef d(x):\n"
    "    yield x\ndef f(x):\n    return str(d(x))\n",
    "imported_name_of_a_function": "from collections import Counter as c\ndef c(x):\n"
    "    return str(x)\ndef f(x):\n    return c(n for n in [x])\n",
    "keys_made_by_map": "from functools import cmp_to_key\n"
    "def f(x):\n    return str(list(map(cmp_to_key(lambda a, b: 0), [1])))\n",
    "types_made_by_map": "def f(x):\n    for t in map(type, [int]):\n"
    "        a = t('A', (), {})\n        return str(a())\n",
    "set_of_exceptions": "def f(x):\n    return [str(e) for e in {ValueError(n) for n in range(20)}]\n",
    "set_of_matches": "import re\n"
    "def f(x):\n    return [m.group() for m in {re.match('.*', str(n)) for n in range(20)}]\n",
    "set_of_getters": "from operator import itemgetter\n"
    "def f(x):\n    return [str(e) for e in {itemgetter(n) for n in range(20)}]\n",
    "set_of_views": "def f(x):\n    return [str(e) for e in {dict([(n, n)]).values() for n in range(20)}]\n",
    "iterator_of_a_generic_type": "def f(x):\n    e = enumerate[int]\n    return str(e([1]))\n",
    "text_of_a_cache": "from functools import lru_cache\ndef f(x):\n    return str(lru_cache(len))\n",
    "copies_made_by_map": "from copy import deepcopy\ndef f(x):\n"
    "    m = {}\n    list(map(deepcopy, [x], [m]))\n    return list(m)\n",
    "reduced_to_after_a_star": "from functools import reduce\n"
    "def f(x):\n    return str(reduce(*[max, []], zip([1])))\n",
    "memory_that_is_used_up": "def f(x):\n    try:\n"
    "        return bytearray(x)[0]\n    except MemoryError:\n        return 1\n",
    "stack_that_is_used_up": "def f(x):\n    try:\n        return f(x + 1)\n    except:\n        return x\n",
    "end_of_memory_left_aside": "def f(x):\n    try:\n        y = bytearray(x)\n    finally:\n        return 1\n",
    "set_with_a_nan_of_views": "def f(x):\n    k = {float(n): 1 for n in x}.keys()\n    k |= x\n    return list(k)\n",
    "set_with_a_nan": "def f(x):\n    return list({float(x), *range(99)})\n",
    "set_with_a_nan_of_constants": "def f(x):\n    return list(set([1e999 - x, 1e999 * 0]))\n",
    "set_with_a_nan_by_division": "def f(x):\n"
    "    y = 2 ** 1000 / 1\n    return list({n: n for n in [y * y - y * y]}.keys() | x)\n",
    "stack_seen_by_a_finally": "def g(d):\n    d[0] += 1\n    g(d)\ndef f(x):\n    d = [0]\n    try:\n        try:\n"
    "            g(d)\n        finally:\n            1 // 0\n    except ZeroDivisionError:\n        return d[0]\n",
    "stack_seen_by_a_generator_let_go": "def r(d):\n    d[0] += 1\n    r(d)\n"
    "def g(d):\n    try:\n        yield 1\n    except GeneratorExit:\n        r(d)\n"
    "def f(x):\n    d = [0]\n    for _ in g(d):\n        break\n    return d[0]\n",
    "memory_seen_by_an_import": "def f(x):\n    y = bytes(x)\n    try:\n        import cmath\n"
    "    except ImportError:\n        return 1\n",
    "memory_seen_by_a_codec": "def f(x):\n    try:\n        return 'a'.encode('gbk')\n"
    "    except LookupError:\n        return x\n",
    "memory_seen_by_a_named_codec": "def f(x):\n    return str(x, encoding='gbk')\n",
    "memory_seen_by_a_codec_of_a_type": "def f(x):\n    return str.encode('ascii', 'cp500')\n",
    "memory_seen_by_a_codec_with_a_star": "def f(x):\n    return str(*(b'a', 'cp500'))\n",
    "memory_seen_by_a_codec_under_a_shadow": "def g(str):\n    return str\ndef f(x):\n    return str(b'a', 'cp500')\n",
    "memory_seen_by_a_handler_of_errors": "def f(x):\n    return 'a'.encode('ascii', 'namereplace')\n",
    "memory_seen_by_a_named_handler_of_errors": "def f(x):\n    return str(x, 'ascii', errors=x[0])\n",
    "nan_of_a_shadowed_constant": "from math import inf\ndef g(inf):\n    return inf\n"
    "def f(x):\n    return {inf - inf, 1}\n",
    "memory_seen_by_a_codec_of_map": "def f(x):\n    return list(map(str, [b'a'], ['cp500']))\n",
    "function_that_makes_defaults": "from collections import defaultdict\nfrom re import findall\n"
    "def f(x):\n    return str(defaultdict(findall))\n",
    "text_of_a_function_of_a_module": "from re import findall\ndef f(x):\n    return str(findall)\n",
    "text_of_a_member_of_a_module": "import copy\ndef f(x):\n    return '%s' % copy.copy\n",
    "types_in_a_set": "def f(x):\n    return [n for n in {1, int}]\n",
    "type_in_a_set": "from collections import Counter\ndef f(x):\n    return [n for n in {1, Counter}]\n",
    "method_in_a_set": "def f(x):\n    return [n for n in {1, str.lower}]\n",
    "recursion_limit": "import sys\nsys.setrecursionlimit(99999)\ndef f(x):\n    return x\n",
}


@pytest.mark.parametrize("name", SHARED)
def test_a_program_that_keeps_nothing_may_share_process_and_module(name: str) -> None:
    assert (company(SHARED[name]), alone_because(SHARED[name])) == (Company.SHARED, "")


@pytest.mark.parametrize("name", NOT_SHARED)
def test_a_program_that_could_keep_state_may_at_most_share_a_process(name: str) -> None:
    assert company(NOT_SHARED[name]) is (Company.RELOADED if name in RELOADED else Company.ALONE)


@pytest.mark.parametrize("name", ALONE)
def test_what_is_not_on_the_list_runs_alone_and_says_why(name: str) -> None:
    assert company(ALONE[name]) is Company.ALONE
    assert alone_because(ALONE[name])


@pytest.mark.parametrize(
    "source", ["def f(:", "f = '\ud800'", "f = 1\0", "-" * 100_000 + "1", "(" * 100_000, f"{_F}#{' ' * 70_000}"]
)
def test_what_cannot_be_looked_at_runs_alone(source: str) -> None:
    assert company(source) is Company.ALONE


@given(st.text(max_size=200))
def test_no_text_raises(source: str) -> None:
    assert company(source) in Company


def test_nearly_all_bundled_references_may_share_a_process() -> None:
    """Otherwise the quick way would be of no use."""
    references = [problem.reference_solution or "" for problem in bundled_problems()]
    shared = sum(company(source) is not Company.ALONE for source in references)
    assert shared >= 0.9 * len(references) > 30


def _nested(opening: str, inner: str, count: int) -> str:
    return "".join(opening.replace(">", " " * depth) for depth in range(count)) + " " * count + inner


GROWING = {
    "arguments": lambda count: f"{_F}f({'1, ' * count * 5})\n",
    "a_renaming": lambda count: _F + "g = g\n" * count * 5,
    "renamed_in_turn": lambda count: "".join(f"g{place} = g{place + 1}\n" for place in range(count * 5)) + _F,
    "nested_functions": lambda count: "def g():\n yield\n" + _nested(">def h():\n", "1; " * count * 5, count) + "\n",
    "nested_finally": lambda count: _nested(">try: 1\n>finally:\n", "1; " * count * 5, count) + "\n",
}
"""Programs that are twice as large for twice the number."""


@pytest.mark.parametrize("name", GROWING)
def test_twice_the_program_takes_twice_the_steps(name: str) -> None:
    """The texts come from players, and are read in the trusted process. Steps are counted, not timed."""
    few, many = (_steps(GROWING[name](count)) for count in (40, 80))
    assert 0 < many < 2.5 * few


def _steps(source: str) -> int:
    """Lines of Python that run while a program is read, each turn of a loop once."""
    steps = 0

    def count(frame: object, event: str, argument: object) -> object:
        nonlocal steps
        steps += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)  # type: ignore[arg-type]
    try:
        company(source)
    finally:
        sys.settrace(before)
    return steps
