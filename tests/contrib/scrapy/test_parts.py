"""Parts of the Scrapy add-on without a crawl."""

import asyncio
from dataclasses import make_dataclass

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.settings import Settings

from recrawl.contrib.scrapy import sources
from recrawl.contrib.scrapy.answers import META, digest_of, digest_of_all, failure_report, lease_of, n_requests
from recrawl.contrib.scrapy.options import Options
from recrawl.errors import ParameterError, ServiceError


def options(**given):
    return Options.read(Settings({f"RECRAWL_{name.upper()}": value for name, value in given.items()}))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, "RECRAWL_DATABASE and RECRAWL_URL"),
        ({"database": "a.db", "url": "http://a", "budget": "1/s"}, "RECRAWL_DATABASE and RECRAWL_URL"),
        ({"database": "a.db"}, "RECRAWL_BUDGET"),
        ({"url": "http://a", "budget": "1/s"}, "RECRAWL_BUDGET"),
        ({"database": "a.db", "budget": "1/s", "change": "all"}, "RECRAWL_CHANGE is 'all'"),
        ({"database": "a.db", "budget": "1/s", "lease": "soon"}, "RECRAWL_LEASE"),
    ],
)
def test_settings_that_cannot_be_used_are_named(given, named):
    with pytest.raises(ParameterError, match=named):
        options(**given)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"datbase": "a.db", "budget": "1/s"}, "RECRAWL_DATBASE is not a setting; did you mean RECRAWL_DATABASE?"),
        ({"database": "a.db", "budget": "1/s", "linkz": True}, "RECRAWL_LINKZ is not .*; did you mean RECRAWL_LINKS?"),
        ({"database": "a.db", "budget": "1/s", "xyz_qq": 1}, "RECRAWL_XYZ_QQ is not a setting$"),
        ({"database": "a.db", "budget": "1/s", "links": "maybe"}, "RECRAWL_LINKS is 'maybe': must be True or False"),
        ({"database": "a.db", "budget": "1/s", "process": [1, 2]}, r"RECRAWL_PROCESS is \[1, 2\]: must be True or"),
        ({"database": "a.db", "budget": "1/s", "settings": "keep"}, "RECRAWL_SETTINGS is 'keep': must be a table"),
        ({"database": "a.db", "budget": "1/s", "settings": [1]}, r"RECRAWL_SETTINGS is \[1\]: must be a table"),
    ],
)
def test_misspelt_names_and_wrong_kinds_are_named(given, named):
    with pytest.raises(ParameterError, match=named):
        options(**given)


def test_flags_and_tables_may_be_text_as_on_the_command_line():
    found = options(database="a.db", budget="1/s", links="True", process="0", settings='{"keep": 3}')
    assert (found.links, found.start, found.process, found.more["keep"]) == (True, True, False, 3)


def test_unknown_settings_of_the_crawl_are_named():
    with pytest.raises(ParameterError, match=r"RECRAWL_SETTINGS.*'speed'"):
        options(database="a.db", budget="1/s", settings={"speed": 1}).crawl_settings()


def test_wrong_settings_of_the_crawl_are_named():
    with pytest.raises(ParameterError, match="RECRAWL_SETTINGS: keep: 'one' is not a whole number"):
        options(database="a.db", budget="1/s", settings={"keep": "one"}).crawl_settings()


@pytest.mark.parametrize("ends_well", [True, False])
def test_a_service_is_asked_before_it_is_used(monkeypatch, caplog, ends_well):
    """No answer: one line says so, and it is tried for longer; a refusal is final."""
    caplog.set_level("WARNING", logger="recrawl")
    asked = []

    class Client:
        def __init__(self, url, token, patience):
            asked.append(patience)

        async def release(self, leases):
            assert leases == []
            if len(asked) == 1:
                raise ServiceError("a.example:1: ConnectionRefusedError: no")
            if not ends_well:
                raise ServiceError("401: no such token", 401)

        async def close(self):
            pass

    monkeypatch.setattr(sources, "AsyncClient", Client)
    if ends_well:
        asyncio.run(sources.ServiceSource.open("http://a.example:1", "token"))
    else:
        with pytest.raises(ServiceError, match="401"):
            asyncio.run(sources.ServiceSource.open("http://a.example:1", "token"))
    assert asked == [0.0, 60.0]
    (line,) = [one.getMessage() for one in caplog.records]
    assert line == (
        'recrawl: scrapy.waiting reason="a.example:1: ConnectionRefusedError: no; is recrawl serve running?" '
        "seconds=60.0"
    )


def test_scrapy_s_delay_is_the_desk_s():
    settings = Settings({"RECRAWL_DATABASE": "a.db", "RECRAWL_BUDGET": "1/s", "DOWNLOAD_DELAY": 2.5})
    assert Options.read(settings).crawl_settings().seconds("delay") == 2.5


def test_items_count_by_content_and_order():
    one, other = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    none = frozenset()
    assert digest_of([one], none) == digest_of([other], none)
    assert digest_of([one, {"a": 2}], none) != digest_of([{"a": 2}, one], none)
    assert digest_of([{"a": 1, "at": 5}], frozenset({"at"})) == digest_of([{"a": 1, "at": 6}], frozenset({"at"}))


def test_plain_items_have_the_digests_of_other_items():
    """Stored digests stay valid: a table, a class and an adapter of the same fields are the same item."""
    made = make_dataclass("Made", ["title", "price"])("a", 1.5)
    plain = {"title": "a", "price": 1.5}
    assert digest_of([made], frozenset()) == digest_of([plain], frozenset()) == "105e83e2971d91894828066a30178379"
    nested = [digest_of([{"of": one, "all": [one]}], frozenset()) for one in (made, plain)]
    assert nested[0] == nested[1]
    assert digest_of_all(nested) == digest_of([{"items": nested}], frozenset())


def test_a_request_without_a_lease_has_none():
    assert lease_of(None) is None
    assert lease_of(Request("http://a/", meta={META: False})) is None
    assert lease_of(Request("http://a/", meta={META: {"lease": "x"}})) == "x"


def test_retries_and_redirects_are_counted():
    request = Request("http://a/", meta={"redirect_times": 2, "retry_times": 1})
    assert n_requests(request) == 4
    assert failure_report(TimeoutError(), request, "x").error == "timeout"
    assert failure_report(IgnoreRequest(), Request("http://a/"), "x").requests == 0
    assert failure_report(ValueError(), request, "x").error == "bad-response"
