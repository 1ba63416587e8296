"""Draws of change rates for forecasts, where most pages have few crawls: pages within folders, folders within hosts.

The prior of the engine is shared by all pages. It suits picking, but not a forecast after few crawls: crawls go where
changes were found, so that the pages without a crawl are not like those with one. Given folder and host they are, as
far as is known, and a crawl's time depends on earlier outcomes only. Hence the posterior of this model is not biased
by the choice of pages:

    ln rate of a page ~ N(m of its folder, σ²),  m of a folder ~ N(m of its host, τ²),  m of a host ~ N(μ, ω²)

and each of the n crawls of a page, T/n apart, finds a change with probability 1 − exp(−rate·T/n). All is computed on
one grid of log rates; μ is uniform on it, and σ, τ and ω on a few values each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.clocks.folders import folders
from recrawl.engine.signals.arrays import BOTH, BOTH_LOG_TIME, CHANGED, FIRSTS, LOG_TIME, OPEN
from recrawl.estimate.gamma import GammaPrior
from recrawl.schedule.exact import access

if TYPE_CHECKING:
    from recrawl.engine.questions import Questions

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_GRID = (1e-4, 1e2, 32)  # rates, in crawls per time of the pages: from, to, how many
_PAGES = (0.35, 0.7, 1.0, 1.4, 2.0)  # σ
_FOLDERS = (0.05, 0.3, 0.7, 1.2)  # τ
_HOSTS = (0.05, 0.4, 0.8, 1.3, 2.0, 3.0)  # ω
_TINY = 1e-300
_LEAST_MISSED = 1e-3  # of a change rate
_SLIGHT = 1e-9  # changes of fading sums that are rounding


@dataclass(frozen=True, eq=False)
class _Widths:
    """One choice of σ, τ and ω, with ln likelihoods of folders and hosts by their means, and of μ."""

    page: Array
    folder: Array
    host: Array
    by_folder: Array
    by_host: Array
    by_overall: Array


def drawn_rates(engine: Questions, rows: Ids, n: int, rng: np.random.Generator) -> Array:
    """(n, pages): draws of the missed rates of pages, jointly.

    Of pages with a given rate, or that are valued by signals, from their own belief alone. The latter still belong to
    the population: without them, the pages of hosts with few crawls would be taken for those that nobody signals.
    """
    belief = engine.beliefs.belief
    given, components = belief.fixed_rate[rows], access.components_of(engine.scheduler, rows)
    mixed = np.asarray(components[:, :, 0].any(axis=1))
    members, given = ~given & ~(mixed & (belief.evidence[rows] > 0.0).any(axis=1)), given & ~mixed
    out = np.empty((n, len(rows)))
    own = GammaPrior(belief.gamma[rows[given], 0], belief.gamma[rows[given], 1])
    out[:, given] = np.maximum(rng.gamma(own.shape, 1.0 / own.rate, (n, int(given.sum()))), 1e-12 * own.mean)
    if (members & ~mixed).any():
        out[:, members] = _Population(engine, rows[members], mixed[members]).draw(n, rng)
    out[:, mixed] = drawn_missed(components[mixed], n, rng)
    return out


def drawn_missed(components: Array, n: int, rng: np.random.Generator) -> Array:
    """(n, pages): draws of missed rates, from one component each."""
    weight = components[:, :, 0].cumsum(axis=1)
    chosen = (rng.random((n, len(weight), 1)) * weight[:, -1:] > weight).sum(axis=2)
    mean, shape = (components[np.arange(len(weight)), chosen, k] for k in (1, 2))
    return np.asarray(np.maximum(rng.gamma(shape, mean / shape), 1e-12 * mean))


class _Population:
    """The model, fitted to the outcomes of some pages."""

    def __init__(self, engine: Questions, rows: Ids, mixed: NDArray[np.bool_]) -> None:
        found = [folders(url) for url in engine.url(rows)]
        self._folder = _numbers([one[-1] for one in found])
        self._host = np.zeros(self._folder.max() + 1, np.int64)
        self._host[self._folder] = _numbers([one[0] for one in found])
        self._log_rate = _log_rates(engine, rows)
        self._page = _likelihood(engine, rows, np.exp(self._log_rate))
        self._page[mixed] = _signalled_likelihood(engine, rows[mixed], np.exp(self._log_rate))
        self._widths = [self._fit(page, folder, host) for page in _PAGES for folder in _FOLDERS for host in _HOSTS]

    def _fit(self, page: float, folder: float, host: float) -> _Widths:
        of_page, of_folder, of_host = (_kernel(self._log_rate, width) for width in (page, folder, host))
        by_folder = _sums(_mixed(self._page, of_page), self._folder)
        by_host = _sums(_mixed(by_folder, of_folder), self._host)
        return _Widths(of_page, of_folder, of_host, by_folder, by_host, _mixed(by_host, of_host).sum(axis=0))

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """(n, pages): joint draws, from the mean of all pages down to each page."""
        overall = np.array([one.by_overall for one in self._widths])
        chosen = _drawn(np.repeat(overall.reshape(1, -1), n, axis=0), rng)
        step = self._log_rate[1] - self._log_rate[0]
        out = np.empty((n, len(self._page)))
        for j in range(n):
            k, mean = divmod(int(chosen[j]), len(self._log_rate))
            one = self._widths[k]
            host = _drawn(one.by_host + _log(one.host[:, mean]), rng)
            folder = _drawn(one.by_folder + _log(one.folder[:, host[self._host]].T), rng)
            page = _drawn(self._page + _log(one.page[:, folder[self._folder]].T), rng)
            out[j] = np.exp(self._log_rate[page] + step * rng.uniform(-0.5, 0.5, len(page)))
        return out


def _log_rates(engine: Questions, rows: Ids) -> Array:
    """The grid: around the crawls per time of these pages, or the prior's mean where there was none."""
    belief = engine.beliefs.belief
    time = float(belief.watched[rows].sum())
    centre = float(belief.n_crawls[rows].sum()) / time if time > 0.0 else float(engine.beliefs.prior.mean)
    low, high, n = _GRID
    return np.linspace(np.log(centre * low), np.log(centre * high), n)


def _likelihood(engine: Questions, rows: Ids, rate: Array) -> Array:
    """(pages, rates): ln likelihood of what the crawls of each page found."""
    belief = engine.beliefs.belief
    crawls, changes = belief.n_crawls[rows].astype(np.float64), belief.n_changes[rows].astype(np.float64)
    exponent = rate * (belief.watched[rows] / np.maximum(crawls, 1.0))[:, None]
    found = changes[:, None] * _log(-np.expm1(-exponent)) - (crawls - changes)[:, None] * exponent
    return np.where(belief.watched[rows, None] > 0.0, found, 0.0)


def _signalled_likelihood(engine: Questions, rows: Ids, rate: Array) -> Array:
    """(pages, rates): the same of pages that are valued by signals.

    The rate has two parts: changes that open sources tell, at their rate and mean precision, and those that they miss.
    A change that was found after a signal may be of either part. A rate below that of the signalled changes is as
    likely as so few signals.
    """
    belief, b = engine.beliefs.belief, engine.beliefs.belief.signals
    row = b.row_of[rows]
    state = b.host_gate[b.host[row], :, OPEN]
    kappa = np.where((state > 0.0) | ((state == 0.0) & (b.gate[:, OPEN] > 0.0)), b.mean_kappa[row], 0.0)
    signalled = -(b.rate[row] * np.expm1(-kappa)).sum(axis=1)[:, None]
    missed = np.maximum(rate - signalled, _LEAST_MISSED * rate)
    time, changes, log_time = belief.seen[rows].T.copy()
    found = -missed * time[:, None]
    parts = [(b.statistics[row, k, CHANGED], b.statistics[row, k, LOG_TIME], kappa[:, k]) for k in range(len(b.gate))]
    parts.append((b.both[row, BOTH], b.both[row, BOTH_LOG_TIME], kappa.sum(axis=1)))
    for n, total, weight in parts:
        found += _changed(n, total, weight, missed)
        changes, log_time = changes - n, log_time - total
    found += _changed(np.where(changes > _SLIGHT, changes, 0.0), log_time, np.zeros(len(rows)), missed)
    share = np.minimum(rate / np.maximum(signalled, _TINY), 1.0)
    signals = -(np.expm1(-kappa) * b.statistics[row, :, FIRSTS]).sum(axis=1)
    return np.asarray(found + signals[:, None] * (_log(share) + 1.0 - share))


def _changed(n: Array, log_time: Array, weight: Array, rate: Array) -> Array:
    """ln likelihood of n changed intervals with a sum of the logarithms of their times, and signals of a weight."""
    time = np.exp(log_time / np.maximum(n, _SLIGHT))
    exponent = np.where(n[:, None] > 0.0, rate * time[:, None], 1.0) + weight[:, None]
    return np.asarray(n[:, None] * _log(-np.expm1(-exponent)))


def _kernel(log_rate: Array, width: float) -> Array:
    """(below, above): the distribution of a log rate or mean around the mean above it."""
    density = np.exp(-0.5 * ((log_rate[:, None] - log_rate) / width) ** 2)
    return np.asarray(density / density.sum(axis=0))


def _mixed(log_likelihood: Array, kernel: Array) -> Array:
    most = log_likelihood.max(axis=-1, keepdims=True)
    return np.asarray(_log(np.exp(log_likelihood - most) @ kernel) + most)


def _sums(rows: Array, group: Ids) -> Array:
    out = np.zeros((int(group.max()) + 1, rows.shape[1]))
    np.add.at(out, group, rows)
    return out


def _drawn(log_weight: Array, rng: np.random.Generator) -> Ids:
    """One index per row, drawn in proportion to the weights."""
    total = np.exp(log_weight - log_weight.max(axis=-1, keepdims=True)).cumsum(axis=-1)
    at = rng.random((len(total), 1)) * total[:, -1:]
    return np.asarray(np.minimum((at > total).sum(axis=-1), total.shape[-1] - 1), np.int64)


def _numbers(names: list[str]) -> Ids:
    return np.asarray(np.unique(np.array(names), return_inverse=True)[1], np.int64)


def _log(values: Array) -> Array:
    return np.asarray(np.log(np.maximum(values, _TINY)))
