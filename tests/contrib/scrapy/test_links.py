"""How the pages of links are requested, in this run and in later ones."""

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import IgnoreRequest
from twisted.python.failure import Failure

from recrawl.contrib.scrapy.answers import META, NotModified
from recrawl.contrib.scrapy.options import requests_path
from recrawl.contrib.scrapy.request_file import RequestFile
from recrawl.contrib.scrapy.requests import NotRepeatable, Templates
from recrawl.desk import Picked
from recrawl.errors import StoreError

URL = "https://a.example/article"
PICKED = Picked("lease", URL, 9.0, '"tag"', None)


class News(Spider):
    name = "news"

    def article(self, response, number):
        """A callback."""

    def trouble(self, failure):
        return f"trouble with {failure.request.url}"


def run_of(folder, spider=None, depth=False, failed=None):
    """The requests of one run."""
    spider = spider or News()
    made = Templates(spider, failed or (lambda request, problem: None))
    made.open(RequestFile(folder / "pages.db.scrapy", spider.name), depth=depth)
    return spider, made


def keep(made, request):
    made.found(URL, made.form(request))
    made.write()


def test_a_later_run_requests_a_link_as_it_was_found(tmp_path):
    spider, made = run_of(tmp_path)
    meta = {"section": "sport", "depth": 3, "retry_times": 2, "redirect_times": 1, META: {"lease": "of another page"}}
    headers = {"Accept": ["text/html", "text/plain"], "Referer": "https://a.example/"}
    link = Request(
        URL, spider.article, errback=spider.trouble, cb_kwargs={"number": 7}, meta=meta, headers=headers, priority=3
    )
    keep(made, link)
    made.close()
    spider, made = run_of(tmp_path)
    found = made.request(PICKED)
    assert (found.url, found.callback, found.cb_kwargs) == (URL, spider.article, {"number": 7})
    assert found.headers.getlist("Accept") == [b"text/html,text/plain"]
    assert "Referer" not in found.headers
    known = {"lease": "lease", "until": 9.0, "etag": '"tag"', "errback": "trouble"}
    assert found.meta == {"section": "sport", META: known}
    assert found.dont_filter
    made.close()


def test_depth_is_kept_where_it_is_limited(tmp_path):
    _, made = run_of(tmp_path, depth=True)
    keep(made, Request(URL, meta={"depth": 3}))
    assert made.request(PICKED).meta["depth"] == 3
    made.close()


def test_a_link_whose_url_says_all_needs_no_file(tmp_path):
    _, made = run_of(tmp_path)
    keep(made, Request(URL, meta={"depth": 3}, headers={"Referer": "https://a.example/"}))
    assert made.request(PICKED).callback is None
    assert list(tmp_path.iterdir()) == []


def test_a_link_that_only_this_run_can_request_is_named(tmp_path):
    spider, made = run_of(tmp_path)
    for request, why in {
        Request(URL, lambda response: None): "its callback '<lambda>' is no method of the spider",
        Request(URL, News().article): "its callback 'article' is no method",
        Request(URL, errback=print): "its errback 'print' is no method",
        Request(URL, spider.article, cb_kwargs={"item": spider}): "cb_kwargs, meta or headers are no JSON",
    }.items():
        with pytest.raises(NotRepeatable, match=why):
            made.form(request)


def test_a_method_that_the_spider_no_longer_has_is_one_line(tmp_path, caplog):
    spider, made = run_of(tmp_path)
    keep(made, Request(URL, spider.article, errback=spider.trouble, cb_kwargs={"number": 7}))
    made.close()

    class Other(Spider):
        name = "news"

    _, made = run_of(tmp_path, Other())
    for _ in range(2):
        request = made.request(PICKED)
        assert request.callback is None
        assert request.cb_kwargs == {}, "they are the callback's"
    assert [line.getMessage() for line in caplog.records] == [
        f"recrawl: scrapy.method_missing method={name} what={what} url={URL}"
        for name, what in (("article", "callback"), ("trouble", "errback"))
    ]
    made.close()


def test_spiders_with_one_file_have_requests_of_their_own(tmp_path):
    (one, made), (_, other) = run_of(tmp_path), run_of(tmp_path, News("other"))
    keep(made, Request(URL, one.article))
    assert other.request(PICKED).callback is None
    assert made.request(PICKED).callback == one.article
    made.close()
    other.close()


def test_a_spider_that_makes_requests_itself_keeps_none(tmp_path):
    class Own(News):
        def recrawl_request(self, url):
            return Request(url, self.article, cb_kwargs={"number": 1})

    spider, made = run_of(tmp_path, Own())
    assert made.form(Request(URL, lambda response: None)) is None
    assert made.request(PICKED).callback == spider.article


def test_the_errback_of_a_request_comes_after_what_is_recorded(tmp_path):
    seen = []
    spider, made = run_of(tmp_path, failed=lambda request, problem: seen.append(type(problem)))
    made.keep(Request(URL, errback=spider.trouble))
    request = made.request(PICKED)
    for problem, result in ((IgnoreRequest("no"), f"trouble with {URL}"), (NotModified("304"), None)):
        failure = Failure(problem)
        failure.request = request
        assert request.errback(failure) == (result or failure)
    assert seen == [IgnoreRequest, NotModified]


def test_a_file_that_cannot_be_used_is_one_line(tmp_path):
    (tmp_path / "pages.db.scrapy").write_text("no database, but long enough to be read as one\n" * 40)
    spider, made = run_of(tmp_path)
    with pytest.raises(StoreError, match=r"pages\.db\.scrapy \(RECRAWL_REQUESTS\): file is not a database"):
        keep(made, Request(URL, spider.article))
    with pytest.raises(StoreError, match="file is not a database"):
        made.request(PICKED)


def test_where_requests_are_kept():
    found = [requests_path(name) for name in ("news.db", "postgresql://me@host/x", "")]
    assert found == ["news.db.scrapy", "requests.scrapy", "requests.scrapy"]
