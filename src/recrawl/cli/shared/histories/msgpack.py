"""A reader of MessagePack values, as far as stores of snapshots use them. Nothing is built but plain values."""

from __future__ import annotations

import struct
from typing import Any

_DEEPEST = 20  # values within each other
_NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_PLAIN = {0xC0: None, 0xC2: False, 0xC3: True}
_BYTES = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I"}
_TEXTS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_ARRAYS = {0xDC: ">H", 0xDD: ">I"}
_MAPS = {0xDE: ">H", 0xDF: ">I"}


def unpack(data: bytes) -> Any:
    """The value of MessagePack bytes. ValueError for other bytes, extension types and what is left over.

    >>> unpack(bytes.fromhex("82a164a27878a17400"))
    {'d': 'xx', 't': 0}
    """
    reader = _Reader(data)
    try:
        value = reader.value(0)
    except (struct.error, UnicodeDecodeError, TypeError):
        raise ValueError("is not MessagePack") from None
    if reader.at != len(data):
        raise ValueError("has bytes after its MessagePack value")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def value(self, depth: int) -> Any:
        """The next value."""
        if depth > _DEEPEST:
            raise ValueError("is nested too deeply")
        code = self._number(">B")
        if code < 0x80 or code >= 0xE0:
            return code if code < 0x80 else code - 0x100
        if code < 0x90:
            return self._map(code & 0x0F, depth)
        if code < 0xA0:
            return self._array(code & 0x0F, depth)
        if code < 0xC0:
            return self._take(code & 0x1F).decode()
        if code in _PLAIN:
            return _PLAIN[code]
        if code in _NUMBERS:
            return self._number(_NUMBERS[code])
        return self._long(code, depth)

    def _long(self, code: int, depth: int) -> Any:
        """A value whose length comes first."""
        if code in _TEXTS:
            return self._take(self._number(_TEXTS[code])).decode()
        if code in _BYTES:
            return self._take(self._number(_BYTES[code]))
        if code in _ARRAYS:
            return self._array(self._number(_ARRAYS[code]), depth)
        if code in _MAPS:
            return self._map(self._number(_MAPS[code]), depth)
        raise ValueError(f"has a value of type 0x{code:02x}")

    def _map(self, n: int, depth: int) -> dict[Any, Any]:
        self._check(2 * n)
        return {self.value(depth + 1): self.value(depth + 1) for _ in range(n)}

    def _array(self, n: int, depth: int) -> list[Any]:
        self._check(n)
        return [self.value(depth + 1) for _ in range(n)]

    def _check(self, n: int) -> None:
        """Every value has at least one byte: a longer list is refused before it is built."""
        if n > len(self._data) - self.at:
            raise ValueError("is cut off")

    def _take(self, n: int) -> bytes:
        self._check(n)
        self.at += n
        return self._data[self.at - n : self.at]

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]
