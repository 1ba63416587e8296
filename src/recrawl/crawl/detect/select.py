"""Selecting: the part of a page that a CSS selector or a JSON pointer names."""

from __future__ import annotations

import json
import re
from typing import Any

from recrawl.crawl.detect.visible import _ATTRIBUTES, visible_text
from recrawl.errors import ParameterError

# A tree takes time that grows with the square of the depth and of the attributes of an element.
_LARGEST = 2 << 20  # characters
_TAGS = 20_000
_BARE = 2048  # bytes of attributes of one element, without quoted values
_LARGE_TAG = re.compile(rb"<[a-zA-Z](?=[^>]{%d})" % _BARE + _ATTRIBUTES)
_QUOTED = re.compile(rb"\"[^\"]*+\"|'[^']*+'")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)


class TooComplex(Exception):
    """A page of which no tree is made, since that could take long."""


def check_selector(selector: str) -> None:
    """Complain about what is no CSS selector."""
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    if not selector.strip() or len(selector) > 500:
        raise ParameterError("select: a CSS selector has 1 to 500 characters")
    try:
        LexborHTMLParser("<p></p>").css(selector)
    except (SelectolaxError, ValueError, UnicodeError):
        raise ParameterError(f"select: {selector!r} is not a CSS selector") from None


def selected_text(html: str, selector: str) -> bytes | None:
    """The visible text of all elements that a selector matches, a line for each; None where there are none."""
    from selectolax.lexbor import LexborHTMLParser

    check_complexity(html)
    texts, length = [], 0
    for node in LexborHTMLParser(html).css(selector):
        part = node.html or ""
        length += len(part)
        texts.append(visible_text(part))
        if length > _LARGEST:  # elements within each other could make far more text than the page has
            break
    return "\n".join(texts).encode("utf-8", "replace") if texts else None


def check_complexity(html: str) -> None:
    """Raise TooComplex for a page of which a tree could take long to make."""
    if len(html) > _LARGEST or html.count("<") > _TAGS:
        raise TooComplex
    data = html.encode("utf-8", "replace")
    for tag in _LARGE_TAG.finditer(data):
        if len(_QUOTED.sub(b"", tag[0])) > _BARE:
            raise TooComplex


def check_pointer(pointer: str) -> None:
    """Complain about what is no JSON pointer (RFC 6901)."""
    if len(pointer) > 500 or (pointer and not pointer.startswith("/")) or re.search(r"~(?![01])", pointer):
        raise ParameterError(f"select: {pointer[:100]!r} is not a JSON pointer; write for example /items/0/price")


def pointed(document: Any, pointer: str) -> tuple[bool, Any]:
    """Whether there is something where a JSON pointer (RFC 6901) leads, and what.

    >>> pointed({"a/b": [1, {"~": 2}]}, "/a~1b/1/~0")
    (True, 2)
    """
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict) and key in document:
            document = document[key]
        elif isinstance(document, list) and _INDEX.fullmatch(key) and int(key) < len(document):
            document = document[int(key)]
        else:
            return False, None
    return True, document


def parsed(text: str) -> Any:
    """A JSON document; raises ValueError for what is none, or is nested too deep."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def canonical_json(document: Any) -> bytes:
    """A JSON document in one form: names in order, no blanks; raises ValueError where it is nested too deep."""
    try:
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except RecursionError:
        raise ValueError("nested too deep") from None
    return text.encode("utf-8", "replace")
