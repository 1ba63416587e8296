"""Endpoints that answer questions: why, forecast, budget, status, hosts, sources."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from recrawl.crawl.run.opening.assemble import LiveCrawl
from recrawl.crawl.urls import canonical
from recrawl.errors import ParameterError
from recrawl.serve.api import models as m
from recrawl.serve.api.endpoint import Call, Endpoint
from recrawl.serve.api.figures import Figures
from recrawl.serve.problems import ProblemError


def view_endpoints(live: LiveCrawl, figures: Figures) -> list[Endpoint]:
    """What people and programs ask about a crawl."""
    views, url = _Views(live, figures), {"url": "https://docs.example.org/install"}
    return [
        Endpoint("GET", "/v1/why", "read", "Explain a page", views.why, m.Facts, query=m.UrlQuery, example=url),
        Endpoint(
            "GET",
            "/v1/forecast",
            "read",
            "Forecast freshness at a budget",
            views.forecast,
            m.Facts,
            query=m.ForecastQuery,
            example={"budget": "2/s"},
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

    def __init__(self, live: LiveCrawl, figures: Figures) -> None:
        self._live, self._figures, self._components = live, figures, live.crawler.components

    async def why(self, call: Call) -> dict[str, Any]:
        engine, url = self._live.crawler.engine, canonical(call.query.url)
        if engine.addresses.known([url])[0] < 0:
            raise ProblemError(404, f"{url} is not among the pages", field="url")
        found = engine.explain(url, self._live.crawler.now()).named(self._components.inbox.sources.names)
        return {**found.as_dict(), "text": str(found)}

    async def forecast(self, call: Call) -> dict[str, Any]:
        return await self._figures.forecast(call.query.budget)

    async def budget(self, _: Call) -> m.BudgetAnswer:
        budget = self._components.budget
        return m.BudgetAnswer(budget=budget.text, rate=budget.rate, used=budget.used, lapsed=budget.lapsed)

    async def set_budget(self, call: Call) -> m.BudgetAnswer:
        settings = replace(self._live.settings, budget=call.body.budget)
        settings.rates(max(len(self._live.crawler.engine), 1))
        done = await self._live.reload(lambda: settings)
        if done.error is not None:
            raise ParameterError(done.error)
        return await self.budget(call)

    async def status(self, _: Call) -> dict[str, Any]:
        return await self._figures.status()

    async def sources(self, _: Call) -> dict[str, Any]:
        return await self._figures.sources()

    async def hosts(self, call: Call) -> m.HostsAnswer:
        counted = await self._figures.hosts()
        limiter, engine, now = self._components.limiter, self._live.crawler.engine, self._live.crawler.now()
        found = []
        for host, pages in counted.most_common(call.query.limit):
            held = engine.held_until(host)
            until = held if held > now else None
            found.append(m.HostOut(host=host, pages=pages, delay=limiter.delay(host), held_until=until))
        return m.HostsAnswer(hosts=found, total=len(counted))
