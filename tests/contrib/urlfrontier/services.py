"""Services on loopback with a manual clock, for tests."""

import asyncio

from recrawl.contrib.urlfrontier import FrontierClient, FrontierService, GrpcServer, Modes
from recrawl.contrib.urlfrontier.testing import Bench
from recrawl.crawl.http.memory import ManualClock
from tests.desk.desks import START, DeskWorld


class World:
    """A queue file, a clock and, for managed crawls, a database that outlive the services on them."""

    def __init__(self, folder, modes=None, **desk):
        self.path, self.modes = folder / "crawl.db.urlfrontier", modes or Modes()
        self.desks = DeskWorld(budget=1e6, **desk) if self.modes.any_managed else None
        self.clock = self.desks.clock if self.desks else ManualClock(START)
        self.service = None

    async def open(self):
        """A new service, as after a restart; its address."""
        await self.close()
        desk = await self.desks.open() if self.desks else None
        server = GrpcServer("127.0.0.1", 0)
        self.service = FrontierService(self.path, self.modes, desk, self.clock)
        await self.service.start(server)
        self.address = server.address
        return self.address

    async def close(self):
        if self.service is not None:
            await self.service.close(grace=0.0)
            self.service = None

    async def wait(self, seconds):
        self.clock._now += seconds

    async def bench(self):
        managed = self.modes.default == "managed"
        restart = self.open
        return Bench(await self.open(), managed=managed, wait=self.wait, now=self.clock.now, restart=restart)


def served(test, folder, modes=None, **desk):
    """Run a test with a world and a client of its service."""

    async def run():
        world = World(folder, modes, **desk)
        try:
            async with FrontierClient(await world.open()) as client:
                return await test(world, client)
        finally:
            await world.close()

    return asyncio.run(run())
