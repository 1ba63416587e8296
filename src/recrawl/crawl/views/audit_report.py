"""The text of audits: each audit beside its forecast, and whether the two agree."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from recrawl.estimate.audit import Audit, verdict
from recrawl.model.spans import number


def audit_rows(audit: Audit) -> list[tuple[str, str]]:
    """Label and text of each line about one audit."""
    low, high = audit.interval
    when = datetime.fromtimestamp(audit.ended_at).isoformat(" ", "seconds")
    unknown = f", {audit.unknown} could not be judged" if audit.unknown else ""
    return [
        ("freshness, audited", f"{audit.freshness:.3f} ({low:.3f} to {high:.3f} at {audit.level:.0%})"),
        ("", f"{audit.fresh} of {audit.draws} draws were fresh{unknown}; {audit.requests} requests, {when}"),
        ("freshness, forecast", f"{audit.forecast:.3f} for the same moment"),
    ]


def verdict_text(audits: Sequence[Audit]) -> str:
    """One sentence: do forecasts and audits agree? At least one audit is needed.

    "agree" is said only where the last interval holds the forecast.
    """
    found = verdict(audits)
    assert found is not None
    last = "the last audit" if found.audits == 1 else f"the last {found.audits} audits"
    chance = number(found.p_value, 2)
    if not found.agree:
        return (
            f"DISAGREE: by {last} the copies are {found.direction} than forecast "
            f"(if the forecast were right, the probability of this would be {chance}); believe the audit"
        )
    if audits[-1].holds_forecast:
        return "agree"
    return (
        "differ, but not more than chance explains: the forecast lies outside the last interval "
        f"(if it were right, the probability of this would be {chance})"
    )
