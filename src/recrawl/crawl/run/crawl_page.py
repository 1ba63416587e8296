"""Visit: one crawl of a page, from robots.txt over redirects to the outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from recrawl.crawl.config.rules import Rules
from recrawl.crawl.deliver.texts import text_of
from recrawl.crawl.detect.detector import PLAIN, UNSAID, Detector, chosen, same, tag
from recrawl.crawl.detect.detectors import MainText
from recrawl.crawl.feeds.cache import FeedsKept
from recrawl.crawl.http.cache_headers import fresh_for
from recrawl.crawl.http.fetched import Fetched, Fetcher
from recrawl.crawl.http.semantics import redirect_goal
from recrawl.crawl.polite.host_limiter import Turns
from recrawl.crawl.polite.not_modified import Trust, Validators
from recrawl.crawl.polite.robots import Robots
from recrawl.crawl.run.offload import Apart
from recrawl.engine.addresses import host_of
from recrawl.store.protocol import Copy, Outcome

_NONE = Validators()
DELAY = "delay:"  # notes of hosts' own delays
MOST_HOPS = 5
_PERMANENT = frozenset({301, 308})
_LONGEST_TURN = 30.0  # seconds a redirect may have to wait for its host
HOST_FAILURES = frozenset({"dns", "connect", "tls", "timeout", "reset"})


@dataclass(frozen=True, slots=True)
class Visited:
    """What a visit came to: an outcome, or none where only robots.txt was read (``back``: the page is due again)."""

    outcome: Outcome | None = None
    back: bool = False
    aside_until: float | None = None
    n_bytes: int = 0
    good_for: float | None = None  # how long the server says that the answer stays good
    n_requests: int = 0  # made for robots.txt alone


class Visitor:
    """Makes visits; what it learns of hosts is told through ``note``, which returns once it is kept."""

    def __init__(
        self,
        fetcher: Fetcher,
        turns: Turns,
        *,
        detector: Detector,
        feeds: FeedsKept,
        robots: Robots | None,
        rules: Rules,
        now: Callable[[], float],
        further: Callable[[], Awaitable[None]],
        charge: Callable[[int], None],
        note: Callable[[str, object], Awaitable[None]],
        is_page: Callable[[str], bool],
        longest_delay: float,
        trust: Trust,
        apart: Apart,
        texts: bool = False,
    ) -> None:
        self._fetcher, self._turns, self._detector, self._robots, self._rules = fetcher, turns, detector, robots, rules
        self._now, self._further, self._charge, self._note, self._is_page = now, further, charge, note, is_page
        self._longest_delay = longest_delay
        self._trust, self._apart, self._texts, self._feeds = trust, apart, texts, feeds
        self._default = detector.name if detector.name in PLAIN else MainText.name  # for rules that name none

    async def visit(self, url: str, copy: Copy | None, *, full: bool = False) -> Visited:
        """Crawl a page whose first request is paid for; with ``full`` it is asked for without validators."""
        if self._robots is not None and not self._robots.known(url):
            began, n = self._now(), await self._ask_robots(url)
            if not (await self._robots.rules(url)).unreachable:
                return Visited(back=True, n_requests=n)
            return Visited(
                Outcome(url, began, failure="robots", requests=n), aside_until=self._robots.ask_again_at(url)
            )
        began = self._now()
        if await self._forbidden(url) is not None:
            until = None if self._robots is None else self._robots.ask_again_at(url)
            return Visited(Outcome(url, began, failure="robots", requests=0), aside_until=until)
        hop = _Hop(url, url, began, full=full)
        while True:
            fetched = await self._fetch(hop, copy)
            goal = redirect_goal(hop.at, fetched)
            if goal is None:
                break
            word = await self._follow(hop, goal, fetched.status)
            if word is not None:
                return Visited(self._stopped(hop, fetched, word))
        good_for = fresh_for(fetched.headers, self._now())
        size = len(fetched.body)
        outcome = await self._apart.call(lambda: self._outcome(hop, fetched, copy), size)
        return Visited(outcome, n_bytes=size, good_for=good_for)

    async def _ask_robots(self, url: str) -> int:
        """Read robots.txt: requests of its own, after each of which the host rests as after any other; how many."""
        assert self._robots is not None
        robots, host, n = self._robots, host_of(url), 0

        async def ask(at: str) -> Fetched:
            nonlocal n
            if n:
                await self._further()
            if n and self._turns.wait(host_of(at)) > _LONGEST_TURN:
                return Fetched(at, at, 0, self._now(), 0.0, failure="busy")
            async with self._turns.turn(host_of(at)):
                fetched = await robots.fetch(at)
            n += self._made(fetched)
            self._mind_host(host_of(at), fetched)
            return fetched

        rule = await robots.rules(url, ask)
        delay = min(rule.crawl_delay or 0.0, self._longest_delay)
        if self._turns.slow_down(host, delay):
            self._turns.hold(host, self._now() + self._turns.delay(host))
            await self._note(f"{DELAY}{host}", self._turns.delay(host))
        return n

    async def _forbidden(self, url: str) -> str | None:
        """Why a page may not be fetched now; None where it may."""
        if self._robots is None:
            return None
        rule = await self._robots.rules(url)
        if rule.allowed:
            return None
        return rule.unreachable if rule.unreachable == "forbidden-address" else "robots"

    async def _fetch(self, hop: _Hop, copy: Copy | None) -> Fetched:
        host = host_of(hop.at)
        async with self._turns.turn(host):
            if not hop.n_requests:
                hop.began = self._now()
            etag, last_modified = self._validators(hop, copy)
            headers = self._rules.of(hop.at).headers
            fetched = await self._fetcher.fetch(hop.at, etag=etag, last_modified=last_modified, headers=headers or None)
        hop.n_requests += self._made(fetched)
        self._mind_host(host, fetched)
        return fetched

    def _made(self, fetched: Fetched) -> int:
        """How many requests a fetch made; those beyond the first are charged for."""
        made = max(len(fetched.redirects) + (fetched.failure != "redirects"), 1)
        self._charge(made - 1)
        return made

    def _mind_host(self, host: str, fetched: Fetched) -> None:
        if fetched.retry_after is not None and fetched.failure is not None:
            self._turns.hold(host, self._now() + fetched.retry_after)
        elif fetched.failure == "busy" or fetched.failure in HOST_FAILURES:
            self._turns.failed(host, busy=fetched.failure == "busy")
        else:
            self._turns.answered(host)

    def _validators(self, hop: _Hop, copy: Copy | None) -> Validators:
        if copy is None or hop.at != (copy.final_url or hop.url) or not self._comparable(hop.url, copy):
            return Validators()
        hop.had = Validators(copy.etag, copy.last_modified)
        hop.sent = _NONE if hop.full else self._trust.choose(hop.url, hop.had, hop.began)
        return hop.sent

    def _comparable(self, url: str, copy: Copy) -> bool:
        return copy.digest is not None and copy.digest.startswith(tag(self._detector_of(url)))

    def _detector_of(self, url: str) -> Detector:
        """What tells changes of a page: by its rules, else the one for all."""
        said = replace(self._rules.of(url).detection, flapping=None)
        return self._detector if said == UNSAID else chosen(said, self._default)

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
            hop.n_requests += await self._ask_robots(goal)
        if (word := await self._forbidden(goal)) is not None:
            return word
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
        found = Compared()
        if fetched.failure is None:
            found = self._compared(hop, fetched, copy)
        changed = found.changed
        keeps = fetched.failure is None and not fetched.not_modified and (changed is not False or found.flapping)
        final_url = fetched.final_url if fetched.final_url != hop.url else None
        return Outcome(
            hop.url,
            hop.began,
            max(self._now() - hop.began, 0.0),
            fetched.status or None,
            changed,
            found.digest,
            None if fetched.gone else fetched.failure,
            fetched.gone,
            final_url,
            fetched.headers.get("etag"),
            fetched.headers.get("last-modified"),
            fetched.headers.get("content-type"),
            hop.n_requests,
            fetched.body if keeps else None,
            self._text(fetched, copy, changed, final_url),
            found.flapping,
            found.rolled_off,
        )

    def _text(self, fetched: Fetched, copy: Copy | None, changed: bool | None, final_url: str | None) -> str | None:
        """The text for the event that this may be."""
        if not self._texts or fetched.failure is not None or fetched.not_modified:
            return None
        alike = changed is False and copy is not None and copy.final_url == final_url
        return None if alike else text_of(fetched)

    def _compared(self, hop: _Hop, fetched: Fetched, copy: Copy | None) -> Compared:
        rolled = self._feeds.fetched(hop.url, fetched, hop.began)
        detector = self._detector_of(hop.url)
        digest = None if fetched.not_modified else tag(detector) + detector.digest(fetched)
        if copy is None or copy.digest is None or not self._comparable(hop.url, copy):
            return Compared(digest, None, rolled_off=rolled)
        differs = digest is not None and not same(detector, copy.digest, digest)
        self._trust.learn(hop.url, hop.had, hop.sent, fetched, changed=differs, by_lot=not hop.full)
        if not differs or digest is None:  # nearly the same: what is compared with stays, or a page could drift away
            return Compared(digest and copy.digest, False, rolled_off=rolled)
        flapping = copy.seen(digest) and self._rules.of(hop.url).detection.flapping is not False
        return Compared(digest, not flapping, flapping, rolled)


class Compared(NamedTuple):
    """What the comparison with the copy came to."""

    digest: str | None = None
    changed: bool | None = None
    flapping: bool = False
    rolled_off: bool = False


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
