"""Events of a cluster: numbered per shard, so that a cursor has a number for each shard."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

from recrawl.cluster.reading import ShardReader
from recrawl.serve.problems import ProblemError

START = "start"  # the cursor before the oldest events that are kept
_KIND = b"shards "


class ShardEvents:
    """See `EventReader`."""

    def __init__(self, reader: ShardReader) -> None:
        self._reader, self._n = reader, reader.cluster.shards

    async def begin(self, cursor: str | None) -> str:
        """See `EventReader`."""
        return cursor_of(await self._reader.last_events() if cursor is None else numbers_of(cursor, self._n))

    async def after(self, cursor: str) -> list[tuple[str, dict[str, Any]]]:
        """See `EventReader`. Events of a shard come in its order; those of different shards in no order."""
        numbers, found = numbers_of(cursor, self._n), list[tuple[str, dict[str, Any]]]()
        for shard, last in enumerate(await self._reader.last_events()):
            if last <= numbers[shard]:
                continue
            for event in await self._reader.store(shard).events(numbers[shard]):
                numbers[shard] = event.number
                found.append((cursor_of(numbers), {**event.as_dict(), "shard": shard}))
        return found


def cursor_of(numbers: Sequence[int]) -> str:
    """The cursor after the events with these numbers, one of each shard.

    >>> numbers_of(cursor_of([3, 0, 70_000]), 3), numbers_of("start", 2)
    ([3, 0, 70000], [0, 0])
    """
    packed = bytearray(_KIND)
    for number in numbers:
        while number >= 0x80:
            packed.append(number & 0x7F | 0x80)
            number >>= 7
        packed.append(number)
    return base64.urlsafe_b64encode(packed).decode()


def numbers_of(cursor: str, n_shards: int) -> list[int]:
    """The number of the last event of each shard before a cursor, or ProblemError."""
    if cursor == START:
        return [0] * n_shards
    try:
        packed = base64.b64decode(cursor.encode(), b"-_", validate=True)
        found, number, shift = list[int](), 0, 0
        for byte in packed.removeprefix(_KIND):
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                found.append(number)
                number = shift = 0
        if not packed.startswith(_KIND) or shift or len(found) != n_shards or max(found) >= 1 << 62:
            raise ValueError
        return found
    except (ValueError, binascii.Error):
        raise ProblemError(422, "cursor: is not one that a stream of events gave", field="cursor") from None
