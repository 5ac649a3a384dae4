"""Documents in memory: built once, on first use, and again where that failed; scopes, sizes, kinds of embedder."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from wellhead.backends.retrievers.embedding import FunctionEmbedder, embedder_of
from wellhead.backends.retrievers.shared import shared_retriever
from wellhead.errors import BackendError, ConfigError, ScopeError, UsageError, WellheadError
from wellhead.index import embedding
from wellhead.index.embedding import EmbeddingRetriever
from wellhead.ingest.chunk import fixed
from wellhead.records import Document

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def by_letters(text: str) -> list[float]:
    """How often each letter occurs: enough to tell texts apart."""
    return [text.casefold().count(letter) + 0.01 for letter in LETTERS]


class Spy:
    """An object with one method, as small as an embedder can be."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.fails = 0
        self.delay = 0.0

    def embed_query(self, text: str) -> list[float]:
        if self.fails:
            self.fails -= 1
            raise ConnectionError("key sk-secret was refused")
        time.sleep(self.delay)
        self.texts.append(text)
        return by_letters(text)


DOCUMENTS = (
    Document(id="refund", text="Money comes back within thirty days."),
    Document(id="hours", text="Open every day but Monday."),
)


@pytest.mark.promise("A15", "A16")
def test_making_one_calls_nothing_and_the_first_search_builds_once() -> None:
    spy = Spy()
    retriever = EmbeddingRetriever(spy, DOCUMENTS)
    assert spy.texts == []
    first = retriever.search("money comes back within days")
    assert first[0].passage.document_id == "refund"
    built = list(spy.texts)
    assert retriever.search("open monday")[0].passage.document_id == "hours"
    assert spy.texts == [*built, "open monday"]


@pytest.mark.promise("A15")
def test_without_an_embedder_the_shipped_one_is_used() -> None:
    retriever = EmbeddingRetriever(documents=DOCUMENTS)
    hits = retriever.search("how do I get a refund of my money")
    assert hits[0].passage.document_id == "refund"
    assert hits[0].signals.cosine == pytest.approx(hits[0].score)


@pytest.mark.promise("A17")
def test_however_many_ask_first_it_is_built_once() -> None:
    spy = Spy()
    spy.delay = 0.01
    retriever = EmbeddingRetriever(spy, DOCUMENTS)
    barrier = threading.Barrier(8)

    def ask(_: int) -> int:
        barrier.wait()
        return len(retriever.search("money"))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(8))) == [2] * 8
    assert [spy.texts.count(document.text) for document in DOCUMENTS] == [1, 1]


@pytest.mark.promise("A17")
def test_an_embedder_may_search_the_same_documents_while_they_are_built() -> None:
    held: list[EmbeddingRetriever] = []
    entered: list[str] = []

    def nested(text: str) -> list[float]:
        if text == DOCUMENTS[0].text and len(entered) < 1:
            entered.append(text)
            with pytest.raises(WellheadError):
                held[0].search(" ")
            held[0].add([])
        return by_letters(text)

    held.append(EmbeddingRetriever(nested, DOCUMENTS))
    assert len(held[0].search("money")) == 2
    assert entered


@pytest.mark.promise("A18", "G32")
def test_a_build_that_failed_is_tried_again_by_the_next_search() -> None:
    spy = Spy()
    spy.fails = 1
    retriever = EmbeddingRetriever(spy, DOCUMENTS)
    with pytest.raises(BackendError) as caught:
        retriever.search("money")
    assert "secret" not in str(caught.value)
    assert len(retriever.search("money")) == 2


@pytest.mark.promise("G9")
def test_documents_can_be_added_before_and_after_the_first_search() -> None:
    retriever = EmbeddingRetriever(by_letters, DOCUMENTS[:1])
    retriever.add(DOCUMENTS[1:])
    assert len(retriever.search("money")) == 2
    retriever.add([Document(id="zoo", text="zzz zoo zzz"), Document(id="hours", text="Closed.")])
    assert retriever.search("zzz")[0].passage.document_id == "zoo"
    assert {hit.text for hit in retriever.search("zzz")} == {DOCUMENTS[0].text, "zzz zoo zzz", "Closed."}


def test_an_addition_that_failed_is_not_half_kept() -> None:
    spy = Spy()
    retriever = EmbeddingRetriever(spy, DOCUMENTS)
    retriever.search("money")
    spy.fails = 1
    with pytest.raises(BackendError):
        retriever.add([Document(id="zoo", text="zzz")])
    assert len(retriever.search("money")) == 2
    retriever.add([Document(id="zoo", text="zzz")])
    assert len(retriever.search("money")) == 3


@pytest.mark.promise("G8")
def test_more_documents_than_fit_into_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert embedding.MOST_DOCUMENTS == 50_000
    monkeypatch.setattr(embedding, "MOST_DOCUMENTS", 2)
    retriever = EmbeddingRetriever(by_letters, DOCUMENTS)
    with pytest.raises(UsageError, match="3 documents are too many"):
        retriever.add([Document(id="third", text="x")])
    assert len(retriever.search("money")) == 2


@pytest.mark.promise("G10")
@pytest.mark.parametrize(
    "metadata", [{}, {"museum": ""}, {"museum": " "}, {"museum": 7}, {"museum": ["a"]}, {"m": "a"}]
)
def test_with_scopes_every_document_needs_one(metadata: dict[str, Any]) -> None:
    with pytest.raises(ScopeError, match="museum"):
        EmbeddingRetriever(by_letters, [Document(id="a", text="x", metadata=metadata)], scope_key="museum")


@pytest.mark.promise("G10", "G39")
def test_with_scopes_every_search_needs_one_and_sees_its_own() -> None:
    pages = [
        Document(id=f"{museum}-{page}", text=f"{page} at the {museum} museum", metadata={"museum": museum})
        for museum in ("north", "south")
        for page in ("refund", "hours")
    ]
    retriever = EmbeddingRetriever(by_letters, pages, scope_key="museum")
    with pytest.raises(ScopeError):
        retriever.search("refund")
    for museum in ("north", "south"):
        hits = retriever.search("refund", filters={"museum": museum})
        assert {hit.metadata["museum"] for hit in hits} == {museum}
        assert hits.hits == retriever.scoped(museum=museum).search("refund").hits
        assert hits[0].passage.document_id == f"{museum}-refund"
        assert hits.coverage.passages == 2


def test_a_threshold_cuts_by_cosine() -> None:
    retriever = EmbeddingRetriever(by_letters, DOCUMENTS, threshold=0.99)
    hits = retriever.search(DOCUMENTS[0].text)
    assert [hit.passage.document_id for hit in hits] == ["refund"]
    assert hits.threshold is not None
    assert hits.threshold.value == 0.99


def test_documents_are_chunked_as_asked() -> None:
    def halves(document: Document) -> list[Any]:
        return list(fixed(document, size=20, overlap=0, unit="chars"))

    halves.name = "halves"  # type: ignore[attr-defined]
    text = "Money comes back in thirty days."
    hits = EmbeddingRetriever(by_letters, [Document(id="a", text=text)], chunker=halves).search("money")
    assert sorted(hit.passage.start for hit in hits) == [0, 20]


@pytest.mark.promise("G33")
def test_an_embedder_whose_vectors_change_size_is_named() -> None:
    size = [3]

    def changing(text: str) -> list[float]:
        return [float(len(text)), 1.0, 2.0, 3.0][: size[0]]

    retriever = EmbeddingRetriever(changing, DOCUMENTS)
    assert len(retriever.search("money")) == 2
    size[0] = 4
    with pytest.raises(ConfigError, match="changed the size"):
        retriever.search("money")


@pytest.mark.parametrize("made", [None, "text", [], [[1.0]], [1.0, "x"]])
def test_what_is_no_vector_is_named(made: Any) -> None:
    with pytest.raises(ConfigError, match="gave no vector"):
        FunctionEmbedder(lambda text: made).embed_query("x")


def test_an_embedder_that_loses_texts_is_named() -> None:
    with pytest.raises(ConfigError, match="1 vectors for 2 texts"):
        FunctionEmbedder(by_letters, lambda texts: [by_letters(texts[0])]).embed_documents(["a", "b"])


@pytest.mark.promise("G40")
def test_roles_are_kept_where_there_are_two_methods() -> None:
    class TwoRoles:
        def __init__(self) -> None:
            self.calls: list[tuple[str, object]] = []

        def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
            self.calls.append(("document", list(texts)))
            return [by_letters(text) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            self.calls.append(("query", text))
            return by_letters(text)

    embedder = TwoRoles()
    EmbeddingRetriever(embedder, DOCUMENTS).search("money")
    documents = [texts for role, texts in embedder.calls if role == "document"]
    assert documents == [[document.text for document in DOCUMENTS]]
    assert embedder.calls[-1] == ("query", "money")
    assert embedder_of(by_letters).name == "by_letters"


@pytest.mark.parametrize("given", [7, Spy, object()])
def test_what_is_no_embedder_is_refused_at_once(given: Any) -> None:
    with pytest.raises(ConfigError, match="no embedder"):
        EmbeddingRetriever(given)


def test_only_documents_can_be_added() -> None:
    with pytest.raises(UsageError, match="only documents"):
        EmbeddingRetriever(by_letters, ["text"])  # type: ignore[list-item]


@pytest.mark.promise("A22")
def test_one_instance_a_process_made_on_first_use_and_again_where_that_failed() -> None:
    made: list[EmbeddingRetriever] = []
    failing = [True]

    def make() -> EmbeddingRetriever:
        if failing.pop() if failing else False:
            raise ConfigError("not yet")
        time.sleep(0.01)
        made.append(EmbeddingRetriever(by_letters, DOCUMENTS))
        return made[-1]

    with pytest.raises(ConfigError):
        shared_retriever(make)
    with ThreadPoolExecutor(8) as pool:
        shared = list(pool.map(lambda _: shared_retriever(make), range(16)))
    assert len(made) == 1
    assert all(one is made[0] for one in shared)
    assert shared_retriever(lambda: 1) == 1
