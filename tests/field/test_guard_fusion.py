"""A fused list behind the guard: a leg that did not return a passage has no say in it, and no rank is made up."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from wellhead import Document, Guarded, Hits, Index, search_tool
from wellhead.records import Hit, Passage, Signals
from wellhead.search import fuse
from wellhead.search.top import Candidates
from wellhead.testing.fakes import HashEmbedder

NAMES = ("X", "a", "Y", "b", "c")


class TwoLegs:
    """Fuses what two legs returned, each of them three of five passages."""

    def search(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Hits:
        rows = Candidates.of(np.arange(len(NAMES)), len(NAMES))
        legs = [fuse.ranks_within(rows, np.array([NAMES.index(name) for name in leg])) for leg in ("XaY", "bcY")]
        scores = fuse.rrf(*legs)
        best = sorted(range(len(NAMES)), key=lambda row: (-scores[row], NAMES[row]))
        return Hits(hits=tuple(self._hit(rank, row, scores, legs) for rank, row in enumerate(best, start=1)))

    def _hit(self, rank: int, row: int, scores: np.ndarray, legs: list[np.ndarray]) -> Hit:  # type: ignore[type-arg]
        ranks = [None if np.isnan(leg[row]) else int(leg[row]) for leg in legs]
        text = f"passage {NAMES[row]}"
        passage = Passage(id=NAMES[row], document_id=NAMES[row], ordinal=0, text=text, start=0, end=len(text))
        return Hit(
            rank=rank,
            score=float(scores[row]),
            passage=passage,
            signals=Signals(lexical_rank=ranks[0], dense_rank=ranks[1]),
        )


def test_what_both_legs_returned_stays_first_and_no_rank_is_added() -> None:
    """huggingface/sentence-transformers PR#3883: an absent row was given a made-up rank, so agreement lost."""
    hits = Guarded(TwoLegs()).search("anything")
    assert [hit.id for hit in hits] == ["Y", "X", "b", "a", "c"]
    assert hits[0].score == pytest.approx(2 / 63)
    ranks = {hit.id: (hit.signals.lexical_rank, hit.signals.dense_rank) for hit in hits}
    assert ranks == {"Y": (3, 3), "X": (1, None), "a": (2, None), "b": (None, 1), "c": (None, 2)}
    shown = search_tool(TwoLegs()).run({"query": "anything"}).data["documents"]
    assert [one["id"] for one in shown] == ["Y", "X", "b", "a", "c"]  # type: ignore[attr-defined]


def test_in_a_search_by_ranks_a_leg_without_the_passage_adds_nothing() -> None:
    """huggingface/sentence-transformers PR#3883: the same in an index, whose hits say what each leg gave."""
    index = Index.open(":memory:", embedder=HashEmbedder(), languages=["en"])
    index.add([Document(id=f"d{n}", text=text) for n, text in enumerate(("red door", "red", "blue", "green window"))])

    class ByRanks:
        def search(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Hits:
            return index.search(query, k=k, filters=filters, fusion="rrf", cut="off")

    hits = Guarded(ByRanks()).search("red door")
    assert len(hits) == 4
    for hit in hits:
        found = [rank for rank in (hit.signals.lexical_rank, hit.signals.dense_rank) if rank is not None]
        assert min(found) >= 1
        assert hit.score == pytest.approx(sum(1 / (60 + rank) for rank in found))
    assert {hit.text for hit in hits if hit.signals.lexical_rank is None} == {"blue", "green window"}
