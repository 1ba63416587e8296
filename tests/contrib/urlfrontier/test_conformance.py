"""The published rules, checked by the shipped suite in both modes; and that the suite finds what is wrong."""

import asyncio

import pytest

from recrawl.contrib.urlfrontier import Modes
from recrawl.contrib.urlfrontier.testing import check_frontier
from tests.contrib.urlfrontier.services import World


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["strict", "managed"])
def test_the_published_rules_hold_and_leases_and_limits_survive_restarts(mode, tmp_path):
    async def run():
        world = World(tmp_path, Modes.of(mode))
        bench = await world.bench()
        try:
            return await check_frontier(bench)
        finally:
            await bench.close()
            await world.close()

    results = asyncio.run(run())
    assert [result for result in results if result.problem is not None] == []
    assert len(results) == (27 if mode == "strict" else 24)
