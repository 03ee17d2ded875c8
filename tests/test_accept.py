"""Which programs may run: a stage of one's own, from outside the package, by the program's text alone."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import codea1_env
from codea1_env import Arena, ConfigurationError, LocalSandbox, Match, MistakeBook, Problem, RewardConfig, TestCase
from codea1_env.cli import main
from codea1_env.records.recording import Recorder, read_recording
from codea1_env.sandbox.protocol import Job, JobResult
from codea1_env.training.round.metrics import round_metrics
from codea1_env.viewer.sources import read_games

EXAMPLES = Path(__file__).parents[1] / "examples"
PROBLEM = Problem(
    "sum", "0 + ... + n", "total", "def total(n):\n    return n * (n + 1) // 2\n",
    golden_tests=(TestCase("total(3)", "6"),),
)  # fmt: skip
LOOP = "def total(n):\n    return sum(range(n + 1))\n"
RECURSIVE = "def total(n):\n    return n and n + total(n - 1)\n"
BROKEN = "def total(n:\n"
CODES = (LOOP, RECURSIVE, BROKEN)
SUITE = "assert total(3) == 6\nassert total(4) == 10"
OWN = RewardConfig(suite_size=2, accept="own_accept:NoRecursion")


class Seen(LocalSandbox):
    """Keeps the texts of what ran."""

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        self.texts = [*getattr(self, "texts", []), *(repr(job) for job in jobs)]
        return super().run(jobs)


@pytest.fixture(autouse=True)
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(EXAMPLES / "own_accept.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "own_stage", raising=False)


def match(codes: Sequence[str] = CODES) -> Match:
    return Match(PROBLEM, tuple(codes), tuple((SUITE,) for _ in codes))


@pytest.mark.parametrize("oracle", ["reference", "majority"])
@pytest.mark.parametrize("change", [{}, {"coder_tests": "union"}, {"tester_reward": "utrl"}, {"fidelity": "paper"}])
def test_a_refused_program_never_runs_and_is_paid_as_one_that_does_not_execute(
    oracle: str, change: dict[str, str]
) -> None:
    book = MistakeBook()
    book.record("sum", [], [TestCase("total(5)", "15")])
    config = RewardConfig(suite_size=2, oracle=oracle, accept="own_accept:NoRecursion", **change)
    codes = (LOOP, RECURSIVE, LOOP.replace("sum", "1 * sum"))
    with Seen() as sandbox:
        (score,) = Arena(sandbox, config, book).play([match(codes)])
        assert any("range" in text for text in sandbox.texts)
        assert not any("total(n - 1)" in text for text in sandbox.texts)
    assert [code.refused for code in score.codes] == ["", "recursion", ""]
    assert [code.executes for code in score.codes] == [True, False, True]
    assert [code.reward for code in score.codes] == [1.0, 0.0, 1.0]
    assert score.suites[1][0].duel.infrastructure_error == ""
    assert {test.returned for test in score.suites[1][0].duel.tests} == {"<refused: recursion>"}
    # Nobody learns from it that a test is hard.
    assert book.frequencies("sum") == {}


def test_what_may_run_is_scored_as_without_the_stage() -> None:
    scores = []
    for config in (RewardConfig(suite_size=2), OWN):
        with Arena(LocalSandbox(), config) as arena:
            scores += arena.play([match((LOOP, LOOP))])
    assert scores[0] == scores[1]


def test_the_rule_is_in_the_recording_the_replay_the_viewer_and_the_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    with Recorder("games.jsonl") as recorder, Arena(LocalSandbox(), OWN, on_score=recorder.write) as arena:
        scores = arena.play([match()])
    (recorded,) = read_recording(Path("games.jsonl").read_bytes().splitlines())
    assert recorded.config == OWN
    assert recorded.score is not None
    assert [code.get("refused") for code in recorded.score["codes"]] == [None, "recursion", "cannot be read"]
    (game,) = read_games(Path("games.jsonl"), 100).games
    assert [program["refused"] for program in game["programs"]] == ["", "recursion", "cannot be read"]
    metrics = round_metrics(scores, 0, [])
    shares = {name: share for name, share in metrics.items() if name.startswith("refused")}
    assert shares == {"refused": 2 / 3, "refused_cannot_be_read": 1 / 3, "refused_recursion": 1 / 3}
    assert round_metrics([], 0, [])["refused"] != 0  # nothing can be said
    assert main(["replay", "games.jsonl", "--accept", "own_accept:NoRecursion"]) == 0
    assert "0 with other rewards" in capsys.readouterr().err


def test_the_command_takes_the_stage_and_its_arguments_and_says_the_rule() -> None:
    line = {"problem_id": "sum", "question": "?", "entry_point": "total", "codes": CODES,
            "reference_solution": PROBLEM.reference_solution, "suites": [[SUITE]] * 3}  # fmt: skip
    Path("in.jsonl").write_text(json.dumps(line) + "\n")
    arguments = ["score", "in.jsonl", "-o", "out.jsonl", "--accept", "own_accept:NoRecursion"]
    assert main(arguments) == 0
    codes = json.loads(Path("out.jsonl").read_text())["codes"]
    assert codes == [
        {"executes": True, "reward": 1.0},
        {"executes": False, "reward": 0.0, "refused": "recursion"},
        {"executes": False, "reward": 0.0, "refused": "cannot be read"},
    ]
    assert main([*arguments, "--accept-args", '{"allowed": ["total"]}', "--details"]) == 0
    record = json.loads(Path("out.jsonl").read_text())
    assert [code["executes"] for code in record["codes"]] == [True, True, False]
    assert record["config"]["accept_args"] == {"allowed": ["total"]}


def test_an_environment_says_by_which_rule() -> None:
    game = codea1_env.parallel_env([PROBLEM], rewards=OWN, rounds=2)
    game.reset(seed=0)
    game.step({"coder_0": RECURSIVE, "tester_0": ""})
    seen, rewards, _, _, infos = game.step({"coder_0": "", "tester_0": SUITE})
    game.close()
    assert rewards["coder_0"] == 0.0
    assert infos["coder_0"]["score"]["codes"][0]["refused"] == "recursion"
    assert seen["coder_0"]["feedback"].startswith("# may not run: recursion\n")


def test_measuring_runs_what_was_refused() -> None:
    with Arena(LocalSandbox(), OWN) as arena:
        (grade,) = arena.grade(PROBLEM, [RECURSIVE], PROBLEM.golden_tests)
        (score,) = arena.play([Match(PROBLEM, (RECURSIVE,), ((SUITE,),), by_reference=True)])
    assert grade.all_passed
    assert (score.codes[0].refused, score.codes[0].reward) == ("", 1.0)


@pytest.mark.parametrize("answer", ["True", "False", "''", "' '", "1", "'x' * 201", "['recursion']", "b'no'"])
def test_what_is_no_rule_is_an_error_and_no_score(answer: str) -> None:
    Path("own_stage.py").write_text(
        f"from codea1_env import Accept\nclass Stage(Accept):\n    def refuses(self, program, tree): return {answer}\n"
    )
    with Arena(LocalSandbox(), RewardConfig(accept="own_stage:Stage")) as arena:
        must = (
            r"what accept 'own_stage:Stage' says of a program must be None or the rule in at most 200 characters, got "
        )
        with pytest.raises(ConfigurationError, match=must):
            arena.play([match()])


def test_what_is_no_stage_is_refused_before_anything_runs() -> None:
    for wrong in ("recursion", 1, ["own_accept:NoRecursion"]):
        with pytest.raises(ConfigurationError, match="accept must be None or 'module:Class' of one of your own"):
            RewardConfig(accept=wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="accept_args must come with accept"):
        RewardConfig(accept_args={"allowed": []})
    with pytest.raises(ConfigurationError, match="accept_args must be what NoRecursion takes"):
        codea1_env.parallel_env([PROBLEM], rewards=RewardConfig(accept="own_accept:NoRecursion", accept_args={"no": 1}))
    with pytest.raises(ConfigurationError, match="accept must name a subclass of Accept"):
        Arena(LocalSandbox(), RewardConfig(accept="json:JSONDecoder"))
