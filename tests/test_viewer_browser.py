"""The page in a real browser: what a click, a key, a filter and a hostile text do; that everybody can read it.

Run by `make test-browser`; skipped, saying why, where there is no Chromium. Playwright drives the system's own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from viewer_pages import ATTACKS, attack_game, game, row, shared_game, write_page

from codea1_env.judging.returned import cut
from codea1_env.viewer import Found, Page
from codea1_env.viewer.games import MOST_SOURCE
from codea1_env.viewer.page import STYLES

pytestmark = pytest.mark.browser
SIZES = ((360, 740), (768, 1024), (1440, 900))

Open = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Opens a file; at the end of the test the page must not have complained, or asked for anything elsewhere."""
    contexts, complaints, requests = [], [], []

    def opened(path: Path, width: int = 1440, height: int = 900, theme: str = "light", address: str = "") -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri() + address)
        page.wait_for_selector("html[data-ready]", timeout=30_000)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
    assert all(url.startswith("file:") for url in requests)
    assert len(requests) == len(contexts)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    games = [game("twice"), game("second", programs=2, suites=1, question="Something else.")]
    games[1]["programs"][0]["reward"] = 0.9
    games[1]["programs"][1]["suites"][0]["tests"] = games[1]["programs"][1]["suites"][0]["tests"][:1]
    return write_page(tmp_path_factory.mktemp("pages") / "plain.html", games)


def texts(page: Any, selector: str) -> list[str]:
    return [str(text).strip() for text in page.locator(selector).all_inner_texts()]


def test_a_click_on_a_cell_shows_call_values_and_every_term(open_page: Open, plain: Path) -> None:
    page = open_page(plain)
    page.click('.matrix [aria-label="program 2, suite 1, assert 2: fails, kept"]')
    assert texts(page, "#why-title") == ["PROGRAM 2, SUITE 1, ASSERT 2"]
    assert texts(page, ".facts dd") == ["f(3)", "6", "6", "[1, 3]"]
    rows = [re.sub(r"\s+", " ", text) for text in texts(page, ".terms tr")]
    assert rows == [
        "Rval min(v / K, 1 − invalid / K) = min(3/4, 1 − 2/4) 0.5",
        "fnew valid tests that the program fails / K = 1/4 0.25",
        "fhist replayed tests that it fails / replayed = 2/3 0.6667",
        "Radv (f_new − f_hist + 1) / 2 = (0.25 − 0.6667 + 1) / 2 0.2917",
        "RT α R_val + (1 − α) R_adv − unprintable = 0.5 · 0.5 + 0.5 · 0.2917 − 0 0.3958",
        "pnew valid tests passed / v = 2/3 0.6667",
        "phist 1 − f_hist = 1 − 0.6667 0.3333",
        "share (p_hist + p_new) / 2 = (0.3333 + 0.6667) / 2 0.5",
        "RC mean of the shares of its 2 suites = (0.5 + 0.5) / 2 0.5",
    ]
    # Without it: v = 2, f_new = 0, R_adv = 1/6, R_val = 0.5: R_T = 1/3; the coder: p_new = 2/2, share 2/3.
    assert texts(page, ".difference li") == [
        "+0.0625 in the tester's reward: 0.3958 with it, 0.3333 without it",
        "−0.1667 in the coder's reward from this suite: 0.5 with it, 0.6667 without it",
    ]


def test_a_corrected_and_a_rejected_test_say_what_they_count_for(open_page: Open, plain: Path) -> None:
    page = open_page(plain)
    page.click('.asserts [data-place="2"]')
    assert "It ran with the reference's value instead, and counts." in page.inner_text(".why")
    assert "one of v = 3 valid tests, and as one of 2 invalid asserts" in page.inner_text(".why")
    assert texts(page, ".facts dd") == ["f(2)", "5", "4", "4"]
    page.click('.asserts [data-place="3"]')
    assert "is not a test in this grammar. Reason: operator." in page.inner_text(".why")
    assert texts(page, ".facts dd")[-1] == "not run"


def test_what_of_a_response_was_not_read_stands_under_its_suite(open_page: Open, tmp_path: Path) -> None:
    some, silent = game(), game(suites=1)
    some["programs"][0]["suites"][0]["ignored"] = {"text": 2, "assert_in_text": 1}
    for program in silent["programs"]:
        program["suites"][0] |= {"tests": [], "ignored": {"function": 1}}
    page = open_page(write_page(tmp_path / "some.html", [some]), address="#1.1.1.1")
    assert "Not read: text (2), assert in text (1)." in page.inner_text(".suite")
    page = open_page(write_page(tmp_path / "silent.html", [silent]))
    assert "It holds no assert." in page.inner_text(".suite")
    assert "Not read: function (1)." in page.inner_text(".suite")


def test_a_replayed_test_has_its_panel(open_page: Open, plain: Path) -> None:
    page = open_page(plain)
    page.click('.matrix [aria-label="program 1, replayed test 3: times out"]')
    assert "one of 3 tests in f_hist and p_hist" in page.inner_text(".why")


def book_page(path: Path, games: list[Any]) -> Path:
    tests = [
        ["f(3)", "6", 4, {"pass": 1, "timeout": 2}, [[1, 1], [2, 1]]],
        ["f(9)", "18", 1, {}, []],
        ["f(0)", "0", None, {}, [[1, 0]]],
    ]
    questions = [["twice", tests], *([f"question {number}", tests[1:2]] for number in range(20))]
    book = {"source": "coder/checkpoint-2/book.jsonl", "note": "Shown are 23 of 100 tests.", "questions": questions}
    return write_page(path, games, book=book)


def test_the_book_shows_its_tests_and_leads_to_where_they_were_replayed(open_page: Open, tmp_path: Path) -> None:
    page = open_page(book_page(tmp_path / "book.html", [game("twice"), game("second")]))
    page.click("#book")
    assert "From coder/checkpoint-2/book.jsonl." in page.inner_text("main")
    assert "Shown are 23 of 100 tests." in page.inner_text("main")
    rows = [re.sub(r"\s+", " ", text) for text in texts(page, ".shelf tbody tr")[:3]]
    assert rows == [
        "f(3) 6 4 ✓ 1 ∞ 2 game 1game 2",
        "f(9) 18 1 not replayed",
        "f(0) 0 – replayed; verdicts are not in this file game 1",
    ]
    assert page.locator('.fared[aria-label="times out: 2"]').count() == 1
    assert page.locator(".shelf").count() == 3, "the others are drawn when they are opened"
    page.click("summary:has-text('question 15')")
    page.locator(".shelf").nth(3).wait_for()  # a browser tells of it a moment later
    assert page.locator(".shelf").count() == 4
    page.click(".shelf button:has-text('game 2')")
    assert texts(page, "#why-title") == ["PROGRAM 1, REPLAYED TEST 2"]
    assert texts(page, ".duel-name h2") == ["second"]
    page.keyboard.press("b")
    assert page.url.endswith("#book")
    assert texts(page, "#book-title") == ["Mistake Book"]


@pytest.mark.parametrize("without", [1, 3])
def test_the_book_leads_to_a_program_that_met_the_test_where_there_is_one(
    without: int, open_page: Open, tmp_path: Path
) -> None:
    found = game("twice")
    for program in found["programs"][:without]:
        program["suites"] = []
    page = open_page(book_page(tmp_path / "book.html", [found]))
    page.click("#book")
    page.click(".shelf button:has-text('game 1')")
    assert texts(page, ".duel-name h2") == ["twice"]
    assert texts(page, "#why-title") == (["PROGRAM 2, REPLAYED TEST 2"] if without == 1 else ["WHY THIS REWARD"])


@pytest.mark.parametrize("width", [360, 1440])
def test_a_book_without_duels_is_what_the_page_opens_on(width: int, open_page: Open, tmp_path: Path) -> None:
    page = open_page(book_page(tmp_path / "book.html", []), width=width)
    assert texts(page, "#book-title") == ["Mistake Book"]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page = open_page(book_page(tmp_path / "other.html", [game()]), width=width, address="#book")
    assert texts(page, "#book-title") == ["Mistake Book"]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_page_without_a_book_has_no_button_for_one(open_page: Open, plain: Path) -> None:
    page = open_page(plain)
    assert not page.locator("#book").is_visible()
    page.keyboard.press("b")
    assert texts(page, ".duel-name h2") == ["twice"]


def test_programs_that_met_all_suites_show_what_each_came_to(open_page: Open, tmp_path: Path) -> None:
    path = write_page(tmp_path / "shared.html", [shared_game()])
    page = open_page(path)
    assert texts(page, "#list .row-where") == [
        "game 1 · program 1 · suite 1", "game 1 · program 2 · suite 2",
        "game 1 · program 3 · suite 1 (against program 1)",
    ]  # fmt: skip
    for program, words in ((1, "passes"), (2, "fails"), (3, "times out")):
        for suite in (1, 2):
            label = f"program {program}, suite {suite}, assert 1: {words}, kept"
            assert page.locator(f'.matrix [aria-label="{label}"]').count() == 1
    page.click('.matrix [aria-label="program 3, suite 2, assert 1: times out, kept"]')
    assert texts(page, "#why-title") == ["PROGRAM 3, SUITE 2, ASSERT 1"]
    assert texts(page, ".facts dd") == ["f(3)", "6", "6", "nothing in time"]
    assert "written against program 2" in page.inner_text(".why")
    assert texts(page, ".duel-head .seat") == ["coder RC\n0.5", "tester RT\n–"]
    assert page.evaluate("location.hash") == "#1.3.2.1"
    page.keyboard.press("ArrowUp")
    assert texts(page, "#why-title") == ["PROGRAM 2, SUITE 2, ASSERT 1"]
    assert texts(page, ".facts dd")[-1] == "[1, 3]"  # it was written against this program
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert texts(page, "#why-title") == ["PROGRAM 2, SUITE 1, ASSERT 1"]
    assert texts(page, ".facts dd")[-1] == "not in this file"
    again = open_page(path, address=page.evaluate("location.hash"))
    assert texts(again, "#why-title") == ["PROGRAM 2, SUITE 1, ASSERT 1"]
    again.click('.matrix [aria-label="program 3, replayed test 2: passes"]')
    assert texts(again, "#why-title") == ["PROGRAM 3, REPLAYED TEST 2"]


@pytest.mark.parametrize(("programs", "columns"), [(8, 8 * 2 + 3), (160, 2 + 3)])
def test_a_matrix_too_large_to_draw_has_the_own_suites(
    programs: int, columns: int, open_page: Open, tmp_path: Path
) -> None:
    shared = game("shared", programs=programs, suites=1)
    for program in shared["programs"]:
        program["suites"][0]["tests"] = [
            row(f"assert f({call}) == 6", "kept", "pass", call=f"f({call})", stated="6", expected="6",
                verdicts=["pass"] * programs) for call in range(2)
        ]  # fmt: skip
    page = open_page(write_page(tmp_path / "shared.html", [shared]))
    assert page.get_attribute(".matrix", "aria-colcount") == str(columns + 1)


def test_another_method_shows_its_terms_and_what_the_assert_earns(open_page: Open, tmp_path: Path) -> None:
    paid = game(config={"tester_reward": "cure", "coder_tests": "own", "oracle": "golden"})
    suite = paid["programs"][0]["suites"][0]
    suite["reward"] = 0.25  # (1 + 0.5 - 0.5 + 0) / 4
    for test, pay in zip(suite["tests"], (1.0, 0.5, -0.5, 0.0), strict=True):
        test[8] = pay
    page = open_page(write_page(tmp_path / "page.html", [paid]), address="#1.1.1.3")
    assert "By itself this assert earns −0.5." in page.inner_text(".why")
    assert "(1 + 0.5 − 0.5 + 0) / 4" in page.inner_text(".terms")
    assert "the oracle (golden) returns" in page.inner_text(".facts")


def test_terms_that_the_formula_does_not_give_are_shown_as_they_stand(open_page: Open, tmp_path: Path) -> None:
    other = game()
    other["programs"][0]["suites"][0]["reward"] = 0.9
    page = open_page(write_page(tmp_path / "page.html", [other]), address="#1.1.1.1")
    assert "The formula does not give these terms" in page.inner_text(".why")
    assert page.locator(".difference").count() == 0


def test_games_with_holes_are_shown_with_what_they_have(open_page: Open, tmp_path: Path) -> None:
    failed = game("the sandbox failed", suites=1, replays=[])
    for program in failed["programs"]:
        program |= {"executes": None, "reward": None}
        program["suites"] = [{"reward": None, "terms": None, "error": "no engine", "replays": [], "tests": []}]
    bare = game("no program", config=None, reference=None, question="")
    for program in bare["programs"]:
        program["source"] = None
    alone = game("no suites", suites=0, replays=[])
    page = open_page(write_page(tmp_path / "page.html", [failed, bare, alone]), address="#1.1.1")
    assert "no engine" in page.inner_text("main")
    page.evaluate("location.hash = '#2.1.1.2'")
    page.wait_for_selector(".facts")
    assert "codea1 score --details writes it" in page.inner_text(".program")
    page.evaluate("location.hash = '#3.1.1'")
    page.wait_for_selector("text=No suite was written against these programs.")
    open_page(write_page(tmp_path / "empty.html", []))


def test_a_large_matrix_is_drawn_as_far_as_it_is_seen(open_page: Open, tmp_path: Path) -> None:
    page = open_page(write_page(tmp_path / "page.html", [game(programs=64, suites=8)]))
    assert page.locator(".matrix-row").count() < 30
    page.focus('.matrix [tabindex="0"]')
    for _ in range(63):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    assert texts(page, "#why-title") == ["PROGRAM 64, REPLAYED TEST 3"]
    assert (
        page.evaluate("document.activeElement.getAttribute('aria-label')") == "program 64, replayed test 3: times out"
    )


def test_verdicts_differ_by_sign_and_not_by_colour_alone(open_page: Open, plain: Path) -> None:
    page = open_page(plain)
    cells = page.locator('.matrix [data-row="0"] .cell').all()
    assert [cell.inner_text() for cell in cells] == ["✓", "✗", "≠", "∅"] * 2 + ["✓", "✗", "∞"]
    assert "corrected" in cells[2].get_attribute("class")
    assert "wrong value; with the right one the program passes" in cells[2].get_attribute("aria-label")


def test_a_wrong_value_has_no_green_tick_anywhere(open_page: Open, plain: Path) -> None:
    page = open_page(plain)
    assert page.locator('.matrix .is-pass[aria-label*="wrong value"]').count() == 0
    row = page.locator('.asserts [data-place="2"]')
    assert row.locator(".sign").inner_text() == "≠"
    assert row.locator(".status").inner_text() == "wrong value; with the right one the program passes"
    row.click()
    assert page.locator(".verdict.is-pass").count() == 0


def test_a_page_without_an_address_opens_on_the_best_kill_of_a_program_that_loads(
    open_page: Open, tmp_path: Path
) -> None:
    def duel(name: str, verdict: str | None, reward: float, executes: bool = True) -> dict[str, Any]:
        one = game(name, programs=1, suites=1)
        one["programs"][0]["executes"] = executes
        suite = one["programs"][0]["suites"][0]
        suite["tests"], suite["reward"] = [suite["tests"][0].copy(), suite["tests"][1].copy()], reward
        suite["tests"][1][6] = verdict
        return one

    games = [
        duel("nothing happens", "pass", 0.9),
        duel("does not load", "fail", 0.8, executes=False),
        duel("raises", "error", 0.7),
        duel("a small kill", "fail", 0.2),
        duel("the kill", "fail", 0.6),
        duel("another", "fail", 0.6),
    ]
    page = open_page(write_page(tmp_path / "page.html", games))
    assert page.inner_text(".duel-name h2") == "the kill"
    assert texts(page, "#why-title") == ["PROGRAM 1, SUITE 1, ASSERT 2"]
    assert page.locator('#list [aria-selected="true"] .row-id').inner_text() == "the kill"
    for shown, expected in ((games[:3], "raises"), (games[:2], "nothing happens")):
        page = open_page(write_page(tmp_path / "fewer.html", shown))
        assert page.inner_text(".duel-name h2") == expected


def test_a_notebooks_frame_shows_the_page_and_complains_of_nothing(browser: Any, plain: Path, tmp_path: Path) -> None:
    shown = Page(plain.read_bytes(), Found())
    host = tmp_path / "notebook.html"
    host.write_text(f'<!doctype html><meta charset="utf-8"><body>{shown._repr_html_()}</body>')
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(host.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("html[data-ready]").wait_for(timeout=30_000)
    frame.locator('.matrix [aria-label="program 2, suite 1, assert 2: fails, kept"]').click()
    assert frame.locator("#why-title").inner_text() == "PROGRAM 2, SUITE 1, ASSERT 2"
    assert page.url == host.as_uri()
    assert complaints == []
    context.close()


def test_search_filters_and_sort_find_duels(open_page: Open, plain: Path) -> None:
    page = open_page(plain)
    assert page.inner_text("#count") == "8 duels"
    page.fill("#search", "SOMETHING assert")
    assert page.inner_text("#count") == "2 duels of 8"
    page.fill("#search", "")
    page.click("#filters summary")
    page.check('#choices [value="rejected"]', force=True)
    assert page.inner_text("#count") == "7 duels of 8"
    page.select_option("#reason", "rejected · operator")
    assert page.inner_text("#chosen") == "(2)"
    page.check('#choices [value="pass"]', force=True)
    assert page.inner_text("#count") == "0 duels of 8"  # no assert is rejected and passes
    page.click("text=Clear the filter")
    assert page.inner_text("#count") == "8 duels"
    page.select_option("#sort", "coder's reward, highest")
    first = page.locator("#list .row").first.get_attribute("aria-label")
    assert first.startswith("second, game 2 · round 1 · program 1")


def test_everything_can_be_done_by_keys(open_page: Open, plain: Path) -> None:
    page = open_page(plain)
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.inner_text(".duel-name p") == "game 1 · round 1 · program 2 · suite 1"
    page.keyboard.press("k")
    assert page.inner_text(".duel-name p") == "game 1 · round 1 · program 1 · suite 2"
    page.keyboard.press("/")
    page.keyboard.type("jk?")
    assert page.input_value("#search") == "jk?"
    page.fill("#search", "")
    page.keyboard.press("Escape")
    page.focus("#list")
    page.keyboard.press("End")
    assert page.inner_text(".duel-name h2") == "second"
    page.keyboard.press("Home")
    page.focus('.matrix [tabindex="0"]')
    for key in ("ArrowRight", "ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert texts(page, "#why-title") == ["PROGRAM 2, SUITE 1, ASSERT 4"]
    focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert focused == "program 2, suite 1, assert 4: rejected, operator"
    page.keyboard.press("?")
    assert page.locator("dialog[open]").count() == 1
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0


def test_an_address_opens_its_duel_and_follows_the_reader(open_page: Open, plain: Path) -> None:
    page = open_page(plain, address="#2.1.1.2")
    assert texts(page, "#why-title") == ["PROGRAM 1, SUITE 1, ASSERT 2"]
    assert page.inner_text(".duel-name h2") == "second"
    page.click('.asserts [data-place="0"]')
    assert page.evaluate("location.hash") == "#2.1.1.1"


@pytest.mark.parametrize("width", [360, 1440])
def test_an_address_of_no_duel_says_so_and_shows_none(width: int, open_page: Open, plain: Path) -> None:
    for address in ("#0", "#99.1", "#a.b.c", "#1.99", "#1.1.", "#-1", "#1e0", "#" + "9" * 400):
        page = open_page(plain, width, address=address)
        assert page.locator("main [role=alert]").is_visible(), address
        assert page.inner_text("main [role=alert]").startswith("There is no duel " + address[:20])
        assert page.locator(".duel-name").count() == 0
    page.evaluate("location.hash = '#2.1.1'")
    page.wait_for_selector(".duel-name")
    page.evaluate("location.hash = '#77'")
    page.wait_for_selector("main [role=alert]")
    page.evaluate("location.hash = '#2.1.1.99'")
    page.wait_for_selector(".duel-name")
    assert "This suite has no assert 99." in page.inner_text(".why")
    page.evaluate("location.hash = '#duel'")  # the link that skips the list
    assert page.inner_text(".duel-name h2") == "second"


def test_the_theme_follows_the_system_until_it_is_chosen(open_page: Open, plain: Path) -> None:
    def ground(page: Any) -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    page = open_page(plain, theme="dark")
    dark = ground(page)
    page.click("#theme")
    light = ground(page)
    assert dark != light
    assert ground(open_page(plain, theme="light")) == light


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_is_wider_than_its_window(
    width: int, height: int, theme: str, open_page: Open, plain: Path, tmp_path: Path
) -> None:
    page = open_page(plain, width, height, theme)
    shots = Path(os.environ.get("CODEA1_SCREENSHOTS", tmp_path))
    for part in ("list", "duel"):
        if part == "duel":
            page.click("#list .row")
            page.click('.asserts [data-place="1"]')
        page.screenshot(path=shots / f"{part}-{width}-{theme}.png")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate("document.querySelector('main').scrollWidth <= document.querySelector('main').clientWidth")
    assert page.locator(".back").is_visible() == (width < 821)


@pytest.mark.parametrize("width", [390, 768, 1440])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_responses_of_two_thousand_characters_stay_readable(
    width: int, theme: str, open_page: Open, tmp_path: Path
) -> None:
    source = "def f(x):\n" + "    x = x + 1  # a comment that goes on for longer than most windows are wide\n" * 25
    values = str(list(range(500)))
    long = game("a/rather/long/name/of/a/question/" * 3, source, question="Merge all intervals that overlap. " * 60)
    suite = long["programs"][0]["suites"][0]
    suite["tests"][1] = [f"assert f({values}) == {values}", *suite["tests"][1][1:3], f"f({values})", values, values,
                         "fail", "'" + "x" * 2_000 + "'", suite["tests"][1][8]]  # fmt: skip
    page = open_page(write_page(tmp_path / "page.html", [long]), width, 900, theme, address="#1.1.1.2")
    page.screenshot(path=Path(os.environ.get("CODEA1_SCREENSHOTS", tmp_path)) / f"long-{width}-{theme}.png")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("document.querySelector('main').scrollWidth <= document.querySelector('main').clientWidth")
    assert page.locator(".program .line").count() == 26
    for part in (".prose", ".program .code", ".why .inline", ".facts dd"):
        box = page.locator(part).first
        box.scroll_into_view_if_needed()
        assert box.evaluate("part => parseFloat(getComputedStyle(part).fontSize)") >= 12, part
        assert box.evaluate("part => part.getBoundingClientRect().height") <= 600, part
    assert "x" * 500 in page.inner_text(".facts")


@pytest.mark.parametrize("width", [390, 900, 1200, 1440])
def test_what_became_of_an_assert_leaves_room_for_the_assert(width: int, open_page: Open, plain: Path) -> None:
    page = open_page(plain, width, 900, address="#1.1.1")
    assert "wrong value; with the right one the program passes" in page.inner_text(".asserts")
    shares = page.evaluate(
        """[...document.querySelectorAll('.asserts button')].map(row =>
        row.children[1].getBoundingClientRect().width / row.getBoundingClientRect().width)"""
    )
    assert min(shares) > 0.5


def test_the_narrow_page_turns_from_list_to_duel_and_back(open_page: Open, plain: Path) -> None:
    page = open_page(plain, 360, 740)
    assert page.locator("#list").is_visible()
    assert not page.locator("main").is_visible()
    page.click("#list .row")
    assert not page.locator("#list").is_visible()
    page.click(".back")
    assert page.locator("#list").is_visible()


@pytest.mark.parametrize("name", ATTACKS)
def test_no_text_runs_or_breaks_the_page(name: str, open_page: Open, tmp_path: Path) -> None:
    text = ATTACKS[name]
    hostile = attack_game(name, cut(text, MOST_SOURCE))
    test = [text[:4096], text[:4096], 1, {"fail": 1, "__proto__": 2}, [[1, 0]]]
    book = {"source": text[:300], "note": text[:300], "questions": [[text[:400] or "none", [test]]]}
    page = open_page(write_page(tmp_path / "page.html", [hostile, game("after")], title="<b>" + text[:300], book=book))
    page.click("#book")
    assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0
    page.click(".shelf button")
    page.click(".matrix .is-fail")
    page.click("summary:has-text('Reference')")
    page.hover(".program .code")
    page.fill("#search", "e")
    page.fill("#search", "")
    assert page.evaluate("window.pwned") is None
    assert (
        page.evaluate("document.querySelectorAll('img, svg, iframe, base, form, a[href^=javascript], link').length")
        == 0
    )
    scripts = page.evaluate("document.scripts.length")
    assert scripts == page.evaluate("document.querySelectorAll('body > script').length")
    assert page.evaluate("document.querySelectorAll('style').length") == len(STYLES)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.focus("#list")
    page.keyboard.press("End")
    assert page.inner_text(".duel-name h2") == "after"  # the page goes on


def test_what_cannot_be_seen_is_spelt_out(open_page: Open, tmp_path: Path) -> None:
    source = "a = 'user\u202e'  # \x1b[31m\x00\x00\x00 \ud800 \u200b"
    page = open_page(write_page(tmp_path / "page.html", [game("p", source, programs=1)]))
    assert texts(page, ".program .hidden") == ["\\u202e", "\\x1b", "\\0 ×3", "\\ud800", "\\u200b"]


def test_code_in_a_question_is_shown_as_code_and_nothing_else_of_it_is_markup(open_page: Open, tmp_path: Path) -> None:
    question = (
        "Write `f(x)`, or ``a`b``; a lone ` stays.\n\n<b>`<i>x</i>`</b>.\n\nNot `across\n\nparagraphs`.\n"
        "```python\n<img src=x onerror=pwned=1>\n`raw`\n```\nAfter **it**.\n~~~\nnever closed"
    )
    page = open_page(write_page(tmp_path / "page.html", [game("p", question=question)]))
    assert texts(page, ".prose > code") == ["f(x)", "a`b", "<i>x</i>"]
    assert texts(page, ".prose > pre") == ["<img src=x onerror=pwned=1>\n`raw`", "never closed"]
    told = page.evaluate("document.querySelector('.prose').textContent")
    assert "; a lone ` stays.\n\n<b>" in told
    assert "Not `across\n\nparagraphs`." in told
    assert "After **it**." in told
    assert page.evaluate("[...document.querySelectorAll('.prose *')].map((each) => each.localName)").count("code") == 5
    assert page.evaluate("document.querySelectorAll('.prose b, .prose i, .prose img').length") == 0
    assert page.evaluate("window.pwned") is None


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("document.body.innerHTML = '<b>x</b>'", "TypeError"),
        ("setTimeout('document.title = 1', 0)", "TypeError"),
        ("await fetch('https://127.0.0.1:9/')", "TypeError"),
        ("location = 'javascript:document.title=1'; throw new RangeError(document.title)", "RangeError"),
    ],
)
def test_the_policy_stops_markup_scripts_and_requests(code: str, error: str, browser: Any, plain: Path) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(plain.as_uri())
    found = page.evaluate(f"async () => {{ try {{ {code}; return 'ran'; }} catch (e) {{ return e.name; }} }}")
    assert found == error
    assert page.title() == "games.jsonl"
    context.close()


def test_of_ten_thousand_duels_only_those_in_view_are_drawn(open_page: Open, tmp_path: Path) -> None:
    games = [game(f"question {number}", programs=8, suites=4) for number in range(320)]
    page = open_page(write_page(tmp_path / "page.html", games))
    assert page.inner_text("#count") == "10,240 duels"
    assert page.locator("#list .row").count() < 60
    page.evaluate("document.querySelector('#list').scrollTop = 1e9")
    page.wait_for_selector('#list [aria-posinset="10240"]')
    assert page.locator("#list .row").count() < 60


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_axe_finds_nothing_serious(width: int, theme: str, browser: Any, plain: Path, axe: Any) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, bypass_csp=True)
    page = context.new_page()
    page.goto(plain.as_uri())
    page.wait_for_selector("html[data-ready]")
    for part in ("list", "filters", "duel", "help"):
        if part == "filters":
            page.click("#filters summary")
        elif part == "duel":
            page.click("#list .row")
            page.click('.asserts [data-place="1"]')
            page.click(".legend summary")
            page.click(".reference summary")
        elif part == "help":
            page.evaluate("document.getElementById('keys').showModal()")
        axe(page)
    context.close()
