"""How fast an index is, on one core: the whole `Index.search`, with texts and metadata, without the query's embedding.

Beside each figure stands what its bare parts cost in the same run (speed_bare.py), since only the ratio means
anything on another machine. The corpus comes out of a seed (speed_corpus.py); speed_measures.py says what is measured.

    python benchmarks/speed_search.py --rows 20000 100000 [1000000] [--seed 0] [--queries 200] [--only search open ...]
                                      [--folder DIR] [--files 10000] [--json] [--check]

A million rows take about 10 GB of disk in DIR. `--check` ends with 1 when a limit is missed. Where `core_share` is
much below 1, other programs took the core away: measure again when the machine is quiet.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

Result = Mapping[str, float]


class Limit(NamedTuple):
    """What a figure is held to: at most `value`, or at least where it is a rate or a share.

    It applies to results in which the figure `where` is `equals`. `pace` names the group whose `_pace_ms` tells how
    slow the machine was meanwhile; "" for what is no matter of time.
    """

    figure: str
    value: float
    pace: str
    where: str = ""
    equals: float = 0.0
    least: bool = False


# For one core of the machine that FLOOR_MS was measured on (AMD Zen 3 with AVX2). A machine whose bare int8 scan takes
# longer than that gets as many times longer for the rest; a faster one gets nothing taken away.
LIMITS = (
    Limit("p50_ms", 1.5, "search", "rows", 20_000),
    Limit("p50_ms", 5.0, "search", "rows", 100_000),
    Limit("filter_1pct_p50_ms", 0.8, "scope_1pct", "rows", 100_000),
    Limit("filter_01pct_p50_ms", 0.6, "scope_01pct", "rows", 100_000),
    Limit("open_ms", 300.0, "open", "rows", 100_000),
    Limit("added_found_ms", 20.0, "adds"),
    Limit("resync_s", 2.0, "resync", "resync_documents", 10_000),
    Limit("ingest_rows_per_s", 2000.0, "ingest", least=True),
    Limit("dense_recall_at_10", 0.995, "", least=True),
)
FLOOR_MS = 1.3  # of an int8 scan over 100,000 rows of 256 dimensions, as fast as memory is read

GROUPS = ("search", "filters", "recall", "open", "adds", "scopes", "static", "resync")

_SCAN = ("bare_int8_scan_ms", "bare_numpy_bm25_ms")
_SCAN_1PCT = ("bare_int8_scan_1pct_ms", "bare_numpy_bm25_1pct_ms")
_SCAN_01PCT = ("bare_int8_scan_01pct_ms", "bare_numpy_bm25_01pct_ms")
# Each figure and the bare parts that it is to be compared with, which are added up.
FIGURES: dict[str, Sequence[str]] = {
    "p50_ms": _SCAN,
    "p95_ms": _SCAN,
    "filter_1pct_p50_ms": _SCAN_1PCT,
    "filter_1pct_p95_ms": _SCAN_1PCT,
    "filter_01pct_p50_ms": _SCAN_01PCT,
    "filter_01pct_p95_ms": _SCAN_01PCT,
    "metadata_filter_1pct_p50_ms": _SCAN_1PCT,
    "metadata_filter_1pct_p95_ms": _SCAN_1PCT,
    "metadata_filter_01pct_p50_ms": _SCAN_01PCT,
    "metadata_filter_01pct_p95_ms": _SCAN_01PCT,
    "dense_recall_at_10": ("bare_int8_recall_at_10",),
    "open_ms": ("bare_read_ms",),
    "first_search_ms": _SCAN,
    "resident_mb": ("bare_resident_mb",),
    "disk_mb": ("bare_disk_mb",),
    "ingest_rows_per_s": ("bare_sqlite_rows_per_s",),
    "ingest_static_rows_per_s": ("bare_static_rows_per_s",),
    "add_ms": ("bare_sqlite_insert_ms",),
    "search_after_add_ms": _SCAN,
    "added_found_ms": ("bare_sqlite_insert_ms", *_SCAN),
    "after_1pct_adds_p50_ms": _SCAN,
    "after_1pct_adds_p95_ms": _SCAN,
    "after_10pct_adds_p50_ms": _SCAN,
    "after_10pct_adds_p95_ms": _SCAN,
    "resync_s": ("bare_read_and_hash_s",),
}


def slower(group: str, result: Result) -> float:
    """How many times longer the bare int8 scan took beside a group than on the machine of the limits: 1.0 or more."""
    return max(1.0, result.get(f"{group}_pace_ms", 0.0) / FLOOR_MS)


def bound(limit: Limit, result: Result) -> float | None:
    """What the figure of a result is held to on this machine; None where the limit does not apply."""
    if limit.figure not in result or (limit.where and result.get(limit.where) != limit.equals):
        return None
    factor = slower(limit.pace, result)
    return limit.value / factor if limit.least else limit.value * factor


def missed(result: Result) -> list[str]:
    """The limits that a result misses, in words."""
    found = []
    for limit in LIMITS:
        held_to, figure = bound(limit, result), result.get(limit.figure, 0.0)
        if held_to is not None and (figure < held_to if limit.least else figure > held_to):
            side = "under" if limit.least else "over"
            found.append(f"{result['rows']:,.0f} rows: {limit.figure} is {figure:.4g}, {side} its limit {held_to:.4g}")
    return found


def table(result: Result) -> str:
    """A result for a person: each figure, its bare parts, the ratio of the two, and its limit."""
    limits = {limit.figure: held for limit in LIMITS if (held := bound(limit, result)) is not None}
    lines = [f"{'figure':<30}{'here':>12}{'bare':>12}{'ratio':>8}{'limit':>10}  bare parts"]
    for name, parts in FIGURES.items():
        if name in result:
            bare = sum(result[part] for part in parts if part in result)
            ratio = f"{result[name] / bare:.2f}" if bare else ""
            limit = f"{limits[name]:.4g}" if name in limits else ""
            said = " + ".join(part.removeprefix("bare_") for part in parts)
            lines.append(f"{name:<30}{_shown(result[name])}{_shown(bare)}{ratio:>8}{limit:>10}  {said}")
    shown = {"rows", *FIGURES, *itertools.chain(*FIGURES.values())}
    return "\n".join([*lines, *(f"{name:<30}{_shown(result[name])}" for name in result if name not in shown)])


def _shown(value: float) -> str:
    return f"{value:>12,.0f}" if value >= 1000 or value == int(value) else f"{value:>12.3f}"


def on_one_core() -> None:
    """Keep this process and its children on one core, and libraries from starting threads: before numpy is loaded."""
    for name in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "NUMEXPR", "RAYON"):
        os.environ[f"{name}_NUM_THREADS"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    if hasattr(os, "sched_setaffinity"):  # not on macOS and Windows
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def measured(options: argparse.Namespace) -> list[Result]:
    """The results, one a number of rows. A sync does not depend on it: it is measured once and stands in each."""
    from speed_measures import measure, resync  # late: see `on_one_core`

    results: list[Result] = []
    again: Result = {}
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="speed-") as name:
        folder = Path(name)
        if "resync" in options.only:
            again = resync(options.files, seed=options.seed, folder=folder, note=_note)
        for rows in options.rows:
            place = folder / str(rows)
            place.mkdir()
            figures = measure(
                rows, seed=options.seed, queries=options.queries, folder=place, groups=options.only, note=_note
            )
            results.append({**figures, **again})
    return results


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="the speed of an index, beside its bare parts")
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000], help="numbers of passages to measure with")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--queries", type=int, default=200, help="how many are asked for each figure")
    parser.add_argument("--files", type=int, default=10_000, help="in the folder that is synced again")
    parser.add_argument("--only", choices=GROUPS, nargs="+", default=GROUPS, help="these groups of figures alone")
    parser.add_argument("--folder", type=Path, help="where indexes are made and deleted again")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true", help="end with 1 when a limit is missed")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    on_one_core()
    results = measured(options)
    if options.json:
        print(json.dumps({"schema": 1, "seed": options.seed, "queries": options.queries, "results": results}))
    else:
        for result in results:
            print(f"\n{result['rows']:,.0f} rows, seed {options.seed}, {options.queries} queries, one core")
            print(table(result))
    over = [line for result in results for line in missed(result)]
    if options.check:
        print("\n".join(over) or "every limit that applies is held", file=sys.stderr)
    return 1 if options.check and over else 0


if __name__ == "__main__":
    sys.exit(main())
