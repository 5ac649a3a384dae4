"""Scores of foreign backends that mean something else than they seem to, and legs that name passages their own way."""

from __future__ import annotations

import math
from typing import Any

import pytest

from wellhead.backends.retrievers.function import FunctionRetriever
from wellhead.backends.retrievers.langchain_store import LangChainStoreRetriever
from wellhead.backends.retrievers.scores import Convention


class Item:
    def __init__(self, text: str) -> None:
        self.page_content = text
        self.metadata: dict[str, Any] = {}


class Store:
    """Numbers for fixed texts; a text that is asked for finds itself at 0."""

    def __init__(self, **numbers: float) -> None:
        self.numbers = numbers

    def similarity_search_with_score(self, query: str, k: int = 4) -> list[tuple[Item, float]]:
        own = {query: 0.0} if query in self.numbers else {}
        return sorted(((Item(text), told) for text, told in (self.numbers | own).items()), key=lambda pair: pair[1])[:k]


@pytest.mark.parametrize("convention", ["distance", "cosine_distance", "l2", "squared_l2"])
def test_the_nearest_has_the_highest_score(convention: Convention) -> None:
    """run-llama/llama_index#7007: the score of an exact match came out as 0, the lowest."""
    hits = LangChainStoreRetriever(Store(exact=0.0, near=0.5, far=1.9), score=convention).search("refund")
    assert [hit.text for hit in hits] == ["exact", "near", "far"]
    scores = [hit.score for hit in hits]
    assert None not in scores
    assert scores[0] > scores[1] > scores[2]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("convention", "opposite"), [("cosine_distance", 2.0), ("l2", 2.0), ("squared_l2", 4.0), ("cosine", -1.0)]
)
def test_opposite_vectors_stay_in_the_documented_range(convention: Convention, opposite: float) -> None:
    """langchain-ai/langchain#18709: squared distances were taken for distances, so relevance fell below its range."""
    numbers = {"here": 1.0, "there": -1.0} if convention == "cosine" else {"here": 0.0, "there": opposite}

    class Own(Store):
        def similarity_search_with_score(self, query: str, k: int = 4) -> list[tuple[Item, float]]:
            best = "there" if query == "there" else "here"
            other = "here" if best == "there" else "there"
            return [(Item(best), numbers["here"]), (Item(other), numbers["there"])][:k]

    scores = [hit.score for hit in LangChainStoreRetriever(Own(), score=convention).search("refund")]
    assert scores == [1.0, -1.0]
    assert all(math.isfinite(score) for score in scores if score is not None)


def test_a_passage_that_comes_back_thrice_is_one_hit() -> None:
    """Aharshi3614/Devwhisper#266: each leg named a passage its own way, so nothing ever came together."""
    without_ids = [{"text": "Refunds take 30 days.", "source": "faq.md", "score": score} for score in (0.9, 0.5, 0.4)]
    hits = FunctionRetriever(lambda query, k, filters: without_ids).search("refund")
    assert ([hit.score for hit in hits], hits.dropped) == ([0.9], 2)
    twice = FunctionRetriever(lambda query, k, filters: [*without_ids[::-1]]).search("refund")
    assert twice[0].id == hits[0].id
