"""What requests and answers hold, as JSON. Times are seconds since 1970, durations seconds."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Base64Bytes, BaseModel, ConfigDict, Field

Url = Annotated[str, Field(min_length=1, max_length=4000)]
Text = Annotated[str, Field(max_length=2000)]
LeaseId = Annotated[str, Field(min_length=1, max_length=100)]
Importance = Annotated[float, Field(ge=0.0, le=1e12)]


class Model(BaseModel):
    """Fields that are not known are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class PickRequest(Model):
    """How many pages, for how long, of which hosts, and how long to wait for work."""

    n: int = Field(100, ge=1, le=1000, strict=True)
    lease: float = Field(300.0, ge=1.0, le=86400.0, description="seconds that nobody else gets the pages")
    hosts: list[Annotated[str, Field(min_length=1, max_length=255)]] | None = Field(None, max_length=1000)
    wait: float = Field(0.0, ge=0.0, le=30.0, description="seconds to wait for work")


class PickedPage(Model):
    """A page to crawl; etag and last_modified are to be sent, so that the answer may be 304."""

    lease: str
    url: str
    until: float
    etag: str | None = None
    last_modified: str | None = None


class PickAnswer(Model):
    """The pages, best first; none: there is nothing to crawl now."""

    pages: list[PickedPage]


class OutcomeIn(Model):
    """What came of a lease: a status, or an error; the body, its digest, or whether it changed."""

    lease: LeaseId
    status: int | None = Field(None, ge=100, le=599, strict=True)
    error: Text | None = None
    body: str | None = Field(None, description="the body as text")
    body_base64: Base64Bytes | None = Field(None, description="the body as bytes, in base64")
    digest: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    changed: bool | None = None
    etag: Text | None = None
    last_modified: Text | None = None
    content_type: Text | None = None
    final_url: Url | None = None
    fetched_at: float | None = Field(None, ge=0.0, le=1e11)
    took: float = Field(0.0, ge=0.0, le=1e6)
    requests: int = Field(1, ge=0, le=100, strict=True, description="all that were made, redirects and robots.txt too")
    retry_after: float | None = Field(None, ge=0.0, le=604800.0)
    good_for: float | None = Field(None, ge=0.0, le=1e9, description="seconds that cache headers call the answer good")
    links: list[Url] = Field(default_factory=list, max_length=10_000)


class RecordRequest(Model):
    """Outcomes of leases."""

    outcomes: list[OutcomeIn] = Field(max_length=1000)


Word = Literal["recorded", "late", "repeated", "outdated", "released", "removed", "unknown", "lost"]


class ResultsAnswer(Model):
    """One word for each row of the request."""

    results: list[Word]


class ReleaseRequest(Model):
    """Leases whose pages are not crawled."""

    leases: list[LeaseId] = Field(max_length=1000)


class NewPageIn(Model):
    """A page to add."""

    url: Url
    importance: Importance = 1.0


class AddRequest(Model):
    """Pages to add."""

    pages: list[NewPageIn] = Field(max_length=10_000)


class AddAnswer(Model):
    """How many pages are new, and how many were there already."""

    added: int
    known: int


class PageChangeIn(Model):
    """What is to be different about a page."""

    url: Url
    importance: Importance | None = None
    paused: bool | None = None


class UpdateRequest(Model):
    """Pages to change."""

    pages: list[PageChangeIn] = Field(max_length=10_000)


class UpdateAnswer(Model):
    """How many pages were changed."""

    updated: int


class RemoveRequest(Model):
    """Pages to remove."""

    urls: list[Url] = Field(max_length=10_000)


class RemoveAnswer(Model):
    """How many pages were removed."""

    removed: int


class PageOut(Model):
    """A page; change_rate is per day, fresh the probability that the copy is fresh."""

    url: str
    importance: float
    fetched_at: float | None
    change_rate: float
    fresh: float
    paused: bool


class PagesQuery(Model):
    """Which pages to list."""

    cursor: Annotated[str, Field(max_length=8000)] | None = None
    limit: int = Field(100, ge=1, le=1000)


class PagesAnswer(Model):
    """Pages in the order in which they were added; without a cursor there are no more."""

    pages: list[PageOut]
    cursor: str | None = None


class ReadersRequest(Model):
    """Pages that readers asked for; a URL that is named twice counts twice."""

    urls: list[Url] = Field(max_length=10_000)


class ReadersAnswer(Model):
    """How many requests were counted, and how many were for URLs that are no pages."""

    counted: int
    unknown: int


class SignalIn(Model):
    """A page, or all pages below a prefix, and perhaps when it changed: a time, a date or seconds since 1970."""

    url: Url | None = None
    prefix: Url | None = None
    changed_at: str | float | None = None


class SignalsRequest(Model):
    """Pages that have changed."""

    signals: list[SignalIn] = Field(max_length=10_000)


class SignalsAnswer(Model):
    """What became of the signals."""

    accepted: int
    repeated: int
    outdated: int
    unknown: int


class UrlQuery(Model):
    """A page."""

    url: Url


class ForecastQuery(Model):
    """A budget in words, such as 2/s or 1/page/day."""

    budget: Annotated[str, Field(min_length=1, max_length=100)] | None = None


class BudgetRequest(Model):
    """Another budget, in words, until the service starts again."""

    budget: Annotated[str, Field(min_length=1, max_length=100)]


class BudgetAnswer(Model):
    """The budget in words and in requests per second, and how much of it was used since the start."""

    budget: str | None
    rate: float
    used: int
    lapsed: float


class HostsQuery(Model):
    """How many hosts."""

    limit: int = Field(100, ge=1, le=10_000)


class HostOut(Model):
    """A host: pages, seconds between requests, until when it is not asked."""

    host: str
    pages: int
    delay: float
    held_until: float | None = None


class HostsAnswer(Model):
    """The hosts with most pages, and how many there are."""

    hosts: list[HostOut]
    total: int


class EventsQuery(Model):
    """From where on events are sent; also given as Last-Event-ID."""

    cursor: Annotated[str, Field(max_length=200)] | None = None


class Facts(BaseModel):
    """Facts by name."""

    model_config = ConfigDict(extra="allow")
