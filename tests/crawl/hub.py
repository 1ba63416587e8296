"""A WebSub hub on loopback, written from the W3C recommendation alone: it shares no code with the subscriber."""

import asyncio
import hashlib
import hmac
import io
import secrets
import socket
import urllib.parse
from contextlib import nullcontext
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web


@dataclass
class Lease:
    """One verified subscription."""

    secret: str | None
    until: float


@dataclass
class Hub:
    """Takes subscriptions, verifies them and distributes content; ``now`` is its own clock.

    ``manners``: ``verify`` (as recommended), ``silent`` (accepts, never verifies), ``deny``, ``refuse`` (answers 500),
    ``move`` (redirects to /elsewhere).
    """

    now: object
    lease: int = 864000  # the longest that is granted, in seconds
    method: str = "sha256"
    manners: str = "verify"
    hold: object = nullcontext  # keeps a manual clock while a request is under way
    leases: dict = field(default_factory=dict)  # by topic and callback
    requests: list = field(default_factory=list)  # forms, in the order in which they came
    verified: list = field(default_factory=list)  # statuses of callbacks

    async def __aenter__(self):
        app = web.Application()
        app.router.add_post("/", self._asked)
        app.router.add_post("/elsewhere", self._asked)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        self._site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await self._site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/"
        self._session, self._tasks = aiohttp.ClientSession(), set()
        return self

    async def __aexit__(self, *_):
        await self.settled()
        await self._session.close()
        await self._runner.cleanup()

    async def close_port(self):
        """Nobody listens any more, connections are refused; the port stays taken."""
        await self._site.stop()
        for kept in self._runner.server.connections:
            kept.force_close()
        self._closed = socket.socket()
        self._closed.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._closed.bind(("127.0.0.1", urllib.parse.urlsplit(self.url).port))

    async def open_port(self):
        """Listen again."""
        self._closed.close()
        self._site = web.TCPSite(self._runner, "127.0.0.1", urllib.parse.urlsplit(self.url).port)
        await self._site.start()

    async def settled(self):
        """All callbacks that were begun have been made."""
        while self._tasks:
            await asyncio.gather(*self._tasks)

    # --- section 5: subscribing and unsubscribing

    async def _asked(self, request):
        if request.content_type != "application/x-www-form-urlencoded":
            return web.Response(status=400, text="not a form")
        form = dict(await request.post())
        self.requests.append(form)
        mode, topic, callback = (form.get(f"hub.{name}", "") for name in ("mode", "topic", "callback"))
        if mode not in ("subscribe", "unsubscribe") or not topic or not callback.startswith("http"):
            return web.Response(status=400, text="mode, topic and callback are needed")
        if len(form.get("hub.secret", "").encode()) >= 200:
            return web.Response(status=400, text="the secret is too long")
        if self.manners == "refuse":
            return web.Response(status=500, text="no")
        if self.manners == "move" and request.path == "/":
            return web.Response(status=308, headers={"Location": "/elsewhere"})
        if self.manners != "silent":
            task = asyncio.ensure_future(self._validate(form, mode, topic, callback))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return web.Response(status=202)

    async def _validate(self, form, mode, topic, callback):
        if self.manners == "deny":
            query = {"hub.mode": "denied", "hub.topic": topic, "hub.reason": "not today"}
            self.verified.append((await self.call(callback, query))[0])
            return
        challenge = secrets.token_hex(20)
        query = {"hub.mode": mode, "hub.topic": topic, "hub.challenge": challenge}
        granted = min(int(form.get("hub.lease_seconds", self.lease)), self.lease)
        if mode == "subscribe":
            query["hub.lease_seconds"] = str(granted)
        at = self.now()
        status, text = await self.call(callback, query)
        self.verified.append(status)
        if 200 <= status <= 299 and text == challenge:
            if mode == "subscribe":
                self.leases[topic, callback] = Lease(form.get("hub.secret"), at + granted)
            else:
                self.leases.pop((topic, callback), None)

    async def call(self, callback, query):
        """GET a callback with further arguments: status and text."""
        parts = urllib.parse.urlsplit(callback)
        joined = "&".join(filter(None, [parts.query, urllib.parse.urlencode(query)]))
        with self.hold():
            async with self._session.get(urllib.parse.urlunsplit(parts._replace(query=joined))) as answer:
                return answer.status, await answer.text()

    # --- section 7: content distribution

    async def publish(self, topic, content, content_type="text/html"):
        """Send content to all whose lease lasts; the statuses."""
        self.leases = {key: lease for key, lease in self.leases.items() if lease.until > self.now()}
        statuses = []
        for (about, callback), lease in list(self.leases.items()):
            if about == topic:
                status = await self.deliver(callback, lease.secret, content, content_type, topic)
                statuses.append(status)
                if status == 410:
                    del self.leases[about, callback]
        return statuses

    async def deliver(self, callback, secret, content, content_type="text/html", topic=""):
        """POST content to a callback, signed if there is a secret."""
        headers = {"Content-Type": content_type, "Link": f'<{self.url}>; rel="hub", <{topic}>; rel="self"'}
        if secret is not None:
            right = hmac.new(secret.encode(), content, getattr(hashlib, self.method)).hexdigest()
            headers["X-Hub-Signature"] = f"{self.method}={right}"
        with self.hold():
            async with self._session.post(callback, data=io.BytesIO(content), headers=headers) as answer:
                return answer.status
