"""The main text of an HTML document: what is left without navigation, boxes around the content, and what is hidden.

As for the visible text no tree is built, so that no document takes long: start tags that may begin a part to leave out
are found by RE2, in one pass; such a part ends where tags of its own name balance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import re2

from recrawl.crawl.detect.visible import (
    _ATTRIBUTE,
    _ATTRIBUTES,
    _NO_DISPLAY,
    _TAG,
    _TRIES,
    _VOID,
    _end_of_nested,
    _end_of_tag,
    _skipped,
    _without,
)

# Elements whose content is not the page's own.
_ASIDE = "nav|footer|aside|dialog|menu"
_ROLES = frozenset(
    b"navigation banner contentinfo complementary search dialog alertdialog menu menubar toolbar tablist".split()
)
# Words that a class or an id begins with where it names a part that is not the page's own.
_WORDS = (
    "adsbygoogle|ads?|advert|adverts|advertisement|advertising|adslot|adbox|anzeige|werbung|publicite|pub|publicidad|reklama|"
    "sponsor|sponsored|sponsors|promo|promos|promoted|promotion|banner|banners|cookie|cookies|consent|gdpr|newsletter|"
    "subscribe|subscription|share|sharing|social|follow|breadcrumb|breadcrumbs|pagination|pager|sidebar|side-bar|aside|"
    "related|recommended|recommendation|recommendations|recirc|similar|popular|trending|most-read|most-popular|mostread|"
    "ranking|also-like|upsell|crosssell|cross-sell|recently-viewed|widget|widgets|modal|popup|pop-up|overlay|toast|"
    "nav|navbar|navigation|mainnav|gnav|menu|topbar|masthead|site-header|page-header-nav|toc|footer|site-footer|"
    "mw-navigation|skip-link|disqus|views|view-count|viewcount|views-count|hits|counter|visitors|timeago|time-ago|"
    "relative-time|countdown|timer|clock|online-users|whos-online|minicart|mini-cart|captcha|csrf|nonce|session-id|urgency"
)
_KEPT = frozenset({b"html", b"body", b"main", b"article", b"h1", b"title", b"head"})
_MAYBE = re2.compile(
    rf"<(?:{_ASIDE}|header)[\s/>]|"
    rf"<[a-z][a-z0-9:-]{{0,30}}\s[^<>]*?(?:hidden|none|role\s*=|[\"'\s=](?:{_WORDS})[\"'\s>_-]|[-_]ads?[\"'\s>])"
)
_NAME = re.compile(rb"[a-z][a-z0-9:-]{0,30}")
_OWN_NAME = re.compile(rf"(?:{_ASIDE})".encode())
_TOKEN = re.compile(rf"(?:{_WORDS})(?:[-_].*)?|.*[-_]ads?".encode(), re.DOTALL)
_MAIN = re2.compile(r"<main[\s/>]|<[a-z][a-z0-9]{0,30}\s[^<>]*?role\s*=\s*[\"']?main[\"'\s>]")
_TITLE = re.compile(rb"<title[^>]{0,500}>([^<]{0,2000})")
_INLINE = re.compile(
    rb"</?(?:a|abbr|b|bdi|bdo|big|cite|code|data|dfn|em|font|i|ins|kbd|label|mark|q|s|samp|small|span|strike|strong|"
    rb"sub|sup|tt|u|var|wbr)(?=[\s/>])" + _ATTRIBUTES + rb">?"
)
_BLANKS = bytes.maketrans(b"\t\n\r\f\v", b"     ")


def main_text(html: bytes, *, blocks: bool = False) -> bytes:
    r"""The main text, both in UTF-8: a new line wherever a tag was, or for ``blocks`` where one of a block was.

    >>> main_text(b"<nav>Home</nav><h1>Tea</h1><p class='ad'>Buy!</p><p>Two <b>spoons</b>", blocks=True).split(b"\n")
    [b'', b'', b'Tea', b'', b'', b'Two  spoons ']
    """
    data = html.translate(_BLANKS) if blocks else html
    low = data.lower()
    skipped = list(_skipped(low))
    if skipped:
        data, low = (b" ".join(_without(one, iter(skipped))) for one in (data, low))
    inner = _main_part(low)
    title = b""
    if inner is not None:
        found = _TITLE.search(low)
        title = b"" if found is None else data[found.start(1) : found.end(1)] + b"\n"
        data, low = data[inner[0] : inner[1]], low[inner[0] : inner[1]]
    rest = b"\n".join(_without(data, _left_out(low)))
    text = title + _as_lines(rest, blocks)
    if not text or text.isspace():  # all of it was around the content: then it is the content
        text = _as_lines(data, blocks)
    return _unescaped(text)


def _as_lines(data: bytes, blocks: bool) -> bytes:
    return _TAG.sub(b"\n", _INLINE.sub(b" ", data) if blocks else data)


def _unescaped(text: bytes) -> bytes:
    if b"&" in text:
        text = unescape(text.decode("utf-8", "replace")).encode("utf-8", "replace")
    return text.replace(b"\xc2\xa0", b" ") if b"\xa0" in text else text


def _main_part(low: bytes) -> tuple[int, int] | None:
    """Where the main element is; None where there is none, or it has no end."""
    found = _MAIN.search(low)
    if found is None:
        return None
    name = _NAME.match(low, found.start() + 1)
    start = _end_of_tag(low, name.end() if name else found.end())
    end = _end_of_nested(low, name[0] if name else b"main", start)
    return None if end is None else (start, end)


def _left_out(low: bytes) -> Iterator[tuple[int, int]]:
    """Parts that do not count, from start to end tag; those without an end tag are left."""
    at = tries = 0
    while tries < _TRIES and (found := _MAYBE.search(low, at)) is not None:
        start = found.start()
        name = _NAME.match(low, start + 1)
        if name is None:
            at = found.end()
            continue
        at = _end_of_tag(low, name.end())
        if name[0] in _KEPT or name[0] in _VOID or not _is_aside(name[0], low[name.end() : min(at, name.end() + 4000)]):
            continue
        end = _end_of_nested(low, name[0], at)
        if end is None or _holds_content(low, at, end, name[0]):
            tries += 1  # what is inside is looked at again, so that must not happen often
            continue
        at = end
        yield start, end


def _is_aside(name: bytes, attributes: bytes) -> bool:
    if _OWN_NAME.fullmatch(name) or name == b"header":
        return True
    return any(_tells(key, value.strip(b"\"'")) for key, value in _ATTRIBUTE.findall(attributes))


def _tells(key: bytes, value: bytes) -> bool:
    if key in (b"class", b"id"):
        return any(_TOKEN.fullmatch(word) for word in value.split()[:50])
    if key == b"role":
        return value in _ROLES
    return key == b"hidden" or (key == b"aria-hidden" and value == b"true") or (
        key == b"style" and _NO_DISPLAY.search(value) is not None
    )  # fmt: skip


def _holds_content(low: bytes, start: int, end: int, name: bytes) -> bool:
    """Whether a part that looks like one around the content has the page's heading in it, or all of the page."""
    if name in (b"nav", b"footer", b"dialog"):
        return False
    return low.find(b"<h1", start, end) >= 0 or low.find(b"<main", start, end) >= 0
