"""The routes of the dashboard over a real socket: who may look, who may act, and what the pages say."""

import re
from html import escape
from html.parser import HTMLParser
from urllib.parse import quote

import pytest
import requests

from serving.dashboard.site import HACKED, SCRIPT

pytestmark = pytest.mark.slow

PAGE = "https://news.example.org/markets-today-1"
VIEWS = {
    "/": "Watched pages",
    "/?order=checked": "Watched pages",
    "/?order=stale": "Watched pages",
    "/?order=added": "Watched pages",
    "/?q=news": "Pages with “news”",
    "/?q=nothing-like-this": "No page has",
    "/stale": "Stalest important pages",
    "/freshness": "Freshness over time",
    "/budget": "you are here",
    "/hosts": "shop.example.org",
    "/signals": "Signals",
    "/feed": "Live",
    "/add": "Front page",
    "/settings": "Budget and rules",
    f"/page?url={quote(PAGE)}": "Markets today",
    f"/page?url={quote(HACKED, safe='')}": "window.hacked",
    "/parts/tiles": "Fresh now",
}
ACTIONS = ("/add", "/page", "/settings")


class Tags(HTMLParser):
    """The tags of a page, with their attributes."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, {name: value or "" for name, value in attrs}))


class Person(requests.Session):
    """Somebody with a browser."""

    def __init__(self, server):
        super().__init__()
        self.trust_env, self.server = False, server

    def request(self, method, url, **more):
        return super().request(method, self.server.url + url, timeout=300, **{**more, "allow_redirects": False})

    def sign_in(self, token):
        """Sign in; the answer."""
        return self.post("/sign-in", data={"token": token, "next": "/hosts"})

    def csrf(self):
        """The token of forms."""
        return re.search(r'name="csrf" value="([^"]+)"', self.get("/add").text)[1]

    def act(self, path, **fields):
        """Send a form as the pages do."""
        return self.post(path, data={"csrf": self.csrf(), **fields})


@pytest.fixture
def admin(board):
    server, tokens = board
    with Person(server) as person:
        assert person.sign_in(tokens["admin"]).status_code == 303
        yield person


@pytest.fixture
def reader(board):
    server, tokens = board
    with Person(server) as person:
        person.sign_in(tokens["read"])
        yield person


@pytest.mark.parametrize("path", VIEWS)
def test_every_view_is_shown_to_those_who_signed_in_alone(board, reader, path):
    with Person(board[0]) as stranger:
        refused = stranger.get(path)
        assert refused.status_code == 303
        assert refused.headers["location"].startswith("/sign-in")
        partial = stranger.get(path, headers={"hx-request": "true"})
        assert (partial.status_code, partial.headers["hx-redirect"]) == (401, "/sign-in")
        assert stranger.get(path, headers={"cookie": "recrawl_session=guess"}).status_code == 303
    answer = reader.get(path)
    assert answer.status_code == 200
    assert VIEWS[path] in answer.text
    assert answer.headers["content-security-policy"].startswith("default-src 'self';")
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", [path for path in VIEWS if not path.endswith("json")])
def test_no_view_has_a_script_a_style_or_a_handler_of_its_own(admin, path):
    text = admin.get(path).text
    assert SCRIPT not in text
    tags = Tags()
    tags.feed(text)
    for tag, given in tags.found:
        assert tag != "style"
        assert not [name for name in given if name == "style" or name.startswith(("on", "hx-on", "hx-vals"))]
        for name in ("src", "href", "action", "hx-get"):
            outside = given.get("rel") == "noreferrer noopener"
            assert outside or given.get(name, "/").startswith(("/", "#")), given
        assert tag != "script" or given["src"].startswith("/static/")


def test_a_title_with_a_script_is_text(admin):
    assert escape(SCRIPT) in admin.get(f"/page?url={quote(HACKED, safe='')}").text
    assert "&lt;script&gt;" in admin.get("/?q=forum").text


def test_signing_in_sets_a_strict_cookie_and_signing_out_ends_it(board):
    server, tokens = board
    with Person(server) as person:
        assert person.sign_in("wrong").status_code == 403
        assert not person.cookies
        done = person.sign_in(tokens["read"])
        assert (done.status_code, done.headers["location"]) == (303, "/hosts")
        cookie = done.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        kept = person.cookies["recrawl_session"]
        assert person.post("/sign-out").status_code == 303
        again = person.get("/", headers={"cookie": f"recrawl_session={kept}"})
        assert again.status_code == 303


def test_no_link_where_tokens_open_the_dashboard(board):
    assert board[0].link is None


@pytest.mark.parametrize("path", ACTIONS)
def test_actions_need_the_scope_admin_and_a_form_of_ours(board, admin, reader, path):
    fields = {"urls": "https://new.example.org/x", "kind": "pages", "url": PAGE, "do": "remove", "budget": "9/s"}
    with Person(board[0]) as stranger:
        assert stranger.post(path, data=fields).status_code == 303
    assert reader.post(path, data=fields).status_code == 403
    token = reader.get("/").text  # a reader has a form of its own, to sign out, and no other
    assert 'name="csrf"' not in token
    assert admin.post(path, data=fields).status_code == 403
    assert admin.post(path, data={**fields, "csrf": "wrong"}).status_code == 403
    right = {**fields, "csrf": admin.csrf()}
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"host": "evil.example"}):
        assert admin.post(path, data=right, headers=headers).status_code in (403, 421)
    assert "Markets today" in admin.get(f"/page?url={quote(PAGE)}").text


def test_pages_are_added_weighed_paused_and_removed(admin):
    urls = ["https://shop.example.org/fresh-1", "shop.example.org/fresh-2", PAGE]
    done = admin.act("/add", kind="pages", urls="\n".join(urls), importance="7")
    assert (done.status_code, done.headers["location"]) == (303, "/?order=added")
    listed = admin.get("/?order=added").text
    assert "2 pages added, 1 known already." in listed
    assert "https://shop.example.org/fresh-2" in listed
    goal = f"/page?url={quote(urls[0], safe='')}"
    assert "<dd>7</dd>" in admin.get(goal).text.replace("\n", "")
    for do, said in (("pause", "The page is paused."), ("resume", "is crawled again"), ("weigh", "importance is set")):
        assert admin.act("/page", url=urls[0], do=do, importance="2.5").headers["location"] == goal
        text = admin.get(goal).text
        assert said in text
        assert (">Resume<" in text) is (do == "pause")
    assert "<dd>2.5</dd>" in admin.get(goal).text.replace("\n", "")
    for url in ("https://shop.example.org/fresh-1", "https://shop.example.org/fresh-2"):
        assert admin.act("/page", url=url, do="remove").headers["location"] == "/"
    assert "is removed." in admin.get("/").text
    assert admin.get(goal).status_code == 404


def test_a_site_is_added_by_its_front_page(admin):
    done = admin.act("/add", kind="site", front="docs.example.org/", importance="1")
    assert done.status_code == 303
    assert "https://docs.example.org/* is followed" in admin.get("/").text
    assert admin.act("/page", url="https://docs.example.org/", do="remove").status_code == 303


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"kind": "pages", "urls": " \n"}, "there is no URL"),
        ({"kind": "pages", "urls": "https://ok.example/\nftp://x.example/"}, "line 2"),
        ({"kind": "site", "front": "<script>"}, "the front page"),
        ({"kind": "pages", "urls": "https://ok.example/", "importance": "-1"}, "importance is"),
        ({"kind": "pages", "urls": "https://ok.example/", "importance": "nan"}, "importance is"),
    ],
)
def test_what_cannot_be_added_is_named_and_nothing_is_added(admin, fields, why):
    part = {"hx-request": "true"}  # the list alone: tiles may be renewed meanwhile
    before = admin.get("/?q=ok.example", headers=part).text
    refused = admin.act("/add", **fields)
    assert refused.status_code == 422
    assert why in refused.text
    assert "<script>" not in refused.text
    assert admin.get("/?q=ok.example", headers=part).text == before


@pytest.mark.parametrize("fields", [{"do": "explode", "url": PAGE}, {"do": "pause", "url": "https://un.known/"}, {}])
def test_unknown_actions_are_refused(admin, fields):
    assert admin.act("/page", **fields).status_code == 422


def test_budget_and_rules_are_previewed_then_applied(board, admin):
    rules = '[[rule]]\nmatch = "https://news.example.org/*"\nimportance = 9\nheaders = { X-Key = "secret-of-news" }\n'
    seen = admin.act("/settings", budget="600/day", rules=rules, do="preview").text
    assert "300 → <strong>600</strong>" in seen
    assert "(2 times as many)" in seen
    assert "Freshness in the long run" in seen
    assert re.search(r"<dt>importance</dt><dd>11 pages", seen)
    assert board[0].live.settings.budget == "300/day"
    assert admin.act("/settings", budget="600/day", rules=rules, do="apply").status_code == 303
    shown = admin.get("/settings").text
    assert "written to recrawl.toml" in shown
    assert "secret-of-news" not in shown
    assert board[0].live.settings.budget == "600/day"
    assert board[0].live.crawler.budget.rate == pytest.approx(600 / 86400)
    text = board[0].file.read_text()
    assert text.startswith('# the crawl of the tests\nbudget = "600/day"\n')
    assert "secret-of-news" in text
    assert "by a rule" in admin.get(f"/page?url={quote(PAGE)}").text
    assert admin.act("/page", url=PAGE, do="weigh", importance="1").status_code == 422
    admin.act("/settings", budget="300/day", rules="", do="apply")
    assert board[0].live.settings.rule == ()


@pytest.mark.parametrize(
    "fields", [{"budget": "lots", "rules": ""}, {"budget": "1/s", "rules": "[[rule]]\nmatch = 3"}, {"rules": "x"}]
)
def test_settings_that_are_not_valid_are_refused(board, admin, fields):
    for do in ("preview", "apply"):
        refused = admin.act("/settings", do=do, **fields)
        assert refused.status_code == 422
        assert 'role="alert"' in refused.text
    assert board[0].live.settings.budget == "300/day"


def test_a_link_scales_the_budget_in_its_own_unit(board, admin):
    before = board[0].live.settings.budget
    amount, unit = before.split("/", 1)
    shown = {times: admin.get(f"/settings?times={times}").text for times in ("2", "1", "-1", "nan", "many", "")}
    assert f'value="{2 * float(amount):g}/{unit}"' in shown.pop("2")
    assert all(f'value="{before}"' in text for text in shown.values())


def test_the_tile_and_the_budget_count_the_same_requests(admin):
    texts = [" ".join(admin.get(path).text.split()) for path in ("/parts/tiles", "/budget")]
    tile = re.search(r"changes, ([\d,]+) requests, last day", texts[0])
    assert tile[1] == re.search(r"In the last day ([\d,]+) were made", texts[1])[1]


def test_the_page_of_a_change_shows_what_went_and_came(admin):
    text = admin.get(f"/page?url={quote(PAGE)}").text
    assert "<ins>" in text
    assert "<del>" in text
    assert "changes about every" in text
    assert re.search(r"<p class=.quiet.>\d+ crawls: \d+ changed, .* unchanged", text)
    assert '<span class="unseen">came: </span>' in text
    assert "Crawl value" in text


def test_pages_that_cannot_be_made_say_why(admin):
    assert admin.get("/?order=sideways").status_code == 422
    assert admin.get("/feed?kind=odd").status_code == 422
    assert admin.get("/?first=many").status_code == admin.get("/feed?after=x").status_code == 422
    assert admin.get("/?first=-5").status_code == admin.get("/?first=999999999").status_code == 200
    missing = admin.get("/page?url=" + quote("https://no.example/<script>"))
    assert missing.status_code == 404
    assert "<script>" not in missing.text.replace('<script src="/static/', "")
    assert admin.post("/add", data=b"\xff\xfe" * 10).status_code == 422
    assert admin.post("/add", data=b"x" * (3 << 20)).status_code == 413


@pytest.mark.parametrize(
    "name", ["dashboard.css", "dashboard.js", "icon.svg", "vendor/htmx.min.js", "vendor/uPlot.min.css"]
)
def test_static_files_are_served_and_nothing_else(board, name):
    with Person(board[0]) as person:
        assert person.get(f"/static/{name}").status_code == 200
        assert person.get("/static/../board.py").status_code == 404
        assert person.get("/static/%2e%2e/board.py").status_code == 404
