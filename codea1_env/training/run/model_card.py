"""The card that a run leaves beside each model: README.md in the form of the Hugging Face hub.

It says what the run knows: the method, the weights that it began with, the questions, and what was measured. It claims
no licence, which is that of the base and of the questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from codea1_env.configuration.placement import role_of
from codea1_env.evaluation.metrics import Interval
from codea1_env.language_models.directories import ADAPTER, is_place
from codea1_env.terminal import markdown_table
from codea1_env.training.run.results import ResultRow
from codea1_env.whole_files import write_whole

CARD = "README.md"
_CITATION = """\
@article{wang2026codea1,
  title={{Code-A1}: Adversarial Evolving of Code {LLM} and Test {LLM} via Reinforcement Learning},
  author={Wang, Aozhe and Yan, Yuchen and Zhou, Nan and Lu, Zhengxi and Lu, Weiming and Xiao, Jun and Zhuang, Yueting and Shen, Yongliang},
  journal={arXiv preprint arXiv:2603.15611},
  year={2026}
}
"""  # noqa: E501  # as the page of the README has it


def write_cards(
    directory: Path, configuration: Mapping[str, Any], seats: Sequence[str], rows: Sequence[ResultRow]
) -> None:
    """One beside the final model of every seat that has one. `configuration`: what the run's config.yaml holds."""
    for seat in seats:
        final = directory / seat / "final"
        if final.is_dir():
            is_adapter = (final / ADAPTER).is_file()
            write_whole(final / CARD, model_card(configuration, seat, rows, is_adapter=is_adapter))


def model_card(configuration: Mapping[str, Any], seat: str, rows: Sequence[ResultRow], *, is_adapter: bool) -> str:
    """Front matter and text. `rows`: base against trained, of all seats."""
    preset, role = configuration["preset"], "player" if seat == "player" else role_of(seat)
    base = str(preset["model"].get("pretrained", ""))
    on_hub = base if base and not is_place(base) else ""
    head = {
        "library_name": "peft" if is_adapter else "transformers",
        "pipeline_tag": "text-generation",
        **({"base_model": on_hub} if on_hub else {}),
        "tags": ["code", "reinforcement-learning", "grpo", "code-a1", role],
    }
    merged = "adapters, merged into the base" if preset["lora"]["rank"] else "all weights"
    facts = {
        "began with": on_hub or ("a local copy of a model" if base else "a model made for this run"),
        "sha256 of these weights": configuration["base"][:16],
        "what is trained": "adapters" if is_adapter else merged,
        "recipe, preset, seed": f"{configuration['recipe']}, {preset['name']}, {configuration['seed']}",
        "rounds": preset["rounds"],
        "prompts": preset.get("prompts", {}).get("name", "short ones, of a model made for this run"),
        "questions": ", ".join(f"{name} {digest[:16]}" for name, digest in configuration["data"].items()),
    }
    parts = [
        f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n",
        f"# The {seat} of a run of Code-A1\n",
        f"{_PLAYS[role]}\n",
        markdown_table(("", ""), facts.items()),
        "",
        _measured(role, rows),
        "`config.yaml` of the run holds every setting. The licence is that of the base and of the questions.\n",
        f"## Citation\n\n```bibtex\n{_CITATION}```\n",
    ]
    return "\n".join(parts)


_PLAYS = {
    "coder": "It writes a Python program for a question. It was trained by reinforcement learning on tests that\n"
    "another model wrote against its programs.",
    "tester": "It writes tests that are to break a given Python program. It was trained by reinforcement learning to\n"
    "state right values and to break the programs of another model.",
    "player": "It writes programs, and tests against programs: one model plays both seats.",
}


def _measured(role: str, rows: Sequence[ResultRow]) -> str:
    """What the run measured of this role; of both, for a player."""
    own = [row for row in rows if role == "player" or row.name.startswith(f"{role}:")]
    told = [row for row in own if any((row.base, row.trained, row.low, row.high))]
    if not told:
        return "It was not measured, or every measure was 0 before and after.\n"
    lines = [
        (
            row.name,
            f"{row.base:.3f}",
            f"{row.trained:.3f}",
            f"{Interval(row.low, row.trained - row.base, row.high):+.3f}",
        )
        for row in told
    ]
    return (
        "On held-out problems of the run, with 95 % intervals over problems:\n\n"
        + markdown_table(("", "base", "trained", "difference"), lines)
        + "\n"
    )
