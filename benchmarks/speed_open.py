"""What a fresh process pays for an index: the time to open it, the first search, and memory after fifty searches.

speed_search.py starts it; it prints one line of JSON.

    python speed_open.py INDEX QUERIES.npz SEED
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from speed_corpus import Precomputed, Queries

from wellhead import Index

SEARCHES = 50


def resident_mb() -> float:
    """What of this process lies in RAM, mapped files included; where the system does not say, the most so far."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines())
        return int(lines["VmRSS"].split()[0]) * 1024 / 1e6
    import resource  # late: Windows has none

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def main() -> None:
    folder, asked, seed = sys.argv[1:]
    queries = Queries.load(Path(asked))
    embedder = Precomputed(int(seed), queries)
    before = resident_mb()
    began = time.perf_counter()
    with Index.open(folder, embedder=embedder, create=False) as index:
        opened = time.perf_counter()
        index.search(queries.texts[0])
        answered = time.perf_counter()
        for number in range(1, SEARCHES):
            index.search(queries.texts[number % len(queries)])
        figures = {
            "open_ms": (opened - began) * 1e3,
            "first_search_ms": (answered - opened) * 1e3,
            "resident_mb": resident_mb(),
            "bare_resident_mb": before,
        }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
