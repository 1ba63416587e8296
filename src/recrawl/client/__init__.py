"""A client of ``recrawl serve``: which page next, and what came of it. It needs Python alone.

>>> from recrawl.client import Client, Outcome
>>> client = Client("http://127.0.0.1:8321", token="…")
>>> # for page in client.pick(10, wait=30): client.record([Outcome(page.lease, status=200, body=fetch(page.url))])
"""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.client.asynchronous import AsyncClient as AsyncClient
    from recrawl.client.events import PageEvent as PageEvent
    from recrawl.client.messages import ListedPage as ListedPage
    from recrawl.client.messages import Outcome as Outcome
    from recrawl.client.messages import PickedPage as PickedPage
    from recrawl.client.plain import Client as Client

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "asynchronous": ["AsyncClient"],
        "events": ["PageEvent"],
        "messages": ["ListedPage", "Outcome", "PickedPage"],
        "plain": ["Client"],
    },
)
