"""Fuzz what reads the web with broken inputs; nothing may be raised.

python experiments/fuzz.py [--what detectors robots charset] [--inputs 140000] [--seed 1]
python experiments/fuzz.py --what listings receivers requests --inputs 300000 \\
    --output experiments/detect/fuzz_signals.json

Writes detect/fuzz.json: inputs, calls, errors (none are allowed), the slowest call, processor seconds. An error is
printed with the seed and number that make it again. `receivers` is what hubs and pings can send, `requests` the
bodies of `POST /v1/signals`, and host and origin headers.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
from fuzz_requests import request_calls  # noqa: E402
from fuzzing import charset_calls, detector_calls, listing_calls, receiver_calls, robots_calls, run  # noqa: E402

PARTS = {  # with their weights among the inputs
    "detectors": (detector_calls, 3),
    "robots": (robots_calls, 2),
    "charset": (charset_calls, 2),
    "listings": (listing_calls, 2),
    "receivers": (receiver_calls, 2),
    "requests": (request_calls, 2),
}


def main() -> None:
    """Run all and write the result."""
    parser = argparse.ArgumentParser(description="Fuzz what reads the web.")
    parser.add_argument("--what", nargs="+", choices=list(PARTS), default=["detectors", "robots", "charset"])
    parser.add_argument("--inputs", type=int, default=140_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=HERE / "detect" / "fuzz.json")
    options = parser.parse_args()
    weights = sum(PARTS[name][1] for name in options.what)
    found: dict[str, Any] = {"seed": options.seed}
    for name in options.what:
        makes, weight = PARTS[name]
        found[name] = run(makes, round(options.inputs * weight / weights), options.seed)
        print(name, found[name])
    for name in ("inputs", "calls", "errors"):
        found[name] = sum(found[part][name] for part in options.what)
    options.output.write_text(json.dumps(found, indent=1) + "\n")
    raise SystemExit(1 if found["errors"] else 0)


if __name__ == "__main__":
    main()
