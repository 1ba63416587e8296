"""Files of URLs: one per line, or a table with the columns ``url`` and ``importance``."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from difflib import get_close_matches

from recrawl.cli.shared.logs.text_lines import decoded, marked_encoding
from recrawl.crawl.urls import canonical
from recrawl.errors import ParameterError

Weights = dict[str, float | None]  # importance by URL; None: not given

_LONGEST = 1 << 20  # characters of a cell


def read_urls(data: bytes, name: str) -> Weights:
    """The URLs of a file, each with its importance where a table gives one; the first bad line is an error."""
    lines = list(_lines(data, name))
    header = [cell.strip().lower() for cell in lines[0][1].split(",")] if lines else []
    if header and "url" in header:
        return _from_table(lines, header, name)
    found: Weights = {}
    for number, text in lines:
        found[_canonical(text, name, number)] = None
    return found


def _lines(data: bytes, name: str) -> Iterator[tuple[int, str]]:
    """Numbers and texts of the lines that are neither empty nor a remark."""
    if marked_encoding(data) not in (None, "utf-8-sig"):
        data = decoded(data, name).encode()
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        try:
            text = line.decode("utf-8").strip()
        except UnicodeDecodeError:
            raise ParameterError(f"{name}, line {number}: is not UTF-8 text") from None
        if text and not text.startswith("#"):
            yield number, text


def _from_table(lines: list[tuple[int, str]], header: list[str], name: str) -> Weights:
    near = get_close_matches("importance", header, n=1)
    if near and "importance" not in header:
        raise ParameterError(f"{name}: column {near[0]!r} is not read; did you mean importance?")
    if len(set(header)) < len(header):
        raise ParameterError(f"{name}: has two columns of the same name")
    found: Weights = {}
    first: dict[str, int] = {}
    for number, text in lines[1:]:
        cells = _cells(text, name, number)
        if len(cells) != len(header):
            raise ParameterError(f"{name}, line {number}: has {len(cells)} cells, the header has {len(header)}")
        row = dict(zip(header, (cell.strip() for cell in cells), strict=True))
        url, weight = _canonical(row["url"], name, number), _weight(row.get("importance", ""), name, number)
        if found.setdefault(url, weight) != weight:
            raise ParameterError(f"{name}, line {number}: another importance of {url} than in line {first[url]}")
        first.setdefault(url, number)
    return found


def _cells(text: str, name: str, number: int) -> list[str]:
    if len(text) > _LONGEST:
        raise ParameterError(f"{name}, line {number}: is too long")
    try:
        return next(csv.reader([text], strict=True))
    except csv.Error as problem:
        raise ParameterError(f"{name}, line {number}: is not CSV: {problem}") from None


def _weight(cell: str, name: str, number: int) -> float | None:
    if not cell:
        return None
    try:
        weight = float(cell)
    except ValueError:
        weight = float("nan")
    if not 0 <= weight < float("inf"):
        raise ParameterError(f"{name}, line {number}: importance is {cell!r}: must be a number of at least 0")
    return weight


def _canonical(text: str, name: str, number: int) -> str:
    try:
        return canonical(text)
    except ParameterError as problem:
        raise ParameterError(f"{name}, line {number}: {problem}") from None
