"""``recrawl plan``: what it makes of logs of every kind, and what it refuses."""

import csv
import json

import numpy as np
import pytest

pytestmark = pytest.mark.slow

HEAD = "url,time,changed\n"


def crawl_log(path, n=60, interval=4.0, days=120.0, seed=1, **columns):
    """A log of pages that change at gamma rates, crawled at one interval; their rates per day."""
    rng = np.random.default_rng(seed)
    rate = rng.gamma(1.0, 0.2, n)
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["url", "time", "changed", *columns])
        for i in range(n):
            changes = np.cumsum(rng.exponential(1 / rate[i], int(3 * rate[i] * days) + 50))
            last = None
            for at in np.arange(rng.random() * interval, days, interval):
                changed = last is not None and bool(((changes > last) & (changes <= at)).any())
                out.writerow([f"https://a.example/{i}", 1.7e9 + at * 86400, int(changed), *columns.values()])
                last = at
    return rate


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.csv"
    crawl_log(path)
    return path


@pytest.mark.slow
def test_everything_is_answered(run, log, tmp_path):
    result = run("plan", log, "--target", "90%", "--plot", tmp_path / "plan.png", "--json")
    assert (result.code, result.err) == (0, ""), result
    found = json.loads(result.out)
    assert (found["pages"], found["crawls"]) == (60, 60 * 29)
    assert found["own_budget"]["per_day"] == pytest.approx(60 / 4, rel=0.05)
    half, same, double = found["budgets"]
    assert [row["times_own"] for row in (half, same, double)] == pytest.approx([0.5, 1.0, 2.0])
    assert half["freshness"] < same["freshness"] < double["freshness"]
    assert all(row["low"] < row["freshness"] < row["high"] for row in found["budgets"])
    assert all(row["alike"] < row["freshness"] for row in found["budgets"])
    assert found["now"]["low"] < same["alike"] + 0.02
    assert found["now"]["freshness"] == pytest.approx(found["now"]["by_rates"], abs=0.03)
    assert found["target"]["low_per_day"] < found["target"]["per_day"] < found["target"]["high_per_day"]
    assert (tmp_path / "plan.png").stat().st_size > 5000


def test_the_same_for_people(run, log):
    result = run("plan", log, "--target", "0.9")
    assert result.code == 0
    for text in ("so far the copies were fresh", "0.5×", "1×", "2×", "for 0.9: ", "90% interval"):
        assert text in result.out


def test_budgets_can_be_chosen(run, log):
    found = json.loads(run("plan", log, "--budget", "30/day", "--budgets", "1/page/day,5/day", "--json").out)
    assert [row["per_day"] for row in found["budgets"]] == pytest.approx([5.0, 30.0, 60.0])


@pytest.mark.slow
def test_json_lines_and_parquet_say_the_same(run, log, tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    with log.open() as file:
        rows = [
            {"url": r["url"], "time": float(r["time"]), "changed": r["changed"] == "1"} for r in csv.DictReader(file)
        ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    found = [
        json.loads(run("plan", path, "--json").out)
        for path in (log, *(tmp_path / f"log.{k}" for k in ("jsonl", "parquet")))
    ]
    for one in found:
        del one["file"]
    assert found[0] == found[1] == found[2]


def test_importance_and_signals(run, tmp_path):
    crawl_log(tmp_path / "log.csv", importance=3, signals=1)
    result = run("plan", tmp_path / "log.csv")
    assert "signals are ignored" in result.out


def test_pages_left_alone_for_long_count_as_old(run, tmp_path):
    """The same log, but half of its pages are never crawled again after ten days."""
    crawl_log(tmp_path / "log.csv")
    with (tmp_path / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    kept = [r for r in rows if int(r["url"].rsplit("/", 1)[1]) % 2 or float(r["time"]) < 1.7e9 + 10 * 86400]
    with (tmp_path / "less.csv").open("w", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(kept)
    now = [json.loads(run("plan", tmp_path / name, "--json").out)["now"] for name in ("log.csv", "less.csv")]
    assert now[1]["freshness"] < now[0]["freshness"] - 0.1
    assert now[1]["by_rates"] < now[0]["by_rates"] - 0.1


@pytest.mark.parametrize(
    ("text", "arguments", "line"),
    [
        ("", (), "the file is empty"),
        ("url,time\na,1\n", (), "column changed is missing"),
        (HEAD, (), "no usable row"),
        (HEAD + "a,1,0\nb,2,0\n", (), "no page was crawled twice"),
        (HEAD + "a,1,0\na,1,0\n", (), "no page was crawled twice"),
        ("url,time,changed,status\na,1,0,200\na,2,1,200\na,3,0,404\n", (), "every page is gone by its end"),
        (HEAD + "a,soon,0\n", (), "column time, row 1"),
        (HEAD + "a,1,0\na,9,1\n", ("--target", "1.5"), "--target is '1.5'"),
        (HEAD + "a,1,0\na,9,1\n", ("--level", "0"), "--level is 0.0"),
        (HEAD + "a,1,0\na,9,1\n", ("--budget", "lots"), "'lots' is not understood"),
        (HEAD + "a,1,0\na,9,1\n", ("--budgets", "1/day,-3/day"), "must be above 0"),
        (HEAD + "a,1,0\na,9,1\n", ("--plot", "x.doc"), "the suffix of a plot"),
        ("url,time,changed,importance\na,1,0,0\na,9,1,0\n", (), "importance is 0 on every page"),
    ],
)
def test_bad_input_is_one_line(run, table, text, arguments, line):
    result = run("plan", table(text, "log.csv"), *arguments)
    assert (result.code, result.out) == (2, ""), result
    assert line in result.err
    assert result.err.startswith("recrawl: ")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "the file is empty"),
        ("[1, 2]\n", "row 1"),
        ('{"url": "a", "time": 1, "changed": 0}\n{"url": "a", "ti', "the last line is cut off"),
        ('{"url": "a", "time": 1, "changed": 0}\nnot json\n{"url": "a", "time": 3, "changed": 0}\n', "row 2"),
        (
            '{"url": "a", "time": 1, "changed": 0}\n{"url": "a", "time": 3, "changed": 0, "x": 1}\n',
            "unknown column 'x'",
        ),
        ("[" * 100_000 + "\n", "row 1"),
    ],
)
def test_bad_json_lines_are_one_line(run, table, text, line):
    result = run("plan", table(text, "log.jsonl"))
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), result
    assert line in result.err


def test_a_missing_file_is_one_line(run, tmp_path):
    result = run("plan", tmp_path / "none.csv")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)


def test_failed_crawls_are_budget_too(run, tmp_path):
    crawl_log(tmp_path / "a.csv", n=20, status=200)
    text = (tmp_path / "a.csv").read_text()
    more = "".join(f"https://a.example/0,{1.7e9 + 86400 * 100 + k},0,503\n" for k in range(100))
    (tmp_path / "b.csv").write_text(text + more)
    spent = [
        json.loads(run("plan", tmp_path / name, "--lenient", "--json").out)["own_budget"]["per_day"]
        for name in ("a.csv", "b.csv")
    ]
    assert spent[1] > spent[0] * 1.1


def test_pages_that_are_gone_are_not_planned_for(run, tmp_path):
    """Half of the pages are found to be gone after ten days; the other half is all there is to plan for."""
    crawl_log(tmp_path / "log.csv", status=200)
    with (tmp_path / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    early = [r for r in rows if int(r["url"].rsplit("/", 1)[1]) % 2 or float(r["time"]) < 1.7e9 + 10 * 86400]
    gone = [
        {"url": f"https://a.example/{k}", "time": 1.7e9 + (14 + more) * 86400, "changed": 0, "status": 404}
        for k in range(0, 60, 2)
        for more in (0, 30)
    ]
    for name, some in (
        ("all.csv", [r for r in rows if int(r["url"].rsplit("/", 1)[1]) % 2]),
        ("gone.csv", early + gone),
    ):
        with (tmp_path / name).open("w", newline="") as file:
            out = csv.DictWriter(file, list(rows[0]))
            out.writeheader()
            out.writerows(some)
    alone, found = (json.loads(run("plan", tmp_path / name, "--json").out) for name in ("all.csv", "gone.csv"))
    assert (found["pages"], found["pages_gone"], alone["pages"]) == (30, 30, 30)
    assert found["now"]["freshness"] == pytest.approx(alone["now"]["freshness"], abs=0.05)
    assert found["budgets"][1]["alike"] == pytest.approx(alone["budgets"][1]["alike"], abs=0.05)
