"""Pages that exist only after their scripts have run, one for each kind of trouble, and their server's log."""

from aiohttp import web

WORDS = "The text that scripts have written into this page."
SHOW = f"document.querySelector('main').textContent = {WORDS!r};"
FRAME = "<!doctype html><html><head><title>App</title></head><body><main></main><script>{}</script></body></html>"

SCRIPTS = {
    "fetch": "fetch('/data/text').then(r => r.text()).then(t => { document.querySelector('main').textContent = t })",
    "scroll": """let n = 0;
        const more = async () => { const p = document.createElement('p'); n += 1;
          p.textContent = await (await fetch('/data/text?' + n)).text(); document.body.append(p);
          window.scrollTo(0, 1e9); setTimeout(more, 1) };
        more();""",
    "shadow": f"""customElements.define('x-app', class extends HTMLElement {{ connectedCallback() {{
          this.attachShadow({{mode: 'open'}}).innerHTML = '<p>{WORDS}</p><slot></slot>' }} }});
        document.querySelector('main').innerHTML = '<x-app>and what is inside</x-app>';""",
    "worker": f"navigator.serviceWorker.register('/worker.js').then(() => {{}}, () => {{}}); {SHOW}",
    "redirect": "location.href = '/page/fetch'",
    "dialog": f"alert('stop'); confirm('sure?'); prompt('name?'); {SHOW}",
    "download": f"{SHOW} const a = document.createElement('a'); a.href = '/data/file'; a.download = 'x'; a.click();",
    "loop": "while (true) {}",
    "hog": "const kept = []; const grow = () => { for (;;) kept.push(new Array(1e5).fill(Math.random())) }; grow();",
    "buffers": """const kept = [];
        const grow = () => { if (kept.length < 30) { kept.push(new Uint8Array(5e7).fill(1)); setTimeout(grow, 50) } };
        grow();""",
    "crash": "fetch('/data/crash')",
    "popup": f"window.open('/page/fetch'); window.open('about:blank'); {SHOW}",
    "socket": f"const s = new WebSocket('ws://' + location.host + '/socket'); s.onclose = () => {{ {SHOW} }};",
    "refused": "fetch('http://localhost:1/').catch(() => {" + SHOW + "})",
    "post": "fetch('/data/text', {method: 'POST'}).catch(() => {" + SHOW + "})",
    "image": "new Image().src = '/data/image'; " + SHOW,
    "many": "Promise.allSettled([...Array(200).keys()].map(k => fetch('/data/text?' + k))).then(() => {" + SHOW + "})",
    "late": "setTimeout(() => { document.querySelector('main').innerHTML = '<p id=ready>" + WORDS + "</p>' }, 1500)",
}


class ScriptedSite:
    """Answers ``/page/KIND`` and what the pages ask for; ``log`` has host and path of every request."""

    def __init__(self, on_crash=None):
        self.log, self._on_crash = [], on_crash

    async def answer(self, request):
        """One request."""
        self.log.append((request.host, request.path_qs))
        kind = request.match_info["path"].removeprefix("page/")
        if kind == "robots.txt":
            return web.Response(text="User-agent: *\nDisallow: /data/image\nDisallow: /data/forbidden\n")
        if kind == "allowed":
            script = "fetch('/data/forbidden').catch(() => 0).then(() => " + SCRIPTS["fetch"] + ")"
            return web.Response(text=FRAME.format(script), content_type="text/html")
        if kind in SCRIPTS:
            return web.Response(text=FRAME.format(SCRIPTS[kind]), content_type="text/html", headers={"ETag": '"frame"'})
        if kind == "plain":
            text = f"<main><p>{WORDS} {WORDS} {WORDS}</p></main><script>{SCRIPTS['fetch']}</script>"
            return web.Response(text=text, content_type="text/html", headers={"ETag": '"plain"'})
        if kind == "moved":
            raise web.HTTPFound("/page/fetch")
        if kind == "data/file":
            return web.Response(body=b"x" * 1000, headers={"Content-Disposition": "attachment; filename=x"})
        if kind == "data/crash" and self._on_crash is not None:
            await self._on_crash()
        if kind == "data/text":
            return web.Response(text=WORDS)
        raise web.HTTPNotFound
