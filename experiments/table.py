"""Fill the table of experiments/README.md from the results: python experiments/table.py [FOLDER of results]

Results are what ``recrawl reproduce --out FOLDER`` writes; FOLDER is experiments itself unless given.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from recrawl.reproduce import figures

HERE = Path(__file__).parent
START, END = "<!-- table: written by table.py -->", "<!-- end of table -->"
WORDS = {True: "yes", False: "**no**", None: "reported"}


def table(folder: Path) -> str:
    """A row per claim; a figure that has not been run has one empty row."""
    lines = ["| figure | claim | paper | ours | holds |", "|---|---|---|---|---|"]
    for id in figures():
        path = folder / f"{id}.json"
        if not path.exists():
            lines.append(f"| `{id}` | not run yet | | | |")
            continue
        result = json.loads(path.read_text())
        reps = result["params"].get("reps")
        label = f"`{id}` ({result['setting']}{f', {reps} repetitions' if reps else ''})"
        for claim in result["claims"]:
            note = f" ({claim['note']})" if claim["note"] else ""
            cells = (label, claim["text"] + note, number(claim["paper"]), ours(claim), WORDS[claim["holds"]])
            lines.append(f"| {' | '.join(cells)} |")
            label = ""
    return "\n".join(lines)


def ours(claim: dict[str, Any]) -> str:
    """A figure with its standard error."""
    error = f" ± {claim['error']:.1g}" if claim["error"] else ""
    return number(claim["ours"]) + error


def number(value: Any) -> str:
    """Four digits, or the words as they are."""
    return f"{value:.4g}" if isinstance(value, (int, float)) else str(value or "")


def main() -> None:
    """Replace the table in README.md."""
    parser = argparse.ArgumentParser(description="Fill the table of experiments/README.md.")
    parser.add_argument("folder", type=Path, nargs="?", default=HERE)
    readme = HERE / "README.md"
    before, rest = readme.read_text().split(START)
    after = rest.split(END)[1]
    readme.write_text(f"{before}{START}\n{table(parser.parse_args().folder)}\n{END}{after}")


if __name__ == "__main__":
    main()
