"""``recrawl simulate``: tables, JSON and plots of comparisons; bad input gives one line and exit code 2."""

import json

import numpy as np
import pytest

from recrawl.simulate import Trace, write_trace

DAY = 86400.0


def recorded(folder, n=30, days=120.0, seed=1):
    """A folder with pages that change now and then."""
    rng = np.random.default_rng(seed)
    count = rng.poisson(rng.uniform(0.5, 12, n))
    changed_at = np.concatenate([np.sort(rng.uniform(0, days * DAY, k)) for k in count])
    offset = np.concatenate([[0], np.cumsum(count)])
    trace = Trace(0.0, days * DAY, offset, changed_at, importance=rng.uniform(0.1, 2, n), day=DAY)
    write_trace(folder, trace)
    return folder


@pytest.fixture
def folder(tmp_path):
    return recorded(tmp_path / "pages")


@pytest.mark.slow
def test_json_of_a_recorded_trace(run, folder):
    policies = "learned,known,uniform,nutch,stormcrawler,clairvoyant"
    budget = ["--budget", "0.05/page/day", "--budget", "0.2/page/day"]
    result = run("simulate", "--trace", folder, "--days", 100, *budget, "--policy", policies, "--jobs", 1, "--json")
    assert (result.code, result.err) == (0, "")
    rows = json.loads(result.out)
    assert [row["policy"] for row in rows] == 2 * policies.split(",")
    assert [row["budget"] for row in rows] == 6 * ["0.05/page/day"] + 6 * ["0.2/page/day"]
    for row in rows:
        assert row["trace"] == "pages"
        assert row["requests"] <= row["per_page_day"] * row["pages"] * 100
        assert 0 < row["staleness"] < 1
        assert 0 < row["staleness_unweighted"] < 1
        assert 0 < row["changes_found"] <= row["requests"]
        assert (row["cap"] in ("due", "score")) == (row["policy"] in ("nutch", "stormcrawler"))
    least = {row["policy"]: row["staleness"] for row in rows[:6]}
    assert min(least, key=least.get) == "clairvoyant"


def test_warm_counts_the_same_window(run, folder):
    common = ("--trace", folder, "--from", "1970-02-20", "--days", 60, "--policy", "learned", "--jobs", 1, "--json")
    cold, warm = (json.loads(run("simulate", *common, "--warm", days).out)[0] for days in (0, 40))
    assert cold["pages"] == warm["pages"]
    assert (cold["warm"], warm["warm"]) == (0, 40)
    assert abs(cold["requests"] - warm["requests"]) <= 1


def test_table_and_plot(run, tmp_path):
    plot = tmp_path / "plot.png"
    options = ("--pages", 40, "--horizon", 20, "--repetitions", 2, "--jobs", 1, "--readers", 1, "--plot", plot)
    result = run("simulate", "--world", "poisson,drifting", "--policy", "known,nutch", *options)
    assert result.code == 0
    assert "poisson: 40 pages, 20 days, 2 repetitions" in result.out
    assert "drifting" in result.out
    assert " ± " in result.out
    assert "request freshness" in result.out
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_own_demand_gives_pairs(run, folder):
    result = run(
        "simulate",
        "--trace",
        folder,
        "--days",
        100,
        "--own-demand",
        "--policy",
        "nutch,infomesh",
        "--json",
        "--jobs",
        1,
    )
    rows = json.loads(result.out)
    assert [(row["policy"], row["requests_of"]) for row in rows] == [
        ("nutch", "nutch"),
        ("learned", "nutch"),
        ("infomesh", "infomesh"),
        ("learned", "infomesh"),
    ]
    for own, ours in (rows[:2], rows[2:]):
        assert abs(own["requests"] - ours["requests"]) <= 1
        assert own["budget"] is None


BAD = {
    "policy": (("--world", "bing", "--policy", "nutsh"), "did you mean nutch"),
    "cap": (("--world", "bing", "--policy", "nutch:fast"), "rival 'nutch:fast' is not one of"),
    "no policy": (("--world", "bing", "--policy", ","), "no policy is named"),
    "world": (("--world", "poison"), "did you mean poisson"),
    "no world": (("--world", ","), "no world or trace is named"),
    "neither": ((), "give --world NAME or --trace DIR"),
    "pages": (("--world", "bing", "--pages", "0"), "pages is 0: at least one page is needed"),
    "horizon": (("--world", "bing", "--horizon", "0"), "days is 0: must be finite and above 0"),
    "from": (("--world", "bing", "--from", "2020-01-01"), "--from goes with --trace"),
    "budget zero": (("--world", "bing", "--budget", "0/page/day"), "must be above 0 and finite"),
    "budget": (("--world", "bing", "--budget", "much"), "budget 'much' is not understood"),
    "two budgets": (
        ("--world", "bing", "--budget", "1/day", "--own-demand"),
        "give --budget or --own-demand, not both",
    ),
    "no demand": (("--world", "bing", "--policy", "learned", "--own-demand"), "no policy has a demand of its own"),
    "jobs": (("--world", "bing", "--jobs", "0"), "jobs is 0: must be at least 1"),
    "plot": (("--world", "bing", "--plot", "x.bmp"), "the suffix of a plot must be .png, .svg or .pdf"),
    "no folder": (("--trace", "nowhere"), "nowhere"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(run, case):
    options, message = BAD[case]
    result = run("simulate", *options)
    assert result.code == 2
    assert result.out == ""
    assert len(result.err.splitlines()) == 1
    assert message in result.err


def test_bad_traces_are_one_line(run, folder, tmp_path):
    both = run("simulate", "--trace", folder, "--world", "bing")
    assert (both.code, "not both" in both.err) == (2, True)
    pages = run("simulate", "--trace", folder, "--pages", 5)
    assert (pages.code, "--pages goes with --world" in pages.err) == (2, True)
    long = run("simulate", "--trace", folder, "--days", 5000, "--jobs", 1)
    assert (long.code, len(long.err.splitlines())) == (2, 1)
    (folder / "changes.parquet").write_bytes(b"broken")
    broken = run("simulate", "--trace", folder, "--days", 100, "--jobs", 1)
    assert (broken.code, len(broken.err.splitlines())) == (2, 1)
    still = tmp_path / "still"
    write_trace(still, Trace(0.0, 100 * DAY, [0, 0], [], day=DAY))
    quiet = run("simulate", "--trace", still, "--days", 50, "--jobs", 1)
    assert (quiet.code, "no page changed" in quiet.err) == (2, True)


def test_poisson_control(run, folder):
    common = ("--trace", folder, "--days", 100, "--policy", "known,trailing", "--jobs", 1, "--json", "--poisson")
    rows = json.loads(run("simulate", *common, "--repetitions", 2).out)
    assert [(row["trace"], row["policy"]) for row in rows] == [
        ("pages (Poisson)", name) for name in ("known", "trailing")
    ]
    assert all(row["stderr"]["staleness"] > 0 for row in rows)
    refused = run("simulate", "--world", "poisson", "--poisson")
    assert (refused.code, refused.err) == (2, "recrawl: --poisson goes with --trace\n")


@pytest.mark.slow
def test_the_live_crawler_beside_policies(run, folder):
    budgets = ("--budget", "0.05/page/day,0.1/page/day")
    common = ("--days", 60, "--warm", 20, "--policy", "learned,uniform", "--jobs", 1, "--live", "--json")
    result = run("simulate", "--trace", folder, *budgets, *common)
    assert (result.code, result.err) == (0, "")
    rows = json.loads(result.out)
    assert [row["policy"] for row in rows] == 2 * ["learned", "uniform", "live"]
    for learned, _, live in (rows[:3], rows[3:]):
        assert live["budget"] == learned["budget"]
        assert abs(live["requests"] - learned["requests"]) <= 1
        assert live["staleness"] == pytest.approx(learned["staleness"], rel=0.03)


def test_live_needs_a_recorded_trace_and_a_budget(run, folder):
    assert run("simulate", "--world", "poisson", "--live").code == 2
    assert run("simulate", "--trace", folder, "--live", "--own-demand").err.count("\n") == 1
