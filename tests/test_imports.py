"""Importing recrawl and asking for help stay light: nothing heavy is loaded in a fresh process."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

HEAVY = ["numba", "aiohttp", "fastapi", "matplotlib", "pyarrow", "lightgbm", "sklearn", "jax"]


@pytest.mark.parametrize(
    "code",
    [
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
    ],
)
def test_nothing_heavy_is_loaded(code):
    check = f"import sys; print('loaded:', *[name for name in {HEAVY} if name in sys.modules])"
    command = [sys.executable, "-c", f"{code}\n{check}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "loaded:"
