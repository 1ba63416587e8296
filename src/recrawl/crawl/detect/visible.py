"""The text of an HTML document that a reader sees, in time linear in its length whatever the document.

Tree builders take minutes for a few megabytes of nested or attribute-laden elements made for that purpose, so no tree
is built: tags are recognised as the HTML standard's tokeniser does, and what is not shown is skipped to its end tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

# A tag with its attributes: a quote opens a value only after "=". The groups never give back what they took.
_VALUES = rb"""(?:=\s*+(?:"[^"]*+"|'[^']*+')?+[^>=]*+)*+"""
_ATTRIBUTES = rb"[^>=]*+" + _VALUES
_TAG = re.compile(rb"<(?:(?:/?[a-zA-Z])[^>=]*+(?:>|" + _VALUES + rb">?)|[!?/][^>]*+>?)")
_REST = re.compile(_ATTRIBUTES + rb">?")
_SKIPPED = re.compile(rb"<(?=[!sntio])(?:!--|(s(?:cript|tyle|vg)|noscript|template|iframe|object)(?=[\s/>]))")
_MAYBE_HIDDEN = re.compile(rb"<([a-z][a-z0-9:-]{0,30})(?=\s[^<]{0,2000}(?:hidden|none))")
_ATTRIBUTE = re.compile(rb"""[\s/]([^\s"'<>/=]{1,40}+)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'<>]++))?""")
_NO_DISPLAY = re.compile(rb"display\s*+:\s*+none|visibility\s*+:\s*+hidden")
_COMMENT_END = re.compile(rb"--!?>")
_TO_THE_END = frozenset({b"script", b"style"})  # without an end tag they last to the end of the document
_VOID = frozenset(b"area base br col embed hr img input link meta source track wbr".split())
_BREAK = b"\x00"
_BLOCK = re.compile(
    rb"(?=</?(?:address|article|aside|blockquote|br|caption|dd|details|div|dl|dt|fieldset|figcaption|figure|footer|form|"
    rb"h[1-6]|head|header|hr|legend|li|main|nav|ol|option|p|pre|section|summary|table|title|tr|ul)[\s/>])",
    re.IGNORECASE,
)  # before the tags of blocks, with which a line begins or ends
_TRIES = 20  # elements without an end tag that are looked for before no more are


def visible_text(html: str, *, lines: bool = False) -> str:
    """The text of an HTML document that a reader sees, blanks collapsed; with ``lines``, a line for each block.

    >>> visible_text("<title>t</title><p>one  <b>two</b><script>x()</script><i hidden>three</i> &amp; <!-- no --> four")
    't one two & four'
    >>> visible_text("<h1>Tea</h1><p>green\\n<b>3.00</b></p>", lines=True)
    'Tea\\ngreen 3.00'
    """
    data = html.encode("utf-8", "replace")
    low = data.lower()
    data = b" ".join(_without(data, _skipped(low)))
    if b"hidden" in low or b"none" in low:
        data = b" ".join(_without(data, _hidden(data.lower())))
    if lines:
        data = _BLOCK.sub(_BREAK, data.replace(_BREAK, b" "))
    text = _TAG.sub(b" ", data).decode("utf-8", "replace")
    if "&" in text:
        text = unescape(text)
    parts = text.split(_BREAK.decode()) if lines else [text]
    return "\n".join(line for part in parts if (line := " ".join(part.split())))


def _without(data: bytes, spans: Iterator[tuple[int, int]]) -> Iterator[bytes]:
    """The pieces of a document between spans that follow each other."""
    begin = 0
    for start, end in spans:
        yield data[begin:start]
        begin = end
    yield data[begin:]


def _skipped(low: bytes) -> Iterator[tuple[int, int]]:
    """Comments and elements whose content is not text, from start to end tag."""
    at = 0
    endless: set[bytes] = set()  # names of which no end tag follows
    while found := _SKIPPED.search(low, at):
        at = _end_of_comment(low, found) if found[1] is None else _end_of_element(low, found, endless)
        yield found.start(), at


def _end_of_comment(low: bytes, found: re.Match[bytes]) -> int:
    end = _COMMENT_END.search(low, found.start() + 2)  # "<!-->" is a whole comment
    return end.end() if end else len(low)


def _end_of_element(low: bytes, found: re.Match[bytes], endless: set[bytes]) -> int:
    name, tag_end = found[1], _end_of_tag(low, found.end())
    if name not in _TO_THE_END and (name in endless or low.endswith(b"/>", found.start(), tag_end)):
        return tag_end
    end = low.find(b"</" + name, tag_end)
    if end >= 0:
        return _end_of_tag(low, end + 2)
    endless.add(name)
    return len(low) if name in _TO_THE_END else tag_end


def _end_of_tag(low: bytes, at: int) -> int:
    rest = _REST.match(low, at)
    return rest.end() if rest else at


def _hidden(low: bytes) -> Iterator[tuple[int, int]]:
    """Elements that their attributes hide, from start to end tag; those without an end tag are left."""
    at = tries = 0
    while tries < _TRIES and (found := _MAYBE_HIDDEN.search(low, at)):
        at = _end_of_tag(low, found.end())
        if found[1] in _VOID or not _hides(low[found.end() : min(at, found.end() + 4000)]):
            continue
        end = _end_of_nested(low, found[1], at)
        if end is None:
            tries += 1
            continue
        at = end
        yield found.start(), end


def _hides(attributes: bytes) -> bool:
    for name, value in _ATTRIBUTE.findall(attributes):
        if name == b"hidden" or (name == b"style" and _NO_DISPLAY.search(value)):
            return True
    return False


def _end_of_nested(low: bytes, name: bytes, at: int) -> int | None:
    """Where the element ends that begins before ``at``, with others of its name inside."""
    depth = 1
    for tag in re.compile(rb"<(/?)" + re.escape(name) + rb"(?=[\s/>])").finditer(low, at):
        depth += -1 if tag[1] else 1
        if depth == 0:
            return _end_of_tag(low, tag.end())
    return None
