"""PostgresStore keeps to the protocol, on a real server."""

import asyncio
import itertools

import pytest

from recrawl.store import EventLimits, check_store
from recrawl.store.postgres.store import PostgresStore
from recrawl.store.testing.contract import check_event_limits

_NUMBER = itertools.count()

pytestmark = pytest.mark.slow


@pytest.fixture
def address(postgres):
    return postgres.address(f"t{next(_NUMBER)}")


@pytest.mark.parametrize("keep", [1, 3])
def test_the_store_keeps_to_the_protocol(postgres, keep):
    asyncio.run(check_store(lambda: PostgresStore(postgres.address(f"t{next(_NUMBER)}"), keep=keep)))


def test_limits_of_events(postgres):
    limits = (EventLimits(rows=5), EventLimits(age=100.0))
    makers = (lambda kept=kept: PostgresStore(postgres.address(f"t{next(_NUMBER)}"), events=kept) for kept in limits)
    asyncio.run(check_event_limits(*makers))
