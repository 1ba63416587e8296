"""What is checked of every request to the dashboard: who asks, and whether a form is one of ours."""

from __future__ import annotations

import hmac
from typing import Any
from urllib.parse import parse_qs, quote

from fastapi import Request
from fastapi.responses import Response

from recrawl.serve.dashboard.sessions import LIFETIME, Session, Sessions
from recrawl.serve.guard import read_body
from recrawl.serve.problems import ProblemError

COOKIE = "recrawl_session"
HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}
_LARGEST_FORM = 2 << 20  # bytes: some ten thousand URLs


class SignInNeeded(Exception):
    """Nobody is signed in: go to the sign-in page and come back."""

    def __init__(self, request: Request) -> None:
        super().__init__()
        self.partial = "hx-request" in request.headers
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        self.location = f"/sign-in?next={quote(path)}" if request.method == "GET" and not self.partial else "/sign-in"


class Form(dict[str, str]):
    """The fields of a form: the last value of each name."""


class Gate:
    """Lets signed-in people through."""

    def __init__(self, sessions: Sessions, secure: bool) -> None:
        self.sessions, self._secure = sessions, secure

    def session(self, request: Request) -> Session:
        """Who asks; SignInNeeded if nobody is signed in."""
        found = self.sessions.find(request.cookies.get(COOKIE))
        if found is None:
            raise SignInNeeded(request)
        return found

    async def form(self, request: Request) -> tuple[Session, Form]:
        """The form of somebody who may change something, sent from one of our pages."""
        session = self.session(request)
        fields = await read_form(request)
        given = request.headers.get("x-csrf-token") or fields.get("csrf", "")
        if not hmac.compare_digest(given.encode(), session.csrf.encode()):
            raise ProblemError(403, "the form is not one of this session: load the page again")
        if not session.may_act:
            raise ProblemError(403, "this token may look only: changes need one with the scope admin")
        return session, fields

    def sign_in(self, response: Response, cookie: str) -> None:
        """Set the cookie of a session."""
        flags: dict[str, Any] = {"httponly": True, "samesite": "strict", "secure": self._secure, "path": "/"}
        response.set_cookie(COOKIE, cookie, max_age=int(LIFETIME), **flags)

    def sign_out(self, request: Request, response: Response) -> None:
        """End the session of a request."""
        self.sessions.end(request.cookies.get(COOKIE))
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict", secure=self._secure)


async def read_form(request: Request) -> Form:
    """The fields of a form; refused if the browser says that another site sent it."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise ProblemError(403, "forms of other sites are refused")
    body = await read_body(request, _LARGEST_FORM)
    try:
        fields = parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=2000)
    except ValueError:
        raise ProblemError(422, "the form cannot be read") from None
    return Form({name: values[-1] for name, values in fields.items()})


def local_path(given: str | None) -> str:
    """Where to go after signing in: a path of ours, whatever was asked for.

    >>> local_path("/hosts?x=1"), local_path("//evil.example/"), local_path("https://evil.example/"), local_path(None)
    ('/hosts?x=1', '/', '/', '/')
    """
    usable = given is not None and given.startswith("/") and not given.startswith(("//", "/\\")) and given.isprintable()
    return given if usable and given is not None and "\\" not in given else "/"
