"""Folders: the groups that a URL belongs to."""

from __future__ import annotations

from typing import NamedTuple

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


class FolderNames(NamedTuple):
    """The groups of pages: those of each folder once, and which of the folders each page is in."""

    names: list[tuple[str, str, str, str]]
    place: NDArray[np.int64]


def folder_names(urls: list[str]) -> FolderNames:
    """The groups of URLs; each folder is examined once.

    >>> folder_names(["https://a.example/x/1", "https://a.example/x/2"]).place.tolist()
    [0, 0]
    """
    places: dict[str, int] = {}
    names: list[tuple[str, str, str, str]] = []
    place = np.empty(len(urls), np.int64)
    for j, url in enumerate(urls):
        place[j] = number = places.setdefault(_folder(url), len(names))
        if number == len(names):
            names.append(folders(url))
    return FolderNames(names, place)
