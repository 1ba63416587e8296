"""Serves the example's five hosts on one port of this machine and logs every request.

`python examples/five_hosts/serve.py --port 8000 --log requests.jsonl`, ended by Ctrl-C.
"""

from __future__ import annotations

import argparse
import email.utils
import json
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from world import HOSTS, OUTAGE, PRIVATE, Host, Page, World

HTML = """<!doctype html><html lang="en"><head><title>{title}</title>
<meta name="csrf" content="{token}"><script>var session = "{token}";</script></head><body>
<nav><a href="/?sid={token}">Home</a></nav><div class="ad">Buy {token} now, {percent}% off!</div>
<main><h1>{title}</h1><p>{text}</p><p>Edition {version} of this page.</p></main>
<aside class="advertisement"><p>Readers also bought {token}.</p></aside>
<footer>Rendered at {clock} for visitor {token}.</footer></body></html>"""
WORDS = ("river", "stone", "market", "window", "garden", "letter", "bridge", "winter", "candle", "harbour", "pepper")
ODD = {"301": 301, "moves": 301, "404": 404, "leaves": 410, "500": 500, "private": 200}
ENTRY = "<url><loc>http://{place}{path}</loc><lastmod>{date}</lastmod></url>"
ITEM = "<item><title>{path} changed</title><guid>{path}#{version}</guid><link>http://{place}{path}</link></item>"


@dataclass(frozen=True)
class Request:
    """One request as the server saw it: when it came, when it was answered, and the state of the page it showed."""

    came_at: float
    answered_at: float
    host: str
    path: str
    status: int
    state: str = ""  # of the page; empty for other files and for failures


class Site:
    """What the hosts answer. ``now`` gives seconds since the start; ``base`` is the start since 1970."""

    def __init__(self, world: World, now: Callable[[], float], base: float, sleep: Callable[[float], Any]) -> None:
        self.world, self.now, self.base, self.sleep, self.log = world, now, base, sleep, list[Request]()
        self._noise = random.Random(world.seed)
        self._lock = threading.Lock()

    def answer(self, place: str, path: str, headers: Any) -> tuple[int, dict[str, str], str]:
        """Status, headers and body; the request is logged before its answer is sent."""
        came_at, address = self.now(), place.partition(":")[0]
        host = next((one for one in HOSTS if one.address == address), None)
        page = self.world.page(address, path)
        if page is not None and page.latency:
            self.sleep(page.latency)
        with self._lock:
            at = self.now()
            if host is None or (page is None and path not in ("/robots.txt", "/sitemap.xml")):
                status, fields, body, state = 404, {}, "there is nothing here", ""
            elif page is None:
                status, (fields, body), state = 200, self._file(host, place, path), ""
            else:
                status, fields, body, state = self._page(page, place, at, headers)
            self.log.append(Request(came_at, at, address, path, status, state))
        return status, fields, body

    def _file(self, host: Host, place: str, path: str) -> tuple[dict[str, str], str]:
        if path == "/robots.txt":
            delay = f"Crawl-delay: {host.crawl_delay:g}\n" if host.crawl_delay else ""
            text = f"User-agent: *\nDisallow: {PRIVATE}\n{delay}Sitemap: http://{place}/sitemap.xml\n"
            return {"Content-Type": "text/plain"}, text
        pages = [page for page in self.world.pages if page.host is host]
        date = time.strftime("%Y-%m-%d", time.gmtime(self.base))
        urls = "".join(ENTRY.format(place=place, path=page.path, date=date) for page in pages)
        text = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'
        return {"Content-Type": "application/xml"}, text

    def _page(self, page: Page, place: str, at: float, headers: Any) -> tuple[int, dict[str, str], str, str]:
        host, state = page.host, page.state(at)
        if host.name == "flaky" and OUTAGE[0] <= at < OUTAGE[1]:
            return 503, {"Retry-After": "5"}, "down for maintenance", ""
        if at >= page.odd_at and page.odd != "private":
            status = ODD[page.odd]
            fields = {"Location": f"http://{place}/a/{page.path[-1]}"} if status == 301 else {}
            return status, fields, f"status {status}", "" if status == 500 else state
        if self._noise.random() < host.failing:
            return 500, {}, "something went wrong", ""
        fields = self._validators(page, at)
        if ("ETag" in fields and headers.get("If-None-Match") == fields["ETag"]) or (
            "Last-Modified" in fields and headers.get("If-Modified-Since") == fields["Last-Modified"]
        ):
            return 304, fields, "", state
        if page.path == "/feed.xml":
            return 200, {**fields, "Content-Type": "application/rss+xml"}, self._feed(host, place, at), state
        return 200, {**fields, "Content-Type": "text/html; charset=utf-8"}, self._html(page, at), state

    def _validators(self, page: Page, at: float) -> dict[str, str]:
        version = page.version(at)
        if page.host.validators == "etag":
            return {"ETag": f'"{page.path}-{version}"'}
        changed = page.changed_at[version - 1] if version else 0.0
        date = email.utils.formatdate(self.base + changed, usegmt=True)
        return {"Last-Modified": date} if page.host.validators == "date" else {}

    def _feed(self, host: Host, place: str, at: float) -> str:
        items = self.world.feed(host, at)
        text = "".join(ITEM.format(path=page.path, version=page.version(when), place=place) for when, page in items)
        return f'<rss version="2.0"><channel><title>{host.name}</title>{text}</channel></rss>'

    def _html(self, page: Page, at: float) -> str:
        rng = random.Random(f"{self.world.seed} {page.host.name} {page.path} {page.version(at)}")
        text = " ".join(rng.choices(WORDS, k=60)).capitalize() + "."
        token, percent = f"{self._noise.getrandbits(48):x}", self._noise.randrange(10, 90)
        title, clock = f"{page.host.name} {page.path}", time.strftime("%H:%M:%S", time.gmtime(self.base + at))
        fields = {"title": title, "text": text, "version": page.version(at), "token": token, "percent": percent}
        return HTML.format(clock=clock, **fields)


class Server:
    """Serves a site in threads while it is entered; ``port`` 0 takes a free one."""

    def __init__(self, site: Site, port: int = 0) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one packet: two wait 40 ms for the receiver's delayed acknowledgement

            def do_GET(self) -> None:
                status, fields, text = site.answer(self.headers.get("Host", ""), self.path, self.headers)
                body = text.encode()
                self.send_response(status)
                for name, value in {**fields, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words: object) -> None:
                """The site keeps its own log."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port

    def __enter__(self) -> Server:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def live_site(seed: int) -> Site:
    """The site by the clock of this machine, from now on."""
    base = time.time()
    return Site(World(seed), lambda: time.time() - base, base, time.sleep)


def main() -> None:
    """Serve until Ctrl-C, then write the log."""
    parser = argparse.ArgumentParser(description="300 changing pages on five hosts of this machine.")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, default=None, help="write every request to this file at the end")
    options = parser.parse_args()
    site = live_site(options.seed)
    with Server(site, options.port) as server:
        for host in HOSTS:
            print(f"{host.n_pages} pages at http://{host.address}:{server.port}/sitemap.xml", flush=True)
        with suppress(KeyboardInterrupt):
            threading.Event().wait()
    if options.log is not None:
        options.log.write_text("".join(f"{json.dumps(asdict(one))}\n" for one in site.log))


if __name__ == "__main__":
    main()
