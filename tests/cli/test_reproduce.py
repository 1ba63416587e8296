"""``recrawl reproduce``: what it prints and writes, and how it takes bad input."""

import json

import pytest


def test_list(run):
    done = run("reproduce", "--list")
    assert done.code == 0
    assert "busafekete2025/fig4" in done.out
    assert len(done.out.splitlines()) == 36


def test_list_of_a_paper_as_json(run):
    done = run("reproduce", "azar2018", "--list", "--json")
    assert [figure["id"] for figure in json.loads(done.out)["figures"]] == ["azar2018/fig1", "azar2018/fig2"]


@pytest.mark.slow
def test_a_figure_is_printed_and_written(run, tmp_path):
    done = run("reproduce", "azar2018/fig2", "--out", tmp_path)
    assert done.code == 0
    assert "claim" in done.out
    assert "yes" in done.out
    assert (tmp_path / "azar2018/fig2.png").exists()
    assert json.loads((tmp_path / "azar2018/fig2.json").read_text())["setting"] == "quick"
    assert not list(tmp_path.glob("**/*.jsonl"))


def test_json_is_all_that_is_printed(run, tmp_path):
    done = run("reproduce", "grimes/cost-lines", "--json", "--out", tmp_path, "--full")
    (result,) = json.loads(done.out)["results"]
    assert result["id"] == "grimes/cost-lines"
    assert result["setting"] == "full"


def test_a_result_below_its_floor_is_exit_code_1(run, tmp_path):
    (tmp_path / "grimes").mkdir()
    floors = tmp_path / "grimes/expected.json"
    floors.write_text('{"cost-lines": {"slope": {"least": 0}}}')
    call = ("reproduce", "grimes/cost-lines", "--check", "--floors", tmp_path, "--out", tmp_path / "out")
    failed = run(*call)
    assert failed.code == 1
    assert "slope" in failed.err
    floors.write_text('{"cost-lines": {"slope": {"most": 0}}}')
    assert run(*call).code == 0


def test_bad_input_is_one_line_and_exit_code_2(run, tmp_path):
    cases = {
        ("busafekete2025/fig44",): "near it: busafekete2025/fig4",
        ("azar2018", "--quick", "--full"): "exclude each other",
        ("azar2018/fig2", "--jobs", "0"): "--jobs",
        ("azar2018/fig2", "--reps", "1"): "--reps",
        ("azar2018/fig2", "--check", "--floors", str(tmp_path)): "there are no floors",
    }
    for options, message in cases.items():
        done = run("reproduce", *options)
        assert done.code == 2, options
        assert message in done.err
        assert len(done.err.splitlines()) == 1
