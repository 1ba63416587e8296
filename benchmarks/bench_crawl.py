"""Pages per second and CPU per page of the crawler beside Scrapy.

Both crawl the same 20,000 pages of 30 KB from the same server process once, 64 at a time, after reading robots.txt,
hash the main text with the same detector, the default, and keep url, time, status and digest in SQLite. The crawler has
a core to itself as far as other processes let it, the server another. They take turns; the medians over the rounds
count. recrawl also keeps what its engine believes of each page and an observation of each crawl; neither keeps bodies.

    pip install -e .[scrapy,data]
    python benchmarks/bench_crawl.py            about ten minutes
    python benchmarks/bench_crawl.py --quick    1,000 pages; results are not written
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from crawl_server import HOSTS, KIB

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGES, CONCURRENCY, ROUNDS = 20_000, 64, 3
CRAWLERS = {"scrapy": "scrapy_crawl.py"} if find_spec("scrapy") else {}  # it may not be installed
CRAWLERS |= {"recrawl": "recrawl_crawl.py"}
LOOPS = ("default", "uvloop") if find_spec("uvloop") else ("default",)


def pinned(core: int, *words: str) -> list[str]:
    """A command on one core."""
    last = (os.cpu_count() or 1) - 1
    return ["taskset", "-c", str(min(core, last)), sys.executable, *words]


@contextmanager
def server() -> Iterator[int]:
    """The server, on the other core; its port."""
    command = pinned(1, str(HERE / "crawl_server.py"), str(HOSTS))
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def crawl(name: str, loop: str, port: int, n_pages: int) -> dict[str, Any]:
    """One run of a crawler in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        given = [str(port), str(HOSTS), str(n_pages), str(CONCURRENCY), str(Path(folder) / "crawl.db"), loop]
        done = subprocess.run(pinned(0, str(HERE / CRAWLERS[name]), *given), stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if not found["pages"] == found["digests"] == n_pages:
        raise RuntimeError(f"{name} kept {found['pages']} pages with {found['digests']} digests of {n_pages}")
    found.update(crawler=name, loop=loop, load=round(os.getloadavg()[0], 2))
    print(
        f"{name:8} {loop:8} {n_pages / found['seconds']:7.0f} pages/s, {1e3 * found['cpu'] / n_pages:.3f} ms CPU a page"
    )
    return found


def compare(n_pages: int, rounds: int) -> dict[str, Any]:
    """All crawlers in turns."""
    with server() as port:
        crawl("recrawl", "default", port, min(n_pages, 500))  # what is compiled on first use is
        runs = [crawl(name, loop, port, n_pages) for _ in range(rounds) for loop in LOOPS for name in CRAWLERS]
    summary = {}
    for loop in LOOPS:
        for name in CRAWLERS:
            mine = [run for run in runs if (run["crawler"], run["loop"]) == (name, loop)]
            summary[f"{name}/{loop}"] = {
                "pages_per_second": n_pages / median(run["seconds"] for run in mine),
                "cpu_ms_per_page": 1e3 * median(run["cpu"] for run in mine) / n_pages,
                "peak_mb": max(run["peak_mb"] for run in mine),
            }
    ratios = {}
    for loop in LOOPS if "scrapy" in CRAWLERS else ():
        theirs, ours = summary[f"scrapy/{loop}"], summary[f"recrawl/{loop}"]
        ratios[loop] = {
            "pages_per_second": ours["pages_per_second"] / theirs["pages_per_second"],
            "cpu_per_page": theirs["cpu_ms_per_page"] / ours["cpu_ms_per_page"],
        }
    return {
        "pages": n_pages,
        "kib": KIB,
        "hosts": HOSTS,
        "concurrency": CONCURRENCY,
        "summary": summary,
        "ratios": ratios,
        "runs": runs,
    }


def draw(found: dict[str, Any], path: Path) -> None:
    """Both figures as bars."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), dpi=120, layout="constrained")
    panels = figure.subplots(1, 2)
    names = [f"{name}/{loop}" for loop in LOOPS for name in CRAWLERS]
    colours = ["0.6", "crimson"] * len(LOOPS)
    labels = [name.replace("/default", "").replace("/", "\n") for name in names]
    for axes, figure_name, title in zip(
        panels,
        ("pages_per_second", "cpu_ms_per_page"),
        (f"pages of {KIB} KiB per second, one core", "CPU per page, ms"),
        strict=True,
    ):
        values = [found["crawl"]["summary"][name][figure_name] for name in names]
        bars = axes.bar(labels, values, color=colours)
        axes.bar_label(bars, fmt="%.0f" if figure_name.startswith("pages") else "%.2f")
        axes.set_title(title, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--smallest", action="store_true", help="only whether it runs; nothing is written")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    before = os.getloadavg()
    if given.smallest:
        compare(100, 1)
        return
    found: dict[str, Any] = {"crawl": compare(1000, 1) if given.quick else compare(PAGES, given.rounds)}
    found["machine"] = {"cores": os.cpu_count(), "load_before": before, "load_after": os.getloadavg()}
    print(json.dumps(found["crawl"]["ratios"], indent=2))
    if not given.quick:
        RESULTS.joinpath("crawl.json").write_text(json.dumps(found, indent=2) + "\n")
        draw(found, RESULTS / "crawl.png")


if __name__ == "__main__":
    main()
