"""How much `import wellhead` and `from wellhead import Index` cost, against what they are compared with.

Children are started in turns, so that a busy moment hits all alike, and with warm bytecode caches. Each figure is the
median of its runs; only the ratios mean anything on another machine.

    python benchmarks/speed_start.py [--runs 15] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

PROGRAMS = {
    "bare interpreter": "pass",
    "import wellhead": "import wellhead",
    "import numpy": "import numpy",
    "from wellhead import Index": "from wellhead import Index",
}
RATIOS = [("import wellhead", "bare interpreter", 1.3), ("from wellhead import Index", "import numpy", 1.6)]


def environment() -> dict[str, str]:
    """This process's environment, but with bytecode cached as in any ordinary run."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def start(program: str) -> float:
    """Seconds that a fresh interpreter takes to run `program` and end."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, env=environment(), stdin=subprocess.DEVNULL)
    return time.perf_counter() - began


def medians(runs: int) -> dict[str, float]:
    """The median seconds of each program over `runs` interleaved rounds, after one that warms the caches."""
    taken: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for number in range(runs + 1):
        for name, program in PROGRAMS.items():
            seconds = start(program)
            if number:
                taken[name].append(seconds)
    return {name: statistics.median(values) for name, values in taken.items()}


def ratios(seconds: dict[str, float]) -> list[dict[str, object]]:
    """Each comparison: what, against what, the ratio, and the limit that it is held to."""
    return [
        {"what": what, "against": against, "ratio": seconds[what] / seconds[against], "limit": limit}
        for what, against, limit in RATIOS
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="the cost of importing Wellhead")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    seconds = medians(options.runs)
    compared = ratios(seconds)
    if options.json:
        print(json.dumps({"schema": 1, "runs": options.runs, "seconds": seconds, "ratios": compared}))
    else:
        for name, value in seconds.items():
            print(f"{name:<28}{value * 1000:8.1f} ms")
        for row in compared:
            print(f"{row['what']} / {row['against']}: {row['ratio']:.2f} (limit {row['limit']})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
