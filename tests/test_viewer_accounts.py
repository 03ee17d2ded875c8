"""What the page says of a reward: the numbers of the formulas, computed here and by hand, and none by the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from viewer_pages import example_suite, game

from codea1_env.viewer.accounts import accounted

SCRIPTS = Path(__file__).parents[1] / "codea1_env" / "viewer"


def account(found: Any, program: int = 1, suite: int = 0) -> Any:
    return accounted(found)["programs"][program]["suites"][suite]["account"]


def written(parts: list[Any]) -> str:
    return "".join(part if isinstance(part, str) else f"{part:.4g}" for part in parts)


def lines(found: list[Any]) -> dict[str, tuple[str, float | None]]:
    return {name: (written(numbers), value) for name, _, numbers, value, _ in found}


def test_every_term_comes_with_its_numbers() -> None:
    found = account(game())
    assert written(found["title"]) == "Tester · K = 4, α = 0.5"
    assert lines(found["lines"]) == {
        "R_val": ("min(3/4, 1 − 2/4)", 0.5),
        "f_new": ("1/4", 0.25),
        "f_hist": ("2/3", 2 / 3),
        "R_adv": ("(0.25 − 0.6667 + 1) / 2", 7 / 24),
        "R_T": ("0.5 · 0.5 + 0.5 · 0.2917 − 0", 19 / 48),
    }
    assert lines(found["coder"]) == {
        "p_new": ("2/3", 2 / 3),
        "p_hist": ("1 − 0.6667", 1 / 3),
        "share": ("(0.3333 + 0.6667) / 2", 0.5),
        "R_C": ("(0.5 + 0.5) / 2", 0.5),
    }
    assert found["sums"] == {"v": 3, "invalid": 2, "broken": 1, "passed": 2, "size": 4}


def test_every_assert_comes_with_what_it_counts_for_and_with_both_rewards_without_it() -> None:
    kept, failed, corrected, rejected = account(game())["tests"]
    assert [each[0] for each in (kept, failed, corrected, rejected)] == [
        ["v", "passed"], ["v", "broken"], ["v", "invalid", "passed"], ["invalid"],
    ]  # fmt: skip
    # Without the failed one: v = 2, R_val = 1/2, f_new = 0, R_adv = 1/6: R_T = 1/3; p_new = 2/2: (1/3 + 1) / 2 = 2/3.
    assert failed[1] == pytest.approx([19 / 48, 1 / 3, 1 / 16])
    assert failed[2] == pytest.approx([1 / 2, 2 / 3, -1 / 6])
    # Without the rejected one: invalid = 1, R_val = min(3/4, 3/4): 1/8 more; the coder earns the same.
    assert rejected[1] == pytest.approx([19 / 48, 19 / 48 + 1 / 8, -1 / 8])
    assert rejected[2] == pytest.approx([1 / 2, 1 / 2, 0])


def test_terms_that_the_formulas_do_not_come_to_are_shown_as_they_stand() -> None:
    other = game()
    other["programs"][1]["suites"][0]["reward"] = 0.9
    found = account(other)
    assert "does not give these terms" in found["note"]
    assert lines(found["lines"])["validity"] == ("", 0.5)
    assert found["sums"] is None


@pytest.mark.parametrize(
    ("method", "reward", "numbers"),
    [
        ("utrl", "R_T", "(0.85 · 0.2917 + 0.05 · 0.5) / 0.9"),
        ("cure", "R_T", "(1 + 0.5 − 0.5 + 0) / 4"),
        ("skill", "R_T", "(1 + 0.5 − 0.5 + 0) / 4"),
        ("somebodys_own:Reward", "R_T", ""),
    ],
)
def test_every_method_has_its_lines_and_one_of_somebodys_own_is_not_imported(
    method: str, reward: str, numbers: str
) -> None:
    suite = example_suite()
    for test, pay in zip(suite["tests"], (1.0, 0.5, -0.5, 0.0), strict=True):
        test[8] = pay
    paid = game(config={"tester_reward": method, "coder_tests": "own"})
    paid["programs"][1]["suites"][0] = suite
    assert lines(account(paid)["lines"])[reward] == (numbers, 19 / 48)
    decides = {
        "skill": "the tests of all suites of the question decide",
        "somebodys_own:Reward": "what this coder reward",
    }
    assert account(paid)["coder"][-1][1].startswith(decides.get(method, "mean of the shares of its 2 suites"))


@pytest.mark.parametrize(
    ("pay", "reward", "numbers"),
    [
        (0.0, 0.0, ""),
        (0.0, -1.5 / 4, "(0 − 3 · 0.5 for missing asserts) / 4"),
    ],  # as written, no test fails the best one
)
def test_missing_asserts_cost_nothing_where_no_program_loads(pay: float, reward: float, numbers: str) -> None:
    suite = example_suite()
    suite |= {"tests": suite["tests"][:1], "reward": reward}
    suite["tests"][0][8] = pay
    paid = game(config={"tester_reward": "skill"})
    paid["programs"][1]["suites"][0] = suite
    assert lines(account(paid)["lines"]) == {"R_T": (numbers, reward)}


def test_a_game_without_configuration_terms_or_suites_has_no_account_and_stays() -> None:
    bare = game(config=None)
    bare["programs"][0]["suites"] = []
    bare["programs"][1]["suites"][0] |= {"terms": None, "reward": None}
    found = accounted(bare)
    assert "account" not in found["programs"][1]["suites"][0]
    assert found["programs"][1]["suites"][1]["account"]["coder"][-1][2] == ["(", "–", " + ", 0.5, ") / 2"]


def test_the_page_computes_no_term() -> None:
    for path in SCRIPTS.glob("*.js"):
        terms = r"\b(alpha|f_hist|p_hist|p_new|validity|nonprintable|suite_size)\b"
        assert not re.search(terms, re.sub(r"//.*|\"[^\"]*\"", "", path.read_text())), path
