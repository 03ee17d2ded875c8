"""The report: what is there is shown, what is missing is said, and nothing in a run's files can act on the page."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from report_pages import HOSTILE, ROUND, line, write_hostile_run, write_run

from codea1_env.arena.match import CodeScore, Match, MatchScore, SuiteScore
from codea1_env.cli import main
from codea1_env.configuration.presets import load_preset
from codea1_env.errors import ConfigurationError
from codea1_env.problems.problem import Problem
from codea1_env.records.recording import Recorder
from codea1_env.report.duels import ORDERS, kept_duels
from codea1_env.report.page import RunOnPage, differences_between, differences_from_paper, page, time_splits
from codea1_env.report.panels import CHAPTERS, Chart, Series, charts_of
from codea1_env.report.picture import _draw
from codea1_env.report.runs_read import RunRead, read_run, read_runs
from codea1_env.report.svg_chart import line_chart, shown, smoothed, thinned, ticks
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.yaml_files import read_yaml


def paged(runs: Sequence[RunRead], made: str = "now", viewer: str = "") -> str:
    return page([RunOnPage(run, kept_duels(run.directory), viewer) for run in runs], made)


class Tags(HTMLParser):
    """Every element of a page with its attributes, and all of its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


ALLOWED = set(
    """html head meta title style body header h1 h2 h3 p nav a main section article dl dt dd ul li div table caption
    thead tbody tr th td figure figcaption svg line text path circle rect details summary pre""".split()
)


def assert_harmless(text: str) -> Tags:
    """No script, no handler, no inline style, no address but here and beside it; the policy allows one style."""
    found = Tags(text)
    for tag, attributes in found.tags:
        assert tag in ALLOWED, tag
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in ("style", "src", "srcset", "action", "formaction", "xlink:href"), (tag, name)
            assert name != "href" or re.fullmatch(r"([\w%./-]+)?#[\w.]+", value or ""), value
    (policy,) = (a["content"] for tag, a in found.tags if a.get("http-equiv") == "Content-Security-Policy")
    (style,) = re.findall("<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return found


def test_a_finished_run_is_shown_from_outcome_to_configuration(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    found = assert_harmless(paged(read_runs([run])))
    headings = "The run Outcome Held-out problems Rewards Diagnostics Mistake Book Where the time goes"
    anchors = {a["id"] for tag, a in found.tags if tag == "section"}
    assert {a["href"] for tag, a in found.tags if tag == "a"} == {f"#{anchor}" for anchor in anchors}
    for sentence in (
        "finished",
        "3 of 3",
        "(+0.500 [+0.400, +0.700])".replace(" [", "\xa0[").replace(", ", ",\xa0"),
        "regression rate",
        "random models of a few thousand weights",
        "coder, 3 s a round",
        "arena, 0.5 s a round",
        "judging 0.3 s, other 0.2 s",
        "160 s",
    ):
        assert sentence in found.text, sentence
    assert all(word in found.text for word in headings.split())
    assert "Duels" not in found.text, "it kept none"


def test_every_curve_of_a_run_is_drawn_once_and_what_was_not_logged_is_left_out(tmp_path: Path) -> None:
    (run,) = read_runs([write_run(tmp_path / "run")])
    charts = [chart for panels in CHAPTERS.values() for panel in panels for chart in charts_of(panel, [run])]
    by_title = {chart.title: chart for chart in charts}
    assert by_title["coder"].series[0].points == ((0, 0.1), (3, 0.6))
    assert [line.label for line in by_title["both seats"].series] == ["coder, R_C", "tester, R_T, all suites"]
    assert "effective alpha" not in by_title
    assert by_title["growth"].series[0].points == ((1, 3.0), (2, 3.0), (3, 3.0))


def test_every_tester_has_the_testers_curves(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run")
    with (directory / "metrics.jsonl").open("a") as file:
        for seat, entropy in (("tester", 0.5), ("tester_1", 0.25)):
            file.write(line("seat", 1, {"entropy": entropy}, seat) + line("evaluation", 1, {"validity": entropy}, seat))
    runs = read_runs([directory])
    charts = [chart for panels in CHAPTERS.values() for panel in panels for chart in charts_of(panel, runs)]
    points = {chart.title: chart.series[0].points for chart in charts if chart.title.startswith("tester")}
    assert points == {
        "tester": ((1, 0.5),),
        "tester_1": ((1, 0.25),),
        "tester: entropy and truncation": ((1, 0.5),),
        "tester_1: entropy and truncation": ((1, 0.25),),
    }
    assert_harmless(paged(runs))


def test_several_runs_share_charts_and_their_configurations_are_told_apart(tmp_path: Path) -> None:
    one = write_run(tmp_path / "a" / "run", reward=0.25)
    other = write_run(tmp_path / "b" / "run", reward=0.75, seed=5)
    runs = read_runs([one, other])
    assert [run.name for run in runs] == [str(one), str(other)], "the last part alone would not tell them apart"
    assert read_runs([one])[0].name == "run"
    assert differences_between(runs) == [["seed", "4", "5"]]
    found = assert_harmless(paged(runs))
    assert "both seats: coder, R_C" in found.text
    assert "what differs between the runs" in found.text
    panel = next(panel for panels in CHAPTERS.values() for panel in panels if panel.title == "both seats")
    chart = next(charts_of(panel, runs))
    assert [line.points[-1] for line in chart.series] == [(3, 0.25), (3, 0.75)]


@pytest.mark.parametrize("lacks", range(3))
def test_a_run_has_one_style_on_the_whole_page_whatever_others_did_not_log(tmp_path: Path, lacks: int) -> None:
    pytest.importorskip("matplotlib")
    for number in range(3):
        run = write_run(tmp_path / f"run{number}")
        if number == lacks:
            kept = [line for line in (run / "metrics.jsonl").read_text().splitlines(True) if '"evaluation"' in line]
            (run / "metrics.jsonl").write_text("".join(kept))
    runs = read_runs([tmp_path / f"run{number}" for number in range(3)])
    charts = [chart for panels in CHAPTERS.values() for panel in panels for chart in charts_of(panel, runs)]
    assert {len(chart.series) for chart in charts} == {2, 3}
    page = paged(runs)
    for number, run in enumerate(runs):
        assert {line.style for chart in charts for line in chart.series if line.label == run.name} == {number}
        assert set(re.findall(rf'class="line c(\d) d\d"[^>]*/></svg>{run.name}<', page)) == {str(number)}
    from matplotlib.figure import Figure

    axis = Figure().subplots()
    short = next(chart for chart in charts if len(chart.series) == 2)
    _draw(axis, short)
    assert [line.get_color() for line in axis.get_lines()] == [f"C{line.style}" for line in short.series]


def test_hostile_text_in_any_file_stays_text(tmp_path: Path) -> None:
    directory = tmp_path / "<b>run&'\"\u202e\x1b"
    run = write_hostile_run(directory)
    for text in (paged(read_runs([run]), HOSTILE, "x.html"), paged(read_runs([run, run]), HOSTILE)):
        found = assert_harmless(text)
        assert found.text.count("<script>alert(1)</script>") >= 6, "it is all there, as text"
        assert "\x1b" not in text
        assert "\u202e" not in text, "nothing turns the writing around"


@pytest.mark.parametrize(
    ("names", "note"),
    [
        (("config.yaml",), "no round has been logged yet"),
        (("metrics.jsonl",), "config.yaml is missing"),
        (("config.yaml", "metrics.jsonl"), ""),
    ],
)
def test_what_is_there_of_a_run_is_shown_and_what_is_not_is_said(
    tmp_path: Path, names: tuple[str, ...], note: str
) -> None:
    whole = write_run(tmp_path / "whole")
    part = tmp_path / "part"
    part.mkdir()
    for name in names:
        (part / name).write_bytes((whole / name).read_bytes())
    (run,) = read_runs([part])
    assert note in " ".join(run.notes)
    assert run.status.startswith("not finished")
    assert_harmless(paged([run]))


def test_a_run_that_goes_on_behind_its_end_has_no_outcome_yet(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run")
    summary = json.loads((directory / "summary.json").read_text())
    (directory / "summary.json").write_text(json.dumps(summary | {"rounds": 3}))
    (ended,) = read_runs([directory])
    assert (ended.status, bool(ended.final), bool(ended.book)) == ("finished", True, True)
    with (directory / "metrics.jsonl").open("a") as file:
        file.write(line("round", 4, {"coder_reward": 0.5}))
    (resumed,) = read_runs([directory])
    assert (resumed.status[:12], resumed.final, resumed.book) == ("not finished", (), ())
    assert "goes on behind the 3 rounds" in paged([resumed])
    (directory / "failure.txt").write_text("no memory")
    assert read_runs([directory])[0].status == "failed"


def test_damaged_files_are_noted_and_the_rest_is_read(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run")
    bad = ["nonsense\n", "[1]\n", "[" * 100_000 + "\n", '{"kind": "round", "round": "1"}\n', line("other", 1, {})]
    odd = {"coder_reward": float("nan"), "book": 10**400, "executes": True, "validity": "x"}
    text = "".join(bad) + line("round", 9, odd) + line("round", 10, {"coder_reward": 1}) + '{"kind": "round", "rou'
    with (directory / "metrics.jsonl").open("a") as file:
        file.write(text)
    (directory / "summary.json").write_text('{"rows": [{"name": "x"}, 3], "cost": 4}')
    (directory / "book.jsonl").write_text("{}")
    (directory / "config.yaml").write_text("preset: [unclosed")
    run = read_run(directory, "run")
    assert run.rounds_done == 10
    assert run.points("round", "", "coder_reward")[-1] == (10, 1.0)
    assert next(dict(record.values) for record in run.records if record.rounds_done == 9) == {}
    noted = "\n".join(run.notes)
    for word in (
        "metrics.jsonl: 5 lines are no records",
        "summary.json: a row",
        "book.jsonl cannot",
        "config.yaml cannot",
    ):
        assert word in noted, noted
    assert_harmless(paged([run]))


def test_numbers_that_no_scale_holds_are_left_out(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run")
    large = [{"coder_reward": 1e308, "book": 1e308, "seconds_parsing": 1e308, "seconds_judging": 1e308},
             {"coder_reward": -1.7e308, "book": 1.7e308}]  # fmt: skip
    with (directory / "metrics.jsonl").open("a") as file:
        file.writelines(line("round", 9 + place, values) for place, values in enumerate(large))
        file.write(line("round", 10**400, {"coder_reward": 1}))
    run = read_run(directory, "run")
    assert run.rounds_done == 10
    assert all(abs(value) <= 1 for _, value in run.points("round", "", "coder_reward"))
    assert "metrics.jsonl: 1 lines are no records" in "\n".join(run.notes)
    assert_harmless(paged([run]))


def test_without_matplotlib_the_page_is_written_and_the_missing_picture_is_said(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in an installation of the package alone, where a report needs nothing more."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    directory = write_run(tmp_path / "run")
    assert main(["report", str(directory)]) == 0
    said = capsys.readouterr()
    assert said.out == f"wrote {directory / 'report.html'}\n"
    assert "no picture was drawn, because matplotlib is not installed" in said.err


BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("preset: " + "[" * 2000 + "]" * 2000, "line 1 must be at most 16 lists and mappings deep"),
        ("preset: " + "{a: " * 2000, "line 1 must be at most 16 lists and mappings deep"),
        ("".join(f"{' ' * n}- \n" for n in range(100)), "line 17 must be at most 16 lists and mappings deep"),
        (BOMB, "must not have an alias, got *a0"),
        ("preset: &own [*own]", "must not have an alias, got *own"),
        ("x" * (1 << 18) + "x", "it must have at most 262144 bytes"),
        ("preset: {seed: 0x" + "f" * 100_000 + "}", "a whole number must have at most 18 digits"),
        ("seed: " + "9" * 5000, "config.yaml cannot be read"),
        ("seed: 1" + ":1" * 400 + ".5", "config.yaml cannot be read"),
        ("seed: 2024-13-45", "config.yaml cannot be read"),
        ("seed: !!int ''", "must not have a tag, got 'tag:yaml.org,2002:int'"),
        ("preset: [{2024-01-01: 1}]", "a key must be a text, got 2024-01-01"),
        ("preset: {1: 2}", "a key must be a text, got 1"),
        ("preset: [2024-01-01]", "a value must be a text, a number, true, false or null"),
        ("preset: [unclosed", "config.yaml cannot be read"),
        ("seed: \x00", "config.yaml cannot be read"),
    ],
    ids=range(16),
)
def test_a_configuration_from_anybody_is_read_in_bounds_or_refused_in_one_line(
    text: str, why: str, tmp_path: Path, capsys: Any
) -> None:
    directory = write_run(tmp_path / "run")
    (directory / "config.yaml").write_text(text)
    assert main(["report", str(directory), "--no-png"]) == 0
    (noted,) = capsys.readouterr().err.splitlines()
    assert noted.startswith("codea1: run: config.yaml cannot be read: ")
    assert why in noted


YAML = "a b 1 -1 1e5 0b1 0x 1:2 1:2.5 ~ .inf .nan << *a &a ! !!set !!int - ? : , | > % @ [ ] { } # ' \" y no 2001-1-1"
PIECES = [*YAML.split(), " ", ": ", "- ", "\n", "\n ", "\n  ", "---\n"]


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=30).map("".join))
def test_any_text_is_a_configuration_or_is_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with contextlib.suppress(ConfigurationError):
        json.dumps(read_yaml(file, "a run's configuration"))


@pytest.mark.parametrize("made", ["missing", "empty", "file"])
def test_what_is_no_run_is_refused_with_what_it_must_be(tmp_path: Path, made: str, capsys: Any) -> None:
    target = tmp_path / "target"
    if made == "empty":
        target.mkdir()
    elif made == "file":
        target.write_text("x")
    with pytest.raises(ConfigurationError, match="RUN_DIR must be the directory of a run"):
        read_runs([target])
    assert main(["report", str(target)]) == 2
    shown_error = capsys.readouterr().err
    assert shown_error.startswith("codea1: RUN_DIR must be")
    assert shown_error.count("\n") == 1


def test_the_command_writes_a_page_and_a_picture_and_says_so_to_scripts(tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("matplotlib")
    run = write_run(tmp_path / "run $x_1$")
    assert main(["report", str(run), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["written"] == [str(run / "report.html"), str(run / "report.png")]
    assert (run / "report.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert_harmless((run / "report.html").read_text())
    (described,) = told["runs"]
    assert described["latest"]["round/coder_reward"] == 0.5
    assert described["latest"]["evaluation/coder/hidden_pass_rate"] == 0.6
    assert (described["status"], described["rounds_done"], described["rounds_planned"]) == ("finished", 3, 3)


def test_a_name_that_is_no_text_is_said_as_it_is(tmp_path: Path) -> None:
    named = bytes(tmp_path) + b"/r\xff.html"
    command = [sys.executable, "-m", "codea1_env", "report", str(write_run(tmp_path / "run")), "--no-png", "-o", named]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"wrote " + named + b"\n"


@pytest.mark.parametrize(
    ("arguments", "must"),
    [
        (["--port", "70000", "--watch"], "--port must be in [0, 65535], got 70000"),
        (["--port", "80"], "--port must come with --watch"),
        (["--watch", "--json"], "--watch writes nothing"),
        (["-o", "no/such/page.html"], "--output must be a file in an existing directory"),
        (["-o", "page.png"], "--output must end with .html, got page.png"),
        (["--watch", "--no-duels"], "--watch writes nothing"),
    ],
)
def test_arguments_that_cannot_be_are_refused(tmp_path: Path, arguments: list[str], must: str, capsys: Any) -> None:
    assert main(["report", str(write_run(tmp_path / "run")), *arguments]) == 2
    assert must in capsys.readouterr().err


def test_a_run_that_is_given_twice_is_refused(tmp_path: Path, capsys: Any) -> None:
    run = write_run(tmp_path / "run")
    assert main(["report", str(run), f"{run}/../run"]) == 2
    assert f"RUN_DIR must be different directories, got {run} and {run}/../run" in capsys.readouterr().err
    assert not (run / "report.html").exists()


@pytest.mark.parametrize("command", ["report", "view"])
def test_a_folder_of_runs_names_them(command: str, tmp_path: Path, capsys: Any) -> None:
    runs = [write_run(tmp_path / name) for name in ("code_a1", "golden")]
    assert main([command, str(tmp_path)]) == 2
    must = "must be the directory of a run"
    assert f"{must}, got {tmp_path}, a folder of runs; give {runs[0]} {runs[1]}\n" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["report", "view"])
def test_no_page_takes_the_place_of_a_file_of_the_run(command: str, tmp_path: Path, capsys: Any) -> None:
    run = write_run(tmp_path / "run")
    files = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert run / "metrics.jsonl" in files
    for path in files:
        assert main([command, str(run), "-o", str(path)]) == 2
        assert "--output must" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == files


def test_the_papers_own_preset_differs_in_nothing_and_smoke_in_what_it_says(tmp_path: Path) -> None:
    paper = write_run(tmp_path / "paper", preset=load_preset("1.5b").to_dict())
    assert differences_from_paper(read_run(paper, "paper")) == []
    found = differences_from_paper(read_run(write_run(tmp_path / "s"), "s"))
    assert ("round.questions", "256", "2") in found
    assert ("grpo.learning_rate", "1e-06", "0.0005") in found
    assert "reward.alpha" not in [name for name, _, _ in found]


def test_time_is_split_by_medians(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run")
    with (directory / "metrics.jsonl").open("a") as file:
        file.write(line("round", 4, {"seconds_scoring": 100.0, "seconds_judging": 0.3}))
    coder, arena = time_splits(read_run(directory, "run"))
    assert coder == ("coder", {"generating": 2.0, "learning": 1.0})
    assert arena == ("arena", pytest.approx({"judging": 0.3, "other": 0.2}))


def keep_duels(directory: Path, rewards: list[tuple[float | None, tuple[float | None, ...]]], number: int) -> None:
    """One match with these rewards of programs and of their suites, recorded as of a round."""
    from codea1_env.rewards.duel import Duel

    problem = Problem("a question", "Zero.", "f", reference_solution="def f(x):\n    return 0")
    match = Match(problem, ("x",) * len(rewards), tuple(("s",) * len(row) for _, row in rewards))
    duel = Duel("a question", "x", True, 0.0, (), ())
    score = MatchScore(
        "a question",
        tuple(CodeScore(True, coder, "x") for coder, _ in rewards),
        tuple(tuple(SuiteScore(tester, None, duel) for tester in row) for _, row in rewards),
    )
    (directory / "duels").mkdir(exist_ok=True)
    with Recorder(directory / "duels" / f"round-{number}.jsonl") as recorder:
        recorder.write([match], [score], RewardConfig())


def test_the_best_and_the_worst_duels_lead_into_the_viewer(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    keep_duels(run, [(0.2, (0.1, 0.9)), (None, (None,))], 10)
    keep_duels(run, [(1.0, (0.0, 0.5))], 2)  # round 2 is the first game, 10 the second
    kept = kept_duels(run)
    assert len(kept.duels) == 4
    first = [kept.first(kind)[0] for kind in ORDERS]
    assert [each.address for each in first] == ["2.1.2", "1.1.1", "2.1.1"]
    assert first[0].origin == "round 10"
    found = assert_harmless(paged(read_runs([run]), viewer="of%20run.html"))
    assert {"of%20run.html#2.1.2", "of%20run.html#1.1.1"} <= {a.get("href") for tag, a in found.tags if tag == "a"}
    (run / "duels" / "round-3.jsonl").write_text("nonsense\n")
    assert kept_duels(run).duels == []
    assert "round-3.jsonl" in kept_duels(run).note
    assert "cannot be read" in assert_harmless(paged(read_runs([run]))).text


def test_the_viewers_page_is_written_beside_the_report_unless_told_not_to(tmp_path: Path, capsys: Any) -> None:
    one, other, none = (write_run(tmp_path / name) for name in ("one #1", "other", "none"))
    for run in (one, other):
        keep_duels(run, [(0.5, (0.25,))], 1)
    output = tmp_path / "page?.html"
    assert main(["report", str(one), str(none), str(other), "-o", str(output), "--no-png", "--json"]) == 0
    written = json.loads(capsys.readouterr().out)["written"]
    assert written == [str(tmp_path / name) for name in ("page?.html", "page?-duels.html", "page?-duels3.html")]
    assert b"one #1" in (tmp_path / "page?-duels.html").read_bytes()
    links = {a.get("href") for tag, a in assert_harmless(output.read_text()).tags if tag == "a"}
    assert {"page%3F-duels.html#1.1.1", "page%3F-duels3.html#1.1.1"} <= links
    assert main(["report", str(one), "-o", str(tmp_path / "plain.html"), "--no-png", "--no-duels"]) == 0
    assert not (tmp_path / "plain-duels.html").exists()


def test_both_pages_say_where_there_are_too_many_duels_for_one(tmp_path: Path, monkeypatch: Any) -> None:
    run = write_run(tmp_path / "run")
    for number in (1, 2, 3):
        keep_duels(run, [(0.5, (0.25, 0.25))], number)
    monkeypatch.setattr("codea1_env.report.duels.DEFAULT_LIMIT", 4)
    noted: list[str] = []
    monkeypatch.setattr("codea1_env.cli.report.make_page", lambda title, games, note, book: noted.append(note) or b"")
    assert main(["report", str(run), "--no-png"]) == 0
    assert noted == ["one game in 2 of 6 duels"]
    assert "4 duels: one game in 2 of 6 duels" in (run / "report.html").read_text()


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6), st.integers(2, 8), st.booleans())
def test_ticks_enclose_the_numbers_evenly(low: float, span: float, most: int, whole: bool) -> None:
    found = ticks(low, low + span, most, whole=whole)
    assert len(found) >= 2
    step = found[1] - found[0]
    assert step > 0
    assert found[0] <= low + 1e-6 * step
    assert found[-1] >= low + span - 1e-6 * step
    assert len(found) <= most + 3


@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats(-5, 5)), min_size=1, max_size=1500))
def test_thousands_of_points_become_hundreds_and_stay_within_what_they_were(points: list[tuple[int, float]]) -> None:
    found = thinned(points)
    assert len(found) <= 300
    assert len(points) > 300 or found == [(float(x), y) for x, y in points]
    for drawn in (found, smoothed(found)):
        assert min(y for _, y in points) - 1e-9 <= min(y for _, y in drawn)
        assert max(y for _, y in drawn) <= max(y for _, y in points) + 1e-9


def test_a_point_is_drawn_where_its_number_says() -> None:
    """Axes 0 to 10 and 0 to 1 over a field from (44, 10) to (388, 192): (5, 0.25) lies at (216, 146.5)."""
    drawn = line_chart(Chart("title", (Series("a", ((0, 0.0), (5, 0.25), (10, 1.0)), 0),), True))
    assert 'd="M44.0 192.0L216.0 146.5L388.0 10.0"' in drawn
    assert 'aria-label="title. a: 0 in round 0, 1 in round 10"' in drawn
    assert [shown(value) for value in (0.0, 3.0, 0.125, 1e-7, 123456.7, 12.34)] == [
        "0", "3", "0.125", "1.0e-07", "1.2e+05", "12.3",
    ]  # fmt: skip


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str, Path]]:
    run = write_run(tmp_path / "run")
    arguments = [sys.executable, "-m", "codea1_env.cli", "report", str(run), "--watch"]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    first = process.stderr.readline()
    address = re.search(r"http://127\.0\.0\.1:\d+/", first)
    assert address, first
    yield process, address[0], run
    process.kill()
    process.communicate()


def test_the_local_page_follows_the_run_answers_only_itself_and_ends_with_ctrl_c(
    watched: tuple[subprocess.Popen[str], str, Path],
) -> None:
    process, address, run = watched

    def asked(path: str = "", **headers: str) -> str:
        request = urllib.request.Request(address + path, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.headers["Cache-Control"] == "no-store"
            return str(answer.read().decode())

    first = assert_harmless(asked())
    assert ("meta", {"http-equiv": "refresh", "content": "5"}) in first.tags
    assert "3 of 3" in first.text
    with (run / "metrics.jsonl").open("a") as file:
        file.write(line("round", 7, ROUND))
    assert "7 of 3" in asked()
    for path, headers, status in (("other", {}, 404), ("", {"Host": "evil.example"}, 403)):
        with pytest.raises(urllib.error.HTTPError) as refused:
            asked(path, **headers)
        assert refused.value.code == status
        refused.value.close()
    (run / "metrics.jsonl").unlink()
    (run / "config.yaml").unlink()
    assert "RUN_DIR must be the directory of a run" in asked(), "it says what is wrong and goes on"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "codea1: interrupted\n")
    assert not (run / "report.html").exists()
