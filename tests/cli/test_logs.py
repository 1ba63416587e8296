"""Logs that people have: each form is read with the right pages, intervals and changes, hostile ones are one line."""

import gzip
import json

import numpy as np
import pytest

from recrawl.cli.shared.logs.crawl_log import read_crawl_log
from recrawl.cli.shared.logs.roles import LogOptions, parse_columns
from recrawl.errors import ParameterError

START, DAY = 1_700_000_000, 86400
STATES = ("aabbbc", "xxxxxx", "pqpqpq")  # content of three pages on six days: 2, 0 and 5 changes
CRAWLS = [(page, day, STATES[page][day]) for day in range(6) for page in range(3)]


def iso(day, form="%Y-%m-%dT%H:%M:%S"):
    import datetime

    return datetime.datetime.fromtimestamp(START + day * DAY, datetime.UTC).strftime(form)


def etags():
    """A crawler's CSV: ETag with marks of weakness and compression that differ from day to day; a failure."""
    head = "URL;Timestamp;Status Code;ETag;Title\n"
    rows = [(iso(d), p, 200, "W/" * (d % 2) + f'"{s}{"-gzip" * (d % 3 == 0)}"') for p, d, s in CRAWLS]
    rows = sorted([*rows, (iso(0, "%Y-%m-%dT23:00:00"), 0, 503, "")])
    quoted = [
        (f"https://a.example/{p}", t, str(n), '"' + tag.replace('"', '""') + '"', "Page") for t, p, n, tag in rows
    ]
    return (head + "".join(";".join(row) + "\n" for row in quoted)).encode()


def digests():
    """Tab separated: url, time, sha1."""
    rows = [f"https://a.example/{p}\t{START + d * DAY}\t{ord(s):040x}" for p, d, s in CRAWLS]
    return ("url\tfetched_at\tsha1\n" + "\n".join(rows) + "\n").encode()


def cdx():
    """The eleven fields of an archive's index, by page; one page is there with and without the default port."""
    lines = [" CDX N b a m s k r M S V g"]
    for page, states in enumerate(STATES):
        for day, state in enumerate(states):
            url = f"http://a.example{':80' * (day % 2)}/{page}"
            when, mime = iso(day, "%Y%m%d%H%M%S"), "warc/revisit" if day == 3 else "text/html"
            status = "-" if day == 3 else "200"
            lines.append(f"example,a)/{page} {when} {url} {mime} {status} {state * 32} - - 1{day}32 {day}77 a.warc.gz")
    return ("\n".join(lines) + "\n").encode()


def cdx_array():
    """What CDX servers answer as JSON: an array of arrays, the names first."""
    names = ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]
    rows = [
        [f"example,a)/{p}", iso(d, "%Y%m%d%H%M%S"), f"http://a.example/{p}", "text/html", "200", s * 32, str(500 + d)]
        for p, d, s in CRAWLS
    ]
    return json.dumps([names, *rows]).replace("], [", "],\n[").encode()


def cdxj():
    lines = [
        f"example,a)/{p} {iso(d, '%Y%m%d%H%M%S')} "
        + json.dumps({"url": f"https://a.example/{p}", "mime": "text/html", "status": "200", "digest": s * 32})
        for p, d, s in CRAWLS
    ]
    return ("\n".join(lines) + "\n").encode()


def cdx_lines():
    rows = [
        {"urlkey": f"example,a)/{p}", "timestamp": iso(d, "%Y%m%d%H%M%S"), "url": f"https://a.example/{p}",
         "status": "200", "digest": s * 32, "length": str(900 + d), "filename": "a.warc.gz"}
        for p, d, s in CRAWLS
    ]  # fmt: skip
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def items():
    """Scrapy's items as JSON lines; not every item has every field."""
    rows = [
        {"url": f"https://a.example/{p}", "scraped_at": iso(d), "status": 200, "title": "é", "body_sha256": s}
        | ({"tags": [d]} if d % 2 else {})
        for p, d, s in CRAWLS
    ]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def access():
    """The combined format; page 1 answers 304, a HEAD, a POST and a part of a page say nothing."""
    lines = []
    for page, day, state in CRAWLS:
        when = iso(day, "%d/%b/%Y:%H:%M:%S +0000")
        status, size = (304, 0) if page == 1 and day else (200, 1000 + ord(state))
        agent = '"-" "bot/1.0 (+https://b.example/\\"x\\")"'
        lines.append(f'10.0.0.7 - - [{when}] "GET /p/{page}?a=b HTTP/1.1" {status} {size} {agent}')
        lines.append(f'10.0.0.7 - bob [{when}] "HEAD /p/{page}?a=b HTTP/1.1" 200 0 {agent}')
    when = iso(6, "%d/%b/%Y:%H:%M:%S +0100")
    lines.append(f'10.0.0.7 - - [{when}] "GET /p/0?a=b HTTP/1.1" 206 17 "-" "-"')
    lines.append(f'10.0.0.7 - - [{when}] "\\x16\\x03" 400 150 "-" "-"')
    lines.append(f'10.0.0.7 - - [{when}] "GET /p/0?a=b HTTP/1.1" 502 150 "-" "-"')
    return ("\n".join(lines) + "\n").encode()


FORMS = {
    "etags.csv": etags,
    "digests.tsv": digests,
    "index.cdx": cdx,
    "answer.json": cdx_array,
    "index.cdxj": cdxj,
    "index.jsonl": cdx_lines,
    "items.jl": items,
    "access.log": access,
}
FAILED = {"etags.csv": 1, "access.log": 1}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_a_log_of_any_form_is_planned_from(run, tmp_path, name):
    path = tmp_path / name
    path.write_bytes(FORMS[name]())
    for command in ("plan", "estimate"):
        result = run(command, path, "--json")
        assert result.code == 0, result
        found = json.loads(result.out)
        counts = tuple(found[key] for key in ("pages", "crawls", "changes", "failed_crawls"))
        assert counts == (3, 15, 7, FAILED.get(name, 0))


@pytest.mark.parametrize("name", ["digests.tsv", "index.cdx", "items.jl", "access.log"])
def test_packed_logs_are_read(tmp_path, name):
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(FORMS[name]()))
    assert len(read_crawl_log(path).observations.interval) == 15


def test_columns_are_named_by_the_user(run, tmp_path):
    path = tmp_path / "odd.csv"
    rows = [f"https://a.example/{p},{START + d * DAY},{iso(0)},{s},x" for p, d, s in CRAWLS]
    path.write_text("seite,wann,date,preis,lager\n" + "\n".join(rows) + "\n")
    assert "column url is missing" in run("plan", path).err
    named = "seite=url,wann=time,preis=digest"
    assert json.loads(run("plan", path, "--columns", named, "--json").out)["changes"] == 7
    result = run("estimate", path, "--columns", named + ",lager=digest")
    assert "3 pages, 15 intervals, 7 changed" in result.out
    assert "columns that are not used: date" in result.out
    assert "changed is computed from digest (15)" in result.out


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        ("seite", "write NAME=ROLE"),
        ("seite=page", "'page' is not one of url, time"),
        ("nothing=url", "--columns names nothing"),
        ("a=url,a=time", "a comes twice"),
        ("a=url,b=url", "2 columns are url"),
    ],
)
def test_bad_columns_are_one_line(run, table, columns, line):
    result = run("plan", table("a,b,c\n1,2,3\n", "log.csv"), "--columns", columns)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert line in result.err


def test_two_columns_that_could_be_the_time_are_refused(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("url,timestamp,date,etag\na,1,2,x\na,2,2,x\n")
    with pytest.raises(ParameterError, match="timestamp and date could both be time"):
        read_crawl_log(path)
    assert len(read_crawl_log(path, LogOptions(columns={"timestamp": "time"})).observations.interval) == 1


# --- encodings --------------------------------------------------------------------------------------------------------

NAMES = "https://a.example/é", "https://a.example/ü"
LATIN = "url,time,changed\n" + "".join(f"{url},{k},0\n" for k in range(2) for url in NAMES)


@pytest.mark.parametrize(
    ("encoding", "declared"),
    [("utf-8", None), ("utf-8-sig", None), ("utf-16", None), ("utf-32", None), ("utf-16-le", "utf-16-le"),
     ("cp1252", "cp1252"), ("latin-1", "ISO-8859-1"), ("utf-16", "utf-16"), ("utf-8-sig", "utf8")],
)  # fmt: skip
def test_encodings_are_decoded_as_declared(tmp_path, encoding, declared):
    path = tmp_path / "log.csv"
    path.write_bytes(LATIN.encode(encoding))
    log = read_crawl_log(path, LogOptions(encoding=declared))
    assert log.urls == list(NAMES)
    path.write_bytes(LATIN.replace("\n", "\r").encode(encoding))
    assert read_crawl_log(path, LogOptions(encoding=declared)).urls == list(NAMES)


@pytest.mark.parametrize(
    ("data", "declared", "line"),
    [
        (LATIN.encode("cp1252"), None, "line 2: byte 0xe9 is not utf-8; declare the encoding"),
        (LATIN.encode("utf-16-le"), None, "line 1: has NUL characters"),
        (LATIN.encode("utf-16")[:-1], None, "is not utf-16"),
        (LATIN.encode("utf-8-sig"), "cp1252", "byte order mark of utf-8, not cp1252"),
        (LATIN.encode(), "martian", "--encoding 'martian' is not known"),
        (LATIN.encode(), "base64", "--encoding 'base64' is not known"),
        (LATIN.encode(), "ascii", "line 2: byte 0xc3 is not ascii"),
    ],
)
def test_what_cannot_be_decoded_is_refused(run, tmp_path, data, declared, line):
    path = tmp_path / "log.csv"
    path.write_bytes(data)
    result = run("estimate", path, *([] if declared is None else ["--encoding", declared]))
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), result
    assert line in result.err


def test_lenient_drops_lines_that_cannot_be_decoded_and_merges_no_pages(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"url,time,changed\na\xe9,1,0\na\xfc,1,0\na,1,0\na,2,1\n")
    log = read_crawl_log(path, lenient=True)
    assert log.urls == ["a"]
    assert log.repairs == {"lines that cannot be decoded, dropped": 2}


def test_lists_of_pages_are_decoded_by_their_mark_or_refused(run, tmp_path):
    path, database = tmp_path / "urls.txt", tmp_path / "a.db"
    path.write_bytes(b"https://a.example/1\nhttps://a.example/\xe9\n")
    result = run("add", path, "--database", database)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "line 2: is not UTF-8 text" in result.err
    path.write_bytes("\n".join(NAMES).encode("utf-16"))
    assert json.loads(run("add", path, "--database", database, "--json").out)["added"] == 2


def test_tables_of_pages_are_decoded_by_their_mark(run, tmp_path):
    path = tmp_path / "pages.csv"
    path.write_bytes("url,change_rate\nhttps://a.example/é,1\n".encode("utf-16"))
    assert json.loads(run("solve", path, "--budget", "1/day", "--json").out)["pages"] == 1


# --- hostile variants -------------------------------------------------------------------------------------------------

LINE = b'10.0.0.7 - - [14/Nov/2023:22:13:20 +0000] "GET /a HTTP/1.1" 200 9 "-" "-"\n'
CDX = b" CDX N b a m s k r M S V g\n"
CAPTURE = b"example,a)/ 20240101000000 http://a.example/ text/html 200 AAAA - - 1 2 a.warc.gz\n"
HOSTILE = {
    "torn access log": (LINE * 3 + LINE[:50], "access.log", "line 4: the last line is cut off"),
    "mixed access log": (LINE + b"a,b,c\n" + LINE, "access.log", "line 2: is not a line of an access log"),
    "access time": (LINE + LINE.replace(b"Nov", b"Foo"), "access.log", "column time, line 2"),
    "access date": (LINE + LINE.replace(b"14/", b"99/"), "access.log", "column time, line 2"),
    "torn CDX": (CDX + CAPTURE + CAPTURE[:40], "a.cdx", "line 3: the last line is cut off"),
    "CDX date": (CDX + CAPTURE.replace(b"20240101", b"20241341"), "a.cdx", "column time, line 2"),
    "CDX fields": (CDX + CAPTURE.replace(b" - - ", b" - "), "a.cdx", "line 2: has 10 fields, not 11"),
    "CDX header": (b" CDX N b m s\n" + CAPTURE, "a.cdx", "line 1: the header of a CDX file must have a"),
    "CDX without header": (CAPTURE + b"x\n", "a.cdx", "line 2: "),
    "CDXJ": (b'example,a)/ 20240101000000 {"url": \n', "a.cdxj", "line 1: is not a line of a CDXJ file"),
    "torn JSON": (b'[["url", "timestamp", "digest"],\n["a", "20240101000000"', "a.json", "line 2: is not JSON"),
    "JSON of numbers": (b"[1, 2]", "a.json", "row 1: is not a JSON object"),
    "JSON of unlike rows": (b'[["url", "timestamp", "digest"], ["a", "1"]]', "a.json", "row 1: is not like the first"),
    "deep JSON": (b"[" * 100_000, "a.json", "row 1"),
    "list as URL": (b'{"url": ["a"], "time": 1, "digest": "x"}\n', "a.jl", "column url, row 1: is not a single value"),
    "huge field": (b'url,time,digest\na,1,"' + b"x" * 200_000 + b'"\n', "a.csv", "row 1: is not CSV: field larger"),
    "huge line": (b"url,time,digest\n" + b"x" * (2 << 20), "a.csv", "line 2 is longer than 1 MiB"),
    "open quote": (b'url,time,digest\na,1,"x\n' + b"a,2,y\n" * 40_000, "a.csv", "row 1: is not CSV: field larger"),
    "gzip bomb": (gzip.compress((b" " * 4095 + b"\n") * 4500), "a.jl.gz", "unpacks to more than 200"),
    "gzip line": (gzip.compress(b"\x00" * (4 << 20)), "a.csv.gz", "line 1 is longer than 1 MiB"),
    "torn gzip": (gzip.compress(LINE * 1000)[:-20], "a.log.gz", "is not gzip, or cut off"),
    "not gzip": (b"\x1f\x8bnonsense", "a.log.gz", "is not gzip, or cut off"),
    "wrong times": (b"url,time,etag\na,yesterday,x\n", "a.csv", "column time, row 1: 'yesterday'"),
    "mixed times": (b"url,time,etag\na,100,x\na,2024-01-01,x\n", "a.csv", "mixed time zones"),
    "no content": (b"url,time,title\na,1,x\n", "a.csv", "column changed is missing, and so is a digest"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_logs_are_one_line(run, tmp_path, case):
    data, name, line = HOSTILE[case]
    path = tmp_path / name
    path.write_bytes(data)
    result = run("plan", path)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), result
    assert line in result.err
    assert str(path) in result.err


# --- what is compared with what ---------------------------------------------------------------------------------------


def changes(tmp_path, text, **options):
    path = tmp_path / "log.csv"
    path.write_text(text)
    return read_crawl_log(path, LogOptions(**options))


def test_a_page_that_is_not_modified_keeps_its_content(tmp_path):
    log = changes(tmp_path, "url,time,status,sha1\na,1,200,x\na,2,304,\na,3,304,\na,4,200,x\na,5,200,y\nb,6,304,\n")
    assert log.observations.changed.tolist() == [False, False, False, True]
    assert log.computed == {"status 304": 2, "digest": 2}


def test_failures_are_passed_over_and_the_best_column_counts(tmp_path):
    text = "url,time,status,sha1,etag,length\na,1,200,x,1,9\na,2,500,z,2,8\na,3,200,x,2,8\na,4,200,,3,8\na,5,200,,,8\n"
    log = changes(tmp_path, text)
    assert log.observations.interval.tolist() == [2.0, 1.0, 1.0]
    assert log.observations.changed.tolist() == [False, True, False]
    assert (log.computed, log.n_failed) == ({"digest": 1, "etag": 1, "length": 1}, 1)


def test_digests_of_two_kinds_are_not_compared(tmp_path):
    log = changes(tmp_path, "url,time,digest\na,1,sha1:x\na,2,sha1:x\na,3,md5:x\na,4,md5:y\n")
    assert log.observations.changed.tolist() == [False, True]
    assert log.repairs == {"intervals with nothing to compare, left out": 1}


def test_what_the_log_says_itself_counts_first(tmp_path):
    log = changes(tmp_path, "url,time,changed,digest\na,1,,x\na,2,0,y\na,3,,z\n")
    assert log.observations.changed.tolist() == [False, True]
    assert log.computed == {"digest": 1}


def test_computed_changes_are_those_that_were_counted(tmp_path):
    rng = np.random.default_rng(0)
    state = np.cumsum(rng.random((40, 30)) < 0.3, axis=1)
    text = "url,time,content_length\n" + "".join(f"p{p},{d},{state[p, d]}\n" for p in range(40) for d in range(30))
    log = changes(tmp_path, text)
    assert np.array_equal(log.observations.changed.reshape(40, 29), np.diff(state) > 0)


def test_roles_are_parsed():
    assert parse_columns(["Wann = time"]) == {"wann": "time"}
