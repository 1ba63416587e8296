"""Figures and text of ``recrawl signals``, and of the sources that ``recrawl status`` names."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recrawl.model.spans import count, format_span

if TYPE_CHECKING:
    from recrawl.crawl.config.settings import Settings
    from recrawl.crawl.run.opening.partial import Sampled
    from recrawl.crawl.signals.effects import SignalEffects
    from recrawl.crawl.signals.sources import Sources
    from recrawl.engine import Engine
    from recrawl.engine.views.sources import Share, SourceFacts
    from recrawl.store import BlockingStore, OwnedStore

_LISTED = 1000  # hosts in JSON at most
_SHOWN = 10  # sources that lost their trust, in the text
_COUNTS = ("source", "host", "pages", "signals", "crawls", "changes", "caused", "found")
_HEAD = (*_COUNTS, "precision", "recall", "delay", "trust")
_NUMBERS = slice(2, 8)  # columns that are set to the right


def figures(
    store: BlockingStore[OwnedStore], settings: Settings, now: float, sampled: Sampled | None = None
) -> dict[str, Any]:
    """Everything that ``recrawl signals --json`` prints; ``sampled`` where it is opened already."""
    from recrawl.crawl.run.opening.partial import open_sampled
    from recrawl.crawl.signals.counts import TOTALS
    from recrawl.crawl.signals.effects import EFFECTS, SignalEffects
    from recrawl.engine.views.sources import source_facts

    sampled = sampled or store.run(open_sampled(store.store, settings, now))
    facts, names = source_facts(sampled.engine), sources_of(store)
    taken, effects = store.notes(TOTALS).get(TOTALS, {}), SignalEffects()
    effects.restore(store.notes(EFFECTS))
    return {
        "now": now,
        "database": store.store.name,
        "sample": None if sampled.error is None else {"pages": len(sampled.engine), "of": sampled.totals.pages},
        "sources": [_source(k, names.name(k), facts, taken) for k in sorted({one.source for one in facts})],
        "unheard": {name: counts for name, counts in taken.items() if name not in _heard(facts, names)},
        "n_hosts": len({one.host for one in facts}),
        "total": len(facts),
        "hosts": [_host(one, names, effects) for one in facts[:_LISTED]],
        "lost_trust": lost_figures(store, sampled.engine),
    }


def sources_of(store: BlockingStore[OwnedStore]) -> Sources:
    """The names of a database's sources."""
    from recrawl.crawl.signals.sources import NOTE, Sources

    return Sources.restore(store.notes(NOTE))


def lost_figures(store: BlockingStore[OwnedStore], engine: Engine) -> dict[str, Any]:
    """Sources that have lost their trust, the latest first; how many, and at most 1000. No host: on all hosts."""
    from recrawl.engine.views.sources import lost_trust

    lost, names = lost_trust(engine), sources_of(store)
    listed = [{"source": names.name(one.source), "host": one.host, "at": one.at} for one in lost[:_LISTED]]
    return {"total": len(lost), "sources": listed}


def lost_lines(found: dict[str, Any]) -> list[str]:
    """The text about sources that have lost their trust."""
    total = found["total"]
    lines = [f"sources that lost their trust: {total}"] if total else []
    for one in found["sources"][:_SHOWN]:
        where = "on all hosts" if one["host"] is None else f"of {one['host']}"
        lines.append(f"  {one['source']} {where}: not counted since {_date(one['at'])}")
    return lines + ([f"  and {total - _SHOWN} more; --json lists up to {_LISTED}"] if total > _SHOWN else [])


def _heard(facts: tuple[SourceFacts, ...], names: Sources) -> set[str]:
    return {names.name(one.source) for one in facts}


def _source(number: int, name: str, facts: tuple[SourceFacts, ...], taken: dict[str, Any]) -> dict[str, Any]:
    """One source on all hosts; ``taken``: what became of its signals in all runs."""
    mine = [one for one in facts if one.source == number]
    return {
        "source": name,
        "hosts": len(mine),
        "counts_on": sum(one.counts for one in mine),
        "pages": sum(one.pages for one in mine),
        "signals": sum(one.signals for one in mine),
        "crawls": sum(one.crawls for one in mine),
        "changes": sum(one.changes for one in mine),
        "taken": taken.get(name, {}),
    }


def _host(one: SourceFacts, names: Sources, effects: SignalEffects) -> dict[str, Any]:
    shares = {name: None if share is None else share._asdict() for name, share in _shares(one).items()}
    source = names.name(one.source)
    effect = effects.of(source, one.host)
    known: dict[str, Any] = {"caused": 0, "found": 0, "delay": None, "turns": []}
    if effect is not None:
        turns = [{"at": at, "counts": counts} for at, counts in effect.turns]
        known = {"caused": effect.caused, "found": effect.found, "delay": effect.delay(), "turns": turns}
    return {**asdict(one), **shares, **known, "source": source, "trust": one.trust}


def _shares(one: SourceFacts) -> dict[str, Share | None]:
    """Precision, and recall where signals count: before that, the prior says more about it than the crawls."""
    return {"precision": one.precision, "recall": one.recall if one.counts else None}


def signal_lines(found: dict[str, Any], top: int) -> list[str]:
    """All lines: a summary, a row per source and host, and what became of the signals of each source."""
    if not found["hosts"]:
        return ["no page has had a signal", *_taken(found)]
    sources = found["sources"]
    signals, counts = round(sum(one["signals"] for one in sources)), sum(one["counts_on"] for one in sources)
    summary = f"{count(len(sources), 'source')} on {count(found['n_hosts'], 'host')}, {count(signals, 'signal')}; "
    summary += f"{counts} of {count(found['total'], 'row')} of the table count"
    if found["sample"] is not None:
        summary += f"; of a sample of {found['sample']['pages']} of {found['sample']['of']} pages"
    rows = [_HEAD, *(_row(one) for one in found["hosts"][:top])]
    widths = [max(len(row[k]) for row in rows) for k in range(len(_HEAD))]
    lines = [summary, *(_line(row, widths) for row in rows)]
    if found["total"] > top:
        lines.append(f"and {found['total'] - top} more (--top); --json lists up to {_LISTED}")
    return [*lines, *_taken(found), *lost_lines(found["lost_trust"])]


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    numbers = tuple(f"{one[name]:.0f}" for name in _HEAD[_NUMBERS])
    shares = (_share(one["precision"]), _share(one["recall"]))
    return (one["source"], one["host"], *numbers, *shares, _delay(one["delay"], one["late"]), _trust(one))


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    right = range(len(row))[_NUMBERS]
    cells = [
        cell.rjust(w) if k in right else cell.ljust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _share(share: dict[str, float] | None) -> str:
    """A share with its interval."""
    return "not known" if share is None else f"{share['mean']:.2f} ({share['low']:.2f} to {share['high']:.2f})"


def _delay(delay: dict[str, float] | None, late: float) -> str:
    """A delay with its interval; where no source says when changes were, the one that outcomes tell."""
    if delay is None:
        return f"about {format_span(late)}" if late > 0.0 else "not known"
    middle, low, high = (format_span(delay[name]) for name in ("median", "low", "high"))
    return f"{middle} ({low} to {high})"


def _trust(one: dict[str, Any]) -> str:
    if one["counts"]:
        return str(one["trust"])
    since = "" if one["lost_at"] is None else f" on {_date(one['lost_at'])}"
    return f"{one['trust']}{since}; score {one['score']:.1f} of {one['needed']:.0f}"


def _taken(found: dict[str, Any]) -> list[str]:
    """What became of the signals of each source in all runs."""
    taken = {**{one["source"]: one["taken"] for one in found["sources"]}, **found["unheard"]}
    texts = {name: ", ".join(f"{n} {what}" for what, n in counts.items() if n) for name, counts in taken.items()}
    return [f"taken from {name}: {text}" for name, text in texts.items() if text]


def _date(at: float) -> str:
    return datetime.fromtimestamp(at).isoformat(" ", "seconds")
