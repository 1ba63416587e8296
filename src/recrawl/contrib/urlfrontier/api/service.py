"""Service: the calls of the API. Each handler takes a message and the context of its call."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc

from recrawl.contrib.urlfrontier.api.streams import BATCHES, ITEMS, Batcher, Stream
from recrawl.contrib.urlfrontier.api.wire import (
    Boolean,
    Empty,
    Long,
    QueueList,
    Stats,
    StringList,
    URLInfo,
    URLItem,
)
from recrawl.contrib.urlfrontier.crawls import Crawls, Search
from recrawl.contrib.urlfrontier.frontier import MOST_SERVED, Ask
from recrawl.contrib.urlfrontier.items import crawl_name, key_of
from recrawl.contrib.urlfrontier.queue_file import Row
from recrawl.contrib.urlfrontier.queues import Queue

Handler = Callable[[Any, Any], Any]
_LEASE = 30.0  # seconds, if a client names none
_LISTED = 100  # entries of a list, if a client names no number
_DAY = 86400.0
_LEVELS = {0: logging.DEBUG, 1: logging.DEBUG, 2: logging.INFO, 3: logging.WARNING, 4: logging.ERROR}


class Service:
    """The calls; ``node`` is the address under which the service is listed."""

    def __init__(self, crawls: Crawls, node: str) -> None:
        self._crawls, self._frontier, self._node = crawls, crawls.frontier, node
        self._puts, self._arrivals = Batcher(ITEMS, crawls.put), Batcher(BATCHES, crawls.arrive)

    async def close(self) -> None:
        """Return when all that was put is written."""
        await self._puts.close()
        await self._arrivals.close()

    # --- URLs ---------------------------------------------------------------------------------------------------------

    async def get_urls(self, params: Any, context: Any) -> AsyncIterator[Any]:
        """URLs to fetch."""
        ask = Ask(
            params.max_queues or MOST_SERVED,
            params.max_urls_per_queue or MOST_SERVED,
            float(params.delay_requestable) or _LEASE,
            params.key,
        )
        crawl = crawl_name(params.crawlID) if params.WhichOneof("item") == "crawlID" else None
        for one in await self._crawls.take(crawl, ask):
            yield info_of(one.queue, one.row)

    async def put_urls(self, items: Any, context: Any) -> None:
        """A stream of items, each acknowledged."""
        await Stream(self._puts, context).run(items)

    async def put_discovered(self, batches: Any, context: Any) -> None:
        """A stream of batches, each acknowledged with a state for each URL."""
        await Stream(self._arrivals, context).run(batches)

    async def get_url_status(self, params: Any, context: Any) -> Any:
        """A URL as it is stored."""
        queue = self._frontier.queue(crawl_name(params.crawlID), params.key or key_of(params.url))
        row = None if queue is None else await self._crawls.find(queue, params.url)
        if queue is None or row is None:
            return await context.abort(grpc.StatusCode.NOT_FOUND, "there is no such URL in this queue")
        return item_of(queue, row)

    async def list_urls(self, params: Any, context: Any) -> AsyncIterator[Any]:
        """URLs of a queue or a crawl."""
        left, search = params.size or _LISTED, Search(params.filter, params.ignoreCase)
        queues = self._frontier.some(crawl_name(params.crawlID), params.key)
        async for queue, row in self._crawls.rows(queues, search, params.start):
            yield item_of(queue, row)
            left -= 1
            if left <= 0:
                return

    async def count_urls(self, params: Any, context: Any) -> Any:
        """How many URLs a queue or a crawl has."""
        queues = self._frontier.some(crawl_name(params.crawlID), params.key)
        if not params.filter:
            return Long(value=sum(queue.active + queue.completed for queue in queues))
        n = 0
        async for _ in self._crawls.rows(queues, Search(params.filter, params.ignoreCase)):
            n += 1
        return Long(value=n)

    async def purge_urls(self, params: Any, context: Any) -> Any:
        """Delete URLs that were created some days ago."""
        before = self._frontier.clock.now() - params.days * _DAY
        queues = self._frontier.some(crawl_name(params.crawlID), params.key)
        return Long(value=await self._crawls.purge(queues, before))

    # --- queues and crawls --------------------------------------------------------------------------------------------

    async def list_nodes(self, params: Any, context: Any) -> Any:
        """The addresses of the service: its own."""
        return StringList(values=[self._node])

    async def list_crawls(self, params: Any, context: Any) -> Any:
        """The crawl IDs."""
        return StringList(values=list(self._frontier.crawls))

    async def list_queues(self, params: Any, context: Any) -> Any:
        """The keys of a crawl's queues."""
        crawl, now = crawl_name(params.crawlID), self._frontier.clock.now()
        found, keys, total = self._frontier.crawls.get(crawl), list[str](), 0
        if found is not None:
            keys, total = found.listed(now, params.start, params.size or _LISTED, all=params.include_inactive)
        return QueueList(values=keys, total=total, start=params.start, size=len(keys), crawlID=crawl)

    async def get_stats(self, params: Any, context: Any) -> Any:
        """Figures of a queue or a crawl."""
        crawl = crawl_name(params.crawlID)
        totals = self._frontier.totals(self._frontier.some(crawl, params.key))
        return Stats(
            size=totals.active,
            inProcess=totals.in_process,
            counts={"completed": totals.completed, "active_queues": totals.active_queues},
            numberOfQueues=totals.queues,
            crawlID=crawl,
        )

    async def delete_queue(self, params: Any, context: Any) -> Any:
        """Delete a queue."""
        queue = self._frontier.queue(crawl_name(params.crawlID), params.key)
        return Long(value=0 if queue is None else await self._crawls.delete([queue]))

    async def delete_crawl(self, params: Any, context: Any) -> Any:
        """Delete a crawl."""
        return Long(value=await self._crawls.delete(self._frontier.some(crawl_name(params.value), "")))

    # --- control ------------------------------------------------------------------------------------------------------

    async def block_queue_until(self, params: Any, context: Any) -> Any:
        """Serve nothing of a queue until a time."""
        self._frontier.block(crawl_name(params.crawlID), params.key, float(params.time))
        return Empty()

    async def set_delay(self, params: Any, context: Any) -> Any:
        """Set the time between two serves."""
        self._frontier.set_delay(crawl_name(params.crawlID), params.key, float(params.delay_requestable))
        return Empty()

    async def set_crawl_limit(self, params: Any, context: Any) -> Any:
        """Set how many URLs of a queue may be completed."""
        self._frontier.limit(crawl_name(params.crawlID), params.key, params.limit)
        return Empty()

    async def set_active(self, params: Any, context: Any) -> Any:
        """Serve URLs or not."""
        self._frontier.set_active(params.state)
        return Empty()

    async def get_active(self, params: Any, context: Any) -> Any:
        """Whether URLs are served."""
        return Boolean(state=self._frontier.active)

    async def set_log_level(self, params: Any, context: Any) -> Any:
        """Set the least level of recrawl's log records; other packages are not here."""
        if params.package in ("", "recrawl") or params.package.startswith("recrawl."):
            logging.getLogger(params.package or "recrawl").setLevel(_LEVELS.get(params.level, logging.INFO))
        return Empty()


def info_of(queue: Queue, row: Row) -> Any:
    """A URL as it is served."""
    info = URLInfo(url=row.url, key=queue.key, crawlID=queue.crawl.name)
    if row.metadata:
        info.MergeFromString(row.metadata)
    return info


def item_of(queue: Queue, row: Row) -> Any:
    """A URL as it is listed."""
    item = URLItem(creation_date=row.created)
    item.known.info.CopyFrom(info_of(queue, row))
    item.known.refetchable_from_date = row.date
    return item


def handlers_of(service: Service) -> dict[str, Handler]:
    """The handler of each call."""
    return {
        "GetURLs": service.get_urls,
        "PutURLs": service.put_urls,
        "PutDiscovered": service.put_discovered,
        "GetURLStatus": service.get_url_status,
        "ListURLs": service.list_urls,
        "CountURLs": service.count_urls,
        "PurgeURLs": service.purge_urls,
        "ListNodes": service.list_nodes,
        "ListCrawls": service.list_crawls,
        "ListQueues": service.list_queues,
        "GetStats": service.get_stats,
        "DeleteQueue": service.delete_queue,
        "DeleteCrawl": service.delete_crawl,
        "BlockQueueUntil": service.block_queue_until,
        "SetDelay": service.set_delay,
        "SetCrawlLimit": service.set_crawl_limit,
        "SetActive": service.set_active,
        "GetActive": service.get_active,
        "SetLogLevel": service.set_log_level,
    }
