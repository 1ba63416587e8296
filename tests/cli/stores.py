"""Stores of other tools, written as those tools write them, from one list of checks."""

import gzip
import hashlib
import json
import sqlite3
import struct
import zipfile
from datetime import UTC, datetime
from typing import NamedTuple

import brotli

START, DAY = 1_700_000_000, 86400
URLS = [f"https://{host}.example/{name}" for host, name in (("a", "news"), ("a", "about"), ("b", "prices?sort=up"))]
STATES = ("abcdefghijklmn", "aaaaaaaaaaaaaa", "aabbb!!ccccaaa")  # content of three pages on 14 days; ! is a failure


class Check(NamedTuple):
    """One look at a page; ``state`` is None where it failed."""

    url: str
    at: int
    state: str | None


CHECKS = [
    Check(url, START + day * DAY, None if state == "!" else state)
    for day in range(14)
    for url, state in zip(URLS, (states[day] for states in STATES), strict=True)
]


def text_of(check):
    """The text of a page: long enough to be packed by stores that pack long texts."""
    return f"Page {check.url} in state {check.state}.\n" + "\n".join(f"Line {k} of it." for k in range(200))


def own_log(path, checks, header="url,time,digest,failure"):
    """The same checks as a crawl log."""
    rows = [f"{one.url},{one.at},{one.state or ''},{'' if one.state else 'error'}" for one in checks]
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def html(check, noise=0):
    """A page whose frame differs at every crawl, while its main text follows the state."""
    menu = f"<nav>menu {noise}</nav><script>token = {noise}</script>"
    return f"<html><body>{menu}<main><h1>Page</h1><p>{text_of(check)}</p></main></body></html>".encode()


def warc_record(kind, url, at, block, **more):
    """The bytes of one record."""
    date = at if isinstance(at, str) else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    head = {"WARC-Type": kind, "WARC-Target-URI": url, "WARC-Date": date, "WARC-Record-ID": "<urn:uuid:1>"}
    head |= {name.replace("_", "-"): value for name, value in more.items()}
    head.setdefault("Content-Length", str(len(block)))
    lines = ["WARC/1.0", *(f"{name}: {value}" for name, value in head.items() if value)]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def http(body, status="200 OK", *lines):
    """An answer as it came over the wire."""
    return (
        "\r\n".join([f"HTTP/1.1 {status}", "Content-Type: text/html; charset=utf-8", *lines]).encode()
        + b"\r\n\r\n"
        + body
    )


def warc_records(checks):
    """Answers in every form: plain, chunked, packed, revisits by digest and by 304, failures; requests between them."""
    seen, records = {}, [warc_record("warcinfo", "", START, b"software: a crawler\r\n")]
    for k, one in enumerate(checks):
        records.append(warc_record("request", one.url, one.at, b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"))
        body = html(one, k)
        digest = "sha1:" + hashlib.sha1(body).hexdigest()
        if one.state is None:
            records.append(warc_record("response", one.url, one.at, http(b"down", "503 Service Unavailable")))
            continue
        if seen.get(one.url, ("",))[0] == one.state and k % 2:
            profile = (
                "http://netpreserve.org/warc/1.0/revisit/"
                + ("server-not-modified", "identical-payload-digest")[k % 4 == 1]
            )
            records.append(
                warc_record("revisit", one.url, one.at, b"", WARC_Profile=profile, WARC_Payload_Digest=seen[one.url][1])
            )
            continue
        answers = (
            http(body),
            http(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body), "200 OK", "Transfer-Encoding: chunked"),
            http(gzip.compress(body), "200 OK", "Content-Encoding: gzip"),
            http(body, "200 OK", "Content-Encoding: gzip"),  # the coding was undone, the header kept
        )
        records.append(warc_record("response", one.url, one.at, answers[k // 3 % 4], WARC_Payload_Digest=digest))
        seen[one.url] = (one.state, digest)
    return records


def changedetection(folder, checks, form="own"):
    """A datastore: a snapshot for each change, the number of checks, and the time and error of the last one."""
    folder.mkdir(parents=True)
    watches = {}
    for k, url in enumerate(dict.fromkeys(one.url for one in checks)):
        mine = [one for one in checks if one.url == url]
        uuid = f"{k:08d}-aaaa-4bbb-8ccc-121212121212"
        here = folder / uuid
        here.mkdir()
        lines, held = [], None
        for one in mine:
            if one.state in (None, held):
                continue
            held, data = one.state, text_of(one).encode()
            name = f"{hashlib.md5(data).hexdigest()}.txt"
            if k % 2:
                (here / f"{name}.br").write_bytes(brotli.compress(data))
                lines.append(f"{one.at},{name}.br")
            else:
                (here / name).write_bytes(data)
                lines.append(f"{one.at},{f'/datastore/{uuid}/{name}' if form == 'common' else name}")
        (here / "history.txt").write_text("\n".join(lines) + "\n")
        watch = {"url": url, "uuid": uuid, "title": None, "check_count": len(mine), "last_checked": mine[-1].at}
        watch |= {"date_created": mine[0].at, "last_error": mine[-1].state is None and "503", "paused": False}
        watch |= {"time_between_check": {"weeks": None, "days": None, "hours": 7, "minutes": None, "seconds": None}}
        watches[uuid] = watch
        if form == "own":
            (here / "watch.json").write_text(json.dumps(watch, indent=2))
    settings = {"requests": {"time_between_check": {"hours": 3}}, "application": {}}
    if form == "own":
        (folder / "changedetection.json").write_text(json.dumps({"app_guid": "x", "settings": settings}, indent=2))
    else:
        found = {"note": "Hello", "watching": watches, "settings": settings, "app_guid": "x"}
        (folder / "url-watches.json").write_text(json.dumps(found, indent=4))
    return folder


def zipped(folder, path):
    """A backup of a datastore."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for file in sorted(folder.rglob("*")):
            out.write(file, file.relative_to(folder.parent))
    return path


def guid(url):
    return hashlib.sha1(url.encode()).hexdigest()


def kept_by_urlwatch(checks):
    """What urlwatch saves: changes, failures with the number of tries, and the first success after them."""
    held, tries, found = {}, {}, []
    for one in checks:
        if one.state is None:
            tries[one.url] = tries.get(one.url, 0) + 1
            found.append((one, text_of(one) if one.url in held else None, tries[one.url]))
        elif held.get(one.url) != one.state or tries.get(one.url):
            held[one.url], tries[one.url] = one.state, 0
            found.append((one, text_of(one), 0))
    return found


def urlwatch(path, checks, late=0):
    """A minidb file; jobs of one run are saved a few seconds after each other."""
    with sqlite3.connect(path) as db:
        db.execute(
            "CREATE TABLE CacheEntry (id INTEGER PRIMARY KEY, guid TEXT, timestamp INTEGER, data TEXT, tries INTEGER, "
            "etag TEXT)"
        )
        rows = [(guid(one.url), one.at + late, data, tries, '"e"') for one, data, tries in kept_by_urlwatch(checks)]
        db.executemany("INSERT INTO CacheEntry (guid, timestamp, data, tries, etag) VALUES (?, ?, ?, ?, ?)", rows)
    db.close()
    (path.parent / "urls.yaml").write_text(
        f"name: News\nurl: {URLS[0]}\nfilter:\n  - html2text\n---\nkind: url\nurl: '{URLS[1]}'  # seldom\n---\n"
        f'navigate: "{URLS[2]}"\n---\ncommand: uptime\n'
    )
    return path


def pack(value):
    """MessagePack of what snapshots are made of."""
    if isinstance(value, dict):
        return bytes([0x80 | len(value)]) + b"".join(pack(k) + pack(v) for k, v in value.items())
    if isinstance(value, str):
        data = value.encode()
        return (bytes([0xA0 | len(data)]) if len(data) < 32 else b"\xda" + struct.pack(">H", len(data))) + data
    return b"\xc0" if value is None else bytes([value])


def webchanges(path, checks):
    """The store of webchanges."""
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE webchanges (uuid TEXT, timestamp REAL, msgpack_data BLOB)")
        for one, data, tries in kept_by_urlwatch(checks):
            packed = pack({"d": data or "", "t": tries, "e": "", "m": "text/html", "err": {}})
            db.execute("INSERT INTO webchanges VALUES (?, ?, ?)", (guid(one.url), float(one.at), packed))
    db.close()
    (path.parent / "jobs.yaml").write_text("".join(f"- url: {url}\n" for url in URLS))
    return path


def sitemap(pages):
    """A sitemap of pages with their lastmod."""
    entries = [f"<url><loc>{url.replace('&', '&amp;')}</loc><lastmod>{day}</lastmod></url>" for url, day in pages]
    return (
        f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{"".join(entries)}</urlset>'
    )
