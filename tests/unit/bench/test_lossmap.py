"""Each relevant document that is missing is missing at one stage, and the map names that one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wellhead import Document, Index
from wellhead.bench.collection import Collection, read_collection
from wellhead.bench.evaluate import fill
from wellhead.bench.labels import Label, LabelledQuery, Labels
from wellhead.bench.lossmap import STAGES, LossMap, loss_map
from wellhead.ingest.chunk import Slice
from wellhead.testing.fakes import HashEmbedder

HANDBOOK = Path(__file__).parents[3] / "examples" / "handbook"
RED = {f"d{n:02}": f"red {'blue ' * n}" for n in range(12)}


def mapped(
    texts: dict[str, str], relevant: str, query: str = "red", index: Index | None = None, **options: Any
) -> LossMap:
    """The map of one query with one relevant document, over an index of these texts."""
    opened = index or Index.open(":memory:", embedder=HashEmbedder(), languages=["en"])
    opened.add(Document(id=name, text=text, metadata={"place": name}) for name, text in texts.items())
    collection = Collection(name="one", queries={"q": query}, qrels={"q": {relevant: 2, "other": 0}})
    return loss_map(collection, opened, **options)


def all_but_the_first(document: Document) -> list[Slice]:
    return [] if document.id == "d00" else [Slice(start=0, end=len(document.text))]


def only(found: LossMap) -> tuple[str, str]:
    (loss,) = found.losses
    assert (found.relevant, found.delivered, loss.grade) == (1, 0, 2)
    return loss.stage, loss.reason


def test_what_is_delivered_is_not_lost() -> None:
    found = mapped(RED, "d00", mode="lexical")
    assert (found.queries, found.relevant, found.delivered, found.losses) == (1, 1, 1, ())
    assert found.by_stage == {}


def test_a_document_in_the_place_of_its_twin_is_delivered() -> None:
    found = mapped({"a": "red door", "b": "red door"}, "b", "red door", k=1, mode="lexical")
    assert found.delivered == 1


def test_a_document_that_is_not_there_was_not_ingested() -> None:
    assert only(mapped(RED, "gone")) == ("not ingested", "the index holds no such document")


def test_a_document_of_which_no_passage_was_made() -> None:
    index = Index.open(":memory:", embedder=HashEmbedder(), chunker=all_but_the_first)
    assert only(mapped(RED, "d00", index=index))[0] == "not in any passage"


@pytest.mark.parametrize(
    ("options", "relevant", "query", "stage"),
    [
        ({"filters": {"place": "d01"}}, "d00", "red", "filter"),
        ({"mode": "lexical"}, "d00", "green", "no terms"),
        ({"mode": "lexical", "k": 3}, "d11", "red", "fusion"),
        ({"mode": "lexical", "threshold": {"coverage": 0.999}}, "d11", "red", "cut"),
        ({"mode": "lexical", "max_tokens": 3}, "d11", "red", "token budget"),
    ],
)
def test_each_stage_is_named(options: dict[str, Any], relevant: str, query: str, stage: str) -> None:
    found = mapped(RED, relevant, query, **options)
    assert only(found)[0] == stage
    assert found.by_stage == {stage: 1}
    assert stage in STAGES


def test_of_several_passages_the_one_that_came_furthest_speaks() -> None:
    text = "# One\n\nnothing of it\n\n# Two\n\nred and other words\n"
    index = Index.open(":memory:", embedder=HashEmbedder(), languages=["en"])
    index.add([Document(id="two", text=text, media_type="text/markdown")])
    found = mapped({"a": "red red", "b": "red red red"}, "two", index=index, mode="lexical", k=2)
    (loss,) = found.losses
    assert (loss.stage, loss.reason) == ("fusion", "rank 3, and k=2 are returned")
    assert index.passage(loss.passage_id).text.endswith("red and other words")


def test_losses_come_by_stage_and_add_up() -> None:
    index = Index.open(":memory:", embedder=HashEmbedder(), languages=["en"])
    index.add(Document(id=name, text=text) for name, text in RED.items())
    qrels = {"q2": {"d11": 1, "gone": 1}, "q1": {"d10": 1, "d00": 3}, "q0": {"d01": 0}}
    queries = dict.fromkeys(qrels, "red")
    found = loss_map(Collection(name="some", queries=queries, qrels=qrels), index, k=2, mode="lexical")
    assert (found.queries, found.relevant, found.delivered, found.k) == (2, 4, 1, 2)
    assert [(loss.stage, loss.query_id, loss.document_id) for loss in found.losses] == [
        ("not ingested", "q2", "gone"),
        ("fusion", "q1", "d10"),
        ("fusion", "q2", "d11"),
    ]
    assert found.by_stage == {"not ingested": 1, "fusion": 2}
    plain = found.to_dict()
    assert (plain["schema"], plain["by_stage"]) == (1, {"not ingested": 1, "fusion": 2})


def test_where_labels_quote_the_answer_only_passages_that_hold_it_count() -> None:
    text = "# One\n\nred is at the door\n\n# Two\n\nkeys are kept for a year\n"
    index = Index.open(":memory:", embedder=HashEmbedder(), languages=["en"])
    index.add([Document(id="two", text=text, media_type="text/markdown"), Document(id="far", text="red red")])
    collection = Collection(name="one", queries={"q": "red"}, qrels={"q": {"two": 1}})

    def quoted(quote: str) -> Labels:
        answer = Label(document_id="two", quote=quote, grade=1)
        return Labels(queries=(LabelledQuery(query_id="q", answers=(answer,)),))

    assert loss_map(collection, index, mode="lexical").delivered == 1
    assert loss_map(collection, index, labels=quoted("red is at"), mode="lexical").delivered == 1
    (loss,) = loss_map(collection, index, labels=quoted("kept for a year"), mode="lexical").losses
    assert (loss.stage, index.passage(loss.passage_id).heading) == ("no terms", ("Two",))
    assert loss_map(collection, index, labels=quoted(""), mode="lexical").delivered == 1
    gone = loss_map(collection, index, labels=quoted("never written"), mode="lexical")
    assert (gone.delivered, gone.stale) == (1, ("q, two, 'never written'",))


def test_the_map_of_the_handbook_accounts_for_every_relevant_document() -> None:
    collection = read_collection(HANDBOOK)
    with Index.open(":memory:") as index:
        assert fill(index, collection, lambda _stage, _done, _total: None) == []
        found = loss_map(collection, index)
    assert found.relevant == sum(grade >= 1 for grades in collection.qrels.values() for grade in grades.values())
    assert found.delivered + len(found.losses) == found.relevant
    assert sum(found.by_stage.values()) == len(found.losses)
    assert found.delivered > 0.8 * found.relevant
