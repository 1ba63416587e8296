"""The tests of the Scrapy add-on on several versions of Scrapy: how many passed on each.

    python benchmarks/scrapy_versions.py --out benchmarks/results/scrapy_versions.json

Each version is installed into a folder of its own, with what it needs, and comes before the installed one. The tests
are those of `tests/contrib/scrapy`, all of them: crawls that are interrupted, killed and resumed too. `make test`
runs the short ones with the Scrapy that is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent
VERSIONS = ("2.13.*", "")  # the oldest that is supported; the newest that pip finds
_SHOW = "import scrapy, twisted; print(scrapy.__version__, twisted.__version__)"


def tested(wanted: str, folder: Path, tests: list[str]) -> dict[str, object]:
    """The tests on one version: its number and that of Twisted, and the counts."""
    named = f"scrapy=={wanted}" if wanted else "scrapy"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
    subprocess.run([*command, "--target", str(folder), named], check=True)
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    shown = subprocess.run([sys.executable, "-c", _SHOW], env=environment, capture_output=True, text=True, check=True)
    scrapy, twisted = shown.stdout.split()
    began = time.perf_counter()
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *tests]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        print(done.stdout[-4000:], flush=True)
    suite = ElementTree.parse(report).getroot()[0]
    counts = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    return {"scrapy": scrapy, "twisted": twisted, **counts, "seconds": round(time.perf_counter() - began)}


def main() -> None:
    """Run what the options say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", nargs="*", default=VERSIONS)
    parser.add_argument("--tests", nargs="*", default=["tests/contrib/scrapy"])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    found = []
    for wanted in given.versions:
        with tempfile.TemporaryDirectory() as folder:
            found.append(tested(wanted, Path(folder), given.tests))
            print(found[-1], flush=True)
    if given.out is not None:
        given.out.write_text(json.dumps({"tests": given.tests, "versions": found}, indent=2) + "\n")
    if any(one["failures"] or one["errors"] or not one["tests"] for one in found):
        raise SystemExit("some tests failed")


if __name__ == "__main__":
    main()
