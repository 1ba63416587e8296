"""Text in chunks of whole sentences, such that a change of one sentence changes one chunk."""

from __future__ import annotations

import re
from collections.abc import Sequence

SIZE = 400  # characters of a chunk, about
_END = re.compile(r"(?<=[.!?])\s+")


def chunked(text: str, before: Sequence[str] = ()) -> list[str]:
    """The chunks of a text. Those of the version before are kept where their sentences are still there in a row.

    Windows of a fixed size would all move when a word is inserted, and all would be embedded again.

    >>> first = chunked("One. Two. Three.", [])
    >>> chunked("One. Two. Three. Four.", first)
    ['One. Two. Three.', 'Four.']
    """
    sentences = [one for one in _END.split(text.strip()) if one]
    kept = {tuple(_END.split(chunk)) for chunk in before}
    sizes = sorted({len(chunk) for chunk in kept}, reverse=True)
    found: list[str] = []
    new: list[str] = []
    at = 0
    while at < len(sentences):
        size = next((n for n in sizes if tuple(sentences[at : at + n]) in kept), 0)
        if size:
            found += [*_packed(new), " ".join(sentences[at : at + size])]
            new = []
        else:
            new.append(sentences[at])
        at += max(size, 1)
    return [*found, *_packed(new)]


def _packed(sentences: Sequence[str]) -> list[str]:
    """Sentences in chunks of about equal size."""
    total = sum(len(one) + 1 for one in sentences)
    n = max(round(total / SIZE), 1)
    found: list[list[str]] = [[] for _ in range(n)]
    passed = 0
    for one in sentences:
        found[min(passed * n // max(total, 1), n - 1)].append(one)
        passed += len(one) + 1
    return [" ".join(chunk) for chunk in found if chunk]
