"""Which programs may run, by a rule of your own: none that calls itself, whatever it computes.

    codea1 score recorded.jsonl -o scored.jsonl --accept own_accept:NoRecursion      # from this folder

In a run's YAML: `reward: {accept: "own_accept:NoRecursion", accept_args: {allowed: [gcd]}}`.
"""

import ast

from codea1_env import Accept, RewardConfig


class NoRecursion(Accept):
    def __init__(self, config: RewardConfig, allowed: tuple[str, ...] = ()) -> None:
        super().__init__(config)
        self.allowed = allowed

    def refuses(self, program: str, tree: ast.Module | None) -> str | None:
        if tree is None:
            return "cannot be read"  # it could hide anything
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in self.allowed:
                called = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
                if node.name in {getattr(each, "id", getattr(each, "attr", None)) for each in called}:
                    return "recursion"
        return None
