"""The command as a process: what was acknowledged is there after SIGTERM and after kill -9."""

import asyncio
import itertools
import signal
import subprocess
import sys

import pytest

from recrawl.contrib.urlfrontier import FrontierClient
from recrawl.contrib.urlfrontier.api.wire import OK, URLInfo, message
from recrawl.contrib.urlfrontier.testing import check_address
from recrawl.contrib.urlfrontier.testing.bench import discovered, known

pytestmark = pytest.mark.full


def started(folder, *words):
    """The process and its address."""
    command = [sys.executable, "-m", "recrawl", "urlfrontier", "--port", "0", "--log-level", "error", *words]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    line = process.stderr.readline()
    assert line.startswith("URL Frontier at "), line
    return process, line.split()[-1]


async def flood(address, first, process, crawl):
    """Put URLs until the process is killed; those that were acknowledged."""
    done, sent = [], asyncio.Semaphore(500)

    async def items():
        k = first
        while True:
            await sent.acquire()
            yield discovered(f"http://h{k % 9}.example/{k}", crawl)
            k += 1

    async with FrontierClient(address) as client:
        try:
            async for ack in client.PutURLs(items()):
                sent.release()
                if ack.status == OK:
                    done.append(ack.ID)
                if len(done) == 1500:
                    process.kill()
        except Exception:
            assert process.wait() == -signal.SIGKILL
    return done


async def flood_batches(address, first, process, crawl):
    """The same with batches of discovered URLs."""
    done, sent = [], asyncio.Semaphore(8)
    batches = []

    async def some():
        for k in itertools.count(first, 50):
            await sent.acquire()
            urls = [f"http://h{j % 9}.example/{j}" for j in range(k, k + 50)]
            batches.append(urls)
            yield message("DiscoveredBatch")(ID=str(k), items=[URLInfo(url=url, crawlID=crawl) for url in urls])

    async with FrontierClient(address) as client:
        try:
            async for ack in client.PutDiscovered(some()):
                sent.release()
                done += [url for url, state in zip(batches.pop(0), ack.statuses, strict=True) if state == OK]
                if len(done) >= 1500 and process.poll() is None:
                    process.kill()
        except Exception:
            assert process.wait() == -signal.SIGKILL
    return done


async def stored(address, crawl):
    async with FrontierClient(address) as client:
        return {item.known.info.url async for item in client.ListURLs(crawlID=crawl, size=10**9)}


@pytest.mark.parametrize("flood", [flood, flood_batches])
@pytest.mark.parametrize("mode", ["strict", "managed"])
def test_nothing_that_was_acknowledged_is_missing_after_kills(mode, flood, tmp_path):
    acknowledged, words = set(), ("--mode", mode, "--budget", "1000/s", "--delay", "0")
    for round_ in range(5):
        process, address = started(tmp_path, *words)
        acknowledged |= set(asyncio.run(flood(address, 10**6 * round_, process, "c")))
        process.stderr.close()
    process, address = started(tmp_path, *words)
    found = asyncio.run(stored(address, "c"))
    process.send_signal(signal.SIGTERM)
    assert process.wait(300) == 0
    process.stderr.close()
    assert len(acknowledged) >= 7500
    assert acknowledged <= found


@pytest.mark.parametrize("mode", ["strict", "managed"])
def test_the_rules_hold_in_real_time(mode, tmp_path):
    process, address = started(tmp_path, "--mode", mode, "--budget", "1000/s", "--delay", "0")
    try:
        results = asyncio.run(check_address(address, managed=mode == "managed"))
        assert [result for result in results if result.problem is not None] == []
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0
        process.stderr.close()


def test_a_client_of_the_service_keeps_its_stream_open_over_many_turns(tmp_path):
    async def run(address):
        async with FrontierClient(address) as client:
            asked, answered = asyncio.Queue(), asyncio.Queue()

            async def items():
                while (item := await asked.get()) is not None:
                    yield item

            async def read():
                async for ack in client.PutURLs(items()):
                    answered.put_nowait((ack.ID, ack.status))

            reading = asyncio.create_task(read())
            for k in range(50):
                url = f"http://a{k}.example/"
                asked.put_nowait(discovered(url, "c"))
                assert await answered.get() == (url, OK)
                (info,) = [one async for one in client.GetURLs(crawlID="c")]
                assert info.url == url
                asked.put_nowait(known(url, "c", 0))
                assert await answered.get() == (url, OK)
            asked.put_nowait(None)
            await reading
            return (await client.GetStats(crawlID="c")).counts["completed"]

    process, address = started(tmp_path)
    try:
        assert asyncio.run(run(address)) == 50
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0
        process.stderr.close()
