"""How long solve takes, beside plain Python and beside one numpy pass over the same arrays.

    python benchmarks/bench_solve.py            all sizes, writes results/solve.json and results/solve.png
    python benchmarks/bench_solve.py --quick    1e5 pages only, prints, writes nothing

Every case runs in a process of its own, on the Bing-like population with a budget of 0.2 crawls per page and day. Times
are the best of three (18.5 million pages: of two) after a warm-up, rates and gap included. Memory is the peak of the
process above what it held with the inputs loaded. On a shared machine, --patience 60 repeats runs that others
disturbed; the share that others took during the run that counts is in the results.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results"
SIZES = [100_000, 1_000_000, 18_500_000]
PLAIN = {
    "harmonic": {"objective": "harmonic", "spacing": "random"},
    "random": {"objective": "freshness", "spacing": "random"},
    "even": {"objective": "freshness", "spacing": "even"},
}
# with the population's complete signals; with noisy signals on every page
CASES = [*PLAIN, "harmonic-complete", "noisy"]
AIMS = {"harmonic": 10, "random": 10, "even": 80}
BUDGET = 0.2
SEED = 2025


def columns(case: str, n: int) -> dict[str, np.ndarray]:
    """The input arrays of a case."""
    from recrawl.model import Pages
    from recrawl.simulate import bing_like

    rng = np.random.default_rng(SEED)
    pages = bing_like(n, rng)
    given = {"change_rate": pages.change_rate, "importance": pages.importance}
    if case == "harmonic-complete":
        given["recall"] = pages.recall
    if case == "noisy":
        quality = {"precision": rng.beta(0.6, 3, n), "recall": rng.beta(0.8, 1.6, n)}
        noisy = Pages.from_quality(pages.change_rate, pages.importance, **quality)
        given |= {"recall": noisy.recall, "false_rate": noisy.false_rate}
    return given


def best_of(runs: int, function: Callable[[], object], patience: float = 0.0) -> tuple[float, float | None]:
    """(seconds of the fastest run, share of the machine that other processes took during it if it was long enough).

    For up to `patience` seconds, runs during which others took more than a twentieth of the machine do not count.
    """
    quiet: list[tuple[float, float | None]] = []
    loud: list[tuple[float, float | None]] = []
    end = time.perf_counter() + patience
    while len(quiet) < runs and (len(quiet) + len(loud) < runs or time.perf_counter() < end):
        busy, own, start = machine_seconds(), sum(os.times()[:2]), time.perf_counter()
        function()
        seconds = time.perf_counter() - start
        others = max(machine_seconds() - busy - (sum(os.times()[:2]) - own), 0.0) / (seconds * (os.cpu_count() or 1))
        known = seconds > 0.1  # the system counts in hundredths of a second
        (loud if known and others > 0.05 else quiet).append((seconds, min(others, 1.0) if known else None))
    return min(quiet or loud, key=lambda run: run[0])


def machine_seconds() -> float:
    """Processor seconds that all processes together have taken."""
    times = [int(t) for t in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return (sum(times) - times[3] - times[4]) / os.sysconf("SC_CLK_TCK")  # without idle and waiting


def memory(field: str) -> int:
    """Bytes that this process holds (VmRSS) or has held at most (VmHWM); ru_maxrss would count the parent's too."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{field}:")[1].split()[0]) * 1024


def run_case(case: str, folder: str, patience: float) -> dict[str, object]:
    """Solve one case; to be called in a fresh process."""
    from recrawl import Pages, solve

    options = PLAIN.get(case, PLAIN["harmonic"] if case == "harmonic-complete" else PLAIN["even"])
    loaded = {path.stem: np.load(path) for path in sorted(Path(folder).glob("*.npy"))}
    n = len(loaded["change_rate"])
    solve(Pages(**{name: column[:5000] for name, column in loaded.items()}), BUDGET * 5000, **options)
    pages = Pages(**loaded)
    held = memory("VmRSS")
    plan = solve(pages, BUDGET * n, **options)
    peak = memory("VmHWM")
    repeats = 2 if n > 2_000_000 else 3
    seconds, others = best_of(repeats, lambda: solve(pages, BUDGET * n, **options), patience)
    importance, change_rate = pages.importance, pages.change_rate
    numpy_pass, _ = best_of(9, lambda: np.sqrt(importance * change_rate).sum())
    return {
        "case": case,
        "pages": n,
        "seconds": seconds,
        "share_taken_by_others": others,
        "numpy_pass_seconds": numpy_pass,
        "numpy_passes": seconds / numpy_pass,
        "peak_mb_above_inputs": (peak - held) / 1e6,
        "gap": plan.gap,
        "iterations": plan.iterations,
        "spent_error": abs(plan.spent / (BUDGET * n) - 1),
        "freshness": plan.freshness,
    }


def in_fresh_process(case: str, n: int, patience: float) -> dict[str, object]:
    """Write the inputs, solve them in another process, read its answer."""
    with tempfile.TemporaryDirectory() as folder:
        for name, column in columns(case, n).items():
            np.save(Path(folder) / f"{name}.npy", column)
        command = [sys.executable, __file__, "--case", case, "--folder", folder, "--patience", str(patience)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, object] = json.loads(done.stdout)
    return result


def plain_python(case: str, n: int) -> float:
    """Seconds of a bisection on the multiplier to 1e-9 with the closed form of each page in plain Python."""
    from math import exp, expm1, inf, sqrt

    given = columns(case, n)
    pages = list(zip(given["change_rate"].tolist(), given["importance"].tolist(), strict=True))

    def random(d: float, m: float, price: float) -> float:
        return max(0.0, sqrt(m * d / price) - d)

    def harmonic(d: float, m: float, price: float) -> float:
        return 2 * m / price / (1 + sqrt(1 + 4 * m / (price * d)))

    def even(d: float, m: float, price: float) -> float:
        y = price * d / m  # 1 − e^{−x}(1 + x) = y, by Newton
        if y >= 1:
            return 0.0
        x = sqrt(2 * y) + 2 * y / 3
        for _ in range(50):
            step = (-expm1(-x) - x * exp(-x) - y) / (x * exp(-x))
            x -= step
            if abs(step) <= 1e-12 * x:
                break
        return d / x

    rate = {"random": random, "harmonic": harmonic, "even": even}[case]

    def bisect() -> None:
        low, high = 0.0, inf
        price = 1.0
        while high - low > 1e-9 * low:
            spent = sum(rate(d, m, price) for d, m in pages)
            low, high = (price, high) if spent > BUDGET * n else (low, price)
            price = 2 * price if high == inf else (0.5 * price if low == 0 else 0.5 * (low + high))

    return best_of(1, bisect)[0]


def summary(results: list[dict], plain: dict[str, float]) -> dict[str, object]:
    """The ratios that the aims are about."""
    at = {(r["case"], r["pages"]): r for r in results}
    largest = max(r["pages"] for r in results)
    ratios: dict[str, object] = {}
    for case, aim in AIMS.items():
        rows = [at[case, n] for n in SIZES if (case, n) in at]
        speed = [r["seconds"] / r["pages"] * 1e9 for r in rows]
        ratios[case] = {
            "numpy_passes_at_largest": at[case, largest]["numpy_passes"],
            "aim_passes": aim,
            "times_faster_than_plain_python_at_1e5": plain[case] / at[case, SIZES[0]]["seconds"],
            "nanoseconds_per_page": speed,
        }
    return ratios


def draw(results: list[dict], plain: dict[str, float]) -> None:
    """Time against pages, both logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5.5), layout="constrained")
    for case in CASES:
        rows = [r for r in results if r["case"] == case]
        axes.plot([r["pages"] for r in rows], [r["seconds"] for r in rows], "o-", label=f"solve, {case}")
    rows = [r for r in results if r["case"] == "random"]
    axes.plot([r["pages"] for r in rows], [r["numpy_pass_seconds"] for r in rows], "k--", label="one numpy pass")
    for marker, (case, seconds) in zip("sD^", plain.items(), strict=True):
        axes.plot([SIZES[0]], [seconds], f"k{marker}", mfc="none", label=f"plain Python bisection, {case}")
    axes.set(xscale="log", yscale="log", xlabel="pages", ylabel="seconds")
    axes.set_title("Time of solve on the Bing-like population, budget 0.2 per page")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(RESULTS / "solve.png", dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1e5 pages only; prints and writes nothing")
    parser.add_argument(
        "--patience", type=float, default=0.0, help="seconds per case to wait for runs that other processes left alone"
    )
    parser.add_argument("--smallest", action="store_true", help="only whether it runs; nothing is written")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.case:
        print(json.dumps(run_case(args.case, args.folder, args.patience)))
        return
    if args.smallest:
        print(in_fresh_process(CASES[0], 1000, 0.0), plain_python(CASES[0], 100))
        return
    load = os.getloadavg()[0]
    results = []
    for case in CASES:
        for n in SIZES[:1] if args.quick else (SIZES[:2] if case == "noisy" else SIZES):
            result = in_fresh_process(case, n, args.patience)
            results.append(result)
            print(
                f"{case:18} {n:>10,} pages {result['seconds']:9.4f} s {result['numpy_passes']:7.1f} passes "
                f"{result['peak_mb_above_inputs']:7.1f} MB gap {result['gap']:.1e} {result['iterations']} iterations "
                f"(others took {result['share_taken_by_others'] or 0:.0%})",
                flush=True,
            )
    plain = {case: plain_python(case, SIZES[0]) for case in PLAIN}
    for case, seconds in plain.items():
        print(f"plain Python, {case:8} {SIZES[0]:>10,} pages {seconds:9.3f} s")
    ratios = summary(results, plain)
    print(json.dumps(ratios, indent=2))
    if args.quick:
        return
    machine = {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "load_average_before": load,
    }
    RESULTS.mkdir(exist_ok=True)
    report = {
        "budget_per_page": BUDGET,
        "machine": machine,
        "results": results,
        "plain_python_seconds_at_1e5": plain,
        "ratios": ratios,
    }
    (RESULTS / "solve.json").write_text(json.dumps(report, indent=2) + "\n")
    draw(results, plain)


if __name__ == "__main__":
    main()
