"""Messages posted to a URL by a template: a table of JSON, or plain text. Values cannot leave their place in it."""

from __future__ import annotations

import json
import re
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from recrawl.crawl.deliver.notify.message import Message
from recrawl.crawl.deliver.session import posting_session
from recrawl.crawl.deliver.subscribers import NotDelivered
from recrawl.crawl.deliver.webhook import failure_reason
from recrawl.crawl.http.connect import Checked, ForbiddenAddress, SystemResolver, public_socket
from recrawl.crawl.http.semantics import retry_after
from recrawl.errors import ParameterError, unknown

_PLACE = re.compile(r"\{([a-z]+)\}")
_PLACES: dict[str, Callable[[Message], str]] = {
    "subject": lambda message: message.subject,
    "text": lambda message: message.text(),
    "html": lambda message: message.html(),
    "title": lambda message: message.items[0].title,
    "url": lambda message: message.items[0].url,
    "kind": lambda message: message.items[0].kind,
    "at": lambda message: message.items[0].when,
    "diff": lambda message: "" if (found := message.items[0].diff) is None else found.as_text(),
    "count": lambda message: str(len(message.items) + message.left_out),
    "id": lambda message: message.id,
}
DEFAULT = {"subject": "{subject}", "text": "{text}"}
Template = Mapping[str, Any] | str


def check_template(template: Any, where: str) -> None:
    """Raise ParameterError for a place that no message fills."""
    if isinstance(template, Mapping):
        for value in template.values():
            check_template(value, where)
    elif isinstance(template, list):
        for value in template:
            check_template(value, where)
    elif isinstance(template, str):
        for name in _PLACE.findall(template):
            if name not in _PLACES:
                raise unknown(f"{where}: place", name, list(_PLACES))
    elif not isinstance(template, bool | int | float):
        raise ParameterError(f"{where}: {template!r} cannot be written as JSON")


def filled(template: Any, message: Message) -> Any:
    """A template with its places filled; what fills them is not looked at again."""
    if isinstance(template, Mapping):
        return {name: filled(value, message) for name, value in template.items()}
    if isinstance(template, list):
        return [filled(value, message) for value in template]
    if not isinstance(template, str):
        return template
    return _PLACE.sub(lambda found: _PLACES[found[1]](message), template)


def check_url(url: str, where: str) -> None:
    """Raise ParameterError unless messages can be posted to a URL; the URL may be a secret and is not shown."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or not url.isprintable() or " " in url:
        raise ParameterError(f"{where}: is no http or https URL")


class Hook:
    """Posts messages to a URL. Redirects are not followed; private addresses are refused unless they are allowed."""

    def __init__(
        self,
        url: str,
        template: Template | None = None,
        *,
        user_agent: str = "recrawl",
        allow_private: bool = False,
        timeout: float = 20.0,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._url, self._template = url, DEFAULT if template is None else template
        self._agent, self._timeout, self._ssl, self._allow_private = user_agent, timeout, ssl_context, allow_private
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, message: Message) -> None:
        """Post a message, or raise NotDelivered."""
        content = filled(self._template, message)
        plain = isinstance(content, str)
        body = (content if plain else json.dumps(content)).encode("utf-8", "replace")
        kind = "text/plain; charset=utf-8" if plain else "application/json"
        headers = {"Content-Type": kind, "User-Agent": self._agent}
        try:
            async with self._opened().post(self._url, data=body, headers=headers, allow_redirects=False) as response:
                if not 200 <= response.status <= 299:
                    given = {name.lower(): value for name, value in response.headers.items()}
                    raise NotDelivered(f"answered {response.status}", retry_after(given, time.time()))
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            forbidden = any(isinstance(one, ForbiddenAddress) for one in (problem, problem.__cause__))
            private = "the address is private and allow_private is not set"
            raise NotDelivered(private if forbidden else failure_reason(problem, self._timeout)) from None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = posting_session(
                self._timeout,
                self._ssl,
                resolver=Checked(SystemResolver(), allow_private=self._allow_private),
                socket_factory=None if self._allow_private else public_socket,
            )
        return self._session

    async def close(self) -> None:
        """Close the connection."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
