"""Fuzz the detectors, the feed reader, the robots and charset paths with broken inputs; nothing may be raised.

python experiments/fuzz.py [--inputs 140000] [--seed 1]

Writes detect/fuzz.json: inputs, calls, errors (none are allowed), the slowest call, processor seconds. An error is
printed with the seed and number that make it again.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
from fuzzing import charset_calls, detector_calls, robots_calls, run  # noqa: E402


def main() -> None:
    """Run all and write the result."""
    parser = argparse.ArgumentParser(description="Fuzz what reads the web.")
    parser.add_argument("--inputs", type=int, default=140_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=HERE / "detect" / "fuzz.json")
    options = parser.parse_args()
    shares = {"detectors": (detector_calls, 3 / 7), "robots": (robots_calls, 2 / 7), "charset": (charset_calls, 2 / 7)}
    found: dict[str, Any] = {"seed": options.seed}
    for name, (makes, share) in shares.items():
        found[name] = run(makes, round(options.inputs * share), options.seed)
        print(name, found[name])
    for name in ("inputs", "calls", "errors"):
        found[name] = sum(found[part][name] for part in shares)
    options.output.write_text(json.dumps(found, indent=1) + "\n")
    raise SystemExit(1 if found["errors"] else 0)


if __name__ == "__main__":
    main()
