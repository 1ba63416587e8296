"""Visit: one crawl of a page, from robots.txt over redirects to the outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import urljoin

from recrawl.crawl.answer import REDIRECTS
from recrawl.crawl.detect import Detector
from recrawl.crawl.fetched import Fetched, Fetcher
from recrawl.crawl.hints import fresh_for
from recrawl.crawl.robots import Robots
from recrawl.crawl.rules import Rules
from recrawl.crawl.trust import Trust, Validators
from recrawl.crawl.turns import Turns
from recrawl.crawl.urls import canonical
from recrawl.engine.addresses import host_of
from recrawl.errors import ParameterError
from recrawl.store.base import Copy, Outcome

_NONE = Validators()
DELAY = "delay:"  # notes of hosts' own delays
MOST_HOPS = 5
_PERMANENT = frozenset({301, 308})
_LONGEST_TURN = 30.0  # seconds a redirect may have to wait for its host
_HOST_FAILURES = frozenset({"dns", "connect", "tls", "timeout", "reset"})


@dataclass(frozen=True, slots=True)
class Visited:
    """What a visit came to: an outcome, or none where only robots.txt was read (``back``: the page is due again)."""

    outcome: Outcome | None = None
    back: bool = False
    aside_until: float | None = None
    n_bytes: int = 0
    good_for: float | None = None  # how long the server says that the answer stays good


class Visitor:
    """Makes visits; what it learns of hosts is told through ``note``, which returns once it is kept."""

    def __init__(
        self,
        fetcher: Fetcher,
        turns: Turns,
        *,
        detector: Detector,
        robots: Robots | None,
        rules: Rules,
        now: Callable[[], float],
        further: Callable[[], Awaitable[None]],
        charge: Callable[[int], None],
        note: Callable[[str, object], Awaitable[None]],
        is_page: Callable[[str], bool],
        longest_delay: float,
        trust: Trust,
    ) -> None:
        self._fetcher, self._turns, self._detector, self._robots, self._rules = fetcher, turns, detector, robots, rules
        self._now, self._further, self._charge, self._note, self._is_page = now, further, charge, note, is_page
        self._longest_delay = longest_delay
        self._trust = trust
        self._kind = f"{detector.name}-{detector.version}:"

    async def visit(self, url: str, copy: Copy | None, *, full: bool = False) -> Visited:
        """Crawl a page whose first request is paid for; with ``full`` it is asked for without validators."""
        if self._robots is not None and not self._robots.known(url):
            await self._ask_robots(url)
            return Visited(back=True)
        began = self._now()
        if (until := await self._forbidden(url)) is not None:
            return Visited(Outcome(url, began, failure="robots", requests=0), aside_until=until)
        hop = _Hop(url, url, began, full=full)
        while True:
            fetched = await self._fetch(hop, copy)
            goal = self._goal(hop, fetched)
            if goal is None:
                break
            word = await self._follow(hop, goal, fetched.status)
            if word is not None:
                return Visited(self._stopped(hop, fetched, word))
        good_for = fresh_for(fetched.headers, self._now())
        return Visited(self._outcome(hop, fetched, copy), n_bytes=len(fetched.body), good_for=good_for)

    async def _ask_robots(self, url: str) -> None:
        """Read robots.txt: a request of its own, after which the host rests as after any other."""
        assert self._robots is not None
        host = host_of(url)
        async with self._turns.turn(host):
            rule = await self._robots.rules(url)
        delay = min(rule.crawl_delay or 0.0, self._longest_delay)
        if self._turns.slow_down(host, delay):
            self._turns.hold(host, self._now() + self._turns.delay(host))
            await self._note(f"{DELAY}{host}", self._turns.delay(host))

    async def _forbidden(self, url: str) -> float | None:
        """When to ask again whether a page may be fetched; None where it may be now."""
        if self._robots is None:
            return None
        rule = await self._robots.rules(url)
        return None if rule.allowed else self._robots.ask_again_at(url)

    async def _fetch(self, hop: _Hop, copy: Copy | None) -> Fetched:
        host = host_of(hop.at)
        async with self._turns.turn(host):
            if not hop.n_requests:
                hop.began = self._now()
            etag, last_modified = self._validators(hop, copy)
            headers = self._rules.of(hop.at).headers
            fetched = await self._fetcher.fetch(hop.at, etag=etag, last_modified=last_modified, headers=headers or None)
        made = max(len(fetched.redirects) + (fetched.failure != "redirects"), 1)  # also those the fetcher made itself
        self._charge(made - 1)
        hop.n_requests += made
        self._mind_host(host, fetched)
        return fetched

    def _mind_host(self, host: str, fetched: Fetched) -> None:
        if fetched.retry_after is not None and fetched.failure is not None:
            self._turns.hold(host, self._now() + fetched.retry_after)
        elif fetched.failure == "busy" or fetched.failure in _HOST_FAILURES:
            self._turns.failed(host, busy=fetched.failure == "busy")
        else:
            self._turns.answered(host)

    def _validators(self, hop: _Hop, copy: Copy | None) -> Validators:
        if copy is None or hop.at != (copy.final_url or hop.url) or not self._comparable(copy):
            return Validators()
        hop.had = Validators(copy.etag, copy.last_modified)
        hop.sent = _NONE if hop.full else self._trust.choose(hop.url, hop.had, hop.began)
        return hop.sent

    def _comparable(self, copy: Copy) -> bool:
        return copy.digest is not None and copy.digest.startswith(self._kind)

    def _goal(self, hop: _Hop, fetched: Fetched) -> str | None:
        """Where a redirect leads that the fetcher did not follow itself."""
        location = fetched.headers.get("location")
        if fetched.failure != "redirects" or fetched.status not in REDIRECTS or not location:
            return None
        if len(fetched.redirects) > 1:
            return None
        try:
            return canonical(urljoin(hop.at, location))
        except ParameterError:
            return None

    async def _follow(self, hop: _Hop, goal: str, status: int) -> str | None:
        """Go where a redirect leads, if that is allowed; else the word for why not."""
        hop.passed.append(hop.at)
        if goal in hop.passed or len(hop.passed) > MOST_HOPS:
            return "redirects"
        first = len(hop.passed) == 1
        hop.at = goal
        if first and status in _PERMANENT and self._is_page(goal):
            return "moved"
        host = host_of(goal)
        if self._robots is not None and not self._robots.known(goal):
            await self._further()
            await self._ask_robots(goal)
            hop.n_requests += 1
        if await self._forbidden(goal) is not None:
            return "robots"
        if self._turns.wait(host) > _LONGEST_TURN:
            return "busy"
        await self._further()
        return None

    def _stopped(self, hop: _Hop, fetched: Fetched, word: str) -> Outcome:
        """The outcome of a redirect that was not followed; one for good to a page that is kept anyway is gone."""
        took = self._now() - hop.began
        moved = word == "moved"
        return Outcome(
            hop.url,
            hop.began,
            took,
            fetched.status,
            failure=None if moved else word,
            gone=moved,
            final_url=hop.at,
            requests=hop.n_requests,
        )

    def _outcome(self, hop: _Hop, fetched: Fetched, copy: Copy | None) -> Outcome:
        digest, changed = None, None
        if fetched.failure is None:
            digest, changed = self._compared(hop, fetched, copy)
        final_url = fetched.final_url if fetched.final_url != hop.url else None
        return Outcome(
            hop.url,
            hop.began,
            max(self._now() - hop.began, 0.0),
            fetched.status or None,
            changed,
            digest,
            None if fetched.gone else fetched.failure,
            fetched.gone,
            final_url,
            fetched.headers.get("etag"),
            fetched.headers.get("last-modified"),
            fetched.headers.get("content-type"),
            hop.n_requests,
            fetched.body if fetched.failure is None and not fetched.not_modified and changed is not False else None,
        )

    def _compared(self, hop: _Hop, fetched: Fetched, copy: Copy | None) -> tuple[str | None, bool | None]:
        digest = None if fetched.not_modified else self._kind + self._detector.digest(fetched)
        if copy is None or not self._comparable(copy):
            return digest, None
        changed = digest is not None and digest != copy.digest
        self._trust.learn(hop.url, hop.had, hop.sent, fetched, changed=changed, by_lot=not hop.full)
        return digest, changed


@dataclass(slots=True)
class _Hop:
    url: str
    at: str
    began: float
    n_requests: int = 0
    full: bool = False
    had: Validators = _NONE
    sent: Validators = _NONE
    passed: list[str] = field(default_factory=list)
