"""The steps of docs/first-hour.md, on a smaller site, in a real Chromium."""

import shutil

import pytest

pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no Chromium: nobody follows the first hour"),
]


def test_a_first_hour_in_the_browser(tmp_path):
    from serving.dashboard.first_hour import main

    budget, again = main(tmp_path, pages=90, budget="20/s", changes=25)
    assert budget == "40/s", "twice the budget, in its own unit"
    assert again == 403, "the link works one time"
    assert len(list(tmp_path.glob("hour-*.png"))) == 9
