"""Scores that mislead: negative weights, invented ranks, ranges left, a k that is too large."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from wellhead import Document, Index
from wellhead.search import fuse
from wellhead.search.top import Candidates
from wellhead.testing.fakes import HashEmbedder


class Compass:
    """`north` and `south` are opposite unit vectors, `east` is at right angles to both."""

    name = "compass"
    dims = 2

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> NDArray[np.float32]:
        points = {"north": (0.0, 1.0), "south": (0.0, -1.0), "north-east": (0.6, 0.8), "east": (1.0, 0.0)}
        return np.array(points[text], np.float32)


def open_with(*texts: str, embedder: object = None) -> Index:
    index = Index.open(":memory:", embedder=embedder or HashEmbedder(), languages=["en"])  # type: ignore[arg-type]
    index.add(Document(id=f"d{n}", text=text) for n, text in enumerate(texts))
    return index


def test_the_only_document_scores_above_zero_for_its_own_word() -> None:
    """piskvorky/gensim#2684: in a small corpus the weight of a word went below zero and the match was cut."""
    (hit,) = open_with("refund policy").search("refund", mode="lexical")
    assert hit.score is not None
    assert hit.score > 0.0


def test_a_word_that_every_document_holds_still_scores_and_more_words_never_lower_it() -> None:
    """piskvorky/gensim#2684: where all documents held a word, matching it lowered their score."""
    index = open_with("refund policy now", "refund rules now", "refund desk now")
    one = {hit.id: hit.score for hit in index.search("refund", mode="lexical")}
    two = {hit.id: hit.score for hit in index.search("refund now", mode="lexical")}
    assert len(one) == len(two) == 3
    assert all(score is not None and score > 0.0 for score in one.values())
    assert all(two[name] > one[name] for name in one)  # type: ignore[operator]


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
def test_k_beyond_the_corpus_returns_what_there_is(mode: str) -> None:
    """xhluca/bm25s#116: asking for more than the corpus holds raised."""
    hits = open_with("red one", "red two", "red three").search("red", k=10, mode=mode)  # type: ignore[arg-type]
    assert (len(hits), hits.outcome) == (3, "hits")
    assert hits.coverage.passages == 3


def test_a_leg_that_did_not_return_a_row_adds_nothing() -> None:
    """huggingface/sentence-transformers PR#3883: an absent row was given a made-up rank, so agreement lost."""
    x, a, y, b, c = range(5)
    rows = Candidates.of(np.arange(5), 5)
    first, second = fuse.ranks_within(rows, np.array([x, a, y])), fuse.ranks_within(rows, np.array([b, c, y]))
    fused = fuse.rrf(first, second)
    assert int(fused.argmax()) == y
    assert fused[y] == pytest.approx(2 / 63)
    assert fused[x] == pytest.approx(1 / 61)
    assert fused[a] == fused[c] == pytest.approx(1 / 62)


def test_cosines_of_opposite_vectors_stay_in_range() -> None:
    """langchain-ai/langchain#18709: a squared distance taken for a distance gave a relevance below its range."""
    hits = open_with("south", "north", "east", embedder=Compass()).search("north", mode="dense")
    assert [(hit.text, hit.score) for hit in hits] == [("north", 1.0), ("east", 0.0), ("south", -1.0)]
    for fusion in ("blend", "rrf", "convex"):
        scores = [hit.score for hit in open_with("south", "north", embedder=Compass()).search("north", fusion=fusion)]  # type: ignore[arg-type]
        assert all(score is not None and -1.0 <= score <= 1.0 for score in scores)


def test_the_score_falls_strictly_as_the_distance_grows() -> None:
    """run-llama/llama_index#7007: a distance turned the wrong way round scored the best match zero."""
    hits = open_with("south", "east", "north-east", "north", embedder=Compass()).search("north", mode="dense")
    assert [hit.text for hit in hits] == ["north", "north-east", "east", "south"]
    scores = [float(hit.score or 0.0) for hit in hits]
    assert all(later < earlier for earlier, later in itertools.pairwise(scores))
    assert scores[0] == pytest.approx(1.0)


def test_a_passage_of_both_legs_is_one_hit_that_shows_both() -> None:
    """Aharshi3614/Devwhisper#266: each leg named passages in its own way, so nothing ever fused."""
    index = open_with("red door", "green window", embedder="static")
    hits = index.search("red door", fusion="rrf")
    assert len({hit.id for hit in hits}) == len(hits) == 2
    best = hits[0]
    assert (best.text, best.signals.lexical_rank, best.signals.dense_rank) == ("red door", 1, 1)
    assert best.score == pytest.approx(2 / 61)
    assert best.signals.bm25 is not None
    assert best.signals.cosine is not None
