"""Ray: parts of a table on a local cluster give what one process gives; workers as actors keep every promise."""

import importlib
import json
import sys
from pathlib import Path

import pytest
from cluster.test_failures import BROKEN

from recrawl.cli.commands import call

pytest.importorskip("ray", reason="Ray is not installed: pip install 'recrawl[ray]'")

pytestmark = pytest.mark.full  # a Ray cluster takes ten seconds to start


def run(capsys, *words):
    code = call(list(words))
    return code, *capsys.readouterr()


def parts_of(folder):
    folder.mkdir()
    for k in range(4):
        rows = [f"https://h{k}.example/{j},{0.1 + j / 7 + k}" for j in range(50)]
        (folder / f"{k}.csv").write_text("\n".join(["url,change_rate", *rows]) + "\n")
    return sorted(map(str, folder.glob("*.csv")))


def test_parts_on_ray_give_what_one_process_gives(tmp_path, capsys):
    parts = parts_of(tmp_path / "parts")
    code, here, err = run(capsys, "solve", *parts, "--budget", "100/day", "--json")
    assert code == 0, err
    code, there, err = run(capsys, "solve", *parts, "--budget", "100/day", "--ray", "local", "--json")
    assert code == 0, err
    assert json.loads(there) == json.loads(here)


def test_what_cannot_be_is_one_line(tmp_path, capsys):
    parts = parts_of(tmp_path / "parts")
    (tmp_path / "parts" / "2.csv").write_text("url,change_rate\nhttps://a.example/,much\n")
    for some, address in ((parts, "local"), (parts[:1], "local"), (parts[:2], "127.0.0.1:1")):
        code, _, err = run(capsys, "solve", *some, "--budget", "100/day", "--ray", address)
        assert (code, err.count("\n")) == (2, 1), err
        assert len(some) < 4 or "2.csv" in err


def test_actors_and_nodes_that_are_killed_lose_and_double_nothing(monkeypatch, tmp_path, postgres):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    module = importlib.import_module("failures_ray")
    try:
        found = module.play(2, 12, seed=3, folder=tmp_path)
    finally:
        for name in [name for name in sys.modules if name.startswith("failures_")]:
            del sys.modules[name]
    assert {name: found[name] for name in BROKEN} == dict.fromkeys(BROKEN, 0)
    assert found["failures"] == {"actor": 1, "node": 1}
    assert found["workers_lost"] >= 2
    assert found["acknowledged"] > 50
