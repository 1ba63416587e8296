"""The command ``recrawl solve``: figures, files, and one line with exit code 2 on bad input."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from recrawl import Pages, solve
from recrawl.cli.shared.files.tables import read_table
from recrawl.cli.shared.options.solve_request import Request
from recrawl.cli.views.plots.solve_plot import draw_solution
from recrawl.cli.views.solve_report import Figures, uniform_freshness

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "pages.csv"
SMALL = "url,change_rate,importance\nhttps://a.example/1,0.5,3\nhttps://a.example/2,2,1\nhttps://b.example/,0.1,2\n"


@pytest.fixture
def small(table):
    return table(SMALL)


def figures(run, *argv):
    result = run("solve", *argv, "--json")
    assert (result.code, result.err) == (0, "")
    return json.loads(result.out)


def test_json_gives_the_figures_of_the_library(run, small):
    shown = figures(run, small, "--budget", "2/day", "--spacing", "random")
    plan = solve(Pages([0.5, 2.0, 0.1], [3.0, 1.0, 2.0]), 2.0, spacing="random")
    assert shown["pages"] == 3
    assert shown["budget"] == 2.0
    assert shown["freshness"] == pytest.approx(plan.freshness, rel=1e-12)
    assert shown["threshold"] == pytest.approx(plan.threshold, rel=1e-12)
    assert shown["spent"] == pytest.approx(2.0, rel=1e-9)
    assert shown["never_crawled"] == int((plan.crawl_rate == 0).sum())
    assert shown["gap"] <= 1e-9


def test_the_best_rates_beat_uniform_ones(run, small):
    shown = figures(run, small, "--budget", "1/page/day")
    assert shown["uniform_freshness"] < shown["freshness"] < 1


def test_a_budget_means_the_same_in_every_unit(run, small):
    shown = [figures(run, small, "--budget", text)["freshness"] for text in ("2/day", "14/week", "0.002k/day")]
    assert shown == pytest.approx([shown[0]] * 3, rel=1e-9)
    hourly = figures(run, small, "--unit", "hour", "--budget", "48/day")
    assert hourly["budget"] == pytest.approx(2.0)
    assert hourly["unit"] == "h"


def test_target_is_the_inverse_of_budget(run, small):
    forward = figures(run, small, "--budget", "2/day")
    back = figures(run, small, "--target", f"{100 * forward['freshness']!r}%")
    assert back["spent"] == pytest.approx(2.0, rel=1e-6)
    assert back["budget"] is None


def test_price_is_the_threshold(run, small):
    forward = figures(run, small, "--budget", "2/day")
    back = figures(run, small, "--price", forward["threshold"])
    assert back["spent"] == pytest.approx(2.0, rel=1e-6)


@pytest.mark.slow
def test_floor_ceiling_and_host_limit_are_kept(run, small, tmp_path):
    out = tmp_path / "rates.csv"
    bounds = ("--floor", "1/week", "--ceiling", "1/day", "--host-limit", "a.example=0.9/day")
    figures(run, small, "--budget", "1.5/day", "--spacing", "random", "--output", out, *bounds)
    rate = read_table(out).numbers("crawl_rate")
    assert rate.min() >= 1 / 7 * (1 - 1e-12)
    assert rate.max() <= 1 + 1e-12
    assert rate[:2].sum() <= 0.9 * (1 + 1e-9)
    assert rate.sum() == pytest.approx(1.5, rel=1e-9)


def test_what_cannot_be_used_is_said(run, small):
    result = run("solve", small, "--budget", "10/day", "--ceiling", "2/day", "--spacing", "random")
    assert result.code == 0
    assert "4/day of the budget cannot be used" in result.out
    assert figures(run, small, "--budget", "10/day", "--ceiling", "2/day", "--spacing", "random")[
        "unused"
    ] == pytest.approx(4)


def test_written_rates_add_up_and_intervals_are_their_inverse(run, small, tmp_path):
    out = tmp_path / "rates.csv"
    result = run("solve", small, "--budget", "0.2/day", "--spacing", "random", "--output", out)
    assert f"written: {out}" in result.out.replace("\n", "")
    back = read_table(out)
    rate = back.numbers("crawl_rate")
    assert rate.sum() == pytest.approx(0.2, rel=1e-9)
    assert (rate == 0).any()
    for cell, each in zip(back.text("interval"), rate, strict=True):
        assert cell == ("" if each == 0 else repr(1 / float(each)))


def test_summary_table(run, table):
    path = table(SMALL + "https://b.example/still,0,4\n")
    result = run("solve", path, "--budget", "0.2/day", "--objective", "harmonic", "--spacing", "random")
    for words in (
        "pages never crawled",
        "of importance",
        "threshold",
        "with equal rates",
        "never change",
        "harmonic",
    ):
        assert words in result.out
    assert result.err == ""


def test_file_names_are_not_markup(run, table):
    result = run("solve", table(SMALL, "[red]pages[x].csv"), "--budget", "1/day")
    assert result.code == 0
    assert "[red]pages[x].csv" in result.out


@pytest.mark.slow
def test_the_bundled_example_in_a_process_of_its_own(run_apart, tmp_path):
    plot, out = tmp_path / "demo.png", tmp_path / "rates.parquet"
    result = run_apart("solve", EXAMPLE, "--budget", "150/day", "--plot", plot, "--output", out, "--json")
    assert result.code == 0, result.err
    shown = json.loads(result.out)
    assert shown["pages"] == len(read_table(out)) == 400
    assert shown["uniform_freshness"] < shown["freshness"]
    assert plot.read_bytes().startswith(b"\x89PNG")


BAD = [
    (["solve"], "Missing argument"),
    (["solve", "none.csv", "--budget", "1/day"], "none.csv: cannot be read: No such file or directory"),
    (["solve", "PAGES"], "give one of --budget, --target and --price"),
    (["solve", "PAGES", "--budget", "1/day", "--target", "0.5"], "not --budget and --target"),
    (["solve", "PAGES", "--budget", "0"], "must be above 0"),
    (["solve", "PAGES", "--budget", "inf"], "not understood"),
    (["solve", "PAGES", "--budget", "1e308/day"], "no crawl rates meet 1e+308"),
    (["solve", "PAGES", "--budget", "5000"], "budget '5000': 5000 what? 5000/day or 5000/s"),
    (["solve", "PAGES", "--budget", "1/day", "--ceiling", "2"], "--ceiling: '2': 2 what? 2/day or 2/s"),
    (["solve", "PAGES", "--budget", "1/day", "--host-limit", "a.example=9"], "--host-limit: '9': 9 what?"),
    (["solve", "PAGES", "--budget", "5/fortnight"], "fortnight"),
    (["solve", "PAGES", "--target", "1.5"], "must lie between 0 and 1"),
    (["solve", "PAGES", "--target", "high"], "not a number"),
    (["solve", "PAGES", "--price", "0"], "--price is 0"),
    (["solve", "PAGES", "--price", "nan"], "--price is nan"),
    (["solve", "PAGES", "--budget", "1/day", "--unit", "moon"], "unit of time"),
    (["solve", "PAGES", "--budget", "1/day", "--floor", "x"], "--floor: 'x'"),
    (
        ["solve", "PAGES", "--budget", "1/day", "--floor", "2/day", "--ceiling", "1/day"],
        "--ceiling 1/day is below --floor 2/day",
    ),
    (["solve", "PAGES", "--budget", "1/day", "--host-limit", "a.example"], "HOST=RATE"),
    (["solve", "PAGES", "--budget", "1/day", "--host-limit", "c.example=1/day"], "no page is on c.example"),
    (
        ["solve", "PAGES", "--budget", "1/day", "--host-limit", "a=1/day", "--host-limit", "A=2/day"],
        "a is limited twice",
    ),
    (["solve", "PAGES", "--budget", "1/day", "--objective", "beauty"], "beauty"),
    (["solve", "PAGES", "--budget", "1/day", "--output", "rates.xlsx"], "suffix"),
    (["solve", "PAGES", "--budget", "1/day", "--plot", "none/plot.png"], "does not exist"),
    (["solve", "PAGES", "--budget", "1/day", "--plot", "plot.doc"], "suffix"),
    (["solve", "PAGES", "--budget", "1/day", "--colour"], "--colour"),
    (["dance"], "dance"),
]


@pytest.mark.parametrize(("argv", "message"), BAD)
def test_bad_input_is_one_line_and_exit_code_2(run, small, argv, message):
    result = run(*[small if arg == "PAGES" else arg for arg in argv])
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("recrawl: ")
    assert result.err.count("\n") == 1
    assert message in result.err


@pytest.mark.slow
def test_a_bad_table_is_one_line_and_exit_code_2_for_the_shell(run_apart, table):
    path = table("change_rate,importance\n1,1\n1,-1\n")
    result = run_apart("solve", path, "--budget", "5/day")
    message = f"recrawl: {path}: column importance, row 2: -1 must be finite and at least 0\n"
    assert result == (2, "", message)


def test_help_and_version(run):
    assert "Example" in run("solve", "--help").out
    assert run("--version").out.startswith("recrawl ")
    assert run("--help").code == 0


def test_uniform_freshness_by_hand():
    pages = Pages([1.0, 0.0], [1.0, 1.0], cost=[1.0, 3.0])
    assert uniform_freshness(pages, 4.0, "random") == pytest.approx((0.5 + 1) / 2)
    assert uniform_freshness(pages, 4.0, "even") == pytest.approx((1 - math.exp(-1) + 1) / 2)
    assert uniform_freshness(pages, 2.0, "steps") == pytest.approx((0.5 / (0.5 + 0.5) + 1) / 2)
    assert uniform_freshness(pages, 4.0, "random", ceiling=0.5) == pytest.approx((1 / 3 + 1) / 2)
    hosts = pages.replace(host=["a", "b"])
    assert uniform_freshness(hosts, 4.0, "random", limits={"a": 0.25}) == pytest.approx((0.2 + 1) / 2)
    assert uniform_freshness(pages.replace(evidence=3.0), 4.0, "even") == (1.5 * (1 - 0.75**2) + 1) / 2


def test_figures_hold_no_infinity():
    pages = Pages([1.0, 2.0])
    plan = solve(pages, 1.0, spacing="random")
    shown = Figures.of(pages, plan, Request(budget="1/day", spacing="random"))
    endless = Figures(**{**shown.__dict__, "objective_value": math.inf})
    assert endless.as_dict()["objective_value"] is None


@pytest.mark.parametrize(
    "pages",
    [
        Pages([1.0], [2.0]),
        Pages([0.0, 0.0, 3.0], [1.0, 2.0, 0.0]),
        Pages(np.geomspace(1e-3, 10, 6000), np.geomspace(10, 1, 6000)),
    ],
    ids=["one page", "nothing to show", "sampled"],
)
def test_the_plot_survives_odd_tables(pages, tmp_path):
    request = Request(budget="1/page/day", spacing="random")
    plan = request.solve(pages)
    draw_solution(pages, plan, request, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 10_000
