"""The pool of crawls that run."""

import asyncio

from recrawl.crawl.clock import SystemClock
from recrawl.crawl.run.tasks import TaskPool


def test_a_crawl_that_ends_while_the_pool_begins_to_end_leaves_no_unread_exception():
    problems = []

    async def crawl():
        return True

    async def run():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context))
        pool = TaskPool(SystemClock(), 4)
        pool.begin(crawl())
        await asyncio.sleep(0)  # the crawl is over; that it is, is noted in the next round of the loop
        assert len(pool) == 1
        await pool.end(1.0)
        assert len(pool) == 0

    asyncio.run(run())
    assert problems == []
