"""Good hosts among hostile ones, on real sockets: how many of their requests the hostile hosts cost.

Two crawls run at the same time for 24 seconds, so that both have the same share of the machine: one of ten good hosts,
one of ten good hosts among those of `tests/crawl/hostile`. Each has its own server of the good hosts. The ratio of what
the good hosts saw is written to results/hostile.json. `tests/crawl/hostile/test_places.py` has exact counts of the
same, by a clock moved by hand.

    python benchmarks/bench_hostile.py
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from crawl.hostile.processes import DELAY, GOOD_HOSTS, crawling, good_urls, hostile_urls, serving  # noqa: E402

SECONDS = 24.0


def main() -> None:
    """Crawl both webs and write what the good hosts saw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smallest", action="store_true", help="only whether it runs; nothing is written")
    given = parser.parse_args()
    found = measure(1.0 if given.smallest else SECONDS)
    print(json.dumps(found, indent=1))
    if not given.smallest:
        (HERE / "results" / "hostile.json").write_text(json.dumps(found, indent=1) + "\n")


def measure(duration: float) -> dict[str, float]:
    """Crawl both webs for some seconds: what the good hosts saw."""
    quiet: dict[str, list[float]] = {}
    loud: dict[str, list[float]] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        serving("bad", {}) as bad,
        serving("good", quiet) as alone,
        serving("good", loud) as among,
    ):
        control, hostile = good_urls(alone["port"]), [*hostile_urls(bad["ports"]), *good_urls(among["port"])]
        with (
            crawling(Path(folder) / "control", control, seconds=duration) as (first, go_first),
            crawling(Path(folder) / "hostile", hostile, seconds=duration) as (second, go_second),
        ):
            go_first()
            go_second()
        found = {
            "most_a_second": GOOD_HOSTS / DELAY,
            "cpu_alone": round(first["cpu"], 2),
            "cpu_among": round(second["cpu"], 2),
            "rss_mb": second["rss_peak"] - second["rss_before"],
        }
    found |= {
        "alone_a_second": round(len(quiet["good"]) / duration, 2),
        "among_a_second": round(len(loud["good"]) / duration, 2),
        "ratio": round(len(loud["good"]) / max(len(quiet["good"]), 1), 3),
    }
    return found


if __name__ == "__main__":
    main()
