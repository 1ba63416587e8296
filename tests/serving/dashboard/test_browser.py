"""The dashboard in a real Chromium: every view, by width and scheme, by keyboard alone, and what axe-core finds.

`make test` looks at every view once; the other sizes and schemes, and axe-core, are marked `full`. axe-core comes from
npm and is no part of this repository: ``npm install axe-core`` in the project's folder, or AXE names its file.
"""

import json
import os
import shutil
from pathlib import Path
from urllib.parse import quote

import pytest

from serving.dashboard.site import HACKED

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no look at the dashboard")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: nobody looks at the dashboard"),
]

PAGE = "https://news.example.org/markets-today-1"
VIEWS = {
    "pages": "/",
    "search": "/?q=news",
    "nothing": "/?q=nothing-like-this",
    "page": f"/page?url={quote(PAGE)}",
    "hacked": f"/page?url={quote(HACKED, safe='')}",
    "missing": "/page?url=https%3A%2F%2Fno.example%2F",
    "stale": "/stale",
    "freshness": "/freshness",
    "budget": "/budget",
    "hosts": "/hosts",
    "signals": "/signals",
    "live": "/feed",
    "add": "/add",
    "settings": "/settings",
    "error": "/?order=sideways",
}
CHARTS = {"freshness": 3, "budget": 1}
SIZES = [(390, 844), (1280, 800)]
AXE = Path(os.environ.get("AXE", "node_modules/axe-core/axe.min.js"))
_OVERFLOW = """() => [...document.querySelectorAll('body *')].filter((one) => {
  const style = getComputedStyle(one), box = one.getBoundingClientRect();
  return box.width && box.right > innerWidth + 1 && style.position !== 'absolute' &&
    !one.closest('.scroll, .top nav, .diff, .skip, pre, .u-wrap, .strip');
}).map((one) => one.outerHTML.slice(0, 80))"""


class Browser:
    """A signed-in browser that remembers what went wrong in its pages."""

    def __init__(self, chromium, server, token):
        self.chromium, self.server, self.problems = chromium, server, []
        self.page = self.signed_in(token)

    def context(self, width=1280, height=800, scheme="light", **more):
        """A context of its own."""
        return self.chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **more)

    def signed_in(self, token, **looks):
        """A page of somebody who signed in with a token."""
        page = self.context(**looks).new_page()
        page.on("console", lambda said: self.problems.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda problem: self.problems.append(str(problem)))
        page.on("request", self._foreign)
        page.goto(f"{self.server.url}/sign-in")
        page.fill("#token", token)
        page.keyboard.press("Enter")
        page.wait_for_url(f"{self.server.url}/")
        return page

    def _foreign(self, request):
        if not request.url.startswith((self.server.url, "data:")):
            self.problems.append(f"request to {request.url}")

    def look(self, page, name):
        """Open a view; its charts are drawn, nothing sticks out, nothing went wrong, no script of a title has run."""
        self.problems.clear()
        answer = page.goto(self.server.url + VIEWS[name])
        if name in CHARTS:
            page.wait_for_function(f"document.querySelectorAll('.uplot canvas').length >= {CHARTS[name]}")
        expected = [one for one in self.problems if f"status of {answer.status}" not in one or answer.status < 400]
        assert expected == []
        assert page.evaluate(_OVERFLOW) == []
        assert page.evaluate("window.hacked") is None
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.locator("h1").count() == 1


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
    page.wait_for_selector("text=https://live.example.org/<b>now</b>", timeout=30_000)
    assert page.locator(".feed-list b").count() == 0


def test_a_dashboard_without_its_server_says_so(browser):
    page = browser.page
    page.goto(f"{browser.server.url}/feed")
    page.route("**/feed**", lambda route: route.abort())
    page.wait_for_selector("text=The crawl does not answer.", timeout=30_000)
    page.unroute("**/feed**")
    page.wait_for_selector("#lost", state="detached", timeout=30_000)


@pytest.mark.full
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES, ids=["phone", "desk"])
def test_every_size_and_scheme(browser, board, size, scheme):
    page = browser.signed_in(board[1]["admin"], width=size[0], height=size[1], scheme=scheme)
    for name in VIEWS:
        browser.look(page, name)
    page.context.close()


@pytest.mark.full
@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not there: npm install axe-core, or AXE names axe.min.js")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES, ids=["phone", "desk"])
def test_axe_finds_no_serious_problem(browser, board, size, scheme):
    context = browser.context(*size, scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(f"{browser.server.url}/sign-in")
    views = {"sign-in": "/sign-in", **VIEWS}
    found = _axe(page, "sign-in")
    page.fill("#token", board[1]["admin"])
    page.keyboard.press("Enter")
    page.wait_for_url(f"{browser.server.url}/")
    for name, path in list(views.items())[1:]:
        page.goto(browser.server.url + path)
        if name in CHARTS:
            page.wait_for_selector(".uplot canvas")
        found += _axe(page, name)
    context.close()
    assert found == []


def _axe(page, name):
    page.add_script_tag(path=str(AXE))
    result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    bad = [one for one in result["violations"] if one["impact"] in ("serious", "critical")]
    return [f"{name}: {one['id']}: {json.dumps([node['html'] for node in one['nodes']])[:300]}" for one in bad]
