"""The published rules, checked by the shipped suite in both modes; and that the suite finds what is wrong."""

import asyncio

import pytest

from recrawl.contrib.urlfrontier import FrontierClient, Modes, running
from recrawl.contrib.urlfrontier.api.service import handlers_of
from recrawl.contrib.urlfrontier.api.wire import OK, message
from recrawl.contrib.urlfrontier.testing import check_frontier
from recrawl.contrib.urlfrontier.testing.control_rules import CONTROL_RULES
from recrawl.contrib.urlfrontier.testing.lasting_rules import LASTING_RULES
from recrawl.contrib.urlfrontier.testing.url_rules import URL_RULES
from tests.contrib.urlfrontier.services import World

NAMES = {rule.text: rule.check.__name__ for rule in (*URL_RULES, *CONTROL_RULES, *LASTING_RULES)}


def checked(folder, mode="strict"):
    async def run():
        world = World(folder, Modes.of(mode))
        bench = await world.bench()
        try:
            return await check_frontier(bench)
        finally:
            await bench.close()
            await world.close()

    return asyncio.run(run())


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["strict", "managed"])
def test_the_published_rules_hold_and_leases_and_limits_survive_restarts(mode, tmp_path):
    results = checked(tmp_path, mode)
    assert [result for result in results if result.problem is not None] == []
    assert len(results) == (27 if mode == "strict" else 24)


@pytest.mark.slow
def test_a_service_of_2_4_passes_without_batches(tmp_path, monkeypatch):
    """It has no call PutDiscovered, as its clients have none: everything else is as published."""
    monkeypatch.setattr(running, "handlers_of", lambda service: {
        name: call for name, call in handlers_of(service).items() if name != "PutDiscovered"
    })  # fmt: skip
    results = checked(tmp_path)
    assert [result for result in results if result.problem is not None] == []


def ignored(name):
    """A call that does nothing."""

    async def call(**fields):
        return message("Boolean")()

    return {name: lambda _: call}


def changed(name, change):
    """A call whose answers are changed, one by one."""

    def wrong(call):
        async def stream(*given, **fields):
            async for one in call(*given, **fields):
                for other in change(one):
                    yield other

        return stream

    return {name: wrong}


def changed_figures(call):
    async def stats(**fields):
        found = await call(**fields)
        found.inProcess = 0
        return found

    return stats


def put_ok(ack):
    ack.status = OK
    return [ack]


def without_metadata(info):
    info.metadata.clear()
    return [info]


def backwards(call):
    async def stream(**fields):
        for info in reversed([info async for info in call(**fields)]):
            yield info

    return stream


def only_default(call):
    return lambda **fields: call(**({"crawlID": "DEFAULT"} | {k: v for k, v in fields.items() if k != "anyCrawlID"}))


FAULTS = {
    "every item is acknowledged with OK": (changed("PutURLs", put_ok), {"acknowledgements", "updates"}),
    "the order of a queue is turned round": ({"GetURLs": backwards}, {"right_order"}),
    "each URL is served twice": (changed("GetURLs", lambda info: [info, info]), {"no_url_twice", "updates"}),
    "metadata are not served": (changed("GetURLs", without_metadata), {"metadata"}),
    "no crawl ID means DEFAULT": ({"GetURLs": only_default}, {"any_crawl"}),
    "URLs in process are not counted": ({"GetStats": changed_figures}, {"figures", "updates", "lasting_leases"}),
    "delays are ignored": (ignored("SetDelay"), {"delay_of_a_queue", "default_delay", "lasting_limits"}),
    "blocks are ignored": (ignored("BlockQueueUntil"), {"blocked_queue", "lasting_limits"}),
    "limits are ignored": (ignored("SetCrawlLimit"), {"limit_of_a_queue", "lasting_limits"}),
    "a pause is ignored": (ignored("SetActive"), {"paused_service"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_the_suite_finds_what_is_wrong(tmp_path, monkeypatch, fault):
    """A client that changes calls stands for a service that is wrong. At least half of the rules hold."""
    wrong, rules = FAULTS[fault]
    right = FrontierClient.__getattr__
    monkeypatch.setattr(
        FrontierClient, "__getattr__", lambda self, name: wrong.get(name, lambda call: call)(right(self, name))
    )
    found = {NAMES[result.rule] for result in checked(tmp_path) if result.problem is not None}
    assert rules <= found
    assert len(found) <= len(NAMES) / 2, f"rules that fail: {sorted(found)}"
