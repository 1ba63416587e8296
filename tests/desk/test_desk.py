"""The desk: picks with leases, outcomes that count once."""

import asyncio

import pytest

from recrawl.desk import NewPage, PageChange, Report
from recrawl.errors import ParameterError
from tests.desk.desks import START, on_desk

URLS = [f"https://h{k}.example/{k}" for k in range(6)]


def test_a_page_is_handed_out_once_until_its_lease_ends():
    async def test(world):
        desk, clock = world.desk, world.clock
        first = await desk.pick(1, lease=60.0)
        assert len(first) == 1
        assert first[0].until == clock.now() + 60.0
        assert len(first[0].lease) >= 20
        clock._now += 1.0
        rest = await desk.pick(10, lease=10.0)
        assert {one.url for one in (*first, *rest)} == set(URLS)
        assert len(rest) == 5
        clock._now += 9.0
        assert await desk.pick(10) == [], "all are held"
        clock._now += 1.5
        again = await desk.pick(10)
        assert {one.url for one in again} == {one.url for one in rest}, "lost leases are back in their time"
        clock._now += 60.0
        assert [one.url for one in await desk.pick(10)] == [first[0].url], "each lease has a length of its own"

    on_desk(test, URLS)


def test_an_outcome_counts_once_however_often_it_is_sent():
    async def test(world):
        desk = world.desk
        one, two = await desk.pick(2)
        report = Report(one.lease, status=200, body=b"<p>hello</p>", etag='"1"')
        assert await desk.record([report, report]) == ["recorded", "repeated"]
        assert await asyncio.gather(*(desk.record([report]) for _ in range(3))) == 3 * [["repeated"]]
        assert await desk.record([Report("guess", status=200)]) == ["unknown"]
        await world.open()
        assert await world.desk.record([report, Report(two.lease, error="timeout")]) == ["repeated", "recorded"]
        found = await world.listed()
        assert [(o.url, o.status, o.failure) for o in found] == [(one.url, 200, None), (two.url, None, "timeout")]
        assert world.crawler.engine.stats["recorded"] == 1, "after the restart one outcome was new"

    on_desk(test, URLS)


def test_a_late_outcome_teaches_once_and_does_not_end_the_lease_of_another():
    async def test(world):
        desk, clock = world.desk, world.clock
        (one,) = await desk.pick(1, lease=5.0)
        clock._now += 6.0
        (two,) = await desk.pick(1, lease=100.0)
        assert one.url == two.url == URLS[0]
        report = Report(one.lease, status=200, digest="a")
        assert await desk.record([report]) == ["late"]
        assert await desk.record([report]) == ["repeated"]
        clock._now += 50.0
        assert await desk.pick(1) == [], "the second holder goes on to hold it"
        assert await desk.record([Report(two.lease, status=200, digest="b")]) == ["recorded"]
        assert [o.changed for o in await world.listed()] == [None, True]
        clock._now += 1.0
        assert [p.url for p in await desk.pick(1)] == [URLS[0]], "and it is free again after its outcome"

    on_desk(test, URLS[:1])


def test_an_outcome_older_than_the_copy_changes_nothing():
    async def test(world):
        desk, clock = world.desk, world.clock
        (one,) = await desk.pick(1, lease=5.0)
        clock._now += 6.0
        (two,) = await desk.pick(1)
        await desk.record([Report(two.lease, status=200, digest="new")])
        assert await desk.record([Report(one.lease, status=200, digest="old")]) == ["outdated"]
        assert [o.digest for o in await world.listed()] == ["given:new"]

    on_desk(test, URLS[:1])


def test_leases_survive_a_restart():
    async def test(world):
        held = await world.desk.pick(3, lease=100.0)
        world.clock._now += 5.0
        desk = await world.open()
        assert desk.n_held == 3
        rest = await desk.pick(10)
        assert {one.url for one in rest}.isdisjoint(one.url for one in held)
        assert len(rest) == 3
        words = await desk.record([Report(one.lease, status=200, digest="x") for one in held[:2]])
        assert words == ["recorded", "recorded"]
        world.clock._now += 1.0
        assert {one.url for one in await desk.pick(10)} == {one.url for one in held[:2]}, "they are free again"
        world.clock._now += 100.0
        assert held[2].url in {one.url for one in await desk.pick(10)}

    on_desk(test, URLS)


def test_released_pages_are_free_at_once():
    async def test(world):
        desk = world.desk
        held = await desk.pick(6)
        assert await desk.release([held[0].lease, held[0].lease, "guess"]) == ["released", "repeated", "unknown"]
        world.clock._now += 1.0
        assert [one.url for one in await desk.pick(6)] == [held[0].url]
        assert await desk.record([Report(held[0].lease, status=200)]) == ["released"]
        assert await world.listed() == []

    on_desk(test, URLS)


def test_leases_of_pages_are_those_that_are_held():
    async def test(world):
        desk = world.desk
        assert desk.leases_of(URLS) == []
        one, two, three = await desk.pick(3, lease=60.0)
        assert desk.leases_of(URLS) == [held.lease for url in URLS for held in (one, two, three) if held.url == url]
        assert desk.leases_of([two.url, "https://other.example/"]) == [two.lease]
        await desk.record([Report(one.lease, status=200)])
        await desk.release([two.lease])
        assert desk.leases_of(URLS) == [three.lease], "recorded and released ones are not held"
        await world.open()
        assert world.desk.leases_of(URLS) == [three.lease], "after a restart too"

    on_desk(test, URLS)


def test_validators_come_with_a_pick():
    async def test(world):
        desk = world.desk
        (one,) = await desk.pick(1)
        await desk.record([Report(one.lease, status=200, digest="x", etag='"7"', last_modified="yesterday")])
        found = []
        for _ in range(12):  # now and then a page is fetched in full, to check that "not modified" is true
            world.clock._now += 10.0
            (two,) = await desk.pick(1)
            found.append((two.etag, two.last_modified))
            full = Report(two.lease, status=200, digest="x", etag='"7"', last_modified="yesterday")
            await desk.record([Report(two.lease, status=304) if two.etag else full])
        assert ('"7"', "yesterday") in found
        assert {o.changed for o in (await world.listed())[1:]} == {False}

    on_desk(test, URLS[:1])


def test_without_validators_copies_are_compared_all_the_same():
    async def test(world):
        desk = world.desk
        (one,) = await desk.pick(1)
        await desk.record([Report(one.lease, status=200, digest="x", etag='"7"')])
        for digest in ("x", "y", "y"):
            world.clock._now += 10.0
            (one,) = await desk.pick(1, validators=False)
            assert (one.etag, one.last_modified) == (None, None)
            assert await desk.record([Report(one.lease, status=200, digest=digest)]) == ["recorded"]
        assert [outcome.changed for outcome in (await world.listed())[1:]] == [False, True, False]

    on_desk(test, URLS[:1])


def test_hosts_are_chosen_and_keep_their_delay():
    async def test(world):
        desk, clock = world.desk, world.clock
        (one,) = await desk.pick(9, hosts=["h3.example"])
        assert one.url.startswith("https://h3.example/")
        assert await desk.pick(9, hosts=["h3.example"]) == [], "the host rests"
        assert len(await desk.pick(9)) == 3, "the others were not made to wait"
        clock._now += 10.0
        (two,) = await desk.pick(9, hosts=["h3.example"])
        assert two.url.startswith("https://h3.example/")
        assert two.url != one.url

    on_desk(test, [f"https://h{k % 4}.example/{k // 4}" for k in range(12)], delay=10.0)


def test_further_requests_are_charged():
    async def test(world):
        desk, clock = world.desk, world.clock
        (one,) = await desk.pick(1)
        await desk.record([Report(one.lease, status=200, requests=4)])
        for _ in range(3):
            clock._now += 1.0
            assert await desk.pick(1) == [], "two redirects and robots.txt are paid for first"
        clock._now += 1.0
        assert len(await desk.pick(1)) == 1

    on_desk(test, URLS, budget=1.0)


def test_what_is_owed_survives_a_restart():
    async def test(world):
        (one,) = await world.desk.pick(1)
        await world.desk.record([Report(one.lease, status=200, requests=6)])
        desk = await world.open()
        waited = 0
        while not await desk.pick(1):
            world.clock._now += 1.0
            waited += 1
        assert waited >= 4

    on_desk(test, URLS, budget=1.0)


def test_a_pick_waits_for_work():
    async def test(world):
        async def main():
            desk = world.desk
            waiting = asyncio.ensure_future(desk.pick(3, wait=30.0))
            await world.clock.sleep(4.0)
            await desk.add([NewPage("https://new.example/")])
            assert [one.url for one in await waiting] == ["https://new.example/"]
            assert world.clock.now() == START + 7.0
            assert await desk.pick(3, wait=20.0) == []
            assert world.clock.now() == START + 27.0

        await world.clock.drive(main())

    on_desk(test)


def test_the_crawl_of_the_process_shares_pages_and_budget():
    async def test(world):
        world.web._page = lambda url, now: None if url.endswith("robots.txt") else f"<p>{now}</p>"

        async def others():
            got = []
            while world.clock.now() < START + 103.0:
                pages = await world.desk.pick(1, wait=10.0)
                got += [page.url for page in pages]
                await world.desk.record([Report(page.lease, status=200, body=b"<p>x</p>") for page in pages])
            return len(got)

        async def main():
            crawl = asyncio.ensure_future(world.crawler.run(START + 103.0))
            theirs = await others()
            counters = await crawl
            return theirs, counters.started - theirs

        theirs, ours = await world.clock.drive(main())
        assert 90 <= theirs + ours <= 103, "one budget for both"
        assert min(theirs, ours) > 20, "both get pages"

    on_desk(test, [f"https://h{k}.example/{k}" for k in range(40)], budget=1.0)


def test_pages_are_added_changed_removed_and_listed():
    async def test(world):
        desk = world.desk
        assert await desk.add([NewPage("https://a.example", 3.0), NewPage(URLS[0])]) == 1
        found, cursor = desk.pages(n=4)
        more, end = desk.pages(cursor, 100)
        assert [one.url for one in (*found, *more)] == [*URLS, "https://a.example/"]
        assert end is None
        assert await desk.update([PageChange(URLS[0], importance=5.0), PageChange(URLS[1], paused=True)]) == 2
        assert {one.importance for one in desk.pages()[0]} == {1.0, 3.0, 5.0}
        desk = await world.open()
        picked = await desk.pick(10)
        assert len(picked) == 6
        assert URLS[1] not in {one.url for one in picked}, "a pause survives a restart"
        await desk.update([PageChange(URLS[1], paused=False)])
        world.clock._now += 1.0
        assert [one.url for one in await desk.pick(10)] == [URLS[1]]
        assert await desk.remove([URLS[2], "https://never.example/"]) == 1
        held = next(one for one in picked if one.url == URLS[2])
        assert await desk.record([Report(held.lease, status=200)]) == ["removed"]

    on_desk(test, URLS)


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (Report("x"), "row 1, status: give either status or error"),
        (Report("x", status=99), "row 1, status: is 99: must lie between 100 and 599"),
        (Report("x", error="oops"), "row 1, error: "),
        (Report("x", status=200, digest="a", body=b"b"), "row 1, digest: give only one"),
        (Report("x", status=200, requests=-1), "row 1, requests: is -1"),
        (Report("x", status=200, took=float("nan")), "row 1, took: must be a number"),
    ],
)
def test_bad_reports_name_row_and_field_and_nothing_is_done(report, why):
    async def test(world):
        (one,) = await world.desk.pick(1)
        with pytest.raises(ParameterError, match=why):
            await world.desk.record([Report(one.lease, status=200), report])
        assert await world.listed() == []

    on_desk(test, URLS)
