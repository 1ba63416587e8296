"""Where the time of a page goes: microseconds of processor time per page by part, with and without the desk."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Parts:
    """Adds up the processor time of some calls, each in its own thread."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._began = (0.0, 0.0)
        self._thread = self._process = 0.0
        self._counts = False
        self._pages: int | None = None  # before the first pause

    def clock(self, owner: Any, name: str, part: str) -> None:
        """Time a method of one object from now on."""
        work: Callable[..., Any] = getattr(owner, name)

        def timed(*args: Any, **options: Any) -> Any:
            began = time.thread_time()
            try:
                return work(*args, **options)
            finally:
                if self._counts:
                    self.seconds[part] += time.thread_time() - began

        setattr(owner, name, timed)

    def clock_crawl(self, engine: Any, store: Any) -> None:
        """Time what engine and store do in a loop without a desk too."""
        for name in ("pick", "record", "rows", "maintain"):
            self.clock(engine, name, f"engine: {name}")
        self.clock(store._writes, "save", "store: writes")
        self.clock(store._reads, "copies", "store: copies")

    def resume(self) -> None:
        """Crawls begin, in this thread: time counts from now on."""
        self._began = time.thread_time(), time.process_time()
        self._counts = True

    def pause(self, pages: int) -> None:
        """So many pages were crawled. The first time nothing counts: kernels were loaded."""
        self._counts = False
        if self._pages is None:
            self._pages = 0
            self.seconds.clear()
            return
        self._pages += pages
        self._thread += time.thread_time() - self._began[0]
        self._process += time.process_time() - self._began[1]

    def table(self, rest: str) -> dict[str, float]:
        """Microseconds per page; ``rest`` names what else the thread of the loop did."""
        pages = self._pages or 1
        engine = sum(seconds for part, seconds in self.seconds.items() if part.startswith("engine"))
        stored = sum(self.seconds.values()) - engine
        handed = self._process - self._thread - stored
        found = {**self.seconds, rest: self._thread - engine, "threads of the store: handing over": handed}
        return {part: round(1e6 * seconds / pages, 1) for part, seconds in found.items()} | {
            "all": round(1e6 * self._process / pages, 1)
        }


def cpu_seconds(pid: int) -> float:
    """Processor time of another process until now (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100.0


def draw(tables: dict[str, dict[str, float]], path: Path) -> None:
    """Bars of processor time per page, by part."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    parts = list(dict.fromkeys(part for table in tables.values() for part in table if part != "all"))
    names, figure = list(tables), plt.figure(figsize=(8, 2.6))
    axes, left = figure.add_subplot(), [0.0] * len(names)
    for k, part in enumerate(parts):
        width = [max(tables[name].get(part, 0.0), 0.0) for name in names]
        axes.barh(names, width, left=left, label=part, color=plt.get_cmap("tab10")(k % 10))
        left = [a + b for a, b in zip(left, width, strict=True)]
    axes.set_xlabel("microseconds of processor time per page")
    axes.invert_yaxis()
    axes.legend(fontsize=7, bbox_to_anchor=(1.01, 1.0), loc="upper left")
    figure.savefig(path, dpi=120, bbox_inches="tight")
