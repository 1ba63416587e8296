"""Make examples/pages.csv: 400 pages of an invented site, the same on every run.

Change rates are per day, importance is reader requests per day. News pages change often and a good feed signals them;
shop pages are signalled by a sitemap that often lies; the other pages have no signals.
"""

import csv
from pathlib import Path

import numpy as np

SECTIONS = [
    # host, path, pages, median changes per day, its spread, median importance, recall, precision
    ("news.example.org", "story", 60, 1.5, 0.9, 30.0, (0.90, 0.99), (0.80, 0.98)),
    ("shop.example.com", "item", 140, 0.35, 1.0, 6.0, (0.40, 0.80), (0.10, 0.50)),
    ("docs.example.org", "guide", 110, 0.05, 1.1, 10.0, None, None),
    ("www.example.com", "about", 30, 0.02, 1.0, 20.0, None, None),
    ("archive.example.org", "year", 60, 0.004, 1.2, 1.5, None, None),
]
COLUMNS = ["url", "change_rate", "importance", "recall", "precision"]


def rows(rng: np.random.Generator) -> list[list[str]]:
    """One row per page; pages without signals leave recall and precision empty."""
    made = []
    for host, path, n, rate, spread, importance, recall, precision in SECTIONS:
        for number in range(1, n + 1):
            change_rate = rate * np.exp(spread * rng.standard_normal())
            requests = importance * np.exp(1.3 * rng.standard_normal())
            quality = ["", ""] if recall is None else [f"{rng.uniform(*recall):.2f}", f"{rng.uniform(*precision):.2f}"]
            url = f"https://{host}/{path}/{number}"
            made.append([url, f"{change_rate:.4g}", f"{requests:.3g}", *quality])
    return made


def main() -> None:
    """Write the table beside this file."""
    with (Path(__file__).parent / "pages.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows(np.random.default_rng(20181)))


if __name__ == "__main__":
    main()
