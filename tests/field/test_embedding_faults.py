"""Vectors that poison an index, and keys that serve one text's vector for another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from wellhead import Document, Index
from wellhead.ingest.rows import vector_key
from wellhead.testing.fakes import HashEmbedder


class Moody(HashEmbedder):
    """Gives a vector of one number for the text that holds `sour`, until it is well."""

    sour: float | None = None

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.roles: list[tuple[str, str]] = []

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        self.roles += [("document", text) for text in texts]
        vectors = super().embed_documents(texts)
        if self.sour is not None:
            vectors[["sour" in text for text in texts]] = self.sour
        return vectors

    def embed_query(self, text: str) -> NDArray[np.float32]:
        self.roles.append(("query", text))
        return super().embed_query(text)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf"), 0.0])
def test_one_bad_vector_of_eight_leaves_one_passage_out_and_names_it(number: float) -> None:
    """chroma-core/chroma PR#7420: a NaN, infinite or zero vector was stored, and topped every search or none."""
    embedder = Moody()
    embedder.sour = number
    index = Index.open(":memory:", embedder=embedder, languages=["en"])
    documents = [Document(id=f"d{n}", text=f"{'sour' if n == 3 else 'sweet'} note {n}") for n in range(8)]
    report = index.add(documents)
    assert [refusal.id for refusal in report.failed] == ["d3#0"]
    assert not report.complete
    hits = index.search("note", k=10)
    assert {hit.passage.document_id for hit in hits} == {f"d{n}" for n in range(8) if n != 3}
    assert all(hit.score is not None and np.isfinite(hit.score) for hit in hits)
    assert index.stats().incomplete == 1
    embedder.sour, embedder.asked = None, []
    assert index.add(documents).complete
    assert embedder.asked == ["sour note 3"]
    assert len(index.search("note", k=10)) == 8


def test_no_two_lists_of_parts_make_one_key() -> None:
    """laravel/ai#839: joined keys ran together, or lacked the model, and served the wrong vector."""
    keys = {
        vector_key(model, role, context, text)
        for model in ("m:256", "m:25", "m@1:256", "m@2:256")
        for role in ("document", "query")
        for context in ("", "Jean", "Jean-")
        for text in ("Jean-Pierre", "Jean", "Pierre", "JeanPierre", "6Jean")
    }
    assert len(keys) == 4 * 2 * 3 * 5
    assert all(len(key) == 32 for key in keys)


def test_documents_are_embedded_as_documents_and_queries_as_queries() -> None:
    """labsai/EDDI PR#810: queries were embedded in the role of documents; no error, only lower recall."""
    embedder = Moody()
    index = Index.open(":memory:", embedder=embedder, languages=["en"])
    index.add([Document(id="a", text="a document")])
    written = [pair for pair in embedder.roles if pair[0] == "document"]
    assert written == [("document", "a document")]
    embedder.roles.clear()
    index.search("a question")
    assert embedder.roles == [("query", "a question")]
