"""Each committed result names the code it was made with, and results that are older than that code are named."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RESULT = "benchmarks/results/run.json"
TYPES = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"


@pytest.fixture(scope="module")
def made_with():
    spec = importlib.util.spec_from_file_location("made_with", ROOT / "benchmarks" / "made_with.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["made_with"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path):
    """A checkout with one result, whose script uses a public name of a package, which uses a module of another."""
    files = {
        "src/recrawl/inner/__init__.py": f"{TYPES}    from recrawl.inner.deep import work as work\n",
        "src/recrawl/inner/deep.py": '"""Deep."""\ndef work():\n    import recrawl.lower.base as b\n    return b\n',
        "src/recrawl/lower/base.py": f"{TYPES}    import recrawl.other\none = 1\n",
        "src/recrawl/other.py": "two = 2\n",
        "benchmarks/run.py": "from common import times\nfrom recrawl.inner import work\nprint(work() * times)\n",
        "benchmarks/common.py": "times = 3\n",
        "benchmarks/results/run.json": '{"found": 3}\n',
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def kept(made_with, tree):
    return {RESULT: made_with.stamp(tree, RESULT, ["benchmarks/run.py"], "abc")}


def edit(made_with, tree, name, old, new):
    path = tree / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    made_with._imported.cache_clear()


def test_a_result_rests_on_what_its_script_imports(made_with, tree):
    code = kept(made_with, tree)[RESULT]["code"]
    assert set(code) == {"benchmarks/run.py", "benchmarks/common.py", "recrawl.inner", "recrawl.lower"}


@pytest.mark.parametrize(
    ("name", "old", "new", "part"),
    [
        ("src/recrawl/lower/base.py", "one = 1", "one = 2", "recrawl.lower"),
        ("src/recrawl/inner/deep.py", "return b", "return b.one", "recrawl.inner"),
        ("benchmarks/common.py", "3", "4", "benchmarks/common.py"),
    ],
)
def test_a_result_is_older_than_code_that_changed(made_with, tree, name, old, new, part):
    before = kept(made_with, tree)
    assert made_with.older(tree, before) == {}
    edit(made_with, tree, name, old, new)
    assert made_with.older(tree, before) == {RESULT: [part]}
    assert made_with.unstamped(tree, before) == []


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("src/recrawl/other.py", "two = 2", "two = 3"),  # imported for type checkers alone
        ("src/recrawl/inner/deep.py", "Deep.", "Deeper."),
        ("src/recrawl/lower/base.py", "one = 1", "one = 1  # the first"),
    ],
)
def test_docstrings_comments_and_other_modules_do_not_count(made_with, tree, name, old, new):
    before = kept(made_with, tree)
    edit(made_with, tree, name, old, new)
    assert made_with.older(tree, before) == {}


def test_a_result_that_was_written_since_or_is_gone_is_found(made_with, tree):
    before = kept(made_with, tree)
    (tree / RESULT).write_text('{"found": 4}\n')
    assert made_with.unstamped(tree, before) == [RESULT]
    (tree / RESULT).rename(tree / "benchmarks/results/other.json")
    assert made_with.unstamped(tree, before) == ["benchmarks/results/other.json", RESULT]


def test_every_committed_result_is_stamped_and_its_scripts_exist(made_with):
    ledger = made_with.ledger()
    assert made_with.unstamped(ROOT, ledger) == []
    assert len(ledger) > 100
    assert {script for entry in ledger.values() for script in entry["by"] if not (ROOT / script).exists()} == set()
    assert all(entry["commit"] and entry["code"] for entry in ledger.values())


@pytest.mark.slow
def test_names_the_results_that_are_older_than_their_code(made_with, capsys):
    """An older result is no mistake, but it has to be known: the command names each with what changed."""
    made_with.main([])
    said = capsys.readouterr().out
    ledger = made_with.ledger()
    older = made_with.older(ROOT, ledger)
    for name, parts in older.items():
        assert f"{name}, made with {ledger[name]['commit']}: others now are {', '.join(parts)}\n" in said
    assert said.splitlines()[-1].startswith(f"{len(older)} of {len(ledger)} results are older than the code")


def test_a_new_result_has_to_name_its_script(made_with, tree, monkeypatch):
    monkeypatch.setattr(made_with, "ROOT", tree)
    monkeypatch.setattr(made_with, "LEDGER", tree / "made_with.json")
    monkeypatch.setattr(made_with, "ledger", dict)
    with pytest.raises(SystemExit, match="name the scripts that made it with --by"):
        made_with.main(["--write", str(tree / RESULT)])
    made_with.main(["--write", str(tree / RESULT), "--by", "benchmarks/run.py"])
    written = json.loads((tree / "made_with.json").read_text())
    assert written[RESULT]["by"] == ["benchmarks/run.py"]
    assert made_with.older(tree, written) == {}
