"""Sources of change signals: a kind and a speaker, and the number under which the engine weighs them.

The engine has at most 16 numbered sources and keeps gates per source and host by itself. So a kind that hosts speak is
one source, and each token name is a source of its own (``webhook:NAME``); when the numbers are used up, further token
names share ``webhook``. Numbers are stored as a note of the database and never change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from recrawl.errors import ParameterError, unknown

NOTE = "sources"  # the note of the names, by number
KINDS = ("sitemap", "feed", "listing", "websub", "indexnow", "webhook")
WEBHOOK = "webhook"  # the kind whose speakers are token names
MOST = 16  # sources of an engine
_SIZES = (1, 4, 8, 16)  # numbers of sources that engines are opened with


@dataclass(frozen=True, slots=True)
class Source:
    """Who says that pages change: a kind, and the page's host or, for webhooks, a token's name.

    >>> str(Source("sitemap", "docs.example.org")), Source("webhook", "cms").name
    ('sitemap of docs.example.org', 'webhook:cms')
    """

    kind: str
    speaker: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown("kind of source", self.kind, KINDS)
        if not self.speaker:
            raise ParameterError(f"{self.kind}: the speaker of a source must not be empty")

    @property
    def name(self) -> str:
        """The name of the engine's source."""
        return f"{self.kind}:{self.speaker}" if self.kind == WEBHOOK else self.kind

    def __str__(self) -> str:
        return self.name if self.kind == WEBHOOK else f"{self.kind} of {self.speaker}"


class Sources:
    """The engine's sources by name; a number is given when a source first speaks.

    >>> sources = Sources()
    >>> sources.number(Source("feed", "a.example")), sources.number(Source("feed", "b.example")), sources.names
    (0, 0, ['feed'])
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._numbers = {name: number for number, name in enumerate(names)}
        self.changed = False  # whether a name is not saved yet

    @classmethod
    def restore(cls, notes: Mapping[str, Any]) -> Sources:
        """The sources of a note."""
        return cls(notes.get(NOTE, []))

    @property
    def names(self) -> list[str]:
        """The names, by number."""
        return list(self._numbers)

    def name(self, number: int) -> str:
        """The name of a number, also of one that has none."""
        return self.names[number] if number < len(self._numbers) else f"source {number}"

    def number(self, source: Source) -> int:
        """The number of a source; a new one for a source that is heard for the first time."""
        found = self._numbers.get(source.name)
        if found is not None:
            return found
        kinds = sum(kind not in self._numbers for kind in KINDS)  # each kind can always get a number
        name = source.name if source.name in KINDS or len(self._numbers) + kinds < MOST else source.kind
        if name not in self._numbers:
            self._numbers[name] = len(self._numbers)
            self.changed = True
        return self._numbers[name]

    def note(self) -> dict[str, Any]:
        """The note to save with the first signals of new sources."""
        return {NOTE: self.names}


def engine_sources(names: Iterable[str], switched_on: Iterable[str], stored: int = 0) -> int | None:
    """How many sources an engine is opened with: those that have spoken and those switched on; never fewer than stored.

    None: as the engine has it.

    >>> engine_sources(["feed"], ["sitemap", "feed"]), engine_sources([], [])
    (4, None)
    """
    n = len({*names, *switched_on})
    return max(next(size for size in _SIZES if size >= n), stored) if n else None
