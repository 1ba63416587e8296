"""Requests with signals that are turned away as bytes: parsing one in full costs many times what the answer does."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import NamedTuple

from recrawl.crawl.signals.websub.subscriptions import PATH as CALLBACKS
from recrawl.serve.problems import MEDIA_TYPE, ProblemError, members

SIGNALS = "/v1/signals"
PINGS = "/indexnow"
_LINE = re.compile(
    rb"(?:POST (?:%s|%s|%s[^ ]+)|GET %s)(?:\?[^ ]*)? HTTP/1\.1\r\n"
    % tuple(re.escape(path.encode()) for path in (SIGNALS, PINGS, CALLBACKS, PINGS))
)
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,9})[ \t]*\r\n", re.IGNORECASE)
_OTHERWISE = re.compile(rb"\r\n(?:transfer-encoding|expect|connection|upgrade)[ \t]*:", re.IGNORECASE)
_KEPT = re.compile(rb"\r\nconnection:[ \t]*keep-alive[ \t]*\r\n", re.IGNORECASE)


class Turned(NamedTuple):
    """A request that can be turned away: its bytes that are here, and those of its body that are still to come."""

    here: int
    coming: int


def is_received(method: str, path: str) -> bool:
    """Whether a request brings signals."""
    return path in (SIGNALS, PINGS) or (method == "POST" and path.startswith(CALLBACKS))


def turned_away(data: bytes) -> Turned | None:
    """The extent of the first request of some bytes, if it brings signals; None: it is to be parsed in full.

    Only plain requests are turned away here: the whole head is there, the length of the body is given once, and nothing
    is asked of the connection.

    >>> turned_away(b"POST /v1/signals HTTP/1.1\\r\\nhost: a\\r\\ncontent-length: 9\\r\\n\\r\\n[]")
    Turned(here=59, coming=7)
    """
    line = _LINE.match(data)
    end = data.find(b"\r\n\r\n") + 4
    if line is None or end < 4:
        return None
    head = data[line.end() - 2 : end - 2]
    lengths = _LENGTH.findall(head.replace(b"\r\n", b"\r\n\r\n"))  # so that headers do not share their ends
    asks = len(_OTHERWISE.findall(head)) - len(_KEPT.findall(head))
    if asks or len(lengths) > 1 or head.lower().count(b"content-length") != len(lengths):
        return None
    total = end + (int(lengths[0]) if lengths else 0)
    return Turned(min(total, len(data)), max(total - len(data), 0))


def busy(seconds: float) -> ProblemError:
    """Why a request is turned away, and when it may come again."""
    return ProblemError.limited("the crawl is busy: nothing was taken", seconds)


@lru_cache(maxsize=64)
def busy_answer(seconds: int) -> bytes:
    """The same as the bytes of an answer, on a connection that stays open."""
    problem = busy(seconds)
    body = json.dumps(members(problem))
    lines = [f"HTTP/1.1 {problem.status} {members(problem)['title']}", f"content-type: {MEDIA_TYPE}"]
    lines += [f"{name}: {value}" for name, value in problem.headers.items()]
    lines += [f"content-length: {len(body)}", "", body]
    return "\r\n".join(lines).encode("ascii")
