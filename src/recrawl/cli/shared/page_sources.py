"""Where the pages to add come from: URLs, files, standard input, sitemaps."""

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
    """The URLs of all sources in canonical form, each once, in order; anything wrong stops before anything is added."""
    found: dict[str, None] = {}
    for word in pages:
        if word == "-":
            found |= dict.fromkeys(_from_bytes(sys.stdin.buffer.read(), "standard input"))
        elif word.lower().startswith(("http://", "https://")):
            found[canonical(word)] = None
        else:
            found |= dict.fromkeys(_from_bytes(_read(word), word))
    asked = list(sitemaps)
    local = [word for word in asked if not word.lower().startswith(("http://", "https://"))]
    for word in local:
        found |= dict.fromkeys(_entries(_read(word), word))
    remote = [canonical(word) for word in asked if word not in local]
    if remote:
        found |= dict.fromkeys(asyncio.run(_from_web(remote, settings)))
    return list(found)


def _read(word: str) -> bytes:
    path = Path(word)
    if not path.is_file():
        raise ParameterError(f"{word}: neither an http or https URL nor a file")
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
    """Pages of a sitemap; other sitemaps that it names are left to be asked for."""
    entries = list(read_sitemap(data))
    if not entries:
        raise ParameterError(f"{name}: no sitemap, or one without entries")
    indexed = [entry.url for entry in entries if entry.is_index]
    if indexed:
        raise ParameterError(f"{name}: an index of {len(indexed)} sitemaps; give their URLs with --sitemap")
    return _usable(entry.url for entry in entries)


def _usable(urls: Iterable[str]) -> list[str]:
    """Canonical URLs; what a sitemap holds that is none is passed over: it was written by others."""
    kept = []
    for url in urls:
        try:
            kept.append(canonical(url))
        except ParameterError:
            continue
    return kept


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
