"""Per-page budgets, quotas, hours and budgets of hosts: on a cluster as on one machine."""

import asyncio
import itertools
import json
import time
from dataclasses import replace

import pytest

from recrawl.cli.commands import call
from recrawl.cluster.shares.controller import ShardPlan, cluster_rate, split_shares
from recrawl.crawl.polite.hours import Hours, rates

from .clusters import Asked, Worker, cluster_of, made, settings_of, until

URLS = [f"https://h{host}.example/{k}" for host in range(6) for k in range(4)]
LIMITED, LIMIT = "h0.example", 4.0


@pytest.mark.parametrize("hours", [None, "22-6", "0-1", "9-12, 14-17"])
@pytest.mark.parametrize("budget", ["20/s", "0.25/page/s", "100k/month", "3/page/day", "86400/day"])
def test_the_shares_of_all_shards_are_the_budget_of_one_machine(budget, hours):
    plans = {0: ShardPlan(30), 1: ShardPlan(60, (0.1, 10.0), (5.0, 0.1)), 2: ShardPlan(10, (0.1, 10.0), (9.0, 0.2))}
    opening = None if hours is None else Hours(hours)
    one = rates(budget, 100, opening)
    assert cluster_rate(budget, plans.values(), opening) == one
    assert sum(split_shares(plans, one[0]).values()) == pytest.approx(one[0])


@pytest.mark.full
def test_pages_and_hosts_get_what_they_get_on_one_machine(postgres, capsys):
    """The rate follows the number of pages; a host's budget holds while its shard moves; status speaks of the whole."""
    per_page = 1.5
    database = made(postgres, URLS, shards=3, budget=f"{per_page}/page/s")
    cluster, web = cluster_of(database), Asked()
    rule = {"match": f"https://{LIMITED}/*", "budget": f"{LIMIT:g}/s"}
    settings = replace(settings_of(database, rule=(rule,)), min_change_probability="0")
    more = [url + "/more" for url in URLS]

    def rate_of(*workers):
        live = [crawl._live for worker in workers for crawl in worker._crawls.values() if crawl._live]
        return sum(one.crawler.budget.rate for one in live)

    async def main():
        one, two = (Worker(cluster, settings, name, web.of(name)) for name in ("one", "two"))
        first, second = asyncio.create_task(one.run()), asyncio.create_task(two.run())
        await until(lambda: abs(rate_of(one, two) - per_page * len(URLS)) < 0.02 * per_page * len(URLS))
        assert await asyncio.to_thread(call, ["add", *more, "--database", database]) == 0
        await until(lambda: abs(rate_of(one, two) - 2 * per_page * len(URLS)) < 0.02 * per_page * len(URLS))
        n = sum(LIMITED in url for url in web.urls())
        await until(lambda: sum(LIMITED in url for url in web.urls()) > n + 5)
        one.stop()
        await first
        n = sum(LIMITED in url for url in web.urls())
        await until(lambda: len(two.shards) == 3 and sum(LIMITED in url for url in web.urls()) > n + 10)
        two.stop()
        await second

    asyncio.run(main())
    times = sorted(at for at, _, url in web.asked if LIMITED in url)
    for k, j in itertools.combinations(range(len(times)), 2):
        window = times[j] - times[k]
        assert j - k + 1 <= LIMIT * (window + 0.05) + 2, "robots.txt is one request more"
    capsys.readouterr()
    assert call(["status", "--database", database, "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["pages"], status["shards"], status["budget"]) == (2 * len(URLS), 3, f"{per_page}/page/s")
    assert status["observations"] <= len(web.urls())
    for url in (URLS[0], URLS[-1], more[7]):
        assert call(["why", url, "--database", database, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["url"] == url


@pytest.mark.slow
def test_nothing_is_asked_while_the_hours_are_closed(postgres):
    database = made(postgres, URLS, shards=2, budget="1000000/day")
    cluster, web = cluster_of(database), Asked()
    hour = (time.localtime().tm_hour + 12) % 24
    settings = settings_of(database, hours=f"{hour}-{(hour + 1) % 24}")

    async def main():
        worker = Worker(cluster, settings, "one", web.of("one"))
        running = asyncio.create_task(worker.run())
        shares = lambda: [crawl._share.rate for crawl in worker._crawls.values()]  # noqa: E731
        await until(lambda: len(shares()) == 2 and min(shares()) > 0.0)
        assert sum(shares()) == pytest.approx(24 * 1e6 / 86400, rel=0.01), "the quota of a day in its one hour"
        await asyncio.sleep(0.5)
        worker.stop()
        await running

    asyncio.run(main())
    assert web.asked == []
