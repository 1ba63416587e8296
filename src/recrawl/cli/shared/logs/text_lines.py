"""Lines of a text file: decoded as declared, by byte order mark, or as UTF-8; gzip is read too.

No byte is replaced: two URLs that differ in bytes that cannot be decoded would become one.
"""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, cast

from recrawl.errors import ParameterError

LONGEST_LINE = 1 << 20  # bytes
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CHUNK = 1 << 16
_UNPACKED, _RATIO = 16 << 20, 200  # gzip: beyond so many bytes, at most so many times the packed size
_ENDS = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
Complain = Callable[[int, str, str], None]  # line, problem, name of the repair


def check_encoding(name: str | None) -> None:
    """Raise ParameterError unless text can be decoded by this name."""
    if name is None:
        return
    try:
        known = "a".encode(name).decode(name) == "a"
    except (LookupError, ValueError):
        known = False
    if not known:
        raise ParameterError(f"--encoding {name!r} is not known; write for example cp1252, latin-1 or utf-16")


def marked_encoding(start: bytes) -> str | None:
    """The encoding that a byte order mark stands for; None without one."""
    return next((name for mark, name in _MARKS if start.startswith(mark)), None)


def decoded(data: bytes, name: str) -> str:
    """Text by its byte order mark, else UTF-8. ParameterError names the source and the line."""
    encoding = marked_encoding(data) or "utf-8"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as bad:
        line = data.count(b"\n", 0, bad.start) + 1
        byte = f"byte 0x{data[bad.start]:02x}"
        raise ParameterError(f"{name}, line {line}: {byte} is not {encoding.removesuffix('-sig')}") from None


class TextLines:
    """Iterates over the lines of a file; ``number`` is that of the current line, from 1, ``read`` counts bytes.

    ``complain`` is called for a line that cannot be decoded, which is then left out; it may raise.
    """

    def __init__(self, path: Path, encoding: str | None, complain: Complain) -> None:
        self.path, self._complain = path, complain
        self.number = self.read = 0
        self._file: IO[bytes] = path.open("rb")
        try:
            self._packed = self._file if self._peek(self._file, 2) == b"\x1f\x8b" else None
            self._bytes = self._file if self._packed is None else cast(IO[bytes], gzip.GzipFile(fileobj=self._file))
            self.encoding = self._encoding(encoding)
            self._lines = self._decoded()
            self._next = next(self._lines, None)
        except BaseException:
            self._file.close()
            raise

    def __iter__(self) -> Iterator[str]:
        while self._next is not None:
            self.number, line = self._next
            self._next = next(self._lines, None)
            yield line

    def first(self) -> str:
        """The first line, not taken; empty for an empty file."""
        return "" if self._next is None else self._next[1]

    def at_end(self) -> bool:
        """Whether the current line is the last one."""
        return self._next is None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _peek(self, file: IO[bytes], n: int) -> bytes:
        found = file.read(n)
        file.seek(0)
        return found

    def _encoding(self, declared: str | None) -> str:
        try:
            start = self._peek(self._bytes, 4)
        except (OSError, EOFError, zlib.error) as problem:
            raise self._damaged(problem) from None
        marked = marked_encoding(start)
        if marked is None or declared is None:
            return marked or declared or "utf-8"
        family = marked.removesuffix("-sig")
        if not codecs.lookup(declared).name.startswith(family):
            raise ParameterError(f"{self.path}: begins with the byte order mark of {family}, not {declared}")
        return marked

    def _decoded(self) -> Iterator[tuple[int, str]]:
        plain = "\n".encode(self.encoding.removesuffix("-sig")) == b"\n"
        for number, line in enumerate(self._by_line() if plain else self._by_chunk(), 1):
            if "\0" in line:
                problem = "has NUL characters; declare an encoding such as --encoding utf-16-le"
                self._complain(number, problem, "lines with NUL characters, dropped")
            elif line:
                yield number, line

    def _by_line(self) -> Iterator[str]:
        """Lines of an encoding in which a line feed is one byte; a bad line does not spoil the next."""
        number, encoding = 0, self.encoding
        while data := self._take(lambda: self._bytes.readline(LONGEST_LINE + 1)):
            self._check_length(len(data), number + 1)
            try:
                text = data.decode(encoding)
            except UnicodeDecodeError as bad:
                text = ""
                self._complain(number + 1, self._undecodable(data, bad), "lines that cannot be decoded, dropped")
            encoding = "utf-8" if encoding == "utf-8-sig" else encoding
            lines = _ENDS.findall(text) if "\r" in text[:-2] else [text]
            number += len(lines)
            yield from lines

    def _by_chunk(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder(self.encoding)()
        held, number = "", 0
        while True:
            data = self._take(lambda: self._bytes.read(_CHUNK))
            try:
                held += decoder.decode(data, final=not data)
            except UnicodeDecodeError as bad:
                line = number + held.count("\n") + 1
                raise ParameterError(f"{self.path}: line {line} or later: {self._undecodable(data, bad)}") from None
            lines = _ENDS.findall(held)
            held = lines.pop() if lines and data else ""
            number += len(lines)
            yield from lines
            self._check_length(len(held), number + 1)
            if not data:
                return

    def _take(self, read: Callable[[], bytes]) -> bytes:
        try:
            data = read()
        except (OSError, EOFError, zlib.error) as problem:
            raise self._damaged(problem) from None
        self.read += len(data)
        if self._packed is not None and self.read > max(_UNPACKED, _RATIO * self._packed.tell()):
            raise ParameterError(f"{self.path}: unpacks to more than {_RATIO} times its size; unpack it first")
        return data

    def _damaged(self, problem: Exception) -> Exception:
        if self._packed is None and isinstance(problem, OSError):
            return problem
        return ParameterError(f"{self.path}: is not gzip, or cut off: {problem}")

    def _check_length(self, length: int, number: int) -> None:
        if length > LONGEST_LINE:
            raise ParameterError(f"{self.path}: line {number} is longer than {LONGEST_LINE >> 20} MiB")

    def _undecodable(self, data: bytes, bad: UnicodeDecodeError) -> str:
        name = self.encoding.removesuffix("-sig")
        return f"byte 0x{bad.object[bad.start]:02x} is not {name}; declare the encoding, such as --encoding cp1252"
