"""How many signals were taken, by what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from recrawl.crawl.signals.limits import SPEAKERS
from recrawl.crawl.signals.sources import Source

TOTALS = "signals"  # the note of the counts of all runs


class SignalCounts:
    """Counts by speaker in this run, and by source in all runs; names as in `Taken`.

    Speakers beyond a number are counted together.

    >>> counts = SignalCounts()
    >>> counts.add({Source("feed", "a.example"): Counter(accepted=2), Source("feed", "b.example"): Counter(unknown=1)})
    >>> counts.by_source["feed"]["accepted"], counts.pending_notes()
    (2, {'signals': {'feed': {'accepted': 2, 'unknown': 1}}})
    """

    def __init__(self) -> None:
        self.by_speaker: dict[Source, Counter[str]] = {}
        self.by_source: dict[str, Counter[str]] = {}  # by the name of the engine's source
        self._changed = False

    def restore(self, notes: Mapping[str, Any]) -> None:
        """Take up the counts of earlier runs."""
        self.by_source = {name: Counter(counts) for name, counts in notes.get(TOTALS, {}).items()}

    def add(self, counts: Mapping[Source, Counter[str]]) -> None:
        """Count signals."""
        for source, found in counts.items():
            self._changed = True
            self.by_source.setdefault(source.name, Counter()).update(found)
            known = source in self.by_speaker or len(self.by_speaker) < SPEAKERS
            self.by_speaker.setdefault(source if known else Source(source.kind, "others"), Counter()).update(found)

    def pending_notes(self) -> dict[str, Any]:
        """The counts of all runs, if they are not saved yet."""
        changed, self._changed = self._changed, False
        return {TOTALS: {name: dict(counts) for name, counts in self.by_source.items()}} if changed else {}
