"""Takes the pictures of docs/pictures/dashboard, in Chromium. From the project's folder::

PYTHONPATH=tests .venv/bin/python -m serving.dashboard.pictures
"""

import shutil
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import sync_playwright

from serving.dashboard.site import served

FOLDER = Path("docs/pictures/dashboard")
PAGE = f"/page?url={quote('https://news.example.org/markets-today-1')}"
RULE = '[[rule]]\nmatch = "https://news.example.org/*"\nimportance = 20\nmax_interval = "2 h"\n'
PICTURES = {"pages": "/", "page": PAGE, "freshness": "/freshness", "budget": "/budget", "hosts": "/hosts"}
PICTURES |= {"signals": "/signals", "live": "/feed", "add": "/add"}
TALL = {"page": 1150, "freshness": 1000, "budget": 880}
SHOWN = ("pages", "page", "freshness", "budget", "settings", "phone")


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


def main(folder=FOLDER, names=SHOWN):
    """Take all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp())
    file = place / "recrawl.toml"
    file.write_text('budget = "300/day"\n')
    options = {"file": file, "hostile": False, "audit_share": "10%", "audit_draws": 40}
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with served(place, days=6.0, copies=2, **options) as (server, tokens), sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        desk = signed_in(browser, server, tokens["admin"], viewport={"width": 1280, "height": 800})
        desk.goto(f"{server.url}/freshness")  # waits for the first figures
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
        browser.close()


if __name__ == "__main__":
    main(*([Path(sys.argv[1]), tuple(PICTURES)] if len(sys.argv) > 1 else []))
