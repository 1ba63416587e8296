"""A browser that looks at views of the dashboard: a real Chromium, signed in, that remembers what went wrong."""

import json
import os
import shutil
from pathlib import Path
from urllib.parse import quote

import pytest

from serving.dashboard.site import HACKED

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no look at the dashboard")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: nobody looks at the dashboard")

AXE = Path(os.environ.get("AXE", "node_modules/axe-core/axe.min.js"))
needs_axe = pytest.mark.skipif(
    not AXE.is_file(), reason="axe-core is not there: npm install axe-core, or AXE names axe.min.js"
)

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
    "workers": "/workers",
    "error": "/?order=sideways",
}
CHARTS = {"freshness": 3, "budget": 1}
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
        """A context of its own; it waits long, because the machine may be busy."""
        made = self.chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **more)
        made.set_default_timeout(300_000)
        return made

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


def problems_of(page, name):
    """The serious problems that axe-core finds in a page, of a context that bypasses its policy for scripts."""
    page.add_script_tag(path=str(AXE))
    result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    bad = [one for one in result["violations"] if one["impact"] in ("serious", "critical")]
    return [f"{name}: {one['id']}: {json.dumps([node['html'] for node in one['nodes']])[:300]}" for one in bad]
