"""URLs that fit into a table."""

from __future__ import annotations

import sys
from shutil import get_terminal_size

WIDTH = 72  # columns of a URL in a table


def short_url(url: str, width: int = WIDTH) -> str:
    """A URL of at most ``width`` characters: its middle is left out, its host and its end stay.

    >>> short_url("https://docs.example.org/en/stable/reference/api/names.html?version=3", 48)
    'https://docs.example.org/…i/names.html?version=3'
    """
    if len(url) <= width:
        return url
    host = url.find("/", url.find("//") + 2) + 1 or len(url)
    head = min(max(width // 2, host), width * 2 // 3)
    return f"{url[:head]}…{url[len(url) - (width - head - 1) :]}"


def printed_url(url: str, used: int) -> str:
    """A URL for a line of standard output that has ``used`` other columns: whole unless that is a terminal."""
    if not sys.stdout.isatty():
        return url
    return short_url(url, max(get_terminal_size().columns - used, 24))
