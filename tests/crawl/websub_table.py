"""Tables of WebSub subscriptions in known states, for tests."""

import random
from itertools import count

from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.signals.websub.discovery import Links
from recrawl.crawl.signals.websub.subscriptions import Subscriptions

NOW = 1.7e9
PAGE, HUB, OTHER = "https://a.example/feed", "https://hub.example/", "https://hub.example.net/"
LINKS = Links(PAGE, (HUB, OTHER))
MODES = ["subscribe", "unsubscribe", "denied"]
HTML = "text/html; charset=utf-8"


def fetched(body="", content_type=HTML, link="", url=PAGE):
    headers = {"content-type": content_type} | ({"link": link} if link else {})
    return Fetched(url, url, 200, NOW, 0.1, headers, body.encode())


def new_table(**options):
    numbers = count()
    return Subscriptions("https://me.example", random.Random(1), lambda: f"token-{next(numbers)}", **options)


def asked(now=NOW):
    """A table whose one subscription is asked for, and the request."""
    subscriptions = new_table()
    subscriptions.found(PAGE, LINKS, now)
    (request,) = subscriptions.due(now)
    subscriptions.sent(request.name, now)
    return subscriptions, request


def verification(request, mode="subscribe", **more):
    query = {"hub.mode": mode, "hub.topic": request.fields["hub.topic"], "hub.challenge": "echo me"}
    return query | {"hub.lease_seconds": "864000"} | more


def active(now=NOW):
    subscriptions, request = asked(now)
    assert subscriptions.verify(request.name, verification(request), now + 1) == "echo me"
    return subscriptions, request


def deliver(subscriptions, name, signature, body, now):
    """The verdict on a delivery that is stored."""
    verdict = subscriptions.judge(name, signature, body)
    if verdict == "taken":
        subscriptions.took(name, body, now)
    return verdict
