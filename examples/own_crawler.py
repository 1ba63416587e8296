"""A crawler of its own that asks a service which page is next: python own_crawler.py URL TOKEN [BATCHES]."""

import sys
import urllib.error
import urllib.request

from recrawl.client import Client, Outcome, PickedPage


def crawl(page: PickedPage) -> Outcome:
    """Fetch a page, conditionally where its validators are known."""
    try:
        with urllib.request.urlopen(urllib.request.Request(page.url, headers=page.headers), timeout=30) as answer:
            etag, modified = answer.headers["etag"], answer.headers["last-modified"]
            return Outcome(page.lease, answer.status, body=answer.read(), etag=etag, last_modified=modified)
    except urllib.error.HTTPError as refusal:  # 304 too
        return Outcome(page.lease, refusal.code)
    except OSError:
        return Outcome(page.lease, error="connect")


with Client(sys.argv[1], token=sys.argv[2]) as client:
    for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else sys.maxsize):
        client.record([crawl(page) for page in client.pick(10, wait=30)])
