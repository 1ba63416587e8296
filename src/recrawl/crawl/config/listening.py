"""Where the HTTP interface listens, and what others call it."""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

from recrawl.errors import ParameterError
from recrawl.urls import canonical

_ADDRESS = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9.-]+)):(?P<port>\d{1,5})", re.ASCII)


def listen_address(text: str) -> tuple[str, int]:
    """Host and port of a text such as ``127.0.0.1:8321``; port 0: any that is free.

    >>> listen_address("127.0.0.1:8321"), listen_address("[::1]:80")
    (('127.0.0.1', 8321), ('::1', 80))
    """
    found = _ADDRESS.fullmatch(text.strip())
    if found is None or int(found["port"]) > 65535:
        raise ParameterError(f"listen is {text[:80]!r}: must be an address and a port, such as 127.0.0.1:8321")
    host = found["six"] or found["host"]
    try:
        return ("127.0.0.1" if host == "localhost" else str(ip_address(host))), int(found["port"])
    except ValueError:
        raise ParameterError(f"listen is {text[:80]!r}: {host} is no IP address") from None


def host_port(text: str, name: str, port: int) -> tuple[str, int]:
    """Host and port of a server, such as ``smtp.example.org:587``; without a port, the one that is usual.

    >>> host_port("smtp.example.org", "smtp", 587)
    ('smtp.example.org', 587)
    """
    found = _ADDRESS.fullmatch(text.strip()) or _ADDRESS.fullmatch(f"{text.strip()}:{port}")
    if found is None or not 0 < int(found["port"]) <= 65535:
        raise ParameterError(f"{name} is {text[:80]!r}: must be a server, and perhaps a port: smtp.example.org:587")
    return found["six"] or found["host"], int(found["port"])


def check_public_url(text: str) -> None:
    """Raise ParameterError unless a text is a URL under which others can reach the HTTP interface."""
    try:
        parts = urlsplit(canonical(text))
    except ParameterError as problem:
        raise ParameterError(f"public_url: {problem}") from None
    if parts.query or urlsplit(text).fragment:
        raise ParameterError(f"public_url is {text[:80]!r}: must have neither a query nor a fragment")
