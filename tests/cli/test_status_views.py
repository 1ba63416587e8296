"""What status says is so: not known while it is not, and the same as the live view at one moment."""

import json
import re

import pytest

from recrawl.cli.views.run_view import View
from recrawl.cli.views.status_report import status_lines
from recrawl.crawl.audit.freshness import NOTE, reported_freshness
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.views.status_figures import figures
from recrawl.store import BlockingStore, SqliteStore
from tests.crawl.driving import URLS, World, changing

SETTINGS = Settings(budget="0.2/s")


def status(world):
    found = figures(world.store, SETTINGS, world.clock.now())
    return found, dict(line.split("  ", 1) for line in status_lines(found) if "  " in line)


@pytest.fixture
def world(tmp_path):
    with BlockingStore(SqliteStore(tmp_path / "a.db")) as store:
        yield World(changing, URLS[:60], store=store, budget=0.2, rules=None)


@pytest.mark.slow
def test_freshness_is_not_known_before_pages_were_compared(world):
    for seconds in (30.0, 120.0):
        world.run(seconds)
        found, lines = status(world)
        assert found["comparisons"] < found["comparisons_needed"] == 50
        assert found["freshness"] is found["freshness_so_far"] is found["forecast"] is None
        assert lines["freshness now"].strip() == f"not known yet: {found['comparisons']} of 50 comparisons were made"
        json.dumps(found, allow_nan=False)
    world.run(1500.0)
    found, lines = status(world)
    assert found["comparisons"] >= 50
    assert 0.0 < found["freshness"] < 1.0
    assert found["forecast"]["low"] < found["forecast"]["high"]
    assert lines["freshness now"].strip() == f"{found['freshness']:.3f} (expected)"


def test_few_pages_need_two_comparisons_each(tmp_path):
    with BlockingStore(SqliteStore(tmp_path / "a.db")) as store:
        world = World(changing, URLS[:3], store=store, budget=0.2)
        assert status(world)[0]["comparisons_needed"] == 6
        world.run(600.0)
        assert status(world)[0]["freshness"] is not None


def assert_close(shown: str, stored: str) -> None:
    """The same words, and numbers of three digits within 0.002: how clocks ran lately is not stored."""
    assert re.sub(r"0\.\d+", "", shown) == re.sub(r"0\.\d+", "", stored)
    numbers = [[float(number) for number in re.findall(r"0\.\d+", text)] for text in (shown, stored)]
    assert len(numbers[0]) == len(numbers[1])
    assert all(round(abs(a - b), 6) <= 0.002 for a, b in zip(*numbers, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [60.0, 1500.0])
def test_the_live_view_and_status_agree_at_one_moment(world, seconds):
    world.run(seconds)
    crawler = world.crawler()
    try:
        shown = dict(View(crawler, SETTINGS, quiet=True).rows(rate=0.0))
        _, lines = status(world)
        for label in ("freshness now", "freshness so far", "failing, gone"):
            assert_close((shown.get(label) or "").strip(), (lines.get(label) or "").strip())
    finally:
        crawler.close()


@pytest.mark.slow
def test_status_takes_over_what_a_running_crawl_has_just_reported(tmp_path):
    with BlockingStore(SqliteStore(tmp_path / "a.db")) as store:
        world = World(changing, URLS[:60], store=store, budget=0.2)
        world.run(1500.0)
        at = world.clock.now()
        reported = reported_freshness(world.engine, at)
        found, _ = status(world)
        assert (found["freshness"], found["freshness_so_far"]) == (reported.now, reported.so_far)
        assert found["freshness_at"] == at
        ended = figures(store, SETTINGS, at + 4.0)
        assert ended["freshness_at"] == at + 4.0, "copies age after a crawl has ended"
        note = store.notes(NOTE)[NOTE] | {
            "now": 0.125,
            "every": 60.0,
        }  # what memory alone holds makes such a difference
        store.save(notes={NOTE: note})
        assert figures(store, SETTINGS, at)["freshness"] == 0.125
        later = figures(store, SETTINGS, at + 4.0)
        assert "0.125 (expected), as the crawl reported 4 s ago" in "\n".join(status_lines(later))
        long_after = figures(store, SETTINGS, at + 200.0)
        assert long_after["freshness"] != 0.125
        assert long_after["freshness_at"] == at + 200.0
