"""Logs in several files: estimate and plan give what they give of one file."""

import csv
import json
from itertools import chain

import numpy as np
import pytest

pytestmark = pytest.mark.slow

N_PARTS = 3


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """A log in one file and in parts by host; one page is gone."""
    folder, rng = tmp_path_factory.mktemp("logs"), np.random.default_rng(4)
    parts = [[] for _ in range(N_PARTS)]
    for page in range(90):
        rate, at = rng.gamma(0.7), 0.0
        for k in range(9):
            step = rng.exponential() + 0.1
            at += step
            changed = "" if k == 0 else int(rng.random() < -np.expm1(-rate * step))
            status = 410 if page == 5 and k == 8 else 200
            row = f"https://h{page % 9}.example/{page},{1.7e9 + 86400 * at:.0f},{changed},{status},{1 + page % 4}"
            parts[page % N_PARTS].append(row)
    head = "url,time,changed,status,importance"
    (folder / "one.csv").write_text("\n".join([head, *chain(*parts)]) + "\n")
    (folder / "parts").mkdir()
    for k, rows in enumerate(parts):
        (folder / f"parts/{k}.csv").write_text("\n".join([head, *rows]) + "\n")
    return folder


def figures(run, *words):
    found = run(*words, "--json")
    assert found.code == 0, found.err
    return json.loads(found.out)


def rates(*files):
    rows = [row for file in files for row in csv.DictReader(file.read_text().splitlines())]
    return {row["url"]: row for row in rows}


@pytest.mark.parametrize("processes", [1, 2])
def test_estimates_are_those_of_one_file(logs, run, tmp_path, processes):
    whole = figures(run, "estimate", logs / "one.csv", "--output", tmp_path / "one.csv")
    (tmp_path / "out").mkdir()
    parted = ["--output", tmp_path / "out", "--processes", processes]
    found = figures(run, "estimate", logs / "parts/*.csv", *parted)
    for name in (
        "pages",
        "pages_with_history",
        "crawls",
        "changes",
        "failed_crawls",
        "prior",
        "unit",
        "level",
        "repairs",
    ):
        assert found[name] == whole[name], name
    assert found["change_rate"] == pytest.approx(whole["change_rate"], rel=0.1)
    assert rates(*(tmp_path / "out").iterdir()) == rates(tmp_path / "one.csv")


def test_plans_are_those_of_one_file(logs, run):
    whole = figures(run, "plan", logs / "one.csv", "--budget", "40/day")
    found = figures(run, "plan", logs / "parts/*.csv", "--budget", "40/day")
    for name in ("pages", "pages_gone", "crawls", "changes", "failed_crawls", "days", "level", "own_budget", "now"):
        assert found[name] == pytest.approx(whole[name], rel=1e-9), name
    for mine, theirs in zip(found["budgets"], whole["budgets"], strict=True):
        drawn = ("low", "high")  # by other random numbers
        assert {name: mine[name] for name in drawn} == pytest.approx({name: theirs[name] for name in drawn}, abs=0.02)
        rest = [name for name in theirs if name not in drawn]
        assert {name: mine[name] for name in rest} == pytest.approx({name: theirs[name] for name in rest}, rel=1e-6)


def test_the_report_says_what_it_is_of(logs, run):
    assert "90 pages, 719 intervals" in run("estimate", logs / "parts/*.csv").out
    assert "the best schedule would reach" in run("plan", logs / "parts/*.csv").out


@pytest.mark.parametrize(
    "words",
    [
        ["estimate", "parts/*.csv", "--plot", "a.png"],
        ["estimate", "parts/*.csv", "--output", "missing"],
        ["estimate", "one.csv", "--ray", "local"],
        ["plan", "parts/*.csv", "--target", "0.9"],
        ["plan", "parts/*.csv", "--processes", "100000"],
        ["plan", "parts/*.csv", "one.csv", "parts/0.csv"],
        ["plan", "nothing/*.csv"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_is_one_line(logs, run, monkeypatch, words):
    monkeypatch.chdir(logs)
    found = run(*words)
    assert (found.code, found.out, found.err.count("\n")) == (2, "", 1), found.err


def test_a_broken_part_is_named(logs, run, tmp_path):
    (tmp_path / "0.csv").write_text((logs / "parts/0.csv").read_text())
    (tmp_path / "1.csv").write_text("url,time,changed\nhttps://a.example/,yesterday,1\n")
    for command in ("estimate", "plan"):
        found = run(command, tmp_path / "0.csv", tmp_path / "1.csv")
        assert (found.code, found.err.count("\n")) == (2, 1)
        assert "1.csv" in found.err
