"""A view of some rows is the view that a store of those rows alone would give."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wellhead.backends.stores.memory import MemoryStore
from wellhead.records import Document, Terms
from wellhead.search import bm25
from wellhead.search.filters import parse, select
from wellhead.search.within import Within
from wellhead.testing.contracts import assert_same_view, live_rows, put

words = st.lists(st.sampled_from(["a", "b", "é", "e", "cats", "cat"]), min_size=1, max_size=5).map(" ".join)
texts = st.lists(words, min_size=1, max_size=3).map("\n".join)
rows = st.lists(st.tuples(texts, st.sampled_from(["x", "y"])), min_size=1, max_size=8)


@given(rows)
@settings(max_examples=60)
def test_it_equals_the_view_of_a_store_that_holds_nothing_else(pairs: list[tuple[str, str]]) -> None:
    documents = [
        Document(id=f"d{n}", text=text, metadata={"team": team, f"only_{team}": n}, language=team * 2)
        for n, (text, team) in enumerate(pairs)
    ]
    whole, alone = MemoryStore(), MemoryStore()
    put(whole, documents)
    put(alone, [document for document in documents if document.metadata["team"] == "x"])
    view = whole.view("")
    admits = select(parse({"team": "x"}), view)
    assert admits is not None
    within, expected = Within(view, admits), alone.view("")
    assert_same_view(within, expected, ["a", "b", "é", "e", "cat", "cats", "none"])
    query = Terms(stems={"a": 1, "e": 2}, words={"cats": 1})
    if len(within):
        scores = bm25.score(within, query).scores
        assert scores[live_rows(within)].tolist() == bm25.score(expected, query).scores.tolist()
        assert not scores[~within.live].any()


@pytest.mark.parametrize("team", ["x", "y"])
def test_rows_of_others_do_not_exist_for_it(team: str) -> None:
    store = MemoryStore()
    put(store, [Document(id=name, text=name, metadata={"team": name}) for name in ("x", "y")])
    view = store.view("")
    admits = select(parse({"team": team}), view)
    assert admits is not None
    within = Within(view, admits)
    other = {"x": "y", "y": "x"}[team]
    (foreign,) = view.passages(view.rows_of(other))
    assert within.row(foreign.id) is None
    assert list(within.starting(foreign.id[:8])) == []
    assert list(within.rows_of(other)) == []
    assert within.stems.posting(other) is None
    assert [passage.document_id for passage in within.passages(live_rows(within))] == [team]
    assert within.column("team").values == [team]
