"""Canonical URLs, so that a page has one name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from recrawl.errors import ParameterError

MOST = 4096  # characters of a URL

# URLs that are in their form already, as most are: a name with letters last or four numbers, no escapes, no dots alone.
_NUMBER = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_PLAIN = re.compile(
    r"https?://(?=[^/]{1,253}/)(?:(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}|"
    rf"(?:{_NUMBER}\.){{3}}{_NUMBER})(?::(?!80/|443/)[1-9]\d{{1,3}}|:[1-5]\d{{4}})?"
    r"(?:/(?!\.\.?(?:[/?]|$))[\w~=&.-]*)+(?:\?[\w~/=&.-]+)?",
    re.ASCII,
)
_WEB = re.compile(r"\s*https?://", re.IGNORECASE)
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_.-])?", re.ASCII)
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")
_LOOSE_PERCENT = re.compile(r"%(?![0-9a-fA-F]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PORTS = {"http": 80, "https": 443}


def name_of(url: str) -> str:
    """The name of a page: a URL in canonical form; any other text as it is, and a URL that is too long for that.

    >>> name_of("https://Docs.example.org"), name_of("casks/Alfred")
    ('https://docs.example.org/', 'casks/Alfred')
    """
    if len(url) > MOST or _PLAIN.fullmatch(url):
        return url
    return canonical(url) if _WEB.match(url) else url


def canonical(url: str) -> str:
    """The canonical form of an http or https URL: case, port, escapes, dots and host.

    The order of a query is kept, the fragment dropped.

    >>> canonical("HTTP://Bücher.example:80/a/../%7eb?q=%c3%a4#top")
    'http://xn--bcher-kva.example/~b?q=%C3%A4'
    """
    if len(url) <= MOST and _PLAIN.fullmatch(url):
        return url
    text = url.strip()
    if len(text) > MOST:
        raise ParameterError(f"URL {text[:60]!r}… has {len(text)} characters: at most {MOST} are allowed")
    try:
        return _canonical(text)
    except (ValueError, UnicodeError) as error:
        raise ParameterError(f"{text[:200]!r} is no http or https URL: {error}") from None


def usable(urls: Iterable[str]) -> list[str]:
    """The canonical forms of those URLs that have one: others come from files and pages that the user did not write.

    >>> usable(["HTTPS://a.example", "mailto:me@a.example"])
    ['https://a.example/']
    """
    found = []
    for url in urls:
        try:
            found.append(canonical(url))
        except ParameterError:
            continue
    return found


def _canonical(text: str) -> str:
    parts = urlsplit(text)
    scheme = parts.scheme.lower()
    if scheme not in _PORTS:
        raise ValueError("it must begin with http:// or https://")
    if "@" in parts.netloc:
        raise ValueError("names and passwords belong in headers, not in the URL")
    host = _host(parts.hostname or "")
    port = parts.port  # raises ValueError beyond 65535
    netloc = host if port in (None, _PORTS[scheme]) else f"{host}:{port}"
    path, query = _quoted(parts.path or "/", parts.query)
    return urlunsplit((scheme, netloc, _without_dots(path), query, ""))


def _package(name: str) -> Any:
    """A package that only unusual URLs need, imported when one comes."""
    try:
        return import_module(name)
    except ImportError:
        raise ParameterError("a URL that is not in its plain form needs pip install 'recrawl[crawl]'") from None


def _quoted(path: str, query: str) -> tuple[str, str]:
    safe_url_string = _package("w3lib.url").safe_url_string
    path, query = (_LOOSE_PERCENT.sub("%25", part) for part in (path, query))
    safe = urlsplit(safe_url_string(urlunsplit(("http", "h", path, query, ""))))
    return _ESCAPE.sub(_escape, safe.path), _ESCAPE.sub(_escape, safe.query)


def _escape(match: re.Match[str]) -> str:
    char = chr(int(match.group(1), 16))
    return char if char in _UNRESERVED else match.group(0).upper()


def _without_dots(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def _host(host: str) -> str:
    if not host:
        raise ValueError("it names no host")
    if ":" in host:
        return f"[{IPv6Address(_no_zone(host))}]"
    host = host.lower() if host.isascii() else _package("idna").encode(host, uts46=True).decode("ascii")
    host = host.removesuffix(".")
    if len(host) > 253 or not _HOST.fullmatch(host) or not all(0 < len(label) < 64 for label in host.split(".")):
        raise ValueError(f"{host[:80]!r} is no host name")
    return _numeric(host)


def _no_zone(host: str) -> str:
    if "%" in host:
        raise ValueError("an address with a zone is of one machine only")
    return host


def _numeric(host: str) -> str:
    """A host whose last label is a number is an IPv4 address in one of its old spellings: 0x7f.1 is 127.0.0.1."""
    labels = host.split(".")
    if not re.fullmatch(r"\d+|0x[0-9a-f]*", labels[-1]):
        return host
    numbers = [_number(label) for label in labels]
    head, last = numbers[:-1], numbers[-1]
    if len(numbers) > 4 or any(number > 255 for number in head) or last >= 256 ** (5 - len(numbers)):
        raise ValueError(f"{host!r} is no IPv4 address")
    return str(IPv4Address(sum(number << (24 - 8 * place) for place, number in enumerate(head)) + last))


def _number(label: str) -> int:
    if label.startswith("0x"):
        return int(label[2:] or "0", 16)
    return int(label, 8 if len(label) > 1 and label.startswith("0") else 10)
