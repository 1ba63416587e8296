"""Effects of signals: how late they came, which crawls they brought forward, what those found, trust over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from typing import Any

EFFECTS = "signal_effects"  # the note
MOST = 1000  # pairs of source and host; further hosts are counted together
OTHERS = "others"
_BINS = 26  # of delays: bin k has those from 2^k to 2^(k+1) seconds, the first all shorter ones
_TURNS = 20  # of trust that are kept, the latest


@dataclass
class Effect:
    """What the signals of a source did on a host.

    ``caused`` are crawls of pages with a signal that counted, ``found`` those of them that found a change. ``turns``
    are the times at which the signals began to count or ceased to.

    >>> one = Effect()
    >>> for seconds in (3.0, 50.0, 50.0, 4000.0):
    ...     one.delayed(seconds)
    >>> one.delay()
    {'n': 4, 'median': 48.0, 'low': 3.0, 'high': 3072.0}
    """

    caused: int = 0
    found: int = 0
    delays: list[int] = field(default_factory=lambda: [0] * _BINS)
    turns: list[tuple[float, bool]] = field(default_factory=list)

    def delayed(self, seconds: float) -> None:
        """A signal came so long after the change that it tells."""
        self.delays[min(max(int(seconds), 1).bit_length() - 1, _BINS - 1)] += 1

    def delay(self) -> dict[str, float] | None:
        """Median of the delays and the interval of the middle 90%, to a factor of 1.5; None: none was stated."""
        sums = list(accumulate(self.delays))
        if not sums[-1]:
            return None

        def at(share: float) -> float:
            return 1.5 * 2.0 ** next(k for k, total in enumerate(sums) if total >= share * sums[-1])

        return {"n": sums[-1], "median": at(0.5), "low": at(0.05), "high": at(0.95)}

    def turned(self, at: float, counts: bool) -> bool:
        """Note whether the signals count; whether that has changed."""
        if counts == (bool(self.turns) and self.turns[-1][1]):
            return False
        self.turns = [*self.turns, (at, counts)][-_TURNS:]
        return True


class SignalEffects:
    """The effects by source and host, of all runs.

    >>> effects = SignalEffects()
    >>> effects.crawled(("feed", "a.example"), changed=True, counts=True, now=5.0)
    >>> effects.of("feed", "a.example").found, effects.of("feed", "a.example").turns
    (1, [(5.0, True)])
    """

    def __init__(self) -> None:
        self._effects: dict[tuple[str, str], Effect] = {}
        self._changed = False

    def restore(self, notes: Mapping[str, Any]) -> None:
        """Take up what earlier runs noted."""
        for source, host, state in notes.get(EFFECTS, []):
            turns = [(float(at), bool(counts)) for at, counts in state["turns"]]
            self._effects[source, host] = Effect(**{**state, "turns": turns})

    def of(self, source: str, host: str) -> Effect | None:
        """What is known of a source on a host."""
        return self._effects.get((source, host))

    def _of(self, pair: tuple[str, str]) -> Effect:
        self._changed = True
        if pair not in self._effects and len(self._effects) >= MOST:
            pair = pair[0], OTHERS
        return self._effects.setdefault(pair, Effect())

    def heard(self, pair: tuple[str, str], delay: float) -> None:
        """A new signal of a source about a page of a host came so many seconds after the change."""
        self._of(pair).delayed(delay)

    def crawled(self, pair: tuple[str, str], *, changed: bool, counts: bool, now: float) -> None:
        """A page with a signal was crawled; ``counts``: the signals of the source count on its host."""
        effect = self._of(pair)
        effect.turned(now, counts)
        effect.caused += counts
        effect.found += counts and changed

    def pending_notes(self) -> dict[str, Any]:
        """The note of all effects, if one is not saved yet."""
        changed, self._changed = self._changed, False
        return {EFFECTS: [[*pair, asdict(one)] for pair, one in self._effects.items()]} if changed else {}
