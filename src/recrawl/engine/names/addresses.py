"""Addresses: which id a URL has, which host it is on, and which folder it is in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.engine.clocks.folders import FolderNames, folder_names, folders
from recrawl.engine.names.arena import Arena, Packed, new_rows, pack
from recrawl.engine.names.kernels import chain, link
from recrawl.engine.names.scan import KINDS, Parts, new_parts, scan_all
from recrawl.errors import ParameterError
from recrawl.urls import name_of

Ids = NDArray[np.int64]

_PLAIN = re.compile(r"[a-z]+://([a-z0-9.-]+)(?::[0-9]+)?(?:/|$)")  # most URLs; urlsplit takes ten times as long

_FEW = 5  # URLs, of which the parts are found one by one


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


class Urls(NamedTuple):
    """URLs as bytes, with their parts."""

    packed: Packed
    parts: Parts

    def __len__(self) -> int:
        return len(self.packed.starts)

    def take(self, rows: Ids) -> Urls:
        """Some of the URLs."""
        return Urls(self.packed.take(rows), self.parts.take(rows))

    def folders(self) -> FolderNames:
        """The folders of the URLs; the names of each are made once."""
        if len(self) < _FEW:
            return folder_names(self.packed.texts())
        found = Arena()
        place = found.add(Packed(self.packed.data, self.parts.folder_start, self.parts.folder_end))
        first = self.packed.take(new_rows(place, 0)).texts()
        return FolderNames([folders(url) for url in first], place)

    def hosts(self) -> tuple[list[str], Ids]:
        """The hosts of the URLs: each once, and which of them each URL is on."""
        odd = np.flatnonzero(self.parts.host_end < 0)
        starts, ends, data = self.parts.host_start, self.parts.host_end, self.packed.data
        if len(odd):
            names = pack([host_of(url) for url in self.packed.take(odd).texts()])
            starts, ends = starts.copy(), ends.copy()
            starts[odd], ends[odd] = names.starts + len(data), names.ends + len(data)
            data = np.concatenate([data, names.data])
        found = Arena()
        place = found.add(Packed(data, starts, ends))
        return found.texts(np.arange(len(found))), place


def urls_of(names: Sequence[str]) -> Urls:
    """Names of pages with their parts, as they are."""
    packed, parts = pack(names), new_parts(len(names))
    scan_all(*packed, KINDS, parts)
    return Urls(packed, parts)


def named(urls: Any, *, canonical: bool) -> Urls:
    """URLs as given by a caller, one or several, in canonical form where that is asked for."""
    given = [urls] if isinstance(urls, str) else list(urls)
    try:
        found = urls_of(given)
    except TypeError:  # one of them is no text
        url_list(given)
        raise
    odd = np.flatnonzero(~found.parts.plain).tolist()
    url_list([given[j] for j in odd])
    if not canonical or not odd:
        return found
    names = {j: name for j in odd if (name := name_of(given[j])) != given[j]}
    return urls_of([names.get(j, url) for j, url in enumerate(given)]) if names else found


class Addresses:
    """URLs by id, in the order in which they came; a URL that was removed and comes again gets a new id."""

    def __init__(self, urls: Iterable[str] = ()) -> None:
        self._arena = Arena()
        self._hosts = Arena()  # with the two columns below, filled when first asked for
        self._newest = np.zeros(0, np.int32)  # per host, its last page
        self._before = np.zeros(0, np.int32)  # per page, the one before it on its host
        self._n_filed = 0
        self.append(urls)

    def __len__(self) -> int:
        return len(self._arena)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self._arena.nbytes + self._hosts.nbytes + self._newest.nbytes + self._before.nbytes

    def append(self, urls: Iterable[str]) -> None:
        """Give new URLs the next ids."""
        self._arena.add(pack(list(urls)), fresh=True)

    def add(self, urls: Packed) -> Ids:
        """The id of each URL; those that have none get the next ones."""
        ids = self._arena.find(urls)
        new = np.flatnonzero(ids < 0)
        if len(new):
            ids[new] = self._arena.add(urls if len(new) == len(ids) else urls.take(new))
        return ids

    def withdraw(self, n: int) -> None:
        """Forget all URLs but the first n: they could not be added."""
        self._arena.cut(n)

    def known(self, urls: Sequence[str]) -> Ids:
        """The id of each URL, −1 where it has none."""
        return self.find(pack(urls))

    def find(self, urls: Packed) -> Ids:
        """The same of URLs as bytes."""
        return self._arena.find(urls)

    def ids(self, urls: Sequence[str]) -> Ids:
        """The id of each URL, or ParameterError."""
        found = self.known(urls)
        if (found < 0).any():
            raise ParameterError(f"{urls[int(np.argmin(found))]} is not among the pages")
        return found

    def urls(self, ids: ArrayLike) -> list[str]:
        """The URL of each id."""
        return self._arena.texts(np.atleast_1d(np.asarray(ids, np.int64)))

    def on_host(self, host: str) -> Ids:
        """The pages of a host that were not removed."""
        self._file()
        number = int(self._hosts.find(pack([host]))[0])
        if number < 0:
            return np.zeros(0, np.int64)
        ids = chain(int(self._newest[number]), self._before)
        is_found = self._arena.find(self._arena.packed(ids)) == ids
        return np.asarray(ids[is_found])

    def _file(self) -> None:
        """Take in the hosts of the URLs that came since."""
        first, self._n_filed = self._n_filed, len(self)
        if first == len(self):
            return
        names, place = urls_of(self._arena.texts(np.arange(first, len(self)))).hosts()
        numbers = self._hosts.add(pack(names)).astype(np.int32)
        self._newest = _longer(self._newest, len(self._hosts))
        self._before = _longer(self._before, len(self))
        link(numbers[place], self._newest, self._before, first)

    def forget(self, ids: Ids) -> None:
        """Pages that were removed."""
        self._arena.drop(ids)

    def saved(self) -> dict[str, Any]:
        """All URLs by id, and which of them stand for a page."""
        return self._arena.saved()

    @classmethod
    def load(cls, saved: dict[str, Any]) -> Addresses:
        """What was saved."""
        addresses = cls()
        addresses._arena = Arena.load(saved)
        return addresses


def _longer(column: NDArray[np.int32], n: int) -> NDArray[np.int32]:
    """The column with room for n rows; new rows are −1."""
    if n <= len(column):
        return column
    out = np.full(max(n, len(column) * 3 // 2), -1, np.int32)
    out[: len(column)] = column
    return out


def url_list(urls: Any) -> list[str]:
    """URLs as given by a caller: one, or several."""
    given = [urls] if isinstance(urls, str) else list(urls)
    for url in given:
        if not isinstance(url, str) or not url.strip() or (url != url.strip() and "://" not in url):
            raise ParameterError(f"{url!r} is not a URL")
    return given
