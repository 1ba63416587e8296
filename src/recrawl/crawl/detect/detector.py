"""Detectors: the part of a page that counts, as a digest that changes with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import xxhash

from recrawl.crawl.detect.detectors import (
    MainText,
    Plain,
    Pointed,
    RawBytes,
    Selected,
    VisibleText,
    digest_of,
    plain_of,
)
from recrawl.crawl.detect.ignore import Ignoring
from recrawl.crawl.detect.simhash import differing, simhash
from recrawl.crawl.http.fetched import Fetched
from recrawl.errors import ParameterError, unknown


class Detector(Protocol):
    """Turns a fetched page into a digest; pages with equal digests count as unchanged."""

    name: str
    version: str  # digests of different versions are not comparable

    def digest(self, fetched: Fetched) -> str:
        """The digest of what counts."""
        ...


class Chosen:
    """A detector with patterns that are ignored, and texts that are nearly the same counted as the same.

    ``similarity`` is the number of differing bits of 64 (`simhash`) from which on a page has changed.
    """

    def __init__(self, base: Plain, options: str, ignore: Sequence[str] = (), similarity: int = 0) -> None:
        self.name, self.version = base.name, f"{base.version}+{xxhash.xxh3_64_hexdigest(options.encode())[:8]}"
        self._base, self._similarity = base, similarity
        self._ignoring = Ignoring(ignore) if ignore else None

    def content(self, fetched: Fetched) -> bytes | None:
        """What counts, without what is ignored."""
        found = self._base.content(fetched)
        return found if found is None or self._ignoring is None else self._ignoring(found)

    def digest(self, fetched: Fetched) -> str:
        """The digest of it; with similarity, its simhash behind."""
        content = self.content(fetched)
        digest = digest_of(plain_of(content, self.name))
        return f"{digest}~{simhash(content):016x}" if self._similarity and content is not None else digest

    def same(self, a: str, b: str) -> bool:
        """Whether two digests are of pages that count as the same."""
        (first, _, near), (second, _, other) = a.partition("~"), b.partition("~")
        if first == second or not near or not other:
            return first == second
        return differing(int(near, 16), int(other, 16)) < self._similarity


_DETECTORS: dict[str, type[RawBytes] | type[VisibleText] | type[MainText]] = {
    "raw": RawBytes,
    "text": VisibleText,
    "main": MainText,
}
_SELECTING: dict[str, type[Selected] | type[Pointed]] = {"css": Selected, "json": Pointed}
PLAIN, NAMES = tuple(_DETECTORS), (*_DETECTORS, *_SELECTING)


@dataclass(frozen=True, slots=True)
class Detection:
    """What counts as a change, as rules specify it; None and empty: not specified."""

    detector: str | None = None
    select: str | None = None
    ignore: tuple[str, ...] = ()
    similarity: int | None = None
    flapping: bool | None = None  # whether a return to earlier content is no change; None: it is none


UNSPECIFIED = Detection()


@lru_cache(maxsize=1024)
def detector_for(detection: Detection, default: str = "main") -> Plain | Chosen:
    """The detector that rules specify.

    >>> detector_for(Detection("css", ".price")).name, detector_for(Detection(ignore=("[0-9]+ left",)), "text").name
    ('css', 'text')
    """
    name = detection.detector or default
    base = detector(name, detection.select)
    options = [detection.select, list(detection.ignore), detection.similarity or 0]
    if options == [None, [], 0]:
        return base
    return Chosen(base, json.dumps(options), detection.ignore, detection.similarity or 0)


def detector(name: str, select: str | None = None) -> Plain:
    """The detector of a name: ``raw``, ``text``, ``main``, or with a selector ``css`` and ``json``.

    >>> detector("text").name
    'text'
    """
    if name in _DETECTORS:
        if select is not None:
            raise ParameterError(f"select goes with the detectors {' and '.join(_SELECTING)}, not with {name}")
        return _DETECTORS[name]()
    if name not in _SELECTING:
        raise unknown("detector", name, NAMES)
    if select is None:
        what = "a CSS selector" if name == "css" else "a JSON pointer"
        raise ParameterError(f"detector {name} needs {what}: give one as select, in a rule")
    return _SELECTING[name](select)


def tag(detector: Detector) -> str:
    """What a digest begins with: name, version and options of its detector. Digests of other tags are not compared."""
    return f"{detector.name}-{detector.version}:"


def same(detector: Detector, a: str, b: str) -> bool:
    """Whether two digests of a detector are of pages that count as the same."""
    return a == b or (isinstance(detector, Chosen) and detector.same(a, b))
