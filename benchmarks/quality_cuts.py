"""Fit the starting cuts of an embedder over open collections: when is nothing close enough?

    python benchmarks/quality_cuts.py COLLECTION COLLECTION... [--embedder NAME] [--false-hits 0.10] [--json]

Each collection is indexed with the default settings, whole and as seeded samples of its documents (the best of many
passages is higher than the best of few). Its own queries with an answer in the sample are answerable; those of the
other collections are foreign: nothing in it answers them. The evidence is the best cosine, the best coverage and the
largest share of the query's words that one passage holds. A logistic regression over cosine and share, with the words
of the query and ln(passages), in which every sample and both kinds of query weigh the same, gives the probability. The
cuts are set so that the mean share of foreign queries that are answered with hits is `--false-hits`. Printed: what the
cuts do on each sample, and the numbers for `wellhead/backends/embedders/profiles.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wellhead import Index
from wellhead.analyze import analyze
from wellhead.bench.collection import Collection, read_collection
from wellhead.search.threshold import Cuts, decide, probability

# Where a signal may vouch alone although the probability does not, it must be nearly sure.
ALONE = 0.01
SAMPLES = (1 / 16, 1 / 4, 1.0)
SEED = 20261130
RIDGE = 1e-4
Legs: TypeAlias = Literal["hybrid", "dense", "lexical"]
LEGS: tuple[Legs, ...] = ("hybrid", "dense", "lexical")


class Evidence(NamedTuple):
    """One row a query: best cosine, coverage and held, its words, ln(passages); and whether a rare name matched."""

    signals: NDArray[np.float64]
    named: NDArray[np.bool_]


class Asked(NamedTuple):
    """A sample of one collection, asked by its own queries and by those of all others."""

    name: str
    share: float
    passages: int
    own: Evidence
    foreign: Evidence


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("collections", nargs="*", type=Path)
    parser.add_argument("--embedder", default="static")
    parser.add_argument("--false-hits", type=float, default=0.10)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    collections = [read_collection(path) for path in chosen.collections]
    if len(collections) < 2:
        print("foreign queries need two collections or more: make bench COLLECTIONS='one two ...'")
        return
    asked = [ask(collection, collections, share, chosen.embedder) for collection in collections for share in SAMPLES]
    cuts = fit(asked, chosen.false_hits)
    rows = [{"collection": one.name, "passages": one.passages, **outcome(one, cuts)} for one in asked]
    if chosen.json:
        print(json.dumps({"schema": 1, "cuts": plain(cuts), "collections": rows}))
    else:
        show(rows)
        print(json.dumps(plain(cuts), indent=1))


def show(rows: Sequence[Mapping[str, object]]) -> None:
    print("".join(f"{name:>23}" for name in rows[0]))
    for row in rows:
        print("".join(f"{value:>23.3f}" if isinstance(value, float) else f"{value!s:>23}" for value in row.values()))


def ask(collection: Collection, all_of_them: Sequence[Collection], share: float, embedder: str) -> Asked:
    random = np.random.default_rng(SEED)
    size = max(1, round(share * len(collection.documents)))
    kept = [collection.documents[i] for i in random.permutation(len(collection.documents))[:size]]
    held = {document.id for document in kept}
    own = [
        collection.queries[query]
        for query, grades in collection.qrels.items()
        if any(grade > 0 and document in held for document, grade in grades.items())
    ]
    foreign = [other.queries[query] for other in all_of_them if other is not collection for query in other.qrels]
    with Index.open(":memory:", embedder=embedder) as index:
        index.add(kept)
        passages = index.stats().passages
        print(f"{collection.name}: {passages} passages, {len(own)} own queries", file=sys.stderr)
        return Asked(
            collection.name, share, passages, evidence(index, own, passages), evidence(index, foreign, passages)
        )


def evidence(index: Index, queries: Sequence[str], passages: int) -> Evidence:
    signals: list[tuple[float, float, float, float, float]] = []
    named: list[bool] = []
    for query in queries:
        found = index.search(query, k=1, cut="off").evidence
        words = len(analyze(query, "en").stems)
        best = (found.get("cosine", 0.0), found.get("coverage", 0.0), found.get("held", 0.0))
        signals.append((*best, words, math.log(max(passages, 5))))
        named.append("rare" in found)
    return Evidence(np.array(signals).reshape(-1, 5), np.array(named, dtype=np.bool_))


def fit(asked: Sequence[Asked], false_hits: float) -> Cuts:
    weights = logistic(asked)
    sure = {"cosine": line(asked, 0, ALONE), "coverage": line(asked, 1, ALONE)}
    return Cuts(
        dense={"cosine": line(asked, 0, false_hits)},
        lexical={"coverage": line(asked, 1, false_hits)},
        hybrid={**sure, "probability": (union_cut(asked, weights, sure, false_hits), 0.0)},
        fit=(float(weights[0]), float(weights[1]), float(weights[2]), float(weights[3])),
    )


def logistic(asked: Sequence[Asked]) -> NDArray[np.float64]:
    """The weights of the features, by Newton's method with a slight ridge."""
    rows, labels, shares = [], [], []
    for one in asked:
        for signals, label in ((one.own.signals, 1.0), (one.foreign.signals, 0.0)):
            rows.append(features(signals))
            labels.append(np.full(len(signals), label))
            shares.append(np.full(len(signals), 1.0 / max(len(signals), 1)))
    x, y, share = np.concatenate(rows), np.concatenate(labels), np.concatenate(shares)
    weights = np.zeros(x.shape[1])
    for _ in range(100):
        likely = 1.0 / (1.0 + np.exp(-(x @ weights)))
        curvature = share * likely * (1.0 - likely)
        slope = x.T @ (share * (y - likely)) - RIDGE * weights
        step = np.linalg.solve((x * curvature[:, None]).T @ x + RIDGE * np.eye(x.shape[1]), slope)
        weights += step
        if np.abs(step).max() < 1e-9:
            break
    return weights


def features(signals: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the regression sees: 1, cosine, held * sqrt(words), ln(passages)."""
    cosine, _, held, words, passages = signals.T
    return np.column_stack([np.ones(len(signals)), cosine, held * np.sqrt(words), passages])


def likelihood(weights: NDArray[np.float64], signals: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-(features(signals) @ weights)))
    return found


def line(asked: Sequence[Asked], signal: int, false_hits: float) -> tuple[float, float]:
    """Base and slope over ln(passages): the slope by least squares, the base so that the mean share is right."""
    sizes = np.array([math.log(one.passages) for one in asked])
    cuts = np.array([np.quantile(one.foreign.signals[:, signal], 1.0 - false_hits) for one in asked])
    slope = max(0.0, float(np.polyfit(sizes, cuts, 1)[0]))

    def answered(base: float) -> float:
        return float(np.mean([(row.signals[:, signal] >= base + slope * size).mean() for row, size in pairs]))

    pairs = [(one.foreign, size) for one, size in zip(asked, sizes, strict=True)]
    return least(answered, false_hits), round(slope, 4)


def union_cut(
    asked: Sequence[Asked],
    weights: NDArray[np.float64],
    sure: Mapping[str, tuple[float, float]],
    false_hits: float,
) -> float:
    def answered(cut: float) -> float:
        shares = []
        for one in asked:
            signals, size = one.foreign.signals, math.log(one.passages)
            vouched = one.foreign.named | (likelihood(weights, signals) >= cut)
            for column, (base, slope) in enumerate((sure["cosine"], sure["coverage"])):
                vouched = vouched | (signals[:, column] >= base + slope * size)
            shares.append(vouched.mean())
        return float(np.mean(shares))

    return least(answered, false_hits)


def least(share: Callable[[float], float], most: float) -> float:
    """The least cut, in steps of 0.005, at which at most that share is answered."""
    for cut in np.arange(-0.5, 1.0005, 0.005):
        if share(float(cut)) <= most:
            return round(float(cut), 3)
    return 1.0


def outcome(one: Asked, cuts: Cuts) -> dict[str, float]:
    """The shares of own queries refused, and of foreign ones answered with hits, by the legs that there are."""
    shares: dict[str, float] = {}
    for legs in LEGS:
        own = [answered(row, named, cuts, legs, one.passages) for row, named in zip(*one.own, strict=True)]
        foreign = [answered(row, named, cuts, legs, one.passages) for row, named in zip(*one.foreign, strict=True)]
        shares[f"{legs} own refused"] = 1.0 - float(np.mean(own)) if own else 0.0
        shares[f"{legs} false hits"] = float(np.mean(foreign))
    return shares


def answered(row: NDArray[np.float64], named: bool, cuts: Cuts, legs: Legs, passages: int) -> bool:
    found = {"cosine": float(row[0]), "coverage": float(row[1])}
    likely = probability(cuts, found["cosine"], float(row[2]), int(row[3]), passages)
    if likely is not None:
        found["probability"] = likely
    rare = "a name" if named and legs != "dense" else None
    return decide(found, cuts.of(legs, passages), "profile", rare).answered


def plain(cuts: Cuts) -> dict[str, object]:
    rounded = tuple(round(weight, 3) for weight in cuts.fit or ())
    return {"hybrid": cuts.hybrid, "dense": cuts.dense, "lexical": cuts.lexical, "fit": rounded}


if __name__ == "__main__":
    main()
