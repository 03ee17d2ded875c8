"""The documentation site in a real browser: everybody can read it, it fits the window, and it asks for nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser
SITE = Path(__file__).parents[1] / "site"
PAGES = (
    "index.html",
    "quick-start.html",
    "environment.html",
    "training.html",
    "results.html",
    "command-line.html",
    "first-duel.html",
    "api/arena.html",
)
SIZES = ((360, 740), (768, 1024), (1440, 900))


@pytest.fixture(params=PAGES)
def address(request: pytest.FixtureRequest) -> str:
    if not (SITE / "index.html").is_file():
        pytest.skip("the site is not built: make docs")
    return (SITE / request.param).as_uri()


@pytest.fixture(params=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def page(theme: str, browser: Any) -> Iterator[Any]:
    context = browser.new_context(color_scheme=theme, reduced_motion="reduce")
    yield context.new_page()
    context.close()


def test_the_search_finds_pages_from_disk(browser: Any) -> None:
    if not (SITE / "index.html").is_file():
        pytest.skip("the site is not built: make docs")
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((SITE / "index.html").as_uri())
    page.click("[name=query]")
    page.keyboard.type("Mistake Book")
    page.wait_for_selector(".md-search-result__item a", timeout=10_000)
    addresses = page.eval_on_selector_all(".md-search-result__item a", "links => links.map(link => link.href)")
    assert len(addresses) > 3
    assert all(address.startswith(SITE.as_uri()) for address in addresses)
    page.locator(".md-search-result__item a").first.click()
    page.wait_for_url(lambda address: "index.html" not in address)
    assert complaints == []
    context.close()


def test_axe_finds_nothing_serious_on_the_site(page: Any, address: str, axe: Any) -> None:
    page.goto(address)
    axe(page)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_no_page_is_wider_than_its_window(
    page: Any, theme: str, address: str, width: int, height: int, tmp_path: Path
) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.goto(address)
    shots = Path(os.environ.get("CODEA1_SCREENSHOTS", tmp_path))
    page.screenshot(path=shots / f"site-{Path(address).stem}-{width}-{theme}.png")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_page_asks_for_nothing_but_the_sites_own_files(page: Any, address: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.wait_for_load_state("networkidle")
    assert asked
    assert [url for url in asked if not url.startswith((SITE.as_uri(), "data:"))] == []
