"""The server before the engine is loaded: in a thread of its own, because loading keeps the event loop busy.

Both servers have the same listening socket. Connections that come between the two wait in its queue.
"""

from __future__ import annotations

import asyncio
import socket
import threading

from recrawl.serve.health import starting_app
from recrawl.serve.server import HttpServer, bound_socket


class Front:
    """Listens at an address and answers that the crawl is not ready, until `handed_over` or ``close``."""

    def __init__(self, listen: str, public_url: str = "") -> None:
        self._socket: socket.socket | None = bound_socket(listen)
        self._own = self._socket.dup()
        self._public_url = public_url
        self._loop, self._over = asyncio.new_event_loop(), asyncio.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recrawl-starting", daemon=True)
        self._thread.start()
        self._started.wait()

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self._own.getsockname()[1])

    def handed_over(self) -> socket.socket:
        """The listening socket, for the server of the crawl; requests that came before are answered."""
        listening, self._socket = self._socket, None
        assert listening is not None
        self.close()
        return listening

    def close(self) -> None:
        """Answer the requests that came, and end."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._over.set)
            self._thread.join()
        if self._socket is not None:
            self._socket.close()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._started.set()
            self._loop.close()

    async def _serve(self) -> None:
        server = HttpServer(starting_app(self._public_url), self._own, quiet=True)
        await server.start()
        self._started.set()
        await self._over.wait()
        await server.close()
