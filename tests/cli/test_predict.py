"""``recrawl predict``: a model from crawls, rates for pages, and one line for tables that do not fit."""

import csv
import json

import numpy as np
import pytest

from recrawl.cli import main


def run(capsys, *args):
    with pytest.raises(SystemExit) as stop:
        main(["predict", *map(str, args)])
    captured = capsys.readouterr()
    return stop.value.code, captured.out, captured.err


@pytest.fixture(scope="module")
def crawls(tmp_path_factory):
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("predict") / "crawls.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["url", "time", "interval", "changed", "language", "size"])
        for i in range(3000):
            page = int(rng.integers(0, 700))
            section = "news" if page % 3 == 0 else "help"
            hit = rng.random() < (0.6 if section == "news" else 0.05)
            size = "" if i % 50 == 0 else f"{rng.random():.3f}"
            rows.writerow([f"https://a.example/{section}/{page}", i, 1.5, str(hit).lower(), "en", size])
    return path


@pytest.fixture(scope="module")
def trained(crawls):
    with pytest.raises(SystemExit) as stop:
        main(["predict", "train", str(crawls), "--out", str(crawls.parent / "model.json"), "--threads", "1"])
    assert stop.value.code == 0
    return crawls.parent / "model.json"


def test_training_prints_scores(capsys, crawls, tmp_path):
    code, out, _ = run(capsys, "train", crawls, "--out", tmp_path / "m.json", "--threads", 1)
    assert code == 0
    assert "3,000 crawls of" in out
    assert "url, size, language" in out
    assert "new pages" in out


def test_json_holds_everything(capsys, crawls, tmp_path):
    code, out, _ = run(
        capsys, "train", crawls, "--out", tmp_path / "m.json", "--threads", 1, "--categories", "language", "--json"
    )
    found = json.loads(out)
    assert code == 0
    assert found["columns"] == ["url", "language"]
    assert found["scores"]["test"]["auc"] > 0.75
    assert found["dates"] == [0.0, 2999.0]


def test_scores_are_written_beside_the_pages(capsys, trained, tmp_path):
    pages = tmp_path / "pages.csv"
    pages.write_text(
        "url,language,size,note\nhttps://a.example/news/9999,en,,x\nhttps://a.example/help/9998,en,0.5,y\n"
    )
    code, out, _ = run(capsys, "score", trained, pages, "--out", tmp_path / "rates.csv", "--json")
    assert (code, json.loads(out)["pages"]) == (0, 2)
    rows = list(csv.DictReader((tmp_path / "rates.csv").read_text().splitlines()))
    assert [row["note"] for row in rows] == ["x", "y"]
    news, help_ = (float(row["change_rate"]) for row in rows)
    assert news > 3 * help_ > 0
    assert float(rows[0]["evidence"]) > 0
    code, out, _ = run(capsys, "score", trained, pages, "--out", tmp_path / "rates.csv")
    assert "2 pages" in out


def test_pages_without_a_column_are_refused(capsys, trained, tmp_path):
    pages = tmp_path / "pages.csv"
    pages.write_text("url,size\nhttps://a.example/news/1,0.5\n")
    code, out, err = run(capsys, "score", trained, pages, "--out", tmp_path / "rates.csv")
    assert (code, out) == (2, "")
    assert "lacks language; the model reads url, size, language" in err
    assert not (tmp_path / "rates.csv").exists()


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ("url,changed\na,1\n", [], "has no column interval"),
        ("url,interval,changed\na,1,maybe\n", [], "row 1: 'maybe' is neither true nor false"),
        ("url,interval,changed\na,1,1\nb,1,1\n", [], "rows with a change and rows without"),
        ("url,interval,changed\na,-1,1\n", [], "above 0"),
        ("url,interval,changed\na,x,1\n", [], "'x' is not a number"),
        ("interval,changed\n1,1\n", [], "needs input columns"),
        ("url,interval,changed\na,1,1\n", ["--numbers", "size"], "has no column size"),
        ("url,interval,changed\na,1,1\n", ["--categories", "changed"], "cannot be an input"),
        ("url,interval,changed\na,1,1\n", ["--family", "forest"], "forest"),
    ],
)
def test_bad_tables_are_one_line(capsys, tmp_path, table, options, message):
    path = tmp_path / "t.csv"
    path.write_text(table)
    code, out, err = run(capsys, "train", path, "--out", tmp_path / "m.json", *options)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "m.json").exists()


def test_a_model_that_is_none_is_refused(capsys, tmp_path):
    (tmp_path / "m.json").write_text("{}")
    (tmp_path / "p.csv").write_text("url\na\n")
    code, _, err = run(capsys, "score", tmp_path / "m.json", tmp_path / "p.csv", "--out", tmp_path / "r.csv")
    assert code == 2
    assert "not a model file of recrawl" in err


def test_pages_are_added_with_predicted_rates(capsys, crawls, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = run(capsys, "train", crawls, "--out", "m.json", "--threads", 1, "--numbers", "size")
    assert code == 0, err
    urls = ["https://a.example/news/9999", "https://a.example/help/9998"]
    (tmp_path / "urls.txt").write_text("\n".join(urls))
    with pytest.raises(SystemExit) as stop:
        main(["add", "urls.txt", "--model", "m.json"])
    assert stop.value.code == 2
    assert "reads url, size, but only URLs are known" in capsys.readouterr().err
    assert not (tmp_path / "recrawl.db").exists()

    lines = [line.rsplit(",", 2)[0] for line in crawls.read_text().splitlines()]
    (tmp_path / "plain.csv").write_text("\n".join(lines))
    code, _, err = run(capsys, "train", "plain.csv", "--out", "m.json", "--threads", 1)
    assert code == 0, err
    with pytest.raises(SystemExit) as stop:
        main(["add", "urls.txt", "--model", "m.json"])
    assert stop.value.code == 0

    from recrawl.estimate import Predictor
    from recrawl.store import BlockingStore, SqliteStore

    prior = Predictor.load("m.json").prior({"url": urls})
    with BlockingStore(SqliteStore("recrawl.db")) as store:
        rows = store.load()
    order = np.argsort(np.array(rows["url"]))[::-1]
    given = np.array(rows["rate_evidence"])[order]  # changes and time; the rate follows from it and from the tables
    np.testing.assert_allclose(given[:, 0] / given[:, 1] * 86400.0, prior.mean, rtol=1e-6)
    np.testing.assert_allclose(given[:, 0], prior.rows(len(urls))[0], rtol=1e-6)
