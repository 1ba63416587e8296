"""Rules about restarts: what recrawl keeps beyond the published rules, which ask for the URLs alone."""

from __future__ import annotations

from recrawl.contrib.urlfrontier.testing.bench import Bench, discovered, known
from recrawl.contrib.urlfrontier.testing.control_rules import GONE
from recrawl.contrib.urlfrontier.testing.rule import Rule


async def lasting_leases(bench: Bench, crawl: str, _: str) -> None:
    """After a restart, URLs in process are not served before their leases end."""
    await bench.put(*(discovered(f"http://lease{k}.example/", crawl) for k in range(3)))
    held = [info.url for info in await bench.get(crawl, 2, 1, delay_requestable=60)]
    assert len(held) == 2
    await bench.restart()
    assert (await bench.client.GetStats(crawlID=crawl)).inProcess == 2
    await bench.wait(5.0)
    rest = [info.url for info in await bench.get(crawl, delay_requestable=100)]
    assert len(rest) == 1
    assert not {*rest} & {*held}, "a URL in process was served"
    await bench.wait(60.0)
    assert {info.url for info in await bench.get(crawl)} == set(held)


async def lasting_limits(bench: Bench, crawl: str, _: str) -> None:
    """Delays, blocks and limits of queues, and their URLs, survive a restart."""
    hosts = ("slow", "blocked", "full", "free")
    await bench.put(*(discovered(f"http://{host}.example/{k}", crawl) for host in hosts for k in range(2)))
    await bench.put(known("http://full.example/done", crawl, 0, metadata=GONE))
    await bench.client.SetDelay(key="slow.example", crawlID=crawl, delay_requestable=500)
    await bench.client.SetCrawlLimit(key="full.example", crawlID=crawl, limit=1)
    await bench.client.BlockQueueUntil(key="blocked.example", crawlID=crawl, time=int(bench.now() + 500))
    assert {info.key for info in await bench.get(crawl, 9, 1, delay_requestable=1)} == {"slow.example", "free.example"}
    await bench.restart()
    await bench.wait(5.0)
    assert {info.key for info in await bench.get(crawl, 9, 1, delay_requestable=1)} == {"free.example"}
    await bench.wait(600.0)
    keys = {info.key for info in await bench.get(crawl, 9, 1)}
    assert keys == {"slow.example", "blocked.example", "free.example"}, f"keys {sorted(keys)}"


LASTING_RULES = [Rule(lasting_leases), Rule(lasting_limits)]
