"""``recrawl estimate``: good logs give figures, bad logs give one line and exit code 2, or repairs with a count."""

import csv
import json
from datetime import UTC, datetime

import numpy as np
import pytest

from recrawl.cli import main
from recrawl.cli.shared.logs.crawl_log import read_crawl_log
from recrawl.errors import ParameterError

GOOD = """url,time,changed
a.example/1,0,
a.example/2,10,0
a.example/1,100,1
a.example/2,210,0
a.example/1,300,0
"""


def written(tmp_path, text, name="log.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def run(capsys, *args):
    with pytest.raises(SystemExit) as stop:
        main(["estimate", *map(str, args)])
    captured = capsys.readouterr()
    return stop.value.code, captured.out, captured.err


def test_rows_become_intervals(tmp_path):
    log = read_crawl_log(written(tmp_path, GOOD))
    assert log.urls == ["a.example/1", "a.example/2"]
    assert log.observations.interval.tolist() == [100.0, 200.0, 200.0]
    assert log.observations.changed.tolist() == [True, False, False]
    assert log.ended_at.tolist() == [100.0, 300.0, 210.0]


BAD = {
    "unsorted": (
        "url,time,changed\na,10,0\nb,0,0\na,4,1\n",
        "column time, row 3: 6 s before the page's crawl in row 1",
    ),
    "unknown column": ("url,time,changed,colour\na,10,0,red\n", "row 0 (header): unknown column 'colour'"),
    "missing column": ("url,changed\na,1\n", "column time is missing"),
    "column twice": ("url,time,changed,time\na,1,1,1\n", "column time comes twice"),
    "truncated": ("url,time,changed\na,10,0\na,20,1\na,3", "row 3: the last line is cut off: 2 fields, not 3"),
    "fields": ("url,time,changed\na,10\na,20,1\n", "row 1: has 2 fields, not 3"),
    "zones": (
        "url,time,changed\na,2026-01-01T00:00:00+00:00,0\na,2026-01-02T00:00:00,1\n",
        "column time, row 2: '2026-01-02T00:00:00' has no time zone, rows before it UTC offset +0 h: mixed time zones",
    ),
    "offsets": (
        "url,time,changed\na,2026-01-01T00:00:00Z,0\na,2026-01-02T00:00:00+02:00,1\n",
        "has UTC offset +2 h, rows before it UTC offset +0 h",
    ),
    "milliseconds": ("url,time,changed\na,1700000000000,0\n", "looks like milliseconds"),
    "time": ("url,time,changed\na,soon,0\n", "column time, row 1: 'soon' is neither seconds since 1970 nor an ISO"),
    "infinite time": ("url,time,changed\na,inf,0\n", "column time, row 1: 'inf' is not a time"),
    "changed": ("url,time,changed\na,1,maybe\n", "column changed, row 1: 'maybe' is neither true nor false"),
    "empty changed": ("url,time,changed\na,1,\na,2,\n", "column changed, row 2: is empty"),
    "signals": ("url,time,changed,signals\na,1,0,-2\n", "column signals, row 1: '-2' is not a number of at least 0"),
    "url": ("url,time,changed\n,1,0\n", "column url, row 1: is empty"),
    "empty": ("", "the file is empty"),
    "header only": ("url,time,changed\n", "no usable row"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_logs_end_in_one_line_and_exit_code_2(case, tmp_path, capsys):
    text, words = BAD[case]
    code, out, err = run(capsys, written(tmp_path, text))
    assert code == 2
    assert words in err
    assert err.count("\n") == 1
    assert out == ""


REPAIRED = {
    "unsorted": ({"rows out of order, sorted": 1}, [6.0]),
    "unknown column": ({"unknown column 'colour', ignored": 1}, []),
    "truncated": ({"truncated last line, dropped": 1}, [10.0]),
    "fields": ({"rows with a wrong number of fields, dropped": 1}, []),
    "zones": ({"times in another zone than the first, converted to UTC": 1}, [86400.0]),
    "offsets": ({"times in another zone than the first, converted to UTC": 1}, [79200.0]),
    "milliseconds": ({"times in milliseconds, divided by 1000": 1}, []),
    "empty changed": ({"rows with empty changed, dropped": 1}, []),
}


@pytest.mark.parametrize("case", REPAIRED)
def test_lenient_repairs_and_counts(case, tmp_path):
    log = read_crawl_log(written(tmp_path, BAD[case][0]), lenient=True)
    repairs, interval = REPAIRED[case]
    assert log.repairs == repairs
    assert log.observations.interval.tolist() == interval


def test_lenient_drops_bad_rows_and_keeps_the_rest(tmp_path):
    text = GOOD + "a.example/1,later,1\na.example/1,400,perhaps\n,500,1\na.example/1,600,yes\n"
    log = read_crawl_log(written(tmp_path, text), lenient=True)
    assert log.observations.interval.tolist() == [100.0, 200.0, 300.0, 200.0]
    assert sum(log.repairs.values()) == 3
    with pytest.raises(ParameterError):
        read_crawl_log(written(tmp_path, text))


def test_failed_crawls_observe_nothing_and_hand_their_signals_on(tmp_path):
    text = "url,time,changed,signals_feed,signals_sitemap,status,importance\n"
    text += "a,0,,0,0,200,\na,10,0,1,0,503,\na,20,1,2,1,200,7\nb,0,0,5,0,200,\n"
    log = read_crawl_log(written(tmp_path, text))
    assert log.sources == ["feed", "sitemap"]
    assert log.n_failed == 1
    assert log.observations.interval.tolist() == [20.0]
    assert log.observations.signals.tolist() == [[3.0, 1.0]]
    assert log.importance.tolist() == [7.0, 1.0]


def crawl_rows(seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for page in range(30):
        rate = rng.gamma(2.0, 0.25) / 86400
        at = 1.7e9 + rng.uniform(0, 86400)
        rows.append((f"https://h{page % 3}.example/d/{page}", at, False, 0))
        for _ in range(40):
            gap = rng.exponential(43200.0)
            at += gap
            hits, false = rng.poisson(0.5 * rate * gap), rng.poisson(0.3 * rate * gap)
            rows.append((rows[-1][0], at, bool(hits + rng.poisson(0.5 * rate * gap)), int(hits + false)))
    return sorted(rows, key=lambda row: row[1])


@pytest.fixture
def log_file(tmp_path):
    path = tmp_path / "crawls.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["url", "time", "changed", "signals"])
        writer.writerows((u, datetime.fromtimestamp(t, UTC).isoformat(), int(z), n) for u, t, z, n in crawl_rows())
    return path


@pytest.mark.slow
def test_json_table_and_picture(log_file, tmp_path, capsys):
    rates, plot = tmp_path / "rates.csv", tmp_path / "rates.png"
    code, out, _ = run(capsys, log_file, "--json", "--output", rates, "--plot", plot, "--limit", 3)
    assert code == 0
    figures = json.loads(out)
    assert figures["pages"] == 30
    assert figures["crawls"] == 1200
    assert len(figures["rates"]) == 3
    assert 0.2 < figures["change_rate"]["median"] < 1.0
    assert set(figures["signals"]) == {"signals"}
    assert len(figures["poisson"]["by_hour"]) == 24
    rows = list(csv.DictReader(rates.read_text().splitlines()))
    assert len(rows) == 30
    assert all(float(r["low"]) <= float(r["change_rate"]) <= float(r["high"]) for r in rows)
    assert {"recall", "false_rate", "shape"} < set(rows[0])
    assert plot.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.slow
@pytest.mark.parametrize("signals", [True, False])
def test_solve_reads_what_estimate_writes(log_file, tmp_path, capsys, signals):
    log, rates = tmp_path / "log.csv", tmp_path / "rates.csv"
    lines = log_file.read_text().splitlines()
    log.write_text("\n".join(lines if signals else [line.rsplit(",", 1)[0] for line in lines]) + "\n")
    assert run(capsys, log, "--output", rates)[0] == 0
    with pytest.raises(SystemExit) as stop:
        main(["solve", str(rates), "--budget", "40/day", "--json"])
    assert stop.value.code == 0
    assert 0 < json.loads(capsys.readouterr().out)["freshness"] < 1


@pytest.mark.parametrize("method", ["posterior", "mle", "smoothed", "prior-hours", "regular", "naive", "complete"])
def test_text_with_every_method(log_file, capsys, method):
    code, out, err = run(capsys, log_file, "--method", method, "--group", "folder", "--unit", "hour")
    assert code == 0, err
    assert "30 pages, 1200 intervals" in out
    assert "changes per hour" in out
    assert "by weekday" in out


def test_parquet_gives_the_same(log_file, tmp_path, capsys):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    rows = crawl_rows()
    path, output = tmp_path / "crawls.parquet", tmp_path / "rates.parquet"
    moments = pa.array([round(t * 1e6) for _, t, _, _ in rows], pa.timestamp("us", tz="UTC"))
    names = {"url": [r[0] for r in rows], "changed": [r[2] for r in rows], "signals": [r[3] for r in rows]}
    pq.write_table(pa.table({**names, "time": moments}), path)
    _, out, _ = run(capsys, log_file, "--json")
    code, again, _ = run(capsys, path, "--json", "--output", output)
    assert code == 0
    first, second = json.loads(out), json.loads(again)
    for key in ("pages", "crawls", "changes", "prior"):
        assert first[key] == pytest.approx(second[key], rel=1e-5)
    assert first["signals"]["signals"] == pytest.approx(second["signals"]["signals"], rel=1e-5)
    assert pq.read_table(output).num_rows == 30


def test_cut_off_parquet_and_bad_options(log_file, tmp_path, capsys):
    broken = tmp_path / "x.parquet"
    broken.write_bytes(b"PAR1 and then nothing")
    for args, words in [
        ((broken,), "not a Parquet file, or cut off"),
        ((tmp_path / "none.csv",), "No such file"),
        ((log_file, "--level", "2"), "--level is 2.0"),
        ((log_file, "--output", tmp_path / "x.txt"), "suffix of an output"),
        ((log_file, "--plot", tmp_path / "no" / "x.png"), f"the folder {tmp_path / 'no'} does not exist"),
        ((log_file, "--method", "magic"), "magic"),
    ]:
        code, _, err = run(capsys, *args)
        assert code == 2
        assert words in err
