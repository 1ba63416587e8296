"""Which servers' "not modified" is believed."""

import json
from random import Random

import pytest

from recrawl.crawl.http.cache_headers import LONGEST, fresh_for, modified_at
from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.polite.not_modified import DISTRUSTED_FOR, NotModified, Validators
from recrawl.errors import ParameterError

HOST = "http://a.example"


class Page:
    """A page of a server that is honest, or lies in one of several ways."""

    def __init__(self, rng, lie=None, change=0.2, url=f"{HOST}/1"):
        self.rng, self.lie, self.change, self.url = rng, lie, change, url
        self.content = 0
        self.n_served = 0

    def validators(self):
        self.n_served += 1
        date = f"date {self.content}"
        if self.lie == "fixed":  # validators that never move
            return Validators('"fixed"', None)
        if self.lie == "moving":  # an ETag that moves every time
            return Validators(f'"{self.n_served}"', date)
        return Validators(f'"{self.content}"', date)

    def fetch(self, sent, now):
        """The answer, and the content it showed (None: not modified)."""
        if self.rng.random() < self.change:
            self.content += 1
        current = self.validators()
        asked = sent.etag or sent.last_modified
        same = sent.etag == current.etag if sent.etag else sent.last_modified == current.last_modified
        not_modified = bool(asked) and (self.lie == "always" or same)
        headers = {
            name: value for name, value in (("etag", current.etag), ("last-modified", current.last_modified)) if value
        }
        status = 304 if not_modified else 200
        fetched = Fetched(self.url, self.url, status, now, 0.0, headers, not_modified=not_modified)
        return fetched, None if not_modified else self.content


class Crawl:
    """Crawls of pages, with what a crawler remembers of them."""

    def __init__(self, seed=1, **options):
        self.trust = NotModified(rng=Random(seed), **options)
        self.kept = {}
        self.sent = []
        self.now = 0.0

    def crawl(self, page):
        self.now += 60.0
        had, known = self.kept.get(page.url, (Validators(), None))
        sent = self.trust.choose(page.url, had, self.now)
        self.sent.append(sent)
        fetched, content = page.fetch(sent, self.now)
        changed = content is not None and known is not None and content != known
        self.trust.learn(page.url, had, sent, fetched, changed=changed)
        if content is not None:
            self.kept[page.url] = Validators.of(fetched.headers), content

    def crawls_until_doubt(self, pages, most=500):
        for n in range(most):
            self.crawl(pages[n % len(pages)])
            if not self.trust.trusts(pages[0].url, self.now):
                return n
        return None


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("change", [0.0, 0.05, 0.5, 1.0])
def test_an_honest_server_stays_believed(seed, change):
    crawl = Crawl(seed)
    assert crawl.crawls_until_doubt([Page(Random(seed), change=change)], most=1000) is None
    assert any(sent.etag for sent in crawl.sent)


@pytest.mark.slow
def test_of_many_honest_servers_few_are_doubted():
    doubted = 0
    for seed in range(300):
        crawl = Crawl(seed)
        pages = [Page(Random(seed), change=0.1 + 0.2 * n, url=f"{HOST}/{n}") for n in range(4)]
        doubted += crawl.crawls_until_doubt(pages, most=300) is not None
    assert doubted <= 3


@pytest.mark.parametrize("seed", range(20))
def test_a_server_that_always_says_not_modified_is_found_out(seed):
    found = Crawl(seed).crawls_until_doubt([Page(Random(seed), "always")])
    assert found is not None
    assert found < 150


@pytest.mark.parametrize("seed", range(20))
def test_validators_that_never_move_are_found_out_at_the_first_look(seed):
    crawl = Crawl(seed)
    page = Page(Random(seed), "fixed")
    found = crawl.crawls_until_doubt([page])
    assert found is not None
    assert found < 120
    checks = [sent for sent in crawl.sent[1:] if sent == Validators()]
    assert len(checks) < 10


def test_a_lying_page_is_doubted_alone_until_three_are_caught():
    crawl = Crawl()
    liars = [Page(Random(n), "fixed", 1.0, f"{HOST}/{n}") for n in range(3)]
    honest = f"{HOST}/honest"
    for n, page in enumerate(liars):
        assert crawl.trust.trusts(honest, crawl.now)
        while crawl.trust.trusts(page.url, crawl.now):
            crawl.crawl(page)
        if n == 0:
            assert crawl.trust.trusts(liars[1].url, crawl.now)
    assert not crawl.trust.trusts(honest, crawl.now)
    assert crawl.trust.trusts("http://other.example/", crawl.now)


def test_doubt_ends_after_a_month():
    crawl = Crawl()
    page = Page(Random(1), "fixed", 1.0)
    assert crawl.crawls_until_doubt([page]) is not None
    for _ in range(50):
        crawl.crawl(page)
        assert crawl.sent[-1] == Validators()
    crawl.now += DISTRUSTED_FOR
    page.lie = None
    crawl.crawl(page)
    assert crawl.crawls_until_doubt([page]) is None
    assert crawl.sent[-1].etag or crawl.sent[-2].etag


def test_an_etag_that_moves_is_left_out_and_the_date_works():
    crawl = Crawl()
    page = Page(Random(1), "moving", change=0.05)
    for _ in range(100):
        crawl.crawl(page)
    late = crawl.sent[50:]
    assert all(sent.etag is None for sent in late)
    assert sum(sent.last_modified is not None for sent in late) > 35


def test_about_every_tenth_fetch_is_in_full():
    crawl = Crawl()
    page = Page(Random(1), change=0.0)
    for _ in range(2000):
        crawl.crawl(page)
    full = sum(sent == Validators() for sent in crawl.sent)
    assert 150 < full < 250


def test_pages_without_validators_and_failed_fetches_teach_nothing():
    trust = NotModified()
    assert trust.choose(HOST, Validators(), 0.0) == Validators()
    good = Fetched(HOST, HOST, 200, 0.0, 0.0)
    bad = Fetched(HOST, HOST, 500, 0.0, 0.0, failure="http-5xx")
    trust.learn(HOST, Validators(), Validators(), good, changed=True)
    trust.learn(HOST, Validators('"a"'), Validators(), bad, changed=True)
    assert trust.state() == {"hosts": {}, "pages": {}}


def test_what_was_learned_is_kept():
    crawl = Crawl()
    page = Page(Random(1), "fixed", 1.0)
    crawl.crawls_until_doubt([page])
    again = NotModified()
    again.restore(json.loads(json.dumps(crawl.trust.state())))
    assert not again.trusts(page.url, crawl.now)
    assert again.state() == crawl.trust.state()


def test_check_every_must_leave_something():
    with pytest.raises(ParameterError, match="check_every"):
        NotModified(check_every=1)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"cache-control": "max-age=60"}, 60.0),
        ({"cache-control": "public, max-age=60, s-maxage=30"}, 30.0),
        ({"cache-control": 'max-age="60"'}, 60.0),
        ({"cache-control": "MAX-AGE=60"}, 60.0),
        ({"cache-control": "max-age=60", "age": "50"}, 10.0),
        ({"cache-control": "max-age=60", "age": "70"}, 0.0),
        ({"cache-control": "max-age=60", "age": "x"}, 60.0),
        ({"cache-control": "max-age=999999999999"}, LONGEST),
        ({"cache-control": "no-cache"}, 0.0),
        ({"cache-control": "no-store, max-age=60"}, 0.0),
        ({"cache-control": "private"}, None),
        ({"cache-control": "max-age=soon"}, None),
        ({"cache-control": "x-max-age=5"}, None),
        ({"cache-control": "max-age=60", "expires": "Thu, 01 Jan 1970 00:00:00 GMT"}, 60.0),
        ({"expires": "Thu, 01 Jan 1970 00:10:00 GMT"}, 500.0),
        ({"expires": "Thu, 01 Jan 1970 00:10:00 GMT", "date": "Thu, 01 Jan 1970 00:09:00 GMT"}, 60.0),
        ({"expires": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"expires": "0"}, 0.0),
        ({"expires": "-1"}, 0.0),
    ],
)
def test_cache_hints(headers, seconds):
    assert fresh_for(headers, 100.0) == seconds


def test_modified_at():
    assert modified_at({"last-modified": "Thu, 01 Jan 1970 00:01:40 GMT"}) == 100.0
    assert modified_at({"last-modified": "Thu, 01 Jan 1970 00:01:40"}) == 100.0
    assert modified_at({"last-modified": "now"}) is None
    assert modified_at({}) is None


def test_a_state_of_version_0_1_is_read():
    old = {"asked": 9, "asked_changed": 1, "checked": 2, "checked_changed": 0, "liars": 2}
    old |= {"etag_moved": 0, "etag_held": 8, "doubted_until": -1.0}
    again = NotModified()
    again.restore({"hosts": {"a.example": old}, "pages": {}})
    assert again.state()["hosts"]["a.example"]["wrong_pages"] == 2
