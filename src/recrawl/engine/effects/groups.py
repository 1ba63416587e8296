"""Folders: the groups that a URL belongs to, and their change rates relative to that of all pages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.beliefs.beliefs import Fit

Ids = NDArray[np.int64]
Array = NDArray[np.float64]

LEVELS = ("host", "two folders up", "folder above", "folder")
_HELD_BY = 2.0  # a group's rate is held to that of the wider one as by so many crawls


def folders(url: str) -> tuple[str, str, str, str]:
    """The groups a URL belongs to, from the widest to the narrowest.

    >>> folders("https://docs.example.org/en/setup/linux/apt.html?v=2")
    ('docs.example.org', 'docs.example.org/en', 'docs.example.org/en/setup', 'docs.example.org/en/setup/linux')
    >>> folders("https://docs.example.org/en/index.html")
    ('docs.example.org', 'docs.example.org', 'docs.example.org', 'docs.example.org/en')
    """
    host, *inside = _folder(url).split("/")
    up2, up1, folder = ("/".join([host, *inside[: max(len(inside) - k, 0)]]) for k in (2, 1, 0))
    return host, up2, up1, folder


def beside(url: str, level: int) -> tuple[str, ...]:
    """Texts that the URLs of a page's group of a level begin with; other URLs may begin with them too.

    >>> beside("https://docs.example.org/en/index.html", 3)
    ('https://docs.example.org/en', 'http://docs.example.org/en', 'docs.example.org/en')
    """
    scheme, divider, _ = url.partition("://")
    schemes = dict.fromkeys([scheme + divider] * bool(divider) + ["https://", "http://", ""])
    return tuple(start + folders(url)[level] for start in schemes)


def _folder(url: str) -> str:
    """Host and folders of a URL: what its groups follow from."""
    path = url.split("://", 1)[-1].split("?", 1)[0].split("#", 1)[0]
    return path.rpartition("/")[0] or path.split("/", 1)[0]


class Folders:
    """The groups by number, and the rate of each against that of all pages, as of the last fit."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, str], int] = {}
        self.relative_rate = np.zeros(0)  # 0: nothing was found in the group yet

    def add(self, urls: list[str]) -> NDArray[np.int32]:
        """The numbers of the groups of URLs, one column per level."""
        numbers = self.numbers
        return _per_folder(urls, lambda url: [numbers.setdefault(key, len(numbers)) for key in enumerate(folders(url))])

    def find(self, urls: list[str]) -> NDArray[np.int32]:
        """The same, −1 for groups that are not there yet."""
        return _per_folder(urls, lambda url: [self.numbers.get(key, -1) for key in enumerate(folders(url))])

    def relative_rate_of(self, group: NDArray[np.int32]) -> Array:
        """The rate of the narrowest group that is known of, against that of all pages."""
        relative_rate = np.ones(len(group))
        for column in group.T:
            known = np.zeros(len(column))
            inside = (column >= 0) & (column < len(self.relative_rate))
            known[inside] = self.relative_rate[column[inside]]
            relative_rate = np.where(known > 0, known, relative_rate)
        return relative_rate

    def fit(self, group: NDArray[np.int32], fit: Fit) -> None:
        """The rate of each group from all its crawls together, held to that of the group around it."""
        mine, n = group[fit.rows], len(self.numbers)
        self.relative_rate = np.zeros(n)
        overall = _rate(fit.crawls.sum(), fit.quiet.sum() + 0.5, fit.time.sum())
        around = np.full(len(mine), overall)
        rates = np.zeros(n)
        for column in mine.T:
            found = np.unique(column)
            crawls, quiet, time = (np.bincount(column, each, n)[found] for each in (fit.crawls, fit.quiet, fit.time))
            outer = np.zeros(n)
            outer[column] = around
            pause = time / crawls
            rates[found] = _rate(
                crawls + _HELD_BY, quiet + _HELD_BY * np.exp(-outer[found] * pause), time + _HELD_BY * pause
            )
            around = rates[column]
        self.relative_rate = rates / overall


def _per_folder(urls: list[str], numbers_of: Callable[[str], list[int]]) -> NDArray[np.int32]:
    """What a function says of each URL, asked once for each folder."""
    places: dict[str, int] = {}
    found: list[list[int]] = []
    row = np.empty(len(urls), np.int64)
    for j, url in enumerate(urls):
        folder = _folder(url)
        place = places.get(folder)
        if place is None:
            place = places[folder] = len(found)
            found.append(numbers_of(url))
        row[j] = place
    return np.array(found, np.int32).reshape(-1, len(LEVELS))[row]


def _rate(crawls: Array, quiet: Array, time: Array) -> Array:
    """Changes per time, from how many of so many crawls found nothing new."""
    return np.asarray(np.log(np.maximum(crawls / quiet, 1.0 + 1e-9)) * crawls / time)
