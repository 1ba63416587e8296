"""The routes of the dashboard: views, actions, sign-in and static files."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from recrawl.serve.dashboard.actions import action_routes
from recrawl.serve.dashboard.board import Dashboard
from recrawl.serve.dashboard.gate import COOKIE, HEADERS, local_path, read_form
from recrawl.serve.dashboard.html_route import HtmlRoute
from recrawl.serve.dashboard.rendering import HERE, render
from recrawl.serve.dashboard.settings.settings_routes import settings_routes
from recrawl.serve.dashboard.views import view_routes


def add_dashboard(app: FastAPI, board: Dashboard) -> None:
    """Let an app serve the dashboard."""
    for routes in (sign_in_routes, view_routes, action_routes, settings_routes):
        app.include_router(routes(board))
    app.mount("/static", StaticFiles(directory=HERE / "static"))


def sign_in_routes(board: Dashboard) -> APIRouter:
    """Sign in by a token or a one-time link, and sign out."""
    router = APIRouter(route_class=HtmlRoute, include_in_schema=False)

    def entered(cookie: str, goal: str) -> Response:
        response = RedirectResponse(goal, 303, headers=HEADERS)
        board.gate.sign_in(response, cookie)
        return response

    @router.get("/sign-in")
    async def ask(request: Request, code: str = "", next: str = "/") -> Response:
        if code:
            cookie = board.sessions.by_code(code)
            if cookie is not None:
                return entered(cookie, "/")
        elif board.sessions.find(request.cookies.get(COOKIE)) is not None:
            return RedirectResponse(local_path(next), 303, headers=HEADERS)
        problem = "This link was used already, or is too old. Restart the crawl, or use a token." if code else ""
        return render("sign_in.html", 403 if code else 200, problem=problem, next=local_path(next))

    @router.post("/sign-in")
    async def enter(request: Request) -> Response:
        form = await read_form(request)
        cookie, goal = board.sessions.by_token(form.get("token", "")), local_path(form.get("next"))
        if cookie is None:
            problem = "This token is not known, or has neither the scope read nor admin."
            return render("sign_in.html", 403, problem=problem, next=goal)
        return entered(cookie, goal)

    @router.post("/sign-out")
    async def leave(request: Request) -> Response:
        await read_form(request)
        response = RedirectResponse("/sign-in", 303, headers=HEADERS)
        board.gate.sign_out(request, response)
        return response

    return router
