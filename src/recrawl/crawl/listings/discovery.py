"""Discovery: which URLs that listings and links name become pages, by rule and within limits; others are counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from recrawl.crawl.config.rules import DISCOVER, Rules, pattern
from recrawl.engine.names.addresses import host_of
from recrawl.errors import ParameterError
from recrawl.model.pages import MOST_IMPORTANT
from recrawl.urls import canonical

PREFIX = "discover:"  # of the notes of sites that are followed
COUNTS = "discovered"  # the note of what was added today and seen elsewhere
LIMIT = 1000  # new pages per host and day, unless a rule or site says otherwise
MOST_SITES = 10_000
_MOST_HOSTS = 10_000  # whose new pages are counted
_DAY = 86400.0
_FILES = re.compile(
    r"\.(?:7z|avi|bmp|bz2|css|dmg|exe|gif|gz|ico|iso|jpe?g|js|m4a|mov|mp[34]|mpe?g|png|rar|svg|tar|tgz|ttf|wav|web[mp]"
    r"|woff2?|xz|zip)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Site:
    """URLs that are followed without a rule: their pattern, what finds them, and what new pages get."""

    match: str
    discover: tuple[str, ...] = DISCOVER
    importance: float = 1.0
    limit: int = LIMIT

    @classmethod
    def of(cls, url: str, importance: float = 1.0) -> Site:
        """The site of a front page: all URLs of its folder.

        >>> Site.of("https://docs.example.org/v2/index.html").match
        'https://docs.example.org/v2/*'
        """
        if not 0 <= importance <= MOST_IMPORTANT:
            raise ParameterError(f"importance is {importance:g}: must be from 0 to {MOST_IMPORTANT:g}")
        parts = urlsplit(canonical(url))
        folder = parts.path[: parts.path.rfind("/") + 1]
        return cls(f"{parts.scheme}://{parts.netloc}{folder}*", importance=importance)

    def note(self) -> dict[str, Any]:
        """As it is noted in the store."""
        found = {"discover": list(self.discover), "importance": self.importance, "limit": self.limit}
        return {PREFIX + self.match: found}

    @classmethod
    def restore(cls, name: str, note: Mapping[str, Any]) -> Site:
        """The site of a note."""
        return cls(name.removeprefix(PREFIX), tuple(note["discover"]), note["importance"], note["limit"])


@dataclass(frozen=True, slots=True)
class Scope:
    """What holds for new URLs of one place."""

    discover: tuple[str, ...] = ()
    importance: float = 1.0
    limit: int = LIMIT


_NOTHING = Scope()


class Found(NamedTuple):
    """URLs that become pages, with their importance, and how many others must wait for another day."""

    pages: dict[str, float]
    limited: int


class Discovery:
    """Decides about new URLs; ``is_page`` answers whether a URL is a page already."""

    def __init__(self, rules: Rules, is_page: Callable[[Sequence[str]], Sequence[bool]]) -> None:
        self._rules, self._is_page = rules, is_page
        self._sites: dict[str, tuple[re.Pattern[str], Site]] = {}
        self._day = 0
        self._today: Counter[str] = Counter()  # new pages by host
        self.elsewhere: Counter[str] = Counter()  # new URLs out of scope, by what found them
        self.limited: Counter[str] = Counter()  # those beyond the limit of a day, by host
        self._changed = False
        self._found: set[str] = set()  # become pages, but may not be yet

    def restore(self, notes: Mapping[str, Any], counts: Mapping[str, Any] | None) -> None:
        """The sites that are followed, and what was counted."""
        for name, note in notes.items():
            self.follow(Site.restore(name, note))
        if counts:
            self._day, self._today = int(counts["day"]), Counter(counts["today"])
            self.elsewhere, self.limited = Counter(counts["elsewhere"]), Counter(counts["limited"])

    def follow(self, site: Site) -> None:
        """Follow a site from now on."""
        if site.match in self._sites or len(self._sites) < MOST_SITES:
            self._sites[site.match] = pattern(site.match), site

    def scope(self, url: str) -> Scope:
        """What holds for a new URL: the last rule that says something, else the last site."""
        ruling = self._rules.of(url)
        if ruling.never:
            return _NOTHING
        if ruling.discover is not None:
            limit = LIMIT if ruling.discover_limit is None else ruling.discover_limit
            return Scope(ruling.discover, 1.0 if ruling.importance is None else ruling.importance, limit)
        found = [site for match, site in self._sites.values() if match.fullmatch(url)] if self._sites else []
        return Scope(found[-1].discover, found[-1].importance, found[-1].limit) if found else _NOTHING

    @property
    def is_on(self) -> bool:
        """Whether anything can be discovered."""
        return bool(self._sites) or any(rule.discover for rule in self._rules.rules)

    def new_pages(self, kind: str, urls: Iterable[str], now: float, *, again: bool = False) -> Found:
        """Which URLs, named by a sitemap, feed or links, become pages; others are counted, unless named ``again``."""
        self._begin_day(now)
        given = list(dict.fromkeys(urls))
        new = [url for url, known in zip(given, self._is_page(given), strict=True) if not known]
        new = [url for url in new if url not in self._found]
        self._changed = self._changed or bool(new)
        if not self.is_on:
            self.elsewhere[kind] += 0 if again else len(new)
            return Found({}, 0)
        found, limited, full = dict[str, float](), Counter[str](), set[str]()
        for url in new:
            host = host_of(url)
            scope = _NOTHING if host in full else self.scope(url)
            if host not in full and (kind not in scope.discover or _FILES.search(urlsplit(url).path)):
                self.elsewhere[kind] += not again
            elif host in full or not self._has_room(host, scope.limit):
                full.add(host)  # what follows of this host is not looked at
                limited[host] += 1
            else:
                self._today[host] += 1
                found[url] = scope.importance
        self._remember(found, Counter() if again else limited)
        return Found(found, limited.total())

    def count_elsewhere(self, kind: str, n: int) -> None:
        """URLs out of scope that were not looked at."""
        self.elsewhere[kind] += n
        self._changed = self._changed or n > 0

    def _has_room(self, host: str, limit: int) -> bool:
        """Whether a host may get a further page today."""
        return self._today[host] < limit and (host in self._today or len(self._today) < _MOST_HOSTS)

    def _remember(self, found: Iterable[str], limited: Mapping[str, int]) -> None:
        for host, n in limited.items():
            self.limited[host if host in self.limited or len(self.limited) < _MOST_HOSTS else "others"] += n
        if len(self._found) > _MOST_HOSTS:
            self._found.clear()
        self._found.update(found)

    def _begin_day(self, now: float) -> None:
        if int(now // _DAY) != self._day:
            self._day, self._changed = int(now // _DAY), True
            self._today.clear()
            self.limited.clear()

    def pending_notes(self) -> dict[str, Any]:
        """The note of what was counted since the last call."""
        if not self._changed:
            return {}
        self._changed = False
        counts = {"day": self._day, "today": dict(self._today)}
        return {COUNTS: counts | {"elsewhere": dict(self.elsewhere), "limited": dict(self.limited)}}
