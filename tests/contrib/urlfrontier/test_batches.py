"""Batches in columns: the same as each item read by itself."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recrawl.contrib.urlfrontier.api.wire import DiscoveredBatch as Batch
from recrawl.contrib.urlfrontier.api.wire import StringList, URLInfo
from recrawl.contrib.urlfrontier.batches import URL, Discovered, prefixed, read_batches
from recrawl.contrib.urlfrontier.items import DEFAULT_CRAWL, LONGEST_NAME, LONGEST_URL, Put, read_info
from recrawl.contrib.urlfrontier.marks import Marks, hashes
from recrawl.contrib.urlfrontier.queues import Crawl, Queue, QueueNames
from recrawl.engine.names.arena import pack

HOST = "http://h.example"
ODD = ["", "a", "http:/", "http://", "https://", "http://?a", "http://&a", "ftp://h.example/", "httpss://a/"]
ODD += [f"{HOST}/a b", f"{HOST}/\x7f", f"{HOST}/ä", "http://bücher.example/", "HTTP://H.example/", f"{HOST}:80/a?b"]
ODD += [f"http://{'h' * 255}/", f"http://{'h' * 256}/", HOST.ljust(LONGEST_URL, "/"), HOST.ljust(LONGEST_URL + 1, "/")]
URLS = st.sampled_from(ODD) | st.integers(0, 300).map(lambda k: f"https://h{k}.example/{'p' * k}")
NAMES = st.sampled_from(["", "c", "a b", "ä", "c" * LONGEST_NAME, "c" * (LONGEST_NAME + 1)])
METADATA = st.dictionaries(
    st.sampled_from(["", "depth", "ä"]), st.lists(st.sampled_from(["", "3", "ö" * 70])), max_size=3
)


@st.composite
def infos(draw):
    info = URLInfo(url=draw(URLS), key=draw(NAMES), crawlID=draw(NAMES))
    for name, values in draw(METADATA).items():
        info.metadata[name].CopyFrom(StringList(values=values))
    return info.SerializeToString() + draw(st.sampled_from([b""] * 6 + [b"\x28\x01", b"\x2a\x02ab", b"\x0a\x01x"]))


@st.composite
def batches(draw):
    """A message with odd fields here and there, as a later version may have them."""
    raw = b"\x0a\x01b" if draw(st.booleans()) else b""
    for info in draw(st.lists(infos(), max_size=5)):
        raw += b"\x12" + _varint(len(info)) + info + draw(st.sampled_from([b""] * 8 + [b"\x18\x07", b"\x1a\x01a"]))
    return Batch.FromString(raw)


def _varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + _varint(n >> 7)


def plain(put):
    """A put whose metadata are as a parser reads them: one order, the last of each name."""
    return put and put._replace(metadata=URLInfo.FromString(put.metadata).SerializeToString(deterministic=True))


def copies(messages):
    """Messages to be read once more: reading takes their fields."""
    return [Batch.FromString(batch.SerializeToString()) for batch in messages]


def puts_of(found):
    return [plain(found.put(row)) if crawl >= 0 else None for row, crawl in enumerate(found.crawl.tolist())]


@given(st.lists(batches(), max_size=4))
def test_batches_are_read_as_each_item_by_itself(messages):
    one_by_one = [plain(read_info(info, None)) for batch in copies(messages) for info in batch.items]
    assert puts_of(read_batches(messages)) == one_by_one
    assert puts_of(Discovered.of(one_by_one)) == one_by_one


def test_one_crawl_and_several():
    items = [URLInfo(url=f"{HOST}/{k}", crawlID=crawl) for k, crawl in enumerate(["c", "c", "d", ""])]
    found = read_batches([Batch(items=items[:2]), Batch(items=items[2:])])
    assert [found.put(row) for row in range(4)] == [read_info(info, None) for info in items]
    assert found.crawls == ["c", "d", DEFAULT_CRAWL]
    assert found.take([2, 0]).column(URL).texts() == [f"{HOST}/2", f"{HOST}/0"]
    assert len(read_batches([Batch(ID="b")])) == len(Discovered.of([])) == 0


def test_names_with_numbers_differ_if_numbers_or_names_do():
    names = prefixed(np.array([0, 1, 256, 0]), pack(["a", "a", "", "\0a"]))
    assert len({names.data[first:last].tobytes() for first, last in zip(names.starts, names.ends, strict=True)}) == 4


@given(st.lists(st.tuples(st.sampled_from(["add", "remove", "has"]), st.lists(st.integers(0, 2000)))))
def test_marks_are_a_set(acts):
    marks, twin = Marks(), set()
    marks.add(hashes([7] * 400, pack([str(k) for k in range(5000, 5400)])))  # close to the room of an empty one
    for act, numbers in acts:
        values = hashes([k % 3 for k in numbers], pack([str(k) for k in numbers]))
        if act == "add":
            new = [k not in twin and k not in numbers[:place] for place, k in enumerate(numbers)]
            assert marks.add(values).tolist() == new
            twin |= set(numbers)
        elif act == "remove":
            marks.remove(values)
            twin -= set(numbers)
        assert marks.has(values).tolist() == [k in twin for k in numbers]
        assert len(marks) == 400 + len(twin)
    marks.clear()
    assert len(marks) == 0


def test_hashes_differ_by_owner_length_and_every_byte():
    names = [
        "",
        "\0",
        "\0" * 7,
        "\0" * 8,
        "\0" * 9,
        "a" * 16,
        "a" * 17,
        *("a" * k + "b" + "a" * (16 - k) for k in range(17)),
    ]
    found = [hashes([owner] * len(names), pack(names)) for owner in (0, 1, 2**40)]
    assert len(np.unique(found)) == 3 * len(names)


def test_queues_are_found_by_name_also_after_many_were_deleted(monkeypatch):
    monkeypatch.setattr("recrawl.contrib.urlfrontier.queues._FEW", 2)
    names, crawls = QueueNames(), {name: Crawl(name) for name in "cd"}
    queues = [Queue(k, crawls["cd"[k % 2]], f"h{k // 2}") for k in range(20)]
    names.add(queues)
    there = set(queues)
    asked = Discovered.of([Put(one.crawl.name, one.key, "http://a.example/", None, b"") for one in queues] + [None])
    for first in range(0, 20, 3):
        gone = queues[first : first + 3]
        names.remove(gone)
        there -= set(gone)
        found = names.find(asked)
        assert found[:-1] == [one if one in there else None for one in queues]
        assert found[-1] is None
    names.add(queues[5:7])
    assert names.find(asked)[4:8] == [None, *queues[5:7], None]
