"""Checking: runs the rules one after the other, or all at once where time is real."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from recrawl.contrib.urlfrontier.testing.bench import Bench as Bench
from recrawl.contrib.urlfrontier.testing.control_rules import CONTROL_RULES
from recrawl.contrib.urlfrontier.testing.lasting_rules import LASTING_RULES
from recrawl.contrib.urlfrontier.testing.rule import Rule
from recrawl.contrib.urlfrontier.testing.url_rules import URL_RULES


class Result(NamedTuple):
    """A rule and what was found: None if it holds."""

    rule: str
    problem: str | None


async def check_frontier(bench: Bench, *, at_once: bool = False) -> list[Result]:
    """Check all rules that apply; rules about restarts only if the bench can restart its service."""
    rules = [*URL_RULES, *CONTROL_RULES, *(LASTING_RULES if bench.restarts else ())]
    some = [rule for rule in rules if not (rule.strict_only and bench.managed)]
    shared = [rule for rule in some if not rule.alone]
    if at_once:
        found = list(await asyncio.gather(*(_result(rule, bench) for rule in shared)))
    else:
        found = [await _result(rule, bench) for rule in shared]
    return found + [await _result(rule, bench) for rule in some if rule.alone]


async def check_address(address: str, *, managed: bool = False) -> list[Result]:
    """Check a running service in real time."""
    bench = Bench(address, managed=managed)
    try:
        return await check_frontier(bench, at_once=True)
    finally:
        await bench.close()


async def _result(rule: Rule, bench: Bench) -> Result:
    crawls = [bench.crawl(f"{rule.check.__name__}-{k}") for k in range(2)]
    problem = None
    try:
        await rule.check(bench, *crawls)
    except AssertionError as wrong:
        problem = str(wrong) or "does not hold"
    except Exception as wrong:
        problem = f"{type(wrong).__name__}: {' '.join(str(wrong).split())[:200]}"
    for crawl in crawls:
        try:
            await bench.client.DeleteCrawl(value=crawl)
        except Exception as wrong:
            problem = problem or f"the crawl cannot be deleted: {type(wrong).__name__}"
    return Result(rule.text, problem)
