"""URLs to add, from arguments, files, standard input and sitemaps."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from recrawl.cli.shared.files.url_tables import Weights, read_urls
from recrawl.cli.shared.options.polite_fetch import PoliteFetcher, known_hosts
from recrawl.crawl.clock import SystemClock
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.formats.sitemaps import read_sitemap
from recrawl.crawl.http.fetcher import Limits
from recrawl.crawl.run.opening.assemble import http_fetcher
from recrawl.crawl.urls import canonical, usable
from recrawl.crawl.views.reasons import in_words
from recrawl.errors import ParameterError
from recrawl.logs import event

log = logging.getLogger(__name__)

_HOST = re.compile(r"(?:[\w-]+\.)+(?!txt|csv|tsv|xml|json|jsonl|parquet|gz|html?$)[a-zA-Z]{2,}(?::\d+)?(?:/\S*)?")
_MOST_SITEMAPS = 1000  # of one index
_LARGEST = 50 << 20  # bytes of a sitemap
_MOST_PAGES = 1_000_000  # of all sitemaps that are asked for at once


@dataclass(frozen=True)
class Gathered:
    """Pages to add: importance by URL (None: not given), and until when hosts that were asked rest."""

    weights: Weights
    rests: dict[str, float]


def gather(pages: Iterable[str], sitemaps: Iterable[str], settings: Settings) -> Gathered:
    """The URLs of all sources, canonical, each once, in order. Any error is raised before a page is added."""
    found: Weights = {}
    for source in pages:
        if source == "-":
            _merge(found, _from_bytes(sys.stdin.buffer.read(), "standard input"), "standard input")
        elif source.lower().startswith(("http://", "https://")):
            found.setdefault(canonical(source), None)
        else:
            _merge(found, _from_bytes(_read(source), source), source)
    asked = list(sitemaps)
    local = [source for source in asked if not source.lower().startswith(("http://", "https://"))]
    for source in local:
        _merge(found, dict.fromkeys(_entries(_read(source), source)), source)
    remote = [canonical(source) for source in asked if source not in local]
    rests: dict[str, float] = {}
    if remote:
        urls, rests = asyncio.run(_from_web(remote, settings, *known_hosts(settings)))
        _merge(found, dict.fromkeys(urls), "sitemap")
    return Gathered(found, rests)


def _merge(found: Weights, more: Weights, name: str) -> None:
    """Add URLs; an importance that is given stays, and another one is an error."""
    for url, weight in more.items():
        if (before := found.setdefault(url, weight)) is None:
            found[url] = weight
        elif weight is not None and weight != before:
            raise ParameterError(f"{name}: another importance of {url} than in the files before")


def _read(source: str) -> bytes:
    path = Path(source)
    if not path.is_file():
        meant = f"; did you mean https://{source}?" if _HOST.fullmatch(source) else ""
        raise ParameterError(f"{source}: neither an http or https URL nor a file{meant}")
    return path.read_bytes()


def _from_bytes(data: bytes, name: str) -> Weights:
    if data[:256].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") or data.startswith(b"\x1f\x8b"):
        return dict.fromkeys(_entries(data, name))
    return read_urls(data, name)


def _entries(data: bytes, name: str) -> list[str]:
    """Pages of a sitemap file. An index of sitemaps is an error that names --sitemap."""
    entries = list(read_sitemap(data))
    if not entries:
        raise ParameterError(f"{name}: no sitemap, or one without entries")
    indexed = [entry.url for entry in entries if entry.is_index]
    if indexed:
        raise ParameterError(f"{name}: an index of {len(indexed)} sitemaps; give their URLs with --sitemap")
    return usable(entry.url for entry in entries)


async def _from_web(
    sitemaps: list[str], settings: Settings, delays: dict[str, float], held_until: dict[str, float]
) -> tuple[list[str], dict[str, float]]:
    limits = Limits(body=_LARGEST, total=settings.seconds("timeout"), redirects=0)
    clock = SystemClock()
    fetcher = http_fetcher(settings, limits, clock)
    polite = PoliteFetcher(fetcher, settings.seconds("delay"), delays, held_until, clock)
    found: list[str] = []
    try:
        for url in sitemaps:
            found += await _sitemap(polite, url, index=True)
    finally:
        await fetcher.close()
    return found, polite.asked


async def _sitemap(fetcher: PoliteFetcher, url: str, *, index: bool) -> list[str]:
    fetched = await fetcher.fetch(url)
    if fetched.failure is not None:
        status = f" ({fetched.status})" if fetched.status else ""
        raise ParameterError(f"{url}: {in_words(fetched.failure)}{status}")
    entries = list(read_sitemap(fetched.body))
    if not entries:
        raise ParameterError(f"{url}: no sitemap, or one without entries")
    found = usable(entry.url for entry in entries if not entry.is_index)
    event(log, logging.INFO, "sitemap.read", url=url, pages=len(found))
    inner = [entry.url for entry in entries if entry.is_index][: _MOST_SITEMAPS if index else 0]
    for one in usable(inner):
        found += await _sitemap(fetcher, one, index=False)
        if len(found) > _MOST_PAGES:
            raise ParameterError(f"{url}: more than {_MOST_PAGES} pages; give some of its sitemaps instead")
    return found
