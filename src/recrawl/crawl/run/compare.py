"""Comparison of a fetched page with its copy: the validators to send, and the outcome."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from recrawl.crawl.clock import Clock
from recrawl.crawl.config.options import CrawlOptions
from recrawl.crawl.deliver.texts import text_of
from recrawl.crawl.detect.detector import PLAIN, UNSPECIFIED, Detector, detector_for, same, tag
from recrawl.crawl.detect.detectors import MainText
from recrawl.crawl.feeds.cache import FeedCache
from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.offload import Offload
from recrawl.crawl.polite.not_modified import NotModified, Validators
from recrawl.store.protocol import Copy, Outcome

_NONE = Validators()
GIVEN = "given:"  # what a digest begins with that a foreign crawler made


@dataclass(slots=True)
class Hop:
    """Where a crawl is: the page, the URL that is fetched now, and what was sent for it."""

    url: str
    at: str
    began: float
    n_requests: int = 0
    full: bool = False
    had: Validators = _NONE
    sent: Validators = _NONE
    passed: list[str] = field(default_factory=list)
    took: float | None = None  # seconds, as a foreign crawler says; None: until now


class Compared(NamedTuple):
    """The result of the comparison with the copy."""

    digest: str | None = None
    changed: bool | None = None
    flapping: bool = False
    rolled_off: bool = False


class Given(NamedTuple):
    """A page that a foreign crawler has fetched without a redirect, as it says."""

    url: str
    began: float
    took: float
    status: int
    digest: str
    etag: str | None
    last_modified: str | None
    content_type: str | None
    requests: int


class Comparer:
    """Compares fetched pages with their copies, by the detector of each page; large pages in a thread."""

    def __init__(self, options: CrawlOptions, feeds: FeedCache, not_modified: NotModified, clock: Clock) -> None:
        self._detector: Detector = options.detector or MainText()
        self._rules = options.rules
        self.texts = options.texts  # of which pages events carry the text
        self._feeds, self._not_modified, self._clock = feeds, not_modified, clock
        self._offload = Offload(clock)
        plain = self._detector.name in PLAIN
        self._default = self._detector.name if plain else MainText.name  # for rules that name no detector

    def validators(self, hop: Hop, copy: Copy | None) -> Validators:
        """The validators to send with the next request of a crawl."""
        if copy is None or hop.at != (copy.final_url or hop.url) or not self._comparable(hop.url, copy):
            return Validators()
        hop.had = Validators(copy.etag, copy.last_modified)
        hop.sent = _NONE if hop.full else self._not_modified.choose(hop.url, hop.had, hop.began)
        return hop.sent

    async def outcome(self, hop: Hop, fetched: Fetched, copy: Copy | None, digest: str | None = None) -> Outcome:
        """The outcome of a crawl whose last fetch this is; ``digest`` is given where the detector is not to be used."""
        return await self._offload.call(lambda: self._outcome(hop, fetched, copy, digest), len(fetched.body))

    def given(self, said: Given, copy: Copy | None) -> Outcome | None:
        """The outcome of a crawl without validators of which a foreign crawler says a digest.

        None: `outcome` is needed, because events may carry the page's text.
        """
        if self.texts(said.url) if callable(self.texts) else self.texts:
            return None
        found = Compared(GIVEN + said.digest)
        if copy is not None and copy.digest is not None and copy.digest.startswith(GIVEN):
            found = self._against(said.url, copy, GIVEN + said.digest)
        return Outcome(
            said.url,
            said.began,
            said.took,
            said.status,
            found.changed,
            found.digest,
            etag=said.etag,
            last_modified=said.last_modified,
            content_type=said.content_type,
            requests=said.requests,
            flapping=found.flapping,
        )

    def close(self) -> None:
        """End the thread."""
        self._offload.close()

    def _outcome(self, hop: Hop, fetched: Fetched, copy: Copy | None, digest: str | None) -> Outcome:
        found = Compared()
        if fetched.failure is None:
            found = self._compared(hop, fetched, copy, digest)
        changed = found.changed
        keeps = fetched.failure is None and not fetched.not_modified and (changed is not False or found.flapping)
        keeps = keeps and (digest is None or bool(fetched.body))
        final_url = fetched.final_url if fetched.final_url != hop.url else None
        return Outcome(
            hop.url,
            hop.began,
            max(self._clock.now() - hop.began, 0.0) if hop.took is None else hop.took,
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
            self._text(hop.url, fetched, copy, changed, final_url),
            found.flapping,
            found.rolled_off,
        )

    def _compared(self, hop: Hop, fetched: Fetched, copy: Copy | None, given: str | None) -> Compared:
        rolled = given is None and self._feeds.fetched(hop.url, fetched, hop.began)
        detector, digest = self._detector_of(hop.url), None
        if not fetched.not_modified:
            digest = tag(detector) + detector.digest(fetched) if given is None else GIVEN + given
        if copy is None or copy.digest is None or not self._comparable(hop.url, copy):
            return Compared(digest, None, rolled_off=rolled)
        if digest is not None and copy.digest.startswith(GIVEN) != digest.startswith(GIVEN):
            return Compared(digest, None, rolled_off=rolled)
        found = Compared(None, False) if digest is None else self._against(hop.url, copy, digest)
        differs = digest is not None and found.digest != copy.digest
        self._not_modified.learn(hop.url, hop.had, hop.sent, fetched, changed=differs, at_random=not hop.full)
        return found._replace(rolled_off=rolled) if rolled else found

    def _against(self, url: str, copy: Copy, digest: str) -> Compared:
        """A digest beside that of a copy which it can be compared with."""
        before = copy.digest or ""
        if before == digest or same(self._detector_of(url), before, digest):
            return Compared(before, False)  # nearly the same: the copy's digest stays, or a page could drift away
        flapping = copy.seen(digest) and self._rules.of(url).detection.flapping is not False
        return Compared(digest, not flapping, flapping)

    def _comparable(self, url: str, copy: Copy) -> bool:
        return copy.digest is not None and copy.digest.startswith((tag(self._detector_of(url)), GIVEN))

    def _detector_of(self, url: str) -> Detector:
        """The detector of a page: by its rules, otherwise the general one."""
        detection = self._rules.of(url).detection
        if detection.flapping is not None:
            detection = replace(detection, flapping=None)
        unspecified = detection is UNSPECIFIED or detection == UNSPECIFIED
        return self._detector if unspecified else detector_for(detection, self._default)

    def _text(
        self, url: str, fetched: Fetched, copy: Copy | None, changed: bool | None, final_url: str | None
    ) -> str | None:
        """The text for the event that this crawl may lead to."""
        wanted = self.texts(url) if callable(self.texts) else self.texts
        if not wanted or fetched.failure is not None or fetched.not_modified:
            return None
        alike = changed is False and copy is not None and copy.final_url == final_url
        return None if alike else text_of(fetched)
