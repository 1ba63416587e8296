"""The documentation names what exists, its snippets run, and the committed figures are the ones it claims."""

import doctest
import json
import re
from pathlib import Path

import pytest

import recrawl.estimate
from recrawl.cli.planning import estimate as command

ROOT = Path(__file__).resolve().parents[2]
DOC = ROOT / "docs" / "reference" / "estimate.md"
RESULTS = ROOT / "experiments" / "estimate" / "results"


def test_every_public_name_and_option_is_documented():
    text = DOC.read_text(encoding="utf-8")
    missing = [name for name in recrawl.estimate.__all__ if f"`{name}" not in text]
    assert not missing
    options = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    options = options[options.index("## recrawl estimate") :].split("\n## ")[0]
    for option in ("method", "group", "level", "unit", "limit", "output", "plot", "lenient", "json"):
        assert f"`--{option}`" in options
    for method in command.Method:
        assert f"`{method.value}`" in text


def test_snippets_run():
    failed, tried = doctest.testfile(str(DOC), module_relative=False, encoding="utf-8")
    assert tried > 10
    assert failed == 0


def test_pictures_exist():
    for name in re.findall(r"\]\((\.\./[^)]+\.png)\)", DOC.read_text(encoding="utf-8")):
        assert (DOC.parent / name).is_file(), name


@pytest.fixture(scope="module")
def figures():
    return json.loads((RESULTS / "results.json").read_text())


def test_committed_coverage(figures):
    for row in figures["coverage"]:
        if row["method"].startswith("posterior"):
            assert 0.88 <= row["coverage"] <= 0.92, row


def test_committed_drift(figures):
    jumps = [row for row in figures["drift"] if row["factor"] != 1.0]
    assert {row["ratio"] for row in jumps} == {1.0, 0.5, 1 / 3}
    for row in jumps:
        assert row["pages"] == 10_000
        assert abs(row["drift"]["median"] - 1) <= 0.3
        assert row["drift"]["rmse_over_oracle"] <= 1.4
        assert row["drift"]["log_rmse_over_oracle"] <= 1.4


def test_committed_drift_on_other_seeds():
    tenfold = [r for r in json.loads((RESULTS / "drift_seeds.json").read_text()) if r["factor"] in (10.0, 0.1)]
    assert len(tenfold) == 6
    for row in tenfold:
        assert row["seeds"] == 8
        assert 0.7 <= row["median"][0] <= row["median"][1] <= 1.3
        assert row["rmse_over_oracle"][1] <= 1.4


def test_committed_appendix_e(figures):
    long = {(r["method"], r["quantity"]): r for r in figures["appendix_e"] if r["horizon"] == 1e5}
    for quantity in ("precision", "recall"):
        assert abs(long["mle", quantity]["mean_error"]) < 2e-3
        assert long["naive", quantity]["mean_error"] > 0.15


def test_committed_loop_is_near_the_spec(figures):
    wanted = {1000.0: (0.056, 0.310), 12_000.0: (0.015, 0.288)}
    for row in figures["hours_loop"]:
        very_stale, changed = wanted[row["horizon"]]
        assert row["very_stale"] == pytest.approx(very_stale, abs=0.01)
        assert row["changed_share"] == pytest.approx(changed, abs=0.01)
