"""Budget and rules: edited with a preview of what changes, used at once, and written to the file of settings."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from recrawl.crawl.config.rules import Rules
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.opening.assemble import check_settings
from recrawl.crawl.run.opening.reload import compare
from recrawl.errors import ParameterError
from recrawl.model.budget import scaled_budget
from recrawl.serve.crawls.view import Snapshot
from recrawl.serve.dashboard.board import Dashboard
from recrawl.serve.dashboard.gate import HEADERS, Form
from recrawl.serve.dashboard.html_route import HtmlRoute
from recrawl.serve.dashboard.settings.settings_text import parse_rules, rules_text, write_settings

_DAY = 86400.0
_MOST = 20_000  # pages that a preview of rules looks at


@dataclass(frozen=True)
class Preview:
    """What other settings would change."""

    changed: tuple[str, ...]
    old_per_day: float
    new_per_day: float
    old_freshness: float | None
    new_freshness: float | None
    looked_at: int  # pages
    effects: dict[str, int]  # pages by what changes for them
    examples: dict[str, list[str]]


def settings_routes(board: Dashboard) -> APIRouter:
    """Routes for budget and rules."""
    router = APIRouter(route_class=HtmlRoute, include_in_schema=False)

    def shown(request: Request, session: Any, given: Form, **values: Any) -> HTMLResponse:
        status = 422 if values.get("problem") else 200
        base = {"given": given, "problem": "", "preview": None, "file": board.file}
        return board.page(request, session, "settings.html", status=status, **{**base, **values})

    @router.get("/settings")
    async def ask(request: Request, times: str = "1") -> HTMLResponse:
        session, settings = board.gate.session(request), board.crawl.settings
        form = Form({"budget": times_budget(settings.budget, times), "rules": rules_text(settings.rule)})
        return shown(request, session, form)

    @router.post("/settings")
    async def change(request: Request) -> Response:
        session, form = await board.gate.form(request)
        old = board.crawl.settings
        try:
            new = edited(old, form)
            if form.get("do") != "apply":
                return shown(request, session, form, preview=await preview(board, old, new))
            done = await apply(board, old, new)
        except (ParameterError, OSError) as problem:
            return shown(request, session, form, problem=" ".join(str(problem).split()))
        session.messages.append(done)
        return RedirectResponse("/settings", 303, headers=HEADERS)

    return router


def times_budget(budget: str, times: str) -> str:
    """The budget times a factor that a link names; the budget itself if that is no factor."""
    try:
        factor = float(times)
        return budget if factor == 1.0 else scaled_budget(budget, factor)
    except ValueError:
        return budget


def edited(old: Settings, form: Form) -> Settings:
    """The settings with the budget and rules of a form."""
    rules = parse_rules(form["rules"], old.rule) if "rules" in form else old.rule
    new = replace(old, budget=form.get("budget", old.budget).strip(), rule=rules)
    check_settings(new)
    return new


async def apply(board: Dashboard, old: Settings, new: Settings) -> str:
    """Use other settings from now on and write them to the file; what was done."""
    names = compare(old, new).changed
    if not names:
        return "Nothing was changed."
    await board.crawl.change(new)
    board.snapshots.expire()
    what = " and ".join({"rule": "the rules", "budget": "the budget"}.get(name, name) for name in names)
    if board.crawl.on_cluster:
        return "The cluster has the budget from now on; its workers take their shares within seconds."
    if board.file is None:
        return f"The crawl uses {what} from now on, until it is restarted: there is no file of settings."
    rules = new.rule if "rule" in names else None
    budget = new.budget if "budget" in names else None
    await asyncio.to_thread(write_settings, board.file, budget, rules)
    return f"The crawl uses {what} from now on; written to {board.file.name}."


async def preview(board: Dashboard, old: Settings, new: Settings) -> Preview:
    """What would change."""
    n = max(board.crawl.tallies().pages, 1)
    before, after = old.rates(n)[1] * _DAY, new.rates(n)[1] * _DAY
    snapshot = board.snapshots.get()
    effects, examples, looked_at = Counter[str](), dict[str, list[str]](), 0
    if old.rule != new.rule:
        urls = await board.crawl.some_urls(_MOST)
        looked_at = len(urls)
        effects, examples = await asyncio.to_thread(rule_effects, urls, old.rules(), new.rules())
    return Preview(
        compare(old, new).changed,
        before,
        after,
        freshness_at(snapshot, before),
        freshness_at(snapshot, after),
        looked_at,
        dict(effects.most_common()),
        examples,
    )


def rule_effects(urls: Sequence[str], old: Rules, new: Rules) -> tuple[Counter[str], dict[str, list[str]]]:
    """Pages by what other rules change for them, with examples."""
    effects, examples = Counter[str](), dict[str, list[str]]()
    words = {"importance": "importance", "min_interval": "least interval", "max_interval": "longest interval"}
    words |= {"headers": "request headers", "detection": "what counts as a change", "render": "rendering"}
    for url in urls:
        before, after = old.of(url), new.of(url)
        if before == after:
            continue
        names = [word for name, word in words.items() if getattr(before, name) != getattr(after, name)]
        if before.never != after.never:
            names.append("no longer crawled" if after.never else "crawled again")
        for name in names or ["other options"]:
            effects[name] += 1
            examples.setdefault(name, [])
            if len(examples[name]) < 3:
                examples[name].append(url)
    return effects, examples


def freshness_at(snapshot: Snapshot | None, per_day: float) -> float | None:
    """The freshness of the long run at a budget, between those of the curve; None beyond it or if it is not known."""
    curve = [] if snapshot is None else snapshot.curve
    for low, high in pairwise(curve):
        if low["budget"] * (1 - 1e-9) <= per_day <= high["budget"] * (1 + 1e-9):
            share = math.log(per_day / low["budget"]) / math.log(high["budget"] / low["budget"])
            return low["freshness"] + share * (high["freshness"] - low["freshness"])
    return None
