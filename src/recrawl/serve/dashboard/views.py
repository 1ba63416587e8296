"""The views of the dashboard: what can be looked at."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from recrawl.crawl.polite.unspent import WHY
from recrawl.crawl.urls import canonical
from recrawl.errors import ParameterError
from recrawl.serve.crawls.view import KINDS, Snapshot
from recrawl.serve.dashboard.board import Dashboard
from recrawl.serve.dashboard.charts import changes_chart, curve_chart, freshness_chart, requests_chart
from recrawl.serve.dashboard.html_route import HtmlRoute
from recrawl.serve.dashboard.pages.page_facts import page_facts
from recrawl.serve.dashboard.pages.page_lists import ORDERS, PART
from recrawl.serve.problems import ProblemError

_DAY = 86400.0
_MOST = 100_000  # rows that can be paged through
_SHOWN = 100  # crawls of the live feed
_OLD = 600.0  # seconds: figures that old are not shown at the top while new ones are computed


def view_routes(board: Dashboard) -> APIRouter:
    """Routes that change nothing."""
    router = APIRouter(route_class=HtmlRoute, include_in_schema=False)
    _add_pages(router, board)
    _add_figures(router, board)
    return router


def _add_pages(router: APIRouter, board: Dashboard) -> None:
    """Views of single pages and crawls."""

    @router.get("/")
    async def overview(request: Request, order: str = "changed", q: str = "", first: int = 0) -> HTMLResponse:
        session = board.gate.session(request)
        first = min(max(first, 0), _MOST)
        listed = await board.lists.listed(order, q[:500], first)
        template = "parts/list.html" if "hx-request" in request.headers else "overview.html"
        values: dict[str, Any] = {"listed": listed, "order": order, "q": q, "orders": ORDERS, "part": PART}
        return board.page(request, session, template, tiles=tiles(board), **values)

    @router.get("/parts/tiles")
    async def tiles_part(request: Request) -> HTMLResponse:
        return board.page(request, board.gate.session(request), "parts/tiles.html", tiles=tiles(board))

    @router.get("/page")
    async def page(request: Request, url: str = "") -> HTMLResponse:
        session = board.gate.session(request)
        facts = await page_facts(board.crawl, board.titles, _canonical(url))
        if facts is None:
            return board.page(request, session, "no_page.html", status=404, url=url)
        return board.page(request, session, "page.html", page=facts)

    @router.get("/feed")
    async def feed(request: Request, kind: str = "", after: int = 0) -> Response:
        session = board.gate.session(request)
        if kind and kind not in KINDS:
            raise ProblemError(422, f"kind must be one of {', '.join(KINDS)}")
        recent = await board.crawl.recent()
        crawls = [one for one in recent if one.number > after][:_SHOWN]
        last = recent[0].number if recent else 0
        partial = "hx-request" in request.headers
        template = "parts/feed.html" if partial else "feed.html"
        values: dict[str, Any] = {"kind": kind, "kinds": KINDS, "last": last}
        values["crawls"] = [one for one in crawls if kind in ("", one.kind)]
        return board.page(request, session, template, **values)


def _add_figures(router: APIRouter, board: Dashboard) -> None:
    """Views of all pages together, from the last snapshot."""

    @router.get("/freshness")
    async def freshness(request: Request) -> HTMLResponse:
        session, snapshot = board.gate.session(request), board.snapshots.get()
        charts = {} if snapshot is None else _charts(board, snapshot)
        values: dict[str, Any] = {
            "snapshot": snapshot,
            "error": board.snapshots.error,
            "charts": charts,
            "tiles": tiles(board),
        }
        return board.page(request, session, "freshness.html", **values)

    @router.get("/budget")
    async def budget(request: Request) -> HTMLResponse:
        session, snapshot = board.gate.session(request), board.snapshots.get()
        curve = [] if snapshot is None else snapshot.curve
        values: dict[str, Any] = {"snapshot": snapshot, "error": board.snapshots.error, "curve": curve, "reasons": WHY}
        return board.page(request, session, "budget.html", chart=curve_chart(curve), tiles=tiles(board), **values)

    @router.get("/hosts")
    async def hosts(request: Request) -> HTMLResponse:
        session, snapshot = board.gate.session(request), board.snapshots.get()
        rows = [] if snapshot is None else host_rows(board, snapshot)
        values: dict[str, Any] = {"snapshot": snapshot, "error": board.snapshots.error, "rows": rows}
        return board.page(request, session, "hosts.html", **values)

    @router.get("/signals")
    async def signals(request: Request) -> HTMLResponse:
        session, snapshot = board.gate.session(request), board.snapshots.get()
        return board.page(request, session, "signals.html", snapshot=snapshot, error=board.snapshots.error)

    @router.get("/stale")
    async def stale(request: Request) -> HTMLResponse:
        session, snapshot = board.gate.session(request), board.snapshots.get()
        urls = [] if snapshot is None else [one["url"] for one in snapshot.stalest[:PART]]
        rows = await board.lists.rows(urls)
        return board.page(request, session, "stale.html", rows=rows, snapshot=snapshot, error=board.snapshots.error)

    @router.get("/workers")
    async def workers(request: Request) -> HTMLResponse:
        session = board.gate.session(request)
        template = "parts/workers.html" if "hx-request" in request.headers else "workers.html"
        return board.page(request, session, template, cluster=board.crawl.workers())


def _canonical(url: str) -> str:
    try:
        return canonical(url)
    except ParameterError:
        return url


def _charts(board: Dashboard, snapshot: Snapshot) -> dict[str, Any]:
    rate = board.crawl.budget().rate
    return {
        "freshness": freshness_chart(snapshot.history, snapshot.audits),
        "requests": requests_chart(snapshot.history, rate),
        "changes": changes_chart(snapshot.history),
    }


def tiles(board: Dashboard) -> dict[str, Any]:
    """The figures at the top: freshness, budget use, changes, trouble; those of all pages from the last snapshot."""
    snapshot, tallies, budget = board.snapshots.get(), board.crawl.tallies(), board.crawl.budget()
    renewing = board.snapshots.busy
    if snapshot is not None and renewing and board.crawl.clock.now() - snapshot.at > _OLD:
        snapshot = None
    found: dict[str, Any] = {
        "snapshot_at": None if snapshot is None else snapshot.at,
        "error": board.snapshots.error,
        "renewing": renewing,
        "pages": tallies.pages,
        "failing": tallies.failing,
        "gone": tallies.gone,
        "budget": budget.text or board.crawl.settings.budget,
        "per_day": budget.rate * _DAY,
        "run": tallies,
        "fresh": None,
        "comparisons": 0,
        "needed": 0,
        "audit": None,
        "used": None,
        "requests": 0,  # counted against the budget in the last day
        "changes": 0,  # found in the last day
    }
    if snapshot is None:
        return found
    status = snapshot.status
    spent = status["unspent_last_day"]
    allowed = spent["requests"] + spent["unspent"]
    return found | {
        "fresh": status["freshness"],
        "so_far": status["freshness_so_far"],
        "comparisons": status["comparisons"],
        "needed": status["comparisons_needed"],
        "audit": snapshot.audits[-1] if snapshot.audits else None,
        "verdict": status["verdict"],
        "used": spent["requests"] / allowed if allowed else None,
        "requests": spent["requests"],
        "changes": status["changes_last_day"],
    }


def host_rows(board: Dashboard, snapshot: Snapshot) -> list[dict[str, Any]]:
    """Hosts with their rate, errors, delay, and the share of their time that is used."""
    trouble = {one["host"].partition(":")[0]: one for one in snapshot.status["hosts"]}
    took = board.crawl.host_seconds()
    rows = []
    for one in snapshot.status["load"]["hosts"]:
        bad = trouble.pop(one["host"], None)
        saturation = min(one["requests_last_hour"] * max(one["delay"], 1e-9) / 3600.0, 1.0)
        rows.append({**one, "trouble": bad, "saturation": saturation, "took": took.get(one["host"])})
    for host, bad in trouble.items():
        silent = {"host": host, "requests_last_hour": 0, "requests_last_day": 0, "budget_share": 0.0, "delay": None}
        silent |= {"held_until": bad["left_alone_until"], "budget": None, "budget_used": None}
        rows.append({**silent, "trouble": bad, "saturation": 0.0, "took": None})
    return rows
