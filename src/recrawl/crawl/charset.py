"""The charset of a body, by what browsers do: byte order mark, header, meta element, then a guess.

Only codecs for text on the web are used: a header cannot name one that is slow, that raises, or that unpacks.
"""

from __future__ import annotations

import codecs
import re

_META = re.compile(rb"""<meta[^>]{0,300}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_XML = re.compile(rb"""\A\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})["']""", re.IGNORECASE)
_HEADER = re.compile(r"""charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_HEAD = 4096  # bytes in which a declaration is looked for

# Codec by Python's name of what was declared -> the codec browsers read it with.
_CODECS = {
    **{name: name for name in ("utf-8", "utf-16-le", "utf-16-be", "koi8-r", "koi8-u", "cp866", "euc_jp", "iso2022_jp")},
    **{f"iso8859-{n}": f"iso8859-{n}" for n in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    **{f"cp125{n}": f"cp125{n}" for n in range(9)},
    **dict.fromkeys(("ascii", "iso8859-1"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk", "gb18030"), "gb18030"),
    **dict.fromkeys(("big5", "big5hkscs", "cp950"), "big5hkscs"),
    **dict.fromkeys(("shift_jis", "cp932"), "cp932"),
    **dict.fromkeys(("euc_kr", "cp949"), "cp949"),
    **dict.fromkeys(("tis-620", "iso8859-11", "cp874"), "cp874"),
    "iso8859-9": "cp1254",
    "mac-roman": "mac-roman",
    "mac-cyrillic": "mac-cyrillic",
    "utf-16": "utf-16-le",
}


def decode(body: bytes, content_type: str = "") -> str:
    """The text of a body; bytes that its charset does not know become U+FFFD.

    >>> decode("naïve".encode("latin-1"), "text/html; charset=ISO-8859-1")
    'naïve'
    """
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, "replace")
    codec = _declared(body, content_type) or _guess(body)
    return body.decode(codec, "replace")


def _declared(body: bytes, content_type: str) -> str | None:
    named = _HEADER.search(content_type)
    if named and (codec := _codec(named.group(1))):
        return codec
    head = body[:_HEAD]
    for pattern in (_META, _XML):
        found = pattern.search(head)
        if found and (codec := _codec(found.group(1).decode("ascii", "replace"))):
            return "utf-8" if codec.startswith("utf-16") else codec  # it was read as ASCII, so it cannot be UTF-16
    return None


def _codec(label: str) -> str | None:
    try:
        return _CODECS.get(codecs.lookup(label).name)
    except (LookupError, ValueError):
        return None


def _guess(body: bytes) -> str:
    head = body[:_HEAD]
    zeros = head.count(0)
    if len(head) >= 4 and zeros * 4 >= len(head):
        return "utf-16-be" if head[::2].count(0) > head[1::2].count(0) else "utf-16-le"
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"
