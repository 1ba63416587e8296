"""Naive twins of the estimators: one page at a time, with scipy and mpmath; nothing imported from the package."""

import itertools
from functools import cache

import mpmath
import numpy as np
from scipy.optimize import brentq, minimize, root
from scipy.special import roots_genlaguerre


def mle(interval, changed, pseudo=()):
    """The irregular MLE: the root of Σ_changed t/(e^{λt} − 1) = Σ_unchanged t."""
    interval, changed = np.asarray(interval, float), np.asarray(changed, bool)
    kept = interval > 0
    interval, changed = interval[kept], changed[kept]
    seen = np.concatenate([interval[changed], [t for t, z in pseudo if z]])
    quiet = interval[~changed].sum() + sum(t for t, z in pseudo if not z)
    if len(seen) == 0:
        return 1 / quiet if quiet > 0 else 0.0
    if quiet == 0:
        return 1 / seen.min()

    def score(rate):
        return np.sum(seen / np.expm1(np.minimum(rate * seen, 700))) - quiet

    low = high = len(seen) / (quiet + seen.sum())
    while score(low) < 0:
        low /= 2
    while score(high) > 0:
        high *= 2
    return brentq(score, low, high, xtol=1e-300, rtol=1e-12)


def likelihood_ends(interval, changed, rate, drop):
    """Where the log likelihood has fallen by ``drop``, on both sides of the MLE."""
    seen, quiet = np.asarray(interval)[changed], np.asarray(interval)[~changed].sum()

    def fallen(u):
        return np.sum(np.log(-np.expm1(-np.exp(u) * seen))) - np.exp(u) * quiet

    top = fallen(np.log(rate)) - drop
    return tuple(
        np.exp(brentq(lambda u: fallen(u) - top, np.log(rate), np.log(rate) + side * 30, xtol=1e-14))
        for side in (-1, 1)
    )


def posterior(interval, changed, shape, rate, probability=None):
    """Mean, variance, ln evidence of the posterior by adaptive quadrature; with a rate, the share below it."""
    with mpmath.workdps(30):
        seen = [mpmath.mpf(float(t)) for t, z in zip(interval, changed, strict=True) if z and t > 0]
        quiet = mpmath.mpf(float(rate)) + sum(float(t) for t, z in zip(interval, changed, strict=True) if not z)

        @cache  # all integrals take the same nodes
        def density(u):
            x = mpmath.e**u
            return mpmath.e ** (shape * u - quiet * x) * mpmath.fprod(-mpmath.expm1(-t * x) for t in seen)

        # where the log density is within 60 of its top, in pieces of one unit at most
        grid = np.linspace(-200, 60, 26001)
        x = np.exp(grid)
        with np.errstate(divide="ignore"):
            height = shape * grid - float(quiet) * x + sum(np.log(-np.expm1(-float(t) * x)) for t in seen)
        near = grid[height > height.max() - 60]
        cuts = list(np.linspace(near[0], near[-1], 30 + int(near[-1] - near[0])))
        below = None
        if probability is not None:
            below = [float(np.log(p)) for p in probability]
            cuts = sorted({*cuts, *below})
        parts = list(itertools.pairwise(cuts))
        area = [mpmath.quadgl(density, part) for part in parts]
        total = sum(area)
        mean = sum(mpmath.quadgl(lambda u: density(u) * mpmath.e**u, part) for part in parts) / total
        square = sum(mpmath.quadgl(lambda u: density(u) * (mpmath.e**u - mean) ** 2, part) for part in parts) / total
        evidence = mpmath.log(total) + shape * mpmath.log(rate) - mpmath.loggamma(shape)
        shares = [
            float(sum(m for m, part in zip(area, parts, strict=True) if part[1] <= b) / total) for b in below or []
        ]
        return float(mean), float(square), float(evidence), shares


def moment_step(shape, rate, interval, changed):
    """One crawl's exact posterior from a gamma, matched by a gamma in mean and variance."""
    mean, variance, _, _ = posterior([interval], [changed], shape, rate)
    return mean**2 / variance, mean / variance


def quality(amount, changed, pseudo=()):
    """Joint MLE of the weights p ≥ 0 in P(changed) = 1 − e^{−p·x}: every set of zero weights is tried and polished."""
    rows = [(np.asarray(x, float), z, 1.0) for x, z in zip(amount, changed, strict=True)]
    rows += [(np.asarray(x, float), z, w) for x, z, w in pseudo]
    x = np.array([r[0] for r in rows])
    z, w = np.array([r[1] for r in rows], bool), np.array([r[2] for r in rows])
    scale = 1 / np.maximum(x.mean(axis=0), 1e-300)

    def loss(free, chosen):
        p = np.zeros(x.shape[1])
        p[list(chosen)] = np.exp(free) * scale[list(chosen)]
        s = x @ p
        if np.any(s[z] <= 0):
            return np.inf, np.zeros(len(chosen))
        gradient = x[z].T @ (w[z] / np.expm1(np.minimum(s[z], 700))) - x[~z].T @ w[~z]
        value = np.sum(w[z] * np.log(-np.expm1(-s[z]))) - np.sum(w[~z] * s[~z])
        return -value, -(gradient * p)[list(chosen)]

    best = (np.inf, None)
    for size in range(1, x.shape[1] + 1):
        for chosen in itertools.combinations(range(x.shape[1]), size):
            found = minimize(
                loss, np.full(size, -1.0), args=(chosen,), jac=True, method="BFGS", options={"gtol": 1e-12}
            )
            exact = root(lambda free, which: loss(free, which)[1], found.x, args=(chosen,), tol=1e-14)
            point = exact.x if np.abs(exact.x - found.x).max() < 1e-3 else found.x
            if np.isfinite(found.fun) and found.fun < best[0] - 1e-12:
                p = np.zeros(x.shape[1])
                p[list(chosen)] = np.exp(point) * scale[list(chosen)]
                best = (found.fun, p)
    return best[1]


def quality_slope(amount, changed, p, pseudo=()):
    """Gradient of the log likelihood at p: 0 where p > 0 and at most 0 where p = 0, if p is the maximum."""
    g = np.zeros(len(p))
    for x, z, w in [*((x, z, 1.0) for x, z in zip(amount, changed, strict=True)), *pseudo]:
        x = np.asarray(x, float)
        g += w * x / np.expm1(min(x @ p, 700)) if z else -w * x
    return g


def log_marginal(interval, changed, shape, rate):
    """ln ∫ Gamma(λ; shape, rate)·likelihood dλ of one page."""
    return posterior(interval, changed, shape, rate)[2]


def drifting(crawls, shape, rate, hazard, jump, step=moment_step):
    """All hypotheses of when the rate last jumped, none merged: weights and gammas after the crawls, oldest first.

    A changed crawl starts a hypothesis of a rise (an eighth of the jumps), an unchanged one of a fall.
    """
    slots = [(1.0, shape, rate)]
    for interval, changed in crawls:
        centre = drifting_centre(slots)
        jumped = hazard * min(1.0, 3 * interval * centre, 3 / (interval * centre))
        share, mean = (1 / 8, centre * jump) if changed else (7 / 8, centre / jump)
        slots = [(w * (1 - jumped), a, b) for w, a, b in slots] + [(jumped * share, 1.0, 1 / mean)]
        chance = [(b / (b + interval)) ** a for _, a, b in slots]
        chance = [1 - c if changed else c for c in chance]
        total = sum(w * c for (w, _, _), c in zip(slots, chance, strict=True))
        slots = [(w * c / total, *step(a, b, interval, changed)) for (w, a, b), c in zip(slots, chance, strict=True)]
    return slots


def drifting_centre(slots):
    """One over the expected time between changes."""
    return 1 / sum(w * b / a for w, a, b in slots)


def closed_step(shape, rate, interval, changed):
    """The gamma after one crawl from the closed moments of λ^{a−1}e^{−bλ}(1 − e^{−λt}), in 30 digits."""
    if not changed:
        return shape, rate + interval
    with mpmath.workdps(30):
        a, b, r = mpmath.mpf(shape), mpmath.mpf(rate), mpmath.mpf(rate) / (mpmath.mpf(rate) + interval)
        first, second = ((1 - r ** (a + k)) / (1 - r**a) for k in (1, 2))
        mean, square = a / b * first, a * (a + 1) / b**2 * second
        variance = square - mean**2
        return float(mean**2 / variance), float(mean / variance)


def credit(gammas, amounts):
    """Mean and variance of each of two gammas given a change within (interval, signals), by Gauss–Laguerre."""
    (x, v), (y, w) = (roots_genlaguerre(80, a - 1) for a, _ in gammas)
    x, y = (x / gammas[0][1])[:, None], (y / gammas[1][1])[None, :]
    area = v[:, None] * w[None, :] * -np.expm1(-x * amounts[0] - y * amounts[1])
    means = [float(np.sum(area * z) / area.sum()) for z in (x, y)]
    return means, [float(np.sum(area * (z - m) ** 2) / area.sum()) for z, m in zip((x, y), means, strict=True)]
