"""What crawlers of others use of the budget is counted also where nothing else crawls."""

import asyncio

from recrawl.crawl.polite.unspent import NOTE, UNASKED, figures_of
from recrawl.desk import Report
from tests.desk.desks import on_desk

URLS = [f"https://h{k}.example/" for k in range(20)]


def test_requests_of_others_and_what_they_leave_are_counted():
    async def test(world):
        async def others():
            await world.clock.sleep(50.0)
            found = await world.desk.pick(10)
            await world.desk.record([Report(page.lease, status=200, digest="a", requests=2) for page in found])
            return len(found)

        async def both():
            return await asyncio.gather(others(), world.crawler.run(world.clock.now() + 100.0, crawl=False))

        made, _ = await world.clock.drive(both())
        figures = figures_of((await world.store.notes(NOTE))[NOTE], world.clock.now())
        assert made >= 1
        assert figures["requests"] == 2 * made, "redirects are requests too"
        assert figures["why"][UNASKED] > 0.9 * figures["unspent"], figures
        assert 95.0 < figures["requests"] + figures["unspent"] < 105.0

    on_desk(test, URLS, budget=1.0)
