"""Keys: which key of which site was verified, and which pings wait for that.

A key file is asked for at most once a day per site and key, whatever it answers (once more where a run was killed
before the answer), and at most ``CHECKS_OF_SITE`` new keys of one site are tried in a day: others are refused with 429.
Pages that were pinged with a key that is being verified wait, at most ``MOST_WAITING`` of them in all. Everything is
kept in notes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from recrawl.crawl.signals.indexnow.ping import Ping, Refusal, speaks_for

PREFIX = "indexnow:"  # notes of keys
DAY = 86400.0
MOST_KEYS = 5000
MOST_WAITING = 20_000  # URLs
CHECKS_OF_SITE = 5  # new keys of a site in a day


class Taken(NamedTuple):
    """A ping that was taken: pages to signal now, or none while the key is being verified."""

    status: int
    urls: tuple[str, ...] = ()
    check: KeyCheck | None = None  # the key file that is to be fetched


class KeyCheck(NamedTuple):
    """A key file to be fetched."""

    site: str
    key: str
    location: str


@dataclass(frozen=True, slots=True)
class _Key:
    """What is known of a key of a site; ``valid`` is None while it is not verified."""

    location: str
    asked_at: float
    valid: bool | None = None
    waiting: tuple[str, ...] = ()  # pages that were pinged


class Keys:
    """The keys of all sites; ``is_page`` answers which URLs are pages."""

    def __init__(self, is_page: Callable[[Sequence[str]], Sequence[bool]]) -> None:
        self._is_page = is_page
        self._keys: dict[tuple[str, str], _Key] = {}
        self._changed: set[tuple[str, str]] = set()
        self._n_waiting = 0

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def n_waiting(self) -> int:
        """How many pages wait for a key."""
        return self._n_waiting

    # --- notes --------------------------------------------------------------------------------------------------------

    def restore(self, notes: Mapping[str, Any], now: float) -> list[KeyCheck]:
        """Take up the notes of earlier runs; the checks that were not finished."""
        for name, note in notes.items():
            site, key = _site_key(name)
            found = _Key(**{**note, "waiting": tuple(note["waiting"])})
            if found.asked_at > now:  # the clock was set back
                found = replace(found, asked_at=now)
            self._set(site, key, found)
        self._changed.clear()
        return [KeyCheck(site, key, one.location) for (site, key), one in self._keys.items() if one.valid is None]

    def pending_notes(self) -> dict[str, Any]:
        """Notes of what changed since the last call."""
        changed, self._changed = self._changed, set()
        return {f"{PREFIX}{site} {key}": self._note(site, key) for site, key in changed}

    @property
    def has_changes(self) -> bool:
        """Whether there are pending notes."""
        return bool(self._changed)

    def not_saved(self, names: Iterable[str]) -> None:
        """Pending notes could not be written: they are pending again."""
        self._changed.update(map(_site_key, names))

    def _note(self, site: str, key: str) -> dict[str, Any] | None:
        one = self._keys.get((site, key))
        return None if one is None else asdict(one)

    # --- pings --------------------------------------------------------------------------------------------------------

    def take(self, ping: Ping, now: float) -> Taken | Refusal:
        """Take a ping: what to answer, and what is to be done. A ping about no page causes no request."""
        pages = tuple(url for url, known in zip(ping.urls, self._is_page(ping.urls), strict=True) if known)
        one = self._keys.get((ping.site, ping.key))
        if one is not None and (one.valid is None or now < one.asked_at + DAY):
            return self._known(ping, pages, one)
        if not pages:
            return Taken(200)
        if one is None and not self._has_room(ping.site, now):
            return Refusal(429, "too many keys of this host were tried today")
        refusal = self._wait(ping, pages, _Key(ping.location, now))
        return refusal or Taken(202, check=KeyCheck(ping.site, ping.key, ping.location))

    def _known(self, ping: Ping, pages: tuple[str, ...], one: _Key) -> Taken | Refusal:
        covered = ping.location == one.location or all(speaks_for(one.location, url) for url in ping.urls)
        if one.valid is False or not covered:
            return Refusal(403, "the key file does not hold the key, or not for these URLs")
        if one.valid:
            return Taken(200, pages)
        return self._wait(ping, pages, one) or Taken(202)

    def _wait(self, ping: Ping, pages: tuple[str, ...], one: _Key) -> Refusal | None:
        """Let pages wait for their key; a page that waits already is not written again."""
        there = set(one.waiting)
        new = tuple(url for url in pages if url not in there)
        if self._n_waiting + len(new) > MOST_WAITING:
            return Refusal(429, "too many URLs wait for their keys")
        if new or self._keys.get((ping.site, ping.key)) != one:
            self._set(ping.site, ping.key, replace(one, waiting=one.waiting + new))
        return None

    def waiting(self, check: KeyCheck) -> list[str]:
        """The pages that wait for a key, in the order in which they were pinged."""
        one = self._keys.get((check.site, check.key))
        return [] if one is None else list(one.waiting)

    def checked(self, check: KeyCheck, valid: bool) -> None:
        """A key file was fetched: nothing waits for it any more."""
        one = self._keys.get((check.site, check.key))
        if one is not None:
            self._set(check.site, check.key, replace(one, valid=valid, waiting=()))

    # --- the table ----------------------------------------------------------------------------------------------------

    def _has_room(self, site: str, now: float) -> bool:
        """Whether another key of a site may be tried; makes room by forgetting verdicts that count no more."""
        tried = sum(1 for (name, _), one in self._keys.items() if name == site and now < one.asked_at + DAY)
        if tried >= CHECKS_OF_SITE:
            return False
        if len(self._keys) >= MOST_KEYS:
            for site_key, one in list(self._keys.items()):
                if now >= one.asked_at + DAY and not one.waiting:
                    del self._keys[site_key]
                    self._changed.add(site_key)
        return len(self._keys) < MOST_KEYS

    def _set(self, site: str, key: str, one: _Key) -> None:
        before = self._keys.get((site, key))
        self._n_waiting += len(one.waiting) - (0 if before is None else len(before.waiting))
        self._keys[site, key] = one
        self._changed.add((site, key))


def _site_key(name: str) -> tuple[str, str]:
    """The site and the key of a note."""
    site, _, key = name.removeprefix(PREFIX).rpartition(" ")
    return site, key
