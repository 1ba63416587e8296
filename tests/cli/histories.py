"""Histories of other tools as files, whole and broken, and what a log of the same checks says."""

import gzip
import json
import os

from recrawl.cli.shared.logs.crawl_log import read_crawl_log

from . import stores
from .stores import CHECKS, DAY, START, URLS

STORES = {"urlwatch": stores.urlwatch, "webchanges": stores.webchanges}


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


def same_checks(checks):
    """Failures before the last check are not kept by changedetection.io: they count as checks without a change."""
    held, found = {}, []
    for one in checks:
        held[one.url] = one.state or held[one.url]
        found.append(one._replace(state=held[one.url]))
    return found
