"""Takes the pictures of docs/pictures/dashboard, in Chromium. From the project's folder::

    PYTHONPATH=src:tests .venv/bin/python -m serving.dashboard.pictures

Beside single views there is one picture of each view in ``views/``: 1280 and 390 pixels wide, light and dark.
"""

import asyncio
import shutil
import sys
import tempfile
from contextlib import contextmanager, redirect_stdout
from io import BytesIO, StringIO
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import sync_playwright
from postgres_server import Server

from recrawl.serve import HttpServer
from recrawl.serve.health import starting_app
from serving.dashboard.site import served
from serving.test_cluster_service import made, until, with_cluster

FOLDER = Path("docs/pictures/dashboard")
PAGE = f"/page?url={quote('https://news.example.org/markets-today-1')}"
RULE = '[[rule]]\nmatch = "https://news.example.org/*"\nimportance = 20\nmax_interval = "2 h"\n'
PICTURES = {"pages": "/", "page": PAGE, "freshness": "/freshness", "budget": "/budget", "hosts": "/hosts"}
PICTURES |= {"signals": "/signals", "live": "/feed", "add": "/add"}
TALL = {"page": 1150, "freshness": 1000, "budget": 880}
SHOWN = ("pages", "page", "freshness", "budget", "settings", "phone")
VIEWS = {
    "sign-in": "/sign-in?next=/",
    **PICTURES,
    "stalest": "/stale",
    "settings": "/settings",
    "timeline": f"{PAGE}#timeline",
}
VIEWS |= {"search": "/?q=news", "error": "/?order=sideways"}
SIZES = ((1280, 900), (390, 900))
SCALE = 0.5  # of the pictures that show a view four times


def signed_in(browser, server, token, **looks):
    """A page of somebody who signed in."""
    page = browser.new_context(**looks).new_page()
    page.goto(f"{server.url}/sign-in")
    page.fill("#token", token)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{server.url}/")
    return page


def take(page, server, path, file, height=800):
    """One picture."""
    page.set_viewport_size({"width": page.viewport_size["width"], "height": height})
    page.goto(server.url + path)
    page.wait_for_timeout(700)
    page.screenshot(path=file)


def four_looks(browser, server, token, folder, views):
    """One picture of each view: both widths, light and dark, side by side. Without a token nobody signs in."""
    folder.mkdir(parents=True, exist_ok=True)
    taken = {name: [] for name in views}
    for scheme in ("light", "dark"):
        for width, height in SIZES:
            looks = {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
            page = signed_in(browser, server, token, **looks) if token else browser.new_context(**looks).new_page()
            for name, path in views.items():
                if name == "sign-in":  # of somebody else
                    other = browser.new_context(**looks).new_page()
                    other.goto(server.url + path)
                    taken[name].append(other.screenshot())
                    continue
                page.goto(server.url + path)
                page.wait_for_timeout(300)
                taken[name].append(page.screenshot())
    for name, pictures in taken.items():
        side_by_side([Image.open(BytesIO(one)) for one in pictures], folder / f"{name}.png")


def side_by_side(pictures, file):
    """Put pictures into one, each smaller."""
    small = [
        one.resize((int(one.width * SCALE), int(one.height * SCALE)), Image.Resampling.LANCZOS) for one in pictures
    ]
    whole = Image.new("RGB", (sum(one.width for one in small) + 12 * (len(small) - 1), small[0].height), "#888888")
    left = 0
    for one in small:
        whole.paste(one, (left, 0))
        left += one.width + 12
    whole.quantize(256, kmeans=1, dither=Image.Dither.NONE).save(file, optimize=True)


@contextmanager
def chromium():
    """A browser."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class Printed:
    """What commands print, for `with_cluster`."""

    def __init__(self, text):
        self._text = text

    def readouterr(self):
        """What was printed since the last time."""
        out = self._text.getvalue()
        self._text.truncate(self._text.seek(0))
        return SimpleNamespace(out=out)


def look_at_workers(folder):
    """The view of workers, of a cluster with a worker that crawls."""

    def look(one):
        with chromium() as browser:
            four_looks(browser, one, one.token, folder, {"workers": "/workers"})

    async def test(one):
        async def crawled():
            return len(await one.crawl.reader.newest_outcomes(40)) == 40

        await until(crawled)
        await asyncio.to_thread(look, one)

    postgres = Server()
    with redirect_stdout(StringIO()) as text:
        with_cluster(test, made(postgres), Printed(text), lambda url, now: f"<title>{url}</title><p>{now // 3}")
    postgres.close()


def look_at_start(folder):
    """The page that is shown while the crawl is loaded."""

    def look(server):
        with chromium() as browser:
            four_looks(browser, server, None, folder, {"starting": "/"})

    async def serve():
        server = HttpServer(starting_app(), "127.0.0.1:0")
        await server.start()
        await asyncio.to_thread(look, server)
        await server.close()

    asyncio.run(serve())


def main(folder=FOLDER, names=SHOWN):
    """Take all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp())
    file = place / "recrawl.toml"
    file.write_text('budget = "300/day"\n')
    options = {"file": file, "hostile": False, "audit_share": "10%", "audit_draws": 40}
    with served(place, days=6.0, copies=2, **options) as (server, tokens), chromium() as browser:
        desk = signed_in(browser, server, tokens["admin"], viewport={"width": 1280, "height": 800})
        server.figures()
        for name in [name for name in names if name in PICTURES]:
            take(desk, server, PICTURES[name], folder / f"{name}.png", TALL.get(name, 800))
        desk.set_viewport_size({"width": 1280, "height": 1100})
        desk.goto(f"{server.url}/settings")
        desk.fill("#budget", "600/day")
        desk.fill("#rules", RULE)
        desk.click("button[value=preview]")
        desk.wait_for_selector(".preview")
        desk.screenshot(path=folder / "settings.png")
        looks = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
        take(signed_in(browser, server, tokens["read"], **looks), server, "/", folder / "phone.png", 844)
        four_looks(browser, server, tokens["admin"], folder / "views", VIEWS)
    look_at_workers(folder / "views")
    look_at_start(folder / "views")


if __name__ == "__main__":
    main(*([Path(sys.argv[1]), tuple(PICTURES)] if len(sys.argv) > 1 else []))
