"""Sitemaps that were saved over time: a page has changed when its lastmod has moved.

The time of a file is in its name, or else that of its last write. Files whose names differ in the time only are one
series: a page that a later file of the series lacks is gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from recrawl.cli.shared.histories.entries import BadEntryError, Losses, Record, page_of, row, time_of, unpacked
from recrawl.cli.shared.histories.trees import Tree, read

FILES, ENTRIES = "broken sitemaps, left out", "broken entries of sitemaps, left out"
_DATE = re.compile(
    r"(?<!\d)(?P<y>(?:19|20)\d\d)(?P<s>[-_.]?)(?P<m>[01]\d)(?P=s)(?P<d>[0-3]\d)"
    r"(?:[-_.T ]?(?P<H>[0-2]\d)[-_.:h]?(?P<M>[0-5]\d)(?:[-_.:m]?(?P<S>[0-5]\d))?Z?)?(?!\d)"
)
_SECONDS = re.compile(r"(?<!\d)1\d{9}(?!\d)")
_END = re.compile(rb"</(?:[\w.-]{1,40}:)?(?:urlset|sitemapindex)\s*>\s*\Z")
_START = re.compile(rb"<(?:[\w.-]{1,40}:)?(?:urlset|sitemapindex)[\s>]")
_TOGETHER = 600.0  # seconds


class Dated(NamedTuple):
    """A file with its time; ``series`` is its name without the time, empty if the name has none."""

    at: float
    series: str
    name: str


class SavedSitemaps:
    """The entries of sitemaps as rows of a crawl log."""

    def __init__(self, tree: Tree, names: list[str], losses: Losses) -> None:
        self.notes: list[str] = []
        self._tree, self._names, self._losses = tree, names, losses

    def __iter__(self) -> Iterator[Record]:
        before: dict[str, set[str]] = {}  # pages of the newest file of each series
        for saved in self._together():
            listed: set[str] = set()
            left: dict[str, float] = {}
            for at, series, name in saved:
                try:
                    entries = self._entries(name)
                except BadEntryError as bad:
                    self._losses.add(FILES, name, bad)
                    continue
                yield from (row(url, at, last_modified=lastmod) for url, lastmod in entries.items())
                listed |= entries.keys()
                if series:
                    left |= dict.fromkeys(before.get(series, ()), at)
                    before[series] = set(entries)
            yield from (row(url, at, gone=True) for url, at in left.items() if url not in listed)
        self.notes = [
            "the times of sitemaps count as crawls; pages without lastmod say nothing of changes",
            *self._losses.notes(),
        ]

    def _together(self) -> list[list[Dated]]:
        """Files in order of time, those that were saved together in one list: a page may move between them."""
        found: list[list[Dated]] = []
        for one in sorted(self._dated()):
            if (
                found
                and one.at - found[-1][0].at <= _TOGETHER
                and one.series not in (each.series for each in found[-1])
            ):
                found[-1].append(one)
            else:
                found.append([one])
        return found

    def _dated(self) -> Iterator[Dated]:
        for name in self._names:
            stamp = stamp_of(name)
            try:
                if stamp is None:
                    yield Dated(time_of(self._tree.modified_at(name)), "", name)
                else:
                    yield Dated(time_of(stamp[1]), name.replace(stamp[0], "", 1), name)
            except BadEntryError as bad:
                self._losses.add(FILES, name, f"no date in its name: {bad}" if stamp is None else bad)

    def _entries(self, name: str) -> dict[str, str | None]:
        """Pages with their lastmod in seconds. BadEntryError for a file that is no whole sitemap."""
        from recrawl.crawl.formats.sitemaps import LARGEST, read_sitemap

        data = unpacked(read(self._tree, name, LARGEST), "gzip", LARGEST)
        if not is_sitemap(data):
            raise BadEntryError("is not a sitemap")
        if not _END.search(data[-400:].replace(b"\0", b"")):
            raise BadEntryError("is cut off")
        found: dict[str, str | None] = {}
        for entry in read_sitemap(data):
            if entry.is_index:
                continue
            try:
                found[page_of(entry.url)] = None if entry.lastmod is None else f"{entry.lastmod:.0f}"
            except BadEntryError as bad:
                self._losses.add(ENTRIES, name, bad)
        return found


def is_sitemap(start: bytes) -> bool:
    """Whether a file that begins so is an XML sitemap."""
    return _START.search(start[:4096].replace(b"\0", b"")) is not None


def stamp_of(name: str) -> tuple[str, float] | None:
    """The last date in a file's name as it is written, and its time (UTC); None if there is none.

    >>> stamp_of("news/sitemap-2024-02-29.xml"), stamp_of("sitemap_20240229T1200.xml.gz")
    (('2024-02-29', 1709164800.0), ('20240229T1200', 1709208000.0))
    >>> stamp_of("sitemap.xml.1709208000"), stamp_of("sitemap-20249999.xml")
    (('1709208000', 1709208000.0), None)
    """
    for match in reversed(list(_DATE.finditer(name))):
        parts = [int(match[part] or 0) for part in ("y", "m", "d", "H", "M", "S")]
        try:
            return match[0], datetime(*parts, tzinfo=UTC).timestamp()  # type: ignore[arg-type,misc]
        except ValueError:
            continue
    seconds = list(_SECONDS.finditer(name))
    return (seconds[-1][0], float(seconds[-1][0])) if seconds else None
