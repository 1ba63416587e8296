"""Pages that need a browser: what each kind of scripted page gives, and what 200 pages leave behind.

    pip install -e .[browser,crawl]
    python benchmarks/bench_browser.py --out benchmarks/results/browser.json

Kinds: the pages of `tests/contrib/scripted.py`, each on a host of its own, served on loopback. `text`: the text that
the page's scripts write has come. `requests`: those that the budget is charged for, the page itself among them.

Pages: 200 pages of five hosts, four at a time; the browser is started again after 60. `mib` is the memory of all
processes that this one has started, after each 20 pages, what they share divided among them; `processes_left` those
that are there after the end. Auto: pages of which some need no browser.

Where there is no Chromium or no Playwright, it says so, and ends well.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))
AUTO = ("plain", "fetch", "moved", "absent")
PAGES, FEW_PAGES, FEW_KINDS = 200, 20, ("fetch", "dialog", "loop")


def kinds(names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """What became of a page of each kind."""
    from contrib.browsers import every_kind
    from contrib.scripted import WORDS

    from recrawl.crawl.detect.visible import visible_text

    found, _ = asyncio.run(every_kind(names))
    return {
        kind: {
            "failure": found[kind].failure,
            "text": WORDS in visible_text(found[kind].text()) if found[kind].failure is None else False,
            "requests": 1 + len(found[kind].beside),
        }
        for kind in names
    }


def pages(n: int) -> dict[str, Any]:
    """Many pages: browsers, memory, and what is left of them."""
    from contrib.browsers import descendants, many_pages, memory

    mib, before, began = list[int](), descendants(), time.perf_counter()
    n_starts = asyncio.run(many_pages(n, lambda: mib.append(round(memory(descendants() - before)))))
    seconds = time.perf_counter() - began
    left = len(descendants() - before)
    return {"pages": n, "browsers": n_starts, "mib": mib, "processes_left": left, "seconds": round(seconds)}


async def auto() -> dict[str, Any]:
    """Pages that are rendered only if their plain answer has no text: of which the browser was used."""
    from contrib.browsers import browser
    from contrib.scripted import ScriptedSite
    from crawl.servers import serving

    from recrawl.contrib.browser import Render

    fetcher, rendered = browser(render=lambda url: Render("auto")), list[str]()
    async with serving(ScriptedSite().answer) as origin:
        try:
            for name in AUTO:
                before = fetcher.n_rendered
                await fetcher.fetch(f"{origin}/page/{name}")
                rendered += [name] if fetcher.n_rendered > before else []
        finally:
            await fetcher.close()
    return {"pages": list(AUTO), "rendered": rendered}


def as_documented(found: dict[str, dict[str, Any]]) -> bool:
    """Whether each kind gave its text or its documented failure."""
    from contrib.browsers import ENDLESS

    return all(one["failure"] in ENDLESS[kind] if kind in ENDLESS else one["text"] for kind, one in found.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smallest", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if importlib.util.find_spec("playwright") is None:
        print("there is no Playwright: nothing is measured")
        return
    from contrib.browsers import CHROMIUM, ENDLESS, TEXT

    if CHROMIUM is None:
        print("there is no Chromium: nothing is measured")
        return
    version = subprocess.run([CHROMIUM, "--version"], capture_output=True, text=True, check=True).stdout.split()
    result: dict[str, Any] = {"chromium": next(word for word in version if word[0].isdigit())}
    result["kinds"] = kinds(FEW_KINDS if options.smallest else (*TEXT, *ENDLESS))
    result["auto"] = asyncio.run(auto())
    result["many"] = pages(FEW_PAGES if options.smallest else PAGES)
    print(json.dumps(result, indent=1))
    if options.out is not None and not options.smallest:
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    clean = not result["many"]["processes_left"] and result["auto"]["rendered"] == ["fetch"]
    if not (clean and as_documented(result["kinds"])):
        raise SystemExit("a page gave neither its text nor its documented failure, or something was left behind")


if __name__ == "__main__":
    main()
