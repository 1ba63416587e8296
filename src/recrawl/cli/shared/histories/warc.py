"""WARC files as a history: one row for each answer. What counts as a change is the main text, as in a live crawl."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import IO

from recrawl.cli.shared.histories.entries import (
    LARGEST,
    BadEntryError,
    Losses,
    Record,
    digest_of,
    page_of,
    row,
    time_of,
)
from recrawl.cli.shared.histories.warc_records import WarcRecord, records
from recrawl.cli.shared.logs.times import written_time

RECORDS = "broken WARC records, left out"
_STATUS = re.compile(rb"HTTP/\d(?:\.\d)? +(\d{3})(?=[ \r\n])")
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,8})[^\r\n]{0,200}\r?\n")
_HEADERS = re.compile(rb"\r?\n\r?\n")
_USED = ("response", "revisit", "resource")


class WarcFiles:
    """The answers of WARC files as rows of a crawl log."""

    def __init__(self, files: dict[str, Callable[[], IO[bytes]]], losses: Losses) -> None:
        self.notes: list[str] = []
        self._files, self._losses = files, losses
        self._digests: dict[tuple[str, str], str] = {}  # of contents, by URL and the archive's own digest

    def __iter__(self) -> Iterator[Record]:
        for name, opened in self._files.items():
            with opened() as file:
                for number, record in enumerate(records(file), 1):
                    try:
                        found = self._row(record)
                    except BadEntryError as bad:
                        self._losses.add(RECORDS, f"{name}, record {number}", bad)
                        continue
                    if found is not None:
                        yield found
        self.notes = self._losses.notes()

    def _row(self, record: WarcRecord) -> Record | None:
        kind, uri = record.header.get("warc-type", ""), record.header.get("warc-target-uri", "").strip("<>")
        if record.problem is not None:
            raise BadEntryError(record.problem)
        if kind not in _USED or not uri.lower().startswith(("http:", "https:")):
            return None
        url, at = page_of(uri), _date(record.header.get("warc-date", ""))
        own = record.header.get("warc-payload-digest", "")
        if kind == "resource":
            headers = {"content-type": record.header.get("content-type", "")}
            return row(url, at, status=200, digest=self._digest(url, own, headers, record.block))
        if kind == "revisit":
            return self._revisit(url, at, own, record)
        status, headers, body = _answer(record.block)
        if 300 <= status < 400 and status != 304:
            self._losses.add("redirects, left out", url, f"status {status}")
            return None
        if status == 304 or status >= 400:
            return row(url, at, status=status)
        return row(url, at, status=status, digest=self._digest(url, own, headers, _decoded(headers, body)))

    def _revisit(self, url: str, at: float, own: str, record: WarcRecord) -> Record:
        """An answer that the archive has already: by its digest, or because the server answered 304.

        If the record that it refers to is not there, it can be compared with others that refer to it.
        """
        if "not-modified" in record.header.get("warc-profile", ""):
            return row(url, at, status=304)
        if not own:
            raise BadEntryError("refers to no record")
        return row(url, at, status=200, digest=self._digests.get((url, own), f"payload:{own}"))

    def _digest(self, url: str, own: str, headers: dict[str, str], body: bytes) -> str:
        from recrawl.crawl.detect.detectors import MainText
        from recrawl.crawl.http.fetched import Fetched

        key = (url, own or digest_of(body))
        if key not in self._digests:
            self._digests[key] = MainText().digest(Fetched(url, url, 200, 0.0, 0.0, headers, body))
        return self._digests[key]


def _date(text: str) -> float:
    moment = written_time(text)
    if moment is None:
        raise BadEntryError(f"WARC-Date {text[:40]!r} is not a time")
    return time_of(moment.at)


def _answer(block: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of an HTTP answer."""
    match, end = _STATUS.match(block), _HEADERS.search(block)
    if match is None or end is None:
        raise BadEntryError("is not an HTTP answer")
    headers: dict[str, str] = {}
    for line in block[: end.start()].decode("latin-1").splitlines()[1:]:
        name, colon, value = line.partition(":")
        if colon:
            headers.setdefault(name.strip().lower(), value.strip())
    return int(match[1]), headers, block[end.end() :]


def _decoded(headers: dict[str, str], body: bytes) -> bytes:
    """The body without its transfer and content codings. Many archives keep the headers and undo the codings."""
    from recrawl.crawl.http.encoding import BadCoding, Body, TooLarge

    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = _unchunked(body)
    collected = None
    try:
        collected = Body(headers.get("content-encoding", ""), LARGEST)
        collected.feed(body)
        return collected.whole()
    except TooLarge:
        raise BadEntryError(f"has more than {LARGEST >> 20} MiB, unpacked") from None
    except BadCoding as problem:
        if collected is not None and not collected.begun():
            return body  # as it is: the codings were undone when the archive was written
        raise BadEntryError(f"its content coding is damaged: {problem}") from None


def _unchunked(body: bytes) -> bytes:
    """The body of a chunked answer; a body that is not chunked as it is."""
    parts: list[bytes] = []
    at = 0
    while (match := _CHUNK.match(body, at)) is not None:
        n = int(match[1], 16)
        part = body[match.end() : match.end() + n]
        if n == 0:
            return b"".join(parts)
        if len(part) < n:
            break
        parts.append(part)
        at = match.end() + n
        at += 2 if body[at : at + 2] == b"\r\n" else 1
    if not parts:
        return body
    raise BadEntryError("its chunks are cut off")
