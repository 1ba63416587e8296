"""A vector index in numpy. Chunks are known by their content: a text that is there already is not embedded again."""

from __future__ import annotations

import re
import zlib
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from chunks import chunked
from numpy.typing import NDArray

Vector = NDArray[np.float32]
WIDTH = 256
_WORD = re.compile(r"\w+")


class Hit(NamedTuple):
    """A chunk that is near to a question, and a page that has it."""

    url: str
    text: str
    score: float


def hashed_words(text: str) -> Vector:
    """An embedding without a model: words and pairs of words, hashed to signed places, of length 1. Use yours."""
    words = _WORD.findall(text.lower())
    vector = np.zeros(WIDTH, np.float32)
    for token in [*words, *map(" ".join, pairwise(words))]:
        number = zlib.crc32(token.encode())
        vector[number % WIDTH] += 1.0 if number & 0x10000 else -1.0
    return vector / max(float(np.linalg.norm(vector)), 1e-9)


class VectorIndex:
    """Chunks of pages with their vectors. ``n_embedded`` counts calls of ``embed``.

    Vectors of chunks that no page has any more are kept for ``retired`` chunks, so that a page that comes back, or text
    that moves to another page, costs nothing.
    """

    def __init__(self, embed: Callable[[str], Vector] = hashed_words, retired: int = 10_000) -> None:
        self._embed, self._most_retired = embed, retired
        self.n_embedded = 0
        self._pages: dict[str, list[str]] = {}  # keys of chunks, in order
        self._texts: dict[str, str] = {}
        self._users: dict[str, set[str]] = {}  # pages of a chunk
        self._row: dict[str, int] = {}
        self._key: list[str | None] = []  # by row
        self._free: list[int] = []
        self._vectors = np.zeros((0, WIDTH), np.float32)
        self._retired: OrderedDict[str, Vector] = OrderedDict()

    def __len__(self) -> int:
        return len(self._pages)

    def __contains__(self, url: str) -> bool:
        return url in self._pages

    def put(self, url: str, text: str) -> int:
        """Add a page or replace it; how many chunks were embedded for that."""
        before, n = self._pages.get(url, []), self.n_embedded
        parts = chunked(text, [self._texts[key] for key in before])
        keys = [blake2b(part.encode(), digest_size=16).hexdigest() for part in parts]
        for key, part in zip(keys, parts, strict=True):
            self._use(key, part, url)
        self._pages[url] = keys
        for key in set(before) - set(keys):
            self._drop(key, url)
        return self.n_embedded - n

    def delete(self, url: str) -> bool:
        """Delete a page; whether it was there."""
        keys = self._pages.pop(url, None)
        for key in set(keys or ()):
            self._drop(key, url)
        return keys is not None

    def chunks(self, url: str) -> list[str]:
        """The chunks of a page, in their order."""
        return [self._texts[key] for key in self._pages[url]]

    @property
    def n_chunks(self) -> int:
        """How many different chunks there are."""
        return len(self._row)

    def search(self, question: str, n: int = 5) -> list[Hit]:
        """The nearest chunks, the best first."""
        scores = self._vectors @ self._embed(question)
        best = [row for row in np.argsort(-scores)[: n + len(self._free)].tolist() if self._key[row] is not None]
        keys = [(self._key[row] or "", float(scores[row])) for row in best[:n]]
        return [Hit(min(self._users[key]), self._texts[key], score) for key, score in keys]

    def check(self) -> None:
        """Raise AssertionError unless every chunk has its own vector, and pages use every chunk."""
        assert set(self._row) == {key for keys in self._pages.values() for key in keys} == set(self._users)
        for key, row in self._row.items():
            assert self._key[row] == key
            assert np.array_equal(self._vectors[row], self._embed(self._texts[key]))
            assert all(key in self._pages[url] for url in self._users[key])
        assert sorted(self._free) == [row for row, key in enumerate(self._key) if key is None]

    def _use(self, key: str, text: str, url: str) -> None:
        self._users.setdefault(key, set()).add(url)
        if key in self._row:
            return
        vector = self._retired.pop(key, None)
        if vector is None:
            vector = self._embed(text)
            self.n_embedded += 1
        row = self._free.pop() if self._free else self._grown()
        self._row[key], self._key[row], self._texts[key], self._vectors[row] = row, key, text, vector

    def _drop(self, key: str, url: str) -> None:
        self._users[key].discard(url)
        if self._users[key]:
            return
        row = self._row.pop(key)
        self._retired[key] = self._vectors[row].copy()
        self._vectors[row], self._key[row] = 0.0, None
        self._free.append(row)
        del self._users[key], self._texts[key]
        while len(self._retired) > self._most_retired:
            self._retired.popitem(last=False)

    def _grown(self) -> int:
        row = len(self._key)
        self._key.append(None)
        if row >= len(self._vectors):
            more = np.zeros((max(row, 64), WIDTH), np.float32)
            self._vectors = np.concatenate([self._vectors, more])
            self._key += [None] * (len(self._vectors) - len(self._key))
            self._free += range(len(self._vectors) - 1, row, -1)
        return row
