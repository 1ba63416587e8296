"""``recrawl token`` and ``recrawl run --listen``: tokens, signals to a running crawl, and what is kept of them."""

import importlib.util
import json
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from recrawl.crawl.run.commands import token_command
from recrawl.crawl.signals.tokens import PREFIX, hash_of, new_token
from recrawl.store import BlockingStore, SqliteStore

from .test_crawl import RUN, added, here, refused, site  # noqa: F401

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def notes():
    with BlockingStore(SqliteStore("recrawl.db", exclusive=False)) as store:
        return store.notes(PREFIX)


def test_a_token_is_printed_once_and_kept_as_a_hash(run, here):  # noqa: F811
    assert "there is no such database" in refused(run, "token", "add", "cms")
    run("add", "https://a.example/")
    result = run("token", "add", "cms", "--scope", "signal", "--per-second", "5", "--per-day", "1000")
    text = result.out.strip()
    assert (result.code, len(text)) == (0, 43)
    assert notes()[f"{PREFIX}cms"]["hash"] == hash_of(text)
    assert not any(text.encode() in file.read_bytes() for file in here.iterdir())
    assert "is there already" in refused(run, "token", "add", "cms")
    other = json.loads(run("token", "add", "cdn", "--json").out)
    assert (other["name"], other["scopes"]) == ("cdn", ["signal"])
    assert other["token"] != text
    listed = run("token", "list").out.splitlines()
    assert [line.split()[:3] for line in listed] == [["cdn", "signal", "2000/s,"], ["cms", "signal", "5/s,"]]
    found = json.loads(run("token", "list", "--json").out)["tokens"]
    assert found[1]["limit"] == {"per_second": 5.0, "per_day": 1000.0}
    assert "hash" not in found[0]
    assert run("token", "remove", "cms").out == "token cms removed\n"
    assert "has no token 'cms'" in refused(run, "token", "remove", "cms")
    assert list(notes()) == [f"{PREFIX}cdn"]
    assert "is not one of read, signal, crawl" in refused(run, "token", "add", "x", "--scope", "all")
    assert "is no name of a token" in refused(run, "token", "add", "a b")


def test_tokens_are_queued_while_a_crawl_runs(run, here):  # noqa: F811
    run("add", "https://a.example/")
    with BlockingStore(SqliteStore("recrawl.db")) as running:
        assert run("token", "add", "cms").code == 0
        assert "is there already" in refused(run, "token", "add", "cms"), "queued ones count"
        assert run("token", "list").out.startswith("cms")
        assert run("token", "remove", "cms").code == 0
        assert run("token", "list").out == ""
        assert [set(command) for _, command in running.commands()] == [{"token", "note"}] * 2


def test_where_it_listens_is_checked(run, here):  # noqa: F811
    run("add", "https://a.example/")
    assert "such as 127.0.0.1:8321" in refused(run, *RUN, "--listen", "everywhere")
    assert "such as 127.0.0.1:8321" in refused(run, *RUN, "--listen", "127.0.0.1:99999")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "in use" in refused(run, *RUN, "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    Path("recrawl.toml").write_text('public_url = "crawl.example"\n')
    assert "public_url" in refused(run, *RUN)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def post(port, token, body):
    """Status and JSON of an answer; None while nothing listens, or the engine is not loaded."""
    headers = {"authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/signals", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as problem:
        return None if problem.code == 503 else (problem.code, json.load(problem))
    except OSError:
        return None


def test_a_running_crawl_takes_signals_and_tokens(run, run_until, site, here):  # noqa: F811
    added(run, site)
    token, port = run("token", "add", "cms").out.strip(), free_port()
    late, note = new_token("late", ["signal"], time.time())
    answers, begun = [], []

    def steps():
        if not begun:
            if (found := post(port, token, [f"{site.url}/p/1", f"{site.url}/elsewhere"])) is None:
                return False
            answers.append(found)
            with BlockingStore(SqliteStore("recrawl.db", exclusive=False)) as store:
                store.queue([token_command("late", note.as_note()), token_command("cms", None)])
            begun.append(True)
        taken, refused_one = post(port, late, [f"{site.url}/p/2"]), post(port, token, [])
        if taken[0] != 200 or refused_one[0] != 401:
            return False
        answers.append(taken)
        return True

    result = run_until(steps, *RUN, "--listen", f"127.0.0.1:{port}")
    assert result.code == 0, result
    assert [status for status, _ in answers] == [200, 200]
    assert answers[0][1]["unknown"] == 1
    assert answers[0][1]["accepted"] + answers[0][1]["outdated"] == 1
    assert list(notes()) == [f"{PREFIX}late"]
    assert token not in result.err + result.out


@pytest.fixture
def refusing():
    """A port that is taken, so that no other process listens there, and refuses connections."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound


def test_signals_of_pages_that_cannot_be_crawled_wait_for_the_next_run(run, run_until, here, refusing):  # noqa: F811
    port, nobody = free_port(), f"http://127.0.0.1:{refusing.getsockname()[1]}"
    run("add", *(f"{nobody}/{k}" for k in range(3)))
    token = run("token", "add", "cms").out.strip()
    answers = []

    def steps():
        found = post(port, token, [f"{nobody}/0", f"{nobody}/2"])
        answers.extend([] if found is None else [found])
        return found is not None

    for _ in range(2):
        assert run_until(steps, *RUN, "--listen", f"127.0.0.1:{port}").code == 0
    assert [status for status, _ in answers] == [200, 200]
    assert [found["accepted"] for _, found in answers] == [2, 0]
    assert answers[1][1]["repeated"] == 2, "the next run knows them"
    with BlockingStore(SqliteStore("recrawl.db")) as store:
        assert [signal.url for signal in store.signals()] == [f"{nobody}/0", f"{nobody}/2"]
        assert store.notes("sources") == {"sources": ["webhook:cms"]}


def benchmark(name):
    """A module of the benchmarks."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kills", [1, pytest.param(100, marks=pytest.mark.full)])
def test_no_acknowledged_signal_is_missing_after_kills(kills, tmp_path):
    """Real processes, real HTTP, kill -9 while signals arrive."""
    found = benchmark("kill_signals").run(kills, 0, tmp_path)
    assert found["missing"] == 0
    assert found["damage"] == 0
    assert found["refused"] == 0
    assert found["accepted"] > 0
    assert found["kills_with_requests_in_flight"] >= 1


@pytest.mark.full
def test_no_acknowledged_ping_is_missing_after_kills(tmp_path):
    """IndexNow pings wait for their keys, whose files come late: what was answered 202 survives kill -9."""
    kill_signals = benchmark("kill_signals")
    found = kill_signals.run(5, 0, tmp_path, sends=kill_signals.Pinger)
    assert (found["missing"], found["damage"], found["refused"]) == (0, 0, 0)
    assert found["accepted"] > 0
    assert found["kills_with_requests_in_flight"] >= 1


@pytest.mark.full
def test_no_acknowledged_signal_is_missing_after_sigterm(tmp_path):
    """A crawl that is asked to end answers the requests that came, writes what it acknowledged, and ends well."""
    found = benchmark("kill_signals").run(5, 0, tmp_path, gently=True)
    assert (found["missing"], found["damage"], found["ended_well"]) == (0, 0, 5)
    assert found["accepted"] > 0
    assert found["kills_with_requests_in_flight"] >= 1
