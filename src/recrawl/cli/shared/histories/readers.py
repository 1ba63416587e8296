"""Access logs of web servers as importance: how often readers asked for each page.

Common and combined format, with or without the virtual host, and JSON lines; gzip too.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.cli.shared.logs.shapes import AccessLog, BadLineError
from recrawl.cli.shared.logs.text_lines import TextLines
from recrawl.errors import ParameterError
from recrawl.urls import name_of

Array = NDArray[np.float64]
UNSEEN = 0.5  # importance of a page that nobody asked for, in requests
_METHODS = ("method", "request_method", "requestmethod", "http_method", "verb")
_PATHS = ("request_uri", "uri", "url", "path", "requestpath", "request_path", "request")
_HOSTS = ("host", "http_host", "requesthost", "server_name", "vhost", "hostname", "domain")
_STATUSES = ("status", "status_code", "downstreamstatus", "response_code", "code")


@dataclass
class Asked:
    """Requests by page, without scheme; ``bare`` are those whose host is not known, by path."""

    pages: Counter[str]
    bare: Counter[str]
    n_requests: int = 0
    n_broken: int = 0
    first: str = ""


def importance_of(path: Path, urls: list[str]) -> tuple[Array, list[str]]:
    """Importance of pages by an access log: requests, UNSEEN where there are none; and what the report says of it."""
    asked = _read(path)
    keys = [_key(url) for url in urls]
    hosts = {key.partition("/")[0] for key in keys}
    if asked.bare and len(hosts) > 1:
        raise ParameterError(
            f"{path}: its lines have no host, and the pages are of {len(hosts)} hosts; let the server log the host too"
        )
    total = asked.pages + Counter({f"{host}{way}": n for host in hosts for way, n in asked.bare.items()})
    found = np.array([float(total[key]) for key in keys])
    if not found.any():
        raise ParameterError(f"{path}: no request for any of the {len(urls)} pages")
    n = int(found.sum())
    said = [f"importance is the number of requests: {n} of {asked.n_requests} are for {np.count_nonzero(found)} pages"]
    if asked.n_broken:
        said.append(f"{asked.n_broken} broken lines of the access log, left out: the first is {asked.first}")
    return np.maximum(found, UNSEEN), said


def _read(path: Path) -> Asked:
    """Answered GET requests. A broken line loses only itself; a file in which most lines are broken is refused."""
    asked = Asked(Counter(), Counter())
    shape, n_lines = AccessLog(Counter()), 0

    def broken(number: int, problem: str, _: str = "") -> None:
        asked.n_broken += 1
        asked.first = asked.first or f"line {number}: {problem}"

    lines = TextLines(path, None, broken)
    try:
        for line in lines:
            if not line.strip():
                continue
            n_lines += 1
            try:
                cells = _json_cells(line) if line.lstrip().startswith("{") else shape.record(line)
            except BadLineError as bad:
                broken(lines.number, str(bad))
                continue
            if cells is not None and _is_answered(str(cells["status"])):
                _count(asked, str(cells["url"]))
    finally:
        lines.close()
    if asked.n_broken * 2 > max(n_lines, 1):
        raise ParameterError(f"{path}: is not an access log: {asked.n_broken} of {n_lines} lines, {asked.first}")
    return asked


def _count(asked: Asked, url: str) -> None:
    asked.n_requests += 1
    if url.startswith("/"):
        asked.bare[_key(f"http://h{url}")[1:]] += 1
    else:
        asked.pages[_key(url)] += 1


def _is_answered(status: str) -> bool:
    """Whether a reader got the page: 304 is one that has it already."""
    return status == "" or status.startswith("2") or status == "304"


def _key(url: str) -> str:
    """A page without its scheme: readers come by http and https."""
    try:
        return name_of(url).partition("://")[2] or url
    except ParameterError:
        return url


def _json_cells(line: str) -> dict[str, Any] | None:
    """URL and status of a line of JSON; None for other methods than GET. Names of nginx, Caddy and Traefik."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise BadLineError("is not a JSON object") from None
    flat = _flat(found)
    method, way = _first(flat, _METHODS), _first(flat, _PATHS)
    if " " in way:  # a whole request line
        method, way = way.split(" ", 2)[:2]
    if not way:
        raise BadLineError("has no path")
    if method and method.upper() != "GET":
        return None
    host = _first(flat, _HOSTS)
    return {"url": f"http://{host}{way}" if host and way.startswith("/") else way, "status": _first(flat, _STATUSES)}


def _flat(found: dict[str, Any]) -> dict[str, Any]:
    """Cells by lower-case name; those of an object ``request`` are taken in."""
    flat = {str(name).lower(): value for name, value in found.items()}
    inner = flat.get("request")
    return flat | {str(name).lower(): value for name, value in inner.items()} if isinstance(inner, dict) else flat


def _first(flat: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((str(flat[name]) for name in names if isinstance(flat.get(name), str | int | float)), "")
