"""Addresses: which id a URL has, and which host it is on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError

Ids = NDArray[np.int64]

_PLAIN = re.compile(r"[a-z]+://([a-z0-9.-]+)(?::[0-9]+)?(?:/|$)")  # most URLs; urlsplit takes ten times as long


def host_of(url: str) -> str:
    """The host of a URL, or the part before the first slash where it has none.

    >>> host_of("https://Docs.example.org:8080/install"), host_of("casks/alfred")
    ('docs.example.org', 'casks')
    """
    plain = _PLAIN.match(url)
    if plain is not None:
        return plain[1]
    try:
        host = urlsplit(url).hostname
    except ValueError:
        host = None
    return host or url.split("/", 1)[0]


class Addresses:
    """URLs by id, in the order in which they came; a URL that was removed and comes again gets a new id."""

    def __init__(self, urls: Iterable[str] = ()) -> None:
        self._urls: list[str] = []
        self._ids: dict[str, int] = {}
        self._hosts: dict[str, list[int]] = {}  # filled when first asked for
        self._n_filed = 0
        self.append(urls)

    def __len__(self) -> int:
        return len(self._urls)

    def append(self, urls: Iterable[str]) -> None:
        """Give new URLs the next ids."""
        for url in urls:
            self._ids[url] = len(self._urls)
            self._urls.append(url)

    def known(self, urls: Sequence[str]) -> Ids:
        """The id of each URL, −1 where it has none."""
        return np.fromiter((self._ids.get(url, -1) for url in urls), np.int64, len(urls))

    def ids(self, urls: Sequence[str]) -> Ids:
        """The id of each URL, or ParameterError."""
        found = self.known(urls)
        if (found < 0).any():
            raise ParameterError(f"{urls[int(np.argmin(found))]} is not among the pages")
        return found

    def urls(self, ids: ArrayLike) -> list[str]:
        """The URL of each id."""
        return [self._urls[int(i)] for i in np.atleast_1d(np.asarray(ids))]

    def on_host(self, host: str) -> Ids:
        """The pages of a host that were not removed."""
        for i in range(self._n_filed, len(self._urls)):
            self._hosts.setdefault(host_of(self._urls[i]), []).append(i)
        self._n_filed = len(self._urls)
        there = [i for i in self._hosts.get(host, []) if self._ids.get(self._urls[i]) == i]
        return np.array(there, np.int64)

    def forget(self, ids: Ids) -> None:
        """Pages that were removed."""
        for i in ids.tolist():
            if self._ids.get(self._urls[i]) == i:
                del self._ids[self._urls[i]]

    def saved(self) -> dict[str, Any]:
        """All URLs by id, and which of them stand for a page."""
        return {"urls": list(self._urls), "present": sorted(self._ids.values())}

    @classmethod
    def load(cls, saved: dict[str, Any]) -> Addresses:
        """What was saved."""
        addresses = cls(saved["urls"])
        addresses._ids = {addresses._urls[i]: i for i in saved["present"]}
        return addresses


def url_list(urls: Any) -> list[str]:
    """URLs as given by a caller: one, or several."""
    given = [urls] if isinstance(urls, str) else list(urls)
    for url in given:
        if not isinstance(url, str) or not url.strip() or (url != url.strip() and "://" not in url):
            raise ParameterError(f"{url!r} is not a URL")
    return given
