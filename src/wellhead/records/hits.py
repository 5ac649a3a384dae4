"""What a search answers: hits with their signals, why there are none, and why a passage ranks where it does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias, overload

import msgspec

from wellhead.records.document import Metadata
from wellhead.records.passage import Passage, cite

__all__ = [
    "Coverage",
    "Degraded",
    "Explanation",
    "Hit",
    "Hits",
    "Outcome",
    "Signals",
    "Source",
    "Stage",
    "TermMatch",
    "Threshold",
    "Verdict",
]

Outcome: TypeAlias = Literal["hits", "no_match", "filtered_out", "empty_index"]
Verdict: TypeAlias = Literal["pass", "below", "unjudged"]
# What a passage came to in a search: it is delivered (or stands in the `also_in` of a hit), or was lost on the way.
Stage: TypeAlias = Literal[
    "delivered",
    "filter",
    "no terms",
    "lexical pool",
    "dense pool",
    "fusion",
    "cut",
    "per-document cap",
    "token budget",
]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Another place, in the same scope, where a hit's text stands word for word."""

    passage_id: str
    document_id: str
    uri: str = ""
    title: str = ""
    heading: tuple[str, ...] = ()
    page: int | None = None
    metadata: Metadata = {}

    @property
    def citation(self) -> str:
        return cite(self.uri or self.document_id, self.heading, self.page)


class Signals(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured for one passage; None where a signal does not exist.

    Args:
        bm25: >= 0, unbounded; of the query's words in the statistics of the scope.
        coverage: 0 to 1: `bm25` over the most that this query could score.
        cosine: -1 to 1.
        probability: 0 to 1: the fitted combination of coverage and cosine.
        rerank: as the reranker gives it.
        lexical_rank, dense_rank: from 1 within the leg's pool; None when the leg did not return the passage.
    """

    bm25: float | None = None
    coverage: float | None = None
    cosine: float | None = None
    probability: float | None = None
    rerank: float | None = None
    lexical_rank: int | None = None
    dense_rank: int | None = None


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One ranked passage.

    Args:
        rank: from 1.
        score: what orders the list, higher is better; None when the backend gives none (its order is kept).
        signals: what was measured.
        verdict: `pass`, `below` the cut, or `unjudged` (no signal that has a cut).
        passage: the passage itself.
        also_in: other places of the scope with the same text, ordered by passage id.
    """

    rank: int
    score: float | None
    passage: Passage
    signals: Signals = Signals()
    verdict: Verdict = "unjudged"
    also_in: tuple[Source, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Plain data, with the citation beside the fields."""
        return {**msgspec.to_builtins(self), "citation": self.citation}

    @property
    def id(self) -> str:
        return self.passage.id

    @property
    def text(self) -> str:
        return self.passage.text

    @property
    def uri(self) -> str:
        return self.passage.uri

    @property
    def title(self) -> str:
        return self.passage.title

    @property
    def citation(self) -> str:
        return self.passage.citation

    @property
    def metadata(self) -> Metadata:
        return self.passage.metadata


class Degraded(msgspec.Struct, frozen=True, kw_only=True):
    """A search that is worse than the one asked for: which leg is missing, why, and what mends it."""

    leg: Literal["lexical", "dense", "rerank"]
    why: str
    fix: str


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the scope each leg could see, in passages."""

    passages: int
    with_vectors: int


class Threshold(msgspec.Struct, frozen=True, kw_only=True):
    """A cut on a named signal (inclusive), and where it comes from."""

    signal: str
    value: float
    origin: Literal["calibrated", "profile", "user"]


class Hits(msgspec.Struct, frozen=True, kw_only=True):
    """A search's answer: a sequence of `Hit` that explains itself, also when it is empty.

    Args:
        hits: best first; at most k.
        outcome: `hits`, or why there are none: `no_match` (nothing close enough), `filtered_out` (the narrowing
            filters admit no passage of the scope), `empty_index` (the scope holds no passage).
        why_empty: one sentence for a person; "" when there are hits.
        near_misses: the best of what was cut, best first (after `no_match`, or below a cut per hit).
        degraded: empty when the search ran as asked.
        coverage: how much of the scope the legs could see.
        threshold: the cut that decided the outcome; None when nothing was cut.
        evidence: the query's best signals, by name, on which the outcome was decided; `held` is the largest share of
            its words that one passage holds; `rare` is 1.0 when a passage holds a rare word of the query that is
            spelled like a name (`FRY-4012`).
        dropped: hits that a guard removed (foreign scope, failed filters, repeats, more than k).
        index_version: grows with every write; equal numbers mean equal content.
        timings: milliseconds by stage.
    """

    hits: tuple[Hit, ...] = ()
    outcome: Outcome = "hits"
    why_empty: str = ""
    near_misses: tuple[Hit, ...] = ()
    degraded: tuple[Degraded, ...] = ()
    coverage: Coverage = Coverage(passages=0, with_vectors=0)
    threshold: Threshold | None = None
    evidence: Mapping[str, float] = {}
    dropped: int = 0
    index_version: int = 0
    timings: Mapping[str, float] = {}

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[index]

    def to_dict(self) -> dict[str, object]:
        """Plain data under a versioned schema (`"schema": 1`), ready for JSON."""
        plain: dict[str, object] = {"schema": 1}
        for name in self.__struct_fields__:
            plain[name] = msgspec.to_builtins(getattr(self, name))
        for name in ("hits", "near_misses"):
            plain[name] = [hit.to_dict() for hit in getattr(self, name)]
        return plain


Sequence.register(Hits)  # type: ignore[attr-defined, unused-ignore]  # pyright: ignore


class TermMatch(msgspec.Struct, frozen=True, kw_only=True):
    """What one word of the query contributes to one passage.

    Args:
        term: as indexed. field: `stem` or `word` (the exact form).
        query_count, passage_count: occurrences.
        documents: how many documents of the scope hold the term: by these few it weighs more.
        score: the part of `bm25` that it gives.
    """

    term: str
    field: Literal["stem", "word"]
    query_count: int
    passage_count: int
    documents: int
    score: float


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a passage ranks where it does for a query, or why it is not returned.

    Args:
        rank: where it stands in the full order, from 1; None when it is in no pool.
        returned: whether a search with these settings returns it.
        stage: `delivered`, or what lost it: the `filter`; `no terms` (it holds no word of the query, and the dense leg
            did not return it either), the `lexical pool` or the `dense pool` (not among a leg's best), `fusion` (ranked
            beyond k), the `cut`, the `per-document cap` or the `token budget`.
        reason: the same in one sentence.
        score, signals, verdict: as in `Hit`.
        terms: every word of the query with what it gives here, the largest first; 0.0 where it does not occur.
        stem_only: words that matched only by their stem, never in the exact form.
        filter: None, or the first filter clause that excludes the passage.
    """

    query: str
    passage: Passage
    rank: int | None
    returned: bool
    stage: Stage
    reason: str
    score: float | None
    signals: Signals
    verdict: Verdict
    terms: tuple[TermMatch, ...] = ()
    stem_only: tuple[str, ...] = ()
    filter: str | None = None
    threshold: Threshold | None = None

    def to_dict(self) -> dict[str, object]:
        """Plain data under a versioned schema (`"schema": 1`)."""
        plain = msgspec.to_builtins(self)
        return {"schema": 1, **plain}
