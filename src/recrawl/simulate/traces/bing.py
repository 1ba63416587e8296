"""The public files of Kolobov et al. 2019: 18.5 million pages, crawled about daily for 14 weeks."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.estimate.observations import Observations
from recrawl.estimate.rates.change_rate import estimate_change_rate
from recrawl.model.pages import Pages
from recrawl.simulate.worlds.events import offsets

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_URLS, _HOSTS, _IMPORTANCE = "url_urlid_hostid.txt", "host_hostid_isconstrained.txt", "urlid_imp.txt"
_HISTORY, _COMPLETE = "urlid_offset_history.txt", "urlid_chrate_compl_obs_hist.txt"
_NO_BRACKETS = str.maketrans("", "", "[] \r\n")
_BLOCK = 200_000  # lines of two or three numbers that are read at a time


class BingPages(NamedTuple):
    """Pages with rates per day, what their crawls saw (intervals in days), and when they were first crawled."""

    pages: Pages
    observations: Observations
    url_id: Ids
    first_crawl: Array  # days after the start of the collection
    constrained: NDArray[np.bool_]  # whether the host limits its crawls


def read_bing(folder: Path | str, max_pages: int | None = None) -> BingPages:
    """The pages of the five tab-separated files, all or the first ``max_pages`` of the file of histories.

    Change rates are those of the files for the pages with complete signals (recall 1), and the smoothed estimate from
    the history for all others; hosts are numbers. All histories take about 16 GB: see ``bing_chunks`` to go through
    them piece by piece.
    """
    parts = list(bing_chunks(folder, max_pages))
    if not parts:
        raise ParameterError(f"{Path(folder) / _HISTORY}: has no pages")
    seen = [part.observations for part in parts]
    columns = {
        name: np.concatenate([getattr(part.pages, name) for part in parts])
        for name in ("change_rate", "importance", "recall", "host")
    }
    return BingPages(
        Pages(**columns),
        Observations(
            offsets(np.concatenate([each.n_crawls for each in seen])),
            np.concatenate([each.interval for each in seen]),
            np.concatenate([each.changed for each in seen]),
        ),
        *(np.concatenate(column) for column in zip(*(part[2:] for part in parts), strict=True)),
    )


def bing_chunks(folder: Path | str, max_pages: int | None = None, *, chunk: int = 20_000) -> Iterator[BingPages]:
    """The same, ``chunk`` pages at a time: apart from those, only numbers, importance and hosts are held."""
    folder = Path(folder)
    host, importance, complete = (
        _Lookup(folder / _URLS, 1, 2),
        _Lookup(folder / _IMPORTANCE),
        _Lookup(folder / _COMPLETE),
    )
    constrained = _Lookup(folder / _HOSTS, 1, 2)
    left = np.inf if max_pages is None else max_pages
    with _open(folder / _HISTORY) as file:
        n_read = 0
        while lines := list(islice(file, int(min(chunk, left)))):
            url_id, first_crawl, seen = _histories(folder / _HISTORY, lines, n_read)
            rate = estimate_change_rate(seen, "smoothed", day=1.0, level=None).change_rate
            known, given = complete.find(url_id)
            hosts = host.get(url_id)
            pages = Pages(
                np.where(known, given, rate),
                importance.get(url_id),
                known.astype(np.float64),
                host=hosts.astype(np.int64),
            )
            yield BingPages(pages, seen, url_id, first_crawl, constrained.get(hosts.astype(np.int64)) > 0)
            n_read += len(lines)
            left -= len(lines)


class _Lookup:
    """Two columns of numbers of a file: a key and its value."""

    def __init__(self, path: Path, key: int = 0, value: int = 1) -> None:
        self._path = path
        blocks = list(_blocks(path, (key, value)))
        table = np.concatenate(blocks) if blocks else np.zeros((0, 2))
        order = np.argsort(table[:, 0], kind="stable")
        self._key, self._value = table[order, 0].astype(np.int64), table[order, 1]

    def find(self, keys: Ids) -> tuple[NDArray[np.bool_], Array]:
        """Which keys are there, and their values (0 where they are not)."""
        if len(self._key) == 0:
            return np.zeros(len(keys), np.bool_), np.zeros(len(keys))
        place = np.minimum(np.searchsorted(self._key, keys), len(self._key) - 1)
        there = self._key[place] == keys
        return there, np.where(there, self._value[place], 0.0)

    def get(self, keys: Ids) -> Array:
        """The values of keys, all of which must be there."""
        there, value = self.find(keys)
        if not there.all():
            raise ParameterError(f"{self._path}: does not have the number {keys[int(np.argmin(there))]}")
        return value


def _blocks(path: Path, columns: tuple[int, int]) -> Iterator[Array]:
    with _open(path) as file:
        n_read = 0
        while lines := list(islice(file, _BLOCK)):
            try:
                block = np.loadtxt(lines, delimiter="\t", usecols=columns, ndmin=2, comments=None)
            except ValueError as problem:
                raise ParameterError(f"{path}: after line {n_read}: {str(problem).splitlines()[0]}") from None
            yield block
            n_read += len(lines)


def _histories(path: Path, lines: list[str], n_before: int) -> tuple[Ids, Array, Observations]:
    """(URL_ID, first offset, [[days since the crawl before, changed], …]) of every line."""
    cells = [line.split("\t") for line in lines]
    try:
        url_id = np.array([int(number) for number, _, _ in cells], np.int64)
        first_crawl = np.array([float(offset) for _, offset, _ in cells])
        bare = [history.translate(_NO_BRACKETS) for _, _, history in cells]
        count = np.array([history.count("[") - 1 for _, _, history in cells])
        pairs = _numbers(bare)
        if (count < 0).any() or len(pairs) != 2 * count.sum():
            raise ValueError("a history is not a list of pairs")
        return url_id, first_crawl, Observations(offsets(count), pairs[::2], pairs[1::2])
    except ValueError as problem:
        if len(lines) > 1:  # look for the line
            for k, line in enumerate(lines):
                _histories(path, [line], n_before + k)
        raise ParameterError(f"{path}: line {n_before + 1}: {problem}") from None


def _numbers(texts: list[str]) -> Array:
    joined = ",".join(text for text in texts if text)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(joined, sep=",") if joined else np.zeros(0)
        except (DeprecationWarning, ValueError):
            raise ValueError("a history holds something other than numbers") from None


def _open(path: Path) -> IO[str]:
    try:
        return path.open(encoding="utf-8", errors="replace", newline="\n")
    except OSError as problem:
        raise ParameterError(f"{path}: cannot be read: {problem.strerror}") from None
