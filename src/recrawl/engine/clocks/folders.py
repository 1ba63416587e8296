"""Folders: the groups that a URL belongs to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEVELS = ("host", "two folders up", "folder above", "folder")


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
    """The groups by number."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, str], int] = {}

    def add(self, urls: list[str]) -> NDArray[np.int32]:
        """The numbers of the groups of URLs, one column per level; each folder is examined once."""
        numbers = self.numbers
        places: dict[str, int] = {}
        found: list[list[int]] = []
        row = np.empty(len(urls), np.int64)
        for j, url in enumerate(urls):
            folder = _folder(url)
            place = places.get(folder)
            if place is None:
                place = places[folder] = len(found)
                found.append([numbers.setdefault(key, len(numbers)) for key in enumerate(folders(url))])
            row[j] = place
        return np.array(found, np.int32).reshape(-1, len(LEVELS))[row]
