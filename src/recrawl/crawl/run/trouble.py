"""Trouble with hosts: which hosts fail again and again, and how many warnings about hosts are logged."""

from __future__ import annotations

from collections import Counter

_MANY = 10  # failures in a row that are worth a warning; again at 20, 40, 80 …
_REMEMBERED = 100_000  # hosts that fail
_MOST_WARNINGS = 20  # of one kind in a minute; further ones are debug records, and counted


class HostTrouble:
    """Counts the crawls of each host that failed in a row.

    >>> trouble = HostTrouble()
    >>> [trouble.count("a.example", failed=True) for _ in range(11)][8:]
    [0, 10, 0]
    >>> trouble.count("a.example", failed=False)       # it answers again
    -11
    """

    def __init__(self) -> None:
        self._failed: Counter[str] = Counter()

    def __bool__(self) -> bool:
        return bool(self._failed)  # whether a host fails

    def count(self, host: str, *, failed: bool) -> int:
        """Count a crawl: the failures in a row if they are worth a warning; minus them when the host answers again."""
        if not failed:
            n = self._failed.pop(host, 0)
            return -n if n >= _MANY else 0
        if len(self._failed) < _REMEMBERED or host in self._failed:
            self._failed[host] += 1
        n = self._failed[host]
        tens = n // _MANY
        return n if n and n % _MANY == 0 and tens & (tens - 1) == 0 else 0


class Warnings:
    """Lets through so many warnings of each kind a minute; ``hidden`` counts the others."""

    def __init__(self) -> None:
        self._n: Counter[str] = Counter()
        self.hidden = 0

    def allows(self, name: str) -> bool:
        """Whether one more warning of a kind is logged as a warning."""
        self._n[name] += 1
        self.hidden += self._n[name] > _MOST_WARNINGS
        return self._n[name] <= _MOST_WARNINGS

    def next_minute(self) -> int:
        """A minute has passed: how many were hidden in it."""
        hidden, self.hidden = self.hidden, 0
        self._n.clear()
        return hidden
