"""``GET /changes.xml``: the newest changes as an Atom feed (RFC 4287), with what changed where texts are kept."""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from fastapi import APIRouter, Request
from fastapi.responses import Response

from recrawl.crawl.deliver.notify.message import Item, html_diff, item_of
from recrawl.crawl.signals.tokens import Tokens
from recrawl.serve.guard import authorize
from recrawl.serve.problems import ProblemError
from recrawl.store.events import Event

if TYPE_CHECKING:
    from recrawl.serve.app import Listings

MEDIA_TYPE = "application/atom+xml; charset=utf-8"
KINDS = ("changed", "gone", "redirected")
_MOST = 50  # entries
_ATOM = "http://www.w3.org/2005/Atom"
_WORDS = {"changed": "changed", "gone": "gone", "redirected": "moved"}
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def feed_routes(store: Listings, tokens: Tokens) -> APIRouter:
    """The route of the feed. A feed is computed once for all readers, until there is a new event."""
    router = APIRouter()
    kept: tuple[str, bytes] = ("", b"")
    lock = asyncio.Lock()

    @router.get("/changes.xml")
    async def changes(request: Request) -> Response:
        nonlocal kept
        authorize_reader(request, tokens)
        async with lock:
            newest = await store.newest_events(1)
            tag = f'"{newest[0].id}"' if newest else '"none"'
            if kept[0] != tag:
                events = await store.newest_events(_MOST, kinds=KINDS)
                kept = tag, await asyncio.to_thread(feed_of, events)
        headers = {"etag": tag, "cache-control": "private, no-cache", "x-content-type-options": "nosniff"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(kept[1], media_type=MEDIA_TYPE, headers=headers)

    return router


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


def feed_of(events: Sequence[Event]) -> bytes:
    """The feed of events, newest first. Nothing that a page says is markup."""
    feed = ElementTree.Element("feed", xmlns=_ATOM)
    _add(feed, "id", f"urn:recrawl:{events[0].id.partition('.')[0] if events else 'changes'}")
    _add(feed, "title", "Changes of pages")
    _add(feed, "updated", _time(events[0].at if events else 0.0))
    author = ElementTree.SubElement(feed, "author")
    _add(author, "name", "recrawl")
    for event in events:
        _entry(feed, event, item_of(event))
    written: bytes = ElementTree.tostring(feed, encoding="utf-8", xml_declaration=True)
    return written


def _entry(feed: ElementTree.Element, event: Event, item: Item) -> None:
    entry = ElementTree.SubElement(feed, "entry")
    _add(entry, "id", f"urn:recrawl:{event.id}")
    _add(entry, "title", f"{_WORDS[event.kind]}: {item.title}")
    _add(entry, "updated", _time(event.at))
    if event.url.startswith(("http://", "https://")):
        ElementTree.SubElement(entry, "link", rel="alternate", href=_clean(item.url))
    _add(entry, "summary", f"{_WORDS[event.kind]} {item.when}: {item.url}")
    if item.diff is not None:
        _add(entry, "content", html_diff(item.diff), type="html")


def _add(parent: ElementTree.Element, name: str, text: str, **attributes: str) -> None:
    ElementTree.SubElement(parent, name, attributes).text = _clean(text)


def _clean(text: str) -> str:
    """A text without characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
