"""The page without a browser: what is read, what is refused, what a file must not be able to put onto it."""

import base64
import gzip
import hashlib
import html
import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

import codea1_env
from codea1_env import Arena, LocalSandbox, Match, MistakeBook, Problem, RewardConfig, TestCase
from codea1_env.cli import main
from codea1_env.errors import ConfigurationError, FormatError
from codea1_env.judging.returned import cut
from codea1_env.mistake_book.policies import Shelf
from codea1_env.records.recording import Recorder, read_recording, replay
from codea1_env.viewer import Found, make_page, read_games, sources
from codea1_env.viewer.games import MOST_SOURCE
from codea1_env.viewer.page import SCRIPTS, STYLES
from codea1_env.viewer.sources import RunBook, book_on_page

PACKAGE = Path(__file__).parents[1] / "codea1_env" / "viewer"
TWICE = Problem("twice", "f(x): twice x", "f", "def f(x):\n    return x * 2")
RIGHT, WRONG = "def f(x):\n    return x + x", "def f(x):\n    return [1, x] if x == 3 else 1 // (x - 4) * 0 + x * 2"
SUITE = (
    "assert f(1) == 2\nassert f(3) == 6\nassert f(4) == 9\nassert f(4) == 8\nassert f('a', 'b') == 1\nassert f(2) > 1"
)
EVIL = "</template></script><img src=x onerror=alert(1)><!--\x00\x1b[2J\u202e\ud800"


def play(sandbox: LocalSandbox, recorder: Recorder, matches: list[Match], config: RewardConfig | None = None) -> None:
    Arena(sandbox, config, on_score=recorder.write).play(matches)


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory, sandbox: LocalSandbox) -> Path:
    path = tmp_path_factory.mktemp("games") / "games.jsonl"
    with Recorder(path) as recorder:
        play(sandbox, recorder, [Match(TWICE, (RIGHT, WRONG), ((SUITE,), (SUITE,)))])
    return path


def content(page: bytes) -> Any:
    (packed,) = re.findall(rb'<template id="packed">([A-Za-z0-9+/=]*)</template>', page)
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def asserts_of(game: Any, program: int, suite: int = 0) -> list[Any]:
    return list(game["programs"][program]["suites"][suite]["tests"])


def test_a_replay_is_known_of_a_program_without_suites_too(tmp_path: Path, sandbox: LocalSandbox) -> None:
    book = MistakeBook()
    book.record("twice", (), [TestCase("f(3)", "6")])
    with Recorder(tmp_path / "games.jsonl") as recorder:
        arena = Arena(sandbox, RewardConfig(coder_tests="union"), book, on_score=recorder.write)
        arena.play([Match(TWICE, (WRONG, RIGHT), ((SUITE,), ()))])
    found = read_games(tmp_path / "games.jsonl", 100)
    assert [program["replays"] for program in found.games[0]["programs"]] == [[], ["pass"]]
    assert found.book is not None
    assert found.book["questions"] == [["twice", [["f(3)", "6", None, {"fail": 1, "pass": 1}, [[1, 0]]]]]]


def test_a_game_shows_what_each_test_came_to_and_what_the_program_returned(games: Path) -> None:
    (game,) = read_games(games, 100).games
    assert [game["id"], game["question"], game["reference"]] == ["twice", TWICE.question, TWICE.reference_solution]
    assert [test[1] for test in asserts_of(game, 0)] == [
        "kept", "kept", "wrong_expected", "duplicate", "raises", "rejected",
    ]  # fmt: skip
    assert [test[6] for test in asserts_of(game, 0)] == ["pass", "pass", "pass", None, None, None]
    _, fails, raises, *_ = asserts_of(game, 1)
    assert fails[3:8] == ["f(3)", "6", "6", "fail", "[1, 3]"]
    assert raises[3:8] == ["f(4)", "9", "8", "error", "ZeroDivisionError"]
    assert asserts_of(game, 0)[0][7] == ""  # what passes has returned the reference's value


def test_the_pay_of_the_tests_makes_up_the_reward(games: Path, sandbox: LocalSandbox, tmp_path: Path) -> None:
    for method in ("code-a1", "utrl", "cure", "skill"):
        path = tmp_path / f"{method}.jsonl"
        problem = Problem("twice", "", "f", TWICE.reference_solution, golden_tests=())
        if method == "cure":
            problem = Problem.from_dict({**json.loads(problem.to_json()), "golden_tests": [["f(3)", "6"]]})
        with Recorder(path) as recorder:
            config = RewardConfig(suite_size=6, tester_reward=method)  # as many asserts as the suite has
            play(sandbox, recorder, [Match(problem, (RIGHT, WRONG), ((SUITE,), (SUITE,)))], config)
        (game,) = read_games(path, 100).games
        for program in (0, 1):
            suite = game["programs"][program]["suites"][0]
            assert sum(test[8] for test in suite["tests"]) / 6 == pytest.approx(suite["reward"]), method


def test_where_all_programs_met_a_suite_each_has_its_verdict(tmp_path: Path, sandbox: LocalSandbox) -> None:
    match = Match(TWICE, (RIGHT, WRONG, "def g(): 0"), ((), (SUITE,), ()))
    for coder_tests, expected in (("union", ["pass", "fail", "error"]), ("own", None)):
        with Recorder(tmp_path / f"{coder_tests}.jsonl") as recorder:
            play(sandbox, recorder, [match], RewardConfig(coder_tests=coder_tests))
        (game,) = read_games(tmp_path / f"{coder_tests}.jsonl", 100).games
        tests = asserts_of(game, 1)
        assert tests[1][6] == "fail"
        assert tests[1][9] == expected
        assert tests[4][9] == (expected and [None] * 3)  # it does not count, so that it was not run


def test_a_recording_without_scores_shows_its_texts_and_says_that_verdicts_are_missing(
    tmp_path: Path, sandbox: LocalSandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lean.jsonl"
    with Recorder(path, scores=False) as recorder:
        play(sandbox, recorder, [Match(TWICE, (RIGHT, WRONG), ((SUITE,), (SUITE,)))])
    found = read_games(path, 100)
    assert found.unjudged == 1
    assert [test[1:7:5] for test in asserts_of(found.games[0], 0)] == [["unknown", None]] * 6
    assert main(["view", str(path), "-o", str(tmp_path / "page.html")]) == 0
    assert f"games without verdicts in {path}: 1; --execute" in capsys.readouterr().err
    assert main(["view", str(path), "-o", str(tmp_path / "page.html"), "--execute"]) == 0
    (game,) = content((tmp_path / "page.html").read_bytes())["games"]
    assert asserts_of(game, 1)[1][6:8] == ["fail", "[1, 3]"]


def test_scores_in_a_recording_do_not_change_its_replay(games: Path, sandbox: LocalSandbox) -> None:
    (replayed,) = replay(read_recording(games.read_bytes().splitlines()), sandbox)
    assert replayed.is_same
    assert replayed.recorded.score is not None


def test_what_codea1_score_writes_with_details_is_shown_whole(tmp_path: Path) -> None:
    line = {
        "problem_id": "twice", "question": TWICE.question, "entry_point": "f",
        "reference_solution": TWICE.reference_solution, "codes": [f"```python\n{WRONG}\n```", f"x {EVIL} x"],
        "suites": [[SUITE], []],
    }  # fmt: skip
    (tmp_path / "in.jsonl").write_text(json.dumps(line) + "\nnonsense\n")
    target = tmp_path / "out.jsonl"
    assert main(["score", str(tmp_path / "in.jsonl"), "-o", str(target), "--details"]) == 1
    found = read_games(target, 100)
    assert found.failed == 1
    (game,) = found.games
    assert game["programs"][0]["source"].strip() == WRONG
    assert game["programs"][1]["source"] == f"x {EVIL} x"  # at its edges tags of an answer would be left out
    assert asserts_of(game, 0)[1][6:8] == ["fail", "[1, 3]"]
    assert game["config"]["tester_reward"] == "code-a1"


def test_details_add_fields_and_change_none(tmp_path: Path) -> None:
    line = {
        "problem_id": "twice", "question": "", "entry_point": "f",
        "reference_solution": TWICE.reference_solution, "codes": [WRONG], "suites": [[SUITE]],
    }  # fmt: skip
    (tmp_path / "in.jsonl").write_text(json.dumps(line) + "\n")
    outputs = []
    for more in ([], ["--details"]):
        assert main(["score", str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "out.jsonl"), *more]) == 0
        outputs.append(json.loads((tmp_path / "out.jsonl").read_text()))
    plain, detailed = outputs
    assert {name: detailed[name] for name in plain if name not in ("codes", "suites")} == {
        name: plain[name] for name in plain if name not in ("codes", "suites")
    }
    for name in plain["suites"][0][0]:
        if name != "tests":
            assert detailed["suites"][0][0][name] == plain["suites"][0][0][name]
    for before, after in zip(plain["suites"][0][0]["tests"], detailed["suites"][0][0]["tests"], strict=True):
        assert {name: after[name] for name in before} == before


def test_a_score_without_details_is_shown_with_what_it_has(tmp_path: Path) -> None:
    score = {"schema": 1, "problem_id": "p", "codes": [{"executes": True, "reward": 1.0}], "suites": [[]]}
    (tmp_path / "out.jsonl").write_text(json.dumps(score) + "\n")
    (game,) = read_games(tmp_path / "out.jsonl", 100).games
    assert game["programs"][0]["source"] is None


def test_a_run_is_read_round_by_round_in_their_order(tmp_path: Path, games: Path) -> None:
    folder = tmp_path / "run" / "duels"
    folder.mkdir(parents=True)
    for number in (10, 9, 100):
        (folder / f"round-{number}.jsonl").write_bytes(games.read_bytes())
    (folder / "round-x.jsonl").write_text("not ours")
    assert [game["from"] for game in read_games(tmp_path / "run", 100).games] == ["round 9", "round 10", "round 100"]


def test_games_of_one_file_have_no_number_beside_that_of_their_address(tmp_path: Path, games: Path) -> None:
    """The line of a file, with its header and blank lines, is another number."""
    score = {"schema": 1, "problem_id": "p", "codes": [{"executes": True, "reward": 1.0}], "suites": [[]]}
    (tmp_path / "out.jsonl").write_text("\n" * 8 + json.dumps(score) + "\n")
    for file in (games, tmp_path / "out.jsonl"):
        assert {game["from"] for game in read_games(file, 100).games} == {""}


@pytest.mark.parametrize(
    ("make", "status", "message"),
    [
        (lambda path: None, 2, "must be a file or a run's directory"),
        (lambda path: path.mkdir(), 2, "--keep-duels"),
        (lambda path: path.write_text("[]\n"), 1, "line 1 must be a JSON object"),
        (lambda path: path.write_text("{}\n"), 1, "line 1: a score must be as `codea1 score` writes it"),
        (lambda path: path.write_text('{"problem_id": 7, "codes": [], "suites": []}\n'), 1, "problem_id must be"),
        (lambda path: path.write_text('{"codea1_recording": 9}\n'), 1, "schema 1"),
        (lambda path: path.write_bytes(b'{"codea1_recording": 1}\n{"match": {"proble'), 2, "at least one duel"),
    ],
)
def test_what_is_no_input_is_refused_with_its_place(
    make: Any, status: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "input")
    assert main(["view", str(tmp_path / "input"), "-o", str(tmp_path / "page.html")]) == status
    assert message in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()


def spoil(score: Any, name: str, value: Any) -> Any:
    *path, last = name.split(".")
    place = score
    for step in path:
        place = place[int(step) if step.isdigit() else step]
    place[last] = value
    return score


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("codes.0.reward", float("nan")),
        ("codes.0.reward", "<b>"),
        ("codes.0.executes", "yes"),
        ("suites.0.0.terms", {}),
        ("suites.0.0.terms.validity", float("inf")),
        ("suites.0.0.terms.alpha", None),
        ("suites.0.0.terms.suite_size", 0),
        ("suites.0.0.reward", None),
        ("suites.0.0.tests.0.status", "__proto__"),
        ("suites.0.0.tests.0.verdict", "constructor"),
        ("suites.0.0.tests.0.source", ["x"]),
        ("suites.0.0.replays", [{"call": 1, "expected": "2", "verdict": "pass"}]),
        ("suites.0.0.tests.0.verdicts", ["pass"]),
        ("suites.0.0.tests.0.verdicts", ["pass", "constructor"]),
        ("suites.0.0.tests.0.verdicts", {"pass": 1, "fail": 2}),
        ("suites.0.0.tests.0.verdicts", None),
        ("config", {"alpha": 7}),
        ("question", 7),
        ("suites.0.0.reward", 10**400),
        ("suites.0.0.terms.suite_size", 1e308),
        ("suites.0.0.terms.v", 10**400),
    ],
)
def test_a_score_with_a_wrong_field_is_refused(name: str, value: Any, games: Path, tmp_path: Path) -> None:
    score = json.loads(games.read_bytes().splitlines()[2])["match"]["score"]
    (tmp_path / "out.jsonl").write_text(json.dumps(score) + "\n" + json.dumps(spoil(score, name, value)) + "\n")
    with pytest.raises(FormatError, match="line 2: "):
        read_games(tmp_path / "out.jsonl", 100)


def test_a_file_that_was_not_scored_yet_is_told_so(tmp_path: Path) -> None:
    line = {"problem_id": "p", "question": "?", "entry_point": "f", "reference_solution": "", "codes": ["x"]}
    (tmp_path / "recorded.jsonl").write_text(json.dumps(line | {"suites": [[""]]}) + "\n")
    with pytest.raises(FormatError, match=r"recorded.jsonl: line 1 must be of codea1 score, .* score --details first"):
        read_games(tmp_path / "recorded.jsonl", 100)


def test_the_page_is_replaced_whole_and_never_the_input(games: Path, tmp_path: Path) -> None:
    source = tmp_path / "games.html"
    source.write_bytes(games.read_bytes())
    assert main(["view", str(source), "-o", str(source)]) == 2
    assert source.read_bytes() == games.read_bytes()
    assert main(["view", str(source), "-o", str(tmp_path / "no" / "page.html")]) == 2
    assert main(["view", str(source), "-o", str(tmp_path)]) == 2
    assert main(["view", str(source), "-o", str(tmp_path / "page.html"), "--sandbox", "docker"]) == 2


def test_the_command_prints_an_address_to_click_and_opens_it_when_asked(
    games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: not opened.append(address))
    page = tmp_path / "a page.html"
    assert main(["view", str(games), "-o", str(page)]) == 0
    assert capsys.readouterr().out == f"file://{str(page).replace(' ', '%20')}\n"
    assert opened == []
    assert main(["view", str(games), "-o", str(page), "--open"]) == 0
    assert opened == [capsys.readouterr().out.strip()]
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    assert main(["view", str(games), "-o", str(page), "--open"]) == 0
    assert "no browser could be started here" in capsys.readouterr().err


def test_the_command_writes_no_page_to_standard_output(
    games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["view", str(games), "-o", "-"]) == 2
    assert "--output must be a file, got -" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_notebook_shows_the_page_in_a_frame_that_cannot_reach_it(games: Path, tmp_path: Path) -> None:
    page = codea1_env.view(games)
    assert content(page.save(tmp_path / "page.html").read_bytes()) == content(page.content)
    frame = page._repr_html_()
    (inside,) = re.findall(r'<iframe srcdoc="([^"]*)" sandbox="allow-scripts"', frame)
    assert html.unescape(inside) == page.content.decode()
    assert repr(page) == "Page(2 duels, 0.1 MB)"
    for wrong, message in ((5, "path must be the path"), (tmp_path / "none", "must be a file or a run's directory")):
        with pytest.raises(ConfigurationError, match=message):
            codea1_env.view(wrong)
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(ConfigurationError, match=r"must hold at least one duel, got none in empty\.jsonl"):
        codea1_env.view(tmp_path / "empty.jsonl")
    with pytest.raises(ConfigurationError, match="limit must be at least 1, got 0"):
        codea1_env.view(games, limit=0)


def test_of_too_many_duels_games_are_left_out_evenly() -> None:
    found = Found()
    for _ in range(100):
        found.add({"programs": [{"suites": [1, 2]}]}, most=50)
    assert found.seen == 200
    assert found.duels <= 50
    numbers = [game["number"] for game in found.games]
    assert numbers[0] == 1  # as in the file, for links
    assert len({after - before for before, after in itertools.pairwise(numbers)}) == 1
    assert numbers[-1] >= 90


def test_one_game_larger_than_the_limit_is_shown() -> None:
    found = Found()
    found.add({"programs": [{"suites": [1, 2, 3]}]}, most=1)
    assert found.duels == 3


def test_texts_are_cut_and_say_so() -> None:
    text = "x" * (MOST_SOURCE + 5)
    assert cut(text, MOST_SOURCE) == "x" * MOST_SOURCE + " … [5 more characters]"
    assert cut(None, 3) is None


def test_no_text_of_a_game_stands_in_the_page_as_it_is() -> None:
    page = make_page(EVIL.replace("\ud800", ""), [{"id": EVIL, "programs": [], "replays": []}])
    assert b"onerror=alert" not in page.replace(b"&lt;img src=x onerror=alert(1)&gt;", b"")
    assert content(page)["games"][0]["id"] == EVIL
    assert page.count(b"</template>") == 1


def test_the_policy_knows_every_script_and_style_sheet_by_its_hash_and_nothing_else() -> None:
    page = make_page("page", []).decode()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split("; ")}
    for tag, rule, count in (("script", "script-src", len(SCRIPTS)), ("style", "style-src", len(STYLES))):
        texts = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
        assert rules[rule] == [f"'sha256-{each}'" for each in hashes]
        assert len(texts) == count
    assert rules["default-src"] == rules["connect-src"] == rules["base-uri"] == rules["form-action"] == ["'none'"]
    assert "unsafe" not in policy
    assert not re.search(r"https?://|\bon\w+=|style=", page)


def test_every_source_of_the_page_is_in_it_and_makes_no_markup() -> None:
    assert {path.stem for path in PACKAGE.glob("*.js")} == set(SCRIPTS)
    assert {path.stem for path in PACKAGE.glob("*.css")} == set(STYLES)
    for path in PACKAGE.glob("*.js"):
        forbidden = (
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|DOMParser|fetch\(|import\("
        )
        assert not re.search(forbidden, path.read_text()), path


def test_equal_games_give_equal_pages(games: Path) -> None:
    pages = {make_page("page", read_games(games, 100).games) for _ in range(2)}
    assert len(pages) == 1


REAL = Path(__file__).parents[1] / "examples" / "adapters" / "duels.jsonl"


def test_the_duels_of_real_models_among_the_examples_make_a_page_and_are_worth_the_same_again(
    sandbox: LocalSandbox, tmp_path: Path
) -> None:
    assert REAL.stat().st_size <= 300_000
    assert main(["view", str(REAL), "-o", str(tmp_path / "duels.html")]) == 0
    shown = content((tmp_path / "duels.html").read_bytes())["games"]
    recorded = list(read_recording(REAL.read_bytes().splitlines()))
    assert len(shown) == len(recorded) >= 8
    assert {game["id"].partition("/")[0] for game in shown} == {"bundled"}, "nobody else's questions"
    again = list(replay(recorded[:2], sandbox))
    assert all(each.is_same for each in again)
    assert any(asserts_of(game, program) for game in shown for program in range(len(game["programs"])))


FAILS = TestCase("f(3)", "6")


def saved(path: Path, *tests: tuple[TestCase, int], question: str = "twice") -> MistakeBook:
    book = MistakeBook()
    for case, failures in tests:
        book.record(question, (), [case] * failures)
    path.parent.mkdir(parents=True, exist_ok=True)
    book.save(path)
    return book


def run_with(book: MistakeBook | None, directory: Path, sandbox: LocalSandbox, **how: Any) -> Path:
    """A run that kept one round's game, with `book` replayed to two programs."""
    (directory / "duels").mkdir(parents=True)
    with Recorder(directory / "duels" / "round-1.jsonl", **how) as recorder:
        Arena(sandbox, None, book, on_score=recorder.write).play([Match(TWICE, (RIGHT, WRONG), ((SUITE,), (SUITE,)))])
    return directory


def test_the_book_of_a_run_says_how_often_each_test_failed_and_how_it_fared_where_it_was_replayed(
    tmp_path: Path, sandbox: LocalSandbox
) -> None:
    other = TestCase("f(0)", "0")
    book = saved(tmp_path / "book.jsonl", (FAILS, 5), (other, 2))
    run = run_with(book.copy(), tmp_path / "run", sandbox)
    never = TestCase("f(9)", "18")
    saved(run / "book.jsonl", (never, 1), (FAILS, 7))
    assert read_games(run, 100).book == {
        "source": "book.jsonl", "note": "",
        "questions": [["twice", [
            ["f(3)", "6", 7, {"pass": 1, "fail": 1}, [[1, 0]]],
            ["f(0)", "0", None, {"pass": 2}, [[1, 1]]],  # it has left the book since
            ["f(9)", "18", 1, {}, []],
        ]]],
    }  # fmt: skip
    page = codea1_env.view(run)
    assert content(page.content)["book"] == read_games(run, 100).book


def test_the_latest_checkpoint_that_is_complete_has_the_book_of_a_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    saved(run / "book.jsonl", (FAILS, 1))
    for step, failures in ((9, 2), (10, 3), (11, 4)):
        saved(run / "coder" / f"checkpoint-{step}" / "book.jsonl", (FAILS, failures))
        (run / "tester" / f"checkpoint-{step}").mkdir(parents=True)
        if step < 11:
            for seat in ("coder", "tester"):
                (run / seat / f"checkpoint-{step}" / "complete.json").write_text("{}")
    found = read_games(run, 100).book
    assert found is not None
    assert found["source"] == "coder/checkpoint-10/book.jsonl"
    assert found["questions"] == [["twice", [["f(3)", "6", 3, {}, []]]]]
    assert main(["view", str(run), "-o", str(tmp_path / "page.html")]) == 0, "also without a duel"


def test_a_recording_has_of_the_book_what_it_replayed(tmp_path: Path, sandbox: LocalSandbox) -> None:
    book = saved(tmp_path / "book.jsonl", (FAILS, 5))
    run = run_with(book.copy(), tmp_path / "run", sandbox)
    file = run / "duels" / "round-1.jsonl"
    fared = [["twice", [["f(3)", "6", None, {"pass": 1, "fail": 1}, [[1, 0]]]]]]
    assert read_games(file, 100).book == {"source": "", "note": "", "questions": fared}
    score = json.loads(file.read_bytes().splitlines()[2])["match"]["score"]
    (tmp_path / "scores.jsonl").write_text(json.dumps(score) + "\n")
    assert read_games(tmp_path / "scores.jsonl", 100).book == {"source": "", "note": "", "questions": fared}
    lean = run_with(book, tmp_path / "lean", sandbox, scores=False) / "duels" / "round-1.jsonl"
    assert read_games(lean, 100).book["questions"] == [["twice", [["f(3)", "6", None, {}, [[1, 0]]]]]]  # type: ignore[index]


def test_without_book_and_replays_there_is_nothing_of_a_book(games: Path) -> None:
    found = read_games(games, 100)
    assert found.book is None
    assert "book" not in content(make_page("page", found.games, book=found.book))


def test_of_a_large_book_the_page_has_what_was_replayed_and_failed_most_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sources, "MOST_TESTS", 50)
    shelves = {
        f"question {number}": Shelf({TestCase(f"f({place})", "1"): place + 1 for place in range(10)})
        for number in range(100)
    }
    replayed = {"id": "question 7", "number": 3, "replays": [["f(0)", "1"]], "programs": [{"suites": []}]}
    found = book_on_page(RunBook("book.jsonl", shelves), [replayed])
    assert found is not None
    assert found["note"].startswith("Shown are 50 of 1,000 tests, of 49 of 100 questions: those that the shown games")
    assert sum(len(tests) for _, tests in found["questions"]) == 50
    name, (first, *_) = found["questions"][0]
    assert (name, first) == ("question 7", ["f(0)", "1", 1, {}, [[3, 0]]])
    assert {test[2] for _, tests in found["questions"] for test in tests[name == "question 7" :]} <= {10}


def test_a_book_that_cannot_be_read_is_said_and_costs_no_duel(tmp_path: Path, sandbox: LocalSandbox) -> None:
    run = run_with(None, tmp_path / "run", sandbox)
    (run / "book.jsonl").write_text('{"schema": 1, "kind": "mistake_book"}\nnonsense\n')
    found = read_games(run, 100)
    assert found.duels == 2
    assert found.book is not None
    assert found.book["note"].startswith("The book cannot be read: line 2 must be JSON")


def test_hostile_texts_of_a_book_are_data_and_cut(tmp_path: Path) -> None:
    text = EVIL + "x" * 10_000
    saved(tmp_path / "run" / "book.jsonl", (TestCase(text, EVIL), 1), question=EVIL)
    page = codea1_env.view(tmp_path / "run").content
    assert page.count(b"</template>") == 1
    assert b"onerror=alert" not in page
    ((name, ((call, expected, *_),)),) = content(page)["book"]["questions"]
    assert (name, expected) == (EVIL, EVIL)
    assert call.startswith(EVIL)
    assert call.endswith("more characters]")
