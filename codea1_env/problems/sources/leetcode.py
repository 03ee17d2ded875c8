"""LeetCodeDataset: questions about a method of a class `Solution`, with some asserts each, which become golden tests.

Lists and trees of nodes are plain lists in tests (`problems/kinds.py`): the set's own `list_node([1, 2])` and
`is_same_list(...)` are read as that. A row's long list of star imports is replaced by imports of the same names that
programs of such sets use, so that it is known what a name is. Where the answer may be returned "in any order", the
checker `unordered` decides.
"""

from __future__ import annotations

import ast
import re

from codea1_env.problems.check_functions import extract
from codea1_env.problems.kinds import METHOD, NODES
from codea1_env.problems.sources.draft import CUSTOMARY_IMPORTS, Draft, ParsedProgram, RowError, RowFields, Source

_ANY_ORDER = re.compile(
    r"\breturn (?:the|all|them|it|any)(?: [\w/-]+){0,7} in any order\b|\b(?:may|can) be returned in any order\b", re.I
)
_INSIDE = ("find-the-difference-of-two-arrays", "find-critical-and-pseudo-critical-edges-in-minimum-spanning-tree")
"""Their answer is two lists, whose own order counts while that in each does not: no comparison says so."""
_ASKED = re.compile(r"\s*Please complete the following python code precisely:\s*```python\n(.*?)\n?```\s*", re.DOTALL)


def _read_row(row: RowFields, source: Source) -> Draft:
    entry_point = row.text("entry_point")
    match = METHOD.fullmatch(entry_point)
    if match is None:
        raise RowError(f"the entry point must be Class().method, got {entry_point[:100]!r}")
    program, query = ParsedProgram(row.text("completion")), row.text("query")
    asked = _ASKED.search(query)
    classes = [code for name, code in NODES.items() if re.search(rf"\b{name}\b", program.source + query)]
    meta = row.get("meta")
    return source.draft(
        program,
        golden=extract(row.text("test"), entry_point, _PlainNodes()),
        problem_id=f"LeetCode/{row.text('task_id')}",
        question=_ASKED.sub("", query).strip(),
        entry_point=entry_point,
        kind="method",
        starter_code=asked[1] if asked else "",
        imports="\n".join(filter(None, [CUSTOMARY_IMPORTS, program.imports, *classes])),
        difficulty=RowFields(meta if isinstance(meta, dict) else row).said("difficulty").lower(),
        checker="unordered" if _ANY_ORDER.search(query) and row["task_id"] not in _INSIDE else "",
        time_limit_s=2.0,
    )


class _PlainNodes(ast.NodeTransformer):
    """Nodes as the lists that they are made of."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Name("list_node"), [ast.List() as values], []):
                return values
            case ast.Call(ast.Name("tree_node"), [ast.List() as values], []):
                while values.elts and isinstance(values.elts[-1], ast.Constant) and values.elts[-1].value is None:
                    values.elts.pop()
                return values
            case ast.Call(ast.Name("is_same_list" | "is_same_tree"), [one, other], []):
                return ast.Compare(one, [ast.Eq()], [other])
        return node


LEETCODE = Source("leetcode", "newfacade/LeetCodeDataset", "train", "MIT", _read_row)
