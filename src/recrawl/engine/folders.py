"""Folders: the groups that a URL belongs to, and what they say of a page that nothing is known of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.beliefs import Fit

Ids = NDArray[np.int64]
Array = NDArray[np.float64]

LEVELS = ("host", "two folders up", "folder above", "folder")
_HELD_BY = 2.0  # a group's rate is held to that of the wider one as by so many pages


def folders(url: str) -> tuple[str, str, str, str]:
    """The groups a URL belongs to, from the widest to the narrowest.

    >>> folders("https://docs.example.org/en/setup/linux/apt.html?v=2")
    ('docs.example.org', 'docs.example.org/en', 'docs.example.org/en/setup', 'docs.example.org/en/setup/linux')
    >>> folders("https://docs.example.org/en/index.html")
    ('docs.example.org', 'docs.example.org', 'docs.example.org', 'docs.example.org/en')
    """
    path = url.split("://", 1)[-1].split("?", 1)[0].split("#", 1)[0]
    host, *inside = path.split("/")
    depth = len(inside) - 1
    up2, up1, folder = ("/".join([host, *inside[: max(depth - k, 0)]]) for k in (2, 1, 0))
    return host, up2, up1, folder


class Folders:
    """The groups by number, and the rate of each against that of all pages, as of the last fit."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, str], int] = {}
        self.likely = np.zeros(0)  # 0: nothing was found in the group yet

    def enrol(self, urls: list[str]) -> NDArray[np.int32]:
        """The numbers of the groups of URLs, one column per level."""
        numbers = self.numbers
        return np.array(
            [[numbers.setdefault((k, key), len(numbers)) for k, key in enumerate(folders(url))] for url in urls],
            np.int32,
        ).reshape(-1, len(LEVELS))

    def likely_of(self, group: NDArray[np.int32]) -> Array:
        """The rate of the narrowest group that is known of, against that of all pages."""
        likely = np.ones(len(group))
        for column in group.T:
            known = np.zeros(len(column))
            inside = column < len(self.likely)
            known[inside] = self.likely[column[inside]]
            likely = np.where(known > 0, known, likely)
        return likely

    def fit(self, group: NDArray[np.int32], fit: Fit) -> None:
        """The rate of each group from those of its pages, held to that of the group around it."""
        mine = group[fit.rows]
        self.likely = np.zeros(len(self.numbers))
        around = np.ones(len(mine))
        for column in mine.T:
            weight = np.bincount(column, fit.trust, len(self.likely))
            total = np.bincount(column, fit.trust * fit.rate / fit.mean, len(self.likely))
            outer = np.zeros(len(self.likely))
            outer[column] = around
            found = np.unique(column)
            self.likely[found] = (total[found] + _HELD_BY * outer[found]) / (weight[found] + _HELD_BY)
            around = self.likely[column]
