"""The gate of a shard: no request without a lease, none beyond it, none to hosts of other shards."""

import asyncio

import pytest

from recrawl.cluster.hosts import HostsOfShard, place_of, shards_of
from recrawl.cluster.ownership import gate as gates
from recrawl.cluster.ownership.gate import Gate, leased
from recrawl.cluster.ownership.leases import MARGIN, Held, LeaseLostError
from recrawl.crawl import ManualClock, MemoryWeb

URL = "https://a.example/"


def opened(seconds=60.0, is_own=lambda url: True):
    """A gate whose lease lasts for some seconds of the loop's clock, and a fetcher behind it."""
    now = asyncio.get_running_loop().time
    gate = Gate(Held(0, "w", 1, until=now() + seconds), now)
    web = MemoryWeb(lambda url, now: "text", ManualClock())
    return gate, web, leased(web, gate, is_own, lambda: 0.0)


class Never:
    """A fetcher that gets no answer."""

    async def fetch(self, url, **options):
        await asyncio.Event().wait()


def test_a_request_waits_for_the_lease_and_goes_on_when_it_is_taken_again():
    async def main():
        gate, web, fetcher = opened(seconds=0.5)  # less than the margin
        asking = asyncio.create_task(fetcher.fetch(URL))
        for _ in range(20):
            await asyncio.sleep(0)
        assert web.requests == []
        gate.held = Held(0, "w", 2, until=gate.held.until + 60.0)
        assert (await asking).status == 200

    asyncio.run(main())


def test_a_request_is_broken_off_when_the_lease_ends_and_goes_on_when_it_is_renewed():
    async def main():
        now = asyncio.get_running_loop().time
        gate = Gate(Held(0, "w", 1, until=now() + 0.02), lambda: now() - MARGIN)
        fetcher = leased(Never(), gate, lambda url: True, lambda: 0.0)
        asking = asyncio.create_task(fetcher.fetch(URL))
        await asyncio.sleep(0)
        gate.held = Held(0, "w", 1, until=gate.held.until + 0.05)
        gate.renewed()
        found = await asking
        assert asyncio.get_running_loop().time() >= gate.held.until
        assert (found.status, found.failure) == (0, "reset")

    asyncio.run(main())


def test_nothing_is_asked_or_written_once_another_worker_has_the_shard():
    async def main():
        gate, web, fetcher = opened()
        late = asyncio.create_task(leased(Never(), gate, lambda url: True, lambda: 0.0).fetch(URL))
        await asyncio.sleep(0)
        gate.lost = True
        gate.end_requests()
        assert (await late).failure == "reset"
        with pytest.raises(LeaseLostError, match="another worker has it"):
            await fetcher.fetch(URL)
        assert web.requests == []

    asyncio.run(main())


def test_no_request_starts_while_too_many_outcomes_wait_for_the_database(monkeypatch):
    async def main():
        monkeypatch.setattr(gates, "MOST_WAITING", 3)
        gate, web, fetcher = opened()
        waiting = [3]
        gate.n_waiting = lambda: waiting[0]
        asking = asyncio.create_task(fetcher.fetch(URL))
        for _ in range(20):
            await asyncio.sleep(0)
        assert web.requests == []
        waiting[0] = 2
        assert (await asking).status == 200

    asyncio.run(main())


def test_hosts_of_other_shards_are_not_asked():
    async def main():
        _, web, fetcher = opened(is_own=HostsOfShard(int(shards_of([URL], 8)[0]), 8))
        others = [f"https://h{k}.example/" for k in range(99)]
        other = others[int((shards_of(others, 8) != shards_of([URL], 8)).argmax())]
        assert (await fetcher.fetch(other)).failure == "redirects"
        assert (await fetcher.fetch(URL.replace("a.", "www.a."))).status == 200
        assert len(web.requests) == 1

    asyncio.run(main())
    assert place_of("https://www.example.org:8443/x") == "example.org"
