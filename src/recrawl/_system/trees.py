"""Trees: nested dicts and lists of arrays and plain values, copied as a whole or kept in one checksummed file.

A file holds a mark, the arrays one after the other, a table in JSON (what the file is about, the tree, and the type,
place and checksum of each array), the checksum and the length of the table, and the mark again.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

_MARK = b"recrawl tree 1\n\0"
_END = struct.Struct("<IQ")  # checksum and length of the table
_ALIGNED = 64
_PIECE = 1 << 22  # bytes written and checked at a time
_ARRAY, _TEXTS = "#array", "#texts"  # keys of what stands for an array, or for a list of texts
_CODEC = "utf-8", "surrogatepass"


class DamagedFileError(ValueError):
    """A file that is not what was written; the message says why."""


def copied(tree: Any) -> Any:
    """The tree with copies of all arrays.

    >>> copied({"a": [1, np.zeros(1)]})
    {'a': [1, array([0.])]}
    """
    if isinstance(tree, np.ndarray):
        return tree.copy()
    if isinstance(tree, dict):
        return {name: copied(value) for name, value in tree.items()}
    if isinstance(tree, list) and not (tree and isinstance(tree[0], str | int | float)):
        return [copied(value) for value in tree]
    return list(tree) if isinstance(tree, list) else tree


def write_tree(file: IO[bytes], tree: Any, about: Mapping[str, Any]) -> None:
    """Write a tree, and what is to be known before it is read (plain values)."""
    writer = _Writer(file)
    file.write(_MARK)
    body = writer.node(tree)
    text = json.dumps({"about": dict(about), "tree": body, "arrays": writer.arrays}).encode()
    file.write(text + _END.pack(zlib.crc32(text), len(text)) + _MARK)


class _Writer:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.arrays: list[dict[str, Any]] = []

    def node(self, value: Any) -> Any:
        """What stands in the table for a part of a tree; its arrays are written."""
        if isinstance(value, np.ndarray):
            return {_ARRAY: self._array(value)}
        if isinstance(value, Mapping):
            return {str(name): self.node(one) for name, one in value.items()}
        if isinstance(value, list | tuple):
            if value and all(isinstance(one, str) for one in value):
                return {_TEXTS: self._texts(value)}
            return [self.node(one) for one in value]
        return value.item() if isinstance(value, np.generic) else value

    def _texts(self, texts: list[str] | tuple[str, ...]) -> list[int]:
        parts = [text.encode(*_CODEC) for text in texts]
        ends = np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)))
        return [self._array(np.frombuffer(b"".join(parts), np.uint8)), self._array(ends)]

    def _array(self, array: NDArray[Any]) -> int:
        self._file.write(bytes(-self._file.tell() % _ALIGNED))
        place, check = self._file.tell(), 0
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        for first in range(0, len(data), _PIECE):
            piece = data[first : first + _PIECE]
            check = zlib.crc32(piece, check)
            self._file.write(piece)
        kind = np.lib.format.dtype_to_descr(array.dtype)
        self.arrays.append({"kind": kind, "shape": array.shape, "place": place, "size": len(data), "check": check})
        return len(self.arrays) - 1


def read_about(path: Path) -> dict[str, Any]:
    """What a file is about; DamagedFileError if it is cut or another kind of file."""
    with path.open("rb") as file:
        found: dict[str, Any] = _table(file)["about"]
    return found


def read_tree(path: Path) -> Any:
    """The tree of a file. Its arrays lie in the file, not in memory, and cannot be written; all of them are checked."""
    with path.open("rb") as file:
        table = _table(file)
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    try:
        pieces = [data[one["place"] : one["place"] + one["size"]] for one in table["arrays"]]
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            checks = list(pool.map(_check, pieces))
        if checks != [one["check"] for one in table["arrays"]]:
            raise DamagedFileError("its checksum is wrong")
        arrays = [_array_of(one, piece) for one, piece in zip(table["arrays"], pieces, strict=True)]
        return _tree_of(table["tree"], arrays)
    except (KeyError, TypeError, IndexError, AttributeError) as problem:
        raise DamagedFileError(f"its table is not complete ({problem})") from None


def _check(piece: memoryview) -> int:
    check = 0
    for first in range(0, len(piece), _PIECE):
        check = zlib.crc32(piece[first : first + _PIECE], check)
    return check


def _table(file: IO[bytes]) -> dict[str, Any]:
    size = file.seek(0, os.SEEK_END)
    tail = _END.size + len(_MARK)
    if size < len(_MARK) + tail:
        raise DamagedFileError("it is too short")
    file.seek(-tail, os.SEEK_END)
    end = file.read(tail)
    file.seek(0)
    if end[_END.size :] != _MARK or file.read(len(_MARK)) != _MARK:
        raise DamagedFileError("it is cut, or of another format")
    check, length = _END.unpack(end[: _END.size])
    if length > size - tail - len(_MARK):
        raise DamagedFileError("its table is too long")
    file.seek(size - tail - length)
    text = file.read(length)
    if zlib.crc32(text) != check:
        raise DamagedFileError("the checksum of its table is wrong")
    found: dict[str, Any] = json.loads(text)
    return found


def _array_of(one: Mapping[str, Any], piece: memoryview) -> NDArray[Any]:
    kind: Any = one["kind"]
    if not isinstance(kind, str):
        kind = [(name, form, *map(tuple, shape)) for name, form, *shape in kind]
    dtype = np.lib.format.descr_to_dtype(kind)
    if len(piece) == 0:
        return np.zeros(one["shape"], dtype)
    return np.frombuffer(piece, np.uint8).view(dtype).reshape(one["shape"])


def _tree_of(body: Any, arrays: list[NDArray[Any]]) -> Any:
    if isinstance(body, list):
        return [_tree_of(one, arrays) for one in body]
    if not isinstance(body, dict):
        return body
    if _ARRAY in body:
        return arrays[body[_ARRAY]]
    if _TEXTS in body:
        data, ends = (arrays[k] for k in body[_TEXTS])
        text, last = data.tobytes(), ends.tolist()
        return [text[a:b].decode(*_CODEC) for a, b in zip([0, *last[:-1]], last, strict=True)]
    return {name: _tree_of(one, arrays) for name, one in body.items()}
