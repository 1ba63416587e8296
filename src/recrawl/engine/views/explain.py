"""Explanation: everything behind the decision about one page, and the same in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recrawl._html import bars, table
from recrawl.engine.beliefs.staleness_kernels import doubt_parts
from recrawl.engine.clocks.folders import folders
from recrawl.engine.eligibility.eligibility import Reason
from recrawl.engine.views.expected import expected_pages
from recrawl.engine.views.rate_kernels import signalled_rate
from recrawl.engine.views.signals import SignalFacts, signal_facts
from recrawl.estimate.gamma import GammaPrior
from recrawl.model.spans import DAY, count, format_span, number
from recrawl.schedule.exact import access

if TYPE_CHECKING:
    from recrawl.engine.questions import Questions

Ids = NDArray[np.int64]

_ITS_TURN = "waiting its turn"
_HOPELESS = 36500.0  # days: a page whose turn would come later than this is not worth a crawl
_ALWAYS = 5  # comparisons that all found a change: its rate is not known from above
_WHATEVER_IT_IS_WORTH = {Reason.RETRY, Reason.GONE, Reason.PAUSED}
_VALUE = {"freshness": "crawl value", "harmonic": "crawl value by unseen changes", "age": "crawl value by age"}
_NOTICEABLE = 1.2  # a clock that ran less fast or slow is not mentioned


@dataclass(frozen=True)
class ClockFacts:
    """How the clock of a page's folder ran since the page's copy was fetched.

    ``time`` is the clock time of an ``elapsed`` time: twice as much means that pages of the folder, of its host or all
    pages have changed twice as often as usual since then. ``pages`` is how many other pages follow the clock.
    """

    folder: str
    pages: int
    elapsed: float
    time: float

    @property
    def pace(self) -> float:
        """How fast the clock ran: 1 is the usual pace."""
        return self.time / self.elapsed

    @property
    def says(self) -> bool:
        """Whether the clock ran so fast or slow that it matters."""
        return not 1.0 / _NOTICEABLE < self.pace < _NOTICEABLE

    def __str__(self) -> str:
        if self.pace > 1:
            return f"its folder changed {number(self.pace, 2)} times as often as usual"
        return f"in its folder {number(self.pace, 2)} of the usual changes"


@dataclass(frozen=True)
class Explanation:
    """What the engine knows of a page and makes of it. Times in the engine's unit, ``day`` of which make a day."""

    url: str
    change_rate: float
    change_rate_interval: tuple[float, float]  # 90%
    n_changes: int
    n_crawls: int
    importance: float
    importance_rank: float  # share of pages that are at least as important
    request_rate: float | None  # readers' requests per day
    now: float
    fetched_at: float  # −infinity: there is no copy yet
    elapsed: float
    fresh: float  # probability
    signals: tuple[SignalFacts, ...]  # of sources that have signalled the page
    clock: ClockFacts | None  # None where its folder's clock shows real time
    doubt: dict[str, float]  # −ln(fresh) by cause
    value: float
    threshold: float
    next_at: float
    state: str  # waiting its turn, being crawled, paused, failing, gone …
    failures: int
    day: float
    reasons: tuple[str, ...] = ()  # why it may not be picked now (`Reason`), the first of them in ``state``
    wait_until: float = -math.inf  # until when it waits after a failure, because it is gone, or deferred
    objective: str = "freshness"  # what the value measures
    price: float = 0.0  # of a crawl, in the unit of the value; 0: none
    policy: str = "value"  # how pages are chosen
    chosen: str = ""  # what a policy by rates says of the page; its value is 1 when its turn has come

    def named(self, names: Sequence[str]) -> Explanation:
        """The same with the names of signal sources, by number."""
        named = (replace(one, name=names[one.source] if one.source < len(names) else "") for one in self.signals)
        return replace(self, signals=tuple(named))

    def as_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON."""
        found = {name: value if value not in (math.inf, -math.inf) else None for name, value in asdict(self).items()}
        return {**found, "doubt": {name: part for name, part in self.doubt.items() if math.isfinite(part)}}

    def __str__(self) -> str:
        return "\n".join([self._changes(), self._importance(), self._copy(), self._decision()])

    def _repr_html_(self) -> str:
        """The explanation as a table, and what the doubt about the copy comes from, for notebooks."""
        names = ("changes", "importance", "copy", "decision")
        rows = zip(names, (self._changes(), self._importance(), self._copy(), self._decision()), strict=True)
        doubt = {name: part for name, part in self.doubt.items() if 0 < part < math.inf}
        parts = [(f"stale: {name}", part, f"{number(-100 * math.expm1(-part))}%") for name, part in doubt.items()]
        return table(self.url, rows) + bars([("fresh", self.fresh, f"{number(100 * self.fresh)}%"), *parts])

    def _changes(self) -> str:
        low, high = (self._span(1 / rate if rate > 0 else math.inf) for rate in reversed(self.change_rate_interval))
        seen = f"{count(self.n_changes, 'change')} seen in {count(self.n_crawls, 'comparison')}"
        if self.n_changes == self.n_crawls >= _ALWAYS:  # how much more often, no comparison can tell
            return f"changes more often than it is crawled ({seen})"
        return f"changes about every {self._span(1 / self.change_rate)} (90%: {low} to {high}; {seen})"

    def _importance(self) -> str:
        top = number(100 * self.importance_rank, 2)
        asked = "" if self.request_rate is None else f": {number(self.request_rate)} reader requests a day"
        return f"importance {number(self.importance)}, top {top}%{asked}"

    def _copy(self) -> str:
        heard = [str(facts) for facts in self.signals if facts.heard]
        if self.clock is not None and self.clock.says:
            heard.append(str(self.clock))
        since = f"; since then {', '.join(heard)}" if heard else ""
        if self.fetched_at == -math.inf:
            return "never fetched: there is no copy yet"
        return f"last crawl {self._span(self.elapsed)} ago, fresh with probability {self.fresh:.2f}{since}{self._why()}"

    def _why(self) -> str:
        """Which part weighs most in the doubt, where there is more than one."""
        total = sum(max(part, 0.0) for part in self.doubt.values())
        shares = {name: part / total for name, part in self.doubt.items() if total > 0 and part > 0.005 * total}
        if set(shares) <= {"own rate"}:
            return ""
        order = sorted(shares, key=lambda name: -shares[name])
        return "; doubt: " + ", ".join(f"{100 * shares[name]:.0f}% {name}" for name in order)

    def _decision(self) -> str:
        cost = max(self.threshold, self.price)
        costs = f"a crawl costs {number(cost)} now" if cost < access.OVERDUE else "pages that are overdue come first"
        worth = f"{_VALUE[self.objective]} {number(self.value)}, {costs}"
        if self.price > 0.0:
            saved, price = self._span(self.value), self._span(self.price)
            worth = f"a crawl saves {saved} of staleness times importance, its price is {price}"
        if self.chosen:
            worth = f"{self.chosen}; {100 * min(self.value, 100.0):.0f}% of its turn have passed"
        if self.value >= access.OVERDUE:
            worth = "older than it may be"
        elif self.fetched_at == -math.inf:
            worth = "without a copy" if self.importance > 0 else "without importance"
        if self.state != _ITS_TURN and not (set(self.reasons) == {Reason.HOST} and self.value < cost < access.OVERDUE):
            return self.state if set(self.reasons) & _WHATEVER_IT_IS_WORTH else f"{worth}: {self.state}"
        wait = self.next_at - self.now
        if wait > _HOPELESS * self.day:
            kept = "by this policy" if self.chosen else f"at this {'price' if self.value < self.price else 'budget'}"
            return f"{worth}: never worth a crawl {kept}"
        if self.value < self.price:
            return f"{worth}: it costs more than it saves for another {self._span(wait)}"
        return f"{worth}: next crawl {'now' if wait < 1e-3 else f'in about {self._span(wait)}'}"

    def _span(self, time: float) -> str:
        return format_span(time / self.day * DAY)


def explain(engine: Questions, page: int, now: float) -> Explanation:
    """Everything behind the decision about a page."""
    scheduler, belief, day = engine.scheduler, engine.beliefs.belief, engine.settings.day
    rows = np.array([page])
    fetched_at, weight = float(engine.fetched_at(rows)[0]), float(access.importance(scheduler, rows)[0])
    elapsed = max(now - fetched_at, 0.0)
    rate = float(expected_pages(engine, rows).change_rate[0])
    requests = engine.requests
    value = float(scheduler.value(rows, now)[0])
    return Explanation(
        url=engine.url(rows)[0],
        change_rate=rate,
        change_rate_interval=_rate_interval(engine, page, rate),
        n_changes=int(belief.n_changes[page]),
        n_crawls=int(belief.n_crawls[page]),
        importance=weight,
        importance_rank=float((access.importance(scheduler, engine.ids()) >= weight).mean()),
        request_rate=None if requests is None else float(requests.rate(now, page)[0]) * day,
        now=now,
        fetched_at=fetched_at,
        elapsed=elapsed,
        fresh=float(engine.fresh(rows, now)[0]),
        signals=signal_facts(engine, page),
        clock=_clock(engine, page, now),
        doubt=_doubt(engine, page, now),
        value=value,
        threshold=scheduler.threshold,
        next_at=_next_at(engine, page, now, value),
        state=_state(engine, page, now),
        failures=engine.eligibility.waiting.failures(page),
        day=day,
        reasons=tuple(str(reason) for reason in reasons_of(engine, page, now)),
        wait_until=engine.eligibility.waiting.until(page),
        objective=engine.settings.objective,
        price=engine.settings.price,
        policy=engine.settings.policy,
        chosen=engine.choice.words(engine, page),
    )


def _rate_interval(engine: Questions, page: int, rate: float) -> tuple[float, float]:
    """The 90% interval of a page's change rate; with signals that count, of the gamma with its mean and variance."""
    gamma = engine.beliefs.gamma(np.array([page]))
    mean, variance = signalled_rate(engine.beliefs.belief.signals, page)
    if not math.isnan(mean):
        gamma = GammaPrior.from_mean([mean], [mean**2 / max(variance, 1e-9 * mean**2)])
    low, high = (float(gamma.quantile(p)[0]) for p in (0.05, 0.95))
    return min(low, rate), max(high, rate)


def _next_at(engine: Questions, page: int, now: float, value: float) -> float:
    """When the value reaches what a crawl is worth now, but not before the page and its host are free."""
    waits = (engine.eligibility.waiting.until(page), engine.eligibility.unlikely_until(page))
    worth = now if value >= _asked(engine) and value > 0.0 else _worth_at(engine, page, now)
    return max(worth, *waits, access.host_until(engine.scheduler, page))


def _asked(engine: Questions) -> float:
    """The value that a page needs to be crawled now."""
    return max(engine.threshold, engine.settings.price)


def reasons_of(engine: Questions, page: int, now: float) -> tuple[Reason, ...]:
    """Why a page may not be picked now."""
    return engine.eligibility.reasons(page, now, engine.settings.price)


def _worth_at(engine: Questions, page: int, now: float) -> float:
    """When the value of a page, which never falls, reaches the threshold; infinity: not within a hundred years."""

    def enough(wait: float) -> bool:
        value = float(engine.scheduler.value([page], now + wait)[0])
        return value >= _asked(engine) and value > 0.0

    longest, high = _HOPELESS * engine.settings.day, engine.settings.day / DAY
    while not enough(high):
        high *= 2.0
        if high > longest:
            return math.inf
    low = 0.0
    while high - low > 1e-3 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return now + high


def _clock(engine: Questions, page: int, now: float) -> ClockFacts | None:
    rows = np.array([page])
    begin = float(engine.fetched_at(rows)[0])
    if not engine.clocks.enabled or begin == -math.inf or now <= begin:
        return None
    time = access.clock_between(engine.scheduler, page, begin, now)
    if time == now - begin:
        return None
    folder = folders(engine.url(rows)[0])[-1]
    ids = engine.ids()
    beside = ids[engine.clocks.folder_of(ids) == engine.clocks.folder_of(rows)[0]]
    return ClockFacts(folder, len(beside) - 1, now - begin, time)


def _doubt(engine: Questions, page: int, now: float) -> dict[str, float]:
    """−ln(fresh) by what it comes from: the page's own rate at the usual pace, its folder's clock, signals."""
    begin = float(engine.fetched_at(np.array([page]))[0])
    if begin == -math.inf:
        return {"no copy": math.inf}
    usual, by_clock, heard = doubt_parts(access.header(engine.scheduler), engine.beliefs.belief, page, now)
    return {"own rate": usual, "its folder": by_clock - usual, "signals": heard - by_clock}


def _state(engine: Questions, page: int, now: float) -> str:
    """Why the page is not picked now, in words."""
    reasons = reasons_of(engine, page, now)
    waiting = engine.eligibility.waiting
    wait = f"tried again in {format_span((waiting.until(page) - now) / engine.settings.day * DAY)}"
    failed = f"failed {count(waiting.failures(page), 'time')} in a row, {wait}"
    words = {
        Reason.GONE: f"gone, {wait}",
        Reason.DEFERRED: f"set aside, {wait}",
        Reason.RETRY: failed,
        Reason.PAUSED: "paused",
        Reason.LEASED: "being crawled",
        Reason.HOST: "waiting for its host",
        Reason.UNLIKELY: _unlikely(engine, page, now),
        Reason.PRICE: _too_dear(engine, page, now),
        Reason.COHORT: _ITS_TURN,
    }
    if reasons:
        return words[reasons[0]]
    rest = access.host_until(engine.scheduler, page) - now
    return f"its host rests for another {format_span(rest / engine.settings.day * DAY)}" if rest > 0 else _ITS_TURN


def _too_dear(engine: Questions, page: int, now: float) -> str:
    """For how long a crawl costs more than it saves."""
    wait = (engine.eligibility.unlikely_until(page) - now) / engine.settings.day
    if wait > _HOPELESS:
        return "a crawl never saves as much as it costs"
    return f"it costs more than it saves for another {format_span(wait * DAY)}"


def _unlikely(engine: Questions, page: int, now: float) -> str:
    """How likely the page is to have changed, and when that is enough."""
    chance, least = 1.0 - float(engine.fresh([page], now)[0]), engine.settings.min_change_probability
    wait = format_span((engine.eligibility.unlikely_until(page) - now) / engine.settings.day * DAY)
    likely = f"changed with probability {number(100 * chance, 2)}%, less than {number(100 * least, 2)}%"
    return f"{likely}; that is reached in {wait}"
