"""The arms of the study: which recipe each runs, and what it changes in the preset. docs/results.md: what came out.

`python experiments/study.py --list-arms` prints them as a table. An arm of one's own is an entry of a YAML
file for `--arm-file`: name, recipe (a script with the recipes' arguments that leaves a summary.json; of the file's
folder or the checkout), changes, tester_of, says. Modules that `changes` names are looked for in the file's folder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from codea1_env.errors import ConfigurationError
from codea1_env.terminal import markdown_table
from codea1_env.yaml_files import read_yaml

ROOT = Path(__file__).parent.parent
DUEL = "agents/train_grpo.py"
ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Of the sweep."""
FIELDS = {"name": str, "recipe": str, "changes": Mapping, "tester_of": str, "says": str}


@dataclass(frozen=True, slots=True)
class Arm:
    """One method of the study."""

    name: str
    """Of its row in the tables, and of its directory."""
    recipe: str
    """Script, as seen from the checkout."""
    says: str
    """Its definition in words."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """What it overrides in the preset, as in a YAML file for `--config`."""
    tester_of: str = ""
    """The arm whose trained tester of the same preset and seed it gets as `--tester`."""
    folder: str = ""
    """Of the file that it is from."""


ARMS: tuple[Arm, ...] = (
    Arm("base", "baselines/base.py", "nothing is trained"),
    Arm("golden", "baselines/golden_tests.py", "the coder alone, paid for golden tests"),
    Arm(
        "hidden",
        "baselines/golden_tests.py",
        "the ceiling, no method: the coder alone, paid for the hidden tests of its training problems",
        {"problems": {"hidden_as_golden": True}},
    ),
    Arm("frozen", "baselines/frozen_tester.py", "the coder learns against the base tester, which never does"),
    Arm(
        "black_box",
        DUEL,
        "Code-A1, but the tester does not see the program",
        {"options": {"access": "black-box"}},
    ),
    Arm("code_a1", DUEL, "Code-A1: the preset as it is"),
    Arm(
        "frozen_trained",
        "baselines/frozen_tester.py",
        "a fresh coder learns against the finished tester of `code_a1`, frozen",
        tester_of="code_a1",
    ),
    Arm("sft", "baselines/sft.py", "the tester by supervised learning on validated suites; the coder is the base"),
    Arm("static_base", "baselines/static_tests.py", "suites of the base tester, written once, as golden tests"),
    Arm(
        "static_sft",
        "baselines/static_tests.py",
        "suites of `sft`'s tester, written once, as golden tests",
        tester_of="sft",
    ),
    Arm(
        "static_trained",
        "baselines/static_tests.py",
        "suites of `code_a1`'s tester, written once, as golden tests",
        tester_of="code_a1",
    ),
    Arm("self_play", "baselines/self_play.py", "one model in both seats, white-box, with the reference"),
    Arm(
        "self_play_black_box",
        "baselines/self_play.py",
        "one model in both seats, black-box, with the reference",
        {"options": {"access": "black-box"}},
    ),
    Arm(
        "self_play_no_reference",
        "baselines/self_play.py",
        "one model in both seats, white-box; the majority of its programs decides what is right",
        {"reward": {"oracle": "majority"}},
    ),
    Arm(
        "self_play_black_box_no_reference",
        "baselines/self_play.py",
        "the same, black-box",
        {"options": {"access": "black-box"}, "reward": {"oracle": "majority"}},
    ),
    Arm(
        "frozen_no_book",
        "baselines/frozen_tester.py",
        "`frozen` without replays from the Mistake Book, which may do a part of the aiming",
        {"reward": {"replay_limit": 0}},
    ),
    Arm("no_book", DUEL, "Code-A1 without replays from the Mistake Book", {"reward": {"replay_limit": 0}}),
    Arm(
        "tester_book",
        DUEL,
        "Code-A1, and 2 old buggy programs a question come back to the tester as targets",
        {"options": {"tester_book": 2}},
    ),
    *(Arm(f"alpha_{alpha}", DUEL, f"Code-A1 with alpha {alpha}", {"reward": {"alpha": alpha}}) for alpha in ALPHAS),
    Arm(
        "no_correction",
        DUEL,
        "Code-A1, but a test that states a wrong value does not run",
        {"reward": {"correct_outputs": False}},
    ),
    Arm(
        "paper_fidelity",
        DUEL,
        "Code-A1 with suites read as the released code reads them",
        {"reward": {"fidelity": "paper"}},
    ),
    Arm(
        "question_baseline",
        DUEL,
        "Code-A1, rewards measured against the question's running mean, which does not cancel f_hist",
        {"algorithm": {"advantage": "question"}},
    ),
    Arm(
        "past_opponents",
        DUEL,
        "Code-A1, and a quarter more programs and suites by past opponents, those that did better first",
        {"options": {"opponents": "prioritised"}},
    ),
    Arm(
        "more_tests",
        DUEL,
        "Code-A1 with suites of 4 tests, and a base model of its own that writes so many",
        {"reward": {"suite_size": 4}, "grpo": {"tester": {"max_completion_length": 44}}},
    ),
    Arm("more_rounds", DUEL, "Code-A1 with 200 rounds", {"rounds": 200}),
    Arm("few_questions", DUEL, "Code-A1 on 50 questions, 16 visits to each", {"problems": {"train": 50}}),
    Arm(
        "few_questions_no_book",
        DUEL,
        "the same without replays from the Mistake Book",
        {"problems": {"train": 50}, "reward": {"replay_limit": 0}},
    ),
)

GROUPS: Mapping[str, tuple[str, ...]] = {
    "quick": ("base", "golden", "code_a1"),
    "main": ("base", "golden", "hidden", "frozen", "black_box", "code_a1", "frozen_trained", "self_play"),
    "all": tuple(arm.name for arm in ARMS),
}


def chosen_arms(names: Sequence[str], file: Path | None) -> tuple[Arm, ...]:
    """The arms of these names and groups and those of `file`, with the arms whose testers they need, in table order.

    Raises ConfigurationError for a name that there is not.
    """
    known = {arm.name: arm for arm in ARMS}
    own = _arms_of(file, known) if file else ()
    known |= {arm.name: arm for arm in own}
    wanted = {name for each in names for name in GROUPS.get(each, (each,))} | {arm.name for arm in own}
    for name in sorted(wanted):
        if name not in known:
            raise ConfigurationError(f"an arm must be one of {', '.join([*GROUPS, *known])}, got {name!r}")
    wanted |= {known[name].tester_of for name in wanted} - {""}
    return tuple(arm for arm in known.values() if arm.name in wanted)


def as_table() -> str:
    """Markdown."""
    rows = []
    for arm in ARMS:
        changes = [f"`{json.dumps(arm.changes)}`"] if arm.changes else []
        tester = [f"`--tester` of `{arm.tester_of}`"] if arm.tester_of else []
        rows.append((f"`{arm.name}`", arm.says, f"`{arm.recipe}`", ", ".join(changes + tester)))
    return markdown_table(("arm", "what it is", "recipe", "changes"), rows)


def _arms_of(file: Path, known: Mapping[str, Arm]) -> tuple[Arm, ...]:
    content = read_yaml(file, "--arm-file")
    if not isinstance(content, list) or not all(isinstance(entry, Mapping) for entry in content):
        raise ConfigurationError(f"{file} must be a list of arms (name, recipe, ...), got {content!r:.200}")
    found = []
    for entry in content:
        for key, value in entry.items():
            if key not in FIELDS or not isinstance(value, FIELDS[key]):
                must = {name: kind.__name__.lower() for name, kind in FIELDS.items()}
                raise ConfigurationError(f"{file}: an arm must have fields among {must}, got {key}: {value!r}")
        arm = Arm(**{"says": "", "name": "", "recipe": ""} | dict(entry))
        if not arm.name.replace("_", "").replace("-", "").replace(".", "").isalnum() or arm.name in known:
            raise ConfigurationError(f"{file}: name must be new, of letters, digits, _, - and ., got {arm.name!r}")
        beside, ours = file.resolve().parent / arm.recipe, ROOT / arm.recipe
        if not beside.is_file() and not ours.is_file():
            raise ConfigurationError(f"{file}: recipe must be a script that is there, got {arm.recipe!r}")
        if arm.tester_of not in ("", *known):
            raise ConfigurationError(f"{file}: tester_of must be an arm of the study, got {arm.tester_of!r}")
        recipe = str(beside) if beside.is_file() else arm.recipe
        found.append(replace(arm, recipe=recipe, folder=str(file.resolve().parent)))
    return tuple(found)
