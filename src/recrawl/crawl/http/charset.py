"""The charset of a body, by what browsers do: byte order mark, header, meta element, then a guess.

Only codecs for text on the web are used: a header cannot name one that is slow, that raises, or that unpacks.
"""

from __future__ import annotations

import codecs
import re
from encodings.aliases import aliases

_META = re.compile(rb"""<meta[^>]{0,300}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_XML = re.compile(rb"""\A\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})["']""", re.IGNORECASE)
_HEADER = re.compile(r"""charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_PUNCTUATION = re.compile(r"[^a-z0-9]+")
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf_16_le"), (codecs.BOM_UTF16_BE, "utf_16_be"))
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HEAD = 4096  # bytes in which a declaration is looked for

# Python's name of a charset -> the codec browsers read it with.
_CODECS = {
    **{name: name for name in ("utf_8", "utf_16_le", "utf_16_be", "koi8_r", "koi8_u", "cp866", "euc_jp", "iso2022_jp")},
    **{f"iso8859_{n}": f"iso8859_{n}" for n in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    **{f"cp125{n}": f"cp125{n}" for n in range(9)},
    **dict.fromkeys(("ascii", "latin_1", "iso8859_1"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk", "gb18030"), "gb18030"),
    **dict.fromkeys(("big5", "big5hkscs", "cp950"), "big5hkscs"),
    **dict.fromkeys(("shift_jis", "cp932"), "cp932"),
    **dict.fromkeys(("euc_kr", "cp949"), "cp949"),
    **dict.fromkeys(("tis_620", "iso8859_11", "cp874"), "cp874"),
    "iso8859_9": "cp1254",
    "mac_roman": "mac_roman",
    "mac_cyrillic": "mac_cyrillic",
    "utf_16": "utf_16_le",
}
# Spellings of those names. They are looked up here, since codecs.lookup would import and keep whatever name comes.
_LABELS = {
    **{label: _CODECS[name] for label, name in aliases.items() if name in _CODECS},
    **_CODECS,
    "x_sjis": "cp932",
    "windows_31j": "cp932",
    "windows_949": "cp949",
    "x_gbk": "gb18030",
    "x_cp1251": "cp1251",
    "x_cp1252": "cp1252",
    "x_mac_cyrillic": "mac_cyrillic",
    "dos_874": "cp874",
    "windows_874": "cp874",
    "iso_8859_8_i": "iso8859_8",
    "logical": "iso8859_8",
    "unicode_1_1_utf_8": "utf_8",
    "x_euc_jp": "euc_jp",
}


def decode(body: bytes, content_type: str = "") -> str:
    """The text of a body; bytes that its charset does not know become U+FFFD.

    >>> decode("naïve".encode("latin-1"), "text/html; charset=ISO-8859-1")
    'naïve'
    """
    for mark, unicode in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(unicode, "replace")
    codec = _declared(body, content_type)
    return _guessed(body) if codec is None else body.decode(codec, "replace")


def as_utf8(body: bytes, content_type: str = "") -> bytes:
    """The text of a body in UTF-8; a body that is in UTF-8 as it came, also where some of its bytes are none.

    >>> as_utf8("naïve".encode("latin-1"), "text/html; charset=ISO-8859-1").decode()
    'naïve'
    """
    is_utf8 = not body.startswith(_WIDE) and _declared(body, content_type) in ("utf_8", "utf-8")
    return body.removeprefix(codecs.BOM_UTF8) if is_utf8 else decode(body, content_type).encode("utf-8", "replace")


def _declared(body: bytes, content_type: str) -> str | None:
    named = _HEADER.search(content_type)
    if named and (codec := _codec(named.group(1))):
        return codec
    head = body[:_HEAD]
    for pattern in (_META, _XML):
        found = pattern.search(head)
        if found and (codec := _codec(found.group(1).decode("ascii", "replace"))):
            return "utf-8" if codec.startswith("utf_16") else codec  # it was read as ASCII, so it cannot be UTF-16
    return None


def _codec(label: str) -> str | None:
    return _LABELS.get(_PUNCTUATION.sub("_", label.strip().lower()))


def _guessed(body: bytes) -> str:
    head = body[:_HEAD]
    if len(head) >= 4 and head.count(0) * 4 >= len(head):
        return body.decode("utf_16_be" if head[::2].count(0) > head[1::2].count(0) else "utf_16_le", "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")
