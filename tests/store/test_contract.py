"""Every store keeps to the protocol; and the contract suite finds one that does not."""

import itertools

import pytest

from recrawl.store import EventLimits, MemoryStore, SqliteStore, check_store
from recrawl.store.testing.contract import check_event_limits


@pytest.mark.parametrize("keep", [1, 3])
def test_the_memory_store_keeps_to_the_protocol(keep):
    check_store(lambda: MemoryStore(keep=keep))


@pytest.mark.parametrize("keep", [1, 3])
def test_the_sqlite_store_keeps_to_the_protocol(tmp_path, keep):
    number = itertools.count()
    check_store(lambda: SqliteStore(tmp_path / f"{next(number)}.db", keep=keep))


def test_limits_of_events(tmp_path):
    limits, number = (EventLimits(rows=5), EventLimits(age=100.0)), itertools.count()
    check_event_limits(*(lambda kept=kept: MemoryStore(events=kept) for kept in limits))
    check_event_limits(
        *(lambda kept=kept: SqliteStore(tmp_path / f"{next(number)}.db", events=kept) for kept in limits)
    )


class Forgetful(MemoryStore):
    """Drops every third outcome."""

    def save(self, outcomes=(), rows=None, **more):
        super().save([outcome for k, outcome in enumerate(outcomes) if k % 3 != 2], rows, **more)


class Careless(MemoryStore):
    """Writes half of what fails."""

    def save(self, outcomes=(), rows=None, *, notes=None, **more):
        super().save(outcomes, rows, **more)
        super().save(notes=notes)


class Vague(MemoryStore):
    """Rounds what it is given."""

    def load(self):
        rows = super().load()
        return rows and {**rows, "change_rate": rows["change_rate"].round(3)}


class Hoarder(MemoryStore):
    """Keeps what was removed."""

    def save(self, outcomes=(), rows=None, *, removed=(), **more):
        super().save(outcomes, rows, **more)


class Silent(MemoryStore):
    """Tells of nothing that comes back."""

    def events(self, after=0, many=200):
        return [event for event in super().events(after, many) if event.kind != "new" or event.old_digest is None]


@pytest.mark.parametrize("kind", [Forgetful, Careless, Vague, Hoarder, Silent])
def test_the_suite_finds_what_is_wrong(kind):
    with pytest.raises(AssertionError):
        check_store(kind)
