"""Messages between Scrapy's process and the process of the desk: pickles, each with its length before it."""

from __future__ import annotations

import asyncio
import pickle
import struct
from typing import Any

from recrawl.desk import Picked, Report

BUFFER = 1 << 20  # bytes that a reader takes in before it waits
_LENGTH = struct.Struct("!Q")


def packed(value: object) -> bytes:
    """A value as a message."""
    body = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


async def read_message(reader: asyncio.StreamReader) -> Any:
    """The next message. Raises asyncio.IncompleteReadError or OSError when the other process is gone."""
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return pickle.loads(await reader.readexactly(length))


def cells(one: Report | Picked) -> tuple[Any, ...]:
    """The fields of a report or of a picked page, in order: quicker to pickle than the object."""
    return tuple(one)
