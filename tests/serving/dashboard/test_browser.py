"""The dashboard in a real Chromium: every view, by width and scheme, by keyboard alone, and what axe-core finds.

`make test` looks at every view once; the other sizes and schemes are marked `full`. axe-core comes from npm and is no
part of this repository: ``npm install axe-core`` in the project's folder, or AXE names its file. `.ci/run` fetches it.
"""

import asyncio
import threading
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from recrawl.serve import HttpServer
from recrawl.serve.health import starting_app
from serving.dashboard.browser import (
    CHARTS,
    CHROMIUM,
    PAGE,
    VIEWS,
    Browser,
    needs_axe,
    needs_chromium,
    playwright,
    problems_of,
)

pytestmark = [pytest.mark.slow, needs_chromium]

SIZES = [(390, 844), (1280, 800)]
LOOKS = [
    pytest.param((1280, 800), "light", id="desk-light"),
    pytest.param((1280, 800), "dark", id="desk-dark", marks=pytest.mark.full),
    pytest.param((390, 844), "light", id="phone-light", marks=pytest.mark.full),
    pytest.param((390, 844), "dark", id="phone-dark", marks=pytest.mark.full),
]


@pytest.fixture(scope="module")
def browser(board):
    server, tokens = board
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield Browser(chromium, server, tokens["admin"])
        chromium.close()


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_is_whole(browser, name):
    browser.look(browser.page, name)


def test_figures_appear_when_they_are_computed(browser, monkeypatch):
    page, board = browser.page, browser.server.board
    empty = SimpleNamespace(get=lambda: None, error=None, busy=True)
    with monkeypatch.context() as patch:
        patch.setattr(board, "snapshots", empty)
        page.goto(f"{browser.server.url}/budget")
        assert "being computed" in page.locator("[role=status]").inner_text()
    page.wait_for_selector(".uplot canvas")
    assert "times the budget" in page.locator("#answer").inner_text()


def test_the_slider_says_what_twice_the_budget_buys(browser):
    page = browser.page
    page.goto(f"{browser.server.url}/budget")
    page.wait_for_selector(".uplot canvas")
    answer = page.locator("#answer")
    assert "2.0 times the budget, 600 requests a day: freshness" in answer.inner_text()
    page.focus("#factor")
    page.keyboard.press("Home")
    assert "0.10 times the budget, 30 requests a day" in answer.inner_text()
    page.keyboard.press("End")
    assert "10 times the budget, 3,000 requests a day" in answer.inner_text()
    page.click("#use-budget")
    assert page.input_value("#budget") == "3000/day"
    page.goto(f"{browser.server.url}/settings?times=0.25")
    assert page.input_value("#budget") == "75/day"


def test_everything_can_be_done_by_keyboard_alone(browser):
    page, press = browser.page, browser.page.keyboard.press
    page.goto(browser.server.url)
    press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    press("/")
    page.keyboard.type("markets")
    press("Enter")
    page.wait_for_url("**/?q=markets**")
    _tab_to(page, "Markets today")
    press("Enter")
    page.wait_for_url("**/page?url=**")
    _tab_to(page, "Pause")
    press("Enter")
    page.wait_for_selector("text=The page is paused.")
    _tab_to(page, "Resume")
    press("Enter")
    page.wait_for_selector("text=is crawled again")
    press("/")
    _tab_to(page, "Add")
    press("Enter")
    page.wait_for_url("**/add")
    _tab_to(page, "", "urls")
    page.keyboard.type("https://shop.example.org/by-keyboard")
    _tab_to(page, "Add these pages")
    press("Enter")
    page.wait_for_selector("text=1 page added.")
    _tab_to(page, "https://shop.example.org/by-keyboard")
    press("Enter")
    page.wait_for_url("**/page?url=**")
    _tab_to(page, "Remove …")
    press("Enter")
    _tab_to(page, "Remove this page")
    press("Enter")
    page.wait_for_selector("text=is removed.")


def test_a_session_by_keyboard_alone(browser, board):
    """Sign in, weigh a page, add a site, change the settings, hold the live feed, sign out: no mouse."""
    context = browser.context()
    page, url = context.new_page(), browser.server.url
    press, write = page.keyboard.press, page.keyboard.type
    page.goto(f"{url}/page?url={quote(PAGE)}")
    write(board[1]["admin"])  # the field of the token has the focus
    press("Enter")
    page.wait_for_url("**/page?url=**")
    _tab_to(page, "", "importance")
    press("Control+A")
    write("7")
    press("Enter")
    page.wait_for_selector("text=importance is set")
    _tab_to(page, "Add")
    press("Enter")
    page.wait_for_url("**/add")
    _tab_to(page, "", "front")
    write("https://shop.example.org/")
    press("Enter")
    page.wait_for_selector("text=is followed")
    _open(page, "Budget", "/budget")
    page.wait_for_selector(".uplot canvas")
    _tab_to(page, "", "factor")
    press("Home")
    assert "0.10 times the budget" in page.locator("#answer").inner_text()
    _tab_to(page, "The same as a table")
    press("Enter")
    page.wait_for_selector("text=you are here", state="visible")
    _open(page, "Settings", "/settings")
    _tab_to(page, "", "budget")
    press("Control+A")
    write("310/day")
    _tab_to(page, "Preview")
    press("Enter")
    page.wait_for_selector(".preview")
    _tab_to(page, "Apply")
    press("Enter")
    page.wait_for_selector("text=The crawl uses the budget")
    assert browser.server.live.settings.budget == "310/day"
    _open(page, "Live", "/feed")
    _tab_to(page, "Pause")
    press("Enter")
    assert page.get_attribute("#feed-pause", "aria-pressed") == "true"
    _tab_to(page, "Sign out")
    press("Enter")
    page.wait_for_url("**/sign-in")
    assert not [one for one in context.cookies() if one["name"] == "recrawl_session"]
    context.close()
    old = replace(browser.server.live.settings, budget="300/day")
    browser.server.call(browser.server.live.reload(lambda: old))


def _open(page, name, path):
    """Go to a view by its link in the navigation."""
    _tab_to(page, name)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{path}")


def _tab_to(page, text, name=""):
    """Press Tab until an element with a text, or of an id, has the focus, which can be seen."""
    for _ in range(150):
        page.keyboard.press("Tab")
        said, own = page.evaluate("[document.activeElement.innerText?.trim() ?? '', document.activeElement.id]")
        if (text and said == text) or (name and own == name):
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
            return
    raise AssertionError(f"Tab never reaches {text or name}")


def test_live_crawls_appear_by_themselves(browser):
    page = browser.page
    page.goto(f"{browser.server.url}/feed")
    recent = browser.server.live.crawler.components.report
    from recrawl.store.protocol import Outcome

    outcome = Outcome("https://live.example.org/<b>now</b>", 1.0, status=200, changed=True)

    async def report():
        for listener in recent.listeners:
            listener("crawled", {"outcome": outcome})

    browser.server.call(report())
    page.wait_for_selector("text=https://live.example.org/<b>now</b>", timeout=300_000)
    assert page.locator(".feed-list b").count() == 0


def test_a_dashboard_without_its_server_says_so(browser):
    page = browser.page
    page.goto(f"{browser.server.url}/feed")
    page.route("**/feed**", lambda route: route.abort())
    page.wait_for_selector("text=The crawl does not answer.", timeout=300_000)
    page.unroute("**/feed**")
    page.wait_for_selector("#lost", state="detached", timeout=300_000)


@pytest.mark.full
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES, ids=["phone", "desk"])
def test_every_size_and_scheme(browser, board, size, scheme):
    page = browser.signed_in(board[1]["admin"], width=size[0], height=size[1], scheme=scheme)
    for name in VIEWS:
        browser.look(page, name)
    page.context.close()


@needs_axe
@pytest.mark.parametrize(("size", "scheme"), LOOKS)
def test_axe_finds_no_serious_problem(browser, board, size, scheme):
    context = browser.context(*size, scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(f"{browser.server.url}/sign-in")
    views = {"sign-in": "/sign-in", **VIEWS}
    found = problems_of(page, "sign-in")
    page.fill("#token", board[1]["admin"])
    page.keyboard.press("Enter")
    page.wait_for_url(f"{browser.server.url}/")
    for name, path in list(views.items())[1:]:
        page.goto(browser.server.url + path)
        if name in CHARTS:
            page.wait_for_selector(".uplot canvas")
        found += problems_of(page, name)
    context.close()
    assert found == []


@contextmanager
def starting():
    """The server while a crawl is loaded, in a thread of its own; its URL."""
    loop, begun, url = asyncio.new_event_loop(), threading.Event(), []

    async def serve():
        server = HttpServer(starting_app(), "127.0.0.1:0")
        await server.start()
        url.append(server.url)
        ended.append(asyncio.Event())
        begun.set()
        await ended[0].wait()
        await server.close()

    ended = []
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert begun.wait(60)
    try:
        yield url[0]
    finally:
        loop.call_soon_threadsafe(ended[0].set)
        thread.join()
        loop.close()


@needs_axe
@pytest.mark.parametrize(("size", "scheme"), LOOKS)
def test_axe_finds_no_serious_problem_while_the_crawl_starts(browser, size, scheme):
    context = browser.context(*size, scheme, bypass_csp=True)
    with starting() as url:
        page = context.new_page()
        page.goto(url)
        assert "recrawl starts" in page.locator("h1").inner_text()
        assert problems_of(page, "starting") == []
    context.close()
