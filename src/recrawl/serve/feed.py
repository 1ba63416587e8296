"""``GET /changes.xml``: the newest changes as an RSS 2.0 feed, with what changed where texts or bodies are kept."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree

from fastapi import APIRouter, Request
from fastapi.responses import Response

from recrawl.crawl.deliver.notify.message import Item, html_item, item_of
from recrawl.crawl.signals.tokens import Tokens
from recrawl.serve.guard import authorize
from recrawl.serve.kept_texts import with_texts
from recrawl.serve.problems import ProblemError
from recrawl.store.events import Event

if TYPE_CHECKING:
    from recrawl.serve.app import Listings
    from recrawl.serve.crawls.view import CrawlView

MEDIA_TYPE = "application/rss+xml; charset=utf-8"
KINDS = ("changed", "gone", "redirected")
_MOST = 50  # items
_LOOKED_AT = 500  # newest events of which some are chosen by a pattern or a notification
_REMEMBERED = 1000  # items whose differences are not computed again
_FEEDS = 20  # feeds that are not written again
_WORDS = {"changed": "changed", "gone": "gone", "redirected": "moved"}
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Choice(NamedTuple):
    """Which events a feed has: a name in words, the kinds, and whether a URL belongs to it; None: all URLs."""

    name: str = ""
    kinds: tuple[str, ...] = KINDS
    matches: Callable[[str], bool] | None = None


class Changes:
    """The items of events and the written feeds: each is computed once for all readers, until there is a new event."""

    def __init__(self, store: Listings, crawl: CrawlView | None) -> None:
        self._store, self._crawl, self._lock = store, crawl, asyncio.Lock()
        self._items: OrderedDict[str, Item] = OrderedDict()
        self._written: OrderedDict[str, bytes] = OrderedDict()

    def choice(self, notify: str, match: str) -> Choice:
        """The events that a ``[[notify]]`` table sends, or of pages whose URLs match a pattern."""
        if match:
            return Choice(f"of {match}", matches=lambda url: fits(match, url))
        if not notify:
            return Choice()
        rules = () if self._crawl is None else self._crawl.settings.notifications()
        found = next((one for one in rules if one.name == notify), None)
        if found is None:
            raise ProblemError(404, "the settings have no [[notify]] table of that name")
        kinds = tuple(kind for kind in found.kinds if kind in KINDS)
        return Choice(f"for {notify} ({', '.join([*found.match, *kinds])})", kinds, found.matches)

    async def feed(self, choice: Choice, link: str) -> tuple[str, bytes]:
        """The tag of a feed and its text."""
        async with self._lock:
            newest = await self._store.newest_events(1)
            named = f"{newest[0].id if newest else 'none'} {choice.name} {link}"
            tag = f'"{hashlib.blake2b(named.encode("utf-8", "replace"), digest_size=12).hexdigest()}"'
            if tag not in self._written:
                events = await self._events(choice)
                items = [await self._item(event) for event in events]
                self._written[tag] = await asyncio.to_thread(feed_of, events, items, link, choice.name)
                _shorten(self._written, _FEEDS)
            return tag, self._written[tag]

    async def _events(self, choice: Choice) -> list[Event]:
        if choice.matches is None:
            return await self._store.newest_events(_MOST, kinds=choice.kinds)
        events = await self._store.newest_events(_LOOKED_AT, kinds=choice.kinds) if choice.kinds else []
        return [event for event in events if choice.matches(event.url)][:_MOST]

    async def _item(self, event: Event) -> Item:
        if event.id not in self._items:
            if self._crawl is not None:
                event = await with_texts(self._crawl.store_of(event.url), event)
            self._items[event.id] = await asyncio.to_thread(item_of, event)
            _shorten(self._items, _REMEMBERED)
        return self._items[event.id]


def feed_routes(store: Listings, tokens: Tokens, crawl: CrawlView | None = None, public_url: str = "") -> APIRouter:
    """The route of the feed."""
    router, changes = APIRouter(), Changes(store, crawl)

    @router.get("/changes.xml")
    async def newest(request: Request, notify: str = "", match: str = "") -> Response:
        authorize_reader(request, tokens)
        link = public_url.strip() or str(request.base_url)
        tag, text = await changes.feed(changes.choice(notify, match), link)
        headers = {"etag": tag, "cache-control": "private, no-cache", "x-content-type-options": "nosniff"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(text, media_type=MEDIA_TYPE, headers=headers)

    return router


def feed_of(events: Sequence[Event], items: Sequence[Item], link: str, name: str = "") -> bytes:
    """The feed of events, newest first. Nothing that a page says is markup."""
    rss = ElementTree.Element("rss", version="2.0")
    channel = ElementTree.SubElement(rss, "channel")
    _add(channel, "title", f"Changes {name or 'of pages'}")
    _add(channel, "link", link)
    _add(channel, "description", "Pages that changed, moved or are gone, as recrawl found them")
    _add(channel, "generator", "recrawl")
    if events:
        _add(channel, "lastBuildDate", _time(events[0].at))
    for event, item in zip(events, items, strict=True):
        entry = ElementTree.SubElement(channel, "item")
        _add(entry, "title", f"{_WORDS[event.kind]}: {item.title}")
        if event.url.startswith(("http://", "https://")):
            _add(entry, "link", item.url)
        _add(entry, "guid", f"urn:recrawl:{event.id}", isPermaLink="false")
        _add(entry, "pubDate", _time(event.at))
        _add(entry, "description", html_item(item))
    written: bytes = ElementTree.tostring(rss, encoding="utf-8", xml_declaration=True)
    return written


def authorize_reader(request: Request, tokens: Tokens) -> None:
    """A token with the scope read, as a bearer token or as the password of HTTP Basic: feed readers know no other."""
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        authorize(request, tokens, "read")
        return
    try:
        password = base64.b64decode(text, validate=True).decode().partition(":")[2] if kind.lower() == "basic" else ""
    except (binascii.Error, UnicodeDecodeError):
        password = ""
    token = tokens.find(password) if password else None
    if token is None:
        challenge = 'Basic realm="recrawl: the password is a token", charset="UTF-8"'
        raise ProblemError(401, "a token is needed, as the password", headers={"www-authenticate": challenge})
    if not token.allows("read"):
        raise ProblemError(403, "the token has no scope read")


def fits(match: str, url: str) -> bool:
    """Whether a URL matches a pattern as in rules, * for any text, in time that no pattern can make long.

    >>> fits("https://a.example/*", "https://a.example/x"), fits("*/x*y", "https://a.example/xz"), fits("a", "ab")
    (True, False, False)
    """
    first, *rest = match.split("*")
    if not rest:
        return url == match
    at = len(first)
    for part in rest[:-1]:
        found = url.find(part, at)
        at = len(url) + 1 if found < 0 else found + len(part)
    return url.startswith(first) and at + len(rest[-1]) <= len(url) and url.endswith(rest[-1])


def _add(parent: ElementTree.Element, name: str, text: str, **attributes: str) -> None:
    ElementTree.SubElement(parent, name, attributes).text = _NOT_XML.sub("\ufffd", text)


def _time(at: float) -> str:
    return format_datetime(datetime.fromtimestamp(at, UTC), usegmt=True)


def _shorten(kept: OrderedDict[str, Item] | OrderedDict[str, bytes], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)
