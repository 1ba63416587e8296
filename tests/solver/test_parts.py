"""Solving for pages in parts gives what solving for all of them in one piece gives."""

import itertools
import json

import numpy as np
import pytest

from recrawl import Pages, solve
from recrawl.cli.commands import call
from recrawl.errors import ParameterError
from recrawl.solver.curves import build_curves
from recrawl.solver.parts import PartsProblem

N = 900


def drawn(seed=0, **more):
    rng = np.random.default_rng(seed)
    rate = rng.gamma(0.5, 1.0, N) + 1e-4
    return Pages(rate, importance=rng.pareto(1.5, N) + 0.01, **more)


def cut(pages, n_parts):
    edges = np.linspace(0, len(pages), n_parts + 1).astype(int)
    for first, last in itertools.pairwise(edges):
        rows = slice(first, last)
        cost = pages.cost if np.ndim(pages.cost) == 0 or len(pages.cost) == 1 else pages.cost[rows]
        yield Pages(pages.change_rate[rows], importance=pages.importance[rows], cost=cost)


def in_parts(pages, n_parts, objective="freshness", spacing="even", floor=0.0, ceiling=None):
    parts = [build_curves(part, objective, spacing, floor, ceiling) for part in cut(pages, n_parts)]
    return PartsProblem(lambda question, *more: [question(part, *more) for part in parts]), parts


@pytest.mark.parametrize("n_parts", [1, 2, 7])
@pytest.mark.parametrize(
    ("goal", "options"),
    [
        ({"budget": 50.0}, {}),
        ({"budget": 5000.0}, {}),
        ({"target": 0.6}, {}),
        ({"price": 0.01}, {}),
        ({"budget": 50.0}, {"spacing": "random"}),
        ({"budget": 50.0}, {"objective": "harmonic"}),
        ({"budget": 50.0}, {"floor": 0.01, "ceiling": 0.5}),
        ({"budget": 9.0}, {"floor": 0.01}),  # the floor alone
        ({"budget": 90.0}, {"ceiling": 0.05}),  # more than can be used
    ],
)
def test_parts_give_what_one_piece_gives(n_parts, goal, options):
    pages = drawn()
    one = solve(pages, **goal, **options)
    problem, parts = in_parts(pages, n_parts, **options)
    plan = problem.solve(options.get("objective", "freshness"), **goal)
    rates = np.concatenate([plan.mix.rates(part) for part in parts])
    np.testing.assert_allclose(rates, one.crawl_rate, rtol=1e-9, atol=1e-12)
    assert plan.threshold == pytest.approx(one.threshold, rel=1e-9)
    assert plan.freshness == pytest.approx(one.freshness, rel=1e-9)
    assert plan.objective == pytest.approx(one.objective, rel=1e-9)
    assert plan.spent == pytest.approx(one.spent, rel=1e-9)
    assert plan.gap <= max(one.gap, 1e-9)
    assert (plan.n_pages, plan.n_never, plan.unused) == (N, one.n_never, pytest.approx(one.unused, rel=1e-9))


def test_costs_that_differ():
    pages = drawn(cost=np.random.default_rng(1).uniform(1.0, 5.0, N))
    one = solve(pages, budget=80.0)
    problem, parts = in_parts(pages, 3)
    plan = problem.solve("freshness", budget=80.0)
    rates = np.concatenate([plan.mix.rates(part) for part in parts])
    np.testing.assert_allclose(rates, one.crawl_rate, rtol=1e-9, atol=1e-12)


def test_what_cannot_be_met_is_refused_as_in_one_piece():
    with pytest.raises(ParameterError, match=r"floor: keeping to it costs 90 per time"):
        in_parts(drawn(), 3, floor=0.1)[0].solve("freshness", budget=50.0)
    with pytest.raises(ParameterError, match="the most that can be reached"):
        in_parts(drawn(), 3, ceiling=0.001)[0].solve("freshness", target=0.9)
    with pytest.raises(ParameterError, match="importance is 0 on every page"):
        in_parts(Pages(np.ones(9), importance=np.zeros(9)), 3)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pages = drawn()
    lines = [f"{url},{rate!r},{weight!r}" for url, (rate, weight) in enumerate(
        zip(pages.change_rate.tolist(), pages.importance.tolist(), strict=True))]  # fmt: skip
    (tmp_path / "parts").mkdir()
    (tmp_path / "rates").mkdir()
    for name, rows in (("all.csv", lines), *((f"parts/{k}.csv", lines[k::3]) for k in range(3))):
        (tmp_path / name).write_text("\n".join(["url,change_rate,importance", *rows]) + "\n")
    return tmp_path


def solved(capsys, *argv):
    assert call(["solve", *argv, "--budget", "50/day", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_command_solves_parts(files, capsys):
    one = solved(capsys, "all.csv", "--output", "all-rates.csv")
    found = solved(capsys, "parts/*.csv", "--output", "rates")
    for name in ("freshness", "spent", "threshold", "never_crawled_importance"):
        assert found[name] == pytest.approx(one[name], rel=1e-9)
    assert (found["pages"], found["never_crawled"]) == (one["pages"], one["never_crawled"])
    table = dict(read(files / "all-rates.csv"))
    parts = dict(row for k in range(3) for row in read(files / "rates" / f"{k}.csv"))
    assert parts.keys() == table.keys()
    assert all(parts[url] == pytest.approx(rate, rel=1e-9) for url, rate in table.items())


@pytest.mark.slow
def test_other_processes_give_the_same(files, capsys):
    alone = solved(capsys, *(f"parts/{k}.csv" for k in range(3)))
    assert solved(capsys, *(f"parts/{k}.csv" for k in range(3)), "--processes", "2") == alone


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["parts/*.csv", "--plot", "a.png"], "--plot needs the table in one file"),
        (["parts/*.csv", "--host-limit", "a=1/day"], "--host-limit needs the table in one file"),
        (["parts/*.csv", "--output", "a.csv"], "a.csv: is no folder"),
        (["nowhere/*.csv"], "there is no such file"),
        (["parts/*.csv", "parts/0.csv"], "two parts are named 0.csv"),
        (["all.csv", "--processes", "9999"], "--processes is 9999: at most"),
    ],
)
def test_what_parts_cannot_do(files, capsys, argv, message):
    assert call(["solve", *argv, "--budget", "50/day"]) == 2
    assert message in capsys.readouterr().err


def read(path):
    names, *rows = (line.split(",") for line in path.read_text().splitlines())
    return [(row[names.index("url")], float(row[names.index("crawl_rate")])) for row in rows]
