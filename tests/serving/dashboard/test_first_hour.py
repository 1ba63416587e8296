"""The steps of docs/first-hour.md, on a smaller site, by the commands themselves and in a real Chromium."""

import re
import shutil

import pytest

pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no Chromium: nobody follows the first hour"),
]


def test_a_first_hour_in_the_browser(tmp_path):
    from serving.dashboard.first_hour import PAGE, main

    hour = main(tmp_path, pages=90, budget="20/s", changes=40, digest="5 s")
    assert hour.budget == "40/s", "twice the budget, in its own unit, in the file of settings"
    assert hour.again == 403, "the link works one time"
    assert hour.pages == 91
    assert re.search(r"process \d+ goes on with other settings: .*notify", hour.reloaded)
    assert "needs" not in hour.reloaded
    assert re.search(r"pages? changed|changed: ", hour.subject)
    shown = re.findall(r"\(pictures/dashboard/(hour-\w+\.png)\)", PAGE.read_text())
    assert sorted(one.name for one in tmp_path.glob("hour-*.png")) == sorted(shown)
