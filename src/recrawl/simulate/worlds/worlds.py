"""World: pages, the way they change, signals and readers, from which traces are drawn; all of them by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError, unknown
from recrawl.model.pages import Pages
from recrawl.simulate.shop.settings import shop_names, shop_settings
from recrawl.simulate.trace import Signals, Trace
from recrawl.simulate.worlds.events import Events, poisson_events
from recrawl.simulate.worlds.population import SignalKind, bing_like, bing_signals, uniform_pages
from recrawl.simulate.worlds.processes import Constant, Jumping, Process, Renewal, SelfExciting, Wandering
from recrawl.simulate.worlds.rhythms import Seasonal, Together

Array = NDArray[np.float64]
Ids = NDArray[np.int64]
Delay = Callable[[np.random.Generator, int], ArrayLike]
Population = Literal["uniform", "bing", "bing-signals"]

# name -> the population unless another is asked for, and how pages change
_WORLDS: dict[str, tuple[Population, type[Any]]] = {
    "poisson": ("uniform", Constant),
    "uniform": ("uniform", Constant),
    "bing": ("bing", Constant),
    "bing-signals": ("bing-signals", Constant),
    "drifting": ("uniform", Jumping),
    "wandering": ("uniform", Wandering),
    "bursty": ("uniform", Renewal),
    "self-exciting": ("uniform", SelfExciting),
    "seasonal": ("uniform", Seasonal),
    "together": ("uniform", Together),
}


@dataclass(frozen=True)
class World:
    """Something that traces can be drawn from: pages, given or drawn for each trace, and how they change.

    Each change is signalled with probability ``recall`` by each source, false signals come as Poisson(``false_rate``).
    ``delay`` says how late true signals are: a function of (rng, n) or an array of delays to draw from. Readers ask for
    a page as Poisson(``requests`` · importance).

    >>> trace = World("pair", Pages([0.5, 2.0])).draw(1000.0, np.random.default_rng(1))
    >>> trace.n_changes.tolist()
    [501, 1975]
    """

    name: str
    pages: Pages | Callable[[np.random.Generator], Pages]
    process: Process = field(default_factory=Constant)
    delay: Delay | ArrayLike | None = None
    requests: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.requests < np.inf:
            raise ParameterError(f"requests is {self.requests:g}: must be finite and at least 0")

    def draw(self, horizon: float, rng: np.random.Generator, *, start: float = 0.0) -> Trace:
        """What happens from ``start`` for a time of ``horizon``; the trace's pages have the mean rates of that time."""
        if not (0 < horizon < np.inf and np.isfinite(start)):
            raise ParameterError(f"horizon is {horizon:g}: must be finite and above 0")
        end = start + horizon
        pages = self.pages if isinstance(self.pages, Pages) else self.pages(rng)
        changes, change_rate = self.process.draw(pages.change_rate, start, end, rng)
        asked = poisson_events(self.requests * pages.importance, start, end, rng) if self.requests else None
        group, url = self._groups(len(pages))
        return Trace(
            start,
            end,
            offset=changes.offset,
            changed_at=changes.at,
            importance=pages.importance,
            pages=pages if change_rate is pages.change_rate else pages.replace(change_rate=change_rate),
            signals=self._signals(pages, changes, start, end, rng) if pages.has_signals else None,
            request_offset=None if asked is None else asked.offset,
            requested_at=None if asked is None else asked.at,
            group=group,
            url=url,
            name=self.name,
        )

    def _signals(self, pages: Pages, changes: Events, start: float, end: float, rng: np.random.Generator) -> Signals:
        recall, false_rate = (c.reshape(len(pages), -1) for c in (pages.recall, pages.false_rate))
        at, page, source = [], [], []
        for k in range(pages.n_sources):
            caught = rng.random(len(changes.at)) < recall[changes.page, k]
            true_at = changes.at[caught] + self._delays(int(caught.sum()), rng)
            false = poisson_events(false_rate[:, k], start, end, rng)
            at += [true_at, false.at]
            page += [changes.page[caught], false.page]
            source.append(np.full(len(true_at) + len(false.at), k))
        when, whose, origin = np.concatenate(at), np.concatenate(page), np.concatenate(source)
        heard = when <= end
        return Signals.of(when[heard], whose[heard], origin[heard])

    def _delays(self, n: int, rng: np.random.Generator) -> Array:
        if self.delay is None:
            return np.zeros(n)
        late = self.delay(rng, n) if callable(self.delay) else rng.choice(np.asarray(self.delay, np.float64), n)
        delays = np.broadcast_to(np.asarray(late, np.float64), (n,))
        if not (delays >= 0).all():
            raise ParameterError("delay: signals cannot come before the change; delays must be at least 0")
        return delays

    def _groups(self, n: int) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
        if not isinstance(self.process, Together):
            return None, None
        group = self.process.group(n)
        url = np.array([f"https://group-{g}.example/{i}" for i, g in enumerate(group.tolist())])
        return group, url


def world(
    name: str,
    n_pages: int = 1000,
    *,
    pages: Pages | None = None,
    population: Population | None = None,
    signals: SignalKind | None = None,
    delay: Delay | ArrayLike | None = None,
    requests: float = 0.0,
    **settings: Any,
) -> World:
    """The world of a name, with ``n_pages`` pages of a population (drawn for each trace) or with given pages.

    ``signals`` ("none", "proof", "noisy") are those of the uniform population; ``settings`` go to the process.

    >>> len(world("bursty", 50, gaps="pareto", shape=1.8).draw(100.0, np.random.default_rng(1)))
    50
    """
    if name not in world_names():
        raise unknown("world", name, world_names())
    if name in shop_names():
        return _shop(name, n_pages, settings, not_its_own=(pages, population, signals, delay, requests or None))
    usual, process = _WORLDS[name]
    known = {each.name for each in fields(process)}
    for setting in settings:
        if setting not in known:
            raise ParameterError(
                f"{setting} is not a setting of the world {name} ({', '.join(sorted(known)) or 'none'})"
            )
    if pages is not None and (population or signals):
        raise ParameterError("pages are given: they come with their own population and signals")
    drawn = pages if pages is not None else _population(population or usual, n_pages, signals)
    return World(name, drawn, process(**settings), delay, requests)


def world_names() -> list[str]:
    """The names of all worlds."""
    return [*_WORLDS, *shop_names()]


def _shop(name: str, n_pages: int, settings: dict[str, Any], not_its_own: tuple[Any, ...]) -> World:
    from recrawl.simulate.shop.world import ShopWorld

    if n_pages < 1:
        raise ParameterError(f"n_pages is {n_pages}: at least one page is needed")
    if any(each is not None for each in not_its_own):
        raise ParameterError(f"the world {name} has pages, readers and no signals of its own")
    return ShopWorld(name, Pages([1.0]), n=n_pages, settings=shop_settings(name, **settings))


def _population(name: str, n_pages: int, signals: SignalKind | None) -> Callable[[np.random.Generator], Pages]:
    makers = {"uniform": uniform_pages, "bing": bing_like, "bing-signals": bing_signals}
    if name not in makers:
        raise ParameterError(f"population {name!r} is not one of {', '.join(makers)}")
    if n_pages < 1:
        raise ParameterError(f"n_pages is {n_pages}: at least one page is needed")
    if name == "uniform":
        if signals not in (None, "none", "proof", "noisy"):
            raise ParameterError(f"signals {signals!r} is not one of none, proof, noisy")
        return partial(uniform_pages, n_pages, signals=signals or "none")
    if signals is not None:
        raise ParameterError(f"signals is {signals!r}: the population {name} has its own")
    return partial(makers[name], n_pages)
