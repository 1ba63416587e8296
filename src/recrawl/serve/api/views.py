"""Endpoints that answer questions: why, forecast, budget, status, hosts, sources."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from recrawl.crawl.urls import canonical
from recrawl.serve.api import models as m
from recrawl.serve.api.endpoint import Call, Endpoint
from recrawl.serve.api.figures import Figures
from recrawl.serve.crawls.view import CrawlView
from recrawl.serve.problems import ProblemError


def view_endpoints(crawl: CrawlView, figures: Figures) -> list[Endpoint]:
    """What people and programs ask about a crawl."""
    views, url = _Views(crawl, figures), {"url": "https://docs.example.org/install"}
    return [
        Endpoint(
            "GET", "/v1/why", "read", "Explain a page", views.why, m.Facts, query=m.UrlQuery, example=url, about="url"
        ),
        Endpoint(
            "GET",
            "/v1/forecast",
            "read",
            "Forecast freshness at a budget",
            views.forecast,
            m.Facts,
            query=m.ForecastQuery,
            example={"budget": "2/s"},
            about="budget",
        ),
        Endpoint("GET", "/v1/budget", "read", "Read the budget", views.budget, m.BudgetAnswer),
        Endpoint(
            "PUT",
            "/v1/budget",
            "admin",
            "Set the budget",
            views.set_budget,
            m.BudgetAnswer,
            m.BudgetRequest,
            example={"budget": "20/s"},
            about="budget",
        ),
        Endpoint("GET", "/v1/status", "read", "Read the figures of recrawl status", views.status, m.Facts),
        Endpoint(
            "GET",
            "/v1/hosts",
            "read",
            "List hosts",
            views.hosts,
            m.HostsAnswer,
            query=m.HostsQuery,
            example={"limit": 5},
        ),
        Endpoint("GET", "/v1/sources", "read", "Read the figures of recrawl signals", views.sources, m.Facts),
    ]


class _Views:
    """The answers."""

    def __init__(self, crawl: CrawlView, figures: Figures) -> None:
        self._crawl, self._figures = crawl, figures

    async def why(self, call: Call) -> dict[str, Any]:
        url = canonical(call.query.url)
        found = await self._crawl.explain(url)
        if found is None:
            raise ProblemError(404, f"{url} is not among the pages", field="url")
        return {**found.as_dict(), "text": str(found)}

    async def forecast(self, call: Call) -> dict[str, Any]:
        return await self._figures.forecast(call.query.budget)

    async def budget(self, _: Call) -> m.BudgetAnswer:
        budget = self._crawl.budget()
        return m.BudgetAnswer(budget=budget.text, rate=budget.rate, used=budget.used, lapsed=budget.lapsed)

    async def set_budget(self, call: Call) -> m.BudgetAnswer:
        settings = replace(self._crawl.settings, budget=call.body.budget)
        settings.rates(max(self._crawl.tallies().pages, 1))
        await self._crawl.change(settings)
        return await self.budget(call)

    async def status(self, _: Call) -> dict[str, Any]:
        return await self._figures.status()

    async def sources(self, _: Call) -> dict[str, Any]:
        return await self._figures.sources()

    async def hosts(self, call: Call) -> m.HostsAnswer:
        counted = await self._figures.hosts()
        most = counted.most_common(call.query.limit)
        rules = await self._crawl.host_rules([host for host, _ in most])
        found = [
            m.HostOut(host=host, pages=pages, delay=delay, held_until=until)
            for (host, pages), (delay, until) in zip(most, rules, strict=True)
        ]
        return m.HostsAnswer(hosts=found, total=len(counted))
