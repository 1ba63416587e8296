"""A first hour with the dashboard in a few minutes: the steps of docs/first-hour.md, and its pictures.

The site, ``recrawl serve`` and ``recrawl reload`` are processes of their own, as on a user's machine; the settings are
those that the page prints. From the project's folder::

    PYTHONPATH=src:tests .venv/bin/python -m serving.dashboard.first_hour
"""

import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from crawl.mailbox import receiving
from playwright.sync_api import sync_playwright

from serving.dashboard.pictures import FOLDER

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "first-hour.md"
PATIENCE = 300.0  # seconds that a step may take
FIRST_START = 1200.0  # seconds that a start may take, which compiles what is not compiled
RECRAWL = (sys.executable, "-m", "recrawl")


class Hour(NamedTuple):
    """What happened."""

    budget: str  # in the file of settings at the end
    again: int  # what the link answers a second time
    pages: int  # in the database at the end
    reloaded: str  # what `recrawl reload` said
    subject: str  # of the mail


def free_port(wanted):
    """A port, the wanted one if nobody has it."""
    with socket.socket() as one:
        try:
            one.bind(("127.0.0.1", wanted))
        except OSError:
            one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def until(what, holds, patience=PATIENCE):
    """Wait until something holds; what it gave."""
    end = time.monotonic() + patience
    while not (found := holds()):
        assert time.monotonic() < end, what
        time.sleep(0.5)
    return found


@contextmanager
def example_site(pages):
    """The site of the examples; its URL."""
    port = free_port(8000)
    words = [sys.executable, str(ROOT / "examples/site.py"), "--port", str(port), "--pages", str(pages)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            process.stdout.readline()
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.terminate()


@contextmanager
def service(folder):
    """``recrawl serve`` in a folder, on a terminal; the link that it prints there. It is ended by Ctrl-C."""
    words = [*RECRAWL, "serve", "--listen", f"127.0.0.1:{free_port(8321)}"]
    ours, its = pty.openpty()
    os.set_blocking(ours, False)
    said = bytearray()

    def link():
        assert process.poll() is None, said.decode()
        try:
            said.extend(os.read(ours, 1 << 16))
        except BlockingIOError:
            return None
        return re.search(r"dashboard: (http\S+) \(one time, within an hour\)", said.decode())

    with subprocess.Popen(words, cwd=folder, stderr=its, stdout=its) as process:
        try:
            yield until("a link is printed", link, FIRST_START)[1]
        finally:
            process.send_signal(signal.SIGINT)
            while process.poll() is None:  # what it says must be read, or it waits for its terminal
                link_or_end(ours, said)
    os.close(ours)
    os.close(its)
    assert process.returncode == 0, said.decode()


def link_or_end(ours, said):
    """Read what a process says while it ends."""
    time.sleep(0.1)
    with suppress(BlockingIOError):
        said.extend(os.read(ours, 1 << 16))


def settings(part, **changed):
    """A file of settings as the page prints it, but for some words."""
    text = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)[part]
    for before, after in changed.values():
        assert before in text, f"{before} is not in {PAGE.name} any more"
        text = text.replace(before, after)
    return text


class Visitor:
    """Somebody who follows the page in a browser and takes its pictures."""

    def __init__(self, page, link, folder):
        self.page, self.link, self.url, self._folder = page, link, link.partition("/sign-in")[0], folder

    def shoot(self, name):
        """One picture."""
        self.page.wait_for_timeout(500)
        self.page.screenshot(path=self._folder / f"{name}.png")

    def text(self, path, part):
        """The text of a part of a view."""
        self.page.goto(self.url + path)
        return self.page.locator(part).first.inner_text()

    def counts(self):
        """Changes and requests that the dashboard counts."""
        return [int(one.replace(",", "")) for one in re.findall(r"([\d,]+) (?:change|request)s?", self.tiles())[:2]]

    def tiles(self):
        """The text of the tiles, without the budget's."""
        self.page.goto(f"{self.url}/parts/tiles")
        return self.page.locator(".tile").nth(2).inner_text()

    def add_site(self, front, pages):
        """Add the site by its front page; all of its pages are found."""
        self.page.goto(self.link)
        self.shoot("hour-empty")
        self.page.click("text=Add pages or a site")
        self.page.fill("#front", front)
        self.shoot("hour-add")
        self.page.click("text=Follow this site")
        until("pages are found", lambda: f" {pages + 1} pages" in self.text("/", "footer"))

    def watch(self, pages, changes):
        """Look at the live feed, and at the list when changes were found and freshness is known."""
        until("pages are fetched", lambda: self.counts()[1] > pages // 2)
        self.page.goto(f"{self.url}/feed")
        self.shoot("hour-live")
        until("changes are found", lambda: self.counts()[0] >= changes)
        until("freshness is known", lambda: "%" in self.text("/parts/tiles", ".tile strong"))
        self.page.goto(self.url)
        self.shoot("hour-pages")

    def ask_why(self):
        """Open a page that is likely stale, not the first, which is crawled now, and one that changed just now."""
        self.page.goto(f"{self.url}/?order=stale")
        self.page.click(".page-link >> nth=15")
        self.page.wait_for_selector("#why")
        self.shoot("hour-why")
        self.page.goto(self.url)
        self.page.click(".page-link >> nth=0")
        self.page.wait_for_selector("#timeline")
        self.page.evaluate("document.getElementById('timeline').scrollIntoView()")
        self.shoot("hour-change")

    def read_mail(self, mail):
        """Show a message as a mail program does."""
        self.page.goto("about:blank")  # a mail has styles of its own, which our pages may not have
        self.page.set_content(f"<h3>{mail['subject']}</h3>{html_of(mail)}")
        self.shoot("hour-mail")

    def double_the_budget(self):
        """Use the budget at which the slider starts."""
        self.page.goto(f"{self.url}/budget")
        self.page.wait_for_selector(".uplot canvas")
        self.shoot("hour-budget")
        self.page.click("#use-budget")
        self.page.click("button[value=preview]")
        self.page.wait_for_selector(".preview")
        self.shoot("hour-preview")
        self.page.click("button[value=apply]")
        self.page.wait_for_selector("text=The crawl uses the budget")
        self.shoot("hour-doubled")


def html_of(mail):
    """The part of a mail that is HTML."""
    return mail.get_body(("html",)).get_content()


def notified(folder, front, digest, pages):
    """Add a notification to the settings, let the crawl read them; what it said, and a mail with differences."""
    with receiving() as box:
        here = {"server": ("127.0.0.1:2525", f"127.0.0.1:{box.serve()}"), "site": ("http://127.0.0.1:8000/", front)}
        text = settings(1, **here, digest=("1 min", digest))
        file = folder / "recrawl.toml"
        file.write_text(f"{file.read_text()}\n{text}")
        done = subprocess.run([*RECRAWL, "reload"], cwd=folder, capture_output=True, text=True, check=True)

        def good():
            return [mail for _, mail in box.mails if html_of(mail).count(">+ ") >= min(2, pages)]

        return done.stdout, until("a mail with differences", good)[-1]


def main(folder=FOLDER, pages=300, budget="5/s", changes=300, digest="1 min"):
    """Go through the hour and take its pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as place, example_site(pages) as front, sync_playwright() as started:
        file = Path(place) / "recrawl.toml"
        file.write_text(settings(0, budget=("5/s", budget)))
        with service(place) as link:
            browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_context(viewport={"width": 1100, "height": 700}).new_page()
            visitor = Visitor(page, link, folder)
            visitor.add_site(front, pages)
            visitor.watch(pages, changes)
            visitor.ask_why()
            reloaded, mail = notified(Path(place), front, digest, pages)
            visitor.read_mail(mail)
            visitor.double_the_budget()
            again = page.goto(link).status
            browser.close()
        words = [*RECRAWL, "status", "--json"]
        status = json.loads(subprocess.run(words, cwd=place, capture_output=True, check=True).stdout)
        found = tomllib.loads(file.read_text())["budget"]
        return Hour(found, again, status["pages"], reloaded, str(mail["subject"]))


if __name__ == "__main__":
    print(main(*map(Path, sys.argv[1:])))  # noqa: T201
