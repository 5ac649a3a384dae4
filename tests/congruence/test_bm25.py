"""Our BM25 equals that of rank-bm25, of bm25s and of the naive second implementation, on the same terms.

The libraries know no passages: where they judge, each document is one. How a word is rarer by document than by passage
is held against the naive implementation alone."""

from __future__ import annotations

import math

import bm25s
import numpy as np
import pytest
import rank_bm25
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from wellhead.backends.stores.memory import MemoryStore
from wellhead.records import Document, Terms
from wellhead.search import bm25
from wellhead.testing.contracts import put

vocabulary = st.sampled_from([f"w{number}" for number in range(12)])
lines = st.lists(vocabulary, min_size=1, max_size=15)
corpora = st.lists(lines, min_size=1, max_size=12)
queries = st.lists(vocabulary, min_size=1, max_size=6)


def counted(words: list[str]) -> dict[str, int]:
    return {word: words.count(word) for word in words}


def ours(corpus: list[list[str]], query: list[str], *, words: bool = False) -> list[float]:
    """Scores by document; over the stems alone unless the field of exact words is asked for, too."""
    store = MemoryStore()
    put(store, [Document(id=f"d{number:02}", text=" ".join(terms)) for number, terms in enumerate(corpus)])
    view = store.view("")
    asked = Terms(stems=counted(query), words=counted(query) if words else {})
    scores = bm25.score(view, asked).scores
    return [float(scores[view.rows_of(f"d{number:02}")[0]]) for number in range(len(corpus))]


@given(corpora, queries)
@settings(max_examples=100)
def test_scores_equal_the_naive_ones(corpus: list[list[str]], query: list[str]) -> None:
    documents, asked = [counted(terms) for terms in corpus], counted(query)
    expected = oracle.bm25_scores(documents, range(len(documents)), asked, bm25.K1, bm25.B)
    assert ours(corpus, query) == pytest.approx(expected, abs=1e-9)
    # The fake rows stem nothing here, so the second field adds its weight of the same.
    assert ours(corpus, query, words=True) == pytest.approx(
        [score * (1 + bm25.WORD_WEIGHT) for score in expected], abs=1e-9
    )


@given(st.lists(st.lists(lines, min_size=1, max_size=4), min_size=1, max_size=5), queries)
@settings(max_examples=100)
def test_scores_of_passages_equal_the_naive_ones(corpus: list[list[list[str]]], query: list[str]) -> None:
    store = MemoryStore()
    texts = ["\n".join(" ".join(terms) for terms in document) for document in corpus]
    put(store, [Document(id=f"d{number}", text=text) for number, text in enumerate(texts)])
    view = store.view("")
    scores = bm25.score(view, Terms(stems=counted(query), words={})).scores
    found = [float(scores[row]) for number in range(len(corpus)) for row in view.rows_of(f"d{number}")]
    passages = [counted(terms) for document in corpus for terms in document]
    documents = [number for number, document in enumerate(corpus) for _ in document]
    expected = oracle.bm25_scores(passages, documents, counted(query), bm25.K1, bm25.B)
    assert found == pytest.approx(expected, abs=1e-9)


class SmoothBM25(rank_bm25.BM25Okapi):
    """rank-bm25 with an inverse document frequency that is never negative: its own can be, and is then patched up."""

    def _calc_idf(self, nd: dict[str, int]) -> None:
        self.idf = {word: math.log(1 + (self.corpus_size - held + 0.5) / (held + 0.5)) for word, held in nd.items()}


@given(corpora, queries)
@settings(max_examples=80)
def test_scores_equal_those_of_rank_bm25(corpus: list[list[str]], query: list[str]) -> None:
    theirs = SmoothBM25(corpus, k1=bm25.K1, b=bm25.B).get_scores(query)
    assert ours(corpus, query) == pytest.approx(theirs.tolist(), abs=1e-6)


@given(corpora, queries)
@settings(max_examples=80)
def test_scores_equal_those_of_bm25s(corpus: list[list[str]], query: list[str]) -> None:
    """bm25s leaves the constant factor k1 + 1 out and counts in float32 unless told otherwise."""
    known = sorted({term for terms in corpus for term in terms})
    asked = [term for term in query if term in known]
    retriever = bm25s.BM25(method="lucene", k1=bm25.K1, b=bm25.B, dtype="float64")
    retriever.index(corpus, show_progress=False)
    theirs = retriever.get_scores(asked) if asked else np.zeros(len(corpus))
    assert ours(corpus, query) == pytest.approx((theirs * (bm25.K1 + 1)).tolist(), abs=1e-6)
