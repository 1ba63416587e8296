"""Questions about all pages of the crawl of this process; where there are many, a process beside it answers them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.opening.partial import WHOLE
from recrawl.serve.crawls.beside import Beside
from recrawl.serve.crawls.database import DatabaseQuestions
from recrawl.serve.crawls.view import Snapshot


class LocalQuestions:
    """See `Questions`. ``n_pages`` answers how many pages there are now."""

    def __init__(self, settings: Callable[[], Settings], n_pages: Callable[[], int]) -> None:
        self._settings, self._n_pages = settings, n_pages
        self._beside = Beside()

    def _ask(self, name: str, *given: Any) -> Any:
        settings = self._settings()
        if self._n_pages() > WHOLE:
            return self._beside.call(ask_database, settings, name, *given)
        return ask_database(settings, name, *given)

    def status(self, now: float, budget: str | None = None) -> dict[str, Any]:
        """See `Questions`."""
        found: dict[str, Any] = self._ask("status", now, budget)
        return found

    def sources(self, now: float) -> dict[str, Any]:
        """See `Questions`."""
        found: dict[str, Any] = self._ask("sources", now)
        return found

    def hosts(self) -> Counter[str]:
        """See `Questions`."""
        found: Counter[str] = self._ask("hosts")
        return found

    def snapshot(self, now: float) -> Snapshot:
        """See `Questions`."""
        found: Snapshot = self._ask("snapshot", now)
        return found

    def interrupt(self) -> None:
        """See `Questions`."""
        self._beside.close()

    def close(self) -> None:
        """See `Questions`."""
        self._beside.close()


def ask_database(settings: Settings, name: str, *given: Any) -> Any:
    """The answer of a database to a question; it runs in this process or in another."""
    return getattr(DatabaseQuestions(lambda: settings), name)(*given)
