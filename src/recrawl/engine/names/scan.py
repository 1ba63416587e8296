"""The parts of URLs, all URLs in one pass: host, folder, and whether a URL is in canonical form already.

What the kernel does not recognise is left to Python, URL by URL: `plain` is False for some URLs that are in canonical
form, and `host_end` is −1 for some that have a host. What it says of the others is what `recrawl.urls.name_of`,
`host_of` and `folder_of` say.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import jit
from recrawl.engine.names.kernels import Bytes, Ids
from recrawl.urls import MOST

_SLASH, _COLON, _DOT, _DASH, _QUERY, _FRAGMENT = 47, 58, 46, 45, 63, 35
_LOWER, _DIGIT, _IN_PATH = 1, 2, 4  # kinds of bytes
_LONGEST_HOST, _LONGEST_LABEL = 253, 63


def _kinds() -> Bytes:
    """For each byte, what it may be."""
    kinds = np.zeros(256, np.uint8)
    kinds[np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)] |= _LOWER
    kinds[np.frombuffer(b"0123456789", np.uint8)] |= _DIGIT
    word = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_~=&.-"
    kinds[np.frombuffer(word, np.uint8)] |= _IN_PATH
    return kinds


KINDS = _kinds()


class Parts(NamedTuple):
    """Per URL: where its host and folder are in the buffer, and whether it is in canonical form for certain."""

    plain: NDArray[np.bool_]
    host_start: Ids
    host_end: Ids  # −1: ask `host_of`
    folder_start: Ids
    folder_end: Ids

    def take(self, rows: Ids) -> "Parts":
        """Those of some URLs."""
        host, folder = (self.host_start, self.host_end), (self.folder_start, self.folder_end)
        return Parts(self.plain[rows], *(column[rows] for column in (*host, *folder)))


def new_parts(n: int) -> Parts:
    """Room for the parts of n URLs."""
    return Parts(np.zeros(n, np.bool_), *(np.empty(n, np.int64) for _ in range(4)))


@jit
def _after_scheme(data: Bytes, start: int, end: int) -> int:
    """Where a URL goes on after the first "://"; its start, if there is none."""
    for k in range(start, end - 2):
        if data[k] == _COLON and data[k + 1] == _SLASH and data[k + 2] == _SLASH:
            return k + 3
    return start


@jit
def _scan_host(data: Bytes, kinds: Bytes, start: int, end: int) -> tuple[int, bool]:
    """Where the lower-case letters, digits, dots and dashes end; whether they are labels, the last of letters."""
    label, n_labels, good, letters = start, 0, True, True
    k = start
    while k < end:
        byte = data[k]
        if byte == _DOT:
            good = good and k > label and k - label <= _LONGEST_LABEL and data[k - 1] != _DASH
            n_labels += 1
            label, letters = k + 1, True
        elif byte == _DASH:
            good, letters = good and k > label, False
        elif kinds[byte] & _DIGIT:
            letters = False
        elif not kinds[byte] & _LOWER:
            break
        k += 1
    good = good and letters and n_labels > 0 and 2 <= k - label <= _LONGEST_LABEL and k - start <= _LONGEST_HOST
    return k, good


@jit
def _is_plain_path(data: Bytes, kinds: Bytes, start: int, end: int) -> bool:
    """Whether a path, which begins with a slash, and a query need no other form."""
    k = start
    while k < end and data[k] == _SLASH:
        k += 1
        segment, dots = k, True
        while k < end and kinds[data[k]] & _IN_PATH:
            dots = dots and data[k] == _DOT
            k += 1
        if dots and 1 <= k - segment <= 2:
            return False
    if k == end:
        return True
    if data[k] != _QUERY or k + 1 == end:
        return False
    k += 1
    while k < end and (kinds[data[k]] & _IN_PATH or data[k] == _SLASH):
        k += 1
    return k == end


@jit
def _folder_end(data: Bytes, start: int, end: int) -> int:
    """Where the folder of a path without its scheme ends."""
    first, last, k = -1, -1, start
    while k < end and data[k] != _QUERY and data[k] != _FRAGMENT:
        if data[k] == _SLASH:
            last = k
            if first < 0:
                first = k
        k += 1
    if last > start:
        return last
    return k if first < 0 else first


@jit
def scan_all(data: Bytes, starts: Ids, ends: Ids, kinds: Bytes, out: Parts) -> None:
    """Fill the parts of all URLs."""
    for j in range(starts.size):
        start, end = starts[j], ends[j]
        inside = _after_scheme(data, start, end)
        out.folder_start[j] = inside
        out.folder_end[j] = _folder_end(data, inside, end)
        out.host_start[j], out.host_end[j] = inside, -1
        named = inside > start + 3
        for k in range(start, inside - 3):
            named = named and kinds[data[k]] & _LOWER != 0
        if not named:
            continue
        host_end, good = _scan_host(data, kinds, inside, end)
        k = host_end
        if k < end and data[k] == _COLON:
            k += 1
            while k < end and kinds[data[k]] & _DIGIT:
                k += 1
            good = False
            if k == host_end + 1:
                continue
        if host_end > inside and (k == end or data[k] == _SLASH):
            out.host_end[j] = host_end
            web = data[start] == 104 and data[start + 1] == 116 and data[start + 2] == 116 and data[start + 3] == 112
            web = web and (inside == start + 7 or (inside == start + 8 and data[start + 4] == 115))
            short = end - start <= MOST
            out.plain[j] = good and web and short and k < end and _is_plain_path(data, kinds, k, end)
