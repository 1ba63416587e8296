"""Records of a WARC file, plain or packed with gzip, one after the other. A damaged record loses only itself.

After damage, reading continues at the next line that begins like a record; in packed files, at the next member.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import IO, NamedTuple

from recrawl.cli.shared.histories.entries import LARGEST

GZIP = b"\x1f\x8b\x08"
_PIECE = 1 << 16
_HEADER = 1 << 16  # bytes of a record's header
_START = re.compile(rb"(?:^|(?<=\n))WARC/\d")
_LENGTH = re.compile(r"\d{1,15}", re.ASCII)
_ENDS = (b"\r\n\r\n", b"\n\n")


class WarcRecord(NamedTuple):
    """The header by lower-case names, and the block; ``problem`` says why a record cannot be used."""

    header: dict[str, str]
    block: bytes
    problem: str | None = None


def records(file: IO[bytes]) -> Iterator[WarcRecord]:
    """The records of a file that can be read again from any place."""
    packed = file.read(3) == GZIP
    file.seek(0)
    if not packed:
        yield from _Scan(iter(lambda: file.read(_PIECE), b"")).records()
        return
    at: int | None = 0
    while at is not None:
        member = _Member(file, at)
        n_broken = 0
        for record in _Scan(member.pieces()).records():
            n_broken += record.problem is not None
            yield record
        if member.damaged and not n_broken:
            yield WarcRecord({}, b"", "the gzip data are damaged")
        at = _next_member(file, at + 1 if member.damaged else member.end)


class _Member:
    """One member of a gzip file. ``end`` is the place after it, known once its pieces were read."""

    def __init__(self, file: IO[bytes], start: int) -> None:
        self._file, self.end, self.damaged = file, start, False

    def pieces(self) -> Iterator[bytes]:
        """What the member unpacks to, up to damage."""
        inner = zlib.decompressobj(31)
        while not inner.eof:
            self._file.seek(self.end)
            data = self._file.read(_PIECE)
            self.end += len(data)
            if not data:
                self.damaged = True
                return
            while data and not inner.eof:
                try:
                    piece = inner.decompress(data, _PIECE)
                except zlib.error:
                    self.damaged = True
                    return
                data = inner.unconsumed_tail
                if piece:
                    yield piece
        self.end -= len(inner.unused_data)


def _next_member(file: IO[bytes], start: int) -> int | None:
    """The place of the next member of which the first bytes are those of a record, or that is the next one in line."""
    held, at = b"", start
    while True:
        file.seek(at + len(held))
        data = file.read(_PIECE)
        held += data
        found = held.find(GZIP)
        if found >= 0:
            if _begins_record(file, at + found):
                return at + found
            at, held = at + found + 1, b""
            continue
        if not data:
            return None
        at, held = at + max(len(held) - 2, 0), held[-2:]


def _begins_record(file: IO[bytes], place: int) -> bool:
    file.seek(place)
    try:
        return zlib.decompressobj(31).decompress(file.read(4096), 64).lstrip().startswith(b"WARC/")
    except zlib.error:
        return False


class _Scan:
    """Splits bytes into records; holds no more than one of them."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._held = pieces, bytearray()

    def records(self) -> Iterator[WarcRecord]:
        """Every record, and one with a problem for each stretch that cannot be read."""
        while self._skip_blank():
            if not _START.match(self._held[:8]):
                yield WarcRecord({}, b"", "does not begin with WARC/")
                if not self._find_start(0):
                    return
                continue
            found = self._record()
            yield found
            if found.problem is not None and not self._find_start(1):
                return

    def _record(self) -> WarcRecord:
        """The record at the beginning. One with a problem is not taken."""
        size = self._header_size()
        if size is None:
            return WarcRecord({}, b"", "its header does not end")
        header = _fields(bytes(self._held[:size]))
        length = header.get("content-length", "")
        if not _LENGTH.fullmatch(length):
            return WarcRecord(header, b"", f"Content-Length {length[:40]!r} is not a number")
        n = int(length)
        if n > LARGEST:
            return WarcRecord(header, b"", f"has more than {LARGEST >> 20} MiB")
        self._fill(size + n + 8)
        if len(self._held) < size + n:
            return WarcRecord(header, b"", "is cut off")
        after = bytes(self._held[size + n : size + n + 8])
        if after.strip() and not after.startswith(_ENDS):
            return WarcRecord(header, b"", "has another length than Content-Length says")
        block = bytes(self._held[size : size + n])
        del self._held[: size + n]
        return WarcRecord(header, block)

    def _header_size(self) -> int | None:
        while True:
            ends = [place + len(end) for end in _ENDS if (place := self._held.find(end, 0, _HEADER)) >= 0]
            if ends:
                return min(ends)
            if len(self._held) >= _HEADER or not self._more():
                return None

    def _skip_blank(self) -> bool:
        """Drop blank lines; whether anything is left."""
        while True:
            blank = len(self._held) - len(self._held.lstrip(b"\r\n"))
            del self._held[:blank]
            if self._held:
                return self._fill(8)
            if not self._more():
                return False

    def _find_start(self, start: int) -> bool:
        """Drop what is before the next line that begins like a record, from a place on."""
        while True:
            match = _START.search(self._held, start)
            if match is not None:
                del self._held[: match.start()]
                return True
            start = 1
            del self._held[:-8]
            if not self._more():
                return False

    def _fill(self, n: int) -> bool:
        while len(self._held) < n and self._more():
            pass
        return True

    def _more(self) -> bool:
        piece = next(self._pieces, None)
        self._held += piece or b""
        return bool(piece)


def _fields(header: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in header.decode("utf-8", "replace").splitlines()[1:]:
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip().lower(), value.strip())
    return found
