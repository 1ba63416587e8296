"""Not modified: whether a server's 304 answers can be trusted.

Some pages are fetched in full although they could be fetched conditionally. These fetches are drawn at random, so with
a correct server changes appear in them as often as in the others. A server that always answers 304 shows changes in
the full fetches alone; the test is the beta-binomial tail of the changes seen in full fetches, given those seen in
conditional ones. A page that changes under unchanged validators is detected at once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import exp, lgamma
from random import Random
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

from recrawl.crawl.http.fetched import Fetched
from recrawl.errors import ParameterError

UNLIKELY = 1e-3  # a host with a smaller probability to be correct is no longer trusted
DISTRUSTED_FOR = 30 * 86400.0  # seconds until a host or page is tried again
_WRONG_PAGES = 3  # pages with wrong 304 answers after which the host is distrusted
_MOVED = 5  # times an ETag moved without a change before it is no longer sent
_COUNTED = 2000  # fetches of a host after which older ones fade
_NEGLIGIBLE = 1e-12  # of a sum
_MOST = 100_000  # hosts remembered, and pages


class Validators(NamedTuple):
    """What a conditional request is made with."""

    etag: str | None = None
    last_modified: str | None = None

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Self:
        """Those that an answer came with."""
        return cls(headers.get("etag"), headers.get("last-modified"))


@dataclass(slots=True)
class _Host:
    asked: int = 0  # conditional fetches
    asked_changed: int = 0
    checked: int = 0  # full fetches of pages that had validators
    checked_changed: int = 0
    wrong_pages: int = 0  # pages with wrong 304 answers
    etag_moved: int = 0  # new ETag, same content
    etag_held: int = 0  # same ETag or 304
    doubted_until: float = -1.0

    def faded(self) -> _Host:
        """The same with half the weight: what was long ago counts less."""
        return _Host(**{name: count // 2 for name, count in self.counts().items() if isinstance(count, int)})

    def counts(self) -> dict[str, int | float]:
        """The fields by name; crawls of many hosts note them often, so that no deep copy is made."""
        return {name: getattr(self, name) for name in _FIELDS}


_FIELDS = tuple(field.name for field in fields(_Host))


class NotModified:
    """Chooses the validators to send, from earlier answers; per host, and per page for pages with wrong 304 answers."""

    def __init__(self, *, check_every: int = 10, rng: Random | None = None) -> None:
        if check_every < 2:
            raise ParameterError(f"check_every is {check_every}: must be at least 2")
        self._check = 1.0 / check_every
        self._rng = rng or Random()
        self._hosts: OrderedDict[str, _Host] = OrderedDict()
        self._pages: OrderedDict[str, float] = OrderedDict()  # URL -> until when it is distrusted

    def choose(self, url: str, had: Validators, now: float) -> Validators:
        """The validators to send: all, those that work, or none, when they are not trusted or it is time to check."""
        if not (had.etag or had.last_modified) or not self.trusts(url, now) or self._rng.random() < self._check:
            return Validators()
        host = self._hosts.get(urlsplit(url).netloc)
        if host is not None and had.last_modified and _etag_useless(host):
            return Validators(None, had.last_modified)
        return had

    def trusts(self, url: str, now: float) -> bool:
        """Whether a 304 for this page would be trusted."""
        host = self._hosts.get(urlsplit(url).netloc)
        return now >= self._pages.get(url, -1.0) and (host is None or now >= host.doubted_until)

    def learn(
        self, url: str, had: Validators, sent: Validators, fetched: Fetched, *, changed: bool, at_random: bool = True
    ) -> None:
        """Take in a fetch without failure of a page that had validators; ``changed``: by its digest.

        A full fetch that was not drawn ``at_random`` does not count for how often such pages change.
        """
        if fetched.failure is not None or not (had.etag or had.last_modified):
            return
        now = fetched.began_at
        if not self.trusts(url, now):
            return  # fetched in full for that reason and not at random
        host = self._host(urlsplit(url).netloc, now)
        got = Validators.of(fetched.headers)
        if sent.etag or sent.last_modified:
            host.asked += 1
            host.asked_changed += changed
        else:
            host.checked += at_random
            host.checked_changed += at_random and changed
            if changed and _same(had, got):
                self._distrust(url, host, now)
        if not changed and had.etag:
            moved = got.etag is not None and got.etag != had.etag
            host.etag_moved += moved
            host.etag_held += not moved
        if host.wrong_pages >= _WRONG_PAGES or correctness(host) < UNLIKELY:
            host.doubted_until = max(host.doubted_until, now + DISTRUSTED_FOR)

    def _host(self, name: str, now: float) -> _Host:
        host = self._hosts.get(name)
        if host is None or 0 <= host.doubted_until <= now:
            host = self._hosts[name] = _Host()  # new, or given another chance
        elif host.asked + host.checked >= _COUNTED:
            host = self._hosts[name] = host.faded()
        self._hosts.move_to_end(name)
        while len(self._hosts) > _MOST:
            self._hosts.popitem(last=False)
        return host

    def _distrust(self, url: str, host: _Host, now: float) -> None:
        host.wrong_pages += 1
        self._pages[url] = now + DISTRUSTED_FOR
        self._pages.move_to_end(url)
        while len(self._pages) > _MOST:
            self._pages.popitem(last=False)

    def state(self) -> dict[str, Any]:
        """What was learned, in plain values that JSON can hold."""
        return {"hosts": {name: host.counts() for name, host in self._hosts.items()}, "pages": dict(self._pages)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what ``state`` gave."""
        self._hosts = OrderedDict((name, _host_of(host)) for name, host in state["hosts"].items())
        self._pages = OrderedDict(state["pages"])


def _host_of(saved: Mapping[str, Any]) -> _Host:
    """A host of a saved state; version 0.1 called ``wrong_pages`` liars."""
    return _Host(**{"wrong_pages" if name == "liars" else name: value for name, value in saved.items()})


def correctness(host: _Host) -> float:
    """How likely an honest server shows so many changes in full fetches, given those in conditional ones.

    P(at least k of n) when k is binomial with a chance that has the Beta posterior of the conditional fetches.
    """
    n, k = host.checked, host.checked_changed
    a, b = 1.0 + host.asked_changed, 1.0 + host.asked - host.asked_changed
    if k == 0 or k * (a + b) <= n * a:
        return 1.0
    total = term = _beta_binomial(k, n, a, b)
    for i in range(k, n):  # each term from the one before
        term *= (n - i) * (i + a) / ((i + 1) * (n - i - 1 + b))
        total += term
        if term < _NEGLIGIBLE * total:  # the terms have one maximum: those that follow are less
            break
    return min(total, 1.0)


def _beta_binomial(k: int, n: int, a: float, b: float) -> float:
    choose = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
    return exp(choose + _log_beta(k + a, n - k + b) - _log_beta(a, b))


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def _same(had: Validators, got: Validators) -> bool:
    """Whether an answer carries the validators that were there before: asked for them, it would have been a 304."""
    if had.etag and got.etag:
        return had.etag.removeprefix("W/") == got.etag.removeprefix("W/")
    return had.last_modified is not None and had.last_modified == got.last_modified


def _etag_useless(host: _Host) -> bool:
    return host.etag_moved >= _MOVED and host.etag_moved > 10 * host.etag_held
