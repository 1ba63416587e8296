"""Histories of other tools: each gives what a crawl log of the same checks gives; a broken entry loses only itself."""

import gzip
import json
import os
import sqlite3
import zipfile

import numpy as np
import pytest

from recrawl.cli.shared.files.crawl_log import read_crawl_log, remarks
from recrawl.cli.shared.histories.msgpack import unpack
from recrawl.cli.shared.histories.readers import importance_of
from recrawl.cli.shared.logs.roles import LogOptions
from recrawl.errors import ParameterError

from . import stores
from .stores import CHECKS, DAY, START, URLS


def story(log):
    """What a log says of each page: intervals with their outcomes, failures, the last crawl, whether it is gone."""
    seen, found = log.observations, {}
    for k, url in enumerate(log.urls):
        mine = slice(int(seen.offset[k]), int(seen.offset[k + 1]))
        rows = log.rows.page == k
        intervals = list(zip(seen.interval[mine].round(3).tolist(), seen.changed[mine].tolist(), strict=True))
        found[url] = (intervals, int(log.rows.failed[rows].sum()), log.crawled_at[k], bool(log.gone[k]))
    return found


def expected(tmp_path, checks=CHECKS):
    return read_crawl_log(stores.own_log(tmp_path / "own.csv", checks))


def warc_file(path, records, packed):
    path.write_bytes(b"".join(map(gzip.compress, records)) if packed else b"".join(records))
    return path


def broken_warc(path, packed):
    """Records of which one is damaged, one has no date, one is of another length than it says, one is no answer."""
    records = stores.warc_records(CHECKS)
    half = len(records) // 2
    response = stores.http(b"<p>never seen</p>")
    url, at = URLS[0], START + 3600
    bad = [
        stores.warc_record("response", url, "yesterday", response),
        stores.warc_record("response", url, at, response, Content_Length="999999"),
        stores.warc_record("response", url, at, response, Content_Length="9" * 18),
        stores.warc_record("response", url, at, b"not HTTP"),
    ]
    if not packed:
        return warc_file(path, [*records[:half], *bad, *records[half:]], False), 4
    damaged = bytearray(gzip.compress(stores.warc_record("response", url, at, os.urandom(3000))))
    damaged[700:720] = bytes(20)
    members = [gzip.compress(one) for one in (*records[:half], *bad)]
    path.write_bytes(b"".join([*members, bytes(damaged), *map(gzip.compress, records[half:]), b"\x1f\x8b\x08cut"]))
    return path, 5


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


def same_checks(checks):
    """Failures before the last check are not kept by changedetection.io: they count as checks without a change."""
    held, found = {}, []
    for one in checks:
        held[one.url] = one.state or held[one.url]
        found.append(one._replace(state=held[one.url]))
    return found


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


STORES = {"urlwatch": stores.urlwatch, "webchanges": stores.webchanges}


@pytest.mark.parametrize("tool", STORES)
def test_urlwatch_is_the_same_history(tmp_path, tool):
    log = read_crawl_log(STORES[tool](tmp_path / "cache.db", CHECKS))
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


def saved_sitemaps(folder, suffix=""):
    """A sitemap a day with the day on which each page changed last; on the last days the third page is missing."""
    folder.mkdir()
    since = {}
    for day in range(14):
        for url, states in zip(URLS, stores.STATES, strict=True):
            if day == 0 or states[day] != states[day - 1]:
                since[url] = f"2023-11-{15 + day:02d}"
        there = [(url, at) for url, at in since.items() if url != URLS[2] or day < 12]
        data = stores.sitemap(there).encode()
        name = f"sitemap-2023-11-{15 + day:02d}.xml{suffix}"
        (folder / name).write_bytes(gzip.compress(data) if suffix else data)
    return folder


def sitemap_log(path):
    """The same as a crawl log."""
    first, rows = 1_700_006_400, ["url,time,status,digest"]  # 2023-11-15, 00:00 UTC
    for day in range(14):
        for url, states in zip(URLS, stores.STATES, strict=True):
            state = len([d for d in range(1, day + 1) if states[d] != states[d - 1]])
            if url != URLS[2] or day < 12:
                rows.append(f"{url},{first + day * DAY},200,{state}")
            elif day == 12:
                rows.append(f"{url},{first + day * DAY},410,")
    path.write_text("\n".join(rows) + "\n")
    return path


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


REFUSED = {
    "an empty folder": (lambda path: path.mkdir(), "has no history that is known"),
    "one sitemap": (lambda path: path.write_text(stores.sitemap([(URLS[0], "2024-01-01")])), "is one sitemap"),
    "a cut-off ZIP file": (lambda path: path.write_bytes(b"PK\x03\x04 and no more"), "not a ZIP file, or cut off"),
    "a file of zstd": (lambda path: path.write_bytes(b"\x28\xb5\x2f\xfd\x00\x00"), "packed with zstd"),
    "half an SQLite file": (
        lambda path: path.write_bytes(b"SQLite format 3\0" + bytes(90)),
        "cannot be read as SQLite",
    ),
    "nothing but damage": (lambda path: path.write_bytes(b"WARC/1.0\r\n\r\n" * 3), "no usable entry"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_history_is_one_line(tmp_path, case):
    write, line = REFUSED[case]
    write(tmp_path / "it")
    with pytest.raises(ParameterError, match=line) as refused:
        read_crawl_log(tmp_path / "it")
    assert "\n" not in str(refused.value)


def test_a_damaged_schema_is_one_line(tmp_path):
    path = stores.urlwatch(tmp_path / "cache.db", CHECKS)
    data = path.read_bytes()
    at = data.index(b"CREATE TABLE")
    path.write_bytes(data[:at] + b"\x8aREATE\x8a" + data[at + 7 :])
    with pytest.raises(ParameterError, match="cannot be read as SQLite"):
        read_crawl_log(path)


def test_another_database_is_refused(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE notes (x)")
    db.close()
    with pytest.raises(ParameterError, match="its tables are notes"):
        read_crawl_log(path)


@pytest.mark.parametrize("data", [b"\xa3ab", b"\x80\x00", b"\xdd\x00\x00\xff\xff", b"\x92\x01", b"\xa1\xff"])
def test_bad_msgpack_is_refused(data):
    with pytest.raises(ValueError):
        unpack(data)


def same_plan(run, path, own, *options):
    """Whether a plan from a history has the figures of the plan from a crawl log."""
    found = [json.loads(run("plan", one, *options, "--json").out) for one in (path, own)]
    for one in found:
        for name in ("file", "repairs", "remarks", "computed"):
            one.pop(name)
    return found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["warc", "urlwatch", "webchanges", "changedetection", "sitemaps"])
def test_plans_are_the_same(run, tmp_path, tool):
    checks = same_checks(CHECKS) if tool == "changedetection" else CHECKS
    own = stores.own_log(tmp_path / "own.csv", checks)
    if tool == "warc":
        path = warc_file(tmp_path / "crawl.warc.gz", stores.warc_records(checks), True)
    elif tool == "sitemaps":
        path, own = saved_sitemaps(tmp_path / "maps"), sitemap_log(own)
    elif tool == "changedetection":
        path = stores.changedetection(tmp_path / "datastore", checks)
    else:
        path = STORES[tool](tmp_path / "cache.db", checks)
    assert same_plan(run, path, own, "--budget", "5/day")


@pytest.mark.slow
def test_one_command_from_a_store_to_a_plan(run, tmp_path):
    path = stores.urlwatch(tmp_path / "cache.db", CHECKS)
    result = run("plan", path, "--budget", "6/day", "--every", "1d")
    assert result.code == 0, result
    assert "3 pages" in result.out
    assert "urlwatch keeps changes and failures only" in result.out


@pytest.mark.slow
def test_an_imported_store_is_crawled_on(run, tmp_path):
    databases = [tmp_path / "a.db", tmp_path / "b.db"]
    paths = [stores.urlwatch(tmp_path / "cache.db", CHECKS), stores.own_log(tmp_path / "own.csv", CHECKS)]
    for path, database in zip(paths, databases, strict=True):
        result = run("import", path, "--database", database, "--json")
        assert result.code == 0, result
        assert json.loads(result.out)["added"] == 3
        assert run("export", "--database", database, "--pages", f"{database}.csv").code == 0
    first, second = (sorted((tmp_path / f"{name}.db.csv").read_text().splitlines()) for name in "ab")
    assert first == second


COMBINED = '203.0.113.{k} - - [29/Feb/2024:12:00:0{k} +0000] "{request}" {status} 512 "-" "Mozilla/5.0"'


def requests():
    """Six requests that count, of two pages; others are of another method, failed, or of no page of the log."""
    return [
        *[("GET", "a.example", "/news", 200)] * 4,
        ("GET", "a.example", "/news", 304),
        ("GET", "b.example", "/prices?sort=up", 200),
        ("POST", "a.example", "/news", 200),
        ("GET", "a.example", "/news", 500),
        ("GET", "a.example", "/other", 200),
    ]


def combined(broken=False):
    lines = []
    for k, (method, host, path, status) in enumerate(requests()):
        lines.append(f"{host}:443 " + COMBINED.format(k=k, request=f"{method} {path} HTTP/1.1", status=status))
    return lines + ['a.example - - [cut "GET /ne'] * broken


def json_lines(broken=False):
    nginx = [
        {"host": h, "request_uri": p, "request_method": m, "status": str(s), "time_iso8601": "2024-02-29T12:00:00Z"}
        for m, h, p, s in requests()[:3]
    ]
    caddy = [
        {"level": "info", "request": {"method": m, "host": h, "uri": p}, "status": s} for m, h, p, s in requests()[3:6]
    ]
    rest = [{"server_name": h, "request": f"{m} {p} HTTP/2.0", "status": s} for m, h, p, s in requests()[6:]]
    return [json.dumps(one) for one in (*nginx, *caddy, *rest)] + ['{"host": "a.exa'] * broken


@pytest.mark.slow
@pytest.mark.parametrize("form", [combined, json_lines])
@pytest.mark.parametrize("packed", [False, True])
def test_requests_are_importance(run, tmp_path, form, packed):
    own = stores.own_log(tmp_path / "own.csv", CHECKS)
    weights = dict(zip(URLS, (5, 0.5, 1), strict=True))
    rows = own.read_text().splitlines()
    weighted = [f"{line},{weights[line.split(',')[0]]}" for line in rows[1:]]
    (tmp_path / "weighted.csv").write_text("\n".join([f"{rows[0]},importance", *weighted]) + "\n")
    data = ("\n".join(form(broken=True)) + "\n").encode()
    (tmp_path / "access").write_bytes(gzip.compress(data) if packed else data)
    found = json.loads(run("plan", own, "--access-log", tmp_path / "access", "--json").out)
    other = json.loads(run("plan", tmp_path / "weighted.csv", "--json").out)
    assert found["budgets"] == other["budgets"]
    assert found["now"] == other["now"]
    assert "importance is the number of requests: 6 of 7 are for 2 pages" in found["remarks"]
    assert any("1 broken lines of the access log" in line and "line 10" in line for line in found["remarks"])


@pytest.mark.slow
def test_paths_are_pages_of_the_only_host(run, tmp_path):
    one = [check for check in CHECKS if "a.example" in check.url]
    own = stores.own_log(tmp_path / "own.csv", one)
    lines = [COMBINED.format(k=k, request="GET /about HTTP/1.1", status=200) for k in range(3)]
    (tmp_path / "access.log").write_text("\n".join(lines) + "\n")
    result = run("import", own, "--access-log", tmp_path / "access.log", "--database", tmp_path / "a.db", "--json")
    assert "importance is the number of requests: 3 of 3 are for 1 pages" in json.loads(result.out)["remarks"]
    run("export", "--database", tmp_path / "a.db", "--pages", tmp_path / "pages.csv")
    pages = [line.split(",")[:2] for line in (tmp_path / "pages.csv").read_text().splitlines()[1:]]
    assert dict(pages) == {URLS[0]: "0.5", URLS[1]: "3.0"}


@pytest.mark.slow
def test_access_logs_that_do_not_fit_are_one_line(run, tmp_path):
    own = stores.own_log(tmp_path / "own.csv", CHECKS)
    path = tmp_path / "access.log"
    cases = {
        COMBINED.format(k=1, request="GET /about HTTP/1.1", status=200): "no host, and the pages are of 2 hosts",
        json.dumps({"host": "c.example", "uri": "/", "status": 200}): "no request for any of the 3 pages",
        "what a day\nwhat a night": "is not an access log: 2 of 2 lines",
    }
    for text, line in cases.items():
        path.write_text(text + "\n")
        result = run("plan", own, "--access-log", path)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), result
        assert line in result.err


def damaged(data, rng):
    """Bytes with a few changes: some overwritten, a part cut out, doubled, or the end missing."""
    found, kind = bytearray(data), int(rng.integers(4))
    at = int(rng.integers(len(found)))
    size = int(rng.integers(1, 60))
    if kind == 0:
        found[at : at + size] = rng.bytes(size)
    elif kind == 1:
        del found[at : at + size]
    elif kind == 2:
        found[at:at] = found[at : at + size]
    else:
        del found[at:]
    return bytes(found)


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["warc", "warc.gz", "urlwatch", "webchanges", "zip", "watch", "sitemaps", "access"])
def test_any_damage_is_survived_or_one_line(tmp_path, tool):
    rng, folder = np.random.default_rng(7), tmp_path / "it"
    if tool.startswith("warc"):
        path = warc_file(tmp_path / "it", stores.warc_records(CHECKS[:12]), tool.endswith("gz"))
    elif tool in ("zip", "watch"):
        store = stores.changedetection(folder, CHECKS)
        path = stores.zipped(store, tmp_path / "it.zip") if tool == "zip" else store / "url-watches.json"
        path.exists() or path.write_text(
            json.dumps({"watching": {"x": {"url": URLS[0]}}, "settings": {"requests": {}}})
        )
    elif tool == "sitemaps":
        path = sorted(saved_sitemaps(folder).iterdir())[5]
    elif tool == "access":
        path = tmp_path / "access.log"
        path.write_text("\n".join([*combined(), *json_lines()]))
    else:
        path = STORES[tool](tmp_path / "cache.db", CHECKS)
    whole, said = path.read_bytes(), []
    for _ in range(60):
        path.write_bytes(damaged(whole, rng))
        try:
            if tool == "access":
                importance_of(path, URLS)
            else:
                read_crawl_log(folder if tool in ("watch", "sitemaps") else path)
        except ParameterError as problem:
            said.append(str(problem))
    assert len(said) <= 50
    assert not [line for line in said if "\n" in line]
