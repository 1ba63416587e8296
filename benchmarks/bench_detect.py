"""Cost of detecting changes: detectors beside a bare selectolax parse plus text, on the same pages in the same run.

python benchmarks/bench_detect.py [--rounds 40] [--output benchmarks/results]

Writes detect.json and detect.png. One thread, processor time; in each round every way takes its turn over all pages of
a kind, and its shortest round counts: what else runs on the machine counts for less. Pages are made from seeds; the
corpus is that of the tests.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from recrawl.crawl.detect.detector import Detection, detector_for
from recrawl.crawl.http.fetched import Fetched

HERE = Path(__file__).resolve().parent
CORPUS = HERE.parent / "tests" / "crawl" / "corpus"
WAYS = {
    "raw": Detection("raw"),
    "text": Detection("text"),
    "main": Detection("main"),
    "css": Detection("css", ".content p"),
    "main, ignore": Detection("main", ignore=(r"[0-9]+ in stock", r"Ref\. \w+")),
    "main, similarity": Detection("main", similarity=4),
}
LIMIT = 3.0


def words(rng: random.Random, n: int) -> str:
    """Words of syllables."""
    syllables = ["ba", "do", "ki", "lu", "me", "rön", "sta", "ti"]
    return " ".join("".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(n))


def around(rng: random.Random, inside: str) -> str:
    """A page as sites make them: head, scripts, navigation, advertising, footer."""
    item = '<li class="nav-item item-{}"><a class="link" href="/{}">{}</a></li>'
    links = "".join(item.format(k, k, words(rng, 2)) for k in range(50))
    return (
        f'<!doctype html><html lang="x"><head><meta charset="utf-8"><title>{words(rng, 5)}</title>'
        f"<style>{'.a{color:red}' * 150}</style><script>{'var a=1;' * 300}</script></head><body class='page'>"
        f'<header class="site-header"><nav class="menu"><ul>{links}</ul></nav></header>{inside}'
        f'<aside class="sidebar"><div class="ad-slot">{words(rng, 30)}</div><ul>{links}</ul></aside>'
        f"<footer>{words(rng, 60)}</footer><script>{'f(x);' * 400}</script></body></html>"
    )


def article(rng: random.Random) -> str:
    """A long text."""
    paragraphs = "".join(f"<p>{words(rng, 70)} <a href='/x'>{words(rng, 3)}</a>.</p>" for _ in range(60))
    return around(rng, f'<main class="content"><h1>x</h1>{paragraphs}</main>')


def shop(rng: random.Random) -> str:
    """A list of products: much markup, little text."""
    cards = "".join(
        f'<div class="card product" data-id="{k}"><img src="/i/{k}.jpg" alt=""><h3 class="name">{words(rng, 4)}</h3>'
        f'<span class="price">{rng.randint(5, 99)}.90</span>'
        f'<p class="stock">{rng.randint(1, 40)} in stock</p><button>+</button></div>'
        for k in range(150)
    )
    return around(rng, f'<div class="content grid">{cards}</div>')


def forum(rng: random.Random) -> str:
    """Posts with ages and counters."""
    posts = "".join(
        f'<div class="post"><span class="author">{words(rng, 1)}</span> <time>{rng.randint(2, 20)} hours ago</time>'
        f"<p>{words(rng, 60)}</p><span>{rng.randint(5, 900)} views</span></div>"
        for _ in range(80)
    )
    return around(rng, f'<div class="content">{posts}</div>')


def table(rng: random.Random) -> str:
    """A large table."""
    rows = "".join("<tr>" + "".join(f"<td>{rng.randint(0, 9999)}</td>" for _ in range(8)) + "</tr>" for _ in range(400))
    return around(rng, f'<main class="content"><table>{rows}</table></main>')


def kinds() -> dict[str, list[bytes]]:
    """Pages by kind."""
    made = {
        make.__name__: [make(random.Random(seed)).encode() for seed in range(8)]
        for make in (article, shop, forum, table)
    }
    return {**made, "corpus": [path.read_bytes() for path in sorted(CORPUS.glob("*.html"))]}


def seconds(look: Callable[[Fetched], object], pages: list[Fetched], repeat: int) -> float:
    """Processor time of one look at each page."""
    began = time.process_time()
    for _ in range(repeat):
        for page in pages:
            look(page)
    return (time.process_time() - began) / repeat


def measured(bodies: list[bytes], rounds: int) -> dict[str, Any]:
    """Milliseconds per page of every way, the shortest of all rounds, and the ratio to selectolax."""
    kind = {"content-type": "text/html; charset=utf-8"}
    pages = [Fetched("http://a.example/", "http://a.example/", 200, 0.0, 0.0, kind, body) for body in bodies]
    looks: dict[str, Callable[[Fetched], object]] = {
        "selectolax": lambda page: LexborHTMLParser(page.body).text(separator=" "),
        **{name: detector_for(detection).digest for name, detection in WAYS.items()},
    }
    repeat = max(1, round(0.02 / max(seconds(looks["main"], pages, 1), 1e-4)))
    times: dict[str, list[float]] = {name: [] for name in looks}
    for _ in range(rounds):
        for name, look in looks.items():
            times[name].append(seconds(look, pages, repeat))
    best = {name: min(one) for name, one in times.items()}
    return {
        "pages": len(pages),
        "mean_bytes": round(sum(map(len, bodies)) / len(bodies)),
        "ms_per_page": {name: round(1000 * one / len(pages), 4) for name, one in best.items()},
        "ratio": {name: round(one / best["selectolax"], 3) for name, one in best.items()},
    }


def draw(results: dict[str, Any], path: Path) -> None:
    """Bars of the ratio to selectolax, by kind and way."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(10, 4), layout="constrained")
    names, ways = list(results["kinds"]), ["raw", "text", "main", "main, ignore", "css", "main, similarity"]
    colours = ["#bbbbbb", "#66ccee", "#4477aa", "#228833", "#ccbb44", "#aa3377"]
    for k, (way, colour) in enumerate(zip(ways, colours, strict=True)):
        values = [results["kinds"][name]["ratio"][way] for name in names]
        bars = axes.bar([j + (k - 2.5) * 0.14 for j in range(len(names))], values, 0.13, label=way, color=colour)
        axes.bar_label(bars, [f"{value:.1f}" for value in values], fontsize=7)
    axes.axhline(LIMIT, color="#999999", linestyle="--", zorder=0)
    labels = [f"{name}\n{results['kinds'][name]['mean_bytes'] / 1000:.3g} kB" for name in names]
    axes.set(yscale="log", xticks=range(len(names)), xticklabels=labels)
    axes.set(
        ylabel="time / time of selectolax (dashed: 3)",
        title="A look at a page, beside a bare selectolax parse plus text",
    )
    axes.legend(frameon=False, ncols=3, fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run everything and write the results."""
    parser = argparse.ArgumentParser(description="Time the detectors.")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--smallest", action="store_true", help="only whether it runs; nothing is written")
    parser.add_argument("--output", type=Path, default=HERE / "results")
    options = parser.parse_args()
    if options.smallest:
        print(measured(next(iter(kinds().values()))[:2], 1))
        return
    results: dict[str, Any] = {
        "machine": {"cores": os.cpu_count(), "processor": platform.machine(), "python": platform.python_version()},
        "rounds": options.rounds,
        "limit_of_main": LIMIT,
        "kinds": {name: measured(bodies, options.rounds) for name, bodies in kinds().items()},
    }
    found_of = results["kinds"].values()
    total = {way: sum(one["pages"] * one["ms_per_page"][way] for one in found_of) for way in ("main", "selectolax")}
    results["ratio_of_main"] = round(total["main"] / total["selectolax"], 3)
    results["largest_ratio_of_main"] = max(found["ratio"]["main"] for found in results["kinds"].values())
    (options.output / "detect.json").write_text(json.dumps(results, indent=1) + "\n")
    draw(results, options.output / "detect.png")
    print(f"main, all pages: {results['ratio_of_main']} times selectolax")
    for name, found in results["kinds"].items():
        print(f"{name} ({found['mean_bytes']} bytes): {found['ratio']}")


if __name__ == "__main__":
    main()
