"""Follows the example's five hosts by recrawl's commands and writes what they report beside what the server saw.

`python examples/five_hosts/follow.py --for 600 --output table.json` needs ten minutes. `--render` writes the table of a
result into the documentation.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import compare
from serve import Server, Site, live_site
from world import HOSTS

SETTINGS = """contact = "you@example.org"
budget = "{budget:g}/s"
delay = "{delay:g} s"
allow_private = true
"""
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


class Commands:
    """Runs recrawl in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command."""
        command = [sys.executable, "-m", "recrawl", *words]
        return subprocess.Popen(command, cwd=self._folder, stdout=subprocess.PIPE, text=True)

    def __call__(self, *words: str) -> str:
        """What a command prints."""
        process = self.start(*words)
        text = process.communicate()[0]
        if process.returncode:
            raise SystemExit(f"recrawl {' '.join(words)} ended with {process.returncode}")
        return text

    def json(self, *words: str) -> Any:
        """What a command prints as JSON."""
        return json.loads(self(*words, "--json"))


def follow(site: Site, folder: Path, options: argparse.Namespace) -> compare.Followed:
    """Add all sitemaps, run, look every ``options.every`` seconds, and collect what the commands print."""
    recrawl = Commands(folder)
    (folder / "recrawl.toml").write_text(SETTINGS.format(budget=options.budget, delay=options.delay))
    with Server(site) as server:
        for host in HOSTS:
            sitemap = f"http://{host.address}:{server.port}/sitemap.xml"
            print(recrawl("add", "--sitemap", sitemap, "--importance", str(host.importance)), end="", flush=True)
        recrawl("status")  # compiles what is not compiled yet
        n_before, status = len(site.log), []
        process = recrawl.start("run", "--for", f"{options.seconds}s", "--json")
        while process.poll() is None and len(site.log) == n_before:
            time.sleep(0.01)
        begin = site.log[n_before].came_at
        while process.poll() is None:
            time.sleep(0.1)
            if site.now() - begin > options.every * (len(status) + 1) and process.poll() is None:
                found = recrawl.json("status")
                status.append((found["now"] - site.base, found))
        run, end = json.loads(process.communicate()[0]), site.now()
        log, final = site.log[n_before:], recrawl.json("status")
        recrawl("export", "--observations", "crawls.csv")
        with (folder / "crawls.csv").open(newline="") as file:
            crawls = list(csv.DictReader(file))
        events = [json.loads(line) for line in recrawl("events").splitlines()]
        urls = [f"http://{page.host.address}:{server.port}{page.path}" for page in site.world.pages]
        why = [recrawl.json("why", url) for url in urls[:: max(len(urls) // options.pages, 1)]]
    return compare.Followed(
        site.world, log, begin, end, options.budget, options.delay, run, status, final, events, crawls, why
    )


def render(result: Path, page: Path) -> None:
    """Write the table of a result into a page of documentation, between two comments."""
    table, text = compare.markdown(json.loads(result.read_text())["rows"]), page.read_text()
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    page.write_text(f"{before}\n\n{table}\n\n{after}")


def main() -> None:
    """Follow, or render a result."""
    parser = argparse.ArgumentParser(description="Follow 300 pages on five hosts of this machine.")
    parser.add_argument("--for", dest="seconds", type=float, default=600.0, help="how long, in seconds")
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two looks at recrawl status")
    parser.add_argument("--budget", type=float, default=2.0, help="requests per second")
    parser.add_argument("--delay", type=float, default=0.5, help="seconds between two requests to a host")
    parser.add_argument("--pages", type=int, default=60, help="pages to ask recrawl why about")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("five_hosts.json"))
    parser.add_argument("--folder", type=Path, default=None, help="folder of the database, kept; default: a new one")
    parser.add_argument("--render", type=Path, default=None, help="only write the table of --output into this page")
    options = parser.parse_args()
    if options.render is not None:
        render(options.output, options.render)
        return
    with tempfile.TemporaryDirectory() as folder:
        found = follow(live_site(options.seed), options.folder or Path(folder), options)
    options.output.write_text(json.dumps(compare.as_json(found), indent=1) + "\n")
    print(compare.markdown(compare.as_json(found)["rows"]))


if __name__ == "__main__":
    main()
