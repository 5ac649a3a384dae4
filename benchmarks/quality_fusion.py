"""Which fusion should be the default? Each against `blend`, query by query, over open collections.

    python benchmarks/quality_fusion.py COLLECTION COLLECTION... [--by-prefix NAME] [--embedder NAME] [--json]

Each collection is indexed with the default settings. Printed for each: nDCG@10 of `blend`, and for `bm25`, `dense`,
`rrf` and `convex` how far it is from `blend`, with the 95 % interval of the difference and the p of a paired
randomisation test. Of a collection named by `--by-prefix` the queries of each kind are compared apart as well: a
query's kind is what stands before the first "-" of its id (a language, in collections that are made so).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from wellhead.bench.collection import Collection, read_collection
from wellhead.bench.evaluate import MAIN_MEASURE, evaluate
from wellhead.bench.significance import Paired, paired

DEFAULT = "blend"
OTHERS = ("bm25", "dense", "rrf", "convex")


class Row(NamedTuple):
    """One collection, or one kind of its queries."""

    name: str
    queries: int
    default: float
    others: dict[str, Paired]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("collections", nargs="+", type=Path)
    parser.add_argument("--by-prefix", action="append", default=[], metavar="NAME")
    parser.add_argument("--embedder", default=None, metavar="NAME")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows: list[Row] = []
    for path in given.collections:
        print(f"{path.name} ...", file=sys.stderr)
        collection = read_collection(path)
        rows += measured(collection, given.embedder, apart=collection.name in given.by_prefix)
    print(json.dumps([_plain(row) for row in rows]) if given.json else _table(rows))


def measured(collection: Collection, embedder: str | None, *, apart: bool) -> Iterator[Row]:
    """The row of a collection, then one for each kind of its queries."""
    evaluation = evaluate(collection, embedder=embedder, pipelines=(*OTHERS, DEFAULT))
    values = {row.name: row.per_query[MAIN_MEASURE] for row in evaluation.pipelines}
    yield _row(collection.name, values, list(collection.qrels))
    kinds = sorted({query.partition("-")[0] for query in collection.qrels}) if apart else []
    for kind in kinds:
        yield _row(f"{collection.name} {kind}", values, [one for one in collection.qrels if one.startswith(f"{kind}-")])


def _row(name: str, values: dict[str, dict[str, float]], queries: Sequence[str]) -> Row:
    default = [values[DEFAULT][query] for query in queries]
    others = {other: paired(default, [values[other][query] for query in queries]) for other in OTHERS}
    return Row(name, len(queries), sum(default) / len(default), others)


def _plain(row: Row) -> dict[str, object]:
    others = {
        name: {
            "difference": one.difference,
            "low": one.interval.low,
            "high": one.interval.high,
            "p": one.p,
            "wins": one.wins,
            "losses": one.losses,
        }
        for name, one in row.others.items()
    }
    return {"name": row.name, "queries": row.queries, DEFAULT: row.default, "others": others}


def _table(rows: Sequence[Row]) -> str:
    lines = [
        f"{MAIN_MEASURE}; * where p < 0.05",
        f"{'':24}{'queries':>8}{DEFAULT:>8}" + "".join(f"{f'{name} - {DEFAULT}':>30}" for name in OTHERS),
    ]
    for row in rows:
        cells = "".join(f"{_cell(row.others[name]):>30}" for name in OTHERS)
        lines.append(f"{row.name:24}{row.queries:>8}{row.default:>8.4f}{cells}")
    return "\n".join(lines)


def _cell(one: Paired) -> str:
    return f"{one.difference:+.4f} [{one.interval.low:+.3f}, {one.interval.high:+.3f}]{'*' if one.p < 0.05 else ' '}"


if __name__ == "__main__":
    main()
