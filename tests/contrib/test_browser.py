"""Pages rendered by a real Chromium: each kind of scripted page gives its text or its documented failure."""

import asyncio
import contextlib
import os
import signal
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from crawl.servers import AGENT, serving

from contrib.browsers import CHROMIUM, ENDLESS, LIMITS, TEXT, browser, descendants, every_kind, many_pages, memory
from contrib.scripted import WORDS, ScriptedSite
from recrawl.contrib.browser import BrowserFetcher, BrowserLimits, Render, assemble
from recrawl.contrib.browser.assemble import open_rendered
from recrawl.crawl import Settings, add_pages, engine_of, save_pages
from recrawl.crawl.detect.visible import visible_text
from recrawl.errors import ParameterError
from recrawl.store import SqliteStore

pytest.importorskip("playwright")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")]

PATIENT = replace(LIMITS, quiet=3.0)  # a script may rest for so long on a busy machine


def is_chromium(pid):
    return "chrom" in Path(f"/proc/{pid}/comm").read_text()


@pytest.fixture(scope="module")
def kinds():
    before = descendants()
    found = asyncio.run(every_kind())
    assert descendants() <= before
    return found


@pytest.mark.full
@pytest.mark.parametrize("kind", [*TEXT, "after"])
def test_scripted_pages_give_their_text(kinds, kind):
    fetched = kinds[0][kind]
    assert fetched.failure is None
    assert WORDS in visible_text(fetched.text())
    assert not {"etag", "last-modified"} & set(fetched.headers)


@pytest.mark.full
@pytest.mark.parametrize("kind", ENDLESS)
def test_pages_that_do_not_end_are_failures(kinds, kind):
    fetched = kinds[0][kind]
    assert fetched.failure in ENDLESS[kind]
    assert fetched.body == b""


@pytest.mark.full
@pytest.mark.parametrize("kind", [kind for kind in TEXT if kind != "fetch"])
def test_every_request_is_counted(kinds, kind):
    found, asked = kinds
    counted = Counter("/" + url.split("/", 3)[3] for url in found[kind].beside if f"{kind}.localhost" in url)
    assert Counter(asked[kind]) <= counted + Counter([f"/page/{kind}"])


@pytest.mark.full
def test_requests_of_a_page_are_bounded_and_of_few_kinds(kinds):
    found, asked = kinds
    assert len(found["many"].beside) == len(found["scroll"].beside) == LIMITS.requests
    assert asked["image"] == ["/page/image"]
    assert asked["post"] == ["/page/post"]
    assert asked["socket"] == ["/page/socket"]
    assert "/worker.js" not in asked["worker"]


@pytest.mark.full
def test_what_is_inside_a_shadow_root_is_read(kinds):
    assert "and what is inside" in visible_text(kinds[0]["shadow"].text())


def test_only_what_needs_it_is_rendered():
    async def run():
        site = ScriptedSite()
        fetcher = browser(PATIENT, lambda url: None if "never" in url else Render("auto"))
        async with serving(site.answer) as origin:
            try:
                urls = [f"{origin}/page/{name}" for name in ("plain", "fetch", "moved", "absent", "fetch?never")]
                found = [await fetcher.fetch(url) for url in urls]
                same = await fetcher.fetch(urls[0], etag='"plain"')
                return found, same, fetcher.n_rendered
            finally:
                await fetcher.close()

    (plain, scripted, moved, absent, never), same, n = asyncio.run(run())
    assert n == 1
    assert (plain.headers["etag"], plain.beside) == ('"plain"', ())
    assert WORDS in visible_text(scripted.text())
    assert len(scripted.beside) == 1
    assert (moved.status, absent.gone, never.body.count(WORDS.encode())) == (302, True, 0)
    assert same.status in (200, 304)


@pytest.mark.full
def test_a_selector_is_waited_for():
    async def run(wait_for, total=120.0):
        limits = BrowserLimits(total=total)
        fetcher = browser(limits, lambda url: Render("always", wait_for))
        async with serving(ScriptedSite().answer) as origin:
            try:
                return await fetcher.fetch(f"{origin}/page/late")
            finally:
                await fetcher.close()

    assert WORDS in visible_text(asyncio.run(run("#ready")).text())
    assert asyncio.run(run("#never", 3.0)).failure == "timeout"


def test_what_is_no_selector_is_said_in_the_log(caplog):
    async def run():
        fetcher = browser(render=lambda url: Render("always", "##no selector["))
        async with serving(ScriptedSite().answer) as origin:
            try:
                return await fetcher.fetch(f"{origin}/page/fetch")
            finally:
                await fetcher.close()

    caplog.set_level("WARNING", logger="recrawl")
    fetched = asyncio.run(run())
    assert (fetched.failure, fetched.body) == ("bad-response", b"")
    (said,) = [one.fields for one in caplog.records if one.getMessage() == "page.not_rendered"]
    assert said["url"] == fetched.url
    assert "##no selector[" in said["error"]
    assert "\n" not in said["error"]


def test_private_addresses_are_refused_for_scripts_too():
    async def run():
        site = ScriptedSite()
        fetcher = browser(private=False)
        async with serving(site.answer) as origin:
            try:
                return await fetcher.fetch(f"{origin}/page/fetch"), site.log
            finally:
                await fetcher.close()

    fetched, log = asyncio.run(run())
    assert [path for _, path in log] == ["/page/fetch"]
    assert WORDS not in visible_text(fetched.text())


def test_rules_choose_what_is_rendered_in_a_crawl(tmp_path, monkeypatch):
    monkeypatch.setattr(assemble, "BrowserFetcher", partial(BrowserFetcher, limits=PATIENT))

    async def run():
        site = ScriptedSite()
        async with serving(site.answer) as origin:
            urls = [f"{origin}/page/{name}" for name in ("allowed", "plain", "fetch")]
            rules = ({"match": "*", "render": "auto"}, {"match": "*/fetch", "render": False})
            settings = Settings(
                database=str(tmp_path / "a.db"), contact=AGENT, allow_private=True, budget="1000/s", delay="0.001 s",
                rule=rules, browser=CHROMIUM, event_text=True,
            )  # fmt: skip
            async with SqliteStore(settings.database) as store:
                engine = await engine_of(store, settings, time.time())
                await save_pages(engine, store, add_pages(engine, settings.rules(), urls, time.time()))
            live = await open_rendered(settings)
            try:
                await live.crawler.run(once=True)
                outcomes = {one.url: one async for one in live.store.observations()}
                texts = {event.url: event.new_text for event in await live.store.events(0)}
            finally:
                await live.close()
        return site.log, [(outcomes[url], texts[url]) for url in urls]

    log, ((rendered, text), (plain, _), (frame, empty)) = asyncio.run(run())
    assert WORDS in text
    assert WORDS not in empty
    assert (rendered.requests, plain.requests, frame.requests) == (2, 1, 1)
    paths = [path for _, path in log]
    assert sorted(paths) == ["/data/text", "/page/allowed", "/page/fetch", "/page/plain", "/robots.txt"]


@pytest.mark.full
def test_a_browser_that_was_killed_is_started_again():
    async def run():
        fetcher = browser()
        async with serving(ScriptedSite().answer) as origin:
            try:
                first = await fetcher.fetch(f"{origin}/page/fetch")
                for pid in descendants() - before:
                    with contextlib.suppress(OSError):
                        if b"type=" not in Path(f"/proc/{pid}/cmdline").read_bytes() and is_chromium(pid):
                            os.kill(pid, signal.SIGKILL)
                return first, await fetcher.fetch(f"{origin}/page/fetch"), fetcher._process.n_starts
            finally:
                await fetcher.close()

    before = descendants()
    *found, n_starts = asyncio.run(run())
    assert n_starts == 2
    assert all(WORDS in visible_text(one.text()) for one in found)
    assert descendants() <= before


@pytest.mark.full
def test_two_hundred_pages_leave_no_process_behind():
    """Memory after the first browser was started again is what it was before: contexts and pages do not pile up."""
    used, before = [], descendants()
    n_starts = asyncio.run(many_pages(200, lambda: used.append(memory(descendants() - before))))
    print(f"{n_starts} browsers, MiB after each 20 pages: {' '.join(f'{one:.0f}' for one in used)}")  # noqa: T201
    assert n_starts >= 3
    assert max(used[3:]) < 1.5 * max(used[:3])
    assert descendants() <= before


def test_a_browser_that_is_not_there_is_one_line():
    async def run():
        fetcher = browser()
        fetcher._process._executable = "/nowhere/chromium"
        async with serving(ScriptedSite().answer) as origin:
            try:
                await fetcher.fetch(f"{origin}/page/fetch")
            finally:
                await fetcher.close()

    before = descendants()
    with pytest.raises(ParameterError, match="/nowhere/chromium does not start; the setting browser is"):
        asyncio.run(run())
    assert descendants() <= before
