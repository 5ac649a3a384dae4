"""What the guard (and the tool over it) adds to a search: all of them over the same queries, in one run, on one core.

    python benchmarks/speed_guard.py [--rows 20000] [--seed 0] [--queries 200] [--json] [--check]

`--check` ends with 1 when the guard adds more than 10 % of a bare `Index.search` and more than 0.15 ms. The rows are
asked in turn, query by query, so that what else the machine does falls on all of them alike; what is added is the
median over the queries of the difference to the bare search beside it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from speed_search import on_one_core

if TYPE_CHECKING:
    from wellhead import Index

Ask: TypeAlias = Callable[[str], object]

MOST_ADDED_MS = 0.15
MOST_ADDED_SHARE = 0.10
ROUNDS = 3


def rows_of(bare: Index) -> Mapping[str, Ask]:
    """What is measured, by name; the first is the bare search."""
    from wellhead.agent.search import search_tool
    from wellhead.search.guard import Guarded

    guarded, timed, tool = Guarded(bare), Guarded(bare, timeout=30.0), search_tool(bare, k=10)
    return {
        "Index.search": lambda query: bare.search(query, k=10),
        "Guarded.search": lambda query: guarded.search(query, k=10),
        "Guarded.search, deadline": lambda query: timed.search(query, k=10),
        "search_tool": lambda query: tool.run({"query": query}),
    }


def measured(rows: Mapping[str, Ask], queries: Sequence[str]) -> Mapping[str, Sequence[float]]:
    """Milliseconds of each row for each query: the least of a few rounds."""
    times = {name: [float("inf")] * len(queries) for name in rows}
    for _ in range(ROUNDS):
        for place, query in enumerate(queries):
            for name, ask in rows.items():
                began = time.perf_counter()
                ask(query)
                times[name][place] = min(times[name][place], (time.perf_counter() - began) * 1e3)
    return times


def figures(times: Mapping[str, Sequence[float]]) -> list[dict[str, float | str]]:
    base = next(iter(times.values()))
    found: list[dict[str, float | str]] = []
    for name, taken in times.items():
        added = statistics.median(one - bare for one, bare in zip(taken, base, strict=True))
        p50 = statistics.median(taken)
        found.append({"row": name, "p50_ms": p50, "added_ms": added, "ratio": p50 / statistics.median(base)})
    return found


def missed(results: Sequence[Mapping[str, float | str]]) -> list[str]:
    """The limits that are missed, in words: for the guard without a deadline."""
    bare, guarded = results[0], results[1]
    added, most = float(guarded["added_ms"]), max(MOST_ADDED_MS, MOST_ADDED_SHARE * float(bare["p50_ms"]))
    return [f"the guard adds {added:.3f} ms, over its limit of {most:.3f}"] if added > most else []


def built(rows: int, seed: int, count: int) -> tuple[Index, Sequence[str]]:
    from speed_corpus import Corpus, Precomputed, documents  # late: see `on_one_core`

    from wellhead.index import Index

    corpus = Corpus(rows, seed)
    queries = corpus.queries(count)
    embedder = Precomputed(seed, queries)
    index = Index.open(":memory:", embedder=embedder, languages=["en"])
    index.add(documents(corpus, embedder, 0, rows))
    for query in queries.rehearsed()[:20]:
        index.search(query)
    return index, queries.texts


def main() -> int:
    parser = argparse.ArgumentParser(description="what the guard adds to a search")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true", help="end with 1 when a limit is missed")
    options = parser.parse_args()
    on_one_core()
    index, queries = built(options.rows, options.seed, options.queries)
    results = figures(measured(rows_of(index), queries))
    if options.json:
        print(json.dumps({"schema": 1, "seed": options.seed, "rows": options.rows, "results": results}))
    else:
        print(f"{options.rows:,} rows, seed {options.seed}, {len(queries)} queries, one core")
        print(f"{'':<28}{'p50 ms':>10}{'added ms':>10}{'ratio':>8}")
        for row in results:
            print(f"{row['row']:<28}{row['p50_ms']:>10.3f}{row['added_ms']:>10.3f}{row['ratio']:>8.2f}")
    over = missed(results)
    if options.check:
        print("\n".join(over) or "every limit is held", file=sys.stderr)
    return 1 if options.check and over else 0


if __name__ == "__main__":
    sys.exit(main())
