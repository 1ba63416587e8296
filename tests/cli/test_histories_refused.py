"""Histories of other tools that are damaged, or none at all: one line, and what can be read is read."""

import json
import sqlite3

import numpy as np
import pytest

from recrawl.cli.shared.histories.msgpack import unpack
from recrawl.cli.shared.histories.readers import importance_of
from recrawl.cli.shared.logs.crawl_log import read_crawl_log
from recrawl.errors import ParameterError

from . import stores
from .histories import (
    STORES,
    combined,
    json_lines,
    saved_sitemaps,
    warc_file,
)
from .stores import CHECKS, URLS

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
