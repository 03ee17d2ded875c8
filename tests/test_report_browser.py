"""The report in a real browser: nothing of a run acts on it, everybody can read it, and it fits the window."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from report_pages import line, write_hostile_run, write_run

from codea1_env.cli import main

pytestmark = pytest.mark.browser
SIZES = ((360, 740), (768, 1024), (1440, 900))


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two runs, one of which is hostile."""
    folder = tmp_path_factory.mktemp("report")
    runs = [write_run(folder / "first", rounds=40), write_hostile_run(folder / "<b>run&'")]
    page = folder / "report.html"
    assert main(["report", *map(str, runs), "-o", str(page), "--no-png"]) == 0
    return page


@pytest.fixture(scope="module")
def pictured(tmp_path_factory: pytest.TempPathFactory, compared: Path) -> Path:
    """The page that the pictures show: of the runs in CODEA1_SCREENSHOT_RUNS, where that names some."""
    runs = os.environ.get("CODEA1_SCREENSHOT_RUNS", "").split()
    if not runs:
        return compared
    page = tmp_path_factory.mktemp("pictured") / "report.html"
    assert main(["report", *runs, "-o", str(page), "--no-png"]) == 0
    return page


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_report_is_wider_than_its_window(
    width: int, height: int, theme: str, browser: Any, compared: Path, pictured: Path, tmp_path: Path
) -> None:
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
    page = context.new_page()
    shots = Path(os.environ.get("CODEA1_SCREENSHOTS", tmp_path))
    for shown in dict.fromkeys((compared, pictured)):
        page.goto(shown.as_uri())
        page.screenshot(path=shots / f"report-{width}-{theme}.png")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of 500 rounds, some of whose numbers are tiny."""
    folder = tmp_path_factory.mktemp("long")
    run = write_run(folder / "long", rounds=500)
    with (run / "metrics.jsonl").open("a") as file:
        for number in range(1, 501):
            file.write(line("seat", number, {"kl": 4.7e-8 * number, "grad_norm": 1e-9}, "coder"))
            file.write(line("round", number, {"paid_validity": 0.2, "valid_tests": 0.5, "book_hit_rate": 0.1}))
    page = folder / "report.html"
    assert main(["report", str(run), "-o", str(page), "--no-png"]) == 0
    return page


@pytest.mark.parametrize("width", [390, 768, 1440])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_five_hundred_rounds_are_readable_and_no_tick_is_cut_off(
    width: int, theme: str, browser: Any, long_run: Path, tmp_path: Path
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    page = context.new_page()
    page.goto(long_run.as_uri())
    shots = Path(os.environ.get("CODEA1_SCREENSHOTS", tmp_path))
    page.screenshot(path=shots / f"report-500-{width}-{theme}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert "2.0e-05" in page.locator(".tick").all_text_contents()
    cut = page.evaluate(
        """[...document.querySelectorAll('figure > svg')].flatMap(svg => [...svg.querySelectorAll('.tick')]
        .filter(tick => tick.getBoundingClientRect().left < svg.getBoundingClientRect().left - 0.5
          || tick.getBoundingClientRect().right > svg.getBoundingClientRect().right + 0.5)
        .map(tick => tick.textContent))"""
    )
    assert cut == []
    smallest = page.evaluate(
        "Math.min(...[...document.querySelectorAll('.tick')].map(tick => tick.getBoundingClientRect().height))"
    )
    assert smallest >= 9  # pixels
    context.close()


@pytest.mark.parametrize("width", [1440, 1920])
def test_a_wide_screen_is_used(width: int, browser: Any, long_run: Path) -> None:
    context = browser.new_context(viewport={"width": width, "height": 1000})
    page = context.new_page()
    page.goto(long_run.as_uri())
    rows = page.evaluate(
        """[...document.querySelectorAll('.charts')].map(charts => [...charts.children]
        .map(each => each.getBoundingClientRect())).map(boxes => (Math.max(...boxes.map(box => box.right))
        - Math.min(...boxes.map(box => box.left))) / innerWidth)"""
    )
    assert len(rows) >= 3
    assert min(share for share, count in zip(rows, charts_of(page), strict=True) if count > 1) > 0.65
    context.close()


def charts_of(page: Any) -> list[int]:
    return list(page.evaluate("[...document.querySelectorAll('.charts')].map(charts => charts.children.length)"))


def test_nothing_that_a_run_says_runs_or_asks_for_anything(browser: Any, compared: Path) -> None:
    context = browser.new_context()
    page = context.new_page()
    complaints: list[str] = []
    requests: list[str] = []
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(compared.as_uri())
    assert "<script>alert(1)</script>" in page.inner_text("body"), "it is shown as text"
    assert page.evaluate("document.querySelectorAll('script, img, iframe, object, form, base').length") == 0
    assert complaints == []
    assert requests == [compared.as_uri()]
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_a_report(theme: str, browser: Any, compared: Path, axe: Any) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme=theme, bypass_csp=True)
    page = context.new_page()
    page.goto(compared.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    axe(page)
    context.close()
