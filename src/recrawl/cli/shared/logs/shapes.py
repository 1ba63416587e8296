"""Logs that are recognised by the shape of their first line: access logs of web servers, and CDX files."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

Record = dict[str, Any]
_ACCESS = re.compile(
    r'(?:(?P<host>[^\s\[]\S*) )?\S+ \S+ \S+ \[(?P<time>[^\]"]{10,40})\] "(?P<request>(?:[^"\\]|\\.)*)" '
    r"(?P<status>\d{3}) (?P<length>\d+|-)(?=\s|$)"
)
_CAPTURE = re.compile(r"\S*\)\S* \d{14} ")
# letters of a CDX header; the same fields in the order of files without a header, by their number
_LETTERS = {"a": "url", "b": "time", "s": "status", "k": "digest"}
_ORDERS = {11: "N b a m s k r M S V g", 9: "N b a m s k r V g", 7: "N b a m s k S", 6: "N b a m s k"}
_JSON_NAMES = {"url": "url", "status": "status", "digest": "digest"}


class BadLineError(Exception):
    """A line does not have the shape of its file."""


class AccessLog:
    """The common and combined formats of nginx and Apache, with or without a virtual host at the start."""

    names = ("url", "time", "status", "length")

    def __init__(self, left_out: Counter[str]) -> None:
        self._left_out = left_out

    @staticmethod
    def fits(line: str) -> bool:
        """Whether a file that begins with this line is of this format."""
        return _ACCESS.match(line) is not None

    def record(self, line: str) -> Record | None:
        """The cells of a line; None where a request says nothing of a page."""
        match = _ACCESS.match(line)
        if match is None:
            raise BadLineError("is not a line of an access log")
        method, _, rest = match["request"].partition(" ")
        if method != "GET" or not rest:
            self._left_out["requests that are not GET, left out"] += 1
            return None
        if match["status"] == "206":
            self._left_out["partial answers (206), left out"] += 1
            return None
        url = rest.rsplit(" ", 1)[0] if " HTTP/" in rest else rest
        if match["host"] and url.startswith("/"):
            url = _origin(match["host"]) + url
        length = "" if match["length"] == "-" else match["length"]
        return {"url": url, "time": match["time"], "status": match["status"], "length": length}


class CdxLog:
    """CDX files of web archives: with a header of letters, without one, or with a JSON object per line."""

    names = ("url", "time", "status", "digest")

    def __init__(self, first: str) -> None:
        self._order = [_LETTERS.get(letter) for letter in first.split()[1:]] if first.split()[:1] == ["CDX"] else None
        self.has_header = self._order is not None
        if self._order is not None and not {"url", "time", "digest"} <= set(self._order):
            raise BadLineError("the header of a CDX file must have a (URL), b (date) and k (digest)")

    @staticmethod
    def fits(line: str) -> bool:
        """Whether a file that begins with this line is of this format."""
        return line.lstrip().startswith("CDX ") or _CAPTURE.match(line) is not None

    def record(self, line: str) -> Record | None:
        """The cells of a line."""
        fields = line.split()
        if self._order is None and len(fields) > 2 and fields[2].startswith("{"):
            return self._json_record(line, fields[1])
        order = self._order
        if order is None:
            if len(fields) not in _ORDERS or not _CAPTURE.match(line):
                raise BadLineError("is not a line of a CDX file")
            order = [_LETTERS.get(letter) for letter in _ORDERS[len(fields)].split()]
        if len(fields) != len(order):
            raise BadLineError(f"has {len(fields)} fields, not {len(order)}")
        found = {name: "" if cell == "-" else cell for name, cell in zip(order, fields, strict=True) if name}
        return _plain_port({"status": "", **found})

    def _json_record(self, line: str, time: str) -> Record:
        try:
            cells = json.loads(line[line.index("{") :])
        except (ValueError, RecursionError):
            raise BadLineError("is not a line of a CDXJ file") from None
        found = {name: cells.get(mine, "") for mine, name in _JSON_NAMES.items()}
        return _plain_port({**found, "time": time})


def _origin(host: str) -> str:
    name, _, port = host.partition(":")
    return f"https://{name}" if port == "443" else f"http://{name}" if port in ("", "80") else f"http://{host}"


def _plain_port(record: Record) -> Record:
    """Archives write the default port into URLs: the same page may be there with and without it."""
    record["url"] = re.sub(r"^(http://[^/]*):80(?=/|$)|^(https://[^/]*):443(?=/|$)", r"\1\2", str(record["url"]))
    return record
