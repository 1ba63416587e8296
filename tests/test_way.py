"""A page passes the functions that docs/architecture.md lists, in that order: crawled and simulated, watched; compiled
ones are looked for in what the kernels call."""

import asyncio
import importlib
import inspect
import re
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiohttp import web
from crawl.servers import serving
from crawl.test_webhook import SECRET, Receiver

from recrawl.crawl import Settings, add_pages, engine_of, open_crawl, save_pages
from recrawl.schedule.exact import access
from recrawl.simulate import Trace, contender, simulate
from recrawl.store import SqliteStore

pytestmark = pytest.mark.slow
TEXT = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")


PARTS = ("Live", "Simulated", "Shared")


def names(title):
    """The functions of a list by name, in its order."""
    part = TEXT.partition(f"\n### {title}")[2].partition("\n##")[0]
    found = {}
    for module, name in re.findall(r"`(recrawl[\w.]*):([\w.]+)`", part):
        function = importlib.import_module(module)
        for word in name.split("."):
            function = getattr(function, word)
        assert f"{module}:{name}" not in found, f"{name} is listed twice"
        found[f"{module}:{name}"] = function
    return found


def listed(title):
    """The functions of a list, as code objects by name; compiled ones are not seen by Python."""
    plain = {name: one for name, one in names(title).items() if not hasattr(one, "py_func")}
    return {inspect.unwrap(one).__code__: name for name, one in plain.items()}


def reached(kernel):
    """A compiled function and all that it calls, and those call."""
    found, todo = set(), [kernel]
    while todo:
        one = todo.pop()
        if hasattr(one, "py_func") and one not in found:
            found.add(one)
            function = one.py_func
            todo += [function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__]
    return found


@contextmanager
def watched(functions):
    """The names of functions as they are called, in all threads."""
    passed = []

    def called(frame, event, _):
        if event == "call" and frame.f_code in functions:
            passed.append(functions[frame.f_code])

    threading.setprofile(called)
    sys.setprofile(called)
    try:
        yield passed
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def assert_passed(functions, passed):
    """Each function of a list was called, after a call of the one before it."""
    calls = iter(passed)
    for name in functions.values():
        assert name in calls, f"{name} was not called there: {passed}"


async def crawled(folder):
    """One page, added, crawled until it has changed and its event has been delivered."""
    bodies, answered = iter(["<main>one", "<main>two"]), 0

    async def answer(request):
        if request.path != "/page":
            return web.Response(status=404)
        nonlocal answered
        answered += 1
        return web.Response(text=next(bodies, "<main>two"), content_type="text/html")

    async with serving(answer) as origin, Receiver() as receiver:
        sent = {"webhook": receiver.url, "webhook_secret": SECRET}
        given = {"contact": "me@example.org", "delay": "0.001 s", "listings": False, "allow_private": True}
        settings = Settings(database=str(folder / "a.db"), budget="50/s", **given, **sent)
        store = SqliteStore(folder / "a.db")
        engine = await engine_of(store, settings, 0.0)
        await save_pages(engine, store, add_pages(engine, settings.rules(), [f"{origin}/page"], 0.0))
        await store.close()
        live = await open_crawl(settings)
        running = asyncio.create_task(live.crawler.run())
        while not receiver.events and not running.done():
            assert answered < 3000, "no event of the change was delivered"  # the crawls count, not the time they take
            await asyncio.sleep(0.01)
        live.crawler.stop()
        await running
        await live.close()


def test_a_page_that_is_crawled_passes_them(tmp_path):
    functions = listed("Live")
    assert len(functions) > 15
    with watched(functions) as passed:
        asyncio.run(crawled(tmp_path))
    assert_passed(functions, passed)


def test_a_page_that_is_simulated_passes_them():
    functions = listed("Simulated")
    assert len(functions) > 3
    with watched(functions) as passed:
        trace = Trace(0.0, 20.0, offset=[0, 2, 3], changed_at=[1.0, 6.0, 2.5])
        simulate(contender("learned"), trace, 1.0)
    assert_passed(functions, passed)


def test_no_function_is_listed_twice():
    assert min(len(names(title)) for title in PARTS) > 5
    assert len({name for title in PARTS for name in names(title)}) == sum(len(names(title)) for title in PARTS)


def test_compiled_functions_call_the_shared_ones():
    """Both drivers come to each shared step; a step that only the compiled loop needed would not be shared."""
    shared, live, simulated = (names(title) for title in ("Shared", "Live", "Simulated"))
    kernels = [one for one in simulated.values() if hasattr(one, "py_func")]
    assert {name for name, one in shared.items() if not any(one in reached(kernel) for kernel in kernels)} == set()
    ends = live["recrawl.engine.outcomes.crawl_kernels:end_crawls"]
    from_ends = {name for name, one in shared.items() if one in reached(ends)}
    picking = set(shared) - from_ends
    assert picking == set(list(shared)[:2]), "1 and 2 belong to the pick, the others to the record"
    assert access.pick_promoting is shared["recrawl.schedule.exact.kernels.picking:pick_promoting"], (
        "what Cohorts.pick uses"
    )
