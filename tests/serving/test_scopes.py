"""Every route of the whole app with every scope, none and a guessed token, and from foreign places: one table."""

import asyncio
import json
import re
from urllib.parse import urlencode

import aiohttp
import pytest
from starlette.routing import Mount

from recrawl.crawl.polite.side_requests import SideRequests
from recrawl.crawl.signals.tokens import SCOPES
from recrawl.serve import server
from recrawl.serve.health import starting_app

from .service import URLS, with_service

pytestmark = pytest.mark.slow

# The scope that each route under /v1 needs; admin has all of them.
TABLE = {
    ("GET", "/v1/budget"): "read",
    ("GET", "/v1/events"): "read",
    ("GET", "/v1/forecast"): "read",
    ("GET", "/v1/hosts"): "read",
    ("GET", "/v1/pages"): "read",
    ("GET", "/v1/sources"): "read",
    ("GET", "/v1/status"): "read",
    ("GET", "/v1/why"): "read",
    ("PATCH", "/v1/pages"): "admin",
    ("POST", "/v1/pages"): "admin",
    ("POST", "/v1/pages/remove"): "admin",
    ("POST", "/v1/pick"): "crawl",
    ("POST", "/v1/record"): "crawl",
    ("POST", "/v1/release"): "crawl",
    ("POST", "/v1/requests"): "signal",
    ("POST", "/v1/signals"): "signal",
    ("PUT", "/v1/budget"): "admin",
}

READ = {("GET", "/metrics"): "read", ("GET", "/changes.xml"): "read"}  # beside /v1, by a token too

# For everybody; status of a request without anything, and a part of its answer. IndexNow asks for a key and WebSub for
# an unguessable name.
OPEN = {
    ("GET", "/v1/openapi.json"): (200, '"openapi"'),
    ("GET", "/healthz"): (200, "ok\n"),
    ("GET", "/readyz"): (200, "ready\n"),
    ("GET", "/indexnow"): (400, "url"),
    ("POST", "/indexnow"): (400, "JSON"),
    ("GET", "/websub/{name}"): (404, "this was not asked for"),
    ("POST", "/websub/{name}"): (410, "there is no such subscription"),
    ("GET", "/sign-in"): (200, "Sign in"),
    ("POST", "/sign-in"): (403, "This token is not known"),
    ("POST", "/sign-out"): (303, ""),
    ("GET", "/static"): (200, "--"),
}

# Headers that a page in somebody's browser, or a name that leads to this machine, sends; refused on every route.
OUTSIDE = "crawl.example.org"  # public_url
FOREIGN = [
    ({"host": "evil.example"}, 421),
    ({"host": "evil.example:8321", "origin": "http://evil.example:8321"}, 421),
    ({"host": f"{OUTSIDE}.evil.example"}, 421),
    ({"host": ""}, 421),
    ({"origin": "https://evil.example"}, 403),
    ({"origin": "null"}, 403),
    ({"origin": f"https://{OUTSIDE}.evil.example"}, 403),
    ({"host": OUTSIDE, "origin": "https://evil.example"}, 403),
]

# By design, the host of public_url is served like this machine's, on every route: hubs call /websub, pings /indexnow,
# and people the dashboard through a proxy. They must have what the tables above say.
OURS = [{"host": OUTSIDE}, {"host": OUTSIDE, "origin": f"https://{OUTSIDE}"}, {"host": "localhost:8321"}]

# Pages of the dashboard: a session is needed, which tokens with the scopes read and admin open.
VIEWS = ["/", "/add", "/budget", "/feed", "/freshness", "/hosts", "/page", "/parts/tiles", "/settings"]
VIEWS += ["/signals", "/stale", "/workers"]
FORMS = ["/add", "/page", "/settings"]  # a session by the scope admin
BOARD = {("GET", path): "read" for path in VIEWS} | {("POST", path): "admin" for path in FORMS}
FILES = {"/static": "/static/dashboard.css", "/websub/{name}": "/websub/guess"}


def all_routes(app):
    """(method, path) of every route of an app, whatever it is nested in; a mount is one with the method GET."""
    found = []
    for route in app.routes:
        if isinstance(route, Mount):
            found.append(("GET", route.path))
        elif (inner := getattr(route, "original_router", None)) is not None:
            found += all_routes(inner)
        else:
            found += [(method, route.path) for method in sorted(route.methods - {"HEAD"})]
    return found


@pytest.fixture
def apps(monkeypatch):
    """All apps that are built, with routes for hubs."""
    built, build = [], server.build_app
    monkeypatch.setattr(server, "build_app", lambda context: built.append(build(context)) or built[-1])
    monkeypatch.setattr(SideRequests, "can_post", property(lambda _: True))
    return built


def with_app(test, path):
    with_service(test, path, public_url=f"https://{OUTSIDE}")


def test_no_route_is_left_out_of_the_tables(tmp_path, apps):
    async def test(one):
        found = all_routes(apps[0])
        assert len(found) == len(set(found))
        assert set(found) == {*TABLE, *READ, *OPEN, *BOARD}
        assert len(found) == sum(map(len, (TABLE, READ, OPEN, BOARD))), "each is in one table"

    with_app(test, tmp_path)


async def status_of(one, method, path, token=None, **more):
    """The status of an answer, and where it leads; what it says is not read."""
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    url = one.url + FILES.get(path, path)
    async with one.client.request(method, url, headers=headers, allow_redirects=False, **more) as answer:
        return answer.status, answer.headers.get("location", "")


def tokens_of(one):
    """Texts of tokens by scope; None has none."""
    return {None: None, "guess": "x" * 43, **{scope: one.tokens[scope] for scope in SCOPES}}


def test_every_route_that_needs_a_token(tmp_path, apps):
    async def test(one):
        found = {(e.method, e.path): e.scope for e in one.service.endpoints()}
        assert found == TABLE, "endpoints say what they need"
        for (method, path), needed in (TABLE | READ).items():
            for scope, token in tokens_of(one).items():
                more = {} if method == "GET" else {"json": {}}
                status, _ = await status_of(one, method, path, token, **more)
                if scope in (needed, "admin"):
                    allowed = (200,) if path == "/v1/events" else (200, 422)
                    assert status in allowed, (method, path, scope, "allowed, though nothing may be asked")
                else:
                    assert status == (401 if scope in (None, "guess") else 403), (method, path, scope)
        _, document = await one.call("GET", "/v1/openapi.json", scope=None)
        described = {
            (m.upper(), path): op["x-scope"] for path, ops in document["paths"].items() for m, op in ops.items()
        }
        assert described == TABLE

    with_app(test, tmp_path)


def test_every_route_for_everybody(tmp_path, apps):
    async def test(one):
        for (method, path), (expected, part) in OPEN.items():
            for scope, token in tokens_of(one).items():
                headers = {} if token is None else {"authorization": f"Bearer {token}"}
                url = one.url + FILES.get(path, path)
                async with one.client.request(method, url, headers=headers, allow_redirects=False) as answer:
                    status, text = answer.status, await answer.text()
                assert status == expected, (method, path, scope, "a token changes nothing")
                assert part in text, (method, path)
                assert (token or "never") not in text
                assert not [url for url in URLS if url in text and path != "/v1/openapi.json"], "nothing of the crawl"

    with_app(test, tmp_path)


def test_every_route_refuses_foreign_hosts_and_origins(tmp_path, apps):
    """With all that would open the route: a token that may do everything, and a session."""

    async def test(one):
        cookie, csrf = await signed_in(one, one.tokens["admin"])
        opened = {"authorization": f"Bearer {one.tokens['admin']}", "cookie": cookie, "x-csrf-token": csrf}

        async def asked(method, path, headers):
            url = one.url + FILES.get(path, path)
            more = {} if method == "GET" else {"data": "{}"}
            headers = {**opened, "content-type": "application/json", **headers}
            async with one.client.request(method, url, headers=headers, allow_redirects=False, **more) as answer:
                ends = path != "/v1/events" or answer.status != 200
                return answer.status, await answer.text() if ends else "", answer.headers

        tables = {**TABLE, **READ, **BOARD, **OPEN}
        assert len(tables) == len(all_routes(apps[0]))
        before = state_of(one)
        for method, path in tables:
            for headers, expected in FOREIGN:
                status, text, said = await asked(method, path, headers)
                assert status == expected, (method, path, headers)
                assert said["content-type"] == "application/problem+json"
                assert not {"set-cookie", "access-control-allow-origin"} & {name.lower() for name in said}
                assert json.loads(text)["status"] == expected
                assert not [word for word in (*URLS, *opened.values()) if word in text]
        assert state_of(one) == before
        for method, path in sorted(tables, key=lambda route: route[1] == "/sign-out"):  # it ends the session
            plain = await asked(method, path, {})
            for headers in OURS:
                status, *_ = await asked(method, path, headers)
                assert status == plain[0], (method, path, headers)

    with_app(test, tmp_path)


def state_of(one):
    """What requests change."""
    return one.live.crawler.engine.state()["counts"], len(one.live.crawler.engine), one.live.settings, one.desk.n_held


def test_a_service_that_starts_refuses_foreign_hosts_and_origins():
    async def test():
        app = starting_app(f"https://{OUTSIDE}")
        assert {path for _, path in all_routes(app)} == {"/healthz", "/readyz", "/static", "/{path:path}"}
        started = server.HttpServer(app, "127.0.0.1:0")
        await started.start()
        try:
            async with aiohttp.ClientSession() as client:
                for path in ("/healthz", "/readyz", "/static/dashboard.css", "/", "/v1/status"):
                    for headers, expected in FOREIGN:
                        async with client.get(started.url + path, headers=headers) as answer:
                            assert answer.status == expected, (path, headers)
                    for headers in OURS:
                        async with client.get(started.url + path, headers=headers) as answer:
                            assert answer.status == (200 if path[1:2] in ("h", "s") else 503), (path, headers)
        finally:
            await started.close()

    asyncio.run(test())


async def signed_in(one, token):
    """The cookie of a session by a token, None if there is none, and the token of its forms."""
    data = urlencode({"token": token or "", "next": "/"})
    form = {"content-type": "application/x-www-form-urlencoded"}
    async with one.client.post(one.url + "/sign-in", data=data, headers=form, allow_redirects=False) as answer:
        one.client.cookie_jar.clear()
        if answer.status != 303:
            assert (answer.status, "set-cookie" in answer.headers) == (403, False)
            return None, ""
        cookie = answer.headers["set-cookie"].partition(";")[0]
    async with one.client.get(one.url + "/add", headers={"cookie": cookie}) as answer:
        csrf = re.search(r'name="csrf" value="([^"]+)"', await answer.text())
    return cookie, csrf[1] if csrf else ""


def test_every_route_of_the_dashboard(tmp_path, apps):
    async def test(one):
        for scope, token in tokens_of(one).items():
            cookie, csrf = await signed_in(one, token)
            assert (cookie is not None) == (scope in ("read", "admin")), scope
            for (method, path), needed in BOARD.items():
                status, goal = await status_of(one, method, path, token)
                assert (status, goal.partition("?")[0]) == (303, "/sign-in"), (method, path, scope, "no session")
                if cookie is None:
                    continue
                headers = {"cookie": cookie, "x-csrf-token": csrf}
                async with one.client.request(method, one.url + path, headers=headers) as answer:
                    status, text = answer.status, await answer.text()
                if scope in (needed, "admin"):
                    assert status in (200, 404, 422), (method, path, scope)
                else:
                    assert status == 403, (method, path, scope)
                    assert "may look only" in text, "its form is one of its session"

    with_app(test, tmp_path)
