"""A demo run with a live view, and its figures as text."""

from __future__ import annotations

import asyncio
import math
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from recrawl._compile import compiling
from recrawl.cli.shared.options.own_command import own_command
from recrawl.demo.live import LiveDemo, warm_up
from recrawl.demo.progress import Progress
from recrawl.demo.verdict import Verdict, second_half
from recrawl.simulate.tally import Run

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 60
_EVERY = 5.0  # seconds between two lines


def watched(demo: LiveDemo, *, quiet: bool) -> Verdict:
    """Run a demo, with a live view on standard error where that is a terminal; Ctrl-C ends it early and cleanly."""
    console = Console(stderr=True)
    if quiet:
        asyncio.run(warm_up())
        return asyncio.run(_run(demo, lambda progress: None))
    if not console.is_terminal:
        _say("getting ready: a short demo in memory")
        asyncio.run(warm_up())
        return asyncio.run(_run(demo, _Lines()))
    with console.status("getting ready: a short demo in memory") as status, compiling.shown_by(status.update):
        asyncio.run(warm_up())
    with Live(console=console, transient=True, refresh_per_second=4) as live:
        return asyncio.run(_run(demo, lambda progress: live.update(_view(progress))))


def _say(line: str) -> None:
    print(f"recrawl: {line}", file=sys.stderr, flush=True)  # noqa: T201


class _Lines:
    """A line about the progress of a demo every few seconds, where there is no terminal for a view."""

    def __init__(self) -> None:
        self._phase, self._said_at = "", -math.inf

    def __call__(self, progress: Progress) -> None:
        if progress.phase == self._phase and time.monotonic() - self._said_at < _EVERY:
            return
        self._phase, self._said_at = progress.phase, time.monotonic()
        if progress.phase != "crawling":
            _say(f"first copies of all pages: {progress.requests} requests so far")
            return
        passed = f"{max(progress.elapsed, 0.0):.0f} of {progress.seconds:.0f} s"
        _say(f"crawling a changing web on loopback, {passed}: {progress.requests} requests, {progress.true:.0%} fresh")


async def _run(demo: LiveDemo, on_progress: Callable[[Progress], None]) -> Verdict:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, RuntimeError, ValueError):  # not on every system, not in every thread
            loop.add_signal_handler(number, demo.stop)
    return await demo.run(on_progress)


def _view(progress: Progress) -> Group:
    if progress.phase != "crawling":
        head = f"first copies of all pages: {progress.requests} requests so far"
        return Group(Text(head))
    table = Table.grid(padding=(0, 2))
    table.add_row("time", f"{max(progress.elapsed, 0.0):.0f} of {progress.seconds:.0f} s (each stands for an hour)")
    table.add_row(
        "requests", f"{progress.requests}, {progress.changes_found} changes found, {progress.failures} failed"
    )
    table.add_row(
        "fresh now", Text(f"{progress.true:6.1%}  {_spark([true for _, true in progress.over_time])}", "bold")
    )
    table.add_row("expected", f"{progress.expected:6.1%}  {_spark([seen for seen, _ in progress.over_time])}")
    return Group(Text("crawling a changing web on loopback (Ctrl-C ends it early)"), table)


def _spark(values: Sequence[float]) -> str:
    """Values from 0 to 1 as a row of bars.

    >>> _spark([0.0, 0.5, 1.0])
    '▁▅█'
    """
    if not values:
        return ""
    step = max(1, -(-len(values) // _WIDTH))
    means = [sum(part) / len(part) for part in (values[k : k + step] for k in range(0, len(values), step))]
    return "".join(_BARS[min(int(len(_BARS) * mean), len(_BARS) - 1)] for mean in means)


def print_verdict(verdict: Verdict, database: Path, example: str, files: Sequence[Path]) -> None:
    """The table, what the engine expected, and where to look further."""
    console = Console()
    changes = verdict.changes.sum() / verdict.seconds
    console.print(
        f"{len(verdict.trace)} pages on loopback changed {changes:.0f} times a second; "
        f"{verdict.requests / verdict.seconds:.1f} requests a second were made for {verdict.seconds:.0f} s.",
        highlight=False,
        soft_wrap=True,
    )
    console.print(_table(verdict))
    if verdict.sources:
        console.print(_signals(verdict))
    wrong = verdict.detection.imagined + verdict.detection.missed
    lines = (
        *_second_half(verdict),
        f"Of {verdict.detection.looks} comparisons {wrong} were wrong; {verdict.not_modified} answers were "
        f"'not modified', {verdict.failures} requests failed, {verdict.forbidden} were against robots.txt.",
    )
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)
    where = ("--database", str(database))
    look = (own_command("status", *where), own_command("signals", *where), own_command("why", example, *where))
    console.print(f"The database is {database}. Look at it with:", markup=False, highlight=False, soft_wrap=True)
    for command in look:
        console.print(f"  {command}", markup=False, highlight=False, soft_wrap=True)
    for file in files:
        console.print(f"written: {file}", markup=False, highlight=False, soft_wrap=True)


def _second_half(verdict: Verdict) -> list[str]:
    """What was forecast at half time, and what came true."""
    half = verdict.half
    if half is None:
        return ["It ended before half of its time was over: there is no forecast to compare."]
    forecast = half.forecast
    return [
        f"At half time the engine forecast {forecast.freshness:.1%} for the rest "
        f"({forecast.level:.0%}: {forecast.low:.1%} to {forecast.high:.1%}); {half.freshness:.1%} came true"
        f"{'' if half.holds else ', which is outside'}.",
        f"Meanwhile it expected its copies to be {verdict.expected:.1%} fresh at the moment.",
    ]


def _table(verdict: Verdict) -> Table:
    table = Table(title="Share of time that copies were fresh, by importance", title_justify="left")
    for name in ("policy", "freshness", "second\nhalf", "requests", "changes\nfound", "how"):
        table.add_column(name, justify="left" if name in ("policy", "how") else "right", no_wrap=name != "how")

    def row(name: str, run: Run, requests: int, how: str, style: str = "") -> None:
        half = second_half(run)
        shares = f"{run.freshness:.1%}", "" if math.isnan(half) else f"{half:.1%}"
        table.add_row(name, *shares, f"{requests:,}", f"{run.changes_found:,}", how, style=style)

    row("recrawl", verdict.truth, verdict.requests, "live", "bold")
    without = verdict.without_signals
    if without is not None:
        row("without signals", without.run, without.requests, "live, the same engine")
    for rival in verdict.rivals:
        row(rival.name, rival.run, rival.run.requests, f"simulated; {rival.setting}")
    return table


def _signals(verdict: Verdict) -> Table:
    """What sites said of their changes, and how far that was used."""
    title = f"What sites said of their changes; {verdict.polls} of the requests were polls"
    table = Table(title=title, title_justify="left")
    for name in ("site", "how", "signals", "crawls\nafter", "changes\nfound", "learned\nprecision", "trust"):
        table.add_column(name, justify="left" if name in ("site", "how", "trust") else "right")
    for one in verdict.sources:
        precision = "" if one.precision is None else f"{one.precision:.0%}"
        counts = (f"{count:,}" for count in (one.signals, one.crawls, one.changes))
        table.add_row(one.site, one.says, *counts, precision, one.trust)
    return table
