"""Histories of other tools: each gives what a crawl log of the same checks gives; a broken entry loses only itself."""

import gzip
import json
import os
import sqlite3
import zipfile

import numpy as np
import pytest

from recrawl.cli.shared.logs.crawl_log import read_crawl_log, remarks
from recrawl.cli.shared.logs.roles import LogOptions
from recrawl.errors import ParameterError

from . import stores
from .histories import (
    STORES,
    broken_warc,
    expected,
    same_checks,
    saved_sitemaps,
    sitemap_log,
    story,
    warc_file,
)
from .stores import CHECKS, DAY, START, URLS


@pytest.mark.parametrize("packed", [False, True])
def test_warc_is_the_same_history(tmp_path, packed):
    path = warc_file(tmp_path / "crawl.dat", stores.warc_records(CHECKS), packed)
    log = read_crawl_log(path)
    assert story(log) == story(expected(tmp_path))
    assert log.repairs == {}


@pytest.mark.parametrize("packed", [False, True])
def test_broken_warc_records_lose_only_themselves(tmp_path, packed):
    path, n = broken_warc(tmp_path / "crawl.warc", packed)
    log = read_crawl_log(path)
    assert story(log) == story(expected(tmp_path))
    assert log.repairs == {"broken WARC records, left out": n}
    assert any("crawl.warc, record" in line and "'yesterday' is not a time" in line for line in remarks(log))


def test_a_cut_off_warc_loses_its_last_record(tmp_path):
    records = stores.warc_records(CHECKS)
    log = read_crawl_log(warc_file(tmp_path / "a", [*records[:-1], records[-1][:-40]], False))
    assert story(log) == story(expected(tmp_path, CHECKS[:-1]))
    assert log.repairs == {"broken WARC records, left out": 1}


def test_warc_as_one_gzip_member_and_in_a_folder(tmp_path):
    records, folder = stores.warc_records(CHECKS), tmp_path / "archive"
    folder.mkdir()
    half = len(records) // 2
    (folder / "b.warc.gz").write_bytes(gzip.compress(b"".join(records[half:])))
    (folder / "a.warc").write_bytes(b"".join(records[:half]))
    (folder / "notes.txt").write_text("mine")
    log = read_crawl_log(folder)
    assert story(log) == story(expected(tmp_path))
    assert log.repairs == {"files of another kind, left out": 1}


def test_revisits_of_what_is_elsewhere_are_compared_with_each_other(tmp_path):
    form = {"WARC_Profile": "http://netpreserve.org/warc/1.0/revisit/identical-payload-digest"}
    records = [
        stores.warc_record("revisit", URLS[0], START + k * DAY, b"", WARC_Payload_Digest=digest, **form)
        for k, digest in enumerate(("sha1:A", "sha1:A", "sha1:B"))
    ]
    answer = stores.warc_record("response", URLS[0], START + 3 * DAY, stores.http(b"<p>text</p>"))
    log = read_crawl_log(warc_file(tmp_path / "a", [*records, answer], False))
    assert log.observations.changed.tolist() == [False, True]
    assert log.repairs == {"intervals with nothing to compare, left out": 1}


def test_redirects_in_warc_are_left_out(tmp_path):
    moved = stores.warc_record("response", URLS[0], START + 60, stores.http(b"", "301 Moved", "Location: /x"))
    log = read_crawl_log(warc_file(tmp_path / "a", [*stores.warc_records(CHECKS), moved], False))
    assert story(log) == story(expected(tmp_path))
    assert log.repairs == {"redirects, left out": 1}


@pytest.mark.parametrize("form", ["own", "common", "zip", "file"])
def test_changedetection_is_the_same_history(tmp_path, form):
    path = stores.changedetection(tmp_path / "datastore", CHECKS, "common" if form in ("common", "file") else "own")
    if form == "zip":
        path = stores.zipped(path, tmp_path / "backup.dat")
    log = read_crawl_log(path / "url-watches.json" if form == "file" else path)
    assert story(log) == story(expected(tmp_path, same_checks(CHECKS)))
    assert log.repairs == {}


def test_the_last_failed_check_of_changedetection_counts(tmp_path):
    checks = [one for one in CHECKS if one.at <= START + 5 * DAY]
    log = read_crawl_log(stores.changedetection(tmp_path / "datastore", checks))
    assert story(log) == story(expected(tmp_path, checks))
    assert log.n_failed == 1


def test_broken_watches_and_snapshots_lose_only_themselves(tmp_path):
    folder = stores.changedetection(tmp_path / "datastore", CHECKS)
    secret = tmp_path / "secret.txt"
    secret.write_text("not of the store")
    first, second = sorted(one for one in folder.iterdir() if one.is_dir())[:2]
    with (first / "history.txt").open("a") as file:
        file.write(
            f"{START + 60},../../secret.txt\n{START + 61},{secret}\nsoon,x.txt\n{START + 62}\n9999999999,a.txt\n"
        )
        file.write(f"{START + 63},link.txt\n")
    (first / "link.txt").symlink_to(secret)
    with (second / "history.txt").open("a") as file:
        file.write(f"{START + 64},bomb.txt.br\n{START + 65},bad.txt.br\n")
    (second / "bomb.txt.br").write_bytes(stores.brotli.compress(bytes(40 << 20), quality=1))
    (second / "bad.txt.br").write_bytes(b"\xff" * 50)
    for name, text in (("x1", '{"url": "https://c.example/'), ("x2", '{"url": "ftp://c.example/"}'), ("x3", "[1]")):
        (folder / name).mkdir()
        (folder / name / "watch.json").write_text(text)
        (folder / name / "history.txt").write_text(f"{START},a.txt\n")
    (folder / "x4").mkdir()
    (folder / "x4" / "watch.json").write_text(json.dumps({"url": URLS[0]}))
    log = read_crawl_log(folder)
    assert story(log) == story(expected(tmp_path, same_checks(CHECKS)))
    assert log.repairs == {
        "broken snapshots, left out": 8,
        "broken watches, left out": 3,
        "further watches of the same page, left out": 1,
    }
    assert any("secret.txt is not in the folder of the watch" in line for line in remarks(log))


def test_names_in_a_backup_lead_nowhere(tmp_path):
    path = stores.zipped(stores.changedetection(tmp_path / "datastore", CHECKS), tmp_path / "backup.zip")
    with zipfile.ZipFile(path, "a") as out:
        out.writestr("../../evil/watch.json", json.dumps({"url": "https://evil.example/"}))
        out.writestr("/tmp/evil.txt", "x")
    before = sorted(tmp_path.rglob("*"))
    assert story(read_crawl_log(path)) == story(expected(tmp_path, same_checks(CHECKS)))
    (tmp_path / "own.csv").unlink()
    assert sorted(tmp_path.rglob("*")) == before


def test_changedetection_without_counts_takes_the_distance_that_is_set(tmp_path):
    folder = stores.changedetection(tmp_path / "datastore", CHECKS)
    for file in folder.glob("*/watch.json"):
        file.write_text(json.dumps(json.loads(file.read_text()) | {"check_count": 0}))
    by_setting, by_option = read_crawl_log(folder), read_crawl_log(folder, LogOptions(every=float(DAY)))
    assert np.median(by_setting.observations.interval) == pytest.approx(7 * 3600, rel=0.15)
    assert story(by_option) == story(expected(tmp_path, same_checks(CHECKS)))


@pytest.mark.parametrize("tool", STORES)
def test_urlwatch_is_the_same_history(tmp_path, tool):
    path = STORES[tool](tmp_path / ("cache.db" if tool == "urlwatch" else "snapshots.db"), CHECKS)
    for where in (path, path.parent):
        log = read_crawl_log(where)
        assert story(log) == story(expected(tmp_path))
        assert log.repairs == {}


def test_urlwatch_before_it_counted_tries(tmp_path):
    path = stores.urlwatch(tmp_path / "cache.db", [one for one in CHECKS if one.state])
    with sqlite3.connect(path) as db:
        db.execute("ALTER TABLE CacheEntry DROP COLUMN tries")
        db.execute("ALTER TABLE CacheEntry DROP COLUMN etag")
    db.close()
    assert len(read_crawl_log(path).urls) == 3


def test_runs_that_changed_nothing_are_filled_in(tmp_path):
    checks = [one for one in CHECKS if one.url != URLS[0]]
    path = stores.urlwatch(tmp_path / "cache.db", checks)
    few, all_runs = read_crawl_log(path), read_crawl_log(path, LogOptions(every=float(DAY)))
    last = max(one.at for one, _, _ in stores.kept_by_urlwatch(checks))
    assert story(all_runs) == story(expected(tmp_path, [one for one in checks if one.at <= last]))
    assert len(few.observations.interval) < len(all_runs.observations.interval)
    assert few.observations.changed.sum() == all_runs.observations.changed.sum()


def test_broken_rows_of_urlwatch_lose_only_themselves(tmp_path):
    path = stores.urlwatch(tmp_path / "cache.db", CHECKS)
    good = stores.guid(URLS[0])
    rows = [(good, None, "x", 0), (good, "soon", "x", 0), ("../etc", START, "x", 0), (good, START + 9, None, 0)]
    with sqlite3.connect(path) as db:
        db.executemany("INSERT INTO CacheEntry (guid, timestamp, data, tries) VALUES (?, ?, ?, ?)", rows)
    db.close()
    log = read_crawl_log(path)
    assert story(log) == story(expected(tmp_path))
    assert log.repairs == {"broken snapshots, left out": 4}


def test_broken_rows_of_webchanges_lose_only_themselves(tmp_path):
    path = stores.webchanges(tmp_path / "snapshots.db", CHECKS)
    with sqlite3.connect(path) as db:
        for packed in (b"", b"\xdf\xff\xff\xff\xff", b"\x91" * 500, b"\xc7\x01\x01a", stores.pack("text"), None):
            db.execute("INSERT INTO webchanges VALUES (?, ?, ?)", (stores.guid(URLS[0]), START + 9.0, packed))
    db.close()
    log = read_crawl_log(path)
    assert story(log) == story(expected(tmp_path))
    assert log.repairs == {"broken snapshots, left out": 6}


def test_jobs_without_a_list_are_planned_for_but_not_imported(tmp_path):
    path = stores.urlwatch(tmp_path / "cache.db", CHECKS)
    jobs = (path.parent / "urls.yaml").rename(tmp_path / "elsewhere.yaml")
    assert {url.partition("/")[0] for url in read_crawl_log(path).urls} == {"urlwatch"}
    with pytest.raises(ParameterError, match=r"no usable entry; jobs whose address .* --jobs"):
        read_crawl_log(path, LogOptions(nameless=False))
    assert story(read_crawl_log(path, LogOptions(nameless=False, jobs=jobs))) == story(expected(tmp_path))


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_saved_sitemaps_are_the_same_history(tmp_path, suffix):
    log = read_crawl_log(saved_sitemaps(tmp_path / "maps", suffix))
    assert story(log) == story(read_crawl_log(sitemap_log(tmp_path / "own.csv")))
    assert log.gone.sum() == 1


def test_a_cut_off_sitemap_loses_only_itself(tmp_path):
    folder = saved_sitemaps(tmp_path / "maps")
    whole = (folder / "sitemap-2023-11-20.xml").read_bytes()
    (folder / "sitemap-2023-11-20T0900.xml").write_bytes(whole[:-60])
    bad = stores.sitemap([(URLS[0], "2023-11-20"), ("https://[bad/", "2023-11-20")])
    (folder / "other-2023-11-15.xml").write_text(bad.replace(URLS[0], "https://c.example/"))
    log = read_crawl_log(folder)
    found = story(log)
    assert found.pop("https://c.example/")[0] == []
    assert found == story(read_crawl_log(sitemap_log(tmp_path / "own.csv")))
    assert log.repairs["broken sitemaps, left out"] == 1
    assert log.repairs["broken entries of sitemaps, left out"] == 1


def test_times_of_files_date_sitemaps_without_dates(tmp_path):
    folder = saved_sitemaps(tmp_path / "maps")
    for day, file in enumerate(sorted(folder.iterdir())):
        os.utime(file, (0, 1_700_006_400 + day * DAY))
        file.rename(folder / f"map{day}.xml")
    log = read_crawl_log(folder)
    own = story(read_crawl_log(sitemap_log(tmp_path / "own.csv")))
    assert {url: one[0] for url, one in story(log).items()} == {url: one[0] for url, one in own.items()}
