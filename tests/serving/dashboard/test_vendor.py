"""Files of other projects are those of their npm packages: their sums are in the README beside them."""

import hashlib
import re
from pathlib import Path

import recrawl.serve.dashboard

FOLDER = Path(recrawl.serve.dashboard.__file__).parent / "static" / "vendor"
ROW = re.compile(r"^\| `([^`]+)` \| `[^`]+@[\d.]+` \| .* `([0-9a-f]{64})` \|$", re.MULTILINE)


def test_files_of_other_projects_are_unmodified():
    named = ROW.findall((FOLDER / "README.md").read_text())
    found = [path for path in sorted(FOLDER.iterdir()) if path.name != "README.md"]
    assert sorted(named) == [(one.name, hashlib.sha256(one.read_bytes()).hexdigest()) for one in found]
