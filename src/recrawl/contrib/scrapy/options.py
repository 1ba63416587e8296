"""Options: what Scrapy's settings say about recrawl."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from scrapy.settings import BaseSettings

from recrawl.crawl.config.rules import span
from recrawl.crawl.config.settings import Settings, checked_table
from recrawl.errors import ParameterError
from recrawl.store.postgres.address import is_postgres

CHANGES = ("page", "items")
PREFIX = "RECRAWL_"
NAMES = tuple(
    f"{PREFIX}{name}"
    for name in (
        "BUDGET", "CHANGE", "DATABASE", "IGNORED_FIELDS", "LEASE", "LINKS",
        "PROCESS", "REQUESTS", "SETTINGS", "START", "TOKEN", "URL",
    )
)  # fmt: skip
SUFFIX = ".scrapy"  # of the file that is kept beside a database


@dataclass(frozen=True)
class Options:
    """The settings whose names begin with ``RECRAWL_``, and those of Scrapy that the desk must know."""

    database: str
    url: str
    token: str
    budget: str
    change: str  # what counts as a change: page or items
    links: bool  # whether requests that callbacks yield are added as pages instead of fetched
    start: bool  # whether the spider's start requests are added as pages instead of fetched
    lease: float  # seconds
    process: bool  # whether the desk of a database has a process of its own
    ignored: frozenset[str]  # fields of items that do not count as a change
    concurrency: int
    per_host: int  # requests at once to one host, at most
    jobdir: bool
    depth: bool  # whether the depth of links is limited
    requests: str  # the file in which it is kept how links are requested
    more: Mapping[str, Any] = field(default_factory=dict)  # further settings of the crawl

    @classmethod
    def read(cls, settings: BaseSettings) -> Options:
        """The options in Scrapy's settings, or ParameterError that names the setting."""
        _check_names(settings)
        text = {name: str(settings.get(f"RECRAWL_{name}") or "").strip() for name in ("DATABASE", "URL", "BUDGET")}
        if bool(text["DATABASE"]) == bool(text["URL"]):
            raise ParameterError("give one of RECRAWL_DATABASE and RECRAWL_URL")
        if bool(text["BUDGET"]) != bool(text["DATABASE"]):
            given = "RECRAWL_DATABASE needs RECRAWL_BUDGET, such as 10/s"
            raise ParameterError(given if text["DATABASE"] else "RECRAWL_BUDGET: a service has its own")
        change = settings.get("RECRAWL_CHANGE", "page")
        if change not in CHANGES:
            raise ParameterError(f"RECRAWL_CHANGE is {change!r}: must be page or items")
        delay, per_host = settings.getfloat("DOWNLOAD_DELAY"), settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        # Scrapy itself keeps to its limits; the desk gives more pages of a host, so that no slot waits for it
        hosts = {"delay": delay, "host_concurrency": 1 if delay else max(4 * per_host, 1), "listings": False, "keep": 0}
        return cls(
            database=text["DATABASE"],
            url=text["URL"],
            token=str(settings.get("RECRAWL_TOKEN") or ""),
            budget=text["BUDGET"],
            change=change,
            links=_flag(settings, "RECRAWL_LINKS", False),
            start=_flag(settings, "RECRAWL_START", True),
            lease=span(settings.get("RECRAWL_LEASE", "10 min"), "RECRAWL_LEASE"),
            process=_flag(settings, "RECRAWL_PROCESS", True),
            ignored=frozenset(settings.getlist("RECRAWL_IGNORED_FIELDS")),
            per_host=per_host or settings.getint("CONCURRENT_REQUESTS"),
            concurrency=settings.getint("CONCURRENT_REQUESTS"),
            jobdir=bool(settings.get("JOBDIR")),
            depth=settings.getint("DEPTH_LIMIT") > 0,
            requests=str(settings.get("RECRAWL_REQUESTS") or requests_path(text["DATABASE"])),
            more={**hosts, **_table(settings, "RECRAWL_SETTINGS")},
        )

    def crawl_settings(self) -> Settings:
        """The settings of the crawl of ``database``."""
        more = checked_table(self.more, "RECRAWL_SETTINGS")
        return Settings(**{"database": self.database, "budget": self.budget, **more})


def _check_names(settings: BaseSettings) -> None:
    """ParameterError for a setting of recrawl that there is not, such as one that is misspelt."""
    for name in sorted(name for name in settings if str(name).startswith(PREFIX) and name not in NAMES):
        known = {one.removeprefix(PREFIX): one for one in NAMES}  # all names are alike with it
        near = get_close_matches(name.removeprefix(PREFIX), known, 1)
        raise ParameterError(f"{name} is not a setting{f'; did you mean {known[near[0]]}?' if near else ''}")


def _flag(settings: BaseSettings, name: str, default: bool) -> bool:
    try:
        return bool(settings.getbool(name, default))
    except (TypeError, ValueError):
        raise ParameterError(f"{name} is {settings.get(name)!r}: must be True or False") from None


def _table(settings: BaseSettings, name: str) -> dict[Any, Any]:
    try:
        return dict(settings.getdict(name))
    except (TypeError, ValueError):
        raise ParameterError(f"{name} is {settings.get(name)!r}: must be a table, such as {{'keep': 0}}") from None


def requests_path(database: str) -> str:
    """Where it is kept how links are requested: beside the database, or here if it is elsewhere."""
    return f"{database}{SUFFIX}" if database and not is_postgres(database) else f"requests{SUFFIX}"
