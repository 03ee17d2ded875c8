"""Which programs may run: what `RewardConfig.accept` says of their texts. Pure, and before anything runs.

Does not look at what a program was asked or returned.
"""

from __future__ import annotations

from collections.abc import Sequence

from codea1_env.checks import require
from codea1_env.reading.parsing import Unparsable, parse
from codea1_env.rewards.code_a1 import RewardConfig

_MOST_WORDS = 200
"""Characters of a rule: it is a name, not a report."""


def refused_by(programs: Sequence[str], config: RewardConfig) -> list[str]:
    """For each program the rule by which it may not run, empty where it may. Raises ConfigurationError where a stage of
    one's own says something else."""
    stage = config.accept_stage
    if stage is None:
        return [""] * len(programs)
    rules = []
    for program in programs:
        try:
            tree = parse(program)
        except Unparsable:
            tree = None
        rule = stage.refuses(program, tree)
        is_rule = rule is None or (isinstance(rule, str) and len(rule.strip()) > 0 and len(rule) <= _MOST_WORDS)
        must = f"be None or the rule in at most {_MOST_WORDS} characters"
        require(is_rule, f"what accept {config.accept!r} says of a program", must, rule)
        rules.append(" ".join(rule.split()) if rule else "")
    return rules
