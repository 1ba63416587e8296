"""Bodies and texts packed with zstd."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from recrawl.errors import StoreError
from recrawl.store.protocol import body_key

_LEVEL = 3
_LARGEST = 1 << 30  # bytes of an unpacked body


@cache
def zstd() -> Any:
    """Python's zstd module, or its backport before Python 3.14."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return import_module(name)
        except ImportError:
            continue
    raise StoreError("bodies need zstd: pip install 'recrawl[crawl]'")


def packed_body(body: bytes) -> bytes:
    """A body, compressed."""
    return bytes(zstd().compress(body, level=_LEVEL))


def unpacked_body(data: bytes, key: bytes) -> bytes:
    """A body, checked against its key."""
    try:
        body = bytes(zstd().ZstdDecompressor().decompress(data, max_length=_LARGEST))
    except zstd().ZstdError as problem:
        raise StoreError(f"body {key.hex()} cannot be unpacked: {problem}") from None
    if body_key(body) != key:
        raise StoreError(f"body {key.hex()} is not what was saved")
    return body


def packed_text(text: str | None) -> bytes | None:
    """A text, compressed; None stays None."""
    return None if text is None else packed_body(text.encode("utf-8", "replace"))


def unpacked_text(data: bytes | None) -> str | None:
    """A text that was packed."""
    return None if data is None else bytes(zstd().ZstdDecompressor().decompress(data, max_length=_LARGEST)).decode()
