"""The whole search agrees with brute force, whatever was added and deleted before, in whatever order."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from wellhead import Document, Index
from wellhead.analyze import analyze
from wellhead.records import Hits, Passage
from wellhead.search import bm25
from wellhead.testing.fakes import HashEmbedder

words = st.sampled_from(["rule", "rules", "cell", "glider", "board", "state", "policy", "policies", "getUser", "S3"])
texts = st.lists(words, min_size=1, max_size=8).map(" ".join)
metadata = st.fixed_dictionaries({"shop": st.sampled_from(["a", "b", "c"]), "year": st.integers(2020, 2026)})
corpora = st.lists(st.tuples(texts, metadata), min_size=1, max_size=14)
filters = st.sampled_from([None, {"shop": "a"}, {"year": {"$gte": 2023}}, {"$not": {"shop": {"$in": ["a", "b"]}}}])
modes = st.sampled_from(["hybrid", "lexical", "dense"])
fusions = st.sampled_from(["blend", "rrf", "convex"])
weights = st.sampled_from([0.0, 0.3, 0.5, 1.0])


def open_with(pairs: list[tuple[str, dict[str, Any]]]) -> Index:
    """An index of documents d00, d01, ..., each of one passage."""
    index = Index.open(":memory:", embedder=HashEmbedder(), languages=["en"])
    index.add(Document(id=f"d{n:02}", text=text, metadata=meta) for n, (text, meta) in enumerate(pairs))
    return index


class BruteForce:
    """Every passage scored by the naive implementations, nothing pooled, nothing shared."""

    def __init__(self, index: Index, query: str, wanted: Mapping[str, Any] | None) -> None:
        passages = [passage for document in index.documents() for passage in index.passages(document.id)]
        terms = [analyze(passage.analyzed_text, "en") for passage in passages]
        documents = [passage.document_id for passage in passages]
        asked = analyze(query, "en")
        stems = oracle.bm25_scores([one.stems for one in terms], documents, asked.stems, bm25.K1, bm25.B)
        exact = oracle.bm25_scores([one.words for one in terms], documents, asked.words, bm25.K1, bm25.B)
        self.bm25 = {p.id: s + bm25.WORD_WEIGHT * e for p, s, e in zip(passages, stems, exact, strict=True)}
        self.most = most([one.stems for one in terms], documents, asked.stems)
        self.most += bm25.WORD_WEIGHT * most([one.words for one in terms], documents, asked.words)
        vector = HashEmbedder().embed_query(query).tolist()
        self.cosine = {
            p.id: oracle.cosine(HashEmbedder().embed_query(p.embedded_text).tolist(), vector) for p in passages
        }
        self.admitted = [passage for passage in passages if oracle.matches(wanted or {}, passage.metadata)]

    def scores(self, mode: str, fusion: str, weight: float) -> dict[str, float]:
        ids = [passage.id for passage in self.admitted]
        lexical = [name for name in ids if self.bm25[name] > 0.0]
        if mode == "lexical":
            return {name: self.bm25[name] for name in lexical}
        if mode == "dense":
            return {name: self.cosine[name] for name in ids}
        if fusion == "rrf":
            legs = [place(lexical, self.bm25), place(ids, self.cosine)]
            return {name: sum(1 / (60 + leg[name]) for leg in legs if name in leg) for name in ids}
        if fusion == "convex":
            one, other = scaled(ids, self.bm25), scaled(ids, self.cosine)
        else:
            by = max(0.3 * self.most, *self.bm25.values())
            one, other = {name: self.bm25[name] / by if by else 0.0 for name in ids}, self.cosine
        return {name: weight * one[name] + (1 - weight) * other[name] for name in ids}


def most(passages: list[Mapping[str, int]], documents: list[str], asked: Mapping[str, int]) -> float:
    """What a passage would score that held each word of the query endlessly often."""
    return sum(count * oracle.idf(passages, documents, word) * (bm25.K1 + 1) for word, count in asked.items())


def place(ids: list[str], signal: Mapping[str, float]) -> dict[str, int]:
    # Signals a hair apart are ties for the naive arithmetic; the id decides them.
    ranked = sorted(ids, key=lambda name: (-round(signal[name], 9), name))
    return {name: rank for rank, name in enumerate(ranked, start=1)}


def scaled(ids: list[str], signal: Mapping[str, float]) -> dict[str, float]:
    low, high = min(signal[name] for name in ids), max(signal[name] for name in ids)
    return {name: (signal[name] - low) / (high - low) if high > low else 0.0 for name in ids}


def best_of_equal_texts(scores: Mapping[str, float], passages: list[Passage]) -> list[str]:
    text_of = {passage.id: passage.text for passage in passages}
    kept: dict[str, str] = {}
    for name in sorted(scores, key=lambda name: (-round(scores[name], 9), name)):
        kept.setdefault(text_of[name], name)
    return list(kept.values())


def told(hits: Hits) -> list[tuple[str, float | None, Any, Any]]:
    return [(hit.id, hit.score, hit.signals, hit.also_in) for hit in (*hits, *hits.near_misses)]


@pytest.mark.promise("D40")
@given(corpora, texts, filters, modes, fusions, weights, st.integers(1, 5))
@settings(max_examples=150)
def test_the_top_k_under_a_filter_is_that_of_brute_force(
    pairs: list[tuple[str, dict[str, Any]]],
    query: str,
    wanted: dict[str, Any] | None,
    mode: Any,
    fusion: Any,
    weight: float,
    k: int,
) -> None:
    index = open_with(pairs)
    naive = BruteForce(index, query, wanted)
    hits = index.search(query, k=k, filters=wanted, mode=mode, fusion=fusion, weight=weight)
    if not naive.admitted:
        assert hits.outcome == "filtered_out"
        return
    scores = naive.scores(mode, fusion, weight)
    expected = best_of_equal_texts(scores, naive.admitted)[:k]
    assert len(hits) == len(expected)
    assert [hit.score for hit in hits] == pytest.approx([scores[name] for name in expected], abs=1e-6)
    for hit in hits:
        assert hit.score == pytest.approx(scores[hit.id], abs=1e-6)
        assert hit.signals.bm25 == pytest.approx(naive.bm25[hit.id], abs=1e-9)
    if all_apart([scores[name] for name in scores]):
        assert [hit.id for hit in hits] == expected


def all_apart(values: list[float]) -> bool:
    """Whether equal scores are equal to the last bit for sure: all others are clearly apart."""
    ordered = sorted(values)
    return all(second - first > 1e-6 for first, second in itertools.pairwise(ordered))


@given(corpora, texts, st.data())
@settings(max_examples=60)
def test_what_was_added_and_deleted_before_leaves_no_trace(
    pairs: list[tuple[str, dict[str, Any]]], query: str, data: st.DataObject
) -> None:
    fresh = open_with(pairs)
    lived = Index.open(":memory:", embedder=HashEmbedder(), languages=["en"])
    for number in data.draw(st.permutations(range(len(pairs))), "order"):
        passing = data.draw(texts, "another text")
        lived.add([Document(id=f"d{number:02}", text=passing), Document(id=f"gone{number}", text=f"{passing} {query}")])
        lived.add([Document(id=f"d{number:02}", text=pairs[number][0], metadata=pairs[number][1])])
    lived.remove([f"gone{number}" for number in range(len(pairs))])
    for mode, fusion in (
        ("lexical", "blend"),
        ("dense", "blend"),
        ("hybrid", "blend"),
        ("hybrid", "rrf"),
        ("hybrid", "convex"),
    ):
        options: Any = {"mode": mode, "fusion": fusion, "k": 5}
        assert told(lived.search(query, **options)) == told(fresh.search(query, **options))
    assert lived.stats().vectors == fresh.stats().vectors


@given(corpora, texts, modes, fusions, st.integers(1, 14))
@settings(max_examples=60)
def test_fewer_hits_are_the_first_of_more(
    pairs: list[tuple[str, dict[str, Any]]], query: str, mode: Any, fusion: Any, k: int
) -> None:
    index = open_with(pairs)
    most = index.search(query, k=100, mode=mode, fusion=fusion)
    assert index.search(query, k=k, mode=mode, fusion=fusion).hits == most[:k]
