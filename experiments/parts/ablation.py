"""What siblings are worth on recorded traces.

Windows of 182 days; budgets of 2%, 5% and 20% of the pages per day; cold, and warm after 90 days of running. Every
window is one more measurement of a trace, budget and start: differences are paired by these. The last two windows are
held out: they were run after the defaults were frozen. What is in results.json already is not run again.

    python experiments/parts/ablation.py --data FOLDER              all windows but the last two
    python experiments/parts/ablation.py --data FOLDER --last       those
    python experiments/parts/ablation.py --data FOLDER --table      README.md and the picture from what is there
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from recrawl.errors import ParameterError
from recrawl.simulate.compare.comparison import compare
from recrawl.simulate.compare.sources import Recorded
from recrawl.simulate.rivals.registry import rival_names

HERE = Path(__file__).parent
TRACES = ["kubernetes-website", "dotnet-docs", "homebrew-cask", "ota-contrib", "scraped-mix"]
WINDOWS = ["2020-08-01", "2021-08-01", "2022-08-01", "2025-08-01"]
LAST = ["2023-08-01", "2024-08-01"]
BUDGETS = ["0.02/page/day", "0.05/page/day", "0.2/page/day"]
DAYS, WARM = 182.0, 90.0
POLICIES = ["learned:none", "learned:siblings", "known"]
Results = dict[str, list[dict[str, Any]]]


def key(trace: str, start: str, warm: float) -> str:
    """What a window is called in results.json."""
    return f"{trace}, {start}, {'warm' if warm else 'cold'}"


def run(data: Path, kept: Path, starts: list[str], policies: list[str], jobs: int) -> None:
    """Run what is missing, cheap traces first, and keep it."""
    results: Results = json.loads(kept.read_text()) if kept.exists() else {}
    for start in starts:
        for trace in sorted(TRACES, key=lambda name: name == "dotnet-docs"):
            for warm in (0.0, WARM):
                found = results.setdefault(key(trace, start, warm), [])
                missing = [policy for policy in policies if policy not in {row["policy"] for row in found}]
                if not missing or not (data / trace).is_dir():
                    continue
                try:
                    found += compare([Recorded(data / trace, DAYS, warm, start)], missing, BUDGETS, jobs=jobs)
                except ParameterError as problem:
                    print(f"{key(trace, start, warm)}: {problem}, left out")
                    del results[key(trace, start, warm)]
                    continue
                kept.write_text(json.dumps(results, indent=1) + "\n")
                print(key(trace, start, warm), f"{len(missing)} policies", flush=True)


def main() -> None:
    """Run, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the recorded traces")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to")
    parser.add_argument("--last", action="store_true", help="the last two windows")
    parser.add_argument("--rivals", action="store_true", help="the rivals too")
    parser.add_argument("--only", help="some traces alone, with commas between")
    parser.add_argument("--table", action="store_true", help="no runs: write README.md and the picture")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    if not given.data.is_dir():
        print(f"there is no folder {given.data}: nothing to run")
        return
    given.out.mkdir(parents=True, exist_ok=True)
    kept = given.out / "results.json"
    if given.only:
        TRACES[:] = [trace for trace in TRACES if trace in given.only.split(",")]
    if not given.table:
        run(given.data, kept, LAST if given.last else WINDOWS, POLICIES + rival_names() * given.rivals, given.jobs)
    from report import write

    write(json.loads(kept.read_text()), given.out)


if __name__ == "__main__":
    main()
