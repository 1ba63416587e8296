"""URLs to add, from arguments, files, standard input and sitemaps."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterable
from pathlib import Path

from recrawl.crawl.clock import SystemClock
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.formats.sitemaps import read_sitemap
from recrawl.crawl.http.fetcher import HttpFetcher, Limits
from recrawl.crawl.run.assemble import http_fetcher
from recrawl.crawl.urls import canonical
from recrawl.errors import ParameterError
from recrawl.logs import event

log = logging.getLogger(__name__)

_MOST_SITEMAPS = 1000  # of one index
_LARGEST = 50 << 20  # bytes of a sitemap
_MOST_PAGES = 1_000_000  # of all sitemaps that are asked for at once


def gather(pages: Iterable[str], sitemaps: Iterable[str], settings: Settings) -> list[str]:
    """The URLs of all sources, canonical, each once, in order. Any error is raised before a page is added."""
    found: dict[str, None] = {}
    for source in pages:
        if source == "-":
            found |= dict.fromkeys(_from_bytes(sys.stdin.buffer.read(), "standard input"))
        elif source.lower().startswith(("http://", "https://")):
            found[canonical(source)] = None
        else:
            found |= dict.fromkeys(_from_bytes(_read(source), source))
    asked = list(sitemaps)
    local = [source for source in asked if not source.lower().startswith(("http://", "https://"))]
    for source in local:
        found |= dict.fromkeys(_entries(_read(source), source))
    remote = [canonical(source) for source in asked if source not in local]
    if remote:
        found |= dict.fromkeys(asyncio.run(_from_web(remote, settings)))
    return list(found)


def _read(source: str) -> bytes:
    path = Path(source)
    if not path.is_file():
        raise ParameterError(f"{source}: neither an http or https URL nor a file")
    return path.read_bytes()


def _from_bytes(data: bytes, name: str) -> list[str]:
    if data[:256].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") or data.startswith(b"\x1f\x8b"):
        return _entries(data, name)
    urls = []
    for row, line in enumerate(data.decode("utf-8", "replace").lstrip("\ufeff").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            urls.append(canonical(text))
        except ParameterError as problem:
            raise ParameterError(f"{name}, line {row}: {problem}") from None
    return urls


def _entries(data: bytes, name: str) -> list[str]:
    """Pages of a sitemap file. An index of sitemaps is an error that names --sitemap."""
    entries = list(read_sitemap(data))
    if not entries:
        raise ParameterError(f"{name}: no sitemap, or one without entries")
    indexed = [entry.url for entry in entries if entry.is_index]
    if indexed:
        raise ParameterError(f"{name}: an index of {len(indexed)} sitemaps; give their URLs with --sitemap")
    return _usable(entry.url for entry in entries)


def _usable(urls: Iterable[str]) -> list[str]:
    """Canonical URLs. Bad URLs are skipped, because the user did not write the sitemap."""
    usable = []
    for url in urls:
        try:
            usable.append(canonical(url))
        except ParameterError:
            continue
    return usable


async def _from_web(sitemaps: list[str], settings: Settings) -> list[str]:
    limits = Limits(body=_LARGEST, total=settings.seconds("timeout"))
    fetcher = http_fetcher(settings, limits, SystemClock())
    found: list[str] = []
    try:
        for url in sitemaps:
            found += await _sitemap(fetcher, url, settings, index=True)
    finally:
        await fetcher.close()
    return found


async def _sitemap(fetcher: HttpFetcher, url: str, settings: Settings, *, index: bool) -> list[str]:
    fetched = await fetcher.fetch(url)
    if fetched.failure is not None:
        raise ParameterError(f"{url}: {fetched.failure}{f' ({fetched.status})' if fetched.status else ''}")
    entries = list(read_sitemap(fetched.body))
    if not entries:
        raise ParameterError(f"{url}: no sitemap, or one without entries")
    found = _usable(entry.url for entry in entries if not entry.is_index)
    event(log, logging.INFO, "sitemap.read", url=url, pages=len(found))
    inner = [entry.url for entry in entries if entry.is_index][: _MOST_SITEMAPS if index else 0]
    for one in _usable(inner):
        await asyncio.sleep(settings.seconds("delay"))
        found += await _sitemap(fetcher, one, settings, index=False)
        if len(found) > _MOST_PAGES:
            raise ParameterError(f"{url}: more than {_MOST_PAGES} pages; give some of its sitemaps instead")
    return found
