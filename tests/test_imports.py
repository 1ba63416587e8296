"""Importing recrawl and asking for help stay light; scripts import names that exist."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
HEAVY = ["numba", "aiohttp", "fastapi", "matplotlib", "pyarrow", "lightgbm", "sklearn", "jax"]


CODE = [
    "import recrawl",
    "import recrawl.cli",
    "import recrawl.schedule",
    "from recrawl import Pacer, Policy",
    "from recrawl.cli import app; app(['--help'], standalone_mode=False)",
    "from recrawl.cli import app; app(['demo', '--help'], standalone_mode=False)",
    "from recrawl.cli import app; app(['solve', '--help'], standalone_mode=False)",
    "from recrawl.cli import app; app(['estimate', '--help'], standalone_mode=False)",
    "from recrawl.cli import app; app(['simulate', '--help'], standalone_mode=False)",
    "from recrawl.cli import app; app(['trace', 'git', '--help'], standalone_mode=False)",
    "from recrawl.cli import app; app(['predict', 'train', '--help'], standalone_mode=False)",
    "from recrawl.cli import app; app(['reproduce', '--help'], standalone_mode=False)",
]


@pytest.fixture(scope="module")
def loaded():
    """One fresh process runs all lines. For each of them, the heavy packages that are there from it on."""
    check = f"print('loaded:', *[name for name in {HEAVY} if name in sys.modules])"
    lines = ["import sys", *(f"{code}\n{check}" for code in CODE)]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=300, check=True
    )
    found = [line for line in done.stdout.splitlines() if line.startswith("loaded:")]
    return dict(zip(CODE, found, strict=True))


@pytest.mark.parametrize("code", CODE)
def test_nothing_heavy_is_loaded(loaded, code):
    assert loaded[code] == "loaded:"


def names_of_recrawl(path):
    """What a script imports from recrawl: line, module, name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "recrawl":
            yield from ((node.lineno, node.module, alias.name) for alias in node.names)


def exists(module, name):
    """Whether a module has a name; a name that needs a package that is not installed counts."""
    try:
        return hasattr(importlib.import_module(module), name) or bool(importlib.import_module(f"{module}.{name}"))
    except ModuleNotFoundError as problem:
        return not (problem.name or "").startswith("recrawl")


@pytest.mark.parametrize("folder", ["experiments", "benchmarks", "examples", "docs"])
def test_scripts_import_what_there_is(folder):
    scripts = sorted((ROOT / folder).rglob("*.py"))
    assert scripts
    found = [(path, *name) for path in scripts for name in names_of_recrawl(path)]
    assert [one for one in found if not exists(*one[2:])] == []
