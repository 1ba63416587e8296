"""Removal of what an RE2 pattern matches."""

from __future__ import annotations

from itertools import islice
from typing import Any

import re2

_ANCHOR = getattr(re2, "_Anchor", None)


def remove_matches(pattern: Any, text: bytes, most: int) -> bytes:
    """A text in UTF-8 without the first ``most`` matches of a pattern that has no groups."""
    match = getattr(getattr(pattern, "_regexp", None), "Match", None)
    if match is None or _ANCHOR is None:
        return _remove_by_iterator(pattern, text, most)
    anywhere, end = _ANCHOR.UNANCHORED, len(text)
    pieces, kept_from, at = list[bytes](), 0, 0
    while len(pieces) < most and at <= end:
        first, last = match(anywhere, text, at, end)[0]  # the binding's own class: half the time of its iterator
        if first < 0:
            break
        pieces.append(text[kept_from:first])
        kept_from = at = last
        if first == last:
            at += 1
    return b"".join([*pieces, text[kept_from:]]) if pieces else text


def _remove_by_iterator(pattern: Any, text: bytes, most: int) -> bytes:
    pieces, at = [], 0
    for found in islice(pattern.finditer(text), most):
        pieces.append(text[at : found.start()])
        at = found.end()
    return b"".join([*pieces, text[at:]])
