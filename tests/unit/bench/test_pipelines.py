"""What a pipeline keeps of a query beside its ranking."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from wellhead import Index
from wellhead.agent.fitting import tokens_at_most
from wellhead.bench.pipelines import BASELINE, DEPTH, HEAD, PIPELINES, asker, looker, options_of
from wellhead.records import Document

QUERY = "when are keys rotated and a key made?"


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    documents = [
        Document(id="keys", text="Keys are rotated once a year.\n\nA rotation of a key takes a minute."),
        Document(id="form", text="One rotates a key like this."),
        Document(id="twin", text="One rotates a key like this."),
        *(Document(id=f"other-{number:03}", text=f"A key that is number {number}.") for number in range(120)),
    ]
    with Index.open(":memory:") as opened:
        opened.add(documents)
        yield opened


def ids(index: Index) -> list[str]:
    return [document.id for document in index.documents()]


@pytest.mark.parametrize("name", PIPELINES)
def test_the_head_is_the_beginning_of_the_ranking_with_real_passages(index: Index, name: str) -> None:
    detail = asker(name, index, ids(index))(QUERY)
    assert len(detail.ranking) == len(set(detail.ranking)) == DEPTH
    assert [one.document_id for one in detail.head] == [*detail.ranking[:HEAD]]
    for one in detail.head:
        assert index.passage(one.passage_id).document_id == one.document_id
        assert one.terms is None


def test_signals_are_those_of_the_search_and_the_baseline_has_none(index: Index) -> None:
    hit = index.search(QUERY, k=100, per_document=1, cut="off", mode="lexical")[0]
    first = asker("bm25", index, ids(index))(QUERY).head[0]
    assert first.signals["bm25"] == hit.signals.bm25
    assert (first.score, first.passage_id) == (hit.score, hit.id)
    assert "rerank" not in first.signals
    assert (asker(BASELINE, index, ids(index))("key").head[0].signals) == {}


def test_tokens_are_those_of_the_delivered_passages(index: Index) -> None:
    detail = asker("blend", index, ids(index))(QUERY)
    assert detail.tokens == sum(tokens_at_most(hit.text) for hit in index.search(QUERY))
    assert detail.tokens > 0
    assert asker("blend", index, ids(index))("sourdough rising overnight").tokens == 0  # refused by the default cut


def test_matched_words_are_told_of_the_first_documents_alone(index: Index) -> None:
    head = asker("blend", index, ids(index), look=looker(index))(QUERY).head
    known = {one.document_id: one.terms for one in head}
    assert set(known["keys"] or ()) == {"keys", "key", "rotated"}
    # In another form only: the words of the query, not those of the passage.
    assert set(known["form"] or ()) == {"keys", "key", "rotated"}
    assert [one.terms is None for one in head] == [False] * 3 + [True] * (HEAD - 3)


def test_documents_with_one_text_each_have_a_passage_of_their_own(index: Index) -> None:
    head = {one.document_id: one for one in asker("bm25", index, ids(index))("rotates like this").head}
    assert head["form"].passage_id != head["twin"].passage_id
    assert head["form"].signals == head["twin"].signals


def test_options_are_what_the_search_gets() -> None:
    assert options_of("rrf") == {"mode": "hybrid", "fusion": "rrf"}
    assert options_of(BASELINE) == {}
