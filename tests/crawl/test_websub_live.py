"""WebSub against a hub on loopback: a crawl of a web in memory, its HTTP interface and the hub on real sockets."""

import asyncio

import pytest

from crawl.driving import DAY, START
from crawl.hub import Hub
from crawl.listening import ListeningCrawl
from recrawl.crawl.http.memory import Answer, ManualClock
from recrawl.crawl.run.commands import remove_command
from recrawl.store import MemoryStore

pytestmark = pytest.mark.slow

FEED, ITEM, PAGE = "https://a.example/feed", "https://a.example/item/{}", "https://a.example/page"
ATOM = "application/atom+xml"


class Site:
    """A feed with items and a page, each with links to a hub; ``version`` is what they show."""

    def __init__(self):
        self.hub, self.version, self.items = None, 1, [1, 2, 3]

    def html(self):
        return f"<html><head><title>t</title></head><body><p>the text, version {self.version}</p></body></html>"

    def feed(self, items=None):
        shown = self.items if items is None else items
        entries = "".join(
            f"<entry><id>{k}</id><link href='{ITEM.format(k)}'/><title>{k}</title></entry>" for k in shown
        )
        links = f"<link rel='hub' href='{self.hub}'/><link rel='self' href='{FEED}'/>"
        return f"<feed xmlns='http://www.w3.org/2005/Atom'>{links}{entries}</feed>"

    def __call__(self, url, now):
        if url == FEED:
            return Answer(self.feed(), headers={"content-type": ATOM})
        if url == PAGE:
            link = f'<{self.hub}>; rel="hub", <{PAGE}>; rel="self"'
            return Answer(self.html(), headers={"content-type": "text/html", "link": link})
        return f"<p>{url}</p>" if "/item/" in url else None


class Crawl(ListeningCrawl):
    """A crawl and the hub of its pages."""

    def __init__(self, site, hub, clock, store, budget=1 / 600):
        super().__init__(site, clock, store, budget)
        self.hub = hub

    async def settled(self):
        """The hub has made its callbacks."""
        await self.hub.settled()

    async def publish(self, topic, content, *content_type):
        """Publish by the hub; statuses."""
        statuses = await self.hub.publish(topic, content.encode(), *content_type)
        await self.clock.advance(1.0)
        return statuses

    @property
    def websub(self):
        return self.crawler.components.receivers.websub

    @property
    def counts(self):
        return self.websub.table.counts

    def subscription(self, page=PAGE):
        return self.websub.table.of_page(page)

    def state(self, page=PAGE):
        return self.subscription(page).state(self.clock.now())

    def callback(self, page=PAGE):
        return self.websub.table.callback(self.subscription(page).name)


def live(test, urls=(PAGE,), **hub):
    """Run a test with a crawl that runs, of some pages."""

    async def main():
        site, clock = Site(), ManualClock(START)
        skew, budget = hub.pop("skew", 0.0), hub.pop("budget", 1 / 600)
        async with Hub(lambda: clock.now() + skew, hold=clock.hold, **hub) as its_hub:
            site.hub = its_hub.url
            crawl = Crawl(site, its_hub, clock, MemoryStore(keep=1), budget)
            async with crawl.running(urls):
                await crawl.after(3.0 / budget)
                await test(crawl)

    asyncio.run(main())


# --- subscribing -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("manners", ["verify", "move"])
def test_the_hub_of_a_page_is_subscribed_to(manners):
    async def test(crawl):
        assert crawl.hub.verified == [200]
        ((topic, callback),) = crawl.hub.leases
        assert (topic, callback) == (PAGE, crawl.callback())
        assert crawl.state() == "active"
        assert crawl.components.counters.requests == len(crawl.memory.requests) + len(crawl.hub.requests)

    live(test, manners=manners)


def test_the_hub_of_a_feed_is_found_in_its_elements():
    async def test(crawl):
        assert crawl.state(FEED) == "active"
        assert list(crawl.hub.leases) == [(FEED, crawl.callback(FEED))]

    live(test, [FEED])


def test_what_was_not_asked_for_is_not_found():
    async def test(crawl):
        query = {"hub.mode": "subscribe", "hub.topic": PAGE, "hub.challenge": "<script>", "hub.lease_seconds": "9"}
        for wrong in ({"hub.topic": FEED}, {"hub.mode": "unsubscribe"}, {"hub.challenge": "x" * 2000}):
            assert (await crawl.hub.call(crawl.callback(), query | wrong))[0] == 404
        assert (await crawl.hub.call(crawl.callback() + "x", query))[0] == 404
        async with crawl.hub._session.get(crawl.callback(), params=query) as answer:
            assert await answer.text() == "<script>"
            assert answer.headers["content-type"] == "text/plain; charset=utf-8"
            assert answer.headers["x-content-type-options"] == "nosniff"
        assert crawl.counts["not_asked"] == 4

    live(test)


def test_leases_are_renewed_before_they_end():
    async def test(crawl):
        ((_, callback),) = crawl.hub.leases
        for _ in range(30):
            await crawl.after(DAY / 2)
            assert crawl.state() == "active"
            assert [lease.until > crawl.clock.now() for lease in crawl.hub.leases.values()] == [True]
        assert list(crawl.hub.leases) == [(PAGE, callback)]
        assert 9 <= len(crawl.hub.requests) <= 13  # 15 days of leases of 2 days

    live(test, lease=2 * 86400, budget=1 / 7200)


def test_a_page_that_is_removed_is_unsubscribed_from():
    async def test(crawl):
        await crawl.store.queue([remove_command([PAGE])])
        await crawl.after(2 * 3600.0)
        assert crawl.hub.leases == {}
        assert crawl.hub.requests[-1]["hub.mode"] == "unsubscribe"
        assert crawl.subscription() is None

    live(test, [PAGE, FEED.replace("feed", "item/1")])


def test_a_denial_is_respected_for_a_day():
    async def test(crawl):
        assert (crawl.state(), crawl.subscription().denied) == ("denied", "not today")
        assert (crawl.hub.verified, len(crawl.hub.requests)) == ([200], 1)
        await crawl.after(DAY)
        assert len(crawl.hub.requests) == 2

    live(test, manners="deny")


# --- deliveries ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["sha1", "sha256", "sha384", "sha512"])
def test_a_delivery_of_the_whole_page_is_a_copy_without_a_request(method):
    async def test(crawl):
        before, asked = await crawl.copy(PAGE), crawl.requests(PAGE)
        crawl.site.version = 2
        assert await crawl.publish(PAGE, crawl.site.html()) == [202]
        after = await crawl.copy(PAGE)
        assert crawl.requests(PAGE) == asked
        assert after.digest != before.digest
        assert after.changed_at > before.fetched_at
        assert crawl.components.counters.pushed == 1
        last = await crawl.store.last_observation()
        assert (last.url, last.requests, last.changed, last.status) == (PAGE, 0, True, 200)
        (version,) = await crawl.store.versions(PAGE)
        assert await crawl.store.body(version.key) == crawl.site.html().encode()
        assert await crawl.store.signals() == []  # the copy has answered it
        assert [event.kind for event in await crawl.store.events()] == ["new", "changed"]
        await crawl.after(3600.0)
        assert (await crawl.copy(PAGE)).changed_at == after.changed_at  # crawls find the same

    live(test, method=method)


def test_the_same_content_again_is_no_change():
    async def test(crawl):
        assert await crawl.publish(PAGE, crawl.site.html()) == [202]
        last = await crawl.store.last_observation()
        assert (last.requests, last.changed) == (0, False)
        assert crawl.components.inbox.counts == {}

    live(test)


def test_unsigned_and_wrongly_signed_deliveries_are_ignored_and_counted():
    async def test(crawl):
        before = await crawl.copy(PAGE)
        for secret in (None, "wrong", crawl.subscription().name):
            assert await crawl.hub.deliver(crawl.callback(), secret, b"<p>forged</p>") == 202
        await crawl.clock.advance(1.0)
        assert (crawl.counts["unsigned"], crawl.counts["wrong"]) == (1, 2)
        assert crawl.components.counters.deliveries_ignored == 3
        assert await crawl.copy(PAGE) == before
        assert await crawl.store.signals() == []
        assert await crawl.hub.deliver(crawl.callback() + "x", None, b"") == 410

    live(test)


def test_a_replayed_delivery_is_a_repetition():
    async def test(crawl):
        first = crawl.site.html().replace("1", "2")
        await crawl.publish(PAGE, first)
        await crawl.publish(PAGE, first.replace("2", "3"))
        newest = await crawl.copy(PAGE)
        assert await crawl.publish(PAGE, first) == [202]
        assert crawl.counts["repeated"] == 1
        assert await crawl.copy(PAGE) == newest

    live(test)


def test_a_delivery_that_is_too_large_is_refused():
    async def test(crawl):
        assert await crawl.hub.deliver(crawl.callback(), None, bytes((10 << 20) + 1)) == 413
        assert crawl.counts["unsigned"] == 0

    live(test)


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", ""])
def test_a_notice_is_a_signal(content_type):
    async def test(crawl):
        asked = len(crawl.requests(PAGE))
        assert await crawl.publish(PAGE, '{"changed": true}', content_type) == [202]
        assert len(await crawl.store.signals()) == 1
        assert crawl.components.counters.pushed == 0
        await crawl.after(1200.0)
        assert len(crawl.requests(PAGE)) > asked
        assert await crawl.store.signals() == []

    live(test)


def test_new_items_of_a_feed_bring_their_pages_forward():
    async def test(crawl):
        await crawl.after(2 * 3600.0)
        crawl.site.items = [4, *crawl.site.items]
        urls = [ITEM.format(k) for k in range(1, 5)]
        assert await crawl.publish(FEED, crawl.site.feed([4]), ATOM) == [202]  # hubs may leave the others out
        assert {one.url for one in await crawl.store.signals()} == {FEED, urls[3]}
        assert crawl.components.counters.pushed == 0
        crawl.site.items = [5, *crawl.site.items]
        assert await crawl.publish(FEED, crawl.site.feed(), ATOM) == [202]  # whole: a copy of the feed
        assert crawl.components.counters.pushed == 1
        copy = await crawl.copy(FEED)
        assert crawl.requests(FEED)[-1] < copy.changed_at
        counts = crawl.components.inbox.counts
        assert {str(source) for source in counts} == {"websub of a.example"}

    live(test, [FEED, *(ITEM.format(k) for k in range(1, 5))])


def test_the_hub_of_a_listing_delivers_its_news():
    async def test(crawl):
        crawl.components.polls.add(FEED, "feed")
        await crawl.after(3 * DAY)
        assert crawl.components.engine.addresses.known([FEED])[0] < 0
        assert crawl.state(FEED) == "active"
        polled = crawl.requests(FEED)
        crawl.site.items = [4, *crawl.site.items]
        assert await crawl.publish(FEED, crawl.site.feed(), ATOM) == [202]  # whole
        assert {one.url for one in await crawl.store.signals()} == {ITEM.format(4)}
        crawl.site.items = [5, *crawl.site.items]
        assert await crawl.publish(FEED, crawl.site.feed([5]), ATOM) == [202]  # without what was delivered before
        assert {one.url for one in await crawl.store.signals()} == {ITEM.format(4), ITEM.format(5)}
        assert {str(source) for source in crawl.components.inbox.counts} == {"websub of a.example"}
        assert crawl.requests(FEED) == polled

    live(test, [ITEM.format(k) for k in range(1, 6)], budget=1 / 3600)


# --- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("manners", ["refuse", "silent"])
def test_pages_are_crawled_as_often_while_a_hub_is_gone(manners):
    found = {}

    def crawls(hub):
        async def test(crawl):
            await crawl.after(2 * DAY)
            assert crawl.state() in ("waiting", "asked", "denied") or hub == "verify"
            found[hub] = len(crawl.requests(PAGE)), len(crawl.hub.requests)

        live(test, manners=hub, budget=1 / 1800)

    crawls("verify")
    crawls(manners)
    assert sum(found["verify"]) == sum(found[manners])  # the budget: requests to the hub are counted
    assert found[manners][1] < 30


def test_a_hub_whose_port_is_closed_is_asked_again_when_it_is_back():
    async def test(crawl):
        assert crawl.state() == "active"
        await crawl.hub.close_port()
        asked, crawled = len(crawl.hub.requests), len(crawl.requests(PAGE))
        await crawl.after(4 * DAY)
        assert crawl.state() == "waiting"
        assert crawl.subscription().failures > 3
        assert len(crawl.hub.requests) == asked
        used = crawl.counts["failed_requests"] + len(crawl.requests(PAGE)) - crawled
        assert 0.9 * 48 <= used <= 48 + 1, "the budget: requests that are refused count"
        await crawl.hub.open_port()
        await crawl.after(2 * DAY)
        assert crawl.state() == "active"
        crawl.site.version = 2
        assert await crawl.publish(PAGE, crawl.site.html()) == [202]

    live(test, lease=2 * 86400, budget=1 / 7200)


def test_a_listing_is_polled_as_often_while_its_hub_is_silent():
    """The lease is active, and nothing is ever delivered."""
    found = {}

    def polls(hub):
        async def test(crawl):
            crawl.components.polls.add(FEED, "feed")
            await crawl.after(DAY)
            assert crawl.state(FEED) == ("active" if hub == "verify" else "waiting")
            for day in range(10):
                crawl.site.items = [day + 4, *crawl.site.items]
                await crawl.after(DAY)
            if hub == "verify":
                assert not crawl.subscription(FEED).speaks(crawl.clock.now())
            found[hub] = len(crawl.requests(FEED))
            counts = crawl.components.inbox.counts
            assert {str(source) for source in counts} == {"feed of a.example"}, "polls have found the items"

        live(test, [ITEM.format(k) for k in range(1, 14)], manners=hub, budget=1 / 3600)

    polls("verify")
    polls("refuse")
    assert found["verify"] >= 4
    assert abs(found["verify"] - found["refuse"]) <= 1, "requests to the hub take some of the budget"


def test_a_hub_at_a_private_address_is_not_asked():
    async def main():
        site, clock = Site(), ManualClock(START)
        async with Hub(clock.now, hold=clock.hold) as hub:
            site.hub = hub.url
            crawl = Crawl(site, hub, clock, MemoryStore())
            async with crawl.running([PAGE], private=False):
                await crawl.after(DAY / 4)
                assert crawl.state() == "waiting"
                assert crawl.subscription().failures > 1
                assert hub.requests == []

    asyncio.run(main())


def test_a_lease_that_the_hub_lost_is_asked_for_again():
    async def test(crawl):
        crawl.hub.leases.clear()
        assert await crawl.publish(PAGE, "lost") == []
        await crawl.after(2 * DAY)
        assert len(crawl.hub.leases) == 1
        assert await crawl.publish(PAGE, crawl.site.html()) == [202]

    live(test, lease=2 * 86400, budget=1 / 7200)


def test_a_lease_that_could_not_be_renewed_ends():
    async def test(crawl):
        old = crawl.callback()
        crawl.hub.manners = "refuse"
        await crawl.after(3 * DAY)
        assert crawl.state() == "waiting"
        crawl.hub.manners = "verify"
        await crawl.after(DAY)
        assert crawl.state() == "active"
        assert crawl.callback() != old
        assert await crawl.hub.deliver(old, None, b"late") == 410

    live(test, lease=2 * 86400, budget=1 / 7200)


@pytest.mark.parametrize("skew", [-400 * DAY, 400 * DAY])
def test_the_clock_of_a_hub_may_be_wrong(skew):
    async def test(crawl):
        for _ in range(4):
            await crawl.after(DAY)
            assert crawl.state() == "active"
            assert len(crawl.hub.leases) == 1
        crawl.site.version = 2
        assert await crawl.publish(PAGE, crawl.site.html()) == [202]
        assert crawl.components.counters.pushed == 1

    live(test, lease=2 * 86400, budget=1 / 7200, skew=skew)


def test_a_restart_keeps_subscriptions_and_knows_repetitions():
    async def main():
        site, clock = Site(), ManualClock(START)
        async with Hub(clock.now, hold=clock.hold) as hub:
            site.hub = hub.url
            crawl = Crawl(site, hub, clock, MemoryStore(keep=1))
            async with crawl.running([PAGE]):
                await crawl.after(3600.0)
                assert await crawl.publish(PAGE, site.html().replace("1", "2")) == [202]
                one = crawl.subscription()
            async with crawl.running(port=crawl.port):
                await crawl.after(3600.0)
                assert crawl.subscription() == one
                assert len(hub.requests) == 1
                assert await crawl.publish(PAGE, site.html().replace("1", "2")) == [202]
                assert await crawl.publish(PAGE, site.html().replace("1", "3")) == [202]
                assert (crawl.counts["repeated"], crawl.counts["taken"]) == (1, 1)

    asyncio.run(main())
