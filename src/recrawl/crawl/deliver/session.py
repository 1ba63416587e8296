"""How messages are posted: one connection at a time, without cookies, proxies or redirects."""

from __future__ import annotations

import ssl
from typing import Any

import aiohttp


def posting_session(timeout: float, context: ssl.SSLContext | None, **connector: Any) -> aiohttp.ClientSession:
    """A session that posts to one receiver; ``connector`` are further arguments of `aiohttp.TCPConnector`."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=1, force_close=True, ssl=context or True, **connector),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        timeout=aiohttp.ClientTimeout(total=timeout),
    )
