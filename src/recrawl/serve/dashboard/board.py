"""Dashboard: what its routes share, for a crawl as it is served."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse

from recrawl.crawl.config.listening import listen_address
from recrawl.serve.crawls.view import CrawlView
from recrawl.serve.dashboard.gate import Gate
from recrawl.serve.dashboard.pages.contents import Titles
from recrawl.serve.dashboard.pages.page_lists import PageLists
from recrawl.serve.dashboard.rendering import render
from recrawl.serve.dashboard.sessions import Session, Sessions, may_sign_in
from recrawl.serve.dashboard.snapshots import Snapshots

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Dashboard:
    """The dashboard of a crawl. ``file`` is where changed settings are written; None: they hold until the restart."""

    def __init__(self, crawl: CrawlView, file: Path | None = None) -> None:
        self.crawl, self.file = crawl, file
        self.sessions = Sessions(crawl.tokens, crawl.clock)
        self.gate = Gate(self.sessions, secure=crawl.settings.public_url.strip().lower().startswith("https:"))
        self.snapshots, self.titles = Snapshots(crawl), Titles(crawl.store_of)
        self.lists = PageLists(crawl, self.snapshots, self.titles)

    def sign_in_path(self) -> str | None:
        """The path of a one-time sign-in link; None if tokens open the dashboard, or others reach the server."""
        listen = self.crawl.settings.listen.strip()
        local = bool(listen) and listen_address(listen)[0] in _LOOPBACK
        if not local or any(may_sign_in(token) for token in self.crawl.tokens):
            return None
        return f"/sign-in?code={self.sessions.new_code()}"

    def page(
        self, request: Request, session: Session, template: str, *, status: int = 200, **values: Any
    ) -> HTMLResponse:
        """A page for somebody who is signed in, or a part of it."""
        shared = {
            "now": self.crawl.clock.now(),
            "session": session,
            "path": request.url.path,
            "n_pages": self.crawl.tallies().pages,
            "on_cluster": self.crawl.on_cluster,
            "database": Path(self.crawl.settings.database_name).name,
            "messages": session.take_messages(),
        }
        return render(template, status, **{**shared, **values})

    async def close(self) -> None:
        """Wait for what is being computed."""
        await self.snapshots.close()
