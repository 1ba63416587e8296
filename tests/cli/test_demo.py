"""recrawl demo: the short form, on real sockets."""

import json
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

import recrawl
from recrawl.cli import main
from recrawl.demo import live
from recrawl.demo.world import SITES, draw_world
from recrawl.store import BlockingStore, SqliteStore

pytestmark = pytest.mark.slow


def run(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return ended.value.code


@pytest.fixture(scope="module")
def short_demo(tmp_path_factory):
    """What a demo of three seconds prints, its database and its plot."""
    folder = tmp_path_factory.mktemp("demo")
    database, plot = folder / "my demo.db", folder / "demo.png"
    options = ["--for", "3s", "--seed", "2", "--database", str(database), "--plot", str(plot), "--json"]
    with redirect_stdout(StringIO()) as out:
        assert run("demo", *options) == 0
    return json.loads(out.getvalue()), database, plot


def test_a_short_demo(short_demo):
    found, database, plot = short_demo
    assert found["seconds"] == pytest.approx(3.0, abs=0.1)
    assert found["forbidden"] == 0
    assert found["detection"]["imagined"] == found["detection"]["missed"] == 0
    # how many requests there are and how fresh copies stay: tests/demo/test_live.py, by a manual clock
    assert 0 < found["requests"] <= 15.0 * 4.0
    assert 0.0 < found["freshness"] < 1.0
    assert found["freshness"] == pytest.approx(np.mean(found["over_time"]["recrawl"]), abs=1e-6)
    without = found["without_signals"]
    assert 0 < without["requests"] <= 15.0 * 4.0
    assert without["freshness"] == pytest.approx(np.mean(found["over_time"]["without signals"]), abs=1e-6)
    assert {source["site"] for source in found["sources"]} == {"news", "shop", "docs", "blog", "wiki", "archive"}
    rivals = {rival["policy"]: rival["requests"] for rival in found["rivals"]}
    assert set(rivals) == {"uniform", "nutch"}
    assert found["requests"] - 1 <= rivals["uniform"] <= found["requests"], "as many requests for the rivals"
    assert plot.stat().st_size > 10_000
    with BlockingStore(SqliteStore(database, exclusive=False)) as store:
        assert store.counts()["pages"] == 508  # 500 and the eight that robots.txt forbids
        assert store.counts()["observations"] >= 500
        assert found["without_copy"] == 500 - store.counts()["copies"]
        crawls = list(store.observations())
        assert found["detection"]["looks"] == sum(one.fetched and one.changed is not None for one in crawls)
        assert found["not_modified"] == sum(one.status == 304 for one in crawls)
        assert store.check() == []


SMALL = tuple(replace(site, n_pages=site.n_pages // 5) for site in SITES)  # 100 pages
FOLLOWED = 108 + 45  # observations: all pages once, and then at 15 a second for more than two seconds in any case


def test_the_next_demo_replaces_it_ctrl_c_ends_it_and_its_commands_work(short_demo, run_until, monkeypatch):
    _, database, _ = short_demo
    monkeypatch.setattr(live, "draw_world", partial(draw_world, sites=SMALL))
    monkeypatch.setattr(sys, "argv", [str(Path(recrawl.__file__).parent / "__main__.py")])
    first = began(database)

    def followed():
        return began(database) > first and observations(database) >= FOLLOWED

    found = run_until(followed, "demo", "--database", database)  # a demo's own database is replaced
    assert found.code == 0, found.err
    assert "Traceback" not in found.err
    assert "recrawl why http://" in found.out
    assert "without signals" in found.out
    with BlockingStore(SqliteStore(database, exclusive=False)) as store:
        assert store.check() == []
    commands = [line for line in found.out.splitlines() if line.startswith("  ") and " -m recrawl " in line]
    assert len(commands) == 3
    done = subprocess.run(commands[0], shell=True, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    program, *others = map(shlex.split, commands)
    for words in others:  # in this process: a start takes two seconds
        assert words[:3] == program[:3]
        assert run(*words[3:]) == 0


def began(database):
    """When the first crawl in a database was."""
    return asked(database, lambda store: next(iter(store.observations())).began_at)


def observations(database):
    return asked(database, lambda store: store.counts()["observations"])


def asked(database, question):
    """The answer of a database that may not be there yet, or no longer: then 0."""
    try:
        with BlockingStore(SqliteStore(database, exclusive=False)) as store:
            return question(store)
    except Exception:
        return 0


def test_bad_input_is_one_line_and_nothing_is_lost(tmp_path, capsys):
    precious = tmp_path / "precious.db"
    with BlockingStore(SqliteStore(precious)) as store:
        store.save(notes={"mine": 1})
    before = precious.read_bytes()
    assert run("demo", "--database", str(precious)) == 2
    assert precious.read_bytes() == before
    for arguments in (
        ["--for", "soon"],
        ["--for", "0.1s"],
        ["--budget", "9000/s"],
        ["--plot", "demo.txt"],
        ["--seed", "-1"],
    ):
        assert run("demo", "--database", str(tmp_path / "new.db"), *arguments) == 2
    text = tmp_path / "notes.txt"
    text.write_text("not a database")
    assert run("demo", "--database", str(text)) == 2
    assert text.read_text() == "not a database"
    assert all(line.startswith("recrawl: ") for line in capsys.readouterr().err.splitlines())
    assert not (tmp_path / "new.db").exists()
