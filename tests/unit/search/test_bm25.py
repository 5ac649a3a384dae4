"""The lexical leg: what BM25 rewards, and that nothing about it depends on where a row stands."""

from __future__ import annotations

import ast
import inspect
import itertools
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wellhead import Index
from wellhead.analyze import analyze
from wellhead.backends.stores.memory import MemoryStore
from wellhead.ports import View
from wellhead.records import Document, Terms
from wellhead.search import bm25
from wellhead.search.top import Candidates
from wellhead.testing.contracts import put
from wellhead.testing.fakes import HashEmbedder

vocabulary = st.sampled_from(["a", "b", "c", "d", "e"])
line = st.lists(vocabulary, min_size=1, max_size=8).map(" ".join)


def view_of(*texts: str) -> View:
    """A view of documents d0, d1, ... of one passage each; words are cut at blanks."""
    store = MemoryStore()
    put(store, [Document(id=f"d{number}", text=text) for number, text in enumerate(texts)])
    return store.view("")


def terms(query: str) -> Terms:
    counts = {word: query.split().count(word) for word in query.split()}
    return Terms(stems=counts, words=counts)


def scores(view: View, query: str) -> list[float]:
    """By document: d0, d1, ..."""
    found = bm25.score(view, terms(query)).scores
    return [float(found[view.rows_of(f"d{number}")[0]]) for number in range(len(view))]


@pytest.mark.promise("B18")
@pytest.mark.parametrize("rows", [1, 2, 3, 1000])
def test_a_term_weighs_more_than_nothing_however_common(rows: int) -> None:
    weights = [bm25.idf(rows, frequency) for frequency in range(rows + 1)]
    assert min(weights) > 0.0
    assert weights == sorted(weights, reverse=True)


@pytest.mark.promise("B18")
@given(st.lists(line, min_size=1, max_size=6), st.lists(vocabulary, min_size=1, max_size=5), vocabulary)
@settings(max_examples=60)
def test_one_more_word_of_the_query_never_lowers_a_score(texts: list[str], query: list[str], more: str) -> None:
    view = view_of(*texts)
    before, after = scores(view, " ".join(query)), scores(view, " ".join([*query, more]))
    assert all(later >= earlier >= 0.0 for earlier, later in zip(before, after, strict=True))


@pytest.mark.promise("B17")
def test_repetition_counts_ever_less() -> None:
    padding = list("xyzuvw")
    texts = [" ".join(["a"] * count + padding[count:]) for count in range(5)]
    found = scores(view_of(*texts), "a")
    gains = [later - earlier for earlier, later in itertools.pairwise(found)]
    assert found[0] == 0.0
    assert gains == sorted(gains, reverse=True)
    assert min(gains) > 0.0


@pytest.mark.promise("B17")
def test_a_rare_term_weighs_more_than_a_common_one() -> None:
    found = scores(view_of("common rare", "common x", "common y"), "common rare")
    alone = scores(view_of("common rare", "common x", "common y"), "rare")
    assert alone[0] > found[0] / 2


@pytest.mark.promise("B17")
@pytest.mark.promise("B11")
def test_a_passage_about_the_thing_ranks_above_a_long_one_that_mentions_it() -> None:
    mention = "the annual report covers hiring budgets travel and offices and once also glider fees among them"
    found = scores(view_of("a glider moves", mention, "nothing here"), "glider")
    assert found[0] > found[1] > found[2] == 0.0


def test_a_word_asked_twice_counts_twice() -> None:
    view = view_of("a b", "b c")
    once, twice = scores(view, "a"), scores(view, "a a")
    assert twice == [2 * score for score in once]


@given(st.lists(line, min_size=1, max_size=8), st.lists(vocabulary, min_size=1, max_size=6).map(" ".join))
@settings(max_examples=60)
def test_no_score_exceeds_the_most_that_the_query_could_have(texts: list[str], query: str) -> None:
    answer = bm25.score(view_of(*texts), terms(query))
    assert 0.0 <= answer.scores.max() <= answer.most


def test_a_word_is_as_rare_as_the_documents_that_hold_it_are_few_whatever_their_passages() -> None:
    lines = ["gate a", "gate b", "gate c", "gate d"]
    found = bm25.term_matches(view_of("\n".join(lines), "log x", "log y"), terms("gate log"), 0)
    assert {match.term: match.documents for match in found if match.field == "stem"} == {"gate": 1, "log": 2}
    one, many = (bm25.score(view_of(text, "log x", "log y"), terms("gate")) for text in ("gate a", "\n".join(lines)))
    assert one.most == many.most == pytest.approx((1 + bm25.WORD_WEIGHT) * bm25.idf(3, 1) * (bm25.K1 + 1))


def test_what_a_row_holds_of_a_query_knows_neither_repetition_nor_length() -> None:
    view = view_of("a", "a a a b", "a " + "x " * 50, "c", "b")
    answer = bm25.score(view, terms("a c c unknown"))
    rows = [view.rows_of(f"d{number}")[0] for number in range(5)]
    held = answer.held(Candidates.of(np.arange(5), view.space))[rows]
    weights = {"a": bm25.idf(5, 3), "c": 2 * bm25.idf(5, 1), "unknown": bm25.idf(5, 0)}
    assert held.tolist() == pytest.approx(
        [*[weights["a"] / sum(weights.values())] * 3, weights["c"] / sum(weights.values()), 0.0]
    )


@given(st.lists(line, min_size=1, max_size=8), st.lists(vocabulary, max_size=6).map(" ".join))
@settings(max_examples=60)
def test_a_row_holds_all_of_a_query_at_most(texts: list[str], query: str) -> None:
    candidates = Candidates.of(np.arange(len(texts)), len(texts))
    held = bm25.score(view_of(*texts), terms(query)).held(candidates)
    assert ((held >= 0.0) & (held <= 1.0 + 1e-9)).all()


def test_a_query_without_a_known_word_scores_nothing() -> None:
    answer = bm25.score(view_of("a b"), terms("unknown"))
    assert answer.scores.tolist() == [0.0]
    assert answer.most > 0.0
    assert bm25.score(view_of("a b"), Terms(stems={}, words={})).most == 0.0


@pytest.mark.promise("B12")
@given(st.lists(line, min_size=2, max_size=6), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_the_order_of_insertion_changes_no_bit_of_a_score(texts: list[str], shuffler: object) -> None:
    documents = [Document(id=f"d{number}", text=text) for number, text in enumerate(texts)]
    one, other = MemoryStore(), MemoryStore()
    put(one, documents)
    shuffled = list(documents)
    shuffler.shuffle(shuffled)  # type: ignore[attr-defined]
    for document in shuffled:
        put(other, [document])
    query = terms("a b c a")
    assert bm25.score(one.view(""), query).scores.tolist() == bm25.score(other.view(""), query).scores.tolist()


def test_the_matches_of_a_row_add_up_to_its_score() -> None:
    view = view_of("a a b", "b c", "é d")
    query = terms("a b b é unknown")
    for row in range(len(view)):
        matches = bm25.term_matches(view, query, row)
        assert sum(match.score for match in matches) == pytest.approx(float(bm25.score(view, query).scores[row]))
        assert [match.score for match in matches] == sorted((match.score for match in matches), reverse=True)
        assert {match.term for match in matches} == {"a", "b", "é", "unknown"}


@pytest.mark.promise("B16")
@pytest.mark.parametrize("mates", [("police", "policing", "policed"), ("operate", "operation", "operational")])
def test_the_exact_form_outranks_its_stem_mates(mates: tuple[str, ...]) -> None:
    index = Index.open(":memory:", embedder=HashEmbedder())
    index.add(Document(id=word, text=f"{word} rules", language="en") for word in mates)
    for word in mates:
        hits = index.search(word, mode="lexical")
        assert sorted(hit.passage.document_id for hit in hits) == sorted(mates)
        assert hits[0].passage.document_id == word
        assert hits[0].score > hits[1].score  # type: ignore[operator]
        assert index.explain(word, hits[0].id, mode="lexical").stem_only == ()
        assert index.explain(word, hits[1].id, mode="lexical").stem_only == (word,)


@pytest.mark.promise("B13")
def test_the_leg_is_arithmetic_alone() -> None:
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(inspect.getsource(sys.modules["wellhead.search.bm25"])))
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [item.name for item in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    }
    assert imported == {"__future__", "collections", "itertools", "math", "numpy", "typing", "wellhead"}


def test_one_analyzer_serves_both_sides() -> None:
    import wellhead.index.asking
    import wellhead.ingest.rows

    assert wellhead.index.asking.analyze is wellhead.ingest.rows.analyze is analyze  # type: ignore[attr-defined]


def test_policies_outranks_policy_and_policing() -> None:
    index = Index.open(":memory:", embedder=HashEmbedder())
    index.add(Document(id=word, text=f"{word} rules", language="en") for word in ("policies", "policy", "policing"))
    hits = index.search("policies", mode="lexical", cut="off")
    assert [hit.passage.document_id for hit in hits] == ["policies", "policy"]
    assert hits[0].score > hits[1].score  # type: ignore[operator]
    assert index.explain("policies", hits[1].id, mode="lexical").stem_only == ("policies",)
