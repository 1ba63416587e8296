"""Actions of the dashboard: pages and sites are added, paused, weighed and removed by commands to the crawl."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from recrawl.crawl.listings.discovery import Site
from recrawl.crawl.run.commands import add_command, follow_command, pause_command, remove_command, set_command
from recrawl.crawl.urls import canonical
from recrawl.errors import ParameterError
from recrawl.model.pages import MOST_IMPORTANT
from recrawl.model.spans import count
from recrawl.serve.dashboard.board import Dashboard
from recrawl.serve.dashboard.gate import HEADERS, Form
from recrawl.serve.dashboard.html_route import HtmlRoute

MOST_URLS = 10_000  # of one form
Known = Callable[[Sequence[str]], Awaitable[list[bool]]]


def action_routes(board: Dashboard) -> APIRouter:
    """Routes that change something."""
    router = APIRouter(route_class=HtmlRoute, include_in_schema=False)
    crawl = board.crawl

    @router.get("/add")
    async def ask(request: Request) -> HTMLResponse:
        return board.page(request, board.gate.session(request), "add.html", given={}, problem="")

    @router.post("/add")
    async def add(request: Request) -> Response:
        session, form = await board.gate.form(request)
        try:
            commands, done = await added(form, crawl.known)
        except ParameterError as problem:
            return board.page(request, session, "add.html", status=422, given=form, problem=str(problem))
        await send(board, commands)
        session.messages.append(done)
        return _go("/?order=added")

    @router.post("/page")
    async def change(request: Request) -> Response:
        session, form = await board.gate.form(request)
        url, goal = form.get("url", ""), f"/page?url={quote(form.get('url', ''), safe='')}"
        if not (await crawl.known([url]))[0]:
            raise ParameterError(f"{url[:200]} is not a page of this database")
        what, rule = form.get("do", ""), crawl.settings.rules().of(url)
        if what == "remove":
            command, done, goal = remove_command([url]), f"{url} is removed.", "/"
        elif what in ("pause", "resume"):
            command = pause_command([url], paused=what == "pause")
            done = "The page is paused." if what == "pause" else "The page is crawled again when its turn comes."
            if what == "resume" and rule.never:
                raise ParameterError("a rule with never = true matches this page: change the rule")
        elif what == "weigh":
            command, done = set_command([url], importance_of(form)), "The importance is set."
            if rule.importance is not None:
                raise ParameterError("a rule gives the importance of this page: change the rule")
        else:
            raise ParameterError(f"do is {what[:40]!r}: must be pause, resume, weigh or remove")
        await send(board, [command])
        session.messages.append(done)
        return _go(goal)

    return router


def _go(goal: str) -> Response:
    return RedirectResponse(goal, 303, headers=HEADERS)


async def send(board: Dashboard, commands: Sequence[dict[str, Any]]) -> None:
    """Let the crawl do something; it is written when this returns."""
    await board.crawl.apply(commands)
    board.snapshots.expire()


async def added(form: Form, known: Known) -> tuple[list[dict[str, Any]], str]:
    """The commands of a form that adds pages or a site, and what is said of them."""
    weight = importance_of(form)
    if form.get("kind") == "site":
        front = _url(form.get("front", ""), "the front page")
        site = Site.of(front, weight)
        commands = [follow_command(site), add_command([front], weight)]
        return commands, f"{site.match} is followed: its pages are found by its sitemaps, feeds and links."
    lines = [line.strip() for line in form.get("urls", "").splitlines() if line.strip()]
    if not lines:
        raise ParameterError("there is no URL: write one per line")
    if len(lines) > MOST_URLS:
        raise ParameterError(f"there are {len(lines)} lines: at most {MOST_URLS} can be added at once")
    urls = list(dict.fromkeys(_url(line, f"line {k + 1}") for k, line in enumerate(lines)))
    new = [url for url, there in zip(urls, await known(urls), strict=True) if not there]
    known_already = f", {len(urls) - len(new)} known already" if len(new) < len(urls) else ""
    return [add_command(new, weight)] if new else [], f"{count(len(new), 'page')} added{known_already}."


def _url(text: str, where: str) -> str:
    text = text.strip()
    if text and "://" not in text and "." in text.partition("/")[0]:
        text = f"https://{text}"
    try:
        return canonical(text)
    except ParameterError as problem:
        raise ParameterError(f"{where}: {problem}") from None


def importance_of(form: Form) -> float:
    """The importance that a form gives, by default 1."""
    text = form.get("importance", "").strip() or "1"
    try:
        weight = float(text)
    except ValueError:
        weight = -1.0
    if not 0 <= weight <= MOST_IMPORTANT:
        raise ParameterError(f"importance is {text[:40]!r}: must be a number from 0 to {MOST_IMPORTANT:g}")
    return weight
