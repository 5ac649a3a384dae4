"""A question goes in and hits come out, whatever stands behind: a dictionary, vectors in memory, a store, an index."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wellhead.backends.retrievers.function import FunctionRetriever
from wellhead.backends.retrievers.langchain_store import LangChainStoreRetriever
from wellhead.index import Index
from wellhead.index.embedding import EmbeddingRetriever
from wellhead.records import Document, Hits
from wellhead.search.guard import Guarded

ARTICLES = {
    "refunds": "Refunds are paid within 30 days of the purchase.",
    "hours": "The museum is open every day from nine to five.",
}
DOCUMENTS = [Document(id=name, text=text) for name, text in ARTICLES.items()]


def dictionary() -> Guarded:
    def find(query: str, k: int, filters: object) -> list[dict[str, Any]]:
        words = query.casefold().split()
        found = [name for name, text in ARTICLES.items() if any(word in text.casefold() for word in words)]
        return [{"id": name, "text": ARTICLES[name], "score": 1.0} for name in found]

    return FunctionRetriever(find)


def store() -> Guarded:
    pytest.importorskip("langchain_core")
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class Words(Embeddings):
        def embed_query(self, text: str) -> list[float]:
            return [text.casefold().count(letter) + 0.1 for letter in "refundsopnhoy"]

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self.embed_query(text) for text in texts]

    made = InMemoryVectorStore(Words())
    made.add_texts(list(ARTICLES.values()), ids=list(ARTICLES))
    return LangChainStoreRetriever(made, score="cosine")


def index() -> Guarded:
    made = Index.open(":memory:")
    made.add(DOCUMENTS)
    return Guarded(made)


@pytest.mark.promise("A26", "A37", "D1", "G4")
@pytest.mark.parametrize("make", [dictionary, lambda: EmbeddingRetriever(None, DOCUMENTS), store, index])
def test_what_stands_behind_can_be_changed_and_nothing_else(make: Callable[[], Guarded]) -> None:
    def docs(question: str) -> list[tuple[str, float | None]]:
        hits = make().search(question, k=1)
        assert isinstance(hits, Hits)
        assert hits.outcome == "hits"
        return [(hit.passage.document_id, hit.score) for hit in hits]

    ((name, score),) = docs("refunds paid purchase")
    assert name == "refunds"
    assert isinstance(score, float)
    assert (score == 1.0) == (make is dictionary)
    assert docs("museum open nine five")[0][0] == "hours"


@pytest.mark.promise("D45")
def test_the_page_of_stores_names_twelve_and_says_which_were_tried(root: Path) -> None:
    page = (root / "docs" / "reference" / "stores.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!store|-)([^|]+?) \|(.*)\|$", page, re.MULTILINE)
    assert [name for name, _ in rows] == [
        "`InMemoryVectorStore`",
        "Chroma",
        "PGVector",
        "Redis",
        "Elasticsearch",
        "MongoDB",
        "Qdrant",
        "Milvus",
        "Weaviate",
        "Pinecone",
        "Astra DB",
        "turbopuffer",
    ]
    assert [name for name, rest in rows if "*not tried*" not in rest] == ["`InMemoryVectorStore`"]
