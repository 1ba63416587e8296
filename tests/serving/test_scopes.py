"""Every route of the whole app with every scope, none and a guessed token: what each answers is one table."""

import re
from urllib.parse import urlencode

import pytest
from starlette.routing import Mount

from recrawl.crawl.polite.side_requests import SideRequests
from recrawl.crawl.signals.tokens import SCOPES
from recrawl.serve import server

from .service import with_service

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

# For everybody; status of a request without anything. IndexNow asks for a key and WebSub for an unguessable name.
OPEN = {
    ("GET", "/v1/openapi.json"): 200,
    ("GET", "/healthz"): 200,
    ("GET", "/readyz"): 200,
    ("GET", "/indexnow"): 400,
    ("POST", "/indexnow"): 400,
    ("GET", "/websub/{name}"): 404,
    ("POST", "/websub/{name}"): 410,
    ("GET", "/sign-in"): 200,
    ("POST", "/sign-in"): 403,
    ("POST", "/sign-out"): 303,
    ("GET", "/static"): 200,
}

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
    with_service(test, path, public_url="https://crawl.example.org")


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
        for (method, path), expected in OPEN.items():
            for scope, token in tokens_of(one).items():
                status, _ = await status_of(one, method, path, token)
                assert status == expected, (method, path, scope, "a token changes nothing")

    with_app(test, tmp_path)


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
