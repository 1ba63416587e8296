"""The order of test files: the longest first, so that no long file is begun while the other processes end.

``seconds.txt`` has the seconds of each file that needs more than ``LEAST``; the others run last. Renew it from the
durations of a whole run, from the folder of the project::

    make test PYTEST_ADDOPTS="--durations=0 --durations-min=0.05" > durations.log
    python tests/order.py durations.log
"""

import re
import sys
from collections import Counter
from pathlib import Path

SECONDS = Path(__file__).with_name("seconds.txt")
LEAST = 2.0
_LINE = re.compile(r"([0-9.]+)s (?:setup|call|teardown) +(tests/\S+?)::")


def known_seconds():
    """The seconds of each file of the list."""
    rows = [line.split() for line in SECONDS.read_text().splitlines() if not line.startswith("#")]
    return {path: float(seconds) for seconds, path in rows}


def longest_first(items):
    """Sort tests by the seconds of their files; the order inside a file, and of files of no known length, stays."""
    seconds = known_seconds()
    items.sort(key=lambda item: -seconds.get(item.nodeid.split("::", 1)[0], 0.0))


def total_seconds(log):
    """The seconds of each file by the list of durations that pytest prints.

    >>> total_seconds("1.50s call     tests/a.py::test_one\\n0.50s setup    tests/a.py::test_one[x y]")
    Counter({'tests/a.py': 2.0})
    """
    total = Counter()
    for seconds, path in _LINE.findall(log):
        total[path] += float(seconds)
    return total


if __name__ == "__main__":
    total = total_seconds(Path(sys.argv[1]).read_text())
    rows = [f"{seconds:5.0f} {path}\n" for path, seconds in total.most_common() if seconds >= LEAST]
    SECONDS.write_text("# Seconds of test files; written by order.py\n" + "".join(rows))
