"""Cutting: a text without what an RE2 pattern matches."""

from __future__ import annotations

from itertools import islice
from typing import Any

import re2

_ANCHOR = getattr(re2, "_Anchor", None)


def cut(pattern: Any, text: bytes, most: int) -> bytes:
    """A text in UTF-8 without the first ``most`` matches of a pattern that has no groups."""
    match = getattr(getattr(pattern, "_regexp", None), "Match", None)
    if match is None or _ANCHOR is None:
        spans = [found.span() for found in islice(pattern.finditer(text), most)]
    else:  # the binding's own class: half the time of its iterator
        spans, end, at = [], len(text), 0
        while len(spans) < most and at <= end and (found := match(_ANCHOR.UNANCHORED, text, at, end)[0])[0] >= 0:
            spans.append(found)
            at = found[1] + (found[1] == found[0])
    starts, ends = [0, *(span[1] for span in spans)], [*(span[0] for span in spans), len(text)]
    return b"".join([text[a:b] for a, b in zip(starts, ends, strict=True)]) if spans else text
