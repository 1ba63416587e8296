"""A first hour with the dashboard in a few minutes: the steps of docs/first-hour.md, and its pictures.

From the project's folder::

    PYTHONPATH=tests .venv/bin/python -m serving.dashboard.first_hour
"""

import asyncio
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from crawl.mailbox import receiving
from playwright.sync_api import sync_playwright

from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.commands import rest_command
from recrawl.store import SqliteStore
from serving.dashboard.pictures import FOLDER
from serving.dashboard.site import Served

PATIENCE = 240.0  # seconds that a step may take


@contextmanager
def example_site(pages):
    """The site of the examples; its URL."""
    port = 8000
    with socket.socket() as free:
        if free.connect_ex(("127.0.0.1", port)) == 0:  # somebody has it
            port = 8765
    words = [sys.executable, "examples/site.py", "--port", str(port), "--pages", str(pages)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            process.stdout.readline()
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.terminate()


async def empty(database):
    """A database without pages, with a command that does nothing."""
    store = SqliteStore(database)
    await store.queue([rest_command({})])
    await store.close()


def until(what, holds):
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.5)


def follow(page, server, front, shoot, wanted, changes):
    """Add the site in the browser, watch it, ask why, and double the budget."""
    engine = server.live.crawler.engine
    page.goto(server.link)
    shoot("hour-empty")
    page.goto(f"{server.url}/add")
    page.fill("#front", front)
    shoot("hour-add")
    page.click("text=Follow this site")
    until("pages are found", lambda: len(engine) > wanted)
    until("pages are fetched", lambda: server.live.crawler.counters.new >= wanted)
    page.goto(f"{server.url}/feed")
    shoot("hour-live")
    until("changes are found", lambda: server.live.crawler.counters.changed >= changes)
    page.goto(server.url)
    until("freshness is known", lambda: page.goto(f"{server.url}/parts/tiles") and _known(page))
    page.goto(server.url)
    page.wait_for_timeout(500)
    shoot("hour-pages")
    page.click(".page-link >> nth=0")
    page.wait_for_selector("#why")
    shoot("hour-why")
    page.evaluate("document.getElementById('timeline').scrollIntoView()")
    shoot("hour-change")
    page.goto(f"{server.url}/budget")
    page.wait_for_selector(".uplot canvas")
    shoot("hour-budget")
    page.click("#use-budget")
    page.click("button[value=preview]")
    page.wait_for_selector(".preview")
    page.click("button[value=apply]")
    page.wait_for_selector("text=The crawl uses the budget")
    shoot("hour-doubled")


def notified(page, server, front, shoot):
    """Let the running crawl read a notification from its settings, and wait for its mail."""
    with receiving() as box:
        table = {"name": "news", "match": f"{front}news/*", "mail": "you@example.org", "digest": "5 s"}
        server_of = {"smtp": f"127.0.0.1:{box.serve()}", "smtp_tls": "none", "smtp_from": "recrawl@example.org"}
        settings = replace(server.live.settings, notify=(table,), **server_of)
        done = server.call(server.live.reload(lambda: settings))
        assert (done.error, done.needs_restart) == (None, ())
        until("a mail with a difference", lambda: any(">+ " in html_of(mail) for _, mail in box.mails))
        mail = next(mail for _, mail in reversed(box.mails) if ">+ " in html_of(mail))
        page.goto("about:blank")  # a mail has styles of its own, which our pages may not have
        page.set_content(f"<h3>{mail['subject']}</h3>{html_of(mail)}")
        shoot("hour-mail")
        return str(mail["to"])


def html_of(mail):
    """The part of a mail that is HTML."""
    return mail.get_body(("html",)).get_content()


def _known(page):
    return "%" in page.locator(".tile strong").first.inner_text()


def main(folder=FOLDER, pages=300, budget="5/s", changes=120):
    """Go through the hour and take its pictures; the budget at the end, and what the link answers a second time."""
    folder.mkdir(parents=True, exist_ok=True)
    database = str(Path(tempfile.mkdtemp()) / "recrawl.db")
    asyncio.run(empty(database))
    chosen = {"budget": budget, "delay": "0.1 s", "contact": "you@example.org", "allow_private": True}
    settings = Settings(database=database, listen="127.0.0.1:0", longest_hint="0 s", **chosen)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with example_site(pages) as front, Served(None, settings) as server, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": 1100, "height": 700}).new_page()
        follow(page, server, front, lambda name: page.screenshot(path=folder / f"{name}.png"), pages, changes)
        assert notified(page, server, front, lambda name: page.screenshot(path=folder / f"{name}.png"))
        again = page.goto(server.link).status
        browser.close()
        return server.live.settings.budget, again


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
