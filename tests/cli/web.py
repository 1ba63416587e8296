"""A small web on loopback for commands: pages, a sitemap, robots.txt, in a thread of its own."""

import asyncio
import threading

from aiohttp import web


class SmallWeb:
    """Pages /p/0 … that count how often they were asked for; /p/9 is not there, /private is forbidden."""

    def __init__(self):
        self.asked, self.posts, self.refused, self.status = [], [], 0, 204
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        self._ready.wait(300)

    async def _serve(self):
        app = web.Application()
        app.router.add_get("/{tail:.*}", self._answer)
        app.router.add_post("/{tail:.*}", self._post)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
        self._end, self._loop = asyncio.Event(), asyncio.get_running_loop()
        self._ready.set()
        await self._end.wait()
        await runner.cleanup()

    async def _answer(self, request):
        self.asked.append((request.path, dict(request.headers)))
        if request.path == "/robots.txt":
            return web.Response(text="User-agent: *\nDisallow: /private\n")
        if request.path == "/sitemap.xml":
            locations = "".join(f"<url><loc>{self.url}/p/{k}</loc></url>" for k in range(20, 25))
            return web.Response(body=f"<urlset>{locations}</urlset>".encode(), content_type="application/xml")
        if request.path == "/slow":
            await asyncio.sleep(3)
        if request.path == "/p/9":
            raise web.HTTPNotFound
        return web.Response(text=f"<p>{request.path} {len(self.asked)}</p>", content_type="text/html")

    async def _post(self, request):
        """Takes posts, unless ``status`` says otherwise."""
        body = await request.read()
        if self.status == 204:
            self.posts.append((dict(request.headers), body))
        else:
            self.refused += 1
        return web.Response(status=self.status)

    def close(self):
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(300)
