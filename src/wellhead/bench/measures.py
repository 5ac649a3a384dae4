"""The measures of a run, over the delivered order: what stood at rank 1, 2, 3, whatever the scores were.

A ranking is a sequence of document ids, best first. There are no scores, so no tie can be broken in a system's
favour. An id that is delivered twice counts at its first place only, so every value stays between 0 and 1.
Names are those of ir_measures (`nDCG@10`); values equal those of trec_eval on runs without ties. `nDCGexp@10` is
`nDCG(dcg='exp-log2')@10` there. A document is relevant when its grade is 1 or more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

import msgspec

from wellhead.errors import UsageError

__all__ = ["Grades", "Measure", "Qrels", "Ranking", "Run", "Scores", "measure_run", "parse_measure", "unique"]

Ranking: TypeAlias = Sequence[str]
Grades: TypeAlias = Mapping[str, int]
Run: TypeAlias = Mapping[str, Ranking]
Qrels: TypeAlias = Mapping[str, Grades]


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """A measure and its cutoff: `str(Measure(kind="nDCG", k=10)) == "nDCG@10"`."""

    kind: str
    k: int

    def __str__(self) -> str:
        return f"{self.kind}@{self.k}"

    def of(self, ranking: Ranking, grades: Grades) -> float:
        """The value for one query: 0 to 1, and 0.0 for an empty ranking (but `nothing_relevant`: 1.0)."""
        return _KINDS[self.kind](unique(ranking)[: self.k], grades, self.k)


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """A run measured against its qrels.

    Args:
        values: by name of the measure, the mean over all queries of the qrels (`nothing_relevant`: their count).
        per_query: by name of the measure, the value of every query of the qrels.
        returned_nothing: the queries with an empty or missing ranking; they count 0 in every mean.
    """

    values: Mapping[str, float]
    per_query: Mapping[str, Mapping[str, float]]
    returned_nothing: tuple[str, ...]


def parse_measure(name: str) -> Measure:
    """The measure of a name such as `nDCG@10`.

    Raises:
        UsageError: an unknown measure, or a cutoff that is missing or not 1 or more.
    """
    match = re.fullmatch(r"(\w+)@([1-9][0-9]{0,8})", name)
    if match is None or match[1] not in _KINDS:
        raise UsageError(
            f"no measure is named {name!r}",
            why=f"known: {', '.join(f'{kind}@k' for kind in _KINDS)}, with a whole number from 1 for k",
            fix="write it as ir_measures does, for example nDCG@10",
        )
    return Measure(kind=match[1], k=int(match[2]))


def measure_run(qrels: Qrels, run: Run, names: Sequence[str], *, documents: Collection[str] | None = None) -> Scores:
    """Measure a run. Every query of the qrels counts, whether the run answers it or not.

    A query of which no judged document is relevant counts 0, as in trec_eval. Queries of the run that the
    qrels do not name are left out.

    Args:
        documents: the ids of the collection; when given, every id of the run must be one of them.

    Raises:
        UsageError: an unknown measure, qrels without a query, or a run whose ids belong to another collection.
    """
    _check_ids(qrels, run, documents)
    measures = [parse_measure(name) for name in names]
    per_query = {
        str(measure): {query_id: measure.of(run.get(query_id, ()), grades) for query_id, grades in qrels.items()}
        for measure in measures
    }
    return Scores(
        values={str(measure): _over_queries(measure, per_query[str(measure)].values()) for measure in measures},
        per_query=per_query,
        returned_nothing=tuple(query_id for query_id in qrels if not run.get(query_id)),
    )


def unique(ranking: Ranking) -> list[str]:
    """The ids of a ranking, each at its first place."""
    return list(dict.fromkeys(ranking))


def _over_queries(measure: Measure, values: Collection[float]) -> float:
    total = math.fsum(values)
    return total if measure.kind == "nothing_relevant" else total / len(values)


def _check_ids(qrels: Qrels, run: Run, documents: Collection[str] | None) -> None:
    """A run of another collection would score 0.0 everywhere: say so instead."""
    if not qrels:
        raise UsageError("the qrels name no query", fix="give at least one labelled query")
    if run and not any(query_id in qrels for query_id in run):
        raise UsageError(
            "the run answers none of the labelled queries",
            why=f"it names {next(iter(run))!r}, the qrels name {next(iter(qrels))!r}",
            fix="use the query ids of the same collection",
        )
    if documents is None:
        return
    for query_id, ranking in run.items():
        for document_id in ranking:
            if document_id not in documents:
                raise UsageError(
                    f"the run returns {document_id!r}, which is no document of the collection",
                    where=f"query {query_id!r}",
                    fix="measure the run against the collection that it was made on",
                )


def _discounted(gains: Sequence[float]) -> float:
    """Gains over log2(rank + 1), summed."""
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def _ndcg(top: Ranking, grades: Grades, k: int) -> float:
    """The grade itself is the gain (Järvelin and Kekäläinen 2002, as trec_eval computes it)."""
    return _normalised(top, {document_id: grade for document_id, grade in grades.items() if grade > 0}, k)


def _ndcg_exponential(top: Ranking, grades: Grades, k: int) -> float:
    """The gain is 2**grade - 1 (Burges et al. 2005): one document of grade 3 outweighs two of grade 2."""
    best = max(grades.values(), default=0)
    # All over 2**best, for only the ratio counts; so no grade is too large to be computed with.
    gains = {document_id: 2.0 ** (grade - best) - 2.0**-best for document_id, grade in grades.items() if grade > 0}
    return _normalised(top, gains, k)


def _normalised(top: Ranking, gains: Mapping[str, float], k: int) -> float:
    # The ideal order is over all that is relevant, not over what happened to be returned.
    ideal = _discounted(sorted(gains.values(), reverse=True)[:k])
    return _discounted([gains.get(document_id, 0) for document_id in top]) / ideal if ideal else 0.0


def _relevant(top: Ranking, grades: Grades) -> list[bool]:
    return [grades.get(document_id, 0) >= 1 for document_id in top]


def _number_relevant(grades: Grades) -> int:
    return sum(grade >= 1 for grade in grades.values())


def _recall(top: Ranking, grades: Grades, _k: int) -> float:
    return sum(_relevant(top, grades)) / max(_number_relevant(grades), 1)


def _precision(top: Ranking, grades: Grades, k: int) -> float:
    """Over k, also where fewer were returned."""
    return sum(_relevant(top, grades)) / k


def _reciprocal_rank(top: Ranking, grades: Grades, _k: int) -> float:
    ranks = [rank for rank, relevant in enumerate(_relevant(top, grades), start=1) if relevant]
    return 1 / ranks[0] if ranks else 0.0


def _average_precision(top: Ranking, grades: Grades, _k: int) -> float:
    """Precision at every relevant rank, over all that is relevant (trec_eval's `map_cut`)."""
    ranks = [rank for rank, relevant in enumerate(_relevant(top, grades), start=1) if relevant]
    precisions = [found / rank for found, rank in enumerate(ranks, start=1)]
    return math.fsum(precisions) / max(_number_relevant(grades), 1)


def _success(top: Ranking, grades: Grades, _k: int) -> float:
    return float(any(_relevant(top, grades)))


def _judged(top: Ranking, grades: Grades, _k: int) -> float:
    """Over what was returned within k, as ir_measures has it."""
    return sum(document_id in grades for document_id in top) / max(len(top), 1)


def _nothing_relevant(top: Ranking, grades: Grades, _k: int) -> float:
    return float(not any(_relevant(top, grades)))


_KINDS: dict[str, Callable[[Ranking, Grades, int], float]] = {
    "nDCG": _ndcg,
    "nDCGexp": _ndcg_exponential,
    "R": _recall,
    "P": _precision,
    "RR": _reciprocal_rank,
    "AP": _average_precision,
    "Success": _success,
    "Judged": _judged,
    "nothing_relevant": _nothing_relevant,
}
