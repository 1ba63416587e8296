"""Pages per second, and processor time per page, of Scrapy with and without the add-on, in turn, against one server.

    pip install -e .[scrapy,crawl]
    python benchmarks/bench_scrapy.py --pages 4000 --rounds 3

All spiders fetch all pages once, with the same settings, and yield an item for each. With the add-on, pages are added
before the measurement; a budget that does not limit; each outcome is committed. What is measured lies between the first
response and the last: starting Python, and opening the database, are not in it. Processor time is that of Scrapy's
process; that of the process of the desk is beside it.

Variants: ``without`` the add-on; ``page``, its default, by the detector; ``items``, by the items of callbacks;
``inside``, the default with RECRAWL_PROCESS = False.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent
VARIANTS = ("without", "page", "items", "inside")


def crawl(port: int, options: argparse.Namespace, variant: str) -> dict[str, float]:
    """One crawl in a process of its own: pages per second, milliseconds of processor per page."""
    with tempfile.TemporaryDirectory() as folder:
        task = {"port": port, "pages": options.pages, "hosts": options.hosts, "concurrency": options.concurrency}
        task |= {"database": None if variant == "without" else f"{folder}/pages.db"}
        task |= {"change": "items" if variant == "items" else "page", "process": variant != "inside"}
        command = [sys.executable, str(FOLDER / "scrapy_addon.py"), json.dumps(task)]
        one = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    ms = {name: 1e3 * one[name] / one["pages"] for name in ("cpu", "desk_cpu")}
    found = {"rate": one["pages"] / one["seconds"], **ms}
    print(f"{variant:8} {found['rate']:4.0f} pages/s, {ms['cpu']:.2f} ms a page, desk {ms['desk_cpu']:.2f} ms")
    return found


def compare(port: int, options: argparse.Namespace) -> dict[str, object]:
    """All variants in turn: medians, and the median of their shares of what Scrapy does without the add-on."""
    before = os.getloadavg()
    runs = {variant: list[dict[str, float]]() for variant in options.variants}
    for count in range(options.rounds):
        for variant in options.variants if count % 2 == 0 else options.variants[::-1]:
            runs[variant].append(crawl(port, options, variant))
    medians = {
        variant: {name: statistics.median(one[name] for one in found) for name in found[0]}
        for variant, found in runs.items()
    }
    ratios = {
        variant: {
            "rate": statistics.median(one["rate"] / plain["rate"] for one, plain in zip(found, plains, strict=True)),
            "cpu": statistics.median(plain["cpu"] / one["cpu"] for one, plain in zip(found, plains, strict=True)),
        }
        for variant, found in runs.items()
        if (plains := runs.get("without")) and variant != "without"
    }
    load = {"before": before, "after": os.getloadavg()}
    return {"pages": options.pages, "rounds": options.rounds, "medians": medians, "ratios": ratios, "load": load}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=4000)
    parser.add_argument("--hosts", type=int, default=16)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=VARIANTS)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--smallest", action="store_true", help="only whether it runs")
    options = parser.parse_args()
    if options.smallest:
        options.pages, options.rounds, options.variants = 50, 1, ("without", "page")
    command = [sys.executable, str(FOLDER / "crawl_server.py"), str(options.hosts)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        found = compare(int(server.stdout.readline()), options)
    finally:
        server.terminate()
    print(json.dumps(found["ratios"], indent=1))
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
