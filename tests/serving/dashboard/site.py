"""A small web in memory whose pages change, crawled for some days by the manual clock, then served in real time."""

import asyncio
import threading
import time
from contextlib import contextmanager

from recrawl.crawl.clock import SystemClock
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.http.memory import Answer, ManualClock, MemoryWeb
from recrawl.crawl.run.opening.assemble import Web, engine_of, open_crawl
from recrawl.crawl.run.opening.pages import add_pages
from recrawl.crawl.signals.tokens import new_token
from recrawl.desk import open_desk
from recrawl.serve import Service, serve_crawl
from recrawl.serve.rehearsal import rehearse_service
from recrawl.store import SqliteStore

DAY = 86400.0
SCRIPT = "<script>window.hacked = 1</script><img src=x onerror=window.hacked=2>"
HACKED = "https://news.example.org/forum/%3Cscript%3Ealert(1)%3C/script%3E?q=%22%3E%3Cimg"
NAMES = ("Install", "Upgrade", "Configuration", "Security notes", "Plugins", "Release notes", "Backup", "Monitoring")
STORIES = ("Harbour bridge opens", "Election results", "Weather for the coast", "Markets today", "Local football")
WARES = ("Espresso machine", "Walking boots", "Desk lamp", "Bicycle bell", "Tea kettle", "Rain jacket")
PERIODS = {"docs": 2.5, "news": 0.2, "shop": 0.8}  # days between two changes of the quickest page of a host


class Site:
    """Pages by URL: title and days between two changes."""

    def __init__(self, copies=3, hostile=True):
        self.pages = {}
        for host, names in (("docs", NAMES), ("news", STORIES), ("shop", WARES)):
            for k, name in enumerate(names * copies):
                part, title = k // len(names) + 1, name if k < len(names) else f"{name}, part {k // len(names) + 1}"
                path = f"{name.lower().replace(' ', '-')}-{part}"
                self.pages[f"https://{host}.example.org/{path}"] = (title, PERIODS[host] * (1 + k % 7))
        if hostile:
            self.pages[HACKED] = (SCRIPT, 0.3)
        self.pages["https://shop.example.org/old-offer"] = (None, 1.0)  # not found
        self.pages["https://broken.example.org/"] = (None, 1.0)  # no answer

    def revision(self, url, now):
        """The number of changes of a page until now."""
        return int(now / (self.pages[url][1] * DAY) + len(url) * 0.37)

    def answer(self, url, now):
        """What the web answers."""
        if url.startswith("https://broken."):
            return Answer(failure="connect")
        if url == "https://docs.example.org/robots.txt":
            return Answer("Sitemap: https://docs.example.org/sitemap.xml", headers={"content-type": "text/plain"})
        if url == "https://docs.example.org/sitemap.xml":
            return Answer(self.sitemap(now), headers={"content-type": "application/xml"})
        if url not in self.pages or self.pages[url][0] is None:
            return None
        title, n = self.pages[url][0], self.revision(url, now)
        text = "".join(f"<p>{line}</p>" for line in self.lines(title, n))
        body = (
            f"<html><head><title>{title.replace('<', '&lt;')}</title></head><body><main><h1>{title}</h1>{text}</main>"
        )
        return Answer(body, headers={"content-type": "text/html; charset=utf-8"}, took=0.2)

    def lines(self, title, n):
        """The text of a revision: some lines stay, some change."""
        return [
            "This page belongs to a small web that changes by itself.",
            f"Edition {n} of {len(title) % 5 + 3} planned editions this season.",
            "Readers ask us often how things are kept up to date: somebody looks, and writes down what is new.",
            f"The price is {19 + n % 17}.90, delivery takes {2 + n % 4} days.",
            f"Written by {('Ada', 'Grace', 'Edsger', 'Barbara')[n % 4]}.",
        ]

    def sitemap(self, now):
        """The sitemap of the documentation, with the times of its changes."""
        rows = []
        for url, (title, days) in self.pages.items():
            if url.startswith("https://docs.") and title:
                begun = (self.revision(url, now) - len(url) * 0.37) * days * DAY
                at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(max(begun, 0.0)))
                rows.append(f"<url><loc>{url}</loc><lastmod>{at}</lastmod></url>")
        return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{"".join(rows)}</urlset>'


def settings_of(folder, **more):
    """The settings of the crawl."""
    chosen = {"budget": "300/day", "delay": "1 s", "contact": "me@example.org", "keep": 3, "listen": "127.0.0.1:0"}
    return Settings(database=str(folder / "watch.db"), **{**chosen, **more})


def crawl_days(site, folder, days, end, **more):
    """Crawl the site for some days that end at a time; the settings and two tokens: admin and read."""
    settings, clock = settings_of(folder, **more), ManualClock(end - days * DAY)
    texts = {}

    async def run():
        store = SqliteStore(settings.database, keep=settings.keep)
        engine = await engine_of(store, settings, clock.now())
        weight = [5.0 if "news" in url else 1.0 for url in site.pages]
        add_pages(engine, settings.rules(), list(site.pages), clock.now(), importance=weight)
        notes = {}
        for scope in ("admin", "read"):
            texts[scope], token = new_token(scope, [scope], clock.now())
            notes[f"token:{scope}"] = token.as_note()
        await store.save(rows=engine.rows(), notes=notes)
        await store.close()
        if days <= 0:
            return
        web = MemoryWeb(site.answer, clock)
        seldom = {"notes_every": 3600.0, "commands_every": 1e6, "longest_sleep": 1e6, "commit_delay": 1800.0}
        live = await open_crawl(settings, web=Web("recrawl/1", web, web, clock), **seldom)
        await live.crawler.run(end)
        await live.close()

    asyncio.run(clock.drive(run()))
    return settings, texts


class Served:
    """A crawl of the site with its dashboard, in a thread of its own; ``url`` is where it listens."""

    def __init__(self, site, settings, file=None, *, desk=False):
        self._site, self._settings, self._file, self._desk = site, settings, file, desk  # no site: the web is asked
        self.service = None  # with a desk, all routes of `recrawl serve`
        self.url, self.live, self.link, self.problem, self.board = "", None, None, None, None
        self._ready, self._loop, self._stop = threading.Event(), None, None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    async def _run(self):
        try:
            clock, self._loop, self._stop = SystemClock(), asyncio.get_running_loop(), asyncio.Event()
            fetcher = None if self._site is None else MemoryWeb(self._site.answer, clock)
            web = None if fetcher is None else Web("recrawl/1", fetcher, fetcher, clock)
            often = {"commands_every": 0.05, "notes_every": 20.0}
            if self._desk:
                self.live, desk = await open_desk(self._settings, open_crawl, web=web, **often)
                self.service = Service.of(self.live, desk)
            else:
                self.live = await open_crawl(self._settings, web=web, **often, may_be_empty=True)
            await self.live.crawler.components.load()
            server = await serve_crawl(self.live, "127.0.0.1:0", self._file, self.service)
            self.url, self.link, self.board = server.url, server.sign_in_url(), server.dashboard
            crawl = asyncio.create_task(self.live.crawler.run())
            self._ready.set()
            await self._stop.wait()
            self.live.crawler.stop()
            await crawl
            await server.close()
            if self.service is not None:
                await self.service.close()
            await self.live.close()
        except BaseException as problem:
            self.problem = problem
            self._ready.set()
            raise

    def __enter__(self):
        asyncio.run(rehearse_service())  # as the command does: nobody waits for a compilation afterwards
        self._thread.start()
        assert self._ready.wait(120), "the server did not start"
        assert self.problem is None, self.problem
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)

    def call(self, work):
        """Run a coroutine in the loop of the server."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def figures(self):
        """Wait until figures about all pages are computed, or could not be."""

        async def computed():
            while self.board.snapshots.get() is None and self.board.snapshots.busy:
                await asyncio.sleep(0.01)

        self.call(computed())


@contextmanager
def served(folder, days=3.0, copies=3, file=None, hostile=True, **more):
    """The dashboard of the site after some days of crawling, and its tokens."""
    site = Site(copies, hostile)
    settings, tokens = crawl_days(site, folder, days, time.time(), **more)
    with Served(site, settings, file) as server:
        yield server, tokens
