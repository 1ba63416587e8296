"""Twins of the simulator in plain Python: staleness by looking at every moment between two events."""

from bisect import bisect_right
from itertools import pairwise


def naive_judge(pages, crawls, start, end, *, count_from=None, bins=0):
    """What ``Judge`` counts, from lists.

    ``pages`` are dicts of created, deleted, importance, changes, requests; ``crawls`` pairs of (when, page) in order.
    """
    begin = start if count_from is None else count_from
    width = (end - begin) / max(bins, 1)
    stale, seen = [0.0] * len(pages), [0.0] * len(pages)
    stale_bins, seen_bins = [0.0] * bins, [0.0] * bins
    found, counted, asked, served = [0] * len(pages), [0] * len(pages), 0, 0
    for i, page in enumerate(pages):
        fetched = [page["created"]] + [at for at, which in crawls if which == i]
        for before, at in pairwise(fetched):
            if at >= begin:
                counted[i] += 1
                found[i] += any(before < change <= at for change in page["changes"])
        edges = {begin, end, page["created"], page["deleted"], *fetched, *page["changes"]}
        edges |= {begin + b * width for b in range(bins)}
        for low, high in pairwise(sorted(edges)):
            middle = (low + high) / 2
            if not (max(begin, page["created"]) < middle < min(end, page["deleted"])):
                continue
            seen[i] += high - low
            old = not is_fresh(page, fetched, middle)
            stale[i] += (high - low) * old
            if bins:
                b = min(int((middle - begin) / width), bins - 1)
                seen_bins[b] += page["importance"] * (high - low)
                stale_bins[b] += page["importance"] * (high - low) * old
        for at in page["requests"]:
            if at >= begin:
                asked += 1
                served += is_fresh(page, [f for f in fetched if f < at], at)
    weights = [page["importance"] for page in pages]
    return {
        "staleness": sum(w * s for w, s in zip(weights, stale, strict=True))
        / sum(w * s for w, s in zip(weights, seen, strict=True)),
        "staleness_unweighted": sum(stale) / sum(seen),
        "page_staleness": [s / t if t else 0.0 for s, t in zip(stale, seen, strict=True)],
        "window_freshness": [1 - s / max(t, 1e-300) for s, t in zip(stale_bins, seen_bins, strict=True)],
        "crawls": counted,
        "found": found,
        "request_freshness": served / asked if asked else None,
    }


def is_fresh(page, fetched, at):
    """Whether no change lies between the last fetch and a moment."""
    last = fetched[bisect_right(fetched, at) - 1]
    return not any(last < change <= at for change in page["changes"])


def threshold_crawls(missed_rate, weight, signals, level, end):
    """When a page is crawled whose staleness exponent, missed_rate·elapsed + weight·signals, reaches a level."""
    crawls, last, heard = [], 0.0, 0
    for at in [*signals, end]:
        while missed_rate > 0 and last + (level - weight * heard) / missed_rate <= at:
            last, heard = last + (level - weight * heard) / missed_rate, 0
            if last >= end:
                return crawls
            crawls.append(last)
        if at < end:
            heard += 1
            if missed_rate * (at - last) + weight * heard >= level:
                crawls.append(at)
                last, heard = at, 0
    return crawls


def naive_window(pages, changes, begin, end):
    """(key, life, changes) of the pages of a recorded trace that were watched in a window, as lists of plain values."""
    lived = []
    for page in pages:
        gone = end if page["deleted"] is None else page["deleted"]
        low = max(page["created"], page["obs_start"], begin)
        high = min(gone, page["obs_end"], end)
        if high > low:
            inside = [t for which, t in changes if which == page["page_id"] and low < t < high]
            lived.append((page["key"], low, high, inside))
    return sorted(lived, key=lambda page: page[1])
