"""What each change shows once it is made: run by tests/test_changes.py in a tree that has them all.

    python tests/changes/checks.py FOLDER      from the tree; prints what failed, by the name of the change, as JSON

A check has the name of its patch. FOLDER is empty, and takes the two runs that the checks look at.
"""

from __future__ import annotations

import csv
import json
import runpy
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path.cwd()
FOLDER = Path(sys.argv[1])
CONFIG = "extends: smoke\nrounds: 1\nalgorithm: {advantage: %s, questions: %s}\n"


def trained(script: str, name: str, advantage: str = "grpo", questions: str = "shuffled") -> list[dict[str, Any]]:
    """The metrics of a run, which is made when it is first asked for."""
    run, config = FOLDER / name, FOLDER / f"{name}.yaml"
    if not run.exists():
        config.write_text(CONFIG % (advantage, questions))
        argv, sys.argv = sys.argv, [script, "--config", str(config), "--output", str(run)]
        try:
            with pytest.raises(SystemExit) as ended:
                runpy.run_path(str(ROOT / script), run_name="__main__")
        finally:
            sys.argv = argv
        assert ended.value.code == 0
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def of_kind(records: list[dict[str, Any]], kind: str, seat: str = "") -> dict[str, Any]:
    return next(record for record in records if (record["kind"], record["seat"]) == (kind, seat))


def entropy_bonus() -> None:
    import torch

    from codea1_env.training.policies.packed_loss import Clipped, PackedRow, StepShape

    numbers = SimpleNamespace(epsilon=0.2, epsilon_high=None, delta=None, beta=0.0, use_bias_correction_kl=False)
    log_probs = torch.tensor([-1.0, -2.0], requires_grad=True)
    row = PackedRow([5, 6], old=(-1.0, -2.0), advantage=0.0)
    Clipped([row], "dapo", StepShape(1, 2.0, 8), numbers)([0], log_probs, 0).backward()
    assert log_probs.grad is not None
    # No advantage: 0.01 * log p / (2 tokens). A step against it makes probable tokens less probable.
    assert log_probs.grad.tolist() == pytest.approx([-0.005, -0.01])


def csv_metrics() -> None:
    records = trained("agents/train_grpo.py", "duel")
    with open(FOLDER / "duel" / "metrics.csv") as file:
        rows = list(csv.reader(file))
    found = {(kind, seat, name): value for _, kind, seat, name, value in rows}
    assert float(found["round", "", "coder_reward"]) == of_kind(records, "round")["coder_reward"]
    assert len(rows) == sum(len(record) - 3 for record in records)  # kind, seat, round


def oldest_failure_leaves() -> None:
    from codea1_env.mistake_book.book import MistakeBook
    from codea1_env.mistake_book.policies import BookConfig
    from codea1_env.reading.test_case import TestCase

    first, second, third = (TestCase(f"f({i})", "0") for i in range(3))
    book = MistakeBook(BookConfig(capacity=2, eviction="oldest_failure"))
    for failed in (first, second, first, third):
        book.record("p", [], [failed])
    assert book.frequencies("p") == {first: 2, third: 1}


def syntax_errors_apart() -> None:
    found = of_kind(trained("agents/train_grpo.py", "duel"), "round")
    assert 0 < found["syntax_errors"] <= 1  # of a random model


def leave_one_out() -> None:
    import torch

    from codea1_env.configuration.algorithm import Algorithm
    from codea1_env.training.advantages import estimator_of
    from codea1_env.training.samples import RowLabel

    rewards = torch.tensor([1.0, 0.0, 0.5, float("nan")])
    found = estimator_of(Algorithm(advantage="leave_one_out")).advantages(rewards, [RowLabel("g", "q", "coder")] * 4)
    assert found[:3].tolist() == pytest.approx([0.75, -0.75, 0.0])  # 1 - (0 + 0.5) / 2, 0 - (1 + 0.5) / 2, ...


def hardest_first() -> None:
    from codea1_env.configuration.algorithm import Algorithm
    from codea1_env.training.round.questions import chooser_of

    problems: Any = [SimpleNamespace(problem_id=name) for name in "abc"]
    chooser = chooser_of(Algorithm(questions="hardest_first"), problems, seed=0)
    chooser.learn({"a": 0.5, "b": 0.9})
    assert chooser.choose(0, 2) == [2, 0]  # c was not asked yet
    trained("agents/train_grpo.py", "hard", "leave_one_out", "hardest_first")


def no_penalty() -> None:
    from codea1_env.rewards.code_a1 import RewardConfig, suite_terms
    from codea1_env.rewards.duel import Duel, JudgedTest, Status, Verdict

    test = JudgedTest("assert f(0) == 0", Status.KEPT, "", "f(0)", "0", "0", Verdict.PASS)
    found = suite_terms(Duel("p", "def f(x): ...", True, 0.25, (test,), ()), RewardConfig(suite_size=1))
    assert found is not None
    assert found.reward == 0.5  # alpha, and nothing is taken off for the characters


def german() -> None:
    from codea1_env import bundled_problems
    from codea1_env.players.prompts import find_prompts

    problem, prompts = bundled_problems()[0], find_prompts("german")
    asked = prompts.for_tester(problem, "def f(): ...", suite_size=4)
    assert "Dieses Programm kam zurück" in asked[-1]["content"]
    assert problem.question in asked[-1]["content"]
    assert "Schreibe `" in prompts.for_coder(problem)[-1]["content"]


def all_or_nothing() -> None:
    from codea1_env.training.loop import Recipe

    grade = Recipe.grade

    def paid_halves(run: Recipe, *asked: Any) -> Any:
        score = grade(run, *asked)
        rows = [replace(row, reward=0.5 if place else 1.0) for place, row in enumerate(score.batches[0])]
        return replace(score, batches=(rows,))

    Recipe.grade = paid_halves  # type: ignore[method-assign]  # a random model would earn nothing at all
    try:
        records = trained("baselines/all_or_nothing.py", "golden")
    finally:
        Recipe.grade = grade  # type: ignore[method-assign]
    assert of_kind(records, "seat", "coder")["reward"] == 0.25  # 2 questions, 2 programs: one of four is paid


def largest_advantage() -> None:
    found = of_kind(trained("agents/train_grpo.py", "duel"), "seat", "tester")
    assert found["largest_advantage"] >= 0


def cut_off_costs() -> None:
    records = trained("agents/train_grpo.py", "duel")
    earned, seat = of_kind(records, "round")["coder_reward"], of_kind(records, "seat", "coder")
    assert seat["truncated"] > 0
    assert seat["reward"] == pytest.approx(earned - seat["truncated"])


def main() -> None:
    failed = {}
    for patch in sorted((Path(__file__).parent).glob("*.patch")):
        try:
            globals()[patch.stem]()
        except BaseException:
            failed[patch.stem] = traceback.format_exc(limit=-2)
    print(json.dumps(failed))


if __name__ == "__main__":
    main()
