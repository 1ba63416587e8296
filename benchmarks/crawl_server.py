"""A loopback server for crawl benchmarks: pages of 30 KB on several addresses, as cheap to serve as possible.

``python benchmarks/crawl_server.py N_HOSTS`` prints its port and serves until its standard input ends.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys

KIB = 30
HOSTS = 16
_TEMPLATES = 64


def page_html(number: int, size: int = KIB * 1024) -> bytes:
    """A page like those of a shop or a newspaper: about a third of it text."""
    rng = random.Random(number)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(400)]

    def text(n: int) -> str:
        return " ".join(rng.choices(words, k=n))

    menu = [
        f'<li class="menu-item level-{k % 3}"><a href="/{w}" title="{w}">{w}</a></li>' for k, w in enumerate(words[:60])
    ]
    links = "".join(menu)
    head = (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{text(6)}</title>"
        f"<style>{''.join(f'.{w}{{margin:{k}px;color:#{k:06x}}}' for k, w in enumerate(words[:120]))}</style>"
        f"<script>var data={[rng.random() for _ in range(120)]};</script></head><body><nav><ul>{links}</ul></nav><main>"
    )
    parts, length = [head], len(head)
    while length < size - 600:
        card = f'<div class="card c{rng.randint(1, 9)}" data-id="{rng.getrandbits(40):x}"><h2>{text(4)}</h2>'
        said = f'<p>{text(25)} <a href="/{text(1)}">{text(3)}</a></p>'
        part = f'{card}{said}<img src="/i/{rng.getrandbits(40):x}.jpg" alt="{text(2)}"></div>'
        parts.append(part)
        length += len(part)
    tail = "<p>%NUMBER%</p></main><footer>about</footer></body></html>"
    page = "".join(parts) + tail
    return (page + f"<!--{'x' * max(size - len(page) - 7, 0)}-->").encode()


class Answers(asyncio.Protocol):
    """HTTP/1.1 with keep-alive, as much of it as a GET without a body needs."""

    templates: tuple[tuple[bytes, bytes], ...] = ()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while b"\r\n\r\n" in self._buffer:
            head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
            path = head.split(b" ", 2)[1]
            self._transport.write(self._answer(path))  # type: ignore[attr-defined]

    def _answer(self, path: bytes) -> bytes:
        number = path.rpartition(b"/")[2]
        if not number.isdigit():
            text = b"User-agent: *\nDisallow: /private/\n" if path == b"/robots.txt" else b""
            status = b"200 OK" if text else b"404 Not Found"
            return b"HTTP/1.1 %b\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b" % (
                status,
                len(text),
                text,
            )
        before, after = self.templates[int(number) % len(self.templates)]
        length = len(before) + len(number) + len(after)
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n" % length
        return b"".join((head, before, number, after))


def addresses(n_hosts: int) -> list[str]:
    """Loopback addresses: one for each host."""
    return [f"127.0.0.{k + 1}" for k in range(n_hosts)]


async def serve(n_hosts: int) -> None:
    """Serve until standard input ends."""
    made = [page_html(k).split(b"%NUMBER%") for k in range(_TEMPLATES)]
    Answers.templates = tuple((before, after) for before, after in made)
    loop = asyncio.get_running_loop()
    port = 0
    for address in addresses(n_hosts):
        server = await loop.create_server(Answers, address, port, backlog=512)
        port = port or server.sockets[0].getsockname()[1]
    print(port, flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
