"""Columns made from URLs: host, folder, extension, numbers, and the words of the path."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

N_BUCKETS = 1 << 14
URL_NUMBERS = ("url_depth", "url_length", "url_digits", "url_query")
URL_CATEGORIES = ("url_host", "url_folder", "url_extension")
_LONGEST = 2000  # characters of a URL that are read
_MOST_WORDS = 24
_WORD = re.compile(r"[a-z]+|\d+")


class Words:
    """Hashed words of many rows: those of row i are ``bucket[offset[i]:offset[i + 1]]``."""

    def __init__(self, bucket: NDArray[np.int32], offset: NDArray[np.int64]) -> None:
        self.bucket, self.offset = bucket, offset

    @property
    def row(self) -> NDArray[np.int64]:
        """The row of every word."""
        return np.repeat(np.arange(len(self.offset) - 1), np.diff(self.offset))


def url_columns(urls: Sequence[str]) -> tuple[dict[str, NDArray[Any]], Words]:
    """Columns of URLs, and the hashed words of their paths. Years are words; all other numbers are one word.

    >>> columns, words = url_columns(["https://a.example/docs/v2/Install-2024.html?x=1"])
    >>> columns["url_folder"][0], len(words.bucket)
    ('a.example/docs/v2', 5)
    """
    n = len(urls)
    host, folder, extension = (np.empty(n, dtype=object) for _ in range(3))
    numbers = np.zeros((n, 4))
    known: dict[str, list[int]] = {}
    buckets: list[int] = []
    ends = np.zeros(n + 1, np.int64)
    for i, whole in enumerate(urls):
        url = str(whole)[:_LONGEST]
        place = url.partition("://")[2] or url
        path, _, query = place.partition("#")[0].partition("?")
        parts = path.split("/")
        host[i] = parts[0].lower()
        above, name = "/".join(parts[:-1]) if len(parts) > 1 else parts[0], parts[-1] if len(parts) > 1 else ""
        folder[i] = above.lower()
        stem, dot, end = name.rpartition(".")
        extension[i] = end.lower() if dot and stem and len(end) <= 5 else ""
        numbers[i] = (len(parts) - 1, len(path), sum(c.isdigit() for c in name), len(query))
        if above not in known:
            known[above] = _buckets(above[len(parts[0]) :], "/")
        buckets += (known[above] + _buckets(stem if extension[i] else name, ""))[:_MOST_WORDS]
        ends[i + 1] = len(buckets)
    columns: dict[str, NDArray[Any]] = dict(zip(URL_CATEGORIES, (host, folder, extension), strict=True))
    columns |= {name: numbers[:, k] for k, name in enumerate(URL_NUMBERS)}
    return columns, Words(np.array(buckets, np.int32), ends)


def _buckets(text: str, kind: str) -> list[int]:
    """Buckets of the words of a text; words of folders and of names are not the same."""
    words = _WORD.findall(text.lower())
    return [crc32(f"{kind}{_alike(word)}".encode()) % N_BUCKETS for word in dict.fromkeys(words)]


def _alike(word: str) -> str:
    if word.isdigit() and not (len(word) == 4 and word[:2] in ("19", "20")):
        return "#"
    return word
