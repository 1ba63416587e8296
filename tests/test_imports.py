"""Importing recrawl and asking for help stay light: nothing heavy is loaded in a fresh process."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

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
