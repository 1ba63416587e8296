"""What the demo's pages look like: text that changes with the version, around it noise that changes with every look."""

from __future__ import annotations

import random
from functools import lru_cache

_SYLLABLES = [f"{consonant}{vowel}" for consonant in "bdfgklmnrst" for vowel in "aeio"]
_SENTENCES, _WORDS = 12, 14


@lru_cache(maxsize=4096)
def paragraphs(seed: int, page: int) -> tuple[str, ...]:
    """The part of a page's text that stays."""
    rng = random.Random(f"{seed}/{page}")
    return tuple(_sentence(rng) for _ in range(_SENTENCES))


def visible_text(seed: int, page: int, version: int) -> list[str]:
    """All that a reader sees, by element; two versions of a page always differ.

    >>> visible_text(1, 7, 0)[0], visible_text(1, 7, 0) == visible_text(1, 7, 1)
    ('Page 7', False)
    """
    news = _sentence(random.Random(f"{seed}/{page}/{version}"))
    return [f"Page {page}", f"Edition {version + 1}: {news}", *paragraphs(seed, page)]


def html(seed: int, page: int, version: int, token: int) -> str:
    """The page as served: ``token`` goes into advertising, comments, forms and addresses, but into no text.

    >>> html(1, 7, 0, 5) == html(1, 7, 0, 6)
    False
    """
    title, news, *rest = visible_text(seed, page, version)
    body = "\n".join(f"<p>{text}</p>" for text in rest)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="csrf-token" content="{token:016x}"><link rel="stylesheet" href="/style.css?v={token % 977}">
<script>window.ad = {{"slot": {token % 5}, "id": "{token:x}"}};</script>
<style>.ad-{token % 89} {{ display: none }}</style></head>
<body data-request="{token:016x}">
<!-- served by node {token % 7}, {token:x} -->
<nav><a href="/">Home</a> <a href="/sitemap.xml?session={token:x}">Contents</a></nav>
<main><h1>{title}</h1>
<p class="edition">{news}</p>
{body}
</main>
<form action="/search"><input type="hidden" name="token" value="{token:x}"><button>Search</button></form>
<noscript><img src="/pixel.gif?{token:x}" alt=""></noscript>
</body></html>
"""


def _sentence(rng: random.Random) -> str:
    words = ("".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(_WORDS))
    return " ".join(words).capitalize() + "."
