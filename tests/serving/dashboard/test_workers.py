"""The view of workers and shards, of a cluster that runs, in a real Chromium."""

import asyncio
from types import SimpleNamespace

import pytest

from serving.dashboard.browser import AXE, CHROMIUM, Browser, needs_chromium, playwright, problems_of
from serving.test_cluster_service import N_SHARDS, made, with_cluster

pytestmark = [pytest.mark.slow, needs_chromium]


def test_workers_and_shards_at_both_widths(postgres, capsys):
    def look(server, token):
        with playwright.sync_playwright() as started:
            chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            browser = Browser(chromium, server, token)
            for width, scheme in ((390, "dark"), (1280, "light")):
                page = browser.signed_in(token, width=width, scheme=scheme, bypass_csp=AXE.is_file())
                browser.look(page, "workers")
                assert page.locator("#workers tbody").nth(0).locator("tr").count() == 1
                assert page.locator("#workers tbody").nth(1).locator("tr").count() == N_SHARDS
                assert page.locator("#workers .badge").inner_text() == "runs"
                assert not AXE.is_file() or problems_of(page, "workers") == []
            chromium.close()

    async def test(one):
        await asyncio.to_thread(look, SimpleNamespace(url=one.url), one.token)

    with_cluster(test, made(postgres), capsys, lambda url, now: "<p>a page")
