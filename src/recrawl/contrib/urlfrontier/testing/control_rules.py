"""Rules about queues and crawls: delays, blocks, limits, lists, figures, deletion."""

from __future__ import annotations

import grpc
import grpc.aio

from recrawl.contrib.urlfrontier.testing.bench import Bench, discovered, known
from recrawl.contrib.urlfrontier.testing.rule import Rule

GONE = {"error.cause": ["checked"]}  # metadata with which date 0 means the same in every mode


async def delay_of_a_queue(bench: Bench, crawl: str, _: str) -> None:
    """A queue serves again after its delay; a call that got nothing does not count."""
    key = "slow.example"
    await bench.put(*(discovered(f"http://{key}/{k}", crawl) for k in range(3)))
    await bench.client.SetDelay(key=key, crawlID=crawl, delay_requestable=6)
    assert len(await bench.get(crawl, 1, 1, delay_requestable=100)) == 1
    await bench.wait(3.0)
    assert await bench.get(crawl, 1, 2) == [], "served before its delay was over"
    await bench.wait(4.5)
    assert len(await bench.get(crawl, 1, 2)) == 1, "the delay is over, and one more may be in process"


async def blocked_queue(bench: Bench, crawl: str, _: str) -> None:
    """A blocked queue serves nothing and is not listed; time 0 unblocks it."""
    key = "blocked.example"
    await bench.put(discovered(f"http://{key}/", crawl))
    await bench.client.BlockQueueUntil(key=key, crawlID=crawl, time=int(bench.now() + 1000))
    assert await bench.get(crawl) == []
    assert await bench.get(crawl, key=key) == []
    assert list((await bench.client.ListQueues(crawlID=crawl)).values) == []
    assert list((await bench.client.ListQueues(crawlID=crawl, include_inactive=True)).values) == [key]
    await bench.client.BlockQueueUntil(key=key, crawlID=crawl, time=0)
    assert len(await bench.get(crawl)) == 1


async def limit_of_a_queue(bench: Bench, crawl: str, _: str) -> None:
    """A queue serves nothing once its limit of completed URLs is reached; limit 0 lifts it."""
    key = "limit.example"
    await bench.put(known(f"http://{key}/done", crawl, 0, metadata=GONE), discovered(f"http://{key}/open", crawl))
    await bench.client.SetCrawlLimit(key=key, crawlID=crawl, limit=1)
    assert await bench.get(crawl, key=key) == []
    await bench.client.SetCrawlLimit(key=key, crawlID=crawl, limit=2)
    assert len(await bench.get(crawl, 1, 1, key=key, delay_requestable=1)) == 1
    await bench.client.SetCrawlLimit(key=key, crawlID=crawl, limit=0)


async def paused_service(bench: Bench, crawl: str, _: str) -> None:
    """A service that is not active serves nothing but takes what is put."""
    await bench.client.SetActive(state=False)
    try:
        assert not (await bench.client.GetActive()).state
        await bench.put(discovered("http://pause.example/", crawl))
        assert await bench.get(crawl) == []
    finally:
        await bench.client.SetActive(state=True)
    assert (await bench.client.GetActive()).state
    assert len(await bench.get(crawl)) == 1


async def default_delay(bench: Bench, crawl: str, _: str) -> None:
    """SetDelay without a key is for all queues without a delay of their own."""
    await bench.put(*(discovered(f"http://all.example/{k}", crawl) for k in range(2)))
    await bench.client.SetDelay(delay_requestable=8)
    try:
        assert len(await bench.get(crawl, 1, 1, delay_requestable=100)) == 1
        await bench.wait(5.0)
        assert await bench.get(crawl, 1, 2) == []
    finally:
        await bench.client.SetDelay(delay_requestable=1)
    assert len(await bench.get(crawl, 1, 2)) == 1


async def pages_of_lists(bench: Bench, crawl: str, _: str) -> None:
    """ListQueues and ListURLs give pages of start and size, each entry once; 100 entries by default."""
    await bench.put(*(discovered(f"http://q{k}.example/{k}", crawl) for k in range(130)))
    first = await bench.client.ListQueues(crawlID=crawl)
    rest = await bench.client.ListQueues(crawlID=crawl, start=100, size=100)
    assert (len(first.values), len(rest.values)) == (100, 30), f"{len(first.values)} and {len(rest.values)} queues"
    assert len({*first.values, *rest.values}) == 130
    assert len(await bench.listed(crawl)) == 100
    pages = [item for start in (0, 50, 100) for item in await bench.listed(crawl, start=start, size=50)]
    assert len({item.known.info.url for item in pages}) == len(pages) == 130


async def filters(bench: Bench, crawl: str, _: str) -> None:
    """ListURLs and CountURLs take a filter, with or without case, for a queue or for the whole crawl."""
    urls = ["http://f.example/News", "http://f.example/sport", "http://g.example/news"]
    await bench.put(*(discovered(url, crawl) for url in urls))
    found = await bench.listed(crawl, filter="/news")
    assert [item.known.info.url for item in found] == ["http://g.example/news"]
    count = bench.client.CountURLs
    assert (await count(crawlID=crawl, filter="/news", ignoreCase=True)).value == 2
    assert (await count(crawlID=crawl, key="f.example", filter="/news", ignoreCase=True)).value == 1
    assert (await count(crawlID=crawl)).value == 3


async def figures(bench: Bench, crawl: str, _: str) -> None:
    """GetStats counts active, completed and in-process URLs of a queue or a crawl; no such queue: all are 0."""
    await bench.put(
        discovered("http://one.example/1", crawl),
        discovered("http://one.example/2", crawl),
        known("http://two.example/", crawl, 0, metadata=GONE),
    )
    await bench.get(crawl, 1, 1)
    stats = await bench.client.GetStats(crawlID=crawl)
    found = (stats.size, stats.inProcess, stats.numberOfQueues, stats.counts["completed"], stats.crawlID)
    assert found == (2, 1, 2, 1, crawl), f"figures {found}"
    assert stats.counts["active_queues"] == 1
    one = await bench.client.GetStats(crawlID=crawl, key="two.example")
    assert (one.size, one.counts["completed"], one.numberOfQueues) == (0, 1, 1)
    assert (await bench.client.GetStats(crawlID=crawl, key="absent")).numberOfQueues == 0


async def absent_url(bench: Bench, crawl: str, _: str) -> None:
    """GetURLStatus of a URL that is not there is NOT_FOUND; of a discovered one, a known item."""
    try:
        await bench.client.GetURLStatus(url="http://absent.example/", crawlID=crawl)
    except grpc.aio.AioRpcError as problem:
        assert problem.code() == grpc.StatusCode.NOT_FOUND, str(problem.code())  # noqa: PT017
    else:
        raise AssertionError("a URL that is not there was found")
    await bench.put(discovered("http://there.example/", crawl))
    item = await bench.client.GetURLStatus(url="http://there.example/", crawlID=crawl)
    assert item.WhichOneof("item") == "known"
    assert abs(item.known.refetchable_from_date - bench.now()) < 1000


async def purge_by_creation(bench: Bench, crawl: str, _: str) -> None:
    """PurgeURLs deletes URLs that were created so many days ago, whatever their dates."""
    await bench.put(known("http://purge.example/", crawl, bench.now() - 9e6))
    assert (await bench.client.PurgeURLs(crawlID=crawl, days=1)).value == 0, "it was created just now"
    await bench.wait(1.5)
    assert (await bench.client.PurgeURLs(crawlID=crawl, days=0)).value == 1
    assert (await bench.client.CountURLs(crawlID=crawl)).value == 0


async def other_calls(bench: Bench, crawl: str, _: str) -> None:
    """ListNodes names the service; calls about queues and crawls that are not there do nothing."""
    assert len((await bench.client.ListNodes()).values) >= 1
    await bench.client.SetDelay(key="absent", crawlID=crawl, delay_requestable=5)
    await bench.client.BlockQueueUntil(key="absent", crawlID=crawl, time=5)
    await bench.client.SetCrawlLimit(key="absent", crawlID=crawl, limit=5)
    await bench.client.SetLogLevel(package="absent.package", level=2)
    assert (await bench.client.DeleteCrawl(value=crawl)).value == 0
    assert (await bench.client.DeleteQueue(key="absent", crawlID=crawl)).value == 0
    assert (await bench.client.PurgeURLs(crawlID=crawl, days=0)).value == 0
    assert crawl not in (await bench.client.ListCrawls()).values


CONTROL_RULES = [
    Rule(delay_of_a_queue),
    Rule(blocked_queue),
    Rule(limit_of_a_queue),
    Rule(pages_of_lists),
    Rule(filters),
    Rule(figures),
    Rule(absent_url),
    Rule(purge_by_creation),
    Rule(other_calls),
    Rule(paused_service, alone=True),
    Rule(default_delay, alone=True),
]
