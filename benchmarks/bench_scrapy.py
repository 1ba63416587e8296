"""Pages per second of Scrapy with and without the add-on, in turn, against one server.

    pip install -e .[scrapy,crawl]
    python benchmarks/bench_scrapy.py --pages 4000 --rounds 3

Both spiders fetch all pages once, with the same settings, and yield an item for each. With the add-on, pages are
added before the measurement; a budget that does not limit; each outcome is committed. The time runs from the first
response to the last: starting Python, and opening the database, are not in it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent


def crawl(port: int, options: argparse.Namespace, with_addon: bool) -> dict[str, float]:
    """One crawl in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        task = {"port": port, "pages": options.pages, "hosts": options.hosts, "concurrency": options.concurrency}
        task |= {"database": f"{folder}/pages.db" if with_addon else None, "change": options.change}
        command = [sys.executable, str(FOLDER / "scrapy_addon.py"), json.dumps(task)]
        return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=4000)
    parser.add_argument("--hosts", type=int, default=16)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--change", default="page")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--smallest", action="store_true", help="only whether it runs")
    options = parser.parse_args()
    if options.smallest:
        options.pages, options.rounds = 50, 1
    command = [sys.executable, str(FOLDER / "crawl_server.py"), str(options.hosts)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    port, found = int(server.stdout.readline()), {True: list[float](), False: list[float]()}
    try:
        for _ in range(options.rounds):
            for with_addon in (False, True):
                one = crawl(port, options, with_addon)
                found[with_addon].append(one["pages"] / one["seconds"])
                print(f"{'with' if with_addon else 'without'}: {found[with_addon][-1]:.0f} pages/s")
    finally:
        server.terminate()
    rates = {("with" if key else "without"): statistics.median(rates) for key, rates in found.items()}
    rates["ratio"] = rates["with"] / rates["without"]
    print(json.dumps(rates))
    if options.json is not None:
        options.json.write_text(json.dumps(rates | {"pages": options.pages, "rounds": options.rounds}, indent=1) + "\n")


if __name__ == "__main__":
    main()
