"""A shard's session: a write whose answer was lost is made once, whatever else is written meanwhile."""

import asyncio

import pytest

from recrawl.cluster.ownership import sessions
from recrawl.cluster.ownership.gate import Gate
from recrawl.cluster.ownership.leases import Held
from recrawl.cluster.ownership.sessions import PatientSession
from recrawl.errors import StoreUnreachableError


class Database:
    """A connection and its session: the answers to some commits are lost, of those that are named."""

    def __init__(self, lost, committed=True):
        self.lost, self.committed = set(lost), committed
        self.batch, self.written = None, []

    async def execute(self, text, *values):
        if text.startswith("UPDATE owner"):
            (self.batch,) = values

    async def fetchval(self, text):
        return self.batch

    async def call(self, work):
        before = self.batch, list(self.written)
        await work(self)
        last = self.written[-1] if self.written else None
        if last in self.lost:
            self.lost.discard(last)
            if not self.committed:
                self.batch, self.written = before
            raise StoreUnreachableError("no answer")


def write(name):
    async def work(database):
        database.written.append(name)

    return work


@pytest.mark.parametrize("committed", [True, False])
def test_a_write_whose_answer_was_lost_is_made_once_beside_others(monkeypatch, committed):
    monkeypatch.setattr(sessions, "_PAUSE", 0.001)

    async def main():
        database = Database({"a", "c"}, committed)
        session = PatientSession(database, Gate(Held(0, "w", 1, until=1e9), lambda: 0.0), lambda: True, lock=7)
        await asyncio.gather(*(session.call(write(name)) for name in "abcd"))
        return database.written

    assert asyncio.run(main()) == ["a", "b", "c", "d"]


def test_reading_does_not_wait_for_its_turn():
    async def main():
        database, both = Database(()), asyncio.Barrier(2)
        session = PatientSession(database, Gate(Held(0, "w", 1, until=1e9), lambda: 0.0), lambda: True)

        async def read(_):
            await both.wait()

        await asyncio.wait_for(asyncio.gather(session.call(read), session.call(read)), 60.0)

    asyncio.run(main())
