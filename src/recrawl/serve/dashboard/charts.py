"""Charts: series of figures for uPlot, and the same for tables."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from recrawl.crawl.audit.history import Point
from recrawl.estimate.audit import Audit

_SHORTEST = 30.0  # seconds between two points of a rate; the start and end of a run are closer
_LEAST = 1  # requests of a point, to say how many changes were found per request


def freshness_chart(history: list[Point], audits: list[Audit]) -> dict[str, Any]:
    """Freshness over time: as is believed, by the ledger, and by audits with their intervals."""
    times = sorted({point.at for point in history} | {audit.ended_at for audit in audits})
    points, judged = {point.at: point for point in history}, {audit.ended_at: audit for audit in audits}
    return {
        "kind": "freshness",
        "times": times,
        "series": [
            {"label": "believed", "values": [points[at].now if at in points else None for at in times]},
            {
                "label": "ledger, since the start",
                "values": [points[at].so_far if at in points else None for at in times],
            },
            {"label": "audit", "values": [judged[at].freshness if at in judged else None for at in times]},
        ],
        "audits": [[audit.ended_at, *audit.interval] for audit in audits],
    }


def requests_chart(history: list[Point], allowed: float) -> dict[str, Any]:
    """Requests per hour over time, beside the budget; ``allowed`` is requests per second."""
    spans = [(early, late) for early, late in pairwise(history) if late.at - early.at >= _SHORTEST]
    rates = [3600.0 * late.requests / (late.at - early.at) for early, late in spans]
    return {
        "kind": "requests",
        "times": [late.at for _, late in spans],
        "series": [
            {"label": "requests per hour", "values": rates},
            {"label": "budget", "values": [3600.0 * allowed] * len(spans)},
        ],
    }


def changes_chart(history: list[Point]) -> dict[str, Any]:
    """Changes found per request over time."""
    useful = [point for point in history if point.requests >= _LEAST]
    shares = [point.changes / point.requests for point in useful]
    return {
        "kind": "share",
        "times": [point.at for point in useful],
        "series": [{"label": "changes found per request", "values": shares}],
    }


def curve_chart(curve: list[dict[str, float]]) -> dict[str, Any]:
    """Freshness over budget."""
    return {
        "kind": "curve",
        "times": [point["budget"] for point in curve],
        "factors": [point["factor"] for point in curve],
        "series": [
            {"label": name, "values": [point[name] for point in curve]} for name in ("low", "high", "freshness")
        ],
    }
