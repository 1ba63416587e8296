"""Content codings undone piece by piece, so that no more than the limit is ever in memory."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from typing import Protocol

import brotli

if sys.version_info >= (3, 14):
    from compression.zstd import DecompressionParameter, ZstdDecompressor, ZstdError
else:
    from backports.zstd import DecompressionParameter, ZstdDecompressor, ZstdError

ACCEPTED = "gzip, deflate, br, zstd"

_MOST_CODINGS = 3
_PIECE = 1 << 18  # bytes unpacked at a time
_WINDOW = 23  # 8 MiB, what RFC 9659 has every zstd decoder of HTTP accept


class BadCoding(Exception):
    """The body does not match its content coding."""


class TooLarge(Exception):
    """The body is larger than the limit."""


class _Decoder(Protocol):
    def feed(self, data: bytes, most: int) -> bytes: ...
    def more(self) -> bool: ...
    def finish(self) -> None: ...


class _Zlib:
    """gzip (with several members) and deflate, with or without its zlib frame."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._inner = zlib.decompressobj(31) if kind == "gzip" else None
        self._pending = b""
        self._begun = False
        self._whole = False  # a stream has ended and no other has begun

    def feed(self, data: bytes, most: int) -> bytes:
        data = self._pending + data
        self._pending = b""
        if not data:
            return b""
        self._begun = True
        if self._inner is None:
            framed = data[0] & 0x0F == 8 and (len(data) < 2 or (data[0] << 8 | data[1]) % 31 == 0)
            self._inner = zlib.decompressobj(15 if framed else -15)
        if self._whole:
            if self._kind != "gzip" or not data.startswith(b"\x1f"):
                return b""  # padding after the end
            self._inner, self._whole = zlib.decompressobj(31), False
        piece = self._inner.decompress(data, most)
        self._whole = self._inner.eof
        self._pending = self._inner.unused_data if self._whole else self._inner.unconsumed_tail
        return piece

    def more(self) -> bool:
        return bool(self._pending)

    def finish(self) -> None:
        if self._begun and not self._whole:
            raise BadCoding("it ends early")


class _Brotli:
    def __init__(self) -> None:
        self._inner = brotli.Decompressor()
        self._fed = False

    def feed(self, data: bytes, most: int) -> bytes:
        self._fed = self._fed or bool(data)
        if self._inner.is_finished():
            return b""
        return bytes(self._inner.process(data, output_buffer_limit=most))

    def more(self) -> bool:
        return not self._inner.is_finished() and not self._inner.can_accept_more_data()

    def finish(self) -> None:
        if self._fed and not self._inner.is_finished():
            raise BadCoding("it ends early")


class _Zstd:
    """zstd, with several frames."""

    def __init__(self) -> None:
        self._inner = self._new()
        self._pending = b""
        self._begun = False

    @staticmethod
    def _new() -> ZstdDecompressor:
        return ZstdDecompressor(options={DecompressionParameter.window_log_max: _WINDOW})

    def feed(self, data: bytes, most: int) -> bytes:
        data, self._pending = self._pending + data, b""
        if self._inner.eof:
            if not data:
                return b""
            self._inner = self._new()
        self._begun = self._begun or bool(data)
        piece = self._inner.decompress(data, most)
        if self._inner.eof:
            self._pending = self._inner.unused_data
        return piece

    def more(self) -> bool:
        return bool(self._pending) or not (self._inner.eof or self._inner.needs_input)

    def finish(self) -> None:
        if self._begun and not self._inner.eof:
            raise BadCoding("it ends early")


class Body:
    """Collects a body piece by piece, undoing its codings; raises TooLarge as soon as it is more than ``limit``.

    What came up to the limit is ``begun()``. With ``take``, pieces are passed on to it and not kept.
    """

    def __init__(self, content_encoding: str, limit: int, take: Callable[[bytes], None] | None = None) -> None:
        self._decoders = _decoders(content_encoding)
        self._limit, self._take = limit, take
        self._came = self._kept = 0
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> None:
        """Take the next bytes from the connection."""
        self._came += len(data)
        if (over := self._came - self._limit) > 0:
            self._pass(data[:-over], 0)
            raise TooLarge
        self._pass(data, 0)

    def _pass(self, data: bytes, position: int) -> None:
        if position == len(self._decoders):
            room = self._limit - self._kept
            if data:
                (self._take or self._pieces.append)(data[:room])
            self._kept += min(len(data), room)
            if len(data) > room:
                raise TooLarge
            return
        decoder = self._decoders[position]
        while True:
            try:
                piece = decoder.feed(data, min(_PIECE, self._limit + 1))
            except (zlib.error, brotli.error, ZstdError, EOFError) as error:
                raise BadCoding(str(error)) from None
            self._pass(piece, position + 1)
            if not decoder.more():
                return
            data = b""

    def begun(self) -> bytes:
        """What came so far."""
        return b"".join(self._pieces)

    def whole(self) -> bytes:
        """The body, once all has come."""
        for decoder in self._decoders:
            decoder.finish()
        return b"".join(self._pieces)


def _decoders(content_encoding: str) -> list[_Decoder]:
    """The decoders in the order in which they are to be used: the last coding was put on last."""
    names = [name.strip().lower() for name in content_encoding.split(",")]
    names = [name for name in names if name and name != "identity"]
    if len(names) > _MOST_CODINGS:
        raise BadCoding(f"{len(names)} codings")
    return [_decoder(name) for name in reversed(names)]


def _decoder(name: str) -> _Decoder:
    if name in ("gzip", "x-gzip"):
        return _Zlib("gzip")
    if name == "deflate":
        return _Zlib("deflate")
    if name == "br":
        return _Brotli()
    if name == "zstd":
        return _Zstd()
    raise BadCoding(f"unknown coding {name[:40]!r}")
