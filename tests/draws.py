"""What property tests draw: pages over the whole parameter space, corners included, and how figures are compared."""

import math
from typing import NamedTuple

from hypothesis import strategies as st

from recrawl.model import Pages

EXACT = 1e-10  # relative: how near a kernel must be to its twin
ROUNDING = 1e-14  # relative: the last digits, which two orders of computing may differ in


class Page(NamedTuple):
    """One page with one source of signals, as the twins take it."""

    change_rate: float
    importance: float = 1.0
    recall: float = 0.0
    false_rate: float = 0.0

    def pages(self, **columns) -> Pages:
        """The same page as the package takes it."""
        return Pages([self.change_rate], self.importance, self.recall, self.false_rate, **columns)

    @property
    def missed_rate(self) -> float:
        """α."""
        return (1 - self.recall) * self.change_rate


class State(NamedTuple):
    """A page, the time since its last crawl and the signals since then."""

    page: Page
    elapsed: float
    signals: int = 0


def log_uniform(low: float, high: float) -> st.SearchStrategy[float]:
    """Floats whose logarithm is drawn evenly, both ends included."""
    return st.floats(math.log10(low), math.log10(high)).map(lambda e: min(max(10.0**e, low), high))


def recalls() -> st.SearchStrategy[float]:
    """From 0 over 1e-12 to 1 − 1e-16 and exactly 1."""
    near_one = log_uniform(1e-16, 0.5).map(lambda missed: 1 - missed)
    anywhere = st.floats(0, 1).map(lambda share: share if share > 1e-200 else 0.0)  # below, floats lose digits
    return st.one_of(log_uniform(1e-12, 1), near_one, anywhere, st.sampled_from([0.0, 1.0]))


@st.composite
def noisy_pages(draw, recall=None) -> Page:
    """Precision from 1e-12 to 1, false rates from 1e-12 to 1e12 changes, no false signals, no signals at all."""
    change_rate, importance = draw(log_uniform(1e-6, 1e6)), draw(log_uniform(1e-6, 1e6))
    share = draw(recalls() if recall is None else recall)
    how = draw(st.sampled_from(["precision", "rate", "none"]))
    if how == "none":
        return Page(change_rate, importance, share, 0.0)
    if how == "precision" and share > 0:
        precision = draw(log_uniform(1e-12, 1))
        return Page(change_rate, importance, share, share * change_rate * (1 - precision) / precision)
    return Page(change_rate, importance, share, change_rate * draw(log_uniform(1e-12, 1e12)))


@st.composite
def states(draw, pages=None) -> State:
    """A page with change_rate·elapsed from 1e-12 to 1e6 and up to 1000 signals."""
    page = draw(noisy_pages() if pages is None else pages)
    elapsed = draw(log_uniform(1e-12, 1e6)) / page.change_rate
    return State(page, elapsed, draw(st.one_of(st.just(0), st.integers(1, 5), st.integers(6, 1000))))


@st.composite
def band_states(draw) -> State:
    """Weak signals in numbers: κ, the ratio r = α/(γκ) and the exponent s decide which sums a kernel takes."""
    weight, ratio, s = draw(log_uniform(1e-8, 5)), draw(log_uniform(1e-6, 1e3)), draw(log_uniform(1e-3, 60))
    precision = -math.expm1(-weight)
    recall = 1 / (1 + ratio * weight / precision)
    false_rate = recall * (1 - precision) / precision
    most = int(min(s / weight, 1e9))
    signals = draw(st.one_of(st.just(0), st.integers(0, most)))
    offset = max(s - signals * weight, s * draw(log_uniform(1e-9, 1)))
    return State(Page(1.0, 1.0, recall, false_rate), offset / (1 - recall), signals)


def close(got: float, expected: float, rel: float = EXACT) -> bool:
    """Whether a figure equals its twin, relative to the twin; infinities and zeros must be met exactly."""
    if expected == 0 or math.isinf(expected):
        return got == expected
    return abs(got - expected) <= rel * abs(expected)
