"""WebSub against a hub on loopback: a crawl of a web in memory, its HTTP interface and the hub on real sockets."""

import asyncio

import pytest

from crawl.driving import START
from crawl.hub import Hub
from crawl.listening import ListeningCrawl
from recrawl.crawl.http.memory import Answer, ManualClock
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

    def __init__(self, site, hub, clock, store):
        super().__init__(site, clock, store)
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
        async with Hub(clock.now, hold=clock.hold, **hub) as its_hub:
            site.hub = its_hub.url
            crawl = Crawl(site, its_hub, clock, MemoryStore(keep=1))
            async with crawl.running(urls):
                await test(crawl)

    asyncio.run(main())


def test_the_page_of_a_hub_is_subscribed_to():
    async def test(crawl):
        await crawl.after(10.0)
        assert crawl.hub.verified == [200]
        ((topic, callback),) = crawl.hub.leases
        assert topic == PAGE
        assert callback == crawl.callback()
        assert crawl.state() == "active"

    live(test)
