"""Which stage lost each relevant document that was not delivered.

A measure says how much is missing, not why. Every stage from the reader to the last cap may lose a document, and each
has a cure of its own: one that was not ingested needs another reader, one in no pool other words or another embedder,
one beyond k another fusion, one that the cut refused another threshold.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias, Unpack, get_args

import msgspec

from wellhead.bench.collection import Collection
from wellhead.bench.resolve import Resolved, resolve_in
from wellhead.records import Explanation, Hits, Stage

if TYPE_CHECKING:
    from wellhead.bench.labels import Labels
    from wellhead.index import Index
    from wellhead.search.request import Options

__all__ = ["STAGES", "Loss", "LossMap", "LostAt", "loss_map"]

LostAt: TypeAlias = Literal["not ingested", "not in any passage"] | Stage

# In the order in which a document comes to them.
STAGES: tuple[LostAt, ...] = (
    "not ingested",
    "not in any passage",
    *(stage for stage in get_args(Stage) if stage != "delivered"),
)


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """A relevant document that a query did not get.

    Args:
        grade: 1 or more.
        stage: what lost it: of its passages, the one that came furthest.
        reason: one sentence. passage_id: of that passage, "" where there is none.
    """

    query_id: str
    document_id: str
    grade: int
    stage: LostAt
    reason: str
    passage_id: str = ""


class LossMap(msgspec.Struct, frozen=True, kw_only=True):
    """What became of every relevant document of a collection.

    Args:
        queries: with a relevant document. relevant: pairs of a query and such a document; delivered: of these.
        losses: the others, by stage, then by query.
        stale: labels whose words are gone, by name: of these any passage of the document was taken for the answer.
    """

    collection: str
    k: int
    queries: int
    relevant: int
    delivered: int
    losses: tuple[Loss, ...]
    stale: tuple[str, ...] = ()

    @property
    def by_stage(self) -> Mapping[LostAt, int]:
        """How many each stage lost, in the order of the stages; only those that lost something."""
        counts = Counter(loss.stage for loss in self.losses)
        return {stage: counts[stage] for stage in STAGES if counts[stage]}

    def to_dict(self) -> dict[str, object]:
        """Plain data under a versioned schema (`"schema": 1`)."""
        return {"schema": 1, **msgspec.to_builtins(self), "by_stage": dict(self.by_stage)}


def loss_map(
    collection: Collection, index: Index, *, labels: Labels | None = None, **options: Unpack[Options]
) -> LossMap:
    """Search for every labelled query, and explain each relevant document that is not among the hits.

    A hit stands for every place where its text stands (`also_in`).

    Args:
        index: that the collection was indexed in, as far as it could be.
        labels: where they quote the words that answer, only the passages that hold these count; a document without a
            quote, or whose quote is gone (`LossMap.stale`), is delivered with any of its passages.
        options: as for `Index.search`; the map is that of these.

    Raises:
        UsageError: options that a search does not take. BackendError: as a search.
    """
    resolved = Resolved(standings=()) if labels is None else resolve_in(index, labels)
    wanted = _Wanted(collection, _answering(resolved))
    losses: list[Loss] = []
    for query_id, documents in wanted.by_query.items():
        query = collection.queries[query_id]
        delivered = _delivered(index.search(query, **options))
        for document_id, grade in documents.items():
            ids = wanted.passages.get((query_id, document_id))
            if document_id in delivered if ids is None else not delivered[document_id].isdisjoint(ids):
                continue
            stage, reason, passage_id = _lost(index, query, document_id, ids, options)
            losses.append(
                Loss(
                    query_id=query_id,
                    document_id=document_id,
                    grade=grade,
                    stage=stage,
                    reason=reason,
                    passage_id=passage_id,
                )
            )
    return LossMap(
        collection=collection.name,
        k=options.get("k", 10),
        queries=len(wanted.by_query),
        relevant=sum(map(len, wanted.by_query.values())),
        delivered=sum(map(len, wanted.by_query.values())) - len(losses),
        losses=tuple(sorted(losses, key=lambda one: (STAGES.index(one.stage), one.query_id, one.document_id))),
        stale=tuple(one.name for one in resolved.stale),
    )


class _Wanted:
    """What every query should get: grade by relevant document, and the passages that hold the answer, where known."""

    def __init__(self, collection: Collection, passages: Mapping[tuple[str, str], frozenset[str]]) -> None:
        relevant = {
            query_id: {document_id: grade for document_id, grade in grades.items() if grade >= 1}
            for query_id, grades in collection.qrels.items()
        }
        self.by_query = {query_id: documents for query_id, documents in relevant.items() if documents}
        self.passages = passages


def _answering(resolved: Resolved) -> dict[tuple[str, str], frozenset[str]]:
    """The passages that hold the words that answer, by query and document; none where the words are in no passage."""
    found: dict[tuple[str, str], frozenset[str]] = {}
    for one in resolved.standings:
        if one.label.grade >= 1 and one.span is not None:
            place = one.query_id, one.label.document_id
            found[place] = found.get(place, frozenset()) | frozenset(one.passages)
    return found


def _delivered(hits: Hits) -> defaultdict[str, set[str]]:
    """The passages of each document that the hits stand for."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for hit in hits:
        found[hit.passage.document_id].add(hit.id)
        for source in hit.also_in:
            found[source.document_id].add(source.passage_id)
    return found


def _lost(
    index: Index, query: str, document_id: str, ids: frozenset[str] | None, options: Options
) -> tuple[LostAt, str, str]:
    """The stage, the reason, and the id of the passage that came furthest; `ids`: only of these, None: of all."""
    passages = [one for one in index.passages(document_id) if ids is None or one.id in ids]
    if not passages:
        if index.get(document_id) is None:
            return "not ingested", "the index holds no such document", ""
        what = "the chunker made no passage of it" if ids is None else "no passage holds the words that answer"
        return "not in any passage", what, ""
    furthest = max(index.explain_all(query, passages, **options), key=_progress)
    return furthest.stage, furthest.reason, furthest.passage.id


def _progress(explanation: Explanation) -> tuple[int, float]:
    """How far a passage came: the later the stage and the better the rank, the further."""
    rank = float("-inf") if explanation.rank is None else -float(explanation.rank)
    return get_args(Stage)[1:].index(explanation.stage), rank
