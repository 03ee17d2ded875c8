"""K belongs to the problem that says one: its matches come to what they would come to in a run with that K."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import pytest

from codea1_env import Arena, LocalSandbox, Match, MatchScore, Problem, ProblemFormatError, RewardConfig, TestCase
from codea1_env.cli import main
from codea1_env.evaluation.evaluate import EvaluationPlan, evaluate, journal_header
from codea1_env.evaluation.journal import EvaluationJournal
from codea1_env.evaluation.search_tester import SearchTester
from codea1_env.players import FuzzTester, HumanPlayer, Player, RandomTester, RecordedPlayer
from codea1_env.players.chat import chat_messages
from codea1_env.players.player import TesterRequest
from codea1_env.problems.jsonl import read_problems, write_problems
from codea1_env.records.recording import Recorder, read_recording, replay

REFERENCE = "def f(x):\n    return x + 1\n"
PROBLEM = Problem(
    "p", "f(x): x + 1", "f", REFERENCE, golden_tests=tuple(TestCase(f"f({x})", f"{x + 1}") for x in (0, 9))
)
CODES = (REFERENCE, "def f(x):\n    return x + 1 if x < 3 else 0\n", "def f(x):\n    return x\n")
SUITES = (
    "assert f(1) == 2\nassert f(5) == 6\nassert f(2) == 3\nassert f(4) == 4\nassert f(6) == 7",
    "assert f(1) == 1\nassert f(1) == 2\nassert f(g()) == 2\nassert f(8) == 9",
)
MATCH = Match(PROBLEM, CODES, (SUITES,) * 3)


def of_size(size: int | None, problem_id: str = "p") -> Problem:
    return dataclasses.replace(PROBLEM, problem_id=problem_id, suite_size=size)


def asking(problem: Problem) -> Match:
    return dataclasses.replace(MATCH, problem=problem)


def play(sandbox: LocalSandbox, *problems: Problem, config: RewardConfig) -> list[MatchScore]:
    return Arena(sandbox, config).play([asking(problem) for problem in problems], update_book=False)


REWARDS = [
    *({"tester_reward": name} for name in ("code-a1", "utrl", "cure", "skill", "own_size:ByItsOwn")),
    *({"fidelity": fidelity} for fidelity in ("wide", "paper")),
    *({"oracle": oracle} for oracle in ("golden", "majority", "dual")),
    {"coder_tests": "union"},
]
OWN = """
import dataclasses
from codea1_env import TesterReward
class ByItsOwn(TesterReward):
    def suite(self, duel, terms, group):
        return dataclasses.replace(terms, reward=1 / self.config.suite_size)
"""


@pytest.mark.parametrize("choices", REWARDS, ids=str)
def test_a_problem_with_its_own_k_is_scored_as_in_a_run_with_that_k(
    sandbox: LocalSandbox, choices: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_size.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    three = (of_size(2, "a"), of_size(None, "b"), of_size(7, "c"))
    mixed = play(sandbox, *three, config=RewardConfig(suite_size=4, **choices))
    alone = [
        play(sandbox, of_size(None, name), config=RewardConfig(suite_size=size, **choices))[0]
        for name, size in (("a", 2), ("b", 4), ("c", 7))
    ]
    assert mixed == alone
    sizes = [{suite.terms.suite_size for row in score.suites for suite in row if suite.terms} for score in mixed]
    assert sizes == [{2}, {4}, {7}]
    assert alone[0].suites != dataclasses.replace(alone[1], problem_id="a").suites


def test_by_hand(sandbox: LocalSandbox) -> None:
    suites = play(sandbox, of_size(2), config=RewardConfig())[0].suites
    first, second = (row[0] for row in suites[:2])
    assert [str(test.status) for test in first.duel.tests] == ["kept", "kept", *["surplus"] * 3]
    assert (first.reward, second.reward) == (0.5, 0.5 + 0.5 / 2)  # the second program fails one of two


def test_who_writes_suites_is_asked_for_the_problems_own(sandbox: LocalSandbox) -> None:
    own, usual = TesterRequest(of_size(3), CODES[2]), TesterRequest(of_size(None), CODES[2])
    assert "3 tests" in chat_messages(own)[-1]["content"]
    assert "8 tests" in chat_messages(usual)[-1]["content"]
    assert chat_messages(TesterRequest(of_size(1), CODES[2])) == chat_messages(usual, suite_size=1)
    testers: list[Player] = [RandomTester(5), FuzzTester(5), SearchTester(sandbox, 5)]
    for tester in testers:
        for request, size in ((own, 3), (usual, 5)):
            assert tester.respond([request])[0][0].text.count("assert ") == size
    writer = io.StringIO()
    HumanPlayer(reader=io.StringIO(".\n.\n"), writer=writer, suite_size=5).respond([own, usual])
    assert ["Write up to 3 lines" in writer.getvalue(), "Write up to 5 lines" in writer.getvalue()] == [True, True]


def test_a_recorded_match_is_worth_the_same_again_and_shows_each_tests_own_pay(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    with Recorder(path, scores=True) as recorder, Arena(LocalSandbox(), RewardConfig(suite_size=4)) as arena:
        matches = [asking(of_size(size)) for size in (2, None)]
        recorder.write(matches, arena.play(matches), arena.config)
    recorded = list(read_recording(path.read_bytes().splitlines()))
    assert [each.match.problem.suite_size for each in recorded] == [2, None]
    with LocalSandbox() as sandbox:
        assert all(each.is_same for each in replay(recorded, sandbox))
    for each, size in zip(recorded, (2, 4), strict=True):
        assert each.score is not None
        suite = each.score["suites"][1][0]  # its tests are kept as far as they count
        assert sum(test["pay"] for test in suite["tests"][:size]) / size == pytest.approx(suite["reward"])


def test_the_command_scores_each_line_by_its_own(tmp_path: Path) -> None:
    line = {"problem_id": "p", "question": "?", "entry_point": "f", "reference_solution": REFERENCE, "codes": CODES,
            "suites": [SUITES] * 3}  # fmt: skip
    given, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"

    def scored(sizes: list[int | None], *options: str) -> list[Any]:
        given.write_text("".join(json.dumps(line | ({"suite_size": size} if size else {})) + "\n" for size in sizes))
        assert main(["score", str(given), "-o", str(out), "--details", *options]) == 0
        return [json.loads(row) for row in out.read_text().splitlines()]

    usual, own = scored([None, 2], "--suite-size", "5")
    assert own["suites"] == scored([None], "--suite-size", "2")[0]["suites"] != usual["suites"]
    given.write_text("".join(json.dumps(line | {"suite_size": size}) + "\n" for size in (0, 2)))
    assert main(["score", str(given), "-o", str(out)]) == 1
    assert "suite_size must be null, for the run's, or a whole" in json.loads(out.read_text().splitlines()[0])["error"]


def test_files_keep_it_and_problems_without_it_are_as_they_were(tmp_path: Path) -> None:
    assert "suite_size" not in PROBLEM.to_json()
    assert Problem("p", "q", "f").content_hash == "ce45834027abc2b7e2f6fad6c05fff626ad387d7f0d214f52639662a9faa216d"
    path, out = tmp_path / "own.jsonl", tmp_path / "out.jsonl"
    write_problems(path, [of_size(3), of_size(None, "other")])
    assert read_problems(path) == [of_size(3), of_size(None, "other")]
    assert of_size(3).content_hash != PROBLEM.content_hash
    assert main(["data", "check", str(path)]) == 0
    row = {"question": "f(x): x + 1", "entry_point": "f", "solution": REFERENCE, "tests": ["assert f(1) == 2"], "k": 3}
    path.write_text(json.dumps(row) + "\n")
    fields = "question=question,reference_solution=solution,suite_size=k"
    assert main(["data", "import", "rows", str(path), "--fields", fields, "-o", str(out)]) == 0
    assert [problem.suite_size for problem in read_problems(out)] == [3]


@pytest.mark.parametrize("wrong", [0, -1, 1.0, True, "8", [], {}])
def test_what_is_no_number_of_asserts_is_refused(wrong: Any) -> None:
    with pytest.raises(ProblemFormatError, match=r"\Asuite_size must be null, .* or a whole number .*, got "):
        Problem.from_dict({"problem_id": "p", "question": "q", "entry_point": "f", "suite_size": wrong})


def test_the_k_of_an_evaluation_is_the_same_for_every_problem(tmp_path: Path, sandbox: LocalSandbox) -> None:
    """`codea1 eval` says mut@k of a set: its k is the measure's."""
    suites = {("p", REFERENCE): ["assert f(1) == 2\nassert f(2) == 3\nassert f(4) == 4"]}
    plan = EvaluationPlan("tester", samples=1, suite_size=2)

    def measured(problem: Problem, name: str) -> Any:
        player = RecordedPlayer({}, suites)
        header = journal_header(player, {"own": [problem]}, plan)
        with contextlib.closing(EvaluationJournal(tmp_path / name, header)) as journal:
            return evaluate(player, {"own": [problem]}, plan, sandbox, journal)["sets"]

    assert measured(of_size(3), "a") == measured(of_size(None), "b")


def test_training_asks_and_stops_and_measures_by_it() -> None:
    pytest.importorskip("torch")
    from codea1_env.configuration.presets import SMOKE
    from codea1_env.training.models.chat import Prompter, chat_of
    from codea1_env.training.round.rules import RoundRules
    from codea1_env.training.run.held_out import evaluate_tester
    from codea1_env.training.samples import RowLabel

    preset = dataclasses.replace(SMOKE, reward=RewardConfig(suite_size=4))
    chat = dataclasses.replace(chat_of(preset), is_instruct=True, stop_at_tests=4)
    assert "2 tests" in chat.tester(of_size(2), REFERENCE)[-1]["content"]
    assert "4 tests" in chat.tester(of_size(None), REFERENCE)[-1]["content"]

    class Tokens:
        """Of any text, one."""

        eos_token_id = 0

        def apply_chat_template(self, messages: Any, **_: Any) -> str:
            return "asked"

        def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
            return {"input_ids": [1]}

    asked = [(of_size(2), REFERENCE), (of_size(None), REFERENCE)]
    assert [prompt.tests for prompt in Prompter(chat, Tokens()).tester(asked)] == [2, 4]
    going_on = dataclasses.replace(chat, stop_at_tests=0)
    assert [prompt.tests for prompt in Prompter(going_on, Tokens()).tester(asked)] == [0, 0]

    with Arena(LocalSandbox(), RewardConfig(suite_size=4)) as arena:
        tested = [dataclasses.replace(of_size(size, str(size)), mutants=(CODES[2],)) for size in (2, None)]
        result = evaluate_tester(arena, tested, lambda requests, n: [[SUITES[0]]] * len(requests), 1, 1)
        assert (result.valid, result.all_valid) == ((1.0, 0.75), (1.0, 0.0))
        (score,) = arena.play([asking(of_size(2))])
    label, suite = RowLabel("t", "p", "tester"), score.suites[1][0]
    label = RoundRules(credit="test").with_tests(label, suite, SUITES[0], arena.config)
    assert sum(label.test_rewards[:2]) / 2 == suite.reward == 0.75
    assert label.test_rewards[2:] == (0.0, 0.0, 0.0)
