"""What views say while figures are computed, when they cannot be, when they are old, and where there is nothing yet."""

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from serving.dashboard.site import Served, Site, crawl_days
from serving.dashboard.test_routes import Person

pytestmark = pytest.mark.slow

FIGURES = ("/freshness", "/budget", "/hosts", "/signals", "/stale")


@pytest.fixture
def look(board, monkeypatch):
    """The text of a view with a given snapshot and error."""
    server, tokens = board
    real = server.board.snapshots.latest

    def looked(path, error=None, snapshot=None, busy=None, **changed):
        given = replace(real, **changed) if changed else snapshot
        busy = given is None if busy is None else busy
        monkeypatch.setattr(server.board, "snapshots", SimpleNamespace(get=lambda: given, error=error, busy=busy))
        answer = person.get(path)
        assert answer.status_code == 200
        return answer.text

    with Person(server) as person:
        person.sign_in(tokens["read"])
        yield looked


@pytest.mark.parametrize("path", FIGURES)
def test_figures_that_are_not_there_yet_are_loaded_again(look, path):
    text = look(path)
    assert "The figures are being computed …" in text
    assert f'hx-get="{path}" hx-trigger="load delay:1s"' in text
    assert "No host was asked" not in text
    assert "no history yet" not in text
    assert "being computed" in look("/parts/tiles")


def test_a_preview_does_not_wait_for_figures(board, monkeypatch):
    server, tokens = board
    nothing = SimpleNamespace(get=lambda: None, error=None, busy=True)
    monkeypatch.setattr(server.board, "snapshots", nothing)
    with Person(server) as person:
        person.sign_in(tokens["admin"])
        text = person.act("/settings", do="preview", budget="600/day").text
    assert "300 → <strong>600</strong>" in text
    assert "Its effect on freshness is not known yet" in text


def test_tiles_are_loaded_again_while_newer_figures_are_computed(look):
    for old, shown in ((30.0, True), (700.0, False)):
        text = look("/parts/tiles", busy=True, at=time.time() - old)
        assert 'hx-get="/parts/tiles"' in text
        assert ("being computed" not in text) is shown, "figures of an hour ago are not those of now"
    assert "hx-get" not in look("/parts/tiles", busy=False, at=time.time() - 700.0)


@pytest.mark.parametrize("path", FIGURES)
def test_figures_that_could_not_be_computed(look, path):
    text = look(path, error="the <disk> is full")
    assert "could not be computed: the &lt;disk&gt; is full" in text
    assert 'hx-trigger="load delay:15s"' in text
    text = look(path, error="the disk is full", at=time.time() - 30.0)
    assert "could not be computed again: the disk is full. These are older." in text
    assert "hx-trigger" not in text


@pytest.mark.parametrize("path", FIGURES)
def test_the_age_of_figures_is_shown(look, path):
    assert "These figures are old." in look(path, at=time.time() - 700.0)
    text = look(path, at=time.time() - 500.0)
    assert "Computed <time" in text
    assert "These figures are old." not in text


def test_a_view_without_a_history_says_so(look):
    text = look("/freshness", history=[], audits=[])
    assert "There is no history yet" in text
    assert "No audit was made yet." in text
    assert "The forecast is not known yet" in look("/budget", curve=[])


def test_an_order_that_is_being_computed(board, look, monkeypatch):
    empty = SimpleNamespace(get=lambda: None, error=None)

    async def ordered(order):
        return None

    monkeypatch.setattr(board[0].board.lists, "_snapshots", empty)
    monkeypatch.setattr(board[0].board.crawl, "ordered", ordered)
    text = look("/?order=stale")
    assert 'hx-get="/?order=stale"' in text
    assert "There are no pages yet." not in text


def test_a_crawl_without_pages_says_so(tmp_path):
    site = Site(copies=0, hostile=False)
    site.pages.clear()
    settings, tokens = crawl_days(site, tmp_path, 0.0, time.time())
    with Served(site, settings) as server, Person(server) as person:
        person.sign_in(tokens["admin"])
        assert "There are no pages yet." in person.get("/?order=added").text
        assert '<a href="/add">Add pages or a site</a>' in person.get("/").text
        server.figures()
        assert "There are no pages yet." in person.get("/stale").text
        assert "No host was asked in the last day." in person.get("/hosts").text
        assert "There is no history yet" in person.get("/freshness").text
