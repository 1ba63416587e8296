"""Rules about URLs: what is put, what is served, and in which order."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc

from recrawl.contrib.urlfrontier.api.wire import OK, SKIPPED, message
from recrawl.contrib.urlfrontier.testing.bench import Bench, discovered, known
from recrawl.contrib.urlfrontier.testing.rule import Rule

_PAUSE = 2.5  # seconds after which a queue with the default delay serves again
_ASKED = 5  # times that a call is made whose status is lost


def _urls(infos: list[object]) -> list[str]:
    return [info.url for info in infos]  # type: ignore[attr-defined]


async def never_refetched(bench: Bench, crawl: str, _: str) -> None:
    """A known URL with date 0 is completed and not served again."""
    url = "http://never.example/"
    assert await bench.put(known(url, crawl, 0)) == [(url, OK)]
    assert await bench.get(crawl) == [], "a completed URL was served"
    stats = await bench.client.GetStats(crawlID=crawl)
    assert (stats.size, stats.counts["completed"]) == (0, 1), f"size {stats.size}, counts {dict(stats.counts)}"


async def right_order(bench: Bench, crawl: str, _: str) -> None:
    """Within a queue, URLs come by date, then by URL; later dates are not served yet."""
    now, base = bench.now(), "http://order.example/"
    dates = {"late": now - 10, "b": now - 500, "early": now - 1000, "a": now - 500, "future": now + 1000}
    await bench.put(*(known(base + name, crawl, date) for name, date in dates.items()))
    assert _urls(await bench.get(crawl)) == [base + name for name in ("early", "a", "b", "late")]


async def updates(bench: Bench, crawl: str, _: str) -> None:
    """A URL that is discovered twice is served once, and again after delay_requestable."""
    url = "http://update.example/page"
    states = [state for _, state in await bench.put(discovered(url, crawl), discovered(url, crawl))]
    assert sorted(states) == [OK, SKIPPED], f"states {states}"
    assert list((await bench.client.ListQueues(crawlID=crawl)).values) == ["update.example"]
    assert _urls(await bench.get(crawl, delay_requestable=4)) == [url]
    assert (await bench.client.GetStats(crawlID=crawl)).inProcess == 1
    assert await bench.get(crawl) == [], "a URL in process was served"
    await bench.wait(5.0)
    assert (await bench.client.GetStats(crawlID=crawl)).inProcess == 0
    assert _urls(await bench.get(crawl)) == [url], "the lease is over"
    assert (await bench.client.DeleteQueue(crawlID=crawl, key="update.example")).value == 1
    assert list((await bench.client.ListQueues(crawlID=crawl)).values) == []


async def queue_names(bench: Bench, crawl: str, _: str) -> None:
    """A URL without a key goes to the queue of its host, cut at : / ? and &; a key that is given stays."""
    urls = ["http://gac.icann.org?language_id=9", "http://port.example:8080/x", "http://amp.example&a/b"]
    await bench.put(*(discovered(url, crawl) for url in urls if not bench.managed or "&" not in url))
    await bench.put(discovered("http://www.keyed.example/", crawl, "a domain or 10.0.0.1"))
    found = set((await bench.client.ListQueues(crawlID=crawl)).values)
    expected = {"gac.icann.org", "port.example", "a domain or 10.0.0.1", *(() if bench.managed else ["amp.example"])}
    assert found == expected, f"queues {sorted(found)}"
    infos = await bench.get(crawl, key="a domain or 10.0.0.1")
    assert [(info.url, info.key, info.crawlID) for info in infos] == [
        ("http://www.keyed.example/", "a domain or 10.0.0.1", crawl)
    ]


async def crawl_ids(bench: Bench, crawl: str, other: str) -> None:
    """Crawls are apart: the same URL in two of them is two URLs, and deleting one leaves the other."""
    url = "http://twice.example/"
    await bench.put(discovered(url, crawl), discovered(url, other))
    assert {crawl, other} <= set((await bench.client.ListCrawls()).values)
    assert (await bench.client.DeleteCrawl(value=crawl)).value == 1
    assert (await bench.client.GetStats(crawlID=crawl)).size == 0
    assert _urls(await bench.get(other)) == [url]


async def default_crawl(bench: Bench, crawl: str, _: str) -> None:
    """No crawl ID and DEFAULT are the same crawl."""
    url = f"http://{crawl}.example/"
    await bench.put(discovered(url, ""))
    status = await bench.client.GetURLStatus(url=url, crawlID="DEFAULT")
    assert status.known.info.crawlID == "DEFAULT"
    assert (await bench.client.DeleteQueue(key=f"{crawl}.example")).value == 1


async def dump_and_put_back(bench: Bench, crawl: str, _: str) -> None:
    """What ListURLs gives can be put back: dates, metadata, keys and crawl IDs are kept."""
    far = bench.now() + 9e5
    await bench.put(
        known("http://dump.example/done", crawl, 0, metadata={"a": ["1", "2"]}),
        known("http://dump.example/later", crawl, far, "other key", metadata={"empty": []}),
        discovered("http://dump.example/new", crawl, metadata={"ä": ["ö", ""]}),
    )
    dumped = await bench.listed(crawl)
    assert all(item.creation_date >= bench.now() - 1000 for item in dumped), "creation dates are set by the service"
    await bench.client.DeleteCrawl(value=crawl)
    assert await bench.listed(crawl) == []
    await bench.put(*dumped)
    again = await bench.listed(crawl)
    plain = [sorted(item.known.SerializeToString(deterministic=True) for item in items) for items in (dumped, again)]
    assert plain[0] == plain[1], "URLs differ after they were put back"


async def metadata(bench: Bench, crawl: str, _: str) -> None:
    """Metadata are served as they were put; a known URL overwrites them, a discovered one does not."""
    url, first, second = "http://meta.example/", {"k": ["v", "w"]}, {"other": ["x"]}
    await bench.put(discovered(url, crawl, metadata=first))
    await bench.put(discovered(url, crawl, metadata=second))
    (info,) = await bench.get(crawl, delay_requestable=2)
    assert {name: list(value.values) for name, value in info.metadata.items()} == first
    await bench.put(known(url, crawl, bench.now() + 1000, metadata=second))
    status = await bench.client.GetURLStatus(url=url, crawlID=crawl)
    assert {name: list(value.values) for name, value in status.known.info.metadata.items()} == second
    assert status.known.refetchable_from_date > bench.now()
    assert (await bench.client.GetStats(crawlID=crawl)).inProcess == 0, "a put ends the lease"


async def acknowledgements(bench: Bench, crawl: str, _: str) -> None:
    """An item is acknowledged by its ID, or by its URL; items that cannot be used are SKIPPED."""
    good, long = "http://ack.example/", "x" * 256
    items = [
        discovered(good, crawl, id="mine"),
        discovered("http://ack.example/2", crawl),
        discovered("http://ack.example/3", crawl, long, id="long key"),
        discovered("", crawl, id="no URL"),
        discovered("no host", crawl, id="no host"),
        message("URLItem")(ID="nothing"),
    ]
    found = dict(await bench.put(*items))
    bad = dict.fromkeys(("long key", "no URL", "no host", "nothing"), SKIPPED)
    assert found == {"mine": OK, "http://ack.example/2": OK, **bad}, f"acknowledgements {found}"


async def _put_batch(bench: Bench, batch: Any) -> list[Any]:
    """The answers to a batch. A service without this call may end it while the batch is sent: then its status is lost.

    The client reports INTERNAL then, and asks again.
    """
    asked = 0
    while True:
        asked += 1
        try:
            return [ack async for ack in bench.client.PutDiscovered(iter([batch]))]
        except grpc.aio.AioRpcError as problem:
            if problem.code() != grpc.StatusCode.INTERNAL or asked == _ASKED:
                raise


async def batches(bench: Bench, crawl: str, _: str) -> None:
    """PutDiscovered gives one state per URL in order; services before 2.6 answer UNIMPLEMENTED."""
    batch = message("DiscoveredBatch")(ID="one")
    for url in ("http://batch.example/1", "http://batch.example/2", "http://batch.example/1", ""):
        batch.items.add(url=url, crawlID=crawl)
    try:
        acks = await _put_batch(bench, batch)
    except grpc.aio.AioRpcError as problem:
        assert problem.code() == grpc.StatusCode.UNIMPLEMENTED, str(problem.code())  # noqa: PT017
        return
    assert [(ack.ID, list(ack.statuses)) for ack in acks] == [("one", [OK, OK, SKIPPED, SKIPPED])]


async def any_crawl(bench: Bench, crawl: str, _: str) -> None:
    """GetURLs without a crawl ID, or with anyCrawlID, serves any crawl; with a key it must name the crawl."""
    url = "http://any.example/"
    await bench.put(discovered(url, crawl))
    assert [info async for info in bench.client.GetURLs(key="any.example")] == []
    assert url in _urls(await bench.get(None, delay_requestable=2))
    await bench.wait(_PAUSE)
    assert url in _urls([info async for info in bench.client.GetURLs()])


async def no_url_twice(bench: Bench, crawl: str, _: str) -> None:
    """Clients that ask at the same time get no URL twice, and no queue has more in process than they ask for."""
    await bench.put(*(discovered(f"http://race{k % 3}.example/{k}", crawl) for k in range(60)))
    asked = await asyncio.gather(*(bench.get(crawl, 3, 5, delay_requestable=100) for _ in range(8)))
    urls = [info.url for infos in asked for info in infos]
    assert urls, "nothing was served"
    assert len(urls) == len(set(urls)), "a URL was served twice"
    for k in range(3):
        assert (await bench.client.GetStats(crawlID=crawl, key=f"race{k}.example")).inProcess <= 5


async def rotation(bench: Bench, crawl: str, _: str) -> None:
    """Queues have turns: each is served once before any is served again."""
    await bench.put(*(discovered(f"http://turn{k % 4}.example/{k}", crawl) for k in range(8)))
    keys = [(await bench.get(crawl, 1, 1, delay_requestable=100))[0].key for _ in range(4)]
    assert sorted(keys) == [f"turn{k}.example" for k in range(4)], f"keys {keys}"


async def many_items(bench: Bench, crawl: str, _: str) -> None:
    """A stream with more items than may be open at once is acknowledged in full."""
    acks = await bench.put(*(discovered(f"http://many.example/{k}", crawl) for k in range(1500)))
    assert {state for _, state in acks} == {OK}
    assert len(acks) == 1500
    assert (await bench.client.CountURLs(crawlID=crawl)).value == 1500


URL_RULES = [
    Rule(never_refetched, strict_only=True),
    Rule(right_order, strict_only=True),
    Rule(updates),
    Rule(queue_names),
    Rule(crawl_ids),
    Rule(default_crawl),
    Rule(dump_and_put_back),
    Rule(metadata),
    Rule(acknowledgements),
    Rule(batches),
    Rule(any_crawl, alone=True),
    Rule(no_url_twice),
    Rule(rotation, strict_only=True),
    Rule(many_items),
]
