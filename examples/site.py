"""A small site that changes, on this machine: `python examples/site.py [--port 8000] [--pages 30]`, ended by Ctrl-C.

Of its pages a third are news that change every 30 seconds, a third products that change every five minutes, and a third
help that never changes. The front page links to all of them. Every page shows a clock in a footer, which is no change
of the page. The tutorial follows this site.
"""

import argparse
import math
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECONDS = {"news": 30.0, "products": 300.0, "help": math.inf}  # between two changes of a page
PAGES: list[str] = []
HTML = "<html><title>{path}</title><main><h1>{path}</h1><p>Version {version}.</p></main><footer>{clock}</footer></html>"
STARTED_AT = time.time()


def make_pages(n: int) -> None:
    """Let the site have n pages, a third of each kind."""
    PAGES[:] = [f"/{folder}/{number}" for folder in SECONDS for number in range(1, n // len(SECONDS) + 1)]


def version(path: str, now: float) -> int:
    """How often a page has changed; pages of a folder change one after the other."""
    _, folder, number = path.split("/")
    return int((now - STARTED_AT) / SECONDS[folder] + int(number) * len(SECONDS) / len(PAGES))


class Site(BaseHTTPRequestHandler):
    """The pages, a sitemap of them and a robots.txt that allows everything."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet: two wait 40 ms for the receiver's delayed acknowledgement

    def do_GET(self) -> None:
        """Answer one request."""
        if self.path in PAGES:
            text = HTML.format(path=self.path, version=version(self.path, time.time()), clock=time.ctime())
            self.answer(200, "text/html; charset=utf-8", text)
        elif self.path == "/":
            links = "".join(f'<li><a href="{path}">{path}</a></li>' for path in PAGES)
            self.answer(200, "text/html; charset=utf-8", f"<html><title>A small site</title><ul>{links}</ul></html>")
        elif self.path == "/sitemap.xml":
            home = f"http://{self.headers['Host']}"
            urls = "".join(f"<url><loc>{home}{path}</loc></url>" for path in PAGES)
            space = "http://www.sitemaps.org/schemas/sitemap/0.9"
            self.answer(200, "application/xml", f'<urlset xmlns="{space}">{urls}</urlset>')
        elif self.path == "/robots.txt":
            self.answer(200, "text/plain", "User-agent: *\nAllow: /\n")
        else:
            self.answer(404, "text/plain", "not found")

    def answer(self, status: int, kind: str, text: str) -> None:
        """Send a whole answer."""
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Say nothing of single requests."""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A small site that changes, on this machine.")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--pages", type=int, default=30)
    given = parser.parse_args()
    make_pages(given.pages)
    server = ThreadingHTTPServer(("127.0.0.1", given.port), Site)
    print(f"{len(PAGES)} pages at http://127.0.0.1:{server.server_port}/sitemap.xml; Ctrl-C ends", flush=True)  # noqa: T201
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()
