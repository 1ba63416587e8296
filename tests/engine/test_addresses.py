"""URLs as bytes: the arena against a dict, the parts of URLs against the functions for one URL."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from naive.addresses import NaiveAddresses

from recrawl import Engine
from recrawl.engine.clocks.folders import folder_names
from recrawl.engine.names.addresses import Addresses, host_of, named, urls_of
from recrawl.engine.names.arena import Arena, pack
from recrawl.engine.names.kernels import BLOCK_BITS, LONGEST, Index, fingerprint, starts_of
from recrawl.errors import ParameterError
from recrawl.schedule.testing.trial import same
from recrawl.urls import _PLAIN, name_of

HOSTS = ["a.example", "b.a-b.example.org", "h", "A.example", "1.2.3.4", "x-.example", "é.example", "a..b.co", "a.b1"]
PIECES = ["https://", "http://", "ftp://", "://", "/", "?", "#", ":80", ":8080", "..", ".", "%41", "-", "é", " "]
HALF = "\ud800"  # of a character
WORDS = st.lists(st.sampled_from([*HOSTS, *PIECES, HALF, "x", "Page_1", "q=1&r"]), max_size=9).map("".join)
URLS = st.builds(
    "{}{}{}".format,
    st.sampled_from(["https://", "http://", ""]),
    st.sampled_from(HOSTS),
    st.sampled_from(["", "/", "/x", "/x/", "/x/y.html?q=1", "/./x", "/x/..", "/x?", "/x#y", ":80/", "/a//b"]),
)
NAMES = st.one_of(WORDS, URLS, st.text(max_size=12))


@given(st.lists(NAMES, max_size=8))
def test_parts_are_those_of_single_urls(names):
    urls = urls_of(names)
    assert urls.packed.texts() == names
    place = folder_names(names)
    assert urls.folders().names == place.names
    assert urls.folders().place.tolist() == place.place.tolist()
    hosts, which = urls.hosts()
    assert [hosts[k] for k in which] == [host_of(name) for name in names]
    assert hosts == list(dict.fromkeys(host_of(name) for name in names))
    for name, plain in zip(names, urls.parts.plain.tolist(), strict=True):
        assert not plain or _PLAIN.fullmatch(name), name


@pytest.mark.parametrize(
    "url", ["https://a.example/", "http://b.a-b.example.org/x/y.html?q=a/b", "https://a.bc/_~=&.-"]
)
def test_ordinary_urls_are_recognised(url):
    assert urls_of([url]).parts.plain.all()
    assert urls_of([url]).parts.host_end[0] >= 0


@given(st.lists(URLS, max_size=8))
def test_names_that_callers_give(names):
    try:
        expected = [name_of(name) for name in names]
    except ParameterError:
        with pytest.raises(ParameterError, match="is no http or https URL"):
            named(names, canonical=True)
        return
    assert named(names, canonical=True).packed.texts() == expected
    assert named(names, canonical=False).packed.texts() == names


@pytest.mark.parametrize(
    "bad", [["https://a.example/", 7], ["a", " b"], ["a", ""], [None], ["https://a.example/", " "]]
)
def test_what_is_not_a_url_is_refused(bad):
    with pytest.raises(ParameterError, match="is not a URL"):
        named(bad, canonical=True)


@given(st.binary(max_size=20))
def test_the_fingerprint_is_that_of_its_definition(data):
    mask = 2**64 - 1
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & mask
    value = (value ^ value >> 32) * 0xFF51AFD7ED558CCD & mask
    found = fingerprint(np.frombuffer(bytearray(b"x" + data), np.uint8), 1, 1 + len(data))
    assert int(found) == value ^ value >> 32


SOME = [*(f"https://{host}.example/{k}" for host in "ab" for k in range(12)), "é", ""]


def content(addresses):
    """All URLs by id, and the ids by which pages are found."""
    ids = np.arange(len(addresses))
    return addresses.urls(ids), np.delete(ids, addresses.saved()["absent"]).tolist()


class AddressesMachine(RuleBasedStateMachine):
    """Few names and hardly any bits of fingerprints: names collide, leave and come again."""

    names = st.lists(st.sampled_from(SOME), max_size=9)

    def __init__(self):
        super().__init__()
        self.mine, self.naive = Addresses(), NaiveAddresses()
        self.mine._arena = Arena(bits=0xFF00000000000003)

    @rule(urls=names)
    def add(self, urls):
        assert self.mine.add(pack(urls)).tolist() == self.naive.add(urls)

    @rule(urls=names)
    def append(self, urls):
        self.mine.append(urls)
        self.naive.append(urls)

    @rule(urls=names)
    def come_and_fail(self, urls):
        """Names that were added and could not be kept."""
        n = len(self.mine)
        new = [url for url in urls if url not in self.naive.ids]
        self.mine.add(pack(new))
        self.mine.withdraw(n)

    @rule(data=st.data())
    def forget(self, data):
        if len(self.mine):
            ids = data.draw(st.lists(st.integers(0, len(self.mine) - 1), max_size=6))
            self.mine.forget(np.array(ids, np.int64))
            self.naive.forget(ids)

    @rule(host=st.sampled_from(["a.example", "b.example", "c.example"]))
    def on_host(self, host):
        assert self.mine.on_host(host).tolist() == self.naive.on_host(host)

    @rule()
    def restart(self):
        saved = self.mine.saved()
        self.mine = Addresses.load(saved)
        assert same(self.mine.saved(), saved)

    @rule(urls=names)
    def find(self, urls):
        assert self.mine.known(urls).tolist() == self.naive.known(urls)

    @invariant()
    def same(self):
        assert len(self.mine) == len(self.naive.urls)
        assert content(self.mine) == (self.naive.urls, sorted(self.naive.ids.values()))


AddressesMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestAddresses = AddressesMachine.TestCase


def test_many_names_grow_and_leave():
    mine, naive, rng = Addresses(), NaiveAddresses(), np.random.default_rng(1)
    for _ in range(20):
        urls = [f"https://h{k % 50}.example/{k}" for k in rng.integers(0, 4000, 700)]
        assert mine.add(pack(urls)).tolist() == naive.add(urls)
        gone = rng.choice(len(mine), 300, replace=False)
        mine.forget(gone)
        naive.forget(gone.tolist())
        assert mine.on_host("h7.example").tolist() == naive.on_host("h7.example")
    assert content(mine) == (naive.urls, sorted(naive.ids.values()))


def test_pages_that_cannot_be_added_leave_no_url():
    engine = Engine(1.0)
    engine.add(["https://a.example/1"], 0.0)
    with pytest.raises(ParameterError, match="importance"):
        engine.add(["https://a.example/1", "https://a.example/2"], 0.0, importance=[1.0, -1.0])
    assert engine.addresses.known(["https://a.example/2"]).tolist() == [-1]
    assert engine.add(["https://a.example/3"], 0.0).tolist() == [1]


def test_arena_costs_little_beside_the_bytes():
    urls = [f"https://host{k % 100}.example.org/section/article-{k:06d}.html" for k in range(20_000)]
    addresses = Addresses()
    addresses.add(pack(urls))
    assert addresses.nbytes - sum(map(len, urls)) < 30 * len(urls)


def test_starts_of_names_beyond_four_gigabytes():
    begin = 2**32 - 5
    index = Index(
        np.zeros(0, np.uint8),
        np.array([begin, 3, 9], np.uint64).astype(np.uint32),
        np.array([begin]),
        *[np.zeros(1, kind) for kind in (np.uint8, np.int32, np.uint64)],
    )
    out = np.empty(3, np.int64)
    starts_of(index, np.arange(3), out)
    assert out.tolist() == [begin, 2**32 + 3, 2**32 + 9]


def test_names_of_several_blocks_are_found_after_loading():
    names = [f"{k:x}" * (k % 3) + "/" for k in range(3 << BLOCK_BITS)]
    arena = Arena()
    for first in range(0, len(names), 1000):
        arena.add(pack(names[first : first + 1000]), fresh=True)
    arena = Arena.load(arena.saved())
    assert arena.texts(np.arange(len(arena))) == names
    assert arena.text(1 << BLOCK_BITS) == names[1 << BLOCK_BITS]
    assert [names[k] for k in arena.find(pack(names))] == names


def test_a_name_of_a_megabyte_is_refused():
    with pytest.raises(ParameterError, match=f"a name has {LONGEST + 1} bytes: at most {LONGEST}"):
        Engine(1.0).add(["x" * (LONGEST + 1)], 0.0)
    assert len(Arena().add(pack(["x" * LONGEST]))) == 1
